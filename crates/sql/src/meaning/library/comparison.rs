//! `= <> < <= > >= <=>`, BETWEEN and IN. Both sides are converted to their common type and compared
//! with DataFusion's own operators, so that joins and filters can use them.

use std::borrow::Cow;

use datafusion::{
    common::{ScalarValue, tree_node::TreeNodeRecursion},
    logical_expr::{BinaryExpr, Expr, Operator, expr::InList, lit},
};
use remora_mysql::{Collation, ErrorCode, messages};

use super::{
    super::{
        call::{Call, TypeContext},
        collation,
        compare::{ComparisonDomain, compare_values, for_case},
        copies,
        function::{Definition, Dialect, MANY},
        json,
        number::integer_prefix,
        temporal::parse_moment,
        types::ExprType,
        value::SqlValue,
    },
    calls::{called, converted},
    date_comparison, json_truth,
    literals::number_of_digits,
    multi,
};
use crate::{Error, Result, SqlType, nodes::TreeNode};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::truth("=", 2, 2, never).expanding(|a, t| binary(a, t, Operator::Eq)),
    Definition::truth("<>", 2, 2, never).expanding(|a, t| binary(a, t, Operator::NotEq)),
    Definition::truth("<", 2, 2, never).expanding(|a, t| binary(a, t, Operator::Lt)),
    Definition::truth("<=", 2, 2, never).expanding(|a, t| binary(a, t, Operator::LtEq)),
    Definition::truth(">", 2, 2, never).expanding(|a, t| binary(a, t, Operator::Gt)),
    Definition::truth(">=", 2, 2, never).expanding(|a, t| binary(a, t, Operator::GtEq)),
    Definition::truth("<=>", 2, 2, never)
        .expanding(|a, t| binary(a, t, Operator::IsNotDistinctFrom)),
    Definition::truth("case_equal", 2, 2, case_equal).expanding(expand_case_equal),
    Definition::truth("between", 3, 3, between_of_row).expanding(between),
    Definition::truth("in", 2, MANY, within_of_row).expanding(within),
    Definition::truth("row_in", 3, MANY, row_in),
    Definition::new("row_order", 2, MANY, order_type, row_order),
    Definition::new("choice", 2, MANY, choice_type, choice),
    Definition::truth("truth", 1, 1, truth).expanding(json_truth::expand_truth),
    Definition::truth("branch_truth", 1, 1, |call, args| {
        Ok(SqlValue::or_null(args.first().and_then(|value| value.is_true(call)), SqlValue::truth))
    })
    .expanding(json_truth::expand_branch_truth),
    Definition::truth("xor", 2, 2, xor),
    Definition::new("sort_key", 1, 1, key_type, key).expanding(expand_key),
    Definition::new("collation_key", 2, 2, bytes_type, collation_key),
    Definition::new("row_key", 1, MANY, bytes_type, row_key),
    Definition::new("json_order", 2, 2, order_type, json_order),
    Definition::truth("undecided", 1, 1, |call, args| {
        Ok(SqlValue::or_null(args.first().and_then(|truth| truth.is_true(call)), SqlValue::truth))
    })
    .volatile(),
    Definition::new("text_of_bytes", 2, 2, text_of_bytes_type, text_of_bytes),
    Definition::new("to_double", 1, 1, double_type, to_double).expanding(expand_double),
    Definition::new("to_moment", 2, 2, moment_type, to_moment),
    Definition::new("date_or_zero", 1, 1, moment_type, date_comparison::date_or_zero),
    Definition::new("to_time", 1, 1, time_type, to_time),
    Definition::new("strcmp", 2, 2, order_type, strcmp),
    Definition::new("isnull", 1, 1, isnull_type, |_, args| {
        Ok(SqlValue::truth(args.first().is_none_or(SqlValue::is_null)))
    }),
];

/// Comparisons are always expanded before they run.
fn never<'a>(_call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Err(Error::new(ErrorCode::Unknown, "a comparison was not planned"))
}

/// Whether the operand of a CASE equals a WHEN value.
fn case_equal<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let ([a, b], [a_type, b_type]) = (args, call.types) else { return Ok(SqlValue::Null) };
    let order = compare_values(&for_case(a_type, b_type)?, a, b, call)?;
    Ok(SqlValue::or_null(order, |order| SqlValue::truth(order.is_eq())))
}

