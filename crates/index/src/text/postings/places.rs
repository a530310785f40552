//! The places of large records: bit-packed in groups that belong to 128 postings each.

use std::borrow::Cow;

use super::packing::{self, BLOCK};
use crate::{IndexError, Result, bytes::Stored};

/// A term's places up to this many bytes are read whole: one read costs more than their bytes.
const WHOLE_BYTES: usize = 1 << 15;

/// The places of one term.
pub(crate) struct Places<'a> {
    stored: &'a Stored,
    start: u64,
    bytes: usize,
    whole: Option<Cow<'a, [u8]>>,
}

impl<'a> Places<'a> {
    /// The places that lie at `start` of the section.
    pub fn new(stored: &'a Stored, start: u32, bytes: u32) -> Self {
        Self { stored, start: u64::from(start), bytes: bytes as usize, whole: None }
    }

    /// Reads all bytes at once, for a caller that needs most of them.
    pub fn load(&mut self) -> Result<()> {
        if self.whole.is_none() {
            self.whole = Some(self.stored.read(self.start, self.bytes)?);
        }
        Ok(())
    }

    /// The bytes `from..to` of the term's places (`to` is cut to their end).
    pub fn bytes(&mut self, from: u32, to: u32) -> Result<Cow<'_, [u8]>> {
        let to = (to as usize).min(self.bytes);
        let from = (from as usize).min(to);
        if matches!(self.stored, Stored::Memory(_)) || self.bytes <= WHOLE_BYTES {
            self.load()?;
        }
        match &self.whole {
            Some(whole) => Ok(Cow::Borrowed(&whole[from..to])),
            None => self.stored.read(self.start + from as u64, to - from),
        }
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
