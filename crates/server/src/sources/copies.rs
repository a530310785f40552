//! Copies of tables: when each began and how long it took, as seen from outside.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_source::mysql::{TableState, TableStatus};

/// The copies that were seen since the start, by table.
#[derive(Default)]
pub(super) struct Copies {
    seen: Mutex<BTreeMap<String, Copy>>,
}

struct Copy {
    begun: Instant,
    /// How long it took; `None` while it runs.
    took: Option<Duration>,
}

impl Copies {
    /// Looks at the tables; what changes between two looks is missed.
    pub(super) fn observe<'t>(&self, tables: impl Iterator<Item = &'t TableStatus>) {
        let mut seen = self.seen.lock();
        for TableStatus { table, state } in tables {
            let copies = matches!(state, TableState::Copying { .. } | TableState::CatchingUp);
            match seen.get_mut(table) {
                Some(copy) if copies && copy.took.is_some() => *copy = Copy::begin(),
                Some(copy) if !copies && copy.took.is_none() => {
                    copy.took = Some(copy.begun.elapsed());
                }
                None if copies => _ = seen.insert(table.clone(), Copy::begin()),
                _ => {}
            }
        }
    }

    /// How long the last copy of a table took, if one ended.
    pub(super) fn took(&self, table: &str) -> Option<Duration> {
        self.seen.lock().get(table).and_then(|copy| copy.took)
    }
}

impl Copy {
    fn begin() -> Self {
        Self { begun: Instant::now(), took: None }
    }
}
