//! Ranked search by keywords: which rows a query finds, and what each weighs.
//!
//! A query is planned once for the whole table, with counts of its live rows, so no weight depends on how rows lie in
//! segments. Candidates are sets of documents by term. A candidate is evaluated by its hits if the sets are not exact,
//! or if its weight is wanted.

mod batch;
mod best;
mod bounds;
mod document;
mod groups;
mod impacts;
mod known_vocabulary;
mod neighbours;
mod parallel;
mod passes;
mod present;
mod pretest;
mod shifts;
mod stored;
mod tiers;
mod top_k;
mod vocabulary;
mod walk;

use std::{ops::ControlFlow, sync::Arc};

use remora_index::{
    DocSet,
    segment::Segment,
    words::{MOST_PAIR_DISTANCE, WordsIndex},
};
use remora_words::{
    WordsError,
    analysis::Analyzer,
    hits::Hit,
    matching::{Candidates, Counts, Document, Matcher, QuotedTerms},
    query::Parsed,
    rank::{self, Needs, Ranker, Scorer},
};
use rustc_hash::FxHashSet;

use crate::{
    Error, FactorsForm, KeywordQuery, KeywordReport, KeywordStatistics, RequestPart, Result,
    Schema, WordsDef,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
};
pub use batch::DocumentBatch;
use document::SegmentDocument;
use known_vocabulary::{KnownVocabulary, incomplete};
#[cfg(test)]
pub(crate) use parallel::ALONE;
use pretest::{Pretest, Verdict};
pub use stored::StoredQuery;
use tiers::{Set, Tiers};
use vocabulary::ViewVocabulary;

/// A keyword query, planned for one table at one moment.
pub(crate) struct Ranked {
    /// `None` for an empty query, or one of which nothing is left after parsing.
    matcher: Option<Matcher>,
    /// Whether the query is empty: it finds every row, with the weight 1.
    is_every: bool,
    id: u32,
    scorer: Scorer,
    table_weight: i32,
    /// Whether words can have blended characters. The word after such a word can have the same position.
    blends: bool,
    /// The segments that have a weight of their own, which is used instead of [`Ranked::table_weight`].
    segment_weights: Vec<(Arc<Segment>, i32)>,
    report: KeywordReport,
    schema: Arc<Schema>,
    /// The number of fields.
    fields: usize,
    /// Checked to end the query before it is done.
    unless: InterruptCheck,
}

/// If the wanted documents are fewer than one in so many of a word, they are looked up one by one.
const FEW_SHARE: usize = 16;

/// The positions of so few documents are read without looking for lists of pairs.
const FEW_NARROWED: u32 = if cfg!(test) { 1 } else { 32 };

/// The number of documents or keywords that are merged between two checks for an interruption.
const UNITED_DOCUMENTS: u64 = if cfg!(test) { 64 } else { 1 << 20 };
const UNITED_KEYWORDS: usize = if cfg!(test) { 4 } else { 1 << 16 };

impl Ranked {
    /// Plans a query.
    ///
    /// # Errors
    /// Here and in all that is asked of it: [`Error::Ended`] soon after it is told to end.
    pub(crate) fn new(
        view: &TableView,
        asked: &KeywordQuery,
        unless: &InterruptCheck,
    ) -> Result<Self> {
        Self::planned(&view.schema, Some(view), asked, false, unless)
    }

    /// The keywords of a query, for reports.
    pub(crate) fn report(
        view: &TableView,
        asked: &KeywordQuery,
        unless: &InterruptCheck,
    ) -> Result<KeywordReport> {
        Ok(Self::planned(&view.schema, Some(view), asked, true, unless)?.report)
    }

    /// The same, with the statistics that the query carries.
    pub(crate) fn report_by_statistics(
        schema: &Arc<Schema>,
        asked: &KeywordQuery,
        unless: &InterruptCheck,
    ) -> Result<KeywordReport> {
        Ok(Self::planned(schema, None, asked, true, unless)?.report)
    }

