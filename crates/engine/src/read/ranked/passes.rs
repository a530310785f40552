//! Walks over the documents of a tier that can still be among the top k.

use std::ops::ControlFlow;

use remora_index::{Bitmap, DocSet};

use super::tiers::{Tiers, word, words_of};

/// Words of 64 documents between two looks at what documents must have; fewer in tests, whose tables are small.
const CHUNK: usize = if cfg!(test) { 1 } else { 256 };
/// Documents of lists between two such looks.
const CHUNK_DOCS: usize = if cfg!(test) { 4 } else { 256 };

/// Which documents of a tier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TierSelection {
    /// All.
    Every,
    /// Those that have words in a field other than the longest.
    With,
    /// The others.
    Without,
}

/// What documents are walked over.
pub(super) struct Pass<'p> {
    pub tiers: &'p Tiers<'p>,
    /// How many words they have.
    pub count: usize,
    /// `None` for all.
    pub among: Option<&'p DocSet>,
    pub deleted: Option<&'p Bitmap>,
    /// The words in the fields other than the longest, field by field.
    pub levels: &'p [Tiers<'p>],
    pub part: TierSelection,
}

/// What a document must have to win, from some document on.
#[derive(Default)]
pub(super) struct Needed {
    /// One of these words.
    pub words: Vec<usize>,
    /// So many words in the only field that is not the longest.
    pub least: usize,
}

impl Pass<'_> {
    /// Calls `visit` with the documents, ascending, until it breaks. `look` tells now and then what documents from one
    /// on need, or breaks if none of them can win.
    pub fn run(
        &self,
        mut look: impl FnMut(u32, &mut Needed) -> ControlFlow<()>,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let mut needed = Needed::default();
        if let Some(docs) = self.listed() {
            for chunk in docs.chunks(CHUNK_DOCS) {
                let first = chunk.first().copied().unwrap_or(0);
                needed.words.clear();
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
        for start in (0..words).step_by(CHUNK) {
            needed.words.clear();
            if look(start as u32 * 64, &mut needed).is_break() {
                return;
            }
            for at in start..(start + CHUNK).min(words) {
                let mut found = self.word(at, &needed, &mut fields);
                while found != 0 {
                    if visit(at as u32 * 64 + found.trailing_zeros()).is_break() {
                        return;
                    }
                    found &= found - 1;
                }
            }
        }
    }

    /// A list in which all the documents are, if there is a short one.
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

    /// Whether a document of a list is one of them.
    fn is_asked(&self, doc: u32, needed: &Needed) -> bool {
        let is_needed = |word: &usize| self.tiers.has_word(*word, doc);
        self.is_of_tier(doc)
            && (needed.words.len() >= self.tiers.words() || needed.words.iter().any(is_needed))
    }

    /// Whether a document is one of them, whatever it needs to win.
    #[inline]
    pub fn is_of_tier(&self, doc: u32) -> bool {
        let has_fields = || self.levels.iter().any(|level| level.has_any(doc));
        (self.part == TierSelection::Every || has_fields() == (self.part == TierSelection::With))
            && self.tiers.has(self.count, doc)
            && self.among.is_none_or(|among| among.contains(doc))
            && self.deleted.is_none_or(|deleted| !deleted.contains(doc))
    }

    /// The documents among 64.
    #[inline]
    fn word(&self, at: usize, needed: &Needed, fields: &mut FieldWords<'_>) -> u64 {
        let mut found = self.tiers.with_word(self.count, at);
        if let Some(among) = self.among {
            found &= word(words_of(among), at);
        }
        if found == 0 {
            return 0;
        }
        if let Some(deleted) = self.deleted {
            found &= !word(deleted.words(), at);
        }
        match self.part {
            TierSelection::Every => {}
            TierSelection::With => found &= fields.at_least(needed.least.max(1), at),
            TierSelection::Without => found &= !fields.at_least(1, at),
        }
        if found != 0 && needed.words.len() < self.tiers.words() {
            found &= self.tiers.any_of(&needed.words, at);
        }
        found
    }
}

/// Which documents have words in fields, 64 after the other.
struct FieldWords<'l> {
    levels: &'l [Tiers<'l>],
    /// Of each level that is lists, what of it comes.
    lists: Vec<Option<std::vec::IntoIter<u32>>>,
}

impl<'l> FieldWords<'l> {
    fn new(levels: &'l [Tiers<'l>]) -> Self {
        let lists = levels.iter().map(|level| level.listed(1).map(Vec::into_iter)).collect();
        Self { levels, lists }
    }

    /// Asked for each 64 documents at most once, ascending.
    #[inline]
    fn at_least(&mut self, least: usize, at: usize) -> u64 {
        let least = if self.levels.len() == 1 { least } else { 1 };
        let mut any = 0;
        for (level, list) in self.levels.iter().zip(&mut self.lists) {
            any |= match list {
                None => level.at_least_word(least, at),
                Some(list) => next_word(list, at),
            };
        }
        any
    }
}

/// The documents of a list among the 64 at `at`; those before are passed over.
fn next_word(list: &mut std::vec::IntoIter<u32>, at: usize) -> u64 {
    let mut found = 0;
    while let Some(&doc) = list.as_slice().first() {
        let of = doc as usize / 64;
        if of > at {
            break;
        }
        if of == at {
            found |= 1 << (doc % 64);
        }
        list.next();
    }
    found
}
