//! The layout of `nvdisasm -c`: directives, labels, and instructions with remarks.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use cubin::code::Function;
use cubin::elf::SymbolSection;
use cubin::nvinfo::{Value, code as attribute};
use cubin::{Code, Image};

use crate::labels::Names;

/// The lines before the first section.
pub fn write_file_head(out: &mut dyn Write, image: &Image<'_>) -> io::Result<()> {
    let (target, abi) = (image.target(), image.abi());
    if abi.version == 7 {
        let n = target.number();
        let specific = if target.is_arch_specific() {
            "EF_CUDA_ACCELERATORS "
        } else {
            ""
        };
        writeln!(
            out,
            "\t.headerflags\t@\"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS {specific}EF_CUDA_SM{n} EF_CUDA_VIRTUAL_SM(EF_CUDA_SM{n})\""
        )?;
    } else {
        writeln!(out, "\t.target\t{target}\n")?;
    }
    let kind = if abi.relocatable { "ET_REL" } else { "ET_EXEC" };
    writeln!(out, "\t.elftype\t@\"{kind}\"")
}

/// The lines before a section's code.
pub fn write_section_head(out: &mut dyn Write, image: &Image<'_>, code: &Code<'_>, names: &Names) -> io::Result<()> {
    let name = format!(".text.{}", code.name);
    writeln!(out, "\n\n//--------------------- {name:<25} --------------------------")?;
    writeln!(out, "\t.section\t{name},\"ax\",@progbits")?;
    if let Some(section) = image.sections().get(code.section) {
        if image.abi().version == 7 && code.barriers > 0 {
            writeln!(out, "\t.sectionflags\t@\"SHF_BARRIERS={}\"", code.barriers)?;
        }
        if section.info >> 24 > 0 {
            writeln!(out, "\t.sectioninfo\t@\"SHI_REGISTERS={}\"", section.info >> 24)?;
        }
        writeln!(out, "\t.align\t{}", section.align)?;
    }
    write_first_names(out, image, code, names)
}

/// The functions and the label at a place.
pub fn write_names(out: &mut dyn Write, code: &Code<'_>, offset: u64, names: &Names) -> io::Result<()> {
    // The last symbol comes first.
    let mut functions: Vec<_> = code.functions.iter().filter(|f| f.offset == offset).collect();
    functions.sort_by_key(|f| Reverse(f.symbol));
    for f in &functions {
        write_function(out, f, names)?;
    }
    match names.get(&offset) {
        Some(name) if functions.is_empty() => writeln!(out, "{name}:"),
        _ => Ok(()),
    }
}

/// The names of the section's beginning: the symbol of the section stands among those of its functions.
fn write_first_names(out: &mut dyn Write, image: &Image<'_>, code: &Code<'_>, names: &Names) -> io::Result<()> {
    let section = SymbolSection::Section(code.section);
    let own = image
        .symbols()
        .iter()
        .find(|s| s.kind == SECTION && s.section == section);
    let own = own.map_or(0, |s| s.index);
    let mut functions: Vec<_> = code.functions.iter().filter(|f| f.offset == 0).collect();
    functions.sort_by_key(|f| Reverse(f.symbol));
    let (after, before): (Vec<_>, Vec<_>) = functions.into_iter().partition(|f| f.symbol < own);
    before.into_iter().try_for_each(|f| write_function(out, f, names))?;
    writeln!(out, ".text.{}:", code.name)?;
    if let Some(name) = names.get(&0).filter(|_| code.functions.iter().all(|f| f.offset != 0)) {
        writeln!(out, "{name}:")?;
    }
    after.into_iter().try_for_each(|f| write_function(out, f, names))
}

/// `st_info` of the symbol of a section.
const SECTION: u8 = 3;

fn write_function(out: &mut dyn Write, f: &Function<'_>, names: &Names) -> io::Result<()> {
    let name = f.name;
    match f.binding {
        1 => writeln!(out, "        .global         {name}")?,
        2 => writeln!(out, "        .weak           {name}")?,
        _ => {}
    }
    writeln!(out, "        .type           {name},@function")?;
    if let Some(end) = names.get(&(f.offset + f.size)) {
        writeln!(out, "        .size           {name},({end} - {name})")?;
    }
    if f.is_entry {
        writeln!(out, "        .other          {name},@\"STO_CUDA_ENTRY STV_DEFAULT\"")?;
    }
    writeln!(out, "{name}:")
}

/// An instruction's line up to its end or a remark.
pub fn instruction(offset: u64, text: &str) -> String {
    // A guard of the lanes stands in the blank space before the mnemonic's column, one of the warp (`@UP0`) does not.
    let (guard, rest) = match text.starts_with("@P") || text.starts_with("@!P") {
        true => text.split_once(' ').unwrap_or((text, "")),
        false => ("", text),
    };
    // A float that is no finite number other than zero is set off by a blank, at the end too.
    let last = rest.rsplit(' ').next().unwrap_or_default();
    let blank = if matches!(last, "+INF" | "-INF" | "+QNAN" | "-QNAN" | "+SNAN" | "-SNAN" | "-0.0") {
        " "
    } else {
        ""
    };
    format!("        /*{offset:04x}*/ {guard:>17} {rest}{blank}")
}

/// The line's end; `issue` is bits 109:105 of the word, and remarks begin in column `column`.
pub fn end(mut line: String, issue: u64, remark: Option<&str>, column: usize) -> String {
    match remark {
        Some(remark) => format!("{line:<column$}(*\"{remark}\"*);"),
        None => {
            line.push_str(if issue == 0 { ";" } else { " ;" });
            line
        }
    }
}

/// Remarks on instructions, by byte offset: what `.nv.info` says of them.
pub fn remarks(code: &Code<'_>, names: &Names) -> HashMap<u64, String> {
    /// The only kind of annotation that was seen.
    const SPILL: u32 = 1;
    let mut out = HashMap::new();
    for a in code.attributes.iter().filter(|a| a.code == attribute::ANNOTATIONS) {
        if let Ok(Value::Annotations(words)) = a.value() {
            let words: Vec<u32> = words.iter().collect();
            for pair in words.chunks_exact(2).filter(|pair| pair[0] == SPILL) {
                out.insert(u64::from(pair[1]), "SpillRefill".to_owned());
            }
        }
    }
    for branch in &code.indirect_branches {
        let mut targets: Vec<&str> = Vec::new();
        for name in branch.targets.iter().filter_map(|&t| names.get(&u64::from(t))) {
            if !targets.contains(&name.as_str()) {
                targets.push(name);
            }
        }
        out.insert(
            u64::from(branch.offset),
            format!("BRANCH_TARGETS {}", targets.join(",")),
        );
    }
    out
}
