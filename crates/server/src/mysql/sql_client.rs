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
    service::SqlService,
    watch::{Ended, run_watched},
    wire::Wire,
};
use crate::{limits::BufferShare, query_log::AnsweredSearch};

/// MySQL's default.
const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                        ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// A registered connection of the SQL service, whose client is not known yet.
pub(crate) struct ReservedConnection {
    service: Arc<SqlService>,
    slot: ConnectionSlot,
}

/// A client with a session.
pub(crate) struct SqlClient {
    service: Arc<SqlService>,
    slot: ConnectionSlot,
    session: Session,
    interrupter: Arc<AtomicBool>,
    /// The deadline of the running request.
    deadline: Option<Instant>,
    /// The deadline of its running part.
    part_deadline: Option<Instant>,
}

/// The time this many milliseconds from now; `None` for 0 and for overflow.
fn deadline_after(limit_ms: u64) -> Option<Instant> {
    let limit = (limit_ms > 0).then(|| Duration::from_millis(limit_ms));
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// The remaining milliseconds until a deadline; 0 means no limit.
///
/// # Errors
/// 3024 if the deadline has passed.
fn remaining_ms(deadline: Option<Instant>) -> Result<u64> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    match u64::try_from(left.as_millis()).unwrap_or(u64::MAX) {
        0 => Err(Error::query_timeout()),
        remaining_ms => Ok(remaining_ms),
    }
}

impl SqlService {
    /// Registers a client of another protocol; `None` at the limit of connections.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<ReservedConnection> {
        Some(ReservedConnection { slot: self.connect()?, service: Arc::clone(self) })
    }

    /// A share of the buffer memory of all connections.
    pub(crate) fn buffer_share(&self) -> BufferShare {
        BufferShare::new(Arc::clone(&self.buffers))
    }

    /// Statistics: seconds since the start, connections and statements.
    pub(crate) fn figures(&self) -> [u64; 3] {
        let seconds = self.shared.started.elapsed().as_secs();
        [seconds, self.processes.total(), self.processes.commands()]
    }
}

impl ReservedConnection {
    /// Begins the session of a client on this stream.
    ///
    /// # Errors
    /// 1203 if the user has too many connections.
    pub(crate) fn log_in(self, identity: Identity, stream: &Wire) -> Result<SqlClient> {
        let Self { service, slot } = self;
        let session = service.instance.session(u64::from(slot.connection.id), identity.clone());
        let interrupter = session.interrupter();
        slot.connection.set_peer(stream.peer());
        slot.connection.identify(&identity.user, &identity.host, Arc::clone(&interrupter));
        let most = service.shared.settings.load().sql.max_user_connections;
        if most > 0 && service.processes.of_user(&identity.user) > most {
            let refused = WireError::too_many_user_connections(&identity.user);
            return Err(Error::new(refused.code, refused.message));
        }
        slot.connection.end();
        Ok(SqlClient { service, slot, session, interrupter, deadline: None, part_deadline: None })
    }
}

impl SqlClient {
    /// Begins a request. All its statements share the time limit of a statement.
    pub(crate) fn begin_request(&mut self) {
        let limit_ms = self.service.shared.settings.load().sql.max_execution_time_ms;
        self.deadline = deadline_after(limit_ms);
        self.part_deadline = None;
        self.interrupter.store(false, Relaxed);
    }

    /// Begins a part of the request, with a time limit in milliseconds (0 means none) for all its statements. If it
    /// expires, other parts still run.
    pub(crate) fn begin_part(&mut self, limit_ms: u64) {
        self.part_deadline = deadline_after(limit_ms);
    }

    /// Runs a statement of a request.
    ///
    /// # Errors
    /// The statement's error; 3024 if the request's time is up, 1317 if it was killed. Both also apply to all its
    /// further statements.
    pub(crate) async fn run<R: Reply>(&mut self, text: &str, reply: &mut R) -> Result<()> {
        self.service.processes.count_command();
        let process = &self.slot.connection;
        let limit_ms = remaining_ms(self.deadline)?;
        let part_ms = remaining_ms(self.part_deadline)?;
        // After a kill, or without a client, no further statement is run.
        let is_ended = process.is_killed() || self.interrupter.load(Relaxed);
        if is_ended || process.is_disconnected() || *self.service.shared.stopping.borrow() {
            return Err(Error::interrupted());
        }
        process.begin("Query", text.as_bytes());
        // The limit of a part is enforced by the session alone, because ending the request would look like a KILL.
        let allowed_ms = self.session.time_limit_ms();
        if part_ms > 0 {
            let shorter_ms = if allowed_ms > 0 { allowed_ms.min(part_ms) } else { part_ms };
            self.session.limit_time(shorter_ms);
        }
        // Boxed, so that the caller's future type is not as deep as a statement's.
        let run: Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> =
            Box::pin(self.session.query(text.as_bytes(), false, reply));
        let shared = &self.service.shared;
        let ended = run_watched(run, process, &self.interrupter, limit_ms, shared).await;
        process.end();
        if part_ms > 0 {
            self.session.limit_time(allowed_ms);
        }
        match ended {
            Ended::Done(result) => result,
            Ended::TimedOut => Err(Error::query_timeout()),
            Ended::Abandoned => Err(Error::interrupted()),
        }
    }

    /// Sets the session up for texts in the other protocol's form, regardless of global settings.
    ///
    /// # Errors
    /// Those of [`SqlClient::run`].
    pub(crate) async fn set_session_variables<R: Reply>(&mut self, reply: &mut R) -> Result<()> {
        let settings =
            format!("SET NAMES utf8mb4, SESSION sql_mode = '{SQL_MODE}', sql_dialect = 'mysql'");
        self.run(&settings, reply).await
    }

    /// Logs a search that several of its statements answered, if queries are logged.
    pub(crate) fn log_search(&self, search: &AnsweredSearch<'_>) {
        let shared = &self.service.shared;
        let connection = u64::from(self.slot.connection.id);
        let search = AnsweredSearch { connection, ..*search };
        shared.query_log.add(&shared.settings.load().query_log, &search);
    }

    /// Its session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The SQL service.
    pub(crate) fn service(&self) -> &Arc<SqlService> {
        &self.service
    }

    /// The flag that interrupts the running statement.
    pub(crate) fn interrupter(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupter)
    }

    /// Waits until another connection kills this one.
    pub(crate) fn killed(&self) -> impl Future<Output = ()> + use<> {
        let connection = Arc::clone(&self.slot.connection);
        async move { connection.killed().await }
    }
}
