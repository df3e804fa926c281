//! Options of a pass: what it accepts ([`OptionSpec`]) and what the user wrote ([`Options`]).
//!
//! A pass declares its options as data, so that one place (the engine's configuration reader) checks names, types and
//! ranges and can point at the line and column, and so that `--help` texts and plugins need no code of their own.

use std::collections::BTreeMap;
use std::fmt;

/// The type of an option and the values that are legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Bool,
    /// A whole number, both ends included.
    Int {
        /// Smallest legal value.
        min: i64,
        /// Largest legal value.
        max: i64,
    },
    /// Any text.
    Text,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionKind::Bool => f.write_str("true or false"),
            OptionKind::Int { min, max } => write!(f, "a whole number from {min:#x} to {max:#x}"),
            OptionKind::Text => f.write_str("a string"),
            OptionKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// One option that a pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// The key in `pass.toml`.
    pub name: &'static str,
    /// Type and range.
    pub kind: OptionKind,
    /// True when the pass cannot run without it.
    pub required: bool,
    /// One line for people.
    pub help: &'static str,
}

/// A value that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Of [`OptionKind::Bool`].
    Bool(bool),
    /// Of [`OptionKind::Int`].
    Int(i64),
    /// Of [`OptionKind::Text`] and [`OptionKind::Choice`].
    Text(String),
}

impl OptionValue {
    /// Checks the value against a declared kind; the error says what was expected.
    pub fn check(&self, kind: OptionKind) -> Result<(), String> {
        let ok = match (self, kind) {
            (OptionValue::Bool(_), OptionKind::Bool) | (OptionValue::Text(_), OptionKind::Text) => true,
            (OptionValue::Int(v), OptionKind::Int { min, max }) => (min..=max).contains(v),
            (OptionValue::Text(v), OptionKind::Choice(words)) => words.contains(&v.as_str()),
            _ => false,
        };
        if ok { Ok(()) } else { Err(format!("expected {kind}")) }
    }
}

/// The options of one pass entry, by name. Only values that passed [`OptionValue::check`] get in through the
/// configuration, so the getters need not report anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, OptionValue>);

impl Options {
    /// Sets an option.
    pub fn set(&mut self, name: impl Into<String>, value: OptionValue) {
        self.0.insert(name.into(), value);
    }

    /// The same, for building in one expression.
    pub fn with(mut self, name: impl Into<String>, value: OptionValue) -> Options {
        self.set(name, value);
        self
    }

    /// The value as written, if the user gave one.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.0.get(name)
    }

    /// All values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A whole number, if given.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(OptionValue::Int(v)) => Some(*v),
            _ => None,
        }
    }

    /// A truth value, if given.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.0.get(name) {
            Some(OptionValue::Bool(v)) => Some(*v),
            _ => None,
        }
    }

    /// A text, if given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(OptionValue::Text(v)) => Some(v),
            _ => None,
        }
    }
}

/// An option whose value makes no sense for the pass (a check that no type or range can express).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option `{option}`: {message}")]
pub struct OptionError {
    /// The option to point at.
    pub option: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_against_kinds() {
        let int = OptionKind::Int { min: 0, max: 0xffff };
        assert_eq!(OptionValue::Int(0xffff).check(int), Ok(()));
        assert_eq!(
            OptionValue::Int(0x10000).check(int).unwrap_err(),
            "expected a whole number from 0x0 to 0xffff"
        );
        assert!(OptionValue::Bool(true).check(int).is_err());
        let choice = OptionKind::Choice(&["a", "b"]);
        assert_eq!(OptionValue::Text("b".into()).check(choice), Ok(()));
        assert_eq!(
            OptionValue::Text("c".into()).check(choice).unwrap_err(),
            "expected one of a, b"
        );
    }

    #[test]
    fn getters_are_typed() {
        let o = Options::default()
            .with("n", OptionValue::Int(3))
            .with("t", OptionValue::Text("x".into()));
        assert_eq!(
            (o.int("n"), o.bool("n"), o.text("t"), o.int("missing")),
            (Some(3), None, Some("x"), None)
        );
    }
}
