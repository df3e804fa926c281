//! Reads the listing of `nvdisasm -plr`.
//!
//! Behind `//` each line has a box per register file; its header gives a column to each register number. `v` is read, `^` is
//! written, `x` is both, `:` is live only.

use super::{File, RegSet, Usage};

/// One instruction of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte offset in the section.
    pub offset: u64,
    /// The printed instruction without `;`.
    pub text: String,
    /// Registers read and written.
    pub usage: Usage,
    /// Every register with a mark: read, written, or only live.
    pub live: [RegSet; 4],
}

/// The code sections of a cubin in listing order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Name without `.text.`, and the instructions.
    pub sections: Vec<(String, Vec<Line>)>,
}

/// What a character position behind `//` stands for.
type Columns = Vec<Option<(File, u32)>>;

/// Reads a whole listing; the error says which line is not understood.
pub fn parse(text: &str) -> Result<Listing, String> {
    let mut listing = Listing::default();
    let mut files: Vec<File> = Vec::new();
    let mut columns: Columns = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix(".section\t.text.") {
            let name = rest.split(['"', ',']).next().unwrap_or(rest);
            listing.sections.push((name.to_owned(), Vec::new()));
            files.clear();
            columns.clear();
            continue;
        }
        let Some((head, boxes)) = line.split_once("//") else {
            continue;
        };
        let head = head.trim();
        if head.is_empty() {
            if files.is_empty() && boxes.contains("GPR") {
                files = boxes
                    .split('|')
                    .map(str::trim)
                    .filter(|s| !s.is_empty())
                    .map(file)
                    .collect::<Result<_, _>>()?;
            } else if columns.is_empty() && boxes.contains('#') {
                columns = header(boxes, &files)?;
            }
            continue;
        }
        let Some((offset, instruction)) = head.strip_prefix("/*").and_then(|h| h.split_once("*/")) else {
            continue;
        };
        let Ok(offset) = u64::from_str_radix(offset, 16) else {
            continue;
        };
        let section = listing.sections.last_mut().ok_or("an instruction before any section")?;
        let (usage, live) = marks(boxes, &columns).map_err(|c| format!("mark `{c}` under no register: {line}"))?;
        section.1.push(Line {
            offset,
            text: instruction.trim().trim_end_matches(';').trim_end().to_owned(),
            usage,
            live,
        });
    }
    Ok(listing)
}

fn file(name: &str) -> Result<File, String> {
    match name {
        "GPR" => Ok(File::R),
        "PRED" => Ok(File::P),
        "UGPR" => Ok(File::Ur),
        "UPRED" => Ok(File::Up),
        _ => Err(format!("unknown register file {name}")),
    }
}

fn header(boxes: &str, files: &[File]) -> Result<Columns, String> {
    let mut columns: Columns = vec![None; boxes.len()];
    let mut group = 0; // boxes opened so far
    let bytes = boxes.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'|' => group += 1,
            b'0'..=b'9' => {
                let end = (i..bytes.len())
                    .find(|&e| !bytes[e].is_ascii_digit())
                    .unwrap_or(bytes.len());
                let file = *files.get(group - 1).ok_or_else(|| format!("no file over {boxes}"))?;
                let n = boxes[i..end].parse().map_err(|e| format!("{e}: {boxes}"))?;
                columns[i..end].fill(Some((file, n)));
                i = end;
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    Ok(columns)
}

fn marks(boxes: &str, columns: &Columns) -> Result<(Usage, [RegSet; 4]), char> {
    let (mut usage, mut live) = (Usage::default(), [RegSet::default(); 4]);
    for (i, c) in boxes.bytes().enumerate() {
        let (read, write) = match c {
            b'v' => (true, false),
            b'^' => (false, true),
            b'x' => (true, true),
            b':' => (false, false),
            _ => continue,
        };
        let (file, n) = columns.get(i).copied().flatten().ok_or(c as char)?;
        live[file as usize].add(n);
        if read {
            usage.read[file as usize].add(n);
        }
        if write {
            usage.write[file as usize].add(n);
        }
    }
    Ok((usage, live))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
\t.section\t.text.k0,\"ax\",@progbits
                                      // +------------------+----------+
                                      // |       GPR        |  PRED    |
                                      // |  # 0 1 2 10 11   |  # 0  4  |
                                      // +------------------+----------+
k0:                                   // |                  |          |
        /*0010*/   @P4 MOV R10, R2 ;  // |  2 : x v ^  ^    |  1    v  |
        /*0020*/   EXIT ;             // |  1 :             |          |
";

    #[test]
    fn marks_fall_under_their_numbers() {
        let listing = parse(TEXT).unwrap();
        let (name, lines) = &listing.sections[0];
        assert_eq!((name.as_str(), lines.len()), ("k0", 2));
        assert_eq!((lines[0].offset, lines[0].text.as_str()), (16, "@P4 MOV R10, R2"));
        assert_eq!(lines[0].usage.to_string(), "xR1 vR2 ^R10 ^R11 vP4");
        assert!(lines[1].usage.is_empty());
        assert!(lines[1].live[File::R as usize].iter().eq([0]));
    }

    #[test]
    fn a_mark_between_columns_is_an_error() {
        let bad = TEXT.replace("|  2 : x v ^", "|  2 : xv  ^");
        assert!(parse(&bad).unwrap_err().contains("under no register"));
    }
}
