//! Values of documents as bytes that are ordered like the values.
//!
//! ```text
//! value  := 1 | 2 bool:u8 | 3 number | 4 text | 5 0? | 6   null, a boolean, a number, a text, an array, an object;
//!                                                          0 marks an array that is an element of another
//! number := double rest?                                   trailing zero bytes of both together are left out
//! double := the greatest 64-bit float that is not above the number; big endian, a negative one with all bits
//!           inverted, another with the first bit inverted
//! rest   := the number minus that float, as u16            big endian; only for integers that are no float
//! ```

use std::ops::Bound;

use remora_index::paths::PathKeys;

use super::{
    document::Document,
    walk::{JsonNode, walk_path},
};
use crate::{PathPlace, PathTest, PathValue, schema::NO_TEXT};

const NULL: u8 = 1;
const BOOL: u8 = 2;
const NUMBER: u8 = 3;
const TEXT: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;
const NESTED: [u8; 2] = [ARRAY, 0];
/// The most bytes of a number.
const NUMBER_BYTES: usize = 11;
/// The most characters of a text that an error message shows.
const SHOWN_CHARS: usize = 60;

/// A kind of scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Null,
    Bool,
    Number,
    Text,
}

/// A range of values as bytes.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Adds the values at a path in a document.
pub(super) fn push_values(names: &[String], document: &Document<'_>, keys: &mut PathKeys) {
    walk_path(names, document, &mut |found| {
        keys.push(|key| push_document(found, key));
        for element in found.elements().into_iter().flatten() {
            keys.push(|key| match element {
                Document::Array(_) => key.extend(NESTED),
                _ => push_document(element, key),
            });
        }
        false
    });
}

/// Adds the texts at a path in a document, including those within an array there. If there is any
/// other value, also adds [`NO_TEXT`] once.
pub(super) fn push_texts(names: &[String], document: &Document<'_>, keys: &mut PathKeys) {
    let mut has_others = false;
    let push = |found: &Document<'_>, keys: &mut PathKeys| {
        if let Document::Text(text) = found {
            keys.push(|key| key.extend_from_slice(text.as_bytes()));
        }
    };
    walk_path(names, document, &mut |found| {
        has_others |= !matches!(found, Document::Text(_));
        push(found, keys);
        found.elements().into_iter().flatten().for_each(|element| push(element, keys));
        false
    });
    if has_others {
        keys.push(|key| key.extend_from_slice(NO_TEXT.as_bytes()));
    }
}

fn push_document(value: &Document<'_>, key: &mut Vec<u8>) {
    match value {
        Document::Null => key.push(NULL),
        Document::Bool(truth) => key.extend([BOOL, u8::from(*truth)]),
        Document::Int(number) => push_whole((*number).into(), key),
        Document::Uint(number) => push_whole((*number).into(), key),
        Document::Float(number) => push_float(*number, 0, key),
        Document::Text(text) => push_text(text, key),
        Document::Array(_) => key.push(ARRAY),
        Document::Object(_) => key.push(OBJECT),
    }
}

fn push_text(text: &str, key: &mut Vec<u8>) {
    key.push(TEXT);
    key.extend_from_slice(text.as_bytes());
}

/// Appends a 64-bit integer.
fn push_whole(number: i128, key: &mut Vec<u8>) {
    let near = number as f64;
    // A double of this size is an integer, and i128 can hold it.
    let floor = if near as i128 > number { near.next_down() } else { near };
    push_float(floor, (number - floor as i128) as u16, key);
}

fn push_float(float: f64, rest: u16, key: &mut Vec<u8>) {
    key.push(NUMBER);
    let start = key.len();
    // Adding zero turns -0.0 into 0.0, so that there is only one zero.
    let bits = (float + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    key.extend(ordered.to_be_bytes());
    key.extend(rest.to_be_bytes());
    while key.len() > start && key.last() == Some(&0) {
        key.pop();
    }
}

/// Encodes a value; `None` for NaN.
fn key_of(value: &PathValue) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(NUMBER_BYTES);
    match value {
        PathValue::Null => key.push(NULL),
        PathValue::Bool(truth) => key.extend([BOOL, u8::from(*truth)]),
        PathValue::Int(number) => push_whole((*number).into(), &mut key),
        PathValue::Uint(number) => push_whole((*number).into(), &mut key),
        PathValue::Float(number) if number.is_nan() => return None,
        PathValue::Float(number) => push_float(*number, 0, &mut key),
        PathValue::Text(text) => push_text(text, &mut key),
    }
    Some(key)
}

/// Encodes what an order sees of a value; `None` if there is none, or it is NaN.
pub(crate) fn sorted_key(place: &PathPlace) -> Option<Vec<u8>> {
    match place {
        PathPlace::Missing => None,
        PathPlace::Scalar(value) => key_of(value),
        PathPlace::Array => Some(vec![ARRAY]),
        PathPlace::Object => Some(vec![OBJECT]),
    }
}

/// The range of the values of a kind.
pub(crate) fn range_of_kind(kind: ScalarKind) -> KeyRange {
    let first = match kind {
        ScalarKind::Null => NULL,
        ScalarKind::Bool => BOOL,
        ScalarKind::Number => NUMBER,
        ScalarKind::Text => TEXT,
    };
    (Bound::Included(vec![first]), Bound::Excluded(vec![first + 1]))
}

