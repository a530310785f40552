//! The log of queries: which statements are in it, by SQL and by SphinxAPI.

use std::{fs, path::Path};

use mysql::prelude::Queryable;

use crate::sphinx::{
    books, sql,
    wire::{Client, SEARCH_VERSION, search_in},
};

/// The lines of a log without their dates and times.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let untimed = |line: &str| {
        let (_, found) = line.split_once(" found ").unwrap_or(("", line));
        found.to_owned()
    };
    text.lines().map(untimed).collect()
}

#[test]
fn searches_are_logged_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("query.log");
    let server = books(&format!("[logging]\nquery_log = '{}'\n", path.display()));
    let mut connection = sql(&server, "", "");
    connection.query_drop("SELECT id FROM books WHERE id = 1").unwrap();
    connection.query_drop("SELECT id FROM books WHERE MATCH('reef')").unwrap();
    // The changes of an open transaction count.
    connection.query_drop("BEGIN").unwrap();
    connection.query_drop("DELETE FROM books WHERE id = 1").unwrap();
    connection.query_drop("SELECT id FROM books WHERE MATCH('reef')").unwrap();
    connection.query_drop("ROLLBACK").unwrap();
    connection.query_drop("SELECT nosuch FROM books WHERE MATCH('reef')").unwrap_err();
    let found: Vec<u64> =
        connection.exec("SELECT id FROM books\nWHERE MATCH(?)", ("fish ' sea",)).unwrap();
    assert_eq!(found, [2]);
    let body = search_in("books", "reef", 1, "*", "@id asc");
    let reply = Client::connect(&server).ask(0, SEARCH_VERSION, &body);
    assert_eq!(reply.0, 0);
    drop(connection);
    server.stop();
    let mut lines = lines(&path);
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert_eq!(lines.remove(0), "3 docs 3 */ SELECT id FROM books WHERE MATCH('reef');");
    assert_eq!(lines.remove(0), "2 docs 2 */ SELECT id FROM books WHERE MATCH('reef');");
    assert_eq!(
        lines.remove(0),
        "1 docs 4 */ SELECT id FROM books WHERE MATCH(?); # MATCH('fish \\' sea')"
    );
    assert!(lines[0].starts_with("3 docs 3 */ SELECT "), "{}", lines[0]);
    assert!(lines[0].contains("MATCH('reef"), "{}", lines[0]);
}

#[test]
fn a_plain_log_has_the_text_of_queries() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("query.log");
    let server = books(&format!(
        "[logging]\nquery_log = '{}'\nquery_log_format = 'plain'\n",
        path.display()
    ));
    let mut connection = sql(&server, "", "");
    connection.query_drop("SELECT id FROM books WHERE MATCH('deep | sail')").unwrap();
    drop(connection);
    server.stop();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with(" sec [ext2/0/rel 2 (0,20)] [books] deep | sail\n"), "{text}");
}
