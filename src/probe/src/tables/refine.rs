//! Tries models on random words of theirs, finds which fields make a fault together, and joins those selectors.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::float::FloatKind;
use super::groups::{WIDEST, enumerate, part_text};
use super::known;
use super::lab::{Lab, assign, extract, flip};
use super::legal::{self, Aim, Lesson};
use super::model::{Key, Model, ModifierGroup, Part};
use super::predict::Fault;
use super::splice::splices;
use crate::rules::Cube;
use crate::text::Value;

/// Random words a model and round.
const WORDS: usize = 120;
/// Faults of a model that are looked into in one round.
const FAULTS: usize = 2;
const ROUNDS: usize = 14;
/// Float bits without special values in any format.
const FLOAT_PATTERN: u64 = 0x4059_4060;

/// A field that a random word may set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Knob {
    Part(Part),
    Group(usize),
    Number(Vec<u8>),
    /// Scheduling bits.
    Control(Vec<u8>),
    /// A bit that means nothing alone.
    Silent(u8),
}

impl Knob {
    fn bits(&self, model: &Model) -> Vec<u8> {
        match self {
            Knob::Part(p) => model.parts[p].0.clone(),
            Knob::Group(g) => model.groups[*g].bits.clone(),
            Knob::Number(bits) | Knob::Control(bits) => bits.clone(),
            Knob::Silent(bit) => vec![*bit],
        }
    }
}

fn knobs(model: &Model) -> Vec<Knob> {
    let mut out: Vec<Knob> = model.parts.keys().map(|p| Knob::Part(*p)).collect();
    out.extend((0..model.groups.len()).map(Knob::Group));
    out.extend(
        model
            .numbers
            .values()
            .filter(|n| !n.weights.is_empty())
            .map(|n| Knob::Number(n.bits())),
    );
    out.extend(model.floats.values().map(|f| Knob::Number(f.bits().collect())));
    let known = model.known_bits();
    let free = |range: std::ops::Range<u8>| -> Vec<u8> { range.filter(|b| known >> b & 1 == 0).collect() };
    // Stall and flags go together: a stall decides what the flags mean.
    let mut issue = free(105..110);
    issue.extend(free(122..125));
    out.extend([issue, free(110..113), free(113..116), free(116..122)].map(Knob::Control));
    out.extend(free(12..105).into_iter().filter(|&b| b != 91).map(Knob::Silent));
    out
}

/// A random word that the model calls legal.
pub(super) fn random_word(model: &Model, random: &mut fastrand::Rng) -> Option<u128> {
    let full = Cube { mask: 0, value: 0 };
    (0..20)
        .filter_map(|_| random_in(model, full, random))
        .find(|&w| model.rules.allow(w))
}

/// A random word in a cube, with legal values in all selectors; in half of them most fields are those of the base.
fn random_in(model: &Model, cube: Cube, random: &mut fastrand::Rng) -> Option<u128> {
    let pick = |keys: Vec<u64>, random: &mut fastrand::Rng| random.choice(keys);
    let few = random.bool() && cube.mask != 0;
    let mut word = model.base;
    let knobs = knobs(model);
    for knob in &knobs {
        if few && random.u8(0..4) > 0 {
            continue;
        }
        let bits = knob.bits(model);
        let value = match knob {
            Knob::Part(p) => pick(model.parts[p].1.keys().copied().collect(), random),
            Knob::Group(g) => pick(model.groups[*g].table.keys().copied().collect(), random),
            Knob::Number(_) if random.u8(0..6) == 0 => Some(u64::MAX),
            Knob::Number(_) => Some(random.u64(..)),
            Knob::Control(_) | Knob::Silent(_) => continue,
        };
        word = assign(word, &bits, value?);
    }
    if random.u8(0..8) == 0 {
        let silent: Vec<u8> = knobs
            .iter()
            .filter_map(|k| if let Knob::Silent(bit) = k { Some(*bit) } else { None })
            .collect();
        word = random.choice(silent).map_or(word, |bit| flip(word, bit));
    }
    if random.bool() {
        word = model.schedule.random(word, model.known_bits(), random);
    }
    word = word & !cube.mask | cube.value;
    model.selects(word).then_some(word)
}

/// What is left after refinement, for the report.
#[derive(Debug, Default)]
pub struct Leftover {
    /// A line for each fault that could not be joined away.
    pub lines: Vec<String>,
}

