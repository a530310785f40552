//! Statistics of keywords over a whole table. A keyword query is planned with them if the rows are
//! spread over several tables or servers.
//!
//! All are sums over rows, so a table's statistics are the sums of its parts', however it is divided.

use std::collections::BTreeMap;

use remora_words::matching::Counts;
use serde::{Deserialize, Serialize};

use crate::{Error, RequestPart};

/// The number of rows, and of occurrences in them.
type Pair = (u64, u64);

/// Statistics of a table for one query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordStatistics {
    /// The number of rows.
    pub documents: u64,
    /// For each keyword the number of rows that contain it, and of occurrences if that was requested.
    pub counts: BTreeMap<String, (u64, u64)>,
    /// The keywords that each wildcard expands to, in order, with both counts.
    pub expansions: BTreeMap<String, Vec<(String, u64, u64)>>,
    /// For each set of keywords the number of rows that contain any of them, in the order in which planning asks for
    /// the sets.
    pub unions: Vec<u64>,
    /// The total length in keywords of each field, for ranking expressions.
    pub totals: Option<Vec<u64>>,
}

/// The most sets of keywords that planning asks for: several for each word of the query.
pub(crate) const MAX_UNIONS: usize = 65_536;

/// The most wildcards in one request.
pub const MAX_PATTERNS: usize = 64;
/// The most keywords, and the most bytes of them, that these expand to in a table with parts on
/// other servers.
pub(crate) const MAX_EXPANDED: usize = 32_768;
pub(crate) const MAX_EXPANDED_BYTES: usize = 2 << 20;

/// The error if a wildcard expands to too many keywords.
pub(crate) fn too_many_expanded() -> Error {
    let message = format!(
        "the words with wildcards match more than {MAX_EXPANDED} keywords, or \
         {MAX_EXPANDED_BYTES} bytes of keywords, in a table with rows on other servers: give \
         more letters of these words"
    );
    Error::request(RequestPart::Expression, message)
}

/// The statistics requested from the parts of a table, besides their number of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedStatistics {
    /// The keywords whose counts are requested.
    pub keywords: Vec<String>,
    /// The words with wildcards to expand.
    pub patterns: Vec<String>,
    /// The number of further sets, after those already known.
    pub unions: usize,
    /// Whether the field lengths are requested.
    pub totals: bool,
    /// Whether occurrences are requested, which means reading every posting.
    pub needs_hits: bool,
}

impl WantedStatistics {
    /// Whether nothing is requested.
    pub fn is_nothing(&self) -> bool {
        self.keywords.is_empty() && self.patterns.is_empty() && self.unions == 0 && !self.totals
    }
}

impl KeywordStatistics {
    /// The counts of a keyword.
    pub(crate) fn counts_of(&self, keyword: &str) -> Option<Counts> {
        let &(documents, hits) = self.counts.get(keyword)?;
        Some(Counts { documents, hits })
    }

    /// Adds the answer of a part with `rows` rows and `fields` fields. If the answer is impossible, returns what is
    /// wrong with it.
    pub(crate) fn add(
        &mut self,
        answer: &Self,
        wanted: &WantedStatistics,
        rows: u64,
        fields: usize,
    ) -> std::result::Result<(), &'static str> {
        let totals = answer.totals.as_ref();
        if answer.counts.len() != wanted.keywords.len()
            || answer.expansions.len() != wanted.patterns.len()
            || answer.unions.len() != wanted.unions
            || totals.map(Vec::len) != wanted.totals.then_some(fields)
        {
            return Err("its counts are not the ones asked for");
        }
        for keyword in &wanted.keywords {
            let counted = answer.counts.get(keyword).ok_or("it left out a keyword")?;
            let is_right = possible(*counted, rows) || (!wanted.needs_hits && counted.0 <= rows);
            let all = self.counts.entry(keyword.clone()).or_default();
            *all = is_right.then(|| sum(*all, *counted)).flatten().ok_or(IMPOSSIBLE)?;
        }
        for pattern in &wanted.patterns {
            let found =
                answer.expansions.get(pattern).ok_or("it left out a word with a wildcard")?;
            if !found.is_sorted_by(|a, b| a.0 < b.0) {
                return Err("its keywords are not sorted");
            }
            let known = self.expansions.remove(pattern).unwrap_or_default();
            let known = known.into_iter().map(|(word, documents, hits)| (word, (documents, hits)));
            let mut known: BTreeMap<String, Pair> = known.collect();
            for (keyword, documents, hits) in found {
                let counted = (*documents, *hits);
                let all = known.entry(keyword.clone()).or_default();
                let is_right = possible(counted, rows) && *documents > 0;
                *all = is_right.then(|| sum(*all, counted)).flatten().ok_or(IMPOSSIBLE)?;
            }
            let all = known.into_iter().map(|(word, (documents, hits))| (word, documents, hits));
            self.expansions.insert(pattern.clone(), all.collect());
        }
        let totals_of = |all: &Self| all.totals.clone().unwrap_or_else(|| vec![0; fields]);
        if wanted.totals {
            let added = totals_of(self).into_iter().zip(totals_of(answer));
            let added: Option<Vec<u64>> = added.map(|(a, b)| a.checked_add(b)).collect();
            self.totals = Some(added.ok_or(IMPOSSIBLE)?);
        }
        self.unions.resize(wanted.unions, 0);
        for (all, counted) in self.unions.iter_mut().zip(&answer.unions) {
            let added = all.checked_add(*counted).filter(|_| *counted <= rows);
            *all = added.ok_or(IMPOSSIBLE)?;
        }
        Ok(())
    }

    /// Adds the summed answers of all parts to the known statistics.
    pub(crate) fn learn(&mut self, answered: Self) {
        self.counts.extend(answered.counts);
        self.expansions.extend(answered.expansions);
        self.unions.extend(answered.unions);
        if answered.totals.is_some() {
            self.totals = answered.totals;
        }
    }
}

const IMPOSSIBLE: &str = "it sent impossible counts";

/// Whether these counts are possible for a keyword in a table of `rows` rows.
fn possible((documents, hits): Pair, rows: u64) -> bool {
    documents <= rows && hits >= documents && (documents > 0 || hits == 0)
}

fn sum(a: Pair, b: Pair) -> Option<Pair> {
    Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
}
