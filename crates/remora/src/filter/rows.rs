//! Conditions on the rows of a table that also test values inside its documents.
//!
//! Parts on columns become conditions of the engine. A part on documents becomes one if the indexes of their paths answer it
//! exactly. Otherwise the documents of the rows that everything else leaves are read and tested, and the part becomes the
//! set of these rows.

use remora_engine::{
    ColumnType, Filter as EngineFilter, Reader, ScanRequest, Schema, Selection, Value,
};
use serde_json::Value as Json;

use super::{Condition, Field, ReadyPath, check_depth, constrains, matches, of_table, path_filter};
use crate::{Error, Result};

/// Documents that are read at once.
const BATCH_ROWS: usize = 256;

/// The condition on the rows of a selection's table as the engine's. `selection` has the table, and the condition on text.
///
/// # Errors
/// Those of [`of_table`], and those of reading.
pub(crate) fn of_rows(
    condition: &Condition,
    reader: &Reader,
    selection: &Selection,
) -> Result<EngineFilter> {
    check_depth(condition)?;
    let schema = reader.schema(&selection.table)?;
    let parts: Vec<&Condition> = match condition {
        Condition::And(parts) => parts.iter().collect(),
        one => vec![one],
    };
    let has_paths = |part: &&Condition| paths_of(part, &schema) != PathsOfRow::None;
    let (within, plain): (Vec<&Condition>, Vec<&Condition>) =
        parts.into_iter().partition(has_paths);
    let known = plain.into_iter().map(|part| of_table(part, &schema));
    let known = known.collect::<Result<Vec<_>>>()?;
    let rows = FilteredRows { reader, selection, schema: &schema, known: &known };
    let within = within.into_iter().map(|part| rows.of(part)).collect::<Result<Vec<_>>>()?;
    let all = known.iter().cloned().chain(within).collect();
    Ok(EngineFilter::all_of(all).unwrap_or(EngineFilter::And(Vec::new())))
}

/// The documents that a condition tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathsOfRow {
    None,
    /// Only those of this column.
    Of(usize),
    Mixed,
}

impl PathsOfRow {
    fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }
}

/// The column of documents that a path begins with.
fn document_column(field: &Field, schema: &Schema) -> Option<usize> {
    let name = field.parts.first()?;
    let mut columns = schema.columns.iter();
    let place = columns.position(|column| column.name.eq_ignore_ascii_case(name))?;
    schema.columns.get(place).filter(|column| column.kind == ColumnType::Json).map(|_| place)
}

fn paths_of(condition: &Condition, schema: &Schema) -> PathsOfRow {
    let of =
        |field: &Field| document_column(field, schema).map_or(PathsOfRow::None, PathsOfRow::Of);
    let of_all = |parts: &[Condition]| {
        let parts = parts.iter().map(|part| paths_of(part, schema));
        parts.reduce(PathsOfRow::with).unwrap_or(PathsOfRow::None)
    };
    match condition {
        Condition::And(parts) | Condition::Or(parts) => of_all(parts),
        Condition::Not(inner) => paths_of(inner, schema),
        Condition::Matches(fields, _) => {
            fields.iter().map(of).reduce(PathsOfRow::with).unwrap_or(PathsOfRow::None)
        }
        Condition::Has(field, _) => of(field),
        Condition::Compare(field, ..)
        | Condition::In(field, _)
        | Condition::Between(field, ..)
        | Condition::Begins(field, _)
        | Condition::Exists(field)
        | Condition::IsFilled(field)
        | Condition::IsNull(field) => match field.parts.len() {
            ..=1 => PathsOfRow::None,
            _ => of(field),
        },
    }
}

/// The condition on documents without the name of their column.
fn within_document(condition: &Condition) -> Condition {
    let below = |field: &Field| Field { parts: field.parts.iter().skip(1).cloned().collect() };
    let all = |parts: &[Condition]| parts.iter().map(within_document).collect();
    match condition {
        Condition::Compare(field, test, value) => {
            Condition::Compare(below(field), *test, value.clone())
        }
        Condition::In(field, values) => Condition::In(below(field), values.clone()),
        Condition::Between(field, from, to) => {
            Condition::Between(below(field), from.clone(), to.clone())
        }
        Condition::Begins(field, text) => Condition::Begins(below(field), text.clone()),
        Condition::Exists(field) => Condition::Exists(below(field)),
        Condition::IsFilled(field) => Condition::IsFilled(below(field)),
        Condition::IsNull(field) => Condition::IsNull(below(field)),
        Condition::Matches(fields, text) => {
            Condition::Matches(fields.iter().map(below).collect(), text.clone())
        }
        Condition::Has(field, inner) => Condition::Has(below(field), inner.clone()),
        Condition::And(parts) => Condition::And(all(parts)),
        Condition::Or(parts) => Condition::Or(all(parts)),
        Condition::Not(inner) => Condition::Not(Box::new(within_document(inner))),
    }
}

