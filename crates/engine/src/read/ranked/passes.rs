//! Walks over the documents of a tier that can still be among the top k.

use std::ops::ControlFlow;

use remora_index::{Bitmap, DocSet};

use super::{
    neighbours::Neighbours,
    tiers::{CHUNK, Tiers, copy_words, words_of},
};

/// The number of listed documents between two calls of `look`. Documents that are no list are walked in chunks.
const CHUNK_DOCS: usize = if cfg!(test) { 4 } else { 256 };

/// A part of the documents of a tier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TierSelection {
    /// All documents.
    Every,
    /// The documents with words in a field other than the longest.
    With,
    /// The documents with words in the longest field only.
    Without,
}

/// A walk over some documents of a tier.
pub(super) struct Pass<'p> {
    pub tiers: &'p Tiers<'p>,
    /// The number of words that the documents have.
    pub count: usize,
    /// The documents to which the walk is restricted; `None` for no restriction.
    pub among: Option<&'p DocSet>,
    pub deleted: Option<&'p Bitmap>,
    /// The words in each field but the longest.
    pub levels: &'p [Tiers<'p>],
    pub part: TierSelection,
    /// Bounds of the runs of documents, if lists tell.
    pub neighbours: Option<&'p Neighbours>,
}

/// What a document must have to reach the threshold, from some document on.
#[derive(Default)]
pub(super) struct Needed {
    /// One of these words.
    pub words: Vec<usize>,
    /// At least so many words in the only field that is not the longest.
    pub least: usize,
    /// A run of at least so many words.
    pub run: u32,
    /// The same for documents with `least` words in that field, with one more, and so on; empty if that is not known.
    pub runs: Vec<u32>,
    /// The threshold for which the rest was found.
    pub threshold: Option<i64>,
}

impl Pass<'_> {
    /// Calls `visit` with the documents in ascending order until it breaks. From time to time calls `look`, which says
    /// what the documents from a given one on must have, or breaks if none of them can win.
    pub fn run(
        &self,
        mut look: impl FnMut(u32, &mut Needed) -> ControlFlow<()>,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let mut needed = Needed::default();
        if let Some(docs) = self.listed() {
            for chunk in docs.chunks(CHUNK_DOCS) {
                let first = chunk.first().copied().unwrap_or(0);
                if look(first, &mut needed).is_break() {
                    return;
                }
                let mut asked = chunk.iter().filter(|&&doc| self.is_asked(doc, &needed));
                if asked.try_for_each(|&doc| visit(doc)).is_break() {
                    return;
                }
            }
            return;
        }
        let words = self.tiers.documents().div_ceil(64) as usize;
        let mut fields = FieldWords::new(self.levels);
        let (mut found, mut mask) = ([0; CHUNK], [0; CHUNK]);
        for start in (0..words).step_by(CHUNK) {
            if look(start as u32 * 64, &mut needed).is_break() {
                return;
            }
            let found = &mut found[..CHUNK.min(words - start)];
            self.find(start, &needed, &mut fields, found, &mut mask);
            for (at, word) in (start as u32..).zip(found) {
                while *word != 0 {
                    if visit(at * 64 + word.trailing_zeros()).is_break() {
                        return;
                    }
                    *word &= *word - 1;
                }
            }
        }
    }

    /// A list that contains all documents of the walk, if there is a short one.
    fn listed(&self) -> Option<std::borrow::Cow<'_, [u32]>> {
        if let Some(list) = self.tiers.list(self.count) {
            return Some(list.into());
        }
        if let Some(DocSet::List(docs)) = self.among {
            return Some(docs.into());
        }
        match (self.part, self.levels) {
            (TierSelection::With, [only]) => only.listed(1).map(Into::into),
            _ => None,
        }
    }

    /// Whether a listed document belongs to the walk.
    fn is_asked(&self, doc: u32, needed: &Needed) -> bool {
        let is_needed = |word: &usize| self.tiers.has_word(*word, doc);
        let may_run = |it: &Neighbours| needed.run < 2 || it.longest_of_all(doc) >= needed.run;
        self.is_of_tier(doc)
            && self.neighbours.is_none_or(may_run)
            && (needed.words.len() >= self.tiers.words() || needed.words.iter().any(is_needed))
    }

    /// Whether a document belongs to the walk, whatever it must have to reach the threshold.
    #[inline]
    pub fn is_of_tier(&self, doc: u32) -> bool {
        let has_fields = || self.levels.iter().any(|level| level.has_any(doc));
        (self.part == TierSelection::Every || has_fields() == (self.part == TierSelection::With))
            && self.tiers.has(self.count, doc)
            && self.among.is_none_or(|among| among.contains(doc))
            && self.deleted.is_none_or(|deleted| !deleted.contains(doc))
    }

    /// Finds the documents of a chunk, 64 in each word of `found`. `mask` is a buffer.
    fn find(
        &self,
        start: usize,
        needed: &Needed,
        fields: &mut FieldWords<'_>,
        found: &mut [u64],
        mask: &mut [u64; CHUNK],
    ) {
        self.tiers.words_with(self.count, start, found);
        if let Some(among) = self.among {
            copy_words(words_of(among), start, mask);
            keep(found, mask);
        }
        if found.iter().all(|word| *word == 0) {
            return;
        }
        if let Some(deleted) = self.deleted {
            copy_words(deleted.words(), start, mask);
            remove(found, mask);
        }
        match self.part {
            TierSelection::Every => {}
            TierSelection::With if self.levels.len() == 1 && needed.runs.len() > 1 => {
                self.find_by_field(start, needed, found, mask);
            }
            TierSelection::With => {
                fields.at_least(needed.least.max(1), start, mask);
                keep(found, mask);
            }
            TierSelection::Without => {
                fields.at_least(1, start, mask);
                remove(found, mask);
            }
        }
        if let Some(neighbours) = self.neighbours.filter(|_| needed.run > 1) {
            neighbours.keep(needed.run, start, found);
        }
        if needed.words.len() < self.tiers.words() {
            self.tiers.words_of_any(&needed.words, start, mask);
            keep(found, mask);
        }
    }
}