/// Improves the models in place. `known` are words that a compiler made.
pub fn refine(lab: &mut Lab, models: &mut [Model], known: &[u128], log: &dyn Fn(String)) -> Result<Leftover> {
    let mut random = fastrand::Rng::with_seed(11);
    let known = known::of_models(lab, models, known)?;
    log(format!(
        "{} selectors joined for known words",
        known::join(lab, models, &known)?
    ));
    let mut hopeless: BTreeMap<(usize, Fault), String> = BTreeMap::new();
    for round in 0..ROUNDS {
        let faults = faults(lab, models, &known, &mut random, |m, fault| {
            !hopeless.contains_key(&(m, fault))
        })?;
        log(format!("refine round {round}: {} new faults", faults.len()));
        if faults.is_empty() {
            break;
        }
        let (refused, reduced): (Vec<Reduced>, Vec<Reduced>) = reduce(lab, models, faults)?
            .into_iter()
            .partition(|r| r.2 == Fault::Refused);
        let mut learnt = teach_refusals(lab, models, refused, &mut random, &mut hopeless)?;
        learnt += known::teach(lab, models, &known, FAULTS, |m, cube| random_in(m, cube, &mut random))?;
        let asked = reduced
            .iter()
            .flat_map(|(m, word, fault, blame)| questions(&models[*m], *word, *fault, blame));
        lab.ask(asked.collect::<Vec<_>>())?;
        let mut changed = BTreeSet::new();
        for (m, word, fault, blame) in reduced {
            if changed.contains(&m) {
                continue; // its knobs are not what they were; the next round looks again
            }
            if join(lab, &mut models[m], word, fault, &blame)? {
                changed.insert(m);
                continue;
            }
            let raw = lab.raw(word).unwrap_or("refused");
            let line = format!("{fault:?} {word:032x} {raw} blame {blame:?}");
            hopeless.insert((m, fault), line);
        }
        log(format!(
            "refine round {round}: {learnt} learnt of refusals, {} joined, {} hopeless",
            changed.len(),
            hopeless.len()
        ));
    }
    for round in 0..ROUNDS {
        let faults = faults(lab, models, &known, &mut random, |_, _| true)?;
        if faults.is_empty() {
            break;
        }
        log(format!(
            "refine: {} faults left, round {round} of giving up",
            faults.len()
        ));
        let lessons: Vec<Lesson> = reduce(lab, models, faults)?.iter().map(|r| (r.0, r.1)).collect();
        legal::teach(lab, models, Aim::Explained, lessons, |m, cube| {
            random_in(m, cube, &mut random)
        })?;
    }
    let lines = hopeless.into_values().collect();
    Ok(Leftover { lines })
}

/// A few faults of each model on random words and known ones, those that are `wanted`.
fn faults(
    lab: &mut Lab,
    models: &[Model],
    known: &[Vec<u128>],
    random: &mut fastrand::Rng,
    wanted: impl Fn(usize, Fault) -> bool,
) -> Result<Vec<(usize, u128, Fault)>> {
    let words: Vec<Vec<u128>> = models
        .iter()
        .map(|m| (0..WORDS).filter_map(|_| random_word(m, random)).collect())
        .collect();
    lab.ask(words.iter().flatten().copied())?;
    let mut out = Vec::new();
    for (m, (model, words)) in models.iter().zip(&words).enumerate() {
        let known = known[m].iter().filter(|&&w| model.calls_legal(w));
        let wrong = words
            .iter()
            .chain(known)
            .filter_map(|&w| Some((m, w, model.fault(lab, w)?)));
        out.extend(wrong.filter(|f| wanted(m, f.2)).take(FAULTS));
    }
    Ok(out)
}

/// Turns refused words into rules.
fn teach_refusals(
    lab: &mut Lab,
    models: &mut [Model],
    refused: Vec<Reduced>,
    random: &mut fastrand::Rng,
    hopeless: &mut BTreeMap<(usize, Fault), String>,
) -> Result<usize> {
    let lessons: Vec<Lesson> = refused.iter().map(|r| (r.0, r.1)).collect();
    let learnt = legal::teach(lab, models, Aim::Accepted, lessons, |model, cube| {
        random_in(model, cube, random)
    })?;
    for (m, word, fault, blame) in refused {
        if models[m].calls_legal(word) {
            hopeless.insert((m, fault), format!("{fault:?} {word:032x} blame {blame:?}"));
        }
    }
    Ok(learnt)
}

type Reduced = (usize, u128, Fault, Vec<Knob>);