/// A plain equality, unless JSON is compared.
fn expand_case_equal(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([a, b], [a_type, b_type]) = (args, typing.types) else { return Ok(None) };
    if a_type.kind == SqlType::Json || b_type.kind == SqlType::Json {
        return Ok(None);
    }
    // A text that is no date is unequal, not an error.
    let dialect = dialect(typing);
    let of_dates = |date: &ExprType, text: &Expr, kind: &ExprType| {
        let (texts, kinds) = (std::slice::from_ref(text), std::slice::from_ref(kind));
        let (mut texts, mut kinds) = date_comparison::with_zeros(date, texts, kinds, dialect)?;
        texts.pop().zip(kinds.pop())
    };
    let zeros = [of_dates(b_type, a, a_type), of_dates(a_type, b, b_type)];
    let [left, right] = zeros.each_ref().map(Option::as_ref);
    let (a, a_type) = left.map_or((a, a_type), |(expr, kind)| (expr, kind));
    let (b, b_type) = right.map_or((b, b_type), |(expr, kind)| (expr, kind));
    compared(a, a_type, Operator::Eq, b, b_type, dialect).map(Some)
}

pub(super) fn dialect(typing: &TypeContext<'_>) -> Dialect {
    Dialect { collation: typing.collation, division_digits: typing.division_digits }
}

fn binary(args: &[Expr], typing: &TypeContext<'_>, op: Operator) -> Result<Option<Expr>> {
    let ([a, b], [a_type, b_type]) = (args, typing.types) else { return Ok(None) };
    Ok(Some(compared(a, a_type, op, b, b_type, dialect(typing))?))
}

/// An operand beside another: a hexadecimal or binary literal becomes a number beside a number.
fn beside<'a>(
    expr: &'a Expr,
    kind: &'a ExprType,
    other: &ExprType,
) -> (Cow<'a, Expr>, Cow<'a, ExprType>) {
    match number_of_digits(expr).filter(|_| other.is_number()) {
        Some((number, kind)) => (Cow::Owned(number), Cow::Owned(kind)),
        None => (Cow::Borrowed(expr), Cow::Borrowed(kind)),
    }
}

/// As [`beside`], and 24 becomes the year 2024 beside a YEAR column.
fn beside_column<'a>(
    expr: &'a Expr,
    kind: &'a ExprType,
    (other_expr, other): (&Expr, &ExprType),
) -> (Cow<'a, Expr>, Cow<'a, ExprType>) {
    match date_comparison::year(expr, other_expr, other) {
        Some(year) => (Cow::Owned(year), Cow::Owned(ExprType::int(4))),
        None => beside(expr, kind, other),
    }
}

/// A comparison of two expressions.
pub(crate) fn compared(
    a: &Expr,
    a_type: &ExprType,
    op: Operator,
    b: &Expr,
    b_type: &ExprType,
    dialect: Dialect,
) -> Result<Expr> {
    let ((left, left_type), (right, right_type)) =
        (beside_column(a, a_type, (b, b_type)), beside_column(b, b_type, (a, a_type)));
    compared_as_given(&left, &left_type, op, &right, &right_type, dialect)
}

/// Likewise, but 24 is no year: so elements of a list are compared.
fn compared_as_given(
    a: &Expr,
    a_type: &ExprType,
    op: Operator,
    b: &Expr,
    b_type: &ExprType,
    dialect: Dialect,
) -> Result<Expr> {
    if let Some(said) = multi::compared((a, a_type), op, (b, b_type), dialect) {
        return Ok(said);
    }
    let comparing = comparing_of(a, a_type, b, b_type)?;
    if comparing == ComparisonDomain::Json {
        let sides = [(a, a_type), (b, b_type)];
        let sides = sides.map(|(side, kind)| json_truth::beside_document(side, kind, dialect));
        let order = called("json_order", sides.to_vec(), dialect);
        if op == Operator::IsNotDistinctFrom {
            return Ok(plain(order, Operator::IsNotDistinctFrom, lit(0i64)));
        }
        return Ok(plain(order, op, lit(0i64)));
    }
    let common = common_number(comparing, a_type, b_type);
    let side = |expr: &Expr, kind: &ExprType, other: &ExprType| {
        prepared(expr, kind, comparing, &common, other, dialect)
    };
    Ok(plain(side(a, a_type, b_type)?, op, side(b, b_type, a_type)?))
}

