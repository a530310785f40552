//! IF, CASE, IFNULL, NULLIF, COALESCE, GREATEST, LEAST, INTERVAL(), and the common type of several
//! values.

use datafusion::{
    common::tree_node::TreeNodeRecursion,
    logical_expr::{Case, Expr, lit},
};
use remora_mysql::{Collation, ErrorCode, messages};

use super::{
    super::{
        call::{Call, TypeContext},
        collation,
        compare::{ComparisonDomain, common_for_comparison, compare_values, for_case},
        function::{Definition, Dialect, MANY},
        types::{ExprType, coercibility},
        value::SqlValue,
    },
    arithmetic::{Number, number_of},
    calls::{called, converted, typed},
};
use crate::{Error, Result, SqlType, multi, nodes::TreeNode};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("case", 2, MANY, case_type, case).expanding(expand_case),
    Definition::new("case_of", 3, MANY, case_of_type, case_of).expanding(expand_case_of),
    Definition::new("ifnull", 2, 2, coalesce_type, coalesce).expanding(expand_coalesce),
    Definition::new("coalesce", 1, MANY, coalesce_type, coalesce).expanding(expand_coalesce),
    Definition::new("nullif", 2, 2, nullif_type, nullif),
    Definition::new(
        "greatest",
        1,
        MANY,
        |typing| extreme_type(typing, "greatest"),
        |call, args| extreme(call, args, true),
    ),
    Definition::new(
        "least",
        1,
        MANY,
        |typing| extreme_type(typing, "least"),
        |call, args| extreme(call, args, false),
    ),
    Definition::new("interval_index", 2, MANY, index_type, index),
    Definition::new("convert_to", 2, 2, convert_type, first),
];

/// The common type of a value that is one of these.
pub(crate) fn common_type(types: &[ExprType]) -> Result<ExprType> {
    let present: Vec<&ExprType> = types.iter().filter(|each| !each.is_null()).collect();
    let not_null = types.iter().all(|each| each.not_null);
    let Some(first) = present.first() else {
        return Ok(ExprType { length: 0, ..ExprType::null() });
    };
    let same =
        present.iter().all(|each| each.kind == first.kind && each.unsigned == first.unsigned);
    let kind = if same && !first.is_string() {
        let length = present.iter().map(|each| each.length).max().unwrap_or(0);
        let decimals = match first.is_float() {
            true => ExprType::common_decimals(present.iter().copied()),
            false => None,
        };
        let multi = first.multi.filter(|_| present.iter().all(|each| each.multi == first.multi));
        ExprType { length, width: None, decimals, multi, ..(*first).clone() }
    } else if let Some(kind) = common_number(&present) {
        kind
    } else if let Some(kind) = common_temporal(&present) {
        kind
    } else if present.iter().all(|each| each.kind == SqlType::Json) {
        ExprType::json()
    } else {
        let present: Vec<ExprType> =
            present.into_iter().map(|kind| kind.clone().with_bits_as_bytes()).collect();
        common_text(&present.iter().collect::<Vec<_>>())?
    };
    Ok(ExprType { not_null, ..kind })
}

fn common_number(types: &[&ExprType]) -> Option<ExprType> {
    if !types.iter().all(|each| each.is_number()) {
        return None;
    }
    if types.iter().any(|each| each.is_float()) {
        // MySQL's rules: BIGINT widens a FLOAT if it comes first, but not after it.
        let floats_first = types.first().is_some_and(|first| first.kind == SqlType::Float);
        let narrow = |each: &&ExprType| match each.kind {
            SqlType::Double | SqlType::Int | SqlType::Decimal(..) => false,
            SqlType::BigInt => floats_first,
            _ => true,
        };
        let kind = if types.iter().all(narrow) { SqlType::Float } else { SqlType::Double };
        let decimals = ExprType::common_decimals(types.iter().copied());
        let length = types.iter().map(|each| each.length).max().unwrap_or(0);
        let double = ExprType::double();
        let length = if decimals.is_some() { length } else { double.length };
        return Some(ExprType { kind, decimals, length, ..double });
    }
    let sizes = |unsigned: bool| {
        let of_sign = types.iter().filter(move |each| each.unsigned == unsigned);
        of_sign.map(|each| integer_size(each.kind)).max()
    };
    let unsigned_year = |each: &&ExprType| each.kind == SqlType::Year;
    let mixed = sizes(false).is_some() && sizes(true).is_some();
    let whole = types.iter().map(|each| each.integer_digits()).max().unwrap_or(1);
    let widest = sizes(true).unwrap_or(0);
    if types.iter().any(|each| each.is_decimal()) || (mixed && widest == BIGINT_SIZE) {
        let scale = types.iter().map(|each| u32::from(each.scale())).max().unwrap_or(0);
        return Some(ExprType::decimal(whole + scale, scale));
    }
    let length = types.iter().map(|each| each.length).max().unwrap_or(1);
    let signed = sizes(false).unwrap_or(0);
    let years = types.iter().filter(|each| each.unsigned).all(unsigned_year);
    // Signed and unsigned types together need the next larger signed type.
    let size = if mixed && !years { signed.max(widest + 1) } else { signed.max(widest) };
    let kind = ExprType::int(length).with_unsigned(!mixed && sizes(true).is_some());
    Some(ExprType { kind: integer_kind(size), ..kind })
}

