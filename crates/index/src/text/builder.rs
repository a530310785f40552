//! Builds the inverted index of a segment's texts.

use std::{hash::Hasher, ops::Range};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::{
    Normalization,
    characters_seen::SeenWriter,
    keyed_order::{self, KeyedText},
    neighbours::Occurrences,
    postings::Decoded,
    terms::{TEXT_GAP, cut},
    vocabulary::order_key,
    writer::TextWriter,
};
use crate::{IndexError, Result, SectionWriter};

/// The longest text of one document, in bytes: positions stay below 2^31.
const MAX_TEXT_BYTES: usize = 1 << 29;

/// Up to so many occurrences (64 MiB) are kept until the lists of neighbours are made.
const MOST_KEPT: usize = 1 << 23;

/// Terms are looked up in batches of this size, so that the cache misses of independent look-ups overlap.
const LOOKED_UP_AT_ONCE: usize = 16;
/// The assumed bytes of text per term, used to reserve capacity: three, as for a Han character. Most words have
/// more; if terms are shorter, the buffers grow.
const BYTES_OF_TERM: usize = 3;

/// Collects the texts of a segment's documents in order.
///
/// Every occurrence is kept as 8 bytes until [`TextBuilder::finish`] sorts them by term, which takes
/// 12 bytes more, so memory is about 20 bytes a word. Those of up to [`MOST_KEPT`] words stay until the lists of neighbours
/// are made of them.
pub(crate) struct TextBuilder {
    normalization: Normalization,
    terms: Interner,
    /// The term and position of each occurrence, document by document.
    occurrence_terms: Vec<u32>,
    occurrence_positions: Vec<u32>,
    /// The end of each document's occurrences.
    doc_ends: Vec<u32>,
    lengths: Vec<u32>,
    seen: Option<SeenWriter>,
    neighbours: bool,
}

impl TextBuilder {
    /// No documents yet.
    pub fn new(normalization: Normalization) -> Self {
        Self {
            normalization,
            terms: Interner::default(),
            occurrence_terms: Vec::new(),
            occurrence_positions: Vec::new(),
            doc_ends: Vec::new(),
            lengths: Vec::new(),
            seen: Some(SeenWriter::new(&normalization)),
            neighbours: true,
        }
    }

    /// Reserves capacity for so many bytes of text. Unused capacity costs only address space.
    pub fn reserve(&mut self, text_bytes: usize) {
        self.occurrence_terms.reserve(text_bytes / BYTES_OF_TERM);
        self.occurrence_positions.reserve(text_bytes / BYTES_OF_TERM);
    }

    /// Leaves out the section about special characters, as earlier versions of the format did.
    pub fn forget_characters(&mut self) {
        self.seen = None;
    }

    /// Leaves out the lists of neighbours, as earlier versions of the format did.
    pub fn forget_neighbours(&mut self) {
        self.neighbours = false;
    }

