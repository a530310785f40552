//! The view of a table: `Schema::required` evaluated on rows.
//!
//! Values are compared by their cells, as segments compare them, so that a required filter has the same meaning as
//! that filter in a request.

use std::cmp::Ordering;

use remora_index::column::Cell;

use crate::{
    ColumnDef, ColumnType, Comparison, Error, Filter, Literal, RequestPart, Result, Schema, Value,
    encode::{encode_cell, fit, parse_literal},
};

/// The deepest nesting of a filter.
const MAX_DEPTH: usize = 64;

/// The required filter of a table, with names and literals resolved.
#[derive(Debug)]
pub struct RequiredRows {
    condition: Option<RequiredCondition>,
}

#[derive(Debug)]
enum RequiredCondition {
    Compare { column: usize, kind: ColumnType, comparison: Comparison, value: Value },
    In { column: usize, kind: ColumnType, values: Vec<Value> },
    IsNull(usize),
    All(Vec<RequiredCondition>),
    Any(Vec<RequiredCondition>),
    Not(Box<RequiredCondition>),
}

impl RequiredRows {
    /// Resolves the filter of `schema`.
    ///
    /// # Errors
    /// [`Error::Request`] names the part of the filter that does not fit the table, or says that it is nested too
    /// deeply.
    pub fn of(schema: &Schema) -> Result<Self> {
        let resolve = |filter| RequiredCondition::resolve(schema, filter, MAX_DEPTH);
        Ok(Self { condition: schema.required.as_ref().map(resolve).transpose()? })
    }

    /// Whether the row is in the table's view.
    pub fn accept(&self, row: &[Value]) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.holds(row))
    }

    /// The positions of the columns in the filter, with repetitions.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        if let Some(condition) = &self.condition {
            condition.collect_columns(&mut columns);
        }
        columns
    }
}

impl RequiredCondition {
    fn resolve(schema: &Schema, filter: &Filter, depth: usize) -> Result<Self> {
        let depth = depth.checked_sub(1).ok_or_else(|| {
            Error::request(RequestPart::Schema, format!("filters nest deeper than {MAX_DEPTH}"))
        })?;
        let each = |filters: &[Filter]| -> Result<Vec<Self>> {
            filters.iter().map(|filter| Self::resolve(schema, filter, depth)).collect()
        };
        let compare = |name, comparison, literal| {
            let (position, column) = find_column(schema, name)?;
            let (kind, value) = (column.kind, to_value(column, literal)?);
            Ok(Self::Compare { column: position, kind, comparison, value })
        };
        match filter {
            Filter::Compare { column, comparison, literal } => {
                compare(column, *comparison, literal)
            }
            Filter::Between(column, low, high) => Ok(Self::All(vec![
                compare(column, Comparison::GreaterOrEqual, low)?,
                compare(column, Comparison::LessOrEqual, high)?,
            ])),
            Filter::In(name, literals) => {
                let (position, column) = find_column(schema, name)?;
                let values = literals.iter().map(|literal| to_value(column, literal));
                let values = values.collect::<Result<_>>()?;
                Ok(Self::In { column: position, kind: column.kind, values })
            }
            Filter::KeyIn(name, ..)
            | Filter::KeyWithin(name, ..)
            | Filter::Begins(name, ..)
            | Filter::Path(name, ..)
            | Filter::PathsTogether(name, ..)
            | Filter::PathTexts(name, ..)
            | Filter::PathMayHold(name, ..) => {
                let message = format!(
                    "required rows cannot be chosen by keys of texts or by paths: '{name}'"
                );
                Err(Error::request(RequestPart::Schema, message))
            }
            Filter::Prefix(_) => {
                let message = "required rows cannot be chosen by prefixes".to_owned();
                Err(Error::request(RequestPart::Schema, message))
            }
            Filter::Rows(_) => {
                let message = "required rows cannot be listed".to_owned();
                Err(Error::request(RequestPart::Schema, message))
            }
            Filter::IsNull(name) => Ok(Self::IsNull(find_column(schema, name)?.0)),
            Filter::IsNotNull(name) => {
                Ok(Self::Not(Box::new(Self::IsNull(find_column(schema, name)?.0))))
            }
            Filter::And(filters) => Ok(Self::All(each(filters)?)),
            Filter::Or(filters) => Ok(Self::Any(each(filters)?)),
            Filter::Not(filter) => Ok(Self::Not(Box::new(Self::resolve(schema, filter, depth)?))),
        }
    }

    fn collect_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Compare { column, .. } | Self::In { column, .. } | Self::IsNull(column) => {
                columns.push(*column);
            }
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().for_each(|condition| condition.collect_columns(columns));
            }
            Self::Not(condition) => condition.collect_columns(columns),
        }
    }

    fn holds(&self, row: &[Value]) -> bool {
        match self {
            Self::Compare { column, kind, comparison, value } => {
                match compare_cells(*kind, value_at(row, *column), value) {
                    Some(order) => satisfies(*comparison, order),
                    None => *comparison == Comparison::NotEqual,
                }
            }
            Self::In { column, kind, values } => values.iter().any(|value| {
                compare_cells(*kind, value_at(row, *column), value) == Some(Ordering::Equal)
            }),
            Self::IsNull(column) => *value_at(row, *column) == Value::Null,
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(row)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.holds(row)),
            Self::Not(condition) => !condition.holds(row),
        }
    }
}

fn value_at(row: &[Value], column: usize) -> &Value {
    row.get(column).unwrap_or(&Value::Null)
}

/// Compares two values by their cells; `None` if one of them is NULL.
fn compare_cells(kind: ColumnType, left: &Value, right: &Value) -> Option<Ordering> {
    let (mut left_scratch, mut right_scratch) = (Vec::new(), Vec::new());
    let left = encode_cell(kind, left, &mut left_scratch);
    let right = encode_cell(kind, right, &mut right_scratch);
    (left != Cell::Null && right != Cell::Null).then(|| left.cmp(&right))
}

fn satisfies(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
    }
}

fn find_column<'s>(schema: &'s Schema, name: &str) -> Result<(usize, &'s ColumnDef)> {
    let found = schema.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    found.and_then(|position| Some((position, schema.columns.get(position)?))).ok_or_else(|| {
        invalid(format!("the required filter of table {:?} names no column {name:?}", schema.name))
    })
}

/// Converts a literal to a value of the column's type, so that cells can be compared.
fn to_value(column: &ColumnDef, literal: &Literal) -> Result<Value> {
    let value = match literal {
        Literal::Text(text) => parse_literal(column.kind, text),
        Literal::Value(Value::Null) => None,
        Literal::Value(value) => fit(column, value).ok(),
    };
    value.ok_or_else(|| {
        let (name, kind) = (&column.name, column.kind);
        invalid(format!("the required filter compares {name:?}, a {kind:?}, with {literal:?}"))
    })
}

fn invalid(message: String) -> Error {
    Error::request(RequestPart::Schema, message)
}
