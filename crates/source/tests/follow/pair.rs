//! A source and what follows it.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, Durability, HIDDEN_KEY, Options, Schema};
use remora_peers::{Kind, Server};
use remora_source::mysql::{
    Follower, FollowerStatus, MysqlSettings, State, TableState,
    gtid::{Flavor, GtidSet},
};
use tempfile::TempDir;

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server, a database that follows it, and a connection of root.
pub struct Pair {
    pub conn: Conn,
    pub follower: Option<Follower>,
    pub database: Option<Database>,
    pub settings: MysqlSettings,
    pub server: Server,
    /// How the database is opened.
    pub options: Options,
    /// The source's identity when the follower was closed last.
    pub status_uuid: String,
    directory: TempDir,
}

impl Pair {
    /// Starts the server, runs the statements in the database `shop`, and follows.
    pub fn start(kind: Kind, statements: &[&str]) -> Self {
        Self::start_with(kind, &[], statements, |_| {})
    }

    pub fn start_with(
        kind: Kind,
        options: &[&str],
        statements: &[&str],
        change: impl FnOnce(&mut MysqlSettings),
    ) -> Self {
        let server = Server::start(kind, options).unwrap();
        let mut conn = server.connect().unwrap();
        conn.query_drop("CREATE DATABASE shop CHARACTER SET utf8mb4").unwrap();
        conn.query_drop("USE shop").unwrap();
        for statement in statements {
            conn.query_drop(statement).unwrap();
        }
        let mut settings = MysqlSettings::from_url(&server.follower_url("shop")).unwrap();
        change(&mut settings);
        let directory = tempfile::tempdir().unwrap();
        let status_uuid = String::new();
        let (follower, database) = (None, None);
        let options = Options { durability: Durability::None, ..Options::default() };
        let mut pair =
            Self { conn, follower, database, settings, server, options, status_uuid, directory };
        pair.open();
        pair
    }

    /// Opens the database and follows.
    pub fn open(&mut self) {
        let database = Database::open(self.directory.path(), self.options.clone()).unwrap();
        self.follower = Some(Follower::start(database.clone(), self.settings.clone()).unwrap());
        self.database = Some(database);
    }

    /// Stops following and closes the database.
    pub fn close(&mut self) {
        self.status_uuid = self.status().server_uuid;
        self.follower.take().unwrap().close();
        self.database.take().unwrap().close().unwrap();
    }

