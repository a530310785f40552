//! Names and arguments of calls.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Value,
};
use remora_mysql::{ErrorCode, messages};

use super::{call, number};
use crate::{
    Error,
    meaning::{IN_DOCUMENT, json::JSON_PART},
};

/// Whether it is a call of this function.
pub(super) fn is_named(function: &Function, name: &str) -> bool {
    let [part] = function.name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(name))
}

/// The arguments of a call that are expressions.
pub(super) fn arguments(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expression = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    list.args.iter().filter_map(expression).collect()
}

/// The size and unit of an INTERVAL, or the expression itself.
#[expect(clippy::result_large_err, reason = "the expression is given back, not an error")]
pub(super) fn span(expr: Expr) -> std::result::Result<(Expr, Expr), Expr> {
    let Expr::Function(function) = &expr else { return Err(expr) };
    if !is_named(function, "interval") {
        return Err(expr);
    }
    let mut args = arguments(function).into_iter();
    match (args.next(), args.next()) {
        (Some(size), Some(unit)) => Ok((size, unit)),
        _ => Err(expr),
    }
}

/// The arguments, with 0 as the number of digits if it is missing.
pub(super) fn digits(args: Vec<Expr>) -> Vec<Expr> {
    if args.is_empty() { vec![number(0)] } else { args }
}

/// 1582: the number of arguments is wrong.
pub(super) fn wrong_count(name: &str) -> Error {
    let message = messages::wrong_parameter_count(name);
    Error::new(ErrorCode::WrongParameterCount, message)
}

/// Marks an argument that becomes a value in a document, since a non-literal may be a boolean
/// there. Calls that return documents are not marked, because they may be nested deeply.
pub(super) fn in_document(arg: Expr) -> Expr {
    match &arg {
        Expr::Value(value) if !matches!(value.value, Value::Boolean(_)) => arg,
        Expr::Function(function) if gives_document(function) => arg,
        _ => call(IN_DOCUMENT, vec![arg]),
    }
}

fn gives_document(function: &Function) -> bool {
    const NAMES: [&str; 10] = [
        JSON_PART,
        "cast_json",
        "json_array",
        "json_array_append",
        "json_array_insert",
        "json_extract",
        "json_insert",
        "json_object",
        "json_replace",
        "json_set",
    ];
    name_of(function).is_some_and(|name| NAMES.contains(&name.as_str()))
}

/// The name of a call in lower case.
pub(super) fn name_of(function: &Function) -> Option<String> {
    let [part] = function.name.0.as_slice() else { return None };
    part.as_ident().map(|Ident { value, .. }| value.to_lowercase())
}
