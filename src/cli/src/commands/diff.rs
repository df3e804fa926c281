//! `diff`: the instructions of two files side by side.

use std::io::Write;

use anyhow::{Result, bail};
use cubin::{Code, Image};
use isa::Isa;
use serde::Serialize;

use crate::Finding;
use crate::aligned::{Change, Line, Row, align, lines};
use crate::args;
use crate::counterparts::Counterparts;
use crate::input::File;
use crate::labels::Labels;
use crate::output;

/// One kernel, or what stands for it in both files.
#[derive(Serialize)]
struct Kernel {
    target: String,
    name: String,
    /// Instructions, padding aside.
    instructions: (usize, usize),
    changed: usize,
    scheduling: usize,
    added: usize,
    removed: usize,
    /// Those that are not the same, unless all were asked for.
    rows: Vec<Row>,
}

impl Kernel {
    fn is_same(&self) -> bool {
        self.changed + self.scheduling + self.added + self.removed == 0
    }

    fn head(&self) -> String {
        let Kernel { target, name, .. } = self;
        let (before, after) = self.instructions;
        let (changed, scheduling) = (self.changed, self.scheduling);
        let (added, removed) = (self.added, self.removed);
        format!(
            "diff: {target} {name}: {before} -> {after} instructions: {changed} changed, {scheduling} in scheduling, {added} added, {removed} removed"
        )
    }
}

/// Runs the command.
pub fn run(a: &args::Diff, out: &mut dyn Write) -> Result<Finding> {
    let before = File::read(&a.before)?;
    let mut after = a.before.clone();
    after.file.clone_from(&a.after);
    let after = File::read(&after)?;
    output::keep_apart(a.html.as_deref(), [&*a.before.file, &*a.after])?;
    let (opened, opened_after) = (before.open()?, after.open()?);
    let (images, images_after) = (before.images(&opened)?, after.images(&opened_after)?);
    let mut others = Counterparts::new(&images_after, |code| before.wants(code.name));
    let mut kernels = Vec::new();
    before.each_image(&images, |open, codes| {
        let isa = Isa::for_target(open.image.target())?;
        for code in codes {
            let Some((other, other_code)) = others.next(open.image.target(), code.name) else {
                bail!(
                    "{}: no kernel `{}` for {}",
                    after.name(),
                    code.name,
                    open.image.target()
                );
            };
            kernels.push(kernel(isa, &open.image, code, other, other_code));
        }
        Ok(())
    })?;
    others.all_met(&before, &after)?;
    if let Some(path) = &a.html {
        output::write_atomically(path, page(&before.name(), &after.name(), &kernels).as_bytes(), None)?;
    }
    let same = kernels.iter().all(Kernel::is_same);
    for k in kernels.iter_mut().filter(|_| !a.all) {
        k.rows.retain(|row| row.change != Change::Same);
    }
    match a.json {
        true => output::json(out, &kernels)?,
        false => kernels
            .iter()
            .filter(|k| a.all || !k.is_same())
            .try_for_each(|k| write_text(out, k))?,
    }
    if same && !a.json {
        writeln!(out, "diff: the instructions of both files are the same")?;
    }
    Ok(if same { Finding::Good } else { Finding::Difference })
}

fn kernel(isa: &'static Isa, image: &Image<'_>, code: &Code<'_>, other: &Image<'_>, other_code: &Code<'_>) -> Kernel {
    let listed = |image: &Image<'_>, code: &Code<'_>| lines(isa, code.bytes, Labels::new(isa, image).of(code));
    let (before, after) = (listed(image, code), listed(other, other_code));
    let rows = align(&before, &after);
    let count = |change: Change| rows.iter().filter(|r| r.change == change).count();
    Kernel {
        target: image.target().to_string(),
        name: code.name.to_owned(),
        instructions: (before.len(), after.len()),
        changed: count(Change::Changed),
        scheduling: count(Change::Scheduling),
        added: count(Change::Added),
        removed: count(Change::Removed),
        rows,
    }
}

/// Columns that a text takes at most in a listing side by side.
const WIDTH: usize = 60;

fn write_text(out: &mut dyn Write, k: &Kernel) -> Result<()> {
    writeln!(out, "{}", k.head())?;
    for row in &k.rows {
        let mark = match row.change {
            Change::Same => ' ',
            Change::Scheduling => '~',
            Change::Changed => '|',
            Change::Removed => '<',
            Change::Added => '>',
        };
        let side = |line: &Option<Line>| match line {
            Some(line) if row.change == Change::Scheduling => {
                format!("/*{:04x}*/ [{}] {}", line.offset, line.control, line.text)
            }
            Some(line) => format!("/*{:04x}*/ {}", line.offset, line.text),
            None => String::new(),
        };
        let row = format!("{:WIDTH$} {mark} {}", side(&row.before), side(&row.after));
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

/// A page that needs nothing beside itself.
fn page(before: &str, after: &str, kernels: &[Kernel]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0} and {1}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{0} and {1}</h1>\n",
        escaped(before),
        escaped(after)
    );
    for k in kernels {
        let open = if k.is_same() { "" } else { " open" };
        html += &format!("<details{open}>\n<summary>{}</summary>\n<table>\n", escaped(&k.head()));
        for row in &k.rows {
            let class = match row.change {
                Change::Same => "same",
                Change::Scheduling => "scheduling",
                Change::Changed => "changed",
                Change::Removed => "removed",
                Change::Added => "added",
            };
            let side = |line: &Option<Line>| match line {
                Some(l) => format!(
                    "<td>{:04x}</td><td>{}</td><td>{}</td>",
                    l.offset,
                    l.control,
                    escaped(&l.text)
                ),
                None => "<td></td><td></td><td></td>".to_owned(),
            };
            html += &format!("<tr class=\"{class}\">{}{}</tr>\n", side(&row.before), side(&row.after));
        }
        html += "</table>\n</details>\n";
    }
    html + "</body>\n</html>\n"
}

const STYLE: &str = "\
body { font: 14px sans-serif; margin: 1em 2em; color: #222; background: #fff; }
table { font: 12px monospace; border-collapse: collapse; }
td { padding: 0 .8em 0 0; white-space: pre; }
td:nth-child(4) { padding-left: 2em; }
td:nth-child(3n+1), td:nth-child(3n+2) { color: #888; }
summary { font-weight: bold; margin: .8em 0; cursor: pointer; }
.scheduling { background: #eef3ff; }
.changed { background: #fff3cc; }
.removed { background: #ffdddd; }
.added { background: #ddf5dd; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #1b1b1b; }
  .scheduling { background: #1c2740; }
  .changed { background: #4a3d10; }
  .removed { background: #4a1e1e; }
  .added { background: #1c3d1c; }
}
";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
