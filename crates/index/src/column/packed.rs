//! Bit packing with random access.
//!
//! ```text
//! packed := value{n} zeros      `width` bits a value, lowest bit first; zeros up to the next
//!                               multiple of 64 values
//! ```
//! A width is 0 to 56 bits, or 64, so that one unaligned load of eight bytes holds any value. The reader may
//! load up to [`PADDING_BYTES`] bytes past the values, so the writer appends as many zero bytes.

/// Bytes that must follow packed values.
pub(crate) const PADDING_BYTES: usize = 8;
/// Values are padded to whole groups of this size, the bits of one word of a bitmap.
const GROUP: usize = 64;

/// The least width that holds `max`.
pub(crate) fn width_for(max: u64) -> u32 {
    match u64::BITS - max.leading_zeros() {
        width @ 0..=56 => width,
        _ => 64,
    }
}

/// Whether a stored width is one that [`width_for`] gives.
pub(crate) fn is_width(width: u32) -> bool {
    width <= 56 || width == 64
}

/// The size of `count` packed values without the padding after them.
pub(crate) fn packed_bytes(count: u32, width: u32) -> usize {
    (count as usize).div_ceil(GROUP) * GROUP / 8 * width as usize
}

/// Appends the values, each below `1 << width`.
pub(crate) fn pack(values: impl ExactSizeIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let padding = values.len().next_multiple_of(GROUP) - values.len();
    let (mut word, mut filled) = (0u64, 0);
    for value in values.chain(std::iter::repeat_n(0, padding)) {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
}

/// The value at `index`; 0 past the end.
#[inline]
pub(crate) fn get(bytes: &[u8], width: u32, index: usize) -> u64 {
    let bit = index * width as usize;
    load(bytes, bit / 8) >> (bit % 8) & mask(width)
}

/// Fills one word for every 64 values: bit `i` is set if `test` holds for value `i`. Bits past the last value
/// are undefined.
pub(crate) fn scan(bytes: &[u8], width: u32, test: impl Fn(u64) -> bool, words: &mut [u64]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                0 => words.fill(if test(0) { !0 } else { 0 }),
                $($width => scan_width::<$width>(bytes, test, words),)*
                _ => scan_wide(bytes, width, test, words),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
}

/// The width is known at compile time, so that every shift and offset is a constant.
fn scan_width<const WIDTH: usize>(bytes: &[u8], test: impl Fn(u64) -> bool, words: &mut [u64]) {
    let group_bytes = WIDTH * GROUP / 8;
    for (index, word) in words.iter_mut().enumerate() {
        let start = index * group_bytes;
        let group = bytes.get(start..start + group_bytes + PADDING_BYTES);
        *word = group.map_or(0, |group| scan_group::<WIDTH>(group, &test));
    }
}

/// Goes backwards, so that each result is shifted in at the low end with one add-with-carry.
#[inline]
fn scan_group<const WIDTH: usize>(group: &[u8], test: impl Fn(u64) -> bool) -> u64 {
    let mut word = 0;
    for eighth in (0..8).rev() {
        let Some(run) = group.get(eighth * WIDTH..eighth * WIDTH + WIDTH + PADDING_BYTES) else {
            return 0;
        };
        for index in (0..8).rev() {
            let bit = index * WIDTH;
            let value = load(run, bit / 8) >> (bit % 8) & mask(WIDTH as u32);
            word = word << 1 | u64::from(test(value));
        }
    }
    word
}

fn scan_wide(bytes: &[u8], width: u32, test: impl Fn(u64) -> bool, words: &mut [u64]) {
    for (index, word) in words.iter_mut().enumerate() {
        let group = index * GROUP..(index + 1) * GROUP;
        *word = group
            .rev()
            .fold(0, |word, index| word << 1 | u64::from(test(get(bytes, width, index))));
    }
}

#[inline]
fn load(bytes: &[u8], offset: usize) -> u64 {
    match bytes.get(offset..offset + 8).and_then(|eight| eight.first_chunk()) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => 0,
    }
}

#[inline]
fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_of_every_width_round_trip(
            bits in 0u32..=64,
            seeds in proptest::collection::vec(any::<u64>(), 1..300),
            limit in any::<u64>(),
        ) {
            let values: Vec<u64> = seeds.iter().map(|seed| seed & mask(bits)).collect();
            let width = width_for(mask(bits));
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_bytes(values.len() as u32, width));
            bytes.extend([0; PADDING_BYTES]);
            let limit = limit & mask(bits);
            let mut words = vec![0; values.len().div_ceil(64)];
            scan(&bytes, width, |value| value < limit, &mut words);
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(get(&bytes, width, index), value);
                prop_assert_eq!(words[index / 64] >> (index % 64) & 1 == 1, value < limit);
            }
        }
    }
}
