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

use std::collections::BTreeSet;

use remora_peers::Kind;

use crate::corpus::{Manner, run};

/// The fewest statements that a server must have taken, so that a run is worth its name.
const FEWEST: usize = 300;

fn statements(kind: Kind, manner: Manner) {
    let figures = run(kind, manner);
    println!(
        "{} {manner:?}: {} cases, {} statements executed, {} refused, {} comparisons, {} rows",
        kind.name(),
        figures.cases.len(),
        figures.executed,
        figures.refused,
        figures.comparisons,
        figures.rows
    );
    let known = known();
    figures.findings.iter().for_each(|line| println!("{line}"));
    let new: Vec<_> = figures.findings.difference(&known).collect();
    assert!(new.is_empty(), "wrong: {new:#?}");
    let ran = |line: &&String| figures.cases.iter().any(|case| line.ends_with(case.as_str()));
    let mended: Vec<_> = known.difference(&figures.findings).filter(ran).collect();
    // What is seen while behind depends on where that began.
    if manner == Manner::Live {
        assert!(mended.is_empty(), "right by now, so take it out of known.txt: {mended:#?}");
    }
    let chosen = ["REMORA_SCRIPT", "REMORA_CASE"].iter().any(|name| std::env::var(name).is_ok());
    assert!(chosen || figures.executed >= FEWEST, "{} statements were taken", figures.executed);
}

/// What is known to be wrong: `fault server manner file: case`.
fn known() -> BTreeSet<String> {
    let lines = include_str!("known.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).map(str::to_owned).collect()
}

#[test]
fn statements_mariadb_10_11_live() {
    statements(Kind::MariaDb1011, Manner::Live);
}

#[test]
fn statements_mariadb_10_11_closed() {
    statements(Kind::MariaDb1011, Manner::Closed);
}

#[test]
#[ignore = "by hand: minutes more"]
fn statements_mariadb_10_11_stalled() {
    statements(Kind::MariaDb1011, Manner::Stalled);
}

#[test]
#[ignore = "by hand: minutes more"]
fn statements_mariadb_11_8_live() {
    statements(Kind::MariaDb118, Manner::Live);
}

#[test]
fn statements_mysql_9_7_live() {
    statements(Kind::MySql97, Manner::Live);
}

#[test]
fn statements_mysql_9_7_closed() {
    statements(Kind::MySql97, Manner::Closed);
}

#[test]
#[ignore = "by hand: minutes more"]
fn statements_mysql_9_7_stalled() {
    statements(Kind::MySql97, Manner::Stalled);
}

#[test]
#[ignore = "by hand: minutes more"]
fn statements_mysql_5_6_live() {
    statements(Kind::MySql56, Manner::Live);
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
#[ignore = "by hand: minutes more"]
fn mixture_mariadb_11_8() {
    mixture_is_equal(Kind::MariaDb118);
}

#[test]
fn mixture_mysql_9_7() {
    mixture_is_equal(Kind::MySql97);
}

#[test]
#[ignore = "by hand: minutes more"]
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
