//! The types of `sass_engine.h` and `sass_plugin.h`, for both sides of the border. What each member means is written there.
//!
//! The side that provides the table sees more behind a layout and a pass run than their C types show, hence the parameters `L` and `R`.

#![allow(missing_docs, reason = "the headers say it")]

use std::ffi::{c_char, c_void};

/// `SASS_ENGINE_ABI`.
pub const ENGINE_ABI: u32 = 4;
/// `SASS_PLUGIN_ABI`.
pub const PLUGIN_ABI: u32 = 1;
/// `SASS_FORM_OPAQUE`.
pub const FORM_OPAQUE: u16 = 0xffff;
/// `SASS_NONE`: no operation.
pub const NONE: u32 = u32::MAX;
/// The name of the function of [`GetPlugin`].
pub const GET_PLUGIN: &str = "sassGetPlugin";

/// Kinds of operations, `SASS_OP_*`.
pub mod op {
    pub const INST: u8 = 0;
    pub const OPAQUE: u8 = 1;
    pub const CONSTANT: u8 = 2;
    pub const LIVE_IN: u8 = 3;
    pub const LABEL: u8 = 4;
    pub const ENTRY: u8 = 5;
    pub const FALL: u8 = 6;
    pub const END: u8 = 7;
}

/// Kinds of edits, `SASS_EDIT_*`.
pub mod edit {
    pub const FIELD: u32 = 0;
    pub const MODIFIERS: u32 = 1;
    pub const OPERAND: u32 = 2;
    pub const INSERT: u32 = 3;
    pub const ERASE: u32 = 4;
    pub const REPLACE: u32 = 5;
    pub const MOVE: u32 = 6;
    pub const CONTROL: u32 = 7;
    pub const ARGUMENT: u32 = 8;
    pub const VALUE: u32 = 9;
    pub const PIN: u32 = 10;
}

/// `SASS_VALUE_MADE`: plus n, the n-th value that the edits make.
pub const VALUE_MADE: u32 = 0x8000_0000;

/// Effect bits, `SASS_EFFECT_*`.
pub mod effect {
    pub const READ: u8 = 1;
    pub const WRITE: u8 = 2;
    pub const CONVERGENCE: u8 = 4;
    pub const UNKNOWN: u8 = 16;
}

/// Types of options, `SASS_OPTION_*`.
pub mod option {
    pub const BOOL: u32 = 0;
    pub const INT: u32 = 1;
    pub const TEXT: u32 = 2;
    pub const CHOICE: u32 = 3;
}

/// A borrowed string, `SassStr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    data: *const c_char,
    size: usize,
}

impl Str {
    /// Lives as long as the process.
    pub const fn new(text: &'static str) -> Str {
        Str {
            data: text.as_ptr().cast(),
            size: text.len(),
        }
    }

    /// The caller sees to it that the text lives long enough.
    pub fn lent(text: &str) -> Str {
        Str {
            data: text.as_ptr().cast(),
            size: text.len(),
        }
    }

    /// The text; `None` if it is no UTF-8.
    ///
    /// # Safety
    /// `data` points to `size` bytes that live for `'a`.
    pub unsafe fn get<'a>(self) -> Option<&'a str> {
        // SAFETY: the caller's promise.
        std::str::from_utf8(unsafe { slice(self.data.cast(), self.size) }).ok()
    }
}

/// A slice from a pointer and a count; empty arrays may have any pointer.
///
/// # Safety
/// `data` points to `count` elements that live for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(data, count) },
    }
}

/// An instruction word, `SassWord`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    pub lo: u64,
    pub hi: u64,
}

impl From<Word> for u128 {
    fn from(w: Word) -> u128 {
        u128::from(w.hi) << 64 | u128::from(w.lo)
    }
}

impl From<u128> for Word {
    fn from(bits: u128) -> Word {
        Word {
            lo: bits as u64,
            hi: (bits >> 64) as u64,
        }
    }
}

