//! `pass.toml`: which passes run on which kernels, and whether they rewrite or only report.
//!
//! ```toml
//! [[pass]]
//! name = "ffma-deftz"
//! sm = ["sm_87"]             # default: every target
//! fn = ["*mul_mat*"]         # globs on the kernel's name; default: every kernel
//! mode = "report"            # or "apply"; there is no default
//!
//! [[pass]]
//! name = "retarget-param"
//! fn = "scale"
//! mode = "apply"
//! from = 0x210               # the pass's own options
//! to = 0x2e8
//! ```
//!
//! Every mistake is found before any kernel is read, and says file, line, column and what would be right.

use std::fmt;
use std::ops::Range;

use globset::{Glob, GlobMatcher};
use isa::Target;
use passes::{OptionSpec, OptionValue, Options, Pass, Registry};
use toml::de::{DeTable, DeValue};

type Spanned<T> = toml::Spanned<T>;

/// What an entry does where it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Rewrite.
    Apply,
    /// Count the sites, change nothing.
    Report,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Apply => "apply",
            Mode::Report => "report",
        })
    }
}

/// One `[[pass]]` table.
#[derive(Clone)]
pub struct Entry<'a> {
    /// The pass.
    pub pass: &'a dyn Pass,
    /// Rewrite or report.
    pub mode: Mode,
    /// Targets it is for; empty for every target.
    pub sm: Vec<Target>,
    /// Kernel names it is for; empty for every kernel.
    pub functions: Vec<GlobMatcher>,
    /// The pass's own options.
    pub options: Options,
}

impl Entry<'_> {
    /// True when the entry is for this target.
    pub fn names_target(&self, target: Target) -> bool {
        self.sm.is_empty() || self.sm.contains(&target)
    }

    /// True when the entry is for this kernel of this target.
    pub fn names(&self, target: Target, kernel: &str) -> bool {
        self.names_target(target) && (self.functions.is_empty() || self.functions.iter().any(|g| g.is_match(kernel)))
    }
}

/// A checked configuration: passes in the order they run.
#[derive(Clone)]
pub struct Config<'a> {
    /// The `[[pass]]` tables in file order.
    pub entries: Vec<Entry<'a>>,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file's name as the user gave it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// Every mistake in a configuration, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{e}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Keys of a `[[pass]]` table that belong to the engine, not to the pass.
pub(crate) const ENTRY_KEYS: [&str; 4] = ["name", "sm", "fn", "mode"];
const MODES: [&str; 2] = ["apply", "report"];

impl<'a> Config<'a> {
    /// Reads a configuration. `file` is only for messages.
    pub fn parse(text: &str, file: &str, registry: &Registry<'a>) -> Result<Config<'a>, ConfigErrors> {
        Draft::read(text, file)?.config(registry)
    }
}

/// A configuration that is TOML, and of which nothing else is known yet.
pub struct Draft<'t> {
    text: &'t str,
    file: &'t str,
    root: Spanned<DeTable<'t>>,
}

