//! Messages between a copy and the applier: windows that open, chunks that were read, and the moment of a table that is
//! read whole.

use crossbeam_channel::Sender;
use remora_engine::Row;

use crate::mysql::{coordinates::Coordinates, gtid::GtidSet};

/// A copy wants to read its next chunk.
pub(crate) struct WindowRequest {
    /// Which copy.
    pub copy: u64,
    /// A window of it in which no chunk was read after all.
    pub instead_of: Option<u64>,
    /// Where the answer goes; it is dropped if the copy is no longer wanted.
    pub reply: Sender<Opened>,
}

/// An open window.
pub(crate) struct Opened {
    /// Its number.
    pub window: u64,
    /// What the applier had applied when it opened.
    pub applied: GtidSet,
    /// Where that is in the binlog; without a file if the stream has not said yet.
    pub place: Coordinates,
}

/// A table that is read whole is read as it was at a place of the binlog.
pub(crate) struct Moment {
    /// Of which copy.
    pub copy: u64,
    /// The place.
    pub end: Coordinates,
    /// Whether nothing of the table before the place is missing and nothing behind it is there.
    /// If not, that is so only if the table did not change from the window's opening up to it.
    pub exact: bool,
    /// Whether the moment is taken; another one is needed if not. Dropped if the copy is no longer
    /// wanted.
    pub reply: Sender<bool>,
}

/// A chunk that was read.
pub(crate) struct Chunk {
    /// Of which copy.
    pub copy: u64,
    /// In which window.
    pub window: u64,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Its last key as literals.
    pub after: Vec<String>,
    /// Whether there is nothing behind it.
    pub last: bool,
    /// What was read lies before this place of the binlog.
    pub end: Coordinates,
}
