//! Rows by key without a network: through the library, and through its SQL.

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use remora_engine::{Database, Durability, Options, Value};
use remora_sql::{
    Cell, Column, EmbeddedHost, Identity, Instance, Outcome, Prepared, Reply, Session, Settings,
};

use super::rows::fill;
use crate::random::SplitMix64;

/// Look-ups for each method.
const LOOK_UPS: u64 = 300_000;

/// The engine and a session of its SQL.
pub struct InProcess {
    /// The tables.
    pub engine: Database,
    /// A session in the tables' database.
    pub session: Session,
    /// The runtime that runs statements.
    pub runtime: tokio::runtime::Runtime,
}

/// Counts the rows and bytes of results.
#[derive(Default)]
pub struct Counted {
    /// Rows of the last statements.
    pub rows: u64,
    /// Bytes of all cells, so that every cell is read.
    pub bytes: u64,
}

impl Reply for Counted {
    fn columns(&mut self, columns: &[Column]) -> remora_sql::Result<()> {
        self.bytes += columns.len() as u64;
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> remora_sql::Result<()> {
        self.rows += 1;
        for cell in cells {
            self.bytes += match cell {
                Cell::Text(text) => text.len() as u64,
                Cell::Int(number) => number.unsigned_abs() & 7,
                _ => 1,
            };
        }
        Ok(())
    }

    fn done(&mut self, _outcome: &Outcome, _more: bool) -> remora_sql::Result<()> {
        Ok(())
    }

    async fn drain(&mut self) -> remora_sql::Result<()> {
        Ok(())
    }
}

/// Nanoseconds per look-up.
pub struct LookUps {
    get: f64,
    prepared: f64,
    text: f64,
}

impl InProcess {
    /// A new table of `rows` rows, in a directory that must not exist yet.
    pub fn open(directory: &Path, rows: u64) -> Result<Self> {
        let options = Options { durability: Durability::None, ..Options::default() };
        let engine = Database::open(directory, options)?;
        fill(&engine, "bench.sbtest", rows)?;
        engine.optimize(None)?;
        let settings = Settings {
            version: "9.7.0-remora".to_owned(),
            max_query_memory_bytes: 4 << 30,
            max_total_memory_bytes: 8 << 30,
            max_temporary_memory_bytes: 4 << 30,
            spill: None,
            max_spill_bytes: 4 << 30,
            max_direct_rows: remora_sql::MAX_DIRECT_ROWS,
            default_database: "bench".to_owned(),
        };
        let instance = Instance::new(engine.clone(), Arc::new(EmbeddedHost), settings);
        let session = instance.session(1, Identity::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { engine, session, runtime })
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, text: &str) -> Result<Prepared> {
        let prepared = self.runtime.block_on(self.session.prepare(text.as_bytes()));
        prepared.map_err(|error| anyhow!("{error}"))
    }

    /// Runs a statement; returns the number of rows and the time.
    pub fn query(&mut self, text: &str) -> Result<(u64, Duration)> {
        let mut counted = Counted::default();
        let started = Instant::now();
        let run = self.session.query(text.as_bytes(), false, &mut counted);
        self.runtime.block_on(run).map_err(|error| anyhow!("{error}"))?;
        std::hint::black_box(counted.bytes);
        Ok((counted.rows, started.elapsed()))
    }

    /// Looks up random rows one at a time, with each method.
    pub fn lookups(&mut self, rows: u64) -> Result<LookUps> {
        let mut random = SplitMix64::new(7);
        let keys: Vec<i64> = (0..LOOK_UPS).map(|_| 1 + (random.next() % rows) as i64).collect();
        let each = |time: Duration| time.as_nanos() as f64 / LOOK_UPS as f64;

        let started = Instant::now();
        let reader = self.engine.reader();
        for &key in &keys {
            let row = reader.get("bench.sbtest", &[Value::Int(key)])?;
            ensure!(std::hint::black_box(row).is_some(), "row {key} is missing");
        }
        let get = each(started.elapsed());

        let prepared = self.prepare("SELECT id, k, c, pad FROM sbtest WHERE id = ?")?;
        let mut counted = Counted::default();
        let started = Instant::now();
        let session = &mut self.session;
        let run = async {
            for &key in &keys {
                session.execute(&prepared, &[Value::Int(key)], &mut counted).await?;
            }
            Ok(())
        };
        let ended: remora_sql::Result<()> = self.runtime.block_on(run);
        ended.map_err(|error| anyhow!("{error}"))?;
        let prepared = each(started.elapsed());
        ensure!(counted.rows == LOOK_UPS, "{} of {LOOK_UPS} rows", counted.rows);

        let texts: Vec<String> = keys
            .iter()
            .map(|key| format!("SELECT id, k, c, pad FROM sbtest WHERE id = {key}"))
            .collect();
        let mut counted = Counted::default();
        let started = Instant::now();
        let session = &mut self.session;
        let run = async {
            for text in &texts {
                session.query(text.as_bytes(), false, &mut counted).await?;
            }
            Ok(())
        };
        let ended: remora_sql::Result<()> = self.runtime.block_on(run);
        ended.map_err(|error| anyhow!("{error}"))?;
        let text = each(started.elapsed());
        ensure!(counted.rows == LOOK_UPS, "{} of {LOOK_UPS} rows", counted.rows);
        Ok(LookUps { get, prepared, text })
    }
}

impl fmt::Display for LookUps {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { get, prepared, text } = self;
        writeln!(out, "in process, nanoseconds of one look-up of a whole row:")?;
        write!(out, "  library {get:.0}, prepared SQL {prepared:.0}, SQL as text {text:.0}")
    }
}
