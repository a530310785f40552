//! Test suites of clients against `remora serve`. Failing tests must be listed with a reason in `suites/SUITE.txt`, and
//! listed tests must fail, so that the lists stay correct.

use std::collections::BTreeMap;

use super::{Command, Serving, printed, source};

/// Runs a suite or the named parts of it; at least `passes` of its tests must pass.
fn runs_as_listed(suite: &str, parts: &[&str], passes: usize) {
    let serving = Serving::with(Some(&source("suites/remora.toml")));
    let mut command = Command::new(source("suites/run"));
    let log = std::env::temp_dir().join(format!("remora-{suite}-{}.log", std::process::id()));
    command.arg(suite).arg(&serving.port).args(parts).env("LOG", &log);
    let output = printed(&command.output().unwrap());
    let outcomes: BTreeMap<&str, &str> = output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(outcome, name)| (name, outcome))
        .collect();
    let listed = std::fs::read_to_string(source(&format!("suites/{suite}.txt"))).unwrap();
    let listed: Vec<&str> =
        listed.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect();

    let mut wrong = Vec::new();
    for (name, outcome) in &outcomes {
        match (*outcome, listed.contains(name)) {
            ("fail", false) => wrong.push(format!("fails: {name}")),
            ("pass" | "skip", true) => {
                wrong.push(format!("{outcome}, though it is listed: {name}"))
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        let gone = listed.iter().filter(|name| !outcomes.contains_key(**name));
        wrong.extend(gone.map(|name| format!("is listed and not there: {name}")));
    }
    assert!(wrong.is_empty(), "{}\nSee {}", wrong.join("\n"), log.display());
    let passed = outcomes.values().filter(|outcome| **outcome == "pass").count();
    assert!(passed >= passes, "only {passed} tests passed; see {}", log.display());
    let _ = std::fs::remove_file(&log);
}

#[test]
fn the_suite_of_go_sql_driver() {
    runs_as_listed("go-sql-driver", &[], 150);
}

#[test]
fn the_suite_of_pymysql() {
    runs_as_listed("pymysql", &[], 140);
}

/// All tests but those that reflect many tables at once, seven times 84 of one kind.
#[test]
fn the_suite_of_sqlalchemy() {
    let parts = ["test/dialect/mysql", "test/dialect/test_suite.py", "-k", "not multi"];
    runs_as_listed("sqlalchemy", &parts, 1_500);
}
