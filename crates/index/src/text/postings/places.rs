//! Positions of large records: bit-packed in groups of 128 postings each.

use std::borrow::Cow;

use super::packing::{self, BLOCK};
use crate::{IndexError, Result, bytes::Stored};

/// Positions of a term up to this many bytes are read at once: one read costs more than the bytes.
const WHOLE_BYTES: usize = 1 << 15;
/// The most bytes read ahead.
const AHEAD_BYTES: usize = 1 << 16;

/// The positions of one term.
///
/// Bytes in memory are borrowed. Bytes in a file are read in windows, which grow while reads are sequential
/// and otherwise are as small as the request.
pub(crate) struct Places<'a> {
    stored: &'a Stored,
    start: u64,
    bytes: usize,
    window: Vec<u8>,
    /// The start of the window.
    window_start: usize,
    ahead: usize,
}

impl<'a> Places<'a> {
    /// The places that begin at `start` of the section.
    pub fn new(stored: &'a Stored, start: u32, bytes: u32) -> Self {
        let (start, bytes) = (u64::from(start), bytes as usize);
        Self { stored, start, bytes, window: Vec::new(), window_start: 0, ahead: 0 }
    }

    /// Reads all bytes at once, for a caller that needs most of them.
    pub fn load(&mut self) -> Result<()> {
        if matches!(self.stored, Stored::Memory(_)) || self.window.len() == self.bytes {
            return Ok(());
        }
        self.fill(0, self.bytes)
    }

    /// The bytes `from..to` of the term's places (`to` is cut to their end).
    pub fn bytes(&mut self, from: u32, to: u32) -> Result<Cow<'_, [u8]>> {
        let to = (to as usize).min(self.bytes);
        let from = (from as usize).min(to);
        if matches!(self.stored, Stored::Memory(_)) {
            return self.stored.read(self.start + from as u64, to - from);
        }
        let window_end = self.window_start + self.window.len();
        if from < self.window_start || to > window_end {
            self.read_ahead(from, to, window_end)?;
        }
        Ok(Cow::Borrowed(&self.window[from - self.window_start..to - self.window_start]))
    }

    fn read_ahead(&mut self, from: usize, to: usize, window_end: usize) -> Result<()> {
        if self.bytes <= WHOLE_BYTES {
            return self.fill(0, self.bytes);
        }
        let follows = from >= self.window_start && from <= window_end + 4 * (to - from);
        self.ahead = if follows { (self.ahead * 2).clamp(to - from, AHEAD_BYTES) } else { 0 };
        self.fill(from, (from + self.ahead).clamp(to, self.bytes))
    }

    fn fill(&mut self, from: usize, to: usize) -> Result<()> {
        self.window.clear();
        self.window_start = from;
        self.stored.read_into(self.start + from as u64, to - from, &mut self.window)
    }
}

/// Appends places `from..to` of the `total` in a group, decoding only their chunks.
pub(crate) fn read_group(
    group: &[u8],
    from: usize,
    to: usize,
    total: usize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let corrupt = || IndexError::corrupt("a block of positions lies past the end");
    let chunks = total.div_ceil(BLOCK);
    let (widths, data) = group.split_at_checked(chunks).ok_or_else(corrupt)?;
    let first = from / BLOCK;
    let skipped = widths[..first.min(chunks)].iter().map(|&width| usize::from(width));
    let mut at = skipped.sum::<usize>() * BLOCK / 8;
    let mut buffer = [0; BLOCK];
    for (chunk, &width) in widths.iter().enumerate().take(to.div_ceil(BLOCK)).skip(first) {
        let start = chunk * BLOCK;
        let values = &mut buffer[..(total - start).min(BLOCK)];
        at += packing::unpack(data.get(at..).ok_or_else(corrupt)?, width, values)?;
        let wanted = from.saturating_sub(start)..(to - start).min(values.len());
        out.extend_from_slice(&values[wanted]);
    }
    Ok(())
}
