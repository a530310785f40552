//! CAST and CONVERT.

use datafusion::logical_expr::{Cast, Expr};
use remora_mysql::{Charset, Collation, ErrorCode, messages};

use super::{
    super::{
        call::{Call, TypeContext},
        decimal::Dec,
        encoding,
        function::{Definition, Dialect},
        json,
        temporal::{LONGEST_TIME, round_micros},
        types::{ExprType, UNBOUNDED, coercibility},
        value::SqlValue,
    },
    calls::typed,
};
use crate::{Error, Result, SqlType};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("cast_signed", 1, 1, signed_type, signed),
    Definition::new("cast_unsigned", 1, 1, unsigned_type, unsigned),
    Definition::new("cast_char", 1, 2, char_type, char),
    Definition::new("cast_binary", 1, 2, binary_type, binary),
    Definition::new("cast_decimal", 3, 3, decimal_type, decimal),
    Definition::new("cast_float", 1, 1, float_type, float),
    Definition::new("cast_double", 1, 1, double_type, double),
    Definition::new("cast_date", 1, 1, date_type, date),
    Definition::new("cast_time", 1, 2, time_type, time),
    Definition::new("cast_datetime", 1, 2, date_time_type, date_time),
    Definition::new("cast_year", 1, 1, year_type, year),
    Definition::new("cast_json", 1, 1, json_type, cast_json),
    Definition::new("convert_using", 2, 2, using_type, using),
    Definition::new("char_using", 2, 2, char_using_type, using),
    Definition::new("to_text", 1, 1, text_type, first),
    Definition::new("sum_argument", 1, 1, sum_argument_type, first).expanding(wider),
];

fn present<'v, 'a>(args: &'v [SqlValue<'a>]) -> Option<&'v SqlValue<'a>> {
    args.first().filter(|value| !value.is_null())
}

fn first<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.first().cloned().unwrap_or(SqlValue::Null))
}

fn kept(typing: &TypeContext<'_>, kind: ExprType) -> ExprType {
    ExprType { not_null: typing.get(0).not_null, ..kind }
}

fn signed_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(kept(typing, ExprType::int(21)))
}

fn signed<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(present(args), |value| SqlValue::Int(bounded(value, call) as i64)))
}

/// The integer within 64 bits; decimals and texts out of range become the largest signed integer.
fn bounded(value: &SqlValue<'_>, call: &Call<'_>) -> i128 {
    let number = value.integer(call);
    match value {
        SqlValue::Dec(_) => {
            let most = i128::from(i64::MAX);
            let kept = number.clamp(-most - 1, most);
            if kept != number && number > i128::from(u64::MAX) - 1 {
                value.warn_truncated(call, "DECIMAL");
            }
            kept
        }
        _ => number,
    }
}

fn unsigned_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(kept(typing, ExprType::uint(21)))
}

fn unsigned<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let number = value.integer(call);
    if let SqlValue::Dec(exact) = value
        && exact.to_whole() != Some(number)
    {
        value.warn_truncated(call, "DECIMAL");
    }
    if number < 0 && matches!(value, SqlValue::Text(_)) {
        call.warn(ErrorCode::Unknown, || {
            "Cast to unsigned converted negative integer to its positive complement".to_owned()
        });
    }
    Ok(SqlValue::Uint(u64::try_from(number).unwrap_or(number as i64 as u64)))
}

fn char_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = match typing.constant(1) {
        Some(length) => u32::try_from(length).unwrap_or(UNBOUNDED),
        None => typing.get(0).characters(),
    };
    let kind = ExprType::text(length, typing.collation);
    Ok(kind.with_coercibility(coercibility::IMPLICIT))
}

fn char<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let text = value.string().unwrap_or_default();
    let Some(length) = args.get(1).map(|length| length.count(call)) else {
        return Ok(match value {
            SqlValue::Text(text) => SqlValue::Text(text.clone()),
            _ => SqlValue::text(text.into_owned()),
        });
    };
    let length = usize::try_from(length).unwrap_or(0);
    match text.char_indices().nth(length) {
        Some((end, _)) => {
            call.warn_truncated(&format!("CHAR({length})"), &text);
            Ok(SqlValue::text(text.get(..end).unwrap_or("")))
        }
        None => Ok(SqlValue::text(text.into_owned())),
    }
}

