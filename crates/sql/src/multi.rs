//! Sets of integers (multi-value attributes). A set is stored as a JSON array of distinct numbers
//! in ascending order.

use std::fmt::Write as _;

/// The most numbers of a set.
pub(crate) const MAX_NUMBERS: usize = 65_536;

/// The properties of a set in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multi {
    /// Whether its numbers are signed 64-bit integers; otherwise they are unsigned 32-bit integers.
    pub is_wide: bool,
    /// Which of its numbers must satisfy a comparison.
    pub of: NumbersOfSet,
}

/// Which numbers of a set must satisfy a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumbersOfSet {
    /// At least one; for `<>`, NOT IN and NOT BETWEEN all.
    Some,
    /// At least one: `ANY(set)`.
    Any,
    /// All, and the set must not be empty: `ALL(set)`.
    All,
}

impl Multi {
    /// A set as a column stores it.
    pub(crate) fn new(is_wide: bool) -> Self {
        Self { is_wide, of: NumbersOfSet::Some }
    }

    /// The least and greatest number that the set may contain.
    pub(crate) fn bounds(self) -> (i128, i128) {
        match self.is_wide {
            true => (i64::MIN.into(), i64::MAX.into()),
            false => (0, u32::MAX.into()),
        }
    }

    /// The letters that encode these properties.
    pub(crate) fn spelled(self) -> &'static str {
        match (self.is_wide, self.of) {
            (false, NumbersOfSet::Some) => "m",
            (false, NumbersOfSet::Any) => "ma",
            (false, NumbersOfSet::All) => "ml",
            (true, NumbersOfSet::Some) => "M",
            (true, NumbersOfSet::Any) => "Ma",
            (true, NumbersOfSet::All) => "Ml",
        }
    }

    /// Decodes the properties from letters, which may be among others; `None` if there are none.
    pub(crate) fn of_letters(letters: &str) -> Option<Self> {
        let is_wide = letters.contains('M');
        let of = match letters {
            letters if letters.contains('a') => NumbersOfSet::Any,
            letters if letters.contains('l') => NumbersOfSet::All,
            _ => NumbersOfSet::Some,
        };
        (is_wide || letters.contains('m')).then_some(Self { is_wide, of })
    }
}

/// The numbers of a stored set, in ascending order.
pub(crate) fn numbers(held: &str) -> impl Iterator<Item = i64> {
    bare(held).split(',').filter_map(|number| number.trim().parse().ok())
}

/// The number of elements of a stored set.
pub(crate) fn count(held: &str) -> usize {
    let bare = bare(held).trim();
    if bare.is_empty() { 0 } else { 1 + bare.bytes().filter(|byte| *byte == b',').count() }
}

/// The stored form of a set with these numbers, in any order and with duplicates.
pub(crate) fn held(mut numbers: Vec<i64>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    let mut out = String::with_capacity(2 + 4 * numbers.len());
    out.push('[');
    for (place, number) in numbers.iter().enumerate() {
        let before = if place > 0 { ", " } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{before}{number}");
    }
    out.push(']');
    out
}

/// The form of a stored set that clients see: `1,2`.
pub(crate) fn shown(held: &str) -> String {
    bare(held).chars().filter(|letter| *letter != ' ').collect()
}

/// The stored form of a set that is displayed like this.
pub(crate) fn held_of_shown(shown: &str) -> String {
    format!("[{}]", shown.replace(',', ", "))
}

fn bare(held: &str) -> &str {
    let inner = held.trim().strip_prefix('[').and_then(|held| held.strip_suffix(']'));
    inner.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_each_number_once_in_order() {
        let made = held(vec![7, 3, 3, -5, 9_000_000_000]);
        assert_eq!(made, "[-5, 3, 7, 9000000000]");
        assert_eq!(shown(&made), "-5,3,7,9000000000");
        assert_eq!(held_of_shown(&shown(&made)), made);
        assert_eq!(numbers(&made).collect::<Vec<_>>(), [-5, 3, 7, 9_000_000_000]);
        assert_eq!(count(&made), 4);
    }

    #[test]
    fn an_empty_set_has_no_numbers() {
        let made = held(Vec::new());
        assert_eq!((made.as_str(), shown(&made).as_str(), count(&made)), ("[]", "", 0));
        assert_eq!(numbers(&made).count(), 0);
        assert_eq!(held_of_shown(""), "[]");
    }

    #[test]
    fn letters_say_what_a_set_is() {
        for is_wide in [false, true] {
            for of in [NumbersOfSet::Some, NumbersOfSet::Any, NumbersOfSet::All] {
                let multi = Multi { is_wide, of };
                assert_eq!(Multi::of_letters(multi.spelled()), Some(multi));
                assert_eq!(Multi::of_letters(&format!("un{}", multi.spelled())), Some(multi));
            }
        }
        assert_eq!(Multi::of_letters("unz5d2"), None);
    }
}
