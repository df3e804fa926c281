//! What each fuzz target does with its bytes. A target fails by panicking: no input may do that, and what is accepted
//! must come back as it went in.

use cubin::{Container, Image, Patch};
use emu::{Launch, LaunchError, Memory, Program};
use isa::{FormId, Inst, Isa, Target, Word};

/// Reads a cubin and everything in it; writes it back unchanged.
pub fn cubin_parse(data: &[u8]) {
    let image = match Image::parse(data) {
        Ok(image) => image,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    for section in 0..image.sections().len() {
        let _ = image.section_data(section);
        let _ = image.relocations(section);
        for attribute in image.attributes(section).unwrap_or_default() {
            let _ = (attribute.name(), attribute.value(), attribute.code_offsets());
        }
    }
    let _ = (image.global_attributes(), image.call_graph(), image.producer());
    let mut patch = Patch::new(&image);
    for code in image.codes() {
        let bytes = data[code.range.clone()].to_vec();
        patch.replace_code(code, &bytes).expect("code as it was fits");
    }
    assert!(patch.finish() == data, "an unchanged cubin came back changed");
}

/// Finds the cubins in a fatbin, host file or archive, decompresses and reads them, and puts them back: unchanged ones give
/// the file as it was, a changed one can be read again.
pub fn fatbin_parse(data: &[u8]) {
    let container = match Container::parse(data) {
        Ok(container) => container,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    let mut kept = Vec::new();
    for image in container.images() {
        match image {
            Ok(image) => {
                let _ = Image::parse(&image.bytes);
                if kept.len() < 8 && image.bytes.len() < 1 << 15 {
                    kept.push((image.index, image.bytes.into_owned()));
                }
            }
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
    let same: Vec<_> = kept.iter().map(|(index, bytes)| (*index, &bytes[..])).collect();
    assert!(
        container.rebuild(&same).expect("what is there fits") == data,
        "an unchanged file came back changed"
    );
    let Some((index, bytes)) = kept.first_mut() else { return };
    if let Some(last) = bytes.last_mut() {
        *last = !*last;
        if let Ok(rebuilt) = container.rebuild(&[(*index, bytes)]) {
            let again = Container::parse(&rebuilt).expect("a rebuilt file can be read");
            let image = again
                .image(*index)
                .expect("the image is still there")
                .expect("it can be read");
            assert!(
                image.bytes.starts_with(bytes) || bytes.starts_with(&image.bytes),
                "another image came back"
            );
        }
    }
}

/// Decodes words and reads everything that can be read of them; encoding gives them back, and a changed field is what
/// decodes again.
pub fn decode(data: &[u8]) {
    let isa = Isa::for_target(Target::Sm87).expect("the tables of sm_87 are embedded");
    let mut text = String::new();
    for (n, word) in Word::all(data).enumerate() {
        let inst = isa.decode(word);
        assert_eq!(inst.word, word);
        text.clear();
        let pc = n as u64 * 16;
        isa.write_text(inst, pc, &mut text, None)
            .expect("a string takes everything");
        assert!(!text.is_empty());
        let _ = (
            isa.branch_target(inst, pc),
            isa.guard(inst),
            isa.semantics(inst),
            isa.modifiers(inst).count(),
        );
        for operand in 0..isa.operand_count(inst) {
            let view = isa.operand(inst, operand);
            let _ = view.map(|v| (v.is_elided(), v.pieces().count(), v.fields().count()));
        }
        let cleared = isa.clear_registers(inst);
        for access in isa.accesses(inst) {
            assert!(access.field.is_none() || inst.form != FormId::OPAQUE);
        }
        let mask = isa.register_mask(inst);
        assert_eq!(
            cleared.0,
            word.0 & !mask,
            "clearing registers touches other bits of {word:?}"
        );
        assert_eq!(isa.semantic_mask(inst) & mask, 0, "registers are not meaning: {word:?}");
        fields(isa, inst);
    }
}

/// Assembles a listing; what is accepted reads as a listing of the same words.
pub fn asm_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let isa = Isa::for_target(Target::Sm87).expect("the tables of sm_87 are embedded");
    let mut assembler = isa::asm::Assembler::new(isa);
    let default = "B------:R-:W-:-:S01".parse().ok();
    let sections = match assembler.listing(text, default) {
        Ok(sections) => sections,
        Err(errors) => return assert!(errors.iter().all(|e| e.line >= 1 && !e.to_string().is_empty())),
    };
    for section in &sections {
        for (n, word) in section.words.iter().enumerate() {
            let (inst, pc) = (isa.decode(*word), n as u64 * 16);
            let mut line = String::new();
            isa.write_text(inst, pc, &mut line, None)
                .expect("a string takes everything");
            let notes = assembler
                .notes_for(inst, pc)
                .expect("a word from a text can be written down");
            let statement = isa::asm::Statement {
                text: &line,
                pc,
                notes: &notes.0,
                places: None,
            };
            let again = assembler.assemble(&statement, isa::Control::of(*word));
            assert_eq!(again, Ok(inst), "{line} <{notes}>");
        }
    }
}

/// Reads a module; what is accepted prints to a text that reads as the same, and lowers or says why not.
pub fn mlir_text_parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let kernels = match ir::parse_module(text) {
        Ok(kernels) => kernels,
        Err(e) => return assert!(e.line >= 1 && e.column >= 1 && !e.message.is_empty(), "{e}"),
    };
    for kernel in &kernels {
        let _ = ir::lower(kernel);
    }
    let printed = ir::print_module(&kernels);
    let again = ir::parse_module(&printed).unwrap_or_else(|e| panic!("printed text does not parse: {e}\n{printed}"));
    assert!(ir::print_module(&again) == printed, "printing is not stable");
}

/// Runs the words as a kernel on the emulator: it ends, stops with a reason, or refuses. The first byte chooses the threads
/// of a block; the bytes are the kernel's memory, too.
pub fn emulate(data: &[u8]) {
    let Some((threads, data)) = data.split_first() else {
        return;
    };
    let words: Vec<Word> = Word::all(data).take(40).collect();
    let (file, _) = runnable(&words);
    let image = Image::parse(&file).expect("the template with other code parses");
    let program = Program::new(&image, TEMPLATE_KERNEL).expect("what is not emulated was taken out");
    let mut memory = Memory::new();
    let address = memory.place("data", data[..data.len().min(256)].to_vec(), 0);
    let launch = Launch {
        grid: [2, 1, 1],
        block: [u32::from(threads % 80) + 1, 1, 1],
        dynamic_shared: 1024,
        params: address.to_le_bytes().repeat(8),
        max_steps: 30_000,
        ..Launch::default()
    };
    match emu::launch(&program, &launch, &mut memory, None) {
        Ok(_) => {}
        Err(LaunchError::Fault(fault)) => assert!(!fault.to_string().is_empty()),
        Err(LaunchError::Prepare(e)) => assert!(!e.to_string().is_empty()),
    }
}

const TEMPLATE: &[u8] = include_bytes!("../../tests/kernels/sm_87/own_features.cubin");
const TEMPLATE_KERNEL: &str = "int_ops";

/// A cubin whose kernel begins with `words`, where what is not emulated became a NOP, and how many of them stayed.
pub fn runnable(words: &[Word]) -> (Vec<u8>, usize) {
    let isa = Isa::for_target(Target::Sm87).expect("the tables of sm_87 are embedded");
    let filler = |name| {
        let form = isa.form_by_name(name).and_then(|form| isa.form(form));
        form.unwrap_or_else(|| panic!("sm_87 has {name}")).filler()
    };
    let (nop, exit) = (filler("NOP_0x918"), filler("EXIT_0x94d_P"));
    let image = Image::parse(TEMPLATE).expect("the template parses");
    let code = image.code(TEMPLATE_KERNEL).expect("the template has the kernel");
    let room = code.bytes.len() / 16;
    let mut all: Vec<Word> = words.iter().copied().chain([exit]).collect();
    all.resize(room.max(all.len()), nop);
    all.truncate(room);
    let build = |words: &[Word]| {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut patch = Patch::new(&image);
        patch.replace_code(code, &bytes).expect("code of the same length fits");
        patch.finish()
    };
    let first = build(&all);
    let first_image = Image::parse(&first).expect("the template with other code parses");
    let refused = Program::new(&first_image, TEMPLATE_KERNEL)
        .expect("words that are not emulated are listed, not refused")
        .missing;
    let mut kept = words.len();
    for missing in refused.iter().filter(|m| m.section == TEMPLATE_KERNEL) {
        all[missing.offset as usize / 16] = nop;
        kept -= 1;
    }
    (build(&all), kept)
}

/// Each field set to what it holds gives the same word; set to other numbers, it holds them and nothing else moved.
fn fields(isa: &Isa, inst: Inst) {
    let Some(form) = isa.form(inst.form) else { return };
    for (index, field) in form.fields().iter().enumerate() {
        let now = field.get(inst.word);
        let same = isa
            .set_field(inst, index, now)
            .expect("a field takes the number that it holds");
        assert_eq!(field.get(same.word), now);
        for value in [0, 1, -1, now ^ 1, now.wrapping_add(16), i64::MAX, i64::MIN] {
            if let Ok(changed) = isa.set_field(inst, index, value) {
                assert_eq!(changed.form, inst.form);
                assert_eq!(field.get(changed.word), value);
                assert_eq!(
                    (changed.word.0 ^ inst.word.0) & !field.mask(),
                    0,
                    "{}: other bits moved",
                    field.name
                );
            }
        }
    }
    let _ = isa
        .set_field(inst, form.fields().len(), 0)
        .expect_err("there is no such field");
    let tokens: Vec<&str> = isa.modifiers(inst).collect();
    for token in &tokens {
        if let Ok(same) = isa.edit_modifiers(inst, &[token], &[token]) {
            assert_eq!(isa.modifiers(same).count(), tokens.len(), "modifiers of {inst:?} moved");
        }
    }
}
