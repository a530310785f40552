//! A running server: start, reload and stop.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use remora_engine::Database;
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinSet,
};

use crate::{
    Error, LogHandle, Result,
    accounts::LoginPolicy,
    dump, http,
    line::{self, LocalSession},
    listen::SocketFile,
    mysql,
    settings::{Change, Dialect, Settings, changes},
    shared::ServerState,
    sources::FollowedSource,
    sphinx, tiedot,
};

/// The mode of the line protocol's socket: owner and group, as in MygramDB.
const LINE_SOCKET_MODE: u32 = 0o770;

/// The mode of SQL's socket if a login is required.
const SQL_SOCKET_MODE: u32 = 0o777;

/// How long sessions may finish their current answer when the server stops.
const DRAIN: Duration = Duration::from_millis(400);

/// A running server. Dropping it leaves its sessions running until the runtime ends, so call [`Server::stop`].
pub struct Server {
    shared: Arc<ServerState>,
    line_address: Option<SocketAddr>,
    http_address: Option<SocketAddr>,
    sql_address: Option<SocketAddr>,
    sphinx_sql_address: Option<SocketAddr>,
    sphinx_address: Option<SocketAddr>,
    tiedot_address: Option<SocketAddr>,
    listeners: JoinSet<()>,
    sockets: Vec<SocketFile>,
}

impl Server {
    /// Binds the configured addresses and serves them. The database stays open until [`Server::stop`].
    ///
    /// # Errors
    /// [`Error::Io`] if an address or a socket file cannot be bound, [`Error::Settings`] if another server listens on a
    /// socket file, another file is in its place, or the certificate for SQL cannot be used.
    pub async fn start(
        settings: Settings,
        database: Database,
        log: Option<LogHandle>,
    ) -> Result<Self> {
        let line = bind_tcp(&settings.listen.line).await?;
        let http = bind_tcp(&settings.listen.http).await?;
        let sql = bind_tcp(&settings.listen.sql).await?;
        let sphinx = bind_tcp(&settings.listen.sphinx).await?;
        let sphinx_api = bind_tcp(&settings.listen.sphinx_api).await?;
        let tiedot = bind_tcp(&settings.listen.tiedot).await?;
        let mut sockets = Vec::new();
        let mut bind_unix = |path: &Option<PathBuf>, mode| match path {
            None => Ok(None),
            Some(path) => SocketFile::bind(path, Some(mode)).map(|(file, listener)| {
                sockets.push(file);
                Some(listener)
            }),
        };
        let socket = bind_unix(&settings.listen.line_socket, LINE_SOCKET_MODE)?;
        // If SQL requires a login, the socket is open to everyone who can reach it.
        let guarded = LoginPolicy::of(&settings).is_required();
        let mode = if guarded { SQL_SOCKET_MODE } else { LINE_SOCKET_MODE };
        let sql_socket = bind_unix(&settings.listen.sql_socket, mode)?;
        let address = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
        let (line_address, http_address) = (address(&line), address(&http));
        let (sql_address, sphinx_address) = (address(&sql), address(&sphinx_api));
        let sphinx_sql_address = address(&sphinx);
        let tiedot_address = address(&tiedot);
        let shared = Arc::new(ServerState::new(settings, database, log));
        shared.query_log.apply(&shared.settings.load().query_log)?;
        let mut listeners = JoinSet::new();
        if let Some(listener) = line {
            listeners.spawn(line::accept(listener, Arc::clone(&shared)));
        }
        if let Some(listener) = socket {
            listeners.spawn(line::accept(listener, Arc::clone(&shared)));
        }
        if let Some(listener) = http {
            listeners.spawn(http::serve(listener, Arc::clone(&shared)));
        }
        if let Some(listener) = tiedot {
            listeners.spawn(tiedot::serve(listener, Arc::clone(&shared)));
        }
        let sql = SqlListeners { sql, sphinx, socket: sql_socket, sphinx_api };
        sql.serve(&shared, &mut listeners)?;
        listeners.spawn(dump::save_dumps_at_intervals(Arc::clone(&shared)));
        Ok(Self {
            shared,
            line_address,
            http_address,
            sql_address,
            sphinx_sql_address,
            sphinx_address,
            tiedot_address,
            listeners,
            sockets,
        })
    }

    /// The actual address of the line protocol, with the port that the system assigned.
    pub fn line_address(&self) -> Option<SocketAddr> {
        self.line_address
    }

    /// The actual address of HTTP, with the port that the system assigned.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// The actual address of the MySQL protocol, with the port that the system assigned.
    pub fn sql_address(&self) -> Option<SocketAddr> {
        self.sql_address
    }

    /// The actual address of the MySQL protocol in Sphinx's dialect, with the port that the system assigned.
    pub fn sphinx_sql_address(&self) -> Option<SocketAddr> {
        self.sphinx_sql_address
    }

    /// The actual address of SphinxAPI, with the port that the system assigned.
    pub fn sphinx_address(&self) -> Option<SocketAddr> {
        self.sphinx_address
    }

