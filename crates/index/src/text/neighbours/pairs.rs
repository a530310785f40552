//! Chooses the pairs of words that have lists, and collects their documents.

use rustc_hash::FxHashMap;

use super::{
    gathering::Gathering,
    lists::DocumentGaps,
    sketch::{FrequentPairs, Sketch, hash},
    stream::Slot,
    words::FrequentWords,
};
use crate::Result;

/// The cache of the pairs within two words has two to this power of slots, and this many pairs.
const TOLD_BITS: u32 = 18;
const MOST_TOLD: usize = 1 << 19;
/// Flag of the pair that is the two words themselves.
const SELF: u32 = 1 << 31;

/// Counts the pairs of frequent words of a document.
pub(super) fn count(sketch: &mut Sketch, slots: &[Slot]) {
    for two in slots.windows(2) {
        if let Some((first, second, true)) = two[0].words(two[1]) {
            sketch.add(first, second);
        }
    }
}

/// A pair with a list.
pub(super) struct NeighbourPair {
    /// The terms of its words.
    pub terms: (u32, u32),
    /// The document frequency of the rarer word.
    pub rarer: u32,
    /// What the list saves: the number of documents in which positions would be read, or the equivalent cost.
    pub spared: u32,
    /// The number of occurrences as two whole words.
    pub exact: u32,
    /// The documents that contain it; `None` if the list was dropped.
    pub docs: Option<DocumentGaps>,
}

/// Collects the documents of pairs.
pub(super) struct PairsBuilder<'w> {
    words: &'w FrequentWords,
    often: FrequentPairs,
    complete: u32,
    told: PairCache,
    numbers: FxHashMap<(u32, u32), u32>,
    pairs: Vec<(u32, u32)>,
    exact: Vec<u32>,
    gathering: Gathering,
}

impl<'w> PairsBuilder<'w> {
    /// Collects the pairs that are in `often`, and all pairs of two words of which each is in more than
    /// `complete` documents.
    pub fn new(words: &'w FrequentWords, often: FrequentPairs, complete: u32) -> Self {
        Self {
            words,
            often,
            complete,
            told: PairCache::new(),
            numbers: FxHashMap::default(),
            pairs: Vec::new(),
            exact: Vec::new(),
            gathering: Gathering::new(),
        }
    }

    /// Takes the next document.
    pub fn add(&mut self, doc: u32, slots: &[Slot]) {
        if self.gathering.is_full() {
            return;
        }
        for two in slots.windows(2) {
            let Some((first, second, is_exact)) = two[0].words(two[1]) else { continue };
            let range = match self.told.get(first, second) {
                Some(range) => range,
                None => self.tell(first, second),
            };
            for &pair in self.told.pairs(range) {
                let number = pair & !SELF;
                self.gathering.add(number, doc);
                if is_exact && pair != number {
                    self.exact[number as usize] += 1;
                }
            }
        }
    }

    /// Finds the pairs with lists within two adjacent words, the first of which ends with `first` and the
    /// second of which begins with `second`; caches them.
    fn tell(&mut self, first: u32, second: u32) -> (u32, u32) {
        let start = self.told.begin();
        for a in self.words.ends(first) {
            let is_complete = self.words.documents(a) > self.complete;
            for b in self.words.begins(second) {
                if self.often.has(a, b) || is_complete && self.words.documents(b) > self.complete {
                    let number = *self.numbers.entry((a, b)).or_insert_with(|| {
                        self.pairs.push((a, b));
                        self.exact.push(0);
                        self.gathering.begin(self.words.cost(a, b))
                    });
                    let is_self = (a, b) == (first, second);
                    self.told.push(number | if is_self { SELF } else { 0 });
                }
            }
        }
        self.told.end(first, second, start)
    }

    /// The pairs, ascending by terms; `None` if there were too many.
    pub fn finish(self) -> Result<Option<Vec<NeighbourPair>>> {
        let words = self.words;
        let Some(docs) = self.gathering.finish()? else { return Ok(None) };
        let all = self.pairs.into_iter().zip(self.exact).zip(docs);
        let mut made: Vec<NeighbourPair> = all
            .map(|(((a, b), exact), docs)| NeighbourPair {
                terms: (words.term(a), words.term(b)),
                rarer: words.documents(a).min(words.documents(b)),
                spared: words.cost(a, b),
                exact,
                docs,
            })
            .collect();
        // The sketch has false positives: pairs that never occur as whole words.
        made.retain(|pair| pair.exact > 0 || pair.rarer > self.complete);
        made.sort_unstable_by_key(|pair| pair.terms);
        Ok(Some(made))
    }
}

/// A cache of the pairs within two words: most look-ups are of a few frequent words.
struct PairCache {
    /// The two words, and the start and number of their pairs.
    entries: Vec<(u32, u32)>,
    pairs: Vec<u32>,
}

impl PairCache {
    /// Each word has at most eight endings or beginnings, so there are at most 64 pairs.
    const COUNT_BITS: u32 = 8;

    fn new() -> Self {
        Self { entries: vec![(0, 0); 1 << TOLD_BITS], pairs: Vec::new() }
    }

    /// Never 0, because the numbers of words begin with 1.
    #[inline]
    fn key(first: u32, second: u32) -> u32 {
        first << Slot::WORD_BITS | second
    }

    #[inline]
    fn get(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        let (key, range) = self.entries[hash(first, second, TOLD_BITS)];
        let (start, count) = (range >> Self::COUNT_BITS, range & ((1 << Self::COUNT_BITS) - 1));
        (key == Self::key(first, second)).then_some((start, start + count))
    }

    #[inline]
    fn pairs(&self, (start, end): (u32, u32)) -> &[u32] {
        &self.pairs[start as usize..end as usize]
    }

    fn begin(&mut self) -> u32 {
        if self.pairs.len() > MOST_TOLD {
            self.pairs.clear();
            self.entries.fill((0, 0));
        }
        self.pairs.len() as u32
    }

    fn push(&mut self, pair: u32) {
        self.pairs.push(pair);
    }

    fn end(&mut self, first: u32, second: u32, start: u32) -> (u32, u32) {
        let end = self.pairs.len() as u32;
        let range = start << Self::COUNT_BITS | (end - start);
        self.entries[hash(first, second, TOLD_BITS)] = (Self::key(first, second), range);
        (start, end)
    }
}
