//! Converts a JSON value to the type of a JSON_TABLE column. A value that does not fit is an error,
//! for which ON ERROR decides; values are never truncated. The rules were checked against MySQL 9.7
//! for each type.

use datafusion::sql::sqlparser::ast::{BinaryLength, CharacterLength, DataType, ExactNumberInfo};
use remora_mysql::ErrorCode;

use crate::{
    Error,
    meaning::{
        decimal::Dec,
        json::Json,
        temporal::{LONGEST_TIME, ParsedMoment, parse_moment, parse_time, time_text},
    },
};

/// Why a value does not fit a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConversionError {
    /// The value is not this kind of number.
    Cast(&'static str),
    /// The value is too large or too long, or there is no such date.
    Range,
    /// The value is an array or an object.
    Nested,
}

impl ConversionError {
    /// The SQL error, for ON ERROR and for a default that does not fit.
    pub(super) fn error(self, column: &str, row: usize) -> Error {
        match self {
            Self::Cast(kind) => Error::new(
                ErrorCode::InvalidJsonCast,
                format!("Invalid JSON value for CAST to {kind} from column {column} at row {row}"),
            ),
            Self::Range => Error::new(
                ErrorCode::JsonTableRange,
                format!("Value is out of range for JSON_TABLE's column '{column}'"),
            ),
            Self::Nested => Error::new(
                ErrorCode::JsonTableNested,
                format!(
                    "Can't store an array or an object in the scalar JSON_TABLE column '{column}'"
                ),
            ),
        }
    }
}

const INTEGER: ConversionError = ConversionError::Cast("INTEGER");
const DECIMAL: ConversionError = ConversionError::Cast("DECIMAL");
const DOUBLE: ConversionError = ConversionError::Cast("DOUBLE");

/// The text that a cast converts to the column's value; `None` for NULL.
///
/// # Errors
/// Why the value does not fit.
pub(super) fn fitted(value: &Json, kind: &DataType) -> Result<Option<String>, ConversionError> {
    if matches!(kind, DataType::JSON) {
        return Ok((*value != Json::Null).then(|| value.text()));
    }
    match value {
        Json::Null => return Ok(None),
        Json::Array(_) | Json::Object(_) => return Err(ConversionError::Nested),
        _ => {}
    }
    if let Some((least, most)) = whole_range(kind) {
        return whole(value, least, most).map(Some);
    }
    match kind {
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
            decimal(value, info)
        }
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Real => {
            double(value, kind)
        }
        DataType::Date => moment(value).map(|parsed| parsed.moment.date_text()),
        DataType::Datetime(_) | DataType::Timestamp(..) => {
            moment(value).map(|parsed| parsed.moment.text(parsed.digits))
        }
        DataType::Time(..) => time(value),
        DataType::Char(length) | DataType::Character(length) => {
            short(value, characters(length.as_ref()).or(Some(1)), |text| text.chars().count())
        }
        DataType::Varchar(length) | DataType::CharacterVarying(length) => {
            short(value, characters(length.as_ref()), |text| text.chars().count())
        }
        DataType::Binary(length) => short(value, length.or(Some(1)), str::len),
        DataType::Varbinary(length) => short(value, length.as_ref().and_then(bytes), str::len),
        DataType::TinyText | DataType::TinyBlob => short(value, Some(255), str::len),
        DataType::Text | DataType::Blob(_) => short(value, Some(65_535), str::len),
        DataType::MediumText | DataType::MediumBlob => short(value, Some(16_777_215), str::len),
        _ if is_year(kind) => year(value),
        _ => Ok(plain(value)),
    }
    .map(Some)
}

/// Whether a type is YEAR, which the parser knows only as a custom type.
pub(crate) fn is_year(kind: &DataType) -> bool {
    matches!(kind, DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("year"))
}

/// The range of an integer type.
pub(super) fn whole_range(kind: &DataType) -> Option<(i128, i128)> {
    let signed = |bits: u32| (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    let unsigned = |bits: u32| (0, (1i128 << bits) - 1);
    Some(match kind {
        DataType::TinyInt(_) | DataType::Boolean | DataType::Bool => signed(8),
        DataType::SmallInt(_) => signed(16),
        DataType::MediumInt(_) => signed(24),
        DataType::Int(_) | DataType::Integer(_) => signed(32),
        DataType::BigInt(_) => signed(64),
        DataType::TinyIntUnsigned(_) => unsigned(8),
        DataType::SmallIntUnsigned(_) => unsigned(16),
        DataType::MediumIntUnsigned(_) => unsigned(24),
        DataType::IntUnsigned(_) | DataType::IntegerUnsigned(_) => unsigned(32),
        DataType::BigIntUnsigned(_) => unsigned(64),
        _ => return None,
    })
}

fn characters(length: Option<&CharacterLength>) -> Option<u64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        _ => None,
    }
}

