//! Top k by BM25 score: which rows can be among the best, before any is scored in full.
//!
//! The idea is MaxScore (Turtle and Flood, 1995), a term at a time. Terms are taken by weight, which is also the most
//! that a term can add to a score. The threshold is the score that k rows already have. Once the remaining terms can
//! add less than the threshold, a row with none of the terms so far is out, and so is every row too far below it. The
//! same bound keeps most documents of a frequent term from being recorded: it limits the length of a document that can
//! win with so many occurrences. The frequent terms, which have low weight and are expensive to read, are then read for
//! few rows.

use std::{cmp::Reverse, collections::BinaryHeap};

use remora_index::DocSet;

use super::{
    bm25::{SegmentNorms, Weighted, part},
    occurrences::{common, from_doc},
    term_frequencies::TermFrequencies,
};
use crate::{QueryReport, Result};

/// If no more rows than this are left, they are scored without further pruning; fewer in tests, whose tables are small.
const FEW_ROWS: u64 = if cfg!(test) { 3 } else { 2048 };
/// A tolerance: sums here are computed in another order than the scores, and may differ by less than this.
const SLACK: f64 = 1e-9;

/// The partial score of a document.
struct Partial {
    doc: u32,
    norm: f64,
    sum: f64,
}

/// Reduces `docs` (the live selected documents of each segment) to candidates of the top k: at least the rows that
/// are among the best `wanted`, or tie with the last of them.
pub(super) fn candidates(
    asked: &mut TermFrequencies<'_>,
    docs: Vec<DocSet>,
    terms: &[Weighted],
    norms: &[SegmentNorms<'_>],
    wanted: usize,
    report: &mut QueryReport,
) -> Result<Vec<DocSet>> {
    let rows: u64 = docs.iter().map(|docs| u64::from(docs.count())).sum();
    if terms.is_empty() || wanted == 0 || rows <= FEW_ROWS.max(wanted as u64 * 2) {
        return Ok(docs);
    }
    let mut by_weight = terms.to_vec();
    by_weight.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.term.cmp(&b.term)));
    let mut race =
        MaxScorePruning { docs, norms, wanted, partials: Vec::new(), open: true, threshold: 0.0 };
    race.partials.resize_with(norms.len(), Vec::new);
    for (place, &weighted) in by_weight.iter().enumerate() {
        let rest = by_weight[place + 1..].iter().map(|rest| rest.weight).sum();
        let mut bar = ScoreThreshold::new(weighted.weight, rest, wanted, race.threshold);
        for at in 0..norms.len() {
            race.take(asked, at, weighted, &mut bar, report)?;
        }
        race.drop_losers(rest);
    }
    Ok(race.finish())
}

/// The threshold that a document must reach to be a candidate, while one term is processed.
struct ScoreThreshold {
    weight: f64,
    /// An upper bound of what the remaining terms can add.
    rest: f64,
    /// The threshold: a score that enough documents have already.
    threshold: f64,
    /// A document with only this term is a candidate only if its norm is at most this times its occurrences:
    /// `part(weight, occurrences, norm) + rest >= threshold`, solved for the norm.
    norm_share: f64,
    /// The highest partial scores, as bits, whose order is that of positive numbers.
    highest: BinaryHeap<Reverse<u64>>,
    wanted: usize,
}

impl ScoreThreshold {
    fn new(weight: f64, rest: f64, wanted: usize, threshold: f64) -> Self {
        let highest = BinaryHeap::new();
        let mut bar = Self { weight, rest, threshold, norm_share: 0.0, highest, wanted };
        bar.raise(threshold);
        bar
    }

    fn raise(&mut self, threshold: f64) {
        self.threshold = threshold;
        let needed = threshold - self.rest;
        self.norm_share = if needed > 0.0 { self.weight / needed - 1.0 } else { f64::INFINITY };
    }

    #[inline]
    fn may_win(&self, occurrences: u32, norm: f64) -> bool {
        norm <= f64::from(occurrences) * self.norm_share
    }

