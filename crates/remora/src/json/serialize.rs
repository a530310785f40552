//! Serializes a value to JSON text. It refuses what JSON cannot express: NaN, infinity, keys that
//! are not strings, and integers beyond 64 bits.
//!
//! The text is written while the value is visited, without an intermediate tree. Members are sorted
//! by name if they are not sorted already, and of duplicate names the last one wins. So the text of
//! a document depends only on its content.

use std::{borrow::Cow, ops::Range};

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::Value as Json;

use super::{MAX_BYTES, MAX_DEPTH, too_deep, too_long};
use crate::{Error, Result};

/// The least length of a value without its texts: a digit and a comma.
const VALUE_BYTES: usize = 2;
/// The initial capacity of a text.
const FIRST_BYTES: usize = 256;

/// Serializes a value to the text of a document, within the limits of documents.
pub(crate) fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    let text = serialized(value, MAX_BYTES)?;
    if text.len() > MAX_BYTES {
        return Err(too_long());
    }
    String::from_utf8(text).map_err(|error| Error::Corrupt(error.to_string().into()))
}

/// Converts a value to a document, within the limits of documents.
pub(crate) fn to_document<T: Serialize + ?Sized>(value: &T) -> Result<Json> {
    to_json(value, MAX_BYTES)
}

/// Converts a value to JSON of about `max_bytes` bytes at most.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Json> {
    let text = serialized(value, max_bytes)?;
    serde_json::from_slice(&text).map_err(|error| Error::Corrupt(error.to_string().into()))
}

fn serialized<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Vec<u8>> {
    let text = Vec::with_capacity(FIRST_BYTES);
    let mut output = Output { text, left: max_bytes, unsorted: Vec::new() };
    value.serialize(ToText { output: &mut output, depth: 1 })?;
    Ok(output.text)
}

/// The text that was written so far.
struct Output {
    text: Vec<u8>,
    /// The bytes that may still be written.
    left: usize,
    /// A buffer for sorting members, reused for the next object.
    unsorted: Vec<u8>,
}

impl Output {
    /// Writes a scalar in serde_json's form.
    fn write<T: Serialize + ?Sized>(&mut self, scalar: &T) -> Result<()> {
        serde_json::to_writer(&mut self.text, scalar)
            .map_err(|error| Error::request(error.to_string()))
    }
}

/// Writes a value at this depth.
struct ToText<'o> {
    output: &'o mut Output,
    depth: usize,
}

impl<'o> ToText<'o> {
    fn take(&mut self, bytes: usize) -> Result<()> {
        let left = self.output.left.checked_sub(bytes + VALUE_BYTES).ok_or_else(too_long)?;
        self.output.left = left;
        if self.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    fn scalar<T: Serialize + ?Sized>(mut self, value: &T) -> Result<()> {
        self.take(0)?;
        self.output.write(value)
    }

    /// Begins an enum variant with content. As usual in serde, it is an object with one member.
    fn variant(mut self, name: &'static str) -> Result<Self> {
        self.take(name.len())?;
        self.output.text.push(b'{');
        self.output.write(name)?;
        self.output.text.push(b':');
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn list(mut self, variant: Option<&'static str>) -> Result<List<'o>> {
        let is_variant = variant.is_some();
        match variant {
            Some(name) => self = self.variant(name)?,
            None => self.take(0)?,
        }
        self.output.text.push(b'[');
        Ok(List { output: self.output, depth: self.depth + 1, length: 0, is_variant })
    }

    fn members(mut self, variant: Option<&'static str>) -> Result<Members<'o>> {
        let is_variant = variant.is_some();
        match variant {
            Some(name) => self = self.variant(name)?,
            None => self.take(0)?,
        }
        let start = self.output.text.len();
        self.output.text.push(b'{');
        let depth = self.depth + 1;
        Ok(Members {
            output: self.output,
            depth,
            start,
            members: Vec::new(),
            key: None,
            is_variant,
        })
    }
}

/// An array being written.
struct List<'o> {
    output: &'o mut Output,
    /// The depth of its elements.
    depth: usize,
    /// How many of them are written.
    length: usize,
    is_variant: bool,
}

impl List<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let place = self.length;
        if place > 0 {
            self.output.text.push(b',');
        }
        self.length += 1;
        let written = value.serialize(ToText { output: self.output, depth: self.depth });
        written.map_err(|error| error.at(format!("[{place}]")))
    }

    fn finish(self) {
        self.output.text.push(b']');
        if self.is_variant {
            self.output.text.push(b'}');
        }
    }
}

/// An object being written.
struct Members<'o> {
    output: &'o mut Output,
    /// The depth of its members.
    depth: usize,
    /// The start of its text.
    start: usize,
    /// The names, with the range of each member's text relative to the start of the object's text.
    members: Vec<(Cow<'static, str>, Range<usize>)>,
    key: Option<String>,
    is_variant: bool,
}

impl Members<'_> {
    fn insert<T: Serialize + ?Sized>(&mut self, key: Cow<'static, str>, value: &T) -> Result<()> {
        let mut to = ToText { output: self.output, depth: self.depth };
        to.take(key.len())?;
        if !self.members.is_empty() {
            to.output.text.push(b',');
        }
        let first = to.output.text.len();
        to.output.write(&*key)?;
        to.output.text.push(b':');
        value.serialize(to).map_err(|error| error.at(format!("{key:?}")))?;
        let start = self.start + 1;
        self.members.push((key, first - start..self.output.text.len() - start));
        Ok(())
    }