/// `SassSink`.
pub type Sink = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// `SassLayout`.
#[repr(C)]
pub struct Layout {
    pub form: u16,
    pub reads: u16,
    pub target: u8,
    pub effects: u8,
    pub terminator: u8,
    pub has_guard: u8,
    pub has_label: u8,
    pub is_call: u8,
    pub space: u8,
    pub pipe: u8,
    pub is_uniform: u8,
    pub registers: Word,
    pub semantic: Word,
    pub guard: Word,
    pub unguarded: Word,
    pub mnemonic: Str,
    pub name: Str,
    pub form_name: Str,
    pub types: Str,
}

/// `SassEdge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Edge {
    pub to: u32,
    pub args: u32,
}

/// `SassKernel`.
#[repr(C)]
pub struct Kernel<L = Layout> {
    pub name: Str,
    pub sm: Str,
    pub tail: *const Word,
    pub tail_count: u32,
    pub op_count: u32,
    pub block_count: u32,
    pub layout_count: u32,
    pub kinds: *const u8,
    pub words: *const Word,
    pub layout: *const u32,
    pub labels: *const u32,
    pub operand_start: *const u32,
    pub operands: *const u32,
    pub result_start: *const u32,
    pub pins: *const u16,
    pub block_start: *const u32,
    pub arg_start: *const u32,
    pub edge_start: *const u32,
    pub edges: *const Edge,
    pub edge_args: *const u32,
    pub layouts: *const *const L,
}

/// `SassPassContext`.
#[repr(C)]
pub struct PassContext {
    pub report: u32,
    pub params: [u32; 2],
    pub pinned: *const u64,
    pub pinned_count: u32,
    pub registers: u32,
    pub threads: u32,
    pub shared: u32,
    pub fixed: *const u16,
    pub fixed_count: u32,
}

/// `SassEdit`.
#[repr(C)]
pub struct Edit {
    pub kind: u32,
    pub op: u32,
    pub field: Str,
    pub value: i64,
    pub drop: Str,
    pub add: Str,
    pub operand: u32,
    pub new_value: u32,
    pub word: Word,
    pub operands: *const u32,
    pub operand_count: u32,
}

impl Edit {
    /// An edit of a kind, at an operation, that says no more yet.
    pub const fn new(kind: u32, op: u32) -> Edit {
        Edit {
            kind,
            op,
            field: Str::new(""),
            value: 0,
            drop: Str::new(""),
            add: Str::new(""),
            operand: 0,
            new_value: 0,
            word: Word { lo: 0, hi: 0 },
            operands: std::ptr::null(),
            operand_count: 0,
        }
    }
}

/// Takes the edits of a pass run.
pub type EditFn = unsafe extern "C" fn(*mut c_void, *const Edit);
/// Takes its remarks.
pub type RemarkFn = unsafe extern "C" fn(*mut c_void, u32, Str);
/// `SassEngine::assemble`.
pub type Assemble =
    unsafe extern "C" fn(u32, Str, Str, *const u16, usize, Str, *mut Word, Option<Sink>, *mut c_void) -> i32;
/// `SassEngine::bind`.
pub type Bind<L> =
    unsafe extern "C" fn(&L, *mut Word, *const u16, usize, Option<&i64>, Option<Sink>, *mut c_void) -> i32;

