//! Statistics of keywords over a whole table, by which a keyword query is planned when the rows lie in several places.
//!
//! All are sums over rows, so a table's statistics are the sums of its parts', however it is divided.

use std::collections::BTreeMap;

use remora_words::matching::Counts;
use serde::{Deserialize, Serialize};

use crate::{Error, RequestPart};

/// Rows, and occurrences in them.
type Pair = (u64, u64);

/// What is known of a table for one query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordStatistics {
    /// Rows.
    pub documents: u64,
    /// In how many rows each keyword stands, and how often if that was asked.
    pub counts: BTreeMap<String, (u64, u64)>,
    /// The keywords that each word with wildcards stands for, in order, with both numbers.
    pub expansions: BTreeMap<String, Vec<(String, u64, u64)>>,
    /// In how many rows any keyword of a set stands: of the sets that planning the query asks for, in its order.
    pub unions: Vec<u64>,
    /// The keywords of each field in all rows, for ranking expressions.
    pub totals: Option<Vec<u64>>,
}

/// Most sets of keywords that planning a query asks for: several for each of its words.
pub(crate) const MAX_UNIONS: usize = 65_536;

/// Most words with wildcards that are asked for at a time.
pub const MAX_PATTERNS: usize = 64;
/// Most keywords that those stand for, in a table with parts in other servers, and bytes of them.
pub(crate) const MAX_EXPANDED: usize = 32_768;
pub(crate) const MAX_EXPANDED_BYTES: usize = 2 << 20;

/// The error for more.
pub(crate) fn too_many_expanded() -> Error {
    let message = format!(
        "words with wildcards stand for more than {MAX_EXPANDED} keywords, or {MAX_EXPANDED_BYTES} bytes of them, of a table \
         with rows in other servers: write more letters of them"
    );
    Error::request(RequestPart::Expression, message)
}

/// What is asked of the parts of a table, beside their number of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedStatistics {
    /// Keywords.
    pub keywords: Vec<String>,
    /// Words with wildcards.
    pub patterns: Vec<String>,
    /// How many sets behind those that are known.
    pub unions: usize,
    /// Whether the keywords of fields are.
    pub totals: bool,
    /// Whether it is asked how often keywords stand in rows, which costs a look at all of those.
    pub needs_hits: bool,
}

impl WantedStatistics {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        self.keywords.is_empty() && self.patterns.is_empty() && self.unions == 0 && !self.totals
    }
}

impl KeywordStatistics {
    /// The numbers of a keyword.
    pub(crate) fn counts_of(&self, keyword: &str) -> Option<Counts> {
        let &(documents, hits) = self.counts.get(keyword)?;
        Some(Counts { documents, hits })
    }

    /// Adds what a part of so many rows answered; what is wrong with that otherwise. `fields` is how many there are.
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
            return Err("it counted something else than what it was asked");
        }
        for keyword in &wanted.keywords {
            let counted = answer.counts.get(keyword).ok_or("it left out a keyword")?;
            let is_right = possible(*counted, rows) || (!wanted.needs_hits && counted.0 <= rows);
            let all = self.counts.entry(keyword.clone()).or_default();
            *all = is_right.then(|| sum(*all, *counted)).flatten().ok_or(IMPOSSIBLE)?;
        }
        for pattern in &wanted.patterns {
            let found = answer.expansions.get(pattern).ok_or("it left out a word")?;
            if !found.is_sorted_by(|a, b| a.0 < b.0) {
                return Err("it gave keywords that are not in order");
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

    /// Adds to what is known of a table what all of its parts together answered.
    pub(crate) fn learn(&mut self, answered: Self) {
        self.counts.extend(answered.counts);
        self.expansions.extend(answered.expansions);
        self.unions.extend(answered.unions);
        if answered.totals.is_some() {
            self.totals = answered.totals;
        }
    }
}

const IMPOSSIBLE: &str = "it counted what cannot be";

/// Whether a keyword can stand in so many of the rows, so often.
fn possible((documents, hits): Pair, rows: u64) -> bool {
    documents <= rows && hits >= documents && (documents > 0 || hits == 0)
}

fn sum(a: Pair, b: Pair) -> Option<Pair> {
    Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
}
