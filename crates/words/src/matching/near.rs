//! NEAR: operands that follow each other within a distance.
//!
//! The rules are the observed behaviour of Sphinx 2.2.11. Two operands are matched differently from more: with
//! two, the second hit of a pair begins the next pair in the role of the first.

use crate::hits::{Hit, others};

/// Appends a hit for each chain of hits of all `parts` in which each begins at most `distance` positions behind
/// the last position of the one before. `hits` are the hits of all operands, ascending, with the operand in
/// `node_position`.
pub(crate) fn find(hits: &[Hit], parts: usize, distance: u32, out: &mut Vec<Hit>) {
    if parts == 2 { pairs(hits, distance, out) } else { chains(hits, parts, distance, out) }
}

/// Whether a hit is so far behind another that it begins a new chain.
fn is_far(last: &Hit, hit: &Hit, distance: u32) -> bool {
    let end = last.at.saturating_add(last.length.saturating_sub(1));
    end.saturating_add(distance) < hit.at
}

fn pairs(hits: &[Hit], distance: u32, out: &mut Vec<Hit>) {
    let mut first: Option<Hit> = None;
    for &hit in hits {
        let Some(before) = &mut first else {
            first = Some(hit);
            continue;
        };
        if before.at == hit.at {
            // Of two hits at one place, that of the operand written first counts.
            if hit.node_position < before.node_position {
                before.node_position = hit.node_position;
                before.query_position = hit.query_position;
            }
        } else if is_far(before, &hit, distance) || hit.node_position == before.node_position {
            *before = hit;
        } else {
            out.push(joined(&[*before, hit]));
            *before = Hit { node_position: before.node_position, ..hit };
        }
    }
}

fn chains(hits: &[Hit], parts: usize, distance: u32, out: &mut Vec<Hit>) {
    let mut chain: Vec<Hit> = Vec::with_capacity(parts);
    for &hit in hits {
        let Some(&last) = chain.last() else {
            chain.push(hit);
            continue;
        };
        if last.at == hit.at {
            prefer_at_one_place(&mut chain, hit);
            continue;
        }
        if is_far(&last, &hit, distance) {
            chain.clear();
            chain.push(hit);
            continue;
        }
        extend(&mut chain, hit);
        if chain.len() == parts {
            out.push(joined(&chain));
            chain.clear();
        }
    }
}

/// Of two hits at one place, that of the operand written first stays in the chain, unless the chain already has
/// a hit of it.
fn prefer_at_one_place(chain: &mut [Hit], hit: Hit) {
    let Some((last, before)) = chain.split_last_mut() else { return };
    let is_new = before.iter().all(|other| other.node_position != hit.node_position);
    if hit.node_position < last.node_position && is_new {
        last.node_position = hit.node_position;
        last.query_position = hit.query_position;
    }
}

/// Adds a hit to the chain; removes an earlier hit of the same operand and everything before it.
fn extend(chain: &mut Vec<Hit>, hit: Hit) {
    let same = chain.iter().position(|other| other.node_position == hit.node_position);
    match same {
        Some(place) if place + 1 == chain.len() => chain.truncate(place),
        Some(place) => drop(chain.drain(..=place)),
        None => {}
    }
    chain.push(hit);
}

/// The hit of a whole chain.
fn joined(chain: &[Hit]) -> Hit {
    let (first, last) = (chain[0], chain[chain.len() - 1]);
    let mut positions: Vec<u32> = chain.iter().map(|hit| hit.query_position).collect();
    positions.sort_unstable();
    Hit {
        at: first.at,
        query_position: positions.first().copied().unwrap_or(0),
        node_position: first.node_position,
        weight: chain.iter().map(|hit| hit.weight).sum(),
        span: chain.len() as u32,
        length: last.at - first.at + last.length,
        others: others(&positions),
        is_last: false,
    }
}
