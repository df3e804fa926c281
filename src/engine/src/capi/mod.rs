//! The C side of the engine: the table of functions of `include/sass_engine.h`, through which the MLIR dialect asks about instructions.
//!
//! Every function is thread-safe, catches panics at the border, and reports errors as status and text.

mod kernel;
mod make;
mod passes;
mod text;

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, RwLock};

use ir::{Flow, Layout, LayoutCache, Pin};

use plugin::abi::{self, Sink, Str, Word as CWord, effect};

use isa::{Effects, FormId, Inst, Isa, RegFile, Space, Target, Terminator, Word};

pub use kernel::{Arrays, NoKernel, kernel};
pub use passes::PassRun;

/// `SassKernel`.
pub type CKernel = abi::Kernel<CLayout>;
/// `SassEngine`.
pub type Engine = abi::Engine<CLayout, PassRun>;

/// `SassLayout`, with what only this side sees behind it.
#[repr(C)]
pub struct CLayout {
    shown: abi::Layout,
    isa: &'static Isa,
    /// `None` for opaque words.
    layout: Option<Arc<Layout>>,
}

impl Deref for CLayout {
    type Target = abi::Layout;

    fn deref(&self) -> &abi::Layout {
        &self.shown
    }
}

// SAFETY: the pointers are to static text.
unsafe impl Send for CLayout {}
// SAFETY: it never changes.
unsafe impl Sync for CLayout {}

fn effects(isa: &Isa, inst: Inst) -> u8 {
    let semantics = isa.semantics(inst);
    if !semantics.known {
        return effect::UNKNOWN;
    }
    let has = |e| semantics.effects.has(e);
    let mut bits = 0;
    if has(Effects::READ) {
        bits |= effect::READ;
    }
    if has(Effects::WRITE) {
        bits |= effect::WRITE;
    }
    // Ordering and waiting is modelled as touching all memory and staying in place.
    if has(Effects::ATOMIC.union(Effects::FENCE).union(Effects::BARRIER)) {
        bits |= effect::READ | effect::WRITE;
    }
    if semantics.convergence
        || has(Effects::FENCE
            .union(Effects::BARRIER)
            .union(Effects::CONTROL)
            .union(Effects::STATE))
    {
        bits |= effect::CONVERGENCE;
    }
    bits
}

fn terminator(kind: Terminator) -> u8 {
    match kind {
        Terminator::None => 0,
        Terminator::Branch => 1,
        Terminator::BranchIndirect => 2,
        Terminator::Exit => 3,
        Terminator::Return => 4,
        Terminator::Call => 5,
        Terminator::Kill => 6,
        Terminator::Trap => 7,
    }
}

fn space(kind: Space) -> u8 {
    match kind {
        Space::None => 0,
        Space::Generic => 1,
        Space::Global => 2,
        Space::Shared => 3,
        Space::Local => 4,
        Space::Constant => 5,
        Space::Texture => 6,
        Space::Surface => 7,
        Space::Attribute => 8,
        Space::Tensor => 9,
    }
}

/// Whether an instruction writes what a warp has once.
fn writes_uniform(layout: &Layout) -> bool {
    let once = |file| matches!(file, RegFile::UR | RegFile::UP | RegFile::B);
    layout.slots.iter().any(|slot| slot.writes() && once(slot.file))
}

fn leak(text: &str) -> Str {
    Str::new(Box::leak(text.to_owned().into_boxed_str()))
}

impl CLayout {
    fn opaque(target: u8, isa: &'static Isa) -> CLayout {
        let shown = abi::Layout {
            form: abi::FORM_OPAQUE,
            reads: 0,
            target,
            effects: effect::UNKNOWN,
            terminator: 0,
            has_guard: 0,
            has_label: 0,
            is_call: 0,
            space: 0,
            pipe: 0,
            is_uniform: 0,
            registers: 0u128.into(),
            semantic: u128::MAX.into(),
            guard: 0u128.into(),
            unguarded: 0u128.into(),
            mnemonic: Str::new(""),
            name: Str::new(""),
            form_name: Str::new(""),
            types: Str::new(""),
        };
        CLayout {
            shown,
            isa,
            layout: None,
        }
    }

    fn new(target: u8, isa: &'static Isa, word: Word, layout: Arc<Layout>) -> CLayout {
        let inst = Inst {
            word,
            form: layout.form,
        };
        let form = isa.form(layout.form);
        let shown = abi::Layout {
            form: layout.form.0,
            reads: layout.read_count() as u16,
            effects: effects(isa, inst),
            terminator: terminator(isa.semantics(inst).terminator),
            space: space(isa.semantics(inst).space),
            pipe: isa.semantics(inst).pipe as u8,
            is_uniform: writes_uniform(&layout).into(),
            has_guard: layout.has_guard().into(),
            has_label: layout.has_label.into(),
            is_call: matches!(layout.flow, Flow::Call | Flow::Return).into(),
            registers: isa.register_mask(inst).into(),
            semantic: isa.semantic_mask(inst).into(),
            guard: layout.guard_bits().0.into(),
            unguarded: layout.guard_bits().1.into(),
            mnemonic: form.as_ref().map_or(Str::new(""), |f| Str::new(f.mnemonic())),
            form_name: form.as_ref().map_or(Str::new(""), |f| Str::new(f.name())),
            name: leak(layout.name.strip_prefix("sass.").unwrap_or(&layout.name)),
            types: leak(&layout.operand_types()),
            ..CLayout::opaque(target, isa).shown
        };
        CLayout {
            shown,
            isa,
            layout: Some(layout),
        }
    }
}

