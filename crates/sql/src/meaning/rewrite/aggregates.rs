//! Rewrites aggregates to those that the planner has.

use std::{hash::BuildHasher, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;
use rustc_hash::FxBuildHasher;

use super::{
    arguments::{self, in_document},
    call, function_name, literal, number, special,
};
use crate::{
    Error, Result,
    meaning::{
        IN_DOCUMENT,
        aggregate::{COUNT_NUMBERS, HEAD, PLACE},
    },
    parse::visit_expressions,
};

/// Whether a function name is an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    matches!(
        name,
        "count"
            | "sum"
            | "avg"
            | "min"
            | "max"
            | "group_concat"
            | "json_arrayagg"
            | "json_objectagg"
            | "any_value"
            | "bit_and"
            | "bit_or"
            | "bit_xor"
            | "std"
            | "stddev"
            | "stddev_pop"
            | "stddev_samp"
            | "var_pop"
            | "var_samp"
            | "variance"
            | COUNT_NUMBERS
            | HEAD
            | PLACE
    )
}

/// Rewrites the call of an aggregate.
pub(super) fn aggregate(name: &str, mut function: Function) -> Result<Expr> {
    let args = arguments::arguments(&function);
    match name {
        "count" => return count(function, args),
        "group_concat" => return group_concat(function, args),
        HEAD => return Ok(head(function, args, 1)),
        PLACE => return Ok(head(function, args, 0)),
        "json_objectagg" if args.len() != 2 => return Err(arguments::wrong_count(name)),
        "json_objectagg" => put_second(&mut function),
        _ if args.len() != 1 => return Err(arguments::wrong_count(name)),
        _ => {}
    }
    let wrapped = match name {
        "sum" => Some("sum_argument"),
        "avg" => {
            let sum = renamed(function.clone(), "sum", "sum_argument");
            let count = renamed(function, "count", "");
            return Ok(call("average", vec![sum, count]));
        }
        "std" | "stddev" | "stddev_pop" | "stddev_samp" | "var_pop" | "var_samp" | "variance" => {
            Some("to_double")
        }
        "json_arrayagg" => Some(IN_DOCUMENT),
        _ => None,
    };
    let name = match name {
        "std" | "stddev" => "stddev_pop",
        "stddev_samp" => "stddev",
        "var_samp" => "var",
        "variance" => "var_pop",
        name => name,
    };
    if let Some(wrapper) = wrapped {
        return Ok(renamed(function, name, wrapper));
    }
    function.name = function_name(name);
    Ok(Expr::Function(function))
}

/// Marks the second argument as one that becomes a value in a document.
fn put_second(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.get_mut(1)
    {
        let inner = std::mem::replace(value, super::null());
        *value = in_document(inner);
    }
}

/// Adds a number to arguments with subqueries. Plans distinguish aggregates by name, in which every
/// subquery is only `IN` or `EXISTS`.
pub(super) fn number_queries(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
            && has_queries(expr)
        {
            // The hash gives the same query the same number in HAVING and ORDER BY.
            let hash = FxBuildHasher.hash_one(expr.to_string()) >> 1;
            let place = number(i64::try_from(hash).unwrap_or(i64::MAX));
            let value = std::mem::replace(expr, super::null());
            *expr = call("numbered", vec![value, place]);
        }
    }
}

fn has_queries(expr: &Expr) -> bool {
    let seen = visit_expressions(expr, |each| match each {
        Expr::InSubquery { .. } | Expr::Exists { .. } | Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    seen.is_break()
}

/// The call of another function, with its argument wrapped.
fn renamed(mut function: Function, name: &str, wrapper: &str) -> Expr {
    function.name = function_name(name);
    if let FunctionArguments::List(list) = &mut function.args {
        for arg in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
                && !wrapper.is_empty()
            {
                let inner = std::mem::replace(expr, literal(Value::Null));
                *expr = call(wrapper, vec![inner]);
            }
        }
    }
    Expr::Function(function)
}

fn count(mut function: Function, args: Vec<Expr>) -> Result<Expr> {
    function.name = function_name("count");
    if let FunctionArguments::List(list) = &mut function.args {
        let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        let one = |expr: Expr| vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))];
        if args.is_empty() {
            // COUNT(*)
            list.args = one(number(1));
        } else if distinct {
            list.args = one(call("row_key", args));
        } else if args.len() > 1 {
            return Err(Error::new(ErrorCode::ParseError, "COUNT has one argument"));
        }
    }
    Ok(Expr::Function(function))
}

/// The value of a group's best row: after `values` arguments come pairs of sort key and direction.
fn head(mut function: Function, args: Vec<Expr>, values: usize) -> Expr {
    let key = |(place, arg): (usize, Expr)| match place.checked_sub(values) {
        Some(place) if place.is_multiple_of(2) => call("sort_key", vec![arg]),
        _ => arg,
    };
    let args = args.into_iter().enumerate().map(key);
    if let FunctionArguments::List(list) = &mut function.args {
        list.args = args.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    }
    Expr::Function(function)
}

/// What an expression in the ORDER BY of GROUP_CONCAT stands for: a number is the place of an argument.
fn argument_at(expr: Expr, args: &[Expr]) -> Result<Expr> {
    let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = &expr else {
        return Ok(expr);
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Ok(expr);
    }
    let place = digits.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
    let argument = place.and_then(|place| args.get(place));
    argument.cloned().ok_or_else(|| Error::unknown_column(digits, "order clause"))
}

/// `GROUP_CONCAT(DISTINCT a, b ORDER BY c SEPARATOR 's')`.
fn group_concat(mut function: Function, args: Vec<Expr>) -> Result<Expr> {
    function.name = function_name("group_concat");
    if args.is_empty() {
        return Err(arguments::wrong_count("group_concat"));
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return Ok(Expr::Function(function));
    };
    let mut separator = literal(Value::SingleQuotedString(",".to_owned()));
    let mut keys = Vec::new();
    for clause in std::mem::take(&mut list.clauses) {
        match clause {
            FunctionArgumentClause::Separator(value) => separator = special::value(value),
            FunctionArgumentClause::OrderBy(orders) => {
                for order in orders {
                    let descending = order.options.asc == Some(false);
                    keys.push(call("sort_key", vec![argument_at(order.expr, &args)?]));
                    keys.push(number(i64::from(descending)));
                }
            }
            other => list.clauses.push(other),
        }
    }
    let joined = if args.len() == 1 { call("to_text", args) } else { call("concat", args) };
    let args = [joined, separator].into_iter().chain(keys);
    list.args = args.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    // The aggregate does not know the session's limit, so a scalar function applies it.
    Ok(call("concat_limit", vec![Expr::Function(function)]))
}
