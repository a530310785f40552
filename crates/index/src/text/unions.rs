//! Precomputed unions: the documents of pieces that very many words contain.
//!
//! Thousands of words contain `and`; uniting their postings in a query takes milliseconds. The unions of the
//! most expensive pieces are stored as bitmaps, and the occurrence counts in `union_counts`.
//!
//! ```text
//! TUNI := count:u32 (piece:u8{7} length:u8){count} words:u64{ceil(documents / 64)}{count}
//! ```
//! Pieces are up to 7 bytes, padded with zeros, ascending. Their number is limited by a share of the size of
//! the postings, so that the index stays small.

use rustc_hash::FxHashMap;

use super::{
    atoms::{AtomKind, atoms},
    offsets::Offsets,
    pieces::{PieceKey, PieceSlots, Words, for_each_piece, piece_key, word_key},
    postings::{Postings, is_bits},
    sorted::partition,
    union_counts::{self, PieceCounts, UNION_COUNTS, UnionCountsWriter},
};
use crate::{
    Bitmap, DocSet, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::{Stored, read_u64},
};

/// The section.
pub(crate) const UNIONS: SectionTag = SectionTag(*b"TUNI");
/// In segments of fewer documents only frequent words are considered, which cost most. Weighing every piece
/// would make a stream of small merges slower than it saves.
const MIN_WEIGHED_DOCUMENTS: u32 = 1 << 15;
/// Unions take at most one in this many bytes of the postings.
const SHARE: usize = 11;
/// Opening a posting list costs about as much as reading this many postings.
const TERM_COST: u64 = 60;
/// A piece that is itself a frequent word is searched more often than others.
const FREQUENT_WORD_WEIGHT: u64 = 8;
/// Unions that cost less than one posting for each this many documents are not stored.
const MIN_COST_SHARE: u64 = 8;

const ENTRY_BYTES: usize = 8;

/// Collects all terms, then weighs the pieces and unites the most expensive ones.
pub(crate) struct UnionsWriter {
    doc_count: u32,
    /// Words that are themselves pieces and whose postings are bitmaps, with the number of their documents.
    frequent: FxHashMap<PieceKey, u64>,
    words: Words,
    term: u32,
}

impl UnionsWriter {
    /// A writer for a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        Self { doc_count, frequent: FxHashMap::default(), words: Words::default(), term: 0 }
    }

    /// Adds the next term.
    pub fn push(&mut self, term: &[u8], docs: &[u32]) {
        let number = self.term;
        self.term += 1;
        let any = is_bits(self.doc_count as usize, self.doc_count);
        let Some(word) = std::str::from_utf8(term).ok().filter(|_| any) else { return };
        if atoms(word).next().is_none_or(|(kind, _)| kind != AtomKind::Word) {
            return;
        }
        let cost = TERM_COST + cost_of_uniting(docs.len(), self.doc_count);
        if is_bits(docs.len(), self.doc_count) {
            self.frequent.extend(word_key(word).map(|key| (key, docs.len() as u64)));
        }
        self.words.push(word, number, u32::try_from(cost).unwrap_or(u32::MAX));
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
        let small = SmallPostings::new(&self, records, offsets)?;
        for holders in self.holders(&pieces) {
            let times = self.unite(&holders, &small, records, offsets)?;
            let union = times.documents();
            counts.push(&union, &times);
            union.words().iter().for_each(|word| section.extend_from_slice(&word.to_le_bytes()));
        }
        out.add(UNIONS, id, &section);
        out.add(UNION_COUNTS, id, &counts.finish());
        Ok(())
    }

    /// The terms that contain each of the pieces, with the number of occurrences.
    fn holders(&self, pieces: &[PieceKey]) -> Vec<Vec<(u32, u32)>> {
        let slots = PieceSlots::new(pieces);
        let mut holders: Vec<Vec<(u32, u32)>> = vec![Vec::new(); pieces.len()];
        self.words.for_each(|term, word| {
            for_each_piece(word, |key| {
                let Some(holders) = slots.get(key).and_then(|slot| holders.get_mut(slot)) else {
                    return;
                };
                match holders.last_mut() {
                    Some((last, times)) if *last == term => *times += 1,
                    _ => holders.push((term, 1)),
                }
            });
        });
        holders
    }

    /// Sums the occurrences of a piece in each document over the terms that contain it: one piece at a time,
    /// so that its counts stay in the cache. Most postings are read several times; that is cheaper.
    fn unite(
        &self,
        holders: &[(u32, u32)],
        small: &SmallPostings,
        records: &[u8],
        offsets: &Offsets,
    ) -> Result<PieceCounts> {
        let mut counts = PieceCounts::new(self.doc_count);
        for &(term, times) in holders {
            let entries = small.of(term);
            if !entries.is_empty() {
                entries.iter().for_each(|entry| counts.add(entry.doc(), entry.tf() * times));
                continue;
            }
            let postings = Postings::open(records, offsets.start(term), self.doc_count)?;
            postings.for_each(|doc, tf| counts.add(doc, tf.saturating_mul(times)))?;
        }
        Ok(counts)
    }

    fn dearest(&self, postings_bytes: usize) -> Vec<PieceKey> {
        let union_bytes = self.doc_count.div_ceil(64) as usize * 8;
        let most = postings_bytes / SHARE / union_bytes.max(1);
        let mut dear: Vec<(u64, PieceKey)> = match self.doc_count < MIN_WEIGHED_DOCUMENTS {
            true => self.frequent.iter().map(|(&piece, &docs)| (docs, piece)).collect(),
            false => self.weighed(),
        };
        dear.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        dear.truncate(most);
        let mut pieces: Vec<PieceKey> = dear.into_iter().map(|(_, piece)| piece).collect();
        pieces.sort_unstable();
        pieces
    }

    fn weighed(&self) -> Vec<(u64, PieceKey)> {
        let least = u64::from(self.doc_count) / MIN_COST_SHARE;
        let is_frequent = |piece: &PieceKey| self.frequent.contains_key(piece);
        let weight = |piece: &PieceKey| if is_frequent(piece) { FREQUENT_WORD_WEIGHT } else { 1 };
        let dear = self.words.dear_pieces(least).into_iter();
        dear.map(|(piece, cost)| (cost.saturating_mul(weight(&piece)), piece)).collect()
    }
}

