//! Typed columns: the values that are filtered, sorted, grouped or returned.
//!
//! ```text
//! section COLM, id of the column:
//! column := kind:u8 layout:u8 has_nulls:u8 0:u8 doc_count:u32 body
//! kind   := 0 (ordinal) | 1 (bytes)
//! layout := 0 (plain) | 1 (dictionary)
//! body   := plain | dictionary
//! ```
//! The files of those names describe `plain` and `dictionary`; `values`, `numbers` and `packed` describe
//! their parts. Everything is little endian and read in place.

mod dictionary;
mod plain;
mod predicate;
mod values;
mod writer;

pub(crate) mod cursor;
pub(crate) mod numbers;
pub(crate) mod packed;

#[cfg(test)]
mod tests;

use std::{cmp::Ordering, sync::Arc};

use self::{cursor::SectionCursor, dictionary::Dictionary, plain::Plain, values::Values};
use crate::{Bitmap, DocSet, IndexError, Result, SectionTag, Sections, TextOrder};

pub use self::{predicate::Predicate, writer::ColumnWriter};

const COLUMN: SectionTag = SectionTag(*b"COLM");
const PLAIN: u8 = 0;
const DICTIONARY: u8 = 1;
/// The longest byte value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Document numbers end below `u32::MAX`, so that a count of them plus one is a `u32`.
pub(crate) const MAX_DOCUMENTS: u32 = u32::MAX - 1;

/// How a column's values are stored. The engine maps its types to these two so that they keep the order of
/// the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Order-preserving 64-bit numbers: integers, floats, dates, times.
    Ordinal,
    /// Order-preserving byte strings: short text, wide decimals.
    Bytes,
}

/// One value of a column, borrowed. `Null` sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A value of an ordinal column.
    Ordinal(u64),
    /// A value of a byte column.
    Bytes(&'a [u8]),
}

/// One column of a segment. Cloning it copies no values; reading takes no locks.
#[derive(Clone)]
pub struct Column {
    layout: Layout,
    doc_count: u32,
}

#[derive(Clone)]
enum Layout {
    Plain(Plain),
    Dictionary(Dictionary),
}

