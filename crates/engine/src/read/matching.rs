//! Evaluates a text expression on a segment: which documents match.
//!
//! Conjunctions intersect the sparsest sets first; negations inside them are subtracted. Complements are built only for
//! a negation alone. If positions cannot decide whether a term occurs, texts are read, as late and as few as possible:
//! for the first rows of an order only those of the rows that come first ([`unread`]).

use remora_index::{DocSet, text::TextIndex};

use super::{
    docs::count_live,
    expression::{Expression, Matcher, TextNode},
    fuzzy::{IndexedText, normalized_texts},
    occurrences::{Occurrences, cheap_frequencies},
    texts::{retain_rows, text_columns},
};
use crate::{
    QueryReport, Result, Row, Schema, TextDef,
    snapshot::{SegmentView, TableView},
};

/// Evaluates an expression on one segment.
pub(super) struct SegmentMatcher<'v> {
    view: &'v TableView,
    segment: &'v SegmentView,
    expression: &'v Expression,
    report: &'v mut QueryReport,
    /// Receives the frequencies that a score needs, and the segment's index in the view.
    learnt: Option<(&'v mut Occurrences, usize)>,
    /// Receives the documents whose texts are read later; `None` where they are read at once.
    later: Option<Vec<Doubt>>,
}

/// Documents that match only if their texts, which were not read yet, contain a term.
struct Doubt {
    term: usize,
    docs: DocSet,
}

/// What the index alone knows of an expression's documents.
pub(super) struct Unread {
    /// The documents that may match; may include deleted ones.
    pub docs: DocSet,
    doubts: Vec<Doubt>,
}

/// The documents of a term.
struct Found {
    docs: DocSet,
    /// Some may be false positives: their texts must be read.
    doubtful: bool,
}

/// The documents that match; may include deleted ones. Adds to the report the numbers of documents of the terms
/// and before NOT. `learnt` receives the frequencies that a score needs, with the segment's index in the view.
pub(super) fn matching<'v>(
    view: &'v TableView,
    segment: &'v SegmentView,
    expression: &'v Expression,
    report: &'v mut QueryReport,
    learnt: Option<(&'v mut Occurrences, usize)>,
) -> Result<DocSet> {
    let mut matcher = SegmentMatcher { view, segment, expression, report, learnt, later: None };
    match &expression.root {
        TextNode::All { all, none } if !none.is_empty() => {
            let docs = matcher.all(all)?;
            matcher.report.after_intersection += u64::from(docs.count());
            matcher.subtract(docs, none)
        }
        root => matcher.evaluate(root),
    }
}

/// The documents that may match, before texts of terms are read that all matching documents contain.
pub(super) fn unread<'v>(
    view: &'v TableView,
    segment: &'v SegmentView,
    expression: &'v Expression,
    report: &'v mut QueryReport,
) -> Result<Unread> {
    let later = Some(Vec::new());
    let mut matcher = SegmentMatcher { view, segment, expression, report, learnt: None, later };
    let (docs, doubts) = match &expression.root {
        TextNode::All { all, none } => {
            let docs = matcher.all(all)?;
            let doubts = matcher.later.take();
            (matcher.subtract(docs, none)?, doubts)
        }
        TextNode::Term(term) => (matcher.term(*term)?, matcher.later.take()),
        root => {
            matcher.later = None;
            (matcher.evaluate(root)?, None)
        }
    };
    Ok(Unread { docs, doubts: doubts.unwrap_or_default() })
}

impl Unread {
    /// Whether all of its documents match.
    pub fn is_certain(&self) -> bool {
        self.doubts.is_empty()
    }

    /// Reads texts, and keeps the documents of `docs`, which must be live and among its documents, that match.
    pub fn verified(
        &self,
        (view, segment): (&TableView, &SegmentView),
        expression: &Expression,
        docs: DocSet,
    ) -> Result<DocSet> {
        let mut report = QueryReport::default();
        let matcher = &mut SegmentMatcher {
            view,
            segment,
            expression,
            report: &mut report,
            learnt: None,
            later: None,
        };
        self.doubts.iter().try_fold(docs, |docs, doubt| {
            let doubtful = docs.clone().intersect(&doubt.docs);
            if doubtful.is_empty() {
                return Ok(docs);
            }
            let sure = docs.subtract(&doubt.docs);
            let read = matcher.containing(doubtful, doubt.term)?;
            Ok(sure.union(&read, segment.segment.doc_count()))
        })
    }
}

