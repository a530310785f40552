//! Following: the stream applied, schema changes, and life with a source that comes and goes.
//!
//! There is one stream and one position, from the first start on: the GTID set that is stored in
//! the commit of the last transaction's rows. Copies ([`super::copy`]) enter at their places in the
//! stream, so that they need no position of their own, and so do schema changes.
//!
//! `life` decides what follows when a `session` ends; in a session the `applier` is the only one
//! that writes, and everyone else sends it messages through the `inbox`.

mod ahead;
mod applier;
mod batch;
mod cascades;
mod copies;
mod definitions;
mod doubt;
mod inbox;
mod life;
mod occurrences;
mod pace;
mod positions;
mod refusals;
mod row_hash;
mod rows;
mod session;
mod shared;
mod statement;
mod status;
mod step;
mod table;
mod tables;
mod whole_copies;

use std::{
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::Database;

pub(crate) use inbox::{Inbox, Message};
pub use status::{FollowerStatus, State, TableState, TableStatus};

use self::{
    positions::source_key,
    shared::{Shared, TableOrder, Wanted},
};
use super::{connection, gtid::GtidSet, requirements, settings::MysqlSettings};
use crate::{Error, Result};

/// A database kept equal to a MySQL or MariaDB. All methods may be called from any thread; dropping
/// it stops following, and another start goes on where it was.
pub struct Follower {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Follower {
    /// Checks the source and begins to follow, in threads of its own. Several followers, of
    /// several sources with different names in their settings, may feed one database.
    ///
    /// # Errors
    /// What is wrong with the source or the settings, with the mend. A source that was followed
    /// before may be unreachable: then it is tried again until it is there.
    pub fn start(database: Database, settings: MysqlSettings) -> Result<Self> {
        let begun = database.source_position(&source_key(&settings.name))?.is_some();
        let checked = connection::connect(&settings)
            .and_then(|mut source| requirements::check(&mut source, &settings));
        match checked {
            Err(Error::Unreachable { .. }) if begun => {}
            checked => checked?,
        }
        let shared = Arc::new(Shared::new(database, settings));
        let theirs = Arc::clone(&shared);
        let thread = Builder::new()
            .name("mysql-apply".to_owned())
            .spawn(move || life::run(&theirs))
            .map_err(|error| Error::io("a new thread", error))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// What it does, how far it is and what became of each table.
    pub fn status(&self) -> FollowerStatus {
        let settings = &self.shared.settings;
        let applied = self.shared.database.source_position(&settings.name);
        let mut status = FollowerStatus {
            source: settings.address(),
            server_uuid: String::new(),
            state: State::Connecting,
            applied: applied.ok().flatten().unwrap_or_default(),
            lag_seconds: None,
            lag_transactions: None,
            last_applied_at: None,
            events: 0,
            inserts: 0,
            updates: 0,
            deletes: 0,
            statements: 0,
            skipped_other_tables: 0,
            checksum_errors: 0,
            queue_length: self.shared.queue_length() as u64,
            last_error: None,
            tables: Vec::new(),
        };
        self.shared.board.fill(&mut status);
        status
    }

    /// Stops following until [`Follower::resume`]; what was read and is whole is applied first.
    pub fn stop(&self) -> Result<()> {
        self.want(Wanted::Stop)
    }

    /// Follows again, from the applied position.
    pub fn resume(&self) -> Result<()> {
        self.want(Wanted::Run)
    }

    /// Copies a table anew, beside what can be read of it; done when there is time for it.
    ///
    /// # Errors
    /// A setting error if the table is being copied, or if too many orders wait.
    pub fn sync(&self, table: &str) -> Result<()> {
        let copied = match self.shared.board.tables.lock().get(table) {
            Some(TableState::Copying { .. } | TableState::CatchingUp) => true,
            Some(_) | None => false,
        };
        if copied {
            return Err(Error::Setting(format!("table {table} is being copied already")));
        }
        match self.shared.order(TableOrder::Sync(table.to_owned())) {
            true => Ok(()),
            false => Err(Error::Setting("too many orders wait".to_owned())),
        }
    }

    /// Gives up the copy of a table, or of every table; how many are given up.
    pub fn cancel_sync(&self, table: Option<&str>) -> usize {
        let tables = self.shared.board.tables.lock();
        let wanted = |name: &String| table.is_none_or(|table| table == name);
        let copied = |(name, state): &(&String, &TableState)| {
            wanted(name) && matches!(state, TableState::Copying { .. } | TableState::CatchingUp)
        };
        let count = tables.iter().filter(copied).count();
        drop(tables);
        match count > 0 && self.shared.order(TableOrder::Cancel(table.map(str::to_owned))) {
            true => count,
            false => 0,
        }
    }

    /// Waits until these transactions are visible.
    ///
    /// # Errors
    /// [`remora_engine::Error::Busy`] if they are not in time.
    pub fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(timeout).unwrap_or_else(Instant::now);
        let reached = |text: &str| {
            GtidSet::parse_as(gtids.flavor(), text).is_ok_and(|applied| applied.covers(gtids))
        };
        let name = &self.shared.settings.name;
        if gtids.is_empty() {
            return Ok(());
        }
        Ok(self.shared.database.wait_for_source(name, deadline, &reached)?)
    }

    /// Stops following for good and waits until its threads have ended.
    pub fn close(self) {
        self.end();
    }

    fn want(&self, wanted: Wanted) -> Result<()> {
        if self.thread.lock().is_none() {
            return Err(Error::Cancelled);
        }
        self.shared.want(wanted);
        Ok(())
    }

    fn end(&self) {
        self.shared.want(Wanted::Close);
        let thread = self.thread.lock().take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            tracing::error!("the thread that follows {} panicked", self.shared.settings.address());
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}