    /// The number of live rows that contain a keyword, and of its occurrences.
    pub(crate) fn counts(
        view: &TableView,
        keyword: &str,
        unless: &InterruptCheck,
    ) -> Result<Counts> {
        let words = words_of(&view.schema)?;
        let analyzer = words.analyzer()?;
        ViewVocabulary::new(view, words, &analyzer, unless).with_hits().counts_of(keyword)
    }

    /// Calls `visit` with each keyword of the table and the number of live rows that contain it, in order.
    pub(crate) fn for_each_keyword(
        view: &TableView,
        visit: &mut dyn FnMut(&str, u64),
        unless: &InterruptCheck,
    ) -> Result<()> {
        let words = words_of(&view.schema)?;
        let analyzer = words.analyzer()?;
        ViewVocabulary::new(view, words, &analyzer, unless).for_each(visit)
    }

    /// Plans a query with the statistics that it carries; if it carries none, with those of the view.
    fn planned(
        schema: &Arc<Schema>,
        view: Option<&TableView>,
        asked: &KeywordQuery,
        needs_hits: bool,
        unless: &InterruptCheck,
    ) -> Result<Self> {
        let words = words_of(schema)?;
        let analyzer = words.analyzer()?;
        let parsed = asked.parse(&analyzer, &names(schema, words)).map_err(refused)?;
        Self::of_parsed(schema, view, asked, &parsed, needs_hits, unless)
    }

    /// Plans a parsed query.
    fn of_parsed(
        schema: &Arc<Schema>,
        view: Option<&TableView>,
        asked: &KeywordQuery,
        parsed: &Parsed,
        needs_hits: bool,
        unless: &InterruptCheck,
    ) -> Result<Self> {
        let words = words_of(schema)?;
        let analyzer = words.analyzer()?;
        let fields: Vec<String> = names(schema, words);
        let (weights, unknown) = weights(&fields, &asked.field_weights);
        let count = fields.len();
        let (matcher, totals, documents) = match (&asked.statistics, view) {
            (Some(statistics), _) => {
                let (matcher, totals) =
                    with_statistics(statistics, asked, parsed, &analyzer, count)?;
                (matcher, totals, statistics.documents)
            }
            (None, None) => return Err(incomplete()),
            (None, Some(view)) => {
                let mut vocabulary = ViewVocabulary::new(view, words, &analyzer, unless);
                if needs_hits {
                    vocabulary = vocabulary.with_hits();
                }
                let plan = |root| Matcher::new(root, &mut vocabulary, asked.idf);
                let planned = parsed.root.as_ref().map(plan).transpose();
                let matcher = planned.map_err(|error| vocabulary.error(error))?;
                let totals = match is_by_expression(asked) {
                    true => vocabulary.totals(count)?,
                    false => Vec::new(),
                };
                (matcher, totals, view.live_count())
            }
        };
        let about = rank::Query {
            field_weights: weights,
            keywords: matcher.as_ref().map_or(0, Matcher::keywords),
            has_repeats: matcher.as_ref().is_some_and(Matcher::has_repeats),
            last_position: matcher.as_ref().map_or(0, Matcher::last_position),
            words: matcher.as_ref().map_or_else(Vec::new, |it| it.query_words().to_vec()),
            field_names: fields,
            totals,
            documents,
        };
        let planned = matcher.as_ref().and_then(|matcher| matcher.warning().map(str::to_owned));
        let report = KeywordReport {
            words: matcher.as_ref().map_or_else(Vec::new, |matcher| matcher.words().to_vec()),
            warning: planned.or(unknown).or_else(|| parsed.warning.clone()),
        };
        let is_unranked = matcher.as_ref().is_some_and(Matcher::is_unranked);
        let ranker = if is_unranked { Ranker::None } else { asked.ranker.clone() };
        Ok(Self {
            is_every: asked.text.is_empty(),
            matcher,
            id: words.segment_id(),
            scorer: Scorer::new(ranker, about),
            table_weight: asked.table_weight.unwrap_or(1),
            blends: analyzer.blends(),
            segment_weights: view.map_or_else(Vec::new, |view| segment_weights(view, asked)),
            report,
            schema: Arc::clone(schema),
            fields: count,
            unless: unless.clone(),
        })
    }

