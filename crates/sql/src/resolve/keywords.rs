//! MATCH('query') and WEIGHT(): binds a keyword query to a table of its SELECT.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    OrderByExpr, OrderByOptions, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::{
    matching::text,
    scope::{Relation, Scope},
    scores::ResolvedTables,
};
use crate::{
    Error, Result,
    parse::{KEYWORDS, MATCH, change_own_expressions, function_call, visit_own_expressions},
    scan::EngineTable,
    search::KEYWORDS_MODE,
};

/// The most columns by which a call names its table.
const MAX_COLUMNS: usize = 16;

/// A call of [`KEYWORDS`] as a MATCH … AGAINST of one column of its table, in an internal mode. `None` for other
/// functions.
pub(super) fn call(function: &Function, scope: &Scope<'_>) -> Result<Option<Expr>> {
    let Some([query, options, table @ ..]) = arguments(function, KEYWORDS) else {
        return Ok(None);
    };
    let (FunctionArg::Unnamed(FunctionArgExpr::Expr(query)), Some(options)) =
        (query, literal(options))
    else {
        return Ok(None);
    };
    let relation = match table {
        [name] => {
            let name = literal(name).unwrap_or_default();
            scope.relation(None, name).ok_or_else(|| unknown_table(name))?
        }
        _ => scope.relations.first().ok_or_else(|| {
            Error::new(ErrorCode::NoTablesUsed, "MATCH('…') is asked of a table in FROM")
        })?,
    };
    // A column that a join compares could be replaced by the other side's column. So the call names several columns.
    let columns = relation.columns.iter().take(MAX_COLUMNS);
    let columns = columns.map(|column| relation.reference(&column.planned));
    let mode = format!("{KEYWORDS_MODE}\n{options}");
    let args = [text(mode), query.clone()].into_iter().chain(columns);
    Ok(Some(function_call(MATCH, args.collect())))
}

fn unknown_table(name: &str) -> Error {
    let message = format!("Unknown table '{name}' in MATCH('…', table)");
    Error::new(ErrorCode::UnknownTable, message)
}

/// The value of WEIGHT() in a SELECT with this condition; `None` if the condition has no keyword query. Keyword queries
/// of subqueries do not count.
pub(super) fn weight(condition: Option<&Expr>) -> Option<Expr> {
    let found = visit_own_expressions(condition?, |expr| match expr {
        Expr::Function(function) if is_query(function) => ControlFlow::Break(expr.clone()),
        _ => ControlFlow::Continue(()),
    });
    Some(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(found.break_value()?),
        data_type: DataType::Signed,
        array: false,
        format: None,
    })
}

/// Whether a function is WEIGHT().
pub(super) fn is_weight(function: &Function) -> bool {
    let is_called = function.name.to_string().eq_ignore_ascii_case("weight");
    is_called && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty())
}

/// WEIGHT() without a keyword query. Not a plain literal 1, which would be a position in ORDER BY.
pub(super) fn one() -> Expr {
    let one = Expr::Value(ValueWithSpan::from(Value::Number("1".to_owned(), false)));
    Expr::Nested(Box::new(one))
}

/// The default order of rows found by keywords: by weight, descending, then by key.
pub(super) fn order(scope: &Scope<'_>) -> Vec<OrderByExpr> {
    let keys = scope.relations.first().map(keys_of).unwrap_or_default();
    std::iter::once(by_weight()).chain(keys).collect()
}

/// The order by weight, descending.
pub(super) fn by_weight() -> OrderByExpr {
    part(function_call("weight", Vec::new()), false)
}

/// The order by the keys of all tables, ascending.
pub(super) fn keys(scope: &Scope<'_>) -> Vec<OrderByExpr> {
    let is_only = |relation: &&Relation| {
        scope.relations.iter().filter(|other| other.alias == relation.alias).count() == 1
    };
    scope.relations.iter().filter(is_only).flat_map(keys_of).collect()
}

fn keys_of(relation: &Relation) -> Vec<OrderByExpr> {
    let name = |key: &String| {
        let name = [&relation.alias, key].map(|part| Ident::with_quote('`', part));
        part(Expr::CompoundIdentifier(name.to_vec()), true)
    };
    relation.key.iter().map(name).collect()
}

fn part(expr: Expr, is_ascending: bool) -> OrderByExpr {
    let options = OrderByOptions { asc: Some(is_ascending), nulls_first: None };
    OrderByExpr { expr, options, with_fill: None }
}

/// Whether the function is a resolved keyword query.
pub(super) fn is_query(function: &Function) -> bool {
    let Some([mode, ..]) = arguments(function, MATCH) else { return false };
    literal(mode).is_some_and(|mode| mode.starts_with(KEYWORDS_MODE))
}

/// The name in plans of the table that a keyword query searches.
pub(super) fn table_of(function: &Function) -> Option<String> {
    let [_, _, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(name))), ..] =
        arguments(function, MATCH)?
    else {
        return None;
    };
    name.first().map(|table| table.value.clone())
}

/// The name in plans of the searched table, and the query, of a resolved WEIGHT().
pub(super) fn query_of(weight: &Expr) -> Option<(String, Expr)> {
    let Expr::Cast { expr, .. } = weight else { return None };
    let Expr::Function(function) = expr.as_ref() else { return None };
    let table = table_of(function)?;
    match arguments(function, MATCH)? {
        [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(query)), ..] => Some((table, query.clone())),
        _ => None,
    }
}

/// Replaces WEIGHT() in the resolved condition that defines it.
pub(super) fn replace_weight(condition: &mut Expr, weight: &Expr) {
    let _ = change_own_expressions(condition, |expr| {
        if matches!(&*expr, Expr::Function(function) if is_weight(function)) {
            *expr = weight.clone();
        }
        ControlFlow::<()>::Continue(())
    });
}

/// SNIPPET(text, query, option, …) as a call with the name of the table whose word settings apply: the first one with
/// ranked search.
pub(super) fn snippet(function: &Function, tables: &ResolvedTables) -> Result<Option<Expr>> {
    if !function.name.to_string().eq_ignore_ascii_case("snippet") {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let with_words = tables.iter().find_map(|(_, provider)| {
        let provider: &dyn std::any::Any = provider.as_ref();
        provider.downcast_ref::<EngineTable>().and_then(EngineTable::name_of_words)
    });
    let Some(table) = with_words else {
        let message = "SNIPPET() goes by the words of a table in FROM, and none has words";
        return Err(Error::new(ErrorCode::NoFulltextIndex, message));
    };
    if list.args.len() < 2 {
        let message = "SNIPPET() is of a text, a query, and options: 'limit=100'";
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    let args = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let args = std::iter::once(text(table)).chain(args);
    Ok(Some(function_call("#snippet", args.collect())))
}

fn arguments<'f>(function: &'f Function, name: &str) -> Option<&'f [FunctionArg]> {
    if function.name.to_string() != name {
        return None;
    }
    match &function.args {
        FunctionArguments::List(list) => Some(&list.args),
        _ => None,
    }
}

fn literal(arg: &FunctionArg) -> Option<&str> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            ..
        }))) => Some(text),
        _ => None,
    }
}
