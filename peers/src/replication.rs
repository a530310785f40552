//! Replication between two servers: for tests of fail-overs, and to measure what an ordinary
//! replica costs.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use mysql::{Row, prelude::Queryable};

use crate::{HOST, Kind, Server};

/// The longest wait for a replica to connect.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes one server the replica of another of the same kind, by GTID, starting with the source's
/// first transaction. The servers need different `--server-id` options.
///
/// # Errors
/// A server refuses the connection or a statement, or the replica does not run in time.
pub fn replicate(source: &Server, replica: &Server) -> Result<()> {
    const USER: &str = "CREATE USER 'replica'@'%' IDENTIFIED BY 'scales'";
    const GRANT: &str = "GRANT REPLICATION SLAVE ON *.* TO 'replica'@'%'";
    let mut connection = source.connect()?;
    for sql in ["SET sql_log_bin = 0", "DROP USER IF EXISTS 'replica'@'%'", USER, GRANT] {
        // MySQL 5.6 has no IF EXISTS here, so its user is created only once.
        if !(source.kind() == Kind::MySql56 && sql.starts_with("DROP")) {
            connection.query_drop(sql)?;
        }
    }
    let port = source.port();
    let (change, start, status) = match source.kind() {
        Kind::MariaDb1011 | Kind::MariaDb118 => (
            format!(
                "CHANGE MASTER TO master_host='{HOST}', master_port={port}, master_user='replica',
                 master_password='scales', master_use_gtid=slave_pos"
            ),
            "START SLAVE",
            "SHOW SLAVE STATUS",
        ),
        Kind::MySql56 => (
            format!(
                "CHANGE MASTER TO master_host='{HOST}', master_port={port}, master_user='replica',
                 master_password='scales', master_auto_position=1"
            ),
            "START SLAVE",
            "SHOW SLAVE STATUS",
        ),
        Kind::MySql97 => (
            format!(
                "CHANGE REPLICATION SOURCE TO source_host='{HOST}', source_port={port},
                 source_user='replica', source_password='scales', source_auto_position=1,
                 get_source_public_key=1"
            ),
            "START REPLICA",
            "SHOW REPLICA STATUS",
        ),
    };
    let mut connection = replica.connect()?;
    connection.query_drop(change)?;
    connection.query_drop(start)?;
    let begun = Instant::now();
    loop {
        let row: Option<Row> = connection.query_first(status)?;
        if row.is_some_and(|row| runs(&row)) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("the replica of {} does not run", source.kind().name());
        }
        sleep(Duration::from_millis(20));
    }
}

fn runs(status: &Row) -> bool {
    let says_yes = |names: [&str; 2]| {
        names.iter().any(
            |name| matches!(status.get_opt::<String, _>(*name), Some(Ok(text)) if text == "Yes"),
        )
    };
    says_yes(["Slave_IO_Running", "Replica_IO_Running"])
        && says_yes(["Slave_SQL_Running", "Replica_SQL_Running"])
}
