//! JSON files: one array of documents, or consecutive documents, over any number of lines.
//!
//! Documents are delimited by their brackets alone, so a malformed document can be skipped. Between documents the
//! syntax must be correct: otherwise the start of the next document is unknown.

use std::io::Read;

use super::{
    json_lines::TOO_LONG,
    record::{Layout, RecordBatch, RecordReader, Span},
};
use crate::{Error, RecordProblem, Result};

const BUFFER_BYTES: usize = 256 << 10;
/// The deepest nesting of brackets that is followed. Documents may nest less deeply.
const MAX_BRACKETS: usize = 10_000;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads documents of one file, within bounded memory.
pub(crate) struct JsonStreamReader {
    layout: Layout,
    bytes: Bytes,
    is_array: bool,
    place: JsonStreamPosition,
    document: Vec<u8>,
    max_bytes: usize,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonStreamPosition {
    /// A document, or the end.
    Start,
    /// A document, because a comma precedes it.
    BehindComma,
    BehindDocument,
    End,
}

impl JsonStreamReader {
    /// Reads a stream that begins at the start of its file. Documents begin after this offset, on this line.
    ///
    /// # Errors
    /// The stream cannot be read, or ends before the offset.
    pub fn new(
        file: &str,
        stream: Box<dyn Read + Send>,
        layout: Layout,
        offset: u64,
        line: u64,
    ) -> Result<Self> {
        let mut bytes = Bytes::new(file, stream);
        bytes.skip_byte_order_mark()?;
        let is_array = bytes.behind_space()? == Some(b'[');
        let place =
            if offset > 0 { JsonStreamPosition::BehindDocument } else { JsonStreamPosition::Start };
        if offset > 0 {
            bytes.skip_to(offset, line)?;
        } else if is_array {
            bytes.take(1);
        }
        let (document, max_bytes) = (Vec::new(), super::MAX_RECORD_BYTES);
        Ok(Self { layout, bytes, is_array, place, document, max_bytes })
    }

    /// Moves to the first byte of the next document; false at the end.
    fn find_document(&mut self) -> Result<bool> {
        loop {
            let next = self.bytes.behind_space()?;
            match (next, self.place, self.is_array) {
                (None, _, false) | (None, JsonStreamPosition::End, true) => return Ok(false),
                (None, _, true) => {
                    return Err(self.wrong(
                        "the file ends before the ']' of its array: it was cut off, get it whole",
                    ));
                }
                (
                    Some(b']'),
                    JsonStreamPosition::Start | JsonStreamPosition::BehindDocument,
                    true,
                ) => {
                    self.bytes.take(1);
                    self.place = JsonStreamPosition::End;
                }
                (Some(b','), JsonStreamPosition::BehindDocument, true) => {
                    self.bytes.take(1);
                    self.place = JsonStreamPosition::BehindComma;
                }
                (Some(_), JsonStreamPosition::BehindDocument, true) => {
                    return Err(self.wrong(
                        "between two documents of an array stands a comma, and nothing else",
                    ));
                }
                (Some(_), JsonStreamPosition::End, _) => {
                    return Err(self.wrong("something stands behind the array: a file is one array, or documents without one"));
                }
                (Some(b',' | b']' | b'}' | b':'), ..) => {
                    return Err(self.wrong("a document should begin here"));
                }
                (Some(_), ..) => return Ok(true),
            }
        }
    }

    /// Collects the document that begins here; false if it is too long.
    fn take_document(&mut self) -> Result<bool> {
        let (line, mut scan) = (self.bytes.line, Scan::default());
        self.document.clear();
        let mut fits = true;
        loop {
            let held = self.bytes.held()?;
            if held.is_empty() {
                return match scan.is_scalar() {
                    true => Ok(fits),
                    false => Err(self.wrong(&format!(
                        "the file ends within the document that begins on line {line}: it was cut off, get it whole"
                    ))),
                };
            }
            let (used, next) = scan.through(held);
            fits &= self.document.len() + used <= self.max_bytes;
            if fits {
                self.document.extend_from_slice(held.get(..used).unwrap_or_default());
            } else {
                self.document = Vec::new();
            }
            self.bytes.take(used);
            match next {
                Next::More => {}
                Next::Whole => return Ok(fits),
                Next::Wrong(message) => {
                    return Err(self
                        .wrong(&format!("{message}, in the document that begins on line {line}")));
                }
            }
        }
    }

