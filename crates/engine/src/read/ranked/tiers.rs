//! Groups documents by the number of a query's words that they contain (tiers).
//!
//! For frequent words, the documents are added up 64 at a time: one bit of the counts of all documents is a plane, and
//! adding works like a half adder.
//!
//! ```text
//! count of document d = bit d of planes[0] + 2 * bit d of planes[1] + 4 * bit d of planes[2] + …
//! ```
//! For rare words, their lists are merged.

use std::sync::Arc;

use remora_index::{Bitmap, DocSet};

/// Words of 64 documents that are worked on together: what is made of them stays in the processor's nearest cache. Fewer in
/// tests, whose tables are small.
pub(super) const CHUNK: usize = if cfg!(test) { 2 } else { 256 };
/// The most words of a query whose documents are counted: they are all in memory, with a bit for each word and
/// document.
pub(super) const MAX_WORDS: usize = 64;
/// Words that are in at most one of so many documents are merged as lists.
const FEW_SHARE: usize = if cfg!(test) { 4 } else { 128 };

/// The documents of a word.
pub(super) enum Set<'s> {
    Docs(DocSet),
    /// A bit for each document, as the index stores them.
    Words(&'s [[u8; 8]]),
}

impl Set<'_> {
    #[inline]
    fn contains(&self, doc: u32) -> bool {
        match self {
            Self::Docs(docs) => docs.contains(doc),
            Self::Words(_) => self.word(doc as usize / 64) >> (doc % 64) & 1 == 1,
        }
    }

    /// The bits of the 64 documents at `at`; 0 for a list.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        match self {
            Self::Docs(docs) => word(words_of(docs), at),
            Self::Words(words) => words.get(at).map_or(0, |word| u64::from_le_bytes(*word)),
        }
    }

    /// The bits of documents from word `start` on; 0 for a list.
    fn words(&self, start: usize, out: &mut [u64]) {
        match self {
            Self::Docs(docs) => copy_words(words_of(docs), start, out),
            Self::Words(words) => {
                let words = words.get(start..).unwrap_or_default().iter();
                let words = words.map(|word| u64::from_le_bytes(*word));
                out.iter_mut()
                    .zip(words.chain(std::iter::repeat(0)))
                    .for_each(|(out, word)| *out = word);
            }
        }
    }

    fn for_each(&self, visit: impl FnMut(u32)) {
        // Bits are not merged as lists.
        if let Self::Docs(docs) = self {
            docs.for_each(visit);
        }
    }
}

/// For each document of a segment, the number of words that it contains.
pub(super) struct Tiers<'s> {
    documents: u32,
    /// The documents of each word.
    sets: Vec<Set<'s>>,
    counts: Counts,
}

enum Counts {
    /// Every document that is asked for contains so many words.
    Same(usize),
    Planes(Vec<Vec<u64>>),
    /// For each number of words, the documents that contain so many, ascending.
    Lists(Vec<Vec<u32>>),
}

impl<'s> Tiers<'s> {
    /// Counts the words of `documents` documents. `sets` are the documents of each word, and `times` how often
    /// each word counts.
    pub(super) fn new(documents: u32, sets: Vec<Set<'s>>, times: &[usize]) -> Self {
        let most: usize = times.iter().sum();
        let lists = sets.iter().zip(times).map(|(set, times)| match set {
            Set::Docs(DocSet::List(docs)) => Some(docs.len() * times),
            _ => None,
        });
        let all: Option<usize> = lists.sum();
        if all.is_some_and(|all| all <= documents as usize / FEW_SHARE) {
            let counts = Counts::Lists(merged(&sets, times));
            return Self { documents, sets, counts };
        }
        let bits = |set| match set {
            Set::Docs(list @ DocSet::List(_)) => {
                Set::Docs(DocSet::Bits(Arc::new(list.into_bitmap(documents))))
            }
            bits => bits,
        };
        let sets: Vec<Set<'s>> = sets.into_iter().map(bits).collect();
        let planes = (usize::BITS - most.leading_zeros()) as usize;
        let mut planes = vec![vec![0; documents.div_ceil(64) as usize]; planes];
        for (set, &times) in sets.iter().zip(times) {
            for _ in 0..times {
                add(&mut planes, set);
            }
        }
        Self { documents, sets, counts: Counts::Planes(planes) }
    }

    /// For documents that all contain so many words.
    pub(super) fn same(documents: u32, count: usize) -> Self {
        Self { documents, sets: Vec::new(), counts: Counts::Same(count) }
    }

    /// Whether documents are merged as lists.
    pub(super) fn are_lists(&self) -> bool {
        matches!(self.counts, Counts::Lists(_))
    }

    /// The documents that contain both words; `None` if that is not known.
    pub(super) fn both(&self, first: usize, second: usize) -> Option<Bitmap> {
        let (first, second) = (self.sets.get(first)?, self.sets.get(second)?);
        let words =
            (0..self.documents.div_ceil(64) as usize).map(|at| first.word(at) & second.word(at));
        (!self.are_lists()).then(|| Bitmap::from_words(self.documents, words))
    }

