//! A server with a follower beside it, and whether both hold the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, Durability, Options};
use remora_peers::{Kind, Server};
use remora_source::mysql::{
    Follower, FollowerStatus, MysqlSettings, State, TableState,
    gtid::{Flavor, GtidSet},
};
use tempfile::TempDir;

use crate::{
    session::Session,
    tables::{self, Table, quoted},
};

/// The server's error of a database whose directory has files that are not the server's.
const NOT_EMPTY: u16 = 1010;
/// Longest wait for a follower to hold what its source has committed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The database that is followed.
pub const DATABASE: &str = "shop";

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A table that is called live differs, and nothing says so.
    Differs,
    /// All following has ended.
    Fails,
    /// It does not reach the source's position, or copies without an end.
    Hangs,
    /// A table is called stopped or refused, and the others are right.
    Told,
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Fails => "fails",
            Self::Hangs => "hangs",
            Self::Told => "told",
        }
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Tables that are told as stopped or refused, and why.
    pub told: BTreeMap<String, String>,
    pub fault: Option<(Fault, String)>,
    /// Rows that were compared.
    pub rows: usize,
    /// Tables that were compared.
    pub tables: usize,
}

/// A server, a follower, and what both need.
pub struct Beside {
    pub server: Server,
    pub connection: Conn,
    /// Where files lie that statements read and write.
    pub files: TempDir,
    settings: MysqlSettings,
    database: Option<Database>,
    follower: Option<Follower>,
    directory: TempDir,
    /// Whether every database is followed, instead of one.
    everything: bool,
}

