//! Secondary indexes: a segment's documents in the order of some of its columns.
//!
//! ```text
//! section SIDX, id of the index:
//! index  := doc_count:u32 part_count:u8 width:u8 0:u16 part{part_count} packed zero{8}
//! part   := column:u32 flags:u8 order:u32?    flags: 1 descending, 2 the number of an order of texts follows
//! packed := one document number of `width` bits for each document
//! ```
//! Documents are sorted by the first part, then by the second, and so on; documents that are equal in all
//! parts are in key order. The section stores no values: they are in the columns. NULL is the least value. A
//! column that the segment does not have is NULL everywhere. Texts are in byte order or in that of their sort
//! keys ([`TextOrder`]); sort keys are not stored but computed for each comparison. [`super::fences`] leave few comparisons.

use std::{
    cell,
    cmp::Ordering,
    ops::{Bound, Range},
    sync::{Arc, OnceLock},
};

use super::{
    Segment,
    fences::{Fences, OrderedDocuments},
    live::{KeptRanks, LiveRanks, RanksCache},
    sort_key::push_part,
};
use crate::{
    Bitmap, IndexError, Result, SectionTag, SectionWriter, Sections, Slice, TextOrder,
    column::{
        Cell, Column,
        cursor::SectionCursor,
        packed::{self, PADDING_BYTES},
    },
};

pub(super) const INDEX: SectionTag = SectionTag(*b"SIDX");
const FENCES: SectionTag = SectionTag(*b"SIDF");
/// The most parts of an index.
const MAX_PARTS: usize = 32;
const DESCENDING: u8 = 1;
const ORDERED: u8 = 2;
/// If the first column has at most this many values, the places where they begin are remembered.
const MAX_STARTS: u32 = 64;
/// Finding the position of a document costs about as much as reading this many positions; in an index with a text
/// order, which makes sort keys, the second number.
const POSITION_COST: u64 = 256;
const KEYED_POSITION_COST: u64 = 2_048;

/// One index to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// The number of the index. Indexes with other parts have other numbers.
    pub id: u32,
    /// The parts of the sort key.
    pub parts: Vec<IndexPart>,
}

/// One part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// The number of the column.
    pub column: u32,
    /// Whether the greatest value comes first.
    pub descending: bool,
    /// The order of its texts; `None` for byte order.
    pub order: Option<TextOrder>,
}

/// A part as it is stored.
struct StoredPart {
    column: u32,
    descending: bool,
    order: Option<u32>,
}

/// The stored order of one index.
pub(super) struct StoredIndex {
    parts: Vec<StoredPart>,
    docs: Slice,
    width: u32,
    /// `None` in segments of earlier versions, and for few documents.
    fences: Option<Fences>,
    /// The first position of each value of the first column, if they are few. Computed at first
    /// use.
    starts: OnceLock<Option<Box<[u32]>>>,
    /// Where deleted documents are.
    ranks: RanksCache,
}

impl StoredIndex {
    /// Opens the index of this number; `None` if the segment was written before it existed.
    pub fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(section) = sections.get(INDEX, id) else { return Ok(None) };
        let corrupt = || IndexError::Corrupt(format!("header of index {id}"));
        let mut cursor = SectionCursor::new(section);
        let count = cursor.u32()?;
        let (part_count, width) = (cursor.u8()?, u32::from(cursor.u8()?));
        let reserved = (cursor.u8()?, cursor.u8()?);
        let fits = width == width_of(doc_count) && usize::from(part_count) <= MAX_PARTS;
        if count != doc_count || part_count == 0 || reserved != (0, 0) || !fits {
            return Err(corrupt());
        }
        let mut parts = Vec::with_capacity(part_count.into());
        for _ in 0..part_count {
            let (column, flags) = (cursor.u32()?, cursor.u8()?);
            if flags > DESCENDING | ORDERED {
                return Err(corrupt());
            }
            let order = (flags & ORDERED > 0).then(|| cursor.u32()).transpose()?;
            parts.push(StoredPart { column, descending: flags & DESCENDING > 0, order });
        }
        let docs = cursor.slice(packed::packed_bytes(doc_count, width) + PADDING_BYTES)?;
        cursor.finish()?;
        let fences = sections.get(FENCES, id);
        let fences = fences.map(|section| Fences::open(section, doc_count)).transpose()?;
        let (starts, ranks) = (OnceLock::new(), RanksCache::default());
        Ok(Some(Self { parts, docs, width, fences, starts, ranks }))
    }

    /// Whether the index has exactly these parts.
    pub fn is_by(&self, parts: &[IndexPart]) -> bool {
        let same = |(mine, part): (&StoredPart, &IndexPart)| {
            let order = part.order.map(|order| order.number);
            (mine.column, mine.descending, mine.order) == (part.column, part.descending, order)
        };
        self.parts.len() == parts.len() && self.parts.iter().zip(parts).all(same)
    }
}

