//! What queries mean, said a second time over documents in memory, without the library's code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{cmp::Ordering, collections::BTreeMap};

use remora::{Date, DateTime, Filter, field};
use serde_json::{Value as Json, json};

/// Texts of dates and others, with their instant in milliseconds from 2024-05-01 in UTC.
pub const DATES: [(&str, Option<i64>); 12] = [
    ("2024-05-01", Some(0)),
    ("2024-05-01T00:00:00Z", Some(0)),
    ("2024-05-01 02:00+02:00", Some(0)),
    ("2024-05-01T12:00:00", Some(12 * 3_600_000)),
    ("2024-05-01T03:00:00-0900", Some(12 * 3_600_000)),
    ("2024-04-30T23:30:00-01:00", Some(1_800_000)),
    ("2024-04-30", Some(-24 * 3_600_000)),
    ("2024-05-02T00:00:00.5Z", Some(24 * 3_600_000 + 500)),
    ("2024-05-02t01:00:00.500+01:00", Some(24 * 3_600_000 + 500)),
    ("2024-02-30", None),
    ("2024-05", None),
    ("20240501", None),
];

/// A literal of each instant.
pub const INSTANTS: [i64; 4] = [-24 * 3_600_000, 0, 12 * 3_600_000, 24 * 3_600_000 + 500];

