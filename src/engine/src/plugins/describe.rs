//! What a library says of its passes: read from its tables, checked, and as the engine's own passes say it.

use std::collections::BTreeSet;

use passes::{OptionKind, OptionSpec};
use plugin::abi::{self, Str, option, slice};

use super::message::{OptionInfo, OptionType, PassInfo};
use crate::config::ENTRY_KEYS;

/// No library has as many passes, no pass as many options, no option as many choices.
const MAX: usize = 1000;

/// Reads a table.
///
/// # Safety
/// The table is as the header says.
pub unsafe fn read(table: &abi::Plugin) -> Result<Vec<PassInfo>, String> {
    // SAFETY: the caller's promise.
    unsafe { list(table.passes, table.pass_count, "passes")? }
        .iter()
        // SAFETY: the caller's promise.
        .map(|pass| unsafe { read_pass(pass) })
        .collect()
}

unsafe fn read_pass(pass: &abi::PluginPass) -> Result<PassInfo, String> {
    // SAFETY: the caller's promise, here and below.
    let name = unsafe { text(pass.name, "the name of a pass")? };
    let in_pass = |why: String| format!("pass `{}`: {why}", name.escape_debug());
    if pass.run.is_none() {
        return Err(in_pass("it has no function `run`".into()));
    }
    // SAFETY: as above.
    let options = unsafe { list(pass.options, pass.option_count, "options") }.map_err(in_pass)?;
    // SAFETY: as above.
    let options = options.iter().map(|option| unsafe { read_option(option) });
    Ok(PassInfo {
        options: options.collect::<Result<_, _>>().map_err(in_pass)?,
        // SAFETY: as above.
        summary: unsafe { text(pass.summary, "its summary") }.map_err(in_pass)?,
        // SAFETY: as above.
        caution: Some(unsafe { text(pass.caution, "its caution") }.map_err(in_pass)?).filter(|c| !c.is_empty()),
        name,
    })
}

unsafe fn read_option(c: &abi::PluginOption) -> Result<OptionInfo, String> {
    // SAFETY: the caller's promise, here and below.
    let name = unsafe { text(c.name, "the name of an option")? };
    let kind = match c.kind {
        option::BOOL => OptionType::Bool,
        option::INT => OptionType::Int { min: c.min, max: c.max },
        option::TEXT => OptionType::Text,
        option::CHOICE => {
            // SAFETY: as above.
            let words = unsafe { list(c.choices, c.choice_count, "choices")? };
            // SAFETY: as above.
            let words = words.iter().map(|word| unsafe { text(*word, "a choice") });
            OptionType::Choice(words.collect::<Result<_, _>>()?)
        }
        other => return Err(format!("option `{}`: there is no type {other}", name.escape_debug())),
    };
    Ok(OptionInfo {
        // SAFETY: as above.
        help: unsafe { text(c.help, "the help of an option")? },
        required: c.required != 0,
        name,
        kind,
    })
}

unsafe fn text(text: Str, what: &str) -> Result<String, String> {
    // SAFETY: the caller's promise.
    let read = unsafe { text.get() };
    read.map(str::to_owned)
        .ok_or_else(|| format!("{what} is no UTF-8 text"))
}

unsafe fn list<'a, T>(data: *const T, count: usize, what: &str) -> Result<&'a [T], String> {
    match count {
        0 => Ok(&[]),
        1..=MAX if !data.is_null() => {
            // SAFETY: the caller's promise.
            Ok(unsafe { slice(data, count) })
        }
        _ => Err(format!("its table says that there are {count} {what}, at {data:?}")),
    }
}

/// Checks what no type says.
pub fn check(passes: &[PassInfo]) -> Result<(), String> {
    if passes.is_empty() {
        return Err("it has no passes".to_owned());
    }
    for pass in passes {
        if !is_name(&pass.name) {
            return Err(format!(
                "`{}` is no name for a pass: letters, digits, `-` and `_`",
                pass.name.escape_debug()
            ));
        }
        let mut names: BTreeSet<&str> = ENTRY_KEYS.into();
        for option in &pass.options {
            let wrong = match &option.kind {
                _ if !is_name(&option.name) => Some("that is no name: letters, digits, `-` and `_`"),
                _ if !names.insert(&option.name) => Some("the name is taken"),
                OptionType::Int { min, max } if min > max => Some("its range is empty"),
                OptionType::Choice(words) if words.is_empty() => Some("it has no choices"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                let option = option.name.escape_debug();
                return Err(format!("pass `{}`: option `{option}`: {wrong}", pass.name));
            }
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 100 && name.chars().all(legal)
}

/// The option as built-in passes declare theirs. Its words are never freed: there are few, and a library is loaded once.
pub fn spec(info: OptionInfo) -> OptionSpec {
    let leak = |text: String| -> &'static str { text.leak() };
    OptionSpec {
        name: leak(info.name),
        kind: match info.kind {
            OptionType::Bool => OptionKind::Bool,
            OptionType::Int { min, max } => OptionKind::Int { min, max },
            OptionType::Text => OptionKind::Text,
            OptionType::Choice(words) => {
                let words: Vec<&'static str> = words.into_iter().map(leak).collect();
                OptionKind::Choice(words.leak())
            }
        },
        required: info.required,
        help: leak(info.help),
    }
}
