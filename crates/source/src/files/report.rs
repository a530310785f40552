//! Progress and final report of an import.

use std::{collections::BTreeMap, time::Duration};

use crate::RecordProblem;

/// How far an import has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The current file.
    pub file: String,
    /// Rows applied in this run.
    pub rows: u64,
    /// Records skipped in this run.
    pub skipped: u64,
    /// Uncompressed bytes of the records of this run.
    pub record_bytes: u64,
    /// Bytes read from disk, including files that earlier runs completed.
    pub bytes: u64,
    /// Bytes of all files on disk; `None` if one is a stream.
    pub total_bytes: Option<u64>,
    /// The time since the start of this run.
    pub elapsed: Duration,
}

/// The result of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    /// Rows applied in this run.
    pub rows: u64,
    /// Records skipped in this run.
    pub skipped: u64,
    /// The first of them.
    pub problems: Vec<RecordProblem>,
    /// Names of unknown fields, and how often each occurred.
    pub ignored: BTreeMap<String, u64>,
    /// Uncompressed bytes of the records of this run.
    pub record_bytes: u64,
    /// Files that an earlier run completed.
    pub files_done_before: usize,
    /// Files that this run resumed in the middle.
    pub files_resumed: usize,
}