/// Both sides of an equality, converted to their common type.
pub(crate) fn compared_sides(
    a: &Expr,
    a_type: &ExprType,
    b: &Expr,
    b_type: &ExprType,
    dialect: Dialect,
) -> Result<(Expr, Expr)> {
    multi::check_sought(a_type, b_type)?;
    let comparing = comparing_of(a, a_type, b, b_type)?;
    let common = common_number(comparing, a_type, b_type);
    let left = prepared(a, a_type, comparing, &common, b_type, dialect)?;
    let right = prepared(b, b_type, comparing, &common, a_type, dialect)?;
    Ok((left, right))
}

fn plain(a: Expr, op: Operator, b: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(a), op, Box::new(b)))
}

/// The domain of a comparison. A literal text that is an integer is compared with integers as one.
fn comparing_of(
    a: &Expr,
    a_type: &ExprType,
    b: &Expr,
    b_type: &ExprType,
) -> Result<ComparisonDomain> {
    let comparing = ComparisonDomain::of(a_type, b_type)?;
    if matches!(comparing, ComparisonDomain::Moment | ComparisonDomain::Time)
        && date_comparison::are_numbers(a, a_type, b, b_type)
    {
        return Ok(ComparisonDomain::Double);
    }
    let spells_integer = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            integer_prefix(text).1
        }
        _ => false,
    };
    let exact =
        (a_type.is_integer() && spells_integer(b)) || (b_type.is_integer() && spells_integer(a));
    Ok(if comparing == ComparisonDomain::Double && exact {
        ComparisonDomain::Decimal
    } else {
        comparing
    })
}

/// The decimal type that can represent both sides.
fn common_number(comparing: ComparisonDomain, a: &ExprType, b: &ExprType) -> ExprType {
    if comparing != ComparisonDomain::Decimal {
        return ExprType::null();
    }
    let whole = |kind: &ExprType| if kind.is_string() { 20 } else { kind.integer_digits() };
    let scale = u32::from(a.scale().max(b.scale()));
    ExprType::decimal(whole(a).max(whole(b)) + scale, scale)
}

/// One side, converted to the common type.
fn prepared(
    expr: &Expr,
    kind: &ExprType,
    comparing: ComparisonDomain,
    common: &ExprType,
    other: &ExprType,
    dialect: Dialect,
) -> Result<Expr> {
    let expr = expr.clone();
    Ok(match comparing {
        _ if kind.is_null() => expr,
        ComparisonDomain::Int if kind.length == 1 => {
            converted(&expr, kind, &ExprType::int(2), dialect)
        }
        ComparisonDomain::Int => expr,
        ComparisonDomain::Decimal if kind.kind == common.kind => expr,
        ComparisonDomain::Decimal => converted(&expr, kind, common, dialect),
        ComparisonDomain::Double if kind.kind == SqlType::Double => expr,
        ComparisonDomain::Double => called("to_double", vec![expr], dialect),
        ComparisonDomain::Text(collation) if kind.is_string() && !kind.is_text() => {
            let number = lit(i64::from(collation.0));
            let text = called("text_of_bytes", vec![expr, number], dialect);
            if collation::is_bytes(collation) { text } else { text_key(text, collation, dialect) }
        }
        ComparisonDomain::Text(collation) if collation::is_bytes(collation) => expr,
        ComparisonDomain::Text(collation) => text_key(expr, collation, dialect),
        ComparisonDomain::Bytes if kind.is_text() => {
            let bytes = ExprType::binary(kind.length);
            converted(&expr, kind, &bytes, dialect)
        }
        ComparisonDomain::Bytes => expr,
        ComparisonDomain::Moment if kind.has_date() => expr,
        ComparisonDomain::Moment => {
            check_moment(&expr, other)?;
            let name = if other.kind == SqlType::Date { "DATE" } else { "DATETIME" };
            called("to_moment", vec![expr, lit(name)], dialect)
        }
        ComparisonDomain::Time if kind.is_temporal() => expr,
        ComparisonDomain::Time => called("to_time", vec![expr], dialect),
        ComparisonDomain::Json => expr,
    })
}

