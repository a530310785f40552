//! JSON Lines: one document on each line. Blank lines are skipped.

use super::{
    lines::{Line, LineReader},
    record::{Layout, RecordBatch, RecordReader},
};
use crate::Result;

pub(crate) const TOO_LONG: &str = "the record is longer than 64 MiB: split it or drop fields";

/// Reads JSON Lines.
pub(crate) struct JsonLinesReader {
    lines: LineReader,
    layout: Layout,
}

impl JsonLinesReader {
    pub fn new(lines: LineReader, layout: Layout) -> Self {
        Self { lines, layout }
    }
}

impl RecordReader for JsonLinesReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read_into(&mut self, batch: &mut RecordBatch) -> Result<bool> {
        while let Some((span, line)) = self.lines.next()? {
            match line {
                Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Whole(bytes) => batch.push(span, [bytes]),
                Line::TooLong => batch.push_malformed(span, TOO_LONG),
            }
            return Ok(true);
        }
        Ok(false)
    }
}
