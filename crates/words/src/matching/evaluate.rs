//! Evaluates the steps of a query on one document.

use super::{
    Document, near, ordered, phrase, proximity,
    quoted::QuotedHits,
    step::{PhraseWords, QuorumWord, Step, TermStep},
    unit,
    zones::{self, DocumentZones, ZoneHit},
};
use crate::{
    Result,
    hits::{Found, Hit, MAX_POSITION, PackedPosition},
};

/// Which details of a match the caller needs.
#[derive(Clone, Copy)]
struct MatchDetail {
    fields: bool,
    hits: bool,
}

/// The constant k1 of BM25, which controls how soon term frequency saturates.
const SATURATION: f32 = 1.2;

/// Evaluates a step on one document: `None` if it does not match. If `hits` are wanted, they are appended in
/// the order of places.
pub(crate) fn evaluate(
    step: &Step,
    document: &mut impl Document,
    with_fields: bool,
    hits: Option<&mut Vec<Hit>>,
) -> Result<Option<Found>> {
    let wanted = MatchDetail { fields: with_fields, hits: hits.is_some() };
    let mut own = Vec::new();
    let out = hits.unwrap_or(&mut own);
    out.clear();
    of_step(step, document, wanted, out)
}

/// Evaluates the step, and appends its hits in order if they are wanted.
fn of_step(
    step: &Step,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    match step {
        Step::Every => Ok(Some(Found { fields: 0, sum: 0.0 })),
        Step::Leaf(leaf) => of_leaf(leaf, document, wanted, out),
        Step::And(parts) => of_and(parts, document, wanted, out),
        Step::Or(parts) => of_or(parts, document, wanted, out),
        Step::Maybe(parts) => of_maybe(parts, document, wanted, out),
        Step::AndNot(wanted_part, unwanted) => {
            let Some(found) = of_step(wanted_part, document, wanted, out)? else { return Ok(None) };
            let nothing = MatchDetail { fields: false, hits: false };
            let is_excluded = of_step(unwanted, document, nothing, &mut Vec::new())?.is_some();
            Ok((!is_excluded).then_some(found))
        }
        Step::Phrase(words) => of_words(words, document, wanted, out, |hits, most, out| {
            phrase::find(hits, &words.positions, most, out);
        }),
        Step::Proximity(words, distance) => {
            of_words(words, document, wanted, out, |hits, most, out| {
                proximity::find(hits, &words.positions, *distance, most, out);
            })
        }
        Step::Quorum(words, least) => of_quorum(words, *least, document, wanted, out),
        Step::Before(parts) => of_before(parts, document, out),
        Step::Unit(parts, mark) => of_unit(parts, mark, document, wanted, out),
        Step::InOneZone(leaves) => of_one_zone(leaves, document, wanted, out),
        Step::NotNear(near, others, distance) => {
            of_not_near(near, others, *distance, document, out)
        }
        Step::Near { parts, order, distance } => of_near(parts, order, *distance, document, out),
        Step::Nothing => Ok(None),
    }
}

fn of_leaf(
    leaf: &TermStep,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let frequency = document.frequency(leaf.term)?;
    if frequency == 0 {
        return Ok(None);
    }
    let sum = saturated(frequency) * leaf.idf;
    if !wanted.fields && !wanted.hits && leaf.is_unlimited() {
        return Ok(Some(Found { fields: 0, sum }));
    }
    let mut fields = 0;
    let found = counted_places(leaf, document, |place, is_counted| {
        // A field that contains the word counts, wherever in it the word is.
        if leaf.limit.fields.contains(place.field()) && (is_counted || !leaf.is_union) {
            fields |= 1u32.checked_shl(u32::from(place.field())).unwrap_or(0);
        }
        if wanted.hits && is_counted {
            out.push(word_hit(leaf, place));
        }
    })?;
    let sum = if leaf.is_union { saturated(found) * leaf.idf } else { sum };
    Ok((found > 0).then_some(Found { fields, sum }))
}

