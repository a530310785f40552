//! One statement on all servers: answers first, then times; the servers take turns for each set of literals.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::{
    client::{Client, difference},
    draw::LiteralGenerator,
    template::Template,
};
use crate::{
    answer::Answer,
    measure::{Spent, microseconds, percentile},
};

/// The fewest measured runs. The second number is for statements that take far longer than the
/// budget.
const LEAST_RUNS: usize = 7;
const LEAST_SLOW_RUNS: usize = 3;
/// Statements that slow stop after this many budgets.
const SLOW: u32 = 4;

/// The notes of statements whose fixed cost matters. The first server also runs them while the
/// others are idle.
const ALONE: [&str; 4] = ["point", "near", "one-table", "three-tables"];
/// The runs of such a statement: warm-up runs, and then the fewest and the most that count, within
/// a time.
const ALONE_WARM_UP: usize = 50;
const ALONE_RUNS: std::ops::Range<usize> = 200..5_000;
const ALONE_BUDGET: Duration = Duration::from_millis(500);

/// The limits of comparing and measuring.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Answers that are compared before times are measured.
    pub compared: usize,
    /// The most measured runs.
    pub runs: usize,
    /// No run starts after this time, once the fewest runs are made.
    pub budget: Duration,
    /// Whether all runs use the literals of the first.
    pub is_same: bool,
}

impl RunLimits {
    /// Whether this many runs are enough after this time.
    fn is_spent(&self, runs: usize, time: Duration) -> bool {
        let is_slow = runs >= LEAST_SLOW_RUNS && time > self.budget * SLOW;
        is_slow || runs >= LEAST_RUNS && time > self.budget
    }
}

/// A statement's figures.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub name: String,
    pub notes: Vec<String>,
    /// The times by server; `None` where the answer was an error.
    pub times: Vec<Option<Times>>,
    /// The times of the first server while the others are idle, for statements whose fixed cost
    /// matters. In turn with the others, each run begins with the processor's caches full of what
    /// the others read.
    pub alone: Option<Times>,
    /// The number of answers that differed.
    pub differences: usize,
    /// The first difference.
    pub difference: Option<String>,
}

/// A statement's times on one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    pub runs: usize,
    pub p10_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    /// Mean processor time of the server, in microseconds.
    pub cpu_us: Option<f64>,
}

impl Times {
    fn of(mut walls: Vec<Duration>, cpu: Option<Duration>) -> Self {
        walls.sort_unstable();
        let at = |percent| microseconds(percentile(&walls, percent)) / 1e3;
        let cpu_us = cpu.map(|cpu| microseconds(cpu) / walls.len().max(1) as f64);
        let (p10_ms, p50_ms, p90_ms) = (at(10), at(50), at(90));
        Self { runs: walls.len(), p10_ms, p50_ms, p90_ms, cpu_us }
    }
}

impl Figures {
    /// How many times as long a server takes as the first one (Remora).
    pub fn ratio(&self, server: usize) -> Option<f64> {
        let of = |server: usize| Some(self.times.get(server)?.as_ref()?.p50_ms);
        Some(of(server)? / of(0)?)
    }

    /// Whether the first server is slower than another by more than 10 %, the noise.
    pub fn is_behind(&self) -> bool {
        (1..self.times.len())
            .any(|server| self.ratio(server).is_some_and(|ratio| ratio < 1.0 / 1.1))
    }
}

