//! Following is exact: whatever a source runs, each table here is equal to the source's, or that
//! table alone is told as stopped, refused or being copied.
//!
//! `REMORA_SCRIPT` and `REMORA_CASE` choose statements by a part of their file's or case's name.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod beside;
mod corpus;
#[path = "."]
mod generator {
    #[path = "../mysql/generator/shape.rs"]
    #[allow(dead_code, reason = "shared")]
    pub mod shape;
}
mod mixture;
#[path = "../mysql/random.rs"]
#[allow(dead_code, reason = "shared")]
mod random;
#[path = "../mysql/rows.rs"]
#[allow(dead_code, reason = "shared")]
mod rows;
mod script;
mod session;
mod suites;
mod tables;

use remora_peers::Kind;

use crate::corpus::{Manner, run};

fn statements(kind: Kind, manner: Manner) {
    let figures = run(kind, manner);
    println!(
        "{} {manner:?}: {} cases, {} statements executed, {} refused, {} comparisons, {} rows",
        kind.name(),
        figures.cases,
        figures.executed,
        figures.refused,
        figures.comparisons,
        figures.rows
    );
    for finding in &figures.findings {
        println!("{} {} {}", kind.name(), finding.fault.name(), finding.name);
    }
    assert!(figures.findings.is_empty(), "{} cases are wrong", figures.findings.len());
}

#[test]
fn statements_mariadb_10_11_live() {
    statements(Kind::MariaDb1011, Manner::Live);
}

#[test]
fn statements_mysql_9_7_live() {
    statements(Kind::MySql97, Manner::Live);
}

#[test]
fn statements_mariadb_10_11_closed() {
    statements(Kind::MariaDb1011, Manner::Closed);
}

#[test]
fn statements_mysql_9_7_closed() {
    statements(Kind::MySql97, Manner::Closed);
}

#[test]
fn statements_mariadb_10_11_stalled() {
    statements(Kind::MariaDb1011, Manner::Stalled);
}

#[test]
fn statements_mysql_9_7_stalled() {
    statements(Kind::MySql97, Manner::Stalled);
}

fn mixture_is_equal(kind: Kind) {
    let figures = mixture::run(kind);
    println!(
        "{}: {} statements executed, {} refused; {} comparisons of {} rows; {} findings",
        kind.name(),
        figures.executed,
        figures.refused,
        figures.comparisons,
        figures.rows,
        figures.findings.len()
    );
    assert!(figures.findings.is_empty(), "{}", figures.findings.join("\n"));
    assert!(figures.executed > figures.refused, "the server takes most of the statements");
}

#[test]
fn mixture_mariadb_10_11() {
    mixture_is_equal(Kind::MariaDb1011);
}

#[test]
fn mixture_mariadb_11_8() {
    mixture_is_equal(Kind::MariaDb118);
}

#[test]
fn mixture_mysql_9_7() {
    mixture_is_equal(Kind::MySql97);
}

#[test]
fn mixture_mysql_5_6() {
    mixture_is_equal(Kind::MySql56);
}

fn suite(kind: Kind) {
    let figures = suites::run(kind);
    println!(
        "{}: {} files, {} equal, {} different; {} statements executed, {} refused; {} comparisons \
         of {} tables and {} rows",
        kind.name(),
        figures.files,
        figures.equal.len(),
        figures.different.len(),
        figures.statements,
        figures.refused,
        figures.comparisons,
        figures.tables,
        figures.rows
    );
    figures.different.iter().for_each(|name| println!("different: {name}"));
    figures.told.iter().for_each(|(reason, count)| println!("told {count} times: {reason}"));
    assert!(figures.different.is_empty(), "{} files are different", figures.different.len());
}

#[test]
#[ignore = "needs the server's own test files: tests/suites/run"]
fn suite_mariadb_10_11() {
    suite(Kind::MariaDb1011);
}

#[test]
#[ignore = "needs the server's own test files: tests/suites/run"]
fn suite_mariadb_11_8() {
    suite(Kind::MariaDb118);
}

#[test]
#[ignore = "needs the server's own test files: tests/suites/run"]
fn suite_mysql_9_7() {
    suite(Kind::MySql97);
}
