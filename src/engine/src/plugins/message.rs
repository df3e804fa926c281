//! What the program and the process of a library say to each other: JSON, one value a line.
//!
//! The process begins with a [`Hello`]; then an [`Answer`] follows each [`Request`].

use std::collections::BTreeMap;

use passes::{Context, OptionValue, Options, Resources};
use serde::{Deserialize, Serialize};

use super::asked::Asked;

/// The passes of the library, or why it cannot be used.
pub type Hello = Result<Vec<PassInfo>, String>;

/// What a library says of a pass.
#[derive(Debug, Serialize, Deserialize)]
pub struct PassInfo {
    pub name: String,
    pub summary: String,
    pub caution: Option<String>,
    pub options: Vec<OptionInfo>,
}

/// What it says of an option.
#[derive(Debug, Serialize, Deserialize)]
pub struct OptionInfo {
    pub name: String,
    pub help: String,
    pub required: bool,
    pub kind: OptionType,
}

/// Type and range of an option.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OptionType {
    Bool,
    Int { min: i64, max: i64 },
    Text,
    Choice(Vec<String>),
}

/// A pass to run on a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Position in the library.
    pub pass: usize,
    /// The kernel as text, which keeps the numbers of operations and values.
    pub kernel: String,
    /// How many there are of these.
    pub counts: (usize, usize),
    /// As in [`Context`].
    pub params: Option<(u32, u32)>,
    /// As in [`Context`].
    pub pinned: Vec<u64>,
    /// As in [`Resources`], in its order.
    pub resources: (Option<u32>, Option<u32>, u32, Option<Vec<u16>>),
    pub options: BTreeMap<String, Value>,
}

/// A value of an option.
#[derive(Debug, Serialize, Deserialize)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Text(String),
}

/// What a pass made of a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub ended: Ended,
    pub edits: Vec<Asked>,
    pub sites: Option<u32>,
    pub headline: Option<String>,
    /// Operations that stay, with the reason.
    pub skipped: Vec<(u32, String)>,
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ended {
    Done,
    /// The pass does not touch the kernel.
    Refused(String),
    /// It is broken.
    Failed(String),
}

impl Request {
    pub fn new(pass: usize, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Request {
        let options = options.iter().map(|(name, value)| {
            let value = match value {
                OptionValue::Bool(v) => Value::Bool(*v),
                OptionValue::Int(v) => Value::Int(*v),
                OptionValue::Text(v) => Value::Text(v.clone()),
            };
            (name.to_owned(), value)
        });
        let fixed = cx.resources.fixed.as_ref();
        Request {
            pass,
            kernel: ir::print_module(std::slice::from_ref(kernel)),
            counts: counts(kernel),
            params: cx.params,
            pinned: cx.pinned.to_vec(),
            resources: (
                cx.resources.registers,
                cx.resources.threads,
                cx.resources.shared,
                fixed.map(|pins| pins.iter().map(|pin| pin.to_bits()).collect()),
            ),
            options: options.collect(),
        }
    }

    /// The kernel again.
    pub fn kernel(&self) -> Result<ir::Kernel, String> {
        let mut kernels = ir::parse_module(&self.kernel).map_err(|e| e.to_string())?;
        let kernel = kernels.pop().filter(|_| kernels.is_empty());
        let kernel = kernel.filter(|kernel| counts(kernel) == self.counts);
        kernel.ok_or_else(|| "its text is another kernel".to_owned())
    }

    /// What it takes again.
    pub fn resources(&self) -> Resources {
        let (registers, threads, shared, fixed) = &self.resources;
        let pins = |bits: &Vec<u16>| bits.iter().filter_map(|bits| ir::Pin::from_bits(*bits)).collect();
        Resources {
            registers: *registers,
            threads: *threads,
            shared: *shared,
            fixed: fixed.as_ref().map(pins),
        }
    }

    /// The options again.
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        for (name, value) in &self.options {
            let value = match value {
                Value::Bool(v) => OptionValue::Bool(*v),
                Value::Int(v) => OptionValue::Int(*v),
                Value::Text(v) => OptionValue::Text(v.clone()),
            };
            options.set(name, value);
        }
        options
    }
}

fn counts(kernel: &ir::Kernel) -> (usize, usize) {
    (kernel.op_count(), kernel.values().len())
}
