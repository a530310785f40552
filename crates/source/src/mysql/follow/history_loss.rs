//! Detects that the source lost the history that was followed.
//!
//! The executed GTID set and the end of the binlog only grow. A server that shows less than before was reset (`RESET
//! MASTER`, `RESET BINARY LOGS AND GTIDS`) or restored from an older backup: it reuses transaction numbers, and old
//! positions are meaningless. Its dump connection just goes silent, because it still reads the removed file. So the
//! source is also queried: what it shows is compared with what it showed before and with what was applied, and a stream
//! without new events must have delivered everything.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    positions::{BinlogFile, binlog_key},
    shared::FollowState,
    status::now_us,
};
use crate::{
    Error, Result,
    mysql::{
        connection::Connection,
        coordinates::Coordinates,
        gtid::{Flavor, GtidSet},
    },
};

/// How long before its commit a source may send a transaction, for example while it waits for other replicas.
const COMMIT_DELAY: Duration = Duration::from_secs(15);
/// An idle source's stream delivers everything executed within this time.
const DELIVERY_DELAY: Duration = Duration::from_secs(3);
/// The most time between heartbeats of an idle stream.
const HEARTBEAT_LIMIT: Duration = Duration::from_millis(2_500);

/// The state of the source when it was last asked.
#[derive(Clone, Debug)]
pub(crate) struct ObservedState {
    uuid: String,
    executed: GtidSet,
    end: Coordinates,
}

/// Asks the source for its executed set and compares it with the previous one.
///
/// # Errors
/// `BackInTime` if it has less. The new state then replaces the previous one.
pub(super) fn check_history(shared: &FollowState, source: &mut Connection) -> Result<GtidSet> {
    let executed = source.executed()?;
    let end = source.binlog_end()?;
    let now = ObservedState { uuid: source.server.uuid.clone(), executed: executed.clone(), end };
    let before = Option::replace(&mut *shared.observed.lock(), now.clone());
    match before.and_then(|before| describe_loss(&before, &now)) {
        Some(message) => Err(Error::BackInTime { message }),
        None => Ok(executed),
    }
}

/// The events of a binlog file in which a transaction is looked for.
const FIRST_EVENTS: usize = 100;
/// The type of the event that begins a transaction without a GTID.
const WITHOUT_GTID: &str = "Anonymous_Gtid";

/// Checks that a MySQL whose `gtid_mode` is ON has logged nothing without a GTID in the files from the stored one to the
/// one that `begins`. While the mode was OFF or OFF_PERMISSIVE it did, and a position of GTIDs passes such transactions
/// over. Each change of the mode begins a new file, so the first events of a file tell what is in it, unless the source
/// also applies transactions of others that have GTIDs. MySQL 5.6 has no event for what has none.
///
/// Cost: two statements for a file that follows the stored one, and one for each between.
///
/// # Errors
/// `Purged` if it has.
pub(super) fn check_all_named(
    shared: &FollowState,
    source: &mut Connection,
    applied: &GtidSet,
    begins: &str,
) -> Result<()> {
    let stored = shared.database.source_position(&binlog_key(&shared.settings.name))?;
    let last = stored.as_deref().and_then(BinlogFile::parse);
    let last = last.filter(|file| file.uuid == source.server.uuid);
    let (Flavor::MySql, Some(last)) = (source.server.flavor, last) else { return Ok(()) };
    let column = |row: &mysql::Row, place| row.get_opt::<String, _>(place)?.ok();
    let files: Vec<mysql::Row> = source.rows("SHOW BINARY LOGS")?;
    let files: Vec<String> = files.iter().filter_map(|row| column(row, 0)).collect();
    // If that file was purged, all that are left are newer.
    let first = files.iter().position(|file| *file == last.name).unwrap_or(0);
    for file in files.iter().skip(first).take_while(|file| *file != begins) {
        let events = format!(
            "SHOW BINLOG EVENTS IN '{}' LIMIT {FIRST_EVENTS}",
            file.replace('\\', "\\\\").replace('\'', "''")
        );
        let events: Vec<mysql::Row> = source.rows(&events)?;
        if events.iter().any(|row| column(row, 2).as_deref() == Some(WITHOUT_GTID)) {
            let message = format!("gtid_mode was off: {file} has transactions without a GTID");
            return Err(Error::Purged { position: applied.to_string(), message });
        }
    }
    Ok(())
}

