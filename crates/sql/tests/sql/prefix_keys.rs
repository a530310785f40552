//! Keys over columns that are too long for segments: indexes have prefixes of their values. A prefix finds rows, whose
//! whole values are tested then. It is never taken for the value: not by ORDER BY, COUNT, MIN and MAX, DISTINCT or GROUP BY.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_engine::Database;
use remora_sql::Session;

use crate::support::{Server, rows, run};

const ROWS: u64 = 3_000;
/// Longer than any prefix that an index has.
const PATH: &str = "https://example.com/a/path/that/is/longer/than/a/prefix/may/be/so/that/many/rows/are/equal/in/it/\
                    /and/only/what/follows/here/tells/them/apart/";

fn url(id: u64) -> String {
    match id % 3 {
        0 => format!("{PATH}{:04}", id / 6),
        _ => format!("HTTPS://Example.com/stra\u{df}e/{}", id / 2),
    }
}

async fn filled(session: &mut Session, keys: &str) {
    let table = format!(
        "CREATE TABLE p (id INT PRIMARY KEY, n INT, url VARCHAR(500), body TEXT COLLATE utf8mb4_bin, raw BLOB{keys})"
    );
    run(session, &table).await.unwrap();
    insert(session, 0, ROWS).await;
    run(session, "OPTIMIZE TABLE p").await.unwrap();
}

async fn insert(session: &mut Session, from: u64, to: u64) {
    let mut values = String::new();
    for id in from..to {
        let comma = if id > from { "," } else { "" };
        let (url, half) = (url(id), id / 2);
        let (body, raw) = match id % 50 {
            7 => ("NULL".to_owned(), "NULL".to_owned()),
            _ => (format!("'body {half} {PATH}'"), format!("X'00{half:08x}'")),
        };
        write!(values, "{comma}({id},{},'{url}',{body},{raw})", id % 10).unwrap();
    }
    run(session, &format!("REPLACE INTO p VALUES {values}")).await.unwrap();
}

const KEYS: &str = ", KEY url (url(191)), KEY body (body(10), n), KEY raw (raw(40))";

/// The key that finds the rows, and what else EXPLAIN says.
async fn plan(session: &mut Session, statement: &str) -> (String, String) {
    let told = rows(session, &format!("EXPLAIN {statement}")).await;
    let line = told.lines().next().unwrap();
    let cell = |nth| line.split('|').nth(nth).unwrap().to_owned();
    (cell(6), cell(11))
}

/// Statements, each with the key that answers it.
fn statements() -> Vec<(String, &'static str)> {
    let long = format!("{PATH}0007");
    let (key_of_url, key_of_body, key_of_raw) = ("url", "body", "raw");
    vec![
        ("WHERE url = 'https://example.com/STRASSE/20'".to_owned(), key_of_url),
        (format!("WHERE url = '{long}'"), "NULL"),
        ("WHERE url IN ('https://example.com/strasse/20', 'none', NULL)".to_owned(), key_of_url),
        ("WHERE url LIKE 'https://example.com/stra\u{df}e/141%'".to_owned(), key_of_url),
        ("WHERE url LIKE 'https://example.com/stra_e/141%' AND n > 1".to_owned(), "NULL"),
        ("WHERE url > 'https://example.com/strasse/99'".to_owned(), key_of_url),
        ("WHERE url BETWEEN 'https://example.com/strasse/99' AND 'i'".to_owned(), key_of_url),
        (format!("WHERE body = 'body 100 {PATH}' AND n = 1"), key_of_body),
        ("WHERE body >= 'body 99' AND body < 'body 991'".to_owned(), key_of_body),
        ("WHERE body LIKE 'body 77%'".to_owned(), key_of_body),
        ("WHERE raw = X'0000000010'".to_owned(), key_of_raw),
        ("WHERE raw < X'0000000010'".to_owned(), key_of_raw),
        (
            "WHERE raw = X'0000000010' OR url = 'https://example.com/strasse/20'".to_owned(),
            "raw,url",
        ),
        ("WHERE raw IS NULL AND id < 400".to_owned(), key_of_raw),
    ]
}

