//! Ranked search by keywords: which rows a query finds, and what each weighs.
//!
//! A query is planned once for the whole table, with the counts of its live rows, so that no weight depends on how
//! rows lie in segments. Documents are found by sets of those that hold its terms; where that is not exact, and
//! for weights, each is evaluated by its hits.

mod document;
mod vocabulary;

use std::sync::Arc;

use remora_index::{Bitmap, DocSet, words::WordsIndex};
use remora_words::{
    WordsError,
    matching::{Candidates, Matcher},
    query,
    rank::{self, Needs, Ranker, Scorer},
};

use crate::{
    Error, KeywordQuery, KeywordReport, RequestPart, Result, Schema, WordsDef,
    snapshot::{SegmentView, TableView},
};
use document::SegmentDocument;
use vocabulary::ViewVocabulary;

/// A query over one table at one moment.
pub(crate) struct Ranked {
    /// `None` for a query that nothing is left of, or an empty one.
    matcher: Option<Matcher>,
    /// An empty query finds every row, with the weight 1.
    is_every: bool,
    id: u32,
    scorer: Scorer,
    table_weight: i32,
    report: KeywordReport,
}

impl Ranked {
    /// Plans a query.
    pub(crate) fn new(view: &TableView, asked: &KeywordQuery) -> Result<Self> {
        let words = words_of(&view.schema)?;
        let analyzer = words.analyzer()?;
        let fields: Vec<String> = names(&view.schema, words);
        let parsed = query::parse(&asked.text, &analyzer, &fields).map_err(refused)?;
        let (weights, unknown) = weights(&fields, &asked.field_weights);
        let mut vocabulary = ViewVocabulary::new(view, words, &analyzer);
        let plan = |root| Matcher::new(root, &mut vocabulary, asked.idf);
        let matcher = parsed.root.as_ref().map(plan).transpose().map_err(refused)?;
        let is_by_expression = matches!(asked.ranker, Ranker::Expression(_) | Ranker::Export(_));
        let totals = if is_by_expression { vocabulary.totals(fields.len()) } else { Vec::new() };
        let about = rank::Query {
            field_weights: weights,
            keywords: matcher.as_ref().map_or(0, Matcher::keywords),
            has_repeats: matcher.as_ref().is_some_and(Matcher::has_repeats),
            last_position: matcher.as_ref().map_or(0, Matcher::last_position),
            words: matcher.as_ref().map_or_else(Vec::new, |it| it.query_words().to_vec()),
            field_names: fields,
            totals,
            documents: view.live_count(),
        };
        let planned = matcher.as_ref().and_then(|matcher| matcher.warning().map(str::to_owned));
        let report = KeywordReport {
            words: matcher.as_ref().map_or_else(Vec::new, |matcher| matcher.words().to_vec()),
            warning: planned.or(unknown).or(parsed.warning),
        };
        Ok(Self {
            is_every: asked.text.is_empty(),
            matcher,
            id: words.segment_id(),
            scorer: Scorer::new(asked.ranker.clone(), about),
            table_weight: asked.table_weight.unwrap_or(1),
            report,
        })
    }

    /// What the query was made of.
    pub(crate) fn report(&self) -> &KeywordReport {
        &self.report
    }

