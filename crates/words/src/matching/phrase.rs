//! Phrases: words at the same distances as in the query.

use super::quoted::QuotedHits;
use crate::hits::{Hit, others};

/// A partial match: the index of the next word, and its expected place.
struct Begun {
    next: usize,
    at: u32,
}

/// Appends a hit for each place where the words have the distances given by `positions` of the query, but no
/// more than `most`. `hits` are sorted. Matches do not overlap: the search continues behind each.
pub(crate) fn find(hits: &QuotedHits, positions: &[u32], most: usize, out: &mut Vec<Hit>) {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else { return };
    let span = last - first;
    let (others, mut found) = (others(positions), 0);
    let mut begun: Vec<Begun> = Vec::new();
    for (place, leaf) in hits.iter() {
        let Some(&query_position) = hits.positions().get(leaf) else { continue };
        if query_position == first {
            let at = place + positions.get(1).map_or(0, |second| second - first);
            begun.push(Begun { next: 1, at });
        }
        let mut is_whole = false;
        begun.retain_mut(|state| {
            if state.at < place {
                return false;
            }
            if state.at > place || positions.get(state.next) != Some(&query_position) {
                return true;
            }
            state.next += 1;
            match positions.get(state.next) {
                Some(next) => state.at += next - query_position,
                None => is_whole = true,
            }
            true
        });
        if is_whole {
            begun.clear();
            out.push(Hit {
                at: place - span,
                query_position: first,
                node_position: 0,
                weight: positions.len() as u32,
                span: span + 1,
                length: span + 1,
                others,
                is_last: false,
            });
            found += 1;
            if found >= most {
                return;
            }
        }
    }
}
