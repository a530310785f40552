//! Ready-made unions: the documents of pieces that very many words contain.
//!
//! `and` stands in thousands of words; uniting their postings when asked takes milliseconds. For
//! the pieces whose union is dearest the documents are kept as bits, and how often the piece occurs
//! in them in `union_counts`.
//!
//! ```text
//! TUNI := count:u32 (piece:u8{7} length:u8){count} words:u64{ceil(documents / 64)}{count}
//! ```
//! Pieces are up to 7 bytes, padded with zeros, ascending. How many there are is a share of the
//! postings' bytes, so that the index stays small.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    atoms::{AtomKind, atoms},
    offsets::Offsets,
    postings::{Postings, is_bits},
    union_counts::{self, PieceCounts, UNION_COUNTS, UnionCountsWriter},
    vocabulary::partition,
};
use crate::{
    Bitmap, DocSet, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::{Stored, read_u64},
};

/// The section.
pub(crate) const UNIONS: SectionTag = SectionTag(*b"TUNI");
/// Segments of fewer documents answer any union quickly.
const MIN_DOCUMENTS: u32 = 1 << 15;
/// Longest piece, in bytes and in code points.
const MAX_PIECE_BYTES: usize = 7;
const MAX_PIECE_CHARS: usize = 4;
/// Unions take at most one in this many bytes of the postings.
const SHARE: usize = 12;
/// Opening a term costs about as much as this many postings.
const TERM_COST: u64 = 60;
/// A piece that is itself a frequent word is asked for more often than others.
const FREQUENT_WORD_WEIGHT: u64 = 4;
/// A union cheaper than one in this many documents is not worth its bytes.
const MIN_COST_SHARE: u64 = 8;
/// So many unions are made at a time: each needs a byte and a bit a document meanwhile.
const UNITED_AT_ONCE: usize = 64;

const ENTRY_BYTES: usize = 8;

/// A piece with its length in the last byte, ordered as its bytes.
type PieceKey = u64;

fn piece_key(piece: &[u8]) -> Option<PieceKey> {
    if piece.len() > MAX_PIECE_BYTES {
        return None;
    }
    let mut key = [0; ENTRY_BYTES];
    key[..piece.len()].copy_from_slice(piece);
    key[ENTRY_BYTES - 1] = piece.len() as u8;
    Some(u64::from_be_bytes(key))
}

/// Weighs pieces while terms pass by, and unites the dearest at the end.
pub(crate) struct UnionsWriter {
    doc_count: u32,
    costs: FxHashMap<PieceKey, u64>,
    frequent: FxHashSet<PieceKey>,
    words: Vec<(u32, Box<[u8]>)>,
    term: u32,
}

impl UnionsWriter {
    /// For a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        Self {
            doc_count,
            costs: FxHashMap::default(),
            frequent: FxHashSet::default(),
            words: Vec::new(),
            term: 0,
        }
    }

    /// Weighs the pieces of the next term.
    pub fn push(&mut self, term: &[u8], docs: &[u32]) {
        let number = self.term;
        self.term += 1;
        let Some(word) = std::str::from_utf8(term).ok().filter(|_| self.doc_count >= MIN_DOCUMENTS)
        else {
            return;
        };
        if atoms(word).next().is_none_or(|(kind, _)| kind != AtomKind::Word) {
            return;
        }
        let cost = TERM_COST + cost_of_uniting(docs.len(), self.doc_count);
        if is_bits(docs.len(), self.doc_count) {
            self.frequent.extend(piece_key(term));
        }
        for_each_piece(word, |key, _| *self.costs.entry(key).or_default() += cost);
        self.words.push((number, term.into()));
    }

    /// Writes the section: `records` and `offsets` are the finished postings.
    pub fn finish(
        self,
        id: u32,
        records: &[u8],
        offsets: &Offsets,
        out: &mut SectionWriter,
    ) -> Result<()> {
        let pieces = self.dearest(records.len());
        if pieces.is_empty() {
            return Ok(());
        }
        let mut section = (pieces.len() as u32).to_le_bytes().to_vec();
        pieces.iter().for_each(|piece| section.extend_from_slice(&piece.to_be_bytes()));
        let mut counts = UnionCountsWriter::default();
        for some in pieces.chunks(UNITED_AT_ONCE) {
            for (union, times) in self.unite(some, records, offsets)? {
                counts.push(&union, &times);
                let words = union.words().iter();
                words.for_each(|word| section.extend_from_slice(&word.to_le_bytes()));
            }
        }
        out.add(UNIONS, id, &section);
        out.add(UNION_COUNTS, id, &counts.finish());
        Ok(())
    }

    /// The documents of each of the pieces (ascending), and how often it begins in them.
    fn unite(
        &self,
        pieces: &[PieceKey],
        records: &[u8],
        offsets: &Offsets,
    ) -> Result<Vec<(Bitmap, PieceCounts)>> {
        let empty = || (Bitmap::new(self.doc_count), PieceCounts::new(self.doc_count));
        let mut unions: Vec<_> = pieces.iter().map(|_| empty()).collect();
        let mut slots: Vec<(usize, u32)> = Vec::new();
        for (term, word) in &self.words {
            let Ok(word) = std::str::from_utf8(word) else { continue };
            slots.clear();
            for_each_piece(word, |key, times| {
                slots.extend(pieces.binary_search(&key).map(|slot| (slot, times)));
            });
            if slots.is_empty() {
                continue;
            }
            Postings::open(records, offsets.start(*term), self.doc_count)?.for_each(
                |doc, tf| {
                    for &(slot, times) in &slots {
                        let (union, counts) = &mut unions[slot];
                        union.insert(doc);
                        counts.add(doc, tf.saturating_mul(times));
                    }
                },
            )?;
        }
        Ok(unions)
    }

    fn dearest(&self, postings_bytes: usize) -> Vec<PieceKey> {
        let union_bytes = self.doc_count.div_ceil(64) as usize * 8;
        let most = postings_bytes / SHARE / union_bytes.max(1);
        let least = u64::from(self.doc_count) / MIN_COST_SHARE;
        let dear = self.costs.iter().filter(|(_, cost)| **cost >= least);
        let weight = |piece| if self.frequent.contains(piece) { FREQUENT_WORD_WEIGHT } else { 1 };
        let dear = dear.map(|(piece, &cost)| (cost.saturating_mul(weight(piece)), *piece));
        let mut dear: Vec<(u64, PieceKey)> = dear.collect();
        dear.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        dear.truncate(most);
        let mut pieces: Vec<PieceKey> = dear.into_iter().map(|(_, piece)| piece).collect();
        pieces.sort_unstable();
        pieces
    }
}

