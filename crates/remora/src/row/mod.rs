//! Rows: values with the names of their columns.

#[cfg(feature = "sql")]
mod arrow;
mod deserialize;

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, Schema, Value};
use serde::de::DeserializeOwned;

#[cfg(feature = "sql")]
pub(crate) use arrow::batches;

use crate::{Error, Result};

/// The type of a column.
///
/// ```
/// use remora::{Database, Type};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// let found = birds.all().run()?;
/// let kinds: Vec<Type> = found.columns.iter().map(|column| column.kind).collect();
/// assert_eq!(kinds, [Type::Int, Type::Text]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// Only NULL: an expression that has no other value.
    Null,
    /// Signed 64-bit integers, also for narrower columns of SQL.
    Int,
    /// Unsigned 64-bit integers, also for narrower columns of SQL.
    Uint,
    /// 32-bit floats.
    Float,
    /// 64-bit floats.
    Double,
    /// Exact decimals: the digits in total (1 to 65), and after the point (0 to 38).
    Decimal(u8, u8),
    /// True or false.
    Bool,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// A date.
    Date,
    /// A duration in microseconds.
    Time,
    /// A date and a time of day, without a time zone.
    DateTime,
    /// A point in time.
    Timestamp,
    /// A JSON document.
    Json,
    /// 32-bit floats, four little-endian bytes each.
    Vector,
}

impl Type {
    pub(crate) fn of_engine(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int(_) => Self::Int,
            ColumnType::Uint(_) => Self::Uint,
            ColumnType::Float => Self::Float,
            ColumnType::Double => Self::Double,
            ColumnType::Decimal(digits, scale) => Self::Decimal(digits, scale),
            ColumnType::Bool => Self::Bool,
            ColumnType::Text => Self::Text,
            ColumnType::Bytes => Self::Bytes,
            ColumnType::Date => Self::Date,
            ColumnType::Time => Self::Time,
            ColumnType::DateTime => Self::DateTime,
            ColumnType::Timestamp => Self::Timestamp,
            ColumnType::Json => Self::Json,
        }
    }
}

/// A column of rows.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// let found = birds.all().run()?;
/// let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
/// assert_eq!(names, ["id", "name"]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, or the text of its expression.
    pub name: String,
    /// Its type.
    pub kind: Type,
}

impl Column {
    fn of_engine(column: &ColumnDef) -> Self {
        Self { name: column.name.clone(), kind: Type::of_engine(column.kind) }
    }
}

/// A row.
///
/// `row.deserialize::<T>()` converts it to a struct by the names of the columns. Fields can be
/// integers of any width and sign, floats, bool (also from 0 and 1), String, bytes and Option.
/// Decimals, dates and times are deserialized from text, decimals also from numbers. JSON is
/// deserialized from its content, or for a String as its text. A tuple takes the columns in their
/// order.
///
/// ```
/// use remora::Value;
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize)]
/// struct Bird {
///     id: i64,
///     name: String,
/// }
/// let db = remora::Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// let row = birds.get(1)?.ok_or("there is none")?;
/// assert_eq!((row.columns()[1].name.as_str(), &row.values()[0]), ("name", &Value::Int(1)));
/// assert_eq!(row.get::<String>("name")?, "Heron");
/// let bird: Bird = row.deserialize()?;
/// assert_eq!((bird.id, bird.name.as_str()), (1, "Heron"));
/// assert_eq!(row.into_values().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Arc<[Column]>,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(columns: Arc<[Column]>, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The values, in the order of the columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a column. NULL is [`Value::Null`]. Cost: a comparison of the name with each column's.
    ///
    /// ```
    /// # let rows = remora::Database::in_memory()?.query("SELECT 7 AS id, NULL AS name", [])?;
    /// let row = rows.first().ok_or("there is none")?;
    /// assert!(row.value("NAME")?.is_null());
    /// assert!(matches!(row.value("colour"), Err(remora::Error::NotFound(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] with the existing columns.
    pub fn value(&self, column: &str) -> Result<&Value> {
        self.place(column).map(|(_, value)| value)
    }

    /// The value of a column, deserialized. Cost: that of [`Row::value`], and a copy of the value.
    ///
    /// ```
    /// # let rows = remora::Database::in_memory()?.query("SELECT 7 AS id, NULL AS name", [])?;
    /// let row = rows.first().ok_or("there is none")?;
    /// assert_eq!((row.get::<u8>("id")?, row.get::<Option<String>>("name")?), (7, None));
    /// assert!(matches!(row.get::<String>("name"), Err(remora::Error::Request(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if the column does not exist, [`Error::Request`] if the value cannot be
    /// deserialized as `T`.
    pub fn get<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let (found, value) = self.place(column)?;
        deserialize::value(value, found.kind)
            .map_err(|error| error.at(format!("column {column:?}")))
    }

    /// Deserializes the row as a struct, a tuple, or, if it has one column, a value. Cost: a copy of the values.
    ///
    /// ```
    /// # let rows = remora::Database::in_memory()?.query("SELECT 7 AS id, 'Heron' AS name", [])?;
    /// let row = rows.first().ok_or("there is none")?;
    /// let (id, name): (u32, String) = row.deserialize()?;
    /// assert_eq!((id, name.as_str()), (7, "Heron"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] with the column whose value does not fit, or the missing field.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(deserialize::FromRow(self))
    }

    /// The values, in the order of the columns, without a copy.
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    fn place(&self, name: &str) -> Result<(&Column, &Value)> {
        let mut pairs = self.columns.iter().zip(&self.values);
        pairs.find(|(column, _)| column.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
            let message = format!("there is no column {name:?}: there are {}", names.join(", "));
            Error::NotFound(message.into())
        })
    }
}

/// The visible columns of a table.
pub(crate) fn columns_of(schema: &Schema) -> Arc<[Column]> {
    let shown = schema.columns.iter().enumerate().filter(|(place, _)| !schema.is_hidden(*place));
    shown.map(|(_, column)| Column::of_engine(column)).collect()
}

/// The columns of a table with these names, in their order.
pub(crate) fn columns_named(schema: &Schema, names: &[String]) -> Arc<[Column]> {
    let named = |name: &String| {
        let mut columns = schema.columns.iter();
        let found = columns.find(|column| column.name.eq_ignore_ascii_case(name));
        found.map_or_else(|| Column { name: name.clone(), kind: Type::Null }, Column::of_engine)
    };
    names.iter().map(named).collect()
}