/// `SassEngine`.
#[repr(C)]
pub struct Engine<L = Layout, R = c_void> {
    pub abi: u32,
    pub size: u32,
    pub target_id: unsafe extern "C" fn(Str) -> i32,
    pub target_name: extern "C" fn(u32) -> Str,
    pub layout: extern "C" fn(u32, Word) -> *const L,
    pub opaque: extern "C" fn(u32) -> *const L,
    pub operands: unsafe extern "C" fn(&L, Word, *mut u16, u32) -> u32,
    pub results: unsafe extern "C" fn(&L, Word, *mut u16, u32) -> u32,
    pub skeleton: extern "C" fn(&L, Word, u32, Sink, *mut c_void),
    pub get_field: unsafe extern "C" fn(&L, Word, Str, *mut i64, Option<Sink>, *mut c_void) -> i32,
    pub set_field: unsafe extern "C" fn(&L, *mut Word, Str, i64, Option<Sink>, *mut c_void) -> i32,
    pub edit_modifiers: unsafe extern "C" fn(&L, *mut Word, Str, Str, Option<Sink>, *mut c_void) -> i32,
    pub filler: unsafe extern "C" fn(u32, Str, *mut Word) -> i32,
    pub run_pass: unsafe extern "C" fn(Str, &Kernel<L>, &PassContext, *mut *mut R, Sink, *mut c_void) -> i32,
    pub pass_edits: unsafe extern "C" fn(&R, EditFn, *mut c_void),
    pub pass_remarks: unsafe extern "C" fn(&R, RemarkFn, *mut c_void),
    pub free_pass_run: unsafe extern "C" fn(*mut R),
    pub find_form: unsafe extern "C" fn(u32, Str, Option<Sink>, *mut c_void) -> i32,
    pub form_name: extern "C" fn(u32, u32) -> Str,
    pub set_operand: unsafe extern "C" fn(&L, *mut Word, u32, u16, Option<Sink>, *mut c_void) -> i32,
    pub get_shape: extern "C" fn(&L, Word, u32) -> Str,
    pub set_shape: unsafe extern "C" fn(&L, *mut Word, u32, Str, Option<Sink>, *mut c_void) -> i32,
    pub assemble: Assemble,
    pub bind: Bind<L>,
    pub field_name: extern "C" fn(&L, u32) -> Str,
    pub modifiers: extern "C" fn(&L, Word, Sink, *mut c_void),
    pub text: extern "C" fn(&L, Word, u64, Sink, *mut c_void),
}

/// `SassPluginOption`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PluginOption {
    pub name: Str,
    pub help: Str,
    pub kind: u32,
    pub required: u32,
    pub min: i64,
    pub max: i64,
    pub choices: *const Str,
    pub choice_count: usize,
}

/// `SassPluginPass`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PluginPass {
    pub name: Str,
    pub summary: Str,
    pub caution: Str,
    pub options: *const PluginOption,
    pub option_count: usize,
    pub run: Option<RunFn>,
}

/// `SassPlugin`.
#[repr(C)]
pub struct Plugin {
    pub abi: u32,
    pub engine_abi: u32,
    pub passes: *const PluginPass,
    pub pass_count: usize,
}

/// `SassPluginRun`: the host's own.
#[repr(C)]
pub struct PluginRun {
    _hidden: [u8; 0],
}

/// `SassPluginHost`.
#[repr(C)]
pub struct PluginHost {
    pub abi: u32,
    pub size: u32,
    pub engine: *const Engine,
    pub option_int: unsafe extern "C" fn(*mut PluginRun, Str, *mut i64) -> i32,
    pub option_text: unsafe extern "C" fn(*mut PluginRun, Str, *mut Str) -> i32,
    pub offset: unsafe extern "C" fn(*mut PluginRun, u32) -> u64,
    pub edit: unsafe extern "C" fn(*mut PluginRun, *const Edit, Option<Sink>, *mut c_void) -> i32,
    pub skip: unsafe extern "C" fn(*mut PluginRun, u32, Str),
    pub note: unsafe extern "C" fn(*mut PluginRun, Str),
    pub headline: unsafe extern "C" fn(*mut PluginRun, Str),
    pub sites: unsafe extern "C" fn(*mut PluginRun, u32),
    pub refuse: unsafe extern "C" fn(*mut PluginRun, Str),
}

/// The type of `sassGetPlugin`.
pub type GetPlugin = unsafe extern "C" fn() -> *const Plugin;
/// The type of `SassPluginPass::run`.
pub type RunFn = unsafe extern "C" fn(&PluginHost, *mut PluginRun, &Kernel, &PassContext) -> i32;
