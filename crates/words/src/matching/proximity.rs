//! Proximity: words in any order within a window.

use super::hit::{Hit, others};

/// The sliding window.
struct Window {
    /// The latest place of each word, if it is within the window.
    seen: Vec<Option<u32>>,
    /// The word with the least place, if known.
    least: Option<usize>,
    /// The place from which the window must be checked again.
    expected: u32,
}

/// Appends a hit for each group of all words whose first and last are less than their distance in the query (by
/// `positions`) plus `distance` apart. `hits` are the hits of all words, ascending.
pub(crate) fn find(hits: &[Hit], positions: &[u32], distance: u32, out: &mut Vec<Hit>) {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else { return };
    let reach = last - first + distance;
    let others = others(positions);
    let mut window = Window { seen: vec![None; positions.len()], least: None, expected: 0 };
    for hit in hits {
        let Ok(word) = positions.binary_search(&hit.query_position) else { continue };
        window.add(word, hit.at, reach);
        let places: Vec<u32> = window.seen.iter().copied().flatten().collect();
        let Some(least) = window.least.filter(|_| places.len() == positions.len()) else {
            continue;
        };
        out.push(Hit {
            at: places[least],
            query_position: first,
            node_position: hit.node_position,
            weight: weight(&places, positions, first),
            span: hit.at - places[least] + 1,
            length: hit.at - places[least] + 1,
            others,
            is_last: false,
        });
        window.seen[least] = None;
        (window.least, window.expected) = (None, 0);
    }
}

impl Window {
    fn add(&mut self, word: usize, at: u32, reach: u32) {
        self.seen[word] = Some(at);
        if at < self.expected && self.least != Some(word) {
            return;
        }
        let (mut least, mut least_at) = (word, at);
        for (other, place) in self.seen.iter_mut().enumerate() {
            if place.is_some_and(|place| place.saturating_add(reach) <= at) {
                *place = None;
            }
            if let Some(place) = *place
                && place < least_at
            {
                (least, least_at) = (other, place);
            }
        }
        self.least = Some(least);
        self.expected = least_at.saturating_add(reach);
    }
}

/// The sum of the sizes of groups of two or more words with the same relative positions as in the query; 1 if
/// there are none.
fn weight(places: &[u32], positions: &[u32], first: u32) -> u32 {
    let shifts = places.iter().zip(positions);
    let mut shifts: Vec<i64> =
        shifts.map(|(&at, &position)| i64::from(at) - i64::from(position - first)).collect();
    shifts.sort_unstable();
    let groups = shifts.chunk_by(|a, b| a == b).map(<[i64]>::len).filter(|&size| size > 1);
    groups.sum::<usize>().max(1) as u32
}
