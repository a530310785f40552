//! Makes the lists of pairs of frequent keywords ([`super::pairs`]) from postings.
//!
//! The documents are gone through once, some at a time: their places of frequent keywords are sorted, and each is
//! compared with the few after it. The pairs found are sorted too, for there are so many lists that each addition would
//! miss the cache. Memory is about that of the finished lists. The places of a document with very many
//! keywords would take more, so it is put into the lists of all pairs of its frequent keywords.

use std::ops::Range;

use super::pairs::{MOST_DISTANCE, PAIR_KEYWORDS, PAIR_LISTS, PAIR_OFFSETS};
use crate::{
    Result, SectionWriter,
    bytes::Stored,
    text::parts::{
        OffsetsWriter, Postings, PostingsCursor, begins,
        lists::{DocumentGaps, Growing},
        positions,
    },
};

/// At the distance `d`, keywords have lists that at least `d` of so many documents contain.
const SHARE: u64 = 48;
/// Segments of fewer documents have no lists.
const LEAST_DOCUMENTS: usize = 64;
/// The most keywords that have lists. A rank fits in [`RANK_BITS`].
const MOST_KEYWORDS: u64 = 1 << RANK_BITS;
const RANK_BITS: u32 = 10;
/// There is at most one possible pair for so many occurrences of keywords.
const OCCURRENCES_PER_PAIR: u64 = 32;
/// The lists have at most so small a part of the bytes of postings; those of the greatest distances are left out if not.
const BYTES_SHARE: usize = 4;
/// The documents that are gone through together, at most, and their keywords.
const CHUNK_DOCUMENTS: usize = 1 << 12;
const CHUNK_KEYWORDS: u64 = 1 << 18;

/// Numbers are sorted by so many bits at a time.
const SORTED_BITS: u32 = 11;

/// A keyword that may have lists.
#[derive(Clone, Copy)]
struct Frequent {
    documents: u32,
    keyword: u32,
    /// Where its record of postings begins.
    offset: u32,
}

/// Notes the frequent keywords of a segment, and makes the lists of their pairs.
pub(super) struct PairsWriter {
    documents: usize,
    keywords: u32,
    frequent: Vec<Frequent>,
}

/// The lists of a segment as sections.
pub(super) struct PairSections {
    keys: Vec<u8>,
    offsets: Vec<u8>,
    lists: Vec<u8>,
}

impl PairsWriter {
    /// For a segment of so many documents.
    pub fn new(documents: usize) -> Self {
        Self { documents, keywords: 0, frequent: Vec::new() }
    }

    /// Takes the next keyword, which so many documents contain and whose record of postings begins at `offset`.
    pub fn push(&mut self, documents: u32, offset: usize) {
        let keyword = self.keywords;
        self.keywords += 1;
        if self.documents >= LEAST_DOCUMENTS && self.is_frequent(documents, 1) {
            self.frequent.push(Frequent { documents, keyword, offset: offset as u32 });
        }
    }

    /// Whether a keyword in so many documents has lists at the distance.
    fn is_frequent(&self, documents: u32, distance: u64) -> bool {
        u64::from(documents) * SHARE >= self.documents as u64 * distance
    }

    /// The sections; `None` if no keyword is frequent. `bytes` are those of all postings, `lengths` the keywords of each
    /// document, `occurrences` those of all.
    pub fn finish(
        mut self,
        (records, places): (&[u8], &Stored),
        bytes: usize,
        lengths: &[u32],
        occurrences: u64,
    ) -> Result<Option<PairSections>> {
        self.frequent.sort_unstable_by(|a, b| {
            b.documents.cmp(&a.documents).then_with(|| a.keyword.cmp(&b.keyword))
        });
        let most = (occurrences / OCCURRENCES_PER_PAIR).isqrt().min(MOST_KEYWORDS);
        self.frequent.truncate(most as usize);
        if self.frequent.is_empty() {
            return Ok(None);
        }
        let side = |distance: u32| {
            let is_there = |it: &Frequent| self.is_frequent(it.documents, distance.into());
            self.frequent.partition_point(is_there)
        };
        let mut found = Found::new((1..=MOST_DISTANCE).map(side).collect());
        let cursors = self.frequent.iter().map(|it| {
            let documents = self.documents as u32;
            PostingsCursor::new(&Postings::open(records, it.offset as usize, documents)?, places)
        });
        let cursors: Vec<PostingsCursor<'_>> = cursors.collect::<Result<_>>()?;
        found.gather(cursors, lengths, bytes / BYTES_SHARE)?;
        found.finish(&self.frequent, self.documents as u32)
    }
}

