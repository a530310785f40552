//! A random-access array of values of one kind.
//!
//! ```text
//! ordinal values := numbers
//! byte values    := numbers blob_bytes:u64 blob      the offsets of the values, then their end
//! ```

use super::{
    Cell, ColumnKind,
    cursor::SectionCursor,
    numbers::{Numbers, write_numbers},
};
use crate::{IndexError, Result, Slice};

/// The values, read in place.
#[derive(Clone)]
pub(super) enum Values {
    Ordinal(Numbers),
    Bytes(Strings),
}

impl Values {
    /// Reads `count` values of a kind.
    pub fn read(kind: ColumnKind, count: u32, cursor: &mut SectionCursor<'_>) -> Result<Self> {
        let values = match kind {
            ColumnKind::Ordinal => Self::Ordinal(Numbers::read(cursor)?),
            ColumnKind::Bytes => Self::Bytes(Strings::read(cursor)?),
        };
        match values.len() == count {
            true => Ok(values),
            false => Err(IndexError::corrupt("a column has another number of values")),
        }
    }

    /// How the values are stored.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Ordinal(_) => ColumnKind::Ordinal,
            Self::Bytes(_) => ColumnKind::Bytes,
        }
    }

    /// The number of values.
    pub fn len(&self) -> u32 {
        match self {
            Self::Ordinal(numbers) => numbers.len(),
            Self::Bytes(strings) => strings.len(),
        }
    }

    /// The value at `index`, which is below `len`.
    #[inline]
    pub fn get(&self, index: u32) -> Cell<'_> {
        match self {
            Self::Ordinal(numbers) => Cell::Ordinal(numbers.get(index)),
            Self::Bytes(strings) => Cell::Bytes(strings.get(index)),
        }
    }

    /// The partition point of sorted values: the index of the first value for which `below` is false.
    pub fn partition_point(&self, below: impl Fn(Cell<'_>) -> bool) -> u32 {
        let (mut start, mut end) = (0, self.len());
        while start < end {
            let middle = start + (end - start) / 2;
            match below(self.get(middle)) {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }
}

/// Byte strings one after the other.
#[derive(Clone)]
pub(super) struct Strings {
    offsets: Numbers,
    blob: Slice,
}

impl Strings {
    fn read(cursor: &mut SectionCursor<'_>) -> Result<Self> {
        let offsets = Numbers::read(cursor)?;
        let blob_bytes = cursor.length()?;
        let blob = cursor.slice(blob_bytes)?;
        match offsets.len() {
            0 => Err(IndexError::corrupt("byte values have no end")),
            _ => Ok(Self { offsets, blob }),
        }
    }

    /// The number of strings.
    pub fn len(&self) -> u32 {
        self.offsets.len() - 1
    }

    /// The string at `index`, empty past the end.
    #[inline]
    pub fn get(&self, index: u32) -> &[u8] {
        let end = self.offsets.get(index.saturating_add(1));
        self.between(self.offsets.get(index), end)
    }

    /// Calls `visit` with each index and its string, in the given order. For consecutive indexes each offset
    /// is read once.
    #[inline]
    pub fn for_each_of(&self, indexes: &[u32], mut visit: impl FnMut(u32, &[u8])) {
        // An index and its offset, kept from the last step.
        let mut known = (u32::MAX, 0);
        for &index in indexes {
            let start = if known.0 == index { known.1 } else { self.offsets.get(index) };
            let next = index.saturating_add(1);
            let end = self.offsets.get(next);
            visit(index, self.between(start, end));
            known = (next, end);
        }
    }

    /// Calls `visit` with every string in order: each offset is read once.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &[u8])) {
        let mut start = self.offsets.get(0);
        for index in 0..self.len() {
            let end = self.offsets.get(index + 1);
            visit(index, self.between(start, end));
            start = end;
        }
    }

    #[inline]
    fn between(&self, start: u64, end: u64) -> &[u8] {
        self.blob.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Appends byte values: `offsets` has one more element than there are values.
pub(super) fn write_strings(offsets: &[u64], blob: &[u8], out: &mut Vec<u8>) {
    write_numbers(offsets, out);
    out.extend_from_slice(&(blob.len() as u64).to_le_bytes());
    out.extend_from_slice(blob);
}
