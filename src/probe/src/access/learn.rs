//! Learns access and width of every register field of a form, and the selector bits on which they depend.
//!
//! From random base words each unit (selector or bit) is varied alone; a field whose access changes depends on the unit.
//! Then all combinations of the units it depends on are asked on several backgrounds. Where two words still contradict each
//! other, the words between them, one unit apart, show which other unit decides.

use std::collections::{BTreeMap, BTreeSet};

use union_gen::bits::Bits;

use super::hidden::{self, Votes};
use super::model::{CONTROL, Matcher, Model, Slot};
use super::table::{self, Table};
use super::words::{Rng, Touch, Unit};
use super::work::{Ask, Work, ask_and_keep, prepare};
use crate::plr::{Answers, File, OracleError, Usage};

/// Base words whose single bits are varied, too.
const BIT_BASES: usize = 4;
/// Most combinations asked for one set of units.
const COMBINATIONS: usize = 1500;
/// A field that depends on more bits is not understood.
const MOST_BITS: usize = 20;
/// A form is sparse when fewer than this part of its random words is legal, in percent.
const SPARSE: usize = 80;
/// Most combinations of all selectors asked of a sparse form.
const COVER_SPARSE: usize = 4096;
/// The same for other forms.
const COVER: usize = 512;

/// A field with more rows than this is not understood.
const MOST_ROWS: usize = 256;

/// What was learnt about one field.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// Field name.
    pub name: String,
    /// Access by selector bits.
    pub table: Table,
    /// Touched in shapes that do not print it, too.
    pub always: bool,
    /// Number of words that show it.
    pub words: usize,
    /// Words that contradict the table.
    pub contradictions: usize,
}

impl Learnt {
    /// For a field that no word shows: taken to be read where it is printed.
    pub fn unknown(name: &str) -> Self {
        let table = Table {
            bits: Bits::default(),
            default: (1, 0),
            rows: Vec::new(),
        };
        Self {
            name: name.to_owned(),
            table,
            always: false,
            words: 0,
            contradictions: 0,
        }
    }
}

/// What was learnt about one form.
#[derive(Clone, Debug, Default)]
pub struct FormResult {
    /// In the order of the model's fields; none if no word shows the field.
    pub fields: Vec<Option<Learnt>>,
    /// Registers beside the fields: (usage, words that show it).
    pub implicit: Vec<(Usage, usize)>,
    /// Words asked that the tool accepts.
    pub words: usize,
    /// Things to look at.
    pub remarks: Vec<String>,
}

/// Finds hidden fields of the models `range` and adds them to the models.
pub fn find_hidden(
    oracle: &dyn Answers,
    models: &mut [Model],
    range: std::ops::Range<usize>,
    matcher: &Matcher,
) -> Result<Vec<Vec<String>>, OracleError> {
    let mut remarks = vec![Vec::new(); range.len()];
    let mut found = Vec::new();
    {
        let works = prepare(oracle, models, range.clone(), matcher, 1)?;
        let mut asks = Vec::new();
        for (w, work) in works.iter().enumerate() {
            for (b, base) in work.bases.iter().enumerate().filter(|(_, b)| !b.seen.rest.is_empty()) {
                asks.extend(
                    hidden::flips(&work.maker, base)
                        .into_iter()
                        .map(|(bit, word)| (w, b, bit, word)),
                );
            }
        }
        let answers = oracle.usage(&asks.iter().map(|a| a.3).collect::<Vec<_>>())?;
        let mut votes: Vec<Votes> = works.iter().map(|_| Votes::default()).collect();
        let mut at = 0;
        while at < asks.len() {
            let (w, b) = (asks[at].0, asks[at].1);
            let end = (at..asks.len())
                .find(|&i| (asks[i].0, asks[i].1) != (w, b))
                .unwrap_or(asks.len());
            let (work, base) = (&works[w], &works[w].bases[b]);
            let flipped: Vec<(u8, Option<Usage>)> = (at..end)
                .map(|i| {
                    let usage = answers[i].as_ref();
                    (
                        asks[i].2,
                        usage.map(|l| work.maker.seen(asks[i].3, &base.owns, &l.usage).rest),
                    )
                })
                .collect();
            votes[w].add(base, &flipped);
            at = end;
        }
        for (w, work) in works.iter().enumerate() {
            let m = work.maker.model;
            let wide_ur = m.fields.iter().any(|f| f.file == File::Ur && f.bits.len() > 6);
            let width = |file| match file {
                File::R => 8,
                File::Ur => {
                    if wide_ur {
                        8
                    } else {
                        6
                    }
                }
                File::P | File::Up => 3,
            };
            let (fields, notes) = votes[w].fields(width, m.fixed() | CONTROL);
            // A field of another shape with the same bits is that operand, only not printed.
            let known = |bits: &Bits| m.fields.iter().any(|f| f.bits.mask() & bits.mask() != 0);
            found.push(fields.into_iter().filter(|f| !known(&f.bits)).collect::<Vec<_>>());
            remarks[w] = notes;
        }
    }
    for (model, fields) in models[range].iter_mut().zip(found) {
        for (n, mut field) in fields.into_iter().enumerate() {
            field.slot = Slot::Hidden(n as u8);
            field.name = format!("h{n}.{}0", field.file.name());
            model.fields.push(field);
        }
    }
    Ok(remarks)
}

