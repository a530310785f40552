//! Bit packing of up to 128 numbers: whole blocks by SIMD, shorter ones number by number.
//!
//! ```text
//! frequencies := width:u8 packed(tf - 1){128}
//!              | (64 + width):u8 more:u64{2} packed(tf - 2)   a bit for each tf > 1, and those:
//!                                      most are 1, and a few large ones need not widen all
//! ```

use bitpacking::{BitPacker, BitPacker4x};

use crate::{IndexError, Result};

/// Numbers in a whole block.
pub(crate) const BLOCK: usize = BitPacker4x::BLOCK_LEN;

const MASK_BYTES: usize = BLOCK / 8;
/// Marks frequencies of which only those above 1 are packed.
const MASKED: u8 = 64;

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
    if values.len() == BLOCK {
        let start = out.len();
        out.resize(start + packed_bytes(values.len(), width), 0);
        BitPacker4x::new().compress(values, &mut out[start..], width);
        return;
    }
    out.reserve(packed_bytes(values.len(), width));
    let (mut pending, mut bits) = (0u64, 0);
    for &value in values {
        pending |= u64::from(value) << bits;
        bits += u32::from(width);
        if bits >= u32::BITS {
            out.extend_from_slice(&(pending as u32).to_le_bytes());
            pending >>= u32::BITS;
            bits -= u32::BITS;
        }
    }
    out.extend_from_slice(&pending.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Reads `values.len()` numbers of `width` bits from the start of `bytes`. Returns how many bytes
/// they took.
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
    // Numbers that begin in the last eight bytes are read from a copy with zeros after it.
    let end = bytes.len().saturating_sub(8);
    let mut last = [0; 16];
    last[..bytes.len() - end].copy_from_slice(&bytes[end..]);
    for (index, value) in values.iter_mut().enumerate() {
        let bit = index * usize::from(width);
        let word = bytes.get(bit / 8..).and_then(|rest| rest.first_chunk());
        let word = word.or_else(|| last.get((bit / 8).checked_sub(end)?..)?.first_chunk());
        if let Some(word) = word {
            *value = (u64::from_le_bytes(*word) >> (bit % 8) & mask) as u32;
        }
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

/// Reads a block of [`pack_documents`]. Returns how many bytes it took.
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

/// Appends a whole block of frequencies.
pub(crate) fn pack_frequencies(tfs: &[u32; BLOCK], out: &mut Vec<u8>) {
    let less = tfs.map(|tf| tf - 1);
    let more: Vec<u32> = tfs.iter().filter(|&&tf| tf > 1).map(|tf| tf - 2).collect();
    let (width, more_width) = (width_of(&less), width_of(&more));
    if packed_bytes(BLOCK, width) <= MASK_BYTES + packed_bytes(more.len(), more_width) {
        out.push(width);
        pack(&less, width, out);
        return;
    }
    let mut mask = 0u128;
    less.iter().enumerate().for_each(|(index, &tf)| mask |= u128::from(tf > 0) << index);
    out.push(MASKED | more_width);
    out.extend_from_slice(&mask.to_le_bytes());
    pack(&more, more_width, out);
}

/// Reads a block of [`pack_frequencies`] from the start of `bytes`.
#[inline]
pub(crate) fn unpack_frequencies(bytes: &[u8], tfs: &mut [u32; BLOCK]) -> Result<()> {
    let corrupt = || IndexError::corrupt("a block of frequencies lies past the end");
    let (&width, rest) = bytes.split_first().ok_or_else(corrupt)?;
    if width & MASKED == 0 {
        unpack(rest, width, tfs)?;
        tfs.iter_mut().for_each(|tf| *tf = tf.saturating_add(1));
        return Ok(());
    }
    let (mask, rest) = rest.split_first_chunk::<MASK_BYTES>().ok_or_else(corrupt)?;
    let mask = u128::from_le_bytes(*mask);
    let mut more = [0; BLOCK];
    let more = &mut more[..mask.count_ones() as usize];
    unpack(rest, width & !MASKED, more)?;
    tfs.fill(1);
    let mut more = more.iter();
    for (half, tfs) in [mask as u64, (mask >> 64) as u64].into_iter().zip(tfs.chunks_mut(64)) {
        let mut bits = half;
        while bits != 0 {
            let tf = more.next().copied().unwrap_or(0);
            tfs[bits.trailing_zeros() as usize] = tf.saturating_add(2);
            bits &= bits - 1;
        }
    }
    Ok(())
}

/// The frequency at `index` of a block of [`pack_frequencies`], without decoding the others.
#[inline]
pub(crate) fn frequency(bytes: &[u8], index: usize) -> Result<u32> {
    let corrupt = || IndexError::corrupt("a block of frequencies lies past the end");
    let (&width, rest) = bytes.split_first().ok_or_else(corrupt)?;
    if width & MASKED == 0 {
        let number = number(rest, width, BLOCK, index).ok_or_else(corrupt)?;
        return Ok(number.saturating_add(1));
    }
    let (mask, rest) = rest.split_first_chunk::<MASK_BYTES>().ok_or_else(corrupt)?;
    let mask = u128::from_le_bytes(*mask);
    if mask >> (index % BLOCK) & 1 == 0 {
        return Ok(1);
    }
    let before = mask & ((1 << (index % BLOCK)) - 1);
    let (count, place) = (mask.count_ones() as usize, before.count_ones() as usize);
    let number = number(rest, width & !MASKED, count, place).ok_or_else(corrupt)?;
    Ok(number.saturating_add(2))
}

/// The number at `index` of `count` packed ones. A whole block is packed in four lanes, and
/// consecutive numbers are in consecutive lanes.
#[inline]
fn number(bytes: &[u8], width: u8, count: usize, index: usize) -> Option<u32> {
    const LANES: usize = 4;
    let bits = usize::from(width);
    bytes.get(..packed_bytes(count, width)).filter(|_| width <= 32)?;
    let mask = (1u64 << width) - 1;
    let word = |at: usize| -> Option<u64> {
        let word = bytes.get(at * 4..)?.first_chunk()?;
        Some(u32::from_le_bytes(*word).into())
    };
    let seen = if width == 0 {
        0
    } else if count == BLOCK {
        let (bit, lane) = (index / LANES * bits, index % LANES);
        let low = word(bit / 32 * LANES + lane)?;
        let is_cut = bit % 32 + bits > 32;
        let high = if is_cut { word((bit / 32 + 1) * LANES + lane)? } else { 0 };
        (high << 32 | low) >> (bit % 32)
    } else {
        let bit = index * bits;
        let last = (bit + bits).div_ceil(8);
        let few = bytes.get(bit / 8..last)?;
        few.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)) >> (bit % 8)
    };
    Some((seen & mask) as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_round_trip(width in 0u8..=32, seed: u64, count in 0usize..=BLOCK) {
            let mask = ((1u64 << width) - 1) as u32;
            let values: Vec<u32> = (0..count as u64)
                .map(|i| (seed.wrapping_mul(i * 2 + 1) >> 20) as u32 & mask)
                .collect();
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            let mut back = vec![0; count];
            prop_assert_eq!(unpack(&bytes, width, &mut back).unwrap(), bytes.len());
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(number(&bytes, width, count, index), Some(*value), "{}", index);
            }
            prop_assert_eq!(back, values);
        }

        #[test]
        fn frequencies_round_trip(one_in in 1u32..20, largest in 1u32..1000, seed: u64) {
            let mut tfs = [1; BLOCK];
            for (index, tf) in (1..).zip(&mut tfs) {
                let random = (seed.wrapping_mul(index * 2 + 1) >> 20) as u32;
                if random.is_multiple_of(one_in) {
                    *tf = 1 + random / one_in % largest;
                }
            }
            let mut bytes = Vec::new();
            pack_frequencies(&tfs, &mut bytes);
            let mut back = [0; BLOCK];
            unpack_frequencies(&bytes, &mut back).unwrap();
            prop_assert_eq!(back, tfs);
            for (index, tf) in tfs.into_iter().enumerate() {
                prop_assert_eq!(frequency(&bytes, index).unwrap(), tf, "{}", index);
            }
            for length in 0..bytes.len() {
                prop_assert!(unpack_frequencies(&bytes[..length], &mut back).is_err());
            }
        }
    }
}