impl<'t> Draft<'t> {
    /// Reads the TOML. `file` is only for messages.
    pub fn read(text: &'t str, file: &'t str) -> Result<Draft<'t>, ConfigErrors> {
        match DeTable::parse(text) {
            Ok(root) => Ok(Draft { text, file, root }),
            Err(e) => {
                let mut reader = Reader::new(text, file);
                let end = text.len();
                reader.error(e.span().unwrap_or(end..end), e.message().replace('\n', ", "), None);
                Err(ConfigErrors(reader.errors))
            }
        }
    }

    /// The passes that it names, known or not.
    pub fn pass_names(&self) -> impl Iterator<Item = &str> {
        let tables = self.root.get_ref().get("pass").and_then(|p| p.get_ref().as_array());
        tables.into_iter().flat_map(|tables| tables.iter()).filter_map(|table| {
            let name = table.get_ref().as_table()?.get("name")?;
            name.get_ref().as_str()
        })
    }

    /// Looks everything up and checks it.
    pub fn config<'a>(&self, registry: &Registry<'a>) -> Result<Config<'a>, ConfigErrors> {
        let mut reader = Reader::new(self.text, self.file);
        let entries = reader.document(self.root.get_ref(), registry);
        if reader.errors.is_empty() {
            Ok(Config { entries })
        } else {
            reader.errors.sort_by_key(|e| (e.line, e.column));
            Err(ConfigErrors(reader.errors))
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    file: &'t str,
    errors: Vec<ConfigError>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, file: &'t str) -> Reader<'t> {
        Reader {
            text,
            file,
            errors: Vec::new(),
        }
    }

    fn error(&mut self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        self.errors.push(ConfigError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            help,
        });
    }

    fn document<'a>(&mut self, root: &DeTable<'_>, registry: &Registry<'a>) -> Vec<Entry<'a>> {
        let mut entries = Vec::new();
        for (key, value) in root {
            if key.get_ref() != "pass" {
                let help = suggest(key.get_ref(), ["pass"]).or_else(|| Some("a pass is a `[[pass]]` table".to_owned()));
                self.error(key.span(), format!("unknown key `{}`", key.get_ref()), help);
                continue;
            }
            let DeValue::Array(tables) = value.get_ref() else {
                self.error(
                    key.span(),
                    "`pass` is not a list of tables",
                    Some("write `[[pass]]`, twice the brackets".into()),
                );
                continue;
            };
            for table in tables.iter() {
                match table.get_ref() {
                    DeValue::Table(t) => entries.extend(self.entry(t, table.span(), registry)),
                    _ => self.error(
                        table.span(),
                        "an element of `pass` is not a table",
                        Some("write `[[pass]]`".into()),
                    ),
                }
            }
        }
        if entries.is_empty() && self.errors.is_empty() {
            self.error(0..0, "no `[[pass]]` table", Some("name at least one pass".into()));
        }
        entries
    }

    fn entry<'a>(&mut self, table: &DeTable<'_>, span: Range<usize>, registry: &Registry<'a>) -> Option<Entry<'a>> {
        let (mut pass, mut mode, mut sm, mut functions) = (None, None, Vec::new(), Vec::new());
        let (mut named, mut moded) = (false, false);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "name" => {
                    named = true;
                    pass = self.pass_name(value, registry);
                }
                "mode" => {
                    moded = true;
                    mode = self.mode(value);
                }
                "sm" => sm = self.strings(value, "sm", Reader::target),
                "fn" => functions = self.strings(value, "fn", Reader::glob),
                _ => {}
            }
        }
        if !named {
            let names: Vec<_> = registry.iter().map(|p| p.name()).collect();
            self.error(
                span.clone(),
                "this pass has no `name`",
                Some(format!("one of {}", names.join(", "))),
            );
        }
        if !moded {
            let help = "write `mode = \"report\"` to count sites or `mode = \"apply\"` to rewrite; there is no default";
            self.error(span.clone(), "this pass has no `mode`", Some(help.into()));
        }
        let options = self.options(table, span, pass);
        Some(Entry {
            pass: pass?,
            mode: mode?,
            sm,
            functions,
            options,
        })
    }

    fn pass_name<'a>(&mut self, value: &Spanned<DeValue<'_>>, registry: &Registry<'a>) -> Option<&'a dyn Pass> {
        let name = self.string(value, "name")?;
        let found = registry.get(name);
        if found.is_none() {
            let names: Vec<_> = registry.iter().map(|p| p.name()).collect();
            let help = suggest(name, names.iter().copied()).unwrap_or_else(|| {
                let elsewhere = registry
                    .elsewhere
                    .as_ref()
                    .map_or_else(String::new, |note| format!("; {note}"));
                format!("known: {}{elsewhere}", names.join(", "))
            });
            self.error(value.span(), format!("unknown pass `{name}`"), Some(help));
        }
        found
    }

    fn mode(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Mode> {
        match self.string(value, "mode")? {
            "apply" => Some(Mode::Apply),
            "report" => Some(Mode::Report),
            other => {
                let help = suggest(other, MODES).unwrap_or_else(|| "`apply` or `report`".into());
                self.error(value.span(), format!("unknown mode `{other}`"), Some(help));
                None
            }
        }
    }

    fn string<'v>(&mut self, value: &'v Spanned<DeValue<'_>>, key: &str) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(s) => Some(s),
            other => {
                self.error(
                    value.span(),
                    format!("`{key}` is {}, not a string", article(other)),
                    None,
                );
                None
            }
        }
    }

    /// A string or a list of strings, each read by `item`.
    fn strings<T>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        key: &str,
        item: fn(&mut Self, &str, Range<usize>) -> Option<T>,
    ) -> Vec<T> {
        let items = match value.get_ref() {
            DeValue::String(s) => return item(self, s, value.span()).into_iter().collect(),
            DeValue::Array(items) => items,
            other => {
                self.error(
                    value.span(),
                    format!("`{key}` is {}, not a list of strings", article(other)),
                    None,
                );
                return Vec::new();
            }
        };
        if items.is_empty() {
            self.error(
                value.span(),
                format!("`{key}` is empty"),
                Some("leave the key out to mean everything".into()),
            );
        }
        let mut out = Vec::new();
        for v in items.iter() {
            if let Some(s) = self.string(v, key) {
                out.extend(item(self, s, v.span()));
            }
        }
        out
    }

    fn target(&mut self, name: &str, span: Range<usize>) -> Option<Target> {
        match name.parse() {
            Ok(t) => Some(t),
            Err(_) => {
                let names = Target::ALL.map(|t| t.to_string());
                let help = suggest(name, names.iter().map(String::as_str))
                    .unwrap_or_else(|| format!("known: {}", names.join(", ")));
                self.error(span, format!("unknown target `{name}`"), Some(help));
                None
            }
        }
    }

    fn glob(&mut self, pattern: &str, span: Range<usize>) -> Option<GlobMatcher> {
        match Glob::new(pattern) {
            Ok(glob) => Some(glob.compile_matcher()),
            Err(e) => {
                self.error(span, format!("bad glob `{pattern}`"), Some(e.kind().to_string()));
                None
            }
        }
    }

    /// The keys that belong to the pass. Without a pass (its name was wrong) there is nothing to check them against.
    fn options(&mut self, table: &DeTable<'_>, span: Range<usize>, pass: Option<&dyn Pass>) -> Options {
        let mut options = Options::default();
        let Some(pass) = pass else { return options };
        let before = self.errors.len();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if ENTRY_KEYS.contains(&name) {
                continue;
            }
            let spec = pass.options().iter().find(|o| o.name == name);
            // What options a pass of MLIR takes only MLIR knows, which `check` asks.
            if spec.is_none() && pass.is_native() {
                match scalar(value) {
                    Some(v) => options.set(name, v),
                    None => {
                        let message = format!(
                            "`{name}` is {}, not a string, a number, true or false",
                            article(value.get_ref())
                        );
                        self.error(value.span(), message, None);
                    }
                }
                continue;
            }
            let Some(spec) = spec else {
                let known: Vec<_> = pass.options().iter().map(|o| o.name).chain(ENTRY_KEYS).collect();
                let help = suggest(name, known.iter().copied())
                    .unwrap_or_else(|| format!("`{}` takes {}", pass.name(), known.join(", ")));
                self.error(key.span(), format!("unknown key `{name}`"), Some(help));
                continue;
            };
            if let Some(v) = self.option(value, spec) {
                options.set(name, v);
            }
        }
        for spec in pass.options().iter().filter(|o| o.required && !has_key(table, o.name)) {
            let message = format!("pass `{}` needs `{}`", pass.name(), spec.name);
            self.error(span.clone(), message, Some(format!("{}, {}", spec.help, spec.kind)));
        }
        if self.errors.len() == before
            && let Err(e) = pass.check(&options)
        {
            let at = table
                .iter()
                .find(|(k, _)| k.get_ref() == e.option)
                .map_or(span, |(_, v)| v.span());
            self.error(at, e.to_string(), None);
        }
        options
    }

    fn option(&mut self, value: &Spanned<DeValue<'_>>, spec: &OptionSpec) -> Option<OptionValue> {
        let read = scalar(value);
        match read.as_ref().map(|v| v.check(spec.kind)) {
            Some(Ok(())) => read,
            _ => {
                let message = format!("`{}` does not fit: expected {}", spec.name, spec.kind);
                self.error(value.span(), message, Some(spec.help.into()));
                None
            }
        }
    }
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Option<OptionValue> {
    match value.get_ref() {
        DeValue::Boolean(b) => Some(OptionValue::Bool(*b)),
        DeValue::String(s) => Some(OptionValue::Text(s.to_string())),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok().map(OptionValue::Int),
        _ => None,
    }
}

fn has_key(table: &DeTable<'_>, name: &str) -> bool {
    table.iter().any(|(k, _)| k.get_ref() == name)
}

fn article(value: &DeValue<'_>) -> String {
    let t = value.type_str();
    let article = if t.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {t}")
}

/// `did you mean ...`, when a known word is close enough to be a slip.
fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let lower = word.to_lowercase();
    let best = known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .min()?;
    (best.0 <= 2.max(best.1.len() / 3) && best.0 * 2 <= best.1.len()).then(|| format!("did you mean `{}`?", best.1))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
