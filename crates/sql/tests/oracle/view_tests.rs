//! Random views in MySQL and in Remora: views that join, group and unite tables and other views, with subqueries in
//! their conditions. A corpus of them is recorded in `views/recorded.txt` with MySQL's results; a live run compares new
//! ones. `REMORA_SEED` and `REMORA_QUERIES` choose the live ones, `REMORA_ORACLE=write` records the corpus anew.

use std::{fs, path::PathBuf};

use remora_peers::{Kind, Server as Peer};

use crate::{
    Answers, MOST_REFUSED, SHOWN, folder,
    golden::{self, Answer, Case},
    ours, queries, random,
    theirs::Theirs,
    views::Episodes,
};

/// The seed and the queries of the corpus, and the queries of a live run.
const RECORDED_SEED: u64 = 20_261_128;
const RECORDED: usize = 200;
const LIVE: usize = 240;

fn corpus() -> PathBuf {
    folder().join("views/recorded.txt")
}

/// Collects differences.
#[derive(Default)]
struct Compared {
    /// The definitions of the episode so far.
    definitions: Vec<String>,
    queries: usize,
    refused: usize,
    wrong: Vec<String>,
}

impl Compared {
    fn add(&mut self, statement: &str, expected: &Answer, found: &Answer) {
        let is_query = statement.starts_with("SELECT");
        self.queries += usize::from(is_query);
        let part = queries::Part::words(queries::PartKind::Whole, statement);
        let query = queries::Query { part, is_ordered: false };
        match queries::compare(&query, expected, found) {
            queries::Verdict::Same | queries::Verdict::OutOfRange => {}
            queries::Verdict::Refused => self.refused += 1,
            queries::Verdict::Different(what) => {
                self.wrong.push(format!("{}\n{statement}\n{what}", self.needed(statement)));
            }
        }
        if statement.starts_with("CREATE TABLE") && statement.contains("_t1 ") {
            self.definitions.clear();
        }
        if !is_query {
            self.definitions.push(statement.to_owned());
        }
    }

    /// The definitions that a statement needs.
    fn needed(&self, statement: &str) -> String {
        let mut needed = Vec::new();
        let mut text = statement.to_owned();
        for definition in self.definitions.iter().rev() {
            let name = definition.split(' ').nth(2).unwrap_or_default();
            if text.contains(&format!("{name} ")) {
                text.push_str(definition);
                needed.push(format!("{definition};"));
            }
        }
        needed.reverse();
        needed.join("\n")
    }

    fn check(self, seed: u64) {
        let Self { queries, refused, wrong, .. } = self;
        println!("seed {seed}: {queries} queries, {refused} refused");
        if let Ok(path) = std::env::var("REMORA_ORACLE_REPORT") {
            fs::write(path, wrong.join("\n\n")).unwrap();
        }
        let shown: Vec<String> = wrong.iter().take(SHOWN).cloned().collect();
        assert!(wrong.is_empty(), "seed {seed}: {} differ:\n{}", wrong.len(), shown.join("\n\n"));
        assert!(refused * 100 <= queries * MOST_REFUSED, "{refused} of {queries} were refused");
    }
}

#[test]
fn random_views_mean_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("REMORA_SEED").unwrap_or_else(random::new_seed);
    let count = number("REMORA_QUERIES").map_or(LIVE, |count| count as usize);
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let (mut theirs, mut ours) = (Theirs::new(&peer, &[]), ours::Ours::new(&[]));
    let (mut episodes, mut compared) = (Episodes::new(seed), Compared::default());
    while compared.queries < count {
        for statement in episodes.episode() {
            let (expected, found) = (theirs.answer(&statement), ours.answer(&statement));
            compared.add(&statement, &expected, &found);
        }
    }
    compared.check(seed);
}

#[test]
fn recorded_views_are_read_as_by_mysql() {
    recorded_mean_the_same(ours::Ours::new(&[]));
}

#[test]
fn recorded_views_by_way_of_an_optimizer_are_read_as_by_mysql() {
    recorded_mean_the_same(ours::Ours::optimizing(&[]));
}

fn recorded_mean_the_same(mut ours: ours::Ours) {
    let mut compared = Compared::default();
    for case in golden::parse(&fs::read_to_string(corpus()).unwrap()) {
        let found = ours.answer(&case.statement);
        compared.add(&case.statement, &case.answer, &found);
    }
    assert!(compared.queries >= RECORDED, "only {} queries", compared.queries);
    compared.check(RECORDED_SEED);
}

#[test]
fn recorded_views_are_what_mysql_answers() {
    let write = std::env::var("REMORA_ORACLE").is_ok_and(|word| word == "write");
    let peer = Peer::start(Kind::MySql97, &["--skip-log-bin"]).unwrap();
    let mut theirs = Theirs::new(&peer, &[]);
    if write {
        let (mut episodes, mut cases, mut queries) = (Episodes::new(RECORDED_SEED), Vec::new(), 0);
        while queries < RECORDED {
            for statement in episodes.episode() {
                queries += usize::from(statement.starts_with("SELECT"));
                let answer = theirs.answer(&statement);
                cases.push(Case { statement, answer });
            }
        }
        return fs::write(corpus(), golden::format(&cases)).unwrap();
    }
    let mut compared = Compared::default();
    for case in golden::parse(&fs::read_to_string(corpus()).unwrap()) {
        let found = theirs.answer(&case.statement);
        compared.add(&case.statement, &case.answer, &found);
    }
    compared.check(RECORDED_SEED);
}
