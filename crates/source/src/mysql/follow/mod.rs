//! Following: applies the stream and schema changes, and handles sources that come and go.
//!
//! There is one stream and one position, from the first start on: the GTID set stored in the commit of the last
//! transaction's rows. Copies ([`super::copy`]) and schema changes enter at their places in the stream, so they need no
//! position of their own.
//!
//! `supervisor` decides what follows when a `session` ends. In a session only the `applier` writes; all other threads send it
//! messages through the inbox ([`super::inbox`]).

mod applier;
mod batch;
mod cascades;
mod copies;
mod definition_commit;
mod definitions;
mod hidden_renames;
mod history_loss;
mod merged;
mod occurrences;
mod pace;
mod parents;
mod positions;
mod received;
mod references;
mod referencing_rows;
mod refusals;
mod row_hash;
mod row_outcome;
mod rows;
mod session;
mod shared;
mod status;
mod supervisor;
mod table;
mod tables;
mod temporary;
mod uncertainty;
mod unknown_keys;
mod views;
mod whole_copies;
mod words;

use std::{
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::Database;

pub use positions::{followed_server, followed_tables};
pub use status::{Copied, FollowerStatus, State, TableState, TableStatus};
pub use supervisor::SCHEMA_INCOMPATIBLE;

use self::{
    positions::source_key,
    shared::{FollowState, RequestedState, TableRequest},
    status::copying,
};
use super::{connection, gtid::GtidSet, requirements, settings::MysqlSettings, statement};
use crate::{Error, Result, schema_file::DeclaredWords};

/// The most time that stopping may take: as long as a source may take to answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A database that is kept equal to a MySQL or MariaDB. All methods may be called from any thread. Dropping it stops
/// following, and a later start continues from there.
pub struct Follower {
    shared: Arc<FollowState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Checks the source and the settings. A configured definition that does not match a table that is already followed
/// only stops that table.
fn check(database: &Database, settings: &MysqlSettings, is_started: bool) -> Result<()> {
    let mut source = connection::connect(settings)?;
    match is_started {
        true => requirements::check_again(&mut source, settings)?,
        false => requirements::check(&mut source, settings)?,
    }
    requirements::check_tables(
        &mut source,
        settings,
        &tables::followed_before(database, settings),
    )?;
    if is_started {
        return Ok(());
    }
    tables::check_definitions(&mut source, settings)?;
    words::check_declared(&mut source, settings)
}

impl Follower {
    /// Checks the source and begins to follow, in threads of its own. Several followers of sources with different names
    /// may feed one database.
    ///
    /// # Errors
    /// What is wrong with the source or the settings, with advice. A source that was followed before may be
    /// unreachable: then it is tried until it answers.
    pub fn start(database: Database, settings: MysqlSettings) -> Result<Self> {
        let is_started = database.source_position(&source_key(&settings.name))?.is_some();
        match check(&database, &settings, is_started) {
            Err(Error::Unreachable { .. }) if is_started => {}
            checked => checked?,
        }
        let shared = Arc::new(FollowState::new(database, settings));
        tables::publish_stored_states(&shared);
        let theirs = Arc::clone(&shared);
        let thread = Builder::new()
            .name("mysql-apply".to_owned())
            .spawn(move || supervisor::run(&theirs))
            .map_err(|error| Error::io("a new thread", error))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// [`Follower::status`] with the functional keys that cannot be used ([`TableStatus::keys_missing`]). Cost: reads
    /// the tables' declarations.
    pub fn full_status(&self) -> FollowerStatus {
        let mut status = self.status();
        for table in &mut status.tables {
            let Ok(schema) = self.shared.database.schema(&table.table) else { continue };
            let missing = schema.keys_left_out();
            table.keys_missing = (!missing.is_empty()).then(|| missing.join("; "));
        }
        status
    }

    /// The state of following, its position and the state of each table, without unusable keys.
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
            inserts_skipped: 0,
            updates: 0,
            updates_added: 0,
            updates_removed: 0,
            updates_skipped: 0,
            deletes: 0,
            deletes_skipped: 0,
            statements: 0,
            row_statements: 0,
            harmless_statements: 0,
            unknown_statements: 0,
            skipped_other_tables: 0,
            checksum_errors: 0,
            queue_length: self.shared.queue_length() as u64,
            last_error: None,
            tables: Vec::new(),
        };
        self.shared.board.fill(&mut status);
        status
    }

    /// Stops following until [`Follower::resume`]. Complete transactions that were received are applied first. On
    /// return nothing is written any more.
    ///
    /// # Errors
    /// Busy if that takes longer than a minute; it stops nevertheless.
    pub fn stop(&self) -> Result<()> {
        self.request_stop()?;
        if self.shared.wait_until_idle(STOP_TIMEOUT) {
            return Ok(());
        }
        let message = format!("following {} has not stopped yet", self.shared.settings.address());
        Err(remora_engine::Error::Busy(message).into())
    }

    /// As [`Follower::stop`], without waiting.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the follower has ended.
    pub fn request_stop(&self) -> Result<()> {
        self.want(RequestedState::Stop)
    }

    /// Follows again, from the applied position.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the follower has ended.
    pub fn resume(&self) -> Result<()> {
        self.want(RequestedState::Run)
    }

    /// Orders a new copy of a table, while the current rows stay readable. If following has stopped, also by an error,
    /// it resumes: a forbidden schema change is skipped for this table, and if the position is lost, all tables are
    /// copied.
    /// # Errors
    /// A setting error if the table is being copied, or if too many requests wait.
    pub fn sync(&self, table: &str) -> Result<()> {
        let shared = &self.shared;
        let is_copied = {
            let tables = shared.board.tables.lock();
            matches!(tables.get(table), Some(TableState::Copying { .. }))
        };
        if is_copied && shared.requested() == RequestedState::Run {
            return Err(Error::Setting(format!("table {table} is being copied already")));
        }
        // Shown until the request is executed, so that the last copy is not mistaken for this one.
        shared.board.set_table(table, copying(0, 0, 0, Instant::now()));
        if !shared.request(TableRequest::Sync(table.to_owned())) {
            return Err(Error::Setting("too many requests wait".to_owned()));
        }
        self.want(RequestedState::Run)
    }

    /// Declares the ranked search of a followed table, by its name here; `None` removes it. The source is not involved
    /// and no row is copied. Existing rows are indexed again in this thread and in memory, while the table can be read
    /// and the stream is applied. The declaration belongs to the table's name and survives restarts.
    ///
    /// # Errors
    /// A setting error if the table is not followed or does not exist here yet, if this follower's settings declare its
    /// ranked search, if a column does not exist or is not text, or if a setting is not understood. An engine error if
    /// the declaration cannot be stored.
    pub fn declare_words(&self, table: &str, words: Option<DeclaredWords>) -> Result<()> {
        self.shared.declare_words(table, words)
    }

    /// Cancels the copy of a table, or of all tables. Returns how many were cancelled.
    pub fn cancel_sync(&self, table: Option<&str>) -> usize {
        let tables = self.shared.board.tables.lock();
        let wanted = |name: &String| table.is_none_or(|table| table == name);
        let copied = |(name, state): &(&String, &TableState)| {
            wanted(name) && matches!(state, TableState::Copying { .. } | TableState::CatchingUp)
        };
        let count = tables.iter().filter(copied).count();
        drop(tables);
        match count > 0 && self.shared.request(TableRequest::Cancel(table.map(str::to_owned))) {
            true => count,
            false => 0,
        }
    }

    /// Waits until these transactions are visible.
    ///
    /// # Errors
    /// [`remora_engine::Error::Busy`] after the timeout.
    pub fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> Result<()> {
        let reached = |text: &str| {
            GtidSet::parse_as(gtids.flavor(), text).is_ok_and(|applied| applied.covers(gtids))
        };
        let name = &self.shared.settings.name;
        if gtids.is_empty() {
            return Ok(());
        }
        Ok(self.shared.database.wait_for_source(name, timeout, &reached)?)
    }

    /// Stops following for good and waits until its threads have ended.
    pub fn close(self) {
        self.end();
    }

    fn want(&self, wanted: RequestedState) -> Result<()> {
        if self.thread.lock().is_none() {
            return Err(Error::Cancelled);
        }
        self.shared.request_state(wanted);
        Ok(())
    }

    fn end(&self) {
        self.shared.request_state(RequestedState::Close);
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
