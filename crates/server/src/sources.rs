//! The MySQL and MariaDB servers that this one follows, behind one interface.

mod report;

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use remora_engine::{Database, SourcePositions};
use remora_source::{
    mysql::{Follower, FollowerStatus, State, TableState, gtid::GtidSet, settings::MysqlSettings},
    schema_file::DeclaredWords,
};

pub(crate) use report::shown_state;

use crate::Result;

/// Requests that may wait for a position at a time; each holds a thread.
const MAX_WAITING: usize = 128;
/// How often a request that waits looks at its deadline and whether the server stops.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// What the server asks of a source that it follows. All methods may be called from any thread.
pub(crate) trait Source: Send + Sync {
    /// What it says of itself.
    fn status(&self) -> FollowerStatus;
    /// The same with what is missing of keys, which is looked for in what every table declares.
    fn whole_status(&self) -> FollowerStatus {
        self.status()
    }
    /// Ends following until [`Source::resume`]; nothing is written any more on return.
    fn stop(&self) -> Result<(), remora_source::Error>;
    /// The same without waiting.
    fn request_stop(&self) -> Result<(), remora_source::Error>;
    /// Goes on from where it stood.
    fn resume(&self) -> Result<(), remora_source::Error>;
    /// Copies a table anew beside the old one, and follows if that has ended.
    fn sync(&self, table: &str) -> Result<(), remora_source::Error>;
    /// Ends one table's copy or all; how many there were.
    fn cancel_sync(&self, table: Option<&str>) -> usize;
    /// Declares the words of a table of its, by its name here; `None` takes them away.
    fn declare_words(
        &self,
        table: &str,
        words: Option<DeclaredWords>,
    ) -> Result<(), remora_source::Error>;
    /// Waits until these transactions are visible; whether they are.
    fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> bool;
}

impl Source for Follower {
    fn status(&self) -> FollowerStatus {
        Follower::status(self)
    }

    fn whole_status(&self) -> FollowerStatus {
        Follower::whole_status(self)
    }

    fn stop(&self) -> Result<(), remora_source::Error> {
        Follower::stop(self)
    }

    fn request_stop(&self) -> Result<(), remora_source::Error> {
        Follower::request_stop(self)
    }

    fn resume(&self) -> Result<(), remora_source::Error> {
        Follower::resume(self)
    }

    fn sync(&self, table: &str) -> Result<(), remora_source::Error> {
        Follower::sync(self, table)
    }

    fn cancel_sync(&self, table: Option<&str>) -> usize {
        Follower::cancel_sync(self, table)
    }

    fn declare_words(
        &self,
        table: &str,
        words: Option<DeclaredWords>,
    ) -> Result<(), remora_source::Error> {
        Follower::declare_words(self, table, words)
    }

    fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> bool {
        Follower::wait_for(self, gtids, timeout).is_ok()
    }
}

/// A source and the name under which its positions are stored.
pub struct Followed {
    pub(crate) name: String,
    pub(crate) source: Box<dyn Source>,
}

/// Begins to follow each source, in order.
///
/// # Errors
/// [`crate::Error::Source`] for the first source that cannot be followed, as in
/// [`Follower::start`]. Those before it, which had begun, stop again.
pub fn follow(database: &Database, settings: &[MysqlSettings]) -> Result<Vec<Followed>> {
    let mut followed = Vec::with_capacity(settings.len());
    for settings in settings {
        let name = settings.name.clone();
        let source = Box::new(Follower::start(database.clone(), settings.clone())?);
        followed.push(Followed { name, source });
    }
    Ok(followed)
}

/// The sources of a server.
#[derive(Default)]
pub(crate) struct Sources {
    followed: OnceLock<Vec<Followed>>,
    waiting: AtomicUsize,
}

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReached {
    /// The deadline passed.
    Late,
    /// Too many requests wait already.
    Crowded,
    /// The server stops.
    Stopping,
}

impl Sources {
    /// Takes over what is followed; once.
    pub(crate) fn set(&self, followed: Vec<Followed>) {
        if self.followed.set(followed).is_err() {
            tracing::error!("the sources of a server can be set once only");
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Followed] {
        self.followed.get().map_or(&[], Vec::as_slice)
    }

    /// Whether the server follows anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// What each says of itself.
    pub(crate) fn statuses(&self) -> Vec<(&str, FollowerStatus)> {
        self.all().iter().map(|one| (one.name.as_str(), one.source.status())).collect()
    }

    /// The same with what is missing of keys: where that is told.
    fn whole_statuses(&self) -> Vec<(&str, FollowerStatus)> {
        self.all().iter().map(|one| (one.name.as_str(), one.source.whole_status())).collect()
    }

    /// The source that a table comes from and its full name. Every statement that writes asks for it.
    pub(crate) fn source_of(&self, name: &str) -> Option<(&Followed, String, TableState)> {
        let is_named = |table: &str| {
            table == name || table.split_once('.').is_some_and(|(_, bare)| bare == name)
        };
        self.all().iter().find_map(|one| {
            let tables = one.source.status().tables.into_iter();
            let mut found = tables.filter(|table| is_named(&table.table));
            found.next().map(|table| (one, table.table, table.state))
        })
    }

    /// The applied positions among those that are stored: `gtid`, or with several sources
    /// `name=gtid` of each.
    pub(crate) fn shown(&self, positions: &SourcePositions) -> String {
        match self.all() {
            [] => String::new(),
            [one] => positions.get(&one.name).unwrap_or_default().to_owned(),
            all => {
                let shown = all.iter().map(|one| {
                    format!("{}={}", one.name, positions.get(&one.name).unwrap_or_default())
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Waits until one of the sources has applied these transactions.
    pub(crate) fn wait(
        &self,
        gtids: &GtidSet,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<(), NotReached> {
        self.wait_for(None, gtids, timeout, is_stopping)
    }

    /// As [`Sources::wait`], for the source of this name alone where there is a name.
    pub(crate) fn wait_for(
        &self,
        name: Option<&str>,
        gtids: &GtidSet,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<(), NotReached> {
        let place = Waiting { counter: &self.waiting };
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(NotReached::Crowded);
        }
        let deadline = Instant::now() + timeout;
        let step = WAIT_STEP / u32::try_from(self.all().len().max(1)).unwrap_or(1);
        loop {
            for one in self.all().iter().filter(|one| name.is_none_or(|name| one.name == name)) {
                let left = deadline.saturating_duration_since(Instant::now());
                if one.source.wait_for(gtids, left.min(step)) {
                    drop(place);
                    return Ok(());
                }
            }
            if Instant::now() >= deadline {
                return Err(NotReached::Late);
            }
            if is_stopping() {
                return Err(NotReached::Stopping);
            }
        }
    }

    /// Ends following, all sources at once.
    pub(crate) fn stop(&self) {
        for one in self.all() {
            if one.source.status().state != State::Stopped
                && let Err(error) = one.source.request_stop()
            {
                tracing::warn!("following {} did not end cleanly: {error}", one.name);
            }
        }
    }
}

/// A request that waits; no longer counted when dropped.
struct Waiting<'c> {
    counter: &'c AtomicUsize,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
