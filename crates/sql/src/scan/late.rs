//! Late materialization: columns that are read by key for the returned rows only. The factors of a ranking expression
//! are read late too; for them the keyword query is evaluated again.

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
use remora_engine::{ColumnType, Filter, KeyValues, Literal, Row, ScanRequest, TextQuery, Value};
use rustc_hash::FxHashMap;

use super::{
    array,
    exec::{ScanExec, external},
    overlaid::column,
};
use crate::{catalog::Reader, meaning::expr_type};

/// Columns to be read by the keys of rows.
#[derive(Clone)]
pub(crate) struct LateColumns {
    reader: Reader,
    table: String,
    /// The position of the key column and its name.
    key: (usize, String),
    /// The engine's positions of the columns.
    columns: Vec<usize>,
    kinds: Vec<ColumnType>,
    /// The source of each field.
    sources: Vec<LateSource>,
    fields: Vec<FieldRef>,
    /// Whether keys are signed.
    is_signed: bool,
    zone: TimeZone,
}

/// The source of a field's values.
#[derive(Clone)]
enum LateSource {
    /// The column with this index among `columns`.
    Column(usize),
    /// The factors of a keyword query.
    Factors(TextQuery),
}

impl ScanExec {
    /// Replaces the projection's columns at these positions by the rows' keys, and returns the reader of the replaced
    /// columns. `None` if the key is not a single integer column, or if the table has uncommitted or remote rows.
    pub(crate) fn keyed(&self, places: &[usize]) -> Option<(Self, LateColumns)> {
        let sql = self.sql();
        let [key] = sql.schema.primary_key[..] else { return None };
        let key_field = expr_type(sql.columns.get(key)?).not_null().field("");
        let is_whole = matches!(key_field.data_type(), DataType::Int64 | DataType::UInt64);
        let kind = sql.schema.columns.get(key)?.kind;
        if self.table.is_empty()
            || self.overlay.is_some()
            || self.reader.has_remote_parts(&self.table)
            || !is_whole
            || !matches!(kind, ColumnType::Int(_) | ColumnType::Uint(_))
        {
            return None;
        }
        let (mut columns, mut subjects) = (self.columns.clone(), self.subjects.clone());
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        let key_name = sql.schema.columns.get(key)?.name.clone();
        let mut late = self.late_columns((key, key_name), matches!(kind, ColumnType::Int(_)));
        // The remaining scores, and the positions whose scores are read late.
        let mut scores: Vec<Option<TextQuery>> = self.scores.iter().cloned().map(Some).collect();
        let mut told: Vec<usize> = Vec::new();
        for &place in places {
            let at = *self.places.get(place)?;
            let field = fields.get_mut(place)?;
            match columns.get_mut(at) {
                Some(position) => {
                    late.sources.push(LateSource::Column(late.columns.len()));
                    late.columns.push(*position);
                    late.kinds.push(sql.schema.columns.get(*position)?.kind);
                    *position = key;
                }
                None => {
                    let query = scores.get_mut(at.checked_sub(columns.len())?)?.take()?;
                    late.sources.push(LateSource::Factors(query));
                    told.push(place);
                }
            }
            late.fields.push(Arc::clone(field));
            *field = Arc::new(Field::new(field.name(), key_field.data_type().clone(), false));
            *subjects.get_mut(place)? = None;
        }
        let before = columns.len();
        columns.extend(told.iter().map(|_| key));
        let moved = |(place, at): (usize, &usize)| {
            if let Some(number) = told.iter().position(|it| *it == place) {
                return before + number;
            }
            let Some(score) = at.checked_sub(before) else { return *at };
            let left = scores.iter().take(score).filter(|score| score.is_some()).count();
            before + told.len() + left
        };
        let moved: Vec<usize> = self.places.iter().enumerate().map(moved).collect();
        let scores: Vec<TextQuery> = scores.into_iter().flatten().collect();
        let schema = Arc::new(ArrowSchema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        let scan =
            Self { columns, subjects, scores, places: moved, schema, properties, ..self.clone() };
        Some((scan, late))
    }

    /// Whether the projection has table columns or factors at these positions.
    pub(crate) fn is_of_columns(&self, places: &[usize]) -> bool {
        let is_column =
            |place: &usize| self.places.get(*place).is_some_and(|at| *at < self.columns.len());
        places.iter().all(|place| is_column(place) || self.tells_factors(*place))
    }

    /// Whether the projection has factors at a position.
    pub(crate) fn tells_factors(&self, place: usize) -> bool {
        let score = self.places.get(place).and_then(|at| at.checked_sub(self.columns.len()));
        let query = score.and_then(|score| self.scores.get(score));
        matches!(query, Some(TextQuery::Keywords(asked)) if asked.factors.is_some())
    }

    fn late_columns(&self, key: (usize, String), is_signed: bool) -> LateColumns {
        LateColumns {
            reader: self.reader.clone(),
            table: self.table.clone(),
            key,
            columns: Vec::new(),
            kinds: Vec::new(),
            sources: Vec::new(),
            fields: Vec::new(),
            is_signed,
            zone: self.zone.clone(),
        }
    }
}

impl LateColumns {
    /// The fields of the columns.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// Whether all of them are factors.
    pub(crate) fn are_factors(&self) -> bool {
        self.sources.iter().all(|source| matches!(source, LateSource::Factors(_)))
    }