    /// Records the partial score of a document; to be called once for each.
    fn note(&mut self, sum: f64) {
        if self.highest.len() < self.wanted {
            self.highest.push(Reverse(sum.to_bits()));
        } else if let Some(mut lowest) = self.highest.peek_mut() {
            if sum.to_bits() <= lowest.0 {
                return;
            }
            *lowest = Reverse(sum.to_bits());
        }
        if self.highest.len() == self.wanted
            && let Some(Reverse(lowest)) = self.highest.peek()
        {
            let certain = f64::from_bits(*lowest) * (1.0 - SLACK);
            if certain > self.threshold {
                self.raise(certain);
            }
        }
    }
}

struct MaxScorePruning<'a> {
    docs: Vec<DocSet>,
    norms: &'a [SegmentNorms<'a>],
    wanted: usize,
    /// For each segment the documents with a partial score, ascending.
    partials: Vec<Vec<Partial>>,
    /// Whether documents without a partial score can still be among the best.
    open: bool,
    /// The threshold: what the last of the top k has for certain; 0 while there are fewer than k rows.
    threshold: f64,
}

impl MaxScorePruning<'_> {
    /// Adds a term's contribution to the documents of a segment.
    fn take(
        &mut self,
        asked: &mut TermFrequencies<'_>,
        at: usize,
        Weighted { term, weight }: Weighted,
        bar: &mut ScoreThreshold,
        report: &mut QueryReport,
    ) -> Result<()> {
        let norms = &self.norms[at];
        let partials = &mut self.partials[at];
        if self.open {
            let docs = &self.docs[at];
            let mut found = asked.frequencies(term, at, docs, report)?;
            if let DocSet::List(list) = docs {
                found = common(&found, list);
            }
            *partials = united(std::mem::take(partials), &found, docs, norms, bar);
            asked.occurrences.note_frequencies(term, at, found);
            return Ok(());
        }
        let among = DocSet::List(partials.iter().map(|partial| partial.doc).collect());
        let found = asked.frequencies(term, at, &among, report)?;
        let mut rest = found.as_slice();
        for partial in partials {
            rest = from_doc(rest, partial.doc);
            if let Some(&(_, occurrences)) = rest.first().filter(|first| first.0 == partial.doc) {
                partial.sum += part(weight, occurrences, partial.norm);
            }
        }
        Ok(())
    }

    /// Drops the documents that cannot reach the threshold. `rest` is an upper bound of what the remaining terms
    /// can add.
    fn drop_losers(&mut self, rest: f64) {
        let Some(threshold) = self.last_of_best() else { return };
        self.threshold = threshold;
        self.open &= rest >= threshold;
        let stays = |partial: &Partial| partial.sum + rest >= threshold;
        self.partials.iter_mut().for_each(|partials| partials.retain(stays));
    }

    fn last_of_best(&self) -> Option<f64> {
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

/// Merges a term's contributions into the partial scores, and adds the documents of `docs` that the term makes
/// candidates. All are ascending by document.
fn united(
    partials: Vec<Partial>,
    frequencies: &[(u32, u32)],
    docs: &DocSet,
    norms: &SegmentNorms<'_>,
    bar: &mut ScoreThreshold,
) -> Vec<Partial> {
    let mut all = Vec::with_capacity(partials.len());
    let mut before = partials.into_iter().peekable();
    for &(doc, occurrences) in frequencies {
        while let Some(partial) = before.next_if(|partial| partial.doc < doc) {
            bar.note(partial.sum);
            all.push(partial);
        }
        let partial = before.next_if(|partial| partial.doc == doc).or_else(|| {
            let norm = norms.of(doc);
            let wins = bar.may_win(occurrences, norm) && docs.contains(doc);
            wins.then_some(Partial { doc, norm, sum: 0.0 })
        });
        if let Some(mut partial) = partial {
            partial.sum += part(bar.weight, occurrences, partial.norm);
            bar.note(partial.sum);
            all.push(partial);
        }
    }
    all.extend(before);
    all
}
