//! Documents by how many of a query's words they have.
//!
//! Where the words stand in many documents each word's documents are added up 64 at a time: one bit of the counts of
//! all documents is a plane, and adding is what a half adder does.
//!
//! ```text
//! count of document d = bit d of planes[0] + 2 * bit d of planes[1] + 4 * bit d of planes[2] + …
//! ```
//! Where they stand in few, their lists are merged.

use std::{ops::ControlFlow, sync::Arc};

use remora_index::{Bitmap, DocSet};

/// Most words of a query whose rows are counted: their documents are all in memory, a bit for each word and document.
pub(super) const MAX_WORDS: usize = 64;
/// Words that stand in no more than one in so many documents are merged as lists.
const FEW_SHARE: usize = 128;
/// Words of 64 documents between two looks at which words a document must have.
const CHUNK: usize = 512;

/// How many of the words each document of a segment has.
pub(super) struct Tiers {
    documents: u32,
    /// The documents of each word.
    sets: Vec<DocSet>,
    counts: Counts,
}

enum Counts {
    Planes(Vec<Vec<u64>>),
    /// The documents that have so many of the words, ascending.
    Lists(Vec<Vec<u32>>),
}

impl Tiers {
    /// Counts in a segment of so many documents; `sets` are those of each word, counted so many times.
    pub(super) fn new(documents: u32, sets: Vec<DocSet>, times: &[usize]) -> Self {
        let lists = sets.iter().zip(times).map(|(set, times)| match set {
            DocSet::List(docs) => Some(docs.len() * times),
            DocSet::Bits(_) => None,
        });
        let all: Option<usize> = lists.sum();
        if all.is_some_and(|all| all <= documents as usize / FEW_SHARE) {
            let counts = Counts::Lists(merged(&sets, times));
            return Self { documents, sets, counts };
        }
        let bits = |set: DocSet| DocSet::Bits(Arc::new(set.into_bitmap(documents)));
        let bits = |set| if matches!(set, DocSet::Bits(_)) { set } else { bits(set) };
        let sets: Vec<DocSet> = sets.into_iter().map(bits).collect();
        let most: usize = times.iter().sum();
        let planes = (usize::BITS - most.leading_zeros()) as usize;
        let mut planes = vec![vec![0; documents.div_ceil(64) as usize]; planes];
        for (set, &times) in sets.iter().zip(times) {
            (0..times).for_each(|_| add(&mut planes, words_of(set)));
        }
        Self { documents, sets, counts: Counts::Planes(planes) }
    }

    /// Whether a document has a word.
    #[inline]
    pub(super) fn has_word(&self, word: usize, doc: u32) -> bool {
        self.sets.get(word).is_some_and(|set| set.contains(doc))
    }

    /// The documents that have at least so many words of `most`.
    pub(super) fn at_least(&self, least: usize, most: usize) -> DocSet {
        match &self.counts {
            Counts::Lists(lists) => {
                let mut docs = lists.get(least..).unwrap_or_default().concat();
                docs.sort_unstable();
                DocSet::ascending(docs, self.documents)
            }
            Counts::Planes(planes) => {
                let words = self.documents.div_ceil(64) as usize;
                let with = |at| match least {
                    1 => planes.iter().fold(0, |any, plane| any | word(plane, at)),
                    _ => (least..=most).fold(0, |any, count| any | with(planes, count, at)),
                };
                let bits = Bitmap::from_words(self.documents, (0..words).map(with));
                DocSet::Bits(bits.into())
            }
        }
    }

    /// Whether a document has so many words.
    #[inline]
    pub(super) fn has(&self, count: usize, doc: u32) -> bool {
        match &self.counts {
            Counts::Lists(lists) => {
                lists.get(count).is_some_and(|list| list.binary_search(&doc).is_ok())
            }
            Counts::Planes(planes) => with(planes, count, doc as usize / 64) >> (doc % 64) & 1 == 1,
        }
    }

    /// Calls `visit` with the documents of `among` that have so many words, ascending, until it breaks. `needed` puts
    /// the words of which a document must have one, now and then.
    pub(super) fn for_each(
        &self,
        count: usize,
        among: &DocSet,
        mut needed: impl FnMut(&mut Vec<usize>),
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let planes = match (&self.counts, among) {
            (Counts::Lists(lists), _) => {
                let list = lists.get(count).map_or(&[][..], |list| list);
                let mut asked = list.iter().copied().filter(|&doc| among.contains(doc));
                let _ = asked.try_for_each(visit);
                return;
            }
            (Counts::Planes(_), DocSet::List(docs)) => {
                let mut asked = docs.iter().copied().filter(|&doc| self.has(count, doc));
                let _ = asked.try_for_each(visit);
                return;
            }
            (Counts::Planes(planes), DocSet::Bits(_)) => planes,
        };
        let mut words = Vec::new();
        for (at, &among) in words_of(among).iter().enumerate() {
            if at % CHUNK == 0 {
                words.clear();
                needed(&mut words);
            }
            let mut found = if among == 0 { 0 } else { among & with(planes, count, at) };
            if found != 0 && words.len() < self.sets.len() {
                let sets = words.iter().filter_map(|&word| self.sets.get(word));
                found &= sets.fold(0, |any, set| any | word(words_of(set), at));
            }
            while found != 0 {
                if visit(at as u32 * 64 + found.trailing_zeros()).is_break() {
                    return;
                }
                found &= found - 1;
            }
        }
    }
}

fn words_of(set: &DocSet) -> &[u64] {
    match set {
        DocSet::Bits(bits) => bits.words(),
        DocSet::List(_) => &[],
    }
}

#[inline]
fn word(words: &[u64], at: usize) -> u64 {
    words.get(at).copied().unwrap_or(0)
}

/// Which of the 64 documents at `at` have so many words.
#[inline]
fn with(planes: &[Vec<u64>], count: usize, at: usize) -> u64 {
    planes.iter().enumerate().fold(!0, |found, (bit, plane)| {
        let plane = word(plane, at);
        found & if count >> bit & 1 == 1 { plane } else { !plane }
    })
}

fn add(planes: &mut [Vec<u64>], bits: &[u64]) {
    match planes {
        [] => {}
        [only] => only.iter_mut().zip(bits).for_each(|(plane, bits)| *plane |= bits),
        [low, high] => {
            for ((low, high), &bits) in low.iter_mut().zip(high).zip(bits) {
                *high ^= *low & bits;
                *low ^= bits;
            }
        }
        _ => {
            for (at, &bits) in bits.iter().enumerate() {
                let mut carry = bits;
                for plane in &mut *planes {
                    let Some(word) = plane.get_mut(at) else { break };
                    (*word, carry) = (*word ^ carry, *word & carry);
                }
            }
        }
    }
}

/// The documents of lists by how many lists have them.
fn merged(sets: &[DocSet], times: &[usize]) -> Vec<Vec<u32>> {
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