    /// Reads the columns of the rows with these keys.
    pub(crate) fn read(&self, keys: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let keys = self.key_values(keys);
        let mut rows: Vec<Row> = vec![Row::new(); keys.len()];
        if !self.columns.is_empty() {
            let read =
                self.reader.get_many(&self.table, &keys, &self.columns, &mut |place, row| {
                    if let Some(slot) = rows.get_mut(place) {
                        *slot = std::mem::take(row);
                    }
                    Ok(())
                });
            read.map_err(external)?;
        }
        let mut made = Vec::with_capacity(self.sources.len());
        for (source, field) in self.sources.iter().zip(&self.fields) {
            let values = match source {
                LateSource::Column(at) => {
                    let kind = self.kinds.get(*at).copied().unwrap_or(ColumnType::Text);
                    let values = rows.iter().map(|row| row.get(*at).unwrap_or(&Value::Null));
                    column(kind, values, rows.len())
                }
                LateSource::Factors(query) => {
                    let texts = self.factors(query, &keys)?;
                    column(ColumnType::Text, texts.iter(), texts.len())
                }
            };
            made.push(array(values, field.data_type(), &self.zone)?);
        }
        Ok(made)
    }

    /// The factors of a query for the rows with these keys, as texts.
    fn factors(&self, query: &TextQuery, keys: &[KeyValues]) -> Result<Vec<Value>> {
        let (key, name) = &self.key;
        let literals = keys.iter().filter_map(|key| key.first().cloned()).map(Literal::Value);
        let request = ScanRequest {
            table: self.table.clone(),
            filter: Some(Filter::In(name.clone(), literals.collect())),
            columns: vec![*key],
            scores: vec![query.clone()],
            batch_rows: keys.len().max(1),
            ..ScanRequest::default()
        };
        let mut told: FxHashMap<u64, Value> = FxHashMap::default();
        for batch in self.reader.scan(request).map_err(external)? {
            let batch = batch.map_err(external)?;
            let [keys, texts] = batch.columns.as_slice() else { continue };
            for row in 0..batch.rows {
                told.insert(bits_of(&keys.value(row)), texts.value(row));
            }
        }
        let nothing = || Value::Text("".into());
        let text = |key: &KeyValues| {
            let told = key.first().and_then(|key| told.get(&bits_of(key)));
            told.cloned().unwrap_or_else(nothing)
        };
        Ok(keys.iter().map(text).collect())
    }

    /// The keys in an integer array.
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

/// The bits of an integer key.
fn bits_of(key: &Value) -> u64 {
    match key {
        Value::Int(number) => number.cast_unsigned(),
        Value::Uint(number) => *number,
        _ => 0,
    }
}
