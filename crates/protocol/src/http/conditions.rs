//! `filters`: conditions on columns as JSON.
//!
//! ```text
//! filters   = { column: value | { "op": operator, "value": value } }   ; all must hold
//! value     = text | number | true | false
//! own       = { column: null | [ value { "," value } ] }               ; IS NULL, IN
//! ```
//! Numbers keep all their digits, because a double would lose some of a decimal.

use std::collections::BTreeMap;

use remora_engine::{Comparison, Filter, Literal};
use serde_json::{Value, value::RawValue};

use crate::line::{
    LineError, code,
    parse::{
        clause::Clauses,
        filter::{MAX_VALUE_BYTES, ReadFilter, check_column, comparison_named},
    },
};

/// Parses the conditions into the clauses.
pub(super) fn read(filters: &RawValue, clauses: &mut Clauses) -> Result<(), LineError> {
    let filters =
        object(filters).ok_or_else(|| error("Field 'filters' must be an object".to_owned()))?;
    let most = clauses.limits.max_filters;
    if filters.len() > most {
        return Err(error(format!("Too many filter conditions (max {most})")));
    }
    for (column, given) in filters {
        check_column(&column, clauses.limits)?;
        let mut reader =
            Reader { column: &column, strict: clauses.limits.strict, bytes: column.len() };
        let filter = reader.condition(given)?;
        clauses.filter(ReadFilter { filter, bytes: reader.bytes, conditions: 1 });
    }
    Ok(())
}

/// The fields of an object; `None` for other values. Under a file of MygramDB, of duplicate names the last one wins.
fn object(value: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(value.get()).ok()
}

struct Reader<'c> {
    column: &'c str,
    strict: bool,
    bytes: usize,
}

impl Reader<'_> {
    fn condition(&mut self, given: &RawValue) -> Result<Filter, LineError> {
        let column = self.column.to_owned();
        let list = || serde_json::from_str::<Vec<&RawValue>>(given.get()).unwrap_or_default();
        match given.get().as_bytes().first() {
            Some(b'n') if !self.strict => return Ok(Filter::IsNull(column)),
            Some(b'[') if !self.strict => {
                let literals = list().into_iter().map(|value| self.literal(Some(value)));
                let literals: Vec<Literal> = literals.collect::<Result<_, _>>()?;
                if !literals.is_empty() {
                    return Ok(Filter::In(column, literals));
                }
            }
            _ => {}
        }
        let Some(condition) = object(given) else {
            let literal = self.literal(Some(given))?;
            return Ok(Filter::Compare { column, comparison: Comparison::Equal, literal });
        };
        let comparison = match condition.get("op") {
            None => Comparison::Equal,
            Some(op) => {
                let name: Option<String> = serde_json::from_str(op.get()).ok();
                name.as_deref().and_then(comparison_named).ok_or_else(|| {
                    error(format!("Invalid filter operator for column '{}': {op}", self.column))
                })?
            }
        };
        let literal = self.literal(condition.get("value").copied())?;
        Ok(Filter::Compare { column, comparison, literal })
    }

    /// A scalar as text. The engine converts it to the column's type.
    fn literal(&mut self, value: Option<&RawValue>) -> Result<Literal, LineError> {
        let raw = value.map_or("null", RawValue::get);
        let text = match serde_json::from_str(raw) {
            Ok(Value::String(text)) => text,
            Ok(Value::Number(_)) => raw.to_owned(),
            Ok(Value::Bool(truth)) => u8::from(truth).to_string(),
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
