//! Fields and attributes as columns, and the conversion of texts to values as in Sphinx.

use remora_engine::{ColumnDef, ColumnType, PathDef, Row, Schema, Value, WordsDef};
use serde::de::IgnoredAny;

use super::text::{Section, Setting};

/// The column of document ids.
pub(super) const ID: &str = "id";

/// The Sphinx type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A full-text field.
    Field,
    /// A full-text field that is also an attribute.
    FieldString,
    Uint,
    Bool,
    Timestamp,
    Bigint,
    Float,
    String,
    Json,
    /// A set of 32-bit numbers.
    Multi,
    /// A set of 64-bit numbers.
    Multi64,
}

/// The most numbers of a set, as in SQL.
const MAX_NUMBERS: usize = 65_536;

/// A field or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// The name in lower case.
    pub name: String,
    pub kind: Kind,
    /// Its value in documents that give none.
    pub default: String,
}

/// Why a text is not a value of its column.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    NotUtf8,
    NotJson,
    TooManyNumbers,
}

impl Column {
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.trim().to_lowercase(), kind, default: String::new() }
    }

    /// The column that a key such as `sql_attr_uint` declares.
    pub fn of_setting(setting: &Setting, prefix: &str) -> Option<Self> {
        let kind = Kind::of_key(setting.key.strip_prefix(prefix)?)?;
        // Sphinx permits a bit width: forum_id:9.
        let name = setting.value.split(':').next().unwrap_or_default();
        (!name.trim().is_empty()).then(|| Self::new(name, kind))
    }

    /// The columns that a section's keys with this prefix declare, in order.
    pub fn of_section(section: &Section, prefix: &str) -> Vec<Self> {
        let settings = section.settings.iter();
        settings.filter_map(|setting| Self::of_setting(setting, prefix)).collect()
    }

    fn column_type(&self) -> ColumnType {
        match self.kind {
            Kind::Field | Kind::FieldString | Kind::String => ColumnType::Text,
            // Seconds since 1970, as queries for Sphinx compare it.
            Kind::Uint | Kind::Timestamp => ColumnType::Uint(32),
            // The type of SQL's BOOL.
            Kind::Bool => ColumnType::Int(8),
            Kind::Bigint => ColumnType::Int(64),
            Kind::Float => ColumnType::Float,
            Kind::Json | Kind::Multi | Kind::Multi64 => ColumnType::Json,
        }
    }

    /// The column's SQL declaration. Like in Sphinx, columns missing in an INSERT become 0 or empty.
    fn declared(&self) -> &'static str {
        match self.kind {
            Kind::Field | Kind::FieldString | Kind::String => "longtext NOT NULL DEFAULT ('')",
            Kind::Uint | Kind::Timestamp => "int unsigned NOT NULL DEFAULT '0'",
            Kind::Bool => "tinyint(1) NOT NULL DEFAULT '0'",
            Kind::Bigint => "bigint NOT NULL DEFAULT '0'",
            Kind::Float => "float NOT NULL DEFAULT '0'",
            Kind::Json => "json DEFAULT NULL",
            Kind::Multi => "multi NOT NULL",
            Kind::Multi64 => "multi64 NOT NULL",
        }
    }

    /// The SQL declaration of a column of documents that are not kept: what a document lacks is NULL.
    fn declared_of_document(&self) -> &'static str {
        match self.kind {
            Kind::Field | Kind::FieldString => "text",
            Kind::String => "longtext",
            Kind::Uint | Kind::Timestamp => "int unsigned",
            Kind::Bool => "tinyint(1)",
            Kind::Bigint => "bigint",
            Kind::Float => "float",
            Kind::Json => "json",
            Kind::Multi => "multi",
            Kind::Multi64 => "multi64",
        }
    }

    fn definition(&self, id: u32) -> ColumnDef {
        ColumnDef {
            id,
            name: self.name.clone(),
            kind: self.column_type(),
            nullable: self.kind == Kind::Json,
            indexed: self.kind != Kind::Field && self.column_type() != ColumnType::Json,
            declared: Some(self.declared().to_owned()),
        }
    }

    /// Converts a text: a number is its leading digits, modulo the type's size, or 0 if there are none.
    pub fn value(&self, text: &[u8]) -> Result<Value, Misfit> {
        Ok(match self.kind {
            Kind::Field | Kind::FieldString | Kind::String => Value::Text(utf8(text)?.into()),
            Kind::Uint | Kind::Timestamp => Value::Uint(u64::from(wrapped(text))),
            Kind::Bool => Value::Int((wrapped(text) != 0).into()),
            Kind::Bigint => Value::Int(saturated(text)),
            Kind::Float => Value::Float(f64::from(float(text))),
            Kind::Json => {
                let text = utf8(text)?.trim();
                if text.is_empty() {
                    return Ok(Value::Null);
                }
                serde_json::from_str::<IgnoredAny>(text).map_err(|_| Misfit::NotJson)?;
                Value::Json(text.into())
            }
            Kind::Multi => set(text, |digits| i64::from(wrapped(digits)), u8::is_ascii_digit)?,
            Kind::Multi64 => set(text, saturated, |byte| byte.is_ascii_digit() || *byte == b'-')?,
        })
    }
}