fn binary_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let bytes = if kind.is_text() { kind.length.saturating_mul(4) } else { kind.characters() };
    let length =
        typing.constant(1).map_or(bytes, |length| u32::try_from(length).unwrap_or(UNBOUNDED));
    Ok(ExprType::binary(length).with_coercibility(coercibility::IMPLICIT))
}

fn binary<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let mut bytes = value.octets().unwrap_or_default().into_owned();
    if let Some(length) = args.get(1) {
        let length = usize::try_from(length.count(call)).unwrap_or(0);
        if bytes.len() > length {
            value.warn_truncated(call, &format!("BINARY({length})"));
        }
        if length <= usize::try_from(call.longest_text()).unwrap_or(usize::MAX) {
            bytes.resize(length, 0);
        }
    }
    Ok(SqlValue::bytes(bytes))
}

fn decimal_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let size =
        |index| typing.constant(index).and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    Ok(kept(typing, ExprType::decimal(size(1), size(2))))
}

fn decimal<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let SqlType::Decimal(digits, scale) = call.result.kind else { return Ok(SqlValue::Null) };
    let exact = value.decimal(call);
    let largest = Dec::largest(digits, scale);
    let rounded = exact.rescaled(scale).unwrap_or(largest);
    if rounded.units.wrapping_abs() > largest.units {
        let shown = exact.to_string();
        call.warn(ErrorCode::OutOfRange, || {
            messages::out_of_range(cast_name(&shown, digits, scale), 1)
        });
        return Ok(SqlValue::Dec(if exact.is_negative() { largest.negated() } else { largest }));
    }
    Ok(SqlValue::Dec(rounded))
}

fn cast_name(value: &str, digits: u8, scale: u8) -> String {
    format!("cast({value} as decimal({digits},{scale}))")
}

fn float_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(kept(typing, ExprType { kind: SqlType::Float, ..ExprType::double() }))
}

fn float<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let number = value.double(call) as f32;
    if number.is_finite() {
        return Ok(SqlValue::Float(number));
    }
    Err(Error::new(ErrorCode::NumberOutOfRange, messages::value_out_of_range("FLOAT", "cast")))
}

fn double_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(kept(typing, ExprType::double()))
}

fn double<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(present(args), |value| SqlValue::Double(value.double(call))))
}

fn date_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date())
}

/// CAST AS DATE, and DATE().
pub(super) fn date<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let moment = args.first().and_then(|value| call.allowed_moment(value));
    Ok(SqlValue::or_null(moment, |(moment, ..)| SqlValue::Date(moment.midnight())))
}

fn digits(typing: &TypeContext<'_>) -> u8 {
    typing.constant(1).and_then(|digits| u8::try_from(digits).ok()).unwrap_or(0)
}

fn time_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::time(digits(typing)))
}

fn time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let digits = call.result.scale();
    Ok(SqlValue::or_null(args.first().and_then(|value| value.time(call)), |(micros, _)| {
        SqlValue::Time(round_micros(micros, digits).clamp(-LONGEST_TIME, LONGEST_TIME), digits)
    }))
}

fn date_time_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date_time(digits(typing)))
}

fn date_time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let digits = call.result.scale();
    let moment = args.first().and_then(|value| call.allowed_moment(value));
    let rounded = moment.and_then(|(moment, ..)| moment.rounded(digits));
    Ok(SqlValue::or_null(rounded, |moment| SqlValue::DateTime(moment, digits)))
}

fn year_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::column(SqlType::Year, true, 4, Collation::BINARY))
}

fn year<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let number = match value {
        SqlValue::Date(moment) | SqlValue::DateTime(moment, _) => i128::from(moment.year),
        SqlValue::Time(..) => i128::from(call.today().year),
        value => value.integer(call),
    };
    if let SqlValue::Text(text) = value
        && !text.trim_start().starts_with(|first: char| first.is_ascii_digit())
    {
        return Ok(SqlValue::Null);
    }
    let year = match number {
        0 if matches!(value, SqlValue::Text(_)) => 2_000,
        0 => 0,
        1..=69 => number + 2_000,
        70..=99 => number + 1_900,
        1_901..=2_155 => number,
        _ => {
            value.warn_truncated(call, "YEAR");
            return Ok(SqlValue::Null);
        }
    };
    Ok(SqlValue::Uint(u64::try_from(year).unwrap_or(0)))
}

