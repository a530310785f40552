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
//!
//! Where only the best rows are asked for, [`super::best`] finds out first which can be among
//! them; what is left is scored in full, so that no score depends on that.

use remora_index::{DocSet, text::TextIndex};

use super::{
    best,
    docs::Docs,
    expression::Expression,
    occurrences::{Asked, Occurrences},
};
use crate::{
    QueryReport, Result,
    snapshot::{SegmentView, TableView},
};

/// The scores of live selected documents of one segment.
pub(super) struct SegmentScores {
    docs: Vec<u32>,
    scores: Vec<f64>,
}

impl SegmentScores {
    /// The score of a document; 0 for one that was not scored.
    pub fn get(&self, doc: u32) -> f64 {
        let at = self.docs.binary_search(&doc);
        at.ok().and_then(|at| self.scores.get(at)).copied().unwrap_or(0.0)
    }

    /// The scored documents, ascending, with their scores.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.docs.iter().copied().zip(self.scores.iter().copied())
    }

    fn unscored(docs: &DocSet) -> Self {
        let docs: Vec<u32> = match docs {
            DocSet::List(docs) => docs.clone(),
            DocSet::Bits(bits) => bits.iter().collect(),
        };
        let scores = vec![0.0; docs.len()];
        Self { docs, scores }
    }

    /// Adds one term's part to each document that holds it.
    fn add(&mut self, frequencies: &[(u32, u32)], norms: &SegmentNorms<'_>, weight: f64) {
        let mut rest = frequencies;
        for (&doc, score) in self.docs.iter().zip(&mut self.scores) {
            while let [(other, occurrences), behind @ ..] = rest {
                if *other > doc {
                    break;
                }
                rest = behind;
                if *other == doc {
                    *score += part(weight, *occurrences, norms.of(doc));
                    break;
                }
            }
        }
    }
}

/// What a term of this weight adds to a document's score.
#[inline]
pub(super) fn part(weight: f64, occurrences: u32, norm: f64) -> f64 {
    let occurrences = f64::from(occurrences);
    weight * occurrences / (occurrences + norm)
}

/// A term that is scored.
#[derive(Clone, Copy)]
pub(super) struct Weighted {
    /// Its number in the expression.
    pub term: usize,
    /// `idf · (k1 + 1)`: more than it can add to any score.
    pub weight: f64,
}

/// What to score by.
pub(super) struct Scoring<'v> {
    /// The table.
    pub view: &'v TableView,
    /// The text condition.
    pub expression: Option<&'v Expression>,
    /// BM25's (k1, b).
    pub bm25: (f64, f64),
    /// If only the rows with the highest scores are asked for: how many.
    pub best: Option<usize>,
}

impl Scoring<'_> {
    /// The scores of the live selected documents of each segment, or at least of those whose rows
    /// are among the best or tie with the last of them.
    pub fn scores(
        &self,
        selected: &[Docs],
        occurrences: Occurrences,
        report: &mut QueryReport,
    ) -> Result<Vec<SegmentScores>> {
        let view = self.view;
        let segments = view.segments.iter().zip(selected);
        let mut docs: Vec<DocSet> = segments.map(|(segment, docs)| live(segment, docs)).collect();
        let Some(expression) = self.expression else {
            return Ok(docs.iter().map(SegmentScores::unscored).collect());
        };
        let mut asked = Asked { view, expression, occurrences };
        let terms = self.weighted(&mut asked, report)?;
        let norm = Norm::new(view, self.bm25);
        let norms: Vec<SegmentNorms<'_>> =
            view.segments.iter().map(|segment| norm.segment(view, segment)).collect();
        if let Some(wanted) = self.best {
            docs = best::candidates(&mut asked, docs, &terms, &norms, wanted, report)?;
        }
        let mut scores: Vec<_> = docs.iter().map(SegmentScores::unscored).collect();
        for Weighted { term, weight } in terms {
            for (at, scores) in scores.iter_mut().enumerate() {
                let frequencies = asked.frequencies(term, at, &docs[at], report)?;
                scores.add(&frequencies, &norms[at], weight);
            }
        }
        Ok(scores)
    }

    /// The terms that are scored, in the order of the query.
    fn weighted(&self, asked: &mut Asked<'_>, report: &mut QueryReport) -> Result<Vec<Weighted>> {
        let terms = asked.expression.terms.iter().enumerate();
        let positive: Vec<usize> =
            terms.filter(|(_, term)| term.positive).map(|(number, _)| number).collect();
        let rows = self.view.live_count();
        let mut weighted = Vec::with_capacity(positive.len());
        for term in positive {
            let idf = idf(rows, asked.holding(term, report)?);
            weighted.push(Weighted { term, weight: idf * (self.bm25.0 + 1.0) });
        }
        Ok(weighted)
    }
}

/// The live ones of the documents, as a list where they are few.
fn live(segment: &SegmentView, docs: &Docs) -> DocSet {
    match docs {
        Docs::Every => DocSet::all(segment.segment.doc_count()),
        Docs::Some(docs) => docs.clone(),
    }
    .without(segment.deleted.as_ref())
}

fn idf(rows: u64, holding: u64) -> f64 {
    let (rows, holding) = (rows as f64, holding as f64);
    ((rows - holding + 0.5) / (holding + 0.5)).ln_1p()
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

    fn segment<'v>(&self, view: &TableView, segment: &'v SegmentView) -> SegmentNorms<'v> {
        let indexes = view.schema.texts.iter();
        let indexes = indexes.filter_map(|text| segment.segment.text(text.id)).collect();
        SegmentNorms { base: self.base, per_character: self.per_character, indexes }
    }
}

/// The norms of the documents of one segment.
pub(super) struct SegmentNorms<'v> {
    base: f64,
    per_character: f64,
    indexes: Vec<&'v TextIndex>,
}

impl SegmentNorms<'_> {
    /// The norm of a document.
    #[inline]
    pub fn of(&self, doc: u32) -> f64 {
        let length: u64 = self.indexes.iter().map(|index| u64::from(index.length(doc))).sum();
        self.base + self.per_character * length as f64
    }
}