/// The rank of BIGINT among integer types.
const BIGINT_SIZE: u8 = 5;

fn integer_size(kind: SqlType) -> u8 {
    match kind {
        SqlType::TinyInt => 1,
        SqlType::SmallInt | SqlType::Year => 2,
        SqlType::MediumInt => 3,
        SqlType::Int => 4,
        _ => BIGINT_SIZE,
    }
}

fn integer_kind(size: u8) -> SqlType {
    match size {
        1 => SqlType::TinyInt,
        2 => SqlType::SmallInt,
        3 => SqlType::MediumInt,
        4 => SqlType::Int,
        _ => SqlType::BigInt,
    }
}

fn common_temporal(types: &[&ExprType]) -> Option<ExprType> {
    if !types.iter().all(|each| each.is_temporal()) {
        return None;
    }
    let digits = types.iter().map(|each| each.scale()).max().unwrap_or(0);
    if types.iter().all(|each| matches!(each.kind, SqlType::Time(_))) {
        return Some(ExprType::time(digits));
    }
    if types.iter().all(|each| each.kind == SqlType::Date) {
        return Some(ExprType::date());
    }
    Some(ExprType::date_time(digits))
}

fn common_text(types: &[&ExprType]) -> Result<ExprType> {
    let length = types.iter().map(|each| each.characters()).max().unwrap_or(0);
    let (collation, strength) =
        collation::composed_or(types.iter().copied(), Collation::UTF8MB4_0900_AI_CI)?;
    Ok(ExprType::text(length, collation).with_coercibility(strength))
}

/// The type of a CASE: the common type of its branches.
fn case_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let mut kinds: Vec<ExprType> = branches(typing.types).cloned().collect();
    if typing.types.len().is_multiple_of(2) {
        kinds.push(ExprType::null());
    }
    common_type(&kinds)
}

fn branches<T>(args: &[T]) -> impl Iterator<Item = &T> {
    let last = args.len().saturating_sub(1);
    let of_when =
        move |index: &usize| index % 2 == 1 || (*index == last && index.is_multiple_of(2));
    (0..args.len()).filter(of_when).filter_map(|index| args.get(index))
}

fn case<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    for pair in args.chunks(2) {
        match pair {
            [condition, value] if condition.is_true(call) == Some(true) => return Ok(value.clone()),
            [otherwise] => return Ok(otherwise.clone()),
            _ => {}
        }
    }
    Ok(SqlValue::Null)
}

/// The most nested CASEs that become DataFusion's, since each level doubles the cost of planning.
const MOST_NESTED: usize = 6;

/// The nesting depth of DataFusion's CASEs.
fn nested_cases(expr: &Expr) -> usize {
    let mut deepest = 0;
    // The closure never fails.
    let _ = expr.apply_children(|child| {
        deepest = deepest.max(nested_cases(child));
        Ok(TreeNodeRecursion::Continue)
    });
    deepest + usize::from(matches!(expr, Expr::Case(_)))
}

