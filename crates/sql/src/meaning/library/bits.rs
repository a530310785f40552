//! Bit operators `& | ^ ~ << >>` and bit counts: of numbers, and byte by byte of binary strings.

use std::borrow::Cow;

use datafusion::logical_expr::Expr;
use remora_mysql::{Collation, ErrorCode};

use super::{
    super::{
        call::{Call, TypeContext},
        function::Definition,
        types::ExprType,
        value::SqlValue,
    },
    calls::called,
    comparison::dialect,
    literals::number_of_digits,
};
use crate::{Error, Result, SqlType};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("&", 2, 2, pair_type, |call, args| pair(call, args, |a, b| a & b))
        .expanding(|args, typing| Ok(beside_bytes("&", args, typing))),
    Definition::new("|", 2, 2, pair_type, |call, args| pair(call, args, |a, b| a | b))
        .expanding(|args, typing| Ok(beside_bytes("|", args, typing))),
    Definition::new("^", 2, 2, pair_type, |call, args| pair(call, args, |a, b| a ^ b))
        .expanding(|args, typing| Ok(beside_bytes("^", args, typing))),
    Definition::new("<<", 2, 2, first_type, |call, args| shift(call, args, Shift::Left)),
    Definition::new(">>", 2, 2, first_type, |call, args| shift(call, args, Shift::Right)),
    Definition::new("~", 1, 1, first_type, inverse),
    Definition::new("bit_count", 1, 1, count_type, count),
];

/// The direction of a shift.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
}

/// Whether an operand is taken byte by byte.
fn is_bytes(kind: &ExprType) -> bool {
    kind.is_string() && kind.collation == Collation::BINARY
}

/// The type of `& | ^`: bytes if both operands are.
fn pair_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let are_bytes = typing.types.iter().all(is_bytes);
    Ok(result_type(typing, are_bytes))
}

/// The type of what is made of the first operand alone.
fn first_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let are_bytes = typing.types.first().is_some_and(is_bytes);
    Ok(result_type(typing, are_bytes))
}

fn result_type(typing: &TypeContext<'_>, are_bytes: bool) -> ExprType {
    let bytes = typing.types.iter().filter(|kind| is_bytes(kind));
    let kind = match bytes.max_by_key(|kind| kind.length).filter(|_| are_bytes) {
        Some(longest) => {
            let kind = match longest.kind {
                SqlType::Char => SqlType::VarChar,
                kind => kind,
            };
            ExprType { kind, ..ExprType::binary(longest.length) }
        }
        None => ExprType::uint(21),
    };
    ExprType { not_null: typing.all_present(), ..kind }
}

fn count_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

/// The call with numbers in the places of hexadecimal and bit literals that are not beside bytes.
fn beside_bytes(name: &'static str, args: &[Expr], typing: &TypeContext<'_>) -> Option<Expr> {
    let ([a, b], [a_type, b_type]) = (args, typing.types) else { return None };
    let number = |expr: &Expr, other: &ExprType| {
        number_of_digits(expr).filter(|_| !is_bytes(other)).map(|(number, _)| number)
    };
    let (left, right) = (number(a, b_type), number(b, a_type));
    if left.is_none() && right.is_none() {
        return None;
    }
    let args = vec![left.unwrap_or_else(|| a.clone()), right.unwrap_or_else(|| b.clone())];
    Some(called(name, args, dialect(typing)))
}

/// The bytes of an operand that is taken byte by byte.
fn bytes<'v>(call: &Call<'_>, place: usize, value: &'v SqlValue<'_>) -> Option<&'v [u8]> {
    match value {
        SqlValue::Bytes(bytes) if call.type_of(place).is_some_and(is_bytes) => Some(&**bytes),
        _ => None,
    }
}

/// A number's 64 bits.
fn bits(value: &SqlValue<'_>, call: &Call<'_>) -> u64 {
    let number = value.integer(call);
    u64::try_from(number).unwrap_or(number as i64 as u64)
}

