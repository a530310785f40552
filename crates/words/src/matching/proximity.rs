//! Proximity: words in any order within a window.

use super::hit::{Hit, others};

/// The words of a window, while it is followed.
struct Window {
    /// The latest place of each word, while it is near enough.
    seen: Vec<Option<u32>>,
    /// The word whose place is the least, as far as that is known.
    least: Option<usize>,
    /// From there on places are to be looked at again.
    expected: u32,
}

/// Appends a hit for each group of all words at `positions` of the query of which the first and the last are less than
/// the query's own distance plus `distance` apart. `hits` are those of all words, ascending.
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

/// The sizes of the groups of two and more words that stand to each other as in the query; 1 if there are none.
fn weight(places: &[u32], positions: &[u32], first: u32) -> u32 {
    let shifts = places.iter().zip(positions);
    let mut shifts: Vec<i64> =
        shifts.map(|(&at, &position)| i64::from(at) - i64::from(position - first)).collect();
    shifts.sort_unstable();
    let groups = shifts.chunk_by(|a, b| a == b).map(<[i64]>::len).filter(|&size| size > 1);
    groups.sum::<usize>().max(1) as u32
}