    /// The number of documents of the segment.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// The number of words whose documents are known.
    pub(super) fn words(&self) -> usize {
        self.sets.len()
    }

    /// Whether a document contains a word.
    #[inline]
    pub(super) fn has_word(&self, word: usize, doc: u32) -> bool {
        self.sets.get(word).is_none_or(|set| set.contains(doc))
    }

    /// For each word, which of the 64 documents at `at` contain it; empty if the documents are lists or not known.
    #[inline]
    pub(super) fn words_at(&self, at: usize, out: &mut Vec<u64>) {
        out.clear();
        if matches!(self.counts, Counts::Planes(_)) {
            out.extend(self.sets.iter().map(|set| set.word(at)));
        }
    }

    /// The documents that contain at least so many words.
    pub(super) fn at_least(&self, least: usize) -> DocSet {
        match &self.counts {
            Counts::Same(count) if *count >= least => DocSet::all(self.documents),
            Counts::Same(_) => DocSet::empty(),
            Counts::Lists(_) => {
                DocSet::ascending(self.listed(least).unwrap_or_default(), self.documents)
            }
            Counts::Planes(_) => {
                let mut words = vec![0; self.documents.div_ceil(64) as usize];
                for (number, chunk) in words.chunks_mut(CHUNK).enumerate() {
                    self.words_at_least(least, number * CHUNK, chunk);
                }
                DocSet::Bits(Bitmap::from_words(self.documents, words).into())
            }
        }
    }

    /// The documents that contain at least so many words, ascending, if they are lists.
    pub(super) fn listed(&self, least: usize) -> Option<Vec<u32>> {
        let Counts::Lists(lists) = &self.counts else { return None };
        let mut docs = lists.get(least..).unwrap_or_default().concat();
        docs.sort_unstable();
        Some(docs)
    }

    /// The documents that contain so many words, ascending, if they are lists.
    pub(super) fn list(&self, count: usize) -> Option<&[u32]> {
        match &self.counts {
            Counts::Lists(lists) => Some(lists.get(count).map_or(&[], |list| list)),
            _ => None,
        }
    }

    /// Whether a document contains so many words.
    #[inline]
    pub(super) fn has(&self, count: usize, doc: u32) -> bool {
        match &self.counts {
            Counts::Same(same) => *same == count,
            Counts::Lists(lists) => {
                lists.get(count).is_some_and(|list| list.binary_search(&doc).is_ok())
            }
            Counts::Planes(planes) => {
                Self::with_word(planes, count, doc as usize / 64) >> (doc % 64) & 1 == 1
            }
        }
    }

    /// Whether a document contains any of the words.
    #[inline]
    pub(super) fn has_any(&self, doc: u32) -> bool {
        match &self.counts {
            Counts::Same(same) => *same > 0,
            Counts::Lists(_) => self.sets.iter().any(|set| set.contains(doc)),
            Counts::Planes(planes) => {
                planes.iter().any(|plane| word(plane, doc as usize / 64) >> (doc % 64) & 1 == 1)
            }
        }
    }

    /// Which of the 64 documents at `at` contain so many words.
    #[inline]
    fn with_word(planes: &[Vec<u64>], count: usize, at: usize) -> u64 {
        planes.iter().enumerate().fold(!0, |found, (bit, plane)| {
            let plane = word(plane, at);
            found & if count >> bit & 1 == 1 { plane } else { !plane }
        })
    }

    /// Which documents contain so many words, 64 in each word of `out`, from the 64 at `start` on. If they are lists,
    /// all bits are set.
    pub(super) fn words_with(&self, count: usize, start: usize, out: &mut [u64]) {
        let is_other = matches!(&self.counts, Counts::Same(same) if *same != count);
        out.fill(if is_other { 0 } else { !0 });
        let Counts::Planes(planes) = &self.counts else { return };
        if count >> planes.len() > 0 {
            out.fill(0);
        }
        for (bit, plane) in planes.iter().enumerate() {
            let words = out.iter_mut().zip(plane.get(start..).unwrap_or_default());
            match count >> bit & 1 {
                1 => words.for_each(|(out, word)| *out &= word),
                _ => words.for_each(|(out, word)| *out &= !word),
            }
        }
    }

    /// The same for documents that contain at least so many words.
    pub(super) fn words_at_least(&self, least: usize, start: usize, out: &mut [u64]) {
        let Counts::Planes(planes) = &self.counts else {
            out.fill(!0);
            return;
        };
        out.fill(0);
        // No count has as many bits as that.
        if least >> planes.len() > 0 {
            return;
        }
        // From the highest bit of the counts on: those that are above already, and those that are equal up to there.
        let mut equal = [!0; CHUNK];
        for (bit, plane) in planes.iter().enumerate().rev() {
            let plane = plane.get(start..).unwrap_or_default();
            let words = out.iter_mut().zip(&mut equal).zip(plane);
            match least >> bit & 1 {
                1 => words.for_each(|((_, equal), word)| *equal &= word),
                _ => words.for_each(|((out, equal), word)| {
                    *out |= *equal & word;
                    *equal &= !word;
                }),
            }
        }
        out.iter_mut().zip(&equal).for_each(|(out, equal)| *out |= equal);
    }