async fn compare(session: &mut Session) {
    for what in [
        "SELECT id, url FROM p @ # ORDER BY id",
        "SELECT COUNT(*), MIN(url), MAX(body), MIN(raw) FROM p @ #",
        "SELECT url, COUNT(*) FROM p @ # GROUP BY url ORDER BY url",
        "SELECT DISTINCT raw FROM p @ # ORDER BY raw DESC LIMIT 9",
        "SELECT id FROM p @ # ORDER BY url, id DESC LIMIT 7",
    ] {
        let mut conditions: Vec<String> = statements().into_iter().map(|(it, _)| it).collect();
        conditions.push(String::new());
        for condition in conditions {
            let statement = what.replace('#', &condition);
            let expected = rows(session, &statement.replace('@', "USE INDEX ()")).await;
            for hint in ["", "FORCE INDEX (url)", "FORCE INDEX (body)", "FORCE INDEX (url, raw)"] {
                let hinted = statement.replace('@', hint);
                assert_eq!(rows(session, &hinted).await, expected, "{hinted}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefixes_find_rows_and_order_none() {
    let server = Server::new();
    let mut session = server.session();
    let session = &mut session;
    filled(session, KEYS).await;
    for (condition, key) in statements() {
        let (found_by, extra) = plan(session, &format!("SELECT id FROM p {condition}")).await;
        assert_eq!(found_by, key, "{condition}: {extra}");
    }
    for order in ["url", "body", "raw", "url DESC, id"] {
        let (key, extra) =
            plan(session, &format!("SELECT id FROM p ORDER BY {order} LIMIT 3")).await;
        assert_eq!(key, "NULL", "{order}");
        assert!(extra.contains("Using filesort"), "{order}: {extra}");
    }
    compare(session).await;
    insert(session, ROWS, ROWS + 300).await;
    for change in [
        "UPDATE p SET url = REPLACE(url, 'stra', 'STRA'), body = CONCAT(body, n) WHERE id % 7 = 0",
        "UPDATE p SET raw = X'0000000010', url = NULL WHERE id % 90 = 1",
        "DELETE FROM p WHERE id % 11 = 0",
    ] {
        run(session, change).await.unwrap();
        compare(session).await;
    }
    run(session, "OPTIMIZE TABLE p").await.unwrap();
    compare(session).await;
}

async fn key_of_equality(session: &mut Session) -> String {
    let equal = "SELECT id FROM p WHERE url = 'https://example.com/STRASSE/20'";
    assert_eq!(rows(session, equal).await, "40\n41", "{equal}");
    plan(session, equal).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefix_keys_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    {
        let server = Server::at(directory.path());
        let mut session = server.session();
        let session = &mut session;
        filled(session, "").await;
        assert_eq!(key_of_equality(session).await, "NULL");
        for (change, key) in [
            ("CREATE INDEX url ON p (url(191))", "url"),
            ("ALTER TABLE p DROP KEY url, ADD KEY short (url(10))", "short"),
            ("ALTER TABLE p ADD KEY other (url(60), n)", "other"),
            ("ALTER TABLE p DROP KEY other", "short"),
            ("DROP INDEX short ON p", "NULL"),
        ] {
            run(session, change).await.unwrap();
            // "https://example.c" is the beginning of all rows.
            let key = if key == "short" { "NULL" } else { key };
            assert_eq!(key_of_equality(session).await, key, "{change}");
        }
        // Segments that are built now lack the prefixes that others still have.
        insert(session, 30, 60).await;
        run(
            session,
            "ALTER TABLE p ADD KEY url (url(191)), ADD KEY body (body(10)), ADD KEY raw (raw(40))",
        )
        .await
        .unwrap();
        assert_eq!(key_of_equality(session).await, "url");
        compare(session).await;
        run(session, "ALTER TABLE p MODIFY url VARCHAR(500) COLLATE utf8mb4_general_ci")
            .await
            .unwrap();
        // There "ß" is "s".
        let equal = "SELECT id FROM p WHERE url = 'https://example.com/strase/20'";
        assert_eq!(rows(session, equal).await, "40\n41");
        assert_eq!(plan(session, equal).await.0, "url");
        compare(session).await;
        server.database.close().unwrap();
    }
    let report = Database::check(directory.path(), &mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let server = Server::at(directory.path());
    let mut session = server.session();
    compare(&mut session).await;
}
