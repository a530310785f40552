//! Many rows by a list of keys: every way to write such a list in SQL, from one key to a million.
//!
//! In process, the cost per row is measured; over the network, Remora and MariaDB run the same statements in the same
//! run. A statement that does not answer within the limit is killed and not counted; a form that took longer than the
//! limit is not measured with more keys.

use std::{
    fmt::Write,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mysql::{Conn, Row, prelude::Queryable};
use remora_engine::{KeyValues, Value};
use remora_peers::Kind;
use serde::Serialize;

use crate::{
    lookup::{InProcess, servers, servers::DatabaseServer},
    random::SplitMix64,
    suite::WorkDirectory,
    table::Table,
};

/// The runs of a form are repeated until this much time has passed.
const BUDGET: Duration = Duration::from_millis(600);
/// Keys per INSERT, if there are many.
const KEYS_PER_INSERT: usize = 1_000;

/// Options of `many-keys`.
#[derive(clap::Args, Debug)]
pub struct ManyKeysOptions {
    /// Number of rows in the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// The largest number of keys in a list.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Timeout of a statement in seconds. A form that takes longer is not measured with more keys.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    limit: u64,
    /// Measure only the library in this process. No server is started.
    #[arg(long)]
    only_in_process: bool,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-many-keys.json")]
    json: PathBuf,
}

/// A way to read a list of keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
enum Form {
    /// A statement for each key.
    EachText,
    /// A prepared statement for each key.
    EachPrepared,
    Or,
    In,
    Union,
    UnionAll,
    /// A join with a temporary table, which is filled by long INSERTs.
    Temporary,
    /// The same with a primary key on the temporary table.
    TemporaryKey,
    JsonTable,
}

const FORMS: [Form; 9] = [
    Form::EachText,
    Form::EachPrepared,
    Form::Or,
    Form::In,
    Form::Union,
    Form::UnionAll,
    Form::Temporary,
    Form::TemporaryKey,
    Form::JsonTable,
];

#[derive(Serialize)]
struct Figure {
    server: String,
    form: Form,
    keys: usize,
    ms: f64,
    us_per_row: f64,
    cpu_us_per_row: Option<f64>,
}

/// Runs the suite.
pub fn many_keys(options: &ManyKeysOptions) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let sizes = (0..=6).map(|power| 10usize.pow(power));
    let sizes: Vec<usize> =
        sizes.filter(|&size| size <= options.keys && size as u64 <= options.rows).collect();
    let lists: Vec<Vec<u64>> = sizes.iter().map(|&size| keys(options.rows, size)).collect();
    let mut figures = measure_in_process(&directory.path().join("inside"), options, &lists)?;
    if !options.only_in_process {
        let mut database_servers = vec![servers::remora(directory.path(), options.rows)?];
        database_servers.extend(servers::peer(Kind::MariaDb1011, &["InnoDB"], options.rows)?);
        for database_server in &database_servers {
            measure_servers(database_server, options, &lists, &mut figures)?;
        }
    }
    println!("{}", table(&figures));
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &figures)?;
    Ok(())
}

/// Distinct keys in random order.
fn keys(rows: u64, count: usize) -> Vec<u64> {
    let mut random = SplitMix64::new(count as u64);
    let mut keys: Vec<u64> = (1..=rows).collect();
    for at in 0..count {
        let other = at + random.below(keys.len() - at);
        keys.swap(at, other);
    }
    keys.truncate(count);
    keys
}

/// Measures the library's look-up of many rows, and SQL in process.
fn measure_in_process(
    directory: &std::path::Path,
    options: &ManyKeysOptions,
    lists: &[Vec<u64>],
) -> Result<Vec<Figure>> {
    let mut measure_in_process = InProcess::open(directory, options.rows)?;
    let mut figures = Vec::new();
    for list in lists {
        let keys: Vec<KeyValues> =
            list.iter().map(|&key| KeyValues::from_iter([Value::Int(key as i64)])).collect();
        let reader = measure_in_process.engine.reader();
        let ms = shortest(|| {
            let (mut rows, started) = (0, Instant::now());
            reader.get_many("bench.sbtest", &keys, &[0, 1, 2, 3], &mut |_, values| {
                rows += values.len() / 4;
                Ok(())
            })?;
            ensure!(rows == keys.len(), "{rows} rows of {}", keys.len());
            Ok(started.elapsed())
        })?;
        figures.push(figure("library", Form::In, list.len(), ms, None));
    }
    for form in [Form::In, Form::Or, Form::UnionAll] {
        for list in lists {
            let text = statement(form, "sbtest", list);
            let wall = shortest(|| {
                let (rows, wall) = measure_in_process.query(&text)?;
                ensure!(rows == list.len() as u64, "{form:?}: {rows} rows of {}", list.len());
                Ok(wall)
            })?;
            figures.push(figure("SQL in process", form, list.len(), wall, None));
        }
    }
    Ok(figures)
}

