//! The servers under test: Remora and real MySQL servers, each with the same rows.

use std::{
    io::BufReader,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use mysql::{Compression, Conn, OptsBuilder, prelude::Queryable};
use remora_peers::{Kind, Server};

use super::rows::{ROWS_PER_INSERT, engine_table, insert};
use crate::{
    measure::MeasuredProcess,
    remora::{announced_sql_port, binary},
};

/// The database and the table of the rows.
pub const DATABASE: &str = "bench";

/// Pause between two checks whether a connection has ended.
const KILL_PAUSE: Duration = Duration::from_millis(200);

/// A server with the rows.
pub struct DatabaseServer {
    /// The name in the report.
    pub name: String,
    /// The table with the rows.
    pub table: &'static str,
    port: u16,
    user: &'static str,
    process: u32,
    _runs: Option<RunningServer>,
}

/// Keeps a server running.
enum RunningServer {
    Remora(Child),
    Peer(#[expect(dead_code, reason = "stops the server when dropped")] std::sync::Arc<Server>),
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Self::Remora(process) = self {
            // The process may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl DatabaseServer {
    /// A server whose process is managed elsewhere.
    pub fn of(name: &str, port: u16, user: &'static str, process: u32) -> Self {
        Self { name: name.to_owned(), table: "sbtest", port, user, process, _runs: None }
    }

    /// Address and user as options of MySQL's client programs.
    pub fn client_options(&self) -> [String; 3] {
        let (port, user) = (self.port, self.user);
        ["--host=127.0.0.1".to_owned(), format!("--port={port}"), format!("--user={user}")]
    }

    /// Opens a connection, with compression if `compressed`.
    pub fn connect(&self, compressed: bool) -> Result<Conn> {
        self.open(self.options().compress(compressed.then(Compression::default)))
    }

    /// Opens a connection with this read timeout.
    pub fn connect_for(&self, limit: Duration) -> Result<Conn> {
        self.open(self.options().read_timeout(Some(limit)))
    }

    /// Kills another connection and its statement; returns when it is gone, however long the server takes.
    pub fn end(&self, connection: u32) -> Result<()> {
        let mut own = self.connect(false)?;
        let running =
            format!("SELECT id FROM information_schema.processlist WHERE id = {connection}");
        while own.query_first::<u64, _>(&running)?.is_some() {
            // The connection may have ended meanwhile.
            let _ = own.query_drop(format!("KILL {connection}"));
            std::thread::sleep(KILL_PAUSE);
        }
        Ok(())
    }

    fn options(&self) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .prefer_socket(false)
            .user(Some(self.user))
            .db_name(Some(DATABASE))
            .max_allowed_packet(Some(1 << 30))
    }

    fn open(&self, options: OptsBuilder) -> Result<Conn> {
        Conn::new(options).with_context(|| format!("cannot connect to {}", self.name))
    }

    /// The process id.
    pub fn process_id(&self) -> u32 {
        self.process
    }

    /// The process whose CPU time is measured.
    pub fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.process)
    }
}

/// Remora on its own data directory, with this many rows.
pub fn remora(directory: &Path, rows: u64) -> Result<DatabaseServer> {
    let data = directory.join("data");
    engine_table(&data, DATABASE, rows)?;
    let settings = directory.join("remora.toml");
    let text = "[listen]\nline = \"\"\nhttp = \"\"\nsql = \"127.0.0.1:0\"\n\n[limits]\n\
                max_connections = 256\n\n[logging]\nlevel = \"warn\"\n";
    std::fs::write(&settings, text)?;
    let mut process = Command::new(binary()?)
        .arg("serve")
        .arg("--config")
        .arg(&settings)
        .arg("--data")
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(process.stdout.take().context("no output of the server")?);
    let id = process.id();
    let runs = RunningServer::Remora(process);
    let port = announced_sql_port(&mut output)?;
    // Later output is discarded, but must be read, so that the server never blocks on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Ok(DatabaseServer { _runs: Some(runs), ..DatabaseServer::of("Remora", port, "root", id) })
}

/// A real server with the rows in a table of each of these storage engines.
pub fn peer(kind: Kind, engines: &[&'static str], rows: u64) -> Result<Vec<DatabaseServer>> {
    kind.fetch()?;
    let options = [
        "--innodb-buffer-pool-size=2G",
        "--max-connections=300",
        "--max-allowed-packet=1G",
        "--max-heap-table-size=2G",
        "--skip-log-bin",
        "--innodb-flush-log-at-trx-commit=0",
    ];
    let server = std::sync::Arc::new(Server::start(kind, &options)?);
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    connection.query_drop("CREATE USER bench@'127.0.0.1' IDENTIFIED BY ''")?;
    connection.query_drop("GRANT ALL ON *.* TO bench@'127.0.0.1'")?;
    connection.query_drop(format!("USE {DATABASE}"))?;
    let mut database_servers = Vec::new();
    for &engine in engines {
        let table = if engine == "MEMORY" { "sbmemory" } else { "sbtest" };
        connection.query_drop(format!(
            "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, \
             c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL) ENGINE={engine}"
        ))?;
        let mut first = 1;
        while first <= rows {
            let count = ROWS_PER_INSERT.min(rows + 1 - first);
            connection.query_drop(insert(table, first, count))?;
            first += count;
        }
        database_servers.push(DatabaseServer {
            name: format!("{} {engine}", kind.name()),
            table,
            port: server.port(),
            user: "bench",
            process: server.process_id().context("the server has ended")?,
            _runs: Some(RunningServer::Peer(std::sync::Arc::clone(&server))),
        });
    }
    Ok(database_servers)
}
