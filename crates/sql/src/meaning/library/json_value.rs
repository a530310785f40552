//! JSON_VALUE: extracts a value as text, which a cast converts to the RETURNING type.

use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, ExactNumberInfo, Ident, ObjectName, TimezoneInfo,
};
use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    json::{self, Json, Path},
    json_table::fitted,
    types::{ExprType, UNBOUNDED},
    value::SqlValue,
};
use crate::{
    Error, Result,
    parse::{DEFAULT, ERROR, JSON_VALUE_OF},
};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("json_value", 2, 2, value_type, value),
    Definition::new(JSON_VALUE_OF, 5, 5, returned_type, returned),
];

/// The function's name in errors.
const NAME: &str = "json_value";
/// The characters of the result without RETURNING.
const CHARACTERS: u32 = 512;
/// The longest text of a number, date or time.
const SHORT: u32 = 100;

fn value_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(CHARACTERS, Collation::UTF8MB4_0900_BIN))
}

fn returned_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.constant_text(2).unwrap_or_default();
    let length = match kind.split_once(' ') {
        Some(("char" | "binary", length)) => length.parse().unwrap_or(UNBOUNDED / 4),
        _ if matches!(kind, "char" | "binary" | "json") => UNBOUNDED / 4,
        _ => SHORT,
    };
    Ok(ExprType::text(length, Collation::UTF8MB4_0900_BIN))
}

fn value<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [document, path] = args else { return Ok(SqlValue::Null) };
    let kind = DataType::Varchar(Some(characters(u64::from(CHARACTERS))));
    let asked = ReturningClause {
        kind: &kind,
        name: "STRING",
        on_empty: &Answer::Null,
        on_error: &Answer::Null,
    };
    asked.value(call, document, path)
}

fn returned<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [document, path, kind, on_empty, on_error] = args else { return Ok(SqlValue::Null) };
    let said = kind.string().unwrap_or_default();
    let (kind, name) = kind_of(&said)?;
    let answer =
        |value: &SqlValue<'_>| Answer::of(&value.string().unwrap_or_default(), &kind, name);
    let (on_empty, on_error) = (answer(on_empty)?, answer(on_error)?);
    let asked = ReturningClause { kind: &kind, name, on_empty: &on_empty, on_error: &on_error };
    asked.value(call, document, path)
}

/// What to return instead of a value.
enum Answer {
    Null,
    Error,
    Text(String),
}

impl Answer {
    /// Parses an ON EMPTY or ON ERROR clause. A default must fit the type.
    fn of(said: &str, kind: &DataType, name: &str) -> Result<Self> {
        if said == ERROR {
            return Ok(Self::Error);
        }
        let Some(default) = said.strip_prefix(DEFAULT) else { return Ok(Self::Null) };
        let value = match kind {
            DataType::JSON => json::parse_argument(default, 1, NAME)?,
            _ => Json::Text(default.to_owned()),
        };
        let name = if name == "STRING" { "CHAR" } else { name };
        match shown(&value, kind) {
            Some(text) => Ok(text.map_or(Self::Null, Self::Text)),
            None => Err(out_of_range(&format!("{name} DEFAULT"))),
        }
    }

    fn taken<'a>(&self, error: impl FnOnce() -> Error) -> Result<SqlValue<'a>> {
        match self {
            Self::Null => Ok(SqlValue::Null),
            Self::Error => Err(error()),
            Self::Text(text) => Ok(SqlValue::text(text.as_str())),
        }
    }
}

struct ReturningClause<'k> {
    kind: &'k DataType,
    /// The type's name in errors.
    name: &'static str,
    on_empty: &'k Answer,
    on_error: &'k Answer,
}

