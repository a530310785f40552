//! An in-memory table for one statement: columns with MySQL's types, and rows of values.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{
            ArrayRef, BinaryViewArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
            StringViewArray, UInt64Array, new_null_array,
        },
        compute::cast,
        datatypes::{DataType, Field, Schema, SchemaRef},
    },
    catalog::TableProvider,
    datasource::MemTable,
};
use remora_engine::Value;
use remora_mysql::{Collation, messages};

use crate::{
    Column, Error, Reply, Result,
    catalog::{ColumnSpec, Origin, TableName, parse_column},
    error::from_plan,
    meaning::{expr_type, temporal::Moment, types::ExprType},
    output,
};

/// Columns and rows of a result.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    name: TableName,
    columns: Vec<(String, ExprType)>,
    /// The rows. Each has as many values as there are columns.
    pub(super) rows: Vec<Vec<Value>>,
}

impl Grid {
    /// A grid with columns declared as in CREATE TABLE (`name type attributes`), in the character
    /// set of identifiers. Names with spaces are in backquotes.
    pub(super) fn new(columns: &[&str]) -> Self {
        let parse = |column: &&str| {
            let (name, declared) = match column.strip_prefix('`') {
                Some(quoted) => quoted.split_once("` ").unwrap_or((quoted, "text")),
                None => column.split_once(' ').unwrap_or((*column, "text")),
            };
            (name.to_owned(), column_type(declared))
        };
        let columns = columns.iter().map(parse).collect();
        Self { name: TableName::new("", ""), columns, rows: Vec::new() }
    }

    /// A grid for a system table.
    pub(super) fn of_table(name: TableName, columns: &[(String, ColumnSpec)]) -> Self {
        let columns = columns.iter().map(|(name, spec)| (name.clone(), expr_type(spec)));
        Self { name, columns: columns.collect(), rows: Vec::new() }
    }

    /// Renames a column.
    pub(super) fn rename(&mut self, position: usize, name: String) {
        if let Some(column) = self.columns.get_mut(position) {
            column.0 = name;
        }
    }

    pub(super) fn push(&mut self, row: Vec<Value>) {
        self.rows.push(row);
    }

    /// The number of columns.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The column descriptions that clients receive.
    pub(super) fn described(&self) -> Vec<Column> {
        let fields = self.columns.iter().map(|column| (column, self.field(column)));
        fields.map(|((name, _), field)| output::column(&field, name, &self.name.table)).collect()
    }

    /// Sends columns and rows.
    pub(super) fn send<R: Reply>(&self, reply: &mut R) -> Result<()> {
        let columns = self.described();
        reply.columns(&columns)?;
        output::send(&self.batch()?, &columns, reply)
    }

    /// A table provider over the rows, for SELECT.
    pub(super) fn provider(&self) -> Result<Arc<dyn TableProvider>> {
        let batch = self.batch()?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(from_plan)?;
        Ok(Arc::new(table))
    }

    fn field(&self, (name, kind): &(String, ExprType)) -> Field {
        let field = kind.field(&name.to_lowercase());
        let mut metadata = field.metadata().clone();
        let origin = Origin {
            database: self.name.database.clone(),
            table: self.name.table.clone(),
            column: name.clone(),
            ..Origin::default()
        };
        origin.write(&mut metadata);
        field.with_metadata(metadata)
    }

    fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self.columns.iter().map(|column| self.field(column)).collect();
        Arc::new(Schema::new(fields))
    }

    fn batch(&self) -> Result<RecordBatch> {
        let arrays = self.columns.iter().enumerate().map(|(position, (_, kind))| {
            let values = self.rows.iter().map(|row| row.get(position).unwrap_or(&Value::Null));
            array(kind, values, self.rows.len())
        });
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let made = RecordBatch::try_new_with_options(self.schema(), arrays, &options);
        made.map_err(|error| from_plan(error.into()))
    }
}

/// The type of a system table's column.
fn column_type(declared: &str) -> ExprType {
    let parsed = parse_column(declared, Collation::UTF8MB3_GENERAL_CI);
    parsed.map_or_else(ExprType::null, |spec| expr_type(&spec))
}

/// The values of a column. A value of another type becomes NULL.
fn array<'v>(
    kind: &ExprType,
    values: impl Iterator<Item = &'v Value>,
    rows: usize,
) -> Result<ArrayRef> {
    let held = kind.arrow();
    Ok(match held {
        DataType::Int64 => Arc::new(values.map(integer).collect::<Int64Array>()),
        DataType::UInt64 => {
            let number =
                |value: &Value| integer(value).and_then(|number| u64::try_from(number).ok());
            let whole = |value: &Value| match value {
                Value::Uint(number) => Some(*number),
                value => number(value),
            };
            Arc::new(values.map(whole).collect::<UInt64Array>())
        }
        DataType::Utf8View => {
            let text = |value: &'v Value| match value {
                Value::Text(text) => Some(text.as_ref()),
                Value::Json(text) => Some(text.as_ref()),
                _ => None,
            };
            Arc::new(values.map(text).collect::<StringViewArray>())
        }
        DataType::BinaryView => {
            let bytes = |value: &'v Value| match value {
                Value::Bytes(bytes) => Some(bytes.as_ref()),
                Value::Text(text) => Some(text.as_bytes()),
                _ => None,
            };
            Arc::new(values.map(bytes).collect::<BinaryViewArray>())
        }
        DataType::Float32 | DataType::Float64 => {
            let number = |value: &Value| match value {
                Value::Float(number) => Some(*number),
                _ => None,
            };
            let array: ArrayRef = Arc::new(values.map(number).collect::<Float64Array>());
            cast(&array, &held).map_err(|error| from_plan(error.into()))?
        }
        held => new_null_array(&held, rows),
    })
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) | Value::Time(number) => Some(*number),
        Value::Uint(number) => i64::try_from(*number).ok(),
        Value::DateTime(moment) => {
            let date = Moment::date(moment.date.year, moment.date.month, moment.date.day);
            Some(Moment { micros: moment.micros as i64, ..date }.pack())
        }
        _ => None,
    }
}

/// Text as a value.
pub(super) fn text(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

/// Text as a value, or NULL.
pub(super) fn maybe(text: Option<impl AsRef<str>>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.as_ref().into()))
}

/// A number as a value, or NULL.
pub(super) fn number(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::Uint)
}

/// YES or NO.
pub(super) fn yes(truth: bool) -> Value {
    text(if truth { "YES" } else { "NO" })
}

/// 1109: there is no such system table.
pub(super) fn unknown_table(name: &TableName) -> Error {
    let message = messages::unknown_table_in(&name.table, &name.database);
    Error::new(remora_mysql::ErrorCode::UnknownTableInDelete, message)
}
