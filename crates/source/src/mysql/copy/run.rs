//! A copy worker: reads tables one after the other, chunk by chunk, or whole if they have no key.

use super::{
    CopyTask, Worker,
    read::read,
    whole::WholeTable,
    worker::{ATTEMPTS, RETRY_DELAY},
};
use crate::{
    Error, Result,
    mysql::{
        connection::Connection,
        inbox::{Chunk, Message, OpenedWindow},
    },
};

/// Runs copies until the session ends.
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
                    if self.queue.pause(RETRY_DELAY) {
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
            let OpenedWindow { window, .. } = opened;
            let (rows, end) = (read.rows, read.end);
            let after = after.clone();
            self.inbox.push(Message::Chunk(Chunk { copy, window, rows, after, last, end }));
            if last || self.queue.pause(self.throttle.spend(count)) {
                return Ok(());
            }
        }
        Ok(())
    }
}
