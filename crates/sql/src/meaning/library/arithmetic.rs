//! `+ - * / DIV %`. Results are exact if both operands are; a result out of range is an error.

use datafusion::common::ScalarValue;
use remora_mysql::{ErrorCode, SqlMode, messages};

use super::super::{
    call::{Call, TypeContext},
    decimal::Dec,
    function::Definition,
    types::{ExprType, MAX_DIGITS, MAX_SCALE},
    value::SqlValue,
};
use crate::{Error, Result, SqlType};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("+", 2, 2, sum_type, plus),
    Definition::new("-", 2, 2, sum_type, minus),
    Definition::new("*", 2, 2, product_type, times),
    Definition::new("/", 2, 2, quotient_type, divide),
    Definition::new("div", 2, 2, whole_quotient_type, whole_quotient),
    Definition::new("%", 2, 2, remainder_type, remainder),
    Definition::new("negative", 1, 1, negative_type, negative),
    Definition::new("average", 2, 2, average_type, divide_average),
];

/// The kind of number that an operand is converted to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Number {
    Int,
    Decimal,
    Double,
}

/// The kind of number for an operand: texts and bytes become doubles.
pub(crate) fn number_of(kind: &ExprType) -> Number {
    match kind.kind {
        SqlType::Null => Number::Double,
        SqlType::Decimal(..) => Number::Decimal,
        _ if kind.is_integer() || kind.is_null() => Number::Int,
        SqlType::Date => Number::Int,
        SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits) => {
            if digits == 0 { Number::Int } else { Number::Decimal }
        }
        _ => Number::Double,
    }
}

fn together(typing: &TypeContext<'_>) -> (Number, ExprType, ExprType) {
    let (a, b) = (typing.get(0), typing.get(1));
    (number_of(&a).max(number_of(&b)), a, b)
}

fn finished(typing: &TypeContext<'_>, kind: ExprType) -> ExprType {
    ExprType { not_null: typing.all_present(), ..kind }
}

/// DOUBLE for all operations except division. It has a fixed number of decimals if all arguments
/// have.
pub(super) fn fixed_double(typing: &TypeContext<'_>) -> ExprType {
    let decimals = ExprType::common_decimals(typing.types.iter());
    ExprType { decimals, ..ExprType::double() }
}

/// The characters of an integer: digits and sign.
fn places(kind: &ExprType) -> u32 {
    kind.digits() + u32::from(!kind.unsigned)
}

fn sum_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (number, a, b) = together(typing);
    let kind = match number {
        Number::Double => fixed_double(typing),
        Number::Decimal => {
            let scale = u32::from(a.scale().max(b.scale()));
            let whole = a.integer_digits().max(b.integer_digits()) + 1;
            ExprType::decimal(whole + scale, scale)
        }
        Number::Int => {
            let unsigned = a.unsigned || b.unsigned;
            let digits = a.digits().max(b.digits()) + 1;
            let kind = if unsigned { ExprType::uint(digits) } else { ExprType::int(digits + 1) };
            ExprType { length: kind.length.min(21), ..kind }
        }
    };
    Ok(finished(typing, kind))
}

fn product_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (number, a, b) = together(typing);
    let kind = match number {
        Number::Double => fixed_double(typing),
        Number::Decimal => {
            let scale = (u32::from(a.scale()) + u32::from(b.scale())).min(u32::from(MAX_SCALE));
            ExprType::decimal(a.digits() + b.digits(), scale)
        }
        Number::Int => {
            let digits = a.digits() + b.digits();
            let kind = if a.unsigned || b.unsigned {
                ExprType::uint(digits)
            } else {
                ExprType::int(digits + 1)
            };
            ExprType { length: kind.length.min(21), ..kind }
        }
    };
    Ok(finished(typing, kind))
}

fn quotient_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (number, a, b) = together(typing);
    if number == Number::Double {
        let kind = fixed_double(typing);
        let more = |digits: u8| digits.saturating_add(typing.division_digits).min(MAX_SCALE);
        return Ok(ExprType { decimals: kind.decimals.map(more), ..kind });
    }
    let more = u32::from(typing.division_digits);
    let scale = (u32::from(a.scale()) + more).min(u32::from(MAX_SCALE));
    let digits = a.digits() + u32::from(b.scale()) + more;
    Ok(ExprType::decimal(digits, scale))
}

