//! Documents on their way from a source to a table.

use std::io::{self, BufRead, BufReader, Read};

use super::columns::Column;
use crate::{Result, files::MAX_RECORD_BYTES};

/// A document as its source gives it.
#[derive(Default)]
pub(super) struct Document {
    /// Its place in the source, for messages: `line 7`.
    pub place: String,
    /// Its id as a text.
    pub number: Vec<u8>,
    /// A text for each column.
    pub cells: Vec<Vec<u8>>,
}

/// Receives a source's output.
pub(super) trait DocumentSink {
    /// The source's columns, before its first document.
    fn columns(&mut self, columns: &[Column]) -> Result<()>;
    /// The next document.
    fn document(&mut self, document: &Document) -> Result<()>;
    /// A problem that does not prevent loading.
    fn warning(&mut self, message: String);
}

/// A byte stream that counts lines and fails if one document is too long.
pub(super) struct Lines<R> {
    inner: BufReader<R>,
    /// The current line, from 1.
    pub line: u64,
    left: usize,
}

impl<R: Read> Lines<R> {
    pub fn new(stream: R) -> Self {
        Self { inner: BufReader::with_capacity(128 << 10, stream), line: 1, left: MAX_RECORD_BYTES }
    }

    /// Begins a document, which resets the limit of bytes.
    pub fn begin_document(&mut self) {
        self.left = MAX_RECORD_BYTES;
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let held = self.fill_buf()?;
        let length = held.len().min(buffer.len());
        if let (Some(from), Some(to)) = (held.get(..length), buffer.get_mut(..length)) {
            to.copy_from_slice(from);
        }
        self.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Lines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::other("a document is longer than 64 MiB: split it"));
        }
        let held = self.inner.fill_buf()?;
        Ok(held.get(..self.left.min(held.len())).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        let passed = self.inner.buffer().get(..amount).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.left = self.left.saturating_sub(amount);
        self.inner.consume(amount);
    }
}
