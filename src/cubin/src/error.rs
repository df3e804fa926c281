//! What can be wrong with a file. Every variant names the place and the offset; the caller adds the file's name.

use isa::Target;

/// Why a cubin, fatbin or host file could not be read or rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// The bytes are no ELF file at all.
    #[error("offset 0x0: not an ELF file (no 7f 45 4c 46 at the start); is it a cubin?")]
    NotElf,
    /// Neither a cubin nor anything that could hold one.
    #[error(
        "offset 0x0: neither an ELF file, a fatbin nor an archive; give a cubin, a fatbin, or a program or library"
    )]
    UnknownFile,
    /// An ELF file, but not one for a GPU, or in a layout that no CUDA toolkit writes.
    #[error("ELF header, offset {offset:#x}: {what}")]
    Unsupported {
        /// Byte offset of the field in the file.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// A GPU that the project does not know.
    #[error(
        "ELF header, offset 0x30: this cubin is for sm_{number}{suffix}, which is not among the supported targets (sm_70 to sm_121a)"
    )]
    UnknownTarget {
        /// The number in the flags.
        number: u32,
        /// `a` when the cubin is architecture-specific.
        suffix: &'static str,
    },
    /// Something reaches past the end of what holds it.
    #[error("{place}, offset {offset:#x}: truncated: {need} bytes needed, {have} there")]
    Truncated {
        /// Section or table.
        place: String,
        /// Byte offset in the file (or, inside a decompressed image, in that image).
        offset: u64,
        /// Bytes that the declared size asks for.
        need: u64,
        /// Bytes available.
        have: u64,
    },
    /// A field holds something that cannot be.
    #[error("{place}, offset {offset:#x}: {what}")]
    Malformed {
        /// Section or table.
        place: String,
        /// Byte offset in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Two parts of the file that must be apart share bytes, so that a patch of one would change the other.
    #[error("{place}, offset {offset:#x}: overlaps {other}")]
    Overlap {
        /// The later part.
        place: String,
        /// Its byte offset in the file.
        offset: u64,
        /// The earlier part.
        other: String,
    },
    /// A replacement must have the size of what it replaces.
    #[error("{place}, offset {offset:#x}: a replacement must keep the size: {old} bytes there, {new} given")]
    SizeChanged {
        /// Section or entry.
        place: String,
        /// Byte offset in the file.
        offset: u64,
        /// Bytes there.
        old: u64,
        /// Bytes given.
        new: u64,
    },
    /// Compressed data that does not decompress to what its header says.
    #[error("{place}, offset {offset:#x}: {what}")]
    Compression {
        /// Entry of the fatbin.
        place: String,
        /// Byte offset of the payload in the file.
        offset: u64,
        /// What the decompressor said.
        what: String,
    },
    /// A replaced image does not fit into the slot that it has in its file.
    #[error(
        "{place}, offset {offset:#x}: the new image needs {need} bytes, its slot in this file has {have}; \
         extract the cubin and load it separately, or rebuild the program"
    )]
    DoesNotFit {
        /// Entry of the fatbin.
        place: String,
        /// Byte offset of the slot in the file.
        offset: u64,
        /// Bytes that the smallest encoding of the new image takes.
        need: u64,
        /// Bytes of the slot.
        have: u64,
    },
    /// The file is for another target than the one asked for.
    #[error("ELF header, offset 0x30: this cubin is for {found}, not {asked}")]
    TargetMismatch {
        /// The cubin's target.
        found: Target,
        /// The target asked for.
        asked: Target,
    },
}
