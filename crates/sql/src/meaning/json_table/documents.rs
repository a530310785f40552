//! The documents in a column of a batch.

use datafusion::{
    arrow::{array::ArrayRef, datatypes::Field},
    error::Result as PlanResult,
};

use super::{JsonRoom, document_bytes};
use crate::{
    Result,
    meaning::{
        array::ArrayColumn,
        json::{self, Json},
        types::ExprType,
        value::SqlValue,
    },
};

/// The function's name in errors.
const NAME: &str = "json_table";

/// A column of documents, parsed one by one.
pub(crate) struct Documents {
    column: ArrayColumn,
}

impl Documents {
    /// The documents of a column with this field.
    ///
    /// # Errors
    /// If the array is not of the field's type.
    pub(crate) fn new(array: &ArrayRef, field: &Field) -> PlanResult<Self> {
        ArrayColumn::new(array, ExprType::of_field(field)).map(|column| Self { column })
    }

    /// The document in a row; `None` for NULL. Its approximate size is reported to `room` before it
    /// is parsed.
    ///
    /// # Errors
    /// Errors of `room`; 3141 for invalid text, 3146 for a value of another type, 3144 for bytes.
    pub(crate) fn get(&self, row: usize, room: &mut JsonRoom<'_>) -> Result<Option<Json>> {
        let value = self.column.get(row);
        match &value {
            SqlValue::Null => return Ok(None),
            SqlValue::Json(text) | SqlValue::Text(text) => room(document_bytes(text))?,
            _ => {}
        }
        json::argument(&value, 1, NAME).map(Some)
    }
}
