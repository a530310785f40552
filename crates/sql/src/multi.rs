//! Sets of integers: multi-value attributes. A set is held as a JSON array of its numbers, each once, the least first.

use std::fmt::Write as _;

/// Most numbers of a set.
pub(crate) const MAX_NUMBERS: usize = 65_536;

/// What a set is in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multi {
    /// Whether its numbers have 64 bits and a sign; else they have 32 and none.
    pub is_wide: bool,
    /// Of which of its numbers a comparison must hold.
    pub of: Numbers,
}

/// Of which numbers of a set a comparison must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Of one; `<>`, NOT IN and NOT BETWEEN of each.
    Some,
    /// Of one: `ANY(set)`.
    Any,
    /// Of each, of which there is one at least: `ALL(set)`.
    All,
}

impl Multi {
    /// A set as a column holds it.
    pub(crate) fn new(is_wide: bool) -> Self {
        Self { is_wide, of: Numbers::Some }
    }

    /// The least and the greatest number that may be in it.
    pub(crate) fn bounds(self) -> (i128, i128) {
        match self.is_wide {
            true => (i64::MIN.into(), i64::MAX.into()),
            false => (0, u32::MAX.into()),
        }
    }

    /// As a letter for each of what it is.
    pub(crate) fn spelled(self) -> &'static str {
        match (self.is_wide, self.of) {
            (false, Numbers::Some) => "m",
            (false, Numbers::Any) => "ma",
            (false, Numbers::All) => "ml",
            (true, Numbers::Some) => "M",
            (true, Numbers::Any) => "Ma",
            (true, Numbers::All) => "Ml",
        }
    }

    /// What letters, among others, say of a set; `None` where they say nothing of one.
    pub(crate) fn of_letters(letters: &str) -> Option<Self> {
        let is_wide = letters.contains('M');
        let of = match letters {
            letters if letters.contains('a') => Numbers::Any,
            letters if letters.contains('l') => Numbers::All,
            _ => Numbers::Some,
        };
        (is_wide || letters.contains('m')).then_some(Self { is_wide, of })
    }
}

/// The numbers of a set that is held as this text, in their order.
pub(crate) fn numbers(held: &str) -> impl Iterator<Item = i64> {
    bare(held).split(',').filter_map(|number| number.trim().parse().ok())
}

/// How many numbers a set has that is held as this text.
pub(crate) fn count(held: &str) -> usize {
    let bare = bare(held).trim();
    if bare.is_empty() { 0 } else { 1 + bare.bytes().filter(|byte| *byte == b',').count() }
}

/// How a set is held that has these numbers, in any order and any number of times.
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

/// What clients are shown of a set that is held as this text: `1,2`.
pub(crate) fn shown(held: &str) -> String {
    bare(held).chars().filter(|letter| *letter != ' ').collect()
}

/// How a set is held that is shown as this text.
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
            for of in [Numbers::Some, Numbers::Any, Numbers::All] {
                let multi = Multi { is_wide, of };
                assert_eq!(Multi::of_letters(multi.spelled()), Some(multi));
                assert_eq!(Multi::of_letters(&format!("un{}", multi.spelled())), Some(multi));
            }
        }
        assert_eq!(Multi::of_letters("unz5d2"), None);
    }
}
