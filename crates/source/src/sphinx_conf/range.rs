//! Stretches of document numbers, for which a query runs one after the other.

use std::time::Duration;

use crate::{Result, mysql::connection::Connection};

/// Numbers of a stretch where nothing is said.
pub(super) const DEFAULT_STEP: u64 = 1024;

/// How the numbers of documents are cut into stretches, whichever query they are for.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Numbers of a stretch.
    pub step: u64,
    /// How long is waited between two of them.
    pub pause: Duration,
}

/// The query of a stretch: with its ends in the places of `$start` and `$end`.
pub(super) fn of_stretch(query: &str, start: u64, end: u64) -> String {
    query.replace("$start", &start.to_string()).replace("$end", &end.to_string())
}

/// Calls `read` for each stretch of the numbers that lie between the ends that a query gives; with `None` where it
/// gives none.
pub(super) fn ranged(
    connection: &mut Connection,
    ends: &str,
    pace: Pace,
    mut read: impl FnMut(&mut Connection, Option<(u64, u64)>) -> Result<()>,
) -> Result<()> {
    let ends: Option<(Option<u64>, Option<u64>)> = connection.first(ends)?;
    let Some((Some(first), Some(last))) = ends else { return read(connection, None) };
    let mut start = first;
    loop {
        let end = start.saturating_add(pace.step.saturating_sub(1)).min(last);
        read(connection, Some((start, end)))?;
        if end >= last {
            return Ok(());
        }
        start = end + 1;
        std::thread::sleep(pace.pause);
    }
}
