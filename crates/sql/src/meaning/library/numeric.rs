//! Functions over numbers.

use remora_mysql::{ErrorCode, messages};

use super::{
    super::{
        call::{Call, TypeContext},
        decimal::Dec,
        function::Definition,
        types::{ExprType, MAX_SCALE},
        value::SqlValue,
    },
    arithmetic::{Number, fixed_double, number_of},
};
use crate::{Error, Result, SqlType};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("abs", 1, 1, abs_type, abs),
    Definition::new("sign", 1, 1, sign_type, sign),
    Definition::new("ceiling", 1, 1, whole_type, |call, args| whole(call, args, true)),
    Definition::new("floor", 1, 1, whole_type, |call, args| whole(call, args, false)),
    Definition::new("round", 1, 2, round_type, |call, args| round(call, args, false)),
    Definition::new("truncate", 2, 2, truncate_type, |call, args| round(call, args, true)),
    Definition::new("sqrt", 1, 1, double_type, |c, a| real(c, a, "sqrt", f64::sqrt)),
    Definition::new("exp", 1, 1, double_type, |c, a| checked(c, a, "exp", f64::exp)),
    Definition::new("ln", 1, 1, double_type, |c, a| logarithm(c, a, f64::ln)),
    Definition::new("log2", 1, 1, double_type, |c, a| logarithm(c, a, f64::log2)),
    Definition::new("log10", 1, 1, double_type, |c, a| logarithm(c, a, f64::log10)),
    Definition::new("log", 1, 2, double_type, log),
    Definition::new("power", 2, 2, double_type, power),
    Definition::new("sin", 1, 1, double_type, |c, a| real(c, a, "sin", f64::sin)),
    Definition::new("cos", 1, 1, double_type, |c, a| real(c, a, "cos", f64::cos)),
    Definition::new("tan", 1, 1, double_type, |c, a| real(c, a, "tan", f64::tan)),
    Definition::new("cot", 1, 1, double_type, |c, a| checked(c, a, "cot", |x| 1.0 / x.tan())),
    Definition::new("asin", 1, 1, double_type, |c, a| real(c, a, "asin", f64::asin)),
    Definition::new("acos", 1, 1, double_type, |c, a| real(c, a, "acos", f64::acos)),
    Definition::new("atan", 1, 2, double_type, atan),
    Definition::new("atan2", 1, 2, double_type, atan),
    Definition::new("degrees", 1, 1, double_type, |c, a| real(c, a, "degrees", f64::to_degrees)),
    Definition::new("radians", 1, 1, double_type, |c, a| real(c, a, "radians", f64::to_radians)),
    Definition::new("pi", 0, 0, pi_type, |_, _| Ok(SqlValue::Double(std::f64::consts::PI))),
    Definition::new("conv", 3, 3, digits_type, conv),
    Definition::new("bin", 1, 1, digits_type, |_, args| in_base(args, 2)),
    Definition::new("oct", 1, 1, digits_type, |_, args| in_base(args, 8)),
    Definition::new("crc32", 1, 1, crc_type, crc32),
];

fn present<'v, 'a>(args: &'v [SqlValue<'a>]) -> Option<&'v SqlValue<'a>> {
    args.first().filter(|value| !value.is_null())
}

fn double_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double())
}

fn pi_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { length: 8, decimals: Some(6), ..ExprType::double().not_null() })
}

fn sign_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.get(0).not_null, ..ExprType::int(21) })
}

fn crc_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.get(0).not_null, ..ExprType::uint(10) })
}

fn digits_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(65, typing.collation))
}

fn abs_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    Ok(match number_of(&kind) {
        Number::Double => fixed_double(typing),
        Number::Decimal => ExprType::decimal(kind.digits(), u32::from(kind.scale())),
        Number::Int => ExprType::int(kind.length).with_unsigned(kind.unsigned),
    })
}

fn out_of_range(name: &str, what: String) -> Error {
    Error::new(ErrorCode::NumberOutOfRange, messages::value_out_of_range(name, what))
}

fn abs<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    Ok(match call.result.kind {
        SqlType::Double => SqlValue::Double(value.double(call).abs()),
        SqlType::Decimal(..) => {
            let exact = value.decimal(call);
            SqlValue::Dec(if exact.is_negative() { exact.negated() } else { exact })
        }
        _ => {
            let size = value.integer(call).abs();
            if size > i128::from(i64::MAX) && !call.result.unsigned {
                return Err(out_of_range("BIGINT", format!("abs({})", -size)));
            }
            SqlValue::whole(size)
        }
    })
}

