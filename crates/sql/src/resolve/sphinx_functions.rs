//! Functions and arithmetic of Sphinx's dialect that MySQL lacks or defines differently.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, Ident, ObjectName,
    helpers::attached_token::AttachedToken,
};

use super::{
    attributes::{arguments, holds_one_of, is_document, is_part, literal_text, number, number_of},
    from::binary,
    scores::ResolvedTables,
    sets::{bare, kind_of},
};
use crate::{SqlType, meaning::json::JSON_PART, parse::function_call};

/// Calls to rewrite before their arguments are resolved: MIN and MAX of several values, which are
/// not aggregates, and REMAP, whose lists are not rows. `None` for other expressions.
pub(super) fn ahead(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let args = arguments(function)?;
    match (name_of(function)?.as_str(), args.as_slice()) {
        ("min", [_, _, ..]) => Some(renamed(function, "least")),
        ("max", [_, _, ..]) => Some(renamed(function, "greatest")),
        ("remap", [value, other, from, to]) => remapped(value, other, from, to),
        _ => None,
    }
}

/// REMAP: the value in `to` at the place where `from` has `value`; `other` if none is equal.
fn remapped(value: &Expr, other: &Expr, from: &Expr, to: &Expr) -> Option<Expr> {
    let list = |expr: &Expr| match expr {
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Nested(only) => Some(vec![only.as_ref().clone()]),
        _ => None,
    };
    let (from, to) = (list(from)?, list(to)?);
    if from.len() != to.len() {
        return None;
    }
    let when = |(condition, result)| CaseWhen { condition, result };
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: Some(Box::new(value.clone())),
        conditions: from.into_iter().zip(to).map(when).collect(),
        else_result: Some(Box::new(other.clone())),
    })
}

/// The meaning of a call with resolved arguments, or `None` if it is as in MySQL. `has_column`
/// finds a column by name.
pub(super) fn call(
    function: &Function,
    tables: &ResolvedTables,
    has_column: impl Fn(&str) -> Option<Expr>,
) -> Option<Expr> {
    let args = arguments(function)?;
    let name = name_of(function)?;
    Some(match (name.as_str(), args.as_slice()) {
        ("now", []) => function_call("unix_timestamp", Vec::new()),
        ("year" | "month" | "day" | "hour" | "minute" | "second", [of])
            if is_number(of, tables) =>
        {
            filled(function_call(&name, vec![moment(of)]))
        }
        ("yearmonth", [of]) => filled(parts_of(of, tables, &[("year", "100"), ("month", "1")])),
        ("yearmonthday", [of]) => {
            filled(parts_of(of, tables, &[("year", "10000"), ("month", "100"), ("day", "1")]))
        }
        ("idiv", [a, b]) => filled(operation(a, BinaryOperator::MyIntegerDivide, b, tables)),
        ("bigint" | "sint" | "integer", [of]) => whole(of),
        ("uint", [of]) => {
            let last = number("4294967295");
            Expr::Nested(Box::new(binary(whole(of), BinaryOperator::BitwiseAnd, last)))
        }
        ("double", [of]) => number_of(nested(of)),
        ("to_string", [of]) if is_part(of) => function_call("json_unquote", vec![(*of).clone()]),
        ("to_string", [of]) => cast(of, DataType::Char(None)),
        ("sqrt" | "ln" | "log2" | "log10", [of]) => {
            filled(function_call(&name, vec![operand(of, tables)]))
        }
        ("length", [of]) if is_part(of) || is_document(of, tables) => {
            filled(function_call("json_length", vec![(*of).clone()]))
        }
        ("in", [of, values @ ..]) if is_part(of) || is_document(of, tables) => {
            holds_one_of((*of).clone(), values.iter().map(|value| (*value).clone()).collect())
        }
        ("exist", [name, other]) => match has_column(literal_text(name)?) {
            Some(column) => column,
            None => (*other).clone(),
        },
        _ => return None,
    })
}

