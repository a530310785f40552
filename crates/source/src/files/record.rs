//! Records: the form between a byte stream and rows.
//!
//! A reader appends records to a batch, and another thread makes rows of the batch. A record is a list of byte fields:
//! a JSON line is one field, a CSV line has one field for each column, a CirrusSearch pair has the page's id and the
//! document.

use super::shape::Shape;
use crate::Result;

/// Reads records of one file, in order, within bounded memory.
pub trait RecordReader: Send {
    /// The meaning of its records' fields.
    fn layout(&self) -> &Layout;
    /// Appends the next record, valid or malformed; false at the end.
    ///
    /// # Errors
    /// The stream cannot be read.
    fn read_into(&mut self, batch: &mut RecordBatch) -> Result<bool>;
}

/// The meaning of a record's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One field: a JSON object as in a request, which is parsed strictly.
    Object,
    /// One field: a JSON document, which is parsed strictly.
    Document {
        /// How it becomes a row.
        shape: Shape,
        /// Whether objects may represent values of MongoDB.
        extended: bool,
    },
    /// Two fields: an id, and a JSON object.
    IdAndObject,
    /// One field for each of these names, as text.
    Columns(Vec<String>),
}

/// Records in file order, in one buffer.
#[derive(Debug, Default)]
pub struct RecordBatch {
    bytes: Vec<u8>,
    field_ends: Vec<usize>,
    records: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    span: Span,
    first_field: usize,
    problem: Option<String>,
}

/// The place of a record in the uncompressed bytes of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The line it starts on, from 1.
    pub line: u64,
    /// Its first byte.
    pub offset: u64,
    /// The line after it.
    pub end_line: u64,
    /// The offset after it.
    pub end_offset: u64,
}

impl Span {
    /// From the start of this span to the end of a later one.
    pub(crate) fn to(self, end: Self) -> Self {
        Self { end_line: end.end_line, end_offset: end.end_offset, ..self }
    }
}

/// One record of a batch.
#[derive(Clone, Copy)]
pub struct Record<'b> {
    batch: &'b RecordBatch,
    entry: &'b Entry,
    fields_end: usize,
}

impl RecordBatch {
    /// The number of records, including malformed ones.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of all fields.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.field_ends.clear();
        self.records.clear();
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        self.records.iter().enumerate().map(|(position, entry)| {
            let next = self.records.get(position + 1);
            let fields_end = next.map_or(self.field_ends.len(), |next| next.first_field);
            Record { batch: self, entry, fields_end }
        })
    }

    /// Appends a record.
    pub fn push<'f>(&mut self, span: Span, fields: impl IntoIterator<Item = &'f [u8]>) {
        let first_field = self.field_ends.len();
        for field in fields {
            self.bytes.extend_from_slice(field);
            self.field_ends.push(self.bytes.len());
        }
        self.records.push(Entry { span, first_field, problem: None });
    }

    /// Appends a malformed record with the reason.
    pub fn push_malformed(&mut self, span: Span, problem: impl Into<String>) {
        let first_field = self.field_ends.len();
        self.records.push(Entry { span, first_field, problem: Some(problem.into()) });
    }
}

impl<'b> Record<'b> {
    /// Its place.
    pub fn span(&self) -> Span {
        self.entry.span
    }

    /// Why it is malformed.
    pub fn problem(&self) -> Option<&'b str> {
        self.entry.problem.as_deref()
    }

    /// The number of its fields.
    pub fn field_count(&self) -> usize {
        self.fields_end - self.entry.first_field
    }

    /// A field by its position.
    pub fn field(&self, position: usize) -> Option<&'b [u8]> {
        if position >= self.field_count() {
            return None;
        }
        let at = self.entry.first_field + position;
        let start =
            at.checked_sub(1).map_or(Some(&0), |before| self.batch.field_ends.get(before))?;
        self.batch.bytes.get(*start..*self.batch.field_ends.get(at)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let span = Span { line: 1, offset: 0, end_line: 2, end_offset: 9 };
        let mut batch = RecordBatch::default();
        batch.push(span, [&b"ab"[..], b"", b"c"]);
        batch.push_malformed(span, "cut");
        batch.push(span, [&b""[..]]);
        let records: Vec<_> = batch.iter().collect();
        let fields = |at: usize| {
            (0..records[at].field_count())
                .map(|f| records[at].field(f).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(fields(0), [&b"ab"[..], b"", b"c"]);
        assert_eq!((records[1].problem(), records[1].field_count()), (Some("cut"), 0));
        assert_eq!(fields(2), [b""]);
        assert_eq!(records[2].field(1), None);
    }
}
