//! Literals that DataFusion would read differently, and functions that restore a lost type.

use datafusion::{common::ScalarValue, logical_expr::Expr};
use remora_mysql::{Charset, Collation, ErrorCode, messages};

use super::super::{
    array::Building,
    call::{Call, TypeContext},
    collation,
    decimal::Dec,
    encoding,
    function::{Definition, Eval, TypeRule},
    number::double_prefix,
    temporal::{parse_moment, parse_time},
    types::{ExprType, coercibility},
    value::SqlValue,
};
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("literal", 1, 1, same_type, first).expanding(typed_literal),
    Definition::new("typed", 2, 2, told_type, first),
    Definition::new("numbered", 2, 2, same_type, first)
        .expanding(|args, _| Ok(args.first().cloned())),
    Definition::new("integer_literal", 1, 1, integer_type, integer)
        .expanding(|args, typing| folded(args, typing, integer_type, integer)),
    Definition::new("double_literal", 1, 1, double_type, double)
        .expanding(|args, typing| folded(args, typing, double_type, double)),
    Definition::new("decimal_literal", 1, 1, decimal_type, decimal)
        .expanding(|args, typing| folded(args, typing, decimal_type, decimal)),
    Definition::new("hex_literal", 1, 1, hex_type, hex)
        .expanding(|args, typing| digits(args, typing, hex_type, hex)),
    Definition::new("bit_literal", 1, 1, bit_type, bit)
        .expanding(|args, typing| digits(args, typing, bit_type, bit)),
    Definition::new("literal_number", 1, 1, number_type, number)
        .expanding(|args, typing| folded(args, typing, number_type, number)),
    Definition::new("date_literal", 1, 1, date_type, date)
        .expanding(|args, typing| folded(args, typing, date_type, date)),
    Definition::new("time_literal", 1, 1, time_type, time)
        .expanding(|args, typing| folded(args, typing, time_type, time)),
    Definition::new("timestamp_literal", 1, 1, timestamp_type, timestamp),
    Definition::new("introduced", 2, 2, introduced_type, introduced),
    Definition::new("collate", 2, 2, collate_type, first),
];

fn first<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.first().cloned().unwrap_or(SqlValue::Null))
}

fn same_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(typing.get(0))
}

/// The literal with its type attached.
fn typed_literal(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    Ok(match args {
        [Expr::Literal(ScalarValue::Null, _)] => None,
        [Expr::Literal(value, _)] => {
            let metadata = typing.get(0).literal_metadata();
            let value = match value {
                ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => {
                    ScalarValue::Utf8View(text.clone())
                }
                value => value.clone(),
            };
            Some(Expr::Literal(value, Some(metadata)))
        }
        _ => None,
    })
}

/// The plain literal, so that planning recognizes a constant.
fn folded(
    args: &[Expr],
    typing: &TypeContext<'_>,
    typed: TypeRule,
    eval: Eval,
) -> Result<Option<Expr>> {
    let [Expr::Literal(value, _)] = args else { return Ok(None) };
    let kind = typed(typing)?;
    let value = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            SqlValue::text(text.as_str())
        }
        ScalarValue::BinaryView(Some(bytes)) => SqlValue::bytes(bytes.as_slice()),
        _ => return Ok(None),
    };
    let call = Call { context: None, types: typing.types, result: &kind, kept: None };
    let value = eval(&call, &[value])?;
    let mut built = Building::new(&kind.arrow(), &kind);
    built.push(&value, &call);
    let literal = ScalarValue::try_from_array(&built.finish(), 0)
        .map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))?;
    Ok(Some(Expr::Literal(literal, Some(kind.literal_metadata()))))
}

/// The metadata key of a binary literal that was written as digits (`0x41`).
const DIGITS_KEY: &str = "remora.digits";

