//! JSON documents with MySQL's semantics: order, text form, and conversion from SQL values.

mod member;
mod path;

use std::{borrow::Cow, cmp::Ordering};

use super::{decimal::Dec, number::format_double, temporal, types::ExprType, value::SqlValue};
use crate::{Error, Result, SqlType};

pub(crate) use member::{checked_member, member};
pub(crate) use path::{ArrayCell, Path, PathStep};
use remora_mysql::ErrorCode;

/// The deepest nesting of a document.
pub(crate) const MAX_DEPTH: usize = 100;

/// The longest text of a document in bytes: the largest packet of MySQL's protocol.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// The function that gives the part of a document which Sphinx's dialect names `j.a.b`: JSON_EXTRACT of one path, but NULL
/// for a JSON null.
pub(crate) const JSON_PART: &str = "#json_part";

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An integer that only fits unsigned.
    Uint(u64),
    /// A decimal from SQL.
    Decimal(Dec),
    /// Any other number.
    Double(f64),
    /// A string.
    Text(String),
    /// A date or time from SQL, with MySQL's name of its type.
    Temporal(&'static str, String),
    /// An array.
    Array(Vec<Json>),
    /// An object, with unique keys sorted by length, then by bytes.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a document.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, serde_json::Error> {
        serde_json::from_str::<serde_json::Value>(text).map(Self::from_parsed)
    }

    fn from_parsed(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(truth),
            serde_json::Value::Number(number) => {
                match (number.as_i64(), number.as_u64(), number.as_f64()) {
                    (Some(number), ..) => Self::Int(number),
                    (_, Some(number), _) => Self::Uint(number),
                    (.., number) => Self::Double(number.unwrap_or(0.0)),
                }
            }
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Array(values) => {
                Self::Array(values.into_iter().map(Self::from_parsed).collect())
            }
            serde_json::Value::Object(members) => {
                let members = members.into_iter();
                Self::object(members.map(|(key, value)| (key, Self::from_parsed(value))))
            }
        }
    }

    /// Builds an object; of duplicate keys the last counts.
    pub(crate) fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        let mut kept: Vec<(String, Self)> = Vec::new();
        for (key, value) in members {
            match kept.binary_search_by(|(other, _)| key_order(other, &key)) {
                Ok(at) => {
                    if let Some(member) = kept.get_mut(at) {
                        member.1 = value;
                    }
                }
                Err(at) => kept.insert(at, (key, value)),
            }
        }
        Self::Object(kept)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let at = members.binary_search_by(|(other, _)| key_order(other, key)).ok()?;
        members.get(at).map(|(_, value)| value)
    }

    /// The nesting depth: 1 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        1 + match self {
            Self::Array(values) => values.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => {
                members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// JSON_LENGTH: 1 for a scalar.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Array(values) => values.len(),
            Self::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// JSON_TYPE.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Bool(_) => "BOOLEAN",
            Self::Int(_) => "INTEGER",
            Self::Uint(_) => "UNSIGNED INTEGER",
            Self::Decimal(_) => "DECIMAL",
            Self::Double(_) => "DOUBLE",
            Self::Text(_) => "STRING",
            Self::Temporal(name, _) => name,
            Self::Array(_) => "ARRAY",
            Self::Object(_) => "OBJECT",
        }
    }

    /// The document's text in MySQL's format.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None, 0);
        out
    }

    /// The text; a string without its quotes.
    pub(crate) fn into_plain_text(self) -> String {
        match self {
            Self::Text(text) => text,
            value => value.text(),
        }
    }

    /// JSON_PRETTY.
    pub(crate) fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(2), 0);
        out
    }

    fn write(&self, out: &mut String, indent: Option<usize>, level: usize) {
        if out.len() > MAX_TEXT_BYTES {
            return;
        }
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Int(number) => out.push_str(&number.to_string()),
            Self::Uint(number) => out.push_str(&number.to_string()),
            Self::Decimal(number) => out.push_str(&number.to_string()),
            Self::Double(number) => out.push_str(&double_text(*number)),
            Self::Text(text) | Self::Temporal(_, text) => write_quoted(text, out),
            Self::Array(values) => {
                let write = |out: &mut String, at: usize| {
                    if let Some(value) = values.get(at) {
                        value.write(out, indent, level + 1);
                    }
                };
                write_list(out, ('[', ']'), values.len(), indent, level, write);
            }
            Self::Object(members) => {
                let write = |out: &mut String, at: usize| {
                    if let Some((key, value)) = members.get(at) {
                        write_quoted(key, out);
                        out.push_str(": ");
                        value.write(out, indent, level + 1);
                    }
                };
                write_list(out, ('{', '}'), members.len(), indent, level, write);
            }
        }
    }
}

