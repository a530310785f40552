//! Cursors: the last document of a page as opaque text, so that the next page starts behind it.
//!
//! ```text
//! cursor := base64url(body check:u32)                without padding; the check is a hash of the body
//! body   := version:u8 order:u32 value* id           order: a hash of the collection's name and the order
//! value  := 0 | 1 | 2 | 3 | 4 i64 | 5 u64 | 6 f64 | 7 length:u32 text | 8 | 9
//!           missing, null, false, true, numbers, a text, an array, an object
//! id     := 0 i64 | 1 text                           to the end
//! ```
//! Integers are little endian; there is one value for each path of the order. A cursor is a place in the order: it stays
//! valid when documents come and go, its own included.

use std::cmp::Ordering;

use remora_engine::{PathPlace, PathStart, PathValue, Value, from_url_base64, to_url_base64};
use serde_json::{Map, Number, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use super::DocumentId;
use crate::{
    Error, Field, Result,
    filter::{first_at, order},
};

const VERSION: u8 = 1;
/// The most characters of a cursor.
const MAX_CHARS: usize = 1 << 20;

/// What an order sees of a document: its values, in which all arrays are equal and all objects, and its id.
#[derive(Clone, Debug)]
pub(super) struct SortPlace<K> {
    pub values: Vec<Option<Json>>,
    pub id: K,
}

impl<K: DocumentId> SortPlace<K> {
    pub fn of(document: &Json, id: &K, sort: &[(Field, bool)]) -> Self {
        let value = |(path, _): &(Field, bool)| match first_at(path, document)? {
            Json::Array(_) => Some(Json::Array(Vec::new())),
            Json::Object(_) => Some(Json::Object(Map::new())),
            scalar => Some(scalar.clone()),
        };
        Self { values: sort.iter().map(value).collect(), id: id.clone() }
    }

    /// The order of two documents. Equal ones are in the order of their ids.
    pub fn compare(&self, other: &Self, sort: &[(Field, bool)]) -> Ordering {
        let values = self.values.iter().zip(&other.values).zip(sort);
        let ordered = values.map(|((a, b), (_, descending))| {
            let order = order(a.as_ref(), b.as_ref());
            if *descending { order.reverse() } else { order }
        });
        let mut unequal = ordered.filter(|order| order.is_ne());
        unequal.next().unwrap_or_else(|| self.id.cmp(&other.id))
    }

    /// The place as an index of the engine has it.
    pub fn to_start(&self) -> PathStart {
        let values = self.values.iter().map(|value| match value {
            None => PathPlace::Missing,
            Some(Json::Array(_)) => PathPlace::Array,
            Some(Json::Object(_)) => PathPlace::Object,
            Some(Json::Null) => PathPlace::Scalar(PathValue::Null),
            Some(Json::Bool(truth)) => PathPlace::Scalar(PathValue::Bool(*truth)),
            Some(Json::String(text)) => PathPlace::Scalar(PathValue::Text(text.clone())),
            Some(Json::Number(number)) => {
                PathPlace::Scalar(match (number.as_i64(), number.as_u64()) {
                    (Some(number), _) => PathValue::Int(number),
                    (_, Some(number)) => PathValue::Uint(number),
                    _ => PathValue::Float(number.as_f64().unwrap_or_default()),
                })
            }
        });
        PathStart {
            values: values.collect(),
            key: [K::sought(self.id.given())].into_iter().collect(),
        }
    }

    /// The cursor of this document; `None` if it would be longer than the limit.
    pub fn to_cursor(&self, collection: &str, sort: &[(Field, bool)]) -> Option<String> {
        let mut bytes = vec![VERSION];
        bytes.extend(order_hash::<K>(collection, sort).to_le_bytes());
        for value in &self.values {
            push_value(value.as_ref(), &mut bytes);
        }
        match K::sought(self.id.given()) {
            Value::Int(id) => {
                bytes.push(0);
                bytes.extend(id.to_le_bytes());
            }
            other => {
                bytes.push(1);
                bytes.extend(other.to_string().bytes());
            }
        }
        let check = short_hash(&bytes);
        bytes.extend(check.to_le_bytes());
        (bytes.len() <= MAX_CHARS / 4 * 3).then(|| to_url_base64(&bytes))
    }

    /// The place of a cursor that a page of this collection in this order had.
    ///
    /// # Errors
    /// [`Error::Request`] if it is of another collection or order, or none at all.
    pub fn of_cursor(cursor: &str, collection: &str, sort: &[(Field, bool)]) -> Result<Self> {
        let bytes = if cursor.len() > MAX_CHARS { None } else { from_url_base64(cursor) };
        let bytes = bytes.ok_or_else(malformed)?;
        let (body, check) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
        if short_hash(body) != u32::from_le_bytes(*check) {
            return Err(malformed());
        }
        let mut rest = body;
        let [version] = take(&mut rest).ok_or_else(malformed)?;
        let hash = u32::from_le_bytes(take(&mut rest).ok_or_else(malformed)?);
        if version != VERSION {
            return Err(Error::request(
                "the cursor was made by another version: start with the first page",
            ));
        }
        if hash != order_hash::<K>(collection, sort) {
            return Err(Error::request(
                "the cursor was made for another collection or another order",
            ));
        }
        let values: Option<_> = sort.iter().map(|_| value(&mut rest)).collect();
        let values = values.ok_or_else(malformed)?;
        let id = match take(&mut rest) {
            Some([0]) => take(&mut rest).map(|bytes| Value::Int(i64::from_le_bytes(bytes))),
            Some([1]) => std::str::from_utf8(rest).ok().map(|text| Value::Text(text.into())),
            _ => None,
        };
        let id = id.and_then(|id| K::of(&id)).ok_or_else(malformed)?;
        Ok(Self { values, id })
    }
}

fn push_value(value: Option<&Json>, out: &mut Vec<u8>) {
    match value {
        None => out.push(0),
        Some(Json::Null) => out.push(1),
        Some(Json::Bool(truth)) => out.push(2 + u8::from(*truth)),
        Some(Json::Number(number)) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => push_number(4, number.to_le_bytes(), out),
            (_, Some(number), _) => push_number(5, number.to_le_bytes(), out),
            (.., float) => push_number(6, float.unwrap_or_default().to_le_bytes(), out),
        },
        Some(Json::String(text)) => {
            out.push(7);
            out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(text.bytes());
        }
        Some(Json::Array(_)) => out.push(8),
        Some(Json::Object(_)) => out.push(9),
    }
}