/// Puts the fields of each faulty word back to the base's values where the fault stays without them. What cannot go back is to blame.
fn reduce(lab: &mut Lab, models: &[Model], faults: Vec<(usize, u128, Fault)>) -> Result<Vec<Reduced>> {
    let all: Vec<Vec<Knob>> = faults.iter().map(|f| knobs(&models[f.0])).collect();
    let reset = |m: usize, word: u128, knob: &Knob| {
        let bits = knob.bits(&models[m]);
        let out = assign(word, &bits, extract(models[m].base, &bits));
        (out != word && models[m].calls_legal(out)).then_some(out)
    };
    let stays = |lab: &Lab, m: usize, word: u128, fault: Fault| {
        let found = models[m].fault(lab, word);
        found.filter(|f| std::mem::discriminant(f) == std::mem::discriminant(&fault))
    };
    // Each field alone, then all that can go together; only where that loses the fault, one after the other.
    let alone = faults
        .iter()
        .zip(&all)
        .flat_map(|(f, all)| all.iter().filter_map(|k| reset(f.0, f.1, k)));
    lab.ask(alone.collect::<Vec<_>>())?;
    let mut state: Vec<(Reduced, Vec<Knob>)> = Vec::new();
    for ((m, word, fault), all) in faults.into_iter().zip(all) {
        let movable = all.into_iter().filter_map(|k| Some((reset(m, word, &k)?, k)));
        let (loose, blame): (Vec<_>, Vec<_>) = movable.partition(|(w, _)| stays(lab, m, *w, fault).is_some());
        let knobs = |list: Vec<(u128, Knob)>| list.into_iter().map(|l| l.1).collect::<Vec<_>>();
        state.push(((m, word, fault, knobs(blame)), knobs(loose)));
    }
    let together = |s: &(Reduced, Vec<Knob>)| {
        let start = s.0.1;
        s.1.iter().fold(start, |w, k| {
            let bits = k.bits(&models[s.0.0]);
            assign(w, &bits, extract(models[s.0.0].base, &bits))
        })
    };
    lab.ask(state.iter().map(together).collect::<Vec<_>>())?;
    for s in &mut state {
        let word = together(s);
        if models[s.0.0].calls_legal(word)
            && let Some(fault) = stays(lab, s.0.0, word, s.0.2)
        {
            s.0.1 = word;
            s.0.2 = fault;
            s.1.clear();
        }
    }
    for step in 0..state.iter().map(|s| s.1.len()).max().unwrap_or(0) {
        let tries: Vec<Option<u128>> = state
            .iter()
            .map(|(s, loose)| reset(s.0, s.1, loose.get(step)?))
            .collect();
        lab.ask(tries.iter().flatten().copied())?;
        for ((s, loose), word) in state.iter_mut().zip(tries) {
            let Some(word) = word else { continue };
            match stays(lab, s.0, word, s.2) {
                Some(fault) => (s.1, s.2) = (word, fault),
                None => s.3.push(loose[step].clone()),
            }
        }
    }
    Ok(state.into_iter().map(|s| s.0).collect())
}

/// The words that [`join`] will ask about, so that those of all faults can be asked at once.
fn questions(model: &Model, word: u128, fault: Fault, blame: &[Knob]) -> Vec<u128> {
    let every = |bits: &[u8], around: u128| -> Vec<u128> {
        if bits.len() > WIDEST {
            return vec![];
        }
        (0..1u64 << bits.len()).map(|v| assign(around, bits, v)).collect()
    };
    let mut bits: BTreeSet<u8> = blamed_bits(model, fault, blame);
    if let Fault::Part(part) = fault
        && let Some((own, _)) = model.parts.get(&part)
    {
        bits.extend(own);
    }
    let bits: Vec<u8> = bits.into_iter().collect();
    match fault {
        Fault::Modifiers | Fault::Part(_) => every(&bits, model.base),
        Fault::Number(key) => model.floats.get(&key).map_or(vec![], |float| {
            let pattern = assign(word, &float.bits().collect::<Vec<_>>(), FLOAT_PATTERN);
            every(&bits, pattern)
        }),
        Fault::Refused | Fault::Other => vec![],
    }
}

/// Bits of the selectors to blame, and of short numbers, which can take part as bits.
fn blamed_bits(model: &Model, fault: Fault, blame: &[Knob]) -> BTreeSet<u8> {
    let longest = if matches!(fault, Fault::Part(_)) { 8 } else { 0 };
    let counts = |k: &&Knob| match k {
        Knob::Number(bits) => bits.len() <= longest,
        Knob::Control(_) => false,
        _ => true,
    };
    blame.iter().filter(counts).flat_map(|k| k.bits(model)).collect()
}