impl PairSections {
    /// Adds the sections of the words `id`.
    pub fn add(&self, id: u32, out: &mut SectionWriter) {
        out.add(PAIR_KEYWORDS, id, &self.keys);
        out.add(PAIR_OFFSETS, id, &self.offsets);
        out.add(PAIR_LISTS, id, &self.lists);
    }
}

/// The documents of a pair.
#[derive(Default)]
struct Pair {
    list: Growing,
    gaps: Vec<u8>,
}

/// The pairs at one distance.
struct AtDistance {
    side: usize,
    pairs: Vec<Pair>,
    bytes: usize,
    /// The pairs of the current documents, each with its document; these ascend.
    log: Vec<u64>,
}

impl AtDistance {
    /// Adds the pairs of the log.
    fn take_log(&mut self, scratch: &mut Vec<u64>) {
        let mut log = std::mem::take(&mut self.log);
        let pairs = (self.side * self.side).max(1).ilog2() + 1;
        sort_by_bits(&mut log, scratch, u32::BITS..u32::BITS + pairs);
        for one in &log {
            self.add((one >> u32::BITS) as usize, *one as u32);
        }
        log.clear();
        self.log = log;
    }

    #[inline]
    fn add(&mut self, pair: usize, doc: u32) {
        if let Some(pair) = self.pairs.get_mut(pair) {
            let before = pair.gaps.len();
            pair.list.add(doc, &mut pair.gaps);
            self.bytes += pair.gaps.len() - before;
        }
    }
}

/// The pairs found so far, by distance from 1 on.
struct Found(Vec<AtDistance>);

impl Found {
    fn new(sides: Vec<usize>) -> Self {
        let of_side = |side: usize| {
            let pairs = std::iter::repeat_with(Pair::default).take(side * side).collect();
            AtDistance { side, pairs, bytes: 0, log: Vec::new() }
        };
        Self(sides.into_iter().map(of_side).collect())
    }

    /// Goes through all documents. `cursors` are those of the keywords by rank.
    fn gather(
        &mut self,
        mut cursors: Vec<PostingsCursor<'_>>,
        lengths: &[u32],
        most_bytes: usize,
    ) -> Result<()> {
        let first = cursors.iter_mut().map(|cursor| cursor.advance(0));
        let mut next: Vec<Option<u32>> = first.collect::<Result<_>>()?;
        let (mut places, mut scratch, mut start) = (Vec::new(), Vec::new(), 0);
        while start < lengths.len() {
            let mut keywords = 0;
            let mut some = lengths[start..].iter().take(CHUNK_DOCUMENTS).take_while(|&&length| {
                let is_first = keywords == 0;
                keywords += u64::from(length);
                is_first || keywords <= CHUNK_KEYWORDS
            });
            let end = start + some.by_ref().count();
            // A huge document is the last of its chunk, after documents without keywords.
            let last =
                lengths.get(end - 1).is_some_and(|&length| u64::from(length) > CHUNK_KEYWORDS);
            if last {
                self.add_huge(&mut cursors, &mut next, end as u32 - 1)?;
                start = end;
                continue;
            }
            places.clear();
            for (rank, (cursor, next)) in (0..).zip(cursors.iter_mut().zip(&mut next)) {
                while let Some(doc) = next.filter(|&doc| (doc as usize) < end) {
                    let before = u64::from(doc - start as u32) << u32::BITS;
                    let of_document = positions(cursor.places()?);
                    places.extend(
                        of_document.map(|place| (before | u64::from(place)) << RANK_BITS | rank),
                    );
                    *next = cursor.advance(doc + 1)?;
                }
            }
            sort_places(&mut places, &mut scratch);
            self.add(&places, start as u32);
            self.0.iter_mut().for_each(|all| all.take_log(&mut scratch));
            start = end;
            while self.0.len() > 1 && self.0.iter().map(|it| it.bytes).sum::<usize>() > most_bytes {
                self.0.pop();
            }
        }
        Ok(())
    }

