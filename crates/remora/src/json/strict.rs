//! Parses the text of a document strictly: nothing of it is dropped and no integer is changed in silence, and each error
//! names the place. Other numbers become the nearest double.

use std::fmt;

use remora_engine::loses_digits;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::MAX_DEPTH;

/// The most names of a path in a message.
const SHOWN_NAMES: usize = 8;
/// The most characters of a name in a message.
const SHOWN_CHARS: usize = 40;
/// Parses a text.
///
/// # Errors
/// What is wrong, and where: the line, the column and, within objects and arrays, the path.
pub(super) fn parse(text: &str) -> Result<Json, String> {
    if let Some(at) = inexact_integer(text) {
        return Err(format!(
            "an integer beyond 64 bits would lose digits: give it as a text, {}",
            place(text, at)
        ));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let top = Node { depth: 1, above: None };
    let parsed = top.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    parsed.map_err(|error| error.to_string())
}

/// The line and the column of a byte, as serde_json counts them.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    format!("at line {line} column {column}")
}

/// The place of the first integer that neither 64 bits nor a double holds with all its digits. Cost: reads each byte
/// once.
fn inexact_integer(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut in_text) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'0'..=b'9' if !in_text => {
                let rest = bytes.get(at..).unwrap_or_default();
                let of_number =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let length = rest.iter().take_while(of_number).count();
                let signed = if at > 0 && bytes.get(at - 1) == Some(&b'-') { at - 1 } else { at };
                let number = text.get(signed..at + length).unwrap_or_default();
                if loses_digits(number) {
                    return Some(signed);
                }
                at += length.max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// A value to parse.
#[derive(Clone, Copy)]
struct Node<'n> {
    depth: usize,
    above: Option<&'n Above<'n>>,
}

/// The way to a value.
struct Above<'n> {
    name: Step<'n>,
    above: Option<&'n Self>,
}

enum Step<'n> {
    Name(&'n str),
    Place(usize),
}

impl Node<'_> {
    /// The path to this value, such as `author.names[2]`.
    fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut next = self.above;
        while let Some(above) = next {
            steps.push(&above.name);
            next = above.above;
        }
        let left_out = steps.len() > SHOWN_NAMES;
        let mut path = String::new();
        for step in steps.iter().rev().take(SHOWN_NAMES) {
            match step {
                Step::Name(name) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.extend(name.chars().take(SHOWN_CHARS));
                }
                Step::Place(place) => path.push_str(&format!("[{place}]")),
            }
        }
        path.push_str(if left_out { "…" } else { "" });
        path
    }

    /// An error with the path.
    fn error<E: serde::de::Error>(&self, what: impl fmt::Display) -> E {
        let path = self.path();
        match path.is_empty() {
            true => E::custom(what),
            false => E::custom(format_args!("{what}, in {path}")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Json, D::Error> {
        if self.depth > MAX_DEPTH {
            let what = format_args!(
                "the document nests deeper than {MAX_DEPTH} levels, which is the limit"
            );
            return Err(self.error(what));
        }
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        loop {
            let above = Above { name: Step::Place(elements.len()), above: self.above };
            let node = Node { depth: self.depth + 1, above: Some(&above) };
            match list.next_element_seed(node)? {
                Some(element) => elements.push(element),
                None => return Ok(Json::Array(elements)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.contains_key(&name) {
                let shown: String = name.chars().take(SHOWN_CHARS).collect();
                let what = format_args!("the name {shown:?} comes twice in an object: keep one");
                return Err(self.error(what));
            }
            let above = Above { name: Step::Name(&name), above: self.above };
            let node = Node { depth: self.depth + 1, above: Some(&above) };
            let value = map.next_value_seed(node)?;
            members.insert(name, value);
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100), "]".repeat(100));
        for (text, words) in [
            (
                "{\"a\": 1, \"b\": {\"c\": [0, {\"d\": 1, \"d\": 2}]}}",
                "the name \"d\" comes twice in an object: keep one, in b.c[1] at line 1 column 36",
            ),
            (
                "{\"a\": 1,\n \"a\": 1}",
                "the name \"a\" comes twice in an object: keep one at line 2 column 4",
            ),
            ("[1, \"\\ud83d\"]", "hex escape at line 1 column 12"),
            ("[1, \"\\udc00 \"]", "lone"),
            ("[1,\n 1e999]", "number out of range at line 2 column 6"),
            (
                "[18446744073709551616]",
                "beyond 64 bits would lose digits: give it as a text, at line 1 column 2",
            ),
            ("{\"n\":\n-9223372036854775809}", "at line 2 column 1"),
            ("{\"a\": [1, 2", "EOF while parsing a list at line 1 column"),
            ("{\"a\": \"x", "EOF while parsing a string at line 1 column"),
            ("{\"a\" 1}", "expected `:` at line 1 column"),
            ("{} {}", "trailing characters at line 1 column"),
            (
                deep.as_str(),
                "deeper than 100 levels, which is the limit, in a[0][0][0][0][0][0][0]… at line 1 column",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_that_keep_their_digits_are_taken() {
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            // As programs print doubles.
            "100000000000000000000",
            "-123456789012345680000",
            "1e300",
            "123456789012345678901.5",
            "\"99999999999999999999999\"",
            "{\"99999999999999999999999\": \"\\\"99999999999999999999999\"}",
        ] {
            assert_eq!(parse(text).unwrap(), serde_json::from_str::<Json>(text).unwrap(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_strict_is_parsed_as_usual(text in "[\\[\\]{}:,\"\\\\0-9e.\\-a ]{0,24}") {
            if let Ok(value) = parse(&text) {
                prop_assert_eq!(value, serde_json::from_str::<Json>(&text).unwrap());
            }
        }
    }
}
