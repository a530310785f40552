//! Deserializes rows and values as Rust types.

use remora_engine::Value;
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, Visitor, value::SeqDeserializer,
    },
    forward_to_deserialize_any,
};

use super::{Column, Row, Type};
use crate::{Error, Result};

/// Deserializes a value of a column.
pub(super) fn value<T: DeserializeOwned>(value: &Value, kind: Type) -> Result<T> {
    T::deserialize(FromValue { value, kind })
}

/// The deserializer of a row.
pub(super) struct FromRow<'r>(pub &'r Row);

impl<'r> FromRow<'r> {
    fn pairs(&self) -> Pairs<'r> {
        Pairs { columns: self.0.columns.iter(), values: self.0.values.iter(), next: None }
    }

    /// The only value of a row with one column.
    fn single(&self) -> Result<FromValue<'r>> {
        match (&*self.0.columns, self.0.values.as_slice()) {
            ([column], [value]) => Ok(FromValue { value, kind: column.kind }),
            (columns, _) => Err(Error::request(format!(
                "a row of {} columns is read as a single value: read it as a struct or a tuple",
                columns.len()
            ))),
        }
    }
}

macro_rules! single_values {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.single()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for FromRow<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(self.pairs())
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(self.pairs())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value> {
        let columns = self.0.columns.len();
        if columns != length {
            let message = format!("a row of {columns} columns is read as a tuple of {length}");
            return Err(Error::request(message));
        }
        visitor.visit_seq(self.pairs())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.single() {
            Ok(single) => single.deserialize_option(visitor),
            Err(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.single()?.deserialize_enum(name, variants, visitor)
    }

    single_values! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf
    }

    forward_to_deserialize_any! {
        i128 u128 unit unit_struct map struct identifier ignored_any
    }
}

/// The columns of a row with their values, in order.
struct Pairs<'r> {
    columns: std::slice::Iter<'r, Column>,
    values: std::slice::Iter<'r, Value>,
    next: Option<(&'r Column, &'r Value)>,
}

impl<'r> Pairs<'r> {
    fn advance(&mut self) -> Option<(&'r Column, &'r Value)> {
        self.columns.next().zip(self.values.next())
    }
}

fn read<'de, S: DeserializeSeed<'de>>(
    seed: S,
    (column, value): (&Column, &Value),
) -> Result<S::Value> {
    let read = seed.deserialize(FromValue { value, kind: column.kind });
    read.map_err(|error: Error| error.at(format!("column {:?}", column.name)))
}

impl<'de> MapAccess<'de> for Pairs<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.next = self.advance();
        let name = self.next.map(|(column, _)| column.name.as_str());
        name.map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let pair =
            self.next.take().ok_or_else(|| Error::request("a value is read before its name"))?;
        read(seed, pair)
    }
}

impl<'de> SeqAccess<'de> for Pairs<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        self.advance().map(|pair| read(seed, pair)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// The deserializer of a value.
struct FromValue<'r> {
    value: &'r Value,
    kind: Type,
}

impl FromValue<'_> {
    fn wrong(&self, expected: &dyn serde::de::Expected) -> Error {
        let shown: String;
        let unexpected = match self.value {
            Value::Null => Unexpected::Other("NULL"),
            Value::Int(number) => Unexpected::Signed(*number),
            Value::Uint(number) => Unexpected::Unsigned(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Bool(truth) => Unexpected::Bool(*truth),
            Value::Bytes(bytes) => Unexpected::Bytes(bytes),
            other => {
                shown = other.to_string().chars().take(60).collect();
                Unexpected::Str(&shown)
            }
        };
        Error::invalid_type(unexpected, expected)
    }

    /// The value as an integer, if it is one.
    fn whole(&self) -> Option<i128> {
        match self.value {
            Value::Int(number) => Some((*number).into()),
            Value::Uint(number) => Some((*number).into()),
            Value::Bool(truth) => Some((*truth).into()),
            Value::Decimal(number) => {
                let (whole, fraction) =
                    number.as_str().split_once('.').unwrap_or((number.as_str(), ""));
                fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok())?
            }
            _ => None,
        }
    }

    fn visit_whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.kind == Type::Json {
            return self.visit_json(visitor);
        }
        match self.whole() {
            Some(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => Err(self.wrong(&visitor)),
            },
            None => Err(self.wrong(&visitor)),
        }
    }

    fn visit_float<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Decimal(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(self.wrong(&visitor)),
            },
            _ => self.visit_whole(visitor),
        }
    }

    /// Deserializes the content of a JSON document.
    fn visit_json<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.document()?.deserialize_any(visitor).map_err(of_json)
    }

    fn document(&self) -> Result<serde_json::Value> {
        match self.value {
            Value::Json(text) | Value::Text(text) => serde_json::from_str(text).map_err(of_json),
            Value::Null => Ok(serde_json::Value::Null),
            _ => Err(self.wrong(&"a JSON document")),
        }
    }
}

fn of_json(error: serde_json::Error) -> Error {
    Error::request(error.to_string())
}

