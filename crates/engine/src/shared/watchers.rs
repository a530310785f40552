//! The registered watchers, for which the writer keeps the feed.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;

use crate::{
    Position, SourcePositions,
    storage::feed::{Registration, WATCH_POSITION},
};

/// All watchers of an open database.
#[derive(Default)]
pub(crate) struct Watchers(RwLock<Vec<Arc<Watcher>>>);

/// A watcher.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// The name under which it is stored. A watcher without one is removed when it is dropped.
    pub name: Option<String>,
    /// The tables it watches; `None` for all.
    pub tables: Option<BTreeSet<String>>,
    /// The feed has this watcher's changes after this batch.
    pub since: Position,
    /// The position of a watcher without a name.
    pub passed: AtomicU64,
    /// Whether it is being read.
    pub is_open: AtomicBool,
}

impl Watcher {
    /// A watcher whose changes begin after the batch `since`.
    pub fn new(name: Option<String>, tables: Option<Vec<String>>, since: Position) -> Self {
        Self {
            name,
            tables: tables.map(|tables| tables.into_iter().collect()),
            since,
            passed: AtomicU64::new(since.0),
            is_open: AtomicBool::new(false),
        }
    }

    /// A stored watcher.
    pub fn stored(name: String, registration: Registration) -> Self {
        Self::new(Some(name), registration.tables, Position(registration.since))
    }

    /// Whether it watches this table. Hidden tables are never watched.
    pub fn wants(&self, table: &str) -> bool {
        !table.starts_with('#') && self.tables.as_ref().is_none_or(|tables| tables.contains(table))
    }

    /// The position up to which it needs no changes any more.
    pub fn passed(&self, sources: &SourcePositions) -> Position {
        let stored = match &self.name {
            None => Some(self.passed.load(Ordering::Acquire)),
            Some(name) => sources
                .get(&format!("{WATCH_POSITION}{name}"))
                .and_then(|position| position.parse().ok()),
        };
        Position(stored.unwrap_or(self.since.0)).max(self.since)
    }
}

impl Watchers {
    /// The stored watchers.
    pub fn stored(registrations: Vec<(String, Registration)>) -> Self {
        let watchers = registrations.into_iter();
        let watchers = watchers.map(|(name, one)| Arc::new(Watcher::stored(name, one)));
        Self(RwLock::new(watchers.collect()))
    }

    /// Adds a watcher.
    pub fn add(&self, watcher: &Arc<Watcher>) {
        self.0.write().push(Arc::clone(watcher));
    }

    /// Removes a watcher.
    pub fn remove(&self, watcher: &Watcher) {
        self.0.write().retain(|one| !std::ptr::eq(&**one, watcher));
    }

    /// The watcher of this name.
    pub fn named(&self, name: &str) -> Option<Arc<Watcher>> {
        self.0.read().iter().find(|one| one.name.as_deref() == Some(name)).cloned()
    }

    /// The named watchers, by name.
    pub fn all_named(&self) -> Vec<Arc<Watcher>> {
        let mut named: Vec<_> =
            self.0.read().iter().filter(|one| one.name.is_some()).cloned().collect();
        named.sort_by(|one, other| one.name.cmp(&other.name));
        named
    }

    /// Whether some watcher watches this table.
    pub fn want(&self, table: &str) -> bool {
        self.0.read().iter().any(|one| one.wants(table))
    }

    /// The position up to which no watcher needs changes any more; `None` if there are no watchers.
    pub fn passed(&self, sources: &SourcePositions) -> Option<Position> {
        self.0.read().iter().map(|one| one.passed(sources)).min()
    }
}
