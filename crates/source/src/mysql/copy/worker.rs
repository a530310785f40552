//! The state of a copy worker: connections, windows, and the size of its reads.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::bounded;

use super::{CopyQueue, Throttle};
use crate::{
    Result,
    mysql::{
        connection::{self, Connection},
        inbox::{Inbox, Message, OpenedWindow, WindowRequest},
        settings::MysqlSettings,
    },
};

/// The approximate bytes that one statement reads.
pub(super) const CHUNK_BYTES: usize = 4 << 20;
/// The attempts to read a chunk, for example while its table is altered or when the connection breaks, and the delay
/// between them.
pub(super) const ATTEMPTS: u32 = 8;
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(300);

/// What a worker needs.
#[derive(Clone)]
pub(crate) struct Worker {
    pub settings: MysqlSettings,
    pub queue: Arc<CopyQueue>,
    pub inbox: Arc<Inbox>,
    pub throttle: Arc<Throttle>,
}

impl Worker {
    pub(super) fn connected<'s>(
        &self,
        source: &'s mut Option<Connection>,
    ) -> Result<&'s mut Connection> {
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
    pub(super) fn open(&self, copy: u64, instead_of: Option<u64>) -> Option<OpenedWindow> {
        let (reply, answer) = bounded(1);
        self.inbox.push(Message::Window(WindowRequest { copy, instead_of, reply }));
        answer.recv().ok()
    }

    pub(super) fn limit(&self, row_bytes: usize) -> usize {
        let by_bytes = CHUNK_BYTES.checked_div(row_bytes).unwrap_or(usize::MAX);
        self.throttle.most_rows(by_bytes.min(self.settings.chunk_rows))
    }
}