macro_rules! read_as {
    ($inner:ident: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.$inner(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for FromValue<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Uint(number) => visitor.visit_u64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Text(text) => visitor.visit_str(text),
            Value::Bytes(_) if self.kind == Type::Vector => self.deserialize_seq(visitor),
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            Value::Json(_) => self.visit_json(visitor),
            other => visitor.visit_string(other.to_string()),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match (self.value, self.whole()) {
            (Value::Json(_), _) => self.visit_json(visitor),
            (_, Some(number @ (0 | 1))) => visitor.visit_bool(number == 1),
            _ => Err(self.wrong(&visitor)),
        }
    }

    read_as! { visit_whole:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i128 deserialize_u128
    }

    read_as! { visit_float: deserialize_f32 deserialize_f64 }

    read_as! { deserialize_string: deserialize_char deserialize_str deserialize_identifier }

    /// If a string is requested, JSON is given as its text.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            Value::Text(text) | Value::Json(text) => visitor.visit_str(text),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            Value::Text(text) | Value::Json(text) => visitor.visit_bytes(text.as_bytes()),
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match (self.value, self.kind) {
            (Value::Bytes(bytes), Type::Vector) => {
                let floats = bytes.chunks_exact(4).filter_map(|four| four.try_into().ok());
                visitor.visit_seq(SeqDeserializer::new(floats.map(f32::from_le_bytes)))
            }
            (Value::Bytes(bytes), _) => {
                visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied()))
            }
            (Value::Json(_), _) => self.visit_json(visitor),
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.value {
            Value::Text(text) => visitor.visit_enum((&**text).into_deserializer()),
            _ => self.document()?.deserialize_enum(name, variants, visitor).map_err(of_json),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit unit_struct map struct }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn row(values: Vec<(&str, Type, Value)>) -> Row {
        let columns =
            values.iter().map(|(name, kind, _)| Column { name: (*name).into(), kind: *kind });
        Row { columns: columns.collect(), values: values.iter().map(|it| it.2.clone()).collect() }
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Level {
        Low,
        High,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        a: i32,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wide {
        id: u64,
        small: i8,
        price: f64,
        price_text: String,
        open: bool,
        data: Vec<u8>,
        near: Vec<f32>,
        doc: Inner,
        raw: String,
        level: Level,
        gone: Option<String>,
    }

    fn wide() -> Row {
        let price = || Value::Decimal(remora_engine::Decimal::from_scaled(1_950, 2));
        row(vec![
            ("id", Type::Uint, Value::Uint(u64::MAX)),
            ("small", Type::Int, Value::Int(-8)),
            ("price", Type::Decimal(9, 2), price()),
            ("price_text", Type::Decimal(9, 2), price()),
            ("open", Type::Int, Value::Int(1)),
            ("data", Type::Bytes, Value::Bytes([0, 255].into())),
            ("near", Type::Vector, Value::Bytes([0, 0, 128, 63].into())),
            ("doc", Type::Json, Value::Json("{\"a\":3}".into())),
            ("raw", Type::Json, Value::Json("{\"a\":3}".into())),
            ("level", Type::Text, Value::Text("high".into())),
            ("gone", Type::Text, Value::Null),
            ("unasked", Type::Text, Value::Null),
        ])
    }

    #[test]
    fn structs_take_columns_by_name() {
        let expected = Wide {
            id: u64::MAX,
            small: -8,
            price: 19.5,
            price_text: "19.50".into(),
            open: true,
            data: vec![0, 255],
            near: vec![1.0],
            doc: Inner { a: 3 },
            raw: "{\"a\":3}".into(),
            level: Level::High,
            gone: None,
        };
        assert_eq!(wide().deserialize::<Wide>().unwrap(), expected);
        assert_eq!(wide().get::<f32>("price").unwrap(), 19.5);
    }

    #[test]
    fn what_does_not_fit_names_its_column() {
        let error = wide().get::<u8>("small").unwrap_err().to_string();
        assert!(error.contains("column \"small\"") && error.contains("-8"), "{error}");
        let error = wide().get::<i64>("raw").unwrap_err().to_string();
        assert!(error.contains("column \"raw\""), "{error}");
        let error = wide().value("nothing").unwrap_err().to_string();
        assert!(error.contains("\"nothing\"") && error.contains("price_text"), "{error}");
        #[derive(Debug, Deserialize)]
        struct Missing {
            #[expect(dead_code, reason = "only its name is asked for")]
            colour: String,
        }
        let error = wide().deserialize::<Missing>().unwrap_err().to_string();
        assert!(error.contains("colour"), "{error}");
        let error = row(vec![("n", Type::Int, Value::Null)]).deserialize::<i64>().unwrap_err();
        assert!(error.to_string().contains("NULL"), "{error}");
    }

    #[test]
    fn tuples_and_single_values_take_columns_in_order() {
        let two =
            row(vec![("a", Type::Int, Value::Int(7)), ("b", Type::Text, Value::Text("x".into()))]);
        assert_eq!(two.deserialize::<(i64, String)>().unwrap(), (7, "x".to_owned()));
        assert!(two.deserialize::<(i64,)>().is_err() && two.deserialize::<i64>().is_err());
        let one = row(vec![("count", Type::Int, Value::Int(7))]);
        assert_eq!(one.deserialize::<u32>().unwrap(), 7);
        assert_eq!(one.deserialize::<Option<u32>>().unwrap(), Some(7));
        assert_eq!(one.deserialize::<(u32,)>().unwrap(), (7,));
    }
}
