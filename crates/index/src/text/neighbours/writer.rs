//! Writes the lists of neighbours once all postings are written.
//!
//! There are at most three passes over the documents (`stream`). The first counts pairs approximately, to
//! find how frequent a pair must be for the lists to fit in their budget. The second collects the documents
//! of those pairs. The third collects those of longer runs.

use std::{cmp::Reverse, ops::Range};

use super::{
    COMPLETE, KEYS, LISTS_OFFSETS, MOST_CHARACTERS, MOST_WORD_BYTES, NEIGHBOUR_LISTS, is_word,
    lists::{self, DocumentGaps},
    pairs::{self, NeighbourPair, PairsBuilder},
    runs::{self, CharacterRun, LongRunLists, TrigramLists},
    sketch::{FrequentPairs, Sketch},
    stream::{Needed, Occurrences, PostingsSource, Slot, Stream},
    two_characters,
    words::FrequentWords,
};
use crate::{
    Result, SectionWriter, Slice,
    bytes::Stored,
    text::{
        offsets::{Offsets, OffsetsWriter},
        postings::{Decoded, positions},
    },
};

/// Smaller segments have no lists: reading positions is cheap there.
pub(crate) const MIN_DOCUMENTS: u32 = 1 << 13;
/// Characters are frequent where more than one in this many documents holds them.
const FREQUENT_CHARACTERS_SHARE: u32 = 400;
/// Words are frequent where more than one in this many documents holds them.
const FREQUENT_WORD_SHARE: u32 = 400;
/// And more documents than this: reading the positions of fewer takes some 50 us, and most pairs contain such
/// a word.
const LEAST_FREQUENT_WORD: u32 = 1_000;
/// A run has a list if at least one in this many documents contains it.
const RUN_SHARE: u32 = 60_000;
/// A pair has a list if it occurs as two whole words at least once for each this many documents.
const PAIR_SHARE: u32 = 12_000;
/// Lists take at most one in this many bytes of postings and positions.
const SHARE: usize = 6;
/// And at most this many bytes, which bounds the memory while they are chosen.
const MOST_LIST_BYTES: usize = 48 << 20;
/// At most about this many pairs, and this many runs, are collected; each takes memory besides its list.
const MOST_LISTS: usize = 1 << 19;
/// If both words of a pair are in more than one in this many documents, the pair gets an entry, as far as a
/// part of the budget allows ("complete" pairs).
const COMPLETE_SHARE: u32 = 64;
/// Most words in complete pairs, the most frequent ones.
const MOST_COMPLETE: usize = 512;
/// One in this many bytes of the budget is for entries that exist only for completeness.
const COMPLETE_PART: usize = 6;
/// Such an entry has a list only if it is at most this long.
const SHORT_BYTES: usize = 48;
/// The size of an entry besides its list.
const ENTRY_BYTES: usize = 10;

/// Collects the frequent terms while all terms are written.
pub(crate) struct NeighboursWriter {
    doc_count: u32,
    term: u32,
    ordinals: Ordinals,
    /// The frequent words with their document frequencies.
    words: Vec<(u32, u32)>,
    characters: Vec<(u32, u32)>,
}

/// One more than the last ordinal of each document.
enum Ordinals {
    /// There are no lists.
    None,
    /// Set by the caller.
    Known(Vec<u32>),
    /// Computed from the postings of the terms so far.
    Seen(Vec<u32>),
}