fn average_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let sum = typing.get(0);
    if !sum.is_decimal() {
        return Ok(ExprType::double());
    }
    let more = u32::from(typing.division_digits);
    let digits = sum.digits().saturating_sub(super::super::aggregate::SUM_DIGITS);
    Ok(ExprType::decimal(digits + more, u32::from(sum.scale()) + more))
}

fn whole_quotient_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (_, a, b) = together(typing);
    let length = if a.is_integer() { places(&a) } else { a.length + u32::from(b.scale()) };
    let kind = ExprType::int(length.min(21));
    Ok(kind.with_unsigned(a.unsigned || b.unsigned))
}

fn remainder_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (number, a, b) = together(typing);
    Ok(match number {
        Number::Double => fixed_double(typing),
        Number::Decimal => {
            let scale = u32::from(a.scale().max(b.scale()));
            let whole = a.integer_digits().max(b.integer_digits());
            ExprType::decimal(whole + scale, scale)
        }
        Number::Int => {
            let length = places(&a).max(places(&b));
            ExprType::int(length).with_unsigned(a.unsigned)
        }
    })
}

fn negative_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let a = typing.get(0);
    let kind = match number_of(&a) {
        Number::Double => fixed_double(typing),
        Number::Decimal => ExprType::decimal(a.digits(), u32::from(a.scale())),
        // The negated value of the least BIGINT does not fit in 64 bits.
        Number::Int if typing.constant(0) == Some(i64::MIN) => ExprType::decimal(19, 0),
        Number::Int if is_beyond_signed(typing) => ExprType::decimal(20, 0),
        Number::Int => ExprType::int(places(&a) + u32::from(a.unsigned)),
    };
    Ok(finished(typing, kind))
}

/// Whether it is a literal whose negated value does not fit in 64 bits.
fn is_beyond_signed(typing: &TypeContext<'_>) -> bool {
    match typing.scalars.first().copied().flatten() {
        Some(ScalarValue::UInt64(Some(number))) => *number > 1 << 63,
        _ => false,
    }
}

fn out_of_range(kind: &ExprType, what: String) -> Error {
    let name = match kind.kind {
        SqlType::Decimal(..) => "DECIMAL",
        SqlType::Double | SqlType::Float => "DOUBLE",
        _ if kind.unsigned => "BIGINT UNSIGNED",
        _ => "BIGINT",
    };
    let message = messages::value_out_of_range(name, what);
    Error::new(ErrorCode::NumberOutOfRange, message)
}

fn shown(value: &SqlValue<'_>) -> String {
    value.string().map_or_else(|| "NULL".to_owned(), |text| text.into_owned())
}

struct Operation {
    sign: &'static str,
    ints: fn(i128, i128) -> Option<i128>,
    decimals: fn(Dec, Dec) -> Option<Dec>,
    doubles: fn(f64, f64) -> f64,
}

fn calculate<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    operation: &Operation,
) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(SqlValue::Null);
    }
    let overflow =
        || out_of_range(call.result, format!("({} {} {})", shown(a), operation.sign, shown(b)));
    match call.result.kind {
        SqlType::Double => {
            let result = (operation.doubles)(a.double(call), b.double(call));
            if result.is_finite() { Ok(SqlValue::Double(result)) } else { Err(overflow()) }
        }
        SqlType::Decimal(_, scale) => {
            let result = (operation.decimals)(a.decimal(call), b.decimal(call));
            let result = result.and_then(|number| number.rescaled(scale));
            let fits = |number: &Dec| number.integer_digits() <= usize::from(MAX_DIGITS - scale);
            result.filter(fits).map(SqlValue::Dec).ok_or_else(overflow)
        }
        _ => {
            let result = (operation.ints)(a.integer(call), b.integer(call));
            result.and_then(|number| fitting(number, call.result)).ok_or_else(overflow)
        }
    }
}

