//! The C API of the dialect (`dialect/include/Sass-c/Sass.h`).

use std::ffi::c_void;

use engine::capi::{CKernel, Engine, PassRun};
use mlir_sys::{MlirContext, MlirDialectHandle, MlirModule, MlirOperation, MlirPassManager, MlirStringRef};

/// `SassPipelineOptions`.
#[repr(C)]
pub struct PipelineOptions {
    pub timing: bool,
    pub print_after_all: bool,
    pub reproducer: MlirStringRef,
}

/// `SassLineAt`.
pub type LineAt = unsafe extern "C" fn(*mut c_void, u64, *mut MlirStringRef, *mut u32) -> bool;

// Behind the types are tails that only Rust sees; C gets their addresses and never their sizes.
#[allow(improper_ctypes)]
unsafe extern "C" {
    pub fn mlirGetDialectHandle__sass__() -> MlirDialectHandle;
    pub fn sassRegisterPasses();
    pub fn sassSetEngine(table: *const Engine) -> i32;
    pub fn sassKernelToFunc(
        module: MlirModule,
        kernel: *const CKernel,
        no_locations: bool,
        line_at: Option<LineAt>,
        user: *mut c_void,
    ) -> MlirOperation;
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
    pub fn sassOnPassRun(
        context: MlirContext,
        listener: Option<unsafe extern "C" fn(*mut c_void, MlirStringRef, *mut PassRun)>,
        user: *mut c_void,
    );
    pub fn sassSetPipelineOptions(manager: MlirPassManager, options: *const PipelineOptions);
    pub fn sassHasPass(name: MlirStringRef) -> bool;
    pub fn sassApplyPassRun(func: MlirOperation, run: *mut PassRun) -> bool;
    pub fn sassCheckPasses(
        passes: MlirStringRef,
        error: unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char, usize),
        user: *mut c_void,
    ) -> bool;
    pub fn sassLlvmVersion(version: *mut [std::ffi::c_uint; 3]);
    pub fn sassLoadPassPlugin(
        path: MlirStringRef,
        error: unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char, usize),
        user: *mut c_void,
    ) -> bool;
}
