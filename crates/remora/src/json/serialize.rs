//! Serialises a value to JSON. What JSON cannot express is refused: NaN, infinity, keys that are not strings, and
//! integers beyond 64 bits.

use std::cell::Cell;

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::{Map, Number, Value as Json};

use super::{MAX_BYTES, MAX_DEPTH, too_deep, too_long};
use crate::{Error, Result};

/// What a value takes at least beside the bytes of its texts: a digit and a comma.
const VALUE_BYTES: usize = 2;

/// The document that a value is, within a document's limits.
pub(crate) fn to_document<T: Serialize + ?Sized>(value: &T) -> Result<Json> {
    to_json(value, MAX_BYTES)
}

/// The JSON that a value is, of about so many bytes at most.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Json> {
    let left = Cell::new(max_bytes);
    value.serialize(ToJson { depth: 1, left: &left })
}

/// Makes JSON of a value that stands so deep.
#[derive(Clone, Copy)]
struct ToJson<'c> {
    depth: usize,
    /// Bytes that there is still room for.
    left: &'c Cell<usize>,
}

impl<'c> ToJson<'c> {
    fn take(self, bytes: usize) -> Result<()> {
        let left = self.left.get().checked_sub(bytes + VALUE_BYTES).ok_or_else(too_long)?;
        self.left.set(left);
        if self.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    fn scalar(self, value: Json) -> Result<Json> {
        self.take(0)?;
        Ok(value)
    }

    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn list(self, variant: Option<&'static str>) -> Result<List<'c>> {
        self.take(variant.map_or(0, str::len))?;
        let inner = if variant.is_some() { self.below() } else { self };
        Ok(List { to: inner.below(), values: Vec::new(), variant })
    }

    fn members(self, variant: Option<&'static str>) -> Result<Members<'c>> {
        self.take(variant.map_or(0, str::len))?;
        let inner = if variant.is_some() { self.below() } else { self };
        Ok(Members { to: inner.below(), members: Map::new(), key: None, variant })
    }
}

/// An array that is being made.
struct List<'c> {
    to: ToJson<'c>,
    values: Vec<Json>,
    variant: Option<&'static str>,
}

impl List<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.values.push(value.serialize(self.to)?);
        Ok(())
    }

    fn finish(self) -> Json {
        tagged(self.variant, Json::Array(self.values))
    }
}

/// An object that is being made.
struct Members<'c> {
    to: ToJson<'c>,
    members: Map<String, Json>,
    key: Option<String>,
    variant: Option<&'static str>,
}

impl Members<'_> {
    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<()> {
        self.to.take(key.len())?;
        let value = value.serialize(self.to).map_err(|error| error.at(format!("{key:?}")))?;
        self.members.insert(key, value);
        Ok(())
    }

    fn finish(self) -> Json {
        tagged(self.variant, Json::Object(self.members))
    }
}

/// An enum's variant with content is an object of one member, as everywhere in serde.
fn tagged(variant: Option<&'static str>, value: Json) -> Json {
    match variant {
        Some(name) => Json::Object(Map::from_iter([(name.to_owned(), value)])),
        None => value,
    }
}

fn key_of(value: Json) -> Result<String> {
    match value {
        Json::String(text) => Ok(text),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(truth) => Ok(truth.to_string()),
        _ => Err(Error::request("a map has a key that is no text, which JSON cannot hold")),
    }
}

fn finite(number: f64) -> Result<Json> {
    Number::from_f64(number).map(Json::Number).ok_or_else(|| {
        Error::request(format!("{number} is no number of JSON: leave it out or write null"))
    })
}

impl<'c> Serializer for ToJson<'c> {
    type Ok = Json;
    type Error = Error;
    type SerializeSeq = List<'c>;
    type SerializeTuple = List<'c>;
    type SerializeTupleStruct = List<'c>;
    type SerializeTupleVariant = List<'c>;
    type SerializeMap = Members<'c>;
    type SerializeStruct = Members<'c>;
    type SerializeStructVariant = Members<'c>;

    fn serialize_bool(self, truth: bool) -> Result<Json> {
        self.scalar(Json::Bool(truth))
    }

    fn serialize_i8(self, number: i8) -> Result<Json> {
        self.serialize_i64(number.into())
    }

    fn serialize_i16(self, number: i16) -> Result<Json> {
        self.serialize_i64(number.into())
    }

    fn serialize_i32(self, number: i32) -> Result<Json> {
        self.serialize_i64(number.into())
    }

    fn serialize_i64(self, number: i64) -> Result<Json> {
        self.scalar(number.into())
    }

    fn serialize_u8(self, number: u8) -> Result<Json> {
        self.serialize_u64(number.into())
    }

    fn serialize_u16(self, number: u16) -> Result<Json> {
        self.serialize_u64(number.into())
    }

    fn serialize_u32(self, number: u32) -> Result<Json> {
        self.serialize_u64(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<Json> {
        self.scalar(number.into())
    }

    fn serialize_f32(self, number: f32) -> Result<Json> {
        // The shortest digits that mean it, not those of the double that is the same.
        let shortest = number.to_string().parse().unwrap_or(f64::from(number));
        self.serialize_f64(shortest)
    }

    fn serialize_f64(self, number: f64) -> Result<Json> {
        self.scalar(finite(number)?)
    }

    fn serialize_char(self, letter: char) -> Result<Json> {
        self.scalar(Json::String(letter.to_string()))
    }

    fn serialize_str(self, text: &str) -> Result<Json> {
        self.take(text.len())?;
        Ok(Json::String(text.to_owned()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Json> {
        self.take(bytes.len())?;
        Ok(Json::Array(bytes.iter().map(|byte| Json::from(*byte)).collect()))
    }

    fn serialize_none(self) -> Result<Json> {
        self.scalar(Json::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Json> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Json> {
        self.scalar(Json::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Json> {
        self.scalar(Json::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Json> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Json> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Json> {
        self.take(variant.len())?;
        Ok(tagged(Some(variant), value.serialize(self.below())?))
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<List<'c>> {
        self.list(None)
    }

    fn serialize_tuple(self, _length: usize) -> Result<List<'c>> {
        self.list(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<List<'c>> {
        self.list(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<List<'c>> {
        self.list(Some(variant))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Members<'c>> {
        self.members(None)
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Members<'c>> {
        self.members(None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Members<'c>> {
        self.members(Some(variant))
    }
}

macro_rules! list_like {
    ($($kind:ident :: $push:ident,)*) => {$(
        impl $kind for List<'_> {
            type Ok = Json;
            type Error = Error;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<Json> {
                Ok(self.finish())
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
    type Ok = Json;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        // It is counted with its value.
        let left = self.to.left.get();
        self.key = Some(key_of(key.serialize(self.to)?)?);
        self.to.left.set(left);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key =
            self.key.take().ok_or_else(|| Error::request("a map has a value without a key"))?;
        self.insert(key, value)
    }

    fn end(self) -> Result<Json> {
        Ok(self.finish())
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = Json;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.insert(key.to_owned(), value)
    }

    fn end(self) -> Result<Json> {
        Ok(self.finish())
    }
}

impl SerializeStructVariant for Members<'_> {
    type Ok = Json;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.insert(key.to_owned(), value)
    }

    fn end(self) -> Result<Json> {
        Ok(self.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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

    #[test]
    fn what_json_cannot_say_is_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let error = to_document(&BTreeMap::from([("x", number)])).unwrap_err().to_string();
            assert!(error.contains("\"x\"") && error.contains("no number of JSON"), "{error}");
        }
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
