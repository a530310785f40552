//! Sends many random queries, and reports small cases of those whose answers differ.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    compare::{self, Difference, Kind},
    corpus::Corpus,
    engine::{Make, Options},
    random::{Random, new_seed},
    shrink::shrunk,
    trial::{Case, Trial, Verdict},
};

/// The default number of queries of a test; `REMORA_QUERIES` overrides it.
const QUERIES: usize = 400;
/// The most failing cases that are shrunk; others are reported unchanged.
const MOST_SHRUNK: usize = 3;
/// The most failing cases in a report.
const SHOWN: usize = 30;
/// How many of a thousand answers may differ in no known case: random queries still find new ones.
const MOST_UNKNOWN: usize = 6;
/// How many of a thousand answers may differ in known cases: of the tests with most of them, some seeds have 100.
const MOST_KNOWN: usize = 130;
/// How many of a thousand queries may crash Sphinx: none of those that the tests send today does.
const MOST_UNANSWERED: usize = 2;

/// A test run: corpora, queries and the engine.
pub struct Run<'a> {
    pub name: &'a str,
    pub corpora: &'a dyn Fn(&mut Random) -> Vec<Corpus>,
    /// A query and its options.
    pub ask: &'a dyn Fn(&mut Random, &Corpus) -> (String, Options),
    pub make: &'a Make,
}

/// The result of a run.
#[derive(Default)]
pub struct Outcome {
    pub failures: Vec<Failure>,
    /// Known differences by name.
    pub known: BTreeMap<&'static str, usize>,
    pub unanswered: Vec<String>,
    pub asked: usize,
    /// The number of queries with rows.
    pub fruitful: usize,
    /// The number of queries that both sides refused.
    pub refused: usize,
}

/// A case whose answers differ.
pub struct Failure {
    case: Case,
    difference: Difference,
    pub shrunk: Case,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

pub fn seed() -> u64 {
    number("REMORA_SEED").unwrap_or_else(new_seed)
}

/// The number of queries of a test.
pub fn count(usual: usize) -> usize {
    number("REMORA_QUERIES").map_or(usual, |count| count as usize)
}

/// Panics if more answers differ than today, or if more queries have none.
pub fn run(run: Run) {
    let count = count(QUERIES);
    let seed = seed();
    let Outcome { failures, known, unanswered, asked, fruitful, refused } =
        failures(&run, seed, count);
    let name = run.name;
    println!("{name}, seed {seed}: {asked} queries, {fruitful} found rows, {refused} were refused");
    unanswered.iter().for_each(|query| println!("  crashed: {query}"));
    let failed = failures.len();
    let shown: Vec<String> = failures.iter().enumerate().map(shown).collect();
    if let Ok(path) = std::env::var("REMORA_ORACLE_REPORT") {
        std::fs::write(format!("{path}-{name}"), shown.join("\n\n")).unwrap();
    }
    let first: Vec<String> = shown.iter().take(SHOWN).cloned().collect();
    let all_known: usize = known.values().sum();
    println!("{name}: {failed} of {asked} differ, {all_known} in known cases: {known:?}");
    assert!(
        failed * 1000 <= asked * MOST_UNKNOWN,
        "{failed} of {asked} differ; repeat with REMORA_SEED={seed}:\n{}",
        first.join("\n\n")
    );
    assert!(all_known * 1000 <= asked * MOST_KNOWN, "{all_known} of {asked} in known cases");
    let crashed = unanswered.len();
    assert!(crashed * 1000 <= count * MOST_UNANSWERED, "Sphinx crashed at {crashed} of {count}");
}

/// All differing cases; the first ones are shrunk.
pub fn failures(run: &Run, seed: u64, count: usize) -> Outcome {
    let mut random = Random::named(seed, run.name);
    let corpora = (run.corpora)(&mut random).into_iter().map(Rc::new).collect();
    let trial = Trial::new(corpora, run.make);
    let mut outcome = Outcome::default();
    for number in 0..count {
        let corpus = Rc::clone(&trial.corpora()[number % trial.corpora().len()]);
        let (query, mut options) = (run.ask)(&mut random, &corpus);
        if compare::tolerated(&corpus, &query) {
            compare::make_tolerable(&mut options);
        }
        let case = Case { corpus, query, options };
        outcome.asked += 1;
        match trial.verdict(&case) {
            Verdict::Same(found) => {
                outcome.refused += usize::from(found.is_none());
                outcome.fruitful += usize::from(found.is_some_and(|rows| rows > 0));
            }
            Verdict::Known(case) => *outcome.known.entry(case).or_default() += 1,
            Verdict::Undefined => outcome.asked -= 1,
            Verdict::Unanswered => outcome.unanswered.push(case.query),
            Verdict::Different(difference) => {
                outcome.failures.push(Failure { shrunk: case.clone(), case, difference });
            }
        }
    }
    if outcome.failures.len() * 1000 > outcome.asked * MOST_UNKNOWN {
        for failure in outcome.failures.iter_mut().take(MOST_SHRUNK) {
            let kind = failure.difference.kind;
            failure.shrunk = small(&trial, run.make, failure.case.clone(), kind);
        }
    }
    outcome
}

/// A smaller case with the same kind of difference.
fn small(trial: &Trial, make: &Make, case: Case, kind: Kind) -> Case {
    let mut other: Option<Trial> = None;
    let mut fails = |cases: &[Case]| {
        let known = trial.knows(cases).then_some(trial);
        if known.is_none() && !other.as_ref().is_some_and(|other| other.knows(cases)) {
            let mut corpora: Vec<Rc<Corpus>> = Vec::new();
            for case in cases {
                if !corpora.iter().any(|corpus| Rc::ptr_eq(corpus, &case.corpus)) {
                    corpora.push(Rc::clone(&case.corpus));
                }
            }
            other = Some(Trial::new(corpora, make));
        }
        let trial = known.unwrap_or_else(|| other.as_ref().unwrap());
        let fails = |case: &Case| matches!(trial.verdict(case), Verdict::Different(difference) if difference.kind == kind);
        cases.iter().map(fails).collect()
    };
    shrunk(case, &mut fails)
}

fn shown((number, failure): (usize, &Failure)) -> String {
    let Failure { case, difference, shrunk } = failure;
    let asked = |case: &Case| format!("query: {}\n{:?}", case.query, case.options);
    let text = &difference.text;
    match number < MOST_SHRUNK {
        true => format!("{}\n{text}\nsmaller:\n{}\n{}", asked(case), asked(shrunk), shrunk.corpus),
        false => format!("{}\n{text}", asked(case)),
    }
}