    /// Adds a document to the lists of all pairs of its keywords.
    fn add_huge(
        &mut self,
        cursors: &mut [PostingsCursor<'_>],
        next: &mut [Option<u32>],
        doc: u32,
    ) -> Result<()> {
        let mut ranks = Vec::new();
        for (rank, (cursor, next)) in cursors.iter_mut().zip(next).enumerate() {
            if *next == Some(doc) {
                ranks.push(rank);
                *next = cursor.advance(doc + 1)?;
            }
        }
        for all in &mut self.0 {
            let ranks = ranks.get(..ranks.partition_point(|&rank| rank < all.side));
            let ranks = ranks.unwrap_or_default();
            for (left, right) in
                ranks.iter().flat_map(|&left| ranks.iter().map(move |&right| (left, right)))
            {
                all.add(left * all.side + right, doc);
            }
        }
        Ok(())
    }

    /// Logs the pairs of some documents. `places` are ascending: document less `first`, place, rank.
    fn add(&mut self, places: &[u64], first: u32) {
        let farthest = self.0.len() as u64;
        for (at, &left) in places.iter().enumerate() {
            let left_rank = (left & (MOST_KEYWORDS - 1)) as usize;
            for &right in places.get(at + 1..).unwrap_or_default() {
                // Another document is farther than any place.
                let distance = (right >> RANK_BITS) - (left >> RANK_BITS);
                if distance > farthest {
                    break;
                }
                let right_rank = (right & (MOST_KEYWORDS - 1)) as usize;
                let Some(nth) = (distance as usize).checked_sub(1) else { continue };
                let Some(all) = self.0.get_mut(nth) else { break };
                if left_rank.max(right_rank) >= all.side {
                    continue;
                }
                let doc = u64::from(first) + (left >> RANK_BITS >> u32::BITS);
                let pair = (left_rank * all.side + right_rank) as u64;
                all.log.push(pair << u32::BITS | doc);
            }
        }
    }

    fn finish(self, frequent: &[Frequent], documents: u32) -> Result<Option<PairSections>> {
        let (mut offsets, mut lists) = (OffsetsWriter::default(), Vec::new());
        let mut keys = (self.0.len() as u32).to_le_bytes().to_vec();
        self.0.iter().for_each(|it| keys.extend_from_slice(&(it.side as u32).to_le_bytes()));
        frequent.iter().for_each(|it| keys.extend_from_slice(&it.keyword.to_le_bytes()));
        for pair in self.0.into_iter().flat_map(|it| it.pairs) {
            if pair.list.count() > 0 {
                DocumentGaps::new(pair.list.count(), pair.gaps).write(documents, &mut lists)?;
            }
            offsets.push(lists.len(), "4 GiB of pairs")?;
        }
        Ok(Some(PairSections { keys, offsets: offsets.finish(), lists }))
    }
}

/// Sorts places: document, place, rank. They come rank by rank, ascending.
fn sort_places(places: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    let all = places.iter().fold(0, |all, place| all | place) >> RANK_BITS;
    let of_places = u32::BITS - (all as u32).leading_zeros();
    let of_documents = u32::BITS - ((all >> u32::BITS) as u32).leading_zeros();
    sort_by_bits(places, scratch, RANK_BITS..RANK_BITS + of_places);
    let documents = RANK_BITS + u32::BITS;
    sort_by_bits(places, scratch, documents..documents + of_documents);
}

/// Sorts by these bits; numbers with the same ones stay in their order (a radix sort).
fn sort_by_bits(numbers: &mut Vec<u64>, scratch: &mut Vec<u64>, bits: Range<u32>) {
    for shift in bits.clone().step_by(SORTED_BITS as usize) {
        let mask = (1 << SORTED_BITS.min(bits.end - shift)) - 1;
        let digit = |number: u64| (number >> shift) as usize & mask;
        let mut places = [0usize; 1 << SORTED_BITS];
        numbers.iter().for_each(|&number| places[digit(number)] += 1);
        begins(&mut places);
        scratch.clear();
        scratch.resize(numbers.len(), 0);
        for &number in numbers.iter() {
            let place = &mut places[digit(number)];
            scratch[*place] = number;
            *place += 1;
        }
        std::mem::swap(numbers, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sorted_by_document_then_place_then_rank() {
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for most in [1, 5, 2_000, 1 << 22, 1 << 31] {
            let mut places: Vec<u64> = Vec::new();
            for rank in 0..MOST_KEYWORDS {
                let mut of_rank: Vec<u64> =
                    (0..random(9)).map(|_| random(4_096) << 32 | random(most)).collect();
                of_rank.sort_unstable();
                places.extend(of_rank.iter().map(|place| place << RANK_BITS | rank));
            }
            let mut expected = places.clone();
            expected.sort_unstable();
            sort_places(&mut places, &mut Vec::new());
            assert!(places == expected, "{most}");
        }
    }
}