/// Joins the selectors that make the fault together. Returns whether anything changed.
fn join(lab: &mut Lab, model: &mut Model, word: u128, fault: Fault, blame: &[Knob]) -> Result<bool> {
    if model.fault(lab, word).is_none() || !model.calls_legal(word) {
        return Ok(true); // an earlier join of this round took care of it
    }
    let selectors: Vec<&Knob> = blame
        .iter()
        .filter(|k| matches!(k, Knob::Part(_) | Knob::Group(_)))
        .collect();
    if let Fault::Number(key) = fault {
        return fix_number(lab, model, word, key, &selectors);
    }
    let bits = blamed_bits(model, fault, blame);
    let is_group = |k: &&&Knob| matches!(k, Knob::Group(_));
    if bits.is_empty() || bits.len() > WIDEST {
        return Ok(false);
    }
    let mut all: Vec<u8> = bits.into_iter().collect();
    all.sort_unstable();
    match fault {
        Fault::Modifiers => {
            let groups: Vec<usize> = selectors
                .iter()
                .filter(is_group)
                .filter_map(|k| if let Knob::Group(g) = k { Some(*g) } else { None })
                .collect();
            if groups.len() == 1 && all.len() == model.groups[groups[0]].bits.len() {
                return Ok(false);
            }
            join_groups(lab, model, all, &groups)
        }
        Fault::Part(part) => {
            if let Some((bits, _)) = model.parts.get(&part) {
                all = bits
                    .iter()
                    .copied()
                    .chain(all)
                    .collect::<BTreeSet<u8>>()
                    .into_iter()
                    .collect();
                if all.len() == bits.len() || all.len() > WIDEST {
                    return Ok(false);
                }
            }
            lab.ask((0..1u64 << all.len()).map(|v| assign(model.base, &all, v)))?;
            let table = enumerate(lab, model, &all, |t| part_text(t, part));
            if table.is_empty() {
                return Ok(false);
            }
            model.parts.insert(part, (all, table));
            Ok(true)
        }
        Fault::Refused | Fault::Number(_) | Fault::Other => Ok(false),
    }
}

/// Makes one group of `groups` and other bits: `bits` are those of all. Returns whether that was possible.
pub(super) fn join_groups(lab: &mut Lab, model: &mut Model, bits: Vec<u8>, groups: &[usize]) -> Result<bool> {
    lab.ask((0..1u64 << bits.len()).map(|v| assign(model.base, &bits, v)))?;
    let lists = enumerate(lab, model, &bits, |t| Some(t.modifiers.clone()));
    if lists.is_empty() {
        return Ok(false);
    }
    let joined = ModifierGroup {
        table: lists
            .into_iter()
            .map(|(v, list)| (v, splices(&model.shown.modifiers, &list)))
            .collect(),
        bits,
        rank: groups.first().map_or(model.groups.len(), |&g| model.groups[g].rank),
    };
    let Some((&keep, gone)) = groups.split_first() else {
        model.groups.push(joined);
        return Ok(true);
    };
    model.groups[keep] = joined;
    let gone: BTreeSet<usize> = gone.iter().copied().collect();
    let mut i = 0;
    model.groups.retain(|_| {
        i += 1;
        !gone.contains(&(i - 1))
    });
    Ok(true)
}

/// A float whose format depends on one selector gets an override for each value of it that prints in another format.
fn fix_number(lab: &mut Lab, model: &mut Model, word: u128, key: Key, selectors: &[&Knob]) -> Result<bool> {
    let Some(mut float) = model.floats.get(&key).cloned() else {
        return Ok(false);
    };
    let [selector] = selectors else { return Ok(false) };
    let Key::Hole(operand, hole, ordinal) = key else {
        return Ok(false);
    };
    let bits = selector.bits(model);
    let pattern = |w: u128| assign(w, &float.bits().collect::<Vec<_>>(), FLOAT_PATTERN);
    let probes: Vec<(u64, u128)> = (0..1u64 << bits.len())
        .map(|v| (v, pattern(assign(word, &bits, v))))
        .collect();
    lab.ask(probes.iter().map(|p| p.1))?;
    let mut changed = false;
    for (value, w) in probes {
        let Some(text) = model.see(lab, w) else { continue };
        let Some(Value::Float(shown)) = text.value(operand, hole, ordinal) else {
            continue;
        };
        if float.prints(w, shown) {
            continue;
        }
        let raw = |k: FloatKind| (w >> float.low) as u64 & ((1 << k.width()) - 1);
        let same_width = FloatKind::ALL.into_iter().filter(|k| k.width() == float.kind.width());
        if let Some(kind) = same_width.into_iter().find(|k| k.prints(raw(*k), shown)) {
            float.overrides.push((bits.clone(), value, kind));
            changed = true;
        }
    }
    model.floats.insert(key, float);
    Ok(changed)
}