    /// A warning about ignored or changed parts of the query.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.report.warning.as_deref()
    }

    /// The sum of the numbers of live rows that contain each keyword.
    pub(crate) fn documents_of_keywords(&self) -> u64 {
        self.report.words.iter().map(|word| word.counts.documents).sum()
    }

    /// The documents of a segment that the query finds. Deleted ones can be among them.
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
        let docs = self.narrowed(matcher, words, docs)?;
        let docs = docs.without(view.deleted.as_ref());
        let mut document = SegmentDocument::new(self, matcher, words, view)?;
        let nothing = Needs { fields: false, hits: false };
        let (mut found, mut hits) = (Vec::new(), Vec::new());
        let mut pretest = Pretest::new(matcher);
        try_for_each(&docs, |doc| {
            document.looks.step()?;
            document.go_to(doc);
            let verdict = pretest.as_mut().map(|pretest| pretest.test(&mut document));
            match verdict.transpose()? {
                Some(Verdict::Fails) => return Ok(()),
                Some(Verdict::Matches) => {
                    found.push(doc);
                    return Ok(());
                }
                Some(Verdict::MayMatch) | None => {}
            }
            match matcher.evaluate(&mut document, nothing, &mut hits) {
                Ok(is_found) => found.extend(is_found.map(|_| doc)),
                Err(error) => return Err(document.error(error)),
            }
            Ok(())
        })?;
        Ok(DocSet::ascending(found, count))
    }

    /// The documents of `docs` that the lists of pairs leave, if the query is a phrase.
    fn narrowed(&self, matcher: &Matcher, words: &WordsIndex, mut docs: DocSet) -> Result<DocSet> {
        let Some(QuotedTerms { mut terms, reach: None, .. }) = matcher.quoted() else {
            return Ok(docs);
        };
        if !words.has_pairs() {
            return Ok(docs);
        }
        terms.sort_unstable_by_key(|&(_, position)| position);
        let number = |term: usize| match matcher.terms().get(term).map(|term| &term.keywords[..]) {
            Some([keyword]) => words.find(keyword),
            _ => None,
        };
        let words_at: Vec<(Option<u32>, u32)> =
            terms.into_iter().map(|(term, position)| (number(term), position)).collect();
        let (mut left_over, mut seen) = (docs.count(), FxHashSet::default());
        // Keywords that are farther apart have no lists.
        for step in 1..words_at.len().min(MOST_PAIR_DISTANCE as usize + 1) {
            for (left, right) in words_at.iter().zip(words_at.iter().skip(step)) {
                if left_over <= FEW_NARROWED {
                    return Ok(docs);
                }
                let (&(Some(first), before), &(Some(second), behind)) = (left, right) else {
                    continue;
                };
                if !seen.insert((first, second, behind - before)) {
                    continue;
                }
                self.unless.check()?;
                if let Some(listed) = words.documents_apart((first, second), behind - before)? {
                    docs = docs.intersect(&listed);
                    left_over = docs.count();
                }
            }
        }
        Ok(docs)
    }

    fn set(
        &self,
        matcher: &Matcher,
        words: &WordsIndex,
        candidates: &Candidates,
        count: u32,
    ) -> Result<DocSet> {
        let of = |candidates: &Candidates| self.set(matcher, words, candidates, count);
        self.unless.check()?;
        Ok(match candidates {
            Candidates::Every => DocSet::all(count),
            Candidates::Term(term) => self.of_term(matcher, words, *term, count)?,
            Candidates::All(parts) => self.of_all(matcher, words, parts, count)?,
            Candidates::Any(parts) => self.of_any(matcher, words, parts, count)?,
            Candidates::AtLeast(parts, least) => {
                let sets = parts.iter().map(|part| of(part).map(Set::Docs));
                let sets: Vec<Set<'_>> = sets.collect::<Result<_>>()?;
                let most = sets.len();
                Tiers::new(count, sets, &vec![1; most]).at_least(*least)
            }
            Candidates::Without(wanted, unwanted) => of(wanted)?.subtract(&of(unwanted)?),
        })
    }

    /// The documents that are in any of the parts.
    fn of_any(
        &self,
        matcher: &Matcher,
        words: &WordsIndex,
        parts: &[Candidates],
        count: u32,
    ) -> Result<DocSet> {
        let mut numbers = Vec::new();
        let mut any = DocSet::empty();
        for part in parts {
            match self.keyword_of(matcher, part) {
                Some(keyword) => numbers.extend(words.find(keyword)),
                None => {
                    let docs = self.set(matcher, words, part, count)?;
                    any = if any.is_empty() { docs } else { any.union(&docs, count) };
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let united = self.united(words, &numbers, count)?;
        Ok(if any.is_empty() { united } else { any.union(&united, count) })
    }

    /// The documents that contain any of the keywords.
    fn united(&self, words: &WordsIndex, numbers: &[u32], count: u32) -> Result<DocSet> {
        let (mut all, mut rest) = (DocSet::empty(), numbers);
        while !rest.is_empty() {
            self.unless.check()?;
            let (mut documents, mut taken) = (0, 0);
            for &number in rest.iter().take(UNITED_KEYWORDS) {
                documents += u64::from(words.document_count(number)?);
                taken += 1;
                if documents >= UNITED_DOCUMENTS {
                    break;
                }
            }
            let (some, behind) = rest.split_at(taken);
            let docs = words.united(some)?;
            all = if all.is_empty() { docs } else { all.union(&docs, count) };
            rest = behind;
        }
        Ok(all)
    }

    /// The documents that are in all of the parts. It starts with the rarest part.
    fn of_all(
        &self,
        matcher: &Matcher,
        words: &WordsIndex,
        parts: &[Candidates],
        count: u32,
    ) -> Result<DocSet> {
        let (mut numbers, mut others) = (Vec::new(), Vec::new());
        for part in parts {
            match self.keyword_of(matcher, part) {
                Some(keyword) => match words.find(keyword) {
                    Some(number) => numbers.push((words.document_count(number)?, number)),
                    None => return Ok(DocSet::empty()),
                },
                None => others.push(part),
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let mut all: Option<DocSet> = None;
        for (documents, number) in numbers {
            self.unless.check()?;
            all = Some(match all {
                None => words.documents(number)?,
                Some(DocSet::List(docs))
                    if docs.len() < documents as usize / FEW_SHARE
                        || words.bits(number)?.is_some() =>
                {
                    DocSet::List(words.having(number, docs)?)
                }
                Some(docs) => words.intersect(number, docs)?,
            });
        }
        for part in others {
            if all.as_ref().is_some_and(DocSet::is_empty) {
                break;
            }
            let docs = self.set(matcher, words, part, count)?;
            all = Some(all.map_or_else(|| docs.clone(), |all| all.intersect(&docs)));
        }
        Ok(all.unwrap_or_else(DocSet::empty))
    }

    /// The keyword of a part, if it is a single one.
    fn keyword_of<'m>(&self, matcher: &'m Matcher, part: &Candidates) -> Option<&'m str> {
        let Candidates::Term(term) = part else { return None };
        match &matcher.terms().get(*term)?.keywords[..] {
            [keyword] => Some(keyword),
            _ => None,
        }
    }

    /// The documents that contain a term.
    fn of_term(
        &self,
        matcher: &Matcher,
        words: &WordsIndex,
        term: usize,
        count: u32,
    ) -> Result<DocSet> {
        let keywords = matcher.terms().get(term).map_or(&[][..], |term| &term.keywords);
        let numbers: Vec<u32> = keywords.iter().filter_map(|it| words.find(it)).collect();
        match numbers.as_slice() {
            [number] => Ok(words.documents(*number)?),
            numbers => self.united(words, numbers, count),
        }
    }

    /// The weights of documents by segment, in ascending order of documents. Only the wanted ones have to be there.
    pub(crate) fn weights(
        &self,
        view: &TableView,
        docs: &[DocSet],
        wanted: RankedRequest,
    ) -> Result<Vec<Weights>> {
        if let Some(best) = self.best(view, docs, wanted)? {
            return Ok(best);
        }
        let segments = view.segments.iter().zip(docs);
        segments.map(|(segment, docs)| self.all_weights(segment, docs)).collect()
    }

    /// The factors of documents of a segment, which ascend, as texts; empty for one that the query does not find, and for
    /// each where no expression weighs. Time is that of weighing each, and more for the closeness of words.
    pub(crate) fn factors(
        &self,
        view: &SegmentView,
        docs: &[u32],
        form: FactorsForm,
    ) -> Result<Vec<String>> {
        let (Some(matcher), Some(words)) = (&self.matcher, view.segment.words(self.id)) else {
            return Ok(vec![String::new(); docs.len()]);
        };
        let mut weighing = Weighing::new(self, matcher, words, view)?;
        weighing.scorer = weighing.scorer.with_factors(!form.is_without_closeness);
        weighing.needs = weighing.scorer.needs();
        let texts = docs.iter().map(|doc| {
            let factors = weighing.weight(*doc)?.and_then(|_| weighing.scorer.factors());
            Ok(factors.map_or_else(String::new, |factors| match form.is_json {
                true => factors.to_json(),
                false => factors.to_string(),
            }))
        });
        texts.collect()
    }

    /// What the weights of a segment's rows are multiplied by.
    fn weight_of(&self, view: &SegmentView) -> i32 {
        let mut weights = self.segment_weights.iter();
        let own = weights.find(|(segment, _)| Arc::ptr_eq(segment, &view.segment));
        own.map_or(self.table_weight, |(_, weight)| *weight)
    }

    fn all_weights(&self, view: &SegmentView, docs: &DocSet) -> Result<Weights> {
        let mut weights = Vec::with_capacity(docs.count() as usize);
        let (Some(matcher), Some(words)) = (&self.matcher, view.segment.words(self.id)) else {
            let weight = self.weight_of(view);
            docs.for_each(|doc| weights.push((doc, weight)));
            return Ok(weights);
        };
        if self.scorer.is_even() && matcher.candidates().1 {
            let weight = self.weight_of(view);
            let found = self.documents(view)?.intersect(docs);
            found.for_each(|doc| weights.push((doc, weight)));
            return Ok(weights);
        }
        let mut weighing = Weighing::new(self, matcher, words, view)?;
        try_for_each(docs, |doc| {
            weights.extend(weighing.weight(doc)?.map(|weight| (doc, weight)));
            Ok(())
        })?;
        Ok(weights)
    }
}

/// Whether rows are weighed by an expression, which needs the lengths of fields.
pub(super) fn is_by_expression(asked: &KeywordQuery) -> bool {
    matches!(asked.ranker, Ranker::Expression(_) | Ranker::Export(_))
}

/// The matcher and the lengths of fields, by counts of words that are known.
fn with_statistics(
    statistics: &KeywordStatistics,
    asked: &KeywordQuery,
    parsed: &Parsed,
    analyzer: &Analyzer,
    fields: usize,
) -> Result<(Option<Matcher>, Vec<u64>)> {
    let mut vocabulary = KnownVocabulary::new(statistics, analyzer);
    let plan = |root| Matcher::new(root, &mut vocabulary, asked.idf);
    let matcher = parsed.root.as_ref().map(plan).transpose().map_err(refused)?;
    let totals = statistics.totals.clone().unwrap_or_default();
    let has_totals = !is_by_expression(asked) || totals.len() == fields;
    if !vocabulary.missing().is_nothing() || !has_totals {
        return Err(incomplete());
    }
    Ok((matcher, totals))
}

/// Documents and what they weigh, by ascending documents.
pub(crate) type Weights = Vec<(u32, i32)>;

/// Which rows are asked for.
#[derive(Clone, Copy)]
pub(crate) struct RankedRequest {
    /// How many, with the highest weights; `None` is all.
    pub rows: Option<usize>,
    /// Whether of those with one weight the lowest keys come first, and no others are needed.
    pub by_key: bool,
}

/// Weighs one document after the other of a segment.
struct Weighing<'a> {
    matcher: &'a Matcher,
    document: SegmentDocument<'a>,
    scorer: Scorer,
    table_weight: i32,
    needs: Needs,
    hits: Vec<Hit>,
    /// Of a phrase or a proximity, which most documents with all of its words do not have.
    pretest: Option<Pretest>,
}

impl<'a> Weighing<'a> {
    fn new(
        ranked: &'a Ranked,
        matcher: &'a Matcher,
        words: &'a WordsIndex,
        view: &'a SegmentView,
    ) -> Result<Self> {
        let document = SegmentDocument::new(ranked, matcher, words, view)?;
        let scorer = ranked.scorer.clone();
        let (table_weight, needs) = (ranked.weight_of(view), scorer.needs());
        let (hits, pretest) = (Vec::new(), Pretest::new(matcher));
        Ok(Self { matcher, document, scorer, table_weight, needs, hits, pretest })
    }

    /// How often a term stands in the document that was gone to.
    fn frequency(&mut self, term: usize) -> Result<u32> {
        let frequency = self.document.frequency(term);
        frequency.map_err(|error| self.document.error(error))
    }

    /// The weight of a document, if the query finds it. Documents are asked in ascending order.
    fn weight(&mut self, doc: u32) -> Result<Option<i32>> {
        self.document.looks.step()?;
        self.document.go_to(doc);
        if let Some(pretest) = &mut self.pretest
            && pretest.test(&mut self.document)? == Verdict::Fails
        {
            return Ok(None);
        }
        self.hits.clear();
        match self.matcher.evaluate(&mut self.document, self.needs, &mut self.hits) {
            Ok(Some(found)) => {
                let weight = self.scorer.weight(&found, &self.hits, &self.document);
                Ok(Some(weight.wrapping_mul(self.table_weight)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(self.document.error(error)),
        }
    }
}

/// Calls `visit` with each document until it fails.
fn try_for_each(docs: &DocSet, mut visit: impl FnMut(u32) -> Result<()>) -> Result<()> {
    match docs {
        DocSet::List(docs) => docs.iter().try_for_each(|&doc| visit(doc)),
        DocSet::Bits(bits) => bits.iter().try_for_each(visit),
    }
}

/// `Continue`, or `Break` with the error kept.
fn until<E>(result: std::result::Result<(), E>, failed: &mut Option<E>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// The segments of tables as one whose rows weigh otherwise than those of others.
fn segment_weights(view: &TableView, asked: &KeywordQuery) -> Vec<(Arc<Segment>, i32)> {
    let table = asked.table_weight.unwrap_or(1);
    let mut segments = view.segments.iter();
    let mut weighed = Vec::new();
    for (part, count) in view.parts.iter() {
        let given = asked.part_weights.iter().filter(|(name, _)| name == part);
        let weight = given.map(|(_, weight)| *weight).next_back().unwrap_or(1);
        let own = segments.by_ref().take(*count);
        if weight != 1 {
            let weight = weight.wrapping_mul(table);
            weighed.extend(own.map(|view| (Arc::clone(&view.segment), weight)));
        } else {
            own.for_each(drop);
        }
    }
    weighed
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
