//! Any text as SQL, over tables that are few and small, by a session that may do everything and has
//! little memory and time: it is answered or refused. A panic ends the fuzzer even where the server
//! would answer it as an error.
//!
//! The input is a byte (the values of `?`, and whether it may be several statements) and the text.
//! Sessions share one database, which is made anew when statements have changed too much of it.
#![no_main]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use remora_engine::{Database, Durability, Options, Value};
use remora_sql::{
    EmbeddedHost, Cell, Column, Identity, Instance, Outcome, Reply, Result, Session, Settings,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Statements that make what the others are about.
const FIXTURE: [&str; 6] = [
    "CREATE TABLE n (id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED, d DECIMAL(10,2), f DOUBLE)",
    "INSERT INTO n VALUES (1, 1, 1, 1.5, 1.5), (2, -7, 0, -2.50, -1e100), (3, NULL, NULL, NULL, NULL)",
    "CREATE TABLE t (a INT, b VARCHAR(20), c TEXT, j JSON, w DATETIME(3), PRIMARY KEY (a, b), \
     UNIQUE KEY (w), FULLTEXT KEY (c))",
    "INSERT INTO t VALUES (1, 'x', 'one two', '{\"k\": [1]}', '2020-02-29 10:00:00.5'), \
     (1, 'Y', 'zwei', NULL, NULL), (2, '日本', '日本語 の文', '7', '1999-12-31')",
    "CREATE TABLE e (id INT AUTO_INCREMENT PRIMARY KEY, e ENUM('a', 'b'), s SET('p', 'q'), o BLOB)",
    "INSERT INTO e (e, s, o) VALUES ('a', 'p,q', x'00FF'), (NULL, '', NULL)",
];
/// Milliseconds of a statement, after which it is interrupted.
const STATEMENT_MS: u64 = 1_000;
/// Memory of a statement, and of temporary tables.
const MEMORY_BYTES: u64 = 16 << 20;
/// Inputs of one database.
const INPUTS: usize = 2_000;

/// A database with the fixture.
struct Fixture {
    runtime: Runtime,
    instance: Instance,
    inputs: usize,
    _directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options { durability: Durability::None, ..Options::default() };
        let database = Database::open(directory.path(), options).expect("a database");
        let settings = Settings {
            version: "9.7.4-fuzz".to_owned(),
            max_query_memory_bytes: MEMORY_BYTES,
            max_temporary_memory_bytes: MEMORY_BYTES,
            default_database: "test".to_owned(),
        };
        let instance = Instance::new(database, Arc::new(EmbeddedHost), settings);
        let fixture = Self { runtime, instance, inputs: 0, _directory: directory };
        let mut session = fixture.session();
        for statement in FIXTURE {
            let mut nobody = Nobody;
            let asked = session.query(statement.as_bytes(), false, &mut nobody);
            fixture.runtime.block_on(asked).expect("the fixture");
        }
        fixture
    }

    fn session(&self) -> Session {
        self.instance.session(1, Identity { user: "root".into(), host: "%".into(), rights: None })
    }
}

/// A client that looks at nothing.
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

/// Ends the statement when its time is up; a wait of the statement sees it too.
async fn in_time<T>(interrupter: Arc<AtomicBool>, work: impl Future<Output = T>) -> T {
    let clock = async {
        loop {
            tokio::time::sleep(Duration::from_millis(STATEMENT_MS)).await;
            interrupter.store(true, Ordering::Relaxed);
        }
    };
    let done = tokio::select! {
        done = work => done,
        never = clock => never,
    };
    interrupter.store(false, Ordering::Relaxed);
    done
}

/// Runs a text as it is, and prepared with these values for its marks.
async fn run(session: &mut Session, text: &[u8], many: bool, values: &[Value]) {
    let interrupter = session.interrupter();
    let asked = in_time(interrupter.clone(), session.query(text, many, &mut Nobody)).await;
    let prepared = match session.prepare(text).await {
        Ok(prepared) if prepared.parameters <= values.len() => {
            let values = &values[..prepared.parameters];
            in_time(interrupter, session.execute(&prepared, values, &mut Nobody)).await.err()
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    for error in [asked.err(), prepared].into_iter().flatten() {
        assert!(error.code.state().len() == 5 && error.code.number() >= 1_000, "{error}");
    }
}

static FIXTURES: Mutex<Option<Fixture>> = Mutex::new(None);

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let mut held = FIXTURES.lock().expect("one thread");
    if held.as_ref().is_some_and(|fixture| fixture.inputs >= INPUTS) {
        *held = None;
    }
    let fixture = held.get_or_insert_with(Fixture::new);
    fixture.inputs += 1;
    let mut session = fixture.session();
    let values = [
        Value::Null,
        Value::Int(i64::from(*kind)),
        Value::Uint(u64::MAX),
        Value::Float(-1e308),
        Value::Text("äö'\\ one".into()),
        Value::Bytes([0xFF, 0, 0x80].into()),
    ];
    let shift = usize::from(*kind) % values.len();
    fixture.runtime.block_on(run(&mut session, text, kind % 2 == 0, &values[shift..]));
});
