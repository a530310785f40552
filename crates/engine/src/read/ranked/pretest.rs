//! Tests by places alone whether a document matches a phrase or a proximity, before it is evaluated.
//!
//! Most documents that contain all of the words do not contain them close enough to each other, which the positions of
//! the rarest words show. If the query restricts neither fields nor positions, the test is exact.
//!
//! ```text
//! query "a b c"       c is the rarest word, then a, then b
//! c at 6 and 40       the phrase's last word can be at 6 or 40
//! a at 4 and 90       two before the last word: 6 or 92, so 6 is left
//! b at 5              one before the last word: 6, so the document matches
//! ```

use remora_words::matching::{Matcher, QuotedTerms};

use super::document::SegmentDocument;
use crate::Result;

/// The most words of a proximity that are tested, the rarest ones. Each further word means more positions to compare.
const MOST_WINDOW_WORDS: usize = 4;

/// The result of the test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Matches,
    /// The document may match; evaluating it decides.
    MayMatch,
    Fails,
}

/// The test for a query that is one phrase or one proximity of keywords.
pub(super) struct Pretest {
    /// The number of each term, which is one keyword, and the distance of its position to that of the query's last
    /// word; the rarest first.
    terms: Vec<(usize, u32)>,
    /// The distance between the positions of a phrase's first and last word.
    span: u32,
    /// For a proximity, the distance below which its first and last word have to be.
    reach: Option<u32>,
    /// Whether a document that passes the test certainly matches.
    is_decisive: bool,
    /// For a proximity, the positions of each word. For a phrase, the possible positions of its last word by all words
    /// read so far.
    places: Vec<Vec<u32>>,
}

impl Pretest {
    /// The test for a query; `None` if the query is anything else.
    pub fn new(matcher: &Matcher) -> Option<Self> {
        let QuotedTerms { mut terms, reach, is_unlimited } = matcher.quoted()?;
        let is_keyword = |&(term, _): &(usize, u32)| {
            matcher.terms().get(term).is_some_and(|term| term.keywords.len() == 1)
        };
        if !terms.iter().all(is_keyword) {
            return None;
        }
        let last = terms.iter().map(|term| term.1).max()?;
        terms.iter_mut().for_each(|(_, position)| *position = last - *position);
        let span = terms.iter().map(|term| term.1).max()?;
        let is_decisive = is_unlimited && (reach.is_none() || terms.len() <= MOST_WINDOW_WORDS);
        if reach.is_some() {
            terms.truncate(MOST_WINDOW_WORDS);
        }
        let places = vec![Vec::new(); terms.len()];
        Some(Self { terms, span, reach, is_decisive, places })
    }

    /// Tests the current document. It reads the positions of the rarest words first and stops at the first word that is
    /// not where the others are.
    pub fn test(&mut self, document: &mut SegmentDocument<'_>) -> Result<Verdict> {
        let is_there = match self.reach {
            Some(reach) => self.stand_near(reach, document)?,
            None => self.stand_in_order(document)?,
        };
        Ok(match is_there {
            true if self.is_decisive => Verdict::Matches,
            true => Verdict::MayMatch,
            false => Verdict::Fails,
        })
    }

    fn stand_in_order(&mut self, document: &mut SegmentDocument<'_>) -> Result<bool> {
        let Some(ends) = self.places.first_mut() else { return Ok(true) };
        for (nth, &(term, before_last)) in self.terms.iter().enumerate() {
            let steps = document.steps(term)?;
            if nth == 0 {
                ends.clear();
                ends.extend(placed(steps, before_last));
            } else {
                keep_common(ends, placed(steps, before_last));
            }
            if ends.is_empty() {
                return Ok(false);
            }
        }
        let span = self.span;
        Ok(ends.iter().any(|&end| document.are_in_one_field(end.saturating_sub(span), end)))
    }

