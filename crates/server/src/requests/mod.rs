//! Code shared by the line protocol and HTTP: finding tables by name and rights, answering queries through the result
//! cache, parsing typed keys.

mod collection_name;
mod key;
mod optimize;
mod query;
mod rights;
mod tables;

use std::sync::Arc;

use remora_engine::Database;
use remora_protocol::line::{LineError, ParseLimits, code};
use remora_sql::Identity;

pub(crate) use collection_name::{MAX_COLLECTION_NAME_CHARS, is_collection_name};
pub(crate) use key::parse_key;
pub(crate) use query::{Query, shown_columns};

use crate::{
    counters::CommandKind,
    settings::{Dialect, Settings},
    shared::{ServerState, half_loaded},
};

/// An answer: a body written into the buffer, or an error.
pub(crate) type Answer = Result<(), LineError>;

/// A client, with access to the shared state.
pub(crate) struct Caller {
    pub(crate) shared: Arc<ServerState>,
    /// Its identity, if it has logged in.
    pub(crate) identity: Option<Identity>,
}

impl Caller {
    /// A client with this identity, or without one.
    pub(crate) fn new(shared: Arc<ServerState>, identity: Option<Identity>) -> Self {
        Self { shared, identity }
    }

    /// The current settings.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The database.
    pub(crate) fn database(&self) -> &Database {
        &self.shared.database
    }

    /// Counts a command that was understood.
    pub(crate) fn count_command(&self, kind: CommandKind) {
        self.shared.counters.command(kind);
    }

    /// Refuses while a dump is being loaded, or after a load was interrupted.
    pub(crate) fn require_loaded(&self) -> Answer {
        if self.shared.dump.is_loading() {
            return Err(LineError::new(
                code::LOADING,
                "Server is loading a dump, please try again later",
            ));
        }
        if self.shared.dump.is_half_loaded() {
            return Err(half_loaded());
        }
        Ok(())
    }
}

/// The limits of requests in all protocols.
pub(crate) fn parse_limits(settings: &Settings) -> ParseLimits {
    let limits = match settings.dialect {
        Dialect::Remora => ParseLimits::default(),
        Dialect::MygramDb => ParseLimits::mygramdb(),
    };
    ParseLimits {
        default_limit: settings.limits.default_limit,
        max_limit: settings.limits.max_limit,
        max_query_bytes: settings.limits.max_query_length,
        ..limits
    }
}

/// Runs work that may read files or many rows. Other sessions of this thread move elsewhere.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