    fn wrong(&self, message: &str) -> Error {
        let (line, offset) = (self.bytes.line, self.bytes.offset);
        let message = format!("not JSON at byte {offset} of the file: {message}");
        Error::Record(RecordProblem { file: self.bytes.file.clone(), line, offset, message })
    }
}

impl RecordReader for JsonStreamReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read_into(&mut self, batch: &mut RecordBatch) -> Result<bool> {
        if !self.find_document()? {
            return Ok(false);
        }
        let (line, offset) = (self.bytes.line, self.bytes.offset);
        let is_whole = self.take_document()?;
        self.place = JsonStreamPosition::BehindDocument;
        let span = Span { line, offset, end_line: self.bytes.line, end_offset: self.bytes.offset };
        match is_whole {
            true => batch.push(span, [self.document.as_slice()]),
            false => batch.push_malformed(span, TOO_LONG),
        }
        Ok(true)
    }
}

/// The state of a scan within a document.
#[derive(Default)]
struct Scan {
    /// The open brackets.
    open: Vec<u8>,
    in_string: bool,
    escaped: bool,
    /// Whether a byte of a number or a literal was met.
    in_word: bool,
}

enum Next {
    /// The document continues after these bytes.
    More,
    Whole,
    Wrong(&'static str),
}

impl Scan {
    /// The number of bytes that belong to the document, and what follows.
    fn through(&mut self, bytes: &[u8]) -> (usize, Next) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.in_string {
                at += self.through_string(bytes.get(at..).unwrap_or_default());
                if !self.in_string && self.open.is_empty() {
                    return (at, Next::Whole);
                }
                continue;
            }
            match byte {
                b'"' if self.in_word && self.open.is_empty() => return (at, Next::Whole),
                b'"' => self.in_string = true,
                b'{' | b'[' if self.open.len() == MAX_BRACKETS => {
                    return (at, Next::Wrong("brackets are open 10,000 deep"));
                }
                b'{' | b'[' if self.in_word && self.open.is_empty() => return (at, Next::Whole),
                b'{' | b'[' => self.open.push(byte),
                b'}' | b']' => match (self.open.pop(), byte) {
                    (None, _) => return (at, Next::Whole),
                    (Some(b'{'), b']') => return (at, Next::Wrong("']' stands where '}' should")),
                    (Some(b'['), b'}') => return (at, Next::Wrong("'}' stands where ']' should")),
                    _ if self.open.is_empty() => return (at + 1, Next::Whole),
                    _ => {}
                },
                b',' | b' ' | b'\t' | b'\r' | b'\n' if self.open.is_empty() => {
                    return (at, Next::Whole);
                }
                _ => self.in_word = true,
            }
            at += 1;
        }
        (at, Next::More)
    }

    /// The number of bytes that belong to the string.
    fn through_string(&mut self, bytes: &[u8]) -> usize {
        if self.escaped {
            self.escaped = false;
            return 1;
        }
        let Some(found) = memchr::memchr2(b'"', b'\\', bytes) else { return bytes.len() };
        match bytes.get(found) {
            Some(b'"') => self.in_string = false,
            _ => self.escaped = true,
        }
        found + 1
    }

    /// Whether the document may end with the file, as a number or a literal may.
    fn is_scalar(&self) -> bool {
        self.in_word && self.open.is_empty() && !self.in_string
    }
}

/// The bytes of a stream, with the line and the offset of the next one.
struct Bytes {
    file: String,
    stream: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    offset: u64,
    line: u64,
}

impl Bytes {
    fn new(file: &str, stream: Box<dyn Read + Send>) -> Self {
        let (file, buffer) = (file.to_owned(), vec![0; BUFFER_BYTES]);
        Self { file, stream, buffer, start: 0, filled: 0, offset: 0, line: 1 }
    }

