//! CSV and TSV: a header line with the columns' names, then one record for each row.
//!
//! ```text
//! file   = [BOM] record { end record } [end]         end   = LF | CR LF | CR
//! record = field { separator field }                 field = plain | '"' { any | '""' } '"'
//! null   = \N                        a text that is `\N` itself, or it with more `\` before
//!                                    it, is written with one `\` more
//! ```
//! An empty field is the empty text in a text column and NULL in any other. A file that ends within quotation marks was
//! cut off.

use std::{
    collections::HashSet,
    io::{self, Read},
};

use csv::ByteRecord;

use super::record::{Layout, RecordBatch, RecordReader, Span};
use crate::{Error, Result};

/// What the parser reads behind the file: a line break, and a record that shows that the file did not end within
/// quotation marks.
const TAIL: &[u8] = b"\n\0end of file\0";

/// Reads CSV or TSV.
pub(crate) struct DelimitedReader {
    file: String,
    csv: csv::Reader<Limited>,
    record: ByteRecord,
    layout: Layout,
    columns: usize,
    max_bytes: usize,
}

impl DelimitedReader {
    /// Reads the header.
    pub fn new(file: &str, stream: Box<dyn Read + Send>, separator: u8) -> Result<Self> {
        let max_bytes = super::MAX_RECORD_BYTES;
        let csv = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(256 << 10)
            .from_reader(Limited::new(stream, max_bytes));
        let (file, layout) = (file.to_owned(), Layout::Object);
        let mut reader =
            Self { file, csv, record: ByteRecord::new(), layout, columns: 0, max_bytes };
        let names = reader.read_header()?;
        reader.columns = names.len();
        reader.layout = Layout::Columns(names);
        Ok(reader)
    }

    /// Skips the records before this offset, which an earlier run has read.
    pub fn skip_to(&mut self, offset: u64) -> Result<()> {
        while self.csv.position().byte() < offset && self.advance()?.is_some() {}
        Ok(())
    }

    fn read_header(&mut self) -> Result<Vec<String>> {
        self.advance()?;
        if self.is_cut_off() {
            return Err(Error::format(&self.file, "the header leaves a quotation mark open"));
        }
        let mut names = Vec::with_capacity(self.record.len());
        for field in &self.record {
            names.push(self.header_name(field)?);
        }
        let mut seen = HashSet::new();
        match names.iter().find(|name| !seen.insert(name.as_str())) {
            None if names.is_empty() => Err(Error::format(&self.file, "has no header line")),
            None => Ok(names),
            Some(name) => {
                Err(Error::format(&self.file, format!("two columns of the header are \"{name}\"")))
            }
        }
    }

    fn header_name(&self, field: &[u8]) -> Result<String> {
        match std::str::from_utf8(field).map(str::trim) {
            Ok("") => Err(Error::format(&self.file, "a column of the header has no name")),
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(Error::format(&self.file, "the header is not UTF-8: convert the file")),
        }
    }

    /// Reads into `self.record`; `None` at the end.
    fn advance(&mut self) -> Result<Option<Span>> {
        self.csv.get_mut().left = self.max_bytes;
        let line = self.csv.position().line();
        if !self.csv.read_byte_record(&mut self.record).map_err(|error| self.error(line, error))? {
            return Ok(None);
        }
        let is_behind = self.csv.position().byte() > self.csv.get_ref().end;
        if is_behind && self.record.as_slice() == TAIL.trim_ascii_start() {
            self.record.clear();
            return Ok(None);
        }
        let end = self.csv.position();
        let offset = self.record.position().map_or(0, csv::Position::byte);
        // The parser counts blank lines and the LF of a CR LF before a record as read, so the record's line is computed
        // back from its end.
        let inner_lines = memchr::memchr_iter(b'\n', self.record.as_slice()).count() as u64;
        let file_end = self.csv.get_ref().end;
        // The line break of the tail ended the record.
        let is_last = end.byte() > file_end && !self.is_cut_off();
        let ended = is_last || self.csv.get_ref().byte_before(end.byte()) == Some(b'\n');
        let line = end.line().saturating_sub(inner_lines + u64::from(ended));
        let end_line = end.line() - u64::from(is_last);
        Ok(Some(Span { line, offset, end_line, end_offset: end.byte().min(file_end) }))
    }

    /// Whether the file ended within quotation marks of the record.
    fn is_cut_off(&self) -> bool {
        let is_behind = self.csv.position().byte() > self.csv.get_ref().end;
        is_behind && self.record.iter().next_back().is_some_and(|last| last.ends_with(TAIL))
    }

    fn error(&self, line: u64, error: csv::Error) -> Error {
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let message = format!(
                    "the record that starts near line {line} is longer than 64 MiB: \
                     is a quotation mark left open?"
                );
                Error::format(&self.file, message)
            }
            csv::ErrorKind::Io(error) => Error::io(&self.file, error),
            other => Error::format(&self.file, format!("line {line}: {other:?}")),
        }
    }
}

