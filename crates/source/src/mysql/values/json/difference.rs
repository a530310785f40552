//! Partial updates: the differences between a JSON document and its new version.
//!
//! ```text
//! differences := difference*
//! difference  := operation:u8 length:packed path [length:packed document]
//! operation   := 0 replace | 1 insert | 2 remove, which has no document
//! path        := "$" leg+
//! leg         := "." name | "." quoted name | "[" number "]"
//! ```

use std::borrow::Cow;

use super::{super::Malformed, Json, MAX_DEPTH, binary};
use crate::mysql::bytes::Reader;

const REPLACE: u8 = 0;
const INSERT: u8 = 1;
const REMOVE: u8 = 2;

/// The differences of one column in one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Differences<'a>(&'a [u8]);

/// A step of a path.
#[derive(Debug, PartialEq)]
enum PathLeg {
    Key(String),
    Index(usize),
}

impl<'a> Differences<'a> {
    /// Reads the column's bytes in the row image.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn apply(self, document: &mut Json<'a>) -> Result<(), Malformed> {
        let mut reader = Reader::new(self.0);
        while reader.remaining() > 0 {
            let operation = reader.u8()?;
            let length = reader.packed_length()?;
            let path = std::str::from_utf8(reader.bytes(length)?).map_err(|_| Malformed)?;
            let value = match operation {
                REMOVE => None,
                _ => {
                    let length = reader.packed_length()?;
                    Some(binary::parse(reader.bytes(length)?)?)
                }
            };
            change(document, operation, &legs(path)?, value)?;
        }
        Ok(())
    }
}

fn change<'a>(
    document: &mut Json<'a>,
    operation: u8,
    legs: &[PathLeg],
    value: Option<Json<'a>>,
) -> Result<(), Malformed> {
    let Some((last, way)) = legs.split_last() else {
        *document = value.filter(|_| operation == REPLACE).ok_or(Malformed)?;
        return Ok(());
    };
    let parent = way.iter().try_fold(document, |at, leg| child(at, leg)).ok_or(Malformed)?;
    match (operation, value) {
        (REPLACE, Some(value)) => *child(parent, last).ok_or(Malformed)? = value,
        (INSERT, Some(value)) => insert(parent, last, value)?,
        (REMOVE, _) => remove(parent, last)?,
        _ => return Err(Malformed),
    }
    Ok(())
}

/// The child at a leg. Cell 0 of a value that is not an array is the value itself.
fn child<'d, 'a>(parent: &'d mut Json<'a>, leg: &PathLeg) -> Option<&'d mut Json<'a>> {
    match (leg, parent) {
        (PathLeg::Key(key), Json::Object(members)) => {
            members.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        (PathLeg::Index(index), Json::Array(elements)) => elements.get_mut(*index),
        (PathLeg::Index(0), other) => Some(other),
        _ => None,
    }
}

fn insert<'a>(parent: &mut Json<'a>, leg: &PathLeg, value: Json<'a>) -> Result<(), Malformed> {
    match (leg, parent) {
        (PathLeg::Key(key), Json::Object(members)) => {
            let order = |name: &str| (name.len(), name.as_bytes().to_vec());
            let at = members.partition_point(|(name, _)| order(name) < order(key));
            members.insert(at, (Cow::Owned(key.clone()), value));
        }
        (PathLeg::Index(index), Json::Array(elements)) => {
            elements.insert((*index).min(elements.len()), value);
        }
        _ => return Err(Malformed),
    }
    Ok(())
}

fn remove(parent: &mut Json<'_>, leg: &PathLeg) -> Result<(), Malformed> {
    match (leg, parent) {
        (PathLeg::Key(key), Json::Object(members)) => {
            let at = members.iter().position(|(name, _)| name == key).ok_or(Malformed)?;
            members.remove(at);
        }
        (PathLeg::Index(index), Json::Array(elements)) if *index < elements.len() => {
            elements.remove(*index);
        }
        _ => return Err(Malformed),
    }
    Ok(())
}

