//! What is a JSON document.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// Whether a text is a document that whoever reads it can parse: with numbers that there are and whole characters.
pub(super) fn is_document(text: &str) -> bool {
    serde_json::from_str::<Checked>(text).is_ok()
}

/// A document of which nothing is kept. What is ignored is not parsed: `1e999` and half of a surrogate pair would pass.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a document")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self, A::Error> {
        while elements.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_parsed_is_no_document() {
        for text in
            ["{\"a\": [1, -2.5e300, true, null, \"\\ud83d\\ude00\"]}", "18446744073709551615"]
        {
            assert!(is_document(text), "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["1e999", "[1, -1e999]", "\"\\ud800\"", "{\"\\udc00\": 1}", "{", "1 2", &deep] {
            assert!(!is_document(text), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
        }
    }
}
