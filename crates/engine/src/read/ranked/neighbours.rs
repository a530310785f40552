//! Bounds the length of the runs of query words in documents by ready-made lists of pairs, without reading positions.
//!
//! Any two words of a run stand as far from each other as in the query, so the document is in the lists of all pairs of
//! the run's words. Of a pair without a list it is assumed of each document that contains both words.
//!
//! ```text
//! query a b c         pairs: b one behind a, c one behind b, c two behind a
//! in no list          no run has two words
//! in one or two       no run has three
//! ```

use remora_index::{Bitmap, DocSet, words::WordsIndex};

use super::{
    bounds::WeightBounds,
    tiers::{CHUNK, Tiers, word},
};
use crate::{Result, interrupt::InterruptCheck};

/// Queries of more words are not bounded by their pairs, which are too many.
const MOST_WORDS: usize = 12;
/// The most bytes of the pairs of a query in a segment.
const MOST_BYTES: u64 = 32 << 20;
/// Reading the positions of a document costs as much as reading this many bytes of lists.
const BYTES_PER_DOCUMENT: u64 = 1 << 10;

/// For each two words of a query, the documents of a segment in which they may stand as in the query.
pub(super) struct Neighbours {
    words: usize,
    /// Of two words, by their places in [`WeightBounds::contributors`]: lower place times `words` plus higher place.
    pairs: Vec<Pair>,
}

enum Pair {
    Nowhere,
    Everywhere,
    In(Bitmap),
}

impl Neighbours {
    /// Finds the pairs; `None` if no list tells anything, or if there are too many. `numbers` are those of the keywords
    /// of `bounds.terms` in the segment. Runs must be shifts of the query ([`WeightBounds::runs_are_shifts`]). The lists are not
    /// read for `candidates` documents whose positions are sooner read.
    pub fn new(
        index: &WordsIndex,
        bounds: &WeightBounds<'_>,
        numbers: &[Option<u32>],
        (tiers, candidates): (&Tiers<'_>, u32),
        unless: &InterruptCheck,
    ) -> Result<Option<Self>> {
        let words = bounds.contributors.words.len();
        let documents = tiers.documents();
        let bytes = (words * words / 2) as u64 * u64::from(documents) / 8;
        let is_useful = index.has_pairs() && (2..=MOST_WORDS).contains(&words);
        let most_bytes = MOST_BYTES.min(u64::from(candidates) * BYTES_PER_DOCUMENT);
        if !is_useful || tiers.are_lists() || bytes > most_bytes {
            return Ok(None);
        }
        let at = bounds.contributors.words.iter().zip(&bounds.shares);
        let at: Vec<(u32, usize)> = at.map(|(word, &(term, _))| (word.position, term)).collect();
        let number = |term: usize| numbers.get(term).copied().flatten();
        let mut found = Vec::with_capacity(words * words / 2);
        for (place, &one) in at.iter().enumerate() {
            for (other_place, &other) in at.iter().enumerate() {
                if other_place <= place {
                    continue;
                }
                unless.check()?;
                let (before, behind) = if one.0 <= other.0 { (one, other) } else { (other, one) };
                let listed = match (number(before.1), number(behind.1)) {
                    (Some(left), Some(right)) => {
                        index.documents_apart((left, right), behind.0 - before.0)?
                    }
                    _ => Some(DocSet::empty()),
                };
                found.push((listed, (before.1, behind.1), place * words + other_place));
            }
        }
        if found.iter().all(|(listed, ..)| listed.is_none()) {
            return Ok(None);
        }
        let mut pairs: Vec<Pair> = (0..words * words).map(|_| Pair::Nowhere).collect();
        for (listed, (before, behind), at) in found {
            let pair = match listed {
                Some(docs) if docs.is_empty() => Pair::Nowhere,
                Some(docs) => Pair::In(docs.into_bitmap(documents)),
                None => tiers.both(before, behind).map_or(Pair::Everywhere, Pair::In),
            };
            if let Some(slot) = pairs.get_mut(at) {
                *slot = pair;
            }
        }
        Ok(Some(Self { words, pairs }))
    }

    fn pair(&self, one: usize, other: usize) -> &Pair {
        let pair = self.pairs.get(one.min(other) * self.words + one.max(other));
        pair.unwrap_or(&Pair::Everywhere)
    }

    /// The most words that a run of a document can have, of these words by their places.
    #[inline]
    pub fn longest(&self, doc: u32, present: &[usize]) -> u32 {
        let has = |one: usize, other: usize| match self.pair(one, other) {
            Pair::Nowhere => false,
            Pair::Everywhere => true,
            Pair::In(docs) => word(docs.words(), doc as usize / 64) >> (doc % 64) & 1 == 1,
        };
        match *present {
            [] | [_] => 1,
            [one, other] => 1 + u32::from(has(one, other)),
            _ => {
                let mut paired = [0u32; MOST_WORDS];
                for (nth, &one) in present.iter().enumerate() {
                    for &other in present.get(..nth).unwrap_or_default() {
                        if has(one, other)
                            && let Some(paired) = paired.get_mut(one.max(other))
                        {
                            *paired |= 1 << one.min(other);
                        }
                    }
                }
                let all = present.iter().fold(0, |all, &place| all | 1 << place);
                most_paired(all, &paired)
            }
        }
    }

    /// The same of all words.
    pub fn longest_of_all(&self, doc: u32) -> u32 {
        let all: [usize; MOST_WORDS] = std::array::from_fn(|place| place);
        self.longest(doc, all.get(..self.words).unwrap_or_default())
    }

    /// Keeps the documents of a chunk in which a run can have so many words. Each word of `found` is 64 documents.
    pub fn keep(&self, run: u32, start: usize, found: &mut [u64]) {
        let mut kept = [0; CHUNK];
        let Some(kept) = kept.get_mut(..found.len()) else { return };
        if found.iter().any(|word| *word != 0) {
            let all = &*found;
            let mut chunk = ChunkRuns { run: run as usize, start, found: all, kept: &mut *kept };
            self.extend(&mut Vec::new(), all, &mut chunk);
            found.copy_from_slice(kept);
        }
    }

    /// Adds to those kept the documents `with` that have all pairs of `chosen` and further words, the words of a run in
    /// all. Returns whether all that were found are kept.
    fn extend(&self, chosen: &mut Vec<usize>, with: &[u64], chunk: &mut ChunkRuns<'_>) -> bool {
        if chosen.len() >= chunk.run {
            chunk.kept.iter_mut().zip(with).for_each(|(kept, with)| *kept |= with);
            return !has_others(chunk.found, chunk.kept);
        }
        let wanted = chunk.run - chosen.len();
        let first = chosen.last().map_or(0, |last| last + 1);
        for next in first..(self.words + 1).saturating_sub(wanted) {
            let mut with_next = [0; CHUNK];
            let Some(with_next) = with_next.get_mut(..with.len()) else { return false };
            with_next.copy_from_slice(with);
            let mut are_there = chosen.iter();
            let are_there = are_there.all(|&other| match self.pair(other, next) {
                Pair::Nowhere => false,
                Pair::Everywhere => true,
                Pair::In(docs) => {
                    let docs = docs.words().get(chunk.start..).unwrap_or_default();
                    with_next.iter_mut().zip(docs).for_each(|(all, docs)| *all &= docs);
                    true
                }
            });
            if are_there && has_others(with_next, chunk.kept) {
                chosen.push(next);
                let is_done = self.extend(chosen, with_next, chunk);
                chosen.pop();
                if is_done {
                    return true;
                }
            }
        }
        false
    }
}

/// The documents of a chunk whose runs are looked at.
struct ChunkRuns<'c> {
    /// The words of a run.
    run: usize,
    /// Where the chunk begins, in words of 64 documents.
    start: usize,
    found: &'c [u64],
    kept: &'c mut [u64],
}

