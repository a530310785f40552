//! Bit operators `& | ^ ~ << >>` and bit counts.

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    types::ExprType,
    value::SqlValue,
};
use crate::Result;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("&", 2, 2, bits_type, |call, args| pair(call, args, |a, b| a & b)),
    Definition::new("|", 2, 2, bits_type, |call, args| pair(call, args, |a, b| a | b)),
    Definition::new("^", 2, 2, bits_type, |call, args| pair(call, args, |a, b| a ^ b)),
    Definition::new("<<", 2, 2, bits_type, |call, args| pair(call, args, shifted_left)),
    Definition::new(">>", 2, 2, bits_type, |call, args| pair(call, args, shifted_right)),
    Definition::new("~", 1, 1, bits_type, inverse),
    Definition::new("bit_count", 1, 1, count_type, count),
];

fn bits_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.all_present(), ..ExprType::uint(21) })
}

fn count_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

fn shifted_left(bits: u64, by: u64) -> u64 {
    u32::try_from(by).ok().and_then(|by| bits.checked_shl(by)).unwrap_or(0)
}

fn shifted_right(bits: u64, by: u64) -> u64 {
    u32::try_from(by).ok().and_then(|by| bits.checked_shr(by)).unwrap_or(0)
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
    Ok(SqlValue::Uint(of(bits(a, call), bits(b, call))))
}

fn inverse<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match args {
        [value] if !value.is_null() => Ok(SqlValue::Uint(!bits(value, call))),
        _ => Ok(SqlValue::Null),
    }
}

fn count<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match args {
        [value] if !value.is_null() => Ok(SqlValue::Int(i64::from(bits(value, call).count_ones()))),
        _ => Ok(SqlValue::Null),
    }
}
