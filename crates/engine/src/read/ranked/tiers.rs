//! Documents by how many of a query's words they have.
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

/// Most words of a query whose rows are counted: their documents are all in memory, a bit for each word and document.
pub(super) const MAX_WORDS: usize = 64;
/// Words that stand in no more than one in so many documents are merged as lists.
const FEW_SHARE: usize = if cfg!(test) { 4 } else { 128 };

/// The documents of a word.
pub(super) enum Set<'s> {
    Docs(DocSet),
    /// One bit each, as the index holds them.
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

    /// The documents among the 64 at `at`; none of a list.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        match self {
            Self::Docs(docs) => word(words_of(docs), at),
            Self::Words(words) => words.get(at).map_or(0, |word| u64::from_le_bytes(*word)),
        }
    }

    fn for_each(&self, visit: impl FnMut(u32)) {
        // Bits are not merged as lists.
        if let Self::Docs(docs) = self {
            docs.for_each(visit);
        }
    }
}

/// How many of the words each document of a segment has.
pub(super) struct Tiers<'s> {
    documents: u32,
    /// The documents of each word.
    sets: Vec<Set<'s>>,
    /// How many words a document can have.
    most: usize,
    counts: Counts,
}

enum Counts {
    /// Each document that is asked for has so many.
    Same(usize),
    Planes(Vec<Vec<u64>>),
    /// The documents that have so many of the words, ascending.
    Lists(Vec<Vec<u32>>),
}

impl<'s> Tiers<'s> {
    /// Counts in a segment of so many documents; `sets` are those of each word, counted so many times.
    pub(super) fn new(documents: u32, sets: Vec<Set<'s>>, times: &[usize]) -> Self {
        let most: usize = times.iter().sum();
        let lists = sets.iter().zip(times).map(|(set, times)| match set {
            Set::Docs(DocSet::List(docs)) => Some(docs.len() * times),
            _ => None,
        });
        let all: Option<usize> = lists.sum();
        if all.is_some_and(|all| all <= documents as usize / FEW_SHARE) {
            let counts = Counts::Lists(merged(&sets, times));
            return Self { documents, sets, most, counts };
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
                match set {
                    Set::Docs(docs) => add(&mut planes, words_of(docs).iter().copied()),
                    Set::Words(words) => {
                        add(&mut planes, words.iter().map(|word| u64::from_le_bytes(*word)));
                    }
                }
            }
        }
        Self { documents, sets, most, counts: Counts::Planes(planes) }
    }

    /// Of documents each of which has so many words.
    pub(super) fn same(documents: u32, count: usize) -> Self {
        Self { documents, sets: Vec::new(), most: count, counts: Counts::Same(count) }
    }

    /// How many documents the segment has.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// How many words there are whose documents are known.
    pub(super) fn words(&self) -> usize {
        self.sets.len()
    }

    /// Whether a document has a word.
    #[inline]
    pub(super) fn has_word(&self, word: usize, doc: u32) -> bool {
        self.sets.get(word).is_none_or(|set| set.contains(doc))
    }

    /// Which of the 64 documents at `at` have each word; none where they are lists, or not known.
    #[inline]
    pub(super) fn words_at(&self, at: usize, out: &mut Vec<u64>) {
        out.clear();
        if matches!(self.counts, Counts::Planes(_)) {
            out.extend(self.sets.iter().map(|set| set.word(at)));
        }
    }

    /// The documents that have at least so many words.
    pub(super) fn at_least(&self, least: usize) -> DocSet {
        match &self.counts {
            Counts::Same(count) if *count >= least => DocSet::all(self.documents),
            Counts::Same(_) => DocSet::empty(),
            Counts::Lists(_) => {
                DocSet::ascending(self.listed(least).unwrap_or_default(), self.documents)
            }
            Counts::Planes(_) => {
                let words = self.documents.div_ceil(64) as usize;
                let with = |at| self.at_least_word(least, at);
                let bits = Bitmap::from_words(self.documents, (0..words).map(with));
                DocSet::Bits(bits.into())
            }
        }
    }

    /// The documents with at least so many words, ascending, if they are lists.
    pub(super) fn listed(&self, least: usize) -> Option<Vec<u32>> {
        let Counts::Lists(lists) = &self.counts else { return None };
        let mut docs = lists.get(least..).unwrap_or_default().concat();
        docs.sort_unstable();
        Some(docs)
    }

    /// The documents with so many words, ascending, if they are lists.
    pub(super) fn list(&self, count: usize) -> Option<&[u32]> {
        match &self.counts {
            Counts::Lists(lists) => Some(lists.get(count).map_or(&[], |list| list)),
            _ => None,
        }
    }

    /// Whether a document has so many words.
    #[inline]
    pub(super) fn has(&self, count: usize, doc: u32) -> bool {
        match &self.counts {
            Counts::Same(same) => *same == count,
            Counts::Lists(lists) => {
                lists.get(count).is_some_and(|list| list.binary_search(&doc).is_ok())
            }
            Counts::Planes(_) => self.with_word(count, doc as usize / 64) >> (doc % 64) & 1 == 1,
        }
    }

    /// Whether a document has any of the words.
    #[inline]
    pub(super) fn has_any(&self, doc: u32) -> bool {
        match &self.counts {
            Counts::Same(same) => *same > 0,
            Counts::Lists(_) => self.sets.iter().any(|set| set.contains(doc)),
            Counts::Planes(_) => self.at_least_word(1, doc as usize / 64) >> (doc % 64) & 1 == 1,
        }
    }

    /// Which of the 64 documents at `at` have so many words; all of them where they are lists.
    #[inline]
    pub(super) fn with_word(&self, count: usize, at: usize) -> u64 {
        let Counts::Planes(planes) = &self.counts else {
            let is_other = matches!(&self.counts, Counts::Same(same) if *same != count);
            return if is_other { 0 } else { !0 };
        };
        planes.iter().enumerate().fold(!0, |found, (bit, plane)| {
            let plane = word(plane, at);
            found & if count >> bit & 1 == 1 { plane } else { !plane }
        })
    }

    /// Which of the 64 documents at `at` have at least so many words; all of them where they are lists.
    #[inline]
    pub(super) fn at_least_word(&self, least: usize, at: usize) -> u64 {
        match (&self.counts, least) {
            (Counts::Planes(planes), 1) => {
                planes.iter().fold(0, |any, plane| any | word(plane, at))
            }
            (Counts::Planes(_), _) => {
                (least..=self.most).fold(0, |any, count| any | self.with_word(count, at))
            }
            _ => !0,
        }
    }

    /// Which of the 64 documents at `at` have one of these words.
    #[inline]
    pub(super) fn any_of(&self, chosen: &[usize], at: usize) -> u64 {
        let sets = chosen.iter().filter_map(|&word| self.sets.get(word));
        sets.fold(0, |any, set| any | set.word(at))
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

fn add(planes: &mut [Vec<u64>], bits: impl Iterator<Item = u64>) {
    match planes {
        [] => {}
        [only] => only.iter_mut().zip(bits).for_each(|(plane, bits)| *plane |= bits),
        [low, high] => {
            for ((low, high), bits) in low.iter_mut().zip(high).zip(bits) {
                *high ^= *low & bits;
                *low ^= bits;
            }
        }
        _ => {
            for (at, mut carry) in bits.enumerate() {
                for plane in &mut *planes {
                    let Some(word) = plane.get_mut(at) else { break };
                    (*word, carry) = (*word ^ carry, *word & carry);
                }
            }
        }
    }
}

/// The documents of lists by how many lists have them.
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
