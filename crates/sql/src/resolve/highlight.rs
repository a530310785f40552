//! HIGHLIGHT(): resolves which texts of which table it shows, and for which query.

use std::any::Any;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::{
    keywords,
    matching::text,
    scope::{Relation, Scope},
    scores::Tables,
};
use crate::{
    Error, Result,
    parse::{HIGHLIGHT, function_call},
    scan::EngineTable,
};

/// The function that the call becomes: the engine's name of the table, the query, options, then each field's name with
/// its text; a text that is no field has no name.
const RESOLVED: &str = "#highlight";

/// A call of [`HIGHLIGHT`], with the query that finds the rows: `weight` is what WEIGHT() is there. `None` for other
/// functions.
///
/// # Errors
/// 1064 without a query or for a field that there is not, 1191 where no table has words.
pub(super) fn call(
    function: &Function,
    scope: &Scope<'_>,
    tables: &Tables,
    weight: Option<&Expr>,
) -> Result<Option<Expr>> {
    if function.name.to_string() != HIGHLIGHT {
        return Ok(None);
    }
    let given = arguments(function);
    let Some(options) = given.first().copied() else { return Ok(None) };
    let found = weight.and_then(keywords::query_of);
    // The table that the rows are found in, or the first in FROM that has words.
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

/// The engine's name of a table that has words, and its fields.
fn words(provider: &dyn Any) -> Option<(String, Vec<String>)> {
    let table = provider.downcast_ref::<EngineTable>()?;
    Some((table.name_of_words()?, table.fields()))
}

/// What is shown, each with the name of the field that it is; all fields where none is named.
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

/// Options, texts and query, as far as they are given.
fn arguments(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expression = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().filter_map(expression).collect()
}
