//! Endless statements, ended in every possible way: how long the client waits, how long the server keeps working, and
//! what stays on disk.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};
use serde::Serialize;

use crate::{
    lookup::servers::DatabaseServer,
    measure::{directory_bytes, percentile},
    table::Table,
};

/// Rows of the table that is joined to itself.
const ROWS: usize = 5_000;
/// Statements that run for minutes or longer.
const ENDLESS: [(&str, &str); 15] = [
    ("cross join", "SELECT COUNT(*) FROM n a, n b, n c WHERE a.i + b.i + c.i = -1"),
    ("cross join, grouped", "SELECT a.i, b.i, COUNT(*) FROM n a, n b, n c GROUP BY 1, 2"),
    ("cross join, sorted", "SELECT a.i, b.v FROM n a, n b, n c ORDER BY b.v, c.i, a.i"),
    ("cross join, distinct", "SELECT DISTINCT a.i, b.i, c.i FROM n a, n b, n c"),
    ("cross join, sent", "SELECT a.v, b.v, c.v FROM n a, n b, n c WHERE a.i + b.i + c.i < 0"),
    (
        "hash join of many pairs",
        "SELECT COUNT(*) FROM n a JOIN n b ON a.k = b.k JOIN n c ON b.k = c.k JOIN n d ON c.k = d.k",
    ),
    (
        "window",
        "SELECT MAX(r) FROM (SELECT ROW_NUMBER() OVER (ORDER BY a.v, b.v) AS r FROM n a, n b, n c) AS d",
    ),
    (
        "union",
        "SELECT COUNT(*) FROM (SELECT a.i, b.i AS j, c.i AS l FROM n a, n b, n c UNION SELECT 1, 2, 3) AS d",
    ),
    (
        "subquery for each row",
        "SELECT COUNT(*) FROM n a WHERE (SELECT COUNT(*) FROM n b, n c WHERE b.i + c.i > a.i) = 0",
    ),
    (
        "recursive",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT MOD(i + 1, 1000) FROM r WHERE i >= 0) SELECT COUNT(*) FROM r",
    ),
    (
        "REGEXP of all pairs",
        "SELECT COUNT(*) FROM n a, n b WHERE CONCAT(a.v, b.v) REGEXP '(a|b|ab)*c$'",
    ),
    (
        "GROUP_CONCAT of all pairs",
        "SELECT a.i, LENGTH(GROUP_CONCAT(CONCAT(b.v, c.v))) FROM n a, n b, n c GROUP BY a.i",
    ),
    ("written", "INSERT INTO m SELECT a.i FROM n a, n b, n c WHERE a.i + b.i + c.i = -1"),
    (
        "updated",
        "UPDATE n SET v = 'x' WHERE (SELECT COUNT(*) FROM m b, m c, m d WHERE b.i + c.i + d.i > n.i) < 0",
    ),
    ("SLEEP", "SELECT SLEEP(1000)"),
];
/// How long a statement runs before it is ended.
const RUN_TIME: Duration = Duration::from_millis(700);
/// The interval at which the server's CPU time is read, and the most it uses in that interval while idle.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_IDLE_CPU: Duration = Duration::from_micros(1_500);
/// The longest wait until the server is idle.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// How a statement is ended.
const END_METHODS: [&str; 4] = ["KILL QUERY", "KILL", "max_execution_time", "client gone"];

/// What happened to a statement.
#[derive(Serialize)]
pub struct Figures {
    statement: String,
    way: &'static str,
    /// The time from ending it until the client has the error, in milliseconds; `None` if the
    /// client is gone.
    answered_ms: Option<f64>,
    /// The time from ending it until the server is idle, in milliseconds; `None` if it never was.
    silent_ms: Option<f64>,
    /// Bytes in the spill directory after that.
    spilled_bytes: u64,
    /// The error that the client got.
    error: String,
}

