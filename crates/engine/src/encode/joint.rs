//! Combinations of values of several paths as bytes, sorted by the first path's value, then by the second's.
//!
//! ```text
//! joint := part{one for each path} | 255    255: too many combinations; the document must be read
//! part  := (1..255 | 0 255)* 0 0            the bytes of a value (`path`), each 0 as 0 255; empty if the path has no value
//! ```
//! A document has one entry for each combination of one value per path. So the entries in a range belong to the
//! documents in which each path has a value that satisfies its condition: the meaning of conditions on single paths
//! joined by AND, through arrays too. Every document that can be parsed has an entry.

use std::ops::Bound;

use remora_index::paths::PathKeys;

use super::{
    document::Document,
    path::{KeyRange, is_scalar, push_values, ranges, shown, sorted_key},
};
use crate::{PathDef, PathPlace, PathTest, PathValue};

/// The most combinations of a document.
const MAX_COMBINATIONS: usize = 1_000;
/// The most bytes of a document's combinations if there are several: they are in memory while a
/// segment is built.
const MAX_BYTES: usize = 64 << 10;
/// The most ranges of a condition.
const MAX_RANGES: usize = 100_000;
/// The most bytes of those ranges.
const MAX_RANGE_BYTES: usize = 64 << 20;
/// The entry of a document with too many combinations.
pub(crate) const TOO_MANY: &[u8] = &[u8::MAX];
const END: [u8; 2] = [0, 0];
/// This suffix sorts after all keys that begin with a part and its end, and before all longer
/// parts.
const AFTER_END: [u8; 2] = [0, 1];

/// Adds the combinations of the values at these paths in a document.
pub(super) fn push_combinations(path: &PathDef, document: &Document<'_>, keys: &mut PathKeys) {
    let mut found = PathKeys::default();
    for names in path.paths() {
        push_values(names, document, &mut found);
        found.end_path();
    }
    let of_each: Vec<Vec<&[u8]>> =
        (0..found.paths()).map(|place| distinct(&found, place)).collect();
    let count = of_each.iter().try_fold(1_usize, |all, values| all.checked_mul(values.len()));
    let Some(count) = count.filter(|count| fits(&of_each, *count)) else {
        return keys.push(|key| key.extend_from_slice(TOO_MANY));
    };
    for combination in 0..count {
        keys.push(|key| {
            let (mut behind, mut rest) = (count, combination);
            for values in &of_each {
                behind /= values.len().max(1);
                let value = values.get(rest / behind.max(1)).copied().unwrap_or_default();
                rest %= behind.max(1);
                push_part(value, key);
            }
        });
    }
}

/// The distinct values of a path; a single empty value if there are none.
fn distinct(found: &PathKeys, place: usize) -> Vec<&[u8]> {
    let mut values: Vec<&[u8]> = found.of(place).collect();
    values.sort_unstable();
    values.dedup();
    if values.is_empty() {
        values.push(&[]);
    }
    values
}

/// Whether the combinations are few and short enough to be stored.
fn fits(of_each: &[Vec<&[u8]>], count: usize) -> bool {
    let bytes = || {
        of_each.iter().fold(0_usize, |all, values| {
            let once: usize = values.iter().map(|value| value.len()).sum();
            all.saturating_add(once.saturating_mul(count / values.len().max(1)))
        })
    };
    count == 1 || count <= MAX_COMBINATIONS && bytes() <= MAX_BYTES
}

fn push_part(value: &[u8], key: &mut Vec<u8>) {
    push_bytes(value, key);
    key.extend(END);
}

fn push_bytes(value: &[u8], key: &mut Vec<u8>) {
    for byte in value {
        key.push(*byte);
        if *byte == 0 {
            key.push(u8::MAX);
        }
    }
}

/// The range of entries with these values in the first paths.
pub(crate) fn range_of_equal(values: &[PathValue]) -> Option<KeyRange> {
    let mut prefix = Vec::new();
    for value in values {
        let found = ranges(&PathTest::In(vec![value.clone()]));
        let [(Bound::Included(only), _)] = &found[..] else { return None };
        push_part(only, &mut prefix);
    }
    Some(range_of_parts(prefix))
}

/// The entry of a document with these values in the first paths and these in the others.
pub(crate) fn joint_key(first: &[PathValue], others: &[PathPlace]) -> Option<Vec<u8>> {
    let (Bound::Included(mut key), _) = range_of_equal(first)? else { return None };
    for place in others {
        push_part(&sorted_key(place).unwrap_or_default(), &mut key);
    }
    Some(key)
}

/// The range of all keys that begin with these whole parts.
pub(crate) fn range_of_parts(prefix: Vec<u8>) -> KeyRange {
    let mut end = prefix.clone();
    end.extend_from_slice(TOO_MANY);
    (Bound::Included(prefix), Bound::Excluded(end))
}

