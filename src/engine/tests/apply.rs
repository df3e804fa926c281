//! The engine as a library: several images in one file, passes that misbehave, the same outcome on any number of threads.

use std::fs;
use std::path::Path;

use passes::{Context, Pass, PassResult, Refusal, Registry};
use sass2mlir_engine::{self as engine, Config, Options};

fn kernels(name: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/kernels")
            .join(name),
    )
    .expect(name)
}

fn mul_mat() -> Vec<u8> {
    kernels("sm_87/own_mul_mat.cubin")
}

fn config(text: &str) -> Config<'static> {
    Config::parse(text, "pass.toml", &Registry::default()).unwrap()
}

const DEFTZ: &str = "[[pass]]\nname = \"ffma-deftz\"\nmode = \"apply\"\n";

/// A fatbin file with uncompressed images, written from the format's description.
fn fatbin(images: &[(&[u8], u32)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (image, sm) in images {
        let padded = image.len().next_multiple_of(8);
        let mut entry = vec![0u8; 64];
        entry[0..2].copy_from_slice(&2u16.to_le_bytes()); // an ELF image
        entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&sm.to_le_bytes());
        entry[40..48].copy_from_slice(&0x11u64.to_le_bytes());
        body.extend(entry);
        body.extend_from_slice(image);
        body.resize(body.len() + padded - image.len(), 0);
    }
    let mut file = 0xBA55_ED50u32.to_le_bytes().to_vec();
    file.extend(1u16.to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    file
}

fn rewritten(bytes: &[u8], text: &str) -> Option<Vec<u8>> {
    engine::apply(bytes, &config(text), &Options::default()).unwrap().bytes
}

#[test]
fn an_image_in_a_fatbin_is_rewritten_like_the_file() {
    let (cubin, other) = (mul_mat(), kernels("sm_87/own_features.cubin"));
    let alone = rewritten(&cubin, DEFTZ).expect("it has FFMA.FTZ");
    let file = fatbin(&[(&other, 87), (&cubin, 87)]);
    let outcome = engine::apply(&file, &config(DEFTZ), &Options::default()).unwrap();
    assert_eq!(outcome.bytes.unwrap(), fatbin(&[(&other, 87), (&alone, 87)]));
    let images = &outcome.report.images;
    assert_eq!(images.len(), 2);
    assert!(images[0].patch.is_none() && images[1].patch.is_some());
    assert_ne!(images[0].path, images[1].path);
}

#[test]
fn an_image_of_a_target_that_is_not_named_stays() {
    let (cubin, other) = (mul_mat(), kernels("sm_90a/own_features.cubin"));
    let alone = rewritten(&cubin, DEFTZ).unwrap();
    let file = fatbin(&[(&other, 90), (&cubin, 87)]);
    let text = format!("{DEFTZ}sm = \"sm_87\"\n");
    assert_eq!(rewritten(&file, &text).unwrap(), fatbin(&[(&other, 90), (&alone, 87)]));
    assert_eq!(rewritten(&file, &format!("{DEFTZ}sm = \"sm_75\"\n")), None);
}

#[test]
fn the_outcome_does_not_depend_on_the_number_of_threads() {
    let cubin = mul_mat();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let options = Options {
                keep_text: true,
                ..Options::default()
            };
            let o = engine::apply(&cubin, &config(DEFTZ), &options).unwrap();
            let texts: Vec<_> = o.texts.into_iter().map(|t| (t.name, t.before, t.after)).collect();
            (o.bytes, format!("{:?}", o.report), texts)
        })
    };
    assert_eq!(with(1), with(4));
}

/// What a pass that only reports is for has no say in whether a kernel is held back, or how many registers it gets.
#[test]
fn who_only_reports_decides_nothing() {
    let cubin = kernels("sm_87/own_features.cubin");
    let apply = "[[pass]]\nname = \"reschedule\"\nmode = \"apply\"\n";
    let report =
        "[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\n[[pass]]\nname = \"reg-shrink\"\nmode = \"report\"\n";
    let alone = rewritten(&cubin, apply).expect("some blocks are faster in another order");
    assert_eq!(rewritten(&cubin, &format!("{apply}{report}")), Some(alone));
}

