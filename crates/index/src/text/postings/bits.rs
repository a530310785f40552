//! Bit-level codes of numbers: Rice and Elias gamma codes, lowest bit first.
//!
//! ```text
//! rice(k) := 0{value >> k} 1 low:k
//! gamma   := 0{n} 1 low:n              value = 1 << n | low, at least 1
//! ```
//! One instruction counts the zeros: reading a number takes about 1 ns.

use crate::{IndexError, Result};

/// The least number of valid bits in one read.
const SEEN_BITS: u32 = 57;

/// Appends numbers bit by bit to bytes.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The bits that are not in `out` yet, fewer than 32.
    pending: u64,
    bits: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, bits: 0 }
    }

    /// Appends a number of `bits` bits, up to 32.
    #[inline]
    pub fn push(&mut self, value: u32, bits: u32) {
        self.pending |= u64::from(value) << self.bits;
        self.bits += bits;
        if self.bits >= u32::BITS {
            self.out.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= u32::BITS;
            self.bits -= u32::BITS;
        }
    }

    /// Appends a number in Rice code; `k` is up to 31.
    #[inline]
    pub fn rice(&mut self, value: u32, k: u32) {
        self.unary_and(value >> k, value & mask(k), k);
    }

    /// Appends a number, at least 1, in gamma code.
    #[inline]
    pub fn gamma(&mut self, value: u32) {
        let low_bits = value.max(1).ilog2();
        self.unary_and(low_bits, value & mask(low_bits), low_bits);
    }

    /// Appends this many zeros, a one, and a number of `bits` bits; in a single step if they fit.
    #[inline]
    fn unary_and(&mut self, zeros: u32, low: u32, bits: u32) {
        if zeros < u32::BITS && zeros + 1 + bits <= u32::BITS {
            let code = (u64::from(low) << 1 | 1) << zeros;
            return self.push(code as u32, zeros + 1 + bits);
        }
        self.long_unary(zeros);
        self.push(low, bits);
    }

    #[cold]
    fn long_unary(&mut self, mut zeros: u32) {
        while zeros >= 32 {
            self.push(0, 32);
            zeros -= 32;
        }
        self.push(0, zeros);
        self.push(1, 1);
    }

    /// Fills the last byte with zeros.
    pub fn finish(self) {
        let bytes = self.bits.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.pending.to_le_bytes()[..bytes]);
    }
}

/// The number of parameters that [`best_rice`] compares.
const COMPARED: usize = 4;

/// The Rice parameter `k` that gives the shortest code.
pub(crate) fn best_rice(values: impl Iterator<Item = u32> + Clone) -> u32 {
    let (mut count, mut sum) = (0, 0);
    values.clone().for_each(|value| {
        count += 1;
        sum += u64::from(value);
    });
    let near = (sum / count.max(1)).max(1).ilog2();
    let (first, last) = (near.saturating_sub(2), (near + 1).min(31));
    let mut bits = [0; COMPARED];
    values.for_each(|value| {
        let shifted = u64::from(value >> first);
        bits.iter_mut().zip(0u32..).for_each(|(bits, k)| *bits += shifted >> k);
    });
    let of_all = (first..=last).zip(bits).map(|(k, bits)| (bits + count * u64::from(k), k));
    of_all.min().map_or(0, |(_, k)| k)
}

