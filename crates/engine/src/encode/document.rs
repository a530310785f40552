//! JSON documents, parsed once when they are written: for validation and for their indexed paths.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::walk::JsonNode;

/// A parsed document. Texts without escapes are borrowed from the source text.
#[derive(Debug, PartialEq)]
pub(crate) enum Document<'t> {
    /// `null`
    Null,
    /// `false` or `true`
    Bool(bool),
    /// An integer that fits into 64 signed bits.
    Int(i64),
    /// An integer above those that fits into 64 unsigned bits.
    Uint(u64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'t, str>),
    /// The elements.
    Array(Vec<Document<'t>>),
    /// The members in order; if a name repeats, the last member counts.
    Object(Vec<(Cow<'t, str>, Document<'t>)>),
}

impl<'t> Document<'t> {
    /// Parses a text; `None` if it is not valid JSON, or has numbers out of range or unpaired surrogates, because
    /// later readers must be able to parse it.
    pub fn parse(text: &'t str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The most digits that every integer of 64 bits has.
const SAFE_DIGITS: usize = 18;
/// The most digits, without zeros at the end, that a double surely tells apart from others.
const DOUBLE_DIGITS: usize = 17;

/// Whether the text of a JSON number is an integer that neither 64 bits nor a double holds with all its digits.
///
/// # Examples
///
/// ```
/// use remora_engine::loses_digits;
///
/// assert!(loses_digits("18446744073709551616"));
/// assert!(!loses_digits("18446744073709551615") && !loses_digits("100000000000000000000"));
/// ```
pub fn loses_digits(number: &str) -> bool {
    if number.len() <= SAFE_DIGITS {
        return false;
    }
    let digits = number.trim_start_matches('-');
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    let fits = || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    is_integer && !fits() && digits.trim_end_matches('0').len() > DOUBLE_DIGITS
}

impl JsonNode for Document<'_> {
    fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(other, _)| other == name).map(|(_, member)| member)
    }

    fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Document<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyDocument)
    }
}

struct AnyDocument;

impl<'de> Visitor<'de> for AnyDocument {
    type Value = Document<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a document")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(Document::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Document::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(Document::Uint(number), Document::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Document::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Document::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Document::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = parts.next_element()? {
            elements.push(element);
        }
        Ok(Document::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), member)) = parts.next_entry()? {
            members.push((name, member));
        }
        Ok(Document::Object(members))
    }
}

/// A member's name. A separate type, because serde copies texts of type `Cow`.
struct Name<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AnyName)
    }
}

struct AnyName;

impl<'de> Visitor<'de> for AnyName {
    type Value = Name<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_json_is_not_a_document() {
        for text in
            ["{\"a\": [1, -2.5e300, true, null, \"\\ud83d\\ude00\"]}", "18446744073709551615"]
        {
            assert!(Document::parse(text).is_some(), "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["1e999", "[1, -1e999]", "\"\\ud800\"", "{\"\\udc00\": 1}", "{", "1 2", &deep] {
            assert!(Document::parse(text).is_none(), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn last_of_duplicate_members_wins() {
        let document = Document::parse(r#"{"a": 1, "\u0061": [2], "b": "x\n"}"#).unwrap();
        assert_eq!(document.member("a"), Some(&Document::Array(vec![Document::Int(2)])));
        assert_eq!(document.member("b"), Some(&Document::Text("x\n".into())));
        assert!(document.member("c").is_none() && document.elements().is_none());
    }
}
