//! Writes the lists of neighbours once all postings are written.

use std::{cmp::Reverse, ops::Range};

use super::{
    KEYS, LISTS_OFFSETS, MOST_CHARACTERS, NEIGHBOUR_LISTS, is_word,
    lists::Growing,
    runs::{Run, Runs},
    stream::Stream,
    two_characters,
    words::{FrequentWords, Pair, pairs},
};
use crate::{
    Result, SectionWriter, Slice,
    bytes::Stored,
    text::{
        offsets::{Offsets, OffsetsWriter},
        postings::{Decoded, positions},
    },
};

/// In segments of fewer documents there is nothing that reading positions is dear for.
pub(crate) const MIN_DOCUMENTS: u32 = 1 << 13;
/// Characters are frequent where more than one in this many documents holds them.
const FREQUENT_CHARACTERS_SHARE: u32 = 400;
/// Words are frequent where more than one in this many documents holds them.
const FREQUENT_WORD_SHARE: u32 = 400;
/// A run has a list where one in this many documents holds it.
const RUN_SHARE: u32 = 60_000;
/// A pair has a list where one in this many documents holds it as two whole words.
const PAIR_SHARE: u32 = 12_000;
/// Lists take at most one in this many bytes of postings and positions.
const SHARE: usize = 6;
/// What an entry takes beside its list.
const ENTRY_BYTES: usize = 10;
/// More ordinals than this are not looked at: a segment of so much text has no lists.
const MOST_ORDINALS: u64 = 1 << 26;
/// Longer words are in no pairs: each word is compared with all of its ends that are so long.
const MOST_WORD_BYTES: usize = 32;

/// Notes what is frequent while terms pass by.
pub(crate) struct NeighboursWriter {
    doc_count: u32,
    term: u32,
    /// One more than the last ordinal of each document.
    ordinals: Vec<u32>,
    words: Vec<u32>,
    characters: Vec<u32>,
}

impl NeighboursWriter {
    /// For a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        let documents = if doc_count < MIN_DOCUMENTS { 0 } else { doc_count as usize };
        let ordinals = vec![0; documents];
        Self { doc_count, term: 0, ordinals, words: Vec::new(), characters: Vec::new() }
    }

    /// Takes the next term.
    pub fn push(&mut self, term: &[u8], postings: &Decoded) {
        let number = self.term;
        self.term += 1;
        if self.ordinals.is_empty() {
            return;
        }
        postings.for_each_document(|doc, places| {
            let last = positions(places).last().unwrap_or(0);
            if let Some(ordinals) = self.ordinals.get_mut(doc as usize) {
                *ordinals = (*ordinals).max(last / 2 + 1);
            }
        });
        let df = postings.docs.len() as u32;
        let Ok(term) = std::str::from_utf8(term) else { return };
        if df > self.doc_count / FREQUENT_CHARACTERS_SHARE && two_characters(term).is_some() {
            self.characters.push(number);
        }
        let is_frequent = df > self.doc_count / FREQUENT_WORD_SHARE;
        if is_frequent && term.len() <= MOST_WORD_BYTES && is_word(term) {
            self.words.push(number);
        }
    }

    /// Writes the sections of the text index `id`: `words` are all words and separators, `records` and `offsets` the
    /// finished postings with their `positions`.
    pub fn finish<'a>(
        self,
        id: u32,
        words: impl Iterator<Item = &'a [u8]> + Clone,
        (records, offsets): (&[u8], &Offsets),
        positions: Slice,
        out: &mut SectionWriter,
    ) -> Result<()> {
        if self.ordinals.is_empty() {
            return Ok(());
        }
        let all: u64 = self.ordinals.iter().map(|&ordinals| u64::from(ordinals)).sum();
        let most = (records.len() + positions.len()) / SHARE;
        let mut lists = Lists::new(self.doc_count, most);
        let positions = Stored::Memory(positions);
        if all <= MOST_ORDINALS {
            let frequent = FrequentWords::new(self.words, words);
            let mut stream = Stream::new(&self.ordinals);
            let mut decoded = Decoded::default();
            let mut characters = self.characters.iter().copied().peekable();
            for term in 0..self.term {
                let is_frequent = characters.next_if_eq(&term).is_some();
                if is_frequent || frequent.has(term) {
                    stream.put(term, (records, offsets), &positions, &mut decoded)?;
                }
            }
            let least = (self.doc_count / PAIR_SHARE).max(2);
            lists.push_pairs(&pairs(&stream, &frequent, least))?;
            drop(frequent);
            push_runs(&mut stream, &self.characters, self.term, self.doc_count, &mut lists)?;
        }
        lists.finish(id, out);
        Ok(())
    }
}

