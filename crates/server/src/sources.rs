//! The followed MySQL and MariaDB servers, behind one interface.

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

pub(crate) use report::state_text;

use crate::Result;

/// The most requests that wait for a position at a time; each blocks a thread.
const MAX_WAITING: usize = 128;
/// How often a waiting request checks its deadline and whether the server stops.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// A followed source, as the server uses it. All methods may be called from any thread.
pub(crate) trait Source: Send + Sync {
    /// Its status.
    fn status(&self) -> FollowerStatus;
    /// The status with unusable functional keys, which requires reading all tables' declarations.
    fn full_status(&self) -> FollowerStatus {
        self.status()
    }
    /// Stops following until [`Source::resume`]. Nothing is written any more on return.
    fn stop(&self) -> Result<(), remora_source::Error>;
    /// Requests a stop without waiting for it.
    fn request_stop(&self) -> Result<(), remora_source::Error>;
    /// Resumes from the applied position.
    fn resume(&self) -> Result<(), remora_source::Error>;
    /// Copies a table again beside the old one, and resumes following if it has stopped.
    fn sync(&self, table: &str) -> Result<(), remora_source::Error>;
    /// Cancels the copy of one table or of all; returns how many there were.
    fn cancel_sync(&self, table: Option<&str>) -> usize;
    /// Declares the ranked search of a table, by its local name; `None` removes it.
    fn declare_words(
        &self,
        table: &str,
        words: Option<DeclaredWords>,
    ) -> Result<(), remora_source::Error>;
    /// Waits until these transactions are visible; false after the timeout.
    fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> bool;
}

impl Source for Follower {
    fn status(&self) -> FollowerStatus {
        Follower::status(self)
    }

    fn full_status(&self) -> FollowerStatus {
        Follower::full_status(self)
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
pub struct FollowedSource {
    pub(crate) name: String,
    pub(crate) source: Box<dyn Source>,
}

/// Starts following each source, in order.
///
/// # Errors
/// [`crate::Error::Source`] for the first source that cannot be followed, as in [`Follower::start`]. Those started
/// before it stop again.
pub fn follow(database: &Database, settings: &[MysqlSettings]) -> Result<Vec<FollowedSource>> {
    let mut followed = Vec::with_capacity(settings.len());
    for settings in settings {
        let name = settings.name.clone();
        let source = Box::new(Follower::start(database.clone(), settings.clone())?);
        followed.push(FollowedSource { name, source });
    }
    Ok(followed)
}

/// The followed sources of a server.
#[derive(Default)]
pub(crate) struct Sources {
    followed: OnceLock<Vec<FollowedSource>>,
    waiting: AtomicUsize,
}

/// Why a wait ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFailure {
    /// The deadline passed.
    Timeout,
    /// Too many requests are waiting already.
    TooManyWaiting,
    /// The server is stopping.
    Stopping,
}

impl Sources {
    /// Sets the followed sources; once.
    pub(crate) fn set(&self, followed: Vec<FollowedSource>) {
        if self.followed.set(followed).is_err() {
            tracing::error!("the sources of a server can be set once only");
        }
    }

    /// All sources.
    pub(crate) fn all(&self) -> &[FollowedSource] {
        self.followed.get().map_or(&[], Vec::as_slice)
    }

    /// Whether there are no sources.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// The status of each source.
    pub(crate) fn statuses(&self) -> Vec<(&str, FollowerStatus)> {
        self.all().iter().map(|one| (one.name.as_str(), one.source.status())).collect()
    }

    /// The status of each source, with unusable functional keys.
    fn full_statuses(&self) -> Vec<(&str, FollowerStatus)> {
        self.all().iter().map(|one| (one.name.as_str(), one.source.full_status())).collect()
    }

    /// The source of a table, and the table's full name and state. Called by every statement that writes.
    pub(crate) fn source_of(&self, name: &str) -> Option<(&FollowedSource, String, TableState)> {
        let is_named = |table: &str| {
            table == name || table.split_once('.').is_some_and(|(_, bare)| bare == name)
        };
        self.all().iter().find_map(|one| {
            let tables = one.source.status().tables.into_iter();
            let mut found = tables.filter(|table| is_named(&table.table));
            found.next().map(|table| (one, table.table, table.state))
        })
    }

    /// The applied positions among the stored ones: `gtid`, or `name=gtid` for each of several sources.
    pub(crate) fn applied_text(&self, positions: &SourcePositions) -> String {
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
    ) -> Result<(), WaitFailure> {
        self.wait_for(None, gtids, timeout, is_stopping)
    }

    /// As [`Sources::wait`], for the source of this name only, if one is given.
    pub(crate) fn wait_for(
        &self,
        name: Option<&str>,
        gtids: &GtidSet,
        timeout: Duration,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<(), WaitFailure> {
        let place = Waiting { counter: &self.waiting };
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(WaitFailure::TooManyWaiting);
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
                return Err(WaitFailure::Timeout);
            }
            if is_stopping() {
                return Err(WaitFailure::Stopping);
            }
        }
    }

    /// Stops all sources at the same time.
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

/// A counted waiting request; uncounted when dropped.
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
