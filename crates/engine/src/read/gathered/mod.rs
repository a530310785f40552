//! Reads a table with rows in several places, here and in other servers, as one.
//!
//! Each place is a [`Part`] over a snapshot of its own. All parts are asked before the first answers. Weights use
//! statistics of the whole table, which are gathered first and sent with the query ([`crate::KeywordStatistics`]). Rows
//! arrive in key order and are merged, so a reader cannot tell the table from one that has all rows. Keys that several
//! parts have are found when the table is opened, and hidden in all but the last part.
//!
//! A part's answers are checked wherever that is possible. If a part fails, the read fails: rows that were already
//! returned were weighed with its statistics, and its keys are hidden in other parts. A caller that can do without the
//! part opens the table again ([`PartOpenFailure`]).

mod facet;
mod keys;
mod page;
mod part;
mod rows;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

pub use facet::MAX_FACET_VALUES;
pub use keys::PartsCache;
pub(super) use keys::{MAX_HIDDEN, MAX_HIDDEN_BYTES};
pub use part::{Answer, Part, PartRows, PartValues};
pub(super) use rows::GatheredRows;

use super::ranked::Ranked;
use crate::{
    AccessPath, Error, KeywordCounts, KeywordQuery, KeywordReport, KeywordStatistics, RequestPart,
    Result, ScanRequest, Schema, Selection, TextQuery, WantedStatistics,
    interrupt::InterruptCheck,
    keyword_statistics::{
        MAX_EXPANDED, MAX_EXPANDED_BYTES, MAX_PATTERNS, MAX_UNIONS, too_many_expanded,
    },
};

/// The most rounds in which statistics are gathered: for keywords, for sets of them, for sets at
/// certain positions.
const MAX_ROUNDS: usize = 16;
/// The most rows of a table. It is more than any table has, and small enough for the planner's
/// arithmetic.
const MAX_ROWS: u64 = 1 << 40;
/// The number of queries whose statistics are cached.
const MAX_KNOWN: usize = 256;

/// Cached statistics. The key is the query's text, whether occurrences are counted, and whether a ranking
/// expression is used.
type StatisticsCache = HashMap<(String, bool, bool), Arc<KeywordStatistics>>;

/// A table of several parts, each at one snapshot.
pub struct GatheredTable {
    schema: Arc<Schema>,
    parts: Vec<Arc<dyn Part>>,
    /// The number of rows of all parts together.
    rows: u64,
    known: Mutex<StatisticsCache>,
}

/// Why a table could not be opened.
#[derive(Debug)]
pub struct PartOpenFailure {
    /// The index of the part that failed or gave a wrong answer, if it was one.
    pub part: Option<usize>,
    /// The error.
    pub error: Box<Error>,
}

impl PartOpenFailure {
    fn of(part: usize, error: Error) -> Self {
        let is_lost = matches!(error, Error::RemoteServer(_));
        Self { part: is_lost.then_some(part), error: Box::new(error) }
    }
}

impl From<Error> for PartOpenFailure {
    fn from(error: Error) -> Self {
        Self { part: None, error: Box::new(error) }
    }
}

impl GatheredTable {
    /// Opens a table by its declaration and its parts. If several parts have a key, the row of the last one is
    /// used. Cost: reads all keys in the ranges where the keys of parts overlap, unless `shared` has them cached. As long
    /// as the definition stays the same, `shared` gives the same one.
    ///
    /// # Errors
    /// [`Error::Request`] if the parts have different definitions, share too many keys, or overlap in too many;
    /// [`Error::RemoteServer`] if a part fails or gives a wrong answer. That part is named; parts passed in may be
    /// without some of their rows by then.
    pub fn open(
        declared: &Schema,
        parts: Vec<Arc<dyn Part>>,
        shared: &PartsCache,
        unless: &InterruptCheck,
    ) -> std::result::Result<Self, PartOpenFailure> {
        let schemas: Vec<Schema> = parts.iter().map(|part| part.schema().clone()).collect();
        let schema = shared.definition(declared.gathered(&schemas)?);
        rows_of(&parts)?;
        let parts = shared.hidden(parts, unless)?;
        Ok(Self::of(schema, parts)?)
    }

    fn of(schema: Arc<Schema>, parts: Vec<Arc<dyn Part>>) -> Result<Self> {
        let rows = rows_of(&parts)?;
        Ok(Self { schema, parts, rows, known: Mutex::default() })
    }

    /// The definition of the table.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// The access path of a selection. It needs no answer of other servers.
    pub(super) fn access(&self, selection: &Selection) -> AccessPath {
        let (by_text, segments) = (selection.text.is_some(), self.part_count());
        let (examined, matching) = (self.rows, self.rows);
        AccessPath { by_text, examined, matching, segments, ..AccessPath::default() }
    }

    /// The version of the rows. Equal versions mean equal rows.
    pub(super) fn version(&self) -> String {
        self.parts.iter().map(|part| part.version()).collect::<Vec<_>>().join(",")
    }

    /// The least and the greatest key that it may have.
    pub(super) fn ends(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let ends = || self.parts.iter().filter_map(|part| part.ends());
        let first = ends().map(|(first, _)| first).min()?;
        let last = ends().map(|(_, last)| last).max()?;
        Some((first.clone(), last.clone()))
    }

