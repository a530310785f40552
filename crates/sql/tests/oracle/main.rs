//! The same statements on MySQL 9.7 and on Remora: MySQL's results are in `golden/`, and Remora must return the same
//! columns, types, rows and errors.
//!
//! Known differences are listed in `differences.txt` under headings of docs/sql-differences.md, which has the reasons;
//! a statement that no longer differs must be removed from the list. Remora's results for those statements are in
//! `ours.txt`. `REMORA_ORACLE=write` rewrites the golden files from a real server, and `ours.txt`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod golden;
mod ours;
mod queries;
mod random;
#[path = "../support/mod.rs"]
mod support;
mod theirs;
mod view_tests;
mod views;

use std::{collections::BTreeMap, fs, path::PathBuf};

use golden::{Answer, Case};
use remora_peers::{Kind, Server as Peer};
use theirs::Theirs;

/// Statements of a random run.
const RANDOM_STATEMENTS: usize = 300;
/// Random queries over several tables; `REMORA_QUERIES` sets another number.
const RANDOM_QUERIES: usize = 400;
/// Random queries that are made into views.
const RANDOM_VIEWS: usize = 150;
/// Most queries for which a server reports a number out of range, in per cent.
const MOST_OUT_OF_RANGE: usize = 30;
/// Most queries that Remora may refuse with an error of its own, in per cent: an error is not a wrong result.
const MOST_REFUSED: usize = 1;
/// Most differences that a failing run shows.
const SHOWN: usize = 60;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle")
}

/// The statements that create the tables.
fn setup() -> Vec<String> {
    let text = fs::read_to_string(folder().join("setup.sql")).unwrap();
    let statements = text.split(";\n").map(|each| each.trim().trim_end_matches(';').to_owned());
    statements.filter(|each| !each.is_empty()).collect()
}

/// The golden files by area.
fn areas() -> BTreeMap<String, Vec<Case>> {
    let files = fs::read_dir(folder().join("golden")).unwrap();
    let read = |path: PathBuf| {
        let area = path.file_stem().unwrap().to_string_lossy().into_owned();
        (area, golden::parse(&fs::read_to_string(path).unwrap()))
    };
    files.map(|file| read(file.unwrap().path())).collect()
}

/// Statements with known differences, with the heading that gives the reason.
fn differences() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("differences.txt")).unwrap();
    let mut heading = String::new();
    let mut listed = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("## ") {
            Some(name) => heading = name.to_owned(),
            None => drop(listed.insert(line.to_owned(), heading.clone())),
        }
    }
    listed
}

/// Remora's results for known differences, by statement.
fn our_answers() -> BTreeMap<String, Answer> {
    let text = fs::read_to_string(folder().join("ours.txt")).unwrap();
    golden::parse(&text).into_iter().map(|case| (case.statement, case.answer)).collect()
}

#[test]
fn known_differences_are_answered_as_ever() {
    let known = our_answers();
    let mut ours = ours::Ours::new(&setup());
    let listed = differences().into_keys().map(|statement| {
        let answer = ours.answer(&statement);
        Case { statement, answer }
    });
    let cases: Vec<Case> = listed.collect();
    if std::env::var("REMORA_ORACLE").is_ok_and(|word| word == "write") {
        return fs::write(folder().join("ours.txt"), golden::format(&cases)).unwrap();
    }
    let differs = |case: &&Case| match known.get(&case.statement) {
        Some(answer) => golden::difference(answer, &case.answer).is_some(),
        None => true,
    };
    let other: Vec<&Case> = cases.iter().filter(differs).collect();
    assert!(other.is_empty(), "{} are answered otherwise: {other:#?}", other.len());
}

#[test]
fn answers_are_those_of_mysql() {
    all_answers_are_right(ours::Ours::new(&setup()));
}

#[test]
fn answers_by_way_of_an_optimizer_are_those_of_mysql() {
    all_answers_are_right(ours::Ours::optimizing(&setup()));
}