impl Pass<'_> {
    /// Keeps the documents of a chunk whose runs are long enough for their words in the only other field.
    fn find_by_field(
        &self,
        start: usize,
        needed: &Needed,
        found: &mut [u64],
        mask: &mut [u64; CHUNK],
    ) {
        let mut kept = [0; CHUNK];
        let Some(mask) = mask.get_mut(..found.len()) else { return };
        for (words, &run) in (needed.least.max(1)..).zip(&needed.runs) {
            let Some(level) = self.levels.first() else { return };
            level.words_with(words, start, mask);
            keep(mask, found);
            if let Some(neighbours) = self.neighbours.filter(|_| run > 1) {
                neighbours.keep(run, start, mask);
            }
            kept.iter_mut().zip(&*mask).for_each(|(kept, word)| *kept |= word);
        }
        keep(found, &kept);
    }
}

fn keep(found: &mut [u64], mask: &[u64]) {
    found.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
}

fn remove(found: &mut [u64], mask: &[u64]) {
    found.iter_mut().zip(mask).for_each(|(word, mask)| *word &= !mask);
}

/// Tells chunk by chunk which documents have words in fields.
struct FieldWords<'l> {
    levels: &'l [Tiers<'l>],
    /// For each level that is lists, the rest of its list.
    lists: Vec<Option<std::vec::IntoIter<u32>>>,
}

impl<'l> FieldWords<'l> {
    fn new(levels: &'l [Tiers<'l>]) -> Self {
        let lists = levels.iter().map(|level| level.listed(1).map(Vec::into_iter)).collect();
        Self { levels, lists }
    }

    /// The documents of a chunk that have at least so many words. Chunks are asked for in ascending order.
    fn at_least(&mut self, least: usize, start: usize, out: &mut [u64; CHUNK]) {
        let least = if self.levels.len() == 1 { least } else { 1 };
        out.fill(0);
        for (level, list) in self.levels.iter().zip(&mut self.lists) {
            match list {
                None => {
                    let mut of_level = [0; CHUNK];
                    level.words_at_least(least, start, &mut of_level);
                    out.iter_mut().zip(of_level).for_each(|(out, word)| *out |= word);
                }
                Some(list) => add_listed(list, start, out),
            }
        }
    }
}

/// Adds the documents of a list that are in the chunk. Earlier ones are skipped.
fn add_listed(list: &mut std::vec::IntoIter<u32>, start: usize, out: &mut [u64; CHUNK]) {
    while let Some(&doc) = list.as_slice().first() {
        let at = doc as usize / 64;
        if at >= start + CHUNK {
            break;
        }
        if let Some(word) = at.checked_sub(start).and_then(|at| out.get_mut(at)) {
            *word |= 1 << (doc % 64);
        }
        list.next();
    }
}
