//! Data that misleads estimates: a value in 99 % of the rows, correlated columns, ranges without rows, a parent with
//! half of all children. Each statement runs as it is and with the access paths forced by hints. The figure that counts
//! is how much slower the chosen path is than the best forced one.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::{
    client::{Client, difference},
    draw::LiteralGenerator,
    rows::Shop,
    template::{FilledTemplate, Template},
};
use crate::{
    lookup::servers::DatabaseServer,
    measure::{microseconds, percentile},
    table::Table,
};

pub const SCHEMA: &str = include_str!("schema.sql");
const STATEMENTS: &str = include_str!("statements.sql");
/// The most time of the chosen path, relative to the best forced one.
pub const BOUND: f64 = 3.0;

/// The most runs of a case, the first ones that do not count, and the fewest even when the budget is spent.
const RUNS: usize = 60;
const UNCOUNTED_RUNS: usize = 3;
const LEAST_RUNS: usize = 8;

/// A statement, and variants that force an access path.
struct Case {
    name: String,
    /// The variants. The first is the statement without hints.
    ways: Vec<(String, Template)>,
}

/// The measurements of a case.
#[derive(Serialize)]
pub struct CaseTimes {
    pub name: String,
    /// Remora's median for each variant, in milliseconds; the chosen path first.
    pub ways: Vec<(String, f64)>,
    /// The source's median for the statement without hints, in milliseconds.
    pub source_ms: f64,
    /// The chosen path's median divided by the best forced one's.
    pub of_best: f64,
    /// The first difference or error.
    pub wrong: Option<String>,
}

/// The cases of the file: a statement named `or` is a variant of the one before.
fn cases() -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for template in Template::read(STATEMENTS)? {
        let with = |hint: &str| {
            let text = template.text.replace(" {hint}", hint);
            Template { text, ..template.clone() }
        };
        if template.name == "or" {
            let case = cases.last_mut().context("nothing stands before the first or")?;
            case.ways.push((format!("way {}", case.ways.len()), template));
            continue;
        }
        let mut ways = vec![("chosen".to_owned(), with(""))];
        let hints = template.notes.iter();
        ways.extend(hints.map(|hint| (hint.clone(), with(&format!(" {hint}")))));
        cases.push(Case { name: template.name.clone(), ways });
    }
    Ok(cases)
}

/// Measures all cases on Remora and on the source it replicates.
pub fn measure(
    remora: &DatabaseServer,
    source: &DatabaseServer,
    shop: &Shop,
    seed: u64,
    limit: Duration,
    budget: Duration,
) -> Result<Vec<CaseTimes>> {
    let mut remora = Client::new(remora, limit, false)?;
    let mut source = Client::new(source, limit, false)?;
    let mut all = Vec::new();
    for case in cases()? {
        eprintln!("{}", case.name);
        all.push(measure_case(&case, &mut remora, &mut source, shop, seed, budget)?);
    }
    Ok(all)
}

fn measure_case(
    case: &Case,
    remora: &mut Client<'_>,
    source: &mut Client<'_>,
    shop: &Shop,
    seed: u64,
    budget: Duration,
) -> Result<CaseTimes> {
    // All variants draw from the same seed, so that they get the same literals.
    let mut draws: Vec<LiteralGenerator<'_>> =
        case.ways.iter().map(|_| LiteralGenerator::new(shop, seed)).collect();
    let mut walls = vec![Vec::new(); case.ways.len()];
    let (mut source_walls, mut wrong) = (Vec::new(), None);
    let begun = Instant::now();
    // The first runs fill the plan caches and do not count.
    for run in 1..=RUNS {
        let ways = case.ways.iter().zip(&mut draws);
        let filled: Vec<FilledTemplate> =
            ways.map(|((_, template), draw)| template.fill(draw)).collect::<Result<_>>()?;
        let chosen = filled.first().context("a case has a statement")?;
        let (truth, took) = source.execute(chosen)?;
        source_walls.push(took);
        // The variants take turns at being first, because the first one finds no row in a cache.
        for turn in 0..filled.len() {
            let at = (run + turn) % filled.len();
            let (answer, took) = remora.execute(&filled[at])?;
            walls[at].push(took);
            if answer != truth && wrong.is_none() {
                let answers = [(source.name(), &truth), (remora.name(), &answer)];
                wrong = Some(format!("{}: {}", case.ways[at].0, difference(&filled[at], &answers)));
            }
        }
        if run == UNCOUNTED_RUNS {
            walls.iter_mut().for_each(Vec::clear);
            source_walls.clear();
        }
        if run >= LEAST_RUNS && begun.elapsed() > budget {
            break;
        }
    }
    let medians = walls.into_iter().map(median);
    let ways: Vec<(String, f64)> =
        case.ways.iter().map(|(name, _)| name.clone()).zip(medians).collect();
    let chosen = ways.first().map_or(0.0, |way| way.1);
    let best = ways.iter().skip(1).map(|way| way.1).fold(f64::INFINITY, f64::min);
    let source_ms = median(source_walls);
    Ok(CaseTimes { name: case.name.clone(), of_best: chosen / best, ways, source_ms, wrong })
}

fn median(mut walls: Vec<Duration>) -> f64 {
    walls.sort_unstable();
    microseconds(percentile(&walls, 50)) / 1e3
}

/// The cases as a table.
pub fn table(cases: &[CaseTimes]) -> Table {
    let mut table =
        Table::new(&["adversarial, ms", "chosen", "best forced", "ratio", "MariaDB", "", "best"]);
    for case in cases {
        let best = case.ways.iter().skip(1).min_by(|a, b| a.1.total_cmp(&b.1));
        let (way, time) = best.map_or(("", 0.0), |(way, time)| (way, *time));
        let verdict = match &case.wrong {
            Some(_) => "WRONG",
            None if case.of_best > BOUND => "MISSED",
            None => "",
        };
        table.row(vec![
            case.name.clone(),
            format!("{:.3}", case.ways.first().map_or(0.0, |way| way.1)),
            format!("{time:.3}"),
            format!("{:.2}", case.of_best),
            format!("{:.3}", case.source_ms),
            verdict.to_owned(),
            way.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_other_ways_and_all_can_be_filled() {
        let shop = Shop::new(0.01);
        for case in cases().unwrap() {
            assert!(case.ways.len() > 1, "{}", case.name);
            let filled: Vec<FilledTemplate> = (case.ways.iter())
                .map(|(_, template)| template.fill(&mut LiteralGenerator::new(&shop, 3)).unwrap())
                .collect();
            assert!(filled.iter().all(|one| !one.text.contains(['{', '}'])), "{}", case.name);
            assert!(filled.iter().all(|one| one.values == filled[0].values), "{}", case.name);
            assert!(!filled[0].text.contains("INDEX"), "{}", case.name);
        }
    }
}
