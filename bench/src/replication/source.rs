//! The server that is followed.

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

/// Like a server that nobody may lose a commit of.
const OPTIONS: [&str; 3] =
    ["--innodb-buffer-pool-size=1G", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];

/// Starts a server.
pub fn start(kind: Kind) -> Result<Server> {
    Server::start(kind, &OPTIONS)
}

/// Starts a server that can be another's replica. What only it has need not survive a power cut.
pub fn start_replica(kind: Kind) -> Result<Server> {
    Server::start(kind, &["--innodb-buffer-pool-size=1G", "--server-id=2"])
}

/// A connection of root to a database, which is made if it is not there.
pub fn connect(server: &Server, database: &str) -> Result<Conn> {
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {database}"))?;
    connection.query_drop(format!("USE {database}"))?;
    Ok(connection)
}

/// The GTIDs of everything that was committed.
pub fn position(server: &Server) -> Result<String> {
    let variable = match server.kind().is_mariadb() {
        true => "@@gtid_binlog_pos",
        false => "@@GLOBAL.gtid_executed",
    };
    let position: Option<String> = server.connect()?.query_first(format!("SELECT {variable}"))?;
    Ok(position.context("the server has no position")?.replace('\n', ""))
}