/// Makes the operands of arithmetic signed numbers, including those of unsigned columns and of
/// missing parts of documents.
pub(super) fn arithmetic(expr: &mut Expr, tables: &ResolvedTables) {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, MyIntegerDivide, Plus};
    let Expr::BinaryOp {
        left,
        op: Plus | Minus | Multiply | Divide | Modulo | MyIntegerDivide,
        right,
    } = expr
    else {
        return;
    };
    for side in [left, right] {
        if is_part(side) || is_unsigned(side, tables) {
            **side = operand(side, tables);
        }
    }
}

/// An operand of arithmetic.
fn operand(expr: &Expr, tables: &ResolvedTables) -> Expr {
    if is_part(expr) {
        return number_of(expr.clone());
    }
    match is_unsigned(expr, tables) {
        true => cast(expr, DataType::Signed),
        false => nested(expr),
    }
}

fn operation(left: &Expr, op: BinaryOperator, right: &Expr, tables: &ResolvedTables) -> Expr {
    let (left, right) = (operand(left, tables), operand(right, tables));
    Expr::Nested(Box::new(binary(left, op, right)))
}

/// The value truncated to an integer. A cast alone would round.
fn whole(of: &Expr) -> Expr {
    let cut = function_call("truncate", vec![of.clone(), number("0")]);
    filled(cast(&cut, DataType::Signed))
}

fn cast(expr: &Expr, data_type: DataType) -> Expr {
    let expr = Box::new(expr.clone());
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}

/// The value, or 0 instead of NULL.
fn filled(expr: Expr) -> Expr {
    function_call("coalesce", vec![expr, number("0")])
}

fn nested(expr: &Expr) -> Expr {
    Expr::Nested(Box::new(expr.clone()))
}

/// The date and time of a Unix timestamp in seconds.
fn moment(seconds: &Expr) -> Expr {
    function_call("from_unixtime", vec![seconds.clone()])
}

/// A sum of parts of a date and time, each times its factor.
fn parts_of(of: &Expr, tables: &ResolvedTables, parts: &[(&str, &str)]) -> Expr {
    let moment = if is_number(of, tables) { moment(of) } else { of.clone() };
    let part = |(name, factor): &(&str, &str)| {
        let value = function_call(name, vec![moment.clone()]);
        binary(value, BinaryOperator::Multiply, number(factor))
    };
    let sum = parts.iter().map(part).reduce(|sum, next| binary(sum, BinaryOperator::Plus, next));
    Expr::Nested(Box::new(sum.unwrap_or_else(|| number("0"))))
}

/// Whether a value is a Unix timestamp. Dates and texts keep MySQL's meaning.
fn is_number(expr: &Expr, tables: &ResolvedTables) -> bool {
    match bare(expr) {
        Expr::Function(function) => match name_of(function).as_deref() {
            Some("unix_timestamp" | "json_extract" | JSON_PART) => true,
            Some("coalesce" | "least" | "greatest") => {
                let args = arguments(function).unwrap_or_default();
                !args.is_empty() && args.iter().all(|arg| is_number(arg, tables))
            }
            _ => false,
        },
        Expr::BinaryOp { left, right, .. } => {
            let is_interval = |side: &Expr| matches!(bare(side), Expr::Interval(_));
            !is_interval(left)
                && !is_interval(right)
                && (is_number(left, tables) || is_number(right, tables))
        }
        Expr::Cast { data_type, .. } => !matches!(
            data_type,
            DataType::Date
                | DataType::Datetime(_)
                | DataType::Time(..)
                | DataType::Timestamp(..)
                | DataType::Char(_)
        ),
        Expr::Value(value) => literal_text(&Expr::Value(value.clone())).is_none(),
        column => kind_of(column, tables).is_some_and(|kind| {
            kind.is_integer() || matches!(kind.kind, SqlType::Float | SqlType::Double)
        }),
    }
}

fn is_unsigned(expr: &Expr, tables: &ResolvedTables) -> bool {
    kind_of(expr, tables).is_some_and(|kind| kind.is_integer() && kind.unsigned)
}

/// The name of a function, in lower case.
fn name_of(function: &Function) -> Option<String> {
    let [part] = function.name.0.as_slice() else { return None };
    part.as_ident().map(|name| name.value.to_lowercase())
}

fn renamed(function: &Function, name: &str) -> Expr {
    let name = ObjectName::from(vec![Ident::new(name)]);
    Expr::Function(Function { name, ..function.clone() })
}
