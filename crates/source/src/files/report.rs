//! Progress and final report of an import.

use std::{collections::BTreeMap, time::Duration};

use crate::RecordProblem;

/// How far an import has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The file at work.
    pub file: String,
    /// Rows applied in this run.
    pub rows: u64,
    /// Records passed over in this run.
    pub skipped: u64,
    /// Uncompressed bytes of the records of this run.
    pub record_bytes: u64,
    /// Bytes read as they lie on disk, files done in earlier runs included.
    pub bytes: u64,
    /// Bytes of all files on disk; `None` if one is a stream.
    pub total_bytes: Option<u64>,
    /// Since the start of this run.
    pub elapsed: Duration,
}

/// What an import did.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    /// Rows applied in this run.
    pub rows: u64,
    /// Records passed over in this run.
    pub skipped: u64,
    /// The first of them.
    pub problems: Vec<RecordProblem>,
    /// Names of fields that no column takes, and how often each came.
    pub ignored: BTreeMap<String, u64>,
    /// Uncompressed bytes of the records of this run.
    pub record_bytes: u64,
    /// Files that an earlier run had read to the end.
    pub files_done_before: usize,
    /// Files that this run took up in the middle.
    pub files_resumed: usize,
}
