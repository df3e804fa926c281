use super::*;

fn parse(text: &str) -> Result<Config<'static>, String> {
    Config::parse(text, "pass.toml", &Registry::default()).map_err(|e| e.to_string())
}

fn error(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e,
    }
}

const GOOD: &str = r#"
[[pass]]
name = "ffma-deftz"
sm = ["sm_87", "SM86"]
fn = ["*mul_mat*", "rope_[a-z]*"]
mode = "report"

[[pass]]
name = "retarget-param"
fn = "scale"
mode = "apply"
from = 0x210
to = 744
"#;

#[test]
fn a_good_file() {
    let c = parse(GOOD).unwrap();
    assert_eq!(c.entries.len(), 2);
    let (a, b) = (&c.entries[0], &c.entries[1]);
    assert_eq!((a.pass.name(), a.mode), ("ffma-deftz", Mode::Report));
    assert!(a.names(Target::Sm87, "_Z9mul_mat_q4_K") && a.names(Target::Sm86, "rope_neox"));
    assert!(!a.names(Target::Sm80, "mul_mat") && !a.names(Target::Sm87, "softmax"));
    assert_eq!((b.pass.name(), b.mode), ("retarget-param", Mode::Apply));
    assert_eq!((b.options.int("from"), b.options.int("to")), (Some(0x210), Some(0x2e8)));
    assert!(b.names(Target::Sm120a, "scale") && !b.names(Target::Sm87, "scale2"));
}

#[test]
fn a_glob_crosses_every_character_of_a_name() {
    let c = parse("[[pass]]\nname = \"ffma-deftz\"\nfn = [\"*mul_mat*\"]\nmode = \"apply\"\n").unwrap();
    assert!(c.entries[0].names(Target::Sm87, "_ZN4a$b/c9mul_matILi1EE.x"));
}

/// One mistake each, with the position and the cure.
#[test]
fn mistakes_point_at_their_place() {
    let cases = [
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmod = \"report\"\nmode = \"report\"\n",
            "3:1: unknown key `mod`; did you mean `mode`?",
        ),
        (
            "[[pass]]\nname = \"ffma-detfz\"\nmode = \"report\"\n",
            "2:8: unknown pass `ffma-detfz`; did you mean `ffma-deftz`?",
        ),
        (
            "[[pass]]\nname = \"x\"\nmode = \"report\"\n",
            "2:8: unknown pass `x`; known: const-bank-fold, copy-prop, dce, ffma-deftz, ldg-vectorize, reg-shrink, reschedule, retarget-param, reuse-flags, scalar-to-uniform, spill-elim, yield-tune",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = \"reprot\"\n",
            "3:8: unknown mode `reprot`; did you mean `report`?",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = true\n",
            "3:8: `mode` is a boolean, not a string",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nsm = [\"sm_87\", \"sm_8\"]\n",
            "4:16: unknown target `sm_8`; did you mean `sm_80`?",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nfn = [\"a[\"]\n",
            "4:7: bad glob `a[`; unclosed character class; missing ']'",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nfn = 3\n",
            "4:6: `fn` is an integer, not a list of strings",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nfn = []\n",
            "4:6: `fn` is empty; leave the key out to mean everything",
        ),
        (
            "[[pass]]\nname = \"ffma-deftz\"\n",
            "1:1: this pass has no `mode`; write `mode = \"report\"` to count sites or `mode = \"apply\"` to rewrite; there is no default",
        ),
        (
            "[[pass]]\nmode = \"report\"\n",
            "1:1: this pass has no `name`; one of const-bank-fold, copy-prop, dce, ffma-deftz, ldg-vectorize, reg-shrink, reschedule, retarget-param, reuse-flags, scalar-to-uniform, spill-elim, yield-tune",
        ),
        (
            "[pass]\nname = \"ffma-deftz\"\n",
            "1:2: `pass` is not a list of tables; write `[[pass]]`, twice the brackets",
        ),
        (
            "[[pas]]\nname = \"ffma-deftz\"\n",
            "1:3: unknown key `pas`; did you mean `pass`?",
        ),
        ("", "1:1: no `[[pass]]` table; name at least one pass"),
        (
            "[[pass]]\nname = \"retarget-param\"\nmode = \"apply\"\nfrom = 0x210\n",
            "1:1: pass `retarget-param` needs `to`; byte offset in c[0x0] to read instead, a whole number from 0x0 to 0xffff",
        ),
        (
            "[[pass]]\nname = \"retarget-param\"\nmode = \"apply\"\nfrom = 0x210\nto = \"0x2e8\"\n",
            "5:6: `to` does not fit: expected a whole number from 0x0 to 0xffff; byte offset in c[0x0] to read instead",
        ),
        (
            "[[pass]]\nname = \"retarget-param\"\nmode = \"apply\"\nfrom = 0x210\nto = 0x210\n",
            "5:6: option `to`: the same as `from`, so nothing would move",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(error(text), format!("pass.toml:{want}"), "for\n{text}");
    }
}

#[test]
fn syntax_errors_have_a_position() {
    let e = error("[[pass]]\nname = \"ffma-deftz\nmode = \"report\"\n");
    assert!(e.starts_with("pass.toml:2:"), "{e}");
    let e = error("[[pass]]\nname = \"ffma-deftz\"\nname = \"ffma-deftz\"\n");
    assert!(e.starts_with("pass.toml:3:1: duplicate key"), "{e}");
}

#[test]
fn every_mistake_is_listed_in_order() {
    let e =
        error("[[pass]]\nmode = \"x\"\nname = \"y\"\n\n[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nto = 1\n");
    let lines: Vec<_> = e.lines().map(|l| l.split(": ").next().unwrap()).collect();
    assert_eq!(lines, ["pass.toml:2:8", "pass.toml:3:8", "pass.toml:8:1"]);
}

#[test]
fn columns_count_characters() {
    let e = error("[[pass]]\nname = \"ffma-deftz\"\nmode = \"report\"\nfn = [\"µµ\", \"a[\"]\n");
    assert!(e.starts_with("pass.toml:4:13: bad glob"), "{e}");
}