/// What uniting a term's documents costs, in postings: bits are united 64 at a step.
fn cost_of_uniting(df: usize, doc_count: u32) -> u64 {
    if is_bits(df, doc_count) { u64::from(doc_count.div_ceil(64)) } else { df as u64 }
}

/// Visits each distinct piece of a word once, with how often it begins in the word.
fn for_each_piece(word: &str, mut visit: impl FnMut(PieceKey, u32)) {
    let mut seen: Vec<PieceKey> = Vec::new();
    for (start, _) in word.char_indices() {
        let ends = word[start..].char_indices().skip(1).map(|(at, _)| at);
        let ends = ends.chain([word.len() - start]).take(MAX_PIECE_CHARS);
        seen.extend(ends.filter_map(|end| piece_key(&word.as_bytes()[start..start + end])));
    }
    seen.sort_unstable();
    seen.chunk_by(|a, b| a == b).for_each(|run| visit(run[0], run.len() as u32));
}

/// The ready-made unions of a text index.
#[derive(Clone)]
pub(crate) struct Unions {
    section: Option<Slice>,
    counts: Option<Stored>,
    count: usize,
    doc_count: u32,
}

impl Unions {
    /// Opens the unions of the text index `id`, if it has any.
    pub fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Self> {
        let Some(section) = sections.get(UNIONS, id) else {
            return Ok(Self { section: None, counts: None, count: 0, doc_count });
        };
        let count = crate::bytes::read_u32(section, 0)? as usize;
        let union_bytes = doc_count.div_ceil(64) as usize * 8;
        let expected = count.checked_mul(ENTRY_BYTES + union_bytes).and_then(|b| b.checked_add(4));
        if expected != Some(section.len()) {
            return Err(crate::IndexError::corrupt("the unions' size"));
        }
        let counts = Some(sections.require_stored(UNION_COUNTS, id)?.clone());
        Ok(Self { section: Some(section.clone()), counts, count, doc_count })
    }

    /// Whether the documents of the piece were kept.
    pub fn has(&self, piece: &str) -> bool {
        self.index_of(piece).is_some()
    }

    fn index_of(&self, piece: &str) -> Option<usize> {
        let section = self.section.as_ref()?;
        let wanted = piece_key(piece.as_bytes())?;
        let entry = |index: usize| {
            let bytes = section.get(4 + index * ENTRY_BYTES..)?.first_chunk()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let index = partition(0, self.count, |index| entry(index).is_some_and(|key| key < wanted));
        (index < self.count && entry(index) == Some(wanted)).then_some(index)
    }

    /// Visits the documents with how often the piece occurs in them; false if they were not kept.
    /// Those outside `among` may be left out.
    pub fn occurrences(
        &self,
        piece: &str,
        among: Option<&DocSet>,
        visit: &mut dyn FnMut(u32, u32),
    ) -> Result<bool> {
        let (Some(index), Some(counts)) = (self.index_of(piece), &self.counts) else {
            return Ok(false);
        };
        match self.union(index) {
            Some(union) => {
                union_counts::for_each(counts, index, &union, among, visit).map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// The documents that hold a word that contains the piece, if they were kept.
    pub fn get(&self, piece: &str) -> Option<Bitmap> {
        self.union(self.index_of(piece)?)
    }

    fn union(&self, index: usize) -> Option<Bitmap> {
        let section = self.section.as_ref()?;
        let union_bytes = self.doc_count.div_ceil(64) as usize * 8;
        let start = 4 + self.count * ENTRY_BYTES + index * union_bytes;
        let words = section.get(start..start + union_bytes)?.chunks_exact(8);
        Some(Bitmap::from_words(self.doc_count, words.map(|word| read_u64(word, 0).unwrap_or(0))))
    }
}