/// A binary literal that counts as a number beside numbers.
fn digits(
    args: &[Expr],
    typing: &TypeContext<'_>,
    typed: TypeRule,
    eval: Eval,
) -> Result<Option<Expr>> {
    Ok(folded(args, typing, typed, eval)?.map(|literal| match literal {
        Expr::Literal(value, Some(metadata)) => {
            let mut all = metadata.inner().clone();
            all.insert(DIGITS_KEY.to_owned(), String::new());
            Expr::Literal(value, Some(all.into()))
        }
        other => other,
    }))
}

/// The number that a hexadecimal or binary literal means beside numbers, with its type.
pub(super) fn number_of_digits(expr: &Expr) -> Option<(Expr, ExprType)> {
    let Expr::Literal(value, Some(metadata)) = expr else { return None };
    let (ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes))) = value else {
        return None;
    };
    metadata.inner().get(DIGITS_KEY)?;
    let kind = digits_type(bytes.len());
    let literal = ScalarValue::UInt64(Some(number_of(bytes)));
    Some((Expr::Literal(literal, Some(kind.literal_metadata())), kind))
}

fn told_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let told = typing.constant_text(1).and_then(ExprType::from_spelled);
    Ok(told.unwrap_or_else(|| typing.get(0)))
}

fn text_of<'a>(typing: &TypeContext<'a>) -> &'a str {
    typing.constant_text(0).unwrap_or("")
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn integer_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(length(text_of(typing))).not_null())
}

fn integer<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string);
    Ok(SqlValue::or_null(text.and_then(|text| text.parse().ok()), SqlValue::Int))
}

fn double_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double().not_null())
}

fn double<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(args.first().and_then(SqlValue::string), |text| {
        SqlValue::Double(double_prefix(&text).0)
    }))
}

fn decimal_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let text = text_of(typing);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let digits = length(whole) + length(fraction);
    Ok(ExprType::decimal(digits, length(fraction)).not_null())
}

fn decimal<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(args.first().and_then(SqlValue::string), |text| {
        SqlValue::Dec(Dec::parse_prefix(&text).0)
    }))
}

fn hex_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = ExprType::binary(length(text_of(typing)).div_ceil(2)).not_null();
    Ok(kind.with_unsigned(true))
}

fn hex<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let padded = if text.len() % 2 == 1 { format!("0{text}") } else { text.into_owned() };
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = padded.as_bytes().chunks(2).map(pair).collect();
    Ok(SqlValue::or_null(bytes, SqlValue::bytes))
}

fn bit_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(length(text_of(typing)).div_ceil(8)).not_null())
}

fn bit<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let width = text.len().div_ceil(8) * 8;
    let padded = format!("{text:0>width$}");
    let octet = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).ok()?, 2).ok();
    let bytes: Option<Vec<u8>> = padded.as_bytes().chunks(8).map(octet).collect();
    Ok(SqlValue::or_null(bytes, SqlValue::bytes))
}

fn number_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    // Of bit literals MySQL's numbers are signed.
    let literal = typing.get(0);
    Ok(digits_type(literal.length as usize).with_unsigned(literal.unsigned))
}

/// The type of a number with so many bytes.
fn digits_type(bytes: usize) -> ExprType {
    let digits = (bytes as f64 * 8.0 * std::f64::consts::LOG10_2).ceil();
    ExprType::uint((digits as u32).clamp(1, 20)).not_null()
}

/// The bytes as a number; 0 for more than eight.
fn number_of(bytes: &[u8]) -> u64 {
    if bytes.len() > size_of::<u64>() {
        return 0;
    }
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn number<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(SqlValue::Bytes(bytes)) = args.first() else { return Ok(SqlValue::Null) };
    let number = number_of(bytes);
    Ok(if call.result.unsigned {
        SqlValue::Uint(number)
    } else {
        SqlValue::Int(number.cast_signed())
    })
}

fn incorrect(kind: &str, text: &str) -> Error {
    Error::new(ErrorCode::IncorrectValue, messages::incorrect_value(kind, text))
}

fn date_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date().not_null())
}