fn width_of(doc_count: u32) -> u32 {
    packed::width_for(u64::from(doc_count.saturating_sub(1)))
}

/// Writes the sections of an index. `order` has all documents.
pub(super) fn write(
    spec: &IndexSpec,
    order: &OrderedDocuments,
    out: &mut SectionWriter,
) -> Result<()> {
    let docs = &order.docs;
    if spec.parts.is_empty() || spec.parts.len() > MAX_PARTS {
        return Err(IndexError::Invalid(format!("an index has 1 to {MAX_PARTS} parts")));
    }
    let (doc_count, width) = (docs.len() as u32, width_of(docs.len() as u32));
    let mut section = doc_count.to_le_bytes().to_vec();
    section.extend([spec.parts.len() as u8, width as u8, 0, 0]);
    for part in &spec.parts {
        section.extend(part.column.to_le_bytes());
        let ordered = if part.order.is_some() { ORDERED } else { 0 };
        section.push(u8::from(part.descending) | ordered);
        section.extend(part.order.into_iter().flat_map(|order| order.number.to_le_bytes()));
    }
    packed::pack(docs.iter().map(|&doc| u64::from(doc)), width, &mut section);
    section.extend([0; PADDING_BYTES]);
    out.add(INDEX, spec.id, &section);
    if !order.fences.is_empty() {
        out.add(FENCES, spec.id, &order.fences);
    }
    Ok(())
}

/// A secondary index of a segment, with the columns it is sorted by.
pub struct SegmentIndex<'s> {
    stored: &'s StoredIndex,
    doc_count: u32,
    parts: Vec<ReadPart<'s>>,
    /// The sort key that was computed last: equal texts often follow each other.
    key: cell::Cell<LastKey>,
}

/// A text with its sort key.
#[derive(Default)]
struct LastKey {
    text: Vec<u8>,
    /// The number of the order; `None` while nothing was computed.
    order: Option<u32>,
    key: Vec<u8>,
}

impl LastKey {
    fn of(&mut self, text: &[u8], order: TextOrder) -> &[u8] {
        if self.order != Some(order.number) || self.text != text {
            self.text.clear();
            self.text.extend_from_slice(text);
            self.order = Some(order.number);
            order.write_key(text, &mut self.key);
        }
        &self.key
    }
}

/// A part of an index with the column it is sorted by.
#[derive(Clone, Copy)]
pub(super) struct ReadPart<'s> {
    pub column: Option<&'s Column>,
    pub descending: bool,
    pub order: Option<TextOrder>,
}

impl<'s> ReadPart<'s> {
    pub fn new(segment: &'s Segment, part: &IndexPart) -> Self {
        let IndexPart { column, descending, order } = *part;
        Self { column: segment.column(column), descending, order }
    }

    fn cell(&self, doc: u32) -> Cell<'s> {
        self.column.map_or(Cell::Null, |column| column.get(doc))
    }

    /// Appends the part's bytes of a document's sort key.
    pub fn push_key(&self, doc: u32, text: &mut Vec<u8>, key: &mut Vec<u8>) {
        push_part(self.cell(doc), (self.descending, self.order), text, key);
    }
}

