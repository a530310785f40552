//! Plain columns, for many distinct values: one value for each document.
//!
//! ```text
//! plain := nulls? values        nulls: u64{doc_count / 64, rounded up}, lowest document in the
//!                               lowest bit, only where the column has NULLs
//! ```
//! A NULL document also has a stored value, which is never returned.

use super::{
    Cell, Predicate,
    cursor::SectionCursor,
    doc_set, leading_number,
    numbers::{BLOCK, NumberBlock, Numbers},
    predicate::inclusive,
    values::Values,
};
use crate::{DocSet, Result, Slice};

const WORDS_PER_BLOCK: usize = BLOCK as usize / 64;

/// A column held value by value.
#[derive(Clone)]
pub(super) struct Plain {
    nulls: Option<Slice>,
    values: Values,
}

impl Plain {
    /// Reads a plain column; `read` reads its values.
    pub fn read(
        cursor: &mut SectionCursor<'_>,
        has_nulls: bool,
        doc_count: u32,
        read: impl FnOnce(u32, &mut SectionCursor<'_>) -> Result<Values>,
    ) -> Result<Self> {
        let null_bytes = doc_count.div_ceil(64) as usize * 8;
        let nulls = has_nulls.then(|| cursor.slice(null_bytes)).transpose()?;
        Ok(Self { nulls, values: read(doc_count, cursor)? })
    }

    /// The stored values; NULLs have an arbitrary one.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The value of a document below the document count.
    #[inline]
    pub fn get(&self, doc: u32) -> Cell<'_> {
        match self.is_null(doc) {
            true => Cell::Null,
            false => self.values.get(doc),
        }
    }

    /// Calls `visit` with the value of each of `docs`, in their order.
    #[inline]
    pub fn for_each_of(&self, docs: &[u32], mut visit: impl FnMut(Cell<'_>)) {
        match (&self.values, &self.nulls) {
            (Values::Ordinal(numbers), None) => {
                numbers.for_each_of(docs, |_, value| visit(Cell::Ordinal(value)));
            }
            (Values::Ordinal(numbers), Some(_)) => {
                numbers.for_each_of(docs, |doc, value| match self.is_null(doc) {
                    true => visit(Cell::Null),
                    false => visit(Cell::Ordinal(value)),
                });
            }
            (Values::Bytes(strings), _) => {
                strings.for_each_of(docs, |doc, string| match self.is_null(doc) {
                    true => visit(Cell::Null),
                    false => visit(Cell::Bytes(string)),
                });
            }
        }
    }

    #[inline]
    fn is_null(&self, doc: u32) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| {
            nulls.get(doc as usize / 8).is_some_and(|byte| byte >> (doc % 8) & 1 == 1)
        })
    }

    /// A rank: a lower number means a lower value, equal numbers decide nothing.
    #[inline]
    pub fn rank(&self, doc: u32) -> u64 {
        match self.get(doc) {
            Cell::Null => 0,
            Cell::Ordinal(value) if self.nulls.is_none() => value,
            Cell::Ordinal(value) => value.saturating_add(1),
            Cell::Bytes(value) => leading_number(value),
        }
    }

    /// The documents that satisfy the condition. A block of numbers is not read if its minimum and maximum
    /// (the zone map) decide.
    pub fn select(&self, predicate: &Predicate) -> DocSet {
        if let Predicate::IsNull = predicate {
            return doc_set(self.values.len(), self.null_words().collect());
        }
        let mut words = vec![0; self.values.len().div_ceil(64) as usize];
        match (&self.values, predicate) {
            (Values::Ordinal(numbers), Predicate::OrdinalRange(low, high)) => {
                if let Some((low, high)) = inclusive(*low, *high) {
                    each_block(numbers, &mut words, |block, words| {
                        select_range(numbers, block, low, high, words);
                    });
                }
            }
            (Values::Ordinal(numbers), Predicate::OrdinalIn(values)) => {
                each_block(numbers, &mut words, |block, words| {
                    select_in(numbers, block, values, words);
                });
            }
            (Values::Bytes(strings), predicate) => strings.for_each(|doc, value| {
                let bit = u64::from(predicate.matches(Cell::Bytes(value))) << (doc % 64);
                if let Some(word) = words.get_mut(doc as usize / 64) {
                    *word |= bit;
                }
            }),
            _ => {}
        }
        words.iter_mut().zip(self.null_words()).for_each(|(word, nulls)| *word &= !nulls);
        doc_set(self.values.len(), words)
    }

    /// Keeps the documents that satisfy the condition.
    pub fn retain(&self, docs: &mut Vec<u32>, predicate: &Predicate) {
        docs.retain(|&doc| doc < self.values.len() && predicate.matches(self.get(doc)));
    }

    /// Calls `visit` with each distinct value among `docs`, in ascending order, and its count: O(n log n).
    pub fn count_values(&self, docs: &DocSet, visit: &mut dyn FnMut(Cell<'_>, u32)) {
        let mut null_count = 0;
        let mut present = Vec::with_capacity(docs.count() as usize);
        docs.for_each(|doc| match doc < self.values.len() && !self.is_null(doc) {
            true => present.push(doc),
            false => null_count += u32::from(doc < self.values.len()),
        });
        if null_count > 0 {
            visit(Cell::Null, null_count);
        }
        match &self.values {
            Values::Ordinal(numbers) => {
                let values = present.iter().map(|&doc| numbers.get(doc));
                count_sorted(values.collect(), |value, count| visit(Cell::Ordinal(value), count));
            }
            Values::Bytes(strings) => {
                let values = present.iter().map(|&doc| strings.get(doc));
                count_sorted(values.collect(), |value, count| visit(Cell::Bytes(value), count));
            }
        }
    }

    fn null_words(&self) -> impl Iterator<Item = u64> + '_ {
        let bytes = self.nulls.as_deref().unwrap_or_default();
        bytes.chunks_exact(8).filter_map(|word| word.first_chunk().copied()).map(u64::from_le_bytes)
    }
}

