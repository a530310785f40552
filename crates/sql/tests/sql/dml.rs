//! Definitions, rows and transactions compared with what MySQL 9.7 did: golden scripts under
//! `tests/dml`, each run in a database of its own.
//!
//! ```text
//! > statement
//! ok AFFECTED LAST_INSERT_ID INFO   or   columns a|b, and a line `= …` for each row
//! error CODE MESSAGE
//! ! LEVEL CODE MESSAGE               its warnings
//! ? REASON                           it is known to differ: see docs/sql-differences.md
//! ```

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use crate::support::{Answer, Server, run};
use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server as Peer};
use remora_sql::Session;

/// The scripts, each with the test that runs it.
macro_rules! scripts {
    ($($test:ident: $script:literal,)*) => {
        const SCRIPTS: &[&str] = &[$($script),*];
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                check($script).await;
            }
        )*
    };
}

scripts! {
    inserts: "insert",
    keys_with_timestamps: "timestamp_keys",
    orders_of_queries_in_from: "orders",
    defaults_over_columns_and_limits_in_exists: "later",
    values_given_to_last_insert_id: "last_insert_id",
    updates_beside_rows_of_no_table: "derived",
    duplicates: "duplicate",
    updates_and_deletes: "update",
    transactions: "transactions",
    definitions: "define",
    tables_made_anew: "rebuild",
    unique_keys_over_expressions: "functional",
    // Statements that are planned without the optimizer, and subqueries that are not joins.
    plans_of_small_tables: "plans",
    distinct_rows_and_their_order: "distinct",
    columns_of_json_table: "json_table",
    json_table_of_documents_that_rows_have: "json_table_columns",
    functions_over_documents_and_positions: "functions",
    keys_that_are_not_unique: "keys",
    views: "views",
    what_tables_keep_in_any_sql_mode: "modes",
    bytes_beside_texts: "bytes",
    frames_of_windows_over_moments: "frames",
    truths_in_documents: "truths",
    variables_set_by_one_statement: "set",
    updates_and_deletes_end_as_in_mysql: "ends",
    columns_that_expressions_name: "references",
    values_that_columns_are_given: "given",
    duplicates_beside_columns_of_a_query: "selected",
    bytes_bits_and_years_in_documents: "opaque",
    tables_made_of_a_query: "created",
    subqueries_over_the_changed_table: "target",
    numbers_beside_dates_and_rows_in_turn: "beside",
    totals_of_groups: "rollup",
    documents_as_conditions: "conditions",
    bits_as_bytes: "bits",
    values_of_subqueries: "looked_up",
    primary_keys_over_nullable_columns: "primary",
    collations_and_names_of_databases: "databases",
    texts_of_two_collations: "collations",
    recursive_common_table_expressions: "recursion",
    common_table_expressions_before_update_and_delete: "with",
    bits_labels_and_documents_in_other_columns: "stored",
    equal_rows_and_given_counters: "replaced",
}

/// A statement, MySQL's result, and whether the result is known to differ.
struct Step {
    statement: String,
    expected: Vec<String>,
    differs: bool,
}

fn steps(path: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if let Some(statement) = line.strip_prefix("> ") {
            let statement = statement.to_owned();
            steps.push(Step { statement, expected: Vec::new(), differs: false });
        } else if line.starts_with('#') || line.is_empty() {
            continue;
        } else if let Some(step) = steps.last_mut() {
            if line.starts_with("? ") {
                step.differs = true;
            } else {
                step.expected.push(line.to_owned());
            }
        }
    }
    steps
}

async fn answered(session: &mut Session, statement: &str) -> Vec<String> {
    let mut lines = match run(session, statement).await {
        Ok(answers) => answers.sets.first().map_or_else(Vec::new, shown),
        Err(error) => return vec![format!("error {} {}", error.code.number(), error.message)],
    };
    if let Ok(warnings) = run(session, "SHOW WARNINGS").await {
        let rows = warnings.sets.first().map_or(&[][..], |answer| &answer.rows);
        lines.extend(rows.iter().map(|row| format!("! {}", row.join(" "))));
    }
    lines
}