fn write_list(
    out: &mut String,
    (open, close): (char, char),
    count: usize,
    indent: Option<usize>,
    level: usize,
    write: impl Fn(&mut String, usize),
) {
    let line = |out: &mut String, level: usize| {
        if let (Some(width), true) = (indent, count > 0) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * level));
        }
    };
    out.push(open);
    for at in 0..count {
        if at > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        line(out, level + 1);
        write(out, at);
    }
    line(out, level);
    out.push(close);
}

/// The text of a double, which parses as a double again.
fn double_text(number: f64) -> String {
    let text = format_double(number);
    let whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if whole { format!("{text}.0") } else { text }
}

/// A JSON string with quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(text, &mut out);
    out
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Merges the members of two objects, sorted by key, with the values that each object has.
pub(crate) fn joined(
    left: Vec<(String, Json)>,
    right: Vec<(String, Json)>,
) -> impl Iterator<Item = (String, Option<Json>, Option<Json>)> {
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => key_order(a, b),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let before = if order.is_le() { left.next() } else { None };
        let behind = if order.is_ge() { right.next() } else { None };
        match (before, behind) {
            (Some((key, a)), b) => Some((key, Some(a), b.map(|(_, b)| b))),
            (None, b) => b.map(|(key, b)| (key, None, Some(b))),
        }
    })
}

fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The rank of a value's type in comparisons, from the least.
fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 0,
        Json::Int(_) | Json::Uint(_) | Json::Decimal(_) | Json::Double(_) => 1,
        Json::Text(_) => 2,
        Json::Object(_) => 3,
        Json::Array(_) => 4,
        Json::Bool(_) => 5,
        Json::Temporal("DATE", _) => 6,
        Json::Temporal("TIME", _) => 7,
        Json::Temporal(..) => 8,
    }
}