    fn stand_near(&mut self, reach: u32, document: &mut SegmentDocument<'_>) -> Result<bool> {
        for (nth, &(term, _)) in self.terms.iter().enumerate() {
            let Some(places) = self.places.get_mut(nth) else { break };
            places.clear();
            places.extend(placed(document.steps(term)?, 0));
            let read = self.places.get(..=nth).unwrap_or_default();
            if !are_near(read, reach, |first, last| document.are_in_one_field(first, last)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The positions of a word, each plus `behind`.
fn placed(steps: &[u32], behind: u32) -> impl Iterator<Item = u32> {
    steps.iter().scan(behind, |at, step| {
        *at = at.wrapping_add(*step);
        Some(*at)
    })
}

/// Keeps the numbers that are also among `others`. Both are ascending.
fn keep_common(kept: &mut Vec<u32>, mut others: impl Iterator<Item = u32>) {
    let mut other = others.next();
    kept.retain(|&number| {
        while let Some(at) = other
            && at < number
        {
            other = others.next();
        }
        other == Some(number)
    });
}

/// Whether there is one position from each list such that all of them are less than `reach` apart and the first and
/// last of them are `together`. Lists are ascending. The least of the current positions advances until that is so.
fn are_near(lists: &[Vec<u32>], reach: u32, together: impl Fn(u32, u32) -> bool) -> bool {
    let mut next = [0; MOST_WINDOW_WORDS];
    loop {
        let (mut least, mut greatest) = ((u32::MAX, 0), 0);
        for (number, (list, next)) in lists.iter().zip(&next).enumerate() {
            let Some(&at) = list.get(*next) else { return false };
            greatest = greatest.max(at);
            least = least.min((at, number));
        }
        let (first, number) = least;
        let is_near = greatest - first < reach;
        if is_near && together(first, greatest) {
            return true;
        }
        let (Some(list), Some(next)) = (lists.get(number), next.get_mut(number)) else {
            return false;
        };
        // Later windows that begin at the same position are longer.
        *next += 1;
        while list.get(*next).is_some_and(|&at| at.saturating_add(reach) <= greatest) {
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by a look at each choice of places.
    fn stand_near(lists: &[Vec<u32>], reach: u32, border: u32, first: u32, last: u32) -> bool {
        let Some((list, others)) = lists.split_first() else {
            return last - first < reach && (last <= border || first > border);
        };
        list.iter().any(|&at| stand_near(others, reach, border, first.min(at), last.max(at)))
    }

    #[test]
    fn words_are_near_if_any_choice_of_their_places_is() {
        let mut state = 11u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        let mut near = 0;
        for _ in 0..4_000 {
            let mut list = |gap: u32| -> Vec<u32> {
                let mut at = 0;
                let places = 0..below(7);
                places
                    .map(|_| {
                        at += 1 + below(gap);
                        at
                    })
                    .collect()
            };
            let lists: Vec<Vec<u32>> = [40, 25, 60, 15].map(&mut list).into();
            let lists = &lists[..2 + below(3) as usize];
            let reach = 1 + below(30);
            let border = below(120);
            let expected = stand_near(lists, reach, border, u32::MAX, 0);
            let found = are_near(lists, reach, |first, last| last <= border || first > border);
            assert_eq!(found, expected, "{lists:?} within {reach}, border {border}");
            near += u32::from(expected);
        }
        assert!((400..3_600).contains(&near), "{near} are near");
    }

    #[test]
    fn places_that_are_common_are_kept() {
        let mut kept = vec![1, 4, 6, 9, 12];
        keep_common(&mut kept, [2, 4, 5, 6, 10, 12, 13].into_iter());
        assert_eq!(kept, [4, 6, 12]);
        keep_common(&mut kept, placed(&[3, 2], 1));
        assert_eq!(kept, [4, 6]);
        keep_common(&mut kept, std::iter::empty());
        assert!(kept.is_empty());
    }
}
