//! Looks up sorted entries: by halving, and by numbers that sort like the beginnings of terms.

/// The first 8 bytes as a number that sorts like them. Shorter terms are padded with zeros.
#[inline]
pub(crate) fn prefix_key(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(padded)
        }
    }
}

/// The first index in `low..high` for which `below` is false.
#[inline]
pub(crate) fn partition(low: usize, high: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low.midpoint(high);
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