/// The order of two documents.
pub(crate) fn compare(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
        (Json::Text(a), Json::Text(b)) | (Json::Temporal(_, a), Json::Temporal(_, b)) => a.cmp(b),
        (Json::Array(a), Json::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Json::Object(a), Json::Object(b)) => {
            let pairs = a.iter().zip(b).map(|((a_key, a), (b_key, b))| {
                key_order(a_key, b_key).then_with(|| compare(a, b))
            });
            a.len().cmp(&b.len()).then(pairs.fold(Ordering::Equal, Ordering::then))
        }
        _ if rank(a) == 1 && rank(b) == 1 => compare_numbers(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Json, b: &Json) -> Ordering {
    match (exact(a), exact(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => double(a).total_cmp(&double(b)),
    }
}

fn exact(value: &Json) -> Option<Dec> {
    match value {
        Json::Int(number) => Some(Dec::whole(i128::from(*number))),
        Json::Uint(number) => Some(Dec::whole(i128::from(*number))),
        Json::Decimal(number) => Some(*number),
        _ => None,
    }
}

fn double(value: &Json) -> f64 {
    match value {
        Json::Double(number) => *number,
        value => exact(value).map_or(0.0, Dec::to_double),
    }
}

/// A sort key that is exact for scalars and approximate for others.
pub(crate) fn sort_key(text: &str) -> Vec<u8> {
    let value = Json::parse(text).unwrap_or(Json::Null);
    let mut key = vec![rank(&value)];
    match &value {
        Json::Text(text) => key.extend_from_slice(text.as_bytes()),
        Json::Bool(truth) => key.push(u8::from(*truth)),
        value if rank(value) == 1 => {
            let bits = (double(value) + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            key.extend_from_slice(&ordered.to_be_bytes());
        }
        value => key.extend_from_slice(value.text().as_bytes()),
    }
    key
}

/// MySQL's number of VARCHAR in its tables, which documents show of bytes without a type of their own.
const VARCHAR: u8 = 15;
/// MySQL's number of BIT.
const BIT: u8 = 16;

/// Bytes as MySQL shows them in documents, with the number of their type.
fn opaque(of: u8, bytes: &[u8]) -> Json {
    Json::Text(format!("base64:type{of}:{}", super::encoding::base64(bytes)))
}

/// Converts an SQL value of a type to JSON. Documents tell bytes of CHAR, BLOB and BIT from others; a year is a number.
pub(crate) fn of_typed(value: &SqlValue<'_>, kind: Option<&ExprType>) -> Json {
    match (kind.map(|kind| kind.kind), value) {
        (Some(kind), SqlValue::Bytes(bytes)) => match kind {
            SqlType::Char => opaque(254, bytes),
            SqlType::TinyBlob => opaque(249, bytes),
            SqlType::MediumBlob => opaque(250, bytes),
            SqlType::LongBlob => opaque(251, bytes),
            SqlType::Blob => opaque(252, bytes),
            _ => opaque(VARCHAR, bytes),
        },
        (Some(SqlType::Bit(bits)), SqlValue::Uint(_) | SqlValue::Int(_)) => {
            let all = match value {
                SqlValue::Uint(number) => number.to_be_bytes(),
                SqlValue::Int(number) => number.to_be_bytes(),
                _ => [0; 8],
            };
            let unused = all.len().saturating_sub(usize::from(bits).div_ceil(8));
            opaque(BIT, all.get(unused..).unwrap_or_default())
        }
        (Some(SqlType::Year), SqlValue::Text(year) | SqlValue::Member(year, _)) => {
            year.parse().map_or(Json::Null, Json::Uint)
        }
        (_, value) => of_value(value),
    }
}

/// Converts an SQL value to JSON.
pub(crate) fn of_value(value: &SqlValue<'_>) -> Json {
    match value {
        SqlValue::Null => Json::Null,
        SqlValue::Int(number) => Json::Int(*number),
        SqlValue::Uint(number) => Json::Uint(*number),
        SqlValue::Dec(number) => Json::Decimal(*number),
        SqlValue::Float(number) => Json::Double(f64::from(*number)),
        SqlValue::Double(number) => Json::Double(*number),
        SqlValue::Text(text) | SqlValue::Member(text, _) => Json::Text(text.clone().into_owned()),
        SqlValue::Json(text) => Json::parse(text).unwrap_or(Json::Null),
        SqlValue::Bytes(bytes) => opaque(VARCHAR, bytes),
        SqlValue::Date(moment) => Json::Temporal("DATE", moment.date_text()),
        SqlValue::DateTime(moment, _) => Json::Temporal("DATETIME", moment.text(6)),
        SqlValue::Time(micros, _) => Json::Temporal("TIME", temporal::time_text(*micros, 6)),
    }
}

/// Converts a document to an SQL value.
pub(crate) fn to_value(value: &Json) -> SqlValue<'static> {
    SqlValue::Json(Cow::Owned(value.text()))
}

/// The document in a function's argument: a JSON value, or a text to parse.
pub(crate) fn argument(value: &SqlValue<'_>, number: usize, function: &str) -> Result<Json> {
    match value {
        SqlValue::Json(text) => Ok(Json::parse(text).unwrap_or(Json::Null)),
        SqlValue::Text(text) | SqlValue::Member(text, _) => parse_argument(text, number, function),
        SqlValue::Bytes(_) => {
            let message = "Cannot create a JSON value from a string with CHARACTER SET 'binary'.";
            Err(Error::new(ErrorCode::InvalidJsonCharset, message))
        }
        _ => {
            let message = format!(
                "Invalid data type for JSON data in argument {number} to function {function}; \
                 a JSON string or JSON type is required."
            );
            Err(Error::new(ErrorCode::InvalidJsonType, message))
        }
    }
}

/// Parses a text argument; 3141 if it is invalid.
pub(crate) fn parse_argument(text: &str, number: usize, function: &str) -> Result<Json> {
    Json::parse(text).map_err(|error| {
        let place = offset(text, error.line(), error.column());
        let what = if text.trim().is_empty() {
            "The document is empty."
        } else if error.is_eof() {
            "Missing a comma or ']' after an array element."
        } else {
            "Invalid value."
        };
        let message = format!(
            "Invalid JSON text in argument {number} to function {function}: \"{what}\" at \
             position {place}."
        );
        Error::new(ErrorCode::InvalidJsonText, message)
    })
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.lines().take(line.saturating_sub(1)).map(|line| line.len() + 1).sum();
    (before + column).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_written_as_mysql_writes_them() {
        let shown = |text| Json::parse(text).unwrap().text();
        assert_eq!(
            shown(r#"{"bb":1,"a":[1,2.0,null,"x\n"],"ab":{}}"#),
            r#"{"a": [1, 2.0, null, "x\n"], "ab": {}, "bb": 1}"#
        );
        assert_eq!(Json::parse("[1,{}]").unwrap().pretty(), "[\n  1,\n  {}\n]");
        assert_eq!(Json::parse("[[1],2]").unwrap().depth(), 3);
    }

    #[test]
    fn documents_have_an_order() {
        let less = |a, b| compare(&Json::parse(a).unwrap(), &Json::parse(b).unwrap()).is_lt();
        assert!(
            less("null", "1") && less("1", "1.5") && less("2", "\"a\"") && less("[1]", "[1,0]")
        );
        assert!(less("[1]", "true") && less("false", "true"));
    }
}