fn legs(path: &str) -> Result<Vec<PathLeg>, Malformed> {
    let mut legs = Vec::new();
    let mut rest = path.strip_prefix('$').ok_or(Malformed)?;
    while !rest.is_empty() && legs.len() < MAX_DEPTH {
        let (leg, behind) = leg(rest).ok_or(Malformed)?;
        legs.push(leg);
        rest = behind;
    }
    rest.is_empty().then_some(legs).ok_or(Malformed)
}

fn leg(path: &str) -> Option<(PathLeg, &str)> {
    if let Some(rest) = path.strip_prefix('[') {
        let (index, behind) = rest.split_once(']')?;
        return Some((PathLeg::Index(index.trim().parse().ok()?), behind));
    }
    let name = path.strip_prefix('.')?;
    if !name.starts_with('"') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (key, behind) = name.split_at(end);
        return Some((PathLeg::Key(key.to_owned()), behind));
    }
    let mut values = serde_json::Deserializer::from_str(name).into_iter::<String>();
    let key = values.next()?.ok()?;
    let behind = name.get(values.byte_offset()..)?;
    Some((PathLeg::Key(key), behind))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{json_is_no_text, json_text, updated_json_text},
        *,
    };

    /// `{"a": [1, 2], "bc": "x"}`
    const DOCUMENT: &[u8] = b"\0\x02\0\x25\0\x12\0\x01\0\x13\0\x02\0\x02\x15\0\x0c\x23\0abc\
        \x02\0\x0a\0\x05\x01\0\x05\x02\0\0\0\0\0\x01x";

    fn difference(operation: u8, path: &str, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![operation, path.len() as u8];
        bytes.extend_from_slice(path.as_bytes());
        if operation != REMOVE {
            bytes.push(value.len() as u8);
            bytes.extend_from_slice(value);
        }
        bytes
    }

    fn updated(differences: &[Vec<u8>]) -> String {
        let bytes = differences.concat();
        let text = updated_json_text(DOCUMENT, Differences::new(&bytes));
        text.map_or("refused".to_owned(), |text| text.to_string())
    }

    #[test]
    fn differences_are_applied_in_turn() {
        assert_eq!(&*json_text(DOCUMENT).unwrap(), r#"{"a": [1, 2], "bc": "x"}"#);
        let seven = b"\x05\x07\0";
        assert_eq!(updated(&[]), r#"{"a": [1, 2], "bc": "x"}"#);
        let replaced = updated(&[difference(REPLACE, "$.a[1]", seven)]);
        assert_eq!(replaced, r#"{"a": [1, 7], "bc": "x"}"#);
        let inserted = updated(&[
            difference(INSERT, "$.\"b\\\"\"", seven),
            difference(INSERT, "$.a[0]", seven),
            difference(REMOVE, "$.bc", b""),
        ]);
        assert_eq!(inserted, r#"{"a": [7, 1, 2], "b\"": 7}"#);
        assert_eq!(updated(&[difference(REPLACE, "$", seven)]), "7");
        assert_eq!(updated(&[difference(REMOVE, "$.zz", b"")]), "refused");
        assert_eq!(updated(&[difference(REPLACE, "$.a[9]", seven)]), "refused");
        assert_eq!(updated(&[difference(3, "$.a", seven)]), "refused");
        assert_eq!(updated(&[difference(REPLACE, "a", seven)]), "refused");
    }

    #[test]
    fn damaged_json_documents_never_panic() {
        for place in 0..DOCUMENT.len() {
            for byte in 0..=255 {
                let mut damaged = DOCUMENT.to_vec();
                damaged[place] = byte;
                let _ = json_text(&damaged);
            }
            let _ = json_text(&DOCUMENT[..place]);
        }
        // A key, a value.
        for text in [DOCUMENT.len() - 1, DOCUMENT.iter().position(|byte| *byte == b'b').unwrap()] {
            let mut damaged = DOCUMENT.to_vec();
            damaged[text] = 0xff;
            assert!(json_text(&damaged).is_err() && json_is_no_text(&damaged));
        }
        assert!(!json_is_no_text(DOCUMENT) && !json_is_no_text(&DOCUMENT[..5]));
        // An array that is its own element.
        assert!(json_text(b"\x02\x01\0\x07\0\x02\0\0").is_err());
    }
}
