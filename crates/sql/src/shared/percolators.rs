//! The rules of percolate tables, ready for documents: parsed, and indexed by the rarest keyword that each requires.
//!
//! The rules of a table are kept until one of its rows changes. Then they are read again, and those that did not change
//! are not parsed again.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{DocumentBatch, StoredQuery, TableVersion};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most bytes of the rules of all tables, about.
pub(crate) const MAX_RULES_BYTES: usize = 256 << 20;
/// What a rule takes besides its texts, and what a byte of its query takes when it is parsed, at most about: a word of
/// one letter takes 200 bytes.
const RULE_BYTES: usize = 512;
const PARSED_BYTES: usize = 100;

/// A row of a percolate table.
pub(crate) struct Rule {
    /// Its number.
    pub id: u64,
    /// The text of its query.
    pub query: String,
    /// Its labels.
    pub tags: String,
    /// The condition of the document's attributes, which may be empty.
    pub filters: String,
    /// The query, parsed.
    pub stored: StoredQuery,
}

impl Rule {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        rule_bytes(&self.query, &self.tags, &self.filters)
    }
}

/// What a rule of these texts takes in memory, about.
pub(crate) fn rule_bytes(query: &str, tags: &str, filters: &str) -> usize {
    RULE_BYTES + query.len() * PARSED_BYTES + tags.len() + filters.len()
}

/// The rules of a table.
pub(crate) struct Rules {
    /// The rows that they are of.
    pub version: TableVersion,
    /// By ascending numbers.
    pub rules: Vec<Arc<Rule>>,
    /// The places of rules by a keyword, which a document has for one of them at least to match.
    by_keyword: FxHashMap<String, Vec<u32>>,
    /// The places of rules that may match a document of any keywords.
    always: Vec<u32>,
    bytes: usize,
}

impl Rules {
    /// Indexes rules.
    pub(crate) fn new(version: TableVersion, rules: Vec<Arc<Rule>>) -> Self {
        let mut counts: FxHashMap<&str, u32> = FxHashMap::default();
        for keyword in rules.iter().flat_map(|rule| rule.stored.required()).flatten() {
            *counts.entry(keyword).or_default() += 1;
        }
        let mut by_keyword: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let mut always = Vec::new();
        for (place, rule) in (0_u32..).zip(&rules) {
            // What few rules ask for is taken for rare; of two such the longer one.
            let cost = |group: &&Vec<String>| {
                let rules: u32 = group.iter().filter_map(|it| counts.get(it.as_str())).sum();
                let length: usize = group.iter().map(String::len).sum();
                (rules, usize::MAX - length)
            };
            match rule.stored.required().iter().min_by_key(cost) {
                None => always.push(place),
                Some(group) => {
                    for keyword in group {
                        by_keyword.entry(keyword.clone()).or_default().push(place);
                    }
                }
            }
        }
        let bytes = rules.iter().map(|rule| rule.bytes()).sum();
        Self { version, rules, by_keyword, always, bytes }
    }

    /// The rules that may match one of the documents, by ascending numbers: each other one lacks a keyword in all of
    /// them.
    pub(crate) fn candidates(&self, batch: &DocumentBatch) -> Vec<&Arc<Rule>> {
        let mut places: FxHashSet<u32> = self.always.iter().copied().collect();
        batch.for_each_keyword(&mut |keyword| {
            places.extend(self.by_keyword.get(keyword).into_iter().flatten());
        });
        let mut places: Vec<u32> = places.into_iter().collect();
        places.sort_unstable();
        let rules = places.into_iter().filter_map(|place| self.rules.get(place as usize));
        let may_match = |rule: &&Arc<Rule>| {
            let mut groups = rule.stored.required().iter();
            groups.all(|group| group.iter().any(|keyword| batch.has_keyword(keyword)))
        };
        rules.filter(may_match).collect()
    }

    /// How many rules are looked for by a keyword.
    pub(crate) fn by_keyword_count(&self) -> usize {
        self.rules.len() - self.always.len()
    }
}

/// The rules of all tables that were asked for lately.
#[derive(Default)]
pub(crate) struct Percolators {
    /// By the engine's names of their tables; the one that was used last is the last.
    tables: Mutex<Vec<(String, Arc<Rules>)>>,
}

impl Percolators {
    /// The rules of a table as they were read last, whatever has changed since.
    pub(crate) fn get(&self, table: &str) -> Option<Arc<Rules>> {
        let mut tables = self.tables.lock();
        let place = tables.iter().position(|(name, _)| name == table)?;
        let found = tables.remove(place);
        let rules = Arc::clone(&found.1);
        tables.push(found);
        Some(rules)
    }

    /// Keeps rules; those that were not used for the longest time go where there are too many.
    pub(crate) fn put(&self, table: &str, rules: &Arc<Rules>) {
        let mut tables = self.tables.lock();
        tables.retain(|(name, _)| name != table);
        tables.push((table.to_owned(), Arc::clone(rules)));
        let mut bytes: usize = tables.iter().map(|(_, rules)| rules.bytes).sum();
        while bytes > MAX_RULES_BYTES && tables.len() > 1 {
            let (_, gone) = tables.remove(0);
            bytes -= gone.bytes;
        }
    }
}
