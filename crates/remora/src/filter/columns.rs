//! Converts a condition to the engine's, on the columns of a table.

use remora_engine::{ColumnType, Comparison, Filter as EngineFilter, Literal, Schema, Value};

use super::{Condition, Field, Test};
use crate::{Error, Result};

/// Converts a condition to the engine's.
pub(crate) fn of_table(condition: &Condition, schema: &Schema) -> Result<EngineFilter> {
    let all = |parts: &[Condition]| -> Result<Vec<EngineFilter>> {
        parts.iter().map(|part| of_table(part, schema)).collect()
    };
    Ok(match condition {
        Condition::Compare(field, test, value) => EngineFilter::Compare {
            column: column(field, schema)?,
            comparison: comparison(*test),
            literal: literal(field, value, schema)?,
        },
        Condition::In(field, values) => {
            let literals = values.iter().map(|value| literal(field, value, schema));
            EngineFilter::In(column(field, schema)?, literals.collect::<Result<_>>()?)
        }
        Condition::Between(field, from, to) => {
            let (from, to) = (literal(field, from, schema)?, literal(field, to, schema)?);
            EngineFilter::Between(column(field, schema)?, from, to)
        }
        Condition::Begins(field, text) => {
            EngineFilter::Begins(column(field, schema)?, None, text.clone())
        }
        Condition::Exists(field) | Condition::IsFilled(field) => {
            EngineFilter::IsNotNull(column(field, schema)?)
        }
        Condition::IsNull(field) => EngineFilter::IsNull(column(field, schema)?),
        Condition::Matches(..) => {
            let message =
                "MATCHES searches documents of collections: search a table with Table::search";
            return Err(Error::request(message));
        }
        Condition::Has(..) => {
            return Err(Error::request(
                "HAS is of arrays in documents, which a table's columns are not",
            ));
        }
        Condition::And(parts) => EngineFilter::And(all(parts)?),
        Condition::Or(parts) => EngineFilter::Or(all(parts)?),
        Condition::Not(inner) => EngineFilter::Not(Box::new(of_table(inner, schema)?)),
    })
}

fn comparison(test: Test) -> Comparison {
    match test {
        Test::Equal => Comparison::Equal,
        Test::NotEqual => Comparison::NotEqual,
        Test::Less => Comparison::Less,
        Test::LessOrEqual => Comparison::LessOrEqual,
        Test::Greater => Comparison::Greater,
        Test::GreaterOrEqual => Comparison::GreaterOrEqual,
    }
}

fn column(field: &Field, schema: &Schema) -> Result<String> {
    match field.parts.as_slice() {
        [name] => {
            let mut columns = schema.columns.iter();
            let found = columns.find(|column| column.name.eq_ignore_ascii_case(name));
            // The engine reports a column that does not exist.
            Ok(found.map_or(name, |column| &column.name).clone())
        }
        _ => Err(Error::request(format!(
            "{:?} is a path, and the table has no column of JSON documents with the name it begins with",
            field.shown()
        ))),
    }
}

fn literal(field: &Field, value: &Value, schema: &Schema) -> Result<Literal> {
    let name = field.shown();
    let kind = schema.columns.iter().find(|column| column.name.eq_ignore_ascii_case(&name));
    let kind = kind.map(|column| column.kind);
    let is_text = matches!(value, Value::Text(_) | Value::Json(_));
    let is_number = matches!(
        kind,
        Some(ColumnType::Int(_) | ColumnType::Uint(_) | ColumnType::Float | ColumnType::Double)
    );
    if matches!(value, Value::Float(number) if number.is_nan()) {
        return Err(Error::request(format!(
            "column {name:?} is compared with NaN, which nothing equals"
        )));
    }
    if kind == Some(ColumnType::Text) && !is_text && !value.is_null() {
        let message = format!("column {name:?} holds text: compare it with '{value}' in quotes");
        return Err(Error::request(message));
    }
    if is_number && is_text {
        let message = format!("column {name:?} holds numbers: compare it with one, without quotes");
        return Err(Error::request(message));
    }
    Ok(Literal::Value(value.clone()))
}
