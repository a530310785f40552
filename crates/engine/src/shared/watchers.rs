//! The registered watchers, for whom the writer keeps the feed.

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

/// One of them.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// The name by which it is stored; one without is forgotten when it is dropped.
    pub name: Option<String>,
    /// Of which tables it is told; `None`: of all.
    pub tables: Option<BTreeSet<String>>,
    /// Since which batch the feed has what it is told.
    pub since: Position,
    /// How far one without a name has come.
    pub passed: AtomicU64,
    /// Whether somebody reads for it.
    pub is_open: AtomicBool,
}

impl Watcher {
    /// One that begins behind the batch `since`.
    pub fn new(name: Option<String>, tables: Option<Vec<String>>, since: Position) -> Self {
        Self {
            name,
            tables: tables.map(|tables| tables.into_iter().collect()),
            since,
            passed: AtomicU64::new(since.0),
            is_open: AtomicBool::new(false),
        }
    }

    /// One that is stored.
    pub fn stored(name: String, registration: Registration) -> Self {
        Self::new(Some(name), registration.tables, Position(registration.since))
    }

    /// Whether it is told of this table. Nobody is told of hidden ones.
    pub fn wants(&self, table: &str) -> bool {
        !table.starts_with('#') && self.tables.as_ref().is_none_or(|tables| tables.contains(table))
    }

    /// Up to where it needs nothing any more.
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
    /// Those that are stored.
    pub fn stored(registrations: Vec<(String, Registration)>) -> Self {
        let watchers = registrations.into_iter();
        let watchers = watchers.map(|(name, one)| Arc::new(Watcher::stored(name, one)));
        Self(RwLock::new(watchers.collect()))
    }

    /// Adds one.
    pub fn add(&self, watcher: &Arc<Watcher>) {
        self.0.write().push(Arc::clone(watcher));
    }

    /// Takes one away.
    pub fn remove(&self, watcher: &Watcher) {
        self.0.write().retain(|one| !std::ptr::eq(&**one, watcher));
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<Arc<Watcher>> {
        self.0.read().iter().find(|one| one.name.as_deref() == Some(name)).cloned()
    }

    /// Those that have a name, by it.
    pub fn all_named(&self) -> Vec<Arc<Watcher>> {
        let mut named: Vec<_> =
            self.0.read().iter().filter(|one| one.name.is_some()).cloned().collect();
        named.sort_by(|one, other| one.name.cmp(&other.name));
        named
    }

    /// Whether somebody is told of this table.
    pub fn want(&self, table: &str) -> bool {
        self.0.read().iter().any(|one| one.wants(table))
    }

    /// Up to where nobody needs anything any more; `None` if there is nobody.
    pub fn passed(&self, sources: &SourcePositions) -> Option<Position> {
        self.0.read().iter().map(|one| one.passed(sources)).min()
    }
}