fn shown(answer: &Answer) -> Vec<String> {
    if answer.columns.is_empty() {
        let outcome = &answer.outcome;
        let line =
            format!("ok {} {} {}", outcome.affected_rows, outcome.last_insert_id, outcome.info);
        return vec![line.trim_end().to_owned()];
    }
    let mut lines = vec![format!("columns {}", answer.names().join("|"))];
    let escaped = |text: &String| text.replace('\\', "\\\\").replace('\n', "\\n");
    let rows = answer.rows.iter();
    lines.extend(rows.map(|row| {
        let cells: Vec<String> = row.iter().map(escaped).collect();
        format!("= {}", cells.join("|"))
    }));
    lines
}

async fn differences(path: &Path) -> Vec<String> {
    let server = Server::new();
    let mut session = server.session();
    let begin = "SET time_zone = '+00:00', timestamp = 1700000000.123456";
    run(&mut session, begin).await.unwrap();
    let mut found = Vec::new();
    for step in steps(path) {
        let answer = answered(&mut session, &step.statement).await;
        if (answer == step.expected) == step.differs {
            let known = if step.differs { " (is listed as different, and is not)" } else { "" };
            found.push(format!(
                "> {}{known}\n  MySQL {}\n  here  {}",
                step.statement,
                step.expected.join("\n        "),
                answer.join("\n        ")
            ));
        }
    }
    found
}

async fn check(name: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dml");
    let found = differences(&directory.join(format!("{name}.txt"))).await;
    assert!(found.is_empty(), "{} of {name} differ:\n{}", found.len(), found.join("\n"));
}

/// A real MySQL server's result, in the format of [`answered`].
fn theirs(connection: &mut Conn, statement: &str) -> Vec<String> {
    let mut lines = match connection.query_iter(statement) {
        Ok(result) => their_answer(result),
        Err(mysql::Error::MySqlError(error)) => {
            return vec![format!("error {} {}", error.code, error.message)];
        }
        Err(error) => return vec![format!("{statement}: {error}")],
    };
    if lines.iter().any(|line| line.starts_with("error ")) {
        return lines;
    }
    let warnings: Vec<(String, u16, String)> = connection.query("SHOW WARNINGS").unwrap();
    let warnings = warnings.iter();
    lines.extend(warnings.map(|(level, code, message)| format!("! {level} {code} {message}")));
    lines
}

fn their_answer(mut result: mysql::QueryResult<'_, '_, '_, mysql::Text>) -> Vec<String> {
    let columns = result.columns();
    let names: Vec<String> =
        columns.as_ref().iter().map(|column| column.name_str().into_owned()).collect();
    if names.is_empty() {
        let (affected, id) = (result.affected_rows(), result.last_insert_id().unwrap_or(0));
        return vec![format!("ok {affected} {id} {}", result.info_str()).trim_end().to_owned()];
    }
    let mut lines = vec![format!("columns {}", names.join("|"))];
    for row in result.by_ref() {
        let row = match row {
            Ok(row) => row,
            Err(mysql::Error::MySqlError(error)) => {
                return vec![format!("error {} {}", error.code, error.message)];
            }
            Err(error) => return vec![error.to_string()],
        };
        let cells = row.unwrap().into_iter().map(|value| match value {
            mysql::Value::NULL => "NULL".to_owned(),
            mysql::Value::Bytes(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                text.replace('\\', "\\\\").replace('\n', "\\n")
            }
            other => other.as_sql(true),
        });
        lines.push(format!("= {}", cells.collect::<Vec<_>>().join("|")));
    }
    lines
}

#[test]
fn scripts_say_what_mysql_did() {
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let mut connection = peer.connect().unwrap();
    let mut wrong = Vec::new();
    for name in SCRIPTS {
        let begin = [
            "DROP DATABASE IF EXISTS test",
            "CREATE DATABASE test",
            "USE test",
            "SET SESSION time_zone = '+00:00', timestamp = 1700000000.123456",
        ];
        connection.reset().unwrap();
        begin.iter().for_each(|statement| connection.query_drop(statement).unwrap());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/dml/{name}.txt"));
        for step in steps(&path) {
            let answer = theirs(&mut connection, &step.statement);
            if answer != step.expected {
                let (statement, expected) = (step.statement, step.expected);
                wrong.push(format!("[{name}] {statement}\n  {expected:?}\n  {answer:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
