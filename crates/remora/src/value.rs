//! Converts Rust values to values of a database.

use std::sync::Arc;

use remora_engine::{Date, DateTime, Decimal, Value};

/// A type whose values can be parameters of a statement, keys, or operands of comparisons.
///
/// ```
/// use remora::{IntoValue, Value};
///
/// assert_eq!(7_u8.into_value(), Value::Uint(7));
/// assert_eq!("reef".into_value(), Value::Text("reef".into()));
/// assert_eq!(None::<i64>.into_value(), Value::Null);
/// ```
pub trait IntoValue {
    /// The database value.
    fn into_value(self) -> Value;
}

/// The parameters of a statement, in the order of its `?`.
///
/// ```
/// use remora::{Value, params};
///
/// let values = params![1, "reef", None::<i32>];
/// assert_eq!(values[2], Value::Null);
/// ```
#[macro_export]
macro_rules! params {
    () => { [] as [$crate::Value; 0] };
    ($($value:expr),+ $(,)?) => { [$($crate::IntoValue::into_value($value)),+] };
}

macro_rules! into_value {
    ($($kind:ty: |$from:ident| $value:expr,)*) => {$(
        impl IntoValue for $kind {
            fn into_value(self) -> Value {
                let $from = self;
                $value
            }
        }
    )*};
}

into_value! {
    Value: |value| value,
    bool: |truth| Value::Bool(truth),
    i8: |number| Value::Int(number.into()),
    i16: |number| Value::Int(number.into()),
    i32: |number| Value::Int(number.into()),
    i64: |number| Value::Int(number),
    isize: |number| Value::Int(number as i64),
    u8: |number| Value::Uint(number.into()),
    u16: |number| Value::Uint(number.into()),
    u32: |number| Value::Uint(number.into()),
    u64: |number| Value::Uint(number),
    usize: |number| Value::Uint(number as u64),
    f32: |number| Value::Float(number.into()),
    f64: |number| Value::Float(number),
    &str: |text| Value::Text(text.into()),
    String: |text| Value::Text(text.into()),
    &String: |text| Value::Text(text.as_str().into()),
    Arc<str>: |text| Value::Text(text),
    &[u8]: |bytes| Value::Bytes(bytes.into()),
    Vec<u8>: |bytes| Value::Bytes(bytes.into()),
    Decimal: |number| Value::Decimal(number),
    Date: |date| Value::Date(date),
    DateTime: |moment| Value::DateTime(moment),
    serde_json::Value: |document| Value::Json(document.to_string().into()),
}

impl IntoValue for &Value {
    fn into_value(self) -> Value {
        self.clone()
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, T::into_value)
    }
}

/// A primary key: one value, or a tuple with a value for each of its columns.
///
/// ```
/// use remora::{IntoKey, Value};
///
/// assert_eq!(7.into_key(), [Value::Int(7)]);
/// assert_eq!(("reef", 7).into_key(), [Value::Text("reef".into()), Value::Int(7)]);
/// ```
pub trait IntoKey {
    /// The values, in the order of the key's columns.
    fn into_key(self) -> Vec<Value>;
}

impl<T: IntoValue> IntoKey for T {
    fn into_key(self) -> Vec<Value> {
        vec![self.into_value()]
    }
}

/// A key with any number of columns.
impl IntoKey for Vec<Value> {
    fn into_key(self) -> Vec<Value> {
        self
    }
}

impl<A: IntoValue, B: IntoValue> IntoKey for (A, B) {
    fn into_key(self) -> Vec<Value> {
        vec![self.0.into_value(), self.1.into_value()]
    }
}

impl<A: IntoValue, B: IntoValue, C: IntoValue> IntoKey for (A, B, C) {
    fn into_key(self) -> Vec<Value> {
        vec![self.0.into_value(), self.1.into_value(), self.2.into_value()]
    }
}