fn pair<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    of: fn(u64, u64) -> u64,
) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(SqlValue::Null);
    }
    match (bytes(call, 0, a), bytes(call, 1, b)) {
        (Some(left), Some(right)) if left.len() == right.len() => {
            let each = left.iter().zip(right);
            let made = each.map(|(a, b)| of(u64::from(*a), u64::from(*b)) as u8);
            Ok(SqlValue::bytes(made.collect::<Vec<u8>>()))
        }
        (Some(_), Some(_)) => {
            let message = "Binary operands of bitwise operators must be of equal length";
            Err(Error::new(ErrorCode::UnequalBytes, message))
        }
        _ => Ok(SqlValue::Uint(of(bits(a, call), bits(b, call)))),
    }
}

fn shift<'a>(call: &Call<'_>, args: &[SqlValue<'a>], to: Shift) -> Result<SqlValue<'a>> {
    let [value, by] = args else { return Ok(SqlValue::Null) };
    if value.is_null() || by.is_null() {
        return Ok(SqlValue::Null);
    }
    let by = bits(by, call);
    if let Some(bytes) = bytes(call, 0, value) {
        return Ok(SqlValue::Bytes(Cow::Owned(shifted(bytes, by, to))));
    }
    let (bits, by) = (bits(value, call), u32::try_from(by).ok());
    let shifted = by.and_then(|by| match to {
        Shift::Left => bits.checked_shl(by),
        Shift::Right => bits.checked_shr(by),
    });
    Ok(SqlValue::Uint(shifted.unwrap_or(0)))
}

/// Bytes shifted by so many bits. Their number stays.
fn shifted(bytes: &[u8], by: u64, to: Shift) -> Vec<u8> {
    let (whole, part) = (usize::try_from(by / 8).unwrap_or(usize::MAX), (by % 8) as u32);
    let byte = |at: Option<usize>| u16::from(at.and_then(|at| bytes.get(at)).copied().unwrap_or(0));
    let one = |place: usize| {
        let pair = match to {
            Shift::Left => {
                let at = place.checked_add(whole);
                byte(at) << 8 | byte(at.and_then(|at| at.checked_add(1)))
            }
            Shift::Right => {
                let at = place.checked_sub(whole);
                byte(at.and_then(|at| at.checked_sub(1))) << 8 | byte(at)
            }
        };
        match to {
            Shift::Left => (pair << part >> 8) as u8,
            Shift::Right => (pair >> part) as u8,
        }
    };
    (0..bytes.len()).map(one).collect()
}

fn inverse<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value] = args else { return Ok(SqlValue::Null) };
    match bytes(call, 0, value) {
        Some(bytes) => Ok(SqlValue::bytes(bytes.iter().map(|byte| !byte).collect::<Vec<u8>>())),
        None if value.is_null() => Ok(SqlValue::Null),
        None => Ok(SqlValue::Uint(!bits(value, call))),
    }
}

fn count<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value] = args else { return Ok(SqlValue::Null) };
    let ones = match bytes(call, 0, value) {
        Some(bytes) => bytes.iter().map(|byte| i64::from(byte.count_ones())).sum(),
        None if value.is_null() => return Ok(SqlValue::Null),
        None => i64::from(bits(value, call).count_ones()),
    };
    Ok(SqlValue::Int(ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shifted_as_one_number() {
        let bytes = [0x12, 0x34, 0x56];
        for by in 0..30_u64 {
            let number = 0x12_3456_u64;
            let left = (number << by) & 0xFF_FFFF;
            let right = number >> by;
            assert_eq!(shifted(&bytes, by, Shift::Left), left.to_be_bytes()[5..], "{by}");
            assert_eq!(shifted(&bytes, by, Shift::Right), right.to_be_bytes()[5..], "{by}");
        }
        assert_eq!(shifted(&bytes, u64::MAX, Shift::Left), [0, 0, 0]);
        assert_eq!(shifted(&bytes, u64::MAX, Shift::Right), [0, 0, 0]);
    }
}