/// What is known of one target: its layouts by the address of the shared `ir` layout, which each keeps alive.
struct Known {
    isa: &'static Isa,
    cache: LayoutCache,
    target: u8,
    opaque: &'static CLayout,
    layouts: RwLock<HashMap<usize, &'static CLayout>>,
}

impl Known {
    fn layout(&self, word: Word) -> &'static CLayout {
        let Some(layout) = self.cache.get(word) else {
            return self.opaque;
        };
        let key = Arc::as_ptr(&layout) as usize;
        if let Some(found) = self.layouts.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return found;
        }
        let mut layouts = self.layouts.write().unwrap_or_else(|e| e.into_inner());
        layouts
            .entry(key)
            .or_insert_with(|| Box::leak(Box::new(CLayout::new(self.target, self.isa, word, layout))))
    }
}

fn known(target: u32) -> Option<&'static Known> {
    static ALL: [OnceLock<Option<Known>>; Target::ALL.len()] = [const { OnceLock::new() }; Target::ALL.len()];
    let make = || {
        let name = Target::ALL[target as usize];
        let isa = Isa::for_target(name).ok()?;
        let opaque = Box::leak(Box::new(CLayout::opaque(target as u8, isa)));
        Some(Known {
            isa,
            cache: LayoutCache::new(isa, name),
            target: target as u8,
            opaque,
            layouts: RwLock::default(),
        })
    };
    ALL.get(target as usize)?.get_or_init(make).as_ref()
}

/// The layout of a word, for callers in Rust that fill kernels for the dialect. `None` when the target's tables are not built in.
pub fn layout_of(target: Target, word: Word) -> Option<*const CLayout> {
    let at = Target::ALL.iter().position(|t| *t == target)?;
    Some(std::ptr::from_ref(known(at as u32)?.layout(word)))
}

impl CLayout {
    /// The layout that it stands for; `None` for opaque words.
    pub fn layout(&self) -> Option<&Arc<Layout>> {
        self.layout.as_ref()
    }
}

/// Runs `body`; a panic becomes `otherwise`.
pub(crate) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Runs `body`; an error or a panic becomes a status and a message.
pub(crate) fn status(error: Option<Sink>, user: *mut c_void, body: impl FnOnce() -> Result<(), String>) -> i32 {
    let message = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(message)) => message,
        Err(_) => "internal error in the sass engine; please report it with the instruction".to_owned(),
    };
    if let Some(error) = error {
        // SAFETY: a function of the header's type.
        unsafe { error(user, message.as_ptr().cast(), message.len()) };
    }
    1
}

unsafe extern "C" fn target_id(name: Str) -> i32 {
    guarded(-1, || {
        // SAFETY: a string of the header's type.
        let target = unsafe { name.get() }.and_then(|n| n.parse::<Target>().ok());
        target
            .and_then(|t| Target::ALL.iter().position(|x| *x == t))
            .map_or(-1, |at| at as i32)
    })
}

extern "C" fn target_name(target: u32) -> Str {
    Target::ALL
        .get(target as usize)
        .map_or(Str::new(""), |t| Str::new(t.name()))
}

extern "C" fn layout(target: u32, word: CWord) -> *const CLayout {
    guarded(std::ptr::null(), || {
        known(target).map_or(std::ptr::null(), |k| std::ptr::from_ref(k.layout(Word(word.into()))))
    })
}

extern "C" fn opaque(target: u32) -> *const CLayout {
    guarded(std::ptr::null(), || {
        known(target).map_or(std::ptr::null(), |k| std::ptr::from_ref(k.opaque))
    })
}

/// A caller's array that takes what fits and counts the rest.
struct PinsOut {
    out: *mut u16,
    cap: u32,
    count: u32,
}

impl PinsOut {
    fn push(&mut self, pin: Pin) {
        if self.count < self.cap {
            // SAFETY: the caller promises room for `cap` pins.
            unsafe { self.out.add(self.count as usize).write(pin.to_bits()) };
        }
        self.count += 1;
    }
}

unsafe extern "C" fn operands(layout: &CLayout, word: CWord, out: *mut u16, cap: u32) -> u32 {
    guarded(0, || {
        let mut pins = PinsOut { out, cap, count: 0 };
        if let Some(l) = &layout.layout {
            l.each_read(Word(word.into()), |pin| pins.push(pin));
            l.each_merge(Word(word.into()), |pin| pins.push(pin));
        }
        pins.count
    })
}

