//! The types here are those of the headers: a C compiler says where it puts each member.

#[path = "../../../tests/common/plugin.rs"]
#[allow(dead_code)]
mod plugin;

use std::fmt::Write;
use std::fs;
use std::mem::offset_of;
use std::process::Command;

use sass2mlir_plugin::abi;

/// What C is to print, and what it must be.
#[derive(Default)]
struct Facts {
    c: String,
    expected: String,
}

impl Facts {
    fn add(&mut self, c: &str, expected: usize) {
        writeln!(self.c, "  printf(\"%s %zu\\n\", \"{c}\", (size_t)({c}));").unwrap();
        writeln!(self.expected, "{c} {expected}").unwrap();
    }
}

/// `hasGuard` for `has_guard`.
fn in_c(member: &str) -> String {
    let mut parts = member.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        name += &part[..1].to_uppercase();
        name += &part[1..];
    }
    name
}

macro_rules! layout {
    ($facts:ident, $c:literal, $rust:ty: $($member:ident)*) => {
        $facts.add(concat!("sizeof(", $c, ")"), size_of::<$rust>());
        $($facts.add(&format!("offsetof({}, {})", $c, in_c(stringify!($member))), offset_of!($rust, $member));)*
    };
}

#[test]
fn types_are_laid_out_as_in_the_headers() {
    let mut facts = Facts::default();
    layout!(facts, "SassStr", abi::Str:);
    layout!(facts, "SassWord", abi::Word: lo hi);
    layout!(facts, "SassLayout", abi::Layout: form reads target effects terminator has_guard has_label is_call space pipe is_uniform
        registers semantic guard unguarded mnemonic name form_name types);
    layout!(facts, "SassEdge", abi::Edge: to args);
    layout!(facts, "SassKernel", abi::Kernel: name sm tail tail_count op_count block_count layout_count kinds words layout labels
        operand_start operands result_start pins block_start arg_start edge_start edges edge_args layouts);
    layout!(facts, "SassPassContext", abi::PassContext: report params pinned pinned_count);
    layout!(facts, "SassEdit", abi::Edit: kind op field value drop add operand new_value word operands operand_count);
    layout!(facts, "SassEngine", abi::Engine: abi size target_id target_name layout opaque operands results skeleton get_field set_field
        edit_modifiers filler run_pass pass_edits pass_remarks free_pass_run find_form form_name set_operand get_shape set_shape
        assemble bind field_name modifiers text);
    layout!(facts, "SassPluginOption", abi::PluginOption: name help kind required min max choices choice_count);
    layout!(facts, "SassPluginPass", abi::PluginPass: name summary caution options option_count run);
    layout!(facts, "SassPlugin", abi::Plugin: abi engine_abi passes pass_count);
    layout!(facts, "SassPluginHost", abi::PluginHost: abi size engine option_int option_text offset edit skip note headline sites refuse);
    for (c, value) in [
        ("SASS_ENGINE_ABI", abi::ENGINE_ABI),
        ("SASS_PLUGIN_ABI", abi::PLUGIN_ABI),
        ("SASS_FORM_OPAQUE", abi::FORM_OPAQUE.into()),
        ("SASS_NONE", abi::NONE),
        ("SASS_OP_INST", abi::op::INST.into()),
        ("SASS_OP_OPAQUE", abi::op::OPAQUE.into()),
        ("SASS_OP_CONSTANT", abi::op::CONSTANT.into()),
        ("SASS_OP_LIVE_IN", abi::op::LIVE_IN.into()),
        ("SASS_OP_LABEL", abi::op::LABEL.into()),
        ("SASS_OP_ENTRY", abi::op::ENTRY.into()),
        ("SASS_OP_FALL", abi::op::FALL.into()),
        ("SASS_OP_END", abi::op::END.into()),
        ("SASS_EDIT_FIELD", abi::edit::FIELD),
        ("SASS_EDIT_MODIFIERS", abi::edit::MODIFIERS),
        ("SASS_EDIT_OPERAND", abi::edit::OPERAND),
        ("SASS_EDIT_INSERT", abi::edit::INSERT),
        ("SASS_EDIT_ERASE", abi::edit::ERASE),
        ("SASS_EDIT_REPLACE", abi::edit::REPLACE),
        ("SASS_EDIT_MOVE", abi::edit::MOVE),
        ("SASS_EDIT_CONTROL", abi::edit::CONTROL),
        ("SASS_EDIT_ARGUMENT", abi::edit::ARGUMENT),
        ("SASS_EDIT_VALUE", abi::edit::VALUE),
        ("SASS_EDIT_PIN", abi::edit::PIN),
        ("SASS_VALUE_MADE", abi::VALUE_MADE),
        ("SASS_EFFECT_READ", abi::effect::READ.into()),
        ("SASS_EFFECT_WRITE", abi::effect::WRITE.into()),
        ("SASS_EFFECT_CONVERGENCE", abi::effect::CONVERGENCE.into()),
        ("SASS_EFFECT_UNKNOWN", abi::effect::UNKNOWN.into()),
        ("SASS_OPTION_BOOL", abi::option::BOOL),
        ("SASS_OPTION_INT", abi::option::INT),
        ("SASS_OPTION_TEXT", abi::option::TEXT),
        ("SASS_OPTION_CHOICE", abi::option::CHOICE),
        ("SASS_DONE", 0),
        ("SASS_REFUSED", 1),
    ] {
        facts.add(c, value as usize);
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("facts.c"), dir.path().join("facts"));
    let head = "#include <stdio.h>\n#include \"sass_plugin.h\"\n";
    fs::write(&source, format!("{head}int main(void) {{\n{}}}\n", facts.c)).unwrap();
    plugin::done(plugin::compiler(&source).arg("-o").arg(&program));
    let said = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), facts.expected);
}
