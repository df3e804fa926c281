//! Instructions without their word: text, registers and scheduling say what they are. The words of real code are the oracle.

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use common::wordless::{control, told, without_words, written};
use isa::{Isa, Target, Word};
use sass2mlir_ir as ir;

/// Writes the text of a word with marks for its values.
#[derive(Default)]
struct Marked(String);

impl ir::Sink for Marked {
    type Error = std::convert::Infallible;

    fn lit(&mut self, text: &str) -> Result<(), Self::Error> {
        self.0.push_str(text);
        Ok(())
    }

    fn value(&mut self, _: usize) -> Result<(), Self::Error> {
        self.0.push(ir::MARK);
        Ok(())
    }

    fn label(&mut self, first: bool, offset: &ir::Buffer) -> Result<(), Self::Error> {
        self.0.push_str(if first { " rel(" } else { ", rel(" });
        self.0.push_str(offset.as_str());
        self.0.push(')');
        Ok(())
    }
}

/// The word that has the text, the registers and the scheduling of this one.
fn assembled(isa: &'static Isa, layout: &ir::Layout, word: Word) -> Result<Word, String> {
    let mut text = Marked::default();
    let Ok(()) = ir::walk(layout, word, &mut text);
    let wordless = ir::Wordless {
        text: &text.0,
        types: &layout.operand_types(),
        registers: &written(layout, word),
        control: control(word),
    };
    let unbound = ir::assemble(isa, isa.target(), &wordless)?;
    let mut pins = Vec::new();
    layout.each_read(word, |pin| pins.push(pin));
    layout.each_merge(word, |pin| pins.push(pin));
    let layout = ir::LayoutCache::new(isa, isa.target()).get(unbound).ok_or("opaque")?;
    ir::bind(isa, isa.target(), &layout, unbound, &pins, None)
}

/// Targets of every generation of the encoding.
const OF: [Target; 4] = [Target::Sm70, Target::Sm87, Target::Sm90a, Target::Sm120a];

