//! An LZ4 block encoder that looks for the smallest block.
//!
//! A changed cubin has to fit into the slot that NVIDIA's high-compression encoder made for the old one; a fast encoder's
//! block is a fifth too large. This one finds the longest match at every place (hash chains over the 64 KiB window) and
//! then the cheapest way through them, from the end backwards: with costs in whole bytes, a shorter match at the same
//! place costs no more than the longest, so lengths are all that has to be tried.

/// Matches are at least that long.
const MIN_MATCH: usize = 4;
/// The last match starts at least that far before the end.
const MATCH_MARGIN: usize = 12;
/// The last bytes are literals.
const LAST_LITERALS: usize = 5;
/// The farthest a match can reach back.
const WINDOW: usize = 65535;
const HASH_BITS: u32 = 16;
/// How many earlier places with the same hash are tried: little first, which is mostly enough, then a lot.
pub(crate) const EFFORTS: [usize; 2] = [48, 512];
/// Beyond this length only the longest match is tried, not each shorter one.
const TRY_ALL: usize = 64;

#[derive(Clone, Copy, Default)]
struct Match {
    length: u32,
    offset: u16,
}

/// Compresses `data` into one block, trying at most `effort` earlier places for each match.
pub(crate) fn compress(data: &[u8], effort: usize) -> Vec<u8> {
    let matches = longest_matches(data, effort);
    let lengths = cheapest_lengths(data.len(), &matches);
    emit(data, &matches, &lengths)
}

fn hash(data: &[u8], at: usize) -> usize {
    let word = crate::bytes::u32_at(data, at);
    (word.wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize
}

/// The longest match that starts at each place; length 0 where there is none.
fn longest_matches(data: &[u8], effort: usize) -> Vec<Match> {
    let n = data.len();
    let mut matches = vec![Match::default(); n];
    if n < MATCH_MARGIN + 1 {
        return matches;
    }
    const NONE: u32 = u32::MAX;
    let mut head = vec![NONE; 1 << HASH_BITS];
    let mut previous = vec![NONE; n];
    let end = n - LAST_LITERALS;
    for at in 0..n - MATCH_MARGIN {
        let slot = hash(data, at);
        let most = end - at;
        let mut best = Match::default();
        // A match one byte earlier gives one that is a byte shorter here: a start that saves most of the search.
        if at > 0 && matches[at - 1].length as usize > MIN_MATCH {
            best = Match {
                length: matches[at - 1].length - 1,
                offset: matches[at - 1].offset,
            };
        }
        let mut candidate = head[slot];
        let mut tries = effort;
        while candidate != NONE && tries > 0 && (best.length as usize) < most {
            let from = candidate as usize;
            if at - from > WINDOW {
                break;
            }
            let reach = best.length as usize;
            if reach == 0 || data[from + reach] == data[at + reach] {
                let length = data[at..end]
                    .iter()
                    .zip(&data[from..])
                    .take_while(|(a, b)| a == b)
                    .count();
                if length >= MIN_MATCH && length > reach {
                    best = Match {
                        length: length as u32,
                        offset: (at - from) as u16,
                    };
                }
            }
            candidate = previous[from];
            tries -= 1;
        }
        matches[at] = best;
        previous[at] = head[slot];
        head[slot] = at as u32;
    }
    matches
}

/// Bytes that a length takes beyond its four bits of the token.
fn extra(length: usize, in_token: usize) -> usize {
    if length < in_token {
        0
    } else {
        1 + (length - in_token) / 255
    }
}

/// For each place the length of the match to take there, 0 for a literal.
fn cheapest_lengths(n: usize, matches: &[Match]) -> Vec<u32> {
    let mut lengths = vec![0u32; n];
    // Bytes from a place to the end when a sequence starts there, and how many literals the cheapest way begins with.
    let mut cost = vec![0usize; n + 1];
    let mut literals = vec![0usize; n + 1];
    for at in (0..n).rev() {
        let run = literals[at + 1] + 1;
        let mut best = cost[at + 1] + 1 + (extra(run, 15) - extra(run - 1, 15));
        let mut length = 0;
        let longest = matches[at].length as usize;
        let mut consider = |l: usize| {
            // A token and an offset; the literals after the match are in the cost there, their token is this one's.
            let c = cost[at + l] + 3 + extra(l - MIN_MATCH, 15);
            if c <= best {
                best = c;
                length = l;
            }
        };
        if longest >= MIN_MATCH {
            if longest <= TRY_ALL {
                (MIN_MATCH..=longest).for_each(&mut consider);
            } else {
                (longest - 16..=longest).for_each(&mut consider);
            }
        }
        cost[at] = best;
        literals[at] = if length == 0 { run } else { 0 };
        lengths[at] = length as u32;
    }
    lengths
}

fn put_extra(out: &mut Vec<u8>, length: usize, in_token: usize) {
    if let Some(mut rest) = length.checked_sub(in_token) {
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
}

fn emit(data: &[u8], matches: &[Match], lengths: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 2);
    let mut start = 0;
    let mut at = 0;
    while at < data.len() {
        let length = lengths[at] as usize;
        if length == 0 {
            at += 1;
            continue;
        }
        let run = at - start;
        out.push((run.min(15) << 4 | (length - MIN_MATCH).min(15)) as u8);
        put_extra(&mut out, run, 15);
        out.extend_from_slice(&data[start..at]);
        out.extend_from_slice(&matches[at].offset.to_le_bytes());
        put_extra(&mut out, length - MIN_MATCH, 15);
        at += length;
        start = at;
    }
    let run = data.len() - start;
    out.push((run.min(15) << 4) as u8);
    put_extra(&mut out, run, 15);
    out.extend_from_slice(&data[start..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(data: &[u8]) -> usize {
        let block = compress(data, EFFORTS[0]);
        let back = lz4_flex::block::decompress(&block, data.len()).expect("lz4_flex takes the block");
        assert!(back == data);
        block.len()
    }

    #[test]
    fn blocks_decompress_to_what_they_were_made_from() {
        let mut seed = 1u32;
        let mut random = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as u8
        };
        for n in (0..40).chain([255, 270, 300, 4096, 70_000, 200_000]) {
            round_trip(&vec![7; n]);
            let noise: Vec<u8> = (0..n).map(|_| random()).collect();
            round_trip(&noise);
            let few: Vec<u8> = (0..n).map(|_| random() & 3).collect();
            round_trip(&few);
            let periodic: Vec<u8> = (0..n).map(|i| noise[i % 23 % n.max(1)]).collect();
            round_trip(&periodic);
        }
    }

    #[test]
    fn a_kernel_gets_smaller_than_with_the_fast_encoder() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/kernels/sm_87/own_features.cubin"
        );
        let data = std::fs::read(path).expect("the bundled cubin");
        let (ours, fast) = (round_trip(&data), lz4_flex::block::compress(&data).len());
        assert!(ours * 100 < fast * 92, "{ours} bytes, {fast} with the fast encoder");
    }
}
