//! Servers with the same rows: a MariaDB, a Remora that follows it, and a MySQL.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use mysql::prelude::Queryable;
use remora_peers::{FOLLOWER_USER, Kind, Server};

use crate::{
    lookup::servers::{DATABASE, DatabaseServer},
    replication::{remora::Remora, source::position},
    suite::WorkDirectory,
};

/// Options for enough memory for all rows, and for no waiting on log writes.
const OPTIONS: [&str; 4] = [
    "--innodb-buffer-pool-size=2G",
    "--max-connections=300",
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
];
const MARIADB_OPTIONS: [&str; 1] = ["--innodb-log-file-size=512M"];
const MYSQL_OPTIONS: [&str; 2] = ["--innodb-redo-log-capacity=1G", "--skip-log-bin"];

/// A server is idle in a step if it uses less than this share of one CPU. Tables that are quiet for some seconds are
/// merged further, so a server must be idle for a number of steps in a row.
const STEP: Duration = Duration::from_millis(500);
const IDLE_SHARE: u32 = 20;
const IDLE_STEPS: u32 = 15;
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Which servers.
#[derive(clap::Args, Debug)]
pub struct ServerGroupOptions {
    /// Measure only Remora and the MariaDB that it replicates from, without MySQL.
    #[arg(long)]
    without_mysql: bool,
    /// The remora program to measure. Default: the one next to this program, which is built first.
    #[arg(long, value_name = "FILE")]
    remora: Option<PathBuf>,
}

impl ServerGroupOptions {
    /// The remora program to measure.
    pub fn program(&self) -> Result<PathBuf> {
        self.remora.clone().map_or_else(crate::remora::binary, Ok)
    }
}

/// Writes rows to a server.
pub type Fill<'f> = &'f (dyn Fn(&DatabaseServer) -> Result<()> + Sync);

/// The running servers.
pub struct ServerGroup {
    /// Remora, MariaDB and, if wanted, MySQL.
    pub database_servers: Vec<DatabaseServer>,
    /// The Remora that follows the source.
    pub remora: Remora,
    /// Remora's resident memory with all rows, before the first query, in bytes.
    pub resident_at_first: u64,
    /// The MariaDB that Remora follows.
    pub source: Server,
    _mysql: Option<Server>,
    _directory: WorkDirectory,
}

impl ServerGroup {
    /// Starts the servers. MariaDB and MySQL are filled by `fill`, which creates this many tables,
    /// and then by `later`, once Remora has copied the tables. Returns when Remora has applied
    /// everything and all servers are idle.
    pub fn start(
        options: &ServerGroupOptions,
        tables: usize,
        fill: Fill<'_>,
        later: Fill<'_>,
    ) -> Result<Self> {
        let program = options.program()?;
        let directory = WorkDirectory::new()?;
        let source = start_source()?;
        let mysql = match options.without_mysql {
            true => None,
            false => Some(start(Kind::MySql97, &MYSQL_OPTIONS)?),
        };
        let mut database_servers = vec![database_server("MariaDB", &source)?];
        if let Some(mysql) = &mysql {
            database_servers.push(database_server("MySQL", mysql)?);
        }
        eprintln!("filling");
        for_each(&database_servers, fill)?;
        eprintln!("copying");
        let url = source.follower_url(DATABASE);
        let mut remora = Remora::start(&program, &directory.path().join("follower"), &url)?;
        remora.wait_until_live(tables)?;
        eprintln!("copied in {:.1} s", remora.started.elapsed().as_secs_f64());
        for_each(&database_servers, later)?;
        remora.wait_for(&position(&source)?)?;
        database_servers
            .insert(0, DatabaseServer::of("Remora", remora.sql_port, "root", remora.process_id()));
        wait_until_idle(&database_servers)?;
        let resident_at_first = remora.resident_bytes()?;
        Ok(Self {
            database_servers,
            remora,
            resident_at_first,
            source,
            _mysql: mysql,
            _directory: directory,
        })
    }
}

/// Waits until no server has background work left from loading (merges, purges, checkpoints), which would be counted
/// for the first statements.
fn wait_until_idle(database_servers: &[DatabaseServer]) -> Result<()> {
    let spent = || {
        database_servers
            .iter()
            .map(|database_server| database_server.processor().spent())
            .collect::<Vec<_>>()
    };
    let begun = Instant::now();
    let (mut before, mut idle) = (spent(), 0);
    while idle < IDLE_STEPS {
        if begun.elapsed() > MAX_WAIT {
            eprintln!("a server still works for itself: its figures have that in them");
            break;
        }
        thread::sleep(STEP);
        let after = spent();
        let is_idle = before.iter().zip(&after).all(|(before, after)| match (before, after) {
            (Some(before), Some(after)) => before.until(*after) < STEP / IDLE_SHARE,
            _ => true,
        });
        idle = if is_idle { idle + 1 } else { 0 };
        before = after;
    }
    Ok(())
}

/// Starts an empty MariaDB to follow.
pub fn start_source() -> Result<Server> {
    start(Kind::MariaDb1011, &MARIADB_OPTIONS)
}

/// Starts an empty server that is accessed over TCP.
fn start(kind: Kind, more: &[&str]) -> Result<Server> {
    kind.fetch()?;
    let server = Server::start(kind, &[&OPTIONS, more].concat())?;
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    connection.query_drop("CREATE USER bench@'127.0.0.1' IDENTIFIED BY ''")?;
    connection.query_drop("GRANT ALL ON *.* TO bench@'127.0.0.1'")?;
    connection.query_drop(format!("GRANT SHOW VIEW ON *.* TO '{FOLLOWER_USER}'@'%'"))?;
    Ok(server)
}

fn database_server(name: &str, server: &Server) -> Result<DatabaseServer> {
    let process = server.process_id().context("the server has ended")?;
    Ok(DatabaseServer::of(name, server.port(), "bench", process))
}

fn for_each(database_servers: &[DatabaseServer], work: Fill<'_>) -> Result<()> {
    thread::scope(|scope| {
        let begun: Vec<_> = database_servers
            .iter()
            .map(|database_server| scope.spawn(move || work(database_server)))
            .collect();
        begun.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| anyhow!("filling a server panicked"))?
        })
    })
}