/// Passes that a careless author could write.
struct Bad(&'static str, fn(&ir::Kernel) -> Result<PassResult, Refusal>);

impl Pass for Bad {
    fn name(&self) -> &str {
        self.0
    }
    fn summary(&self) -> &str {
        "misbehaves"
    }
    fn run(&self, _: &Context<'_>, kernel: &ir::Kernel, _: &passes::Options) -> Result<PassResult, Refusal> {
        (self.1)(kernel)
    }
}

fn edit(op: ir::OpId, field: usize, value: i64) -> PassResult {
    let mut result = PassResult {
        sites: 1,
        ops: 1,
        ..PassResult::default()
    };
    result.edits.edits.push(ir::Edit::SetField { op, field, value });
    result
}

static PANICS: Bad = Bad("panics", |_| panic!("at the disco"));
static OUT_OF_RANGE: Bad = Bad("out-of-range", |_| Ok(edit(ir::OpId(u32::MAX), 0, 0)));
static NO_FIELD: Bad = Bad("no-field", |k| {
    Ok(edit(passes::instructions(k).next().unwrap().1, 99, 0))
});

/// Puts what is in R7 into R200.
static HIGHER: Bad = Bad("higher", |k| {
    let isa = isa::Isa::for_target(k.target).unwrap();
    let mut result = PassResult::default();
    for (_, op, mut inst) in passes::instructions(k) {
        let form = isa.form(inst.form).unwrap();
        let named: Vec<_> = isa
            .accesses(inst)
            .filter(|a| a.file == isa::RegFile::R && a.reg == 7)
            .collect();
        for field in named.iter().filter_map(|a| a.field) {
            inst.word = form.fields()[usize::from(field)].set(inst.word, 200).unwrap();
        }
        if !named.is_empty() {
            (result.sites, result.ops) = (result.sites + 1, result.ops + 1);
            let operands = k.op(op).operands().to_vec();
            result.edits.edits.push(ir::Edit::Replace { op, inst, operands });
        }
    }
    Ok(result)
});
static OTHER_BARRIER: Bad = Bad("other-barrier", |k| {
    let isa = isa::Isa::for_target(k.target).unwrap();
    let is_barrier = |inst: &isa::Inst| isa.form(inst.form).is_some_and(|f| f.mnemonic() == "BAR");
    let mut barriers = passes::instructions(k).filter(|(.., inst)| is_barrier(inst));
    let (_, op, inst) = barriers.next().unwrap();
    let (field, _) = isa.operand(inst, 0).unwrap().fields().next().unwrap();
    Ok(edit(op, field, 7))
});

/// The most registers that each kernel was compiled for, and where the file says it.
fn maxima(cubin: &[u8]) -> Vec<(String, usize, u32)> {
    let image = cubin::Image::parse(cubin).unwrap();
    let said = image.codes().iter().filter_map(|code| {
        let attribute = code.attribute(cubin::nvinfo::code::MAXREG_COUNT)?;
        Some((
            code.name.to_owned(),
            attribute.offset as usize + 2,
            code.most_registers()?,
        ))
    });
    said.collect()
}

#[test]
fn the_file_declares_what_the_new_code_needs() {
    let one = |cubin: &[u8], pass: &'static Bad, kernel: &str| {
        let mut registry = Registry::default();
        registry.add(pass).unwrap();
        let text = format!("[[pass]]\nname = \"{}\"\nfn = \"{kernel}\"\nmode = \"apply\"\n", pass.0);
        let config = Config::parse(&text, "pass.toml", &registry).unwrap();
        engine::apply(cubin, &config, &Options::default()).unwrap()
    };
    let outcome = one(&mul_mat(), &HIGHER, "scale_add");
    let [kernel] = &outcome.report.images[0].kernels[..] else {
        panic!("one kernel")
    };
    assert_eq!(
        (kernel.changed, kernel.registers),
        (3, Some(203)),
        "{:?}",
        kernel.left_alone
    );
    assert_eq!(kernel.raised_maximum, None, "the file says 255");
    assert!(outcome.report.images[0].patch.unwrap().nv_info_updated);
    let bytes = outcome.bytes.unwrap();
    let image = cubin::Image::parse(&bytes).unwrap();
    let counts: Vec<_> = image.codes().iter().map(|c| (c.name, c.registers)).collect();
    assert!(counts.contains(&("scale_add", Some(203))), "{counts:?}");
    assert!(counts.contains(&("rms_norm", Some(39))), "{counts:?}");

    // The maximum that it was compiled for is no less than what it has now; of the others it stays.
    let mut capped = mul_mat();
    for at in maxima(&capped).into_iter().map(|(_, at, _)| at) {
        capped[at] = 128;
    }
    let outcome = one(&capped, &HIGHER, "scale_add");
    assert_eq!(outcome.report.images[0].kernels[0].raised_maximum, Some(128));
    let said = maxima(&outcome.bytes.unwrap());
    assert!(
        said.len() > 1
            && said
                .iter()
                .all(|(name, _, n)| *n == if name == "scale_add" { 203 } else { 128 })
    );

    let outcome = one(&mul_mat(), &OTHER_BARRIER, "mul_mat_f32");
    let why = outcome.report.images[0].kernels[0].left_alone.as_deref();
    assert!(why.is_some_and(|w| w.contains("barriers up to 0x7")), "{why:?}");
    assert!(outcome.bytes.is_none());
}

