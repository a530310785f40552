//! HIGHLIGHT(): resolves the table, the texts to show, and the query.

use std::any::Any;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::{
    keywords,
    matching::text,
    scope::{Relation, Scope},
    scores::ResolvedTables,
};
use crate::{
    Error, Result,
    parse::{HIGHLIGHT, function_call},
    scan::EngineTable,
};

/// The function that the call becomes. Its arguments are the table's name in the engine, the query, the options, then
/// each field's name and text. A text that is not a field has an empty name.
const RESOLVED: &str = "#highlight";

/// A resolved call of [`HIGHLIGHT`]. `weight` is the resolved WEIGHT(), from which the query is taken. `None` for other
/// functions.
///
/// # Errors
/// 1064 without a query or for an unknown field; 1191 if no table has ranked search.
pub(super) fn call(
    function: &Function,
    scope: &Scope<'_>,
    tables: &ResolvedTables,
    weight: Option<&Expr>,
) -> Result<Option<Expr>> {
    if function.name.to_string() != HIGHLIGHT {
        return Ok(None);
    }
    let given = arguments(function);
    let Some(options) = given.first().copied() else { return Ok(None) };
    let found = weight.and_then(keywords::query_of);
    // The table that the query searches, or the first one in FROM with ranked search.
    let is_asked = |relation: &&Relation| match &found {
        Some((table, _)) => relation.unique == *table,
        None => true,
    };
    let known = scope.relations.iter().filter(is_asked).find_map(|relation| {
        let (_, provider) = tables.iter().find(|(unique, _)| *unique == relation.unique)?;
        Some((relation, words(provider.as_ref())?))
    });
    let Some((relation, (table, fields))) = known else {
        let message = "HIGHLIGHT() goes by the words of a table in FROM, and none has words";
        return Err(Error::new(ErrorCode::NoFulltextIndex, message));
    };
    let query = match (given.get(2), found) {
        (Some(&query), _) => query.clone(),
        (None, Some((_, query))) => query,
        (None, None) => {
            let message = "HIGHLIGHT() shows what WHERE MATCH('…') finds: ask for that, or give \
                           the query: HIGHLIGHT({}, 'title', 'query')";
            return Err(Error::new(ErrorCode::ParseError, message));
        }
    };
    let mut args = vec![text(table), query, options.clone()];
    for (name, shown) in shown(given.get(1).copied(), relation, &fields)? {
        args.extend([text(name), shown]);
    }
    Ok(Some(function_call(RESOLVED, args)))
}

/// The engine's name and the fields of a table with ranked search.
fn words(provider: &dyn Any) -> Option<(String, Vec<String>)> {
    let table = provider.downcast_ref::<EngineTable>()?;
    Some((table.name_of_words()?, table.fields()))
}

/// The texts to show, each with its field's name; all fields if none is named.
fn shown(
    texts: Option<&Expr>,
    relation: &Relation,
    fields: &[String],
) -> Result<Vec<(String, Expr)>> {
    let list = match texts {
        None => "",
        Some(Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(list), .. })) => {
            list.trim()
        }
        Some(other) => return Ok(vec![(String::new(), other.clone())]),
    };
    let all = || fields.iter().map(String::as_str).collect::<Vec<_>>();
    let named: Vec<&str> =
        if list.is_empty() { all() } else { list.split(',').map(str::trim).collect() };
    let field = |name: &str| {
        let field = fields.iter().find(|field| field.eq_ignore_ascii_case(name))?;
        let lower = field.to_lowercase();
        let column = relation.columns.iter().find(|column| column.is(&lower))?;
        Some((field.clone(), relation.reference(&column.planned)))
    };
    let found = named.into_iter().map(|name| {
        field(name).ok_or_else(|| {
            let message = format!("unknown field '{name}' in HIGHLIGHT()");
            Error::new(ErrorCode::ParseError, message)
        })
    });
    found.collect()
}

/// The arguments that are given: options, texts, query.
fn arguments(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expression = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().filter_map(expression).collect()
}
