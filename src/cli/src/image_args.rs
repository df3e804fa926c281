//! Textures and surfaces as they are typed: a buffer with a shape, and how it is read.

use anyhow::{Result, anyhow, bail};
use emu::{Channel, Edge, Image};

const CHANNELS: &[(&str, Channel)] = &[
    ("u8", Channel::U8),
    ("i8", Channel::I8),
    ("u16", Channel::U16),
    ("i16", Channel::I16),
    ("u32", Channel::U32),
    ("i32", Channel::I32),
    ("f16", Channel::F16),
    ("f32", Channel::F32),
];

/// `[NAME:]image[(FLAG,...)]:TYPE[xCHANNELS][W,H,D][=CONTENTS]`: what the image is, at address 0, and the buffer that it is in as `--arg` takes it.
/// `None` if the text is about no image.
pub fn split(text: &str) -> Result<Option<(Image, String)>> {
    let (head, value) = text.split_at(text.find('=').unwrap_or(text.len()));
    let parts: Vec<&str> = head.split(':').collect();
    let Some(at) = parts.iter().position(|p| *p == "image" || p.starts_with("image(")) else {
        return Ok(None);
    };
    let [what] = parts[at + 1..] else {
        bail!("an image is image(FLAGS):TYPExCHANNELS[WIDTH,HEIGHT,DEPTH]");
    };
    let mut image = shape(what)?;
    flags(&mut image, parts[at])?;
    let kind = what.split(['x', '[']).next().unwrap_or("");
    let count = image.bytes() / u64::from(image.channel.bytes());
    let name: String = parts[..at].iter().map(|p| format!("{p}:")).collect();
    Ok(Some((image, format!("{name}{kind}[{count}]{value}"))))
}

fn shape(what: &str) -> Result<Image> {
    let (texel, sizes) = what
        .split_once('[')
        .and_then(|(texel, sizes)| Some((texel, sizes.strip_suffix(']')?)))
        .ok_or_else(|| anyhow!("`{what}` has no size in brackets: [WIDTH,HEIGHT,DEPTH]"))?;
    let (kind, channels) = texel.split_once('x').unwrap_or((texel, "1"));
    let Some(&(_, channel)) = CHANNELS.iter().find(|c| c.0 == kind) else {
        let names: Vec<&str> = CHANNELS.iter().map(|c| c.0).collect();
        bail!("no texels of `{kind}`; there are {}", names.join(", "));
    };
    let channels = match channels {
        "1" => 1,
        "2" => 2,
        "4" => 4,
        _ => bail!("texels have 1, 2 or 4 channels"),
    };
    let numbers: Option<Vec<u32>> = sizes.split(',').map(|n| n.trim().parse().ok()).collect();
    let mut size = [1; 3];
    match numbers {
        // What the hardware can have.
        Some(n) if n.len() <= 3 && n.iter().all(|n| (1..=1 << 17).contains(n)) => size[..n.len()].copy_from_slice(&n),
        _ => bail!("`[{sizes}]` is no size; write [WIDTH,HEIGHT,DEPTH], from 1 to 131072 each"),
    }
    Ok(Image {
        address: 0,
        size,
        channels,
        channel,
        linear: false,
        edge: Edge::Clamp,
        normalized: false,
        fractions: false,
    })
}

fn flags(image: &mut Image, text: &str) -> Result<()> {
    let list = text.strip_prefix("image").unwrap_or(text).trim_matches(['(', ')']);
    for flag in list.split(',').map(str::trim).filter(|f| !f.is_empty()) {
        match flag {
            "linear" => image.linear = true,
            "point" => image.linear = false,
            "clamp" => image.edge = Edge::Clamp,
            "border" => image.edge = Edge::Border,
            "wrap" => image.edge = Edge::Wrap,
            "mirror" => image.edge = Edge::Mirror,
            "normalized" => image.normalized = true,
            "fractions" => image.fractions = true,
            _ => bail!(
                "no image is `{flag}`; it can be point or linear, clamp, border, wrap or mirror, normalized (coordinates), fractions (integers)"
            ),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_buffers_with_a_shape() {
        let (image, buffer) = split("t:image(linear,wrap):u8x4[8,4]=random").unwrap().unwrap();
        assert_eq!(
            (image.size, image.channels, image.linear, image.edge),
            ([8, 4, 1], 4, true, Edge::Wrap)
        );
        assert_eq!(buffer, "t:u8[128]=random");
        assert_eq!(split("image:f32[9]").unwrap().unwrap().1, "f32[9]");
        assert!(split("x:f32[9]=iota").unwrap().is_none());
    }

    #[test]
    fn mistakes_say_what_is_possible() {
        for (text, word) in [
            ("image:f64[9]", "there are"),
            ("image:u8x3[9]", "1, 2 or 4"),
            ("image:u8", "[WIDTH"),
            ("image(bilinear):u8[4]", "point or linear"),
            ("image:u8[0]", "from 1"),
            ("image", "image(FLAGS)"),
        ] {
            let why = split(text).unwrap_err().to_string();
            assert!(why.contains(word), "{text}: {why}");
        }
    }
}
