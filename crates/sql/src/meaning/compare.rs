//! How two values are compared: the domain to which both are converted, and their order in it.

use std::cmp::Ordering;

use datafusion::logical_expr::Operator;
use remora_mysql::Collation;

use super::{call::Call, collation, json, types::ExprType, value::SqlValue};
use crate::{Result, SqlType};

/// Whether a comparison operator returns NULL for NULL.
pub(crate) fn is_false_of_null(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The type to which both sides of a comparison are converted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ComparisonDomain {
    /// Integers.
    Int,
    /// Exact decimals.
    Decimal,
    /// Doubles.
    Double,
    /// Texts in a collation.
    Text(Collation),
    /// Bytes.
    Bytes,
    /// Dates, with or without a time of day.
    Moment,
    /// Spans of time.
    Time,
    /// JSON documents.
    Json,
}

impl ComparisonDomain {
    /// The domain for values of these two types.
    pub(crate) fn of(a: &ExprType, b: &ExprType) -> Result<Self> {
        if a.is_null() || b.is_null() {
            let other = if a.is_null() { b } else { a };
            return if other.is_null() { Ok(Self::Int) } else { Self::of(other, other) };
        }
        if a.kind == SqlType::Json || b.kind == SqlType::Json {
            return Ok(Self::Json);
        }
        if a.is_string() && b.is_string() {
            let (collation, _) = collation::aggregate([a, b].into_iter())?;
            let binary = collation == Collation::BINARY;
            return Ok(if binary { Self::Bytes } else { Self::Text(collation) });
        }
        if a.has_date() || b.has_date() {
            let other = if a.has_date() { b } else { a };
            return Ok(if other.is_float() { Self::Double } else { Self::Moment });
        }
        if a.is_temporal() || b.is_temporal() {
            let other = if a.is_temporal() { b } else { a };
            return Ok(if other.is_float() { Self::Double } else { Self::Time });
        }
        Ok(match (a.is_integer(), b.is_integer()) {
            (true, true) => Self::Int,
            _ if a.is_string() || b.is_string() || a.is_float() || b.is_float() => Self::Double,
            _ => Self::Decimal,
        })
    }
}

/// The domain for the operand of a CASE and a WHEN value. JSON compares with texts by its text, and
/// with numbers as a number.
pub(crate) fn for_case(a: &ExprType, b: &ExprType) -> Result<ComparisonDomain> {
    let is_json = |kind: &ExprType| kind.kind == SqlType::Json;
    match (is_json(a), is_json(b)) {
        (false, false) => ComparisonDomain::of(a, b),
        (true, true) => Ok(ComparisonDomain::Text(Collation::UTF8MB4_BIN)),
        _ => {
            let other = if is_json(a) { b } else { a };
            Ok(match other.is_string() || other.is_temporal() {
                true => ComparisonDomain::Text(Collation::UTF8MB4_BIN),
                false => ComparisonDomain::Double,
            })
        }
    }
}

/// The common domain of several values.
pub(crate) fn common_for_comparison(types: &[ExprType]) -> Result<ComparisonDomain> {
    let present: Vec<&ExprType> = types.iter().filter(|each| !each.is_null()).collect();
    let Some((first, rest)) = present.split_first() else { return Ok(ComparisonDomain::Int) };
    let strings = present.iter().filter(|each| each.is_string()).count();
    if strings > 0 && strings < present.len() {
        let temporal = present.iter().any(|each| each.has_date());
        let others_are_dates = present.iter().all(|each| each.is_string() || each.is_temporal());
        if temporal && others_are_dates {
            return Ok(ComparisonDomain::Moment);
        }
        // GREATEST and LEAST compare all other mixtures as text.
        let (collation, _) = collation::aggregate(present.iter().copied())?;
        return Ok(ComparisonDomain::Text(collation));
    }
    let mut comparing = ComparisonDomain::of(first, first)?;
    for other in rest {
        let next = ComparisonDomain::of(first, other)?;
        comparing = match (comparing, next) {
            (ComparisonDomain::Int, next) => next,
            (_, ComparisonDomain::Double) => ComparisonDomain::Double,
            (before, _) => before,
        };
    }
    if let ComparisonDomain::Text(_) = comparing {
        let (collation, _) = collation::aggregate(present.iter().copied())?;
        return Ok(ComparisonDomain::Text(collation));
    }
    Ok(comparing)
}

/// The order of two values; `None` if one is NULL or becomes NULL when converted.
pub(crate) fn compare_values(
    comparing: &ComparisonDomain,
    a: &SqlValue<'_>,
    b: &SqlValue<'_>,
    call: &Call<'_>,
) -> Result<Option<Ordering>> {
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    Ok(match comparing {
        ComparisonDomain::Int => Some(a.integer(call).cmp(&b.integer(call))),
        ComparisonDomain::Decimal => Some(a.decimal(call).cmp(&b.decimal(call))),
        ComparisonDomain::Double => a.double(call).partial_cmp(&b.double(call)),
        ComparisonDomain::Text(Collation::BINARY) => Some(a.octets().cmp(&b.octets())),
        ComparisonDomain::Text(collation) => {
            let (a, b) =
                (collation::string_in(a, *collation)?, collation::string_in(b, *collation)?);
            Some(collation::key(&a, *collation).cmp(&collation::key(&b, *collation)))
        }
        ComparisonDomain::Bytes => Some(a.octets().cmp(&b.octets())),
        ComparisonDomain::Moment => {
            match (a.moment_beside_date(call), b.moment_beside_date(call)) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                // A number that is no date is compared as a number.
                _ if a.is_number() || b.is_number() => a.double(call).partial_cmp(&b.double(call)),
                _ => None,
            }
        }
        ComparisonDomain::Time => match (a.time(call), b.time(call)) {
            (Some((a, _)), Some((b, _))) => Some(a.cmp(&b)),
            _ if a.is_number() || b.is_number() => a.double(call).partial_cmp(&b.double(call)),
            _ => None,
        },
        ComparisonDomain::Json => Some(json::compare(&json::of_value(a), &json::of_value(b))),
    })
}