/// CASE as DataFusion's, which evaluates only the branch taken. If CASEs are nested too deeply, all
/// branches are evaluated.
fn expand_case(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let kind = case_type(typing)?;
    let is_deep = |pair: &[Expr]| matches!(pair, [_, value] if nested_cases(value) >= MOST_NESTED);
    if kind.is_null() || args.chunks(2).any(is_deep) {
        return Ok(None);
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let convert =
        |(expr, from): (&Expr, &ExprType)| Box::new(converted(expr, from, &kind, dialect));
    let mut whens = Vec::new();
    let mut otherwise = None;
    for (args, types) in args.chunks(2).zip(typing.types.chunks(2)) {
        match (args, types) {
            ([condition, value], [_, from]) => {
                whens.push((Box::new(condition.clone()), convert((value, from))));
            }
            ([value], [from]) => otherwise = Some(convert((value, from))),
            _ => return Ok(None),
        }
    }
    let case = Expr::Case(Case::new(None, whens, otherwise));
    Ok(Some(typed(case, &kind, dialect)))
}

/// The types of a CASE's branches, without its operand.
fn behind_operand<'t>(typing: &TypeContext<'t>) -> TypeContext<'t> {
    TypeContext {
        types: typing.types.get(1..).unwrap_or_default(),
        scalars: typing.scalars.get(1..).unwrap_or_default(),
        ..*typing
    }
}

/// CASE of a volatile operand. Arguments: the operand, then the branches.
fn case_of_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    case_type(&behind_operand(typing))
}

fn case_of<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (Some((operand, branches)), Some((kind, types))) =
        (args.split_first(), call.types.split_first())
    else {
        return Ok(SqlValue::Null);
    };
    for (pair, types) in branches.chunks(2).zip(types.chunks(2)) {
        match (pair, types) {
            ([value, then], [value_type, _]) => {
                let comparing = for_case(kind, value_type)?;
                let order = compare_values(&comparing, operand, value, call)?;
                if order.is_some_and(|order| order.is_eq()) {
                    return Ok(then.clone());
                }
            }
            ([otherwise], _) => return Ok(otherwise.clone()),
            _ => {}
        }
    }
    Ok(SqlValue::Null)
}

/// CASE over the index of the matching WHEN value, so that the operand is evaluated only once.
fn expand_case_of(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let behind = behind_operand(typing);
    let kind = case_type(&behind)?;
    let Some((operand, branches)) = args.split_first().filter(|_| !kind.is_null()) else {
        return Ok(None);
    };
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let mut compared = vec![operand.clone()];
    let (mut whens, mut otherwise) = (Vec::new(), None);
    for (pair, types) in branches.chunks(2).zip(behind.types.chunks(2)) {
        match (pair, types) {
            ([value, then], [_, from]) => {
                compared.push(value.clone());
                let place = i64::try_from(compared.len() - 1).unwrap_or(i64::MAX);
                let then = converted(then, from, &kind, dialect);
                whens.push((Box::new(lit(place)), Box::new(then)));
            }
            ([value], [from]) => otherwise = Some(Box::new(converted(value, from, &kind, dialect))),
            _ => return Ok(None),
        }
    }
    let place = called("choice", compared, dialect);
    let case = Expr::Case(Case::new(Some(Box::new(place)), whens, otherwise));
    Ok(Some(typed(case, &kind, dialect)))
}

fn convert_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let told = typing.constant_text(1).and_then(ExprType::from_spelled);
    Ok(told.unwrap_or_else(|| typing.get(0)))
}

fn first<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.first().cloned().unwrap_or(SqlValue::Null))
}

fn coalesce_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = common_type(typing.types)?;
    let not_null = typing.types.iter().any(|each| each.not_null);
    Ok(ExprType { not_null, ..kind })
}

fn coalesce<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.iter().find(|value| !value.is_null()).cloned().unwrap_or(SqlValue::Null))
}

/// As a CASE, if the last argument is expensive (not a column), so that it is evaluated only for
/// the rows that need it.
fn expand_coalesce(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let kind = coalesce_type(typing)?;
    let pairs = args.iter().zip(typing.types);
    let Some(((last, last_type), first)) =
        pairs.collect::<Vec<_>>().split_last().map(|(last, first)| (*last, first.to_vec()))
    else {
        return Ok(None);
    };
    let costs = matches!(last, Expr::ScalarFunction(_));
    let columns = first.iter().all(|(each, _)| matches!(each, Expr::Column(_)));
    if kind.is_null() || first.is_empty() || !costs || !columns {
        return Ok(None);
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let convert = |expr: &Expr, from: &ExprType| Box::new(converted(expr, from, &kind, dialect));
    let whens = first.iter().map(|(each, from)| {
        let there = Expr::IsNotNull(Box::new((*each).clone()));
        (Box::new(there), convert(each, from))
    });
    let case = Case::new(None, whens.collect(), Some(convert(last, last_type)));
    Ok(Some(typed(Expr::Case(case), &kind, dialect)))
}

fn nullif_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: false, ..typing.get(0) })
}

