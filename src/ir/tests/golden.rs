//! The text, byte for byte. After a change that is meant (of the tables, of the grammar):
//! `UPDATE_GOLDEN=1 cargo test -p sass2mlir-ir --test golden`, then look at the diff.

mod common;

use std::path::Path;

use common::{ADD_R3_R2_R2, EXIT, FFMA, LOOP, MOV_R2_1, MOV_R2_2_IF_P0, NOP};
use sass2mlir_ir as ir;

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("writable");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let first = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = first.unwrap_or(golden.lines().count().min(text.lines().count()));
    assert!(
        golden == text,
        "{name}: line {} differs\n  golden {}\n  now    {}\nIf that is meant: UPDATE_GOLDEN=1 cargo test -p sass2mlir-ir --test golden",
        line + 1,
        golden.lines().nth(line).unwrap_or("(end)"),
        text.lines().nth(line).unwrap_or("(end)"),
    );
}

#[test]
fn words() {
    let bra = 0x000fea00038000000000001000000947;
    let kernels = [
        common::lift_words(&[MOV_R2_1, MOV_R2_2_IF_P0, ADD_R3_R2_R2, FFMA, EXIT, LOOP, NOP, NOP]),
        // A branch over one instruction, a word that no table knows, code that nothing reaches.
        common::lift_words(&[bra, MOV_R2_1, 0, EXIT, MOV_R2_1, EXIT]),
    ];
    check("words.mlir", &ir::print_module(&kernels));
}

#[test]
fn own_kernels() {
    let mut seen = Vec::new();
    let wanted = ["recur_k", "mul_mat_q4_K", "ldst_widths", "f16_ops", "assert_trap"];
    common::each_code(|isa, source| {
        if wanted.contains(&&*source.name) && !seen.contains(&source.name) {
            check(
                &format!("{}.mlir", source.name),
                &ir::print_module(&[ir::lift(isa, &source).unwrap()]),
            );
            seen.push(source.name.clone());
        }
    });
    assert_eq!(seen.len(), wanted.len(), "{seen:?}");
}

/// Control flow of all own kernels; `probe check-flow` compares it with NVIDIA's tool.
#[test]
fn control_flow() {
    let mut text = String::new();
    common::each_code(|isa, source| {
        let kernel = ir::lift(isa, &source).unwrap();
        let mut edges = kernel.instruction_edges();
        edges.sort_unstable();
        text.push_str(&format!(
            "{}, {} instructions:",
            source.name,
            kernel.instruction_count()
        ));
        let ends = (0..kernel.instruction_count() as u64).map(|i| 16 * i);
        for from in ends {
            let to: Vec<String> = edges
                .iter()
                .filter(|e| e.0 == from)
                .map(|e| format!("{:x}", e.1))
                .collect();
            if to != [format!("{:x}", from + 16)] {
                text.push_str(&format!(" {from:x}>{}", to.join("+")));
            }
        }
        text.push('\n');
    });
    check("control_flow.txt", &text);
}

#[test]
fn the_example_of_the_grammar() {
    let grammar = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lit/GRAMMAR.md");
    let grammar = std::fs::read_to_string(grammar).expect("lit/GRAMMAR.md");
    let example = grammar
        .split("```mlir\n")
        .nth(1)
        .and_then(|t| t.split("```").next())
        .expect("an example");
    assert_eq!(ir::print_module(&[common::parse(example)]), example);
}
