//! Bit packing of up to 128 numbers: whole blocks by SIMD, shorter ones number by number.

use bitpacking::{BitPacker, BitPacker4x};

use crate::{IndexError, Result};

/// Numbers in a whole block.
pub(crate) const BLOCK: usize = BitPacker4x::BLOCK_LEN;

/// Bytes that `count` numbers of `width` bits take.
#[inline]
pub(crate) fn packed_bytes(count: usize, width: u8) -> usize {
    (count * usize::from(width)).div_ceil(8)
}

/// The fewest bits that hold every number.
pub(crate) fn width_of(values: &[u32]) -> u8 {
    let all = values.iter().fold(0, |all, &value| all | value);
    (32 - all.leading_zeros()) as u8
}

/// Appends the numbers (at most [`BLOCK`]) in `width` bits each.
pub(crate) fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + packed_bytes(values.len(), width), 0);
    if values.len() == BLOCK {
        BitPacker4x::new().compress(values, &mut out[start..], width);
        return;
    }
    let (mut pending, mut bits, mut at) = (0u64, 0, start);
    for &value in values {
        pending |= u64::from(value) << bits;
        bits += u32::from(width);
        while bits >= 8 {
            out[at] = pending as u8;
            at += 1;
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out[at] = pending as u8;
    }
}

/// Reads `values.len()` numbers of `width` bits from the start of `bytes`; how many bytes they
/// took.
#[inline]
pub(crate) fn unpack(bytes: &[u8], width: u8, values: &mut [u32]) -> Result<usize> {
    let length = packed_bytes(values.len(), width);
    let Some(bytes) = bytes.get(..length).filter(|_| width <= 32) else {
        return Err(IndexError::corrupt("a packed block lies past the end"));
    };
    if values.len() == BLOCK {
        BitPacker4x::new().decompress(bytes, values, width);
    } else {
        unpack_short(bytes, width, values);
    }
    Ok(length)
}

fn unpack_short(bytes: &[u8], width: u8, values: &mut [u32]) {
    let mask = (1u64 << width) - 1;
    let (mut pending, mut bits) = (0u64, 0);
    let mut bytes = bytes.iter();
    for value in values {
        while bits < u32::from(width) {
            pending |= u64::from(bytes.next().copied().unwrap_or(0)) << bits;
            bits += 8;
        }
        *value = (pending & mask) as u32;
        pending >>= width;
        bits -= u32::from(width);
    }
}

/// Appends a whole block of strictly ascending documents that follow `previous`: width, then
/// packed gaps.
pub(crate) fn pack_documents(docs: &[u32; BLOCK], previous: Option<u32>, out: &mut Vec<u8>) {
    let packer = BitPacker4x::new();
    let width = packer.num_bits_strictly_sorted(previous, docs);
    out.push(width);
    let start = out.len();
    out.resize(start + packed_bytes(BLOCK, width), 0);
    packer.compress_strictly_sorted(previous, docs, &mut out[start..], width);
}

/// Reads such a block; how many bytes it took.
#[inline]
pub(crate) fn unpack_documents(
    bytes: &[u8],
    previous: Option<u32>,
    docs: &mut [u32; BLOCK],
) -> Result<usize> {
    let corrupt = || IndexError::corrupt("a block of documents lies past the end");
    let &width = bytes.first().filter(|&&width| width <= 32).ok_or_else(corrupt)?;
    let length = packed_bytes(BLOCK, width);
    let packed = bytes.get(1..1 + length).ok_or_else(corrupt)?;
    BitPacker4x::new().decompress_strictly_sorted(previous, packed, docs, width);
    Ok(1 + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(width in 0u8..=32, seed: u64, count in 0usize..=BLOCK) {
            let mask = ((1u64 << width) - 1) as u32;
            let values: Vec<u32> = (0..count as u64)
                .map(|i| (seed.wrapping_mul(i * 2 + 1) >> 20) as u32 & mask)
                .collect();
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            let mut back = vec![0; count];
            prop_assert_eq!(unpack(&bytes, width, &mut back).unwrap(), bytes.len());
            prop_assert_eq!(back, values);
        }
    }
}
