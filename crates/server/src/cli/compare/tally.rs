//! How far two files of results agree: each measure as numerator, denominator and percentage.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::results::{Answer, MAX_ROWS};
use crate::cli::output::align;

/// The rows of "top 10", and the numbers of missing rows that are listed one by one.
const TOP: usize = 10;
/// Wider than any cell of the table.
const MOST_COLUMNS: usize = 200;

/// The counts so far. Memory does not grow with the number of queries.
pub(super) struct Tally {
    queries: u64,
    /// Queries with the same number of rows in both.
    results: u64,
    /// Queries with the same `total_found`.
    found: u64,
    /// Queries whose first ten rows are the same set.
    top: u64,
    /// Queries whose rows are the same set.
    set: u64,
    /// Queries of `grouped` whose groups are the same.
    groups: u64,
    /// Queries whose reference has a comparable group.
    grouped: u64,
    /// Queries with the same ids in the same order.
    order: u64,
    /// Queries with the same weights, in any order.
    weights: u64,
    /// Rows of the reference.
    rows: u64,
    /// For each number of missing rows, how many answers lack that many.
    lacking: [u64; MAX_ROWS + 1],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            queries: 0,
            results: 0,
            found: 0,
            top: 0,
            set: 0,
            groups: 0,
            grouped: 0,
            order: 0,
            weights: 0,
            rows: 0,
            lacking: [0; MAX_ROWS + 1],
        }
    }
}

