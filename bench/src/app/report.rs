//! The results of a run: a line for each statement, and the figures with their targets.

use super::times::{Figures, Times};
use crate::{
    replication::report::{Figure, Spread, Target},
    table::Table,
};

/// Target for the fixed CPU cost of a statement whose plan is cached, in microseconds.
const ONE_TABLE_CPU_US: f64 = 60.0;
const THREE_TABLES_CPU_US: f64 = 150.0;
/// The most time of a statement that reads the first rows of an index, relative to the point
/// select.
const NEAR: f64 = 1.2;
/// The most slow statements that are named.
const SHOWN: usize = 12;
/// The most time of sums over a list of keys, relative to reading the rows of such a list.
const SUMS: f64 = 1.1;
/// Target speedup over another server: geometric mean over the statements.
const MEAN: f64 = 3.0;

/// The statements as a table.
pub fn table(statements: &[Figures], servers: &[&str]) -> Table {
    let mut heads = vec!["statement, ms".to_owned()];
    for server in servers {
        heads.extend([(*server).to_owned(), "p10..p90".to_owned(), "cpu us".to_owned()]);
    }
    heads.extend(servers.iter().skip(1).map(|server| format!("{server}/own")));
    heads.push(String::new());
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for statement in statements {
        let mut row = vec![statement.name.clone()];
        for times in &statement.times {
            row.extend(cells(times.as_ref()));
        }
        let ratios = (1..servers.len()).map(|server| statement.ratio(server));
        row.extend(
            ratios.map(|ratio| ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default()),
        );
        row.push(match (statement.differences, statement.is_behind()) {
            (0, false) => String::new(),
            (0, true) => "behind".to_owned(),
            _ => "DIFFERS".to_owned(),
        });
        table.row(row);
    }
    table
}

fn cells(times: Option<&Times>) -> [String; 3] {
    let Some(times) = times else { return ["-".to_owned(), String::new(), String::new()] };
    let spread = format!("{}..{}", digits(times.p10_ms), digits(times.p90_ms));
    let cpu = times.cpu_us.map(|us| format!("{us:.0}")).unwrap_or_default();
    [digits(times.p50_ms), spread, cpu]
}

fn digits(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

/// The figures and their targets.
pub fn figures(statements: &[Figures], servers: &[&str]) -> Vec<Figure> {
    let slowest = |one: &Figures| {
        let ratios = (1..servers.len()).filter_map(|server| one.ratio(server));
        ratios.fold(f64::INFINITY, f64::min)
    };
    let mut behind: Vec<&Figures> = statements.iter().filter(|one| one.is_behind()).collect();
    behind.sort_by(|a, b| slowest(a).total_cmp(&slowest(b)));
    let mut count = single("statements behind", "", behind.len() as f64, Target::AtMost(0.0));
    let worst = behind.iter().take(SHOWN).map(|one| format!("{} {:.2}", one.name, slowest(one)));
    let worst = worst.collect::<Vec<_>>().join(", ");
    count.note = format!("of {}: {worst}", statements.len());
    let mut figures = vec![count];
    for (server, name) in servers.iter().enumerate().skip(1) {
        let ratios: Vec<f64> = statements.iter().filter_map(|one| one.ratio(server)).collect();
        let name = format!("{name} in times of Remora, geometric mean");
        figures.push(single(&name, "x", geometric_mean(&ratios), Target::AtLeast(MEAN)));
    }
    figures.extend(near(statements));
    figures.extend(sums_of_lists(statements));
    figures.extend(fixed_cost(statements, "one-table", ONE_TABLE_CPU_US));
    figures.extend(fixed_cost(statements, "three-tables", THREE_TABLES_CPU_US));
    figures
}

/// A figure with a single value.
pub fn single(name: &str, unit: &'static str, value: f64, target: Target) -> Figure {
    Figure::new(name, unit, Spread::single(value), target)
}

/// The time of statements that read the first rows of an index, relative to the point select. Both
/// run while the other servers are idle.
fn near(statements: &[Figures]) -> Option<Figure> {
    let alone = |one: &Figures| Some(one.alone.as_ref()?.p50_ms);
    let point = alone(statements.iter().find(|one| has(one, "point"))?)?;
    let near = statements.iter().filter(|one| has(one, "near"));
    let ratios = near.filter_map(|one| Some((one.name.as_str(), alone(one)? / point)));
    largest("an index's first rows in times of the point select", "x", ratios, NEAR)
}

/// How much slower sums over a list of keys are than reading the rows of such a list.
fn sums_of_lists(statements: &[Figures]) -> Option<Figure> {
    let of = |note: &str| own(statements.iter().find(|one| has(one, note))?);
    let ratio = of("list-sums")? / of("list-rows")?;
    let target = Target::AtMost(SUMS);
    Some(single("sums over a list of keys in times of its rows", "x", ratio, target))
}

/// Remora's median, in milliseconds.
fn own(figures: &Figures) -> Option<f64> {
    Some(figures.times.first()?.as_ref()?.p50_ms)
}

/// The CPU time of statements that have almost nothing to do: while the other servers are idle, and
/// in turn with them.
fn fixed_cost(statements: &[Figures], note: &str, most: f64) -> Vec<Figure> {
    let noted = || statements.iter().filter(|one| has(one, note));
    let alone = noted().filter_map(|one| Some((one.name.as_str(), one.alone.as_ref()?.cpu_us?)));
    let alone = largest(&format!("cost of a known statement, {note}"), "us cpu", alone, most);
    let in_turn =
        noted().filter_map(|one| Some((one.name.as_str(), one.times.first()?.as_ref()?.cpu_us?)));
    let name = format!("the same in turn with the other servers, {note}");
    alone.into_iter().chain(largest(&name, "us cpu", in_turn, most)).collect()
}

fn has(figures: &Figures, note: &str) -> bool {
    figures.notes.iter().any(|one| one == note)
}

/// The largest of the values, with the names of those above `most`.
fn largest<'n>(
    name: &str,
    unit: &'static str,
    values: impl Iterator<Item = (&'n str, f64)>,
    most: f64,
) -> Option<Figure> {
    let values: Vec<(&str, f64)> = values.collect();
    let largest = values.iter().map(|value| value.1).max_by(f64::total_cmp)?;
    let mut figure = single(name, unit, largest, Target::AtMost(most));
    let too_large = values.iter().filter(|value| value.1 > most);
    let names: Vec<String> = too_large.map(|(name, value)| format!("{name} {value:.1}")).collect();
    figure.note = format!("{} of {} above: {}", names.len(), values.len(), names.join(", "));
    Some(figure)
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (sum / ratios.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_ratios_is_geometric() {
        assert!((geometric_mean(&[0.5, 2.0, 8.0]) - 2.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), 1.0);
    }

    #[test]
    fn the_largest_names_what_is_too_large() {
        let figure = largest("cost", "us", [("a", 5.0), ("b", 70.0)].into_iter(), 60.0).unwrap();
        assert_eq!((figure.value.median, figure.note.as_str()), (70.0, "1 of 2 above: b 70.0"));
        assert!(largest("cost", "us", std::iter::empty(), 60.0).is_none());
    }
}