fn push_number(tag: u8, bytes: [u8; 8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend(bytes);
}

/// Decodes a value from the front; `None` if there is none.
fn value(rest: &mut &[u8]) -> Option<Option<Json>> {
    Some(Some(match take(rest)? {
        [0] => return Some(None),
        [1] => Json::Null,
        [truth @ (2 | 3)] => Json::Bool(truth == 3),
        [4] => i64::from_le_bytes(take(rest)?).into(),
        [5] => u64::from_le_bytes(take(rest)?).into(),
        [6] => Json::Number(Number::from_f64(f64::from_le_bytes(take(rest)?))?),
        [7] => {
            let length = u32::from_le_bytes(take(rest)?) as usize;
            let (text, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Json::String(std::str::from_utf8(text).ok()?.to_owned())
        }
        [8] => Json::Array(Vec::new()),
        [9] => Json::Object(Map::new()),
        _ => return None,
    }))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*chunk)
}

/// A hash of what a cursor must have in common with a search.
fn order_hash<K: DocumentId>(collection: &str, sort: &[(Field, bool)]) -> u32 {
    let mut bytes = format!("{:?} {collection:?}", K::kind()).into_bytes();
    for (path, descending) in sort {
        bytes.extend(format!(" {:?} {descending}", path.names()).bytes());
    }
    short_hash(&bytes)
}

fn short_hash(bytes: &[u8]) -> u32 {
    // The last bytes of the hash.
    xxh3_64(bytes) as u32
}

fn malformed() -> Error {
    Error::request("the cursor is not one that a search gave: start with the first page")
}
