//! Reads a table without a key. There are no key ranges, so one statement reads it whole, as of a known place of the
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
    read::{SEEN_WHEN_EXECUTED, converted, open_snapshot, size, wait_until_executed},
    worker::{ATTEMPTS, CHUNK_BYTES, PATIENCE},
};
use crate::{
    Error, Result,
    mysql::{
        connection::{self, Connection, guarded},
        coordinates::Coordinates,
        gtid::Flavor,
        inbox::{Chunk, Message, Moment, Opened},
        quote::quoted,
    },
};

/// So often a snapshot is opened without making writers wait.
const FREE_SNAPSHOTS: u32 = 8;
/// So often where they cannot be made to wait.
const ALL_SNAPSHOTS: u32 = 400;
/// What a connection that locks says first: it waits for writers, and they for it, no longer; and
/// its locks are the storage engine's too, which MySQL 5.6 needs.
const LOCKING: &str =
    "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5, autocommit = 0";
/// Engines of which a snapshot can be had.
const TRANSACTIONAL: [&str; 2] = ["InnoDB", "ROCKSDB"];
const SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// A table that is read whole.
pub(super) struct WholeTable<'w> {
    worker: &'w Worker,
    task: CopyTask,
    /// Whether the account may lock it, as far as is known.
    may_lock: bool,
    /// Whether rows may have been sent: then only the applier can begin anew.
    is_reading: bool,
}

/// How a moment was had.
enum Had {
    /// The place, whether it is exact, and what holds the table until it was read by it.
    Before { end: Coordinates, exact: bool, lock: Option<Box<Connection>> },
    /// It will be known when everything was read.
    Afterwards,
}

/// Chunks on their way to the applier.
struct Chunks<'w> {
    worker: &'w Worker,
    copy: u64,
    /// The open window, until a chunk goes with it.
    window: Option<u64>,
    rows: Vec<Row>,
    bytes: usize,
}

impl<'w> WholeTable<'w> {
    pub fn new(worker: &'w Worker, task: CopyTask) -> Self {
        Self { worker, task, may_lock: true, is_reading: false }
    }

    /// Copies the table; the connection stays for the next one unless it is of no use any more.
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
            if self.worker.queue.pause(if failures > 0 { PATIENCE } else { short }) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the table if its moment is accepted; whether it was, `None` if nobody wants it.
    fn attempt(
        &mut self,
        source: &mut Connection,
        opened: Opened,
        attempt: u32,
    ) -> Result<Option<bool>> {
        let mut chunks = Chunks::new(self.worker, self.task.copy, opened.window);
        let end = match self.moment(source, &opened, attempt)? {
            Had::Before { end, exact, mut lock } => {
                match self.offer(end.clone(), exact) {
                    Some(true) => {}
                    refused => {
                        source.first::<u8>("COMMIT")?;
                        return Ok(refused);
                    }
                }
                // Behind writers that wait for the lock nobody else may read.
                if !self.read(lock.as_deref_mut().unwrap_or(source), "", &mut chunks)? {
                    return Ok(None);
                }
                end
            }
            Had::Afterwards => {
                source.first::<u8>("START TRANSACTION")?;
                if !self.read(source, self.waiting(source), &mut chunks)? {
                    return Ok(None);
                }
                let end = source.binlog_end()?;
                if self.offer(end.clone(), false) != Some(true) {
                    // The applier begins the copy anew.
                    return Ok(None);
                }
                end
            }
        };
        source.first::<u8>("COMMIT")?;
        Ok(chunks.finish(end).then_some(true))
    }

    /// Where a transaction counts as executed before it is visible, its row locks are waited for.
    fn waiting(&self, source: &Connection) -> &'static str {
        if is_early(source) { " LOCK IN SHARE MODE" } else { "" }
    }

    fn moment(&mut self, source: &mut Connection, opened: &Opened, attempt: u32) -> Result<Had> {
        let transactional = self.is_transactional(source)?;
        if transactional && source.server.flavor == Flavor::MariaDb {
            let end = open_snapshot(source, opened)?;
            return Ok(Had::Before { end, exact: true, lock: None });
        }
        let free = transactional && !is_early(source);
        if free && (attempt < FREE_SNAPSHOTS || !self.may_lock) {
            if attempt >= ALL_SNAPSHOTS {
                return Err(self.never_still());
            }
            wait_until_executed(source, &opened.applied)?;
            source.first::<u8>(SNAPSHOT)?;
            let end = source.binlog_end()?;
            return Ok(Had::Before { end, exact: false, lock: None });
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
            return Ok(Had::Before { end, exact: true, lock });
        }
        if free { self.moment(source, opened, attempt) } else { Ok(Had::Afterwards) }
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

    /// Makes those who write to the table wait until the connection is dropped; `None` if the
    /// account may not.
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

    fn never_still(&self) -> Error {
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

    /// Tells the moment; whether it is accepted, `None` if nobody wants the copy.
    fn offer(&self, end: Coordinates, exact: bool) -> Option<bool> {
        let (reply, answer) = bounded(1);
        let moment = Moment { copy: self.task.copy, end, exact, reply };
        self.worker.inbox.push(Message::Moment(moment));
        answer.recv().ok()
    }

    /// Reads all rows; false if nobody wants them.
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
                    // What is left of the answer would be read to its end.
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

    /// Sends the rows; false if nobody wants them.
    fn send(&mut self) -> bool {
        let count = self.rows.len();
        // Rows enter at any place of the stream.
        self.push(false, Coordinates::default())
            && !self.worker.queue.pause(self.worker.throttle.spend(count))
    }

    /// Sends what is left: the table is whole once the stream has come to its moment.
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
    source.server.flavor == Flavor::MySql && source.server.version < SEEN_WHEN_EXECUTED
}

/// Ends the statement of a connection from outside.
fn stop(worker: &Worker, id: u32) {
    let stopped = connection::connect(&worker.settings)
        .and_then(|mut other| other.first::<u8>(&format!("KILL QUERY {id}")));
    if let Err(error) = stopped {
        tracing::debug!("a copy ends late: {error}");
    }
}
