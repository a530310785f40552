//! Dictionary columns, for few distinct values: the sorted values and a code for each document.
//!
//! ```text
//! dictionary := value_count:u32 values code_bytes:u64 packed zero{8}
//! ```
//! The codes have the width of the greatest code. Without NULLs the code is the value's index;
//! with them it is the index plus one and NULL is code 0.

use std::{
    cmp::Ordering,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use super::{
    Cell, Predicate,
    cursor::SectionCursor,
    doc_set,
    numbers::BLOCK,
    packed::{self, PADDING_BYTES},
    values::Values,
};
use crate::{Bitmap, DocSet, IndexError, Result, Slice, TextOrder};

/// The most values of a dictionary: codes have at most 16 bits, and one code is NULL.
pub(super) const MAX_VALUES: u32 = u16::MAX as u32;

/// Up to this many values, sort keys are computed to see whether they are distinct.
const MAX_KEYS: u32 = 1 << 12;

/// A column held as codes.
#[derive(Clone)]
pub(super) struct Dictionary {
    values: Values,
    codes: Slice,
    width: u32,
    /// 1 if the column has NULLs, else 0: the code of the first value.
    first_code: u32,
    doc_count: u32,
    /// The number of a text order, and whether all values have distinct sort keys in it. Computed once.
    distinct_keys: Arc<OnceLock<(u32, bool)>>,
}

/// A condition, translated to codes.
enum CodeTest {
    /// Codes from the first (included) to the second (excluded).
    Range(u32, u32),
    Set(Bitmap),
}

impl CodeTest {
    fn matches(&self, code: u32) -> bool {
        match self {
            Self::Range(start, end) => (*start..*end).contains(&code),
            Self::Set(set) => set.contains(code),
        }
    }
}

/// The width of the codes of `value_count` values.
fn code_width(value_count: u32, first_code: u32) -> u32 {
    packed::width_for((u64::from(value_count) + u64::from(first_code)).saturating_sub(1))
}

/// Appends the codes that follow the values.
pub(super) fn write_codes(codes: &[u32], value_count: u32, has_nulls: bool, out: &mut Vec<u8>) {
    let width = code_width(value_count, u32::from(has_nulls));
    let code_bytes = packed::packed_bytes(codes.len() as u32, width) + PADDING_BYTES;
    out.extend_from_slice(&(code_bytes as u64).to_le_bytes());
    packed::pack(codes.iter().map(|&code| u64::from(code)), width, out);
    out.extend_from_slice(&[0; PADDING_BYTES]);
}

impl Dictionary {
    /// Reads a dictionary; `read` reads its values.
    pub fn read(
        cursor: &mut SectionCursor<'_>,
        has_nulls: bool,
        doc_count: u32,
        read: impl FnOnce(u32, &mut SectionCursor<'_>) -> Result<Values>,
    ) -> Result<Self> {
        let value_count = cursor.u32()?;
        if value_count > MAX_VALUES {
            return Err(IndexError::corrupt("a dictionary has too many values"));
        }
        let values = read(value_count, cursor)?;
        let code_bytes = cursor.length()?;
        let codes = cursor.slice(code_bytes)?;
        let first_code = u32::from(has_nulls);
        let width = code_width(value_count, first_code);
        if codes.len() != packed::packed_bytes(doc_count, width) + PADDING_BYTES {
            return Err(IndexError::corrupt("a column has another number of codes"));
        }
        let distinct_keys = Arc::default();
        Ok(Self { values, codes, width, first_code, doc_count, distinct_keys })
    }

    /// The distinct values, sorted.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The number of distinct values, NULL among them.
    pub fn value_count(&self) -> u32 {
        self.values.len().saturating_add(self.first_code)
    }

    /// The values that some document has, NULL first.
    pub fn distinct_values(&self) -> impl Iterator<Item = Cell<'_>> {
        (0..self.value_count()).map(|code| self.value(code))
    }

    /// Whether all values have distinct sort keys in this order. Also false if there are too many
    /// values to check. The answer is cached for the first order that is requested.
    pub fn has_distinct_keys(&self, order: TextOrder) -> bool {
        let first = self.distinct_keys.get_or_init(|| (order.number, self.are_distinct(order)));
        if first.0 == order.number { first.1 } else { self.are_distinct(order) }
    }

    fn are_distinct(&self, order: TextOrder) -> bool {
        if self.values.len() > MAX_KEYS {
            return false;
        }
        let key = |index: u32| {
            let mut key = Vec::new();
            if let Cell::Bytes(text) = self.values.get(index) {
                order.write_key(text, &mut key);
            }
            key
        };
        let mut keys: Vec<Vec<u8>> = (0..self.values.len()).map(key).collect();
        keys.sort_unstable();
        keys.is_sorted_by(|a, b| a < b)
    }

    /// The code of a document. Codes order as the values do.
    #[inline]
    pub fn code(&self, doc: u32) -> u32 {
        packed::get(&self.codes, self.width, doc as usize) as u32
    }

    /// The value of a document below `doc_count`.
    #[inline]
    pub fn get(&self, doc: u32) -> Cell<'_> {
        self.value(self.code(doc))
    }

    /// Calls `visit` with the value of each of `docs`, in their order.
    #[inline]
    pub fn for_each_of(&self, docs: &[u32], mut visit: impl FnMut(Cell<'_>)) {
        let codes: &[u8] = &self.codes;
        let code = |doc: u32| packed::get(codes, self.width, doc as usize) as u32;
        // The values of most dictionaries fit in one block: its directory entry is read once.
        if let Values::Ordinal(numbers) = &self.values
            && numbers.len() <= BLOCK
            && let Some(block) = numbers.block(0)
        {
            for &doc in docs {
                visit(match code(doc).checked_sub(self.first_code) {
                    Some(index) if index < numbers.len() => {
                        Cell::Ordinal(numbers.get_in(&block, index))
                    }
                    _ => Cell::Null,
                });
            }
            return;
        }
        docs.iter().for_each(|&doc| visit(self.value(code(doc))));
    }

    #[inline]
    fn value(&self, code: u32) -> Cell<'_> {
        match code.checked_sub(self.first_code) {
            Some(index) if index < self.values.len() => self.values.get(index),
            _ => Cell::Null,
        }
    }

    /// Orders two documents.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        self.code(a).cmp(&self.code(b))
    }

    /// The documents that satisfy the condition: one pass over the codes.
    pub fn select(&self, predicate: &Predicate) -> DocSet {
        let mut words = vec![0; self.doc_count.div_ceil(64) as usize];
        match self.test(predicate) {
            CodeTest::Range(start, end) if start >= end => return DocSet::empty(),
            CodeTest::Range(start, end) => {
                let (start, span) = (u64::from(start), u64::from(end - start));
                let test = |code: u64| code.wrapping_sub(start) < span;
                packed::scan(&self.codes, self.width, test, &mut words);
            }
            CodeTest::Set(set) => {
                let test = |code: u64| set.contains(code as u32);
                packed::scan(&self.codes, self.width, test, &mut words);
            }
        }
        doc_set(self.doc_count, words)
    }

    /// Keeps the documents that satisfy the condition.
    pub fn retain(&self, docs: &mut Vec<u32>, predicate: &Predicate) {
        let test = self.test(predicate);
        docs.retain(|&doc| doc < self.doc_count && test.matches(self.code(doc)));
    }

    /// Calls `visit` with each distinct value among `docs`, in ascending order, and how many documents have
    /// it.
    pub fn count_values(&self, docs: &DocSet, visit: &mut dyn FnMut(Cell<'_>, u32)) {
        let mut counts = vec![0u32; self.values.len() as usize + self.first_code as usize];
        let codes: &[u8] = &self.codes;
        docs.for_each(|doc| {
            let code = packed::get(codes, self.width, doc as usize) as usize;
            if let (true, Some(count)) = (doc < self.doc_count, counts.get_mut(code)) {
                *count += 1;
            }
        });
        for (code, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            visit(self.value(code as u32), count);
        }
    }

    fn test(&self, predicate: &Predicate) -> CodeTest {
        match predicate {
            Predicate::IsNull => CodeTest::Range(0, self.first_code),
            Predicate::OrdinalRange(low, high) => {
                self.code_range(low.map(Cell::Ordinal), high.map(Cell::Ordinal))
            }
            Predicate::BytesRange(low, high) => self.code_range(
                low.as_ref().map(|low| Cell::Bytes(low)),
                high.as_ref().map(|high| Cell::Bytes(high)),
            ),
            Predicate::OrdinalIn(values) => {
                self.code_set(values.iter().map(|value| Cell::Ordinal(*value)))
            }
            Predicate::BytesIn(values) => {
                self.code_set(values.iter().map(|value| Cell::Bytes(value)))
            }
        }
    }

    fn code_range(&self, low: Bound<Cell<'_>>, high: Bound<Cell<'_>>) -> CodeTest {
        let start = match low {
            Bound::Included(low) => self.values.partition_point(|value| value < low),
            Bound::Excluded(low) => self.values.partition_point(|value| value <= low),
            Bound::Unbounded => 0,
        };
        let end = match high {
            Bound::Included(high) => self.values.partition_point(|value| value <= high),
            Bound::Excluded(high) => self.values.partition_point(|value| value < high),
            Bound::Unbounded => self.values.len(),
        };
        CodeTest::Range(start + self.first_code, end + self.first_code)
    }

    fn code_set<'c>(&self, cells: impl Iterator<Item = Cell<'c>>) -> CodeTest {
        let codes: Vec<u32> = cells.filter_map(|cell| self.find(cell)).collect();
        match (codes.first(), codes.last()) {
            (Some(&first), Some(&last)) if last.wrapping_sub(first) as usize + 1 == codes.len() => {
                CodeTest::Range(first, last + 1)
            }
            (Some(_), Some(_)) => {
                let mut set = Bitmap::new(self.values.len() + self.first_code);
                codes.into_iter().for_each(|code| {
                    set.insert(code);
                });
                CodeTest::Set(set)
            }
            _ => CodeTest::Range(0, 0),
        }
    }

    fn find(&self, cell: Cell<'_>) -> Option<u32> {
        let index = self.values.partition_point(|value| value < cell);
        let found = index < self.values.len() && self.values.get(index) == cell;
        found.then_some(index + self.first_code)
    }
}
