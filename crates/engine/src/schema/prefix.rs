//! Prefix columns: what segments hold of a text or byte column that is too long for them, for secondary indexes.
//!
//! A prefix column has the first bytes of the sort key of each whole value, in the text order of the index, or the first
//! bytes of the value itself in byte order. Cutting keys keeps their order: if one key is at most another, so are their
//! prefixes. (Cutting texts would not: "straße" equals "strasse" in many collations, but their first five characters
//! differ.) So every row that satisfies a comparison also satisfies it on the prefixes, and others may: whoever asks
//! prefix columns must test the whole values of the rows found.
//!
//! A prefix column is a column of the segment file like any other, with a number that stands for what it is of:
//!
//! ```text
//! number := 1:1 size:2 order:13 column:16 (from the highest bit)
//! size   := 0, 1, 2, 3 for 32, 64, 128, 256 bytes
//! order  := the number of the text order, 0 for byte order
//! ```
//! A segment without a prefix column also lacks the indexes over it: see [`without_absent`].

use std::ops::Bound;

use remora_index::{
    TextOrder,
    column::Predicate,
    segment::{Segment, SegmentSpec},
};

use super::{IndexColumn, Schema, text_order::text_order};
use crate::{ColumnType, Value};

/// The sizes of prefixes in bytes, ascending.
const SIZES: [u16; 4] = [32, 64, 128, 256];
/// The numbers of other columns are below this one.
pub(crate) const FIRST_PREFIX_COLUMN: u32 = 1 << 31;
/// Most collations have two bytes of sort key for a character.
const KEY_BYTES: u64 = 2;
/// What follows in a text changes at most this many bytes before the end of the sort key of its beginning.
const UNSETTLED: usize = 64;
/// A text that no order ignores, and that is no accent of a letter before it.
const FOLLOWING: &str = "zz";

/// The bytes that a prefix index holds of each sort key, for a declared prefix of so many characters, or of bytes if the
/// column has bytes (`is_text` is false). Without a declared prefix, as many as possible.
pub fn prefix_size(declared: Option<u64>, is_text: bool) -> u16 {
    let of_each = if is_text { KEY_BYTES } else { 1 };
    let wanted = declared.map_or(u64::MAX, |length| length.saturating_mul(of_each));
    SIZES.into_iter().find(|size| u64::from(*size) >= wanted).unwrap_or(256)
}

/// Whether a prefix may have so many bytes.
pub(super) fn is_prefix_size(bytes: u16) -> bool {
    SIZES.contains(&bytes)
}

/// Whether a column of a segment is a prefix column.
pub(crate) fn is_prefix_column(id: u32) -> bool {
    id >= FIRST_PREFIX_COLUMN
}

/// A prefix column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PrefixColumn {
    /// Its number in segments.
    pub id: u32,
    /// The position of the column that it is of.
    pub column: usize,
    /// The text order of its sort keys; `None` for byte order.
    pub order: Option<TextOrder>,
    /// The most bytes of a value.
    pub bytes: u16,
}

impl PrefixColumn {
    /// The number of the prefix column that a part of an index is over; `None` if the part is over the whole column, or
    /// if the numbers of column and order are too high.
    pub fn number(schema: &Schema, part: &IndexColumn) -> Option<u32> {
        let size = SIZES.iter().position(|size| Some(*size) == part.prefix)? as u32;
        let of = schema.columns.get(part.column)?;
        let is_ordered = match part.order {
            Some(number) => (1..1 << 13).contains(&number) && of.kind == ColumnType::Text,
            None => matches!(of.kind, ColumnType::Text | ColumnType::Bytes),
        };
        let order = part.order.unwrap_or(0);
        (of.id < 1 << 16 && is_ordered)
            .then_some(FIRST_PREFIX_COLUMN | size << 29 | order << 16 | of.id)
    }

    /// The prefix column that a part of an index is over; `None` also if no function for its text order is registered.
    pub fn of(schema: &Schema, part: &IndexColumn) -> Option<Self> {
        let id = Self::number(schema, part)?;
        let order = match part.order {
            Some(number) => Some(text_order(number)?),
            None => None,
        };
        Some(Self { id, column: part.column, order, bytes: part.prefix? })
    }