fn all_answers_are_right(mut ours: ours::Ours) {
    let listed = differences();
    let (mut total, mut wrong, mut mended) = (0, Vec::new(), Vec::new());
    for (area, cases) in areas() {
        for case in cases {
            total += 1;
            let found = ours.answer(&case.statement);
            match golden::difference(&case.answer, &found) {
                Some(what) if !listed.contains_key(&case.statement) => {
                    wrong.push(format!("[{area}] {}\n{what}", case.statement));
                }
                None if listed.contains_key(&case.statement) => mended.push(case.statement),
                _ => {}
            }
        }
    }
    if let Ok(path) = std::env::var("REMORA_ORACLE_REPORT") {
        fs::write(path, wrong.join("\n\n")).unwrap();
    }
    let shown: Vec<String> = wrong.iter().take(SHOWN).cloned().collect();
    assert!(total >= 2_000, "only {total} statements");
    assert!(wrong.is_empty(), "{} of {total} differ:\n{}", wrong.len(), shown.join("\n\n"));
    assert!(mended.is_empty(), "no longer different, so not to be listed: {mended:#?}");
}

#[test]
fn every_known_difference_has_its_reason() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql-differences.md");
    let docs = fs::read_to_string(docs).unwrap();
    for (statement, heading) in differences() {
        let found = docs.lines().any(|line| line.trim_start_matches('#').trim() == heading);
        assert!(found && !heading.is_empty(), "{statement:?} stands under {heading:?}");
    }
}