impl NeighboursWriter {
    /// For a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        let ordinals = match doc_count {
            0..MIN_DOCUMENTS => Ordinals::None,
            _ => Ordinals::Seen(vec![0; doc_count as usize]),
        };
        Self { doc_count, term: 0, ordinals, words: Vec::new(), characters: Vec::new() }
    }

    /// Sets one more than the last ordinal of each document, so that it is not computed.
    pub fn know_ordinals(&mut self, ordinals: impl Iterator<Item = u32>) {
        if matches!(self.ordinals, Ordinals::Seen(_)) {
            self.ordinals = Ordinals::Known(ordinals.collect());
        }
    }

    /// Adds the next term.
    pub fn push(&mut self, term: &[u8], postings: &Decoded) {
        let number = self.term;
        self.term += 1;
        match &mut self.ordinals {
            Ordinals::None => return,
            Ordinals::Known(_) => {}
            Ordinals::Seen(ordinals) => postings.for_each_document(|doc, places| {
                let last = positions(places).last().unwrap_or(0);
                if let Some(ordinals) = ordinals.get_mut(doc as usize) {
                    *ordinals = (*ordinals).max(last / 2 + 1);
                }
            }),
        }
        let df = postings.docs.len() as u32;
        let as_characters = self.doc_count / FREQUENT_CHARACTERS_SHARE;
        let as_word = frequent_word(self.doc_count);
        if df <= as_characters.min(as_word) {
            return;
        }
        let Ok(term) = std::str::from_utf8(term) else { return };
        if df > as_characters && two_characters(term).is_some() {
            self.characters.push((number, df));
        }
        if df > as_word && term.len() <= MOST_WORD_BYTES && is_word(term) {
            self.words.push((number, df));
        }
    }

    /// Writes the sections of the text index `id`: `words` are all words and separators, `records` and `offsets` the
    /// finished postings with their `positions`, which were made of `occurrences`, if these are still there.
    pub fn finish<'a>(
        self,
        id: u32,
        words: impl Iterator<Item = &'a [u8]> + Clone,
        (records, offsets): (&[u8], &Offsets),
        (positions, occurrences): (Slice, Option<Occurrences<'_>>),
        out: &mut SectionWriter,
    ) -> Result<()> {
        let ordinals = match self.ordinals {
            Ordinals::None => return Ok(()),
            Ordinals::Known(ordinals) | Ordinals::Seen(ordinals) => ordinals,
        };
        let most = ((records.len() + positions.len()) / SHARE).min(MOST_LIST_BYTES);
        let mut lists = Lists::new(self.doc_count, most);
        let (frequent, mut terms) = FrequentWords::new(self.words, words);
        let symbols = self.characters.iter().zip(0..);
        terms.extend(symbols.map(|(&(term, _), number)| (term, Slot::characters(number))));
        let positions = Stored::Memory(positions);
        let source = PostingsSource { records, offsets, positions, terms, occurrences };
        if let Some(mut stream) = Stream::new(&ordinals, source) {
            let made = Making { frequent: &frequent, symbols: &self.characters, terms: self.term };
            made.write(&mut stream, &mut lists)?;
        }
        lists.finish(id, out);
        Ok(())
    }
}

/// A word is frequent if it is in more documents than this.
fn frequent_word(doc_count: u32) -> u32 {
    (doc_count / FREQUENT_WORD_SHARE).max(LEAST_FREQUENT_WORD)
}

/// The inputs of the lists.
struct Making<'m> {
    frequent: &'m FrequentWords,
    symbols: &'m runs::Symbols,
    /// How many terms there are.
    terms: u32,
}

