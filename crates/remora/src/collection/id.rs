//! The ids of documents.

use std::fmt::{Debug, Display};

use remora_engine::{ColumnType, Value};

use crate::{Error, Result};

/// Most bytes of an id that is a text.
const MAX_ID_BYTES: usize = 512;

/// What the documents of a collection are known by: numbers (`i64`), which are made or given, or texts (`String`) of 1
/// to 512 bytes, which are given. Texts are in the order of their bytes, which is that of their characters' numbers, and
/// two that differ in any byte are two ids.
pub trait DocumentId: Clone + Debug + Display + Ord + Send + Sync + Sealed + 'static {
    /// As it is given to calls: an `i64`, or a `&str`.
    type Given<'a>: Copy + Debug;

    /// The id as it is given to calls.
    fn given(&self) -> Self::Given<'_>;

    /// The type of the column that holds them.
    #[doc(hidden)]
    fn kind() -> ColumnType;

    /// The id as the column holds it.
    #[doc(hidden)]
    fn value(given: Self::Given<'_>) -> Result<Value>;

    /// What is looked up by an id: others may have written ids that are not given here.
    #[doc(hidden)]
    fn sought(given: Self::Given<'_>) -> Value;

    /// The id that the column holds.
    #[doc(hidden)]
    fn of(value: &Value) -> Option<Self>;
}

/// Nothing else is an id.
pub trait Sealed {}

impl Sealed for i64 {}
impl Sealed for String {}

impl DocumentId for i64 {
    type Given<'a> = i64;

    fn given(&self) -> i64 {
        *self
    }

    fn kind() -> ColumnType {
        ColumnType::Int(64)
    }

    fn value(given: i64) -> Result<Value> {
        Ok(Self::sought(given))
    }

    fn sought(given: i64) -> Value {
        Value::Int(given)
    }

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(id) => Some(*id),
            _ => None,
        }
    }
}

impl DocumentId for String {
    type Given<'a> = &'a str;

    fn given(&self) -> &str {
        self
    }

    fn kind() -> ColumnType {
        ColumnType::Text
    }

    fn value(given: &str) -> Result<Value> {
        if (1..=MAX_ID_BYTES).contains(&given.len()) {
            return Ok(Self::sought(given));
        }
        let shown: String = given.chars().take(40).collect();
        let bytes = given.len();
        Err(Error::request(format!("an id has 1 to {MAX_ID_BYTES} bytes: {shown:?} has {bytes}")))
    }

    fn sought(given: &str) -> Value {
        Value::Text(given.into())
    }

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Text(id) => Some(id.to_string()),
            _ => None,
        }
    }
}
