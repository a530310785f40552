//! Reads a table without a key. There are no key ranges, so one statement reads it whole, as of a known position of the
//! binlog.
//!
//! | table                    | its moment                                                       |
//! |--------------------------|------------------------------------------------------------------|
//! | MariaDB, transactional   | a snapshot, which says where in the binlog it is                 |
//! | MySQL since 5.7, InnoDB  | a snapshot; where it is is known if the table did not change from before it was opened until after. After some attempts writers wait for the moment in which it is opened (LOCK TABLES) |
//! | MySQL 5.6, InnoDB        | a snapshot opened while writers wait                             |
//! | other engines            | writers wait until it is read                                    |
//!
//! If the account may not lock tables, the last two are read without a lock, and the copy is valid if the table did not
//! change meanwhile.

use std::time::Duration;

use crossbeam_channel::bounded;
use mysql::prelude::Queryable;
use remora_engine::Row;

use super::{
    CopyTask, Worker,
    read::{VISIBLE_WHEN_EXECUTED, converted, open_snapshot, size, wait_until_executed},
    worker::{ATTEMPTS, CHUNK_BYTES, RETRY_DELAY},
};
use crate::{
    Error, Result,
    mysql::{
        connection::{self, Connection, guarded},
        coordinates::Coordinates,
        gtid::Flavor,
        inbox::{Chunk, Message, Moment, OpenedWindow},
        quote::quoted,
    },
};

/// How often a snapshot is opened without blocking writers.
const FREE_SNAPSHOTS: u32 = 8;
/// How often if writers cannot be blocked.
const ALL_SNAPSHOTS: u32 = 400;
/// The first statement of a connection that locks: it waits only this long for writers, and they for it. The table lock
/// must also be one of the storage engine, which MySQL 5.6 needs.
const LOCKING: &str =
    "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5, autocommit = 0";
/// Storage engines with snapshots.
const TRANSACTIONAL: [&str; 2] = ["InnoDB", "ROCKSDB"];
const SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// A table that is read whole.
pub(super) struct WholeTable<'w> {
    worker: &'w Worker,
    task: CopyTask,
    /// Whether the account may lock it, as far as is known.
    may_lock: bool,
    /// Whether rows may have been sent: then only the applier can restart the copy.
    is_reading: bool,
}

/// How the position is determined.
enum PositionTiming {
    /// The position, whether it is exact, and the lock that is held while the table is read.
    Before { end: Coordinates, exact: bool, lock: Option<Box<Connection>> },
    /// The position is known only after the table was read.
    Afterwards,
}

/// Chunks on their way to the applier.
struct Chunks<'w> {
    worker: &'w Worker,
    copy: u64,
    /// The open window, until a chunk is sent with it.
    window: Option<u64>,
    rows: Vec<Row>,
    bytes: usize,
}

impl<'w> WholeTable<'w> {
    pub fn new(worker: &'w Worker, task: CopyTask) -> Self {
        Self { worker, task, may_lock: true, is_reading: false }
    }