impl Column {
    /// Opens the column `id`, or `None` if the segment was written before the column existed.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the section is not a column of `doc_count` documents.
    pub fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(section) = sections.get(COLUMN, id) else { return Ok(None) };
        let mut cursor = SectionCursor::new(section);
        let (kind, layout) = (cursor.u8()?, cursor.u8()?);
        let (nulls, reserved) = (cursor.u8()?, cursor.u8()?);
        if nulls > 1 || reserved != 0 || cursor.u32()? != doc_count || doc_count > MAX_DOCUMENTS {
            return Err(IndexError::Corrupt(format!("header of column {id}")));
        }
        let kind = parse_kind(kind)?;
        let read = |count, cursor: &mut SectionCursor<'_>| Values::read(kind, count, cursor);
        let layout = match layout {
            PLAIN => Layout::Plain(Plain::read(&mut cursor, nulls == 1, doc_count, read)?),
            DICTIONARY => {
                Layout::Dictionary(Dictionary::read(&mut cursor, nulls == 1, doc_count, read)?)
            }
            _ => return Err(IndexError::Corrupt(format!("layout of column {id}"))),
        };
        cursor.finish()?;
        Ok(Some(Self { layout, doc_count }))
    }

    /// How values are held.
    pub fn kind(&self) -> ColumnKind {
        match &self.layout {
            Layout::Plain(plain) => plain.values().kind(),
            Layout::Dictionary(dictionary) => dictionary.values().kind(),
        }
    }

    /// The value of a document; `Null` past the end. O(1).
    #[inline]
    pub fn get(&self, doc: u32) -> Cell<'_> {
        match &self.layout {
            _ if doc >= self.doc_count => Cell::Null,
            Layout::Plain(plain) => plain.get(doc),
            Layout::Dictionary(dictionary) => dictionary.get(doc),
        }
    }

    /// Calls `visit` with the value of each of `docs`, in their order. Same as [`Column::get`] for each, but
    /// consecutive documents of one block share one look-up of it. A document past the end gets an arbitrary
    /// value.
    #[inline]
    pub fn for_each_of(&self, docs: &[u32], visit: impl FnMut(Cell<'_>)) {
        match &self.layout {
            Layout::Plain(plain) => plain.for_each_of(docs, visit),
            Layout::Dictionary(dictionary) => dictionary.for_each_of(docs, visit),
        }
    }

    /// Prefetches the values of `docs` (a few dozen documents) into the processor's cache. The loads are
    /// independent, so that the waits for memory overlap. Without it each value would be loaded only after
    /// the work on the one before.
    #[inline]
    pub fn load(&self, docs: &[u32]) {
        let mut seen = 0;
        self.for_each_of(docs, |cell| {
            seen ^= match cell {
                Cell::Null => 0,
                Cell::Ordinal(number) => number,
                // The first and the last byte touch all of a value of up to two cache lines.
                Cell::Bytes(bytes) => match bytes {
                    [] => 0,
                    [first, .., last] => u64::from(*first ^ *last),
                    [only] => u64::from(*only),
                },
            }
        });
        std::hint::black_box(seen);
    }

    /// The documents that satisfy the condition.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if the condition is not of the column's kind.
    pub fn select(&self, predicate: &Predicate) -> Result<DocSet> {
        if !predicate.fits(self.kind()) {
            let kind = self.kind();
            return Err(IndexError::Invalid(format!("a column of {kind:?} has no {predicate:?}")));
        }
        Ok(match &self.layout {
            Layout::Plain(plain) => plain.select(predicate),
            Layout::Dictionary(dictionary) => dictionary.select(predicate),
        })
    }

    /// The documents whose sort key in a text order satisfies the condition. Cost: one sort key for each
    /// distinct value of a dictionary column, for each document of a plain one.
    ///
    /// # Errors
    /// Those of [`Column::select`].
    pub fn select_by_key(&self, order: TextOrder, predicate: &Predicate) -> Result<DocSet> {
        let mut key = Vec::new();
        let mut holds = |cell: Cell<'_>| predicate.matches_by_key(order, cell, &mut key);
        if let Layout::Dictionary(dictionary) = &self.layout {
            return self.select(&texts_of_keys(dictionary, &mut holds));
        }
        let mut words = vec![0_u64; self.doc_count.div_ceil(64) as usize];
        for (word, first) in words.iter_mut().zip((0..self.doc_count).step_by(64)) {
            for doc in first..self.doc_count.min(first + 64) {
                *word |= u64::from(holds(self.get(doc))) << (doc - first);
            }
        }
        Ok(doc_set(self.doc_count, words))
    }

    /// Keeps the documents of `docs` whose sort key in a text order satisfies the condition.
    pub fn retain_by_key(&self, docs: &mut Vec<u32>, order: TextOrder, predicate: &Predicate) {
        let mut key = Vec::new();
        let mut holds = |cell: Cell<'_>| predicate.matches_by_key(order, cell, &mut key);
        match &self.layout {
            // One sort key for each value is cheaper than one for each document.
            Layout::Dictionary(dictionary)
                if (dictionary.values().len() as usize) < docs.len()
                    && !matches!(predicate, Predicate::IsNull) =>
            {
                dictionary.retain(docs, &texts_of_keys(dictionary, &mut holds));
            }
            _ => docs.retain(|&doc| holds(self.get(doc))),
        }
    }

    /// Keeps the documents of `docs` that satisfy the condition. Cheaper than [`Column::select`] if `docs` is
    /// small. Nothing satisfies a condition of another kind than the column's.
    pub fn retain(&self, docs: &mut Vec<u32>, predicate: &Predicate) {
        match &self.layout {
            _ if !predicate.fits(self.kind()) => docs.clear(),
            Layout::Plain(plain) => plain.retain(docs, predicate),
            Layout::Dictionary(dictionary) => dictionary.retain(docs, predicate),
        }
    }

    /// Compares the values of two documents of this segment.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        match &self.layout {
            Layout::Dictionary(dictionary) if a.max(b) < self.doc_count => dictionary.compare(a, b),
            _ => self.get(a).cmp(&self.get(b)),
        }
    }

    /// Whether all distinct texts of the column have distinct sort keys in a text order. Also false if there
    /// are too many to check. Cost: up to 4,096 sort keys, once.
    pub fn has_distinct_keys(&self, order: TextOrder) -> bool {
        match &self.layout {
            Layout::Dictionary(dictionary) => dictionary.has_distinct_keys(order),
            Layout::Plain(_) => false,
        }
    }

    /// A rank: a number that orders this segment's documents by value (NULL is 0).
    ///
    /// A lower rank means a lower value. Equal ranks do not mean equal values (byte strings with the same
    /// first bytes, or the two greatest ordinals): use [`Column::compare`] for those. Ranks of different
    /// segments are not comparable.
    #[inline]
    pub fn rank(&self, doc: u32) -> u64 {
        match &self.layout {
            _ if doc >= self.doc_count => 0,
            Layout::Plain(plain) => plain.rank(doc),
            Layout::Dictionary(dictionary) => u64::from(dictionary.code(doc)),
        }
    }

    /// The number of distinct values, NULL among them; `None` if the column has no dictionary.
    pub fn value_count(&self) -> Option<u32> {
        match &self.layout {
            Layout::Plain(_) => None,
            Layout::Dictionary(dictionary) => Some(dictionary.value_count()),
        }
    }

    /// The distinct values of the column, NULL first, then ascending; `None` if the column has no dictionary.
    pub fn distinct_values(&self) -> Option<impl Iterator<Item = Cell<'_>>> {
        match &self.layout {
            Layout::Plain(_) => None,
            Layout::Dictionary(dictionary) => Some(dictionary.distinct_values()),
        }
    }

    /// Calls `visit` once for each distinct value among `docs` with the number of documents that have it, in
    /// ascending order, NULL first.
    pub fn count_values(&self, docs: &DocSet, visit: &mut dyn FnMut(Cell<'_>, u32)) {
        match &self.layout {
            Layout::Plain(plain) => plain.count_values(docs, visit),
            Layout::Dictionary(dictionary) => dictionary.count_values(docs, visit),
        }
    }
}