/// Compares the answers to a statement and measures its times.
pub fn measure(
    template: &Template,
    clients: &mut [Client<'_>],
    draw: &mut LiteralGenerator<'_>,
    effort: RunLimits,
) -> Result<Figures> {
    let mut figures = Figures {
        name: template.name.clone(),
        notes: template.notes.clone(),
        times: Vec::new(),
        alone: None,
        differences: 0,
        difference: None,
    };
    let mut answers = vec![false; clients.len()];
    let begun = Instant::now();
    for run in 0..effort.compared {
        if effort.is_spent(run, begun.elapsed()) {
            break;
        }
        compare(template, clients, draw, &mut figures, &mut answers)?;
    }
    let mut walls = vec![Vec::new(); clients.len()];
    let spent = |clients: &[Client<'_>]| -> Vec<Option<Spent>> {
        clients.iter().map(|client| client.processor().spent()).collect()
    };
    let (before, begun) = (spent(clients), Instant::now());
    let mut filled = template.fill(draw)?;
    for run in 0..effort.runs {
        if effort.is_spent(run, begun.elapsed()) {
            break;
        }
        if !effort.is_same {
            filled = template.fill(draw)?;
        }
        for turn in 0..clients.len() {
            let server = (run + turn) % clients.len();
            if answers[server] {
                walls[server].push(clients[server].execute(&filled)?.1);
            }
        }
    }
    let cpu = before.into_iter().zip(spent(clients));
    let cpu = cpu.map(|(before, after)| Some(before?.until(after?)));
    let times = walls.into_iter().zip(cpu);
    figures.times = times.map(|(w, cpu)| (!w.is_empty()).then(|| Times::of(w, cpu))).collect();
    let is_alone = template.notes.iter().any(|note| ALONE.contains(&note.as_str()));
    if let (true, Some(true), Some(first)) = (is_alone, answers.first(), clients.first_mut()) {
        figures.alone = Some(alone(template, first, draw)?);
    }
    Ok(figures)
}

/// Measures one server alone, run after run.
fn alone(
    template: &Template,
    client: &mut Client<'_>,
    draw: &mut LiteralGenerator<'_>,
) -> Result<Times> {
    for _ in 0..ALONE_WARM_UP {
        client.execute(&template.fill(draw)?)?;
    }
    let (before, begun) = (client.processor().spent(), Instant::now());
    let mut walls = Vec::new();
    while walls.len() < ALONE_RUNS.end
        && (walls.len() < ALONE_RUNS.start || begun.elapsed() < ALONE_BUDGET)
    {
        walls.push(client.execute(&template.fill(draw)?)?.1);
    }
    let cpu = before.zip(client.processor().spent()).map(|(before, after)| before.until(after));
    Ok(Times::of(walls, cpu))
}

/// Runs a statement on all servers, and records the differences and the errors.
fn compare(
    template: &Template,
    clients: &mut [Client<'_>],
    draw: &mut LiteralGenerator<'_>,
    figures: &mut Figures,
    answers: &mut [bool],
) -> Result<()> {
    let filled = template.fill(draw)?;
    let mut given = Vec::new();
    for (client, answers) in clients.iter_mut().zip(answers) {
        let (answer, _) = client.execute(&filled)?;
        *answers = !matches!(answer, Answer::Error(..));
        given.push(answer);
    }
    let first = given.first();
    if given.iter().any(|answer| Some(answer) != first || matches!(answer, Answer::Error(..))) {
        figures.differences += 1;
        let names = clients.iter().map(Client::name);
        let named: Vec<(&str, &Answer)> = names.zip(&given).collect();
        figures.difference.get_or_insert_with(|| difference(&filled, &named));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_who_takes_a_tenth_longer() {
        let times = |ms: f64| Some(Times::of(vec![Duration::from_secs_f64(ms / 1e3); 3], None));
        let figures = |times| Figures {
            name: String::new(),
            notes: Vec::new(),
            times,
            alone: None,
            differences: 0,
            difference: None,
        };
        assert!(!figures(vec![times(1.09), times(1.0), times(5.0)]).is_behind());
        assert!(figures(vec![times(1.2), times(5.0), times(1.0)]).is_behind());
        assert!(!figures(vec![None, times(5.0)]).is_behind());
        assert_eq!(figures(vec![times(1.0), times(5.0)]).ratio(1), Some(5.0));
    }
}