fn push_runs(
    stream: &mut Stream,
    characters: &[u32],
    terms: u32,
    doc_count: u32,
    lists: &mut Lists,
) -> Result<()> {
    let frequent = doc_count / FREQUENT_CHARACTERS_SHARE + 1;
    let least = (doc_count / RUN_SHARE).max(2);
    let mut runs = Runs::of_terms(stream, characters);
    for _ in 3..=MOST_CHARACTERS {
        let number = u64::from(terms) + u64::from(lists.entries());
        let (false, Ok(number)) = (runs.is_empty(), u32::try_from(number)) else { break };
        let longer = runs.longer(stream, least);
        let kept = lists.push_runs(&longer)?;
        let kept: Vec<&Run> = kept.into_iter().filter_map(|at| longer.get(at)).collect();
        runs = runs.extended(stream, &kept, number, frequent);
    }
    Ok(())
}

/// The lists as they are written.
struct Lists {
    doc_count: u32,
    /// Most bytes of all.
    most: usize,
    keys: Vec<u8>,
    offsets: OffsetsWriter,
    lists: Vec<u8>,
    entries: u32,
}

impl Lists {
    fn new(doc_count: u32, most: usize) -> Self {
        let (keys, lists) = (Vec::new(), Vec::new());
        Self { doc_count, most, keys, offsets: OffsetsWriter::default(), lists, entries: 0 }
    }

    fn entries(&self) -> u32 {
        self.entries
    }

    fn push(&mut self, left: u32, right: u32, list: &[u8]) -> Result<()> {
        self.keys.extend_from_slice(&left.to_le_bytes());
        self.keys.extend_from_slice(&right.to_le_bytes());
        self.lists.extend_from_slice(list);
        self.entries += 1;
        self.offsets.push(self.lists.len(), "4 GiB of neighbours")
    }

    /// Those that are most often asked for, a byte of them considered.
    fn push_pairs(&mut self, pairs: &[Pair]) -> Result<()> {
        let written = self.written(pairs.iter().map(|pair| &pair.docs))?;
        // Documents of whole words for each byte, as a whole number that is the same everywhere.
        let worth = |at: usize| u64::from(pairs[at].exact) * 1024 / written.cost(at) as u64;
        for at in written.best(worth, self.most / 3 * 2) {
            let (left, right) = pairs[at].terms;
            self.push(left, right, written.list(at))?;
        }
        Ok(())
    }

    /// Those that are in most documents, if there is no room for all: which ones.
    fn push_runs(&mut self, runs: &[Run]) -> Result<Vec<usize>> {
        let written = self.written(runs.iter().map(|run| &run.docs))?;
        let used = self.lists.len() + self.entries as usize * ENTRY_BYTES;
        let worth = |at: usize| u64::from(runs[at].docs.count());
        let kept = written.best(worth, self.most.saturating_sub(used));
        for &at in &kept {
            self.push(runs[at].left, runs[at].right, written.list(at))?;
        }
        Ok(kept)
    }

    fn written<'a>(&self, lists: impl Iterator<Item = &'a Growing>) -> Result<Written> {
        let mut written = Written::default();
        for list in lists {
            list.write(self.doc_count, &mut written.bytes)?;
            written.ends.push(written.bytes.len());
        }
        Ok(written)
    }

    fn finish(self, id: u32, out: &mut SectionWriter) {
        out.add(KEYS, id, &self.keys);
        out.add(LISTS_OFFSETS, id, &self.offsets.finish());
        out.add(NEIGHBOUR_LISTS, id, &self.lists);
    }
}

/// Lists of which some are kept.
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

    /// The places, ascending, of the worthiest that take at most so many bytes together.
    fn best(&self, worth: impl Fn(usize) -> u64, mut most: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        order.sort_by_key(|&at| Reverse(worth(at)));
        order.retain(|&at| {
            let fits = self.cost(at) <= most;
            most -= if fits { self.cost(at) } else { 0 };
            fits
        });
        order.sort_unstable();
        order
    }
}
