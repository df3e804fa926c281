//! The C API of the dialect (`dialect/include/Sass-c/Sass.h`).

use std::ffi::c_void;

use engine::capi::CLayout;
use mlir_sys::{MlirDialectHandle, MlirModule, MlirOperation, MlirStringRef};

/// `SassStr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    pub data: *const u8,
    pub size: usize,
}

impl Str {
    pub fn new(text: &str) -> Str {
        Str {
            data: text.as_ptr(),
            size: text.len(),
        }
    }
}

/// `SassWord`: on the little-endian hosts that we build for, a `u128` in memory, but for its alignment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CWord {
    pub lo: u64,
    pub hi: u64,
}

/// `SassKernel`.
#[repr(C)]
pub struct CKernel {
    pub name: Str,
    pub sm: Str,
    pub tail: *const CWord,
    pub tail_count: u32,
    pub op_count: u32,
    pub block_count: u32,
    pub layout_count: u32,
    pub kinds: *const u8,
    pub words: *const CWord,
    pub layout: *const u32,
    pub labels: *const u32,
    pub operand_start: *const u32,
    pub operands: *const u32,
    pub result_start: *const u32,
    pub pins: *const u16,
    pub block_start: *const u32,
    pub arg_start: *const u32,
    pub edge_start: *const u32,
    pub edges: *const CEdge,
    pub edge_args: *const u32,
    pub layouts: *const *const CLayout,
}

/// `SassEdge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CEdge {
    pub to: u32,
    pub args: u32,
}

// `CLayout` has a tail that only Rust sees; C gets its address and never its size.
#[allow(improper_ctypes)]
unsafe extern "C" {
    pub fn mlirGetDialectHandle__sass__() -> MlirDialectHandle;
    pub fn sassRegisterPasses();
    pub fn sassSetEngine(table: *const engine::capi::Engine) -> i32;
    pub fn sassKernelToFunc(module: MlirModule, kernel: *const CKernel, no_locations: bool) -> MlirOperation;
    pub fn sassFuncToKernel(
        func: MlirOperation,
        out: unsafe extern "C" fn(*mut c_void, *const CKernel),
        user: *mut c_void,
    ) -> bool;
    pub fn sassPrint(
        module: MlirModule,
        sink: unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char, usize),
        user: *mut c_void,
    );
    pub fn sassForEachFunc(
        module: MlirModule,
        each: unsafe extern "C" fn(*mut c_void, MlirOperation),
        user: *mut c_void,
    );
    pub fn sassLoadPassPlugin(
        path: MlirStringRef,
        error: unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char, usize),
        user: *mut c_void,
    ) -> bool;
}