/// Learns the models `range`.
pub fn learn(
    oracle: &dyn Answers,
    models: &[Model],
    range: std::ops::Range<usize>,
    matcher: &Matcher,
) -> Result<Vec<FormResult>, OracleError> {
    let mut works = prepare(oracle, models, range, matcher, 2)?;
    cover(oracle, &mut works)?;
    vary_alone(oracle, &mut works)?;
    for _ in 0..2 {
        combine(oracle, &mut works)?;
        for _ in 0..5 {
            if !settle(oracle, &mut works)? {
                break;
            }
        }
    }
    Ok(works.iter_mut().map(result).collect())
}

/// Asks combinations of all selectors. Some access is rare (`IMMA.16832` with two 8-bit types), so that single steps from a
/// few bases miss it; and where few combinations are legal, single steps mostly lead nowhere.
fn cover(oracle: &dyn Answers, works: &mut [Work<'_>]) -> Result<(), OracleError> {
    let mut asks = Vec::new();
    for (w, work) in works.iter_mut().enumerate() {
        if work.bases.is_empty() {
            continue;
        }
        let sparse = work.legal * 100 < work.tried * SPARSE;
        let most = match work.maker.model.mnemonic.ends_with("MMA") || sparse {
            true => COVER_SPARSE,
            false => COVER,
        };
        let groups: Vec<Unit> = work.units.iter().filter(|u| !u.is_free_bit()).cloned().collect();
        let all: Vec<&Unit> = groups.iter().collect();
        for (bits, value) in combinations(&all, most, &mut work.rng) {
            let all = work.maker.numbers(&mut work.rng);
            let mut base = work.bases[work.rng.below(work.bases.len())].word;
            // A number may decide, too: the mask of a texture load.
            if work.rng.below(2) == 0 {
                base ^= work.rng.word()
                    & work
                        .units
                        .iter()
                        .filter(|u| u.is_free_bit())
                        .fold(0, |m, u| m | u.bits.mask());
            }
            let with_or_without = [work.maker.without_predicates(&all), all];
            let chosen = with_or_without.iter().skip(usize::from(!sparse));
            for numbers in chosen.flat_map(|n| work.maker.apart(n)).collect::<Vec<_>>() {
                if let Some((word, owns)) = work.variant(base, &bits, value, &numbers) {
                    asks.push(Ask {
                        work: w,
                        word,
                        numbers,
                        owns,
                    });
                }
            }
        }
    }
    ask_and_keep(oracle, works, asks)
}

/// All combinations of the units' values, or `most` random ones: the bits and their value.
fn combinations(units: &[&Unit], most: usize, rng: &mut Rng) -> Vec<(Bits, u64)> {
    let total = units.iter().fold(1usize, |t, u| t.saturating_mul(u.values.len()));
    let bits = Bits(units.iter().flat_map(|u| u.bits.0.iter().copied()).collect());
    let mut out = Vec::new();
    for n in 0..total.min(most) {
        let mut code = if total > most { rng.next() as usize } else { n };
        let mut placed = 0;
        for unit in units {
            placed |= unit.bits.set(0, unit.values[code % unit.values.len()]);
            code /= unit.values.len();
        }
        out.push((bits.clone(), bits.get(placed)));
    }
    out
}

fn vary_alone(oracle: &dyn Answers, works: &mut [Work<'_>]) -> Result<(), OracleError> {
    let mut asks = Vec::new();
    let mut pairs = Vec::new();
    for (w, work) in works.iter().enumerate() {
        for (b, base) in work.bases.iter().enumerate() {
            for unit in work.units.iter().filter(|u| b < BIT_BASES || u.bits.len() > 1) {
                for &value in unit.values.iter().filter(|v| **v != unit.bits.get(base.word)) {
                    if let Some((word, owns)) = work.variant(base.word, &unit.bits, value, &base.numbers) {
                        pairs.push((w, base.word, word));
                        asks.push(Ask {
                            work: w,
                            word,
                            numbers: base.numbers.clone(),
                            owns,
                        });
                    }
                }
            }
        }
    }
    ask_and_keep(oracle, works, asks)?;
    for (w, a, b) in pairs {
        let work = &mut works[w];
        let (Some(sa), Some(sb)) = (work.data.get(&a), work.data.get(&b)) else {
            continue;
        };
        let changed: Vec<usize> = (0..work.depends.len())
            .filter(|&f| match (sa.seen.touch[f], sb.seen.touch[f]) {
                (Some(x), Some(y)) => x != y,
                _ => false,
            })
            .collect();
        for f in changed {
            let field = &work.maker.model.fields[f];
            let both = work.maker.printed(field, a) == work.maker.printed(field, b);
            if both || work.always(f) {
                work.note(f, a, b);
            }
        }
    }
    Ok(())
}

/// Asks all combinations of the units that a field depends on.
fn combine(oracle: &dyn Answers, works: &mut [Work<'_>]) -> Result<(), OracleError> {
    let mut asks = Vec::new();
    for (w, work) in works.iter_mut().enumerate() {
        let sets: BTreeSet<Vec<usize>> = (0..work.depends.len())
            .filter(|&f| work.depends[f].len() <= MOST_BITS)
            .map(|f| work.units_of(f))
            .filter(|u| !u.is_empty())
            .collect();
        for set in sets {
            let units: Vec<Unit> = set.iter().map(|&u| work.units[u].clone()).collect();
            let all: Vec<&Unit> = units.iter().collect();
            let bits = Bits(units.iter().flat_map(|u| u.bits.0.iter().copied()).collect());
            let seen: BTreeSet<u64> = work.data.keys().map(|w| bits.get(*w)).collect();
            for (bits, value) in combinations(&all, COMBINATIONS, &mut work.rng) {
                let known = seen.contains(&value);
                for _ in 0..if known { 1 } else { 4 } {
                    if work.bases.is_empty() {
                        break;
                    }
                    let base = &work.bases[work.rng.below(work.bases.len())];
                    if let Some((word, owns)) = work.variant(base.word, &bits, value, &base.numbers)
                        && !work.data.contains_key(&word)
                    {
                        asks.push(Ask {
                            work: w,
                            word,
                            numbers: base.numbers.clone(),
                            owns,
                        });
                    }
                }
            }
        }
    }
    ask_and_keep(oracle, works, asks)
}

/// Looks for the unit behind each contradiction; false if there is none left to look at.
fn settle(oracle: &dyn Answers, works: &mut [Work<'_>]) -> Result<bool, OracleError> {
    let mut asks = Vec::new();
    let mut paths = Vec::new();
    for (w, work) in works.iter_mut().enumerate() {
        for field in 0..work.depends.len() {
            if work.depends[field].len() > MOST_BITS {
                continue;
            }
            let seen = work.shown(field, work.always(field));
            let Err((a, b)) = table::build(&work.decisive(field), &seen) else {
                continue;
            };
            let numbers = work.data[&a].numbers.clone();
            let differ: Vec<usize> = (0..work.units.len())
                .filter(|&u| work.units[u].bits.mask() & (a ^ b) != 0)
                .collect();
            for _ in 0..3 {
                let mut order = differ.clone();
                work.rng.shuffle(&mut order);
                let mut word = a;
                let mut path = vec![a];
                for u in order {
                    let bits = &work.units[u].bits;
                    if let Some((next, owns)) = work.variant(word, bits, bits.get(b), &numbers) {
                        word = next;
                        path.push(word);
                        asks.push(Ask {
                            work: w,
                            word,
                            numbers: numbers.clone(),
                            owns,
                        });
                    }
                }
                path.push(b);
                paths.push((w, field, path));
            }
        }
    }
    let any = !paths.is_empty();
    ask_and_keep(oracle, works, asks)?;
    let mut progress = false;
    for (w, field, path) in paths {
        let work = &mut works[w];
        let steps: Vec<(u128, Touch)> = path
            .iter()
            .filter_map(|p| Some((*p, work.data.get(p)?.seen.touch[field]?)))
            .collect();
        if let Some(pair) = steps.windows(2).find(|s| s[0].1 != s[1].1) {
            progress |= work.note(field, pair[0].0, pair[1].0);
        }
    }
    Ok(any && progress)
}

fn result(work: &mut Work<'_>) -> FormResult {
    let mut out = FormResult {
        words: work.data.len(),
        remarks: std::mem::take(&mut work.remarks),
        ..Default::default()
    };
    for (f, field) in work.maker.model.fields.iter().enumerate() {
        let always = work.always(f);
        let seen = work.shown(f, always);
        if seen.is_empty() {
            out.remarks.push(format!("{}: no word shows it", field.name));
            out.fields.push(None);
            continue;
        }
        let mut contradictions = 0;
        let table = table::build(&work.decisive(f), &seen).unwrap_or_else(|(a, b)| {
            let t = table::majority(&work.decisive(f), &seen);
            contradictions = seen.iter().filter(|(w, touch)| t.get(*w) != *touch).count();
            out.remarks.push(format!(
                "{}: {contradictions} of {} words contradict, e.g. {a:032x} {b:032x}",
                field.name,
                seen.len()
            ));
            t
        });
        let table = if table.rows.len() > MOST_ROWS {
            let most = table::majority(&Bits::default(), &seen);
            contradictions = seen.iter().filter(|(w, touch)| most.get(*w) != *touch).count();
            let (rows, bits) = (table.rows.len(), &table.bits);
            out.remarks.push(format!(
                "{}: {rows} rows over {bits} are not understood; the most frequent is kept",
                field.name
            ));
            most
        } else {
            table
        };
        for (_, (r, w)) in table.rows.iter().chain([&(0, table.default)]) {
            if *r > 0 && *w > 0 && r != w {
                out.remarks.push(format!("{}: reads {r}, writes {w}", field.name));
            }
        }
        out.fields.push(Some(Learnt {
            name: field.name.clone(),
            table,
            always,
            words: seen.len(),
            contradictions,
        }));
    }
    let mut implicit: BTreeMap<Usage, usize> = BTreeMap::new();
    for s in work
        .data
        .values()
        .filter(|s| !s.seen.rest.is_empty() && s.owns.iter().all(|o| *o))
    {
        *implicit.entry(s.seen.rest).or_default() += 1;
    }
    out.implicit = implicit.into_iter().collect();
    out.implicit.sort_by_key(|(u, n)| (std::cmp::Reverse(*n), *u));
    out
}