/// An error if a literal that is compared with a date is not one.
fn check_moment(expr: &Expr, other: &ExprType) -> Result<()> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) = expr
    else {
        return Ok(());
    };
    if parse_moment(text).is_some() {
        return Ok(());
    }
    let name = match other.kind {
        SqlType::Date => "DATE",
        SqlType::Timestamp(_) => "TIMESTAMP",
        _ => "DATETIME",
    };
    Err(Error::new(ErrorCode::IncorrectValue, messages::incorrect_value(name, text)))
}

/// The sort key of a text; for a literal it is computed now.
pub(crate) fn text_key(expr: Expr, collation: Collation, dialect: Dialect) -> Expr {
    let number = lit(i64::from(collation.0));
    if let Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) =
        &expr
    {
        let key = collation::key(text, collation).into_owned();
        return lit(ScalarValue::BinaryView(Some(key)));
    }
    called("collation_key", vec![expr, number], dialect)
}

fn between(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([value, low, high], [kind, low_type, high_type]) = (args, typing.types) else {
        return Ok(None);
    };
    let (bounds, types) = (args.get(1..), typing.types.get(1..));
    let (bounds, types) = (bounds.unwrap_or_default(), types.unwrap_or_default());
    if let Some(said) = multi::listed("between", (value, kind), (bounds, types), dialect(typing)) {
        return Ok(Some(said));
    }
    if !may_be_copied(value, 2, typing.types)? {
        return Ok(None);
    }
    let dialect = dialect(typing);
    if let Some((bounds, types)) = date_comparison::with_zeros(kind, bounds, types, dialect)
        && let ([low, high], [low_type, high_type]) = (&bounds[..], &types[..])
    {
        let from = compared(value, kind, Operator::GtEq, low, low_type, dialect)?;
        let to = compared(value, kind, Operator::LtEq, high, high_type, dialect)?;
        return Ok(Some(plain(from, Operator::And, to)));
    }
    if mixes_texts_and_numbers(typing.types) {
        let double = ExprType::double();
        let [value, low, high] =
            [value, low, high].map(|each| called("to_double", vec![each.clone()], dialect));
        let from = compared(&value, &double, Operator::GtEq, &low, &double, dialect)?;
        let to = compared(&value, &double, Operator::LtEq, &high, &double, dialect)?;
        return Ok(Some(plain(from, Operator::And, to)));
    }
    let [kind, low_type, high_type] = &of_one_collation([kind, low_type, high_type])?;
    let from = compared(value, kind, Operator::GtEq, low, low_type, dialect)?;
    let to = compared(value, kind, Operator::LtEq, high, high_type, dialect)?;
    Ok(Some(plain(from, Operator::And, to)))
}

/// Whether there are only texts and numbers, and both: they are then all compared as doubles.
fn mixes_texts_and_numbers(types: &[ExprType]) -> bool {
    types.iter().any(ExprType::is_text)
        && types.iter().any(ExprType::is_number)
        && types.iter().all(|each| each.is_text() || each.is_number() || each.is_null())
}

/// The texts of a BETWEEN with the collation that all three have in common.
fn of_one_collation(types: [&ExprType; 3]) -> Result<[ExprType; 3]> {
    let own = types.map(Clone::clone);
    Ok(common_collation(&own)?.map_or(own.clone(), |common| own.map(|kind| common.of(kind))))
}

/// BETWEEN for a value that is volatile or too large to be copied.
fn between_of_row<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let above = order_of(call, args, 0, 1)?.map(|order| order.is_ge());
    let below = order_of(call, args, 0, 2)?.map(|order| order.is_le());
    Ok(match (above, below) {
        (Some(false), _) | (_, Some(false)) => SqlValue::truth(false),
        (Some(true), Some(true)) => SqlValue::truth(true),
        _ => SqlValue::Null,
    })
}

