//! Messages between copies and the applier: windows, chunks, and the moments of tables that are read whole.

use crossbeam_channel::Sender;
use remora_engine::Row;

use crate::mysql::{coordinates::Coordinates, gtid::GtidSet};

/// A request to open a window for the next chunk.
pub(crate) struct WindowRequest {
    /// The number of the copy.
    pub copy: u64,
    /// An earlier window in which no chunk was read.
    pub instead_of: Option<u64>,
    /// The channel for the answer; dropped if the copy is no longer wanted.
    pub reply: Sender<OpenedWindow>,
}

/// An open window.
pub(crate) struct OpenedWindow {
    /// Its number.
    pub window: u64,
    /// The transactions that the applier had applied when it opened.
    pub applied: GtidSet,
    /// The corresponding position in the binlog; without a file if the stream has not named one yet.
    pub place: Coordinates,
}

/// The position of the binlog as of which a table is read whole.
pub(crate) struct Moment {
    /// The number of the copy.
    pub copy: u64,
    /// The position.
    pub end: Coordinates,
    /// Whether the rows are certainly those at this position. If not, they are only if the table did not change between
    /// the window's opening and this position.
    pub exact: bool,
    /// The channel for the answer whether the moment is accepted; if not, another is needed. Dropped if the copy is no
    /// longer wanted.
    pub reply: Sender<bool>,
}

/// A chunk that was read.
pub(crate) struct Chunk {
    /// The number of the copy.
    pub copy: u64,
    /// The number of its window.
    pub window: u64,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Its last key as literals.
    pub after: Vec<String>,
    /// Whether it is the last one.
    pub last: bool,
    /// Everything read is before this position of the binlog.
    pub end: Coordinates,
}