    fn finish(mut self) {
        if !self.members.is_sorted_by(|(one, _), (other, _)| one < other) {
            self.sort();
        }
        self.output.text.push(b'}');
        if self.is_variant {
            self.output.text.push(b'}');
        }
    }

    /// Sorts the members by name. Of duplicate names the last one is kept.
    fn sort(&mut self) {
        let Output { text, unsorted, .. } = &mut *self.output;
        let start = (self.start + 1).min(text.len());
        unsorted.clear();
        unsorted.extend_from_slice(text.get(start..).unwrap_or_default());
        text.truncate(start);
        // Reversed, because removing duplicates keeps the first of them.
        self.members.reverse();
        self.members.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.members.dedup_by(|(one, _), (other, _)| one == other);
        for (_, span) in &self.members {
            if text.len() > start {
                text.push(b',');
            }
            text.extend_from_slice(unsorted.get(span.clone()).unwrap_or_default());
        }
    }
}

/// The name for a map's key.
fn name_of<T: Serialize + ?Sized>(key: &T, depth: usize, left: usize) -> Result<String> {
    // Its size is counted together with the value.
    let mut output = Output { text: Vec::new(), left, unsorted: Vec::new() };
    key.serialize(ToText { output: &mut output, depth })?;
    let quoted = output.text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    if let Some(Ok(plain)) = quoted.filter(|it| !it.contains(&b'\\')).map(str::from_utf8) {
        return Ok(plain.to_owned());
    }
    let refused = || Error::request("a map has a key that is no text, which JSON cannot hold");
    match serde_json::from_slice(&output.text).map_err(|_| refused())? {
        Json::String(text) => Ok(text),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(truth) => Ok(truth.to_string()),
        _ => Err(refused()),
    }
}

