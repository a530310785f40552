//! Text, bytes, ENUM and SET.

use std::borrow::Cow;

use remora_engine::Value;
use remora_mysql::{Collation, ErrorCode};

use super::{Converter, TargetColumn, length, number::integer_of, text_of};
use crate::{Error, Result, SqlType, meaning::number::format_double};

/// The most labels of a SET.
const MAX_MEMBERS: usize = 64;

impl Converter {
    pub(super) fn fit_text(&self, slot: TargetColumn<'_>, value: Value) -> Result<Value> {
        if slot.kind.collation == Collation::BINARY {
            return self.fit_bytes(slot, &value);
        }
        let text: Cow<'_, str> = match &value {
            Value::Text(text) | Value::Json(text) => Cow::Borrowed(text),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(error) => {
                    let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                    let kept = Value::Text(String::from_utf8_lossy(valid).into());
                    return self.wrong_string(slot, bytes, error.valid_up_to(), kept);
                }
            },
            other => Cow::Owned(self.shown_number(slot, other)),
        };
        if let Some(at) = first_foreign(&text, slot.kind.collation.charset()) {
            let foreign = |c: char| !is_of(c, slot.kind.collation.charset());
            let kept = Value::Text(text.replace(foreign, "?").into());
            return self.wrong_string(slot, text.as_bytes(), at, kept);
        }
        let cut = cut_text(slot, &text);
        let Some(rest) = text.get(cut..).filter(|rest| !rest.is_empty()) else {
            return Ok(Value::Text(self.trimmed(slot, &text).into()));
        };
        let kept = text.get(..cut).unwrap_or_default();
        let kept = Value::Text(self.trimmed(slot, kept).into());
        if rest.bytes().all(|byte| byte == b' ') {
            if slot.kind.sql != SqlType::Char {
                self.note(ErrorCode::DataTruncated, super::truncated_text(slot));
            }
            return Ok(kept);
        }
        self.too_long(slot, kept)
    }

    fn fit_bytes(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let mut bytes = match value {
            Value::Bytes(bytes) => bytes.to_vec(),
            Value::Text(text) => {
                let mut bytes = Vec::with_capacity(text.len());
                self.client.encode(text, &mut bytes);
                bytes
            }
            Value::Json(text) => text.as_bytes().to_vec(),
            other => self.shown_number(slot, other).into_bytes(),
        };
        let most = length(slot.kind);
        let pads = slot.kind.sql == SqlType::Char;
        let too_long = bytes.len() > most;
        bytes.truncate(most);
        if pads {
            bytes.resize(most, 0);
        }
        let kept = Value::Bytes(bytes.into());
        if too_long { self.too_long(slot, kept) } else { Ok(kept) }
    }

    /// CHAR does not keep trailing spaces.
    fn trimmed<'t>(&self, slot: TargetColumn<'_>, text: &'t str) -> &'t str {
        match slot.kind.sql {
            SqlType::Char => text.trim_end_matches(' '),
            _ => text,
        }
    }

    /// A number as a text column stores it. A double gets as many digits as fit.
    fn shown_number(&self, slot: TargetColumn<'_>, value: &Value) -> String {
        let text = text_of(value);
        match value {
            Value::Float(number) if text.len() > length(slot.kind) => {
                shortened(*number, length(slot.kind)).unwrap_or(text)
            }
            _ => text,
        }
    }

    fn wrong_string(
        &self,
        slot: TargetColumn<'_>,
        bytes: &[u8],
        at: usize,
        instead: Value,
    ) -> Result<Value> {
        let rest = bytes.get(at..).unwrap_or_default();
        let mut shown: String = rest
            .iter()
            .take(6)
            .map(|&byte| match byte {
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\x{byte:02X}"),
            })
            .collect();
        if rest.len() > 6 {
            shown.push_str("...");
        }
        let TargetColumn { name, row, .. } = slot;
        let message = format!("Incorrect string value: '{shown}' for column '{name}' at row {row}");
        self.complain(ErrorCode::WrongValueForColumn, message, instead)
    }

    pub(super) fn fit_enum(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let labels = &slot.kind.labels;
        let numbered = |number: i128| {
            let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            index.and_then(|index| labels.get(index)).cloned()
        };
        let is_text = matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Json(_));
        let label = match is_text {
            true => {
                let text = text_of(value);
                let text = text.trim_end_matches(' ');
                let found = labels.iter().find(|label| is_same_label(label, text)).cloned();
                found.or_else(|| text.parse().ok().and_then(numbered))
            }
            false => numbered(whole_part(value)),
        };
        match label {
            Some(label) => Ok(Value::Text(label)),
            None => self.truncated(slot, Value::Text("".into())),
        }
    }

    pub(super) fn fit_set(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let labels = &slot.kind.labels;
        let is_text = matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Json(_));
        let all = u64::MAX.checked_shr((MAX_MEMBERS - labels.len()) as u32).unwrap_or(0);
        let (bits, complete) = match is_text {
            true => {
                let text = text_of(value);
                let (bits, complete) = set_of_text(&text, labels);
                match text.parse::<u64>() {
                    Ok(number) if !complete => (number & all, number & !all == 0),
                    _ => (bits, complete),
                }
            }
            false => {
                let number = u64::try_from(whole_part(value)).unwrap_or(u64::MAX);
                (number & all, number & !all == 0)
            }
        };
        let members = labels.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
        let mut held = String::new();
        for (_, label) in members {
            // An empty label before others leaves no comma.
            held.push_str(if held.is_empty() { "" } else { "," });
            held.push_str(label);
        }
        let held = Value::Text(held.into());
        if complete { Ok(held) } else { self.truncated(slot, held) }
    }
}