/// Whether objects alone lead along a path in a document to the value with these bytes.
pub(crate) fn has_value_at(document: &str, names: &[String], key: &[u8]) -> bool {
    let Some(document) = Document::parse(document) else { return false };
    let found = names.iter().try_fold(&document, |found, name| found.member(name));
    found.is_some_and(|found| {
        let mut mine = Vec::with_capacity(key.len());
        push_document(found, &mut mine);
        mine == key
    })
}

/// The upper bound, exclusive, of all scalars.
pub(crate) const AFTER_SCALARS: &[u8] = &[ARRAY];

/// The scalar with these bytes; `None` if they are of another value.
pub(crate) fn scalar_of(key: &[u8]) -> Option<PathValue> {
    let (kind, rest) = key.split_first()?;
    Some(match *kind {
        NULL => PathValue::Null,
        BOOL => PathValue::Bool(rest == [1]),
        NUMBER => {
            let (float, whole) = number_of(rest);
            let int = whole.and_then(|whole| i64::try_from(whole).ok()).map(PathValue::Int);
            let uint = || whole.and_then(|whole| u64::try_from(whole).ok()).map(PathValue::Uint);
            int.or_else(uint).unwrap_or(PathValue::Float(float))
        }
        TEXT => PathValue::Text(String::from_utf8_lossy(rest).into_owned()),
        _ => return None,
    })
}

/// Whether a value is a boolean, a number or a text: only these can be unique, because the bytes of arrays and
/// objects do not contain their contents.
pub(crate) fn is_scalar(key: &[u8]) -> bool {
    matches!(key.first(), Some(&(BOOL | NUMBER | TEXT)))
}

/// The lower bound of these values.
pub(crate) const FIRST_SCALAR: &[u8] = &[BOOL];

/// A value as an error message shows it.
pub(crate) fn shown(key: &[u8]) -> String {
    match key.split_first() {
        Some((&NULL, _)) => "null".to_owned(),
        Some((&BOOL, rest)) => (rest == [1]).to_string(),
        Some((&NUMBER, rest)) => shown_number(rest),
        Some((&TEXT, rest)) => {
            let text = String::from_utf8_lossy(rest);
            let short: String = text.chars().take(SHOWN_CHARS).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("{short:?}{more}")
        }
        Some((&ARRAY, _)) => "an array".to_owned(),
        _ => "an object".to_owned(),
    }
}

fn shown_number(bytes: &[u8]) -> String {
    match number_of(bytes) {
        (_, Some(whole)) => whole.to_string(),
        (float, None) => format!("{float:?}"),
    }
}

/// A number: the greatest double that is not above it, and the number itself if it is whole and
/// about 64 bits.
fn number_of(bytes: &[u8]) -> (f64, Option<i128>) {
    let mut padded = [0; 10];
    padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, e, f, g, h, rest @ ..] = padded;
    let ordered = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let bits = if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !ordered };
    let float = f64::from_bits(bits);
    // Exact for 64-bit integers.
    let is_whole = float.fract() == 0.0 && float.abs() <= 2_f64.powi(64);
    (float, is_whole.then(|| float as i128 + i128::from(u16::from_be_bytes(rest))))
}

/// The ranges of values that satisfy a test; they do not overlap.
pub(crate) fn ranges(test: &PathTest) -> Vec<KeyRange> {
    match test {
        PathTest::Exists => vec![(Bound::Unbounded, Bound::Unbounded)],
        PathTest::In(values) => {
            let mut keys: Vec<Vec<u8>> = values.iter().filter_map(key_of).collect();
            keys.sort_unstable();
            keys.dedup();
            let range = |key: Vec<u8>| (Bound::Included(key.clone()), Bound::Included(key));
            keys.into_iter().map(range).collect()
        }
        PathTest::Within(low, high) => within(low, high).into_iter().collect(),
        PathTest::Begins(text) => {
            let mut key = Vec::new();
            push_text(text, &mut key);
            // UTF-8 has no byte 255.
            let mut end = key.clone();
            end.push(u8::MAX);
            vec![(Bound::Included(key), Bound::Excluded(end))]
        }
        PathTest::Filled => vec![
            (Bound::Included(vec![BOOL]), Bound::Excluded(vec![ARRAY])),
            (Bound::Included(NESTED.to_vec()), Bound::Excluded(vec![OBJECT + 1])),
        ],
        PathTest::Nested => {
            vec![(Bound::Included(NESTED.to_vec()), Bound::Included(NESTED.to_vec()))]
        }
        PathTest::Container => {
            vec![(Bound::Included(vec![ARRAY]), Bound::Excluded(vec![OBJECT + 1]))]
        }
    }
}

fn within(low: &Bound<PathValue>, high: &Bound<PathValue>) -> Option<KeyRange> {
    let key = |bound: &Bound<PathValue>| match bound {
        Bound::Unbounded => Some(Bound::Unbounded),
        Bound::Included(value) => key_of(value).map(Bound::Included),
        Bound::Excluded(value) => key_of(value).map(Bound::Excluded),
    };
    let (low, high) = (key(low)?, key(high)?);
    let kind = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => key.first().copied(),
    };
    let kind = match (kind(&low), kind(&high)) {
        (Some(one), Some(other)) if one != other => return None,
        (one, other) => one.or(other)?,
    };
    let low = match low {
        Bound::Unbounded => Bound::Included(vec![kind]),
        bound => bound,
    };
    let high = match high {
        Bound::Unbounded => Bound::Excluded(vec![kind + 1]),
        bound => bound,
    };
    Some((low, high))
}
