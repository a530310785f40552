//! Wall and CPU time of queries from several concurrent clients, in rounds in which the servers take turns.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::{queries::Kind, servers::Server};
use crate::{
    measure::{microseconds, percentile},
    table::Table,
};

/// Queries before the measurement.
const WARM_UP: usize = 100;
/// Length of the bar for the longest time, in characters.
const BAR: f64 = 50.0;

/// The figures of all queries in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The setting of this measurement, or the index that was queried.
    pub setting: String,
    pub kind: Kind,
    pub clients: usize,
    pub server: &'static str,
    pub round: usize,
    pub queries: usize,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the server per query, in microseconds.
    pub cpu_us: Option<f64>,
    pub per_second: f64,
}

/// A figure of a round, with its name.
type Pick = (&'static str, fn(&Figures) -> Option<f64>);

const PICKS: [Pick; 4] = [
    ("mean us", |it| Some(it.mean_us)),
    ("p50 us", |it| Some(it.p50_us)),
    ("p99 us", |it| Some(it.p99_us)),
    ("CPU us", |it| it.cpu_us),
];

/// What is measured: the statements, the number of clients, and a statement after each query.
pub struct Work<'w> {
    pub setting: &'w str,
    pub kind: Kind,
    pub statements: &'w [String],
    /// A statement after each query that is measured with it, such as `SHOW META`; empty for none.
    pub behind: &'w str,
    pub clients: usize,
}

