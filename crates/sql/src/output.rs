//! Converts record batches to rows of cells, and fields to column descriptions.

use std::{borrow::Cow, sync::Arc};

use datafusion::{
    arrow::{
        array::{
            Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Float32Array, Float64Array,
            Int64Array, RecordBatch, StringViewArray, UInt64Array,
        },
        compute::cast,
        datatypes::{
            DataType, Decimal128Type, Decimal256Type, Field, Float32Type, Float64Type, Int64Type,
            UInt64Type,
        },
    },
    error::Result as PlanResult,
};
use remora_engine::{Date, DateTime, Decimal, Value};
use remora_mysql::Collation;

use crate::{
    Cell, Column, Reply, Result, SqlType,
    catalog::Origin,
    error::from_plan,
    meaning::{temporal::Moment, types::ExprType},
    multi,
};

/// The column description of a field under a name. `table` is the alias of its table.
pub(crate) fn column(field: &Field, name: &str, table: &str) -> Column {
    let mut column = ExprType::of_field(field).column_named(name);
    if let Some(origin) = Origin::read(field.metadata()) {
        column.table = if table.is_empty() { origin.table.clone() } else { table.to_owned() };
        column.primary_key = origin.primary_key;
        column.auto_increment = origin.auto_increment;
        column.keys = origin.keys;
        // An outer join adds rows of NULLs.
        column.not_null &= !field.is_nullable();
        column.database = origin.database;
        column.original_table = origin.table;
        column.original_name = origin.column;
    }
    column
}