fn sign<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(present(args), |value| match value {
        SqlValue::Dec(exact) => {
            SqlValue::Int(i64::from(!exact.is_zero()) - 2 * i64::from(exact.is_negative()))
        }
        value => {
            let number = value.double(call);
            SqlValue::Int(if number == 0.0 { 0 } else { number.signum() as i64 })
        }
    }))
}

fn whole_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let not_null = kind.not_null;
    Ok(match number_of(&kind) {
        Number::Double => ExprType::double(),
        Number::Decimal if kind.integer_digits() < 19 => ExprType { not_null, ..ExprType::int(21) },
        Number::Decimal => ExprType::decimal(kind.integer_digits() + 1, 0),
        Number::Int => {
            ExprType { not_null, ..ExprType::int(kind.length).with_unsigned(kind.unsigned) }
        }
    })
}

fn whole<'a>(call: &Call<'_>, args: &[SqlValue<'a>], up: bool) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    if call.result.kind == SqlType::Double {
        let number = value.double(call);
        return Ok(SqlValue::Double(if up { number.ceil() } else { number.floor() }));
    }
    let exact = value.decimal(call);
    let cut = exact.cut(0).unwrap_or(exact);
    let differs = cut != exact;
    let one = Dec::whole(1);
    let result = match (differs, up, exact.is_negative()) {
        (true, true, false) => cut.plus(one),
        (true, false, true) => cut.minus(one),
        _ => Some(cut),
    };
    Ok(SqlValue::or_null(result, SqlValue::Dec))
}

fn round_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    rounded_type(typing, true)
}

fn truncate_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    rounded_type(typing, false)
}

/// Rounding can add an integer digit.
fn rounded_type(typing: &TypeContext<'_>, rounds: bool) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = match (typing.types.len(), typing.constant(1)) {
        (1, _) => Some(0),
        (_, constant) => constant,
    };
    let not_null = typing.all_present();
    let found = match number_of(&kind) {
        Number::Double => ExprType::double(),
        Number::Decimal => {
            let scale = u32::from(kind.scale());
            let kept = digits.map_or(scale, |digits| digits.clamp(0, i64::from(MAX_SCALE)) as u32);
            let kept = kept.min(scale);
            let more = u32::from(rounds && kept < scale);
            ExprType::decimal(kind.integer_digits() + kept + more, kept)
        }
        Number::Int => ExprType::int(21).with_unsigned(kind.unsigned),
    };
    Ok(ExprType { not_null, ..found })
}

fn round<'a>(call: &Call<'_>, args: &[SqlValue<'a>], cut: bool) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let digits = match args.get(1) {
        None => 0,
        Some(SqlValue::Null) => return Ok(SqlValue::Null),
        Some(digits) => digits.count(call),
    };
    match call.result.kind {
        SqlType::Double => Ok(SqlValue::Double(round_double(value.double(call), digits, cut))),
        _ => {
            let rounded = value.decimal(call).rounded(digits, cut);
            if let (Some(number), true) = (rounded, call.result.is_integer()) {
                let fits = number.to_whole().is_some_and(|number| match call.result.unsigned {
                    true => u64::try_from(number).is_ok(),
                    false => i64::try_from(number).is_ok(),
                });
                if !fits {
                    let name = if call.result.unsigned { "BIGINT UNSIGNED" } else { "BIGINT" };
                    let shown = value.string().unwrap_or_default().into_owned();
                    return Err(out_of_range(name, format!("round({shown},{digits})")));
                }
            }
            Ok(SqlValue::or_null(rounded, SqlValue::Dec))
        }
    }
}

fn round_double(number: f64, digits: i64, cut: bool) -> f64 {
    let power = 10f64.powi(digits.unsigned_abs().min(400) as i32);
    let shifted = if digits < 0 { number / power } else { number * power };
    if digits < 0 && power.is_infinite() {
        return 0.0;
    }
    if digits >= 0 && !shifted.is_finite() {
        return number;
    }
    let rounded = if cut { shifted.trunc() } else { shifted.round_ties_even() };
    if digits < 0 { rounded * power } else { rounded / power }
}