#[test]
fn golden_files_are_what_mysql_answers() {
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let mut theirs = Theirs::new(&peer, &setup());
    let write = std::env::var("REMORA_ORACLE").is_ok_and(|word| word == "write");
    let mut wrong = Vec::new();
    for (area, cases) in areas() {
        let cases: Vec<Case> = cases
            .into_iter()
            .map(|case| {
                let answer = theirs.answer(&case.statement);
                if let Some(what) = golden::difference(&case.answer, &answer) {
                    wrong.push(format!("{}\n{what}", case.statement));
                }
                Case { answer, ..case }
            })
            .collect();
        if write {
            fs::write(folder().join("golden").join(area + ".txt"), golden::format(&cases)).unwrap();
        }
    }
    assert!(write || wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn random_statements_mean_the_same() {
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(random::new_seed);
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let mut theirs = Theirs::new(&peer, &setup());
    let mut ours = ours::Ours::new(&setup());
    let mut generator = random::Generator::new(seed);
    let mut wrong = Vec::new();
    for _ in 0..RANDOM_STATEMENTS {
        let statement = generator.statement();
        let (expected, found) = (theirs.answer(&statement), ours.answer(&statement));
        let Some(what) = golden::difference(&expected, &found) else { continue };
        if !fails_in_other_rows(&mut ours, &expected, &found) {
            wrong.push(format!("{statement}\n{what}"));
        }
    }
    let shown: Vec<String> = wrong.iter().take(SHOWN).cloned().collect();
    assert!(wrong.is_empty(), "seed {seed}: {} differ:\n{}", wrong.len(), shown.join("\n\n"));
}

#[test]
fn random_queries_mean_the_same() {
    all_queries_mean_the_same(ours::Ours::new(&setup()));
}

#[test]
fn random_queries_by_way_of_an_optimizer_mean_the_same() {
    all_queries_mean_the_same(ours::Ours::optimizing(&setup()));
}

fn all_queries_mean_the_same(mut ours: ours::Ours) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("REMORA_SEED").unwrap_or_else(random::new_seed);
    let count = number("REMORA_QUERIES").map_or(RANDOM_QUERIES, |count| count as usize);
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let mut theirs = Theirs::new(&peer, &setup());
    let mut generator = queries::Generator::new(seed);
    let mut verdict = |query: &queries::Query| {
        let text = query.part.text();
        queries::compare(query, &theirs.answer(&text), &ours.answer(&text))
    };
    let (mut wrong, mut out_of_range, mut refused) = (Vec::new(), 0, 0);
    for _ in 0..count {
        let query = generator.query();
        match verdict(&query) {
            queries::Verdict::Same => {}
            queries::Verdict::OutOfRange => out_of_range += 1,
            queries::Verdict::Refused => {
                println!("refused: {}", query.part.text());
                refused += 1;
            }
            queries::Verdict::Different(what) => {
                let is_ordered = query.is_ordered;
                let whole = query.part.text();
                let differs = |part: &queries::Part| {
                    let smaller = queries::Query { part: part.clone(), is_ordered };
                    matches!(verdict(&smaller), queries::Verdict::Different(_))
                };
                let shrunk = query.part.shrunk(differs);
                let shrunk = queries::Query { part: shrunk, is_ordered };
                let queries::Verdict::Different(what) = verdict(&shrunk) else {
                    panic!("seed {seed}, only when it is new: {whole}\n{what}")
                };
                wrong.push(format!("{}\n{what}", shrunk.part.text()));
            }
        }
    }
    if let Ok(path) = std::env::var("REMORA_ORACLE_REPORT") {
        fs::write(path, wrong.join("\n\n")).unwrap();
    }
    println!("seed {seed}: {count} queries, {out_of_range} with a number out of range");
    let shown: Vec<String> = wrong.iter().take(SHOWN).cloned().collect();
    assert!(wrong.is_empty(), "seed {seed}: {} differ:\n{}", wrong.len(), shown.join("\n\n"));
    assert!(refused * 100 <= count * MOST_REFUSED, "{refused} of {count} were refused");
    assert!(out_of_range * 100 <= count * MOST_OUT_OF_RANGE, "{out_of_range} of {count}");
}

/// A view returns the same rows as its query as a derived table.
#[test]
fn random_views_are_what_their_queries_are() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("REMORA_SEED").unwrap_or_else(random::new_seed);
    let count = number("REMORA_QUERIES").map_or(RANDOM_VIEWS, |count| count as usize);
    let mut ours = ours::Ours::new(&setup());
    let mut generator = queries::Generator::new(seed);
    let (mut wrong, mut made) = (Vec::new(), 0);
    for number in 0..count {
        let query = generator.query().part.text();
        // Expressions are longer than column names may be.
        let Answer::Rows { columns, .. } = ours.answer(&query) else { continue };
        let names: Vec<String> = (1..=columns.len()).map(|number| format!("c{number}")).collect();
        let names = names.join(", ");
        let derived = sorted(ours.answer(&format!("SELECT * FROM ({query}) v ({names})")));
        let views = match number % 3 {
            0 => vec![format!("CREATE OR REPLACE VIEW v ({names}) AS {query}")],
            1 => vec![format!("CREATE OR REPLACE VIEW v AS SELECT * FROM ({query}) q ({names})")],
            _ => vec![
                format!("CREATE OR REPLACE VIEW inner_v ({names}) AS {query}"),
                "CREATE OR REPLACE VIEW v AS SELECT * FROM inner_v".to_owned(),
            ],
        };
        let refused = views.iter().find_map(|view| match ours.answer(view) {
            error @ Answer::Error(..) => Some(error),
            Answer::Rows { .. } => None,
        });
        made += usize::from(refused.is_none());
        let found = refused.unwrap_or_else(|| sorted(ours.answer("SELECT * FROM v")));
        if let Some(what) = golden::difference(&derived, &found) {
            wrong.push(format!("{query}\n{what}"));
        }
    }
    println!("seed {seed}: {made} views of {count} queries");
    let shown: Vec<String> = wrong.iter().take(SHOWN).cloned().collect();
    assert!(wrong.is_empty(), "seed {seed}: {} differ:\n{}", wrong.len(), shown.join("\n\n"));
    assert!(made * 2 > count, "seed {seed}: only {made} of {count} are views");
}

/// A result with sorted rows.
fn sorted(answer: Answer) -> Answer {
    match answer {
        Answer::Rows { columns, rows } => Answer::Rows { columns, rows: golden::ordered("", rows) },
        error => error,
    }
}

/// Whether MySQL reported an error because it evaluated an expression for rows that another condition removes here
/// first. Then Remora must report it too when no condition removes rows. See "The order of conditions" in
/// docs/sql-differences.md.
fn fails_in_other_rows(ours: &mut ours::Ours, expected: &Answer, found: &Answer) -> bool {
    let (Answer::Error(1690, message), Answer::Rows { .. }) = (expected, found) else {
        return false;
    };
    let Some(expression) = message.split('\'').nth(1) else { return false };
    let alone = ours.answer(&format!("SELECT {expression} FROM numbers"));
    matches!(alone, Answer::Error(1690, _))
}

/// A server that answers statements.
trait Answers {
    fn answer(&mut self, statement: &str) -> Answer;
}
