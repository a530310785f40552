//! How often a term occurs: what matching and scoring know of each term, found once.
//!
//! A score needs of every term how many rows hold it and, for the documents that are scored, how
//! often. Matching comes first and often finds the same, so that it leaves it here.

use remora_index::{DocSet, text::TextIndex};

use super::{
    docs::count_live,
    expression::{Expression, Matcher, Term},
    matching::{matching_term, occurrences_in_row},
    texts::{for_each_row, text_columns},
};
use crate::{
    QueryReport, Result,
    snapshot::{SegmentView, TableView},
};

/// How often a term occurs in documents of one segment, ascending by document.
pub(super) type Frequencies = Vec<(u32, u32)>;

/// What is known of each term in each segment.
pub(super) struct Occurrences {
    segments: usize,
    known: Vec<Known>,
}

/// What is known of one term in one segment.
#[derive(Clone, Default)]
struct Known {
    /// How many live documents hold it.
    holding: Option<u64>,
    /// How often it occurs in each selected document that holds it.
    frequencies: Option<Frequencies>,
}

impl Occurrences {
    /// Nothing is known yet.
    pub fn new(terms: usize, segments: usize) -> Self {
        Self { segments, known: vec![Known::default(); terms * segments] }
    }

    fn known(&mut self, term: usize, segment: usize) -> &mut Known {
        &mut self.known[term * self.segments + segment]
    }

    /// Notes how many live documents of the segment hold the term.
    pub fn note_holding(&mut self, term: usize, segment: usize, live: u64) {
        self.known(term, segment).holding = Some(live);
    }

    /// Notes how often the term occurs in each selected document of the segment that holds it;
    /// others may be among them.
    pub fn note_frequencies(&mut self, term: usize, segment: usize, frequencies: Frequencies) {
        self.known(term, segment).frequencies = Some(frequencies);
    }
}

/// Asks the segments of a view about the terms of an expression.
pub(super) struct Asked<'v> {
    pub view: &'v TableView,
    pub expression: &'v Expression,
    pub occurrences: Occurrences,
}

impl Asked<'_> {
    /// How many live rows hold the term.
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

    /// How often the term occurs in documents of the segment `at`: in those of `among`, which are
    /// selected ones, and maybe in others.
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

/// The frequencies of the documents of an ascending list.
pub(super) fn common(frequencies: &[(u32, u32)], docs: &[u32]) -> Frequencies {
    let mut rest = frequencies;
    let mut found = Vec::with_capacity(docs.len().min(frequencies.len()));
    for &doc in docs {
        rest = from_doc(rest, doc);
        found.extend(rest.first().filter(|first| first.0 == doc));
    }
    found
}

/// The frequencies from `doc` on, which is mostly near.
#[inline]
pub(super) fn from_doc(frequencies: &[(u32, u32)], doc: u32) -> &[(u32, u32)] {
    let mut step = 1;
    while step < frequencies.len() && frequencies[step].0 < doc {
        step *= 2;
    }
    let (start, end) = (step / 2, frequencies.len().min(step + 1));
    let behind = frequencies[start..end].partition_point(|&(other, _)| other < doc);
    &frequencies[start + behind..]
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
        return read_frequencies(view, segment, definition, &docs, report);
    }
    if indexes > 1 {
        sum_by_document(&mut counted);
    }
    Ok(counted)
}

/// How often a text occurs in all documents of the segment, where that costs little more than to
/// find them; `None` if it costs more, or the answer needs the texts.
pub(super) fn cheap_frequencies(
    index: &TextIndex,
    matcher: &Matcher,
) -> Result<Option<Frequencies>> {
    let Matcher::Exact(pattern) = matcher else { return Ok(None) };
    if !index.reads_postings(pattern) {
        return Ok(None);
    }
    let mut counted = Vec::new();
    let doubtful = index.occurrences(pattern, None, &mut counted)?;
    Ok((!doubtful).then_some(counted))
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
    let columns = text_columns(&view.schema);
    for_each_row(view, segment, docs, &columns, |doc, row| {
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
