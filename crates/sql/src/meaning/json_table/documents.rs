//! The documents that an expression gives for the rows of a batch.

use datafusion::{
    arrow::{array::ArrayRef, datatypes::Field},
    error::Result as PlanResult,
};

use super::{JsonRoom, document_bytes};
use crate::{
    Result,
    meaning::{
        array::Column,
        json::{self, Json},
        types::ExprType,
        value::SqlValue,
    },
};

/// What JSON_TABLE is called in errors.
const NAME: &str = "json_table";

/// Documents, read one after the other.
pub(crate) struct Documents {
    column: Column,
}

impl Documents {
    /// Those of a column of this field.
    ///
    /// # Errors
    /// Where it is held as no value of the field's type is.
    pub(crate) fn new(array: &ArrayRef, field: &Field) -> PlanResult<Self> {
        Column::new(array, ExprType::of_field(field)).map(|column| Self { column })
    }

    /// The document of a row; `None` for NULL. `room` is told what it takes before it is read.
    ///
    /// # Errors
    /// What `room` says; 3141 for a text that is none, 3146 for a value of another type, 3144 for bytes.
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