impl ReturningClause<'_> {
    fn value<'a>(
        &self,
        call: &Call<'_>,
        document: &SqlValue<'_>,
        path: &SqlValue<'_>,
    ) -> Result<SqlValue<'a>> {
        if document.is_null() || path.is_null() {
            return Ok(SqlValue::Null);
        }
        let path = Path::parse(&path.string().unwrap_or_default())?;
        if let SqlValue::Json(text) = document
            && path.is_of_keys()
        {
            return match json::member(text, &path.steps) {
                Some(found) => self.fit(&found),
                None => self.on_empty.taken(missing),
            };
        }
        let document = match json::argument(document, 1, NAME) {
            Err(error) if error.code == ErrorCode::InvalidJsonText => {
                if !matches!(self.on_error, Answer::Error) {
                    call.warn(error.code, || error.message.clone());
                }
                return self.on_error.taken(|| error);
            }
            document => document?,
        };
        match path.find(&document).as_slice() {
            [] => self.on_empty.taken(missing),
            [only] => self.fit(only),
            _ => self.on_error.taken(|| {
                let message =
                    format!("More than one value was found by '{NAME}' on the specified path.");
                Error::new(ErrorCode::JsonValueSeveral, message)
            }),
        }
    }

    fn fit<'a>(&self, found: &Json) -> Result<SqlValue<'a>> {
        match shown(found, self.kind) {
            Some(text) => Ok(SqlValue::or_null(text, SqlValue::text)),
            None => self.on_error.taken(|| out_of_range(self.name)),
        }
    }
}

fn missing() -> Error {
    let message = format!("No value was found by '{NAME}' on the specified path.");
    Error::new(ErrorCode::JsonValueMissing, message)
}

fn out_of_range(what: &str) -> Error {
    let message = messages::value_out_of_range(what, NAME);
    Error::new(ErrorCode::NumberOutOfRange, message)
}

/// The text of a value that fits the type; `Some(None)` for NULL, `None` if it does not fit.
fn shown(value: &Json, kind: &DataType) -> Option<Option<String>> {
    let is_text =
        matches!(kind, DataType::Varchar(_) | DataType::LongText | DataType::Varbinary(_));
    // Arrays and objects are accepted as texts.
    let text = match value {
        Json::Array(_) | Json::Object(_) if is_text => Some(Json::Text(value.text())),
        _ => None,
    };
    let fitted = fitted(text.as_ref().unwrap_or(value), kind)?;
    let digits = match kind {
        DataType::Time(digits, _) | DataType::Datetime(digits) => digits.unwrap_or(0),
        _ => return Some(fitted),
    };
    Some(fitted.map(|text| cut(text, digits)))
}

/// Truncates the seconds of a date or time to so many digits.
fn cut(mut text: String, digits: u64) -> String {
    if let Some(point) = text.find('.') {
        let kept = usize::try_from(digits).unwrap_or(usize::MAX);
        let end = if kept == 0 { point } else { point.saturating_add(1).saturating_add(kept) };
        if end < text.len() {
            text.truncate(end);
        }
    }
    text
}

fn characters(length: u64) -> CharacterLength {
    CharacterLength::IntegerLength { length, unit: None }
}

/// The RETURNING type, and its name in errors.
fn kind_of(said: &str) -> Result<(DataType, &'static str)> {
    let mut words = said.split(' ');
    let name = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    Ok(match name {
        "signed" => (DataType::BigInt(None), "SIGNED"),
        "unsigned" => (DataType::BigIntUnsigned(None), "UNSIGNED"),
        "char" | "nchar" => match number() {
            Some(length) => (DataType::Varchar(Some(characters(length))), "STRING"),
            None => (DataType::LongText, "STRING"),
        },
        "binary" => match number() {
            Some(length) => {
                let length =
                    datafusion::sql::sqlparser::ast::BinaryLength::IntegerLength { length };
                (DataType::Varbinary(Some(length)), "STRING")
            }
            None => (DataType::LongText, "STRING"),
        },
        "decimal" => {
            let (digits, scale) = (number().unwrap_or(10), number().unwrap_or(0));
            let scale = i64::try_from(scale).unwrap_or(i64::MAX);
            (DataType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale)), "DECIMAL")
        }
        "float" => (DataType::Float(ExactNumberInfo::None), "FLOAT"),
        "double" => (DataType::Double(ExactNumberInfo::None), "DOUBLE"),
        "date" => (DataType::Date, "DATE"),
        "time" => (DataType::Time(number(), TimezoneInfo::None), "TIME"),
        "datetime" => (DataType::Datetime(number()), "DATETIME"),
        "year" => {
            (DataType::Custom(ObjectName::from(vec![Ident::new("year")]), Vec::new()), "YEAR")
        }
        "json" => (DataType::JSON, "JSON"),
        other => return Err(Error::unsupported(format!("JSON_VALUE … RETURNING {other}"))),
    })
}
