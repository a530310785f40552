//! Dates and times in conditions on documents, which have them as texts in the form of ISO 8601.
//!
//! An index sorts such texts by their bytes. Of the instants near a text only its first ten bytes say something, the
//! date: the offset may move it by a day. So an index finds a range of texts that has all that are meant, and the
//! documents are tested.

use std::ops::Bound;

use remora_engine::{DateTime, PathTest, PathValue, Value};

use super::{Condition, Field, Test};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Each text of a date begins with a digit: the first text, and the first behind all such texts.
const FIRST: &str = "0";
const BEHIND: &str = ":";

/// The instant that a date, or a date and time, means, in microseconds since 1970. `None` for other literals, and for
/// dates that no calendar has.
pub(super) fn instant(literal: &Value) -> Option<i64> {
    let moment = match literal {
        Value::Timestamp(micros) => return Some(*micros),
        Value::Date(date) => DateTime { date: *date, micros: 0 },
        Value::DateTime(moment) => *moment,
        _ => return None,
    };
    let micros = moment.to_timestamp()?;
    (DateTime::from_timestamp(micros)? == moment && moment.date.month > 0).then_some(micros)
}

/// The path of a condition that compares with dates, and a test of its values that holds for all texts for which the
/// condition holds.
pub(super) fn date_test(condition: &Condition) -> Option<(&Field, PathTest)> {
    let (field, low, high) = match condition {
        Condition::Compare(field, test, value) => {
            let value = instant(value)?;
            match test {
                Test::NotEqual => return None,
                Test::Equal => (field, Some(value), Some(value)),
                Test::Less | Test::LessOrEqual => (field, None, Some(value)),
                Test::Greater | Test::GreaterOrEqual => (field, Some(value), None),
            }
        }
        Condition::Between(field, from, to) => (field, Some(instant(from)?), Some(instant(to)?)),
        Condition::In(field, values) => {
            let instants: Vec<i64> = values.iter().map(instant).collect::<Option<_>>()?;
            (field, Some(*instants.iter().min()?), Some(*instants.iter().max()?))
        }
        _ => return None,
    };
    let low = low.and_then(|low| day(low.checked_sub(MICROS_PER_DAY)?));
    let high = high.and_then(|high| day(high.checked_add(2 * MICROS_PER_DAY)?));
    let bound =
        |day: Option<String>, other: &str| PathValue::Text(day.unwrap_or_else(|| other.to_owned()));
    let (low, high) = (bound(low, FIRST), bound(high, BEHIND));
    Some((field, PathTest::Within(Bound::Included(low), Bound::Excluded(high))))
}

/// The date of an instant as text.
fn day(micros: i64) -> Option<String> {
    DateTime::from_timestamp(micros).map(|moment| moment.date.to_string())
}
