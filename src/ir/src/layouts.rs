//! The layouts of a target, each made once, found by form and selector bits.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use isa::{FormId, Inst, Isa, Pattern, Target, Word};

use crate::describe::describe;
use crate::kernel::NONE;
use crate::layout::Layout;

/// Form and selector bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    form: u16,
    bits: u128,
}

impl Hash for Key {
    /// Mixes the few words of a key; not for hostile keys in large numbers, which only get slow in their own kernel.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(mix(self.bits ^ u128::from(self.form)));
    }
}

/// A number whose high bits depend on all bits, and its low bits on these.
#[inline]
fn mix(bits: u128) -> u64 {
    let low = (bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = ((bits >> 64) as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = low ^ high;
    mixed ^ mixed >> 32
}

/// A key is its own hash.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }

    fn write_u64(&mut self, v: u64) {
        self.0 = v;
    }
}

type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// All layouts of a target that any kernel needed so far, up to a limit.
struct Shared {
    /// By form: the bits that select text and accesses.
    key_masks: Vec<u128>,
    layouts: RwLock<KeyMap<Option<Arc<Layout>>>>,
    /// What kernels before have looked up, for the next ones: as many as were read or lifted at the same time.
    caches: Mutex<Vec<Cache>>,
}

/// More distinct layouts than any real corpus has; beyond it, kernels keep their own.
const SHARED_LIMIT: usize = 1 << 17;

fn shared(isa: &'static Isa, target: Target) -> &'static Shared {
    static ALL: [OnceLock<Shared>; Target::ALL.len()] = [const { OnceLock::new() }; Target::ALL.len()];
    ALL[target as usize].get_or_init(|| Shared {
        key_masks: isa.forms().map(|f| f.selector_mask()).collect(),
        layouts: RwLock::default(),
        caches: Mutex::default(),
    })
}

/// The part of the shared layouts that one thread has at hand, without locks.
#[derive(Default)]
struct Cache {
    known: Vec<Known>,
    /// Positions in `known`.
    by_key: KeyMap<u32>,
    recent: Recent,
    /// Counts kernels.
    kernel: u64,
}

struct Known {
    layout: Option<Arc<Layout>>,
    /// The kernel that `at` belongs to.
    kernel: u64,
    at: u32,
}

/// A cache that grew beyond this is dropped, not kept for the next kernel.
const CACHE_LIMIT: usize = 1 << 14;

/// Which layouts words have that look like words seen before: a hash table without collisions, where the last one has the place. All
/// of what a kernel uses is close together.
struct Recent {
    /// By bits 11:0 of the word: position in `masks`.
    opcodes: Box<[u16; 1 << 12]>,
    /// The bits that tell apart the patterns with an opcode. The first mask is that of all other opcodes.
    masks: Vec<u128>,
    /// By hash of the masked word: position in `links`.
    places: Box<[u16; Recent::PLACES]>,
    /// A pattern, and the position in `known` of the layout that its words have.
    links: Vec<(Pattern, u32)>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            opcodes: Box::new([0; 1 << 12]),
            masks: vec![0],
            places: Box::new([u16::MAX; Recent::PLACES]),
            links: Vec::new(),
        }
    }
}

impl Recent {
    /// Many more than the patterns that usual kernels have together, so that few of them want the same place.
    const PLACES: usize = 1 << 13;

    #[inline]
    fn place(&self, word: Word) -> usize {
        let key = word.0 & self.masks[usize::from(self.opcodes[word.0 as usize & 0xfff])];
        (mix(key) >> (64 - Recent::PLACES.ilog2())) as usize
    }

    /// The position in `known`, if the word looks like one that was seen not too long ago.
    #[inline(always)]
    fn get(&self, word: Word) -> Option<u32> {
        let (pattern, known) = self.links.get(usize::from(self.places[self.place(word)]))?;
        pattern.matches(word).then_some(*known)
    }

    fn add(&mut self, word: Word, pattern: Pattern, known: u32) {
        if self.links.len() >= CACHE_LIMIT {
            *self = Recent::default();
        }
        let opcode = &mut self.opcodes[word.0 as usize & 0xfff];
        if *opcode == 0 {
            *opcode = self.masks.len() as u16;
            self.masks.push(0);
        }
        self.masks[usize::from(*opcode)] |= pattern.mask();
        let place = self.place(word);
        self.places[place] = self.links.len() as u16;
        self.links.push((pattern, known));
    }
}