impl Beside {
    /// Starts a server with an empty database, and follows it, or all databases.
    pub fn start(kind: Kind, options: &[&str], everything: bool) -> Self {
        let mut all = vec!["--secure-file-priv=", "--local-infile=1"];
        all.extend(options);
        let server = Server::start(kind, &all).unwrap();
        let mut connection = connect(&server);
        connection.query_drop(format!("CREATE DATABASE {DATABASE}")).unwrap();
        let followed = if everything { "" } else { DATABASE };
        let mut settings = MysqlSettings::from_url(&server.follower_url(followed)).unwrap();
        settings.chunk_rows = 50;
        let (directory, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (database, follower) = (None, None);
        let mut beside =
            Self { server, connection, files, settings, database, follower, directory, everything };
        beside.open();
        beside
    }

    /// A new connection of root to the database.
    pub fn session(&self) -> std::io::Result<Session> {
        Session::connect(&self.server.socket(), DATABASE)
    }

    /// Opens the directory and follows.
    pub fn open(&mut self) {
        let options = Options { durability: Durability::None, ..Options::default() };
        let database = Database::open(self.directory.path(), options).unwrap();
        self.follower = Some(Follower::start(database.clone(), self.settings.clone()).unwrap());
        self.database = Some(database);
    }

    /// Stops following and closes the directory.
    pub fn close(&mut self) {
        if let Some(follower) = self.follower.take() {
            follower.close();
        }
        if let Some(database) = self.database.take() {
            // After a failure there may be nothing that can be closed in order.
            let _ = database.close();
        }
    }

    /// Forgets everything, and follows again with nothing.
    pub fn renew(&mut self) {
        self.close();
        // A source without the database is refused at the first start.
        let create = format!("CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4");
        self.connection.query_drop(create).unwrap();
        self.directory = tempfile::tempdir().unwrap();
        self.open();
    }

    pub fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    pub fn follower(&self) -> &Follower {
        self.follower.as_ref().unwrap()
    }

    pub fn status(&self) -> FollowerStatus {
        self.follower().status()
    }

    /// Drops every database and makes the one that is followed again.
    pub fn clean(&mut self) {
        self.clean_for(DATABASE);
    }

    /// Drops every database and makes this one.
    pub fn clean_for(&mut self, database: &str) {
        let reset = match self.server.kind().is_mariadb() {
            true => "SET foreign_key_checks = 0, sql_mode = ''",
            false => "SET foreign_key_checks = 0",
        };
        self.connection.query_drop(reset).unwrap();
        self.end_transactions();
        for old in tables::databases(&mut self.connection).unwrap() {
            let drop = format!("DROP DATABASE {}", quoted(&old));
            match self.connection.query_drop(&drop) {
                Err(mysql::Error::MySqlError(error)) if error.code == NOT_EMPTY => {
                    self.empty_directory(&error.message);
                    self.connection.query_drop(&drop).unwrap();
                }
                outcome => outcome.unwrap(),
            }
        }
        let create = match database {
            DATABASE => format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4"),
            other => format!("CREATE DATABASE {other}"),
        };
        self.connection.query_drop(create).unwrap();
    }

    /// Removes the files that statements left in a database's directory, which the server names.
    fn empty_directory(&self, message: &str) {
        // "Error dropping database (can't rmdir './shop', errno: 39)", maybe with a slash behind it.
        let (_, path) = message.split_once("'./").unwrap();
        let name = path.split(['\'', '/']).next().unwrap();
        let directory = self.server.data().join(name);
        // The server may have removed it meanwhile, and wants one to drop all the same.
        if let Err(error) = fs::remove_dir_all(&directory) {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{}", directory.display());
        }
        fs::create_dir_all(&directory).unwrap();
    }

    /// Ends what others hold open: prepared transactions, and the connections of root.
    fn end_transactions(&mut self) {
        let others = "SELECT id FROM information_schema.processlist
            WHERE user = 'root' AND id <> CONNECTION_ID()";
        for id in self.connection.query::<u64, _>(others).unwrap() {
            // It may have ended by itself.
            let _ = self.connection.query_drop(format!("KILL {id}"));
        }
        let prepared: Vec<(u64, usize, usize, Vec<u8>)> =
            self.connection.query("XA RECOVER").unwrap_or_default();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for (format, length, _, data) in prepared {
            let (name, branch) = data.split_at(length);
            let name = format!("X'{}', X'{}', {format}", hex(name), hex(branch));
            let _ = self.connection.query_drop(format!("XA ROLLBACK {name}"));
        }
    }

    /// A new connection for the questions of this, where the server may have ended the old one.
    pub fn reconnect(&mut self) {
        self.connection = connect(&self.server);
    }

    /// The file and offset at which the binlog ends.
    pub fn binlog_end(&mut self) -> Option<(String, u64)> {
        let statement = match self.server.kind() {
            Kind::MySql97 => "SHOW BINARY LOG STATUS",
            _ => "SHOW MASTER STATUS",
        };
        let row: mysql::Row = self.connection.query_first(statement).ok()??;
        Some((row.get(0)?, row.get(1)?))
    }

    /// The events behind a place of the binlog, as the server prints them.
    pub fn events_since(&mut self, place: &(String, u64)) -> Vec<String> {
        let sql = format!("SHOW BINLOG EVENTS IN '{}' FROM {} LIMIT 60", place.0, place.1);
        let rows: Vec<mysql::Row> = self.connection.query(sql).unwrap_or_default();
        let text = |row: &mysql::Row, index| match row.as_ref(index) {
            Some(mysql::Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        rows.iter().map(|row| format!("{}: {}", text(row, 2), text(row, 5))).collect()
    }

    /// The source's position.
    fn executed(&mut self) -> GtidSet {
        let (flavor, variable) = match self.server.kind().is_mariadb() {
            true => (Flavor::MariaDb, "@@gtid_binlog_pos"),
            false => (Flavor::MySql, "@@GLOBAL.gtid_executed"),
        };
        let text: String =
            self.connection.query_first(format!("SELECT {variable}")).unwrap().unwrap();
        GtidSet::parse_as(flavor, &text).unwrap()
    }

    /// Waits until everything that the source has committed is here, and nothing is being copied.
    fn settle(&mut self) -> Result<FollowerStatus, (Fault, String)> {
        let executed = self.executed();
        let start = Instant::now();
        loop {
            let reached = self.follower().wait_for(&executed, Duration::from_millis(500));
            let status = self.status();
            let copies = |state: &TableState| {
                matches!(state, TableState::Copying { .. } | TableState::CatchingUp)
            };
            if let State::Failed(reason) = &status.state {
                return Err((Fault::Fails, reason.clone()));
            }
            let settled = !status.tables.iter().any(|table| copies(&table.state));
            if reached.is_ok() && settled && status.state == State::Running {
                return Ok(status);
            }
            if start.elapsed() > PATIENCE {
                let what = format!("{executed} is wanted: {reached:?}, {status:?}");
                return Err((Fault::Hangs, what));
            }
            sleep(Duration::from_millis(2));
        }
    }

    /// Compares every table once the follower has what the source has, the source being at rest.
    pub fn compare(&mut self) -> Found {
        let status = match self.settle() {
            Ok(status) => status,
            Err(fault) => return Found { fault: Some(fault), ..Found::default() },
        };
        let mut found = Found::default();
        for table in status.tables {
            if let TableState::Stopped(reason) | TableState::Refused(reason) = table.state {
                found.told.insert(table.table, reason);
            }
        }
        if let Some(text) = self.difference(&mut found) {
            found.fault = Some((Fault::Differs, text));
        }
        found
    }

    fn difference(&mut self, found: &mut Found) -> Option<String> {
        let databases = match self.everything {
            true => tables::databases(&mut self.connection).unwrap(),
            false => vec![DATABASE.to_owned()],
        };
        let names = tables::names(&mut self.connection, &databases).unwrap();
        let there: BTreeSet<String> =
            names.iter().map(|(database, table)| format!("{database}.{table}")).collect();
        let here: BTreeSet<String> = self.database().tables().into_iter().collect();
        let lacking: Vec<_> =
            there.difference(&here).filter(|name| !found.told.contains_key(*name)).collect();
        let surplus: Vec<_> =
            here.difference(&there).filter(|name| !found.told.contains_key(*name)).collect();
        if !lacking.is_empty() || !surplus.is_empty() {
            let now: Vec<_> =
                self.status().tables.into_iter().map(|one| (one.table, one.state)).collect();
            let listed = tables::listed(&mut self.connection, &databases).unwrap();
            return Some(format!(
                "tables only there {lacking:?}, only here {surplus:?}, now told {now:?}, \
                 now listed there {listed:?}"
            ));
        }
        let mut texts = Vec::new();
        for (database, table) in &names {
            let name = format!("{database}.{table}");
            if found.told.contains_key(&name) || !here.contains(&name) {
                continue;
            }
            match self.table_difference(database, table, &name) {
                Ok(rows) => {
                    found.rows += rows;
                    found.tables += 1;
                }
                Err(text) => texts.push(format!("{name}: {text}")),
            }
        }
        if texts.is_empty() { None } else { Some(texts.join("\n      ")) }
    }

    /// The number of rows if the table is equal, else what differs. What the source cannot read
    /// itself is not compared.
    fn table_difference(
        &mut self,
        database: &str,
        table: &str,
        name: &str,
    ) -> Result<usize, String> {
        let here: Table = tables::of_engine(self.database.as_ref().unwrap(), name)?;
        match tables::of_source(&mut self.connection, database, table, Some(&here)) {
            Ok(there) => match tables::difference(&here, &there) {
                Some(text) => Err(text),
                None => Ok(here.rows.len()),
            },
            Err(mysql::Error::MySqlError(_)) => Ok(0),
            Err(error) => panic!("{error}"),
        }
    }

    /// Writes a file that statements can read, and gives its place.
    pub fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.close();
    }
}

fn connect(server: &Server) -> Conn {
    let mut connection = server.connect().unwrap();
    connection
        .query_drop("SET time_zone = '+00:00', lock_wait_timeout = 20, foreign_key_checks = 0")
        .unwrap();
    connection
}