impl<'o> Serializer for ToText<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = List<'o>;
    type SerializeTuple = List<'o>;
    type SerializeTupleStruct = List<'o>;
    type SerializeTupleVariant = List<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Members<'o>;

    fn serialize_bool(self, truth: bool) -> Result<()> {
        self.scalar(&truth)
    }

    fn serialize_i8(self, number: i8) -> Result<()> {
        self.serialize_i64(number.into())
    }

    fn serialize_i16(self, number: i16) -> Result<()> {
        self.serialize_i64(number.into())
    }

    fn serialize_i32(self, number: i32) -> Result<()> {
        self.serialize_i64(number.into())
    }

    fn serialize_i64(self, number: i64) -> Result<()> {
        self.scalar(&number)
    }

    fn serialize_u8(self, number: u8) -> Result<()> {
        self.serialize_u64(number.into())
    }

    fn serialize_u16(self, number: u16) -> Result<()> {
        self.serialize_u64(number.into())
    }

    fn serialize_u32(self, number: u32) -> Result<()> {
        self.serialize_u64(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<()> {
        self.scalar(&number)
    }

    fn serialize_f32(self, number: f32) -> Result<()> {
        // The shortest digits that identify the f32, not those of the equal double.
        let shortest = number.to_string().parse().unwrap_or(f64::from(number));
        self.serialize_f64(shortest)
    }

    fn serialize_f64(self, number: f64) -> Result<()> {
        if !number.is_finite() {
            let message = format!("{number} is no number of JSON: leave it out or write null");
            return Err(Error::request(message));
        }
        self.scalar(&number)
    }

    fn serialize_char(self, letter: char) -> Result<()> {
        self.scalar(&letter)
    }

    fn serialize_str(mut self, text: &str) -> Result<()> {
        self.take(text.len())?;
        self.output.write(text)
    }

    fn serialize_bytes(mut self, bytes: &[u8]) -> Result<()> {
        self.take(bytes.len())?;
        self.output.write(bytes)
    }

    fn serialize_none(self) -> Result<()> {
        self.scalar(&())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.scalar(&())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.scalar(&())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let ToText { output, depth } = self.variant(variant)?;
        value.serialize(ToText { output: &mut *output, depth })?;
        output.text.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<List<'o>> {
        self.list(None)
    }

    fn serialize_tuple(self, _length: usize) -> Result<List<'o>> {
        self.list(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<List<'o>> {
        self.list(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<List<'o>> {
        self.list(Some(variant))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Members<'o>> {
        self.members(None)
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Members<'o>> {
        self.members(None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Members<'o>> {
        self.members(Some(variant))
    }
}

macro_rules! list_like {
    ($($kind:ident :: $push:ident,)*) => {$(
        impl $kind for List<'_> {
            type Ok = ();
            type Error = Error;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<()> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

list_like! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key = Some(name_of(key, self.depth, self.output.left)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key =
            self.key.take().ok_or_else(|| Error::request("a map has a value without a key"))?;
        self.insert(Cow::Owned(key), value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.insert(Cow::Borrowed(key), value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

impl SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.insert(Cow::Borrowed(key), value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Dot,
        Circle(f32),
        Line(u8, u8),
        Box { side: i64 },
    }

    #[test]
    fn values_are_what_serde_json_makes_of_them() {
        let shapes = [Shape::Dot, Shape::Circle(0.1), Shape::Line(1, 2), Shape::Box { side: -3 }];
        let expected = json!(["Dot", {"Circle": 0.1}, {"Line": [1, 2]}, {"Box": {"side": -3}}]);
        assert_eq!(to_document(&shapes).unwrap(), expected);
        let numbered = BTreeMap::from([(7, Some(u64::MAX)), (8, None)]);
        assert_eq!(to_document(&numbered).unwrap(), json!({"7": u64::MAX, "8": null}));
        let nested = json!({"a": [1, {"b": ["x", true, null, 1.5]}]});
        assert_eq!(to_document(&nested).unwrap(), nested);
    }

    /// Members in the given order.
    struct Given(Vec<(String, Json)>);

    impl Serialize for Given {
        fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
        }
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let scalar = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            proptest::num::f64::NORMAL.prop_map(Json::from),
            ".{0,6}".prop_map(Json::from),
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            let members = proptest::collection::vec(("[\"\\\\a-cé\n]{0,2}", inner.clone()), 0..5);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Json::from),
                members.prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_text_depends_only_on_what_the_document_says(
            members in proptest::collection::vec(("[\"\\\\a-cé\n]{0,2}", any_json()), 0..6),
        ) {
            let document = Json::Object(members.iter().cloned().collect());
            prop_assert_eq!(to_text(&Given(members)).unwrap(), document.to_string());
        }
    }

    #[test]
    fn members_of_variants_are_sorted_too() {
        #[derive(Serialize)]
        enum Change {
            Move { y: u8, x: Option<Box<Change>>, a: char },
        }
        let inner = Change::Move { y: 1, x: None, a: '"' };
        let outer = Change::Move { y: 2, x: Some(Box::new(inner)), a: 'b' };
        let expected = r#"{"Move":{"a":"b","x":{"Move":{"a":"\"","x":null,"y":1}},"y":2}}"#;
        assert_eq!(to_text(&outer).unwrap(), expected);
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let error = to_document(&BTreeMap::from([("x", number)])).unwrap_err().to_string();
            assert!(error.contains("\"x\"") && error.contains("no number of JSON"), "{error}");
        }
        let numbers = BTreeMap::from([("x", vec![vec![1.0], vec![1.0, f64::NAN]])]);
        let error = to_document(&numbers).unwrap_err().to_string();
        assert!(error.contains("\"x\": [1]: [1]: NaN is no number of JSON"), "{error}");
        let error = to_document(&BTreeMap::from([([1, 2], 1)])).unwrap_err().to_string();
        assert!(error.contains("no text"), "{error}");
        assert!(to_document(&i128::MAX).is_err());
        let long = to_document(&vec!["x".repeat(1 << 20); 17]).unwrap_err().to_string();
        assert!(long.contains("more than 16 MiB"), "{long}");
    }

    #[test]
    fn depth_has_a_limit() {
        let nested = |levels: usize| {
            (1..levels).fold(json!(1), |inner, level| match level % 2 {
                0 => json!([inner]),
                _ => json!({ "a": inner }),
            })
        };
        assert!(to_document(&nested(100)).is_ok());
        assert!(to_document(&nested(101)).unwrap_err().to_string().contains("deeper than 100"));
    }
}