impl RecordReader for DelimitedReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read_into(&mut self, batch: &mut RecordBatch) -> Result<bool> {
        let Some(span) = self.advance()? else { return Ok(false) };
        let found = self.record.len();
        if self.is_cut_off() {
            batch.push_malformed(span, "a quotation mark is left open".to_owned());
        } else if found == self.columns {
            batch.push(span, &self.record);
        } else {
            let expected = self.columns;
            batch.push_malformed(span, format!("{found} fields, but the header has {expected}"));
        }
        Ok(true)
    }
}

/// Fails after a limited number of bytes per record, so that an unclosed quotation mark does not take all memory. Keeps
/// a copy of the last piece that it returned. [`TAIL`] comes behind the file.
struct Limited {
    stream: Box<dyn Read + Send>,
    left: usize,
    piece: Vec<u8>,
    /// The number of bytes of the file that were read.
    end: u64,
    tail: &'static [u8],
}

impl Limited {
    fn new(stream: Box<dyn Read + Send>, left: usize) -> Self {
        Self { stream, left, piece: Vec::new(), end: 0, tail: TAIL }
    }

    /// The byte before this offset, which is in the last piece or directly before it.
    fn byte_before(&self, offset: u64) -> Option<u8> {
        let from_end = usize::try_from(self.end.checked_sub(offset)?).ok()?;
        self.piece.get(self.piece.len().checked_sub(from_end + 1)?).copied()
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let read = self.stream.read(buffer)?;
        if read == 0 {
            return self.tail.read(buffer);
        }
        self.left = self.left.saturating_sub(read);
        let last = self.piece.pop();
        self.piece.clear();
        self.piece.extend(last);
        self.piece.extend_from_slice(buffer.get(..read).unwrap_or_default());
        self.end += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str) -> Result<(Layout, RecordBatch)> {
        let mut reader = DelimitedReader::new("f", Box::new(Cursor::new(text.to_owned())), b',')?;
        let mut batch = RecordBatch::default();
        while reader.read_into(&mut batch)? {}
        Ok((reader.layout.clone(), batch))
    }

    #[test]
    fn quoted_fields_and_lines() {
        for end in ["\n", "\r\n"] {
            let text = ["\u{feff}id,text", "1,\"a \"\"b\"\",\n c\"", "", "2,", "3,x,y", "4,z"];
            let (layout, batch) = read(&text.join(end)).unwrap();
            assert_eq!(layout, Layout::Columns(vec!["id".into(), "text".into()]));
            let fields: Vec<_> = batch.iter().map(|record| record.field(1)).collect();
            assert_eq!(fields, [Some(&b"a \"b\",\n c"[..]), Some(b""), None, Some(b"z")]);
            let lines: Vec<_> = batch.iter().map(|record| record.span().line).collect();
            assert_eq!(lines, [2, 5, 6, 7], "{end:?}");
            assert_eq!(
                batch.iter().nth(2).unwrap().problem(),
                Some("3 fields, but the header has 2")
            );
        }
    }

    #[test]
    fn reading_resumes_after_any_record() {
        let text = "id,text\n1,\"a\nb\"\n2,c\r\n\n3,d\n";
        let (_, all) = read(text).unwrap();
        for (seen, record) in all.iter().enumerate() {
            let stream = Box::new(Cursor::new(text.to_owned()));
            let mut reader = DelimitedReader::new("f", stream, b',').unwrap();
            reader.skip_to(record.span().end_offset).unwrap();
            let mut rest = RecordBatch::default();
            while reader.read_into(&mut rest).unwrap() {}
            let ids: Vec<_> = rest.iter().map(|record| (record.span(), record.field(0))).collect();
            let expected: Vec<_> =
                all.iter().skip(seen + 1).map(|r| (r.span(), r.field(0))).collect();
            assert_eq!(ids, expected);
        }
    }

    #[test]
    fn a_file_that_ends_within_quotation_marks_is_cut_off() {
        for text in ["id,t\n1,\"a\n2,b\n", "id,t\n1,\"a", "id,t\n1,\"a\"\"", "id,t\n1,\""] {
            let (_, batch) = read(text).unwrap();
            let problems: Vec<_> = batch.iter().map(|record| record.problem()).collect();
            assert_eq!(problems, [Some("a quotation mark is left open")], "{text:?}");
        }
        for text in ["id,t\n1,\"a\"", "id,t\n1,5\" pipe", "id,t\n1,a\n\n", "id,t\r1,a\r"] {
            let (_, batch) = read(text).unwrap();
            let problems: Vec<_> = batch.iter().map(|record| record.problem()).collect();
            assert_eq!(problems, [None], "{text:?}");
            let last = batch.iter().last().unwrap().span().end_offset;
            assert!(last <= text.len() as u64, "{text:?}: {last}");
        }
        assert!(read("id,\"t\n1,a\n").is_err());
    }

    #[test]
    fn an_open_quotation_mark_is_bounded() {
        let stream = Box::new(Cursor::new(format!("a,b\n1,\"{}", "x".repeat(1 << 20))));
        let mut reader = DelimitedReader::new("f", stream, b',').unwrap();
        reader.max_bytes = 1 << 18;
        let error = reader.read_into(&mut RecordBatch::default()).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_header_must_name_its_columns() {
        for (text, part) in [("", "no header"), ("a,a\n", "two columns"), ("a,,b\n", "no name")] {
            assert!(read(text).unwrap_err().to_string().contains(part), "{text:?}");
        }
    }
}