/// Whether some documents of `one` are not in `other`.
fn has_others(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).any(|(one, other)| one & !other != 0)
}

/// How many of `all` (bits) at most are paired each with each. `paired` has for each those with lower numbers.
fn most_paired(all: u32, paired: &[u32; MOST_WORDS]) -> u32 {
    let (mut rest, mut most) = (all, 0);
    while rest != 0 && rest.count_ones() > most {
        let last = 31 - rest.leading_zeros();
        rest &= !(1 << last);
        let others = paired.get(last as usize).copied().unwrap_or(0);
        most = most.max(1 + most_paired(rest & others, paired));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most of the words that are paired each with each, by a look at each choice.
    fn longest(words: &[usize], has: &dyn Fn(usize, usize) -> bool) -> u32 {
        let is_run = |chosen: u32| {
            let chosen: Vec<usize> =
                words.iter().copied().filter(|word| chosen >> word & 1 == 1).collect();
            let mut each =
                chosen.iter().flat_map(|one| chosen.iter().map(move |other| (one, other)));
            each.all(|(one, other)| one >= other || has(*one, *other))
        };
        let all = words.iter().fold(0u32, |all, word| all | 1 << word);
        (1..=all)
            .filter(|chosen| chosen & !all == 0 && is_run(*chosen))
            .map(u32::count_ones)
            .max()
            .unwrap_or(1)
    }

    #[test]
    fn runs_have_at_most_the_words_that_are_paired_each_with_each() {
        const DOCUMENTS: u32 = 300;
        let mut state = 3u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        for _ in 0..60 {
            let words = 2 + below(5) as usize;
            let of_ten = 3 + below(7);
            let mut pair = |_| match below(12) {
                0 => Pair::Nowhere,
                1 => Pair::Everywhere,
                _ => {
                    let mut docs = Bitmap::new(DOCUMENTS);
                    (0..DOCUMENTS)
                        .filter(|_| below(10) < of_ten)
                        .for_each(|doc| _ = docs.insert(doc));
                    Pair::In(docs)
                }
            };
            let pairs = (0..words * words).map(&mut pair).collect();
            let neighbours = Neighbours { words, pairs };
            let expected = |doc: u32, present: &[usize]| {
                longest(present, &|one, other| match neighbours.pair(one, other) {
                    Pair::Nowhere => false,
                    Pair::Everywhere => true,
                    Pair::In(docs) => docs.contains(doc),
                })
            };
            let all: Vec<usize> = (0..words).collect();
            let found = Bitmap::full(DOCUMENTS);
            for (nth, found) in found.words().chunks(CHUNK).enumerate() {
                for run in 2..=words as u32 + 1 {
                    let mut kept = found.to_vec();
                    neighbours.keep(run, nth * CHUNK, &mut kept);
                    let first = (nth * CHUNK * 64) as u32;
                    for doc in first..DOCUMENTS.min(first + found.len() as u32 * 64) {
                        let is_kept =
                            word(&kept, (doc - first) as usize / 64) >> (doc % 64) & 1 == 1;
                        assert_eq!(is_kept, expected(doc, &all) >= run, "{doc} {run}");
                    }
                }
            }
            for doc in 0..DOCUMENTS {
                let mut present = all.clone();
                present.retain(|_| below(4) > 0);
                // In any order.
                present.reverse();
                assert_eq!(neighbours.longest(doc, &present), expected(doc, &present));
                assert_eq!(neighbours.longest_of_all(doc), expected(doc, &all));
            }
        }
    }
}
