//! A database for one test, sessions on it, and a reply that records everything it receives.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

pub mod random;

use std::sync::Arc;

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Options, Row, Schema, TableChanges, Value,
};
use remora_sql::{
    Cell, Column, EmbeddedHost, Host, Identity, Instance, Outcome, Reply, Result, Session, Settings,
};
use tempfile::TempDir;

/// A server that consists of a database only.
pub struct Server {
    pub database: Database,
    pub instance: Instance,
    _directory: Option<TempDir>,
}

impl Server {
    /// An empty server, whose tables are in the database `test`.
    pub fn new() -> Self {
        Self::with_host(Arc::new(EmbeddedHost))
    }

    /// An empty server that plans every statement with the optimizer.
    pub fn optimizing() -> Self {
        Self::with_most_direct_rows(0)
    }

    /// An empty server that plans statements of at most so many rows without the optimizer.
    pub fn with_most_direct_rows(max_direct_rows: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability: remora_engine::Durability::None, ..Options::default() };
        let host = Arc::new(EmbeddedHost);
        let server = Self::planning(directory.path(), options, host, max_direct_rows);
        Self { _directory: Some(directory), ..server }
    }

    /// An empty server within this host.
    pub fn with_host(host: Arc<dyn Host>) -> Self {
        Self::with(Options::default(), host)
    }

    /// An empty server whose transactions may change at most this many rows.
    pub fn with_most_changes(max_batch_changes: usize) -> Self {
        Self::with(Options { max_batch_changes, ..Options::default() }, Arc::new(EmbeddedHost))
    }

    fn with(options: Options, host: Arc<dyn Host>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability: remora_engine::Durability::None, ..options };
        let server = Self::over(directory.path(), options, host);
        Self { _directory: Some(directory), ..server }
    }

    /// A server over a directory that is kept, with durable commits.
    pub fn at(path: &std::path::Path) -> Self {
        Self::over(path, Options::default(), Arc::new(EmbeddedHost))
    }

    fn over(path: &std::path::Path, options: Options, host: Arc<dyn Host>) -> Self {
        Self::planning(path, options, host, remora_sql::MAX_DIRECT_ROWS)
    }

    fn planning(
        path: &std::path::Path,
        options: Options,
        host: Arc<dyn Host>,
        max_direct_rows: usize,
    ) -> Self {
        let database = Database::open(path, options).unwrap();
        let settings = Settings {
            version: "9.7.4-test".to_owned(),
            max_query_memory_bytes: 64 << 20,
            max_total_memory_bytes: 96 << 20,
            max_temporary_memory_bytes: 88 << 20,
            spill: Some(path.join("spill")),
            max_spill_bytes: 64 << 20,
            max_direct_rows,
            default_database: "test".to_owned(),
        };
        let instance = Instance::new(database.clone(), host, settings);
        Self { database, instance, _directory: None }
    }

    /// A session of a user with all privileges.
    pub fn session(&self) -> Session {
        self.instance.session(7, Identity { user: "root".into(), host: "%".into(), rights: None })
    }

    /// Creates a table with the engine's types and these rows.
    pub fn table(&self, name: &str, columns: &[(&str, ColumnType)], keys: usize, rows: Vec<Row>) {
        let columns = columns.iter().enumerate().map(|(index, (name, kind))| ColumnDef {
            id: index as u32 + 1,
            nullable: index >= keys,
            indexed: true,
            ..column(name, *kind)
        });
        let schema =
            Schema { columns: columns.collect(), primary_key: (0..keys).collect(), ..schema(name) };
        self.database.create_table(schema).unwrap();
        let changes = rows.into_iter().map(Change::Put).collect();
        let tables = vec![TableChanges { table: name.into(), changes }];
        let batch = ChangeBatch { tables, ..ChangeBatch::default() };
        self.database.apply(batch).unwrap();
    }
}

fn column(name: &str, kind: ColumnType) -> ColumnDef {
    serde_json::from_value(serde_json::json!({
        "id": 0, "name": name, "kind": kind, "nullable": true, "indexed": true,
    }))
    .unwrap()
}

fn schema(name: &str) -> Schema {
    serde_json::from_value(serde_json::json!({
        "name": name, "columns": [], "primary_key": [], "texts": [], "required": null,
        "synonyms": [],
    }))
    .unwrap()
}

/// The results of a statement.
#[derive(Debug, Default)]
pub struct Answers {
    pub sets: Vec<Answer>,
}

/// One result.
#[derive(Debug, Default)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    pub outcome: Outcome,
    open: bool,
}

impl Answer {
    /// The rows as text: columns separated by `|`, rows by newlines.
    pub fn text(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(|row| row.join("|")).collect();
        rows.join("\n")
    }

    /// The columns' names.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }
}

impl Reply for Answers {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.sets.push(Answer { columns: columns.to_vec(), open: true, ..Answer::default() });
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let answer = self.sets.last_mut().unwrap();
        assert_eq!(cells.len(), answer.columns.len());
        let columns = answer.columns.iter();
        answer.rows.push(cells.iter().zip(columns).map(|(cell, it)| shown(cell, it)).collect());
        Ok(())
    }

    fn done(&mut self, outcome: &Outcome, _more: bool) -> Result<()> {
        if !self.sets.last().is_some_and(|answer| answer.open) {
            self.sets.push(Answer::default());
        }
        let answer = self.sets.last_mut().unwrap();
        answer.open = false;
        answer.outcome = outcome.clone();
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}

fn shown(cell: &Cell<'_>, column: &Column) -> String {
    match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Uint(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Double(number) => match column.decimals {
            Some(decimals) => format!("{number:.0$}", usize::from(decimals)),
            None => number.to_string(),
        },
        Cell::Decimal(number) => number.to_string(),
        Cell::Text(text) => (*text).to_owned(),
        Cell::Bytes(bytes) => Value::Bytes((*bytes).into()).to_string(),
        Cell::Date(date) => date.to_string(),
        Cell::Time(micros) => Value::Time(*micros).to_string(),
        Cell::DateTime(moment) => moment.to_string(),
    }
}

/// Runs statements.
pub async fn run(session: &mut Session, text: &str) -> Result<Answers> {
    let mut answers = Answers::default();
    session.query(text.as_bytes(), true, &mut answers).await?;
    Ok(answers)
}

/// The rows of one statement as text.
pub async fn rows(session: &mut Session, text: &str) -> String {
    match run(session, text).await {
        Ok(answers) => answers.sets.first().map_or(String::new(), Answer::text),
        Err(error) => format!("{} {}", error.code.number(), error.message),
    }
}