impl Tally {
    /// Counts a pair of answers.
    pub fn count(&mut self, reference: &Answer, other: &Answer) {
        let (expected, given) = (&reference.rows, &other.rows);
        self.queries += 1;
        self.results += u64::from(reference.sent == other.sent);
        self.found += u64::from(reference.total_found == other.total_found);
        self.top += u64::from(ids(first(expected)) == ids(first(given)));
        let (expected_ids, given_ids) = (ids(expected), ids(given));
        self.set += u64::from(expected_ids == given_ids);
        let groups = groups(expected);
        if !groups.is_empty() {
            self.grouped += 1;
            self.groups += u64::from(groups == self::groups(given));
        }
        self.order += u64::from(expected.iter().map(|row| row.0).eq(given.iter().map(|row| row.0)));
        let pairs = |rows: &[(i128, i128)]| rows.iter().copied().collect::<BTreeSet<_>>();
        self.weights += u64::from(pairs(expected) == pairs(given));
        self.rows += expected.len() as u64;
        let lacking = expected_ids.difference(&given_ids).count();
        if let Some(queries) = self.lacking.get_mut(lacking) {
            *queries += 1;
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.queries == 0
    }

    /// Whether all answers are equal: the number found, the ids in order, and their weights.
    pub fn is_equal(&self) -> bool {
        // The same ids in the same order are also the same sets, with none missing; with the same weights they are the
        // same groups.
        [self.results, self.found, self.order, self.weights]
            .iter()
            .all(|equal| *equal == self.queries)
    }

    /// The total number of the reference's rows that the other answers lack.
    fn missing(&self) -> u64 {
        self.lacking.iter().zip(0_u64..).map(|(queries, rows)| queries * rows).sum()
    }

    /// The most rows that an answer lacks.
    fn most_missing(&self) -> usize {
        self.lacking.iter().rposition(|queries| *queries > 0).unwrap_or(0)
    }

    /// The median number of missing rows among answers that lack some; the mean of the two middle values for an even
    /// number.
    fn median_missing(&self) -> String {
        let lacking = self.lacking.get(1..).unwrap_or_default();
        let queries: u64 = lacking.iter().sum();
        if queries == 0 {
            return "-".to_owned();
        }
        let at = |place: u64| {
            let mut before: u64 = 0;
            let reaches = |queries: &u64| {
                before += queries;
                before > place
            };
            1 + lacking.iter().position(reaches).unwrap_or(0)
        };
        let twice = at((queries - 1) / 2) + at(queries / 2);
        if twice % 2 == 0 { (twice / 2).to_string() } else { format!("{}.5", twice / 2) }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = vec![cells(["measure", "count", "share"])];
        for (name, equal, of) in [
            ("total results", self.results, self.queries),
            ("total found", self.found, self.queries),
            ("top 10", self.top, self.queries),
            ("doc set", self.set, self.queries),
            ("doc groups", self.groups, self.grouped),
            ("order", self.order, self.queries),
            ("weights", self.weights, self.queries),
        ] {
            table.push(cells([name, &format!("{equal}/{of}"), &share(equal, of, Rounding::Down)]));
        }
        let (missing, rows) = (self.missing(), self.rows);
        let mismatch = share(missing, rows, Rounding::Up);
        table.push(cells(["doc mismatch", &format!("{missing}/{rows}"), &mismatch]));
        table.push(cells(["max mismatch", &self.most_missing().to_string(), ""]));
        table.push(cells(["median mismatch", &self.median_missing(), ""]));
        let one_by_one = self.lacking.iter().skip(1).take(TOP).map(u64::to_string);
        let one_by_one = one_by_one.collect::<Vec<_>>().join(" ");
        // In the last column, so that no other column becomes wider.
        table.push(cells(["queries that lack 1..10", "", &one_by_one]));
        for line in align(&table, MOST_COLUMNS).lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn cells(texts: [&str; 3]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn first(rows: &[(i128, i128)]) -> &[(i128, i128)] {
    rows.get(..TOP).unwrap_or(rows)
}

fn ids(rows: &[(i128, i128)]) -> BTreeSet<i128> {
    rows.iter().map(|row| row.0).collect()
}

/// The sets of rows with equal weight, by descending weight, without the lowest: a limit may have cut that one. The
/// weight itself is ignored.
fn groups(rows: &[(i128, i128)]) -> Vec<BTreeSet<i128>> {
    let mut groups = BTreeMap::<i128, BTreeSet<i128>>::new();
    for (id, weight) in rows {
        groups.entry(*weight).or_default().insert(*id);
    }
    groups.into_values().skip(1).rev().collect()
}

/// The direction in which a percentage is rounded.
#[derive(Clone, Copy)]
enum Rounding {
    /// 100.00 % only for all.
    Down,
    /// 0.00 % only for none.
    Up,
}

/// A percentage with two decimals.
fn share(part: u64, whole: u64, rounding: Rounding) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let (part, whole) = (u128::from(part) * 10_000, u128::from(whole));
    let hundredths = match rounding {
        Rounding::Down => part / whole,
        Rounding::Up => part.div_ceil(whole),
    };
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(total_found: u64, rows: &[(i128, i128)]) -> Answer {
        Answer { query: String::new(), total_found, rows: rows.to_vec(), sent: rows.len() }
    }

    fn tally(pairs: &[(Answer, Answer)]) -> Tally {
        let mut tally = Tally::default();
        pairs.iter().for_each(|(reference, other)| tally.count(reference, other));
        tally
    }

    #[test]
    fn summary_table_equals_manual_results() {
        let equal = [(1, 30), (2, 20), (3, 20), (4, 10)];
        let pairs = [
            // All equal; groups {1}, {2, 3}.
            (answer(4, &equal), answer(4, &equal)),
            // The number found, a row of the lowest group, and the order differ; the group {1, 2} is equal.
            (answer(3, &[(1, 9), (2, 9), (3, 5)]), answer(4, &[(2, 9), (1, 9), (4, 5)])),
            // A weight and the order differ; there is one group, which is the lowest.
            (answer(2, &[(5, 7), (6, 7)]), answer(2, &[(6, 8), (5, 7)])),
            // Two rows and a group are missing.
            (answer(3, &[(1, 3), (2, 2), (3, 1)]), answer(1, &[(1, 3)])),
            (answer(0, &[]), answer(0, &[])),
        ];
        let tally = tally(&pairs);
        let expected = "\
measure                  count  share
total results            4/5    80.00 %
total found              3/5    60.00 %
top 10                   3/5    60.00 %
doc set                  3/5    60.00 %
doc groups               2/3    66.66 %
order                    2/5    40.00 %
weights                  2/5    40.00 %
doc mismatch             3/12   25.00 %
max mismatch             2
median mismatch          1.5
queries that lack 1..10         1 1 0 0 0 0 0 0 0 0
";
        assert_eq!(tally.to_string(), expected);
        assert!(!tally.is_equal());
    }

    #[test]
    fn equal_answers_are_equal_and_a_last_bit_is_not() {
        let rows: Vec<(i128, i128)> = (0..100).map(|id| (id, 1_000 - id / 7)).collect();
        let same = tally(&[(answer(500, &rows), answer(500, &rows))]);
        assert!(same.is_equal());
        assert!(same.to_string().contains("median mismatch          -\n"), "{same}");
        let mut other = rows.clone();
        other[50].1 += 1;
        assert!(!tally(&[(answer(500, &rows), answer(501, &rows))]).is_equal());
        let more = tally(&[(answer(500, &rows), Answer { sent: 120, ..answer(500, &rows) })]);
        assert!((more.results, more.order) == (0, 1) && !more.is_equal());
        let weight = tally(&[(answer(500, &rows), answer(500, &other))]);
        assert_eq!((weight.order, weight.weights, weight.set), (1, 0, 1));
        assert!(!weight.is_equal());
        other.swap(3, 4);
        let swapped = tally(&[(answer(500, &rows), answer(500, &other))]);
        assert_eq!((swapped.order, swapped.top, swapped.set), (0, 1, 1));
    }

    #[test]
    fn top_ten_excludes_the_eleventh_row() {
        let rows: Vec<(i128, i128)> = (0..11).map(|id| (id, 5)).collect();
        let mut other = rows.clone();
        other[10].0 = 77;
        let eleventh = tally(&[(answer(11, &rows), answer(11, &other))]);
        assert_eq!((eleventh.top, eleventh.set, eleventh.missing()), (1, 0, 1));
        other.swap(9, 10);
        let tenth = tally(&[(answer(11, &rows), answer(11, &other))]);
        assert_eq!((tenth.top, tenth.set), (0, 0));
    }

    #[test]
    fn shares_are_whole_only_where_all_are() {
        assert_eq!(share(6_586, 6_770, Rounding::Down), "97.28 %");
        assert_eq!(share(999_999, 1_000_000, Rounding::Down), "99.99 %");
        assert_eq!(share(1, 1_000_000, Rounding::Up), "0.01 %");
        assert_eq!(share(4_532, 673_551, Rounding::Up), "0.68 %");
        assert_eq!(share(0, 3, Rounding::Up), "0.00 %");
        assert_eq!(share(u64::MAX, u64::MAX, Rounding::Down), "100.00 %");
        assert_eq!(share(0, 0, Rounding::Down), "-");
    }

    #[test]
    fn the_median_is_that_of_the_answers_that_lack_some() {
        // 90 rows once, 1 row three times, none a hundred times.
        let mut tally = Tally::default();
        (tally.lacking[0], tally.lacking[1], tally.lacking[90]) = (100, 3, 1);
        assert_eq!((tally.median_missing().as_str(), tally.most_missing()), ("1", 90));
        assert_eq!(tally.missing(), 93);
        tally.lacking[90] = 3;
        assert_eq!(tally.median_missing(), "45.5");
        tally.lacking[100] = 1;
        assert_eq!((tally.median_missing().as_str(), tally.most_missing()), ("90", 100));
    }
}
