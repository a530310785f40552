//! A condition on documents as one that indexed paths answer, as far as they do.

use std::ops::Bound;

use remora_engine::{Filter as EngineFilter, PathTest, PathValue, Value};
use serde_json::Value as Json;

use super::{Condition, Field, Test};

/// How deep the engine is asked at most; it allows a little more.
const MAX_DEPTH: usize = 24;
/// From here on not every whole number is a double.
const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;
/// The engine takes a million values in all lists.
const MAX_VALUES: usize = 100_000;

/// What indexed paths say of a condition.
pub(crate) struct ByPaths {
    /// It holds for all documents for which the condition does.
    pub filter: EngineFilter,
    /// Whether it holds for no others.
    pub is_exact: bool,
}

/// What indexed paths of the documents in `column` say of a condition; `None` if they do not help.
pub(crate) fn by_paths(
    condition: &Condition,
    column: &str,
    is_indexed: &dyn Fn(&Field) -> bool,
) -> Option<ByPaths> {
    Asked { column, is_indexed }.of(condition, 0)
}

struct Asked<'a> {
    column: &'a str,
    is_indexed: &'a dyn Fn(&Field) -> bool,
}

impl Asked<'_> {
    fn of(&self, condition: &Condition, depth: usize) -> Option<ByPaths> {
        if depth >= MAX_DEPTH {
            return None;
        }
        match condition {
            Condition::And(parts) => {
                let found: Vec<ByPaths> =
                    parts.iter().filter_map(|part| self.of(part, depth + 1)).collect();
                if found.is_empty() {
                    return None;
                }
                let is_exact = found.len() == parts.len() && found.iter().all(|it| it.is_exact);
                let filters = found.into_iter().map(|it| it.filter).collect();
                Some(ByPaths { filter: EngineFilter::And(filters), is_exact })
            }
            Condition::Or(parts) => {
                let found: Vec<ByPaths> =
                    parts.iter().map(|part| self.of(part, depth + 1)).collect::<Option<_>>()?;
                let is_exact = found.iter().all(|it| it.is_exact);
                let filters = found.into_iter().map(|it| it.filter).collect();
                Some(ByPaths { filter: EngineFilter::Or(filters), is_exact })
            }
            Condition::Not(inner) => {
                // What is not among too many may be missing.
                let inner = self.of(inner, depth + 1).filter(|it| it.is_exact)?;
                Some(ByPaths { filter: EngineFilter::Not(Box::new(inner.filter)), is_exact: true })
            }
            Condition::Compare(field, Test::NotEqual, value) => {
                let equal = self.path(field, PathTest::In(scalar(value)?))?;
                Some(ByPaths { filter: EngineFilter::Not(Box::new(equal.filter)), is_exact: true })
            }
            Condition::Compare(field, test, value) => self.path(field, compared(*test, value)?),
            Condition::In(field, values) if values.len() <= MAX_VALUES => {
                let values: Option<Vec<Vec<PathValue>>> = values.iter().map(scalar).collect();
                self.path(field, PathTest::In(values?.concat()))
            }
            Condition::In(..) => None,
            Condition::Between(field, from, to) => {
                let bounds = (scalar(from)?.pop(), scalar(to)?.pop());
                let test = match bounds {
                    (Some(from), Some(to)) => {
                        PathTest::Within(Bound::Included(from), Bound::Included(to))
                    }
                    _ => PathTest::In(Vec::new()),
                };
                self.path(field, test)
            }
            Condition::Begins(field, text) => self.path(field, PathTest::Begins(text.clone())),
            Condition::Exists(field) => self.path(field, PathTest::Exists),
            Condition::IsNull(field) => self.path(field, PathTest::In(vec![PathValue::Null])),
        }
    }

    fn path(&self, field: &Field, test: PathTest) -> Option<ByPaths> {
        (self.is_indexed)(field).then(|| ByPaths {
            filter: EngineFilter::Path(self.column.to_owned(), field.parts.clone(), test),
            is_exact: true,
        })
    }
}

fn compared(test: Test, value: &Value) -> Option<PathTest> {
    let Some(value) = scalar(value)?.pop() else { return Some(PathTest::In(Vec::new())) };
    Some(match test {
        Test::Equal | Test::NotEqual => PathTest::In(vec![value]),
        Test::Less => PathTest::Within(Bound::Unbounded, Bound::Excluded(value)),
        Test::LessOrEqual => PathTest::Within(Bound::Unbounded, Bound::Included(value)),
        Test::Greater => PathTest::Within(Bound::Excluded(value), Bound::Unbounded),
        Test::GreaterOrEqual => PathTest::Within(Bound::Included(value), Bound::Unbounded),
    })
}

/// The scalar of a document that a literal is equal to; none if no scalar is, `None` if it is a document itself or a
/// decimal that is compared with each document's.
fn scalar(value: &Value) -> Option<Vec<PathValue>> {
    let scalar = match value {
        Value::Null => PathValue::Null,
        Value::Bool(truth) => PathValue::Bool(*truth),
        Value::Int(number) => PathValue::Int(*number),
        Value::Uint(number) => PathValue::Uint(*number),
        Value::Float(number) => PathValue::Float(*number),
        Value::Decimal(number) => match number.as_str().parse::<serde_json::Number>() {
            // The double that is nearest to a decimal may be a whole number that a document has, and the decimal not.
            Ok(double)
                if double.is_f64() && is_rounded_to_whole(double.as_f64()?, number.as_str()) =>
            {
                return None;
            }
            Ok(number) => of_number(&number),
            Err(_) => return Some(Vec::new()),
        },
        Value::Text(text) => PathValue::Text(text.to_string()),
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) | Value::Timestamp(_) => {
            PathValue::Text(value.to_string())
        }
        Value::Json(text) => match serde_json::from_str::<Json>(text) {
            Ok(Json::Array(_) | Json::Object(_)) => return None,
            Ok(Json::Null) => PathValue::Null,
            Ok(Json::Bool(truth)) => PathValue::Bool(truth),
            Ok(Json::Number(number)) => of_number(&number),
            Ok(Json::String(text)) => PathValue::Text(text),
            Err(_) => return Some(Vec::new()),
        },
        _ => return Some(Vec::new()),
    };
    Some(vec![scalar])
}

/// Whether the double that is nearest to a decimal is a whole number other than the decimal, or may be.
fn is_rounded_to_whole(double: f64, decimal: &str) -> bool {
    let fraction = decimal.split_once('.').map_or("", |(_, fraction)| fraction);
    let is_whole = fraction.bytes().all(|digit| digit == b'0') && !decimal.contains(['e', 'E']);
    double.abs() >= WHOLE_FROM || double.fract() == 0.0 && !is_whole
}

fn of_number(number: &serde_json::Number) -> PathValue {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => PathValue::Int(number),
        (_, Some(number)) => PathValue::Uint(number),
        _ => PathValue::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}
