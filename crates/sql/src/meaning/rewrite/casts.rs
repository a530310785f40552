//! CAST and CONVERT: turns the target type into arguments of a function.

use datafusion::sql::sqlparser::ast::{
    BinaryLength, CharacterLength, DataType, ExactNumberInfo, Expr, ObjectName,
};
use remora_mysql::ErrorCode;

use super::{arguments::in_document, call, number, text};
use crate::{Error, Result};

/// `CAST(x AS type)`.
pub(super) fn cast(expr: Expr, data_type: &DataType) -> Result<Expr> {
    let (name, sizes): (&str, Vec<u64>) = match data_type {
        DataType::Signed | DataType::SignedInteger => ("signed", vec![]),
        DataType::Unsigned | DataType::UnsignedInteger => ("unsigned", vec![]),
        DataType::BigInt(_) | DataType::Int(_) | DataType::Integer(_) => ("signed", vec![]),
        DataType::Char(length) | DataType::Character(length) => ("char", characters(length)),
        DataType::Varchar(length) | DataType::Nvarchar(length) => ("char", characters(length)),
        DataType::Binary(length) => ("binary", length.iter().copied().collect()),
        DataType::Varbinary(length) => ("binary", bytes(length)),
        DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => {
            ("decimal", decimal_sizes(info)?)
        }
        DataType::Float(info) => (float_name(info), vec![]),
        DataType::Double(_) | DataType::DoublePrecision | DataType::Real => ("double", vec![]),
        DataType::Date => ("date", vec![]),
        DataType::Time(digits, _) => ("time", fraction(*digits)?),
        DataType::Datetime(digits) => ("datetime", fraction(*digits)?),
        DataType::Timestamp(digits, _) => ("datetime", fraction(*digits)?),
        DataType::JSON => return Ok(call("cast_json", vec![in_document(expr)])),
        DataType::Custom(name, words) => return custom(expr, name, words),
        other => return Err(Error::unsupported(format!("CAST AS {other}"))),
    };
    Ok(sized(expr, name, &sizes))
}

fn sized(expr: Expr, name: &str, sizes: &[u64]) -> Expr {
    let mut args = vec![expr];
    args.extend(sizes.iter().map(|size| number(i64::try_from(*size).unwrap_or(i64::MAX))));
    call(&format!("cast_{name}"), args)
}

fn custom(expr: Expr, name: &ObjectName, words: &[String]) -> Result<Expr> {
    let name = name.to_string().to_lowercase();
    let sizes = words.iter().filter_map(|word| word.parse().ok()).collect::<Vec<u64>>();
    match name.as_str() {
        "year" => Ok(call("cast_year", vec![expr])),
        "signed" | "unsigned" | "char" | "binary" | "decimal" | "nchar" => {
            let name = if name == "nchar" { "char" } else { name.as_str() };
            Ok(sized(expr, name, &sizes))
        }
        other => Err(Error::unsupported(format!("CAST AS {other}"))),
    }
}

fn characters(length: &Option<CharacterLength>) -> Vec<u64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => vec![*length],
        _ => vec![],
    }
}

fn bytes(length: &Option<BinaryLength>) -> Vec<u64> {
    match length {
        Some(BinaryLength::IntegerLength { length }) => vec![*length],
        _ => vec![],
    }
}

fn float_name(info: &ExactNumberInfo) -> &'static str {
    match info {
        ExactNumberInfo::Precision(digits) if *digits > 24 => "double",
        _ => "float",
    }
}

fn decimal_sizes(info: &ExactNumberInfo) -> Result<Vec<u64>> {
    let (digits, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(digits) => (*digits, 0),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => {
            (*digits, u64::try_from(*scale).unwrap_or(0))
        }
    };
    if digits > 65 || scale > 30 || scale > digits {
        return Err(too_many(digits, scale));
    }
    Ok(vec![if digits == 0 { 10 } else { digits }, scale])
}

fn too_many(digits: u64, scale: u64) -> Error {
    let (code, message) = if scale > digits {
        let message = "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '').";
        (ErrorCode::ScaleAbovePrecision, message.to_owned())
    } else if digits > 65 {
        let message = format!("Too-big precision {digits} specified for 'column'. Maximum is 65.");
        (ErrorCode::TooBigPrecision, message)
    } else {
        let message =
            format!("Too big scale {scale} specified for column 'column'. Maximum is 30.");
        (ErrorCode::TooBigScale, message)
    };
    Error::new(code, message)
}

fn fraction(digits: Option<u64>) -> Result<Vec<u64>> {
    match digits {
        None => Ok(vec![]),
        Some(digits @ 0..=6) => Ok(vec![digits]),
        Some(digits) => {
            let message = format!("Too-big precision {digits} specified for 'CAST'. Maximum is 6.");
            Err(Error::new(ErrorCode::TooBigPrecision, message))
        }
    }
}

/// `CONVERT(x, type)` and `CONVERT(x USING charset)`.
pub(super) fn convert(
    expr: Expr,
    data_type: Option<DataType>,
    charset: Option<ObjectName>,
) -> Result<Expr> {
    match (data_type, charset) {
        (Some(data_type), None) => cast(expr, &data_type),
        (data_type, Some(charset)) => {
            let name = charset.to_string().trim_matches('`').to_lowercase();
            let converted = call("convert_using", vec![expr, text(name)]);
            let length = match &data_type {
                Some(DataType::Char(length) | DataType::Character(length)) => characters(length),
                _ => Vec::new(),
            };
            Ok(match length.first() {
                Some(most) => {
                    let most = number(i64::try_from(*most).unwrap_or(i64::MAX));
                    call("left", vec![converted, most])
                }
                None => converted,
            })
        }
        (None, None) => Err(Error::unsupported("CONVERT without a type")),
    }
}