    /// The same for documents that contain one of these words.
    pub(super) fn words_of_any(&self, chosen: &[usize], start: usize, out: &mut [u64]) {
        out.fill(0);
        let mut of_set = [0; CHUNK];
        for set in chosen.iter().filter_map(|&word| self.sets.get(word)) {
            set.words(start, &mut of_set);
            out.iter_mut().zip(&of_set).for_each(|(out, word)| *out |= word);
        }
    }
}

pub(super) fn words_of(set: &DocSet) -> &[u64] {
    match set {
        DocSet::Bits(bits) => bits.words(),
        DocSet::List(_) => &[],
    }
}

#[inline]
pub(super) fn word(words: &[u64], at: usize) -> u64 {
    words.get(at).copied().unwrap_or(0)
}

/// Copies the words from `start` on; 0 after the last one.
pub(super) fn copy_words(words: &[u64], start: usize, out: &mut [u64]) {
    let words = words.get(start..).unwrap_or_default();
    let (copied, rest) = out.split_at_mut(words.len().min(out.len()));
    copied.iter_mut().zip(words).for_each(|(out, word)| *out = *word);
    rest.fill(0);
}

/// Adds one to the counts of the documents of a word.
fn add(planes: &mut [Vec<u64>], set: &Set<'_>) {
    let words = planes.first().map_or(0, Vec::len);
    let mut carry = [0; CHUNK];
    for start in (0..words).step_by(CHUNK) {
        set.words(start, &mut carry);
        for plane in &mut *planes {
            let plane = plane.get_mut(start..).unwrap_or_default();
            for (word, carry) in plane.iter_mut().zip(&mut carry) {
                (*word, *carry) = (*word ^ *carry, *word & *carry);
            }
        }
    }
}

/// The documents of lists, by the number of lists that contain them.
fn merged(sets: &[Set<'_>], times: &[usize]) -> Vec<Vec<u32>> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (set, &times) in sets.iter().zip(times) {
        set.for_each(|doc| all.push((doc, times as u32)));
    }
    all.sort_unstable();
    let mut lists = vec![Vec::new(); times.iter().sum::<usize>() + 1];
    for of_document in all.chunk_by(|one, other| one.0 == other.0) {
        let count: u32 = of_document.iter().map(|(_, times)| times).sum();
        if let (Some(list), Some((doc, _))) = (lists.get_mut(count as usize), of_document.first()) {
            list.push(*doc);
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_counted_and_chosen_as_one_by_one() {
        let mut state = 5u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        let mut counted = 0;
        for _ in 0..200 {
            let documents = 1 + below(700);
            let words = 1 + below(9) as usize;
            let times: Vec<usize> = (0..words).map(|_| 1 + below(2) as usize).collect();
            let lists: Vec<Vec<u32>> = (0..words)
                .map(|_| {
                    let of_ten = 1 + below(9);
                    (0..documents).filter(|_| below(10) < of_ten).collect()
                })
                .collect();
            let sets =
                lists.iter().map(|docs| Set::Docs(DocSet::ascending(docs.clone(), documents)));
            let tiers = Tiers::new(documents, sets.collect(), &times);
            if matches!(tiers.counts, Counts::Lists(_)) {
                continue;
            }
            counted += 1;
            let count = |doc: u32| -> usize {
                let of_list = lists.iter().zip(&times);
                of_list.filter(|(docs, _)| docs.contains(&doc)).map(|(_, times)| times).sum()
            };
            let all: usize = times.iter().sum();
            let chosen: Vec<usize> = (0..words).filter(|_| below(2) == 0).collect();
            let is_chosen = |doc: u32| chosen.iter().any(|&word| lists[word].contains(&doc));
            for start in (0..documents.div_ceil(64) as usize).step_by(CHUNK) {
                let mut words = [0; CHUNK];
                let docs = start as u32 * 64..documents.min((start + CHUNK) as u32 * 64);
                let has = |words: &[u64], doc: u32| {
                    words[doc as usize / 64 - start] >> (doc % 64) & 1 == 1
                };
                for least in 0..=all + 2 {
                    tiers.words_with(least, start, &mut words);
                    docs.clone().for_each(|doc| assert_eq!(has(&words, doc), count(doc) == least));
                    tiers.words_at_least(least, start, &mut words);
                    docs.clone().for_each(|doc| assert_eq!(has(&words, doc), count(doc) >= least));
                }
                tiers.words_of_any(&chosen, start, &mut words);
                docs.for_each(|doc| assert_eq!(has(&words, doc), is_chosen(doc)));
            }
        }
        assert!(counted > 150, "{counted} are counted by planes");
    }
}
