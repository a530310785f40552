//! Proximity: words in any order within a window.

use super::quoted::QuotedHits;
use crate::hits::{Hit, others};

/// The sliding window.
struct Window {
    /// The latest place of each word, if it is within the window.
    seen: Vec<Option<u32>>,
    /// The number of words within the window.
    present: usize,
    /// The word with the least place, if known.
    least: Option<usize>,
    /// The place from which the window must be checked again.
    expected: u32,
}

/// Appends a hit for each group of all words whose first and last are less than their distance in the query (by
/// `positions`) plus `distance` apart, but no more than `most`. `hits` are sorted.
pub(crate) fn find(
    hits: &QuotedHits,
    positions: &[u32],
    distance: u32,
    most: usize,
    out: &mut Vec<Hit>,
) {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else { return };
    let reach = last - first + distance;
    let words = hits.positions().iter().map(|position| positions.binary_search(position).ok());
    let words: Vec<Option<usize>> = words.collect();
    let mut window =
        Window { seen: vec![None; positions.len()], present: 0, least: None, expected: 0 };
    let (mut found, mut shifts) = (0, Vec::new());
    for (at, leaf) in hits.iter() {
        let Some(Some(word)) = words.get(leaf) else { continue };
        window.add(*word, at, reach);
        let Some(least) = window.least.filter(|_| window.present == positions.len()) else {
            continue;
        };
        let Some(begin) = window.seen.get_mut(least).and_then(Option::take) else { continue };
        let places = window.seen.iter().map(|place| place.unwrap_or(begin));
        out.push(Hit {
            at: begin,
            query_position: first,
            node_position: 0,
            weight: weight(places, positions, &mut shifts),
            span: at - begin + 1,
            length: at - begin + 1,
            others: others(positions),
            is_last: false,
        });
        found += 1;
        if found >= most {
            return;
        }
        (window.present, window.least, window.expected) = (window.present - 1, None, 0);
    }
}

impl Window {
    #[inline]
    fn add(&mut self, word: usize, at: u32, reach: u32) {
        let Some(place) = self.seen.get_mut(word) else { return };
        self.present += usize::from(place.is_none());
        *place = Some(at);
        if at < self.expected && self.least != Some(word) {
            return;
        }
        let (mut least, mut least_at) = (word, at);
        for (other, place) in self.seen.iter_mut().enumerate() {
            match *place {
                Some(gone) if gone.saturating_add(reach) <= at => {
                    *place = None;
                    self.present -= 1;
                }
                Some(place) if place < least_at => (least, least_at) = (other, place),
                _ => {}
            }
        }
        self.least = Some(least);
        self.expected = least_at.saturating_add(reach);
    }
}

/// The sum of the sizes of groups of two or more words with the same relative positions as in the query; 1 if
/// there are none. `shifts` is space that is used again.
fn weight(places: impl Iterator<Item = u32>, positions: &[u32], shifts: &mut Vec<i64>) -> u32 {
    shifts.clear();
    shifts.extend(places.zip(positions).map(|(at, &position)| i64::from(at) - i64::from(position)));
    shifts.sort_unstable();
    let groups = shifts.chunk_by(|a, b| a == b).map(<[i64]>::len).filter(|&size| size > 1);
    groups.sum::<usize>().max(1) as u32
}