/// The value of a bound, and whether documents with that value come before it: before the start of a range, or before
/// its end.
fn boundary(bound: Bound<Cell<'_>>, is_end: bool) -> (Option<Cell<'_>>, bool) {
    match bound {
        Bound::Included(cell) => (Some(cell), is_end),
        Bound::Excluded(cell) => (Some(cell), !is_end),
        Bound::Unbounded => (None, is_end),
    }
}

impl<'s> SegmentIndex<'s> {
    pub(super) fn new(segment: &'s Segment, stored: &'s StoredIndex, spec: &IndexSpec) -> Self {
        let parts = spec.parts.iter().map(|part| ReadPart::new(segment, part)).collect();
        Self { stored, doc_count: segment.doc_count(), parts, key: cell::Cell::default() }
    }

    /// The number of documents, deleted ones included.
    pub fn len(&self) -> u32 {
        self.doc_count
    }

    /// Whether the index has no documents.
    pub fn is_empty(&self) -> bool {
        self.doc_count == 0
    }

    /// The document at a position below [`SegmentIndex::len`].
    #[inline]
    pub fn doc(&self, position: u32) -> u32 {
        packed::get(&self.stored.docs, self.stored.width, position as usize) as u32
    }

    /// Rank and select over the live documents of the index. `deleted` are the deleted ones of a version of the segment,
    /// `reads` is the number of positions that the request has to read without. `None` if the requests so far together
    /// read fewer than making the ranks costs: that reads all positions, or finds the position of each document that
    /// was deleted since. The last ones are kept.
    pub fn live_ranks(&self, deleted: &Arc<Bitmap>, reads: u64) -> Option<Arc<LiveRanks>> {
        let kept = self.stored.ranks.kept();
        if let Some(kept) = &kept
            && Arc::ptr_eq(&kept.deleted, deleted)
        {
            return Some(Arc::clone(&kept.ranks));
        }
        let (cache, all) = (&self.stored.ranks, u64::from(self.doc_count));
        let comparing = all / u64::from(u64::BITS);
        let (read, least) =
            (cache.note(reads.min(all)), if kept.is_some() { comparing } else { all });
        if read < least.max(cache.cost()) {
            return None;
        }
        let changed = kept.map(|kept| {
            let mut changed = Bitmap::clone(&kept.deleted);
            changed.toggle(deleted);
            (kept.ranks, changed)
        });
        let is_keyed = self.parts.iter().any(|part| part.order.is_some());
        let each = if is_keyed { KEYED_POSITION_COST } else { POSITION_COST };
        let moving = |changed: &Bitmap| u64::from(changed.count()) * each + comparing;
        let changed = changed.filter(|(_, changed)| moving(changed) < all);
        let cost = changed.as_ref().map_or(all, |(_, changed)| moving(changed));
        if read < cost {
            cache.set_cost(cost);
            return None;
        }
        let gone = changed.and_then(|(ranks, changed)| self.moved(&ranks, &changed));
        let gone = gone.unwrap_or_else(|| self.gone(deleted));
        let ranks = Arc::new(LiveRanks::new(Arc::new(gone)));
        let kept = KeptRanks { deleted: Arc::clone(deleted), ranks: Arc::clone(&ranks) };
        cache.keep(kept);
        Some(ranks)
    }

    /// The positions of deleted documents.
    fn gone(&self, deleted: &Bitmap) -> Bitmap {
        let mut words = vec![0; self.doc_count.div_ceil(u64::BITS) as usize];
        let is_gone = |doc: u64| deleted.contains(doc as u32);
        packed::scan(&self.stored.docs, self.stored.width, is_gone, &mut words);
        Bitmap::from_words(self.doc_count, words)
    }

    /// The positions of deleted documents after the documents `changed` were deleted, or were not yet. `None` if the
    /// index is damaged.
    fn moved(&self, before: &LiveRanks, changed: &Bitmap) -> Option<Bitmap> {
        let mut positions = Bitmap::new(self.doc_count);
        for doc in changed.iter() {
            positions.insert(self.position(doc)?);
        }
        positions.toggle(before.gone());
        Some(positions)
    }

