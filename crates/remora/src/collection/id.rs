//! The ids of documents.

use std::fmt::{Debug, Display};

use remora_engine::{ColumnType, Value};

use crate::{Error, Result};

/// The most bytes of a text id.
const MAX_ID_BYTES: usize = 512;

/// The type of a collection's ids: numbers (`i64`), which are generated or given, or texts
/// (`String`) of 1 to 512 bytes, which are given. Texts are sorted by their bytes, which is also
/// the order of their code points. Two texts that differ in any byte are different ids.
///
/// ```
/// use remora::{Collection, DocumentId, Result};
/// use serde_json::json;
///
/// fn first<K: DocumentId>(collection: &Collection<K>) -> Result<Option<serde_json::Value>> {
///     let ids = collection.find("n > 1").limit(1).ids()?;
///     ids.first().map_or(Ok(None), |id| collection.get(id.given()))
/// }
/// let db = remora::Database::in_memory()?;
/// let (numbered, named) = (db.collection("numbered")?, db.keyed_collection("named")?);
/// numbered.insert(&json!({"n": 1}))?;
/// named.insert_as("Ann", &json!({"n": 2}))?;
/// assert_eq!((first(&numbered)?, first(&named)?), (None, Some(json!({"n": 2}))));
/// # Ok::<(), remora::Error>(())
/// ```
pub trait DocumentId: Clone + Debug + Display + Ord + Send + Sync + Sealed + 'static {
    /// The type of an id as an argument: `i64` or `&str`.
    type Given<'a>: Copy + Debug;

    /// The id as an argument.
    fn given(&self) -> Self::Given<'_>;

    /// The type of the id column.
    #[doc(hidden)]
    fn kind() -> ColumnType;

    /// The value in the id column.
    #[doc(hidden)]
    fn value(given: Self::Given<'_>) -> Result<Value>;

    /// The values to look up for an id. Other writers may have stored ids that this API would not
    /// accept.
    #[doc(hidden)]
    fn sought(given: Self::Given<'_>) -> Value;

    /// The id of a value in the id column.
    #[doc(hidden)]
    fn of(value: &Value) -> Option<Self>;
}

/// Prevents implementations for other types.
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
