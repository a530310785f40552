//! Difficult changes: rows of a table without a key, and a parent whose children are deleted by a foreign key's
//! cascade, which the source does not log.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use mysql::{Conn, prelude::Queryable};
use remora_peers::Server;

use super::{
    ReplicationOptions, backlog,
    remora::Remora,
    report::{Figure, Report, Spread, Target},
    source,
};
use crate::{measure::anonymous_bytes, suite::WorkDirectory};

const DATABASE: &str = "large";
/// Runs with rows without a key.
const RUNS: usize = 3;
/// Rows per INSERT of the load.
const LOAD_ROWS: usize = 1_000;
/// Rows per recorded transaction.
const TRANSACTION_ROWS: usize = 10;
/// Interval at which memory is read.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const CREATE: [&str; 3] = [
    "CREATE TABLE keyless (a INT NOT NULL, word VARCHAR(40) NOT NULL, b BIGINT NOT NULL)",
    "CREATE TABLE parent (id INT NOT NULL PRIMARY KEY, word VARCHAR(20))",
    "CREATE TABLE child (id INT NOT NULL PRIMARY KEY, parent_id INT NOT NULL, word VARCHAR(20), \
     FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE)",
];

/// Measures both.
pub fn measure(options: &ReplicationOptions, program: &Path, report: &mut Report) -> Result<()> {
    let server = source::start(options.server)?;
    let mut connection = source::connect(&server, DATABASE)?;
    for statement in CREATE {
        connection.query_drop(statement)?;
    }
    eprintln!("loading {} children", options.children);
    connection.query_drop("INSERT INTO parent VALUES (1, 'father'), (2, 'mother')")?;
    let child = |number: usize| format!("({number},1,'kid')");
    load(&mut connection, "child", options.children, LOAD_ROWS, child)?;
    connection.query_drop("INSERT INTO child VALUES (0, 2, 'kid')")?;
    let work = WorkDirectory::new()?;
    let url = server.follower_url(DATABASE);
    let mut remora = Remora::start(program, &work.path().join("large"), &url)?;
    remora.wait_until_live(CREATE.len())?;
    remora.settle()?;
    keyless(&server, &mut remora, options.rows, report)?;
    cascade(&server, &mut remora, options.children, report)
}

/// Rows without a key: inserted, updated and deleted.
fn keyless(server: &Server, remora: &mut Remora, rows: usize, report: &mut Report) -> Result<()> {
    let part = rows.div_ceil(RUNS).max(1);
    let table = format!("{DATABASE}.keyless");
    // Every row exists twice, so that duplicates are tested.
    let row = |number: usize| format!("({0},'loose',{0})", number / 2);
    type Write<'w> = &'w dyn Fn(&mut Conn, usize) -> Result<()>;
    let insert = |connection: &mut Conn, run: usize| {
        let row = |number: usize| row(run * part + number);
        load(connection, "keyless", part, TRANSACTION_ROWS, row)
    };
    let each = |connection: &mut Conn, run: usize, statement: &str| {
        let (first, end) = (run * part / 2, (run + 1) * part / 2 + 1);
        for from in (first..end).step_by(TRANSACTION_ROWS / 2) {
            let to = (from + TRANSACTION_ROWS / 2).min(end);
            connection.query_drop(format!("{statement} WHERE a >= {from} AND a < {to}"))?;
        }
        Ok(())
    };
    let update = |connection: &mut Conn, run: usize| {
        each(connection, run, "UPDATE keyless SET word = 'bound'")
    };
    let delete = |connection: &mut Conn, run: usize| each(connection, run, "DELETE FROM keyless");
    let all = (part * RUNS) as u64;
    let steps: [(&str, Write<'_>, [u64; 2]); 3] = [
        ("inserts", &insert, [all, 0]),
        ("updates", &update, [0, all]),
        ("deletes", &delete, [0, 0]),
    ];
    source::connect(server, DATABASE)?.query_drop("CREATE INDEX by_a ON keyless (a)")?;
    for (name, write, truth) in steps {
        eprintln!("recording {name} without a key");
        let mut runs = Vec::new();
        for run in 0..RUNS {
            let mut connection = source::connect(server, DATABASE)?;
            runs.push(backlog::apply(remora, server, || write(&mut connection, run))?);
        }
        let name = format!("rows without a key, {name}");
        let mut figure = backlog::per_second(&name, &runs, Target::None);
        let found = [remora.count(&table, "loose")?, remora.count(&table, "bound")?];
        if found != truth {
            figure.wrong = Some(format!("{found:?} rows, not {truth:?}"));
        }
        report.add(figure);
    }
    Ok(())
}

/// Deletes one parent row, and with it `children` rows.
fn cascade(
    server: &Server,
    remora: &mut Remora,
    children: usize,
    report: &mut Report,
) -> Result<()> {
    eprintln!("deleting a parent of {children} children");
    let delete = || {
        source::connect(server, DATABASE)?.query_drop("DELETE FROM parent WHERE id = 1")?;
        Ok(())
    };
    let process = remora.process_id();
    let ended = AtomicBool::new(false);
    let (applied, peak) = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            while !ended.load(Ordering::Relaxed) {
                peak = anonymous_bytes(process).unwrap_or(0).max(peak);
                thread::sleep(POLL_INTERVAL);
            }
            peak
        });
        let applied = backlog::apply(remora, server, delete);
        ended.store(true, Ordering::Relaxed);
        (applied, watcher.join().unwrap_or_default())
    });
    let applied = applied?;
    let left = remora.count(&format!("{DATABASE}.child"), "kid")?;
    let value = Spread::of(vec![applied.wall_s()]);
    report.add(Figure {
        note: format!("{children} children; {} MiB of heap at most", peak >> 20),
        wrong: (left != 1).then(|| format!("{left} children are left, not 1")),
        ..Figure::new("one parent deleted by cascade", "s", value, Target::None)
    });
    Ok(())
}

/// Inserts `rows` rows, `together` in each statement.
fn load(
    connection: &mut Conn,
    table: &str,
    rows: usize,
    together: usize,
    row: impl Fn(usize) -> String,
) -> Result<()> {
    for first in (1..=rows).step_by(together) {
        let last = (first + together - 1).min(rows);
        let values: Vec<String> = (first..=last).map(&row).collect();
        connection.query_drop(format!("INSERT INTO {table} VALUES {}", values.join(",")))?;
    }
    Ok(())
}
