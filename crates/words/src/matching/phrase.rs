//! Phrases: words at the same distances as in the query.

use super::hit::{Hit, others};

/// A partial match: the index of the next word, and its expected place.
struct Begun {
    next: usize,
    at: u32,
}

/// Appends a hit for each place where the words have the distances given by `positions` of the query. `hits`
/// are the hits of all words, ascending. Matches do not overlap: the search continues behind each.
pub(crate) fn find(hits: &[Hit], positions: &[u32], out: &mut Vec<Hit>) {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else { return };
    let span = last - first;
    let others = others(positions);
    let mut begun: Vec<Begun> = Vec::new();
    for hit in hits {
        if hit.query_position == first {
            let at = hit.at + positions.get(1).map_or(0, |second| second - first);
            begun.push(Begun { next: 1, at });
        }
        let mut is_whole = false;
        begun.retain_mut(|state| {
            if state.at < hit.at {
                return false;
            }
            if state.at > hit.at || positions.get(state.next) != Some(&hit.query_position) {
                return true;
            }
            state.next += 1;
            match positions.get(state.next) {
                Some(next) => state.at += next - hit.query_position,
                None => is_whole = true,
            }
            true
        });
        if is_whole {
            begun.clear();
            out.push(Hit {
                at: hit.at - span,
                query_position: first,
                node_position: hit.node_position,
                weight: positions.len() as u32,
                span: span + 1,
                length: span + 1,
                others,
                is_last: false,
            });
        }
    }
}