impl Making<'_> {
    fn write(&self, stream: &mut Stream<'_>, lists: &mut Lists) -> Result<()> {
        let doc_count = lists.doc_count;
        let slots = stream.slots();
        let (mut of_words, mut of_runs) = (Sketch::new(slots), Sketch::new(slots));
        let (has_words, has_runs) = (!self.frequent.is_empty(), !self.symbols.is_empty());
        stream.for_each_in_any_order(Needed::Frequent, |_, slots| {
            if has_words {
                pairs::count(&mut of_words, slots);
            }
            if has_runs {
                runs::count(&mut of_runs, slots);
            }
        })?;
        let cost = |times: u32| ENTRY_BYTES + lists::estimate(times, doc_count);
        let floor = |share: u32| (doc_count / share).clamp(2, u32::from(u8::MAX)) as u8;
        let room = |bytes: usize| (bytes, MOST_LISTS);
        let (least_run, bytes) = of_runs.threshold(floor(RUN_SHARE), room(lists.most), cost);
        let for_words = (lists.most - bytes.min(lists.most)).max(lists.most / 3 * 2);
        let (least, bytes) = of_words.threshold(floor(PAIR_SHARE), room(for_words), cost);
        // Only frequent words have a number.
        let known = (doc_count / COMPLETE_SHARE).max(frequent_word(doc_count));
        let complete = self.frequent.all_above(known, MOST_COMPLETE);
        let mut pairs = PairsBuilder::new(self.frequent, of_words.often(least), complete);
        let rest = lists.most.saturating_sub(bytes);
        let (least, _) = of_runs.threshold(least_run, room(rest), cost);
        let mut threes = TrigramLists::new(self.symbols, of_runs.often(least));
        let frequent = of_runs.often(Self::frequent_run(doc_count).min(u32::from(u8::MAX)) as u8);
        drop((of_words, of_runs));
        stream.for_each(Needed::All, |doc, slots| {
            if has_words {
                pairs.add(doc, slots);
            }
            if has_runs {
                threes.add(doc, slots);
            }
        })?;
        if let Some(pairs) = pairs.finish()? {
            lists.push_pairs(&pairs, complete, for_words)?;
        }
        self.write_runs(stream, &threes.finish()?, frequent, lists)
    }

    /// The least number of documents of a frequent run.
    fn frequent_run(doc_count: u32) -> u32 {
        doc_count / FREQUENT_CHARACTERS_SHARE + 1
    }

    fn write_runs(
        &self,
        stream: &mut Stream<'_>,
        threes: &[CharacterRun],
        often: FrequentPairs,
        lists: &mut Lists,
    ) -> Result<()> {
        let number = |entry: u32| self.terms.saturating_add(entry);
        let frequent = Self::frequent_run(lists.doc_count);
        let least = (lists.doc_count / RUN_SHARE).max(2);
        let first = lists.entries;
        let kept = lists.push_runs(threes.iter())?;
        let kept = kept.iter().filter_map(|&at| threes.get(at));
        let kept = kept.zip(first..).map(|(run, entry)| (run, number(entry)));
        let mut longer = LongRunLists::new(self.symbols, kept, often, frequent);
        if longer.is_empty() {
            return Ok(());
        }
        stream.for_each(Needed::Characters, |doc, slots| longer.add(doc, slots))?;
        let mut longer = longer.finish()?;
        for characters in 4..=MOST_CHARACTERS {
            let runs = longer.take(characters, least);
            let first = lists.entries;
            let kept = lists.push_runs(runs.iter().map(|(_, run)| run))?;
            for (at, entry) in kept.into_iter().zip(first..) {
                if let Some((node, run)) = runs.get(at) {
                    longer.know(*node, run, number(entry));
                }
            }
        }
        Ok(())
    }
}

/// The lists being written.
struct Lists {
    doc_count: u32,
    /// The budget in bytes.
    most: usize,
    keys: Vec<u8>,
    offsets: OffsetsWriter,
    lists: Vec<u8>,
    entries: u32,
    /// All pairs of two words of which each is in more documents than this have an entry.
    complete: Option<u32>,
}

impl Lists {
    fn new(doc_count: u32, most: usize) -> Self {
        Self {
            doc_count,
            most,
            keys: Vec::new(),
            offsets: OffsetsWriter::default(),
            lists: Vec::new(),
            entries: 0,
            complete: None,
        }
    }

    fn push(&mut self, left: u32, right: u32, list: &[u8]) -> Result<()> {
        self.keys.extend_from_slice(&left.to_le_bytes());
        self.keys.extend_from_slice(&right.to_le_bytes());
        self.lists.extend_from_slice(list);
        self.entries += 1;
        self.offsets.push(self.lists.len(), "4 GiB of neighbours")
    }

