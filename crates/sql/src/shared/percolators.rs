//! The rules of percolate tables, parsed and indexed by the rarest keyword that each requires.
//!
//! The rules of a table are cached until one of its rows changes. They are then read again, but
//! those that did not change are not parsed again.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{DocumentBatch, StoredQuery, TableVersion};
use rustc_hash::{FxHashMap, FxHashSet};

/// The approximate most bytes of the cached rules of all tables.
pub(crate) const MAX_RULES_BYTES: usize = 256 << 20;
/// The memory of a rule besides its texts, and of each byte of its query when it is parsed, both as
/// upper estimates: a word of one letter takes 200 bytes.
const RULE_BYTES: usize = 512;
const PARSED_BYTES: usize = 100;

/// A row of a percolate table.
pub(crate) struct Rule {
    pub id: u64,
    /// The query's text.
    pub query: String,
    /// The labels.
    pub tags: String,
    /// The condition on the document's attributes; may be empty.
    pub filters: String,
    /// The parsed query.
    pub stored: StoredQuery,
}

impl Rule {
    /// The rule's approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        rule_bytes(&self.query, &self.tags, &self.filters)
    }
}

/// The approximate memory of a rule with these texts, in bytes.
pub(crate) fn rule_bytes(query: &str, tags: &str, filters: &str) -> usize {
    RULE_BYTES + query.len() * PARSED_BYTES + tags.len() + filters.len()
}

/// The rules of a table.
pub(crate) struct Rules {
    /// The version of the table that the rules were read from.
    pub version: TableVersion,
    /// Sorted by id.
    pub rules: Vec<Arc<Rule>>,
    /// Indexes of rules by keyword. A document can match such a rule only if it has one of the
    /// keywords that list it.
    by_keyword: FxHashMap<String, Vec<u32>>,
    /// Indexes of rules that can match a document whatever its keywords.
    always: Vec<u32>,
    bytes: usize,
}

impl Rules {
    pub(crate) fn new(version: TableVersion, rules: Vec<Arc<Rule>>) -> Self {
        let mut counts: FxHashMap<&str, u32> = FxHashMap::default();
        for keyword in rules.iter().flat_map(|rule| rule.stored.required()).flatten() {
            *counts.entry(keyword).or_default() += 1;
        }
        let mut by_keyword: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let mut always = Vec::new();
        for (place, rule) in (0_u32..).zip(&rules) {
            // Prefers the keywords that the fewest rules require, which are taken to be rare; among
            // equals, the longest.
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

    /// The rules that may match one of the documents, sorted by id. Every other rule requires a
    /// keyword that no document has.
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

    /// The rule with an id.
    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Rule>> {
        let place = self.rules.binary_search_by_key(&id, |rule| rule.id).ok()?;
        self.rules.get(place)
    }

    /// The approximate memory of the rules, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn by_keyword_count(&self) -> usize {
        self.rules.len() - self.always.len()
    }
}

/// The rules that a session sees: those of its snapshot, and those that its transaction has changed.
pub(crate) struct VisibleRules {
    committed: Arc<Rules>,
    own: Option<Rules>,
    /// The ids of the rules that the transaction has changed or deleted.
    changed: FxHashSet<u64>,
}

impl VisibleRules {
    /// Without changes.
    pub(crate) fn committed(committed: Arc<Rules>) -> Self {
        Self { committed, own: None, changed: FxHashSet::default() }
    }

    /// With changed rules: `own` instead of those with the ids `changed`.
    pub(crate) fn new(committed: Arc<Rules>, own: Rules, changed: FxHashSet<u64>) -> Self {
        Self { committed, own: Some(own), changed }
    }

    /// The rules that may match one of the documents, sorted by id. Every other rule requires a keyword that no
    /// document has.
    pub(crate) fn candidates(&self, batch: &DocumentBatch) -> Vec<&Arc<Rule>> {
        let mut found = self.committed.candidates(batch);
        let Some(own) = &self.own else { return found };
        found.retain(|rule| !self.changed.contains(&rule.id));
        found.extend(own.candidates(batch));
        found.sort_unstable_by_key(|rule| rule.id);
        found
    }

    /// The number of rules.
    pub(crate) fn len(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.rules.len());
        self.committed.rules.len() - self.replaced().count() + own
    }

    /// How many rules are indexed by a keyword.
    pub(crate) fn by_keyword_count(&self) -> usize {
        let own = self.own.as_ref().map_or(0, Rules::by_keyword_count);
        let replaced = self.replaced().filter(|rule| !rule.stored.required().is_empty());
        self.committed.by_keyword_count() - replaced.count() + own
    }

    /// The rules of the snapshot that the transaction has changed or deleted.
    fn replaced(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.changed.iter().filter_map(|id| self.committed.get(*id))
    }
}

/// The cached rules of tables that were used lately.
#[derive(Default)]
pub(crate) struct Percolators {
    /// By the engine's table names, least recently used first.
    tables: Mutex<Vec<(String, Arc<Rules>)>>,
}

impl Percolators {
    /// The rules of a table as they were last read. They may be out of date: compare the version.
    pub(crate) fn get(&self, table: &str) -> Option<Arc<Rules>> {
        let mut tables = self.tables.lock();
        let place = tables.iter().position(|(name, _)| name == table)?;
        let found = tables.remove(place);
        let rules = Arc::clone(&found.1);
        tables.push(found);
        Some(rules)
    }

    /// Stores rules. If all exceed [`MAX_RULES_BYTES`], the least recently used are dropped.
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
