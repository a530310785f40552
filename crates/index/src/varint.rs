//! Variable-length numbers: seven bits a byte, lowest first, the high bit set on all but the last.

use crate::{IndexError, Result};

/// Appends `value` in 1 to 5 bytes.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads the number at an offset and moves the offset past it; `None` if the number is
/// incomplete.
#[inline]
pub(crate) fn read(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let &byte = bytes.get(*at)?;
        *at += 1;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Moves an offset past the number that begins there; `None` if the number is incomplete.
#[inline]
pub(crate) fn skip(bytes: &[u8], at: &mut usize) -> Option<()> {
    while *bytes.get(*at)? >= 0x80 {
        *at += 1;
    }
    *at += 1;
    Some(())
}

/// Reads numbers one after the other from bytes that may be damaged.
#[derive(Clone)]
pub(crate) struct VarintReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> VarintReader<'a> {
    /// A reader that starts at the byte `at`.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next number.
    ///
    /// # Errors
    /// [`crate::IndexError::Corrupt`] if the number is incomplete.
    #[inline]
    pub fn next(&mut self) -> Result<u32> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => self.next_long(),
        }
    }

    fn next_long(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let Some(&byte) = self.bytes.get(self.at) else { break };
            self.at += 1;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(IndexError::corrupt("a variable-length number"))
    }

    /// The offset of the next number.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves to another offset of the same bytes.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next bytes as they are, or `None` past the end.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_truncated_ones_are_detected() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u32::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| push(&mut bytes, number));
        let mut reader = VarintReader::new(&bytes, 0);
        numbers.iter().for_each(|&number| assert_eq!(reader.next().unwrap(), number));
        assert_eq!(reader.position(), bytes.len());
        assert!(reader.next().is_err());
        let (mut at, mut skipped) = (0, 0);
        for number in numbers {
            assert_eq!(read(&bytes, &mut at), Some(number));
            assert_eq!(skip(&bytes, &mut skipped), Some(()));
            assert_eq!(at, skipped);
        }
        assert_eq!((read(&bytes, &mut at), skip(&bytes, &mut skipped)), (None, None));
        assert!(VarintReader::new(&[0xff; 8], 0).next().is_err());
        assert_eq!((read(&[0xff; 8], &mut 0), skip(&[0xff; 8], &mut 0)), (None, None));
    }
}