    /// Adds the next document: the texts of its columns.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_TEXT_BYTES {
            return Err(IndexError::Full("512 MiB of text in one document"));
        }
        let (mut ordinal, mut length) = (0, 0);
        for text in texts {
            if let Some(seen) = &mut self.seen {
                seen.add(self.lengths.len() as u32, text);
            }
            let text = self.normalization.apply(text);
            length += text.chars().count() as u32;
            let (terms, numbers) = (&mut self.terms, &mut self.occurrence_terms);
            let positions = &mut self.occurrence_positions;
            let (mut waiting, mut count) = ([Waiting::default(); LOOKED_UP_AT_ONCE], 0);
            ordinal = TEXT_GAP
                + cut(&text, ordinal, |term, position| {
                    positions.push(position);
                    waiting[count] = Waiting::new(&text, term);
                    count += 1;
                    if count == LOOKED_UP_AT_ONCE {
                        terms.intern_all(&text, &waiting, numbers);
                        count = 0;
                    }
                });
            terms.intern_all(&text, &waiting[..count], numbers);
        }
        let end = u32::try_from(self.occurrence_terms.len());
        self.doc_ends.push(end.map_err(|_| IndexError::Full("2^32 words in one batch"))?);
        self.lengths.push(length);
        Ok(())
    }

    /// Writes the sections of the text index `id`.
    pub fn finish(self, id: u32, out: &mut SectionWriter) -> Result<()> {
        let Self { terms, occurrence_terms, occurrence_positions, doc_ends, lengths, seen, .. } =
            self;
        let neighbours = self.neighbours;
        let order = terms.sorted(order_key);
        let ordered =
            OrderedOccurrences::new(&order, &occurrence_terms, &occurrence_positions, &doc_ends);
        let mut writer = TextWriter::new(lengths);
        if neighbours {
            writer.know_ordinals(ordinals(&occurrence_positions, &doc_ends));
        } else {
            writer.forget_neighbours();
        }
        let occurrences = (occurrence_terms, occurrence_positions);
        let occurrences = (occurrences.0.len() <= MOST_KEPT).then_some(occurrences);
        let mut gathered = Gathered::default();
        ordered.for_each_part(|ranks, part| {
            gathered.gather(&terms, &order[ranks]);
            part.for_each(|at, postings| writer.push(gathered.term(at).as_bytes(), postings))
        })?;
        drop((ordered, terms));
        if let Some(seen) = seen {
            seen.finish(id, out);
        }
        let occurrences = occurrences.as_ref().map(|(terms, positions)| Occurrences {
            terms,
            positions,
            doc_ends: &doc_ends,
            order: &order,
        });
        writer.finish(id, occurrences, out)
    }
}

/// For each document, one more than its last ordinal.
fn ordinals(positions: &[u32], doc_ends: &[u32]) -> impl Iterator<Item = u32> {
    let starts = [0].into_iter().chain(doc_ends.iter().copied());
    starts.zip(doc_ends).map(|(start, &end)| match positions.get(start as usize..end as usize) {
        Some([.., last]) => last / 2 + 1,
        _ => 0,
    })
}

/// All occurrences, to be sorted by term; documents and positions stay ascending within each term.
///
/// A counting sort in one pass would write to as many places as there are terms, and miss the cache with each
/// write. So it takes two passes (a radix sort): first into parts whose write positions fit in the cache,
/// then within each part.
pub(crate) struct OrderedOccurrences {
    /// The rank of each term, by its number: its position in the vocabulary's order.
    ranks: Vec<u32>,
    /// The first occurrence of each term, by rank; and their total at the end.
    starts: Vec<u32>,
    /// A part contains two to this power of terms.
    part_bits: u32,
    parted: Vec<Occurrence>,
}

/// An occurrence with the rank of its term.
#[derive(Clone, Copy, Default)]
struct Occurrence {
    rank: u32,
    doc: u32,
    position: u32,
}

impl OrderedOccurrences {
    /// Takes the occurrences in document order; `order` are the terms in the vocabulary's order.
    pub fn new(order: &[u32], terms: &[u32], positions: &[u32], doc_ends: &[u32]) -> Self {
        let mut counts = vec![0u32; order.len()];
        terms.iter().for_each(|&term| counts[term as usize] += 1);
        let mut ranks = vec![0; order.len()];
        let mut starts = Vec::with_capacity(order.len() + 1);
        let mut start = 0;
        for (&term, rank) in order.iter().zip(0..) {
            ranks[term as usize] = rank;
            starts.push(start);
            start += counts[term as usize];
        }
        starts.push(start);
        let part_bits = order.len().max(1).ilog2() / 2 + 1;
        let parted = vec![Occurrence::default(); start as usize];
        let mut ordered = Self { ranks, starts, part_bits, parted };
        ordered.distribute(terms, positions, doc_ends);
        ordered
    }