unsafe extern "C" fn results(layout: &CLayout, word: CWord, out: *mut u16, cap: u32) -> u32 {
    guarded(0, || {
        let mut pins = PinsOut { out, cap, count: 0 };
        if let Some(l) = &layout.layout {
            l.each_write(Word(word.into()), |pin| pins.push(pin));
        }
        pins.count
    })
}

fn inst(layout: &CLayout, word: CWord) -> Inst {
    Inst {
        word: Word(word.into()),
        form: FormId(layout.form),
    }
}

/// The instruction and the position of a field.
fn field(layout: &CLayout, word: CWord, name: Str) -> Result<(Inst, usize), String> {
    let inst = inst(layout, word);
    // SAFETY: a string of the header's type.
    let name = unsafe { name.get() }.unwrap_or("?");
    Ok((inst, field_of(layout.isa, inst, name)?))
}

/// The position of a field in an instruction's form.
pub(crate) fn field_of(isa: &Isa, inst: Inst, name: &str) -> Result<usize, String> {
    let form = isa.form(inst.form).ok_or("the word is in no table")?;
    form.field(name).ok_or_else(|| {
        let all: Vec<&str> = form.fields().iter().map(|f| f.name).collect();
        format!("{} has no field `{name}`; it has {}", form.name(), all.join(", "))
    })
}

unsafe extern "C" fn get_field(
    layout: &CLayout,
    word: CWord,
    name: Str,
    value: *mut i64,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        let (inst, at) = field(layout, word, name)?;
        let form = layout.isa.form(inst.form).ok_or("the word is in no table")?;
        // SAFETY: the caller's variable.
        unsafe { value.write(form.fields()[at].get(inst.word)) };
        Ok(())
    })
}

unsafe extern "C" fn set_field(
    layout: &CLayout,
    word: *mut CWord,
    name: Str,
    value: i64,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        // SAFETY: the caller's variable.
        let (inst, at) = field(layout, unsafe { *word }, name)?;
        let changed = layout.isa.set_field(inst, at, value).map_err(|e| e.to_string())?;
        // SAFETY: the caller's variable.
        unsafe { *word = changed.word.0.into() };
        Ok(())
    })
}

pub(crate) fn tokens(text: &str) -> Vec<&str> {
    text.split('.').filter(|t| !t.is_empty()).collect()
}

unsafe extern "C" fn edit_modifiers(
    layout: &CLayout,
    word: *mut CWord,
    drop: Str,
    add: Str,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        // SAFETY: strings of the header's type.
        let (drop, add) = unsafe { (drop.get().unwrap_or(""), add.get().unwrap_or("")) };
        // SAFETY: the caller's variable.
        let inst = inst(layout, unsafe { *word });
        let changed = layout
            .isa
            .edit_modifiers(inst, &tokens(drop), &tokens(add))
            .map_err(|e| e.to_string())?;
        // SAFETY: the caller's variable.
        unsafe { *word = changed.word.0.into() };
        Ok(())
    })
}

extern "C" fn get_shape(layout: &CLayout, word: CWord, operand: u32) -> Str {
    guarded(Str::new(""), || {
        let inst = inst(layout, word);
        let view = layout.isa.operand(inst, operand as usize);
        view.map_or(Str::new(""), |view| Str::new(view.shape()))
    })
}

unsafe extern "C" fn set_shape(
    layout: &CLayout,
    word: *mut CWord,
    operand: u32,
    shape: Str,
    error: Option<Sink>,
    user: *mut c_void,
) -> i32 {
    status(error, user, || {
        // SAFETY: the caller's variable.
        let inst = inst(layout, unsafe { *word });
        // SAFETY: a string of the header's type.
        let shape = unsafe { shape.get() }.unwrap_or("?");
        let changed = layout
            .isa
            .set_shape(inst, operand as usize, shape)
            .map_err(|e| e.to_string())?;
        // SAFETY: the caller's variable.
        unsafe { *word = changed.word.0.into() };
        Ok(())
    })
}

static TABLE: Engine = Engine {
    abi: abi::ENGINE_ABI,
    size: size_of::<Engine>() as u32,
    target_id,
    target_name,
    layout,
    opaque,
    operands,
    results,
    skeleton: text::skeleton,
    get_field,
    set_field,
    edit_modifiers,
    filler: make::filler,
    run_pass: passes::run_pass,
    pass_edits: passes::pass_edits,
    pass_remarks: passes::pass_remarks,
    free_pass_run: passes::free_pass_run,
    find_form: make::find_form,
    form_name: make::form_name,
    set_operand: make::set_operand,
    get_shape,
    set_shape,
    assemble: make::assemble,
    bind: make::bind,
    field_name: text::field_name,
    modifiers: text::modifiers,
    text: text::text,
};

/// The table of functions that the dialect's `sassSetEngine` takes.
#[unsafe(no_mangle)]
pub extern "C" fn sassEngineTable() -> *const Engine {
    &TABLE
}