/// Reads numbers from bytes that may be damaged.
#[derive(Clone, Copy)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    /// A reader that starts at the bit `at`.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The bytes it reads.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The place of the next bit.
    pub fn position(&self) -> usize {
        self.at
    }

    /// At least the next [`SEEN_BITS`] bits, without moving on; zeros past the end.
    #[inline]
    fn see(&self) -> u64 {
        let word = match self.bytes.get(self.at / 8..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.see_end(),
        };
        word >> (self.at % 8)
    }

    #[cold]
    fn see_end(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or(&[]);
        rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Reads a number of `bits` bits, up to 32.
    #[inline]
    pub fn take(&mut self, bits: u32) -> u32 {
        let seen = self.see() & ((1u64 << bits) - 1);
        self.at += bits as usize;
        seen as u32
    }

    /// Reads a number in Rice code; `k` is up to 31.
    #[inline]
    pub fn rice(&mut self, k: u32) -> Result<u32> {
        let seen = self.see();
        let zeros = seen.trailing_zeros();
        if zeros + 1 + k > SEEN_BITS {
            return self.long_rice(k);
        }
        self.at += (zeros + 1 + k) as usize;
        Ok(zeros << k | (seen >> (zeros + 1)) as u32 & mask(k))
    }

    /// Reads one bit, then a number in Rice code.
    #[inline]
    pub fn flag_and_rice(&mut self, k: u32) -> Result<(bool, u32)> {
        let seen = self.see();
        let (flag, seen) = (seen & 1 == 1, seen >> 1);
        let zeros = seen.trailing_zeros();
        if zeros + 2 + k > SEEN_BITS {
            self.at += 1;
            return self.long_rice(k).map(|value| (flag, value));
        }
        self.at += (zeros + 2 + k) as usize;
        Ok((flag, zeros << k | (seen >> (zeros + 1)) as u32 & mask(k)))
    }

    #[cold]
    fn long_rice(&mut self, k: u32) -> Result<u32> {
        let high = self.unary()?;
        let value = u64::from(high) << k | u64::from(self.take(k));
        u32::try_from(value).map_err(|_| IndexError::corrupt("a number of a posting record"))
    }

    /// Reads a number, at least 1, in gamma code.
    #[inline]
    pub fn gamma(&mut self) -> Result<u32> {
        let low_bits = self.unary()?;
        if low_bits > 31 {
            return Err(IndexError::corrupt("a number of a posting record"));
        }
        Ok(1 << low_bits | self.take(low_bits))
    }

    #[inline]
    fn unary(&mut self) -> Result<u32> {
        let mut zeros = 0u32;
        loop {
            let run = self.see().trailing_zeros().min(SEEN_BITS);
            self.at += run as usize;
            zeros = zeros.saturating_add(run);
            if run < SEEN_BITS {
                self.at += 1;
                return Ok(zeros);
            }
            if self.at / 8 >= self.bytes.len() {
                return Err(IndexError::corrupt("a posting record lies past the end"));
            }
        }
    }
}

#[inline]
fn mask(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_round_trip(
            values in proptest::collection::vec((0u32..5000, 0u32..8, any::<u32>()), 0..200),
        ) {
            let mut bytes = vec![3];
            let mut writer = BitWriter::new(&mut bytes);
            for &(small, k, any) in &values {
                writer.rice(small, k);
                writer.push(any & 1, 1);
                writer.rice(any, 24 + k);
                writer.gamma(any.max(1));
                writer.push(any, 32);
            }
            writer.finish();
            let mut reader = BitReader::new(&bytes, 8);
            for (small, k, any) in values {
                prop_assert_eq!(reader.rice(k).unwrap(), small);
                prop_assert_eq!(reader.flag_and_rice(24 + k).unwrap(), (any & 1 == 1, any));
                prop_assert_eq!(reader.gamma().unwrap(), any.max(1));
                prop_assert_eq!(reader.take(32), any);
            }
            prop_assert_eq!(reader.position().div_ceil(8), bytes.len());
            let mut behind = BitReader::new(&bytes, bytes.len() * 8);
            prop_assert!(behind.rice(3).is_err() && behind.gamma().is_err());
        }

        #[test]
        fn no_other_parameter_takes_fewer_bits(
            values in proptest::collection::vec(0u32..1000, 1..50),
        ) {
            let bits = |k: u32| values.iter().map(|value| (value >> k) + 1 + k).sum::<u32>();
            let best = (0..20).map(bits).min().unwrap();
            let chosen = bits(best_rice(values.iter().copied()));
            prop_assert!(chosen <= best + best / 16, "{chosen} {best}");
        }
    }
}