/// The bytes of the first `count` parts of a key; `None` if it has fewer.
pub(crate) fn first_parts(key: &[u8], count: usize) -> Option<&[u8]> {
    let mut end = 0;
    for _ in 0..count {
        end += part_length(key.get(end..)?)?;
    }
    key.get(..end)
}

/// Whether each part of a key is a boolean, a number or a text, so that the combination can be unique.
pub(crate) fn are_scalars(key: &[u8]) -> bool {
    let mut rest = key;
    while !rest.is_empty() {
        let Some(length) = part_length(rest) else { return false };
        if !is_scalar(rest) {
            return false;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    !key.is_empty()
}

/// The values of a key as an error message shows them.
pub(crate) fn shown_parts(key: &[u8]) -> String {
    let (mut rest, mut all) = (key, Vec::new());
    while let Some(length) = part_length(rest) {
        let part = rest.get(..length.saturating_sub(END.len())).unwrap_or_default();
        let mut value = Vec::with_capacity(part.len());
        let mut bytes = part.iter();
        while let Some(byte) = bytes.next() {
            value.push(*byte);
            if *byte == 0 {
                // The mark of a zero that is part of the value.
                bytes.next();
            }
        }
        all.push(shown(&value));
        rest = rest.get(length..).unwrap_or_default();
    }
    all.join(", ")
}

/// The length of the first part, including its end mark.
fn part_length(key: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match (key.get(at)?, key.get(at + 1)) {
            (0, Some(0)) => return Some(at + 2),
            (0, _) => at += 2,
            _ => at += 1,
        }
    }
}

/// A key with the bytes of descending parts inverted, so that keys sorted as bytes are in the
/// requested order. This works because no part is a prefix of another. `descending` describes the
/// parts after the first `leading` ones.
pub(crate) fn turned(key: &[u8], leading: usize, descending: &[bool]) -> Vec<u8> {
    let mut turned = key.to_vec();
    let mut from = first_parts(key, leading).map_or(key.len(), <[u8]>::len);
    for is_turned in descending {
        let rest = key.get(from..).unwrap_or_default();
        let end = from + part_length(rest).unwrap_or(rest.len());
        if *is_turned {
            turned.iter_mut().take(end).skip(from).for_each(|byte| *byte = !*byte);
        }
        from = end;
    }
    turned
}

/// The ranges of entries whose first paths have one of the values of these tests, and whose next path satisfies the
/// last test; also the range of [`TOO_MANY`]. `None` if a test before the last is not [`PathTest::In`], or if there
/// are too many ranges.
pub(crate) fn joint_ranges(tests: &[PathTest]) -> Option<Vec<KeyRange>> {
    let (last, leading) = tests.split_last()?;
    let mut prefixes = vec![Vec::new()];
    for test in leading {
        let (PathTest::In(_), values) = (test, ranges(test)) else { return None };
        if !are_few(&prefixes, &values) {
            return None;
        }
        let mut longer = Vec::with_capacity(prefixes.len() * values.len());
        for prefix in &prefixes {
            for (value, _) in &values {
                let Bound::Included(value) = value else { return None };
                let mut key: Vec<u8> = prefix.clone();
                push_part(value, &mut key);
                longer.push(key);
            }
        }
        prefixes = longer;
    }
    let of_last = ranges(last);
    if !are_few(&prefixes, &of_last) {
        return None;
    }
    let within = |prefix: &Vec<u8>| {
        let range = |(low, high): &KeyRange| (low_of(prefix, low), high_of(prefix, high));
        of_last.iter().map(range).collect::<Vec<KeyRange>>()
    };
    let mut all: Vec<KeyRange> = prefixes.iter().flat_map(within).collect();
    all.push((Bound::Included(TOO_MANY.to_vec()), Bound::Included(TOO_MANY.to_vec())));
    Some(all)
}

/// Whether the combinations of prefixes and ranges are within the limits.
fn are_few(prefixes: &[Vec<u8>], ranges: &[KeyRange]) -> bool {
    let bound = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => value.len(),
        Bound::Unbounded => 0,
    };
    let before: usize = prefixes.iter().map(Vec::len).sum();
    let behind: usize = ranges.iter().map(|(low, high)| bound(low) + bound(high)).sum();
    let before = before.saturating_mul(2 * ranges.len());
    let bytes = before.saturating_add(behind.saturating_mul(2 * prefixes.len()));
    let count = prefixes.len().saturating_mul(ranges.len());
    count <= 1 || count <= MAX_RANGES && bytes <= MAX_RANGE_BYTES
}

