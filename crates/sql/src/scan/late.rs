//! Columns that are read late: of the rows that are shown, by their keys, and not of all that are found.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, AsArray},
        datatypes::{DataType, Field, FieldRef, Int64Type, Schema as ArrowSchema, UInt64Type},
    },
    error::Result,
    physical_expr::EquivalenceProperties,
    physical_plan::{
        Partitioning, PlanProperties,
        execution_plan::{Boundedness, EmissionType},
    },
};
use jiff::tz::TimeZone;
use remora_engine::{ColumnType, KeyValues, Row, Value};

use super::{
    array,
    exec::{ScanExec, external},
    overlaid::column,
};
use crate::{catalog::Reader, meaning::expr_type};

/// Columns of a table, to be read by the keys of rows.
#[derive(Clone)]
pub(crate) struct LateColumns {
    reader: Reader,
    table: String,
    /// The engine's columns.
    columns: Vec<usize>,
    kinds: Vec<ColumnType>,
    fields: Vec<FieldRef>,
    /// Whether keys may be below zero.
    is_signed: bool,
    zone: TimeZone,
}

impl ScanExec {
    /// The same with the keys of rows in these places of the projection, and what reads of a key what stood there. `None`
    /// where a row's key is not one whole number, or what stands there is no column of the snapshot.
    pub(crate) fn keyed(&self, places: &[usize]) -> Option<(Self, LateColumns)> {
        let sql = self.sql();
        let [key] = sql.schema.primary_key[..] else { return None };
        let key_field = expr_type(sql.columns.get(key)?).not_null().field("");
        let is_whole = matches!(key_field.data_type(), DataType::Int64 | DataType::UInt64);
        let kind = sql.schema.columns.get(key)?.kind;
        if self.table.is_empty()
            || self.overlay.is_some()
            || !is_whole
            || !matches!(kind, ColumnType::Int(_) | ColumnType::Uint(_))
        {
            return None;
        }
        let (mut columns, mut subjects) = (self.columns.clone(), self.subjects.clone());
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        let mut late = self.late_columns(matches!(kind, ColumnType::Int(_)));
        for &place in places {
            let at = *self.places.get(place)?;
            let position = columns.get_mut(at)?;
            let field = fields.get_mut(place)?;
            late.columns.push(*position);
            late.kinds.push(sql.schema.columns.get(*position)?.kind);
            late.fields.push(Arc::clone(field));
            *position = key;
            *field = Arc::new(Field::new(field.name(), key_field.data_type().clone(), false));
            *subjects.get_mut(place)? = None;
        }
        let schema = Arc::new(ArrowSchema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Some((Self { columns, subjects, schema, properties, ..self.clone() }, late))
    }

    /// Whether these places of the projection are columns of the table.
    pub(crate) fn is_of_columns(&self, places: &[usize]) -> bool {
        let is_column = |at: &usize| *at < self.columns.len();
        places.iter().all(|place| self.places.get(*place).is_some_and(is_column))
    }

    fn late_columns(&self, is_signed: bool) -> LateColumns {
        LateColumns {
            reader: self.reader.clone(),
            table: self.table.clone(),
            columns: Vec::new(),
            kinds: Vec::new(),
            fields: Vec::new(),
            is_signed,
            zone: self.zone.clone(),
        }
    }
}

impl LateColumns {
    /// What the columns are.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// The columns of the rows with these keys.
    pub(crate) fn read(&self, keys: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let keys = self.key_values(keys);
        let mut rows: Vec<Row> = vec![Row::new(); keys.len()];
        let read = self.reader.get_many(&self.table, &keys, &self.columns, &mut |place, row| {
            if let Some(slot) = rows.get_mut(place) {
                *slot = std::mem::take(row);
            }
            Ok(())
        });
        read.map_err(external)?;
        let columns = self.kinds.iter().zip(&self.fields).enumerate();
        let columns = columns.map(|(at, (kind, field))| {
            let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
            array(column(*kind, values, rows.len()), field.data_type(), &self.zone)
        });
        columns.collect()
    }

    /// The keys of an array of whole numbers.
    fn key_values(&self, keys: &ArrayRef) -> Vec<KeyValues> {
        let key = |bits: u64| {
            let value = if self.is_signed { Value::Int(bits as i64) } else { Value::Uint(bits) };
            KeyValues::from_iter([value])
        };
        if let Some(keys) = keys.as_primitive_opt::<Int64Type>() {
            return keys.values().iter().map(|&number| key(number as u64)).collect();
        }
        match keys.as_primitive_opt::<UInt64Type>() {
            Some(keys) => keys.values().iter().map(|&number| key(number)).collect(),
            None => Vec::new(),
        }
    }
}