/// The documents that match a single term; may include deleted ones.
pub(super) fn matching_term(
    view: &TableView,
    segment: &SegmentView,
    expression: &Expression,
    term: usize,
    report: &mut QueryReport,
) -> Result<DocSet> {
    SegmentMatcher { view, segment, expression, report, learnt: None, later: None }.term(term)
}

impl<'v> SegmentMatcher<'v> {
    fn evaluate(&mut self, node: &TextNode) -> Result<DocSet> {
        match node {
            TextNode::Term(term) => self.term(*term),
            TextNode::Keywords(query) => match self.expression.keywords.get(*query) {
                Some(query) => query.documents(self.segment),
                None => Ok(DocSet::empty()),
            },
            TextNode::All { all, none } => {
                let docs = self.all(all)?;
                self.subtract(docs, none)
            }
            TextNode::Any(nodes) => self.any(nodes),
            TextNode::Not(node) => Ok(self.evaluate(node)?.complement(self.doc_count())),
        }
    }

    /// An AND. Sequences come last, because they are cheap among few documents; not if they are scored, which
    /// needs all documents that contain them.
    fn all(&mut self, nodes: &[TextNode]) -> Result<DocSet> {
        let (mut sets, mut doubtful, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
        for node in nodes {
            let docs = match node {
                TextNode::Term(term) if self.learnt.is_none() && self.is_sequence(*term) => {
                    sequences.push(*term);
                    continue;
                }
                TextNode::Term(term) => {
                    let found = self.find(*term, None)?;
                    doubtful.extend(found.doubtful.then_some(*term));
                    found.docs
                }
                other => {
                    let later = self.later.take();
                    let docs = self.evaluate(other)?;
                    self.later = later;
                    docs
                }
            };
            if docs.is_empty() {
                return Ok(docs);
            }
            sets.push(docs);
        }
        sets.sort_by_key(|docs| match docs {
            DocSet::List(docs) => docs.len(),
            DocSet::Bits(_) => usize::MAX,
        });
        let mut docs = sets.into_iter().reduce(|docs, other| docs.intersect(&other));
        for term in sequences {
            let found = self.find(term, docs.as_ref())?;
            doubtful.extend(found.doubtful.then_some(term));
            docs = Some(match docs {
                Some(docs) => docs.intersect(&found.docs),
                None => found.docs,
            });
        }
        let docs = docs.unwrap_or_else(|| DocSet::all(self.doc_count()));
        doubtful.into_iter().try_fold(docs, |docs, term| self.verified(docs, term))
    }

    /// Whether positions must be read to find the term.
    fn is_sequence(&self, term: usize) -> bool {
        self.indexes_of(term).any(|(_, _, matcher)| match matcher {
            Matcher::Exact(pattern) => pattern.is_sequence(),
            Matcher::Fuzzy(_) => false,
            Matcher::Words(_) | Matcher::Letters(_) => true,
        })
    }

    fn subtract(&mut self, mut docs: DocSet, nodes: &[TextNode]) -> Result<DocSet> {
        for node in nodes {
            if docs.is_empty() {
                break;
            }
            docs = docs.subtract(&self.evaluate(node)?);
        }
        Ok(docs)
    }

    fn any(&mut self, nodes: &[TextNode]) -> Result<DocSet> {
        let len = self.doc_count();
        nodes.iter().try_fold(DocSet::empty(), |docs, node| {
            let found = self.evaluate(node)?;
            Ok(if docs.is_empty() { found } else { docs.union(&found, len) })
        })
    }

    fn term(&mut self, term: usize) -> Result<DocSet> {
        let found = self.find(term, None)?;
        if found.doubtful { self.verified(found.docs, term) } else { Ok(found.docs) }
    }

    /// The documents of a term. Documents outside `among` may be omitted.
    fn find(&mut self, term: usize, among: Option<&DocSet>) -> Result<Found> {
        self.expression.unless.check()?;
        let mut found: Option<Found> = None;
        for (definition, index, matcher) in self.indexes_of(term) {
            let next = match self.learn(term, index, matcher)? {
                Some(docs) => Found { docs, doubtful: false },
                None => self.find_in((definition, index, matcher), term, among)?,
            };
            found = Some(match found {
                None => next,
                Some(found) => Found {
                    docs: found.docs.union(&next.docs, self.doc_count()),
                    doubtful: found.doubtful | next.doubtful,
                },
            });
        }
        let found = found.unwrap_or(Found { docs: DocSet::empty(), doubtful: false });
        if !self.expression.is_one_term() {
            self.report.candidates += u64::from(found.docs.count());
        }
        if let (Some((learnt, at)), false) = (&mut self.learnt, found.doubtful) {
            learnt.note_holding(term, *at, count_live(&found.docs, self.segment));
        }
        Ok(found)
    }

    /// The documents of a term that is scored, and its frequencies, in one pass.
    fn learn(
        &mut self,
        term: usize,
        index: &TextIndex,
        matcher: &Matcher,
    ) -> Result<Option<DocSet>> {
        let alone = self.view.schema.texts.len() == 1;
        let doc_count = self.doc_count();
        let Some((learnt, at)) = self.learnt.as_mut().filter(|_| alone) else { return Ok(None) };
        let Some(frequencies) = cheap_frequencies(index, matcher)? else { return Ok(None) };
        let docs = frequencies.iter().map(|&(doc, _)| doc).collect();
        let docs = DocSet::ascending(docs, doc_count);
        learnt.note_frequencies(term, *at, frequencies);
        Ok(Some(docs))
    }

    fn find_in(
        &mut self,
        (definition, index, matcher): (&'v TextDef, &'v TextIndex, &Matcher),
        term: usize,
        among: Option<&DocSet>,
    ) -> Result<Found> {
        match matcher {
            Matcher::Exact(pattern) => {
                let matches = match among {
                    Some(among) => index.find_among(pattern, among)?,
                    None => index.find(pattern)?,
                };
                Ok(Found { docs: matches.docs, doubtful: matches.verify })
            }
            Matcher::Fuzzy(term) => {
                let unless = &self.expression.unless;
                let place = IndexedText {
                    view: self.view,
                    segment: self.segment,
                    definition,
                    index,
                    unless,
                };
                let docs = term.find(&place, &mut self.report.texts_read)?;
                Ok(Found { docs, doubtful: false })
            }
            Matcher::Words(words) => {
                // Something other than a single space may be between the words.
                let (sure, doubtful) = words.find(index)?;
                let read = self.read((definition, matcher), term, doubtful, among)?;
                Ok(Found { docs: sure.union(&read, self.doc_count()), doubtful: false })
            }
            Matcher::Letters(letters) => {
                let held = letters.find(index, self.doc_count())?;
                let read = match letters.is_tested_again {
                    true => held.doubtful,
                    false => self.read((definition, matcher), term, held.doubtful, among)?,
                };
                Ok(Found { docs: held.sure.union(&read, self.doc_count()), doubtful: false })
            }
        }
    }

    /// The doubtful documents, restricted to `among` if given, whose rows contain the term: now or later.
    fn read(
        &mut self,
        (definition, matcher): (&TextDef, &Matcher),
        term: usize,
        doubtful: DocSet,
        among: Option<&DocSet>,
    ) -> Result<DocSet> {
        let doubtful = match among {
            Some(among) => doubtful.intersect(among),
            None => doubtful,
        };
        let doubtful = doubtful.without(self.segment.deleted.as_ref());
        match self.is_left(term, &doubtful) {
            true => Ok(doubtful),
            false => self.containing_in(doubtful, definition, matcher),
        }
    }

    /// Whether these documents are read later, which is noted.
    fn is_left(&mut self, term: usize, docs: &DocSet) -> bool {
        // A document that is doubtful in one index may be certain in another.
        let is_of_one = self.indexes_of(term).count() == 1;
        let Some(later) = self.later.as_mut().filter(|_| is_of_one) else { return false };
        if !docs.is_empty() {
            later.push(Doubt { term, docs: docs.clone() });
        }
        true
    }

    /// The documents, which must be live, whose rows contain a term of a single text index.
    fn containing(&mut self, docs: DocSet, term: usize) -> Result<DocSet> {
        match self.indexes_of(term).next() {
            Some((definition, _, matcher @ (Matcher::Words(_) | Matcher::Letters(_)))) => {
                self.containing_in(docs, definition, matcher)
            }
            _ => self.verified(docs, term),
        }
    }

    /// The documents, which must be live, whose rows contain a term that is matched so.
    fn containing_in(
        &mut self,
        docs: DocSet,
        definition: &TextDef,
        matcher: &Matcher,
    ) -> Result<DocSet> {
        self.report.texts_read += u64::from(docs.count());
        let unless = &self.expression.unless;
        match matcher {
            Matcher::Letters(letters) => {
                let columns = [letters.column()];
                let holds = |row: &Row| letters.occurs_in(row);
                retain_rows(self.view, self.segment, &docs, (&columns, unless), holds)
            }
            Matcher::Words(words) => {
                let columns = (definition.columns.as_slice(), unless);
                let holds =
                    |row: &Row| normalized_texts(definition, row).any(|it| words.occurs_in(&it));
                retain_rows(self.view, self.segment, &docs, columns, holds)
            }
            Matcher::Exact(_) | Matcher::Fuzzy(_) => Ok(docs),
        }
    }

    /// The text indexes of the segment that can contain the term.
    fn indexes_of(
        &self,
        term: usize,
    ) -> impl Iterator<Item = (&'v TextDef, &'v TextIndex, &'v Matcher)> + use<'v> {
        let segment = &self.segment.segment;
        let matchers = self.expression.terms.get(term).map(|term| term.matchers.as_slice());
        let indexes = self.view.schema.texts.iter().zip(matchers.unwrap_or_default());
        indexes.filter_map(|(definition, matcher)| {
            Some((definition, segment.text(definition.id)?, matcher.as_ref()?))
        })
    }

    /// Reads texts, now or later, and keeps the live documents that contain the term.
    fn verified(&mut self, docs: DocSet, term: usize) -> Result<DocSet> {
        let docs = docs.without(self.segment.deleted.as_ref());
        if self.is_left(term, &docs) {
            return Ok(docs);
        }
        self.report.texts_read += u64::from(docs.count());
        let Some(term) = self.expression.terms.get(term) else { return Ok(DocSet::empty()) };
        let schema = &self.view.schema;
        let occurs = |row: &Row| occurrences_in_row(schema, &term.matchers, row) > 0;
        let columns = text_columns(schema);
        let read = (&columns[..], &self.expression.unless);
        retain_rows(self.view, self.segment, &docs, read, occurs)
    }

    fn doc_count(&self) -> u32 {
        self.segment.segment.doc_count()
    }
}

/// The number of occurrences of a term in the texts of a row, over all text indexes. Overlapping occurrences
/// count, as in the index.
pub(super) fn occurrences_in_row(schema: &Schema, matchers: &[Option<Matcher>], row: &Row) -> u32 {
    let indexes = schema.texts.iter().zip(matchers);
    let counts = indexes.filter_map(|(definition, matcher)| {
        let pattern = matcher.as_ref()?.text();
        let texts = normalized_texts(definition, row);
        Some(texts.map(|text| places(&text, pattern)).sum::<u32>())
    });
    counts.sum()
}

fn places(text: &str, pattern: &str) -> u32 {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.find(pattern) {
        count += 1;
        let first = rest[at..].chars().next().map_or(1, char::len_utf8);
        rest = &rest[at + first..];
    }
    count
}
