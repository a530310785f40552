//! Compares two servers' results of a random query. Only rows are compared here; golden files compare the types.

use super::generate::Query;
use crate::golden::Answer;

/// The outcome of a comparison.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Same,
    /// One server reported a number out of range that the other did not compute. See "The order of conditions" in
    /// docs/sql-differences.md.
    OutOfRange,
    /// Remora could not plan or run it, and said so. See "Plans that cannot be made" in docs/sql-differences.md.
    Refused,
    Different(String),
}

const OUT_OF_RANGE: u16 = 1690;
/// Remora's error code for statements without a plan.
const UNKNOWN: u16 = 1105;
/// MySQL refuses a window that is ordered by an integer literal.
const SORTED_BY_PLACE: u16 = 3592;

/// Compares MySQL's result with Remora's.
pub fn compare(query: &Query, expected: &Answer, found: &Answer) -> Verdict {
    let different = || Verdict::Different(format!("  wanted {expected:?}\n  found  {found:?}"));
    match (expected, found) {
        (Answer::Error(SORTED_BY_PLACE, _), _) => Verdict::Same,
        (Answer::Error(OUT_OF_RANGE, _), _) | (_, Answer::Error(OUT_OF_RANGE, _)) => {
            let both = matches!((expected, found), (Answer::Error(..), Answer::Error(..)));
            if both { Verdict::Same } else { Verdict::OutOfRange }
        }
        (Answer::Rows { .. }, Answer::Error(UNKNOWN, _)) => Verdict::Refused,
        (Answer::Error(code, _), Answer::Error(other, _)) if code == other => Verdict::Same,
        (Answer::Rows { rows, .. }, Answer::Rows { rows: others, .. }) => {
            let divides = ["/", "AVG("].iter().any(|word| query.part.text().contains(word));
            let is_ordered = query.is_ordered && query.part.text().contains(" ORDER BY ");
            let alike = match is_ordered {
                true => rows_alike(rows, others, divides),
                false => rows_alike(&sorted(rows), &sorted(others), divides),
            };
            if alike { Verdict::Same } else { different() }
        }
        _ => different(),
    }
}

/// Sorted rows, with numbers written without trailing zeros.
fn sorted(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|value| plain(value)).collect()).collect();
    rows.sort_unstable();
    rows
}

fn plain(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok();
    match value.contains('.') && !value.contains('e') && is_number {
        true => value.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => value.to_owned(),
    }
}

fn rows_alike(rows: &[Vec<String>], others: &[Vec<String>], divides: bool) -> bool {
    rows.len() == others.len()
        && rows.iter().zip(others).all(|(row, other)| {
            row.len() == other.len()
                && row.iter().zip(other).all(|(value, other)| alike(value, other, divides))
        })
}

/// Divisions compute fewer digits than MySQL's, and doubles differ in their last digits.
fn alike(value: &str, other: &str, divides: bool) -> bool {
    if plain(value) == plain(other) {
        return true;
    }
    let precision = if divides { 1e-3 } else { 1e-13 };
    match (value.parse::<f64>(), other.parse::<f64>()) {
        (Ok(value), Ok(other)) => {
            let is_double = divides || value.abs() > 1e15 || value.fract() != 0.0;
            is_double && (value - other).abs() <= value.abs() * precision
        }
        _ => false,
    }
}
