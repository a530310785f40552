//! A source and what follows it, compared.

use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, Options};
use remora_peers::Server;
use remora_source::mysql::{
    Follower, FollowerStatus, State, TableState,
    gtid::{Flavor, GtidSet},
    settings::MysqlSettings,
};
use tempfile::TempDir;

use crate::{
    generator::{DATABASE, Generator, shape::Column},
    random::Random,
    rows::{self, Rows},
    searches,
};

/// Longest wait for a source's position to be applied, in a build without optimisation on a machine
/// that has other things to do.
const PATIENCE: Duration = Duration::from_secs(300);

/// A follower over a directory of its own.
pub struct Followed {
    pub engine: Database,
    pub follower: Follower,
    directory: TempDir,
}

impl Followed {
    /// Begins to follow with nothing.
    pub fn start(server: &Server) -> Self {
        Self::start_in(server, TempDir::new().unwrap())
    }

    /// Goes on with what a directory holds.
    pub fn start_in(server: &Server, directory: TempDir) -> Self {
        Self::with(small_chunks(&server.follower_url(DATABASE)), directory)
    }

    /// Begins to follow tables of many rows.
    pub fn start_with_many_rows(server: &Server) -> Self {
        let mut settings = small_chunks(&server.follower_url(DATABASE));
        settings.chunk_rows *= 20;
        Self::with(settings, TempDir::new().unwrap())
    }

    fn with(settings: MysqlSettings, directory: TempDir) -> Self {
        let engine = Database::open(directory.path(), Options::default()).unwrap();
        let follower = Follower::start(engine.clone(), settings).unwrap();
        Self { engine, follower, directory }
    }

    /// Ends in order and leaves the directory.
    pub fn close(self) -> TempDir {
        self.follower.close();
        self.engine.close().unwrap();
        self.directory
    }

    /// Waits until everything the source has committed is applied and every table is complete.
    pub fn catch_up(&self, server: &Server) -> Result<(), String> {
        let wanted = position(server);
        let start = Instant::now();
        loop {
            let applied = self.follower.wait_for(&wanted, Duration::from_millis(200));
            let status = self.follower.status();
            if applied.is_ok() && settled(&status)? {
                return Ok(());
            }
            let failed = matches!(status.state, State::Failed(_));
            if failed || start.elapsed() > PATIENCE {
                return Err(format!("{wanted} is not reached: {applied:?}"));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Compares every row and asks random searches, the source being at rest.
    pub fn compare(&self, server: &Server, random: &mut Random) -> Result<(), String> {
        self.catch_up(server)?;
        compare(&self.engine, server, random)
    }

    /// The same, and on a difference shows what the writer last did.
    pub fn must_equal(&self, server: &Server, generator: &mut Generator, moment: &str) {
        if let Err(text) = self.compare(server, &mut generator.random) {
            show(generator);
            panic!("{moment}: {text}\n{:?}", self.follower.status());
        }
    }
}

/// Compares what an engine holds with its source.
pub fn compare(engine: &Database, server: &Server, random: &mut Random) -> Result<(), String> {
    let here: BTreeMap<String, Rows> = rows::of_engine(engine);
    let is_here = |table: &str, column: &Column| {
        here.get(table).is_none_or(|rows| rows.columns.contains(&column.name.to_lowercase()))
    };
    let wanted = |table: &str, column: &Column| !column.generated || is_here(table, column);
    let source = rows::of_source(&mut server.connect().unwrap(), DATABASE, &wanted);
    match rows::difference(&here, &source) {
        Some(text) => Err(text),
        None => searches::check(engine, &source, random, 20).map_or(Ok(()), Err),
    }
}

/// Prints a writer's changes of tables and the end of what it did.
pub fn show(generator: &Generator) {
    let newest = generator.history.len().saturating_sub(60);
    for (place, statement) in generator.history.iter().enumerate() {
        let verb = statement.split(' ').next().unwrap_or_default();
        if place >= newest || ["CREATE", "ALTER", "RENAME", "DROP", "TRUNCATE"].contains(&verb) {
            println!("  {}", statement.chars().take(160).collect::<String>().replace('\n', " "));
        }
    }
}

/// How the tests follow: in chunks so small that every table takes several.
pub fn small_chunks(url: &str) -> MysqlSettings {
    let mut settings = MysqlSettings::from_url(url).unwrap();
    settings.chunk_rows = 7;
    settings
}

/// The source's newest GTIDs.
pub fn position(server: &Server) -> GtidSet {
    let mariadb = server.kind().is_mariadb();
    let (variable, flavor) = match mariadb {
        true => ("@@gtid_binlog_pos", Flavor::MariaDb),
        false => ("@@GLOBAL.gtid_executed", Flavor::MySql),
    };
    let mut connection: Conn = server.connect().unwrap();
    let text: String = connection.query_first(format!("SELECT {variable}")).unwrap().unwrap();
    GtidSet::parse_as(flavor, &text).unwrap()
}

/// Whether no table is being copied or has yet to catch up, at a position that is the newest.
fn settled(status: &FollowerStatus) -> Result<bool, String> {
    let mut settled = status.state == State::Running;
    for table in &status.tables {
        match &table.state {
            TableState::Live | TableState::Refused(_) => {}
            TableState::Stopped(reason) => {
                return Err(format!("{} stopped: {reason}", table.table));
            }
            TableState::Copying { .. } | TableState::CatchingUp | TableState::Paused { .. } => {
                settled = false;
            }
        }
    }
    Ok(settled)
}
