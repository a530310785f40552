//! The results of a run and their targets: one table, one JSON file.

use std::fmt;

use serde::Serialize;

use crate::{report::Machine, suite::machine, table::Table};

/// The results of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine of the run.
    machine: Machine,
    /// The load average at the end of the run.
    load_at_end: f64,
    /// The source server.
    server: String,
    /// The figures, in the order of measurement.
    figures: Vec<Figure>,
}

/// A value that was measured several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The number of measurements.
    pub runs: usize,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The target of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
    /// No target.
    None,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The unit of the value.
    pub unit: &'static str,
    /// The measured value.
    pub value: Spread,
    /// The target.
    pub target: Target,
    /// Wall time of all its runs, in seconds.
    pub wall_s: f64,
    /// CPU time of Remora in all runs, in seconds; `None` if the process did other work too.
    pub cpu_s: Option<f64>,
    /// The CPU time of each thread in seconds, the busiest first, without threads that have ended.
    pub threads: Vec<(String, f64)>,
    /// A remark.
    pub note: String,
    /// A description of a wrong result.
    pub wrong: Option<String>,
}

impl Figure {
    /// A figure without times.
    pub fn new(name: &str, unit: &'static str, value: Spread, target: Target) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            value,
            target,
            wall_s: 0.0,
            cpu_s: None,
            threads: Vec::new(),
            note: String::new(),
            wrong: None,
        }
    }

    fn is_reached(&self) -> Option<bool> {
        match self.target {
            Target::AtLeast(least) => Some(self.value.median >= least),
            Target::AtMost(most) => Some(self.value.median <= most),
            Target::None => None,
        }
    }

    fn cells(&self) -> Vec<String> {
        let (target, verdict) = match (self.target, self.is_reached()) {
            (Target::AtLeast(least), reached) => (format!(">= {}", shown(least)), reached),
            (Target::AtMost(most), reached) => (format!("<= {}", shown(most)), reached),
            (Target::None, reached) => (String::new(), reached),
        };
        let Spread { median, min, max, runs } = self.value;
        let spread = match runs {
            0 | 1 => String::new(),
            _ => format!("{} .. {} ({runs})", shown(min), shown(max)),
        };
        let seconds =
            |seconds: f64| if seconds > 0.0 { format!("{seconds:.2}") } else { String::new() };
        let verdict = match (&self.wrong, verdict) {
            (Some(_), _) => "WRONG",
            (None, Some(false)) => "MISSED",
            (None, _) => "",
        };
        let note = [verdict, &self.note, self.wrong.as_deref().unwrap_or_default()];
        let note: Vec<&str> = note.into_iter().filter(|part| !part.is_empty()).collect();
        vec![
            self.name.clone(),
            format!("{} {}", shown(median), self.unit),
            spread,
            target,
            seconds(self.wall_s),
            self.cpu_s.map(seconds).unwrap_or_default(),
            note.join("; "),
        ]
    }
}

impl Spread {
    /// The spread of these values, in any order.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or_default();
        let runs = values.len();
        let median = match runs {
            0 => 0.0,
            _ => (at((runs - 1) / 2) + at(runs / 2)) / 2.0,
        };
        Self { runs, median, min: at(0), max: at(runs.saturating_sub(1)) }
    }

    /// The spread of one value.
    pub fn single(value: f64) -> Self {
        Self::of(vec![value])
    }
}

impl Report {
    /// An empty report.
    pub fn new(machine: Machine, server: &str) -> Self {
        Self { machine, load_at_end: 0.0, server: server.to_owned(), figures: Vec::new() }
    }

    /// Adds a figure and prints it at once, because the next one may take minutes.
    pub fn add(&mut self, figure: Figure) {
        eprintln!("{}", figure.cells().join("  "));
        self.figures.push(figure);
    }

    /// Records the load average at the end.
    pub fn machine_at_end(&mut self) {
        self.load_at_end = machine().load_at_start;
    }

    /// The number of wrong results.
    pub fn wrong(&self) -> usize {
        self.figures.iter().filter(|figure| figure.wrong.is_some()).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, processors, load_at_start } = &self.machine;
        writeln!(
            out,
            "following {} on {processors} x {processor}, load average {load_at_start} at the \
             start and {} at the end\n",
            self.server, self.load_at_end
        )?;
        let mut table = Table::new(&["", "median", "min .. max", "target", "wall s", "cpu s", ""]);
        for figure in &self.figures {
            table.row(figure.cells());
        }
        writeln!(out, "{table}")?;
        for figure in self.figures.iter().filter(|figure| !figure.threads.is_empty()) {
            let threads = figure.threads.iter().take(8);
            let threads = threads.map(|(name, seconds)| format!("{name} {seconds:.2}"));
            let threads = threads.collect::<Vec<_>>().join(", ");
            writeln!(out, "{}, cpu s by thread: {threads}", figure.name)?;
        }
        Ok(())
    }
}

/// A number with as many digits as it needs.
fn shown(number: f64) -> String {
    match number.abs() {
        0.0..1e-9 => "0".to_owned(),
        ..10.0 => format!("{number:.2}"),
        ..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_the_ends() {
        assert_eq!(
            Spread::of(vec![3.0, 1.0, 2.0]),
            Spread { runs: 3, median: 2.0, min: 1.0, max: 3.0 }
        );
        assert_eq!(Spread::of(vec![4.0, 1.0]).median, 2.5);
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }

    #[test]
    fn a_target_that_is_missed_is_named() {
        let figure =
            |target| Figure::new("speed", "rows/s", Spread::single(50_000.0), target).cells();
        assert_eq!(figure(Target::AtLeast(60_000.0)).last().unwrap(), "MISSED");
        assert_eq!(figure(Target::AtLeast(50_000.0)).last().unwrap(), "");
        assert_eq!(figure(Target::AtMost(1.5)).last().unwrap(), "MISSED");
        assert_eq!(figure(Target::AtMost(1.5))[1..4], ["50000 rows/s", "", "<= 1.50"]);
    }
}