    /// The documents of a segment that the query finds; deleted ones may be among them.
    pub(crate) fn documents(&self, view: &SegmentView) -> Result<DocSet> {
        let count = view.segment.doc_count();
        if self.is_every {
            return Ok(DocSet::all(count));
        }
        let (Some(matcher), Some(words)) = (&self.matcher, view.segment.words(self.id)) else {
            return Ok(DocSet::empty());
        };
        let (candidates, is_exact) = matcher.candidates();
        let docs = self.set(matcher, words, &candidates, count)?;
        if is_exact {
            return Ok(docs);
        }
        let docs = docs.without(view.deleted.as_ref());
        let mut document = SegmentDocument::new(matcher, words)?;
        let nothing = Needs { fields: false, hits: false };
        let (mut found, mut hits, mut failed) = (Vec::new(), Vec::new(), None);
        docs.for_each(|doc| {
            document.go_to(doc);
            match matcher.evaluate(&mut document, nothing, &mut hits) {
                Ok(Some(_)) => found.push(doc),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        });
        match failed {
            Some(error) => Err(document.error(error)),
            None => Ok(DocSet::ascending(found, count)),
        }
    }

    fn set(
        &self,
        matcher: &Matcher,
        words: &WordsIndex,
        candidates: &Candidates,
        count: u32,
    ) -> Result<DocSet> {
        let of = |candidates: &Candidates| self.set(matcher, words, candidates, count);
        Ok(match candidates {
            Candidates::Term(term) => {
                let keywords = matcher.terms().get(*term).map_or(&[][..], |term| &term.keywords);
                let numbers: Vec<u32> = keywords.iter().filter_map(|it| words.find(it)).collect();
                match numbers.as_slice() {
                    [number] => words.documents(*number)?,
                    numbers => unite(words, numbers, count)?,
                }
            }
            Candidates::All(parts) => {
                let mut all: Option<DocSet> = None;
                for part in parts {
                    let docs = of(part)?;
                    let docs = all.map_or_else(|| docs.clone(), |all| all.intersect(&docs));
                    if docs.is_empty() {
                        return Ok(docs);
                    }
                    all = Some(docs);
                }
                all.unwrap_or_else(DocSet::empty)
            }
            Candidates::Any(parts) => {
                let mut any = DocSet::empty();
                for part in parts {
                    let docs = of(part)?;
                    any = if any.is_empty() { docs } else { any.union(&docs, count) };
                }
                any
            }
            Candidates::Without(wanted, unwanted) => of(wanted)?.subtract(&of(unwanted)?),
        })
    }

    /// Calls `visit` with each of the documents and its weight, ascending.
    pub(crate) fn for_each_weight(
        &self,
        view: &SegmentView,
        docs: &DocSet,
        mut visit: impl FnMut(u32, i32),
    ) -> Result<()> {
        let (Some(matcher), Some(words)) = (&self.matcher, view.segment.words(self.id)) else {
            docs.for_each(|doc| visit(doc, self.table_weight));
            return Ok(());
        };
        let mut document = SegmentDocument::new(matcher, words)?;
        let (mut scorer, mut hits, mut failed) = (self.scorer.clone(), Vec::new(), None);
        let needs = scorer.needs();
        docs.for_each(|doc| {
            document.go_to(doc);
            hits.clear();
            match matcher.evaluate(&mut document, needs, &mut hits) {
                Ok(Some(found)) => {
                    let weight = scorer.weight(&found, &hits, &document);
                    visit(doc, weight.wrapping_mul(self.table_weight));
                }
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        });
        failed.map_or(Ok(()), |error| Err(document.error(error)))
    }
}

/// The documents that hold any of the keywords.
fn unite(words: &WordsIndex, numbers: &[u32], count: u32) -> Result<DocSet> {
    let mut docs = Bitmap::new(count);
    for &number in numbers {
        words.for_each_posting(number, |doc, _| {
            docs.insert(doc);
        })?;
    }
    Ok(DocSet::Bits(Arc::new(docs)))
}

/// The declared words of a table.
fn words_of(schema: &Schema) -> Result<&WordsDef> {
    schema.words.as_ref().ok_or_else(|| {
        let message = format!(
            "Table {} has no words to search; declare them with ALTER TABLE … morphology='none'",
            schema.name
        );
        Error::request(RequestPart::Expression, message)
    })
}

/// The names of the fields.
fn names(schema: &Schema, words: &WordsDef) -> Vec<String> {
    let name = |&column: &usize| schema.columns.get(column).map(|column| column.name.clone());
    words.columns.iter().filter_map(name).collect()
}

/// The weight of each field, and a warning that names those that are not there.
fn weights(fields: &[String], given: &[(String, i32)]) -> (Vec<i32>, Option<String>) {
    let of = |field: &String| {
        let mut given = given.iter().filter(|(name, _)| name.eq_ignore_ascii_case(field));
        given.next_back().map_or(1, |(_, weight)| (*weight).max(1))
    };
    let is_field = |name: &str| fields.iter().any(|field| field.eq_ignore_ascii_case(name));
    let unknown: Vec<&str> =
        given.iter().map(|(name, _)| name.as_str()).filter(|name| !is_field(name)).collect();
    let warning = (!unknown.is_empty()).then(|| {
        format!("Fields specified in field_weights option not found: [{}]", unknown.join(","))
    });
    (fields.iter().map(of).collect(), warning)
}

fn refused(error: WordsError) -> Error {
    Error::request(RequestPart::Expression, error.to_string())
}
