//! The types of variables that a statement reads and assigns. MySQL uses the type that a variable
//! has before the statement and converts the current value to it. A column here has one type, so it
//! must also hold the assigned values.

use datafusion::{
    common::{
        DFSchema, ScalarValue,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, ExprSchemable, expr::ScalarFunction},
};
use remora_mysql::Collation;

use super::call_of;
use crate::{
    meaning::{
        ASSIGN_VARIABLE, READ_VARIABLE,
        types::{ExprType, MAX_DIGITS, MAX_SCALE},
    },
    nodes::TreeNode,
};

/// The rounds of type inference. A sum that gains digits in every round must stop here.
const ROUNDS: usize = 3;

/// Gives every variable read in the expressions its type.
pub(super) fn told(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let mut exprs = exprs;
    for round in 0..=ROUNDS {
        let assigned = assigned(&exprs, schema)?;
        let mut is_new = false;
        let mut next = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let is_whole = call_of(unaliased(&expr), READ_VARIABLE).is_some();
            let made = expr.transform_up(|each| {
                let Some(args) = call_of(&each, READ_VARIABLE) else {
                    return Ok(Transformed::no(each));
                };
                let before = ExprType::of_field(each.to_field(schema)?.1.as_ref());
                let hint = hint_of(args, schema)?;
                let wanted = wanted(&hint, &before, &of_name(&assigned, args), round == ROUNDS);
                match wanted.filter(|_| !is_whole) {
                    Some(kind) => Ok(Transformed::yes(read_as(each, &kind)?)),
                    None => Ok(Transformed::no(each)),
                }
            })?;
            is_new |= made.transformed;
            next.push(made.data);
        }
        exprs = next;
        if !is_new {
            break;
        }
    }
    exprs.into_iter().map(|expr| of_text(expr, schema)).collect()
}

/// Variables that are never set to a number are read as text.
fn of_text(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let text = ExprType::text(0, Collation::UTF8MB4_0900_AI_CI);
    let made = expr.transform_up(|each| match call_of(&each, READ_VARIABLE) {
        Some(args) if hint_of(args, schema)?.is_null() => {
            Ok(Transformed::yes(read_as(each, &text)?))
        }
        _ => Ok(Transformed::no(each)),
    })?;
    Ok(made.data)
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        expr => expr,
    }
}

/// The assigned variables, each with the type of its value.
fn assigned(exprs: &[Expr], schema: &DFSchema) -> Result<Vec<(Expr, ExprType)>> {
    let mut found = Vec::new();
    for expr in exprs {
        expr.apply(|each| {
            if let Some([name, value]) = call_of(each, ASSIGN_VARIABLE) {
                let kind = ExprType::of_field(value.to_field(schema)?.1.as_ref());
                found.push((name.clone(), kind));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

fn of_name<'a>(assigned: &'a [(Expr, ExprType)], args: &[Expr]) -> Vec<&'a ExprType> {
    let of = assigned.iter().filter(|(name, _)| args.first() == Some(name));
    of.map(|(_, kind)| kind).filter(|kind| !kind.is_null()).collect()
}

fn hint_of(args: &[Expr], schema: &DFSchema) -> Result<ExprType> {
    match args.get(1) {
        Some(Expr::Literal(value, None)) if value.is_null() => Ok(ExprType::null()),
        Some(hint) => Ok(ExprType::of_field(hint.to_field(schema)?.1.as_ref())),
        None => Ok(ExprType::null()),
    }
}

/// The type in which to read a variable, if it differs from the current one.
fn wanted(
    hint: &ExprType,
    before: &ExprType,
    assigned: &[&ExprType],
    is_last: bool,
) -> Option<ExprType> {
    let is_number = |kind: &ExprType| kind.is_integer() || kind.is_decimal() || kind.is_float();
    // An unset variable takes the type of what is assigned.
    let hint = match hint.is_null() {
        true if assigned.iter().any(|kind| !is_number(kind)) => return None,
        true => *assigned.first()?,
        false => hint,
    };
    let numbers = || std::iter::once(hint).chain(assigned.iter().copied());
    if !is_number(hint) {
        return None;
    }
    let kind = if numbers().any(ExprType::is_float) {
        ExprType::double()
    } else if numbers().any(ExprType::is_decimal) {
        let scale = numbers().filter(|kind| kind.is_decimal()).map(ExprType::scale).max();
        let scale = if is_last { MAX_SCALE } else { scale.unwrap_or(0) };
        ExprType::decimal(u32::from(MAX_DIGITS), u32::from(scale))
    } else if hint.unsigned {
        ExprType::uint(20)
    } else {
        ExprType::int(21)
    };
    let is_same = kind.kind == before.kind && kind.unsigned == before.unsigned;
    (!is_same).then_some(kind)
}

/// The variable read with this type.
fn read_as(read: Expr, kind: &ExprType) -> Result<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = read else { return Ok(read) };
    args.truncate(1);
    let none = ScalarValue::try_from(&kind.arrow())?;
    args.push(Expr::Literal(none, Some(kind.literal_metadata())));
    Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
}
