//! MongoDB's extended JSON, versions 1 and 2, in both modes: objects that represent values which JSON lacks.
//!
//! ```text
//! $oid $symbol $code $uuid          the text                      $numberInt $numberLong    the integer
//! $numberDouble $numberDecimal      the number, with its digits   $undefined                null
//! $date                             a moment, 2024-12-31T23:59:59.5Z
//! $binary                           hexadecimal digits; of subtype 4 the text of a UUID
//! $regularExpression, $regex        /pattern/options              $timestamp                {"t": …, "i": …}
//! ```
//! `$ref`, `$id` and `$db` stay as they are. NaN and infinity, `$minKey`, `$maxKey`, `$dbPointer`, code with a scope
//! and unknown names are refused.

use remora_engine::ZERO_TIMESTAMP_MICROS;
use serde::de::MapAccess;
use serde_json::Value as Json;

use super::{super::literal::parse_timestamp, Walk};

/// Members of a document reference, which is an ordinary object.
const REFERENCE: [&str; 3] = ["$ref", "$id", "$db"];
/// The binary subtype of UUIDs. The byte order of subtype 3 is ambiguous.
const UUID: u8 = 4;
/// The most members of an object that represents a value.
const MAX_MEMBERS: usize = 4;

/// Whether an object whose first member has this name represents a value.
pub(super) fn is_value(name: &str) -> bool {
    name.starts_with('$') && !REFERENCE.contains(&name)
}

/// Reads the object after its first name. Returns the value as JSON and the number of numbers read.
pub(super) fn read<'de, A: MapAccess<'de>>(
    first: &str,
    map: &mut A,
    walk: &mut Walk<'_>,
) -> Result<(String, usize), A::Error> {
    let mut members: Vec<(String, Json)> = vec![(first.to_owned(), map.next_value()?)];
    while let Some(name) = map.next_key::<String>()? {
        if members.len() == MAX_MEMBERS || members.iter().any(|(other, _)| *other == name) {
            return walk.fail(format!("{first} stands beside {name:?}, which is no extended JSON"));
        }
        members.push((name, map.next_value()?));
    }
    let numbers = members.iter().map(|(_, value)| count_numbers(value)).sum();
    match convert(&members) {
        Ok(value) => Ok((value.into_json(), numbers)),
        Err(problem) => walk.fail(problem),
    }
}

/// The numbers within a value, which the document's text has too.
fn count_numbers(value: &Json) -> usize {
    match value {
        Json::Number(_) => 1,
        Json::Array(values) => values.iter().map(count_numbers).sum(),
        Json::Object(members) => members.values().map(count_numbers).sum(),
        _ => 0,
    }
}

/// The value that an object represents.
enum Converted {
    Text(String),
    /// Digits of a JSON number.
    Number(String),
    Other(Json),
}

impl Converted {
    fn into_json(self) -> String {
        match self {
            Self::Text(text) => Json::from(text).to_string(),
            Self::Number(digits) => digits,
            Self::Other(value) => value.to_string(),
        }
    }
}

fn convert(members: &[(String, Json)]) -> Result<Converted, String> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let get = |name: &str| members.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let only = members.first().map_or(&Json::Null, |(_, value)| value);
    let text = |value: &Json| match value {
        Json::String(text) => Ok(text.clone()),
        other => Err(format!("{} is followed by {other}, not by a text", names.join(" and "))),
    };
    Ok(match names.as_slice() {
        ["$oid"] => Converted::Text(object_id(text(only)?)?),
        ["$symbol" | "$code"] => Converted::Text(text(only)?),
        ["$uuid"] => Converted::Text(text(only)?),
        ["$numberInt"] => Converted::Number(integer::<i32>(&text(only)?, "$numberInt")?),
        ["$numberLong"] => Converted::Number(integer::<i64>(&text(only)?, "$numberLong")?),
        ["$numberDouble"] => number(text(only)?, "$numberDouble")?,
        ["$numberDecimal"] => number(text(only)?, "$numberDecimal")?,
        ["$date"] => Converted::Text(moment(only)?),
        ["$undefined"] => Converted::Other(Json::Null),
        ["$timestamp"] => Converted::Other(timestamp(only)?),
        ["$binary"] => binary(only.get("base64"), only.get("subType"))?,
        ["$binary", "$type"] => binary(get("$binary"), get("$type"))?,
        ["$regularExpression"] => expression(only.get("pattern"), only.get("options"))?,
        ["$regex"] => expression(get("$regex"), None)?,
        ["$options", "$regex"] => expression(get("$regex"), get("$options"))?,
        _ => return Err(unknown(&names)),
    })
}

