//! How often statements that write are parsed.

use std::sync::Arc;

use remora_engine::{Database, Options};
use remora_mysql::LexMode;

use crate::{
    Cell, Column, EmbeddedHost, Identity, Instance, Outcome, Reply, Result, Settings,
    parse::{PARSES, Statement, split},
    state::SessionState,
};

/// A reply for statements without a client.
struct Nobody;

impl Reply for Nobody {
    fn columns(&mut self, _columns: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _cells: &[Cell<'_>]) -> Result<()> {
        Ok(())
    }

    fn done(&mut self, _outcome: &Outcome, _more: bool) -> Result<()> {
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Fixture {
    _directory: tempfile::TempDir,
    session: SessionState,
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), Options::default()).unwrap();
        let settings = Settings {
            version: "9.7.0-remora".to_owned(),
            max_query_memory_bytes: 1 << 30,
            max_total_memory_bytes: 2 << 30,
            max_temporary_memory_bytes: 1 << 30,
            spill: None,
            max_spill_bytes: 1 << 30,
            max_direct_rows: crate::MAX_DIRECT_ROWS,
            default_database: "main".to_owned(),
        };
        let instance = Instance::new(database, Arc::new(EmbeddedHost), settings);
        let session = SessionState::new(instance.shared(), 1, Identity::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { _directory: directory, session, runtime }
    }

    /// Runs a statement; says how often something was parsed for it.
    fn parses(&mut self, text: &str) -> usize {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let statement = Statement { source: Arc::new(source), parameters: &[] };
        let before = PARSES.get();
        let mut reply = Nobody;
        let run = self.session.run(&statement, false, &mut reply);
        self.runtime.block_on(run).unwrap_or_else(|error| panic!("{text}: {error}"));
        PARSES.get() - before
    }
}

#[test]
fn what_writes_literals_by_key_is_not_parsed() {
    let mut fixture = Fixture::new();
    fixture.parses("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20))");
    assert_eq!(
        fixture.parses("INSERT INTO t VALUES (1, 1, 'a'), (2, -2, NULL), (3, 3, DEFAULT)"),
        0
    );
    assert_eq!(fixture.parses("REPLACE INTO t (id, n) VALUES (4, 4), (5, 5), (6, 6)"), 0);
    // The SELECT of a key is parsed once for its shape.
    assert_eq!(fixture.parses("UPDATE t SET n = n + 1, s = 'x' WHERE id = 1"), 1);
    for statement in [
        "UPDATE t SET n = n - 70, s = 'another' WHERE id = 2",
        "UPDATE IGNORE t SET s = NULL WHERE id = 3",
        "UPDATE t SET n = DEFAULT, s := _utf8mb4'x' WHERE id = 4",
    ] {
        assert_eq!(fixture.parses(statement), 0, "{statement}");
    }
    assert_eq!(fixture.parses("DELETE FROM t WHERE id IN (5, 6)"), 1);
    assert_eq!(fixture.parses("DELETE FROM t WHERE id IN (4, 7, 8)"), 0);
}

#[test]
fn what_writes_expressions_is_parsed_once() {
    let mut fixture = Fixture::new();
    fixture.parses("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20))");
    fixture.parses("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')");
    for statement in [
        "UPDATE t SET s = CONCAT(s, n) WHERE n > 0",
        "UPDATE t SET n = n + 1, s = n ORDER BY id LIMIT 2",
        "UPDATE t JOIN t AS u USING (id) SET t.n = u.n + 1, t.s = UPPER(u.s)",
        "DELETE t FROM t JOIN t AS u ON t.id = u.n WHERE u.s = 'none'",
        "INSERT INTO t SELECT id + 10, n, s FROM t",
        "INSERT INTO t (id, n) VALUES (1, 1), (2, 2), (3, 3) ON DUPLICATE KEY UPDATE \
         n = t.n + VALUES(n), s = CONCAT(s, n)",
        "REPLACE INTO t (id, n) VALUES (20, 1), (21, 1 + 1), (22, 3)",
    ] {
        assert_eq!(fixture.parses(statement), 1, "{statement}");
    }
}