    /// The actual address of tiedot's HTTP API, with the port that the system assigned.
    pub fn tiedot_address(&self) -> Option<SocketAddr> {
        self.tiedot_address
    }

    /// Waits until an authorized client asks the server to stop; the caller then calls [`Server::stop`].
    pub async fn stop_asked(&self) {
        self.shared.stop_asked.notified().await;
    }

    /// Sets the followed sources; once, after the start.
    pub fn follow(&self, sources: Vec<FollowedSource>) {
        self.shared.sources.set(sources);
    }

    /// The state that all sessions share.
    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.shared
    }

    /// A session of the server's owner, without a connection.
    pub fn owner(&self) -> LocalSession {
        LocalSession::of(Arc::clone(&self.shared))
    }

    /// Applies those settings of `new` that can change while the server runs. Returns the names of the changed settings
    /// that need a restart.
    pub fn reload(&self, new: Settings) -> Vec<&'static str> {
        let _changing = self.shared.changing.lock();
        let old = self.shared.settings.load_full();
        let mut applied = new.clone();
        let mut waiting = Vec::new();
        for variable in changes(&old, &new) {
            if variable.change == Change::Restart {
                waiting.push(variable.name(new.dialect));
                variable.copy(&old, &mut applied);
            }
        }
        let same_mode = !waiting.contains(&"durability.mode");
        if same_mode && applied.durability != old.durability {
            waiting.push("durability.interval_ms");
        }
        applied.durability = old.durability;
        if format!("{:?}", applied.sources) != format!("{:?}", old.sources) {
            waiting.push("mysql");
            applied.sources.clone_from(&old.sources);
        } else if applied.time_zone != old.time_zone {
            waiting.push("mysql.datetime_timezone");
        }
        applied.time_zone.clone_from(&old.time_zone);
        if applied.tables != old.tables || applied.words != old.words {
            waiting.push("tables");
        }
        if let Some(log) = &self.shared.log
            && let Err(error) = log.apply(&applied.logging)
        {
            tracing::warn!("the log output stays as it was: {error}");
        }
        if let Err(error) = self.shared.query_log.apply(&applied.query_log) {
            tracing::warn!("the log of queries stays as it was: {error}");
            applied.query_log = old.query_log.clone();
        }
        self.shared.settings.store(Arc::new(applied));
        self.shared.cache.clear(None);
        waiting
    }

    /// Stops listening, lets sessions finish their answers, and closes the database. Takes a few seconds at most.
    ///
    /// # Errors
    /// [`Error::Engine`] if the last write has not ended or the last checkpoint failed, as in [`Database::close`]. The
    /// server has stopped nevertheless.
    pub async fn stop(mut self) -> Result<()> {
        self.shared.stopping.send_replace(true);
        let deadline = tokio::time::Instant::now() + DRAIN;
        let drained = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout_at(deadline, drained).await.is_err() {
            tracing::warn!("some sessions did not end within {DRAIN:?} and are cut off");
            self.listeners.shutdown().await;
        }
        self.sockets.clear();
        // It holds the state that holds it.
        self.shared.sql.lock().take();
        tokio::task::block_in_place(|| {
            self.shared.query_log.close();
            self.shared.sources.stop();
            self.shared.database.close()
        })?;
        Ok(())
    }
}

/// The listeners of the protocols whose statements SQL runs.
struct SqlListeners {
    sql: Option<TcpListener>,
    sphinx: Option<TcpListener>,
    socket: Option<UnixListener>,
    sphinx_api: Option<TcpListener>,
}

impl SqlListeners {
    /// Sets SQL up, for these listeners and for the line protocol, which writes into tables of SQL.
    fn serve(self, shared: &Arc<ServerState>, listeners: &mut JoinSet<()>) -> Result<()> {
        let Self { sql, sphinx, socket, sphinx_api } = self;
        let listens = sql.is_some() || socket.is_some() || sphinx.is_some() || sphinx_api.is_some();
        if !listens && shared.settings.load().dialect == Dialect::MygramDb {
            return Ok(());
        }
        let service = Arc::new(mysql::SqlService::new(Arc::clone(shared), listens)?);
        *shared.sql.lock() = Some(service.instance.clone());
        for (listener, is_sphinx) in [(sql, false), (sphinx, true)] {
            if let Some(listener) = listener {
                listeners.spawn(mysql::accept(listener, Arc::clone(&service), is_sphinx));
            }
        }
        if let Some(listener) = socket {
            listeners.spawn(mysql::accept(listener, Arc::clone(&service), false));
        }
        if let Some(listener) = sphinx_api {
            listeners.spawn(sphinx::accept(listener, service));
        }
        Ok(())
    }
}

/// Binds an address; an empty one binds nothing.
async fn bind_tcp(address: &str) -> Result<Option<TcpListener>> {
    if address.is_empty() {
        return Ok(None);
    }
    TcpListener::bind(address).await.map(Some).map_err(|source| Error::Io {
        what: format!("cannot listen on {address} (is another server running there?)"),
        source,
    })
}
