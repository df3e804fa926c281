//! What lifting needs to know about a section of code beside its bytes.

use isa::Target;

use crate::pin::Pin;

/// The code of one `.text.X` section, with what the rest of the file says about it.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The section's name without `.text.`.
    pub name: String,
    /// The target that the code is for.
    pub target: Target,
    /// The section's bytes.
    pub code: &'a [u8],
    /// Byte offsets of the functions in the section (the kernel's own entry too, if the file says where it is).
    pub functions: Vec<u64>,
    /// Those of them whose address nothing but the section's own code can name.
    pub private: Vec<u64>,
    /// Byte offsets that other sections refer to, so that code there is reachable though no branch leads there.
    pub labels: Vec<u64>,
    /// Indirect branches: byte offset of the branch and of each of its targets.
    pub indirect_branches: Vec<(u64, Vec<u64>)>,
    /// Byte offsets of instructions whose code label is filled in by a relocation: their field is not a local target.
    pub relocated: Vec<u64>,
    /// Registers in which something outside of the code looks for a value when it comes to an instruction, by the instruction's byte
    /// offset: the instruction then reads them as well, behind all that it names. Only whoever renames registers needs to say so.
    pub held: Vec<(u64, Pin)>,
}

impl<'a> Source<'a> {
    /// Code about which nothing else is known.
    pub fn new(name: impl Into<String>, target: Target, code: &'a [u8]) -> Source<'a> {
        Source {
            name: name.into(),
            target,
            code,
            functions: Vec::new(),
            private: Vec::new(),
            labels: Vec::new(),
            indirect_branches: Vec::new(),
            relocated: Vec::new(),
            held: Vec::new(),
        }
    }
}

impl<'a> Source<'a> {
    /// A code section of a cubin.
    pub fn from_code(target: Target, code: &cubin::Code<'a>) -> Source<'a> {
        let tables = code.indirect_branches.iter().map(|b| {
            let targets = b.targets.iter().map(|t| u64::from(*t)).collect();
            (u64::from(b.offset), targets)
        });
        Source {
            name: code.name.to_owned(),
            target,
            code: code.bytes,
            functions: code.functions.iter().map(|f| f.offset).collect(),
            private: code
                .functions
                .iter()
                .filter(|f| f.is_private)
                .map(|f| f.offset)
                .collect(),
            labels: code.labels.iter().map(|l| l.offset).collect(),
            indirect_branches: tables.collect(),
            relocated: code.relocations.iter().map(|r| r.offset).collect(),
            held: Vec::new(),
        }
    }
}
