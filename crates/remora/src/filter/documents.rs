//! Whether a condition holds for a document.

use std::cmp::Ordering;

use remora_engine::{DateTime, Decimal, PATH_TEXTS, Value, walk_path};
use serde_json::{Number, Value as Json};

use super::{Condition, Field, Test, dates::instant};

/// Whether the condition holds for the document. The document is walked once for each part of the condition.
pub(crate) fn matches(condition: &Condition, document: &Json) -> bool {
    match condition {
        Condition::Compare(field, Test::NotEqual, value) => {
            !any(field, document, &mut |found| compare(found, value) == Some(Ordering::Equal))
        }
        Condition::Compare(field, test, value) => any(field, document, &mut |found| {
            compare(found, value).is_some_and(|order| holds(*test, order))
        }),
        Condition::In(field, values) => any(field, document, &mut |found| {
            values.iter().any(|value| compare(found, value) == Some(Ordering::Equal))
        }),
        Condition::Between(field, from, to) => any(field, document, &mut |found| {
            compare(found, from).is_some_and(Ordering::is_ge)
                && compare(found, to).is_some_and(Ordering::is_le)
        }),
        Condition::Begins(field, text) => any(field, document, &mut |found| {
            found.as_str().is_some_and(|found| found.starts_with(text))
        }),
        Condition::Exists(field) => any(field, document, &mut |_| true),
        Condition::IsFilled(field) => walk_path(&field.parts, document, &mut |found| match found {
            Json::Array(elements) => elements.iter().any(|element| !element.is_null()),
            one => !one.is_null(),
        }),
        Condition::IsNull(field) => any(field, document, &mut Json::is_null),
        Condition::Matches(fields, text) => holds_text(fields, document, text),
        Condition::Has(field, inner) => {
            walk_path(&field.parts, document, &mut |found| match found {
                Json::Array(elements) => {
                    elements.iter().any(|element| !element.is_array() && matches(inner, element))
                }
                one => matches(inner, one),
            })
        }
        Condition::And(parts) => parts.iter().all(|part| matches(part, document)),
        Condition::Or(parts) => parts.iter().any(|part| matches(part, document)),
        Condition::Not(inner) => !matches(inner, document),
    }
}

/// Whether one of the texts at the paths contains this text.
fn holds_text(fields: &[Field], document: &Json, text: &str) -> bool {
    let wanted = PATH_TEXTS.apply(text);
    let mut test = |found: &Json| {
        found.as_str().is_some_and(|found| PATH_TEXTS.apply(found).contains(&*wanted))
    };
    !wanted.is_empty() && fields.iter().any(|field| any(field, document, &mut test))
}

fn holds(test: Test, order: Ordering) -> bool {
    match test {
        Test::Equal => order.is_eq(),
        Test::NotEqual => order.is_ne(),
        Test::Less => order.is_lt(),
        Test::LessOrEqual => order.is_le(),
        Test::Greater => order.is_gt(),
        Test::GreaterOrEqual => order.is_ge(),
    }
}

/// The first value that a path leads to.
pub(crate) fn first_at<'d>(field: &Field, document: &'d Json) -> Option<&'d Json> {
    let mut first = None;
    walk_path(&field.parts, document, &mut |found| {
        first = Some(found);
        true
    });
    first
}

/// Whether the test holds for a value that the path leads to, or for an element of one.
fn any(field: &Field, document: &Json, test: &mut dyn FnMut(&Json) -> bool) -> bool {
    walk_path(&field.parts, document, &mut |found| {
        test(found) || found.as_array().is_some_and(|elements| elements.iter().any(&mut *test))
    })
}

/// How a value of a document compares with a literal; `None` if they are not of one type.
fn compare(found: &Json, literal: &Value) -> Option<Ordering> {
    match (found, literal) {
        (Json::Null, Value::Null) => Some(Ordering::Equal),
        (Json::Bool(truth), Value::Bool(other)) => Some(truth.cmp(other)),
        // Infinity is no JSON number, but others lie below it.
        (Json::Number(number), Value::Float(bound)) if !bound.is_finite() => {
            number.as_f64()?.partial_cmp(bound)
        }
        (Json::Number(number), Value::Decimal(decimal)) => compare_with_decimal(number, decimal),
        (Json::Number(number), _) => compare_numbers(number, &number_of(literal)?),
        (Json::String(text), Value::Text(other)) => Some((**text).cmp(other)),
        (Json::String(text), Value::Time(_)) => Some(text.as_str().cmp(&literal.to_string())),
        (Json::String(text), Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_)) => {
            Some(DateTime::parse_instant(text)?.cmp(&instant(literal)?))
        }
        (_, Value::Json(text)) => {
            let other: Json = serde_json::from_str(text).ok()?;
            (*found == other).then_some(Ordering::Equal)
        }
        _ => None,
    }
}

fn number_of(literal: &Value) -> Option<Number> {
    match literal {
        Value::Int(number) => Some((*number).into()),
        Value::Uint(number) => Some((*number).into()),
        Value::Float(number) => Number::from_f64(*number),
        _ => None,
    }
}

