//! Whether the source still has the history that was followed.
//!
//! What a server has executed and where its binlog ends only grow. A server that shows less than it
//! showed before was reset (`RESET MASTER`, `RESET BINARY LOGS AND GTIDS`) or restored from an older
//! backup: it gives the numbers of its transactions again, and no position of before means anything.
//! Its dump connection may go on in silence, so the source is asked as well.

use super::shared::Shared;
use crate::{
    Error, Result,
    mysql::{binlog::Coordinates, connection::Connection, gtid::GtidSet},
};

/// What a source showed last.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    uuid: String,
    executed: GtidSet,
    end: Coordinates,
}

/// Asks the source what it has executed and compares it with what it showed before.
///
/// # Errors
/// `BackInTime` if it shows less; what it shows counts from then on.
pub(super) fn look(shared: &Shared, source: &mut Connection) -> Result<GtidSet> {
    let executed = source.executed()?;
    let end = source.binlog_end()?;
    let now = Shown { uuid: source.server.uuid.clone(), executed: executed.clone(), end };
    let before = shared.shown.lock().replace(now.clone());
    match before.and_then(|before| less(&before, &now)) {
        Some(message) => Err(Error::BackInTime { message }),
        None => Ok(executed),
    }
}

/// In which way a server has less than before; another server in its place is not compared.
fn less(before: &Shown, now: &Shown) -> Option<String> {
    if before.uuid != now.uuid {
        return None;
    }
    if now.executed.is_behind(&before.executed) {
        let (now, before) = (&now.executed, &before.executed);
        return Some(format!("it was reset or restored: it has executed {now}, after {before}"));
    }
    let base = |place: &Coordinates| place.file.rsplit_once('.').map(|(base, _)| base.to_owned());
    if base(&before.end) == base(&now.end) && now.end < before.end {
        let (now, before) = (&now.end, &before.end);
        return Some(format!("it was reset or restored: its binlog ends at {now}, after {before}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(uuid: &str, executed: &str, file: &str, offset: u64) -> Shown {
        let end = Coordinates { file: file.to_owned(), offset };
        Shown { uuid: uuid.to_owned(), executed: GtidSet::parse(executed).unwrap(), end }
    }

    #[test]
    fn a_server_that_shows_less_was_reset() {
        let before = shown("u", "0-1-9,1-1-5", "binlog.000003", 500);
        let is_less = |now: Shown| less(&before, &now).is_some();
        assert!(!is_less(before.clone()));
        assert!(!is_less(shown("u", "0-1-10,1-1-5", "binlog.000004", 4)));
        assert!(is_less(shown("u", "0-1-10", "binlog.000003", 501)), "a domain is missing");
        assert!(is_less(shown("u", "0-1-8,1-1-5", "binlog.000003", 501)));
        assert!(is_less(shown("u", "0-1-9,1-1-5", "binlog.000001", 900)));
        assert!(is_less(shown("u", "0-1-9,1-1-5", "binlog.000003", 499)));
        assert!(!is_less(shown("u", "0-1-9,1-1-5", "other.000001", 4)), "log_bin was renamed");
        assert!(!is_less(shown("v", "0-2-3", "binlog.000001", 4)), "it is another server");
        // Another server's transaction in the domain, numbered without regard to the first's.
        assert!(!is_less(shown("u", "0-2-4,1-1-5", "binlog.000003", 600)));
    }
}