    /// Distributes the occurrences over the parts.
    fn distribute(&mut self, terms: &[u32], positions: &[u32], doc_ends: &[u32]) {
        let firsts = self.starts.iter().step_by(1 << self.part_bits);
        let mut next: Vec<u32> = firsts.copied().collect();
        let mut at = 0;
        for (&end, doc) in doc_ends.iter().zip(0..) {
            let range = at..end as usize;
            at = end as usize;
            for (&term, &position) in terms[range.clone()].iter().zip(&positions[range]) {
                let rank = self.ranks[term as usize];
                let slot = &mut next[(rank >> self.part_bits) as usize];
                self.parted[*slot as usize] = Occurrence { rank, doc, position };
                *slot += 1;
            }
        }
    }

    /// Visits the parts in order, each with the ranks of its terms.
    pub fn for_each_part(
        &self,
        mut visit: impl FnMut(Range<usize>, &TermOccurrences<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut occurrences = Vec::new();
        for first in (0..self.ranks.len()).step_by(1 << self.part_bits) {
            let ranks = first..self.ranks.len().min(first + (1 << self.part_bits));
            self.sort_part(&ranks, &mut occurrences);
            let starts = &self.starts[first..=ranks.end];
            visit(ranks, &TermOccurrences { starts, occurrences: &occurrences })?;
        }
        Ok(())
    }

    /// The (document, position) of each occurrence of the terms of one part, term by term.
    fn sort_part(&self, ranks: &Range<usize>, out: &mut Vec<(u32, u32)>) {
        let begin = self.starts[ranks.start];
        let mut next: Vec<u32> = self.starts[ranks.clone()].iter().map(|at| at - begin).collect();
        let part = &self.parted[begin as usize..self.starts[ranks.end] as usize];
        out.clear();
        out.resize(part.len(), (0, 0));
        for occurrence in part {
            let slot = &mut next[occurrence.rank as usize - ranks.start];
            out[*slot as usize] = (occurrence.doc, occurrence.position);
            *slot += 1;
        }
    }
}

/// The sorted occurrences of some terms.
pub(crate) struct TermOccurrences<'a> {
    /// The first occurrence of each term, among all; and their end.
    starts: &'a [u32],
    occurrences: &'a [(u32, u32)],
}

impl TermOccurrences<'_> {
    /// Calls `visit(index, postings)` for each of the terms.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &Decoded) -> Result<()>) -> Result<()> {
        let mut postings = Decoded::default();
        for (at, range) in self.starts.windows(2).enumerate() {
            let place = |start: u32| (start - self.starts[0]) as usize;
            decode(&self.occurrences[place(range[0])..place(range[1])], &mut postings);
            visit(at, &postings)?;
        }
        Ok(())
    }
}

/// A buffer with copies of some terms. Terms are scattered in memory; copying them in a batch lets the cache
/// misses overlap.
#[derive(Default)]
pub(crate) struct Gathered {
    texts: String,
    ends: Vec<usize>,
}

impl Gathered {
    /// Fetches the terms of these numbers.
    pub fn gather(&mut self, terms: &Interner, numbers: &[u32]) {
        self.texts.clear();
        self.ends.clear();
        for &number in numbers {
            self.texts.push_str(terms.term(number));
            self.ends.push(self.texts.len());
        }
    }

    /// The term at a position of the last batch.
    pub fn term(&self, at: usize) -> &str {
        term_of(&self.texts, &self.ends, at as u32)
    }
}

/// Whether an occurrence is the first of its document is random, and a branch would be mispredicted: all numbers are
/// written, and their place moves on only where a document ends.
fn decode(occurrences: &[(u32, u32)], out: &mut Decoded) {
    out.clear();
    let Some(&(first, _)) = occurrences.first() else { return };
    let Decoded { docs, tfs, places } = out;
    docs.resize(occurrences.len(), 0);
    tfs.resize(occurrences.len(), 0);
    places.resize(occurrences.len(), 0);
    let (mut at, mut tf, mut before) = (0, 0, (first, 0));
    for (place, &(doc, position)) in places.iter_mut().zip(occurrences) {
        let is_same = doc == before.0;
        at += usize::from(!is_same);
        tf = if is_same { tf + 1 } else { 1 };
        *place = position - if is_same { before.1 } else { 0 };
        (docs[at], tfs[at]) = (doc, tf);
        before = (doc, position);
    }
    docs.truncate(at + 1);
    tfs.truncate(at + 1);
}