/// The file that the source's binlog ended in when it was last asked.
pub(super) fn last_file(shared: &FollowState) -> Option<BinlogFile> {
    let observed = shared.observed.lock();
    let ObservedState { uuid, end, .. } = observed.as_ref()?;
    let (uuid, name) = (uuid.clone(), end.file.clone());
    Some(BinlogFile { uuid, name, created: BinlogFile::UNKNOWN })
}

/// Checks that this binlog file is the stored one and not another of the same name, because names start again after a
/// reset.
pub(super) fn check_file(stored: Option<&str>, now: &BinlogFile) -> Result<()> {
    match stored.and_then(BinlogFile::parse) {
        Some(before)
            if before.uuid == now.uuid
                && before.name == now.name
                && before.created != now.created
                && before.created != BinlogFile::UNKNOWN =>
        {
            let message = format!("it was reset: its binlog {} is another file now", now.name);
            Err(Error::BackInTime { message })
        }
        _ => Ok(()),
    }
}

/// Repeated checks while the stream is read.
#[derive(Default)]
pub(super) struct HistoryWatch {
    /// What the source had executed and the stream had not delivered, and since when.
    undelivered: Option<(Instant, GtidSet)>,
    /// What was applied and the source had not executed, and since when.
    unexecuted: Option<(Instant, GtidSet)>,
}

impl HistoryWatch {
    /// Asks the source for its executed set and returns how many of those transactions are not visible here.
    ///
    /// # Errors
    /// `BackInTime` if the source lost history.
    pub fn check_history(&mut self, shared: &FollowState, source: &mut Connection) -> Result<u64> {
        let flavor = source.server.flavor;
        // Read first, because the executed set grows.
        let applied = visible(shared, flavor)?;
        let executed = check_history(shared, source)?;
        if has_lasted(&mut self.unexecuted, COMMIT_DELAY, &applied, |set| !executed.is_behind(set))
        {
            let message = format!("it has executed {executed}, but {applied} was applied");
            return Err(Error::BackInTime { message });
        }
        let applied = visible(shared, flavor)?;
        if has_lasted(&mut self.undelivered, DELIVERY_DELAY, &executed, |set| applied.covers(set))
            && is_idle(shared)
        {
            // Transactions that were executed without being logged count as purged.
            let mut known = source.purged()?;
            known.unite(&applied);
            if self.undelivered.as_ref().is_some_and(|(_, set)| !known.covers(set)) {
                let message = format!(
                    "it was reset: it has executed {executed}, and its stream ends at {applied}"
                );
                return Err(Error::BackInTime { message });
            }
            self.undelivered = None;
        }
        Ok(executed.count_beyond(&applied))
    }
}

/// Whether a set was not `in_order` for at least this time. `now` is the current set.
fn has_lasted(
    seen: &mut Option<(Instant, GtidSet)>,
    time: Duration,
    now: &GtidSet,
    in_order: impl Fn(&GtidSet) -> bool,
) -> bool {
    if seen.as_ref().is_none_or(|(_, set)| in_order(set)) {
        *seen = (!in_order(now)).then(|| (Instant::now(), now.clone()));
    }
    seen.as_ref().is_some_and(|(since, _)| since.elapsed() >= time)
}

fn visible(shared: &FollowState, flavor: Flavor) -> Result<GtidSet> {
    let text = shared.database.source_position(&shared.settings.name)?.unwrap_or_default();
    GtidSet::parse_as(flavor, &text)
}

