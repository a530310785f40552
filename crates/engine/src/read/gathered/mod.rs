//! Reads a table with rows in several places, here and in other servers, as one.
//!
//! Each place is a [`Part`] over a snapshot of its own. All parts are asked before the first answers. Weights use
//! statistics of the whole table, which are gathered first and sent with the query ([`crate::KeywordStatistics`]). Rows
//! arrive in key order and are merged, so a reader cannot tell the table from one that has all rows. Keys that several
//! parts have are found when the table is opened, and hidden in all but the last part.
//!
//! A part's answers are checked wherever that is possible. If a part fails, the read fails: rows that were already
//! returned were weighed with its statistics, and its keys are hidden in other parts. A caller that can do without the
//! part opens the table again ([`Unopened`]).

mod keys;
mod part;
mod rows;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

pub use keys::SharedKeys;
pub(super) use keys::{MAX_HIDDEN, MAX_HIDDEN_BYTES};
pub use part::{Answer, Part, PartRows};
pub(super) use rows::GatheredRows;

use super::ranked::Ranked;
use crate::{
    Error, KeywordCounts, KeywordQuery, KeywordReport, KeywordStatistics, RequestPart, Result,
    ScanRequest, Schema, Selection, TextQuery, WantedStatistics,
    interrupt::Unless,
    keyword_statistics::{
        MAX_EXPANDED, MAX_EXPANDED_BYTES, MAX_PATTERNS, MAX_UNIONS, too_many_expanded,
    },
};

/// Numbers are gathered in so many rounds at most: keywords, sets of them, sets at certain places.
const MAX_ROUNDS: usize = 16;
/// Most rows of a table: more than any has, and few enough for all that is planned by it.
const MAX_ROWS: u64 = 1 << 40;
/// Queries whose numbers are kept.
const MAX_KNOWN: usize = 256;

/// What a query's numbers are kept by: its text, whether occurrences are counted, and whether an expression weighs.
type Known = HashMap<(String, bool, bool), Arc<KeywordStatistics>>;

/// A table of several parts at the moments of these.
pub struct GatheredTable {
    schema: Arc<Schema>,
    parts: Vec<Arc<dyn Part>>,
    /// Those of all parts together.
    rows: u64,
    known: Mutex<Known>,
}

/// Why a table could not be opened.
#[derive(Debug)]
pub struct Unopened {
    /// The place of the part that did not answer rightly, if it was one.
    pub part: Option<usize>,
    /// What was wrong.
    pub error: Box<Error>,
}

impl Unopened {
    fn of(part: usize, error: Error) -> Self {
        let is_lost = matches!(error, Error::Elsewhere(_));
        Self { part: is_lost.then_some(part), error: Box::new(error) }
    }
}

impl From<Error> for Unopened {
    fn from(error: Error) -> Self {
        Self { part: None, error: Box::new(error) }
    }
}

impl GatheredTable {
    /// Opens a table by its declaration and its parts, in the order in which the later one's row of a key counts. Cost: where the keys
    /// of parts overlap a look at all of those, unless `shared` knows them.
    ///
    /// # Errors
    /// [`Error::Request`] if the parts are not alike, share too many keys, or overlap in too many; [`Error::Elsewhere`] if one
    /// does not answer rightly, which is named then: parts that were given may be without some of their rows.
    pub fn open(
        declared: &Schema,
        parts: Vec<Arc<dyn Part>>,
        shared: &SharedKeys,
        unless: &Unless,
    ) -> std::result::Result<Self, Unopened> {
        let schemas: Vec<Schema> = parts.iter().map(|part| part.schema().clone()).collect();
        let schema = Arc::new(declared.gathered(&schemas)?);
        rows_of(&parts)?;
        let parts = shared.hidden(parts, unless)?;
        Ok(Self::of(schema, parts)?)
    }

    fn of(schema: Arc<Schema>, parts: Vec<Arc<dyn Part>>) -> Result<Self> {
        let rows = rows_of(&parts)?;
        Ok(Self { schema, parts, rows, known: Mutex::default() })
    }

    /// Its definition.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many parts it has.
    pub(super) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// What its rows are known by.
    pub(super) fn version(&self) -> String {
        self.parts.iter().map(|part| part.version()).collect::<Vec<_>>().join(",")
    }

    /// The first and the last key that it may have.
    pub(super) fn ends(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let ends = || self.parts.iter().filter_map(|part| part.ends());
        let first = ends().map(|(first, _)| first).min()?;
        let last = ends().map(|(_, last)| last).max()?;
        Some((first.clone(), last.clone()))
    }