/// Gives each distinct term a number.
///
/// Almost every term is short and is its own key, so that a look-up compares two registers and follows no
/// pointer. Recently used terms are cached in a small table: most occurrences are of a few frequent terms,
/// and the full table does not fit in the processor's cache.
pub(crate) struct Interner {
    recent: Box<[(ShortKey, u32)]>,
    short: HashTable<(ShortKey, u32)>,
    long: HashTable<u32>,
    arena: String,
    ends: Vec<usize>,
}

/// A term of up to 15 bytes; the last byte is its length.
type ShortKey = (u64, u64);
/// The key of no term.
const NO_KEY: ShortKey = (u64::MAX, u64::MAX);
/// Looked up for a longer term, and never found.
const LONG_KEY: ShortKey = (u64::MAX, u64::MAX - 1);
/// The size of the table of recently used terms.
const RECENT: usize = 1 << 12;

impl Default for Interner {
    fn default() -> Self {
        Self {
            recent: vec![(NO_KEY, 0); RECENT].into_boxed_slice(),
            short: HashTable::default(),
            long: HashTable::default(),
            arena: String::new(),
            ends: Vec::new(),
        }
    }
}

impl Interner {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn term(&self, number: u32) -> &str {
        term_of(&self.arena, &self.ends, number)
    }

    /// Appends the numbers of up to [`LOOKED_UP_AT_ONCE`] terms of the text.
    fn intern_all(&mut self, text: &str, terms: &[Waiting], numbers: &mut Vec<u32>) {
        let mut known = [None; LOOKED_UP_AT_ONCE];
        for (known, term) in known.iter_mut().zip(terms) {
            *known = self.known(term.key);
        }
        for (known, term) in known.into_iter().zip(terms) {
            let range = term.start..term.end;
            let term = || text.get(range).unwrap_or_default();
            numbers.push(known.unwrap_or_else(|| self.intern_other(term())));
        }
    }

    /// The number of a short term that has one.
    #[inline]
    fn known(&mut self, key: ShortKey) -> Option<u32> {
        let hash = hash_short(&key);
        let recent = &mut self.recent[hash as usize % RECENT];
        if recent.0 == key {
            return Some(recent.1);
        }
        let found = *self.short.find(hash, |entry| entry.0 == key)?;
        *recent = found;
        Some(found.1)
    }

    /// The number of a term.
    #[inline]
    pub fn intern(&mut self, term: &str) -> u32 {
        let known = short_key(term.as_bytes()).and_then(|key| self.known(key));
        known.unwrap_or_else(|| self.intern_other(term))
    }

    /// The number of a term that has none yet, is long, or got its number from an earlier term of
    /// its batch.
    fn intern_other(&mut self, term: &str) -> u32 {
        let Some(key) = short_key(term.as_bytes()) else { return self.intern_long(term) };
        let hash = hash_short(&key);
        if let Some(&(_, number)) = self.short.find(hash, |entry| entry.0 == key) {
            return number;
        }
        let number = self.push(term);
        self.short.insert_unique(hash, (key, number), |entry| hash_short(&entry.0));
        number
    }

    fn intern_long(&mut self, term: &str) -> u32 {
        let same = |&number: &u32| term_of(&self.arena, &self.ends, number) == term;
        if let Some(&number) = self.long.find(hash_long(term), same) {
            return number;
        }
        let number = self.push(term);
        let (arena, ends) = (&self.arena, &self.ends);
        let rehash = |&number: &u32| hash_long(term_of(arena, ends, number));
        self.long.insert_unique(hash_long(term), number, rehash);
        number
    }

    fn push(&mut self, term: &str) -> u32 {
        let number = self.ends.len() as u32;
        self.arena.push_str(term);
        self.ends.push(self.arena.len());
        number
    }