    /// The position of a document; `None` if the index is damaged. Cost: log2(documents) comparisons.
    fn position(&self, doc: u32) -> Option<u32> {
        let is_before = |other: u32| self.compare(other, doc).then(other.cmp(&doc)).is_lt();
        let position = self.partition_point(0..self.doc_count, is_before);
        (position < self.doc_count && self.doc(position) == doc).then_some(position)
    }

    /// Compares two documents in all parts.
    fn compare(&self, one: u32, other: u32) -> Ordering {
        let (mut text, mut mine, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for part in &self.parts {
            let Some(column) = part.column else { continue };
            let mut ordering = column.compare(one, other);
            if part.order.is_some() && ordering.is_ne() {
                mine.clear();
                theirs.clear();
                let undirected = ReadPart { descending: false, ..*part };
                undirected.push_key(one, &mut text, &mut mine);
                undirected.push_key(other, &mut text, &mut theirs);
                ordering = mine.cmp(&theirs);
            }
            if ordering.is_ne() {
                return if part.descending { ordering.reverse() } else { ordering };
            }
        }
        Ordering::Equal
    }

    /// The first position of each value of the first part, if they are few and their sort keys differ.
    fn starts(&self) -> Option<&'s [u32]> {
        self.stored.starts.get_or_init(|| self.find_starts()).as_deref()
    }

    fn find_starts(&self) -> Option<Box<[u32]>> {
        let part = self.parts.first()?;
        let column =
            part.column.filter(|it| it.value_count().is_some_and(|it| it <= MAX_STARTS))?;
        if part.order.is_some_and(|order| !column.has_distinct_keys(order)) {
            return None;
        }
        let (mut starts, mut position) = (Vec::new(), 0);
        while position < self.doc_count {
            // A damaged index may have more runs than values.
            if starts.len() == MAX_STARTS as usize {
                return None;
            }
            starts.push(position);
            let first = self.doc(position);
            let is_equal = |doc: u32| column.compare(first, doc).is_eq();
            position = self.near_first_without(position..self.doc_count, is_equal);
        }
        Some(starts.into())
    }