/// The layouts of one kernel.
pub(crate) struct Layouts {
    isa: &'static Isa,
    target: Target,
    shared: &'static Shared,
    cache: Cache,
    pub list: Vec<Arc<Layout>>,
}

impl Layouts {
    pub fn new(isa: &'static Isa, target: Target) -> Layouts {
        Layouts::continued(isa, target, Vec::with_capacity(64))
    }

    /// More layouts for a kernel that has some.
    pub fn continued(isa: &'static Isa, target: Target, list: Vec<Arc<Layout>>) -> Layouts {
        let shared = shared(isa, target);
        let mut cache = shared.caches().pop().unwrap_or_default();
        cache.kernel += 1;
        Layouts {
            isa,
            target,
            shared,
            cache,
            list,
        }
    }

    /// The list, without the means to add to it: those are kept for the next kernel.
    pub fn into_list(self) -> Vec<Arc<Layout>> {
        if self.cache.known.len() <= CACHE_LIMIT {
            self.shared.caches().push(self.cache);
        }
        self.list
    }

    /// The position of the word's layout in `list`; [`NONE`] for an opaque word.
    #[inline]
    pub fn get(&mut self, word: Word) -> u32 {
        match self.cache.recent.get(word) {
            Some(known) => self.listed(known),
            None => self.search(word).map_or(NONE, |known| self.listed(known)),
        }
    }

    /// The position in `known`, for a word that does not look like one before. `None` for an opaque word.
    #[cold]
    fn search(&mut self, word: Word) -> Option<u32> {
        let inst = self.isa.decode(word);
        let pattern = self.isa.pattern(inst)?;
        let key = self.shared.key(inst);
        let next = self.cache.known.len() as u32;
        let known = *self.cache.by_key.entry(key).or_insert(next);
        if known == next {
            self.cache.known.push(Known {
                layout: self.shared.get(self.isa, self.target, key, inst),
                kernel: 0,
                at: NONE,
            });
        }
        self.cache.recent.add(word, pattern, known);
        Some(known)
    }

    /// The position in `list` of a layout, which is put there if it was not used in this kernel before.
    #[inline(always)]
    fn listed(&mut self, known: u32) -> u32 {
        let known = &mut self.cache.known[known as usize];
        if known.kernel != self.cache.kernel {
            known.kernel = self.cache.kernel;
            // Words that layouts cannot describe are treated as opaque.
            known.at = known.layout.as_ref().map_or(NONE, |layout| {
                self.list.push(layout.clone());
                self.list.len() as u32 - 1
            });
        }
        known.at
    }
}

impl Shared {
    fn caches(&self) -> MutexGuard<'_, Vec<Cache>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, isa: &'static Isa, target: Target, key: Key, inst: Inst) -> Option<Arc<Layout>> {
        if let Some(layout) = self.layouts.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return layout.clone();
        }
        let layout = describe(isa, target, inst).map(Arc::new);
        let mut layouts = self.layouts.write().unwrap_or_else(PoisonError::into_inner);
        if layouts.len() < SHARED_LIMIT {
            return layouts.entry(key).or_insert(layout).clone();
        }
        layout
    }

    #[inline]
    fn key(&self, inst: Inst) -> Key {
        let mask = self.key_masks.get(inst.form.0 as usize).copied().unwrap_or(u128::MAX);
        Key {
            form: inst.form.0,
            bits: inst.word.0 & mask,
        }
    }
}

/// The layouts of a target, one word at a time, for callers without a kernel.
#[derive(Clone, Copy)]
pub struct LayoutCache {
    isa: &'static Isa,
    target: Target,
    shared: &'static Shared,
}

impl LayoutCache {
    /// The layouts of `target`, whose tables `isa` has.
    pub fn new(isa: &'static Isa, target: Target) -> LayoutCache {
        LayoutCache {
            isa,
            target,
            shared: shared(isa, target),
        }
    }

    /// The layout of a word; `None` for an opaque one. Two words of the same form and modifiers share it (up to a number of layouts that no
    /// real code reaches).
    pub fn get(&self, word: Word) -> Option<Arc<Layout>> {
        let inst = self.isa.decode(word);
        if inst.form == FormId::OPAQUE {
            return None;
        }
        self.shared.get(self.isa, self.target, self.shared.key(inst), inst)
    }
}
