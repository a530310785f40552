//! Usage counters of a table's indexes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use remora_index::segment::IndexSpec;

use crate::{FoundBy, IndexAnswers, IndexUsage, Schema, TableIndex, indexing::placed_specs};

/// The counters of a table's indexes under one definition. An index that the next definition has too keeps its
/// counters.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters {
    key: Arc<Counters>,
    /// The counters of secondary indexes, by position in the definition.
    secondary: Vec<Option<(IndexSpec, Arc<Counters>)>>,
    /// The counters of text indexes, by number.
    texts: Vec<(u32, Arc<Counters>)>,
}

#[derive(Debug, Default)]
struct Counters {
    lookups: AtomicU64,
    equalities: AtomicU64,
    ranges: AtomicU64,
    orders: AtomicU64,
    searches: AtomicU64,
}

impl Counters {
    fn read(&self) -> IndexAnswers {
        IndexAnswers {
            lookups: self.lookups.load(Relaxed),
            equalities: self.equalities.load(Relaxed),
            ranges: self.ranges.load(Relaxed),
            orders: self.orders.load(Relaxed),
            searches: self.searches.load(Relaxed),
        }
    }
}

impl UsageCounters {
    /// The counters of a definition that replaces another.
    pub fn of(schema: &Schema, before: Option<&Self>) -> Self {
        let known = |spec: &IndexSpec| {
            let mut all = before?.secondary.iter().flatten();
            all.find(|(other, _)| other == spec).map(|(_, counters)| Arc::clone(counters))
        };
        let mut secondary = vec![None; schema.indexes.len()];
        for (index, spec) in placed_specs(schema) {
            if let TableIndex::Secondary(place) = index
                && let Some(counted) = secondary.get_mut(place)
            {
                let counters = known(&spec).unwrap_or_default();
                *counted = Some((spec, counters));
            }
        }
        let searched = |id: u32| {
            let mut all = before?.texts.iter();
            all.find(|(other, _)| *other == id).map(|(_, counters)| Arc::clone(counters))
        };
        let texts =
            schema.texts.iter().map(|text| (text.id, searched(text.id).unwrap_or_default()));
        let key = before.map(|before| Arc::clone(&before.key)).unwrap_or_default();
        Self { key, secondary, texts: texts.collect() }
    }

    /// The values of the counters.
    pub fn read(&self) -> IndexUsage {
        let counted = |it: &Option<(IndexSpec, Arc<Counters>)>| match it {
            Some((_, counters)) => counters.read(),
            None => IndexAnswers::default(),
        };
        IndexUsage {
            key: self.key.read(),
            secondary: self.secondary.iter().map(counted).collect(),
            texts: self.texts.iter().map(|(_, counters)| counters.read()).collect(),
        }
    }

    fn counters(&self, index: TableIndex) -> Option<&Counters> {
        match index {
            TableIndex::Key => Some(&self.key),
            TableIndex::Secondary(place) => {
                self.secondary.get(place)?.as_ref().map(|(_, counters)| &**counters)
            }
        }
    }

    /// Counts a look-up of rows by full key.
    #[inline]
    pub fn looked_up(&self) {
        self.key.lookups.fetch_add(1, Relaxed);
    }

    /// Counts the indexes that found the rows of a condition.
    #[inline]
    pub fn found(&self, by: &[FoundBy]) {
        for found_by in by {
            if let Some(counters) = self.counters(found_by.index) {
                let counter =
                    if found_by.is_bounded { &counters.ranges } else { &counters.equalities };
                counter.fetch_add(1, Relaxed);
            }
        }
    }

    /// Counts a scan in the order of an index.
    #[inline]
    pub fn ordered(&self, by: TableIndex) {
        if let Some(counters) = self.counters(by) {
            counters.orders.fetch_add(1, Relaxed);
        }
    }

    /// Counts a search of the text index at this position of the definition.
    #[inline]
    pub fn searched(&self, place: usize) {
        if let Some((_, counters)) = self.texts.get(place) {
            counters.searches.fetch_add(1, Relaxed);
        }
    }
}