    /// Copies the table. The connection is kept for the next one unless it is unusable.
    pub fn copy(mut self, kept: &mut Option<Connection>) -> Result<()> {
        let mut source = match kept.take() {
            Some(source) => source,
            None => self.worker.connect()?,
        };
        let (mut instead_of, mut attempts, mut failures) = (None, 0, 0);
        while let Some(opened) = self.worker.open(self.task.copy, instead_of.take()) {
            let window = opened.window;
            match self.attempt(&mut source, opened, attempts) {
                Ok(Some(true)) => {
                    *kept = Some(source);
                    return Ok(());
                }
                Ok(Some(false)) => attempts += 1,
                Ok(None) => return Ok(()),
                Err(error @ (Error::Unreachable { .. } | Error::TableRefused { .. })) => {
                    return Err(error);
                }
                Err(error) if self.is_reading || failures >= ATTEMPTS => return Err(error),
                Err(error) => {
                    let table = self.task.source.full_name();
                    tracing::debug!(table, "its moment is sought again: {error}");
                    failures += 1;
                    source = self.worker.connect()?;
                }
            }
            instead_of = Some(window);
            let short = Duration::from_millis(u64::from(attempts.min(20)));
            if self.worker.queue.pause(if failures > 0 { RETRY_DELAY } else { short }) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the table if its position is accepted; false if it is not, `None` if the copy is no longer wanted.
    fn attempt(
        &mut self,
        source: &mut Connection,
        opened: OpenedWindow,
        attempt: u32,
    ) -> Result<Option<bool>> {
        let mut chunks = Chunks::new(self.worker, self.task.copy, opened.window);
        let end = match self.moment(source, &opened, attempt)? {
            PositionTiming::Before { end, exact, mut lock } => {
                match self.propose_position(end.clone(), exact) {
                    Some(true) => {}
                    refused => {
                        source.first::<u8>("COMMIT")?;
                        return Ok(refused);
                    }
                }
                // Other connections cannot read behind writers that wait for the lock.
                if !self.read(lock.as_deref_mut().unwrap_or(source), "", &mut chunks)? {
                    return Ok(None);
                }
                end
            }
            PositionTiming::Afterwards => {
                source.first::<u8>("START TRANSACTION")?;
                if !self.read(source, self.waiting(source), &mut chunks)? {
                    return Ok(None);
                }
                let end = source.binlog_end()?;
                if self.propose_position(end.clone(), false) != Some(true) {
                    // The applier restarts the copy.
                    return Ok(None);
                }
                end
            }
        };
        source.first::<u8>("COMMIT")?;
        Ok(chunks.finish(end).then_some(true))
    }

    /// Where a transaction counts as executed before it is visible, this waits for its row locks.
    fn waiting(&self, source: &Connection) -> &'static str {
        if is_early(source) { " LOCK IN SHARE MODE" } else { "" }
    }

    fn moment(
        &mut self,
        source: &mut Connection,
        opened: &OpenedWindow,
        attempt: u32,
    ) -> Result<PositionTiming> {
        let transactional = self.is_transactional(source)?;
        if transactional && source.server.flavor == Flavor::MariaDb {
            let end = open_snapshot(source, opened)?;
            return Ok(PositionTiming::Before { end, exact: true, lock: None });
        }
        let free = transactional && !is_early(source);
        if free && (attempt < FREE_SNAPSHOTS || !self.may_lock) {
            if attempt >= ALL_SNAPSHOTS {
                return Err(self.never_quiet_error());
            }
            wait_until_executed(source, &opened.applied)?;
            source.first::<u8>(SNAPSHOT)?;
            let end = source.binlog_end()?;
            return Ok(PositionTiming::Before { end, exact: false, lock: None });
        }
        if self.may_lock
            && let Some(mut lock) = self.lock()?
        {
            if source.server.flavor == Flavor::MySql {
                wait_until_executed(source, &opened.applied)?;
            }
            source.first::<u8>(SNAPSHOT)?;
            let end = source.binlog_end()?;
            if transactional {
                lock.first::<u8>("UNLOCK TABLES")?;
            }
            let lock = (!transactional).then(|| Box::new(lock));
            return Ok(PositionTiming::Before { end, exact: true, lock });
        }
        if free { self.moment(source, opened, attempt) } else { Ok(PositionTiming::Afterwards) }
    }

    fn is_transactional(&self, source: &mut Connection) -> Result<bool> {
        let text = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let engine: Option<Option<String>> = source.first(&format!(
            "SELECT engine FROM information_schema.tables WHERE table_schema = '{}' AND \
             table_name = '{}'",
            text(&self.task.source.database),
            text(&self.task.source.name)
        ))?;
        let engine = engine.flatten().unwrap_or_default();
        Ok(TRANSACTIONAL.iter().any(|known| known.eq_ignore_ascii_case(&engine)))
    }

    /// Blocks writers of the table until the connection is dropped; `None` if the account may not.
    fn lock(&mut self) -> Result<Option<Connection>> {
        let mut lock = connection::connect(&self.worker.settings)?;
        lock.first::<u8>(LOCKING)?;
        match lock.first::<u8>(&format!("LOCK TABLES {} READ", self.name())) {
            Ok(_) => Ok(Some(lock)),
            Err(Error::AccessDenied { .. }) => {
                self.may_lock = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn never_quiet_error(&self) -> Error {
        let database = quoted(&self.task.source.database);
        let user = self.worker.settings.user.replace('\'', "''");
        Error::TableRefused {
            table: self.task.source.full_name(),
            reason: format!(
                "it has no key and changes all the time, so that it can be copied only while \
                 writers wait for a moment: run at the source: GRANT LOCK TABLES ON {database}.* \
                 TO '{user}'@'%', or give it a primary key"
            ),
        }
    }

    fn name(&self) -> String {
        let source = &self.task.source;
        format!("{}.{}", quoted(&source.database), quoted(&source.name))
    }

    /// Offers the position; returns whether it is accepted, `None` if the copy is no longer wanted.
    fn propose_position(&self, end: Coordinates, exact: bool) -> Option<bool> {
        let (reply, answer) = bounded(1);
        let moment = Moment { copy: self.task.copy, end, exact, reply };
        self.worker.inbox.push(Message::Moment(moment));
        answer.recv().ok()
    }

    /// Reads all rows; false if the copy is no longer wanted.
    fn read(
        &mut self,
        source: &mut Connection,
        waiting: &str,
        chunks: &mut Chunks<'_>,
    ) -> Result<bool> {
        self.is_reading = true;
        let table = &self.task.source;
        let statement = format!("SELECT {} FROM {}{waiting}", table.select_list(), self.name());
        let settings = &self.worker.settings;
        let id = source.conn.connection_id();
        let (mut failed, mut unwanted) = (None, false);
        guarded(settings, &statement, || {
            for row in source.conn.query_iter(&statement)? {
                let values = row?.unwrap();
                chunks.bytes += values.iter().map(size).sum::<usize>();
                match converted(table, values) {
                    Ok(row) => chunks.rows.push(row),
                    Err(error) => failed = Some(error),
                }
                unwanted = failed.is_none() && chunks.is_full() && !chunks.send();
                if unwanted || failed.is_some() {
                    // Otherwise the client would read the rest of the result.
                    stop(self.worker, id);
                    break;
                }
            }
            Ok(())
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(!unwanted),
        }
    }
}

impl<'w> Chunks<'w> {
    fn new(worker: &'w Worker, copy: u64, window: u64) -> Self {
        Self { worker, copy, window: Some(window), rows: Vec::new(), bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.bytes >= CHUNK_BYTES || self.rows.len() >= self.worker.limit(0)
    }

    /// Sends the rows; false if the copy is no longer wanted.
    fn send(&mut self) -> bool {
        let count = self.rows.len();
        // The rows may enter at any position of the stream.
        self.push(false, Coordinates::default())
            && !self.worker.queue.pause(self.worker.throttle.spend(count))
    }

    /// Sends the remaining rows. The table is complete once the stream has reached `end`.
    fn finish(mut self, end: Coordinates) -> bool {
        self.push(true, end)
    }

    fn push(&mut self, last: bool, end: Coordinates) -> bool {
        let opened = self.window.take();
        let opened = opened.or_else(|| Some(self.worker.open(self.copy, None)?.window));
        let Some(window) = opened else { return false };
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let (copy, after) = (self.copy, Vec::new());
        self.worker.inbox.push(Message::Chunk(Chunk { copy, window, rows, after, last, end }));
        true
    }
}

fn is_early(source: &Connection) -> bool {
    source.server.flavor == Flavor::MySql && source.server.version < VISIBLE_WHEN_EXECUTED
}

/// Kills the statement of a connection.
fn stop(worker: &Worker, id: u32) {
    let stopped = connection::connect(&worker.settings)
        .and_then(|mut other| other.first::<u8>(&format!("KILL QUERY {id}")));
    if let Err(error) = stopped {
        tracing::debug!("a copy ends late: {error}");
    }
}