/// A function that returns NULL outside of its domain.
fn real<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    _name: &str,
    of: fn(f64) -> f64,
) -> Result<SqlValue<'a>> {
    let result = present(args).map(|value| of(value.double(call)));
    Ok(SqlValue::or_null(result.filter(|number| number.is_finite()), SqlValue::Double))
}

/// A function whose result can overflow.
fn checked<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    name: &str,
    of: fn(f64) -> f64,
) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let result = of(value.double(call));
    if result.is_finite() {
        return Ok(SqlValue::Double(result));
    }
    let shown = value.string().unwrap_or_default();
    Err(out_of_range("DOUBLE", format!("{name}({shown})")))
}

fn no_logarithm<'a>(call: &Call<'_>) -> Result<SqlValue<'a>> {
    call.warn(ErrorCode::InvalidLogarithm, || "Invalid argument for logarithm".to_owned());
    Ok(SqlValue::Null)
}

fn logarithm<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    of: fn(f64) -> f64,
) -> Result<SqlValue<'a>> {
    let Some(value) = present(args) else { return Ok(SqlValue::Null) };
    let number = value.double(call);
    if number <= 0.0 { no_logarithm(call) } else { Ok(SqlValue::Double(of(number))) }
}

fn log<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [base, value] = args else { return logarithm(call, args, f64::ln) };
    if base.is_null() || value.is_null() {
        return Ok(SqlValue::Null);
    }
    let (base, number) = (base.double(call), value.double(call));
    if base <= 0.0 || base == 1.0 || number <= 0.0 {
        return no_logarithm(call);
    }
    Ok(SqlValue::Double(number.ln() / base.ln()))
}

fn power<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [base, exponent] = args else { return Ok(SqlValue::Null) };
    if base.is_null() || exponent.is_null() {
        return Ok(SqlValue::Null);
    }
    let result = base.double(call).powf(exponent.double(call));
    if result.is_finite() {
        return Ok(SqlValue::Double(result));
    }
    let (base, exponent) =
        (base.string().unwrap_or_default(), exponent.string().unwrap_or_default());
    Err(out_of_range("DOUBLE", format!("pow({base},{exponent})")))
}

fn atan<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match args {
        [y, x] if !y.is_null() && !x.is_null() => {
            Ok(SqlValue::Double(y.double(call).atan2(x.double(call))))
        }
        [_, _] => Ok(SqlValue::Null),
        args => real(call, args, "atan", f64::atan),
    }
}

fn to_base(mut number: u64, base: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % base).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0').to_ascii_uppercase());
        number /= base;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Parses the number at the start of a text in a base, capped to 64 bits; also returns whether it
/// is negative.
fn from_base(text: &str, base: u32) -> (u64, bool) {
    let text = text.trim_start();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = text.chars().map_while(|digit| digit.to_digit(base));
    let number = digits.fold(0u64, |number, digit| {
        number.saturating_mul(u64::from(base)).saturating_add(u64::from(digit))
    });
    (number, negative)
}

/// The bits of the number at the start of a text; a negative number is its complement.
fn whole_number(text: &str, base: u32) -> u64 {
    match from_base(text, base) {
        (size, true) => size.wrapping_neg(),
        (size, false) => size,
    }
}

fn conv<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, from, to] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let (from, to) = (from.count(call), to.count(call));
    let possible = |base: i64| (2..=36).contains(&base.unsigned_abs());
    if !possible(from) || !possible(to) {
        return Ok(SqlValue::Null);
    }
    let text = value.string().unwrap_or_default();
    let number = whole_number(&text, u32::try_from(from.unsigned_abs()).unwrap_or(10));
    if to < 0 {
        let signed = number as i64;
        let digits = to_base(signed.unsigned_abs(), to.unsigned_abs());
        return Ok(SqlValue::text(if signed < 0 { format!("-{digits}") } else { digits }));
    }
    Ok(SqlValue::text(to_base(number, to.unsigned_abs())))
}

/// Of the value's text, the whole number at its start counts, as for CONV.
fn in_base<'a>(args: &[SqlValue<'a>], base: u64) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string);
    Ok(SqlValue::or_null(text, |text| SqlValue::text(to_base(whole_number(&text, 10), base))))
}

fn crc32<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let bytes = args.first().and_then(SqlValue::octets);
    Ok(SqlValue::or_null(bytes, |bytes| SqlValue::Uint(u64::from(crc32fast::hash(&bytes)))))
}