/// A column of a batch, by type.
enum Values<'a> {
    Null,
    Int(&'a Int64Array),
    Uint(&'a UInt64Array),
    Truth(&'a BooleanArray),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Decimal(Vec<Option<Decimal>>),
    Text(&'a StringViewArray),
    Multi(Vec<Option<String>>),
    Bytes(&'a BinaryViewArray),
    Bits(Vec<[u8; 8]>, usize, &'a UInt64Array),
    Date(&'a Int64Array),
    DateTime(&'a Int64Array),
    Time(&'a Int64Array),
}

/// Sends the rows of a batch.
pub(crate) fn send<R: Reply>(batch: &RecordBatch, columns: &[Column], reply: &mut R) -> Result<()> {
    let arrays: PlanResult<Vec<ArrayRef>> = batch.columns().iter().map(plain).collect();
    let arrays = arrays.map_err(from_plan)?;
    let values: Vec<Values<'_>> =
        arrays.iter().zip(columns).map(|(array, column)| values(array, column)).collect();
    let mut row = Vec::with_capacity(values.len());
    for index in 0..batch.num_rows() {
        row.clear();
        row.extend(values.iter().map(|column| column.cell(index)));
        reply.row(&row)?;
    }
    Ok(())
}

/// The batch with Sphinx's rules: NULL becomes the empty text, and JSON strings lose their quotes.
pub(crate) fn with_texts(batch: RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let text = |(array, field): (&ArrayRef, &Arc<Field>)| -> ArrayRef {
        let Some(texts) = array.as_string_view_opt() else { return Arc::clone(array) };
        let kind = ExprType::of_field(field);
        if kind.kind == SqlType::Json && kind.multi.is_none() {
            return Arc::new(StringViewArray::from_iter(texts.iter().map(|it| it.map(unquoted))));
        }
        if texts.null_count() == 0 {
            return Arc::clone(array);
        }
        Arc::new(StringViewArray::from_iter_values(texts.iter().map(Option::unwrap_or_default)))
    };
    let arrays = batch.columns().iter().zip(schema.fields()).map(text).collect();
    RecordBatch::try_new(schema, arrays).map_err(|error| from_plan(error.into()))
}

/// Adapts a column description to Sphinx's, where JSON values are texts.
pub(crate) fn as_sphinx_tells(column: &mut Column) {
    if column.kind == SqlType::Json {
        column.kind = SqlType::LongBlob;
        column.collation = Collation::UTF8MB4_0900_AI_CI.0;
    }
}

/// A JSON string without its quotes; other documents stay unchanged.
fn unquoted(document: &str) -> Cow<'_, str> {
    match document.starts_with('"').then(|| serde_json::from_str(document)) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(document),
    }
}

/// A single value of a batch.
pub(crate) fn value(batch: &RecordBatch, index: usize, column: &Column, row: usize) -> Value {
    let Some(array) = batch.columns().get(index) else { return Value::Null };
    let Ok(array) = plain(&array.slice(row, 1)) else { return Value::Null };
    owned(values(&array, column).cell(0), column)
}

/// The value of an array with one element.
pub(crate) fn single(array: &ArrayRef, column: &Column) -> Value {
    let Ok(array) = plain(array) else { return Value::Null };
    owned(values(&array, column).cell(0), column)
}

/// All rows of a batch.
pub(crate) fn rows(batch: &RecordBatch, columns: &[Column]) -> Vec<Vec<Value>> {
    let arrays: Vec<Option<ArrayRef>> =
        batch.columns().iter().map(|array| plain(array).ok()).collect();
    let values: Vec<_> = arrays
        .iter()
        .zip(columns)
        .map(|(array, column)| (array.as_ref().map(|array| values(array, column)), column))
        .collect();
    let value = |row: usize, (values, column): &(Option<Values<'_>>, &Column)| match values {
        Some(values) => owned(values.cell(row), column),
        None => Value::Null,
    };
    (0..batch.num_rows()).map(|row| values.iter().map(|each| value(row, each)).collect()).collect()
}

fn owned(cell: Cell<'_>, column: &Column) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(number) => Value::Int(number),
        Cell::Uint(number) => Value::Uint(number),
        Cell::Float(number) => Value::Float(f64::from(number)),
        Cell::Double(number) => Value::Float(number),
        Cell::Decimal(number) => Value::Decimal(number.clone()),
        Cell::Text(text) if column.kind == SqlType::Json => Value::Json(text.into()),
        Cell::Text(text) if matches!(column.kind, SqlType::Multi | SqlType::Multi64) => {
            Value::Json(multi::held_of_shown(text).into())
        }
        Cell::Text(text) => Value::Text(text.into()),
        Cell::Bytes(bytes) => Value::Bytes(bytes.into()),
        Cell::Date(date) => Value::Date(date),
        Cell::Time(micros) => Value::Time(micros),
        Cell::DateTime(moment) => Value::DateTime(moment),
    }
}

/// Casts an array to one of the types that cells can be made of.
fn plain(array: &ArrayRef) -> PlanResult<ArrayRef> {
    let target = match array.data_type() {
        DataType::Null
        | DataType::Boolean
        | DataType::Int64
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Utf8View
        | DataType::BinaryView => return Ok(array.clone()),
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => DataType::UInt64,
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            DataType::BinaryView
        }
        _ => DataType::Utf8View,
    };
    Ok(cast(array, &target)?)
}

fn values<'a>(array: &'a ArrayRef, column: &Column) -> Values<'a> {
    match array.data_type() {
        DataType::Int64 => {
            let array = array.as_primitive::<Int64Type>();
            match column.kind {
                SqlType::Date => Values::Date(array),
                SqlType::DateTime(_) | SqlType::Timestamp(_) => Values::DateTime(array),
                SqlType::Time(_) => Values::Time(array),
                _ => Values::Int(array),
            }
        }
        DataType::UInt64 => {
            let array = array.as_primitive::<UInt64Type>();
            match column.kind {
                SqlType::Bit(bits) => {
                    let values = array.values().iter().map(|value| value.to_be_bytes()).collect();
                    Values::Bits(values, usize::from(bits).div_ceil(8).clamp(1, 8), array)
                }
                _ => Values::Uint(array),
            }
        }
        DataType::Boolean => Values::Truth(array.as_boolean()),
        DataType::Float32 => Values::Float(array.as_primitive::<Float32Type>()),
        DataType::Float64 => Values::Double(array.as_primitive::<Float64Type>()),
        DataType::Decimal128(_, scale) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            let array = array.as_primitive::<Decimal128Type>();
            let one = |value: Option<i128>| value.map(|value| Decimal::from_scaled(value, scale));
            Values::Decimal(array.iter().map(one).collect())
        }
        DataType::Decimal256(..) => {
            let array = array.as_primitive::<Decimal256Type>();
            let text = |row: usize| Decimal::from_canonical(&array.value_as_string(row));
            let one = |row: usize| array.is_valid(row).then(|| text(row)).flatten();
            Values::Decimal((0..array.len()).map(one).collect())
        }
        DataType::Utf8View if matches!(column.kind, SqlType::Multi | SqlType::Multi64) => {
            let sets = array.as_string_view().iter();
            Values::Multi(sets.map(|set| set.map(multi::shown)).collect())
        }
        DataType::Utf8View => Values::Text(array.as_string_view()),
        DataType::BinaryView => Values::Bytes(array.as_binary_view()),
        _ => Values::Null,
    }
}

impl Values<'_> {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Int(array) if array.is_valid(row) => Cell::Int(array.value(row)),
            Self::Uint(array) if array.is_valid(row) => Cell::Uint(array.value(row)),
            Self::Truth(array) if array.is_valid(row) => Cell::Int(i64::from(array.value(row))),
            Self::Float(array) if array.is_valid(row) => Cell::Float(array.value(row)),
            Self::Double(array) if array.is_valid(row) => Cell::Double(array.value(row)),
            Self::Decimal(values) => {
                values.get(row).and_then(Option::as_ref).map_or(Cell::Null, Cell::Decimal)
            }
            Self::Text(array) if array.is_valid(row) => Cell::Text(array.value(row)),
            Self::Multi(sets) => {
                sets.get(row).and_then(Option::as_deref).map_or(Cell::Null, Cell::Text)
            }
            Self::Bytes(array) if array.is_valid(row) => Cell::Bytes(array.value(row)),
            Self::Bits(values, bytes, array) if array.is_valid(row) => {
                let value = values.get(row).and_then(|value| value.get(8 - bytes..));
                value.map_or(Cell::Null, Cell::Bytes)
            }
            Self::Date(array) if array.is_valid(row) => Cell::Date(date(array.value(row))),
            Self::DateTime(array) if array.is_valid(row) => {
                let moment = Moment::unpack(array.value(row));
                let micros = u64::try_from(moment.micros).unwrap_or(0);
                Cell::DateTime(DateTime { date: date(array.value(row)), micros })
            }
            Self::Time(array) if array.is_valid(row) => Cell::Time(array.value(row)),
            _ => Cell::Null,
        }
    }
}

fn date(packed: i64) -> Date {
    let Moment { year, month, day, .. } = Moment::unpack(packed);
    Date { year, month, day }
}