fn json_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::json())
}

fn cast_json<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match present(args) {
        None => Ok(SqlValue::Null),
        Some(SqlValue::Text(text)) => {
            json::parse_argument(text, 1, "cast_as_json").map(|value| json::to_value(&value))
        }
        Some(SqlValue::Int(number)) if call.type_of(0).is_some_and(|kind| kind.length == 1) => {
            Ok(json::to_value(&json::Json::Bool(*number != 0)))
        }
        Some(value) => Ok(json::to_value(&json::of_typed(value, call.type_of(0)))),
    }
}

fn using_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let name = typing.constant_text(1).unwrap_or("").to_lowercase();
    let kind = typing.get(0);
    if name == "binary" {
        return Ok(ExprType::binary(kind.characters().saturating_mul(4))
            .with_coercibility(coercibility::IMPLICIT));
    }
    let collation = remora_mysql::charset_default(&name)
        .ok_or_else(|| Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name)))?;
    Ok(ExprType::text(kind.characters(), collation).with_coercibility(coercibility::IMPLICIT))
}

/// For CHAR(… USING …): the coercibility of the literal that it replaces.
fn char_using_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(using_type(typing)?.with_coercibility(coercibility::LITERAL))
}

fn using<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    if !call.result.is_text() {
        return Ok(SqlValue::bytes(value.octets().unwrap_or_default().into_owned()));
    }
    let charset = call.result.collation.charset();
    if let SqlValue::Bytes(bytes) = value {
        // Leading zero bytes of a character may be missing.
        let width = Charset::named(charset).unwrap_or_default().unit_bytes();
        let missing = bytes.len().next_multiple_of(width) - bytes.len();
        let mut padded = vec![0; missing];
        padded.extend_from_slice(bytes);
        return Ok(text_of_bytes(call, &padded, charset));
    }
    let text = value.string().unwrap_or_default();
    // Characters that the character set lacks become question marks.
    let last = match charset {
        "ascii" => '\u{7f}',
        "latin1" => '\u{ff}',
        "utf8mb3" => '\u{ffff}',
        _ => char::MAX,
    };
    let kept: String = text.chars().map(|each| if each > last { '?' } else { each }).collect();
    Ok(SqlValue::text(kept))
}

/// Bytes as text in a character set; NULL and a warning if they are invalid.
fn text_of_bytes<'a>(call: &Call<'_>, bytes: &[u8], charset: &str) -> SqlValue<'a> {
    /// The most bytes shown in the warning.
    const SHOWN: usize = 3;
    if let Some(known) = Charset::named(charset).filter(|known| !known.is_utf8()) {
        return SqlValue::text(known.decode(bytes).into_owned());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => SqlValue::text(text),
        Err(error) => {
            call.warn(ErrorCode::InvalidCharacters, || {
                let wrong = bytes.get(error.valid_up_to()..).unwrap_or_default();
                let shown = encoding::hex(wrong.get(..SHOWN).unwrap_or(wrong));
                messages::invalid_character_string(charset, shown)
            });
            SqlValue::Null
        }
    }
}

fn text_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    if kind.is_string() {
        return Ok(kind);
    }
    Ok(ExprType::text(kind.characters(), typing.collation))
}

/// SUM adds exact numbers as decimals wide enough for the sum, and all other values as doubles.
fn sum_argument_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let exact = kind.is_integer() || kind.is_decimal() || kind.is_temporal();
    if !exact {
        return Ok(ExprType::double());
    }
    let more = super::super::aggregate::SUM_DIGITS;
    Ok(ExprType::decimal(kind.digits() + more, u32::from(kind.scale())))
}

/// Casts the whole column with DataFusion's cast, which is faster.
fn wider(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([expr], [kind]) = (args, typing.types) else { return Ok(None) };
    let to = sum_argument_type(typing)?;
    let exact = kind.is_decimal() || kind.is_integer() && kind.length > 1;
    if kind.is_float() && kind.kind == to.kind {
        return Ok(Some(expr.clone()));
    }
    if !exact {
        return Ok(None);
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let cast = Expr::Cast(Cast::new(Box::new(expr.clone()), to.arrow()));
    Ok(Some(typed(cast, &to, dialect)))
}