/// The hit of a term at a place.
fn word_hit(leaf: &TermStep, place: PackedPosition) -> Hit {
    Hit {
        at: place.number(),
        query_position: leaf.query_position,
        node_position: 0,
        weight: 1,
        span: 1,
        length: 1,
        others: 0,
        is_last: place.is_last(),
    }
}

/// Calls `each` with the places of a term in the document, and whether each counts; the number of those that do.
#[inline]
fn counted_places(
    leaf: &TermStep,
    document: &mut impl Document,
    mut each: impl FnMut(PackedPosition, bool),
) -> Result<u32> {
    let (mut found, is_unlimited) = (0, leaf.is_unlimited());
    let zones =
        leaf.zones.as_ref().map(|zones| DocumentZones::read(zones, document)).transpose()?;
    let is_in_zone =
        |place: PackedPosition| zones.as_ref().is_none_or(|zones| zones.contain(place.number()));
    document.places(leaf.term, |place| {
        let is_counted = is_unlimited || leaf.counts(place) && is_in_zone(place);
        found += u32::from(is_counted);
        each(place, is_counted);
    })?;
    Ok(found)
}

/// The saturated term frequency of BM25.
pub fn saturated(occurrences: u32) -> f32 {
    let occurrences = occurrences as f32;
    occurrences / (occurrences + SATURATION)
}

/// Sorts the hits from `start` on by place, then by query position; hits equal in both keep their order.
fn merge(out: &mut [Hit], start: usize) {
    out[start..].sort_by_key(Hit::order);
}

fn of_and(
    parts: &[Step],
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let start = out.len();
    let mut all: Option<Found> = None;
    for part in parts {
        let Some(found) = of_step(part, document, wanted, out)? else {
            out.truncate(start);
            return Ok(None);
        };
        all = Some(added(all, found));
    }
    merge(out, start);
    Ok(all)
}

fn of_or(
    parts: &[Step],
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let start = out.len();
    let mut all: Option<Found> = None;
    let mut missed = Vec::new();
    for part in parts {
        match of_step(part, document, wanted, out)? {
            Some(found) => all = Some(added(all, found)),
            None if matches!(part, Step::Quorum(..) | Step::Maybe(_)) => missed.push(part),
            None => {}
        }
    }
    if all.is_some() {
        missed.into_iter().try_for_each(|part| hits_of_missed(part, document, wanted, out))?;
    }
    merge(out, start);
    Ok(all)
}

