//! Bounds the length of the runs of query words in a document, by their positions.
//!
//! In a run, each word is as far after the previous one as in the query: one shift of the query against the document
//! aligns all of them. The number of words that agree on a shift is counted without distinguishing fields, which lie
//! one after the other, and shifts that differ by a multiple of [`SHIFTS`] count as one. So the count is an upper bound
//! on the run, and nearly always exact.

use remora_words::matching::Matcher;

use super::document::SegmentDocument;
use crate::Result;

/// Shifts that are told apart.
const SHIFTS: usize = 512;

/// What the counts of one document are above those of the one before.
const STEP: u32 = 1 << 12;

/// Counts words by shifts, one document after the other.
pub(super) struct Shifts {
    counts: Box<[u32; SHIFTS]>,
    /// What counts of this document begin with; those that are less are of documents before it.
    zero: u32,
}

impl Shifts {
    pub fn new() -> Self {
        Self { counts: Box::new([0; SHIFTS]), zero: 0 }
    }

    /// Begins with another document.
    #[inline]
    pub fn begin(&mut self) {
        // Before counts could meet the greatest number all of them begin anew.
        if self.zero > u32::MAX / 2 {
            self.counts.fill(0);
            self.zero = 0;
        }
        self.zero += STEP;
    }

    /// Counts a word that stands at these places, the first and by how much each is behind the one before, and so far before
    /// the query's last word; the greatest count that it made.
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

/// The words of a phrase, which stand where one shift puts all of them.
pub(super) struct Phrase {
    shifts: Shifts,
    /// The number of each term, which is one keyword, and how far it stands before the last word.
    words: Vec<(usize, u32)>,
}

impl Phrase {
    /// `None` if the query is anything else.
    pub fn new(matcher: &Matcher) -> Option<Self> {
        let places = matcher.phrase()?;
        let is_keyword = |&(term, _): &(usize, u32)| {
            matcher.terms().get(term).is_some_and(|term| term.keywords.len() == 1)
        };
        if !places.iter().all(is_keyword) {
            return None;
        }
        let last = places.iter().map(|place| place.1).max()?;
        let words = places.into_iter().map(|(term, position)| (term, last - position));
        Some(Self { shifts: Shifts::new(), words: words.collect() })
    }

    /// Whether the phrase can stand in the document that was gone to. Cost: the places of its rarest words, up to the first
    /// that does not stand where the others do.
    pub fn may_match(&mut self, document: &mut SegmentDocument<'_>) -> Result<bool> {
        self.shifts.begin();
        for (&(term, before_last), count) in self.words.iter().zip(1..) {
            if self.shifts.add(document.steps(term)?, before_last) < count {
                return Ok(false);
            }
        }
        Ok(true)
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
