//! A thread that reads tables, one after the other.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::bounded;

use super::{CopyQueue, CopyTask, Throttle, read::read, whole::WholeTable};
use crate::{
    Error, Result,
    mysql::{
        connection::{self, Connection},
        inbox::{Chunk, Inbox, Message, Opened, WindowRequest},
        settings::MysqlSettings,
    },
};

/// About so many bytes are read by one statement.
pub(super) const CHUNK_BYTES: usize = 4 << 20;
/// How often a chunk is tried that cannot be read, as while its table is altered or when its
/// connection ends, and how long after.
pub(super) const ATTEMPTS: u32 = 8;
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// What a worker needs.
#[derive(Clone)]
pub(crate) struct Worker {
    pub settings: MysqlSettings,
    pub queue: Arc<CopyQueue>,
    pub inbox: Arc<Inbox>,
    pub throttle: Arc<Throttle>,
}

/// Takes copies until the session ends.
pub(crate) fn run(worker: &Worker) {
    let mut source = None;
    while let Some(task) = worker.queue.take() {
        let copy = task.copy;
        if let Err(error) = worker.copy(&mut source, task) {
            source = None;
            worker.inbox.push(Message::CopyFailed(copy, error));
        }
    }
}

impl Worker {
    fn copy(&self, source: &mut Option<Connection>, task: CopyTask) -> Result<()> {
        if task.source.is_keyless() {
            return WholeTable::new(self, task).copy(source);
        }
        let CopyTask { copy, source: table, mut after, row_bytes } = task;
        let mut limit = self.limit(usize::try_from(row_bytes).unwrap_or(0));
        let (mut failed, mut attempts) = (None, 0);
        while let Some(opened) = self.open(copy, failed.take()) {
            let read = self
                .connected(source)
                .and_then(|source| read(source, &self.settings, &opened, &table, &after, limit));
            let read = match read {
                Ok(read) => read,
                Err(error @ Error::TableRefused { .. }) => return Err(error),
                Err(error) if attempts >= ATTEMPTS => return Err(error),
                Err(error) => {
                    tracing::debug!(table = table.full_name(), "a chunk is read again: {error}");
                    (failed, attempts) = (Some(opened.window), attempts + 1);
                    *source = None;
                    if self.queue.pause(PATIENCE) {
                        return Ok(());
                    }
                    continue;
                }
            };
            attempts = 0;
            let count = read.rows.len();
            let last = count < limit;
            if let Some(row_bytes) = read.bytes.checked_div(count) {
                after.clone_from(&read.after);
                limit = self.limit(row_bytes);
            }
            let Opened { window, .. } = opened;
            let (rows, end) = (read.rows, read.end);
            let after = after.clone();
            self.inbox.push(Message::Chunk(Chunk { copy, window, rows, after, last, end }));
            if last || self.queue.pause(self.throttle.spend(count)) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn connected<'s>(&self, source: &'s mut Option<Connection>) -> Result<&'s mut Connection> {
        match source {
            Some(source) => Ok(source),
            None => Ok(source.insert(self.connect()?)),
        }
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        let mut source = connection::connect(&self.settings)?;
        source.first::<u8>("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        Ok(source)
    }

    /// Asks the applier for a window; `None` if the copy is no longer wanted.
    pub(super) fn open(&self, copy: u64, instead_of: Option<u64>) -> Option<Opened> {
        let (reply, answer) = bounded(1);
        self.inbox.push(Message::Window(WindowRequest { copy, instead_of, reply }));
        answer.recv().ok()
    }

    pub(super) fn limit(&self, row_bytes: usize) -> usize {
        let by_bytes = CHUNK_BYTES.checked_div(row_bytes).unwrap_or(usize::MAX);
        self.throttle.most_rows(by_bytes.min(self.settings.chunk_rows))
    }
}
