//! A client of another protocol that uses SQL sessions. It counts as a connection, appears in SHOW PROCESSLIST and can
//! be killed, and its statements are watched. All statements of one request share one time limit, and ending one ends
//! the request.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use remora_protocol::mysql::WireError;
use remora_sql::{Error, Identity, Reply, Result, Session};

use super::{
    processes::ConnectionSlot,
    side::SqlSide,
    watch::{Ended, watched},
    wire::Wire,
};
use crate::limits::BufferShare;

/// MySQL's own.
const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                        ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// A place among the connections of the SQL side, whose client is not known yet.
pub(crate) struct Seat {
    side: Arc<SqlSide>,
    place: ConnectionSlot,
}

/// A client with a session.
pub(crate) struct Guest {
    side: Arc<SqlSide>,
    place: ConnectionSlot,
    session: Session,
    interrupter: Arc<AtomicBool>,
    /// When the running request has to be done.
    deadline: Option<Instant>,
    /// When the part of it that runs has to be done.
    part_deadline: Option<Instant>,
}

/// The moment so many milliseconds from now; `None` for 0, or if it is too far away to be told.
fn after(limit_ms: u64) -> Option<Instant> {
    let limit = (limit_ms > 0).then(|| Duration::from_millis(limit_ms));
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// What is left until then in milliseconds, where 0 is any number.
///
/// # Errors
/// 3024 if nothing is left.
fn left_ms(deadline: Option<Instant>) -> Result<u64> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    match u64::try_from(left.as_millis()).unwrap_or(u64::MAX) {
        0 => Err(Error::query_timeout()),
        left_ms => Ok(left_ms),
    }
}

impl SqlSide {
    /// A place for a client of another wire, if there is one.
    pub(crate) fn seat(self: &Arc<Self>) -> Option<Seat> {
        Some(Seat { place: self.connect()?, side: Arc::clone(self) })
    }

    /// A share of the buffers that all connections have together.
    pub(crate) fn buffer_share(&self) -> BufferShare {
        BufferShare::new(Arc::clone(&self.buffers))
    }

    /// Figures of the server: seconds since the start, connections and statements since then.
    pub(crate) fn figures(&self) -> [u64; 3] {
        let seconds = self.shared.started.elapsed().as_secs();
        [seconds, self.processes.total(), self.processes.commands()]
    }
}

impl Seat {
    /// Begins the session of a client whose stream this is of.
    ///
    /// # Errors
    /// 1203 where the user has too many connections.
    pub(crate) fn take(self, identity: Identity, stream: &Wire) -> Result<Guest> {
        let Self { side, place } = self;
        let session = side.instance.session(u64::from(place.connection.id), identity.clone());
        let interrupter = session.interrupter();
        place.connection.comes_over(stream.peer());
        place.connection.identify(&identity.user, &identity.host, Arc::clone(&interrupter));
        let most = side.shared.settings.load().sql.max_user_connections;
        if most > 0 && side.processes.of_user(&identity.user) > most {
            let refused = WireError::too_many_user_connections(&identity.user);
            return Err(Error::new(refused.code, refused.message));
        }
        place.connection.end();
        Ok(Guest { side, place, session, interrupter, deadline: None, part_deadline: None })
    }
}

impl Guest {
    /// A request begins: its statements have as much time together as a statement may take.
    pub(crate) fn begin_request(&mut self) {
        let limit_ms = self.side.shared.settings.load().sql.max_execution_time_ms;
        self.deadline = after(limit_ms);
        self.part_deadline = None;
        self.interrupter.store(false, Relaxed);
    }

    /// A part of the request begins, whose statements have so many milliseconds together, where 0 is any number. Where its
    /// time is over the other parts still run.
    pub(crate) fn begin_part(&mut self, limit_ms: u64) {
        self.part_deadline = after(limit_ms);
    }

    /// Runs a statement of a request.
    ///
    /// # Errors
    /// That of the statement; 3024 where the request's time is over, 1317 where it is told to end, for all of its
    /// statements that follow too.
    pub(crate) async fn run<R: Reply>(&mut self, text: &str, reply: &mut R) -> Result<()> {
        self.side.processes.count_command();
        let process = &self.place.connection;
        let limit_ms = left_ms(self.deadline)?;
        let part_ms = left_ms(self.part_deadline)?;
        // What is told to end, or has nobody to answer to, begins nothing more.
        let is_ended = process.is_killed() || self.interrupter.load(Relaxed);
        if is_ended || process.is_left() || *self.side.shared.stopping.borrow() {
            return Err(Error::interrupted());
        }
        process.begin("Query", text.as_bytes());
        // Only the session ends a statement whose part's time is over: what ends the request is not told from a KILL.
        let allowed_ms = self.session.time_limit_ms();
        if part_ms > 0 {
            let shorter_ms = if allowed_ms > 0 { allowed_ms.min(part_ms) } else { part_ms };
            self.session.limit_time(shorter_ms);
        }
        // Boxed, so that whoever awaits this has no type as deep as a statement's.
        let run: Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> =
            Box::pin(self.session.query(text.as_bytes(), false, reply));
        let shared = &self.side.shared;
        let ended = watched(run, process, &self.interrupter, limit_ms, shared).await;
        process.end();
        if part_ms > 0 {
            self.session.limit_time(allowed_ms);
        }
        match ended {
            Ended::Done(result) => result,
            Ended::TimedOut => Err(Error::query_timeout()),
            Ended::Cut => Err(Error::interrupted()),
        }
    }

    /// Makes the session one in which texts are read as the other wire writes them, whatever is set for all.
    ///
    /// # Errors
    /// Those of [`Guest::run`].
    pub(crate) async fn settle<R: Reply>(&mut self, reply: &mut R) -> Result<()> {
        let settings =
            format!("SET NAMES utf8mb4, SESSION sql_mode = '{SQL_MODE}', sql_dialect = 'mysql'");
        self.run(&settings, reply).await
    }

    /// Its session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The side it is a client of.
    pub(crate) fn side(&self) -> &Arc<SqlSide> {
        &self.side
    }

    /// What is set where its running statement is to end.
    pub(crate) fn interrupter(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupter)
    }

    /// Waits until another connection ends this one.
    pub(crate) fn killed(&self) -> impl Future<Output = ()> + use<> {
        let connection = Arc::clone(&self.place.connection);
        async move { connection.killed().await }
    }
}