    /// Its first so many keys from one on.
    pub(super) fn keys_from(
        &self,
        from: &[u8],
        limit: usize,
        unless: &Unless,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        // Behind the end of the shortest page another part may have keys that come sooner than its next ones.
        let mut end: Option<Vec<u8>> = None;
        for part in &self.parts {
            let page = part.keys_from(from, unless)?;
            if let Some(last) = page.last()
                && part.ends().is_some_and(|(_, greatest)| last < greatest)
                && end.as_ref().is_none_or(|end| last < end)
            {
                end = Some(last.clone());
            }
            keys.extend(page);
        }
        keys.retain(|key| end.as_ref().is_none_or(|end| key <= end));
        keys.sort_unstable();
        keys.truncate(limit);
        Ok(keys)
    }

    /// The same without the rows of these keys.
    pub(super) fn hiding(&self, keys: &[Vec<u8>], unless: &Unless) -> Result<Self> {
        let parts = self.parts.iter().map(|part| part.hide(keys, unless));
        Self::of(Arc::clone(&self.schema), parts.collect::<Result<_>>()?)
    }

    /// The answers of all parts, each with its part.
    fn each<'t, T>(
        &'t self,
        ask: impl Fn(&'t Arc<dyn Part>) -> Answer<'t, T>,
    ) -> Result<Vec<(&'t Arc<dyn Part>, T)>> {
        let asked: Vec<_> = self.parts.iter().map(|part| (part, ask(part))).collect();
        asked.into_iter().map(|(part, answer)| Ok((part, answer()?))).collect()
    }

    /// What all parts together add to the numbers of a query.
    pub(super) fn counted(
        &self,
        asked: &KeywordQuery,
        wanted: &WantedStatistics,
        unless: &Unless,
    ) -> Result<KeywordStatistics> {
        let fields = self.schema.words.as_ref().map_or(0, |words| words.columns.len());
        if wanted.unions > MAX_UNIONS {
            let message = format!("{} sets of keywords: ask for {MAX_UNIONS}", wanted.unions);
            return Err(Error::request(RequestPart::Expression, message));
        }
        let mut all = KeywordStatistics::default();
        // What is given by no part is 0.
        let nothing = KeywordStatistics {
            counts: wanted.keywords.iter().map(|it| (it.clone(), (0, 0))).collect(),
            expansions: wanted.patterns.iter().map(|it| (it.clone(), Vec::new())).collect(),
            unions: vec![0; wanted.unions],
            totals: wanted.totals.then(|| vec![0; fields]),
            ..KeywordStatistics::default()
        };
        all.add(&nothing, wanted, 0, fields).map_err(|what| Error::Elsewhere(what.to_owned()))?;
        for (part, answer) in self.each(|part| part.statistics(asked, wanted, unless))? {
            let is_right = Ranked::are_expansions(&self.schema, wanted, &answer)?;
            let added = match is_right {
                true => all.add(&answer, wanted, part.rows(), fields),
                false => Err("it gave keywords that a word does not stand for"),
            };
            added.map_err(|what| lie(part.name(), what))?;
            let found = || all.expansions.values().flatten();
            let bytes: usize = found().map(|(keyword, ..)| keyword.len()).sum();
            if found().count() > MAX_EXPANDED || bytes > MAX_EXPANDED_BYTES {
                return Err(too_many_expanded());
            }
        }
        all.documents = self.rows();
        Ok(all)
    }

    /// The numbers that a query is planned by. Cost: a round trip for its keywords, and up to two more for words with
    /// wildcards; nothing the next time.
    fn statistics(
        &self,
        asked: &KeywordQuery,
        needs_hits: bool,
        unless: &Unless,
    ) -> Result<Arc<KeywordStatistics>> {
        let key = (asked.text.clone(), needs_hits, super::ranked::is_by_expression(asked));
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut statistics =
            KeywordStatistics { documents: self.rows(), ..KeywordStatistics::default() };
        for _ in 0..MAX_ROUNDS {
            let mut wanted = Ranked::missing(&self.schema, asked, &statistics, needs_hits)?;
            wanted.patterns.truncate(MAX_PATTERNS);
            if wanted.is_nothing() {
                let statistics = Arc::new(statistics);
                let mut known = self.known.lock();
                if known.len() >= MAX_KNOWN {
                    known.clear();
                }
                known.insert(key, Arc::clone(&statistics));
                return Ok(statistics);
            }
            let asked = with(asked, &Arc::new(statistics.clone()));
            statistics.learn(self.counted(&asked, &wanted, unless)?);
        }
        Err(Error::Elsewhere("the numbers of the query's keywords come to no end".to_owned()))
    }

