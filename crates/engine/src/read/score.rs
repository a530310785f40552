//! `_score`: BM25 (see [`super::bm25`]) of the rows that are selected.
//!
//! If only the best rows are wanted, [`super::best`] first finds which can be among them; those are scored in full, so
//! no score depends on it.

use remora_index::DocSet;

use super::{
    best,
    bm25::{Norm, SegmentNorms, Weighted, idf, part},
    docs::Docs,
    expression::Expression,
    occurrences::Occurrences,
    ranked::RankedRequest,
    term_frequencies::TermFrequencies,
};
use crate::{
    QueryReport, Result,
    snapshot::{SegmentView, TableView},
};

/// The scores of live, selected documents of one segment.
pub(super) struct SegmentScores {
    docs: Vec<u32>,
    scores: Vec<f64>,
}

impl FromIterator<(u32, f64)> for SegmentScores {
    /// Documents ascend.
    fn from_iter<I: IntoIterator<Item = (u32, f64)>>(scored: I) -> Self {
        let (docs, scores) = scored.into_iter().unzip();
        Self { docs, scores }
    }
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

    /// The number of scored documents.
    pub fn count(&self) -> u64 {
        self.docs.len() as u64
    }

    /// The scored documents.
    pub fn documents(&self) -> DocSet {
        DocSet::List(self.docs.clone())
    }

    fn unscored(docs: &DocSet) -> Self {
        let docs: Vec<u32> = match docs {
            DocSet::List(docs) => docs.clone(),
            DocSet::Bits(bits) => bits.iter().collect(),
        };
        let scores = vec![0.0; docs.len()];
        Self { docs, scores }
    }

    /// The weights of a keyword query, ascending by document.
    pub fn weighed(weights: Vec<(u32, i32)>) -> Self {
        weights.into_iter().map(|(doc, weight)| (doc, f64::from(weight))).collect()
    }

    /// Adds one term's contribution to each document that contains it.
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

/// The inputs of scoring.
pub(super) struct Scoring<'v> {
    /// The table.
    pub view: &'v TableView,
    /// The text condition.
    pub expression: Option<&'v Expression>,
    /// BM25's (k1, b).
    pub bm25: (f64, f64),
    /// How many rows with the highest scores are needed; `None` for all rows.
    pub best: Option<usize>,
    /// Whether rows with equal scores are in ascending key order.
    pub by_key: bool,
}

impl Scoring<'_> {
    /// The scores of the live, selected documents of each segment; with `best`, at least of those that are among
    /// the best or tie with the last.
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
        if let Some(ranked) = expression.keywords.first() {
            let wanted = RankedRequest { rows: self.best, by_key: self.by_key };
            let weights = ranked.weights(view, &docs, wanted)?;
            return Ok(weights.into_iter().map(SegmentScores::weighed).collect());
        }
        let mut asked = TermFrequencies { view, expression, occurrences };
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
    fn weighted(
        &self,
        asked: &mut TermFrequencies<'_>,
        report: &mut QueryReport,
    ) -> Result<Vec<Weighted>> {
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

/// The live documents.
fn live(segment: &SegmentView, docs: &Docs) -> DocSet {
    match docs {
        Docs::Every => DocSet::all(segment.segment.doc_count()),
        Docs::Some(docs) => docs.clone(),
    }
    .without(segment.deleted.as_ref())
}
