//! The state that all connections of the MySQL protocol share.

use std::sync::{Arc, atomic::AtomicUsize};

use remora_engine::Value;
use remora_sql::Instance;
use tokio_rustls::TlsAcceptor;

use super::{
    host::SqlHost,
    processes::{ConnectionSlot, Processes},
    tls,
};
use crate::{Result, limits::BufferBudget, settings::Settings, shared::ServerState};

/// Drivers judge the server by this version: the MySQL release whose behaviour it has.
const VERSION: &str = concat!("8.4.13-remora-", env!("CARGO_PKG_VERSION"));

/// The SQL service of a server. All parts may be used from any thread.
pub(crate) struct SqlService {
    pub shared: Arc<ServerState>,
    pub instance: Instance,
    pub processes: Arc<Processes>,
    pub tls: Option<TlsAcceptor>,
    pub buffers: Arc<BufferBudget>,
    /// Prepared statements of all connections.
    pub statements: Arc<AtomicUsize>,
}

impl SqlService {
    /// Sets the SQL service up; `listens`: clients can connect to it. Fails if its certificate cannot be used then.
    pub(crate) fn new(shared: Arc<ServerState>, listens: bool) -> Result<Self> {
        let settings = shared.settings.load_full();
        let processes = Arc::new(Processes::default());
        let host = SqlHost::new(Arc::clone(&shared), Arc::clone(&processes));
        let own = remora_sql::Settings {
            version: VERSION.to_owned(),
            max_query_memory_bytes: settings.sql.max_query_memory_mb << 20,
            max_total_memory_bytes: settings.sql.max_total_query_memory_mb << 20,
            max_temporary_memory_bytes: settings.sql.max_temporary_memory_mb << 20,
            spill: Some(settings.data.join("spill")),
            max_spill_bytes: settings.sql.max_spill_mb << 20,
            max_direct_rows: remora_sql::MAX_DIRECT_ROWS,
            default_database: settings.sql.default_database.clone(),
        };
        let instance = Instance::new(shared.database.clone(), Arc::new(host), own);
        set_globals(&instance, &settings);
        let tls = settings
            .sql
            .tls
            .as_ref()
            .filter(|_| listens)
            .map(|(cert, key)| tls::acceptor(cert, key));
        Ok(Self {
            instance,
            processes,
            tls: tls.transpose()?,
            buffers: Arc::default(),
            statements: Arc::default(),
            shared,
        })
    }

    /// The version in the greeting and in `@@version`.
    pub(crate) fn version(&self) -> &'static str {
        VERSION
    }

    /// Registers a connection; `None` at the limit.
    pub(crate) fn connect(&self) -> Option<ConnectionSlot> {
        self.processes.connect(self.shared.settings.load().sql.max_connections)
    }
}

/// Exposes the settings as system variables.
fn set_globals(instance: &Instance, settings: &Settings) {
    let sql = &settings.sql;
    let port = settings.listen.sql.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let numbers = [
        ("connect_timeout", sql.connect_timeout_s),
        ("interactive_timeout", sql.wait_timeout_s),
        ("max_allowed_packet", sql.max_allowed_packet as u64),
        ("max_connections", sql.max_connections as u64),
        ("max_prepared_stmt_count", sql.max_prepared_statements as u64),
        ("max_user_connections", sql.max_user_connections as u64),
        ("net_write_timeout", sql.write_timeout_s),
        ("port", port.unwrap_or(0)),
        ("wait_timeout", sql.wait_timeout_s),
    ];
    for (name, number) in numbers {
        instance.set_global(name, Value::Uint(number));
    }
    let switches =
        [("local_infile", sql.local_infile), ("require_secure_transport", sql.require_tls)];
    for (name, is_on) in switches {
        instance.set_global(name, Value::Int(i64::from(is_on)));
    }
    instance.set_global("sql_dialect", Value::Text(sql.dialect.as_str().into()));
    let socket = settings.listen.sql_socket.as_ref().map(|path| path.display().to_string());
    instance.set_global("socket", Value::Text(socket.unwrap_or_default().into()));
    if let Some(zone) = &settings.time_zone {
        instance.set_global("time_zone", Value::Text(zone.name().into()));
    }
}