fn date<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let parsed = parse_moment(&text).filter(|parsed| parsed.complete);
    parsed.map(|parsed| SqlValue::Date(parsed.moment)).ok_or_else(|| incorrect("DATE", &text))
}

fn time_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let digits = parse_time(text_of(typing)).map_or(0, |parsed| parsed.digits);
    Ok(ExprType::time(digits).not_null())
}

fn time<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let parsed = parse_time(&text).filter(|parsed| parsed.complete);
    let value = parsed.map(|parsed| SqlValue::Time(parsed.micros, parsed.digits));
    value.ok_or_else(|| incorrect("TIME", &text))
}

fn timestamp_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let digits = parse_moment(text_of(typing)).map_or(0, |parsed| parsed.digits);
    Ok(ExprType::date_time(digits).not_null())
}

fn timestamp<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let parsed = parse_moment(&text).filter(|parsed| parsed.complete);
    if parsed.is_none() {
        return Err(incorrect("DATETIME", &text));
    }
    Ok(SqlValue::or_null(call.moment_of_text(&text), |(moment, _, digits)| {
        SqlValue::DateTime(moment, digits)
    }))
}

fn introduced_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let name = typing.constant_text(0).unwrap_or("").trim_start_matches('_').to_lowercase();
    let kind = typing.get(1);
    if name == "binary" {
        let bytes = typing.constant_text(1).map_or(kind.length, length);
        return Ok(ExprType::binary(bytes).not_null());
    }
    let collation = remora_mysql::charset_default(&name)
        .ok_or_else(|| Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name)))?;
    Ok(ExprType::text(kind.length, collation).not_null())
}

fn introduced<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let value = args.get(1).cloned().unwrap_or(SqlValue::Null);
    Ok(match value {
        SqlValue::Bytes(bytes) if call.result.is_text() => {
            let collation = call.result.collation;
            let Ok(text) = collation::text_of_bytes(&bytes, collation) else {
                let charset = Charset::named(collation.charset()).unwrap_or_default();
                return no_text_of(call, &bytes, charset);
            };
            SqlValue::text(text)
        }
        value => value,
    })
}

/// Bytes that are invalid in a character set. In a single-byte set each becomes `?` with a warning;
/// in others it is an error.
fn no_text_of<'a>(call: &Call<'_>, bytes: &[u8], charset: Charset) -> Result<SqlValue<'a>> {
    /// The most bytes shown in the message.
    const SHOWN: usize = 3;
    let stands_for_nothing =
        |byte: &u8| *byte != b'?' && charset.decode(std::slice::from_ref(byte)) == "?";
    let from = match std::str::from_utf8(bytes) {
        _ if charset.is_single_byte() => bytes.iter().position(stands_for_nothing).unwrap_or(0),
        Err(error) if charset.is_utf8() => error.valid_up_to(),
        _ => 0,
    };
    let rest = bytes.get(from..).unwrap_or_default();
    let shown = encoding::hex(rest.get(..SHOWN).unwrap_or(rest));
    let message = messages::invalid_character_string(charset.name(), shown);
    if !charset.is_single_byte() {
        return Err(Error::new(ErrorCode::InvalidCharacters, message));
    }
    call.warn(ErrorCode::InvalidCharacters, || message);
    Ok(SqlValue::text(charset.decode(bytes).into_owned()))
}

fn collate_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let name = typing.constant_text(1).unwrap_or("");
    let collation = Collation::by_name(name).ok_or_else(|| {
        Error::new(ErrorCode::UnknownCollation, messages::unknown_collation(name))
    })?;
    let kind = typing.get(0);
    let charset =
        if kind.is_text() || kind.is_string() { kind.collation.charset() } else { "utf8mb4" };
    if charset != collation.charset() {
        let message = messages::collation_charset_mismatch(name, charset);
        return Err(Error::new(ErrorCode::CollationCharsetMismatch, message));
    }
    let text = if kind.is_string() { kind } else { ExprType::text(kind.characters(), collation) };
    Ok(ExprType { collation, ..text }.with_coercibility(coercibility::EXPLICIT))
}
