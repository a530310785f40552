//! Sorts many texts by their first bytes.
//!
//! A sort by comparisons takes 20 steps for each of a million texts. Instead, texts are distributed
//! by each byte of their keys, from the last byte to the first (a radix sort). Suffixes are the
//! most texts. They are first put into buckets by their first two bytes, so that each bucket mostly
//! stays in the cache.

use super::sorted::prefix_key;

/// The first 8 bytes of a text, and its number.
pub(super) type KeyedText = (u64, u32);

/// The number of leading bits of a suffix's key that choose its bucket.
const BUCKET_BITS: u32 = 16;
/// Up to this many texts are sorted by comparisons.
const FEW: usize = 512;
/// The suffixes of a blob of up to this many bytes are sorted by comparisons too, because they stay
/// in the cache.
const SMALL_BLOB: usize = 1 << 15;

/// Sorts by key and number. On input, the numbers must ascend.
pub(super) fn sort(keyed: &mut [KeyedText], scratch: &mut Vec<KeyedText>) {
    if keyed.len() <= FEW {
        return keyed.sort_unstable();
    }
    let mut counts = [[0usize; 256]; size_of::<u64>()];
    for (key, _) in keyed.iter() {
        counts.iter_mut().zip(key.to_le_bytes()).for_each(|(counts, byte)| {
            counts[usize::from(byte)] += 1;
        });
    }
    scratch.clear();
    scratch.resize(keyed.len(), (0, 0));
    let (mut from, mut to) = (&mut *keyed, scratch.as_mut_slice());
    let mut is_in_scratch = false;
    for (byte, counts) in counts.iter_mut().enumerate() {
        // All keys have the same byte here, so this pass would change nothing.
        if counts.contains(&from.len()) {
            continue;
        }
        begins(counts);
        for &one in from.iter() {
            let place = &mut counts[usize::from(one.0.to_le_bytes()[byte])];
            to[*place] = one;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        is_in_scratch = !is_in_scratch;
    }
    if is_in_scratch {
        to.copy_from_slice(from);
    }
}

/// Turns the counts of parts into the offsets where the parts begin.
pub(crate) fn begins(counts: &mut [usize]) {
    let mut total = 0;
    for count in counts {
        (total, *count) = (total + *count, total);
    }
}

/// The suffixes that begin at ascending `offsets` of the blob, ascending by their first 8 bytes and then by offset.
pub(super) fn suffixes(blob: &[u8], offsets: impl Iterator<Item = u32> + Clone) -> Vec<KeyedText> {
    if blob.len() > SMALL_BLOB {
        return suffixes_by_buckets(blob, offsets);
    }
    let mut keyed: Vec<_> = offsets.map(|offset| (key(blob, offset), offset)).collect();
    keyed.sort_unstable();
    keyed
}

fn key(blob: &[u8], offset: u32) -> u64 {
    prefix_key(blob.get(offset as usize..).unwrap_or(&[]))
}

fn suffixes_by_buckets(blob: &[u8], offsets: impl Iterator<Item = u32> + Clone) -> Vec<KeyedText> {
    let key = |offset: u32| key(blob, offset);
    let bucket = |key: u64| (key >> (u64::BITS - BUCKET_BITS)) as usize;
    let mut places = vec![0; 1 << BUCKET_BITS];
    let mut count = 0;
    offsets.clone().for_each(|offset| {
        places[bucket(key(offset))] += 1;
        count += 1;
    });
    begins(&mut places);
    let mut keyed = vec![(0, 0); count];
    for offset in offsets {
        let key = key(offset);
        let place = &mut places[bucket(key)];
        keyed[*place] = (key, offset);
        *place += 1;
    }
    let mut scratch = Vec::new();
    for bucket in keyed.chunk_by_mut(|a, b| bucket(a.0) == bucket(b.0)) {
        sort(bucket, &mut scratch);
    }
    keyed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_sort_by_comparisons(
            parts in proptest::collection::vec("[ab]{1,9}|[a-z]{1,5}|[日本é]{1,3}", 1..60),
            times in 1usize..200,
            step in 1usize..4,
        ) {
            let parts = parts.iter().cycle().take(parts.len() * times);
            let blob: Vec<u8> = parts.flat_map(|part| part.bytes()).collect();
            let offsets = (0..blob.len() as u32).step_by(step);
            let keyed: Vec<KeyedText> = offsets.clone().map(|at| (key(&blob, at), at)).collect();
            let mut expected = keyed.clone();
            expected.sort_unstable();
            prop_assert!(suffixes(&blob, offsets.clone()) == expected);
            prop_assert!(suffixes_by_buckets(&blob, offsets) == expected);
            let mut sorted = keyed;
            sort(&mut sorted, &mut Vec::new());
            prop_assert!(sorted == expected);
        }
    }
}
