//! Rows: values under the names of their columns.

#[cfg(feature = "sql")]
mod arrow;
mod deserialize;

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, Schema, Value};
use serde::de::DeserializeOwned;

#[cfg(feature = "sql")]
pub(crate) use arrow::batches;

use crate::{Error, Result};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// NULL alone: of an expression that is nothing else.
    Null,
    /// Signed integers of 64 bits; narrower columns of SQL too.
    Int,
    /// Unsigned integers of 64 bits; narrower columns of SQL too.
    Uint,
    /// 32-bit floats.
    Float,
    /// 64-bit floats.
    Double,
    /// Exact decimals: digits in all (1 to 65), digits behind the point (0 to 38).
    Decimal(u8, u8),
    /// True or false.
    Bool,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// A date.
    Date,
    /// A span of time, in microseconds.
    Time,
    /// A date and a time of day, without a zone.
    DateTime,
    /// A moment.
    Timestamp,
    /// A JSON document.
    Json,
    /// 32-bit floats one behind the other, four bytes each, the least first.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, or the text of the expression.
    pub name: String,
    /// What it holds.
    pub kind: Type,
}

impl Column {
    fn of_engine(column: &ColumnDef) -> Self {
        Self { name: column.name.clone(), kind: Type::of_engine(column.kind) }
    }
}

/// One row.
///
/// `row.deserialize::<T>()` makes a struct of it by the names of its columns: integers of every
/// width and sign, floats, bool (also of 0 and 1), String, bytes, Option. Decimals, dates and times
/// are read as text or by types that read themselves from text, decimals as numbers too; JSON is
/// read as what is in it, or as its text into a String. A tuple takes the columns in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Arc<[Column]>,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(columns: Arc<[Column]>, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// Its columns, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Its values, in the order of the columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a column; NULL is [`Value::Null`].
    ///
    /// # Errors
    /// [`Error::NotFound`] names the columns that there are.
    pub fn value(&self, column: &str) -> Result<&Value> {
        self.place(column).map(|(_, value)| value)
    }

    /// The value of a column as a Rust type.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such column, [`Error::Request`] if its value is none of `T`.
    pub fn get<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let (found, value) = self.place(column)?;
        deserialize::value(value, found.kind)
            .map_err(|error| error.at(format!("column {column:?}")))
    }

    /// The row as a struct, a tuple, or, of one column, its value.
    ///
    /// # Errors
    /// [`Error::Request`] names the column whose value does not fit, or the field that is missing.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(deserialize::FromRow(self))
    }

    /// Its values.
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

/// The columns of a table that are shown.
pub(crate) fn columns_of(schema: &Schema) -> Arc<[Column]> {
    let shown = schema.columns.iter().enumerate().filter(|(place, _)| !schema.is_hidden(*place));
    shown.map(|(_, column)| Column::of_engine(column)).collect()
}

/// The columns of a table that have these names, in their order.
pub(crate) fn columns_named(schema: &Schema, names: &[String]) -> Arc<[Column]> {
    let named = |name: &String| {
        let mut columns = schema.columns.iter();
        let found = columns.find(|column| column.name.eq_ignore_ascii_case(name));
        found.map_or_else(|| Column { name: name.clone(), kind: Type::Null }, Column::of_engine)
    };
    names.iter().map(named).collect()
}