    /// The positions of the documents whose first parts equal `prefix` and whose next part lies within the
    /// bounds. Bounds of a part with a text order are sort keys. Cost: two binary searches. With fences each
    /// reads the columns some six times; without them the first reads log2(documents) times, the second gallops from
    /// its result: 2 log2(positions) times. If all documents are below or all are above the range, two comparisons
    /// are enough. If the first part has few values, only documents with the requested one are searched.
    pub fn range(
        &self,
        prefix: &[Cell<'_>],
        low: Bound<Cell<'_>>,
        high: Bound<Cell<'_>>,
    ) -> Range<u32> {
        let descending = self.parts.get(prefix.len()).is_some_and(|part| part.descending);
        let (first, last) = if descending { (high, low) } else { (low, high) };
        let Some(starts) = self.starts() else {
            return self.searched(0..self.doc_count, 0, prefix, (first, last));
        };
        let start_of = |run: usize| starts.get(run).copied().unwrap_or(self.doc_count);
        if prefix.is_empty() {
            let run = |bound, is_end| {
                starts.partition_point(|&it| self.is_before(self.doc(it), 0, prefix, bound, is_end))
            };
            let start = start_of(run(first, false));
            return start..start_of(run(last, true)).max(start);
        }
        let value = prefix.get(..1).unwrap_or_default();
        let compare = |start: u32| self.compare_with(self.doc(start), 0, value, None);
        let run = starts.partition_point(|&start| compare(start).is_lt());
        let start = start_of(run);
        match starts.get(run).is_some_and(|&start| compare(start).is_eq()) {
            true => self.searched(start..start_of(run + 1), 1, prefix, (first, last)),
            false => start..start,
        }
    }

    /// As [`SegmentIndex::range`], among documents that are known to equal the prefix in the first
    /// `known` parts.
    fn searched(
        &self,
        within: Range<u32>,
        known: usize,
        prefix: &[Cell<'_>],
        (first, last): (Bound<Cell<'_>>, Bound<Cell<'_>>),
    ) -> Range<u32> {
        let is_open =
            |bound: Bound<Cell<'_>>| known == prefix.len() && matches!(bound, Bound::Unbounded);
        let mut key = Vec::new();
        let start = match is_open(first) {
            true => within.start,
            false => {
                let is_before = |doc| self.is_before(doc, known, prefix, first, false);
                match self.around(&within, prefix, (first, false), &mut key) {
                    Some(near) if near.start > within.start && near.end < within.end => {
                        self.partition_point(near, is_before)
                    }
                    // Nothing may be as low or as high.
                    near => self.first_without(near.unwrap_or_else(|| within.clone()), is_before),
                }
            }
        };
        let end = match is_open(last) {
            true => within.end,
            false => {
                let is_before = |doc| self.is_before(doc, known, prefix, last, true);
                let rest = start..within.end;
                match self.around(&rest, prefix, (last, true), &mut key) {
                    Some(near) if near.start > start => self.partition_point(near, is_before),
                    near => self.near_first_without(
                        start..near.map_or(rest.end, |near| near.end),
                        is_before,
                    ),
                }
            }
        };
        start..end
    }

    /// By the fences: the part of a range in which, or at whose end, the first document is that does not come before a bound.
    fn around(
        &self,
        within: &Range<u32>,
        prefix: &[Cell<'_>],
        (bound, is_end): (Bound<Cell<'_>>, bool),
        key: &mut Vec<u8>,
    ) -> Option<Range<u32>> {
        let fences = self.stored.fences.as_ref()?;
        let (cell, is_past_equal) = boundary(bound, is_end);
        key.clear();
        for (part, wanted) in self.parts.iter().zip(prefix.iter().copied().chain(cell)) {
            // What is compared with a text of a text order is a sort key already.
            push_part(wanted, (part.descending, None), &mut Vec::new(), key);
        }
        let (start, end) = fences.around(key, is_past_equal, self.doc_count);
        let within_it = |position: u32| position.clamp(within.start, within.end);
        Some(within_it(start)..within_it(end))
    }

    /// Whether a document comes before a bound of a range: its start, or its end if `is_end`.
    fn is_before(
        &self,
        doc: u32,
        known: usize,
        prefix: &[Cell<'_>],
        bound: Bound<Cell<'_>>,
        is_end: bool,
    ) -> bool {
        let (cell, is_past_equal) = boundary(bound, is_end);
        match self.compare_with(doc, known, prefix, cell) {
            Ordering::Equal => is_past_equal,
            ordering => ordering.is_lt(),
        }
    }

    /// The partition point; compares both ends before it searches.
    fn first_without(&self, within: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
        match within.end.checked_sub(1) {
            Some(last) if within.start <= last && holds(self.doc(within.start)) => {
                match holds(self.doc(last)) {
                    true => within.end,
                    false => self.partition_point(within.start + 1..last, holds),
                }
            }
            _ => within.start,
        }
    }

    /// The partition point, by galloping from the start: it is expected to be near.
    fn near_first_without(&self, within: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
        let (mut start, mut step) = (within.start, 1_u32);
        loop {
            let next = start.saturating_add(step).min(within.end);
            if start == next || !holds(self.doc(next - 1)) {
                return self.partition_point(start..next.max(start + 1) - 1, holds);
            }
            (start, step) = (next, step.saturating_mul(2));
        }
    }

    /// At one end of a range, the run of positions whose documents are equal in the first `parts` parts.
    /// Cost: 2 log2(positions) comparisons, or none for the first part if it has few values.
    pub fn group(&self, within: Range<u32>, parts: usize, at_end: bool) -> Range<u32> {
        let Some(last) = within.end.checked_sub(1).filter(|last| *last >= within.start) else {
            return within;
        };
        if parts == 1
            && let Some(starts) = self.starts()
        {
            let next =
                starts.partition_point(|&start| start <= if at_end { last } else { within.start });
            return match at_end {
                true => {
                    let start = next.checked_sub(1).and_then(|run| starts.get(run));
                    start.map_or(within.start, |&start| start.max(within.start))..within.end
                }
                false => {
                    within.start..starts.get(next).map_or(within.end, |&end| end.min(within.end))
                }
            };
        }
        let first = self.doc(if at_end { last } else { within.start });
        let is_equal =
            |doc: u32| self.parts.iter().take(parts).all(|part| self.is_equal(part, first, doc));
        if !at_end {
            return within.start..self.near_first_without(within, is_equal);
        }
        let (mut end, mut step) = (last, 1_u32);
        loop {
            let next = end.saturating_sub(step).max(within.start);
            if next == end || !is_equal(self.doc(next)) {
                let from = if next == end { next } else { next + 1 };
                return self.partition_point(from..end, |doc| !is_equal(doc))..within.end;
            }
            (end, step) = (next, step.saturating_mul(2));
        }
    }

    /// Whether two documents are equal in a part. The sort key of the first one is cached.
    fn is_equal(&self, part: &ReadPart<'_>, first: u32, doc: u32) -> bool {
        let Some(column) = part.column else { return true };
        if column.compare(first, doc).is_eq() {
            return true;
        }
        let Some(order) = part.order else { return false };
        let (Cell::Bytes(one), Cell::Bytes(other)) = (column.get(first), column.get(doc)) else {
            return false;
        };
        let (mut last, mut key) = (self.key.take(), Vec::new());
        order.write_key(other, &mut key);
        let is_equal = last.of(one, order) == key;
        self.key.set(last);
        is_equal
    }

    /// The partition point: the first position for whose document `holds` is false. It must be true for all
    /// positions before it and false for all after it.
    pub fn partition_point(&self, within: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
        let (mut low, mut high) = (within.start, within.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match holds(self.doc(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Compares a document's parts after the first `known` ones with these values, in the order of the index.
    fn compare_with(
        &self,
        doc: u32,
        known: usize,
        prefix: &[Cell<'_>],
        next: Option<Cell<'_>>,
    ) -> Ordering {
        let wanted = prefix.iter().copied().chain(next);
        for (part, wanted) in self.parts.iter().zip(wanted).skip(known) {
            let ordering = match (part.cell(doc), part.order) {
                (Cell::Bytes(text), Some(order)) => {
                    let mut last = self.key.take();
                    let ordering = Cell::Bytes(last.of(text, order)).cmp(&wanted);
                    self.key.set(last);
                    ordering
                }
                (cell, _) => cell.cmp(&wanted),
            };
            if ordering.is_ne() {
                return if part.descending { ordering.reverse() } else { ordering };
            }
        }
        Ordering::Equal
    }

    /// Checks that every document occurs once and in its place, and that the fences are those of the documents. Reads the
    /// whole index and its columns.
    pub fn is_right(&self) -> bool {
        let mut seen = crate::Bitmap::new(self.doc_count);
        let once = (0..self.doc_count).all(|position| {
            let doc = self.doc(position);
            doc < self.doc_count && seen.insert(doc)
        });
        let (mut text, mut last, mut next) = (Vec::new(), (Vec::new(), 0), (Vec::new(), 0));
        once && self.has_right_fences()
            && (0..self.doc_count).all(|position| {
                let doc = self.doc(position);
                next.0.clear();
                self.parts.iter().for_each(|part| part.push_key(doc, &mut text, &mut next.0));
                next.1 = doc;
                let is_right = position == 0 || last < next;
                std::mem::swap(&mut last, &mut next);
                is_right
            })
    }

    fn has_right_fences(&self) -> bool {
        let Some(fences) = &self.stored.fences else { return true };
        let docs = (0..self.doc_count).map(|position| self.doc(position)).collect();
        let text = cell::RefCell::new(Vec::new());
        let made = OrderedDocuments::new(docs, |doc, key| {
            self.parts.iter().for_each(|part| part.push_key(doc, &mut text.borrow_mut(), key));
        });
        fences.are(&made.fences)
    }
}