    /// What a query by keywords is made of.
    pub(super) fn keywords(&self, asked: &KeywordQuery, unless: &Unless) -> Result<KeywordReport> {
        let statistics = self.statistics(asked, true, unless)?;
        Ranked::told(&self.schema, &with(asked, &statistics), unless)
    }

    /// What is passed over or changed of one.
    pub(super) fn warning(&self, asked: &KeywordQuery, unless: &Unless) -> Result<Option<String>> {
        let statistics = self.statistics(asked, false, unless)?;
        Ok(Ranked::told(&self.schema, &with(asked, &statistics), unless)?.warning)
    }

    /// In how many rows a keyword stands, and how often.
    pub(super) fn keyword_counts(&self, keyword: &str, unless: &Unless) -> Result<KeywordCounts> {
        let keywords = vec![keyword.to_owned()];
        let wanted = WantedStatistics { keywords, needs_hits: true, ..WantedStatistics::default() };
        let counted = self.counted(&KeywordQuery::default(), &wanted, unless)?;
        Ok(counted.counts_of(keyword).unwrap_or_default())
    }

    /// The query with the numbers of the table for each query by keywords in it.
    fn with_statistics(&self, text: TextQuery, unless: &Unless) -> Result<TextQuery> {
        let each = |parts: Vec<TextQuery>| -> Result<Vec<TextQuery>> {
            parts.into_iter().map(|part| self.with_statistics(part, unless)).collect()
        };
        Ok(match text {
            // Of a table of which this is a part they came with the query.
            TextQuery::Keywords(asked) if asked.statistics.is_some() => TextQuery::Keywords(asked),
            TextQuery::Keywords(asked) => {
                let statistics = self.statistics(&asked, false, unless)?;
                TextQuery::Keywords(Arc::new(with(&asked, &statistics)))
            }
            TextQuery::And(parts) => TextQuery::And(each(parts)?),
            TextQuery::Or(parts) => TextQuery::Or(each(parts)?),
            TextQuery::Not(part) => TextQuery::Not(Box::new(self.with_statistics(*part, unless)?)),
            TextQuery::Term(_) | TextQuery::Piece(_) => {
                return Err(crate::snapshot::of_other_servers(&self.schema.name));
            }
        })
    }

    /// How many rows a selection has.
    pub(super) fn count(&self, selection: &Selection, unless: &Unless) -> Result<u64> {
        let mut selection = selection.clone();
        let text = selection.text.take().map(|text| self.with_statistics(text, unless));
        selection.text = text.transpose()?;
        let mut all = 0_u64;
        for (part, count) in self.each(|part| part.count(selection.clone(), unless))? {
            if count > part.rows() {
                return Err(lie(part.name(), "it counted more rows than it has"));
            }
            all = all.saturating_add(count);
        }
        Ok(all)
    }

    /// Columns and scores of the rows that match, in the order of keys.
    pub(super) fn scan(
        self: &Arc<Self>,
        mut request: ScanRequest,
        unless: &Unless,
    ) -> Result<GatheredRows> {
        if request.columns.is_empty() && request.scores.is_empty() {
            let ScanRequest { table, text, filter, indexes, .. } = request;
            let selection = Selection { table, text, filter, fuzzy: None, indexes };
            let count = self.count(&selection, unless)?.min(request.limit.unwrap_or(u64::MAX));
            return Ok(GatheredRows::counted(self, count, request.batch_rows, unless));
        }
        let text = request.text.take().map(|text| self.with_statistics(text, unless));
        request.text = text.transpose()?;
        let scores = std::mem::take(&mut request.scores).into_iter();
        let scores = scores.map(|score| self.with_statistics(score, unless));
        request.scores = scores.collect::<Result<_>>()?;
        GatheredRows::begin(self, request, unless)
    }
}

/// How many rows parts have together.
fn rows_of(parts: &[Arc<dyn Part>]) -> Result<u64> {
    let mut all = 0_u64;
    for part in parts {
        let sum = all.checked_add(part.rows()).filter(|sum| *sum <= MAX_ROWS);
        all = sum.ok_or_else(|| lie(part.name(), "it has more rows than can be"))?;
    }
    Ok(all)
}

/// A query with numbers.
fn with(asked: &KeywordQuery, statistics: &Arc<KeywordStatistics>) -> KeywordQuery {
    KeywordQuery { statistics: Some(Arc::clone(statistics)), ..asked.clone() }
}

/// The error for an answer that cannot be.
fn lie(part: &str, what: &str) -> Error {
    Error::Elsewhere(format!("{part} did not answer rightly: {what}"))
}