fn bytes(length: &BinaryLength) -> Option<u64> {
    match length {
        BinaryLength::IntegerLength { length } => Some(*length),
        BinaryLength::Max => None,
    }
}

/// The text of a scalar; a string without quotes.
fn plain(value: &Json) -> String {
    match value {
        Json::Text(text) => text.clone(),
        other => other.text(),
    }
}

fn whole(value: &Json, least: i128, most: i128) -> Result<String, ConversionError> {
    let number = match value {
        Json::Bool(truth) => i128::from(*truth),
        Json::Int(number) => i128::from(*number),
        Json::Uint(number) => i128::from(*number),
        // Values beyond 2^127 saturate, and are out of range as well.
        Json::Double(number) => number.round_ties_even() as i128,
        other => plain(other).parse().map_err(|_| INTEGER)?,
    };
    if (least..=most).contains(&number) {
        Ok(number.to_string())
    } else {
        Err(ConversionError::Range)
    }
}

/// Precision and scale of a DECIMAL, with MySQL's defaults.
fn digits(info: &ExactNumberInfo) -> (u64, i64) {
    match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(digits) => (*digits, 0),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => (*digits, *scale),
    }
}

fn decimal(value: &Json, info: &ExactNumberInfo) -> Result<String, ConversionError> {
    let text = match value {
        Json::Bool(truth) => u8::from(*truth).to_string(),
        other => plain(other),
    };
    let text = text.trim();
    let (number, length) = Dec::parse_prefix(text);
    if length == 0 || length < text.len() || !text.contains(|each: char| each.is_ascii_digit()) {
        return Err(DECIMAL);
    }
    let (digits, scale) = digits(info);
    let number = number.rounded(scale, false).ok_or(ConversionError::Range)?;
    let before = i64::try_from(digits).unwrap_or(i64::MAX) - scale;
    let fits = number.is_zero() || number.integer_digits() as i64 <= before;
    if fits { Ok(number.to_string()) } else { Err(ConversionError::Range) }
}

fn double(value: &Json, kind: &DataType) -> Result<String, ConversionError> {
    let text = match value {
        Json::Bool(truth) => u8::from(*truth).to_string(),
        // An empty text is 0 here, although it is invalid for integers and decimals.
        Json::Text(text) if text.is_empty() => "0".to_owned(),
        other => plain(other),
    };
    // Rust's parser would accept `inf` and `nan` too.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match text.parse::<f64>() {
        Ok(number) if is_number && number.abs() <= largest(kind) => Ok(text),
        Ok(_) if is_number => Err(ConversionError::Range),
        _ => Err(DOUBLE),
    }
}

/// The largest value of a floating-point type: 999.99 for `FLOAT(5,2)`.
fn largest(kind: &DataType) -> f64 {
    let (info, all) = match kind {
        DataType::Float(info) => (info, f64::from(f32::MAX)),
        DataType::Double(info) => (info, f64::MAX),
        _ => return f64::MAX,
    };
    match info {
        ExactNumberInfo::PrecisionAndScale(digits, scale) => {
            let power = |power: i64| 10_f64.powi(i32::try_from(power).unwrap_or(i32::MAX));
            let before = i64::try_from(*digits).unwrap_or(i64::MAX).saturating_sub(*scale);
            // A value that rounds down to the largest fits.
            all.min(power(before) - 0.5 * power(-scale))
        }
        ExactNumberInfo::Precision(bits) if *bits > 24 => f64::MAX,
        _ => all,
    }
}

/// Parses a date, which must exist.
fn moment(value: &Json) -> Result<ParsedMoment, ConversionError> {
    let parsed = parse_moment(&plain(value)).ok_or(ConversionError::Range)?;
    let is_date = parsed.moment.month > 0 && parsed.moment.day > 0;
    if is_date { Ok(parsed) } else { Err(ConversionError::Range) }
}

/// Parses a time; text after it is ignored, as in MySQL.
fn time(value: &Json) -> Result<String, ConversionError> {
    if matches!(value, Json::Bool(_)) {
        return Err(ConversionError::Range);
    }
    let parsed = parse_time(&plain(value)).ok_or(ConversionError::Range)?;
    match !parsed.complete && parsed.micros.abs() == LONGEST_TIME {
        true => Err(ConversionError::Range),
        false => Ok(time_text(parsed.micros, parsed.digits)),
    }
}