/// The condition that a text is one of the dictionary's values for which `holds` is true.
fn texts_of_keys(dictionary: &Dictionary, holds: &mut dyn FnMut(Cell<'_>) -> bool) -> Predicate {
    let values = dictionary.values();
    let values = (0..values.len()).map(|index| values.get(index));
    let matching = values.filter(|value| holds(*value)).filter_map(|value| match value {
        Cell::Bytes(text) => Some(text.to_vec()),
        _ => None,
    });
    Predicate::BytesIn(matching.collect())
}

fn kind_code(kind: ColumnKind) -> u8 {
    match kind {
        ColumnKind::Ordinal => 0,
        ColumnKind::Bytes => 1,
    }
}

fn parse_kind(code: u8) -> Result<ColumnKind> {
    match code {
        0 => Ok(ColumnKind::Ordinal),
        1 => Ok(ColumnKind::Bytes),
        _ => Err(IndexError::corrupt("kind of a column")),
    }
}

/// The documents whose bits are set, as a list or as bits, whichever is cheaper.
fn doc_set(doc_count: u32, words: Vec<u64>) -> DocSet {
    let bits = Bitmap::from_words(doc_count, words);
    match bits.count() <= doc_count / 32 {
        true => DocSet::List(bits.iter().collect()),
        false => DocSet::Bits(Arc::new(bits)),
    }
}

/// The first eight bytes as a big-endian number; missing bytes are zero. A lower number means a lower string;
/// equal numbers decide nothing.
#[inline]
pub(crate) fn leading_number(bytes: &[u8]) -> u64 {
    if let Some(leading) = bytes.first_chunk() {
        return u64::from_be_bytes(*leading);
    }
    let mut leading = [0; 8];
    leading.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(leading)
}