fn nullif<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let ([a, b], [a_type, b_type]) = (args, call.types) else { return Ok(SqlValue::Null) };
    if a.is_null() || b.is_null() {
        return Ok(a.clone());
    }
    let comparing = ComparisonDomain::of(a_type, b_type)?;
    let equal = compare_values(&comparing, a, b, call)?.is_some_and(|order| order.is_eq());
    Ok(if equal { SqlValue::Null } else { a.clone() })
}

/// The type of GREATEST or LEAST, or of the greatest or least number in a set.
fn extreme_type(typing: &TypeContext<'_>, name: &str) -> Result<ExprType> {
    if let [only] = typing.types {
        let Some(multi) = only.multi else {
            let message = messages::wrong_parameter_count(name);
            return Err(Error::new(ErrorCode::WrongParameterCount, message));
        };
        let number = if multi.is_wide { ExprType::int(20) } else { ExprType::uint(10) };
        return Ok(ExprType { not_null: only.not_null, ..number });
    }
    let kind = common_type(typing.types)?;
    Ok(match kind.kind {
        SqlType::Float => ExprType::double(),
        _ if kind.is_integer() => ExprType::int(kind.length).with_unsigned(kind.unsigned),
        _ => kind,
    })
}

fn extreme<'a>(call: &Call<'_>, args: &[SqlValue<'a>], greatest: bool) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    if let [SqlValue::Json(set)] = args {
        // For an empty set Sphinx returns 0.
        let mut numbers = multi::numbers(set);
        let number = if greatest { numbers.last() } else { numbers.next() };
        return Ok(SqlValue::Int(number.unwrap_or(0)));
    }
    let comparing = common_for_comparison(call.types)?;
    let mut best: Option<&SqlValue<'a>> = None;
    for value in args {
        let better = match best {
            None => true,
            Some(best) => {
                let order = compare_values(&comparing, value, best, call)?;
                order.is_some_and(|order| if greatest { order.is_gt() } else { order.is_lt() })
            }
        };
        if better {
            best = Some(value);
        }
    }
    Ok(best.cloned().unwrap_or(SqlValue::Null))
}

fn index_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(2).not_null())
}

/// INTERVAL(): how many of the following values are at most the first.
fn index<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((first, bounds)) = args.split_first() else { return Ok(SqlValue::Null) };
    if first.is_null() {
        return Ok(SqlValue::Int(-1));
    }
    let exact = call.types.iter().all(|each| number_of(each) != Number::Double);
    let above = |bound: &SqlValue<'_>| match (bound.is_null(), exact) {
        (true, _) => false,
        (false, true) => bound.decimal(call) > first.decimal(call),
        (false, false) => bound.double(call) > first.double(call),
    };
    let place = bounds.iter().position(above).unwrap_or(bounds.len());
    Ok(SqlValue::Int(i64::try_from(place).unwrap_or(i64::MAX)))
}

/// The type of a text of so many characters that is composed of these arguments.
pub(crate) fn text_type(
    typing: &TypeContext<'_>,
    of: &[usize],
    characters: u32,
) -> Result<ExprType> {
    let mut types: Vec<ExprType> = of.iter().map(|index| typing.get(*index)).collect();
    // What is made of the text of a UUID or an address is a plain text.
    for kind in types.iter_mut().filter(|kind| kind.collation.is_of_type()) {
        kind.collation = Collation::UTF8MB4_0900_AI_CI;
    }
    let (collation, strength) = collation::composed_or(types.iter(), typing.collation)?;
    // NULL literals do not affect the collation.
    let is_nothing =
        |kind: &ExprType| kind.is_null() || kind.coercibility == coercibility::IGNORABLE;
    let nothing = !types.is_empty() && types.iter().all(is_nothing);
    let collation = if nothing { Collation::BINARY } else { collation };
    let kind = ExprType::text(characters, collation);
    let strength = match strength {
        _ if nothing => coercibility::IGNORABLE,
        coercibility::NUMERIC | coercibility::IGNORABLE => coercibility::LITERAL,
        strength => strength,
    };
    Ok(kind.with_coercibility(strength))
}