/// The rows that a condition is about.
struct FilteredRows<'r> {
    reader: &'r Reader,
    selection: &'r Selection,
    schema: &'r Schema,
    /// What all rows satisfy that are wanted.
    known: &'r [EngineFilter],
}

impl FilteredRows<'_> {
    fn of(&self, condition: &Condition) -> Result<EngineFilter> {
        let all = |parts: &[Condition]| -> Result<Vec<EngineFilter>> {
            parts.iter().map(|part| self.of(part)).collect()
        };
        Ok(match (paths_of(condition, self.schema), condition) {
            (PathsOfRow::None, _) => of_table(condition, self.schema)?,
            (PathsOfRow::Of(column), _) => {
                self.of_documents(column, &within_document(condition))?
            }
            (PathsOfRow::Mixed, Condition::And(parts)) => EngineFilter::And(all(parts)?),
            (PathsOfRow::Mixed, Condition::Or(parts)) => EngineFilter::Or(all(parts)?),
            (PathsOfRow::Mixed, Condition::Not(inner)) => {
                EngineFilter::Not(Box::new(self.of(inner)?))
            }
            (PathsOfRow::Mixed, _) => {
                let message = "MATCHES of several paths is of the documents of one column";
                return Err(Error::request(message));
            }
        })
    }

    /// A condition on the documents of a column.
    fn of_documents(&self, column: usize, condition: &Condition) -> Result<EngineFilter> {
        let table = &self.selection.table;
        let ready = self.reader.ready_paths(table)?;
        let mut indexes = Vec::with_capacity(ready.len());
        for place in ready {
            let path = self.schema.paths.get(place).filter(|path| path.column == column);
            let Some(path) = path else { continue };
            let is_whole = !path.is_joint()
                || constrains(condition, &path.names)
                    && self.reader.has_all_combinations(table, place)?;
            indexes.push(ReadyPath { path, is_whole });
        }
        let name = self.schema.columns.get(column).map_or("", |column| column.name.as_str());
        match path_filter(condition, name, &indexes) {
            Some(found) if found.is_exact => Ok(found.filter),
            found => self.tested(column, condition, found.map(|found| found.filter)),
        }
    }

    /// The rows whose documents satisfy a condition, among those that `narrowed` leaves.
    fn tested(
        &self,
        column: usize,
        condition: &Condition,
        narrowed: Option<EngineFilter>,
    ) -> Result<EngineFilter> {
        let filters = self.known.iter().cloned().chain(narrowed).collect();
        let request = ScanRequest {
            table: self.selection.table.clone(),
            text: self.selection.text.clone().filter(|_| self.selection.fuzzy.is_none()),
            filter: EngineFilter::all_of(filters),
            columns: self.schema.primary_key.iter().copied().chain([column]).collect(),
            batch_rows: BATCH_ROWS,
            ..ScanRequest::default()
        };
        let mut rows = self.reader.choose_rows(&self.selection.table)?;
        for batch in self.reader.scan(request)? {
            self.reader.ending().check()?;
            let batch = batch?;
            let Some((documents, keys)) = batch.columns.split_last() else { break };
            for row in 0..batch.rows {
                if matches(condition, &document(&documents.value(row))) {
                    let key: Vec<Value> = keys.iter().map(|column| column.value(row)).collect();
                    rows.add(&key)?;
                }
            }
        }
        Ok(EngineFilter::Rows(rows.finish()))
    }
}

/// A value of a column of documents. NULL is a document without anything.
fn document(value: &Value) -> Json {
    match value {
        Value::Json(text) => serde_json::from_str(text).unwrap_or(Json::Null),
        _ => Json::Null,
    }
}
