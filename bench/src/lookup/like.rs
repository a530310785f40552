//! `LIKE '%part%'` over wiki rows. Remora and MySQL have the same rows with the same collation, run
//! the same statements and must give the same answers.

use anyhow::{Context, Result, ensure};
use mysql::{Conn, prelude::Queryable};
use remora_peers::Kind;

use super::{
    LookupOptions,
    servers::{self, DatabaseServer},
};
use crate::{
    corpus::{Document, data_directory, read_directory, thin_out},
    measure::{RunLimits, Timing, repeat},
    suite::WorkDirectory,
    table::Table,
};

/// Rows of one INSERT.
const INSERTED_ROWS: usize = 500;
/// How often each statement is measured. MySQL scans every text each time, so its runs end by time.
const EFFORT: RunLimits = RunLimits { runs: 1_000, budget: std::time::Duration::from_secs(20) };

const STATEMENTS: [&str; 4] = [
    "SELECT COUNT(*) FROM wiki WHERE text LIKE '%quantum%'",
    "SELECT id FROM wiki WHERE text LIKE '%quantum%' ORDER BY id DESC LIMIT 100",
    "SELECT id, title FROM wiki WHERE text LIKE '%quantum%' ORDER BY id",
    "SELECT COUNT(*) FROM wiki WHERE INSTR(text, 'quantum') > 0",
];

/// The figures of one server: a timing for each statement.
struct Figures {
    server: String,
    timings: Vec<Timing>,
    answers: Vec<Vec<mysql::Row>>,
}

/// Measures both and prints how many times as fast Remora is.
pub fn like(options: &LookupOptions) -> Result<()> {
    let documents = read_directory(&data_directory(options.data.as_deref())?)?;
    let rows = options.like_rows.min(documents.len());
    let documents = thin_out(documents, rows);
    let directory = WorkDirectory::new()?;
    let remora = measure(&servers::remora(directory.path(), 1)?, &documents)?;
    let mut all = vec![remora];
    if !options.without_peers {
        for database_server in servers::peer(Kind::MySql97, &["InnoDB"], 1)? {
            all.push(measure(&database_server, &documents)?);
        }
    }
    println!("{}", table(&all));
    let texts = |figures: &Figures| format!("{:?}", figures.answers);
    let first = all.first().map(texts);
    ensure!(all.iter().all(|one| Some(texts(one)) == first), "the servers' answers differ");
    Ok(())
}

fn measure(database_server: &DatabaseServer, documents: &[Document]) -> Result<Figures> {
    eprintln!("loading {} wiki rows into {}", documents.len(), database_server.name);
    let mut connection = database_server.connect(false)?;
    // Only Remora gets an index: a full-text index of MySQL would not serve LIKE.
    let index = if database_server.name == "Remora" { ", FULLTEXT KEY (text)" } else { "" };
    connection.query_drop(format!(
        "CREATE TABLE wiki (id BIGINT NOT NULL PRIMARY KEY, title VARCHAR(255) NOT NULL,
         text MEDIUMTEXT NOT NULL{index})"
    ))?;
    for documents in documents.chunks(INSERTED_ROWS) {
        insert(&mut connection, documents)?;
    }
    eprintln!("asking {}", database_server.name);
    let (mut timings, mut answers) = (Vec::new(), Vec::new());
    for statement in STATEMENTS {
        let mut answer = Vec::new();
        timings.push(repeat(EFFORT, database_server.processor(), || {
            answer = connection.query(statement).context(statement)?;
            Ok(())
        })?);
        answers.push(answer);
    }
    Ok(Figures { server: database_server.name.clone(), timings, answers })
}

fn insert(connection: &mut Conn, documents: &[Document]) -> Result<()> {
    let values = vec!["(?,?,?)"; documents.len()].join(",");
    let parameters = documents.iter().flat_map(|row| {
        let title: String = row.title.chars().take(255).collect();
        [mysql::Value::from(row.id), title.into(), row.text.as_str().into()]
    });
    let parameters: Vec<mysql::Value> = parameters.collect();
    Ok(connection.exec_drop(format!("INSERT INTO wiki VALUES {values}"), parameters)?)
}

fn table(all: &[Figures]) -> Table {
    let mut table = Table::new(&["server", "p50 us", "p99 us", "times", "statement"]);
    for (number, statement) in STATEMENTS.iter().enumerate() {
        let p50 = |one: &Figures| one.timings.get(number).map_or(0.0, |timing| timing.p50_us);
        let quickest = all.first().map_or(0.0, p50);
        for one in all {
            let Some(timing) = one.timings.get(number) else { continue };
            table.row(vec![
                one.server.clone(),
                format!("{:.0}", timing.p50_us),
                format!("{:.0}", timing.p99_us),
                format!("{:.0}", timing.p50_us / quickest.max(f64::MIN_POSITIVE)),
                (*statement).to_owned(),
            ]);
        }
    }
    table
}