#[test]
fn a_pass_that_misbehaves_harms_no_kernel() {
    for (pass, why) in [
        (&PANICS, "panicked: at the disco"),
        (&OUT_OF_RANGE, "out-of-range"),
        (&NO_FIELD, "no-field"),
    ] {
        let mut registry = Registry::default();
        registry.add(pass).unwrap();
        assert!(registry.add(pass).is_err());
        // The first entry alone would change every kernel; the second spoils exactly the one it names.
        let text = format!(
            "{DEFTZ}[[pass]]\nname = \"{}\"\nfn = \"mul_mat_f32\"\nmode = \"apply\"\n",
            pass.0
        );
        let config = Config::parse(&text, "pass.toml", &registry).unwrap();
        let outcome = engine::apply(&mul_mat(), &config, &Options::default()).unwrap();
        let kernels = &outcome.report.images[0].kernels;
        let spoiled = kernels.iter().find(|k| k.name == "mul_mat_f32").unwrap();
        let reason = spoiled
            .left_alone
            .as_deref()
            .unwrap_or_else(|| panic!("{}: not left alone", pass.0));
        assert!(reason.contains(why), "{reason}");
        assert_eq!(spoiled.changed, 0);
        let good = format!("{DEFTZ}fn = [\"[!m]*\", \"mul_mat_q4_K\"]\n");
        assert_eq!(outcome.bytes, rewritten(&mul_mat(), &good), "{}", pass.0);
        // In report mode a bad pass is only a line in the report.
        let report = Options {
            report_only: true,
            ..Options::default()
        };
        assert_eq!(engine::apply(&mul_mat(), &config, &report).unwrap().bytes, None);
    }
}

#[test]
fn damaged_files_are_errors() {
    let good = mul_mat();
    for end in [0, 10, 64, good.len() / 2] {
        assert!(
            engine::apply(&good[..end], &config(DEFTZ), &Options::default()).is_err(),
            "{end} bytes"
        );
    }
    let wrong = Options {
        images: engine::Which {
            arch: Some(isa::Target::Sm90),
            number: None,
        },
        ..Options::default()
    };
    let e = engine::apply(&good, &config(DEFTZ), &wrong).unwrap_err().to_string();
    assert_eq!(
        e,
        "holds code for sm_87, not for sm_90; give --arch sm_87 or another file"
    );
}

/// xorshift64*: the same damage in every run.
struct Damage(u64);

impl Damage {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A cubin with some words of its code damaged: bits flipped, words swapped, words of noise.
    fn cubin(&mut self, good: &[u8]) -> Vec<u8> {
        let image = cubin::Image::parse(good).unwrap();
        let mut bad = good.to_vec();
        for _ in 0..1 + self.next() % 40 {
            let code = &image.codes()[self.next() as usize % image.codes().len()];
            let words = code.range.len() / 16;
            let at = |n: u64| code.range.start + n as usize % words * 16;
            let (here, there, bit) = (at(self.next()), at(self.next()), self.next() % 128);
            match self.next() % 4 {
                0 => bad.copy_within(there..there + 16, here),
                1 => bad[here..here + 8].copy_from_slice(&self.next().to_le_bytes()),
                _ => bad[here + bit as usize / 8] ^= 1 << (bit % 8),
            }
        }
        bad
    }
}

/// Whatever the code bytes are: the round trip gives them back, passes change what they say or leave the kernel alone, and
/// nothing panics on the way.
#[test]
fn any_code_survives() {
    let good = mul_mat();
    let mut damage = Damage(0x9e37_79b9_7f4a_7c15);
    for n in 0..80 {
        let bad = damage.cubin(&good);
        let opened = engine::Opened::new(&bad).unwrap();
        let images = opened.images(engine::Which::default()).unwrap();
        let report = engine::roundtrip(&opened, &images, &|_| true, &|| ()).unwrap();
        let broken: Vec<_> = report.kernels.iter().filter(|k| !k.holds()).collect();
        assert!(broken.is_empty() && report.file_identical, "damage {n}: {broken:?}");
        let outcome = engine::apply(&bad, &config(DEFTZ), &Options::default()).unwrap();
        for k in &outcome.report.images[0].kernels {
            let why = k.left_alone.as_deref().unwrap_or_default();
            assert!(
                why.is_empty() || why.contains("is in no table"),
                "damage {n}: {}: {why}",
                k.name
            );
        }
    }
}
