//! `_score`: BM25 with the statistics of the whole table.
//!
//! ```text
//! score(row) = Σ idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / average length))
//! idf(t)     = ln((N − df + 0.5) / (df + 0.5) + 1)
//! ```
//! The sum is over the distinct terms of the expression that stand under an even number of NOTs,
//! in the order of the query. `tf` is the number of places where the term begins, overlapping ones
//! included, and `length` the row's length in code points, both over all text indexes. `N`, the
//! average and `df` (rows that hold the term) are of the live rows of the table. Nothing depends
//! on how rows lie in segments, so that scores are the same to the last bit for any number of
//! them. A term of a FUZZY search counts as one occurrence.

use remora_index::{DocSet, text::TextIndex};

use super::{
    docs::Docs,
    expression::{Expression, Matcher, Term},
    matching::{matching_term, occurrences},
    texts::for_each_row,
};
use crate::{
    QueryReport, Result,
    snapshot::{SegmentView, TableView},
};

/// The scores of the live selected documents of one segment.
pub(super) struct SegmentScores {
    docs: Vec<u32>,
    scores: Vec<f64>,
}

impl SegmentScores {
    /// The score of a document; 0 for one that is not selected.
    pub fn get(&self, doc: u32) -> f64 {
        let at = self.docs.binary_search(&doc);
        at.ok().and_then(|at| self.scores.get(at)).copied().unwrap_or(0.0)
    }

    /// The live selected documents, ascending, with their scores.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.docs.iter().copied().zip(self.scores.iter().copied())
    }

    fn unscored(view: &SegmentView, docs: &Docs) -> Self {
        let mut live = Vec::with_capacity(docs.count_live(view) as usize);
        docs.for_each_live(view, |doc| live.push(doc));
        let scores = vec![0.0; live.len()];
        Self { docs: live, scores }
    }

    /// Adds one term's part to each document that holds it.
    fn add(
        &mut self,
        frequencies: &[(u32, u32)],
        indexes: &[&TextIndex],
        norm: &Norm,
        weight: f64,
    ) {
        let mut rest = frequencies;
        for (&doc, score) in self.docs.iter().zip(&mut self.scores) {
            while let [(other, occurrences), behind @ ..] = rest {
                if *other > doc {
                    break;
                }
                rest = behind;
                if *other == doc {
                    let occurrences = f64::from(*occurrences);
                    *score += weight * occurrences / (occurrences + norm.of(indexes, doc));
                    break;
                }
            }
        }
    }
}

/// How often a term occurs in documents of one segment, ascending by document.
type Frequencies = Vec<(u32, u32)>;

/// The scores of the selected documents of each segment. `bm25` is (k1, b).
pub(super) fn scores(
    view: &TableView,
    expression: Option<&Expression>,
    selected: &[Docs],
    bm25: (f64, f64),
    report: &mut QueryReport,
) -> Result<Vec<SegmentScores>> {
    let segments = view.segments.iter().zip(selected);
    let mut scores: Vec<SegmentScores> =
        segments.map(|(segment, docs)| SegmentScores::unscored(segment, docs)).collect();
    let Some(expression) = expression else { return Ok(scores) };
    let norm = Norm::new(view, bm25);
    let positive = |&term: &usize| expression.terms[term].positive;
    for term in (0..expression.terms.len()).filter(positive) {
        let frequencies: Vec<Frequencies> = view
            .segments
            .iter()
            .map(|segment| frequencies(view, segment, expression, term, report))
            .collect::<Result<_>>()?;
        let weight = idf(view, &frequencies) * (bm25.0 + 1.0);
        for ((segment, scores), frequencies) in
            view.segments.iter().zip(&mut scores).zip(&frequencies)
        {
            scores.add(frequencies, &indexes(view, segment), &norm, weight);
        }
    }
    Ok(scores)
}

/// `k1 · (1 − b + b · length / average length)` of a document.
struct Norm {
    base: f64,
    per_character: f64,
}

impl Norm {
    fn new(view: &TableView, (k1, b): (f64, f64)) -> Self {
        let total: u64 = view.segments.iter().flat_map(|segment| segment.live_lengths.iter()).sum();
        let average = total as f64 / view.live_count().max(1) as f64;
        Self { base: k1 * (1.0 - b), per_character: k1 * b / average.max(f64::MIN_POSITIVE) }
    }

    #[inline]
    fn of(&self, indexes: &[&TextIndex], doc: u32) -> f64 {
        let length: u64 = indexes.iter().map(|index| u64::from(index.length(doc))).sum();
        self.base + self.per_character * length as f64
    }
}

/// The text indexes that a segment has.
fn indexes<'v>(view: &TableView, segment: &'v SegmentView) -> Vec<&'v TextIndex> {
    view.schema.texts.iter().filter_map(|text| segment.segment.text(text.id)).collect()
}

fn idf(view: &TableView, frequencies: &[Frequencies]) -> f64 {
    let live = view.segments.iter().zip(frequencies);
    let live = live.map(|(segment, frequencies)| match &segment.deleted {
        None => frequencies.len() as u64,
        Some(deleted) => {
            frequencies.iter().filter(|(doc, _)| !deleted.contains(*doc)).count() as u64
        }
    });
    let holding = live.sum::<u64>() as f64;
    let rows = view.live_count() as f64;
    ((rows - holding + 0.5) / (holding + 0.5)).ln_1p()
}

/// How often a term occurs in each document; deleted ones may be among them.
fn frequencies(
    view: &TableView,
    segment: &SegmentView,
    expression: &Expression,
    term: usize,
    report: &mut QueryReport,
) -> Result<Frequencies> {
    let definition: &Term = &expression.terms[term];
    let mut counted = Vec::new();
    let mut doubtful = false;
    let mut indexes = 0;
    for (text, matcher) in view.schema.texts.iter().zip(&definition.matchers) {
        match (segment.segment.text(text.id), matcher) {
            (Some(index), Some(Matcher::Exact(pattern))) => {
                doubtful |=
                    index.occurrences(pattern, &mut |doc, times| counted.push((doc, times)))?;
                indexes += 1;
            }
            (Some(_), Some(Matcher::Fuzzy(_))) => {
                let docs = matching_term(view, segment, expression, term, report)?;
                return Ok(docs.iter().map(|doc| (doc, 1)).collect());
            }
            _ => {}
        }
    }
    if doubtful {
        let docs = matching_term(view, segment, expression, term, report)?;
        return read_frequencies(view, segment, definition, &docs, report);
    }
    if indexes > 1 {
        sum_by_document(&mut counted);
    }
    Ok(counted)
}

/// Counts occurrences in the texts themselves.
fn read_frequencies(
    view: &TableView,
    segment: &SegmentView,
    term: &Term,
    docs: &DocSet,
    report: &mut QueryReport,
) -> Result<Frequencies> {
    let mut counted = Vec::new();
    report.texts_read += u64::from(docs.count());
    for_each_row(view, segment, docs, |doc, row| {
        counted.push((doc, occurrences(&view.schema, &term.matchers, row)));
    })?;
    Ok(counted)
}

fn sum_by_document(counted: &mut Frequencies) {
    counted.sort_by_key(|&(doc, _)| doc);
    counted.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
}