/// Ends each statement in each way.
pub fn measure(database_server: &DatabaseServer, spill: &Path) -> Result<Vec<Figures>> {
    let mut own = database_server.connect(false)?;
    own.query_drop("CREATE TABLE n (i INT PRIMARY KEY, k INT, v VARCHAR(40))")?;
    own.query_drop("CREATE TABLE m (i INT)")?;
    let row = |at: usize| format!("({at}, {}, 'abababababab{}')", at % 5, at % 97);
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    own.query_drop(format!("INSERT INTO n VALUES {}", rows.join(",")))?;
    let few: Vec<String> = (0..ROWS).map(|at| format!("({at})")).collect();
    own.query_drop(format!("INSERT INTO m VALUES {}", few.join(",")))?;
    let mut figures = Vec::new();
    for (name, statement) in ENDLESS {
        // As in MySQL, the time limit applies to reading statements only.
        let reads = !["INSERT", "UPDATE"].iter().any(|verb| statement.starts_with(verb));
        for way in END_METHODS.into_iter().filter(|way| reads || *way != "max_execution_time") {
            wait_until_idle(database_server)?;
            let mut one = end(database_server, &mut own, statement, way)?;
            one.statement = name.to_owned();
            one.spilled_bytes = if spill.exists() { directory_bytes(spill)? } else { 0 };
            eprintln!(
                "{name}, {way}: answered {:?} ms, silent {:?} ms, {} bytes, {}",
                one.answered_ms, one.silent_ms, one.spilled_bytes, one.error
            );
            figures.push(one);
        }
    }
    Ok(figures)
}

fn end(
    database_server: &DatabaseServer,
    own: &mut Conn,
    statement: &str,
    way: &'static str,
) -> Result<Figures> {
    let mut connection = match way {
        "client gone" => database_server.connect_for(RUN_TIME)?,
        _ => database_server.connect(false)?,
    };
    if way == "max_execution_time" {
        connection.query_drop(format!("SET max_execution_time = {}", RUN_TIME.as_millis()))?;
    }
    connection.query_drop("SET cte_max_recursion_depth = 4294967295")?;
    let id = connection.connection_id();
    let started = Instant::now();
    let runs = thread::spawn({
        let statement = statement.to_owned();
        move || {
            let error = super::run(&mut connection, &statement).err();
            (Instant::now(), error.map_or_else(|| "no error".into(), |error| error.to_string()))
        }
    });
    let ended = match way {
        "KILL QUERY" | "KILL" => {
            thread::sleep(RUN_TIME);
            own.query_drop(format!("{way} {id}"))?;
            Instant::now()
        }
        "max_execution_time" => started + RUN_TIME,
        // The client's read timeout closes the connection.
        _ => {
            runs_until(started + RUN_TIME);
            Instant::now()
        }
    };
    let silent = wait_until_idle(database_server)?;
    let (answered, error) = runs.join().map_err(|_| anyhow::anyhow!("a client panicked"))?;
    let since = |at: Instant| at.saturating_duration_since(ended).as_secs_f64() * 1e3;
    Ok(Figures {
        statement: String::new(),
        way,
        answered_ms: (way != "client gone").then(|| since(answered)),
        silent_ms: silent.map(since),
        spilled_bytes: 0,
        error,
    })
}

fn runs_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// The time at which the server became idle.
fn wait_until_idle(database_server: &DatabaseServer) -> Result<Option<Instant>> {
    let begun = Instant::now();
    let spent = || database_server.processor().precise().context("the server's time is not known");
    let mut before = spent()?;
    while begun.elapsed() < MAX_WAIT {
        let looked = Instant::now();
        thread::sleep(POLL_INTERVAL);
        let now = spent()?;
        if now.saturating_sub(before) < MAX_IDLE_CPU {
            return Ok(Some(looked));
        }
        before = now;
    }
    Ok(None)
}

/// A table of the worst case for each way of ending.
pub fn table(figures: &[Figures]) -> Table {
    let mut table = Table::new(&[
        "ended by",
        "statements",
        "silent p50 ms",
        "longest",
        "answered longest",
        "bytes left",
        "not silent",
    ]);
    for way in END_METHODS {
        let of_way: Vec<&Figures> = figures.iter().filter(|one| one.way == way).collect();
        let mut silent: Vec<f64> = of_way.iter().filter_map(|one| one.silent_ms).collect();
        silent.sort_by(f64::total_cmp);
        let answered = of_way.iter().filter_map(|one| one.answered_ms).fold(0.0, f64::max);
        table.row(vec![
            way.to_owned(),
            of_way.len().to_string(),
            format!("{:.0}", percentile(&silent, 50)),
            format!("{:.0}", percentile(&silent, 100)),
            format!("{answered:.0}"),
            of_way.iter().map(|one| one.spilled_bytes).sum::<u64>().to_string(),
            of_way.iter().filter(|one| one.silent_ms.is_none()).count().to_string(),
        ]);
    }
    table
}
