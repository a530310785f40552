//! Ranges of document ids, for which a query runs one after the other.

use std::time::Duration;

use crate::{Result, mysql::connection::Connection};

/// The default size of a range.
pub(super) const DEFAULT_STEP: u64 = 1024;

/// The size of ranges and the pause between them, for all queries of a source.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Ids in a range.
    pub step: u64,
    /// The pause between two ranges.
    pub pause: Duration,
}

/// The query with a range's bounds for `$start` and `$end`.
pub(super) fn of_stretch(query: &str, start: u64, end: u64) -> String {
    query.replace("$start", &start.to_string()).replace("$end", &end.to_string())
}

/// Calls `read` for each range between the bounds that a query returns, or once with `None` if it returns none.
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
