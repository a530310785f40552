//! Term frequencies that a score needs and matching did not collect.

use remora_index::DocSet;

use super::{
    docs::count_live,
    expression::{Expression, Matcher, Term},
    matching::{matching_term, occurrences_in_row},
    occurrences::{Frequencies, Occurrences, common},
    texts::{for_each_row, text_columns},
};
use crate::{
    QueryReport, Result,
    snapshot::{SegmentView, TableView},
};

/// Computes document and term frequencies of an expression's terms over the segments of a view.
pub(super) struct TermFrequencies<'v> {
    pub view: &'v TableView,
    pub expression: &'v Expression,
    pub occurrences: Occurrences,
}

impl TermFrequencies<'_> {
    /// The document frequency of the term: the number of live rows that contain it.
    pub fn holding(&mut self, term: usize, report: &mut QueryReport) -> Result<u64> {
        let mut rows = 0;
        for (at, segment) in self.view.segments.iter().enumerate() {
            let known = self.occurrences.known(term, at);
            rows += match known.holding {
                Some(live) => live,
                None => {
                    let live = holding(self.view, segment, self.expression, term, report)?;
                    *known.holding.insert(live)
                }
            };
        }
        Ok(rows)
    }

    /// The term frequencies in the documents `among` of the segment `at`, which must be selected ones. Other
    /// documents may be included.
    pub fn frequencies(
        &mut self,
        term: usize,
        at: usize,
        among: &DocSet,
        report: &mut QueryReport,
    ) -> Result<Frequencies> {
        if let Some(known) = &self.occurrences.known(term, at).frequencies {
            return Ok(match among {
                DocSet::List(docs) => common(known, docs),
                DocSet::Bits(_) => known.clone(),
            });
        }
        frequencies(self.view, &self.view.segments[at], self.expression, term, among, report)
    }
}

fn holding(
    view: &TableView,
    segment: &SegmentView,
    expression: &Expression,
    term: usize,
    report: &mut QueryReport,
) -> Result<u64> {
    let docs = matching_term(view, segment, expression, term, report)?;
    Ok(count_live(&docs, segment))
}

fn frequencies(
    view: &TableView,
    segment: &SegmentView,
    expression: &Expression,
    term: usize,
    among: &DocSet,
    report: &mut QueryReport,
) -> Result<Frequencies> {
    let definition: &Term = &expression.terms[term];
    let mut counted = Vec::new();
    let mut doubtful = false;
    let mut indexes = 0;
    for (text, matcher) in view.schema.texts.iter().zip(&definition.matchers) {
        match (segment.segment.text(text.id), matcher) {
            (Some(index), Some(Matcher::Exact(pattern))) => {
                doubtful |= index.occurrences(pattern, Some(among), &mut counted)?;
                indexes += 1;
            }
            (Some(_), Some(Matcher::Fuzzy(_) | Matcher::Words(_) | Matcher::Letters(_))) => {
                let docs = matching_term(view, segment, expression, term, report)?;
                return Ok(docs.iter().map(|doc| (doc, 1)).collect());
            }
            _ => {}
        }
    }
    if doubtful {
        let docs = matching_term(view, segment, expression, term, report)?.intersect(among);
        return read_frequencies((view, segment), expression, term, &docs, report);
    }
    if indexes > 1 {
        sum_by_document(&mut counted);
    }
    Ok(counted)
}

/// Counts occurrences by reading the texts.
fn read_frequencies(
    (view, segment): (&TableView, &SegmentView),
    expression: &Expression,
    term: usize,
    docs: &DocSet,
    report: &mut QueryReport,
) -> Result<Frequencies> {
    let term: &Term = &expression.terms[term];
    let mut counted = Vec::new();
    report.texts_read += u64::from(docs.count());
    let columns = text_columns(&view.schema);
    for_each_row(view, segment, docs, (&columns, &expression.unless), |doc, row| {
        counted.push((doc, occurrences_in_row(&view.schema, &term.matchers, row)));
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