    /// The buffered bytes, at least one unless the stream has ended.
    fn held(&mut self) -> Result<&[u8]> {
        if self.start == self.filled {
            self.start = 0;
            self.filled = read_some(&self.file, &mut *self.stream, &mut self.buffer)?;
        }
        Ok(self.buffer.get(self.start..self.filled).unwrap_or_default())
    }

    /// Consumes buffered bytes.
    fn take(&mut self, count: usize) {
        let taken = self.buffer.get(self.start..self.start + count).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', taken).count() as u64;
        self.offset += count as u64;
        self.start += count;
    }

    /// Skips white space and returns the next byte.
    fn behind_space(&mut self) -> Result<Option<u8>> {
        loop {
            let held = self.held()?;
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let found = held.iter().position(|byte| !is_space(byte));
            let (count, byte) = match found {
                Some(at) => (at, held.get(at).copied()),
                None => (held.len(), None),
            };
            let is_end = held.is_empty();
            self.take(count);
            if byte.is_some() || is_end {
                return Ok(byte);
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        while self.filled < BYTE_ORDER_MARK.len() {
            let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let read = read_some(&self.file, &mut *self.stream, free)?;
            self.filled += read;
            if read == 0 {
                break;
            }
        }
        let head = self.buffer.get(..self.filled).unwrap_or_default();
        if head.starts_with(BYTE_ORDER_MARK) {
            self.take(BYTE_ORDER_MARK.len());
        } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(Error::format(&self.file, "is UTF-16: convert it to UTF-8"));
        }
        Ok(())
    }

    /// Skips to an offset on this line.
    fn skip_to(&mut self, offset: u64, line: u64) -> Result<()> {
        while self.offset < offset {
            let left = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
            let count = self.held()?.len().min(left);
            if count == 0 {
                return Err(Error::format(
                    &self.file,
                    "is shorter than what was read of it before",
                ));
            }
            self.take(count);
        }
        self.line = line;
        Ok(())
    }
}

/// Reads once; 0 means the end.
fn read_some(file: &str, stream: &mut dyn Read, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other.map_err(|error| Error::io(file, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::files::lines::tests::Pieces;

    type Documents = Vec<(u64, Option<String>)>;

    /// The documents with their lines, and the error that ended reading.
    fn read(bytes: &[u8], sizes: &[usize], max_bytes: usize) -> (Documents, Option<String>) {
        let pieces = Pieces { bytes: Cursor::new(bytes.to_vec()), sizes: sizes.to_vec(), at: 0 };
        let mut reader = match JsonStreamReader::new("f", Box::new(pieces), Layout::Object, 0, 1) {
            Ok(reader) => reader,
            Err(error) => return (Vec::new(), Some(error.to_string())),
        };
        reader.max_bytes = max_bytes;
        let mut batch = RecordBatch::default();
        let error = loop {
            match reader.read_into(&mut batch) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let documents = batch.iter().map(|record| (record.span().line, record.field(0).map(text)));
        (documents.collect(), error)
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let (documents, error) = read(bytes, &[7], usize::MAX);
        assert_eq!(error, None);
        documents.into_iter().map(|(_, text)| text.unwrap()).collect()
    }

    #[test]
    fn documents_of_arrays_and_without() {
        assert_eq!(texts(b" [ {\"a\": \"]}\\\"\"} ,\n[1,{}], 2 ,\"x\",true] \n").len(), 5);
        assert_eq!(
            texts(b"{\"a\":1}{\"b\":\n2}\n\n3 \"x\"[]"),
            ["{\"a\":1}", "{\"b\":\n2}", "3", "\"x\"", "[]"]
        );
        for empty in ["", " \n", "[]", " [ ] ", "\u{feff}[]\n"] {
            assert!(texts(empty.as_bytes()).is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn text_between_documents_is_checked() {
        let cases = [
            ("[{}", "f:1: not JSON at byte 3 of the file: the file ends before the ']'"),
            ("[{},\n", "f:2: not JSON at byte 5 of the file: the file ends before the ']'"),
            ("[{},\n{\"a\": [1", "ends within the document that begins on line 2"),
            ("[{},]", "byte 4 of the file: a document should begin here"),
            ("[,{}]", "byte 1 of the file: a document should begin here"),
            ("[{} {}]", "byte 4 of the file: between two documents"),
            ("[{}] {}", "byte 5 of the file: something stands behind the array"),
            ("{}, {}", "byte 2 of the file: a document should begin here"),
            ("[{\"a\":[1}]", "byte 8 of the file: '}' stands where ']' should"),
            ("{\"a\":\"", "ends within the document that begins on line 1"),
        ];
        for (text, message) in cases {
            let error = read(text.as_bytes(), &[3], usize::MAX).1.unwrap();
            assert!(error.contains(message), "{text}: {error}");
        }
        let deep = "[".repeat(MAX_BRACKETS + 2);
        assert!(read(deep.as_bytes(), &[900], usize::MAX).1.unwrap().contains("10,000 deep"));
        assert!(read(b"\xff\xfe{\0", &[9], 9).1.unwrap().contains("UTF-16"));
    }

    #[test]
    fn document_over_the_limit_is_skipped() {
        let text = format!("[{{\"a\":1}},\n{{\"a\":\"{}\"}},{{}}]", "x".repeat(40));
        let (documents, error) = read(text.as_bytes(), &[5], 16);
        assert_eq!((documents[1].clone(), error), ((2, None), None));
        assert_eq!(documents[2], (2, Some("{}".to_owned())));
    }

    #[test]
    fn reading_resumes_after_any_document() {
        for text in ["[{\"a\":1},\n{\"b\":2}, {\"c\":3}]", "{\"a\":1}\n\n{\"b\":2} {\"c\":3}"] {
            let open = |offset, line| {
                let stream = Box::new(Cursor::new(text.as_bytes().to_vec()));
                JsonStreamReader::new("f", stream, Layout::Object, offset, line).unwrap()
            };
            let mut whole = RecordBatch::default();
            let mut reader = open(0, 1);
            while reader.read_into(&mut whole).unwrap() {}
            let spans: Vec<Span> = whole.iter().map(|record| record.span()).collect();
            assert_eq!(spans.len(), 3);
            for (at, span) in spans.iter().enumerate() {
                let mut rest = RecordBatch::default();
                let mut reader = open(span.end_offset, span.end_line);
                while reader.read_into(&mut rest).unwrap() {}
                let found: Vec<Span> = rest.iter().map(|record| record.span()).collect();
                assert_eq!(found, spans[at + 1..]);
            }
        }
    }

    proptest! {
        #[test]
        fn documents_do_not_depend_on_read_boundaries(
            text in "\\[?( ?(\\{\"a\":\"[b\\]\\}\\\\\"]{0,3}\"\\}|[0-9]{1,3}|\\[[0-9]?\\])\n?,?){0,6}\\]?",
            sizes in prop::collection::vec(1_usize..9, 1..4),
        ) {
            let whole = read(text.as_bytes(), &[usize::MAX], usize::MAX);
            prop_assert_eq!(read(text.as_bytes(), &sizes, usize::MAX), whole);
        }

        #[test]
        fn valid_files_give_what_a_parser_gives(
            values in prop::collection::vec("[a-z\"\\\\{}\\[\\], \n\u{e9}]{0,12}", 0..6),
            pretty in any::<bool>(),
            is_array in any::<bool>(),
            sizes in prop::collection::vec(1_usize..30, 1..4),
        ) {
            let documents: Vec<_> = values.iter().map(|text| serde_json::json!({"a": [text, {}]})).collect();
            let text = |value: &serde_json::Value| match pretty {
                true => serde_json::to_string_pretty(value).unwrap(),
                false => value.to_string(),
            };
            let bytes = match is_array {
                true => text(&serde_json::Value::from(documents.clone())),
                false => documents.iter().map(|it| text(it) + "\n").collect(),
            };
            let (found, error) = read(bytes.as_bytes(), &sizes, usize::MAX);
            prop_assert_eq!(error, None);
            let found: Vec<serde_json::Value> =
                found.iter().map(|(_, text)| serde_json::from_str(text.as_ref().unwrap()).unwrap()).collect();
            prop_assert_eq!(found, documents);
        }
    }
}
