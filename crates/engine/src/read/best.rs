//! Which rows can be among the best by score, before any is scored in full.
//!
//! The idea of MaxScore (Turtle and Flood, 1995), a term at a time: terms are taken by weight,
//! which is also more than a term can add to any score. Once what is left can add less than the
//! score that enough rows have already, a row that has none of the terms so far is out, and of
//! the others each that is too far behind. The frequent terms, which are light and dear to read,
//! are then read for few rows.

use remora_index::DocSet;

use super::{
    occurrences::{Asked, Frequencies},
    score::{SegmentNorms, Weighted, part},
};
use crate::{QueryReport, Result};

/// So few rows are scored at once; fewer in tests, whose tables are small.
const FEW_ROWS: u64 = if cfg!(test) { 3 } else { 2048 };
/// Sums here are in another order than those of the scores; more than they can differ by.
const SLACK: f64 = 1e-9;

/// What is known of a document's score.
struct Partial {
    doc: u32,
    norm: f64,
    sum: f64,
}

/// Of `docs` (the live selected documents of each segment) at least those whose rows are among
/// the `wanted` best or tie with the last of them.
pub(super) fn candidates(
    asked: &mut Asked<'_>,
    docs: Vec<DocSet>,
    terms: &[Weighted],
    norms: &[SegmentNorms<'_>],
    wanted: usize,
    report: &mut QueryReport,
) -> Result<Vec<DocSet>> {
    let rows: u64 = docs.iter().map(|docs| u64::from(docs.count())).sum();
    if terms.len() < 2 || wanted == 0 || rows <= FEW_ROWS.max(wanted as u64 * 2) {
        return Ok(docs);
    }
    let mut by_weight = terms.to_vec();
    by_weight.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.term.cmp(&b.term)));
    let mut race = Race { docs, norms, wanted, partials: Vec::new(), open: true };
    race.partials.resize_with(norms.len(), Vec::new);
    for (place, &weighted) in by_weight.iter().enumerate() {
        for at in 0..norms.len() {
            race.take(asked, at, weighted, report)?;
        }
        race.drop_losers(by_weight[place + 1..].iter().map(|rest| rest.weight).sum());
    }
    Ok(race.finish())
}

struct Race<'a> {
    docs: Vec<DocSet>,
    norms: &'a [SegmentNorms<'a>],
    wanted: usize,
    /// For each segment the documents with a sum, ascending.
    partials: Vec<Vec<Partial>>,
    /// Whether documents without a sum can still be among the best.
    open: bool,
}

impl Race<'_> {
    /// Adds what a term gives the documents of a segment.
    fn take(
        &mut self,
        asked: &mut Asked<'_>,
        at: usize,
        Weighted { term, weight }: Weighted,
        report: &mut QueryReport,
    ) -> Result<()> {
        let norms = &self.norms[at];
        let partials = &mut self.partials[at];
        if self.open {
            let found = asked.frequencies(term, at, &self.docs[at], report)?;
            let selected = restricted(&found, &self.docs[at]);
            *partials = united(std::mem::take(partials), &selected, norms, weight);
            asked.occurrences.note_frequencies(term, at, selected);
            return Ok(());
        }
        let among = DocSet::List(partials.iter().map(|partial| partial.doc).collect());
        let found = asked.frequencies(term, at, &among, report)?;
        let mut rest = found.as_slice();
        for partial in partials {
            rest = &rest[rest.partition_point(|&(doc, _)| doc < partial.doc)..];
            if let Some(&(_, occurrences)) = rest.first().filter(|first| first.0 == partial.doc) {
                partial.sum += part(weight, occurrences, partial.norm);
            }
        }
        Ok(())
    }

    /// `rest` is more than the terms that were not taken can add.
    fn drop_losers(&mut self, rest: f64) {
        let Some(threshold) = self.threshold() else { return };
        self.open &= rest >= threshold;
        if !self.open {
            let stays = |partial: &Partial| partial.sum + rest >= threshold;
            self.partials.iter_mut().for_each(|partials| partials.retain(stays));
        }
    }

    /// What the last of the best has for certain; `None` while fewer rows have anything.
    fn threshold(&self) -> Option<f64> {
        let mut sums: Vec<f64> = self.partials.iter().flatten().map(|one| one.sum).collect();
        let last = self.wanted - 1;
        if last >= sums.len() {
            return None;
        }
        let (_, last, _) = sums.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
        Some(*last * (1.0 - SLACK))
    }

    fn finish(self) -> Vec<DocSet> {
        if self.open {
            return self.docs;
        }
        let docs = |partials: Vec<Partial>| partials.iter().map(|partial| partial.doc).collect();
        self.partials.into_iter().map(|partials| DocSet::List(docs(partials))).collect()
    }
}

/// The frequencies of the documents of a set.
fn restricted(frequencies: &[(u32, u32)], docs: &DocSet) -> Frequencies {
    match docs {
        DocSet::Bits(bits) => {
            frequencies.iter().filter(|(doc, _)| bits.contains(*doc)).copied().collect()
        }
        DocSet::List(list) => super::occurrences::common(frequencies, list),
    }
}

/// Adds what a term gives to the sums; both ascend by document.
fn united(
    partials: Vec<Partial>,
    frequencies: &[(u32, u32)],
    norms: &SegmentNorms<'_>,
    weight: f64,
) -> Vec<Partial> {
    let mut all = Vec::with_capacity(partials.len() + frequencies.len());
    let mut before = partials.into_iter().peekable();
    for &(doc, occurrences) in frequencies {
        while let Some(partial) = before.next_if(|partial| partial.doc < doc) {
            all.push(partial);
        }
        let same = before.next_if(|partial| partial.doc == doc);
        let mut partial = same.unwrap_or_else(|| Partial { doc, norm: norms.of(doc), sum: 0.0 });
        partial.sum += part(weight, occurrences, partial.norm);
        all.push(partial);
    }
    all.extend(before);
    all
}