/// The order of two arguments; `None` if one is NULL.
fn order_of(
    call: &Call<'_>,
    args: &[SqlValue<'_>],
    a: usize,
    b: usize,
) -> Result<Option<std::cmp::Ordering>> {
    let (Some(a), Some(b)) =
        (args.get(a).zip(call.types.get(a)), args.get(b).zip(call.types.get(b)))
    else {
        return Ok(None);
    };
    compare_values(&ComparisonDomain::of(a.1, b.1)?, a.0, b.0, call)
}

/// IN for a value that is volatile or too large to be copied.
fn within_of_row<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let mut unknown = false;
    for place in 1..args.len() {
        match order_of(call, args, 0, place)? {
            Some(order) if order.is_eq() => return Ok(SqlValue::truth(true)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { SqlValue::Null } else { SqlValue::truth(false) })
}

/// IN for rows. Arguments: the row's width, its values, then the values of each row in the list.
fn row_in<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(SqlValue::Int(width)) = args.first() else { return Ok(SqlValue::Null) };
    let width = usize::try_from(*width).unwrap_or(0).max(1);
    let mut unknown = false;
    for start in (1 + width..args.len()).step_by(width) {
        let mut same = Some(true);
        for place in 0..width {
            match order_of(call, args, 1 + place, start + place)? {
                Some(order) if order.is_eq() => {}
                Some(_) => same = Some(false),
                None => same = same.filter(|same| !same),
            }
        }
        match same {
            Some(true) => return Ok(SqlValue::truth(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { SqlValue::Null } else { SqlValue::truth(false) })
}

/// The order of two rows: the values of the first, then those of the second.
fn row_order<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let width = args.len() / 2;
    for place in 0..width {
        match order_of(call, args, place, width + place)? {
            Some(order) if order.is_eq() => {}
            other => return Ok(order_value(other)),
        }
    }
    Ok(SqlValue::Int(0))
}

fn choice_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(20).not_null())
}

/// The index of the first value that equals the first argument, from 1; 0 if none does.
fn choice<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    for place in 1..args.len() {
        let (Some(a), Some(b)) = (args.first(), args.get(place)) else { continue };
        let (Some(a_type), Some(b_type)) = (call.types.first(), call.types.get(place)) else {
            continue;
        };
        let comparing = for_case(a_type, b_type)?;
        if compare_values(&comparing, a, b, call)?.is_some_and(|order| order.is_eq()) {
            return Ok(SqlValue::Int(i64::try_from(place).unwrap_or(i64::MAX)));
        }
    }
    Ok(SqlValue::Int(0))
}

/// Whether an expression may be copied this often: it is not volatile and small. A large one among
/// values other than numbers is error 1038, since texts compared in pairs might have different
/// collations.
fn may_be_copied(value: &Expr, times: usize, types: &[ExprType]) -> Result<bool> {
    if value.is_volatile() {
        return Ok(false);
    }
    let mut left = copies::nodes_allowed(times);
    let counted = value.apply(|_| {
        left = left.saturating_sub(1);
        Ok(if left == 0 { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    let is_small = counted.is_ok() && left > 0;
    match is_small || types.iter().all(|each| each.is_number() || each.is_null()) {
        true => Ok(is_small),
        false => Err(copies::too_large()),
    }
}

fn within(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let (Some((value, list)), Some((kind, types))) =
        (args.split_first(), typing.types.split_first())
    else {
        return Ok(None);
    };
    let dialect = dialect(typing);
    let mixed = date_comparison::are_mixed(kind, types);
    let dates = date_comparison::with_zeros(kind, list, types, dialect).filter(|_| list.len() > 1);
    let (list, types) =
        dates.as_ref().map_or((list, types), |(list, types)| (list.as_slice(), types.as_slice()));
    if let Some(said) = multi::listed("in", (value, kind), (list, types), dialect) {
        return Ok(Some(said));
    }
    let mut present = types.iter().filter(|each| !each.is_null());
    let (value, kind) = match present.clone().all(ExprType::is_number) {
        true => beside(value, kind, present.next().unwrap_or(kind)),
        false => (Cow::Borrowed(value), Cow::Borrowed(kind)),
    };
    let (value, kind) = (value.as_ref(), kind.as_ref());
    let sides = list.iter().zip(types).map(|(each, each_type)| beside(each, each_type, kind));
    let (list, types): (Vec<Expr>, Vec<ExprType>) =
        sides.map(|(each, each_type)| (each.into_owned(), each_type.into_owned())).unzip();
    let (kind, types) = of_one_list(kind, types)?;
    let (list, kind, types) = (list.as_slice(), &kind, types.as_slice());
    // Plans require constants in lists, so other values are compared one by one.
    if !mixed
        && list.iter().all(is_made_of_literals)
        && let Some(list) = uniform_list(value, kind, list, types, dialect)?
    {
        return Ok(Some(list));
    }
    if !may_be_copied(value, list.len(), typing.types)? {
        return Ok(None);
    }
    let mut parts = Vec::with_capacity(list.len());
    let number = ExprType::double();
    for (each, each_type) in list.iter().zip(types) {
        if mixed && each_type.is_number() {
            let value = called("to_double", vec![value.clone()], dialect);
            parts.push(compared(&value, &number, Operator::Eq, each, each_type, dialect)?);
            continue;
        }
        let compare = if list.len() == 1 { compared } else { compared_as_given };
        parts.push(compare(value, kind, Operator::Eq, each, each_type, dialect)?);
    }
    Ok(any_of(parts))
}

/// OR of conditions, as a balanced tree.
fn any_of(mut parts: Vec<Expr>) -> Option<Expr> {
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => plain(left, Operator::Or, right),
                None => left,
            });
        }
        parts = pairs;
    }
    parts.pop()
}

