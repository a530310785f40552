//! Lines of a stream with their numbers and byte offsets, within bounded memory.

use std::io::Read;

use super::record::Span;
use crate::{Error, Result};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits a stream into lines at `\n`. A `\r` before it is dropped.
pub(crate) struct LineReader {
    file: String,
    stream: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    offset: u64,
    line: u64,
    max_bytes: usize,
    ended: bool,
}

/// A line, or a note that it was too long.
pub(crate) enum Line<'l> {
    Whole(&'l [u8]),
    TooLong,
}

impl LineReader {
    /// Reads from a stream whose next byte has this offset and is on this line of its file.
    pub fn new(file: &str, stream: Box<dyn Read + Send>, offset: u64, line: u64) -> Self {
        Self {
            file: file.to_owned(),
            stream,
            buffer: vec![0; 256 << 10],
            start: 0,
            filled: 0,
            offset,
            line,
            max_bytes: super::MAX_RECORD_BYTES,
            ended: false,
        }
    }

    /// The next line without its line break; `None` after the last.
    pub fn next(&mut self) -> Result<Option<(Span, Line<'_>)>> {
        if self.offset == 0 {
            self.skip_byte_order_mark()?;
        }
        let Some(length) = self.find_line_end()? else { return self.skip_long_line() };
        if length == 0 {
            return Ok(None);
        }
        let from = self.start;
        let span = self.advance(length);
        let bytes = self.buffer.get(from..from + length).unwrap_or_default();
        Ok(Some((span, Line::Whole(trim_line_end(bytes)))))
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        while self.filled - self.start < BYTE_ORDER_MARK.len() && self.fill()? {}
        let head = self.buffer.get(self.start..self.filled).unwrap_or_default();
        if head.starts_with(BYTE_ORDER_MARK) {
            self.start += BYTE_ORDER_MARK.len();
            self.offset += BYTE_ORDER_MARK.len() as u64;
        } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(Error::format(&self.file, "is UTF-16: convert it to UTF-8"));
        }
        Ok(())
    }

    /// The length of the next line with its line break (0 at the end of the stream); `None` if it is longer than
    /// allowed.
    fn find_line_end(&mut self) -> Result<Option<usize>> {
        let mut searched = 0;
        loop {
            let held = self.buffer.get(self.start..self.filled).unwrap_or_default();
            let fresh = held.get(searched..).unwrap_or_default();
            if let Some(found) = memchr::memchr(b'\n', fresh) {
                return Ok(Some(searched + found + 1));
            }
            searched = held.len();
            if searched > self.max_bytes {
                return Ok(None);
            }
            if !self.fill()? {
                return Ok(Some(searched));
            }
        }
    }

    fn skip_long_line(&mut self) -> Result<Option<(Span, Line<'_>)>> {
        let (line, offset) = (self.line, self.offset);
        loop {
            let held = self.buffer.get(self.start..self.filled).unwrap_or_default();
            let found = memchr::memchr(b'\n', held);
            let length = found.map_or(held.len(), |at| at + 1);
            self.start += length;
            self.offset += length as u64;
            if found.is_some() || !self.fill()? {
                break;
            }
        }
        self.line += 1;
        let span = Span { line, offset, end_line: self.line, end_offset: self.offset };
        Ok(Some((span, Line::TooLong)))
    }

    fn advance(&mut self, length: usize) -> Span {
        let (line, offset) = (self.line, self.offset);
        self.start += length;
        self.offset += length as u64;
        self.line += 1;
        Span { line, offset, end_line: self.line, end_offset: self.offset }
    }

    /// Reads more bytes into the buffer; false at the end of the stream.
    fn fill(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.filled == self.buffer.len() {
            self.make_room();
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let read = loop {
            match self.stream.read(free) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| Error::io(&self.file, error))?,
            }
        };
        self.filled += read;
        self.ended = read == 0;
        Ok(read > 0)
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        } else {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }
}

/// Skips bytes that an earlier run has read.
pub(crate) fn skip_bytes(file: &str, stream: &mut dyn Read, bytes: u64) -> Result<()> {
    let skipped = std::io::copy(&mut stream.take(bytes), &mut std::io::sink())
        .map_err(|error| Error::io(file, error))?;
    if skipped < bytes {
        return Err(Error::format(file, "is shorter than what was read of it before"));
    }
    Ok(())
}

fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{self, Cursor};

    use proptest::prelude::*;

    use super::*;

    /// Returns its bytes in pieces of the given sizes, repeatedly.
    pub(crate) struct Pieces {
        pub bytes: Cursor<Vec<u8>>,
        pub sizes: Vec<usize>,
        pub at: usize,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes[self.at % self.sizes.len()].clamp(1, buffer.len());
            self.at += 1;
            self.bytes.read(&mut buffer[..size])
        }
    }

    fn lines_of(reader: &mut LineReader) -> Vec<(u64, u64, Option<Vec<u8>>)> {
        let mut lines = Vec::new();
        while let Some((span, line)) = reader.next().unwrap() {
            let bytes = match line {
                Line::Whole(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            };
            lines.push((span.line, span.offset, bytes));
        }
        lines
    }

    fn naive(bytes: &[u8], limit: usize) -> Vec<(u64, u64, Option<Vec<u8>>)> {
        let mut offset = if bytes.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
        let mut lines = Vec::new();
        for (number, line) in bytes[offset..].split_inclusive(|&byte| byte == b'\n').enumerate() {
            let whole = (line.len() <= limit).then(|| trim_line_end(line).to_vec());
            lines.push((number as u64 + 1, offset as u64, whole));
            offset += line.len();
        }
        lines
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_read_boundaries(
            text in "(\u{feff})?[ab\r\n]{0,200}",
            sizes in prop::collection::vec(1_usize..20, 1..5),
        ) {
            let bytes = text.into_bytes();
            let pieces = Pieces { bytes: Cursor::new(bytes.clone()), sizes, at: 0 };
            let mut reader = LineReader::new("f", Box::new(pieces), 0, 1);
            reader.buffer = vec![0; 4];
            prop_assert_eq!(lines_of(&mut reader), naive(&bytes, usize::MAX));
        }
    }

    #[test]
    fn line_over_the_limit_is_skipped() {
        let bytes = b"ab\n0123456789012345678901234567890123456789\ncd\n".to_vec();
        let mut reader = LineReader::new("f", Box::new(Cursor::new(bytes.clone())), 0, 1);
        reader.buffer = vec![0; 8];
        reader.max_bytes = 16;
        assert_eq!(lines_of(&mut reader), naive(&bytes, 32));
        assert!(reader.buffer.len() <= 64);
    }

    #[test]
    fn utf_16_is_named() {
        let bytes = Cursor::new(b"\xff\xfe{\0".to_vec());
        let mut reader = LineReader::new("f", Box::new(bytes), 0, 1);
        assert!(reader.next().err().unwrap().to_string().contains("UTF-16"));
    }
}
