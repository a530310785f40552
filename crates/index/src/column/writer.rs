//! Collects a column and chooses its layout.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{
    COLUMN, Cell, ColumnKind, DICTIONARY, MAX_DOCUMENTS, MAX_VALUE_BYTES, PLAIN,
    dictionary::{MAX_VALUES, write_codes},
    kind_code,
    numbers::write_numbers,
    values::write_strings,
};
use crate::{IndexError, Result, SectionWriter};

/// A dictionary is used if each value occurs in at least this many documents on average.
const MIN_DOCUMENTS_PER_VALUE: usize = 4;

/// Collects one column of a segment in document order.
pub struct ColumnWriter {
    id: u32,
    /// One bit a document.
    nulls: Vec<u64>,
    has_nulls: bool,
    values: Collected,
}

/// The values in document order; a NULL has a filler value.
enum Collected {
    Ordinal(Vec<u64>),
    Bytes { offsets: Vec<u64>, blob: Vec<u8> },
}

impl ColumnWriter {
    /// An empty column `id`.
    pub fn new(id: u32, kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Ordinal => Collected::Ordinal(Vec::new()),
            ColumnKind::Bytes => Collected::Bytes { offsets: vec![0], blob: Vec::new() },
        };
        Self { id, nulls: Vec::new(), has_nulls: false, values }
    }

    /// Appends the next document's value.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if the value is not of the column's kind or is a byte string longer
    /// than 1 MiB. [`IndexError::Full`] if every document number has a value already.
    pub fn push(&mut self, cell: Cell<'_>) -> Result<()> {
        if self.len() >= MAX_DOCUMENTS as usize {
            return Err(IndexError::Full("a column has a value for every document number"));
        }
        let doc = self.len();
        match (&mut self.values, cell) {
            (Collected::Ordinal(values), Cell::Ordinal(value)) => values.push(value),
            (Collected::Ordinal(values), Cell::Null) => {
                values.push(values.last().copied().unwrap_or(0));
            }
            (Collected::Bytes { offsets, blob }, Cell::Bytes(value)) => {
                if value.len() > MAX_VALUE_BYTES {
                    return Err(self.invalid("takes no value longer than 1 MiB"));
                }
                blob.extend_from_slice(value);
                offsets.push(blob.len() as u64);
            }
            (Collected::Bytes { offsets, blob }, Cell::Null) => offsets.push(blob.len() as u64),
            (Collected::Ordinal(_), _) => return Err(self.invalid("takes only ordinals")),
            (Collected::Bytes { .. }, _) => return Err(self.invalid("takes only bytes")),
        }
        self.note_null(doc, cell == Cell::Null);
        Ok(())
    }

    /// The number of the column.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The value of a document that was added; `Null` past the end.
    pub(crate) fn cell(&self, doc: u32) -> Cell<'_> {
        let doc = doc as usize;
        if self.is_null(doc) {
            return Cell::Null;
        }
        match &self.values {
            Collected::Ordinal(values) => {
                values.get(doc).map_or(Cell::Null, |it| Cell::Ordinal(*it))
            }
            Collected::Bytes { offsets, blob } => match offsets.get(doc..doc + 2) {
                Some(&[start, end]) => {
                    Cell::Bytes(blob.get(start as usize..end as usize).unwrap_or_default())
                }
                _ => Cell::Null,
            },
        }
    }

    /// Writes the section of this column.
    ///
    /// # Errors
    /// It never fails at present: every column that was collected can be written.
    pub fn finish(self, out: &mut SectionWriter) -> Result<()> {
        let section = match &self.values {
            Collected::Ordinal(values) => self.ordinal_section(values),
            Collected::Bytes { offsets, blob } => self.bytes_section(offsets, blob),
        };
        out.add(COLUMN, self.id, &section);
        Ok(())
    }

    fn len(&self) -> usize {
        match &self.values {
            Collected::Ordinal(values) => values.len(),
            Collected::Bytes { offsets, .. } => offsets.len() - 1,
        }
    }

    fn invalid(&self, what: &str) -> IndexError {
        IndexError::Invalid(format!("column {} {what}", self.id))
    }

    fn note_null(&mut self, doc: usize, is_null: bool) {
        if doc.is_multiple_of(64) {
            self.nulls.push(0);
        }
        if let Some(word) = self.nulls.last_mut() {
            *word |= u64::from(is_null) << (doc % 64);
        }
        self.has_nulls |= is_null;
    }

    fn is_null(&self, doc: usize) -> bool {
        self.nulls.get(doc / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    fn ordinal_section(&self, values: &[u64]) -> Vec<u8> {
        let values = self.without_leading_filler(values);
        let Some((distinct, codes)) = self.code_values(values.iter().copied()) else {
            let mut out = self.header(ColumnKind::Ordinal, PLAIN);
            self.write_nulls(&mut out);
            write_numbers(&values, &mut out);
            return out;
        };
        let mut out = self.header(ColumnKind::Ordinal, DICTIONARY);
        out.extend_from_slice(&(distinct.len() as u32).to_le_bytes());
        write_numbers(&distinct, &mut out);
        write_codes(&codes, distinct.len() as u32, self.has_nulls, &mut out);
        out
    }

    fn bytes_section(&self, offsets: &[u64], blob: &[u8]) -> Vec<u8> {
        let value = |pair: &[u64]| match pair {
            [start, end] => blob.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        };
        let Some((distinct, codes)) = self.code_values(offsets.windows(2).map(value)) else {
            let mut out = self.header(ColumnKind::Bytes, PLAIN);
            self.write_nulls(&mut out);
            write_strings(offsets, blob, &mut out);
            return out;
        };
        let mut ends = vec![0];
        ends.extend(distinct.iter().scan(0, |end, value| {
            *end += value.len() as u64;
            Some(*end)
        }));
        let mut out = self.header(ColumnKind::Bytes, DICTIONARY);
        out.extend_from_slice(&(distinct.len() as u32).to_le_bytes());
        write_strings(&ends, &distinct.concat(), &mut out);
        write_codes(&codes, distinct.len() as u32, self.has_nulls, &mut out);
        out
    }

    fn header(&self, kind: ColumnKind, layout: u8) -> Vec<u8> {
        let mut out = vec![kind_code(kind), layout, u8::from(self.has_nulls), 0];
        out.extend_from_slice(&(self.len() as u32).to_le_bytes());
        out
    }

    fn write_nulls(&self, out: &mut Vec<u8>) {
        if self.has_nulls {
            self.nulls.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
    }

    /// Gives leading NULLs the first value as filler; zeros would widen the first block.
    fn without_leading_filler(&self, values: &[u64]) -> Vec<u64> {
        let first = (0..values.len()).find(|&doc| !self.is_null(doc)).unwrap_or(0);
        let mut filled = values.to_vec();
        if let (Some(&value), Some(leading)) = (values.get(first), filled.get_mut(..first)) {
            leading.fill(value);
        }
        filled
    }

    /// The sorted distinct values and each document's code; `None` if a dictionary does not pay.
    fn code_values<T: Copy + Ord + Hash>(
        &self,
        values: impl Iterator<Item = T>,
    ) -> Option<(Vec<T>, Vec<u32>)> {
        let limit = (MAX_VALUES as usize).min(self.len() / MIN_DOCUMENTS_PER_VALUE);
        let mut ids = FxHashMap::default();
        let mut codes = Vec::with_capacity(self.len());
        for (doc, value) in values.enumerate() {
            let next = ids.len() as u32;
            codes.push(match self.is_null(doc) {
                true => 0,
                false => *ids.entry(value).or_insert(next),
            });
            if ids.len() > limit {
                return None;
            }
        }
        let mut distinct: Vec<(T, u32)> = ids.into_iter().collect();
        distinct.sort_unstable();
        let mut code_of = vec![0; distinct.len()];
        for (code, (_, id)) in (u32::from(self.has_nulls)..).zip(&distinct) {
            code_of[*id as usize] = code;
        }
        for (_, code) in codes.iter_mut().enumerate().filter(|(doc, _)| !self.is_null(*doc)) {
            *code = code_of[*code as usize];
        }
        Some((distinct.into_iter().map(|(value, _)| value).collect(), codes))
    }
}