fn measure_servers(
    database_server: &DatabaseServer,
    options: &ManyKeysOptions,
    lists: &[Vec<u64>],
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let limit = Duration::from_secs(options.limit);
    for form in FORMS {
        for list in lists {
            eprintln!("{}, {form:?}, {} keys", database_server.name, list.len());
            let mut connection = database_server.connect_for(limit)?;
            let before = database_server.processor().precise();
            let mut runs = 0;
            let asked = shortest(|| {
                runs += 1;
                let started = Instant::now();
                let rows = ask(&mut connection, form, database_server.table, list)?;
                ensure!(rows == list.len(), "{form:?}: {rows} rows of {}", list.len());
                Ok(started.elapsed())
            });
            let wall = match asked {
                Ok(wall) => wall,
                Err(error) => {
                    eprintln!("  {error:#}");
                    // The server may still be running the statement, which would distort the next measurement.
                    database_server.end(connection.connection_id())?;
                    break;
                }
            };
            eprintln!("  {:.3} ms", wall.as_secs_f64() * 1e3);
            let cpu = before.zip(database_server.processor().precise());
            let cpu = cpu.map(|(before, after)| after.saturating_sub(before) / runs);
            figures.push(figure(&database_server.name, form, list.len(), wall, cpu));
            if wall > limit {
                break;
            }
        }
    }
    Ok(())
}

/// The shortest time of several runs.
fn shortest(mut run: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let (started, mut best) = (Instant::now(), Duration::MAX);
    loop {
        best = best.min(run()?);
        if started.elapsed() > BUDGET {
            return Ok(best);
        }
    }
}

fn figure(server: &str, form: Form, keys: usize, wall: Duration, cpu: Option<Duration>) -> Figure {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    Figure {
        server: server.to_owned(),
        form,
        keys,
        ms: us(wall) / 1e3,
        us_per_row: us(wall) / keys as f64,
        cpu_us_per_row: cpu.map(|cpu| us(cpu) / keys as f64),
    }
}

/// Reads the rows of the keys; returns their number.
fn ask(connection: &mut Conn, form: Form, table: &str, keys: &[u64]) -> Result<usize> {
    let select = format!("SELECT id, k, c, pad FROM {table} WHERE id = ");
    match form {
        Form::EachText => {
            for key in keys {
                let row: Option<Row> = connection.query_first(format!("{select}{key}"))?;
                ensure!(row.is_some(), "row {key} is missing");
            }
            Ok(keys.len())
        }
        Form::EachPrepared => {
            let statement = connection.prep(format!("{select}?"))?;
            for key in keys {
                let row: Option<Row> = connection.exec_first(&statement, (key,))?;
                ensure!(row.is_some(), "row {key} is missing");
            }
            Ok(keys.len())
        }
        Form::Temporary | Form::TemporaryKey => {
            let key = if form == Form::TemporaryKey { " PRIMARY KEY" } else { "" };
            connection.query_drop("DROP TEMPORARY TABLE IF EXISTS wanted")?;
            connection
                .query_drop(format!("CREATE TEMPORARY TABLE wanted (id INT NOT NULL{key})"))?;
            for part in keys.chunks(KEYS_PER_INSERT) {
                let rows: Vec<String> = part.iter().map(|key| format!("({key})")).collect();
                connection.query_drop(format!("INSERT INTO wanted VALUES {}", rows.join(",")))?;
            }
            count(connection, &statement(form, table, keys))
        }
        form => count(connection, &statement(form, table, keys)),
    }
}

fn count(connection: &mut Conn, text: &str) -> Result<usize> {
    let mut rows = 0;
    for row in connection.query_iter(text)? {
        std::hint::black_box(row?);
        rows += 1;
    }
    Ok(rows)
}

/// The statement of a form.
fn statement(form: Form, table: &str, keys: &[u64]) -> String {
    let columns = "SELECT id, k, c, pad FROM";
    let joined = |before: &str, between: &str, behind: &str| {
        let mut text = String::with_capacity(before.len() + keys.len() * (between.len() + 8));
        text.push_str(before);
        for (at, key) in keys.iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{}{key}", if at == 0 { "" } else { between });
        }
        text + behind
    };
    let one = format!("{columns} {table} WHERE id = ");
    match form {
        Form::In => joined(&format!("{columns} {table} WHERE id IN ("), ",", ")"),
        Form::Or => joined(&one, " OR id = ", ""),
        Form::Union => joined(&one, &format!(" UNION {one}"), ""),
        Form::UnionAll => joined(&one, &format!(" UNION ALL {one}"), ""),
        Form::JsonTable => {
            let from = "SELECT t.id, t.k, t.c, t.pad FROM JSON_TABLE('[";
            let behind = format!(
                "]', '$[*]' COLUMNS (id INT PATH '$')) AS wanted JOIN {table} AS t \
                 ON t.id = wanted.id"
            );
            joined(from, ",", &behind)
        }
        _ => format!(
            "SELECT t.id, t.k, t.c, t.pad FROM wanted JOIN {table} AS t ON t.id = wanted.id"
        ),
    }
}

fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new(&["", "keys", "ms", "us/row", "server cpu us/row", ""]);
    for one in figures {
        table.row(vec![
            one.server.clone(),
            one.keys.to_string(),
            format!("{:.3}", one.ms),
            format!("{:.2}", one.us_per_row),
            one.cpu_us_per_row.map(|us| format!("{us:.2}")).unwrap_or_default(),
            format!("{:?}", one.form),
        ]);
    }
    table
}