fn unknown(names: &[&str]) -> String {
    format!(
        "the extended JSON of {} is not supported: convert it or leave it out, or import as json",
        names.join(" with ")
    )
}

fn object_id(text: String) -> Result<String, String> {
    match text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text),
        false => Err(format!("$oid {text:?} is not 24 hexadecimal digits")),
    }
}

fn integer<N: std::str::FromStr + ToString>(text: &str, name: &str) -> Result<String, String> {
    let number: Result<N, _> = text.parse();
    number
        .map(|number| number.to_string())
        .map_err(|_| format!("{name} {text:?} is no such integer"))
}

/// A number that is valid in JSON and in the range of doubles. It keeps its digits.
fn number(text: String, name: &str) -> Result<Converted, String> {
    let is_json = serde_json::from_str::<serde_json::Number>(&text).is_ok();
    match is_json {
        true => Ok(Converted::Number(text)),
        false => Err(format!(
            "{name} {text:?} is no number that JSON and doubles have: convert it or leave it out"
        )),
    }
}

/// A moment in the form of RFC 3339.
fn moment(value: &Json) -> Result<String, String> {
    let wrong =
        || format!("$date {value} is neither milliseconds since 1970 nor a moment with an offset");
    let milliseconds = match value {
        Json::Number(number) => number.as_i64(),
        Json::Object(members) if members.len() == 1 => {
            members.get("$numberLong").and_then(Json::as_str).and_then(|text| text.parse().ok())
        }
        _ => None,
    };
    let moment = match (value, milliseconds) {
        // MySQL's zero timestamp, as an export writes it.
        (Json::String(text), _) if parse_timestamp(text) == Some(ZERO_TIMESTAMP_MICROS) => {
            return Ok(text.clone());
        }
        (Json::String(text), _) => text.parse::<jiff::Timestamp>().map_err(|_| wrong())?,
        (_, Some(number)) => jiff::Timestamp::from_millisecond(number).map_err(|_| wrong())?,
        _ => return Err(wrong()),
    };
    Ok(moment.to_string())
}

fn timestamp(value: &Json) -> Result<Json, String> {
    let part = |name: &str| value.get(name).and_then(Json::as_u64);
    match (part("t"), part("i")) {
        (Some(seconds), Some(counter)) => Ok(serde_json::json!({"t": seconds, "i": counter})),
        _ => Err(format!("$timestamp {value} has no numbers t and i")),
    }
}

fn expression(pattern: Option<&Json>, options: Option<&Json>) -> Result<Converted, String> {
    match (pattern, options.map_or(Some(""), Json::as_str)) {
        (Some(Json::String(pattern)), Some(options)) => {
            Ok(Converted::Text(format!("/{pattern}/{options}")))
        }
        _ => Err("a regular expression without pattern and options as texts".to_owned()),
    }
}

fn binary(base64: Option<&Json>, kind: Option<&Json>) -> Result<Converted, String> {
    let wrong =
        || "$binary has no text of base64 with a subtype of two hexadecimal digits".to_owned();
    let bytes = base64.and_then(Json::as_str).and_then(decode_base64).ok_or_else(wrong)?;
    let kind = match kind {
        Some(Json::String(text)) => u8::from_str_radix(text, 16).ok(),
        Some(Json::Number(number)) => number.as_u64().and_then(|kind| u8::try_from(kind).ok()),
        _ => None,
    };
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if kind.ok_or_else(wrong)? == UUID && text.len() == 32 {
        [20, 16, 12, 8].iter().for_each(|&at| text.insert(at, '-'));
    }
    Ok(Converted::Text(text))
}

/// Decodes Base64 with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let padding = base64::engine::DecodePaddingMode::Indifferent;
    let config = base64::engine::GeneralPurposeConfig::new().with_decode_padding_mode(padding);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    base64::Engine::decode(&engine, text).ok()
}
