//! What the stream yields: the source's transactions as a flat sequence, unpacked and in order.
//!
//! ```text
//! stream      = *(transaction | File | Heartbeat)
//! transaction = Begin *(AlsoCovers | TableMap | Rows | Statement) (Commit | Rollback | Abandoned)
//! ```

use std::{ops::Deref, sync::Arc};

use mysql_common::binlog::events::Event;

use super::{
    query::Query,
    rows_kind::{RowsKind, RowsVersion},
    table_map::TableMap,
};
use crate::mysql::{coordinates::Coordinates, gtid::Gtid};

/// One step of the source's history.
#[derive(Clone, Debug)]
pub enum SourceEvent {
    /// A transaction begins.
    Begin {
        /// Its identity.
        gtid: Gtid,
        /// When the immediate source committed it, in microseconds since 1970; whole seconds
        /// where it does not say.
        committed_at_us: i64,
    },
    /// Another transaction that this one completes: the prepare of an XA transaction, whose rows
    /// come here, at its commit (or do not, if it was rolled back). Its GTID joins the applied set
    /// with this one's.
    AlsoCovers(Gtid),
    /// The layout of the rows that follow for this table.
    TableMap(Arc<TableMap>),
    /// Rows of one table.
    Rows {
        /// Their layout.
        table: Arc<TableMap>,
        /// What happened to them.
        kind: RowsKind,
        /// How the body is laid out.
        version: RowsVersion,
        /// The event after its header, uncompressed, without checksum.
        body: EventBody,
    },
    /// A query that is not BEGIN, COMMIT, SAVEPOINT and the like: a schema change, or a change of
    /// rows that the source logged as a statement.
    Statement {
        /// Its text and how it is to be read.
        query: Box<Query>,
        /// Whether it is a transaction of its own.
        standalone: bool,
    },
    /// The transaction is whole.
    Commit {
        /// Where it ends in the binlog.
        end: Coordinates,
    },
    /// The transaction was rolled back at the source: its changes since `Begin` are void, but it
    /// counts as applied.
    Rollback {
        /// Where it ends in the binlog.
        end: Coordinates,
    },
    /// The source crashed within the transaction: its changes since `Begin` are void, and it does
    /// not count as applied.
    Abandoned,
    /// A binlog file begins, or the stream begins within it.
    File {
        /// Its name.
        name: String,
        /// When it was made, in seconds since 1970.
        created: u32,
    },
    /// Nothing happened up to this place: heartbeats, file changes, events of no concern.
    Heartbeat {
        /// How far the stream has come.
        end: Coordinates,
    },
}

/// The bytes of an event after its header, without checksum. Reads as a byte slice.
#[derive(Clone, Debug)]
pub struct EventBody(Body);

#[derive(Clone, Debug)]
enum Body {
    /// As it came: the client's event is kept, because its bytes cannot be moved out of it.
    Received(Box<Event>),
    Unpacked(Vec<u8>),
}

impl EventBody {
    pub(super) fn received(event: Event) -> Self {
        Self(Body::Received(Box::new(event)))
    }
}

impl AsRef<[u8]> for EventBody {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for EventBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Body::Unpacked(bytes))
    }
}

impl Deref for EventBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Body::Received(event) => event.data(),
            Body::Unpacked(bytes) => bytes,
        }
    }
}