    /// Another directory for what is opened next.
    pub fn move_to(&mut self, directory: TempDir) {
        self.directory = directory;
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

    pub fn run(&mut self, statement: &str) {
        self.conn.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    pub fn reconnect(&mut self) {
        self.conn = self.server.connect().unwrap();
        self.run("USE shop");
    }

    /// Waits until `done`.
    pub fn wait(&self, what: &str, mut done: impl FnMut(&FollowerStatus) -> bool) {
        let start = Instant::now();
        loop {
            let status = self.status();
            if done(&status) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "waiting for {what}: {status:#?}");
            sleep(Duration::from_millis(5));
        }
    }

    /// The source's position.
    pub fn executed(&mut self) -> GtidSet {
        let (flavor, variable) = match self.server.kind().is_mariadb() {
            true => (Flavor::MariaDb, "@@gtid_binlog_pos"),
            false => (Flavor::MySql, "@@GLOBAL.gtid_executed"),
        };
        let text: String = self.conn.query_first(format!("SELECT {variable}")).unwrap().unwrap();
        GtidSet::parse_as(flavor, &text).unwrap()
    }

    /// Waits until everything that the source has executed is visible and every table live.
    pub fn catch_up(&mut self) {
        let executed = self.executed();
        if let Err(error) = self.follower().wait_for(&executed, PATIENCE) {
            panic!("{error}: {:#?}", self.status());
        }
        self.wait("live tables", |status| {
            let live = status.tables.iter().all(|table| table.state == TableState::Live);
            live && status.state == State::Running
        });
    }

    /// Catches up and compares every row of every table; the tables that are here.
    pub fn compare(&mut self) -> Vec<String> {
        self.catch_up();
        let names: Vec<String> = self.conn.query("SHOW TABLES").unwrap();
        let here = self.database().tables();
        let there: Vec<_> = names.iter().map(|name| format!("shop.{name}")).collect();
        assert_eq!(here, there, "{:#?}", self.status());
        for name in &names {
            self.compare_table(name);
        }
        names
    }

    pub fn compare_table_after_catching_up(&mut self, name: &str) {
        self.catch_up();
        self.compare_table(name);
    }

    pub fn compare_table(&mut self, name: &str) {
        let schema = self.database().schema(&format!("shop.{name}")).unwrap();
        self.compare_order(name, &schema);
        let shown = schema.columns.iter().filter(|column| column.name != HIDDEN_KEY);
        let columns: Vec<_> = shown.map(|column| quoted(&column.name)).collect();
        let sql = format!("SELECT {} FROM shop.{}", columns.join(", "), quoted(name));
        let mut theirs: Vec<Vec<String>> = self
            .conn
            .query_map(sql, |row: mysql::Row| row.unwrap().into_iter().map(text).collect())
            .unwrap();
        theirs.sort();
        let ours = self.rows(name);
        if let Some((ours, theirs)) = ours.iter().zip(&theirs).find(|(a, b)| a != b) {
            panic!("{name}: {ours:?} here, {theirs:?} there; {:#?}", self.status());
        }
        assert_eq!(ours.len(), theirs.len(), "{name}: {:#?}", self.status());
    }

    /// The columns that are here stand in the source's order, unless a definition gives another.
    fn compare_order(&mut self, name: &str, schema: &Schema) {
        if !self.settings.definitions.is_empty() {
            return;
        }
        let sql = format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' \
             AND table_name = {} ORDER BY ordinal_position",
            mysql::Value::from(name).as_sql(false)
        );
        let shown = schema.columns.iter().filter(|column| column.name != HIDDEN_KEY);
        let theirs: Vec<String> = self.conn.query(sql).unwrap();
        // A source may hide a key that it made.
        let shown = shown.filter(|column| theirs.contains(&column.name));
        let ours: Vec<_> = shown.map(|column| column.name.as_str()).collect();
        let theirs: Vec<_> =
            theirs.iter().map(String::as_str).filter(|name| ours.contains(name)).collect();
        assert_eq!(ours, theirs, "the order of the columns of {name}");
    }

    /// The rows of a table as they are here, without a key that is not shown.
    pub fn rows(&self, name: &str) -> Vec<Vec<String>> {
        let hidden = self.database().schema(&format!("shop.{name}")).unwrap().hidden_key();
        let mut rows = Vec::new();
        self.database()
            .scan(&format!("shop.{name}"), &mut |row| {
                let values = row.iter().enumerate().filter(|(place, _)| Some(*place) != hidden);
                rows.push(values.map(|(_, value)| value.to_string()).collect());
                Ok(())
            })
            .unwrap();
        rows.sort();
        rows
    }

    /// Writes to a healthy table and compares it: the stream goes on, whatever another table has.
    pub fn others_go_on(&mut self) {
        self.run("INSERT INTO others () VALUES ()");
        let executed = self.executed();
        if let Err(error) = self.follower().wait_for(&executed, PATIENCE) {
            panic!("{error}: {:#?}", self.status());
        }
        self.wait("the others", |status| {
            let live = self.state("others") == Some(TableState::Live);
            live && matches!(status.state, State::Running | State::Copying)
        });
        self.compare_table("others");
    }

    /// Waits until a table is stopped or refused; why.
    pub fn reason(&self, name: &str) -> String {
        let mut found = String::new();
        self.wait("the end of a table", |_| match self.state(name) {
            Some(TableState::Stopped(reason) | TableState::Refused(reason)) => {
                found = reason;
                true
            }
            _ => false,
        });
        found
    }

    /// The state of a table.
    pub fn state(&self, name: &str) -> Option<TableState> {
        let name = format!("shop.{name}");
        let tables = self.status().tables;
        tables.into_iter().find(|table| table.table == name).map(|table| table.state)
    }
}

/// A name as SQL takes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(value: mysql::Value) -> String {
    match value {
        mysql::Value::NULL => "NULL".to_owned(),
        mysql::Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}
