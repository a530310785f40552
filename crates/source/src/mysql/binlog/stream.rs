//! The dump connection: turns the events that the source sends into the source's history.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mysql::{BinlogDumpFlags, BinlogRequest, BinlogStream, Conn, prelude::Queryable};
use mysql_common::packets::Sid;
use remora_mysql::ErrorCode;

use super::{SourceEvent, history::History, raw_event::RawEvent};
use crate::{
    Error, Result,
    mysql::{
        client_error::{client_error, unreachable},
        connection::{self, Connection, Server, guarded},
        coordinates::Coordinates,
        gtid::{Flavor, GtidSet, MySqlSet},
        settings::MysqlSettings,
    },
};

/// The heartbeat interval of an idle source.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// After this time of silence the source counts as dead: reconnect.
const SILENCE: Duration = Duration::from_secs(10);
/// How long the source may take to commit what its stream has already sent.
const COMMIT_DELAY: Duration = Duration::from_secs(5);
/// The timeout for killing the stream's connection. If that fails, the network is gone and `SILENCE` ends the stream.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// From this version on the source can send heartbeats with an offset of 8 bytes.
const HEARTBEAT_V2_SINCE: (u16, u16, u16) = (8, 0, 26);
/// The flag that requests them; the client crate has an older name for it.
const USE_HEARTBEAT_V2: BinlogDumpFlags = BinlogDumpFlags::BINLOG_THROUGH_POSITION;

/// A stream of the source's changes after a position.
pub struct SourceStream {
    events: BinlogStream,
    history: History,
    from: String,
    server: Server,
    server_id: u32,
    interrupter: Interrupter,
    ended: bool,
    warned_of_sums: bool,
}

/// Interrupts a blocked [`SourceStream::next`] from another thread.
#[derive(Clone, Debug)]
pub struct Interrupter {
    settings: MysqlSettings,
    connection_id: u32,
    interrupted: Arc<AtomicBool>,
}

impl SourceStream {
    /// Connects and requests everything after `from`. Waits for some seconds if the source has less than `from`.
    ///
    /// # Errors
    /// `Purged` if the source no longer has everything after `from`, `BackInTime` if it does not have `from`. Both may
    /// also come from the first [`SourceStream::next`].
    pub fn open(settings: &MysqlSettings, from: &GtidSet) -> Result<Self> {
        let mut checked = connection::connect(settings)?;
        check_position(&mut checked, from)?;
        let server = checked.server.clone();
        drop(checked);
        let mut conn = connection::open(settings, SILENCE)?;
        let interrupter = Interrupter {
            settings: settings.clone(),
            connection_id: conn.connection_id(),
            interrupted: Arc::default(),
        };
        guarded(settings, "SET for the binlog stream", || prepare(&mut conn, &server, from))?;
        // Replicas with the same id disconnect each other, so a large random id is chosen.
        let server_id = settings.server_id.unwrap_or_else(|| (1 << 31) | random());
        let request = request(server_id, &server, from)?;
        let events = guarded(settings, "the binlog stream", || conn.get_binlog_stream(request))?;
        Ok(Self {
            events,
            history: History::default(),
            from: from.to_string(),
            server,
            server_id,
            interrupter,
            ended: false,
            warned_of_sums: false,
        })
    }

    /// The next event of the source's history; blocks until there is one.
    ///
    /// # Errors
    /// After an error the stream has ended: open another.
    ///
    /// - [`Error::Cancelled`]: the stream was interrupted.
    /// - [`Error::Unreachable`]: the connection broke, or the source ended the stream.
    /// - [`Error::Purged`] or [`Error::BackInTime`]: the source no longer has, or never had, what
    ///   comes after the position.
    /// - [`Error::Requirement`]: another replica has the same `server_id`, or transactions come
    ///   without a GTID.
    /// - [`Error::Unfollowable`]: what happened at the source cannot be followed.
    /// - [`Error::Damaged`] or [`Error::Undecodable`]: an event is damaged or not understood.
    /// - [`Error::AccessDenied`] or [`Error::Statement`]: the source refused otherwise.
    #[expect(clippy::should_implement_trait, reason = "an error ends it, which no iterator says")]
    pub fn next(&mut self) -> Result<SourceEvent> {
        if self.ended {
            return Err(unreachable(&self.interrupter.settings, "the binlog stream has ended"));
        }
        let next = self.step();
        self.ended = next.is_err();
        match next {
            Err(_) if self.interrupter.is_interrupted() => Err(Error::Cancelled),
            next => next,
        }
    }

    /// The position in the binlog.
    pub fn place(&self) -> &Coordinates {
        self.history.place()
    }

