//! Approximate counts of pairs of numbers in a table of fixed size (a count-min sketch with one row). Counts
//! are never too low.

/// Least and most bits of the number of cells, which are a byte each.
const BITS: (u32, u32) = (12, 22);
/// The assumed count of a saturated cell in estimates.
const FULL_CELL: u32 = 1000;

/// How often pairs were seen, up to 255 times.
pub(super) struct Sketch {
    cells: Vec<u8>,
    bits: u32,
}

impl Sketch {
    /// A sketch for about so many pairs, repetitions included.
    pub fn new(pairs: u64) -> Self {
        let bits = (pairs / 4).max(1).ilog2().clamp(BITS.0, BITS.1);
        Self { cells: vec![0; 1 << bits], bits }
    }

    /// Counts the pair.
    #[inline]
    pub fn add(&mut self, a: u32, b: u32) {
        let cell = &mut self.cells[hash(a, b, self.bits)];
        *cell = cell.saturating_add(1);
    }

    /// The set of pairs that may have been seen at least `times` times.
    pub fn often(&self, times: u8) -> FrequentPairs {
        let word = |cells: &[u8]| {
            cells.iter().rev().fold(0, |word, &cell| word << 1 | u64::from(cell >= times))
        };
        FrequentPairs { words: self.cells.chunks(64).map(word).collect(), bits: self.bits }
    }

    /// The lowest count, at least `floor`, for which all pairs with at least that count fit the limits of
    /// about `most` bytes and `most_pairs` pairs; and their estimated bytes. `cost` is the size of a pair
    /// with a given count.
    pub fn threshold(
        &self,
        floor: u8,
        (most, most_pairs): (usize, usize),
        cost: impl Fn(u32) -> usize,
    ) -> (u8, usize) {
        let mut cells_with = [0usize; 256];
        self.cells.iter().for_each(|&times| cells_with[usize::from(times)] += 1);
        let (mut bytes, mut pairs) = (0, 0);
        for times in (floor.max(1)..=u8::MAX).rev() {
            let seen = if times == u8::MAX { FULL_CELL } else { u32::from(times) };
            let more_pairs = cells_with[usize::from(times)];
            let more = more_pairs.saturating_mul(cost(seen));
            let is_too_much = bytes + more > most || pairs + more_pairs > most_pairs;
            if is_too_much && times < u8::MAX {
                return (times + 1, bytes);
            }
            (bytes, pairs) = (bytes + more, pairs + more_pairs);
        }
        (floor.max(1), bytes)
    }
}

/// The set of frequent pairs, with false positives: one bit for each cell, an eighth of the counts' memory.
pub(super) struct FrequentPairs {
    words: Vec<u64>,
    bits: u32,
}

impl FrequentPairs {
    /// Whether the pair may be in the set.
    #[inline]
    pub fn has(&self, a: u32, b: u32) -> bool {
        let cell = hash(a, b, self.bits);
        self.words[cell / 64] >> (cell % 64) & 1 == 1
    }
}

/// A hash of so many bits of both numbers.
#[inline]
pub(super) fn hash(a: u32, b: u32, bits: u32) -> usize {
    let both = u64::from(a) << 32 | u64::from(b);
    let mixed = both.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_few_are_too_high() {
        let mut sketch = Sketch::new(1 << 20);
        let pairs = (0..300u32).flat_map(|a| (0..100u32).map(move |b| (a, b)));
        pairs.clone().for_each(|(a, b)| (0..(a + b) % 9).for_each(|_| sketch.add(a, b)));
        let often: Vec<FrequentPairs> = (0..=9).map(|times| sketch.often(times)).collect();
        let mut too_high = 0;
        for (a, b) in pairs.clone() {
            let times = (a + b) % 9;
            assert!(often[times as usize].has(a, b));
            too_high += usize::from(often[times as usize + 1].has(a, b));
        }
        assert!(too_high < 30_000 / 5, "{too_high}");
        // Those that are seen 7 or 8 times fit, those that are seen 6 times do not.
        let often = pairs.filter(|(a, b)| (a + b) % 9 >= 7).count();
        let (times, bytes) = sketch.threshold(2, (often * 13, usize::MAX), |_| 10);
        assert_eq!(times, 7);
        assert!(bytes >= often * 9 && bytes <= often * 13, "{bytes}");
        assert_eq!(sketch.threshold(2, (usize::MAX, often * 13 / 10), |_| 10), (times, bytes));
        assert_eq!(sketch.threshold(2, (usize::MAX, usize::MAX), |_| 1).0, 2);
    }
}