    /// Adds the lists that save the most reading of positions per byte, and entries for the other pairs of two
    /// words that are in more than `complete` documents each, as far as they fit, the most frequent first; such
    /// an entry has a list only if that is short. `most` is the budget for both, in bytes.
    fn push_pairs(&mut self, pairs: &[NeighbourPair], complete: u32, most: usize) -> Result<()> {
        let written = self.written(pairs.iter().map(|pair| pair.docs.as_ref()))?;
        // An integer, so that the choice is the same on every machine.
        let worth = |at: usize| {
            let NeighbourPair { exact, spared, ref docs, .. } = pairs[at];
            if docs.is_none() {
                return 0;
            }
            (u64::from(exact) * u64::from(spared)).saturating_mul(256) / written.cost(at) as u64
        };
        let best = written.best(worth, most - most / COMPLETE_PART);
        let mut rest: usize = most - best.iter().map(|&at| written.cost(at)).sum::<usize>();
        let mut is_best = vec![false; pairs.len()];
        best.iter().for_each(|&at| is_best[at] = true);
        let mut others: Vec<usize> = (0..pairs.len()).filter(|&at| !is_best[at]).collect();
        others.retain(|&at| pairs[at].rarer > complete);
        others.sort_by_key(|&at| Reverse(pairs[at].rarer));
        let short = |at: usize| Some(written.list(at)).filter(|list| list.len() <= SHORT_BYTES);
        let mut above = complete;
        for &at in &others {
            let bytes = ENTRY_BYTES + short(at).map_or(0, <[u8]>::len);
            if bytes > rest {
                above = pairs[at].rarer;
                break;
            }
            rest -= bytes;
        }
        for (at, pair) in pairs.iter().enumerate() {
            let (left, right) = pair.terms;
            if is_best[at] {
                self.push(left, right, written.list(at))?;
            } else if pair.rarer > above {
                self.push(left, right, short(at).unwrap_or(&[]))?;
            }
        }
        self.complete = Some(above);
        Ok(())
    }

    /// Adds the lists of runs by the same measure, and returns the indexes of those added.
    fn push_runs<'r>(
        &mut self,
        runs: impl Iterator<Item = &'r CharacterRun> + Clone,
    ) -> Result<Vec<usize>> {
        let written = self.written(runs.clone().map(|run| Some(&run.docs)))?;
        let runs: Vec<&CharacterRun> = runs.collect();
        let used = self.lists.len() + self.entries as usize * ENTRY_BYTES;
        let worth = |at: usize| {
            let count = runs[at].docs.count();
            (u64::from(count) * u64::from(runs[at].spared)).saturating_mul(256)
                / written.cost(at) as u64
        };
        let kept = written.best(worth, self.most.saturating_sub(used));
        for &at in &kept {
            self.push(runs[at].left, runs[at].right, written.list(at))?;
        }
        Ok(kept)
    }

    /// Encodes the lists; an absent one is empty.
    fn written<'a>(
        &self,
        lists: impl Iterator<Item = Option<&'a DocumentGaps>>,
    ) -> Result<Written> {
        let mut written = Written::default();
        for list in lists {
            if let Some(list) = list {
                list.write(self.doc_count, &mut written.bytes)?;
            }
            written.ends.push(written.bytes.len());
        }
        Ok(written)
    }

    fn finish(self, id: u32, out: &mut SectionWriter) {
        if let Some(documents) = self.complete {
            out.add(COMPLETE, id, &documents.to_le_bytes());
        }
        out.add(KEYS, id, &self.keys);
        out.add(LISTS_OFFSETS, id, &self.offsets.finish());
        out.add(NEIGHBOUR_LISTS, id, &self.lists);
    }
}

/// Encoded lists, from which some are chosen.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Written {
    fn range(&self, at: usize) -> Range<usize> {
        at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]
    }

    fn list(&self, at: usize) -> &[u8] {
        &self.bytes[self.range(at)]
    }

    fn cost(&self, at: usize) -> usize {
        self.range(at).len() + ENTRY_BYTES
    }

    /// The indexes, ascending, of the lists of greatest worth that fit in `most` bytes together.
    fn best(&self, worth: impl Fn(usize) -> u64, mut most: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        order.sort_by_key(|&at| Reverse(worth(at)));
        order.retain(|&at| {
            let fits = self.cost(at) <= most && worth(at) > 0;
            most -= if fits { self.cost(at) } else { 0 };
            fits
        });
        order.sort_unstable();
        order
    }
}