/// A condition.
#[derive(Clone, Debug)]
pub enum Cond {
    Compare(&'static str, Sign, Json),
    CompareDate(&'static str, Sign, i64),
    BetweenDates(&'static str, i64, i64),
    In(&'static str, Vec<Json>),
    Begins(&'static str, &'static str),
    Exists(&'static str),
    Has(&'static str, Box<Cond>),
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Not(Box<Cond>),
}

#[derive(Clone, Copy, Debug)]
pub enum Sign {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Sign {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }

    fn filter(self, path: &str, value: impl remora::IntoValue) -> Filter {
        match self {
            Self::Equal => field(path).equals(value),
            Self::NotEqual => field(path).differs_from(value),
            Self::Less => field(path).less_than(value),
            Self::AtMost => field(path).at_most(value),
            Self::Greater => field(path).greater_than(value),
            Self::AtLeast => field(path).at_least(value),
        }
    }
}

/// The literal of an instant: a date if it is midnight.
fn literal(millis: i64) -> remora::Value {
    let days = millis.div_euclid(86_400_000);
    let date = match days {
        -1 => Date { year: 2024, month: 4, day: 30 },
        days => Date { year: 2024, month: 5, day: 1 + u8::try_from(days).unwrap() },
    };
    match millis.rem_euclid(86_400_000) {
        0 => remora::Value::Date(date),
        rest => remora::Value::DateTime(DateTime { date, micros: rest.unsigned_abs() * 1_000 }),
    }
}

impl Cond {
    pub fn filter(&self) -> Filter {
        match self {
            Self::Compare(path, sign, value) => sign.filter(path, value.clone()),
            Self::CompareDate(path, sign, millis) => sign.filter(path, literal(*millis)),
            Self::BetweenDates(path, from, to) => field(path).between(literal(*from), literal(*to)),
            Self::In(path, values) => field(path).is_in(values.clone()),
            Self::Begins(path, text) => field(path).begins_with(text),
            Self::Exists(path) => field(path).exists(),
            Self::Has(path, inner) => field(path).has(inner.filter()),
            Self::And(parts) => {
                let mut parts = parts.iter().map(Self::filter);
                let first = parts.next().unwrap();
                parts.fold(first, |all, part| all & part)
            }
            Self::Or(parts) => {
                let mut parts = parts.iter().map(Self::filter);
                let first = parts.next().unwrap();
                parts.fold(first, |all, part| all | part)
            }
            Self::Not(inner) => !inner.filter(),
        }
    }

    pub fn holds(&self, document: &Json) -> bool {
        let any = |path: &str, test: &dyn Fn(&Json) -> bool| {
            with_elements(document, path).into_iter().any(test)
        };
        match self {
            Self::Compare(path, Sign::NotEqual, value) => {
                !any(path, &|found| same_kind(found, value) && rank(found, value).is_eq())
            }
            Self::Compare(path, sign, value) => {
                any(path, &|found| same_kind(found, value) && sign.holds(rank(found, value)))
            }
            Self::CompareDate(path, Sign::NotEqual, millis) => {
                !any(path, &|found| instant(found) == Some(*millis))
            }
            Self::CompareDate(path, sign, millis) => {
                any(path, &|found| instant(found).is_some_and(|it| sign.holds(it.cmp(millis))))
            }
            Self::BetweenDates(path, from, to) => {
                any(path, &|found| instant(found).is_some_and(|it| (*from..=*to).contains(&it)))
            }
            Self::In(path, values) => any(path, &|found| {
                values.iter().any(|value| same_kind(found, value) && rank(found, value).is_eq())
            }),
            Self::Begins(path, text) => {
                any(path, &|found| found.as_str().is_some_and(|found| found.starts_with(text)))
            }
            Self::Exists(path) => any(path, &|_| true),
            Self::Has(path, inner) => {
                at(document, &names(path)).into_iter().any(|found| match found.as_array() {
                    Some(elements) => {
                        elements.iter().any(|element| !element.is_array() && inner.holds(element))
                    }
                    None => inner.holds(found),
                })
            }
            Self::And(parts) => parts.iter().all(|part| part.holds(document)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(document)),
            Self::Not(inner) => !inner.holds(document),
        }
    }
}

fn instant(value: &Json) -> Option<i64> {
    let text = value.as_str()?;
    DATES.iter().find(|(date, _)| *date == text)?.1
}

fn names(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// The places of the values at a path: names and numbers from the outside in.
fn places(value: &Json, names: &[&str], here: &[String]) -> Vec<Vec<String>> {
    let Some((name, below)) = names.split_first() else { return vec![here.to_vec()] };
    let step = |step: &str| [here, &[step.to_owned()]].concat();
    match value {
        Json::Object(members) => {
            members.get(*name).map_or(Vec::new(), |member| places(member, below, &step(name)))
        }
        Json::Array(elements) => {
            match name.parse::<usize>().ok().filter(|place| *place < elements.len()) {
                Some(place) => places(&elements[place], below, &step(&place.to_string())),
                None => (0..elements.len())
                    .filter(|place| !elements[*place].is_array())
                    .flat_map(|place| places(&elements[place], names, &step(&place.to_string())))
                    .collect(),
            }
        }
        _ => Vec::new(),
    }
}

fn at<'d>(document: &'d Json, names: &[&str]) -> Vec<&'d Json> {
    let value = |place: Vec<String>| {
        place.iter().fold(document, |value, step| match value {
            Json::Array(elements) => &elements[step.parse::<usize>().unwrap()],
            other => &other[step],
        })
    };
    places(document, names, &[]).into_iter().map(value).collect()
}

/// The values at a path, and the elements of those that are arrays.
fn with_elements<'d>(document: &'d Json, path: &str) -> Vec<&'d Json> {
    let found = at(document, &names(path));
    let elements = found.iter().filter_map(|value| value.as_array()).flatten();
    found.iter().copied().chain(elements).collect()
}

fn kind(value: &Json) -> u8 {
    match value {
        Json::Null => 1,
        Json::Bool(_) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    }
}

fn same_kind(a: &Json, b: &Json) -> bool {
    kind(a) == kind(b) && kind(a) < 5
}

/// The order of values. The numbers of these tests differ as doubles.
fn rank(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
        (Json::Number(a), Json::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
        (Json::String(a), Json::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (a, b) => kind(a).cmp(&kind(b)),
    }
}

/// The documents that satisfy a condition, in an order.
pub fn found<'m>(
    model: &'m BTreeMap<i64, Json>,
    condition: Option<&Cond>,
    sort: &[(&str, bool)],
) -> Vec<(i64, &'m Json)> {
    let holds = |document: &Json| condition.is_none_or(|condition| condition.holds(document));
    let mut found: Vec<(i64, &Json)> = model
        .iter()
        .filter(|(_, document)| holds(document))
        .map(|(id, document)| (*id, document))
        .collect();
    found.sort_by(|(one_id, one), (other_id, other)| {
        let by = sort.iter().map(|(path, descending)| {
            let first = |document| at(document, &names(path)).first().copied();
            let order = match (first(one), first(other)) {
                (Some(one), Some(other)) => rank(one, other),
                (one, other) => one.is_some().cmp(&other.is_some()),
            };
            if *descending { order.reverse() } else { order }
        });
        by.fold(Ordering::Equal, Ordering::then).then(one_id.cmp(other_id))
    });
    found
}

/// The document with only the values at the paths.
pub fn reduced(document: &Json, paths: &[&str]) -> Json {
    let all: Vec<Vec<String>> =
        paths.iter().flat_map(|path| places(document, &names(path), &[])).collect();
    let nothing = if document.is_array() { json!([]) } else { json!({}) };
    reduced_at(document, &[], &all).unwrap_or(nothing)
}

fn reduced_at(value: &Json, here: &[String], all: &[Vec<String>]) -> Option<Json> {
    if all.iter().any(|place| place == here) {
        return Some(value.clone());
    }
    let below = |step: String, value: &Json| reduced_at(value, &[here, &[step]].concat(), all);
    match value {
        Json::Object(members) => {
            let members = members.iter().filter_map(|(name, member)| {
                below(name.clone(), member).map(|member| (name.clone(), member))
            });
            let members: serde_json::Map<String, Json> = members.collect();
            (!members.is_empty()).then_some(Json::Object(members))
        }
        Json::Array(elements) => {
            let elements = elements.iter().enumerate();
            let elements: Vec<Json> =
                elements.filter_map(|(at, value)| below(at.to_string(), value)).collect();
            (!elements.is_empty()).then_some(Json::Array(elements))
        }
        _ => None,
    }
}

/// The values at a path with the numbers of documents that have them, and how many there are.
pub fn facet(found: &[(i64, &Json)], path: &str, most: usize) -> (Vec<(Json, u64)>, u64) {
    let mut counts: Vec<(Json, u64)> = Vec::new();
    for (_, document) in found {
        let mut values: Vec<&Json> =
            with_elements(document, path).into_iter().filter(|value| kind(value) < 5).collect();
        values.sort_by(|a, b| rank(a, b));
        values.dedup_by(|a, b| rank(a, b).is_eq());
        for value in values {
            match counts.iter_mut().find(|(known, _)| rank(known, value).is_eq()) {
                Some((_, count)) => *count += 1,
                None => counts.push((whole(value), 1)),
            }
        }
    }
    counts.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| rank(a, b)));
    let distinct = counts.len() as u64;
    counts.truncate(most);
    (counts, distinct)
}

/// A small whole double as an integer.
fn whole(value: &Json) -> Json {
    match value.as_f64() {
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < 1e15 => {
            json!(number as i64)
        }
        _ => value.clone(),
    }
}