    /// The source, as it was when the stream was opened.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A handle to interrupt a blocked `next` from another thread; `next` then returns `Cancelled`.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    fn step(&mut self) -> Result<SourceEvent> {
        loop {
            if let Some(event) = self.history.take() {
                return Ok(event);
            }
            if self.interrupter.is_interrupted() {
                return Err(Error::Cancelled);
            }
            if !self.history.unpack()? {
                let event = self.receive()?;
                self.warn_of_missing_sums(&event);
                self.history.push(event)?;
            }
        }
    }

    fn receive(&mut self) -> Result<RawEvent> {
        let settings = &self.interrupter.settings;
        // The client crate trusts the size in an event's header and panics if it is wrong.
        let Ok(event) = catch_unwind(AssertUnwindSafe(|| self.events.next())) else {
            let Coordinates { file, offset } = self.history.place().clone();
            let message = "the event after it has another size than its header says".to_owned();
            return Err(Error::Damaged { file, offset, message });
        };
        match event {
            Some(Ok(event)) => Ok(RawEvent::received(event)),
            Some(Err(mysql::Error::MySqlError(error))) if is_duplicate_replica(&error.message) => {
                Err(self.duplicate_replica())
            }
            Some(Err(mysql::Error::MySqlError(error)))
                if error.code == ErrorCode::FatalReadingBinlog.number() =>
            {
                Err(self.refusal(error.message))
            }
            Some(Err(error)) => Err(client_error(settings, "reading the binlog", error)),
            None => Err(unreachable(settings, "the source ended the binlog stream")),
        }
    }

    /// Another replica with this one's id has taken over the stream.
    fn duplicate_replica(&self) -> Error {
        let (settings, id) = (&self.interrupter.settings, self.server_id);
        Error::Requirement {
            message: format!(
                "{} ended the stream: another replica of it has our server_id, {id}",
                settings.address()
            ),
            advice: "set server_id (in a URL server-id) to a number that no other replica has, or \
                   leave it out for a random one"
                .to_owned(),
        }
    }

    /// Converts the source's refusal to send, which is only a message text, to an error.
    fn refusal(&self, message: String) -> Error {
        let lower = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if says(&["more gtids than", "diverged"]) {
            return Error::BackInTime { message };
        }
        if says(&["purged", "not in the master's binlog", "could not find gtid state"]) {
            return Error::Purged { position: self.from.clone(), message };
        }
        if says(&["crc", "corrupt", "truncated", "bogus", "event_len"]) {
            let Coordinates { file, offset } = self.history.place().clone();
            return Error::Damaged { file, offset, message };
        }
        unreachable(&self.interrupter.settings, message)
    }

    fn warn_of_missing_sums(&mut self, event: &RawEvent) {
        if event.is_format_description() && !event.sums_events() && !self.warned_of_sums {
            self.warned_of_sums = true;
            tracing::warn!(
                "{} writes its binlog without checksums: damage on the way would not be noticed; \
                 run there: SET GLOBAL binlog_checksum = CRC32",
                self.interrupter.settings.address()
            );
        }
    }
}

impl Interrupter {
    /// Ends the stream: a blocked `next` and all later calls return `Cancelled`. It connects to the source for that; if
    /// this fails, `next` ends after some seconds of silence.
    pub fn interrupt(&self) {
        if self.interrupted.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut settings = self.settings.clone();
        settings.connect_timeout = settings.connect_timeout.min(KILL_TIMEOUT);
        let killed = connection::open(&settings, KILL_TIMEOUT).and_then(|mut conn| {
            let kill = format!("KILL {}", self.connection_id);
            guarded(&settings, &kill, || conn.query_drop(&kill))
        });
        if let Err(error) = killed {
            tracing::debug!("the binlog stream ends late: {error}");
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }
}

/// Whether the source ended a stream because another has the same id.
fn is_duplicate_replica(message: &str) -> bool {
    message.contains("same server_uuid/server_id") || message.contains("same server_id")
}

/// Checks that the source has `from` and everything after it. Transactions that its stream sent before their commit
/// appear in the executed set only a moment later.
fn check_position(source: &mut Connection, from: &GtidSet) -> Result<()> {
    let deadline = Instant::now() + COMMIT_DELAY;
    let mut executed = source.executed()?;
    while !executed.covers(from) {
        if Instant::now() >= deadline {
            return Err(Error::BackInTime {
                message: format!("it has executed {executed}, but {from} was applied"),
            });
        }
        thread::sleep(Duration::from_millis(50));
        executed = source.executed()?;
    }
    let purged = source.purged()?;
    if !from.covers(&purged) {
        let message = format!("it has purged {purged}");
        return Err(Error::Purged { position: from.to_string(), message });
    }
    Ok(())
}

/// The statements before the stream is requested.
fn prepare(conn: &mut Conn, server: &Server, from: &GtidSet) -> mysql::Result<()> {
    let heartbeat = HEARTBEAT.as_nanos();
    conn.query_drop(format!(
        "SET @master_heartbeat_period = {heartbeat}, @source_heartbeat_period = {heartbeat}, \
         @source_binlog_checksum = @@GLOBAL.binlog_checksum, @slave_uuid = UUID(), \
         @replica_uuid = @slave_uuid"
    ))?;
    if server.flavor == Flavor::MariaDb {
        // The source omits nothing that is not in the state, and refuses what it lacks.
        conn.query_drop(format!(
            "SET @mariadb_slave_capability = 4, @slave_connect_state = '{from}', \
             @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0"
        ))?;
    }
    Ok(())
}

fn request(id: u32, server: &Server, from: &GtidSet) -> Result<BinlogRequest<'static>> {
    let request = BinlogRequest::new(id);
    Ok(match from {
        GtidSet::MariaDb(_) => request,
        GtidSet::MySql(set) => {
            let v2 = server.version >= HEARTBEAT_V2_SINCE;
            let flags = if v2 { USE_HEARTBEAT_V2 } else { BinlogDumpFlags::empty() };
            request.with_use_gtid(true).with_flags(flags).with_sids(sids(set)?)
        }
    })
}

/// The set in the form of the request.
fn sids(set: &MySqlSet) -> Result<Vec<Sid<'static>>> {
    let parse = |text: String| {
        text.parse().map_err(|error| Error::Setting(format!("GTID set {text}: {error}")))
    };
    set.texts().map(parse).collect()
}

fn random() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    u32::try_from(RandomState::new().hash_one(std::process::id()) >> 33).unwrap_or(1)
}