/// The texts of an IN with the collation that all have in common.
fn of_one_list(kind: &ExprType, types: Vec<ExprType>) -> Result<(ExprType, Vec<ExprType>)> {
    let all: Vec<ExprType> = std::iter::once(kind).chain(&types).cloned().collect();
    Ok(match common_collation(&all)? {
        Some(common) => {
            let types = types.into_iter().map(|each| common.of(each)).collect();
            (common.of(kind.clone()), types)
        }
        None => (kind.clone(), types),
    })
}

/// How texts that are compared together compare.
#[derive(Clone, Copy)]
struct Common {
    collation: Collation,
    coercibility: u8,
}

impl Common {
    fn of(self, kind: ExprType) -> ExprType {
        match kind.is_text() {
            true => ExprType { collation: self.collation, coercibility: self.coercibility, ..kind },
            false => kind,
        }
    }
}

/// The common collation of texts, bytes and NULLs; `None` if there are other types.
fn common_collation(types: &[ExprType]) -> Result<Option<Common>> {
    let mut present = types.iter().filter(|each| !each.is_null());
    if !present.all(ExprType::is_string) {
        return Ok(None);
    }
    let (collation, coercibility) = collation::aggregate(types.iter())?;
    Ok(Some(Common { collation, coercibility }))
}

/// Whether an expression is constant: no columns and no subqueries.
fn is_made_of_literals(expr: &Expr) -> bool {
    let varies = expr.exists(|part| {
        let varies = matches!(
            part,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
        );
        Ok(varies)
    });
    !varies.unwrap_or(true) && !expr.is_volatile()
}

/// IN with a list whose values all compare in the same way.
fn uniform_list(
    value: &Expr,
    kind: &ExprType,
    list: &[Expr],
    types: &[ExprType],
    dialect: Dialect,
) -> Result<Option<Expr>> {
    let mut comparing: Option<ComparisonDomain> = None;
    let mut widest = kind.clone();
    for (each, each_type) in list.iter().zip(types) {
        if each_type.is_null() {
            continue;
        }
        let next = comparing_of(value, kind, each, each_type)?;
        if comparing.is_some_and(|before| before != next) || next == ComparisonDomain::Json {
            return Ok(None);
        }
        comparing = Some(next);
        let same = common_number(next, &widest, each_type);
        if !same.is_null() {
            widest = same;
        }
    }
    let Some(comparing) = comparing else { return Ok(None) };
    let common = common_number(comparing, &widest, &widest);
    let first = types.iter().find(|each| !each.is_null()).unwrap_or(kind);
    let side = prepared(value, kind, comparing, &common, first, dialect)?;
    let mut values = Vec::with_capacity(list.len());
    for (each, each_type) in list.iter().zip(types) {
        values.push(prepared(each, each_type, comparing, &common, kind, dialect)?);
    }
    Ok(Some(Expr::InList(InList::new(Box::new(side), values, false))))
}

fn truth<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let truth = args.first().and_then(|value| json_truth::is_true(value, call));
    Ok(SqlValue::or_null(truth, SqlValue::truth))
}