/// Calls `select` with each block of numbers and the words of the result that belong to it.
fn each_block(
    numbers: &Numbers,
    words: &mut [u64],
    mut select: impl FnMut(&NumberBlock, &mut [u64]),
) {
    for (index, words) in words.chunks_mut(WORDS_PER_BLOCK).enumerate() {
        if let Some(block) = numbers.block(index as u32) {
            select(&block, words);
        }
    }
}

/// Sets the bits of the values within `low..=high`.
fn select_range(numbers: &Numbers, block: &NumberBlock, low: u64, high: u64, words: &mut [u64]) {
    if high < block.min || block.max < low {
        return;
    }
    if low <= block.min && block.max <= high {
        return words.fill(!0);
    }
    let start = low.saturating_sub(block.min);
    let span = high - block.min - start;
    numbers.scan(block, |value| value.wrapping_sub(start) <= span, words);
}

/// Sets the bits of the values that are in `values`, which is sorted.
fn select_in(numbers: &Numbers, block: &NumberBlock, values: &[u64], words: &mut [u64]) {
    let start = values.partition_point(|&value| value < block.min);
    let end = values.partition_point(|&value| value <= block.max);
    match values.get(start..end).unwrap_or_default() {
        [] => {}
        [value] => select_range(numbers, block, *value, *value, words),
        values => {
            let test = |value| values.binary_search(&block.min.wrapping_add(value)).is_ok();
            numbers.scan(block, test, words);
        }
    }
}

fn count_sorted<T: Ord + Copy>(mut values: Vec<T>, mut visit: impl FnMut(T, u32)) {
    values.sort_unstable();
    for run in values.chunk_by(|a, b| a == b) {
        if let [value, ..] = run {
            visit(*value, run.len() as u32);
        }
    }
}