/// ENUM and SET truncate numbers to integers.
fn whole_part(value: &Value) -> i128 {
    match value {
        Value::Float(number) => number.trunc() as i128,
        Value::Decimal(number) => {
            let text = number.as_str();
            text.split_once('.').map_or(text, |(whole, _)| whole).parse().unwrap_or(0)
        }
        other => integer_of(other),
    }
}

fn set_of_text(text: &str, labels: &[std::sync::Arc<str>]) -> (u64, bool) {
    if text.is_empty() {
        return (0, true);
    }
    let mut bits = 0;
    let mut complete = true;
    for part in text.split(',') {
        let part = part.trim_end_matches(' ');
        match labels.iter().position(|label| is_same_label(label, part)) {
            Some(place) => bits |= 1_u64 << place,
            None => complete = false,
        }
    }
    (bits, complete)
}

fn is_same_label(label: &str, text: &str) -> bool {
    label == text || label.to_lowercase() == text.to_lowercase()
}

/// Where a text is cut: by characters for CHAR and VARCHAR, by bytes for TEXT.
fn cut_text(slot: TargetColumn<'_>, text: &str) -> usize {
    let most = length(slot.kind);
    if !slot.kind.is_blob() {
        if text.len() <= most {
            return text.len();
        }
        return text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    }
    if text.len() <= most {
        return text.len();
    }
    (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The offset of the first character that is not in a character set.
fn first_foreign(text: &str, charset: &str) -> Option<usize> {
    if text.is_ascii() {
        return None;
    }
    text.char_indices().find(|(_, c)| !is_of(*c, charset)).map(|(at, _)| at)
}

/// Whether a character is in a character set, as far as it is known here.
fn is_of(character: char, charset: &str) -> bool {
    // MySQL's latin1 is cp1252: it has these characters where ISO 8859-1 has control codes.
    const WINDOWS: &str = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ";
    match charset {
        "ascii" => character.is_ascii(),
        "latin1" => u32::from(character) < 0x100 || WINDOWS.contains(character),
        "utf8mb3" | "ucs2" => u32::from(character) < 0x1_0000,
        _ => true,
    }
}

/// A double in at most this many characters.
fn shortened(number: f64, most: usize) -> Option<String> {
    (1..17).rev().find_map(|digits| {
        let rounded: f64 = format!("{number:.*e}", digits - 1).parse().ok()?;
        let text = format_double(rounded);
        (text.len() <= most).then_some(text)
    })
}

/// VECTOR stores 32-bit floats as bytes.
pub(super) fn fit_vector(slot: TargetColumn<'_>, value: Value) -> Result<Value> {
    match &value {
        Value::Bytes(bytes)
            if bytes.len() % 4 == 0 && bytes.len() <= length(slot.kind).saturating_mul(4) =>
        {
            Ok(value)
        }
        _ => {
            let message = format!("Data cannot be converted to a valid vector: '{}'", slot.name);
            Err(Error::new(ErrorCode::WrongValueForColumn, message))
        }
    }
}