impl Kind {
    /// The type of `attr_uint`, `field` and so on.
    pub fn of_key(key: &str) -> Option<Self> {
        Some(match key {
            "field" => Self::Field,
            "field_string" => Self::FieldString,
            _ => Self::of_type(key.strip_prefix("attr_")?)?,
        })
    }

    /// An attribute's type by name.
    pub fn of_type(name: &str) -> Option<Self> {
        Some(match name {
            "uint" | "int" => Self::Uint,
            "bool" => Self::Bool,
            "timestamp" => Self::Timestamp,
            "bigint" => Self::Bigint,
            "float" => Self::Float,
            "string" => Self::String,
            "json" => Self::Json,
            "multi" => Self::Multi,
            "multi_64" => Self::Multi64,
            _ => return None,
        })
    }

    /// The place of a real-time index's columns of this type among those of others.
    pub fn place(self) -> u8 {
        match self {
            Self::Field | Self::FieldString => 0,
            Self::Uint => 1,
            Self::Bigint => 2,
            Self::Float => 3,
            Self::Timestamp => 4,
            Self::String => 5,
            Self::Multi => 6,
            Self::Multi64 => 7,
            Self::Json => 8,
            Self::Bool => 9,
        }
    }

    fn is_set(self) -> bool {
        matches!(self, Self::Multi | Self::Multi64)
    }

    fn is_field(self) -> bool {
        matches!(self, Self::Field | Self::FieldString)
    }
}

/// The positions of fields in a table with these columns.
pub(super) fn fields(columns: &[Column]) -> Vec<usize> {
    let places = (1..).zip(columns).filter(|(_, column)| column.kind.is_field());
    places.map(|(place, _)| place).collect()
}

/// The positions of fields in documents with these columns, which have no number of their own.
pub(super) fn document_fields(columns: &[Column]) -> Vec<usize> {
    fields(columns).into_iter().filter_map(|place| place.checked_sub(1)).collect()
}

/// Documents with these columns, whose declarations say what they are.
pub(super) fn documents(name: &str, columns: &[Column], words: WordsDef) -> Schema {
    let definition = |(id, column): (u32, &Column)| ColumnDef {
        declared: Some(column.declared_of_document().to_owned()),
        nullable: true,
        ..column.definition(id)
    };
    Schema {
        columns: (0..).zip(columns).map(definition).collect(),
        primary_key: Vec::new(),
        paths: Vec::new(),
        ..schema(name, &[], words)
    }
}

/// The table of an index with these columns.
pub(super) fn schema(table: &str, columns: &[Column], words: WordsDef) -> Schema {
    let id = ColumnDef {
        id: 0,
        name: ID.to_owned(),
        kind: ColumnType::Uint(64),
        nullable: false,
        indexed: true,
        declared: None,
    };
    let others = (1..).zip(columns).map(|(id, column)| column.definition(id));
    // Numbers of sets are indexed, as in tables that SQL declares.
    let sets = (1..).zip(columns).filter(|(_, column)| column.kind.is_set());
    let paths = sets.map(|(column, _)| PathDef::new(column, Vec::new())).collect();
    Schema {
        name: table.to_owned(),
        columns: std::iter::once(id).chain(others).collect(),
        primary_key: vec![0],
        texts: Vec::new(),
        indexes: Vec::new(),
        required: None,
        synonyms: Vec::new(),
        words: Some(words),
        paths,
        declared: None,
    }
}

/// A document id: an integer above 0.
pub(super) fn document_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    text.parse().ok().filter(|number| *number > 0)
}

/// A row: a document's id followed by its values.
pub(super) fn row(number: u64, values: impl Iterator<Item = Value>) -> Row {
    std::iter::once(Value::Uint(number)).chain(values).collect()
}

fn utf8(text: &[u8]) -> Result<&str, Misfit> {
    std::str::from_utf8(text).map_err(|_| Misfit::NotUtf8)
}

