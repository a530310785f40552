//! Bounds the length of the runs of query words in a document, by their positions.
//!
//! In a run, each word is as far after the previous one as in the query: one shift of the query against the document
//! aligns all of them. The number of words that agree on a shift is counted without distinguishing fields, which lie
//! one after the other, and shifts that differ by a multiple of [`SHIFTS`] count as one. So the count is an upper bound
//! on the run, and nearly always exact.
//!
//! ```text
//! query                               a b c           distances to the last word: 2, 1, 0
//! document                            x a b y b c     a at 2, b at 3 and 5, c at 6
//! position + distance: the shift      a: 4   b: 4, 6   c: 6
//! words by shift                      4: a, b   6: b, c        no run has more than 2 words
//! ```

/// The number of shifts that are counted separately.
const SHIFTS: usize = 512;

/// The difference between the counts of one document and those of the next, so that counts need no reset.
const STEP: u32 = 1 << 12;

/// Counts words by shift, for one document after the other.
pub(super) struct Shifts {
    counts: Box<[u32; SHIFTS]>,
    /// The value that means zero for the current document. Lower counts belong to earlier documents.
    zero: u32,
}

impl Shifts {
    pub fn new() -> Self {
        Self { counts: Box::new([0; SHIFTS]), zero: 0 }
    }

    /// Begins with the next document.
    #[inline]
    pub fn begin(&mut self) {
        // Before counts could meet the greatest number all of them begin anew.
        if self.zero > u32::MAX / 2 {
            self.counts.fill(0);
            self.zero = 0;
        }
        self.zero += STEP;
    }

    /// Counts a word. `steps` are its first position and the distances of the others to the one before; `before_last`
    /// is the distance to the query's last word. Returns the greatest count that this word reached.
    #[inline]
    pub fn add(&mut self, steps: &[u32], before_last: u32) -> u32 {
        let (mut at, mut greatest) = (before_last, self.zero);
        for step in steps {
            at = at.wrapping_add(*step);
            if let Some(count) = self.counts.get_mut(at as usize % SHIFTS) {
                *count = (*count).max(self.zero).saturating_add(1);
                greatest = greatest.max(*count);
            }
        }
        greatest - self.zero
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many words agree on a shift, by counting each.
    fn counted(words: &[(Vec<u32>, u32)]) -> u32 {
        let shifts =
            words.iter().flat_map(|(places, before)| places.iter().map(move |at| at + before));
        let shifts: Vec<usize> = shifts.map(|shift| shift as usize % SHIFTS).collect();
        let same = |shift: &usize| shifts.iter().filter(|other| *other == shift).count();
        shifts.iter().map(same).max().unwrap_or(0) as u32
    }

    #[test]
    fn words_are_counted_by_shifts_in_each_document_anew() {
        let mut shifts = Shifts::new();
        // Just before all counts begin anew.
        shifts.zero = u32::MAX / 2 - 5 * STEP;
        let mut state = 7u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        for _ in 0..2_000 {
            let words = 1 + below(5);
            let words = (0..words).map(|_| {
                let mut at = 0;
                let places = (0..1 + below(8)).map(|_| {
                    at += 1 + below(90);
                    at
                });
                (places.collect(), below(10))
            });
            let words: Vec<(Vec<u32>, u32)> = words.collect();
            shifts.begin();
            let mut longest = 0;
            for (places, before) in &words {
                let steps = places.iter().scan(0, |last, at| {
                    let step = at - *last;
                    *last = *at;
                    Some(step)
                });
                longest = longest.max(shifts.add(&steps.collect::<Vec<_>>(), *before));
            }
            assert_eq!(longest, counted(&words), "{words:?}");
        }
    }
}
