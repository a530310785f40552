//! Reads the parts of a section one after the other.

use crate::{IndexError, Result, Slice};

/// A read position in a section. Reading past the end is a corrupt error.
pub(crate) struct SectionCursor<'s> {
    section: &'s Slice,
    at: usize,
}

impl<'s> SectionCursor<'s> {
    /// The start of `section`.
    pub fn new(section: &'s Slice) -> Self {
        Self { section, at: 0 }
    }

    /// The next `length` bytes, shared.
    pub fn slice(&mut self, length: usize) -> Result<Slice> {
        let end = self.at.checked_add(length).ok_or_else(|| IndexError::corrupt("a length"))?;
        let part = self.section.part(self.at..end)?;
        self.at = end;
        Ok(part)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes as a length or an offset.
    pub fn length(&mut self) -> Result<usize> {
        let length = self.array().map(u64::from_le_bytes)?;
        usize::try_from(length).map_err(|_| IndexError::corrupt("a length"))
    }

    /// Checks that the section ends here; a corrupt error if it does not.
    pub fn finish(self) -> Result<()> {
        match self.at == self.section.len() {
            true => Ok(()),
            false => Err(IndexError::corrupt("bytes after the end of a section's content")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.section.get(self.at..).and_then(|rest| rest.first_chunk());
        let bytes = *bytes.ok_or_else(|| IndexError::corrupt("a section ends early"))?;
        self.at += N;
        Ok(bytes)
    }
}