#[test]
fn real_code_assembles_to_its_words() {
    let mut words = 0;
    let mut refused = Vec::new();
    let mut seen = HashMap::new();
    // A few words of each form and modifiers do, but where somebody asks for more.
    let most = if std::env::var_os("SASS_CORPUS").is_some() {
        usize::MAX
    } else {
        3
    };
    let mut check = |isa: &'static Isa, source: ir::Source<'_>| {
        let cache = ir::LayoutCache::new(isa, isa.target());
        for word in Word::all(source.code) {
            let Some(layout) = cache.get(word) else { continue };
            let words_of: &mut HashSet<u128> = seen.entry(Arc::as_ptr(&layout)).or_default();
            if words_of.len() >= most || !words_of.insert(word.0 & !isa::control::MASK) {
                continue;
            }
            words += 1;
            match assembled(isa, &layout, word) {
                Ok(made) if (made.0 ^ word.0) & told(isa, word) == 0 => {}
                Ok(made) => refused.push(format!("{:032x} became {:032x}", word.0, made.0)),
                Err(why) => refused.push(format!("{:032x}: {why}", word.0)),
            }
        }
    };
    match std::env::var_os("SASS_CORPUS") {
        Some(_) => common::each_code(&mut check),
        None => OF
            .into_iter()
            .for_each(|target| common::each_code_of(target, &mut check)),
    }
    println!("{words} words, {} not put together", refused.len());
    assert!(words > 1_000 && refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn a_kernel_is_read_without_any_word() {
    common::each_code(|isa, source| {
        if source.code.len() > 16 * 300 {
            return;
        }
        let kernel = ir::lift(isa, &source).unwrap();
        let text = ir::print_module(&[kernel]);
        let bare = without_words(isa, &text);
        assert!(!bare.contains(" raw 0x") || bare.contains("sass.opaque"), "{bare}");
        let read = common::parse(&bare);
        let code = ir::lower(&read).unwrap();
        for (made, word) in Word::all(&code).zip(Word::all(source.code)) {
            assert_eq!(
                (made.0 ^ word.0) & told(isa, word),
                0,
                "{}: {:032x}",
                source.name,
                word.0
            );
        }
        assert_eq!(code.len(), source.code.len());
        // Nothing else is another.
        let digits = |text: &str| {
            text.lines()
                .map(|l| l.split(" raw 0x").next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(digits(&ir::print_module(&[read])), digits(&text));
    });
}

/// A function with one instruction between a live-in `%r` in R4, a `%p` in P0, and the end.
fn function(instruction: &str) -> String {
    format!(
        "sass.func \"k\" attributes {{sm = \"sm_87\"}} {{\n  %PT = sass.pt\n  %RZ = sass.rz\n  \
         %r = builtin.unrealized_conversion_cast to !sass.reg {{sass.pin = \"R4\"}}\n  \
         %s = builtin.unrealized_conversion_cast to !sass.reg {{sass.pin = \"R6\"}}\n  \
         %q = builtin.unrealized_conversion_cast to !sass.reg {{sass.pin = \"R5\"}}\n  \
         %a = builtin.unrealized_conversion_cast to !sass.reg {{sass.pin = \"R8\"}}\n  \
         %b = builtin.unrealized_conversion_cast to !sass.reg {{sass.pin = \"R9\"}}\n  \
         %p = builtin.unrealized_conversion_cast to !sass.pred {{sass.pin = \"P0\"}}\n  \
         sass.entry ^bb1\n^bb1:\n  {instruction}\n  sass.EXIT_0x94d guard(%PT) %PT sched(\"B------:R-:W-:-:S05\") : (!sass.pred) -> ()\n}}\n"
    )
}

#[test]
fn what_is_written_by_hand() {
    for (instruction, word) in [
        // FADD.FTZ R5, R4, -R4
        (
            r#"%0 = sass.FADD_0x221.FTZ guard(%PT) %r, -%r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            0x000fe200000100008000000404057221u128,
        ),
        // @!P0 MOV R6, 0x2
        (
            r#"%0 = sass.MOV_0x802 guard(not %p) 0x00000002, 0xf merge(%s) regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)"#,
            0x000fe20000000f000000000200068802,
        ),
        // LDS R5, [R4+0x10]
        (
            r#"%0 = sass.LDS_0x984 guard(%PT) [%r + 0x10] regs("R5") sched("B01----:R-:W2:-:S02") : (!sass.reg) -> (!sass.reg)"#,
            0x003ea400000008000000100004057984,
        ),
        // LDS R5, [0x10]: another form, which the register tells
        (
            r#"%0 = sass.LDS_0x984 guard(%PT) [%RZ + 0x10] regs("R5") sched("B01----:R-:W2:-:S02") : (!sass.reg) -> (!sass.reg)"#,
            0x003ea4000000080000001000ff057984,
        ),
        // @P0 TEX.SCR.LL: the mask 0x3 says that there are two results
        (
            r#"%0:2 = sass.TEX_0xb60.SCR.LL guard(%p) {%r, %q}, %s, 0x00, 0x005c, "2D", 0x3 merge(%a, %b) regs("PT", "RZ", "R8") sched("B------:R-:W0:-:S01") : (!sass.reg, !sass.reg, !sass.reg, !sass.imm, !sass.imm, !sass.imm) -> (!sass.reg, !sass.reg)"#,
            0x000e2200019e03ff30005c0604080b60,
        ),
        // A value that is called like a keyword.
        (
            r#"%raw = sass.FADD_0x221.FTZ guard(%PT) %r, -%r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            0x000fe200000100008000000404057221u128,
        ),
    ] {
        let text = function(instruction);
        let printed = ir::print_module(&[common::parse(&text)]);
        let raw = printed.split(" raw 0x").nth(1).unwrap();
        let found = u128::from_str_radix(&raw[..32], 16).unwrap();
        let isa = Isa::for_target(Target::Sm87).unwrap();
        let told = told(isa, Word(word));
        assert_eq!(
            found & told,
            word & told,
            "{found:032x} instead of {word:032x}\n{printed}"
        );
    }
}

#[test]
fn what_cannot_be() {
    for (instruction, message) in [
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "has no `raw 0x<32 digits>` and no `sched",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r regs("R5") sched("B------") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "`B------` is no scheduling column",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "it writes 1 register, pairs and longer counted once, and `regs` lists 0 registers",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r regs("P5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "it cannot write P5 there",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r regs("Q5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "`Q5` is no register",
        ),
        (
            r#"%0 = sass.FADD_0x999 guard(%PT) %r, %r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "no form of FADD has the opcode 0x999 and these modifiers on sm_87",
        ),
        (
            r#"%0 = sass.FADD_0x221.E guard(%PT) %r, %r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "these modifiers on sm_87",
        ),
        (
            r#"%0 = sass.FROB_0x221 guard(%PT) %r, %r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "sm_87 has no instruction `FROB`",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, [%r] regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "no form of FADD fits the text from `[ %_ ]` on",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.ureg) -> (!sass.reg)"#,
            "the types of its operands are (!sass.reg, !sass.reg)",
        ),
        (
            r#"%0 = sass.FADD_0x221 guard(%PT) %r, %p regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)"#,
            "the value is in P0, which is no !sass.reg",
        ),
        (
            r#"%0 = sass.MOV_0x802 guard(%p) 0x00000002, 0xf regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)"#,
            "it is guarded, so it needs `merge(...)`",
        ),
        (
            r#"%0 = sass.MOV_0x802 guard(%p) 0x00000002, 0xf merge(%r) regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)"#,
            "it merges with R6, and the value is in R4",
        ),
        (
            r#"%0 = sass.MOV_0x802 guard(%PT) 0x00000002, 0xf merge(%s) regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)"#,
            "it is not guarded, so it merges with nothing",
        ),
        (
            r#"%0 = sass.MOV_0x802 guard(%PT) 0x100000002, 0xf regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)"#,
            "no form of MOV fits the text from `0x100000002 ,",
        ),
        (
            r#"sass.LDG_0x981.E.64 guard(%PT) [%r, %s<"64"> + 0x0] regs("R8") sched("B------:R-:W0:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg, !sass.reg)"#,
            "no form of LDG",
        ),
    ] {
        let error = ir::parse_module(&function(instruction)).expect_err(instruction);
        assert!(error.message.contains(message), "{instruction}\n{error}");
        assert_eq!(error.line, 12, "{error}");
    }
}
