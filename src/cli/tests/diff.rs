//! `diff` as a user runs it.

mod common;

use std::fs;

use common::{bad, entry, folder, mul_mat, ok, run, s};

#[test]
fn what_a_pass_changed_stands_side_by_side() {
    let (dir, config) = folder(&entry("ffma-deftz", "apply", "fn = [\"*q4_K*\"]"));
    let (out, page) = (dir.path().join("out.cubin"), dir.path().join("diff.html"));
    let input = mul_mat();
    ok(&["apply", s(&input), "--config", s(&config), "-o", s(&out)]);
    let r = run(&["diff", s(&input), s(&out), "--html", s(&page)]);
    assert_eq!((r.code, r.err.as_str()), (1, ""));
    let mut lines = r.out.lines();
    let head = lines.next().unwrap();
    assert!(
        head.starts_with("diff: sm_87 mul_mat_q4_K: ")
            && head.ends_with("16 changed, 0 in scheduling, 0 added, 0 removed"),
        "{head}"
    );
    for line in lines.clone() {
        let (a, b) = line.split_once(" | ").expect("two sides");
        assert!(a.contains("FFMA.FTZ"), "{line}");
        assert_eq!(a.trim_end().replace(".FTZ", ""), b);
    }
    assert_eq!(lines.count(), 16);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<tr class=\"changed\">").count(), 16);
    assert!(html.contains("<tr class=\"same\">") && !html.contains("src=") && !html.contains("href="));
    let json = run(&["diff", s(&input), s(&out), "--json"]).json();
    let changed = json
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["name"] == "mul_mat_q4_K")
        .unwrap();
    assert_eq!(
        (&changed["changed"], changed["rows"].as_array().unwrap().len()),
        (&16.into(), 16)
    );
    assert_eq!(changed["rows"][0]["change"], "changed");
}

#[test]
fn code_that_moved_is_the_same_but_for_what_was_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let (out, list) = (dir.path().join("out.cubin"), dir.path().join("list.txt"));
    let input = mul_mat();
    ok(&["nops", s(&input), "--list", s(&list), "-o", s(&out)]);
    let json = run(&["diff", s(&input), s(&out), "--json"]).json();
    let put = fs::read_to_string(&list).unwrap();
    let added: u64 = json
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k["added"].as_u64().unwrap())
        .sum();
    let others = |k: &serde_json::Value| ["removed", "scheduling"].iter().all(|c| k[c] == 0);
    assert!(json.as_array().unwrap().iter().all(others), "{json}");
    assert!(added > 0 && put.matches("0x").count() as u64 >= added, "{added}: {put}");
}

#[test]
fn what_is_the_same_and_what_cannot_be_compared() {
    let input = mul_mat();
    let said = ok(&["diff", s(&input), s(&input)]);
    assert_eq!(said, "diff: the instructions of both files are the same\n");
    let all = ok(&["diff", s(&input), s(&input), "--all", "--kernel", "scale_add"]);
    assert!(
        all.contains("diff: sm_87 scale_add: ") && all.contains("/*0000*/"),
        "{all}"
    );
    bad(&["diff", s(&input), "missing.cubin"], &["missing.cubin"]);
    bad(
        &["diff", s(&input), s(&common::kernels("sm_87/own_features.cubin"))],
        &["no kernel `scale_add` for sm_87"],
    );
    bad(
        &["diff", s(&input), s(&input), "--html", s(&input)],
        &["own_mul_mat.cubin"],
    );
}