/// The set of the numbers in a text, which are runs of these bytes: a sorted array without duplicates.
fn set(
    text: &[u8],
    number: impl Fn(&[u8]) -> i64,
    is_of_number: impl Fn(&u8) -> bool,
) -> Result<Value, Misfit> {
    let runs = text.split(|byte| !is_of_number(byte)).filter(|run| !run.is_empty());
    let mut numbers: Vec<i64> = runs.map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > MAX_NUMBERS {
        return Err(Misfit::TooManyNumbers);
    }
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(Value::Json(format!("[{}]", numbers.join(", ")).into()))
}

/// The sign and the leading digits of a text.
fn number(text: &[u8]) -> (bool, u128) {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let add = |sum: u128, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    (is_negative, digits.fold(0, add))
}

/// Like C's `strtoul`, truncated to 32 bits.
fn wrapped(text: &[u8]) -> u32 {
    let (is_negative, magnitude) = number(text);
    let magnitude = u64::try_from(magnitude).unwrap_or(u64::MAX) as u32;
    if is_negative { magnitude.wrapping_neg() } else { magnitude }
}

/// Like C's `strtoll`.
fn saturated(text: &[u8]) -> i64 {
    let (is_negative, magnitude) = number(text);
    let signed = i128::try_from(magnitude).unwrap_or(i128::MAX);
    let signed = if is_negative { -signed } else { signed };
    signed.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Like C's `strtod`, except for infinity and NaN.
fn float(text: &[u8]) -> f32 {
    let text = text.trim_ascii_start();
    let mut end = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    end += digits(end);
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let number = text.get(..end).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    number.filter(|number: &f32| number.is_finite()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, text: &str) -> Result<Value, Misfit> {
        Column::new("c", kind).value(text.as_bytes())
    }

    /// The same values as the indexer of 2.2.11, except for JSON that is a single value.
    #[test]
    fn numbers_are_read_as_by_sphinx() {
        let uints =
            [("12abc", 12), ("", 0), (" 5", 5), ("0x10", 0), ("-1", u32::MAX), ("4294967297", 1)];
        for (text, expected) in uints {
            assert_eq!(value(Kind::Uint, text), Ok(Value::Uint(expected.into())), "{text}");
        }
        let bigints = [
            ("-7000000000", -7_000_000_000),
            ("9", 9),
            ("x", 0),
            ("99999999999999999999", i64::MAX),
        ];
        for (text, expected) in bigints {
            assert_eq!(value(Kind::Bigint, text), Ok(Value::Int(expected)), "{text}");
        }
        let floats = [
            ("1.5x", 1.5),
            ("abc", 0.0),
            (" 2.5", 2.5),
            ("-1e2e", -100.0),
            ("3e", 3.0),
            (".5", 0.5),
            ("1e999", 0.0),
            ("-", 0.0),
        ];
        for (text, expected) in floats {
            assert_eq!(value(Kind::Float, text), Ok(Value::Float(expected)), "{text}");
        }
        assert_eq!(value(Kind::Bool, "3"), Ok(Value::Int(1)));
        assert_eq!(value(Kind::Json, " "), Ok(Value::Null));
        assert_eq!(value(Kind::Json, " [1,2] "), Ok(Value::Json("[1,2]".into())));
        assert_eq!(value(Kind::Json, "{bad json"), Err(Misfit::NotJson));
        let sets = [
            ("1,2 -3;4x5", "[1, 2, 3, 4, 5]"),
            ("", "[]"),
            ("4294967297,7 7 3", "[1, 3, 7]"),
            ("abc", "[]"),
        ];
        for (text, expected) in sets {
            assert_eq!(value(Kind::Multi, text), Ok(Value::Json(expected.into())), "{text}");
        }
        let sets = [
            ("1,-2 9000000000", "[-2, 1, 9000000000]"),
            ("-9 - 5", "[-9, 0, 5]"),
            ("1.5", "[1, 5]"),
        ];
        for (text, expected) in sets {
            assert_eq!(value(Kind::Multi64, text), Ok(Value::Json(expected.into())), "{text}");
        }
        let many: Vec<String> = (0..=MAX_NUMBERS).map(|number| number.to_string()).collect();
        assert_eq!(value(Kind::Multi, &many.join(" ")), Err(Misfit::TooManyNumbers));
        assert!(value(Kind::Multi, &many[1..].join(" ")).is_ok());
        assert_eq!(Column::new("c", Kind::String).value(b"\xff"), Err(Misfit::NotUtf8));
    }

    #[test]
    fn numbers_of_documents_are_above_0() {
        assert_eq!(document_number(b" 12 "), Some(12));
        for wrong in [&b"0"[..], b"", b"-5", b"12x", b"18446744073709551616", b"\xff"] {
            assert_eq!(document_number(wrong), None);
        }
    }
}