/// Whether the stream has nothing to deliver and nothing waits here.
fn is_idle(shared: &FollowState) -> bool {
    let within = |time: Duration, since_us: i64| {
        let age = u64::try_from(now_us().saturating_sub(since_us)).unwrap_or(0);
        Duration::from_micros(age) <= time
    };
    let delivered = shared.board.delivered_us.load(Ordering::Relaxed);
    let heartbeat = shared.board.heartbeat_us.load(Ordering::Relaxed);
    !within(DELIVERY_DELAY, delivered)
        && within(HEARTBEAT_LIMIT, heartbeat)
        && shared.queue_length() == 0
}

impl FollowState {
    /// Notes that the stream was received up to this position, so the source's binlog reaches at least that far.
    pub fn received_up_to(&self, place: &Coordinates) {
        if let Some(observed) = &mut *self.observed.lock()
            && same_files(&observed.end, place)
            && observed.end < *place
        {
            observed.end.clone_from(place);
        }
    }
}

/// Whether both files have the base name that the settings determine.
fn same_files(one: &Coordinates, other: &Coordinates) -> bool {
    let base = |place: &Coordinates| place.file.rsplit_once('.').map(|(base, _)| base.to_owned());
    base(one) == base(other)
}

/// Why a server has less than before; `None` if it does not. Another server is not compared.
fn describe_loss(before: &ObservedState, now: &ObservedState) -> Option<String> {
    if before.uuid != now.uuid {
        return None;
    }
    if now.executed.is_behind(&before.executed) {
        let (now, before) = (&now.executed, &before.executed);
        return Some(format!("it was reset or restored: it has executed {now}, after {before}"));
    }
    if same_files(&before.end, &now.end) && now.end < before.end {
        let (now, before) = (&now.end, &before.end);
        return Some(format!("it was reset or restored: its binlog ends at {now}, after {before}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(uuid: &str, executed: &str, file: &str, offset: u64) -> ObservedState {
        let end = Coordinates { file: file.to_owned(), offset };
        ObservedState { uuid: uuid.to_owned(), executed: GtidSet::parse(executed).unwrap(), end }
    }

    #[test]
    fn recreated_binlog_file_is_a_different_file() {
        let file = |uuid: &str, name: &str, created| {
            let (uuid, name) = (uuid.to_owned(), name.to_owned());
            BinlogFile { uuid, name, created }
        };
        let stored = file("u", "b.1", 7).text();
        let is_same = |now: BinlogFile| check_file(Some(&stored), &now).is_ok();
        assert!(is_same(file("u", "b.1", 7)));
        assert!(!is_same(file("u", "b.1", 8)));
        assert!(is_same(file("u", "b.2", 8)) && is_same(file("v", "b.1", 8)));
        assert!(check_file(None, &file("u", "b.1", 8)).is_ok());
    }

    #[test]
    fn server_with_less_history_was_reset() {
        let before = observed("u", "0-1-9,1-1-5", "binlog.000003", 500);
        let is_less = |now: ObservedState| describe_loss(&before, &now).is_some();
        assert!(!is_less(before.clone()));
        assert!(!is_less(observed("u", "0-1-10,1-1-5", "binlog.000004", 4)));
        assert!(is_less(observed("u", "0-1-10", "binlog.000003", 501)), "a domain is missing");
        assert!(is_less(observed("u", "0-1-8,1-1-5", "binlog.000003", 501)));
        assert!(is_less(observed("u", "0-1-9,1-1-5", "binlog.000001", 900)));
        assert!(is_less(observed("u", "0-1-9,1-1-5", "binlog.000003", 499)));
        assert!(!is_less(observed("u", "0-1-9,1-1-5", "other.000001", 4)), "log_bin was renamed");
        assert!(!is_less(observed("v", "0-2-3", "binlog.000001", 4)), "it is another server");
        // A transaction of another server in the same domain, with numbers of its own.
        assert!(!is_less(observed("u", "0-2-4,1-1-5", "binlog.000003", 600)));
    }
}