fn low_of(prefix: &[u8], low: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    let mut key = prefix.to_vec();
    match low {
        // A missing value sorts below every value.
        Bound::Unbounded => key.push(1),
        Bound::Included(value) => push_bytes(value, &mut key),
        Bound::Excluded(value) => {
            push_bytes(value, &mut key);
            key.extend(AFTER_END);
        }
    }
    Bound::Included(key)
}

fn high_of(prefix: &[u8], high: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    let mut key = prefix.to_vec();
    match high {
        Bound::Unbounded => key.extend_from_slice(TOO_MANY),
        Bound::Included(value) => {
            push_bytes(value, &mut key);
            key.extend(AFTER_END);
        }
        Bound::Excluded(value) => push_bytes(value, &mut key),
    }
    Bound::Excluded(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(value: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        push_part(value, &mut key);
        key
    }

    #[test]
    fn parts_have_the_order_of_their_values() {
        let values: [&[u8]; 8] =
            [&[], &[1], &[1, 0], &[1, 0, 0], &[1, 0, 1], &[1, 1], &[1, 255], &[6]];
        assert!(values.is_sorted());
        let behind = [part(&[7]), Vec::new()];
        for tail in &behind {
            let keys = values.map(|value| [part(value), tail.clone()].concat());
            assert!(keys.is_sorted(), "{keys:?}");
            assert!(keys.iter().all(|key| key.as_slice() < TOO_MANY));
        }
        for value in values {
            for other in values {
                let key = [part(other), part(&[255])].concat();
                let is_above = |bound: Bound<Vec<u8>>| match bound {
                    Bound::Included(low) => key >= low,
                    _ => panic!(),
                };
                let is_below = |bound: Bound<Vec<u8>>| match bound {
                    Bound::Excluded(high) => key < high,
                    _ => panic!(),
                };
                let (included, excluded) =
                    (Bound::Included(value.to_vec()), Bound::Excluded(value.to_vec()));
                assert_eq!(is_above(low_of(&[], &included)), other >= value);
                assert_eq!(is_above(low_of(&[], &excluded)), other > value);
                assert_eq!(is_below(high_of(&[], &included)), other <= value);
                assert_eq!(is_below(high_of(&[], &excluded)), other < value);
            }
        }
    }

    #[test]
    fn descending_parts_have_the_opposite_order() {
        let values: [&[u8]; 8] =
            [&[], &[1], &[1, 0], &[1, 0, 0], &[1, 0, 1], &[1, 1], &[1, 255], &[6]];
        for (a, one) in values.iter().enumerate() {
            for (b, other) in values.iter().enumerate() {
                let [first, second] = [one, other].map(|value| [part(&[7]), part(value)].concat());
                assert_eq!(first_parts(&first, 1), Some(&part(&[7])[..]));
                assert_eq!(first_parts(&first, 2), Some(&first[..]));
                assert_eq!(first_parts(&first, 3), None);
                let [first, second] = [first, second].map(|key| turned(&key, 1, &[true]));
                assert_eq!(first.cmp(&second), b.cmp(&a));
            }
        }
        let key = [part(&[1]), part(&[2]), part(&[3])].concat();
        let expected = [part(&[1]), part(&[2]).iter().map(|byte| !byte).collect(), part(&[3])];
        assert_eq!(turned(&key, 0, &[false, true, false]), expected.concat());
    }

    fn entries(text: &str) -> Vec<Vec<u8>> {
        let names = |name: &str| vec![name.to_owned()];
        let path = PathDef::together(0, vec![names("a"), names("b")]).unwrap();
        let mut keys = PathKeys::default();
        push_combinations(&path, &Document::parse(text).unwrap(), &mut keys);
        keys.end_path();
        keys.of(0).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn a_document_has_all_combinations_or_is_read() {
        assert_eq!(entries("{}"), [[0, 0, 0, 0]]);
        assert_eq!(entries("{\"b\": null}"), [[0, 0, 1, 0, 0]]);
        assert_eq!(entries("{\"a\": false, \"b\": null}"), [[2, 0, 255, 0, 0, 1, 0, 0]]);
        // The arrays themselves are values too.
        assert_eq!(entries("{\"a\": [null, true, null], \"b\": [false]}").len(), 6);
        let many: Vec<u32> = (0..999).collect();
        assert_eq!(entries(&format!("{{\"a\": {many:?}}}")).len(), 1_000);
        let more: Vec<u32> = (0..1_000).collect();
        assert_eq!(entries(&format!("{{\"a\": {more:?}}}")), [TOO_MANY]);
        let long = "x".repeat(12_000);
        assert_eq!(entries(&format!("{{\"a\": \"{long}\", \"b\": [1, 2, 3, 4]}}")).len(), 5);
        assert_eq!(
            entries(&format!("{{\"a\": \"{long}\", \"b\": [1, 2, 3, 4, 5, 6]}}")),
            [TOO_MANY]
        );
    }
}
