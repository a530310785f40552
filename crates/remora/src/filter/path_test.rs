//! Converts a condition to the engine's test of one path.

use std::ops::Bound;

use remora_engine::{PathTest, PathValue, Value};
use serde_json::Value as Json;

use super::{Condition, Field, Test};

/// 2^53: from here on not every whole number can be a double.
const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;
/// The most values of a list. The engine permits a million in all lists together.
const MAX_VALUES: usize = 100_000;

/// The path of a condition, and the test of its values; `None` if the condition is not a test of one path, or if the
/// values that the engine has do not decide it.
pub(super) fn path_test(condition: &Condition) -> Option<(&Field, PathTest)> {
    match condition {
        Condition::Compare(_, Test::NotEqual, _) => None,
        Condition::Compare(field, test, value) => Some((field, compared(*test, value)?)),
        Condition::In(field, values) if values.len() <= MAX_VALUES => {
            let values: Option<Vec<Vec<PathValue>>> = values.iter().map(scalar).collect();
            Some((field, PathTest::In(values?.concat())))
        }
        Condition::Between(field, from, to) => {
            let bounds = (scalar(from)?.pop(), scalar(to)?.pop());
            let test = match bounds {
                (Some(from), Some(to)) => {
                    PathTest::Within(Bound::Included(from), Bound::Included(to))
                }
                _ => PathTest::In(Vec::new()),
            };
            Some((field, test))
        }
        Condition::Begins(field, text) => Some((field, PathTest::Begins(text.clone()))),
        Condition::Exists(field) => Some((field, PathTest::Exists)),
        Condition::IsFilled(field) => Some((field, PathTest::Filled)),
        Condition::IsNull(field) => Some((field, PathTest::In(vec![PathValue::Null]))),
        _ => None,
    }
}

/// The value that the condition requires at the path. The document may have other values there, too.
pub(crate) fn equal_value(condition: &Condition, names: &[String]) -> Option<PathValue> {
    let parts = match condition {
        Condition::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    // This is called for each path of each index, and `path_test` copies values: so only for conditions on this path.
    parts.iter().find_map(|part| match part {
        Condition::Compare(field, ..) | Condition::IsNull(field) if field.parts == names => {
            match path_test(part)?.1 {
                PathTest::In(mut values) if values.len() == 1 => values.pop(),
                _ => None,
            }
        }
        _ => None,
    })
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

/// The scalar of a document that equals a literal: one, or none if no scalar can be equal. `None` if the literal is an
/// array or object, or a decimal or a date that has to be compared with each document's value.
pub(super) fn scalar(value: &Value) -> Option<Vec<PathValue>> {
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
        Value::Time(_) => PathValue::Text(value.to_string()),
        // Texts of other bytes may be the same instant.
        Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) => return None,
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

/// Whether the double that is nearest to a decimal is, or may be, a whole number that differs from the decimal.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field, filter::parse::parse};

    #[test]
    fn equal_values_are_found_without_copies_of_lists() {
        let list = vec!["1"; 100_000].join(",");
        let text =
            format!("x IN ({list}) AND a > 1 AND a = 5 AND b IS NULL AND c IN (7) AND d != 1");
        let condition = parse(&text).unwrap();
        let value = |path: &str| equal_value(&condition, field(path).names());
        for _ in 0..5_000 {
            assert_eq!(value("a"), Some(PathValue::Int(5)));
            assert_eq!(value("b"), Some(PathValue::Null));
            for path in ["c", "d", "e", "x"] {
                assert_eq!(value(path), None);
            }
        }
        assert_eq!(equal_value(&parse("a = 'x'").unwrap(), field("a").names()), {
            Some(PathValue::Text("x".to_owned()))
        });
    }
}
