//! Context, modules, text, bytecode, pipelines.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use cubin::lines::SourceLine;
use ir::Kernel;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::operation::OperationRefMut;
use melior::ir::{Location, Module as MeliorModule};
use melior::pass::PassManager;
use melior::utility::{parse_pass_pipeline, register_all_passes};
use mlir_sys::{
    MlirOperation, MlirStringRef, mlirBlockGetFirstOperation, mlirBlockGetNextInRegion, mlirDialectHandleInsertDialect,
    mlirEmitError, mlirModuleCreateParse, mlirOperationGetLocation, mlirOperationGetNextInBlock,
    mlirOperationGetRegion, mlirOperationVerify, mlirOperationWriteBytecode, mlirRegionGetFirstBlock,
};

use engine::capi::{self, Arrays, CKernel, NoKernel, PassRun};

use crate::ffi;
use crate::rust_pass::RustPass;

/// What MLIR said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where, as MLIR prints a location: `loc("file":line:column)`.
    pub location: String,
    /// The text.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location.as_str() {
            "loc(unknown)" => f.write_str(&self.message),
            location => write!(f, "{location}: {}", self.message),
        }
    }
}

/// Why something failed in MLIR.
#[derive(Debug, thiserror::Error)]
pub enum MlirError {
    /// An operation failed; what MLIR said is in the message.
    #[error("{what}: {}", join(.diagnostics))]
    Failed {
        /// What was tried.
        what: String,
        /// What MLIR said.
        diagnostics: Vec<Diagnostic>,
    },
    /// The arrays that a module gave are no kernel.
    #[error("{0}")]
    Kernel(String),
    /// The dialect and the engine are of different versions.
    #[error("the sass dialect and the engine are of different versions; build both from the same source")]
    Version,
    /// Another LLVM is loaded than the dialect was built with.
    #[error("the LLVM that is loaded is not the one that sass2mlir was built with; build it again")]
    Llvm,
}