    /// The numbers in the order of their terms: by the key, then by their bytes.
    pub fn sorted(&self, key: impl Fn(&[u8]) -> u64) -> Vec<u32> {
        let keyed = 0..self.len() as u32;
        let keyed = keyed.map(|number| (key(self.term(number).as_bytes()), number));
        let mut keyed: Vec<KeyedText> = keyed.collect();
        keyed_order::sort(&mut keyed, &mut Vec::new());
        for same in keyed.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            same.sort_unstable_by(|a, b| self.term(a.1).cmp(self.term(b.1)));
        }
        keyed.into_iter().map(|(_, number)| number).collect()
    }
}

#[inline]
fn term_of<'a>(arena: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &arena[start..ends[number]]
}

/// Two loads that overlap if the term is shorter than both; the shared bytes are the same.
#[inline]
fn short_key(term: &[u8]) -> Option<ShortKey> {
    let length = term.len();
    let tag = (length as u64) << 56;
    if length >= 16 {
        return None;
    }
    if let (Some(head), Some(tail)) = (term.first_chunk(), term.last_chunk()) {
        let tail = u64::from_le_bytes(*tail).checked_shr(8 * (16 - length) as u32).unwrap_or(0);
        return Some((u64::from_le_bytes(*head), tail | tag));
    }
    if let (Some(head), Some(tail)) = (term.first_chunk(), term.last_chunk()) {
        let tail = u64::from(u32::from_le_bytes(*tail)) << (8 * (length - 4));
        return Some((u64::from(u32::from_le_bytes(*head)) | tail, tag));
    }
    let bytes = term.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte));
    Some((bytes, tag))
}

/// A term of a text, to be looked up.
#[derive(Clone, Copy, Default)]
struct Waiting {
    start: usize,
    end: usize,
    /// [`LONG_KEY`] for a long one.
    key: ShortKey,
}

impl Waiting {
    /// The term that these bytes of the text are. Terms of all lengths are read alike, for the lengths are random and
    /// a branch would be mispredicted.
    #[inline]
    fn new(text: &str, term: Range<usize>) -> Self {
        let Range { start, end } = term;
        let seen = text.as_bytes().get(start..).and_then(|rest| rest.first_chunk());
        let key = match (seen, LENGTHS.get(term.len())) {
            (Some(seen), Some(&(low, high, tag))) => {
                let seen = u128::from_le_bytes(*seen);
                (seen as u64 & low, (seen >> 64) as u64 & high | tag)
            }
            _ => text.as_bytes().get(term).and_then(short_key).unwrap_or(LONG_KEY),
        };
        Self { start, end, key }
    }
}

/// For each length of a short term, which of 16 bytes belong to it, and the tag of its key.
static LENGTHS: [(u64, u64, u64); 16] = {
    let mut lengths = [(0, 0, 0); 16];
    let mut length = 0;
    while length < 16 {
        let bytes = (1u128 << (8 * length)) - 1;
        lengths[length] = (bytes as u64, (bytes >> 64) as u64, (length as u64) << 56);
        length += 1;
    }
    lengths
};

#[inline]
fn hash_short(key: &ShortKey) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(key.0);
    hasher.write_u64(key.1);
    hasher.finish()
}

fn hash_long(term: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(term.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_distinct_term_has_a_number(
            terms in proptest::collection::vec("[a\u{0}é]{1,20}", 1..200),
        ) {
            let mut interner = Interner::default();
            let mut model: HashMap<String, u32> = HashMap::new();
            let (mut numbers, mut expected) = (Vec::new(), Vec::new());
            for some in terms.chunks(LOOKED_UP_AT_ONCE) {
                let text = some.concat();
                let mut end = 0;
                let term = |term: &String| {
                    let start = end;
                    end += term.len();
                    Waiting::new(&text, start..end)
                };
                let waiting: Vec<Waiting> = some.iter().map(term).collect();
                interner.intern_all(&text, &waiting, &mut numbers);
            }
            for term in &terms {
                let next = model.len() as u32;
                expected.push(*model.entry(term.clone()).or_insert(next));
            }
            prop_assert_eq!(&numbers, &expected);
            for (term, number) in terms.iter().zip(numbers) {
                prop_assert_eq!(interner.term(number), term);
            }
        }
    }
}