fn xor<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    let both = json_truth::is_true(a, call).zip(json_truth::is_true(b, call));
    Ok(SqlValue::or_null(both, |(a, b)| SqlValue::truth(a != b)))
}

/// The type of the key by which values are sorted, grouped and joined.
fn key_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    Ok(match kind.kind {
        SqlType::Enum | SqlType::Set => ExprType::uint(20),
        SqlType::Json => ExprType::binary(kind.length),
        _ if kind.is_text() => ExprType::binary(kind.length),
        _ => kind,
    })
}

fn key<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (Some(value), Some(kind)) = (args.first(), call.type_of(0)) else {
        return Ok(SqlValue::Null);
    };
    Ok(match value {
        SqlValue::Member(_, number) => SqlValue::Uint(*number),
        SqlValue::Json(text) => SqlValue::bytes(json::sort_key(text)),
        SqlValue::Text(text) => SqlValue::bytes(collation::key(text, kind.collation).into_owned()),
        value => value.clone(),
    })
}

fn expand_key(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([expr], [kind]) = (args, typing.types) else { return Ok(None) };
    Ok(match kind.kind {
        SqlType::Enum | SqlType::Set | SqlType::Json => None,
        _ if kind.is_text() && !collation::is_bytes(kind.collation) => {
            Some(text_key(expr.clone(), kind.collation, dialect(typing)))
        }
        _ => Some(expr.clone()),
    })
}

fn bytes_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(typing.get(0).length))
}

fn text_of_bytes_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(typing.get(0).length, typing.collation))
}

/// Bytes compared with a text, decoded by its collation's character set; 3854 if they are invalid.
fn text_of_bytes<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, SqlValue::Int(number)] = args else { return Ok(SqlValue::Null) };
    if value.is_null() {
        return Ok(SqlValue::Null);
    }
    let text = collation::string_in(value, collation_of_number(*number))?;
    Ok(SqlValue::text(text.into_owned()))
}

fn collation_of_number(number: i64) -> Collation {
    Collation(u16::try_from(number).unwrap_or(Collation::BINARY.0))
}

fn collation_key<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, SqlValue::Int(number)] = args else { return Ok(SqlValue::Null) };
    let collation = collation_of_number(*number);
    Ok(SqlValue::or_null(value.string(), |text| {
        SqlValue::bytes(collation::key(&text, collation).into_owned())
    }))
}

/// A single key for several values; NULL if one of them is NULL.
fn row_key<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let mut whole = Vec::new();
    for (value, kind) in args.iter().zip(call.types) {
        let part = match value {
            SqlValue::Null => return Ok(SqlValue::Null),
            SqlValue::Text(text) => collation::key(text, kind.collation).into_owned(),
            SqlValue::Json(text) => json::sort_key(text),
            value => value.octets().unwrap_or_default().into_owned(),
        };
        whole.extend_from_slice(&(part.len() as u64).to_be_bytes());
        whole.extend_from_slice(&part);
    }
    Ok(SqlValue::bytes(whole))
}

fn order_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(2))
}

fn order_value<'a>(order: Option<std::cmp::Ordering>) -> SqlValue<'a> {
    SqlValue::or_null(order, |order| SqlValue::Int(order as i64))
}

fn json_order<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    Ok(order_value(compare_values(&ComparisonDomain::Json, a, b, call)?))
}

fn strcmp<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    let types = call.types.iter();
    let (collation, _) = collation::aggregate(types)?;
    Ok(order_value(compare_values(&ComparisonDomain::Text(collation), a, b, call)?))
}

fn double_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double())
}

fn to_double<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let value = args.first().filter(|value| !value.is_null());
    Ok(SqlValue::or_null(value, |value| SqlValue::Double(value.double(call))))
}

fn expand_double(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([expr], [kind]) = (args, typing.types) else { return Ok(None) };
    Ok((kind.kind == SqlType::Double).then(|| expr.clone()))
}

fn moment_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date_time(6))
}

fn to_moment<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let moment = args.first().and_then(|value| value.moment_beside_date(call));
    Ok(SqlValue::or_null(moment, |moment| SqlValue::DateTime(moment, 6)))
}

fn time_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::time(6))
}

fn to_time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(args.first().and_then(|value| value.time(call)), |(micros, _)| {
        SqlValue::Time(micros, 6)
    }))
}

fn isnull_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::truth().not_null())
}
