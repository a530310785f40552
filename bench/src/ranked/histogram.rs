//! The distribution of response times on a logarithmic scale, by the number of words of the query.

use std::time::Duration;

use serde::Serialize;

use crate::table::Table;

/// The classes of queries: name, fewest and most words.
pub const CLASSES: [(&str, usize, usize); 8] = [
    ("1", 1, 1),
    ("2", 2, 2),
    ("3", 3, 3),
    ("4", 4, 4),
    ("5", 5, 5),
    ("6-10", 6, 10),
    ("11-50", 11, 50),
    ("51-100", 51, 100),
];

/// The classes of the queries of a log by the documents of their words: name and fewest documents.
pub const SIZES: [(&str, u64); 6] = [
    ("under 1,000", 0),
    ("1,000", 1_000),
    ("10,000", 10_000),
    ("100,000", 100_000),
    ("1,000,000", 1_000_000),
    ("10,000,000", 10_000_000),
];

/// Upper ends of the bands of response times, in microseconds: two per power of ten; the last band has no end.
const ENDS_US: [(u64, &str); 11] = [
    (30, "<0.03"),
    (100, "<0.1"),
    (300, "<0.3"),
    (1_000, "<1"),
    (3_000, "<3"),
    (10_000, "<10"),
    (30_000, "<30"),
    (100_000, "<100"),
    (300_000, "<300"),
    (1_000_000, "<1000 ms"),
    (u64::MAX, "more"),
];

/// One server's response times for one class of queries.
#[derive(Debug, Serialize)]
pub struct Spread {
    /// The server that answered.
    pub server: &'static str,
    /// `cold`: each query for the first time since the server started; `warm`: for the second time.
    pub state: &'static str,
    /// The class, by the number of words or the documents of its words.
    pub class: &'static str,
    /// The number of answers in each band.
    pub bands: [usize; ENDS_US.len()],
}

impl Spread {
    /// Counts times by band.
    pub fn of(
        server: &'static str,
        state: &'static str,
        class: &'static str,
        times: &[Duration],
    ) -> Self {
        let mut bands = [0; ENDS_US.len()];
        for time in times {
            let band = ENDS_US.iter().position(|(end, _)| time.as_micros() < u128::from(*end));
            if let Some(count) = bands.get_mut(band.unwrap_or(ENDS_US.len() - 1)) {
                *count += 1;
            }
        }
        Self { server, state, class, bands }
    }

    /// The bands' shares in per cent, with their names.
    pub fn shares(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = self.bands.iter().sum::<usize>().max(1) as f64;
        let bands = ENDS_US.iter().zip(&self.bands);
        bands.map(move |((_, name), count)| (*name, 100.0 * *count as f64 / all))
    }
}

/// The bands' shares in per cent, a line for each server, state and class; empty bands are left blank. `by` says what
/// the classes are by.
pub fn table(spreads: &[Spread], by: &'static str) -> Table {
    let mut heads = vec!["server", "state", by];
    heads.extend(ENDS_US.iter().map(|(_, name)| *name));
    heads.push("");
    let mut table = Table::new(&heads);
    for spread in spreads {
        let shown = |(_, share): (_, f64)| match share {
            0.0 => String::new(),
            share => format!("{share:.1}"),
        };
        let mut cells = [spread.server, spread.state, spread.class].map(str::to_owned).to_vec();
        cells.extend(spread.shares().map(shown));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_bands_by_their_tenfold_steps() {
        let times = [29, 30, 99, 100, 999, 1_000, 999_999, 1_000_000, 90_000_000]
            .map(Duration::from_micros);
        let spread = Spread::of("it", "cold", "1", &times);
        assert_eq!(spread.bands, [1, 2, 1, 1, 1, 0, 0, 0, 0, 1, 2]);
        let text = table(&[spread], "words").to_string();
        let line = text.lines().nth(1).unwrap();
        let shares: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            shares,
            ["it", "cold", "1", "11.1", "22.2", "11.1", "11.1", "11.1", "11.1", "22.2"]
        );
    }

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        for pair in CLASSES.windows(2) {
            assert_eq!(pair[0].2 + 1, pair[1].1, "{pair:?}");
        }
    }
}