fn short(
    value: &Json,
    most: Option<u64>,
    length: impl Fn(&str) -> usize,
) -> Result<String, ConversionError> {
    let text = plain(value);
    let Some(most) = most else { return Ok(text) };
    if length(&text) as u64 <= most {
        return Ok(text);
    }
    // Trailing spaces beyond the length are dropped.
    let bare = text.trim_end_matches(' ');
    let spaces = most.checked_sub(length(bare) as u64).ok_or(ConversionError::Range)?;
    let end = bare.len() + usize::try_from(spaces).unwrap_or(usize::MAX);
    Ok(text.get(..end).unwrap_or(&text).to_owned())
}

fn year(value: &Json) -> Result<String, ConversionError> {
    // A text '0' is also the year 0, not 2000, because numbers are cast.
    let number: u32 = whole(value, 0, 2_155)?.parse().map_err(|_| INTEGER)?;
    match number {
        0..=99 | 1_901.. => Ok(number.to_string()),
        _ => Err(ConversionError::Range),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::TimezoneInfo;

    use super::*;

    fn of(value: &str, kind: &DataType) -> Result<Option<String>, ConversionError> {
        fitted(&Json::parse(value).unwrap(), kind)
    }

    #[test]
    fn whole_numbers_fit_whole() {
        let tiny = DataType::TinyInt(None);
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of("true", &tiny), some("1"));
        assert_eq!(of("1.5", &tiny), some("2"));
        assert_eq!(of("2.5", &tiny), some("2"));
        assert_eq!(of("\"12\"", &tiny), some("12"));
        assert_eq!(of("null", &tiny), Ok(None));
        for (value, why) in [
            ("128", ConversionError::Range),
            ("1e400", ConversionError::Range),
            ("\"1.5\"", INTEGER),
            ("\" 7 \"", INTEGER),
            ("[1]", ConversionError::Nested),
        ] {
            if let Ok(value) = Json::parse(value) {
                assert_eq!(fitted(&value, &tiny), Err(why), "{value:?}");
            }
        }
        let unsigned = DataType::BigIntUnsigned(None);
        assert_eq!(of("18446744073709551615", &unsigned), some("18446744073709551615"));
        assert_eq!(of("-1", &unsigned), Err(ConversionError::Range));
    }

    #[test]
    fn texts_are_not_cut() {
        let length = CharacterLength::IntegerLength { length: 3, unit: None };
        let text = DataType::Varchar(Some(length));
        assert_eq!(of("\"äöü\"", &text), Ok(Some("äöü".to_owned())));
        assert_eq!(of("true", &text), Err(ConversionError::Range));
        assert_eq!(of("\"ä     \"", &text), Ok(Some("ä  ".to_owned())));
        assert_eq!(of("\" abc\"", &text), Err(ConversionError::Range));
        assert_eq!(of("false", &DataType::Text), Ok(Some("false".to_owned())));
    }

    #[test]
    fn decimals_fit_or_not() {
        let kind = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(4, 1));
        assert_eq!(of("-2.25", &kind), Ok(Some("-2.3".to_owned())));
        assert_eq!(of("\" 7 \"", &kind), Ok(Some("7".to_owned())));
        assert_eq!(of("1000", &kind), Err(ConversionError::Range));
        assert_eq!(of("\"25:00\"", &kind), Err(DECIMAL));
        assert_eq!(of("\"\"", &kind), Err(DECIMAL));
        let fraction = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(2, 2));
        assert_eq!(of("5", &fraction), Err(ConversionError::Range));
        assert_eq!(of("0.999", &fraction), Err(ConversionError::Range));
        assert_eq!(of("0", &fraction), Ok(Some("0".to_owned())));
    }

    #[test]
    fn floats_times_and_dates_fit_or_not() {
        let some = |text: &str| Ok(Some(text.to_owned()));
        let float = DataType::Float(ExactNumberInfo::None);
        assert_eq!(of("1e39", &float), Err(ConversionError::Range));
        assert_eq!(of("\"\"", &float), some("0"));
        assert_eq!(of("1e39", &DataType::Real), some("1e39"));
        let narrow = DataType::Float(ExactNumberInfo::PrecisionAndScale(5, 2));
        assert_eq!(of("12345.678", &narrow), Err(ConversionError::Range));
        assert_eq!(of("999.99", &narrow), some("999.99"));
        let time = DataType::Time(None, TimezoneInfo::None);
        assert_eq!(of("\"839:00:00\"", &time), Err(ConversionError::Range));
        assert_eq!(of("\"2024-01-02\"", &time), some("00:20:24"));
        assert_eq!(of("\"25:00:00\"", &DataType::Date), Err(ConversionError::Range));
        assert_eq!(of("\"2024-01-02 03:04:05\"", &DataType::Date), some("2024-01-02"));
    }
}
