//! The output of the stream: the source's transactions as a flat, ordered sequence of events.
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

/// An event of the source's history.
#[derive(Clone, Debug)]
pub enum SourceEvent {
    /// A transaction begins.
    Begin {
        /// Its GTID.
        gtid: Gtid,
        /// The commit time at the immediate source in microseconds since 1970; rounded to seconds for servers that
        /// report no more.
        committed_at_us: i64,
    },
    /// The GTID of another transaction that this one completes: the prepare of an XA transaction. Its rows come here,
    /// at the commit (or not, after a rollback), and its GTID joins the applied set with this one's.
    AlsoCovers(Gtid),
    /// The layout of the following rows of this table.
    TableMap(Arc<TableMap>),
    /// Rows of one table.
    Rows {
        /// Their layout.
        table: Arc<TableMap>,
        /// The operation on them.
        kind: RowsKind,
        /// The layout of the body.
        version: RowsVersion,
        /// The event without header and checksum, uncompressed.
        body: EventBody,
    },
    /// A query other than BEGIN, COMMIT, SAVEPOINT and the like: a schema change, or a change of rows that was logged
    /// as a statement.
    Statement {
        /// Its text and lexer mode.
        query: Box<Query>,
        /// Whether it is a whole transaction.
        standalone: bool,
    },
    /// The transaction is complete.
    Commit {
        /// The position of its end.
        end: Coordinates,
    },
    /// The transaction was rolled back at the source: its changes since `Begin` are void, but its GTID counts as
    /// applied.
    Rollback {
        /// The position of its end.
        end: Coordinates,
    },
    /// The source crashed inside the transaction: its changes since `Begin` are void, and its GTID does not count as
    /// applied.
    Abandoned,
    /// A binlog file begins, or the stream begins inside it.
    File {
        /// Its name.
        name: String,
        /// Its creation time, in seconds since 1970.
        created: u32,
    },
    /// Nothing happened up to this position except heartbeats, file changes and irrelevant events.
    Heartbeat {
        /// The position.
        end: Coordinates,
    },
}

/// The bytes of an event without header and checksum. Dereferences to a byte slice.
#[derive(Clone, Debug)]
pub struct EventBody(Body);

#[derive(Clone, Debug)]
enum Body {
    /// The client's event, because its bytes cannot be moved out of it.
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
