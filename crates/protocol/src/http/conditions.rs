//! `filters`: conditions on columns as JSON.
//!
//! ```text
//! filters   = { column: value | { "op": operator, "value": value } }   ; all must hold
//! value     = text | number | true | false
//! own       = { column: null | [ value { "," value } ] }               ; IS NULL, IN
//! ```

use remora_engine::{Comparison, Filter, Literal};
use serde_json::Value;

use crate::line::{
    LineError, code,
    parse::{
        clause::Clauses,
        filter::{MAX_VALUE_BYTES, Read, check_column, comparison_named},
    },
};

/// Reads the conditions into the clauses.
pub(super) fn read(filters: &Value, clauses: &mut Clauses) -> Result<(), LineError> {
    let filters =
        filters.as_object().ok_or_else(|| error("Field 'filters' must be an object".to_owned()))?;
    let most = clauses.limits.max_filters;
    if filters.len() > most {
        return Err(error(format!("Too many filter conditions (max {most})")));
    }
    for (column, given) in filters {
        check_column(column, clauses.limits)?;
        let mut reader = Reader { column, strict: clauses.limits.strict, bytes: column.len() };
        let filter = reader.condition(given)?;
        clauses.filter(Read { filter, bytes: reader.bytes, conditions: 1 });
    }
    Ok(())
}

struct Reader<'c> {
    column: &'c str,
    strict: bool,
    bytes: usize,
}

impl Reader<'_> {
    fn condition(&mut self, given: &Value) -> Result<Filter, LineError> {
        let column = self.column.to_owned();
        match given {
            Value::Null if !self.strict => Ok(Filter::IsNull(column)),
            Value::Array(values) if !self.strict && !values.is_empty() => {
                let literals = values.iter().map(|value| self.literal(value));
                Ok(Filter::In(column, literals.collect::<Result<_, _>>()?))
            }
            Value::Object(condition) => {
                let comparison = match condition.get("op") {
                    None => Comparison::Equal,
                    Some(op) => op.as_str().and_then(comparison_named).ok_or_else(|| {
                        error(format!("Invalid filter operator for column '{}': {op}", self.column))
                    })?,
                };
                let literal = self.literal(condition.get("value").unwrap_or(&Value::Null))?;
                Ok(Filter::Compare { column, comparison, literal })
            }
            scalar => {
                let literal = self.literal(scalar)?;
                Ok(Filter::Compare { column, comparison: Comparison::Equal, literal })
            }
        }
    }

    /// A scalar as it would be typed; the engine reads it by the column's type.
    fn literal(&mut self, value: &Value) -> Result<Literal, LineError> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => u8::from(*truth).to_string(),
            _ => {
                let column = self.column;
                return Err(error(format!("Invalid filter value type for column: {column}")));
            }
        };
        if text.len() > MAX_VALUE_BYTES {
            return Err(error(format!("Filter value exceeds maximum length ({MAX_VALUE_BYTES})")));
        }
        self.bytes += text.len();
        Ok(Literal::Text(text))
    }
}

fn error(message: String) -> LineError {
    LineError::new(code::FILTER, message)
}