/// The order of a number and a decimal: exact beside a whole number, else that of the nearest doubles.
fn compare_with_decimal(number: &Number, decimal: &Decimal) -> Option<Ordering> {
    let Some(whole) = whole(number) else {
        return number.as_f64()?.partial_cmp(&decimal.as_str().parse().ok()?);
    };
    let digits = decimal.as_str();
    let is_negative = digits.starts_with('-');
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let beyond = if is_negative { i128::MIN } else { i128::MAX };
    let order = whole.cmp(&before.parse().unwrap_or(beyond));
    let is_whole = behind.bytes().all(|digit| digit == b'0');
    Some(order.then(match (is_whole, is_negative) {
        (true, _) => Ordering::Equal,
        (false, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }))
}

/// The exact order of two numbers, also of integers that a double cannot represent.
fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_float(a, b.as_f64()?),
        (None, Some(b)) => compare_with_float(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare_with_float(whole: i128, float: f64) -> Option<Ordering> {
    // The cast keeps within the range of i128, which is beyond every whole number here.
    let order = whole.cmp(&(float.trunc() as i128));
    Some(order.then(0.0_f64.partial_cmp(&float.fract())?))
}

/// The order of values by which documents are sorted: missing values, null, false, true, numbers, texts by their bytes,
/// arrays, objects. Two arrays, or two objects, count as equal.
pub(crate) fn order(a: Option<&Json>, b: Option<&Json>) -> Ordering {
    match (a, b) {
        (Some(Json::Number(a)), Some(Json::Number(b))) => {
            compare_numbers(a, b).unwrap_or(Ordering::Equal)
        }
        (Some(Json::String(a)), Some(Json::String(b))) => a.cmp(b),
        (Some(Json::Bool(a)), Some(Json::Bool(b))) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: Option<&Json>) -> u8 {
    match value {
        None => 0,
        Some(Json::Null) => 1,
        Some(Json::Bool(_)) => 2,
        Some(Json::Number(_)) => 3,
        Some(Json::String(_)) => 4,
        Some(Json::Array(_)) => 5,
        Some(Json::Object(_)) => 6,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Filter;

    fn holds_for(filter: &str, document: &Json) -> bool {
        matches(&Filter::parse(filter).unwrap().0, document)
    }

    #[test]
    fn values_compare_as_what_they_are() {
        let document = json!({
            "n": 5, "text": "5", "half": 0.5, "big": u64::MAX, "near": 9_007_199_254_740_993_i64,
            "yes": true, "nothing": null, "when": "2024-05-01"
        });
        for filter in [
            "n = 5",
            "n = 5.0",
            "n < 5.5",
            "n >= 5",
            "NOT n = '5'",
            "text = '5'",
            "NOT text = 5",
            "half > 0",
            "half BETWEEN 0 AND 1",
            "big = 18446744073709551615",
            "big > 1.8e19",
            "near > 9007199254740992.0",
            "near != 9007199254740992.0",
            "near = 9007199254740993.0",
            "near < 9007199254740993.25",
            "near > 9007199254740992.75",
            "near > -9007199254740993.5",
            "near < 99999999999999999999999999999999999999999.5",
            "half < 0.50000000000000000001 OR half = 0.50000000000000000001",
            "big < 18446744073709551615.5",
            "big < 18446744073709551616",
            "n > -1e300",
            "n < 1e300",
            "yes = true",
            "NOT yes = 1",
            "nothing IS NULL",
            "nothing EXISTS",
            "NOT gone IS NULL",
            "NOT gone EXISTS",
            "gone != 1",
            "text != 5",
            "n IN ('5', 5)",
            "NOT n IN ('5')",
            "when < '2024-06'",
            "NOT n BETWEEN '0' AND '9'",
            "NOT nothing = 0",
        ] {
            assert!(holds_for(filter, &document), "{filter}");
        }
        let date = remora_engine::Date { year: 2024, month: 5, day: 1 };
        assert!(matches(&crate::field("when").equals(date).0, &document));
    }

    #[test]
    fn arrays_fan_out() {
        let document = json!({
            "tags": ["a", "b"], "grid": [[1, 2], [3]],
            "authors": [{"name": "Ann", "age": 30}, {"name": "Bo"}], "0": "zero"
        });
        for filter in [
            "tags = 'a'",
            "tags = 'b'",
            "NOT tags = 'c'",
            "NOT tags != 'a'",
            "tags.1 = 'b'",
            "NOT tags.1 = 'a'",
            "authors.name = 'Bo'",
            "authors.0.name = 'Ann'",
            "NOT authors.1.name = 'Ann'",
            "authors.age EXISTS",
            "authors.age > 29",
            "grid.1 = 3",
            "grid.0.1 = 2",
            "NOT grid = 3",
            "NOT tags.2 EXISTS",
            "`0` = 'zero'",
            "NOT tags.x EXISTS",
        ] {
            assert!(holds_for(filter, &document), "{filter}");
        }
        let whole = crate::field("tags").equals(json!(["a", "b"]));
        assert!(matches(&whole.0, &document));
    }

    #[test]
    fn texts_are_searched_without_case() {
        let document = json!({
            "title": "The Coral REEF", "tags": ["Sea", ["deep"], 5], "parts": [{"t": "ﬁsh"}, {"t": 7}]
        });
        for filter in [
            "title MATCHES 'coral reef'",
            "title MATCHES 'l r'",
            "NOT title MATCHES 'coral  reef'",
            "title NOT MATCHES 'sea'",
            "(title, tags) MATCHES 'sea'",
            "NOT (title, tags) MATCHES 'reefsea'",
            "NOT tags MATCHES 'deep'",
            "tags.1 MATCHES 'deep'",
            "NOT tags MATCHES '5'",
            "parts.t MATCHES 'Fish'",
            "NOT title MATCHES ''",
            "NOT gone MATCHES 'a'",
            "(title MATCHES 'reef') AND (tags = 5)",
        ] {
            assert!(holds_for(filter, &document), "{filter}");
        }
    }

    #[test]
    fn sorted_values_have_one_order() {
        let sorted =
            [json!(null), json!(false), json!(true), json!(-1), json!(1.5), json!(2), json!("a")];
        assert!(sorted.is_sorted_by(|a, b| order(Some(a), Some(b)).is_lt()));
        assert!(order(None, Some(&json!(null))).is_lt());
    }
}