/// Decoded postings of terms in few documents. They are decoded once because each belongs to several unions.
struct SmallPostings {
    /// The first posting of each term; and their end.
    starts: Vec<u32>,
    entries: Vec<Entry>,
}

/// The most postings that are kept decoded (64 MiB); those of later terms are decoded for each union.
const MOST_ENTRIES: usize = 1 << 24;

/// A posting packed into 32 bits: a document below 2^28 with fewer than 16 occurrences.
#[derive(Clone, Copy)]
struct Entry(u32);

impl Entry {
    const TF_BITS: u32 = 4;

    fn new(doc: u32, tf: u32) -> Option<Self> {
        let fits = tf >> Self::TF_BITS == 0 && doc >> (32 - Self::TF_BITS) == 0;
        fits.then_some(Self(doc << Self::TF_BITS | tf))
    }

    #[inline]
    fn doc(self) -> u32 {
        self.0 >> Self::TF_BITS
    }

    #[inline]
    fn tf(self) -> u32 {
        self.0 & ((1 << Self::TF_BITS) - 1)
    }
}

impl SmallPostings {
    fn new(unions: &UnionsWriter, records: &[u8], offsets: &Offsets) -> Result<Self> {
        let mut small =
            Self { starts: Vec::with_capacity(unions.term as usize + 1), entries: Vec::new() };
        let mut result = Ok(());
        unions.words.for_each(|term, _| {
            if result.is_ok() {
                result = small.push(term, unions.doc_count, records, offsets);
            }
        });
        result.map(|()| small)
    }

    /// Adds a term if its postings are few; terms must ascend.
    fn push(&mut self, term: u32, doc_count: u32, records: &[u8], offsets: &Offsets) -> Result<()> {
        let start = self.entries.len();
        let Ok(begin) = u32::try_from(start) else { return Ok(()) };
        self.starts.resize(term as usize + 1, begin);
        let postings = Postings::open(records, offsets.start(term), doc_count)?;
        if postings.is_small() && start < MOST_ENTRIES {
            let mut fit = true;
            postings.for_each(|doc, tf| match Entry::new(doc, tf) {
                Some(entry) => self.entries.push(entry),
                None => fit = false,
            })?;
            self.entries.truncate(if fit { self.entries.len() } else { start });
        }
        Ok(())
    }

    /// The postings of a term; none if they are not kept.
    #[inline]
    fn of(&self, term: u32) -> &[Entry] {
        let term = term as usize;
        let start = self.starts.get(term).map_or(self.entries.len(), |&start| start as usize);
        let end = self.starts.get(term + 1).map_or(self.entries.len(), |&start| start as usize);
        self.entries.get(start..end).unwrap_or(&[])
    }
}

/// The cost of uniting a term's documents, in postings; a bitmap unites 64 documents at a step.
fn cost_of_uniting(df: usize, doc_count: u32) -> u64 {
    if is_bits(df, doc_count) { u64::from(doc_count.div_ceil(64)) } else { df as u64 }
}

/// The precomputed unions of a text index.
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

    /// Whether there is a union for the piece.
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

    /// Appends the documents with the number of occurrences of the piece; false if there is no union.
    /// Documents outside `among` may be omitted.
    pub fn occurrences(
        &self,
        piece: &str,
        among: Option<&DocSet>,
        out: &mut Vec<(u32, u32)>,
    ) -> Result<bool> {
        let (Some(index), Some(counts)) = (self.index_of(piece), &self.counts) else {
            return Ok(false);
        };
        match self.union(index) {
            Some(union) => union_counts::append(counts, index, &union, among, out).map(|()| true),
            None => Ok(false),
        }
    }

    /// The documents with a word that contains the piece; `None` if there is no union.
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