fn join(diagnostics: &[Diagnostic]) -> String {
    match diagnostics {
        [] => "MLIR gave no reason".to_owned(),
        all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

/// A context with the sass dialect and the upstream dialects that passes meet.
pub struct Bridge {
    context: Context,
    said: Arc<Mutex<Vec<Diagnostic>>>,
}

impl Bridge {
    /// Makes a context. `threads`: whether MLIR may run function passes in parallel.
    pub fn new(threads: bool) -> Result<Bridge, MlirError> {
        register()?;
        let registry = DialectRegistry::new();
        // SAFETY: the table is static; the registry is alive.
        unsafe {
            if ffi::sassSetEngine(engine::capi::sassEngineTable()) != 0 {
                return Err(MlirError::Version);
            }
            mlirDialectHandleInsertDialect(ffi::mlirGetDialectHandle__sass__(), registry.to_raw());
        }
        let context = Context::new_with_registry(&registry, threads);
        context.load_all_available_dialects();
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = said.clone();
        context.attach_diagnostic_handler(move |diagnostic| {
            let entry = Diagnostic {
                location: diagnostic.location().to_string(),
                message: diagnostic.to_string(),
            };
            lock(&sink).push(entry);
            true
        });
        Ok(Bridge { context, said })
    }

    /// MLIR's context, for whoever builds ops of other dialects.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What MLIR said since the last call: warnings and remarks of passes that succeeded.
    pub fn take_diagnostics(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut lock(&self.said))
    }

    fn failed(&self, what: impl Into<String>) -> MlirError {
        MlirError::Failed {
            what: what.into(),
            diagnostics: self.take_diagnostics(),
        }
    }

    /// A module with one function for each kernel. Locations are kernel name and byte offset, if wanted.
    pub fn module(&self, kernels: &[Kernel], locations: bool) -> Result<Module<'_>, MlirError> {
        self.make(kernels, locations, None)
    }

    /// [`Bridge::module`] with locations that also say the line of the source, where `line` knows it, by kernel and byte offset.
    pub fn module_with_lines(&self, kernels: &[Kernel], line: LineOf<'_>) -> Result<Module<'_>, MlirError> {
        self.make(kernels, true, Some(line))
    }

    fn make(&self, kernels: &[Kernel], locations: bool, line: Option<LineOf<'_>>) -> Result<Module<'_>, MlirError> {
        self.take_diagnostics();
        let module = MeliorModule::new(Location::unknown(&self.context));
        for (n, kernel) in kernels.iter().enumerate() {
            let arrays = Arrays::new(kernel)
                .ok_or_else(|| MlirError::Kernel(format!("{}: no tables for {}", kernel.name, kernel.target)))?;
            let mut asked = line.map(|line| Asked { line, kernel: n });
            let (line_at, user) = match &mut asked {
                Some(asked) => (Some(line_at as ffi::LineAt), (&raw mut *asked).cast()),
                None => (None, std::ptr::null_mut()),
            };
            // SAFETY: the arrays, and what is asked for lines, live during the call.
            let func =
                unsafe { ffi::sassKernelToFunc(module.to_raw(), &arrays.view(kernel), !locations, line_at, user) };
            if func.ptr.is_null() {
                return Err(self.failed(format!("{}: cannot make a function", kernel.name)));
            }
        }
        Ok(Module { module, bridge: self })
    }

    /// Reads MLIR text or bytecode; everything is verified.
    pub fn parse(&self, source: &[u8]) -> Result<Module<'_>, MlirError> {
        self.take_diagnostics();
        let text = MlirStringRef {
            data: source.as_ptr().cast(),
            length: source.len(),
        };
        // SAFETY: the source lives during the call.
        let module = unsafe { MeliorModule::from_option_raw(mlirModuleCreateParse(self.context.to_raw(), text)) };
        module
            .map(|module| Module { module, bridge: self })
            .ok_or_else(|| self.failed("cannot read the module"))
    }

    /// Calls `body`; what portable passes find in functions meanwhile comes back, by function, in the order in which they ran.
    pub fn listen<T>(&self, body: impl FnOnce() -> T) -> (T, HashMap<String, Vec<PassRun>>) {
        type Heard = Mutex<HashMap<String, Vec<PassRun>>>;
        unsafe extern "C" fn hear(user: *mut c_void, func: MlirStringRef, run: *mut PassRun) {
            // SAFETY: `user` is the map below; the name is alive during the call; the run is ours from here on.
            let (heard, name, run) = unsafe {
                let name = std::slice::from_raw_parts(func.data.cast::<u8>(), func.length);
                (
                    &*user.cast::<Heard>(),
                    String::from_utf8_lossy(name),
                    Box::from_raw(run),
                )
            };
            lock(heard).entry(name.into_owned()).or_default().push(*run);
        }
        let heard = Heard::default();
        // SAFETY: the map outlives the listener, which is taken back below.
        unsafe { ffi::sassOnPassRun(self.context.to_raw(), Some(hear), (&raw const heard).cast_mut().cast()) };
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: nobody listens any more.
        unsafe { ffi::sassOnPassRun(self.context.to_raw(), None, std::ptr::null_mut()) };
        match result {
            Ok(result) => (result, heard.into_inner().unwrap_or_else(|e| e.into_inner())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// What to see of a pipeline while it runs, on the standard error output.
#[derive(Clone, Debug, Default)]
pub struct PipelineOptions {
    /// A table of times.
    pub timing: bool,
    /// The text after every pass that changed it. The context has to be without threads.
    pub print_after_all: bool,
    /// A file for the module and the pipeline when a pass fails or crashes.
    pub reproducer: Option<String>,
}

/// The line of the source, by position of the kernel and byte offset in its code.
pub type LineOf<'l> = &'l dyn Fn(usize, u64) -> Option<SourceLine<'l>>;

struct Asked<'l> {
    line: LineOf<'l>,
    kernel: usize,
}

/// `SassLineAt`
unsafe extern "C" fn line_at(user: *mut c_void, offset: u64, file: *mut MlirStringRef, line: *mut u32) -> bool {
    // SAFETY: `user` is what `make` asks.
    let asked = unsafe { &*user.cast::<Asked<'_>>() };
    let found = catch_unwind(AssertUnwindSafe(|| (asked.line)(asked.kernel, offset)));
    let Ok(Some(found)) = found else { return false };
    // SAFETY: the caller's variables; the name lives as long as what is asked.
    unsafe {
        *file = string_ref(found.file);
        *line = found.line;
    }
    true
}

/// A step of a pipeline over functions.
pub enum Step<'p> {
    /// Passes as MLIR spells them: `sass-ffma-deftz{report=true}`.
    Text(String),
    /// A pass that MLIR's registry does not have.
    Rust(RustPass<'p>),
}

fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef {
        data: text.as_ptr().cast(),
        length: text.len(),
    }
}

/// Adds all passes to MLIR's registry, once.
fn register() -> Result<(), MlirError> {
    static PASSES: std::sync::Once = std::sync::Once::new();
    if !llvm_fits() {
        return Err(MlirError::Llvm);
    }
    PASSES.call_once(|| {
        register_all_passes();
        // SAFETY: adds to a global registry, once.
        unsafe { ffi::sassRegisterPasses() };
    });
    Ok(())
}

/// Whether the LLVM that is loaded is the one whose headers the dialect was built with; patch releases keep the ABI.
fn llvm_fits() -> bool {
    let (mut headers, [mut major, mut minor, mut patch]) = ([0; 3], [0; 3]);
    // SAFETY: both write numbers.
    unsafe {
        ffi::sassLlvmVersion(&mut headers);
        llvm_sys::core::LLVMGetVersion(&mut major, &mut minor, &mut patch);
    }
    headers[..2] == [major, minor]
}

/// Loads a pass plugin (a shared library for this LLVM) so that pipelines and configurations can name its passes.
pub fn load_pass_plugin(path: &str) -> Result<(), MlirError> {
    register()?;
    let mut message = Vec::new();
    // SAFETY: both live during the call.
    match unsafe { ffi::sassLoadPassPlugin(string_ref(path), append_text, (&raw mut message).cast()) } {
        true => Ok(()),
        false => Err(MlirError::Kernel(format!(
            "{path}: {}",
            String::from_utf8_lossy(&message)
        ))),
    }
}

/// Whether MLIR has a pass of that name.
pub fn has_pass(name: &str) -> bool {
    // SAFETY: the name lives during the call.
    register().is_ok() && unsafe { ffi::sassHasPass(string_ref(name)) }
}

/// Whether `passes` (`canonicalize{max-iterations=3}`) names passes over functions, with options that they take. The error is MLIR's.
pub fn check_passes(passes: &str) -> Result<(), String> {
    register().map_err(|e| e.to_string())?;
    let mut message = Vec::new();
    // SAFETY: both live during the call.
    match unsafe { ffi::sassCheckPasses(string_ref(passes), append_text, (&raw mut message).cast()) } {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&message).into_owned()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// A module of the sass dialect.
pub struct Module<'b> {
    module: MeliorModule<'b>,
    bridge: &'b Bridge,
}

impl<'b> Module<'b> {
    /// MLIR's module.
    pub fn as_melior(&self) -> &MeliorModule<'b> {
        &self.module
    }

    fn raw(&self) -> MlirOperation {
        self.module.as_operation().to_raw()
    }

    /// Checks everything that the dialect and MLIR know.
    pub fn verify(&self) -> Result<(), MlirError> {
        self.bridge.take_diagnostics();
        // SAFETY: the operation is alive.
        match unsafe { mlirOperationVerify(self.raw()) } {
            true => Ok(()),
            false => Err(self.bridge.failed("the module does not verify")),
        }
    }

    /// The text of lit/GRAMMAR.md. The module has to verify.
    pub fn to_text(&self) -> String {
        let mut text = Vec::new();
        // SAFETY: everything lives during the call.
        unsafe { ffi::sassPrint(self.module.to_raw(), append_text, (&raw mut text).cast()) };
        String::from_utf8_lossy(&text).into_owned()
    }

    /// MLIR bytecode.
    pub fn to_bytecode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // SAFETY: everything lives during the call.
        unsafe { mlirOperationWriteBytecode(self.raw(), Some(append), (&raw mut bytes).cast()) };
        bytes
    }

    /// Runs a pass pipeline, such as `builtin.module(canonicalize,cse)`.
    pub fn run(&mut self, pipeline: &str) -> Result<(), MlirError> {
        self.run_manager(&PipelineOptions::default(), |manager| {
            parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline).map_err(|e| e.to_string())
        })
        .map_err(|what| self.bridge.failed(format!("pipeline `{pipeline}`: {what}")))
    }

    /// Runs steps over every function as one pipeline, with something to see of it.
    pub fn run_steps(&mut self, steps: Vec<Step<'_>>, options: &PipelineOptions) -> Result<(), MlirError> {
        self.run_manager(options, |manager| {
            let functions = manager.nested_under("sass.func");
            steps.into_iter().try_for_each(|step| match step {
                Step::Text(text) => add_passes(functions.to_raw(), &text),
                Step::Rust(pass) => {
                    functions.add_pass(pass.into_melior());
                    Ok(())
                }
            })
        })
        .map_err(|what| self.bridge.failed(what))
    }

    fn run_manager(
        &mut self,
        options: &PipelineOptions,
        fill: impl FnOnce(&PassManager<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        self.bridge.take_diagnostics();
        let manager = PassManager::new(&self.bridge.context);
        let reproducer = options.reproducer.as_deref().unwrap_or("");
        let c = ffi::PipelineOptions {
            timing: options.timing,
            print_after_all: options.print_after_all,
            reproducer: string_ref(reproducer),
        };
        // SAFETY: everything lives during the call.
        unsafe { ffi::sassSetPipelineOptions(manager.to_raw(), &c) };
        fill(&manager)?;
        manager
            .run(&mut self.module)
            .map_err(|_| "the passes failed".to_owned())
    }

    /// The functions, in order.
    pub fn functions(&self) -> Vec<OperationRefMut<'b, '_>> {
        let raw = self.raw_functions();
        // SAFETY: the operations live as long as the module.
        raw.into_iter()
            .map(|func| unsafe { OperationRefMut::from_raw(func) })
            .collect()
    }

    fn raw_functions(&self) -> Vec<MlirOperation> {
        let mut functions: Vec<MlirOperation> = Vec::new();
        unsafe extern "C" fn each(user: *mut c_void, func: MlirOperation) {
            // SAFETY: `user` is the vector above.
            unsafe { (*user.cast::<Vec<MlirOperation>>()).push(func) };
        }
        // SAFETY: everything lives during the call.
        unsafe { ffi::sassForEachFunc(self.module.to_raw(), each, (&raw mut functions).cast()) };
        functions
    }

    /// The kernels of all functions, in order. Their text has to say what their words say.
    pub fn kernels(&self) -> Result<Vec<Kernel>, MlirError> {
        self.each_kernel(Labels::OfWords)
    }

    /// The same, behind passes.
    pub fn rewritten(&self) -> Result<Vec<Kernel>, MlirError> {
        self.each_kernel(Labels::Anywhere)
    }

    fn each_kernel(&self, labels: Labels) -> Result<Vec<Kernel>, MlirError> {
        self.bridge.take_diagnostics();
        let kernel = |func| match kernel_of(func, labels) {
            Some(result) => result.map_err(MlirError::Kernel),
            None => Err(self.bridge.failed("a function is no kernel")),
        };
        self.raw_functions().into_iter().map(kernel).collect()
    }
}

/// Where the code labels of a function may lead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// Where the words say.
    OfWords,
    /// To any place, for passes move code. The words are written anew.
    Anywhere,
}

/// The kernel of a function; `None` where MLIR has said why it is none.
pub(crate) fn kernel_of(func: MlirOperation, labels: Labels) -> Option<Result<Kernel, String>> {
    type Out = Option<Result<Kernel, NoKernel>>;
    unsafe extern "C" fn out(user: *mut c_void, kernel: *const CKernel) {
        // SAFETY: the arrays live during the call.
        let built = catch_unwind(AssertUnwindSafe(|| unsafe { capi::kernel(&*kernel) }));
        let built = built.unwrap_or_else(|_| Err("internal error while reading a function".into()));
        // SAFETY: `user` is the variable below.
        unsafe { *user.cast::<Out>() = Some(built) };
    }
    let mut result: Out = None;
    // SAFETY: everything lives during the call.
    let ok = unsafe { ffi::sassFuncToKernel(func, out, (&raw mut result).cast()) };
    let agree = |mut kernel: Kernel| {
        match labels {
            Labels::OfWords => kernel.labels_agree()?,
            Labels::Anywhere => kernel.write_words().map_err(|e| NoKernel::Arrays(e.to_string()))?,
        }
        Ok(kernel)
    };
    match result?.and_then(agree) {
        Ok(kernel) => ok.then_some(Ok(kernel)),
        Err(NoKernel::Operation(e)) => {
            let place = operation_at(func, e.op).unwrap_or(func);
            let message = CString::new(e.message.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the operation is alive, the text ends with a NUL.
            unsafe { mlirEmitError(mlirOperationGetLocation(place), message.as_ptr()) };
            None
        }
        Err(why) => Some(Err(why.to_string())),
    }
}

/// The operation of that number, in the order of the text.
fn operation_at(func: MlirOperation, number: u32) -> Option<MlirOperation> {
    let mut left = number;
    // SAFETY: the function is alive, and null is asked for before anything that may be null is used.
    unsafe {
        let mut block = mlirRegionGetFirstBlock(mlirOperationGetRegion(func, 0));
        while !block.ptr.is_null() {
            let mut op = mlirBlockGetFirstOperation(block);
            while !op.ptr.is_null() {
                if left == 0 {
                    return Some(op);
                }
                left -= 1;
                op = mlirOperationGetNextInBlock(op);
            }
            block = mlirBlockGetNextInRegion(block);
        }
    }
    None
}

/// Appends passes, as MLIR spells them, to a pass manager.
fn add_passes(manager: mlir_sys::MlirOpPassManager, text: &str) -> Result<(), String> {
    let mut message: Vec<u8> = Vec::new();
    // SAFETY: everything lives during the call.
    let result = unsafe {
        mlir_sys::mlirOpPassManagerAddPipeline(manager, string_ref(text), Some(append), (&raw mut message).cast())
    };
    match result.value {
        0 => Err(format!("passes `{text}`: {}", String::from_utf8_lossy(&message))),
        _ => Ok(()),
    }
}

unsafe extern "C" fn append_text(user: *mut c_void, data: *const c_char, size: usize) {
    // SAFETY: `user` is a vector of bytes, the text is alive during the call.
    unsafe { (*user.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(data.cast(), size)) };
}

unsafe extern "C" fn append(text: MlirStringRef, user: *mut c_void) {
    // SAFETY: `user` is a vector of bytes, the text is alive during the call.
    unsafe { (*user.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(text.data.cast(), text.length)) };
}
