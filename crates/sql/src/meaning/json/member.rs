//! Reads a member of a document directly from the document's text. Everything outside the path is
//! skipped without building values; if the text may be invalid, the skipped parts are validated.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::{Json, PathStep};

/// The value at a path of keys in a document's text; the same as [`Path::find`](super::Path::find)
/// finds in the parsed document. Of duplicate keys the last counts. `None` also for invalid text.
///
/// Cost: one pass over the text, plus the value found.
pub(crate) fn member(text: &str, path: &[PathStep]) -> Option<Json> {
    read(text, RemainingPath { path, is_checked: false }).ok().flatten()
}

/// Likewise for text that may be invalid: returns an error wherever [`Json::parse`] does.
pub(crate) fn checked_member(
    text: &str,
    path: &[PathStep],
) -> Result<Option<Json>, serde_json::Error> {
    read(text, RemainingPath { path, is_checked: true })
}

fn read(text: &str, along: RemainingPath<'_>) -> Result<Option<Json>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = along.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(found)
}

/// The rest of the path while reading.
#[derive(Clone, Copy)]
struct RemainingPath<'p> {
    /// Keys only.
    path: &'p [PathStep],
    /// Whether skipped parts are validated.
    is_checked: bool,
}

impl<'de> DeserializeSeed<'de> for RemainingPath<'_> {
    type Value = Option<Json>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.path {
            [] => {
                let value = serde_json::Value::deserialize(deserializer)?;
                Ok(Some(Json::from_parsed(value)))
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for RemainingPath<'_> {
    type Value = Option<Json>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (wanted, rest) = match self.path {
            [PathStep::Key(key), rest @ ..] => (Some(key.as_str()), rest),
            _ => (None, self.path),
        };
        let mut found = None;
        while let Some(is_wanted) = members.next_key_seed(IsKey(wanted))? {
            if is_wanted {
                found = members.next_value_seed(RemainingPath { path: rest, ..self })?;
            } else if self.is_checked {
                members.next_value::<Checked>()?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        match self.is_checked {
            true => while values.next_element::<Checked>()?.is_some() {},
            false => while values.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A value that is validated and dropped. Unlike [`IgnoredAny`] it rejects what parsing rejects:
/// numbers out of range, unpaired surrogates, nesting that is too deep.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Self;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
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
}

/// Whether a member has the sought key.
struct IsKey<'p>(Option<&'p str>);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(self.0 == Some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Path, *};

    #[test]
    fn a_member_is_what_the_whole_document_has() {
        let documents = [
            "{}",
            "[]",
            "null",
            "7",
            r#""a""#,
            r#"{"a": 1}"#,
            r#"{"b": [1, {"a": 2}], "a": {"b": "x\n\u00e4", "c": null}, "c": 1.5}"#,
            r#"{"a": {"b": 1}, "a": {"c": 2}}"#,
            r#"{"a": {"b": 1}, "a": 7}"#,
            r#"{"\u0061": {"b": true}}"#,
            r#"{"a": [{"b": 1}], "ä \" b": 18446744073709551615}"#,
            r#"{"a": {"b": {"c": [1, 2.0, {"d": -1}]}}}"#,
            r#"{"a": 1"#,
            r#"{"a": 1} x"#,
        ];
        let paths = ["$.a", "$.b", "$.c", "$.a.b", "$.a.c", "$.a.b.c", r#"$."ä \" b""#, "$"];
        for document in documents {
            for path in paths.map(|path| Path::parse(path).unwrap()) {
                let whole = Json::parse(document).ok();
                let found = whole.as_ref().and_then(|whole| path.find(whole).first().copied());
                assert_eq!(member(document, &path.steps).as_ref(), found, "{document} {path:?}");
                let checked = checked_member(document, &path.steps);
                assert_eq!(checked.is_ok(), whole.is_some(), "{document} {path:?}");
                assert_eq!(checked.ok().flatten().as_ref(), found, "{document} {path:?}");
            }
        }
    }

    #[test]
    fn what_no_document_holds_is_an_error_wherever_it_is() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let values =
            ["1e999", r#""\ud800""#, "01", "nul", "[1,]", "\"\t\"", deep.as_str(), "-", "{1: 2}"];
        let path = Path::parse("$.a").unwrap();
        for value in values {
            let objects =
                ["{\"b\": _, \"a\": 1}", "{\"a\": _}", "[[_]]", "{\"b\": [{\"c\": _}]}", "_"];
            for document in objects.map(|object| object.replace('_', value)) {
                assert!(Json::parse(&document).is_err(), "{document}");
                assert!(checked_member(&document, &path.steps).is_err(), "{document}");
            }
        }
    }
}