    /// Its first keys from `from` on (included), at most `limit`; empty only at the end. There may be fewer although
    /// more follow, because each part gives one page.
    pub(super) fn keys_from(
        &self,
        from: &[u8],
        limit: usize,
        unless: &InterruptCheck,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        // Keys behind the end of the shortest page are not complete: another part may have smaller ones.
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

    /// The same table without the rows with these keys.
    pub(super) fn hiding(&self, keys: &[Vec<u8>], unless: &InterruptCheck) -> Result<Self> {
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

    /// The statistics of a query, summed over all parts.
    pub(super) fn counted(
        &self,
        asked: &KeywordQuery,
        wanted: &WantedStatistics,
        unless: &InterruptCheck,
    ) -> Result<KeywordStatistics> {
        let fields = self.schema.words.as_ref().map_or(0, |words| words.columns.len());
        if wanted.unions > MAX_UNIONS {
            let message = format!(
                "{} sets of keywords were asked for: the limit is {MAX_UNIONS}",
                wanted.unions
            );
            return Err(Error::request(RequestPart::Expression, message));
        }
        let mut all = KeywordStatistics::default();
        // Zero for what no part counted.
        let nothing = KeywordStatistics {
            counts: wanted.keywords.iter().map(|it| (it.clone(), (0, 0))).collect(),
            expansions: wanted.patterns.iter().map(|it| (it.clone(), Vec::new())).collect(),
            unions: vec![0; wanted.unions],
            totals: wanted.totals.then(|| vec![0; fields]),
            ..KeywordStatistics::default()
        };
        all.add(&nothing, wanted, 0, fields)
            .map_err(|what| Error::RemoteServer(what.to_owned()))?;
        for (part, answer) in self.each(|part| part.statistics(asked, wanted, unless))? {
            let is_right = Ranked::are_expansions(&self.schema, wanted, &answer)?;
            let added = match is_right {
                true => all.add(&answer, wanted, part.rows(), fields),
                false => Err("it sent keywords that a word with wildcards does not match"),
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

    /// The statistics for a query. Cost: one round trip for its keywords, and up to two more for wildcards; none
    /// if they are cached.
    fn statistics(
        &self,
        asked: &KeywordQuery,
        needs_hits: bool,
        unless: &InterruptCheck,
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
        Err(Error::RemoteServer(
            "the keyword statistics of the query could not be completed".to_owned(),
        ))
    }

    /// The parts of a keyword query.
    pub(super) fn keywords(
        &self,
        asked: &KeywordQuery,
        unless: &InterruptCheck,
    ) -> Result<KeywordReport> {
        let statistics = self.statistics(asked, true, unless)?;
        Ranked::report_by_statistics(&self.schema, &with(asked, &statistics), unless)
    }

    /// A warning about what is ignored or changed in a keyword query.
    pub(super) fn warning(
        &self,
        asked: &KeywordQuery,
        unless: &InterruptCheck,
    ) -> Result<Option<String>> {
        let statistics = self.statistics(asked, false, unless)?;
        Ok(Ranked::report_by_statistics(&self.schema, &with(asked, &statistics), unless)?.warning)
    }

    /// The number of rows that contain a keyword, and of its occurrences.
    pub(super) fn keyword_counts(
        &self,
        keyword: &str,
        unless: &InterruptCheck,
    ) -> Result<KeywordCounts> {
        let keywords = vec![keyword.to_owned()];
        let wanted = WantedStatistics { keywords, needs_hits: true, ..WantedStatistics::default() };
        let counted = self.counted(&KeywordQuery::default(), &wanted, unless)?;
        Ok(counted.counts_of(keyword).unwrap_or_default())
    }

    /// The query with the table's statistics added to each keyword query in it.
    fn with_statistics(&self, text: TextQuery, unless: &InterruptCheck) -> Result<TextQuery> {
        let each = |parts: Vec<TextQuery>| -> Result<Vec<TextQuery>> {
            parts.into_iter().map(|part| self.with_statistics(part, unless)).collect()
        };
        Ok(match text {
            // If this table is itself a part of another, its statistics came with the query.
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

    /// The number of rows of a selection.
    pub(super) fn count(&self, selection: &Selection, unless: &InterruptCheck) -> Result<u64> {
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

    /// Reads columns and scores of the matching rows, in key order.
    pub(super) fn scan(
        self: &Arc<Self>,
        mut request: ScanRequest,
        unless: &InterruptCheck,
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

/// The number of rows of all parts.
fn rows_of(parts: &[Arc<dyn Part>]) -> Result<u64> {
    let mut all = 0_u64;
    for part in parts {
        let sum = all.checked_add(part.rows()).filter(|sum| *sum <= MAX_ROWS);
        all = sum.ok_or_else(|| lie(part.name(), "it claims more rows than possible"))?;
    }
    Ok(all)
}

/// The query with statistics.
fn with(asked: &KeywordQuery, statistics: &Arc<KeywordStatistics>) -> KeywordQuery {
    KeywordQuery { statistics: Some(Arc::clone(statistics)), ..asked.clone() }
}

/// The error for an impossible answer of a part.
fn lie(part: &str, what: &str) -> Error {
    Error::RemoteServer(format!("{part} gave a wrong answer: {what}"))
}
