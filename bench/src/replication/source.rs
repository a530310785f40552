//! The source server.

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

/// Options of a server that must never lose a commit.
const OPTIONS: [&str; 3] =
    ["--innodb-buffer-pool-size=1G", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];

/// Starts a server.
pub fn start(kind: Kind) -> Result<Server> {
    Server::start(kind, &OPTIONS)
}

/// Starts a server that can be a replica; its own data need not survive a power failure.
pub fn start_replica(kind: Kind) -> Result<Server> {
    Server::start(kind, &["--innodb-buffer-pool-size=1G", "--server-id=2"])
}

/// Connects as root to a database, which is created if it does not exist.
pub fn connect(server: &Server, database: &str) -> Result<Conn> {
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {database}"))?;
    connection.query_drop(format!("USE {database}"))?;
    Ok(connection)
}

/// The GTIDs of everything committed.
pub fn position(server: &Server) -> Result<String> {
    let variable = match server.kind().is_mariadb() {
        true => "@@gtid_binlog_pos",
        false => "@@GLOBAL.gtid_executed",
    };
    let position: Option<String> = server.connect()?.query_first(format!("SELECT {variable}"))?;
    Ok(position.context("the server has no position")?.replace('\n', ""))
}