    /// The prefix columns of a table's indexes, each once.
    pub fn all(schema: &Schema) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for part in schema.indexes.iter().flat_map(|index| &index.columns) {
            if let Some(prefix) = Self::of(schema, part)
                && all.iter().all(|other| other.id != prefix.id)
            {
                all.push(prefix);
            }
        }
        all
    }

    /// Its value for a row; `None` for NULL. Cost: the sort key of about as many bytes as a prefix has, and of the
    /// whole text if an order ignores most of it.
    pub fn value(&self, row: &[Value]) -> Option<Vec<u8>> {
        let bytes: &[u8] = match (row.get(self.column)?, self.order) {
            (Value::Text(text), Some(order)) => {
                return Some(first_of_key(text, order, self.bytes.into()));
            }
            (Value::Text(text), None) => text.as_bytes(),
            (Value::Bytes(bytes), None) => bytes,
            _ => return None,
        };
        Some(self.cut(bytes).to_vec())
    }

    fn cut<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(..self.bytes.into()).unwrap_or(key)
    }

    /// What the prefixes of values satisfy if the values or their sort keys satisfy this.
    pub fn implied(&self, predicate: &Predicate) -> Option<Predicate> {
        match predicate {
            Predicate::BytesIn(keys) => {
                let mut keys: Vec<_> = keys.iter().map(|key| self.cut(key).to_vec()).collect();
                keys.sort_unstable();
                keys.dedup();
                Some(Predicate::BytesIn(keys))
            }
            Predicate::BytesRange(low, high) => {
                let is_cut = |key: &[u8]| key.len() >= self.bytes.into();
                let cut = |bound: &Bound<Vec<u8>>| match bound {
                    Bound::Included(key) | Bound::Excluded(key) if is_cut(key) => {
                        Bound::Included(self.cut(key).to_vec())
                    }
                    bound => bound.clone(),
                };
                Some(Predicate::BytesRange(cut(low), cut(high)))
            }
            _ => None,
        }
    }
}

/// The first bytes of the sort key of a text. A long text is not read to its end: once its beginning has the same key
/// for some bytes more, with and without something behind it, nothing further on changes the first ones.
fn first_of_key(text: &str, order: TextOrder, bytes: usize) -> Vec<u8> {
    let (mut key, mut longer) = (Vec::new(), Vec::new());
    let wanted = bytes + UNSETTLED;
    let mut length = 2 * wanted;
    while length < text.len() {
        let at = (0..=length).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let beginning = text.get(..at).unwrap_or(text);
        order.write_key(beginning.as_bytes(), &mut key);
        order.write_key([beginning, FOLLOWING].concat().as_bytes(), &mut longer);
        if key.len() >= wanted && key.get(..wanted) == longer.get(..wanted) {
            key.truncate(bytes);
            return key;
        }
        length = length.saturating_mul(2);
    }
    order.write_key(text.as_bytes(), &mut key);
    key.truncate(bytes);
    key
}

/// Leaves out of a specification the prefix columns that one of these segments does not have, and the indexes over
/// them. They cannot be made of segments, only of rows.
pub(crate) fn without_absent<'s>(
    spec: &mut SegmentSpec,
    segments: impl Iterator<Item = &'s Segment> + Clone,
) {
    let is_absent = |id: u32| {
        is_prefix_column(id) && segments.clone().any(|segment| segment.column(id).is_none())
    };
    spec.columns.retain(|column| !is_absent(column.id));
    spec.indexes.retain(|index| !index.parts.iter().any(|part| is_absent(part.column)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDED: TextOrder = TextOrder {
        number: 7,
        key: |_, text, key| {
            let text = String::from_utf8_lossy(text).to_lowercase().replace('-', "");
            key.extend_from_slice(text.trim_end_matches(' ').as_bytes());
            key.push(0);
            key.extend(text.len().to_be_bytes());
        },
    };

    #[test]
    fn a_prefix_is_that_of_the_whole_key() {
        let long = "Ab".repeat(600);
        let spaces = format!("a{}b{}", " ".repeat(900), "c".repeat(900));
        let ignored = format!("a{}b{}", "-".repeat(5_000), "c".repeat(900));
        let letters = "ÄÖé".repeat(300);
        for text in ["", "a", &long, &spaces, &ignored, &letters] {
            for bytes in [32, 256] {
                let mut whole = Vec::new();
                FOLDED.write_key(text.as_bytes(), &mut whole);
                whole.truncate(bytes);
                assert_eq!(first_of_key(text, FOLDED, bytes), whole, "{text:.20}");
            }
        }
    }

    #[test]
    fn sizes_follow_what_is_declared() {
        let sizes = [Some(1), Some(16), Some(17), Some(100), Some(128), Some(3_072), None];
        assert_eq!(sizes.map(|it| prefix_size(it, true)), [32, 32, 64, 256, 256, 256, 256]);
        assert_eq!(sizes.map(|it| prefix_size(it, false)), [32, 32, 32, 128, 128, 256, 256]);
    }

    #[test]
    fn bounds_that_are_cut_include_their_prefix() {
        let prefix = PrefixColumn { id: FIRST_PREFIX_COLUMN, column: 0, order: None, bytes: 32 };
        let implied = |low, high| prefix.implied(&Predicate::BytesRange(low, high)).unwrap();
        let (long, cut) = (vec![7; 40], vec![7; 32]);
        let same = |one: &Predicate, other: Predicate| {
            assert_eq!(format!("{one:?}"), format!("{other:?}"))
        };
        same(
            &implied(Bound::Excluded(long.clone()), Bound::Excluded(long.clone())),
            Predicate::BytesRange(Bound::Included(cut.clone()), Bound::Included(cut.clone())),
        );
        let short = || Bound::Excluded(vec![7; 31]);
        same(&implied(short(), Bound::Unbounded), Predicate::BytesRange(short(), Bound::Unbounded));
        let list = prefix.implied(&Predicate::BytesIn(vec![vec![7; 35], long, vec![8]])).unwrap();
        same(&list, Predicate::BytesIn(vec![cut, vec![8]]));
    }
}