/// The hits of a quorum with too few words, or of the optional part of a MAYBE. They count if another part
/// matches the document.
fn hits_of_missed(
    step: &Step,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<()> {
    if !wanted.hits {
        return Ok(());
    }
    match step {
        // One that merges words has no hits then.
        Step::Quorum(words, _) if words.iter().all(|word| word.times == 1) => {
            for word in words {
                of_step(&word.step, document, HITS, out)?;
            }
        }
        Step::Maybe(parts) => {
            for part in parts {
                if of_step(part, document, HITS, out)?.is_none() {
                    hits_of_missed(part, document, wanted, out)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn of_maybe(
    parts: &[Step],
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let start = out.len();
    let Some((first, others)) = parts.split_first() else { return Ok(None) };
    let Some(mut all) = of_step(first, document, wanted, out)? else { return Ok(None) };
    for part in others {
        match of_step(part, document, wanted, out)? {
            Some(found) => all = added(Some(all), found),
            None => hits_of_missed(part, document, wanted, out)?,
        }
    }
    merge(out, start);
    Ok(Some(all))
}

fn added(all: Option<Found>, found: Found) -> Found {
    let Some(all) = all else { return found };
    Found { fields: all.fields | found.fields, sum: all.sum + found.sum }
}

const HITS: MatchDetail = MatchDetail { fields: false, hits: true };

/// The match of a quoted expression: the hits that `find` composes, at most so many, and the field of the first.
fn of_words(
    words: &PhraseWords,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
    find: impl Fn(&QuotedHits, usize, &mut Vec<Hit>),
) -> Result<Option<Found>> {
    let (mut hits, mut sum) = (QuotedHits::with_capacity(words.leaves.len()), None);
    for step in &words.leaves {
        let Some(of_word) = read_word(step, document, &mut hits)? else { return Ok(None) };
        sum = Some(sum.map_or(of_word, |sum: f32| sum + of_word));
    }
    // If a word is written twice, the later one comes first, in the order of the leaves.
    hits.sort();
    let Some(sum) = sum else { return Ok(None) };
    let start = out.len();
    find(&hits, if wanted.hits { usize::MAX } else { 1 }, out);
    Ok(of_first(sum, out, start))
}

/// Reads the places of a quoted expression's word; what it adds to the sum, or `None` if the document does not match it.
fn read_word(
    step: &Step,
    document: &mut impl Document,
    hits: &mut QuotedHits,
) -> Result<Option<f32>> {
    if let Step::Leaf(leaf) = step {
        let frequency = document.frequency(leaf.term)?;
        if frequency == 0 {
            return Ok(None);
        }
        hits.next_word(leaf.query_position);
        let found = counted_places(leaf, document, |place, is_counted| {
            if is_counted {
                hits.push(place.number());
            }
        })?;
        let counted = if leaf.is_union { found } else { frequency };
        return Ok((found > 0).then_some(saturated(counted) * leaf.idf));
    }
    // The words that a wildcard stands for.
    let mut of_step_hits = Vec::new();
    let Some(found) = of_step(step, document, HITS, &mut of_step_hits)? else { return Ok(None) };
    let first = of_step_hits.first().map_or(0, |hit| hit.query_position);
    hits.next_word(first);
    of_step_hits.iter().for_each(|hit| hits.push(hit.at));
    Ok(Some(found.sum))
}

/// A match of composed hits: only the field of the first hit counts.
fn of_first(sum: f32, out: &[Hit], start: usize) -> Option<Found> {
    let first = out.get(start)?;
    let fields = 1u32.checked_shl(u32::from(first.field())).unwrap_or(0);
    Some(Found { fields, sum })
}

fn of_quorum(
    words: &[QuorumWord],
    least: u32,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let start = out.len();
    let (mut all, mut count) = (None, 0);
    for word in words {
        let from = out.len();
        let written = word.times;
        let wanted = MatchDetail { hits: wanted.hits || written > 1, ..wanted };
        let Some(found) = of_step(&word.step, document, wanted, out)? else { continue };
        let hits = out.len() - from;
        count += if written > 1 { hits.min(written) } else { 1 } as u32;
        all = Some(added(all, found));
    }
    if count < least {
        out.truncate(start);
        return Ok(None);
    }
    merge(out, start);
    Ok(all)
}

fn of_before(
    parts: &[Step],
    document: &mut impl Document,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    // The sum and the fields come from the first part alone.
    let (mut hits, mut part_hits, mut first) = (Vec::new(), Vec::new(), None);
    for (number, part) in parts.iter().enumerate() {
        part_hits.clear();
        let Some(found) = of_step(part, document, HITS, &mut part_hits)? else { return Ok(None) };
        first = first.or(Some(found));
        hits.extend(part_hits.iter().map(|&hit| (number, hit)));
    }
    hits.sort_by_key(|(part, hit)| (hit.at, *part));
    let start = out.len();
    ordered::find(&hits, parts.len(), out);
    Ok(first.filter(|_| out.len() > start))
}

/// Each part with what the parts before it have found, between marks in the fields that count.
fn of_unit(
    parts: &[Step],
    mark: &TermStep,
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let wanted = MatchDetail { hits: true, ..wanted };
    let (mut all, mut hits) = (None, Vec::new());
    let mut marks = Vec::new();
    for part in parts {
        let mut part_hits = Vec::new();
        let Some(found) = of_step(part, document, wanted, &mut part_hits)? else {
            return Ok(None);
        };
        if all.is_none() {
            hits = part_hits;
            document.places(mark.term, |place| {
                if mark.limit.fields.contains(place.field()) {
                    marks.push(place.number());
                }
            })?;
        } else {
            let mut together = Vec::with_capacity(hits.len() + part_hits.len());
            unit::find((&hits, &part_hits), &marks, &mut together);
            if together.is_empty() {
                return Ok(None);
            }
            hits = together;
        }
        all = Some(added(all, found));
    }
    out.append(&mut hits);
    Ok(all)
}

/// Each term with what the terms before it have found, in the same zone.
fn of_one_zone(
    leaves: &[TermStep],
    document: &mut impl Document,
    wanted: MatchDetail,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let (mut all, mut hits): (_, Vec<ZoneHit>) = (None, Vec::new());
    for leaf in leaves {
        let mut leaf_hits = Vec::new();
        let wanted = MatchDetail { hits: true, ..wanted };
        let Some(found) = of_leaf(leaf, document, wanted, &mut leaf_hits)? else {
            return Ok(None);
        };
        let in_zones = DocumentZones::read(leaf.zones.as_deref().unwrap_or(&[]), document)?;
        let leaf_hits = leaf_hits.into_iter().map(|hit| ZoneHit::new(hit, &in_zones));
        hits = match all {
            None => leaf_hits.collect(),
            Some(_) => zones::together(hits, leaf_hits.collect()),
        };
        if hits.is_empty() {
            return Ok(None);
        }
        all = Some(added(all, found));
    }
    out.extend(hits.into_iter().map(|it| it.hit));
    Ok(all)
}

fn of_near(
    parts: &[Step],
    order: &[usize],
    distance: u32,
    document: &mut impl Document,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let (mut hits, mut sum) = (Vec::new(), None);
    for &part in order {
        let from = hits.len();
        let Some(found) = of_step(&parts[part], document, HITS, &mut hits)? else {
            return Ok(None);
        };
        hits[from..].iter_mut().for_each(|hit| hit.node_position = part as u32);
        sum = Some(sum.map_or(found.sum, |sum: f32| sum + found.sum));
    }
    // At one place, hits of the part that is evaluated first come first.
    hits.sort_by_key(|hit| hit.at);
    let start = out.len();
    near::find(&hits, parts.len(), distance, out);
    Ok(sum.and_then(|sum| of_first(sum, out, start)))
}

/// The hits of the first operand that are farther than `distance` from all hits of the others.
fn of_not_near(
    wanted: &Step,
    others: &[Step],
    distance: u32,
    document: &mut impl Document,
    out: &mut Vec<Hit>,
) -> Result<Option<Found>> {
    let start = out.len();
    let Some(found) = of_step(wanted, document, HITS, out)? else {
        out.truncate(start);
        return Ok(None);
    };
    let mut near = Vec::new();
    for other in others {
        let from = near.len();
        if of_step(other, document, HITS, &mut near)?.is_none() {
            near.truncate(from);
        }
    }
    // What is in another field is always farther.
    let distance = distance.min(MAX_POSITION);
    let end = |hit: &Hit| hit.at + hit.length.saturating_sub(1);
    near.sort_unstable_by_key(|hit| hit.at);
    // Of the hits that begin at or before a place, the one that ends last.
    let mut ends: Vec<u32> = near.iter().map(end).collect();
    for place in 1..ends.len() {
        ends[place] = ends[place].max(ends[place - 1]);
    }
    let is_near = |hit: &Hit| {
        let reach = |at: u32| at.saturating_add(distance);
        let behind = near.partition_point(|other| other.at <= reach(end(hit)));
        // Those that begin in reach, or before, and end in reach or behind.
        behind.checked_sub(1).is_some_and(|last| reach(ends[last]) >= hit.at)
    };
    let mut kept = start;
    for place in start..out.len() {
        if !is_near(&out[place]) {
            out.swap(kept, place);
            kept += 1;
        }
    }
    out.truncate(kept);
    let field = |hit: &Hit| 1u32.checked_shl(u32::from(hit.field())).unwrap_or(0);
    let fields = out[start..].iter().fold(0, |fields, hit| fields | field(hit));
    Ok((out.len() > start).then_some(Found { fields, sum: found.sum }))
}