/// Runs all statements, divided among the clients.
pub fn measure(server: &Server, work: &Work<'_>, round: usize) -> Result<Figures> {
    let (mut clients, count) = (Vec::new(), work.clients.max(1));
    for _ in 0..count {
        clients.push(server.connect()?);
    }
    for statement in work.statements.iter().take(WARM_UP) {
        if let Some(client) = clients.first_mut() {
            client.count(statement)?;
        }
    }
    let (before, begun) = (server.processor().spent(), Instant::now());
    let mut walls = thread::scope(|scope| -> Result<Vec<Duration>> {
        let ask = |(number, mut client): (usize, super::client::Client)| {
            scope.spawn(move || -> Result<Vec<Duration>> {
                let own = work.statements.iter().skip(number).step_by(count);
                let mut walls = Vec::new();
                for statement in own {
                    let asked = Instant::now();
                    client.count(statement)?;
                    if !work.behind.is_empty() {
                        client.count(work.behind)?;
                    }
                    walls.push(asked.elapsed());
                }
                Ok(walls)
            })
        };
        let threads: Vec<_> = clients.into_iter().enumerate().map(ask).collect();
        let mut walls = Vec::new();
        for thread in threads {
            walls.extend(thread.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        Ok(walls)
    })?;
    let wall = begun.elapsed();
    let cpu = before.zip(server.processor().spent()).map(|(before, after)| before.until(after));
    walls.sort_unstable();
    let queries = walls.len().max(1) as f64;
    Ok(Figures {
        setting: work.setting.to_owned(),
        kind: work.kind,
        clients: work.clients,
        server: server.name,
        round,
        queries: walls.len(),
        mean_us: microseconds(walls.iter().sum()) / queries,
        p50_us: microseconds(percentile(&walls, 50)),
        p99_us: microseconds(percentile(&walls, 99)),
        cpu_us: cpu.map(|cpu| microseconds(cpu) / queries),
        per_second: queries / wall.as_secs_f64(),
    })
}

/// What identifies the figures of one server over all rounds.
type Key = (String, Kind, usize, &'static str);

fn key(figures: &Figures) -> Key {
    (figures.setting.clone(), figures.kind, figures.clients, figures.server)
}

/// The keys, in the order of the measurements.
fn keys(figures: &[Figures]) -> Vec<Key> {
    let mut keys = Vec::new();
    for key in figures.iter().map(key) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Medians over the rounds, with minimum and maximum.
pub fn table(figures: &[Figures]) -> Table {
    let mut heads = vec!["over", "kind", "clients", "server"];
    heads.extend(PICKS.iter().map(|(name, _)| *name));
    heads.extend(["queries/s", ""]);
    let mut table = Table::new(&heads);
    for wanted in keys(figures) {
        let rounds: Vec<&Figures> = figures.iter().filter(|it| key(it) == wanted).collect();
        let (setting, kind, clients, server) = wanted;
        let mut cells =
            vec![setting, kind.name().to_owned(), clients.to_string(), server.to_owned()];
        for (_, pick) in PICKS {
            cells.push(spread(rounds.iter().filter_map(|it| pick(it)).collect(), 0));
        }
        cells.push(spread(rounds.iter().map(|it| it.per_second).collect(), 0));
        table.row(cells);
    }
    table
}

/// How many times as long the second server takes as the first in the same round: medians over the rounds.
pub fn ratios(figures: &[Figures], first: &str, second: &str) -> Table {
    let mut heads = vec!["over", "kind", "clients"];
    heads.extend(PICKS.iter().map(|(name, _)| name.trim_end_matches(" us")));
    heads.push("");
    let mut table = Table::new(&heads);
    for wanted in keys(figures).into_iter().filter(|it| it.3 == first) {
        let of = |server: &str, round: usize| {
            let (setting, kind, clients, _) = &wanted;
            figures.iter().find(|it| {
                (&it.setting, it.kind, it.clients, it.server, it.round)
                    == (setting, *kind, *clients, server, round)
            })
        };
        let rounds = figures.iter().filter(|it| key(it) == wanted).map(|it| it.round);
        let pairs: Vec<_> =
            rounds.filter_map(|round| of(first, round).zip(of(second, round))).collect();
        if pairs.is_empty() {
            continue;
        }
        let mut cells = vec![wanted.0.clone(), wanted.1.name().to_owned(), wanted.2.to_string()];
        for (_, pick) in PICKS {
            let ratios = pairs.iter().filter_map(|(own, other)| Some(pick(other)? / pick(own)?));
            cells.push(spread(ratios.collect(), 2));
        }
        table.row(cells);
    }
    table
}

/// A bar chart of the mean times.
pub fn chart(figures: &[Figures]) -> Table {
    let mut table = Table::new(&["over", "kind", "clients", "server", "mean us", ""]);
    let means: Vec<(Key, f64)> = keys(figures)
        .into_iter()
        .map(|wanted| {
            let rounds = figures.iter().filter(|it| key(it) == wanted).map(|it| it.mean_us);
            let median = median(rounds.collect());
            (wanted, median)
        })
        .collect();
    let longest = means.iter().map(|(_, mean)| *mean).fold(f64::MIN_POSITIVE, f64::max);
    for ((setting, kind, clients, server), mean) in means {
        let bar = "#".repeat(((mean / longest * BAR).ceil() as usize).max(1));
        let kind = kind.name().to_owned();
        table.row(vec![
            setting,
            kind,
            clients.to_string(),
            server.to_owned(),
            format!("{mean:.0}"),
            bar,
        ]);
    }
    table
}

/// The middle of some numbers.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    percentile(&values, 50)
}

/// The median and, if there are several values, minimum and maximum.
fn spread(mut values: Vec<f64>, decimals: usize) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let middle = percentile(&values, 50);
    match values.as_slice() {
        [] => "-".to_owned(),
        [only] => format!("{only:.decimals$}"),
        [least, .., most] => format!("{middle:.decimals$} [{least:.decimals$}-{most:.decimals$}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(server: &'static str, round: usize, mean_us: f64, cpu_us: Option<f64>) -> Figures {
        Figures {
            setting: "wiki".into(),
            kind: Kind::Any,
            clients: 8,
            server,
            round,
            queries: 10,
            mean_us,
            p50_us: mean_us / 2.0,
            p99_us: mean_us * 3.0,
            cpu_us,
            per_second: 1e6 / mean_us,
        }
    }

    fn cells(table: &Table, line: usize) -> Vec<String> {
        let text = table.to_string();
        text.lines()
            .nth(line)
            .unwrap()
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn medians_stand_with_their_spread_and_ratios_are_of_the_same_round() {
        let all = [
            figures("one", 0, 100.0, Some(50.0)),
            figures("two", 0, 1_000.0, Some(500.0)),
            figures("two", 1, 600.0, None),
            figures("one", 1, 200.0, Some(60.0)),
            figures("one", 2, 120.0, Some(40.0)),
            figures("two", 2, 960.0, Some(400.0)),
        ];
        let rows = table(&all);
        let one = [
            "wiki",
            "any",
            "8",
            "one",
            "120 [100-200]",
            "60 [50-100]",
            "360 [300-600]",
            "50 [40-60]",
            "8333 [5000-10000]",
        ];
        assert_eq!(cells(&rows, 1), one);
        // The first server took 10, 3 and 8 times as long; its CPU time was 10 times that in two
        // rounds and unknown in one.
        let ratio = [
            "wiki",
            "any",
            "8",
            "8.00 [3.00-10.00]",
            "8.00 [3.00-10.00]",
            "8.00 [3.00-10.00]",
            "10.00 [10.00-10.00]",
        ];
        assert_eq!(cells(&ratios(&all, "one", "two"), 1), ratio);
        let bars = chart(&all).to_string();
        let bar = |line: usize| bars.lines().nth(line).unwrap().matches('#').count();
        assert_eq!((bar(1), bar(2)), (7, 50), "{bars}");
    }

    #[test]
    fn one_server_alone_has_no_ratios() {
        let all = [figures("one", 0, 100.0, None)];
        assert_eq!(ratios(&all, "one", "two").to_string().lines().count(), 1);
        assert_eq!(cells(&table(&all), 1)[7], "-");
    }
}
