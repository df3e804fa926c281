//! Large and hostile code: an answer or an error, soon, in bounded memory.

mod common;

use std::time::{Duration, Instant};

use common::{ADD_R3_R2_R2, EXIT};
use sass2mlir_ir as ir;

fn sm87() -> &'static isa::Isa {
    isa::Isa::for_target(isa::Target::Sm87).unwrap()
}

/// `@P0 BRA` at instruction `at` to instruction `to`.
fn branch(at: usize, to: usize) -> u128 {
    let inst = sm87().decode(isa::Word(0x000fea00038000000000001000000947));
    let form = sm87().form(inst.form).unwrap();
    let field = form
        .fields()
        .iter()
        .position(|f| f.kind == isa::FieldKind::Rel)
        .unwrap();
    sm87()
        .set_field(inst, field, (to as i64 - at as i64 - 1) * 16)
        .unwrap()
        .word
        .0
}

/// `MOV Rn, 0x1`
fn mov(n: u128) -> u128 {
    common::MOV_R2_1 & !(0xff << 16) | (n % 255) << 16
}

fn whole_way(name: &str, words: &[u128]) {
    let start = Instant::now();
    let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    match ir::lift(sm87(), &ir::Source::new(name, isa::Target::Sm87, &code)) {
        Err(e) => println!("{name}: {e}"),
        Ok(kernel) => {
            let lifted = start.elapsed();
            let text = ir::print_module(&[kernel]);
            let parsed = common::parse(&text);
            let same = ir::lower(&parsed).map(|b| b == code);
            println!("{name}: lifted in {lifted:?}, {} bytes of text, {same:?}", text.len());
            assert_eq!(same, Ok(true));
        }
    }
    // Far above what it takes, for loaded machines and unoptimised builds.
    assert!(
        start.elapsed() < Duration::from_secs(120),
        "{name}: {:?}",
        start.elapsed()
    );
}

#[test]
fn straight_line() {
    let mut words: Vec<u128> = (0..60_000).map(|i| mov(i * 7)).collect();
    words.push(EXIT);
    whole_way("straight line", &words);
}

#[test]
fn branches_everywhere() {
    let n = 6_000;
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    let word = |i: usize| {
        if i.is_multiple_of(2) {
            branch(i, random() % n)
        } else {
            mov(random() as u128 % 60)
        }
    };
    let mut words: Vec<u128> = (0..n).map(word).collect();
    words.push(ADD_R3_R2_R2);
    words.push(EXIT);
    whole_way("random branches", &words);
}

#[test]
fn nested_loops() {
    // do { do { ... } while } while: dominance frontiers of quadratic size.
    let depth = 3_000;
    let mut words: Vec<u128> = (0..depth).map(|i| mov(i as u128 % 50)).collect();
    words.extend((0..depth).map(|i| branch(depth + i, depth - 1 - i)));
    words.push(EXIT);
    whole_way("nested loops", &words);
}

#[test]
fn every_form() {
    let fillers: Vec<u128> = sm87().forms().map(|f| f.filler().0).collect();
    let words: Vec<u128> = (0..20_000).map(|i| fillers[i * 31 % fillers.len()]).collect();
    whole_way("every form", &words);
}