/// The number, if it fits in 64 bits of this signedness.
fn fitting<'a>(number: i128, kind: &ExprType) -> Option<SqlValue<'a>> {
    if kind.unsigned {
        u64::try_from(number).ok().map(SqlValue::Uint)
    } else {
        i64::try_from(number).ok().map(SqlValue::Int)
    }
}

fn plus<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (ints, decimals) = (i128::checked_add, Dec::plus);
    calculate(call, args, &Operation { sign: "+", ints, decimals, doubles: |a, b| a + b })
}

fn minus<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (ints, decimals) = (i128::checked_sub, Dec::minus);
    calculate(call, args, &Operation { sign: "-", ints, decimals, doubles: |a, b| a - b })
}

fn times<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (ints, decimals) = (i128::checked_mul, Dec::times);
    calculate(call, args, &Operation { sign: "*", ints, decimals, doubles: |a, b| a * b })
}

fn by_zero<'a>(call: &Call<'_>) -> Result<SqlValue<'a>> {
    if call.sql_mode().has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        call.warn(ErrorCode::DivisionByZero, || "Division by 0".to_owned());
    }
    Ok(SqlValue::Null)
}

fn divide<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(SqlValue::Null);
    }
    let overflow = || out_of_range(call.result, format!("({} / {})", shown(a), shown(b)));
    match call.result.kind {
        SqlType::Decimal(_, scale) => {
            let divisor = b.decimal(call);
            if divisor.is_zero() {
                return by_zero(call);
            }
            let result = a.decimal(call).divided_by(divisor, scale);
            result.map(SqlValue::Dec).ok_or_else(overflow)
        }
        _ => {
            let divisor = b.double(call);
            if divisor == 0.0 {
                return by_zero(call);
            }
            let result = a.double(call) / divisor;
            if result.is_finite() { Ok(SqlValue::Double(result)) } else { Err(overflow()) }
        }
    }
}

fn divide_average<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    // AVG over no rows is NULL without a warning.
    match args {
        [_, SqlValue::Int(0)] => Ok(SqlValue::Null),
        args => divide(call, args),
    }
}

fn whole_quotient<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(SqlValue::Null);
    }
    let kinds = (call.type_of(0), call.type_of(1));
    let whole = |kind: Option<&ExprType>| kind.is_some_and(|kind| number_of(kind) == Number::Int);
    let overflow = || out_of_range(call.result, format!("({} DIV {})", shown(a), shown(b)));
    if whole(kinds.0) && whole(kinds.1) {
        let divisor = b.integer(call);
        if divisor == 0 {
            return by_zero(call);
        }
        return fitting(a.integer(call) / divisor, call.result).ok_or_else(overflow);
    }
    let divisor = b.decimal(call);
    if divisor.is_zero() {
        return by_zero(call);
    }
    let quotient = a.decimal(call).whole_quotient(divisor).and_then(|units| units.to_i128());
    quotient.and_then(|number| fitting(number, call.result)).ok_or_else(overflow)
}

fn remainder<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(SqlValue::Null);
    }
    match call.result.kind {
        SqlType::Double => {
            let divisor = b.double(call);
            if divisor == 0.0 {
                by_zero(call)
            } else {
                Ok(SqlValue::Double(a.double(call) % divisor))
            }
        }
        SqlType::Decimal(..) => {
            let divisor = b.decimal(call);
            if divisor.is_zero() {
                return by_zero(call);
            }
            Ok(SqlValue::or_null(a.decimal(call).remainder(divisor), SqlValue::Dec))
        }
        _ => {
            let divisor = b.integer(call);
            if divisor == 0 {
                by_zero(call)
            } else {
                Ok(SqlValue::whole(a.integer(call) % divisor))
            }
        }
    }
}

fn negative<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a] = args else { return Ok(SqlValue::Null) };
    if a.is_null() {
        return Ok(SqlValue::Null);
    }
    Ok(match call.result.kind {
        SqlType::Double => SqlValue::Double(-a.double(call)),
        SqlType::Decimal(..) => SqlValue::Dec(a.decimal(call).negated()),
        _ => {
            let overflow = || out_of_range(call.result, format!("-({})", shown(a)));
            return fitting(-a.integer(call), call.result).ok_or_else(overflow);
        }
    })
}
