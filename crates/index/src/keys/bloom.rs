//! The bloom filter over the keys: split blocks, ten bits a key.
//!
//! ```text
//! section KBLM, id 0:
//! bloom := block{1..}           as many as ten bits a key need, at least one
//! block := lane:u32{8}
//! ```
//! A key's [`hash`] picks one block by its upper half (`upper * blocks >> 32`) and one bit of each
//! lane by its lower half (`lower * SALTS[lane] >> 27`), so that a look-up touches one cache line.
//! About one absent key in a hundred passes. The hash is part of the format.

use crate::{IndexError, Result, Slice};

const BITS_PER_KEY: usize = 10;
const LANES: usize = 8;
const BLOCK_BYTES: usize = LANES * 4;
/// Odd multipliers, one for each lane.
const SALTS: [u32; LANES] = [
    0x9e37_79b1,
    0x85eb_ca77,
    0xc2b2_ae3d,
    0x27d4_eb2f,
    0x1656_67b1,
    0xd3a2_646d,
    0xfd70_46c5,
    0xb55a_4f09,
];
/// The multipliers of the hash: the fractions of the golden ratio and of the square root of 2.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const ROOT: u64 = 0x6a09_e667_f3bc_c909;

/// A 64-bit hash of a key.
///
/// `state` begins as `GOLDEN` and takes in 16 bytes at a time, the last ones padded with zeros:
/// `state = fold((low ^ ROOT) * (high ^ state))` with `low` and `high` little endian, where `fold`
/// joins the halves of the 128-bit product by exclusive or. The hash is
/// `fold((state ^ length) * GOLDEN)`.
#[inline]
pub(super) fn hash(key: &[u8]) -> u64 {
    let (chunks, tail) = key.as_chunks::<16>();
    let mut state = chunks.iter().fold(GOLDEN, absorb);
    if !tail.is_empty() {
        let mut last = [0; 16];
        last.iter_mut().zip(tail).for_each(|(slot, byte)| *slot = *byte);
        state = absorb(state, &last);
    }
    fold(state ^ key.len() as u64, GOLDEN)
}

#[inline]
fn absorb(state: u64, bytes: &[u8; 16]) -> u64 {
    let both = u128::from_le_bytes(*bytes);
    fold(both as u64 ^ ROOT, (both >> 64) as u64 ^ state)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Builds the filter of keys with these hashes.
pub(super) fn build(hashes: &[u64]) -> Vec<u8> {
    let blocks = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BYTES * 8).max(1);
    let mut filter = vec![[0u32; LANES]; blocks];
    for &hash in hashes {
        if let Some(block) = filter.get_mut(block_index(hash, blocks)) {
            block.iter_mut().zip(lane_bits(hash)).for_each(|(lane, bit)| *lane |= bit);
        }
    }
    filter.iter().flatten().flat_map(|lane| lane.to_le_bytes()).collect()
}

#[inline]
fn block_index(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

#[inline]
fn lane_bits(hash: u64) -> [u32; LANES] {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// The filter, read in place.
#[derive(Clone)]
pub(super) struct Bloom {
    blocks: Slice,
}

impl Bloom {
    /// Opens a section, and checks that it consists of whole blocks.
    pub fn open(blocks: Slice) -> Result<Self> {
        match !blocks.is_empty() && blocks.len().is_multiple_of(BLOCK_BYTES) {
            true => Ok(Self { blocks }),
            false => Err(IndexError::corrupt("size of the bloom filter")),
        }
    }

    /// Whether a key may have the hash; false means that certainly no key has it.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let (blocks, _) = self.blocks.as_chunks::<BLOCK_BYTES>();
        let Some(block) = blocks.get(block_index(hash, blocks.len())) else { return false };
        let (lanes, _) = block.as_chunks::<4>();
        let missing = lanes
            .iter()
            .zip(lane_bits(hash))
            .fold(0, |missing, (lane, bit)| missing | (bit & !u32::from_le_bytes(*lane)));
        missing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_part_of_the_format() {
        assert_eq!(hash(b""), fold(GOLDEN, GOLDEN));
        assert_eq!(hash(b"a"), 2_703_416_008_298_340_768);
        assert_eq!(hash(&7u64.to_be_bytes()), 1_100_348_802_752_299_638);
        assert_eq!(hash(b"seventeen bytes !"), 1_521_397_093_547_084_615);
    }

    #[test]
    fn bloom_filter_passes_every_key_and_few_others() {
        let hashes: Vec<u64> = (0..20_000u64).map(|key| hash(&key.to_be_bytes())).collect();
        let bloom = Bloom::open(Slice::new(build(&hashes))).unwrap();
        assert!(hashes.iter().all(|&hash| bloom.may_contain(hash)));
        let others = 20_000..120_000u64;
        let passed = others.filter(|key| bloom.may_contain(hash(&key.to_be_bytes()))).count();
        assert!(passed < 2_500, "{passed} of 100,000 absent keys pass");
    }

    #[test]
    fn long_keys_that_differ_in_one_byte_hash_apart() {
        let mut hashes = std::collections::HashSet::new();
        for length in 0..200usize {
            for place in 0..length {
                let mut key = vec![0; length];
                key[place] = 1;
                assert!(hashes.insert(hash(&key)), "length {length}, place {place}");
            }
            assert!(hashes.insert(hash(&vec![0; length])), "length {length}");
        }
    }
}
