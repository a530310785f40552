//! MATCH('query') and WEIGHT(): a query by keywords is asked of a table of its SELECT.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    OrderByExpr, OrderByOptions, Query, Value, ValueWithSpan, Visit, Visitor,
};
use remora_mysql::ErrorCode;

use super::{
    matching::text,
    scope::{Relation, Scope},
};
use crate::{
    Error, Result,
    parse::{KEYWORDS, MATCH, function_call},
    search::KEYWORDS_MODE,
};

/// Most columns by which a table is named.
const MAX_COLUMNS: usize = 16;

/// What a call of [`KEYWORDS`] means: MATCH of a column of the table that is asked, in a mode of its own. `None` for
/// other functions.
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
    // Of one column that a join compares a plan would ask the same of the other side's.
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

/// What WEIGHT() is where rows are chosen by this condition; `None` where it asks for no keywords. What queries within
/// it ask for is theirs.
pub(super) fn weight(condition: Option<&Expr>) -> Option<Expr> {
    let mut seeking = Seeking { depth: 0, found: None };
    let _ = condition?.visit(&mut seeking);
    Some(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(seeking.found?),
        data_type: DataType::Signed,
        array: false,
        format: None,
    })
}

/// Seeks a query by keywords outside of queries within the condition.
struct Seeking {
    depth: usize,
    found: Option<Expr>,
}

impl Visitor for Seeking {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if self.depth == 0 && is_query(function) => {
                self.found = Some(expr.clone());
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether a function is WEIGHT().
pub(super) fn is_weight(function: &Function) -> bool {
    let is_called = function.name.to_string().eq_ignore_ascii_case("weight");
    is_called && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty())
}

/// WEIGHT() where nothing is asked for. Alone, the number would be the place of a column in ORDER BY.
pub(super) fn one() -> Expr {
    let one = Expr::Value(ValueWithSpan::from(Value::Number("1".to_owned(), false)));
    Expr::Nested(Box::new(one))
}

/// The order of rows that are found by keywords where none is said: the heaviest first, then by key.
pub(super) fn order(scope: &Scope<'_>) -> Vec<OrderByExpr> {
    let part = |expr: Expr, is_ascending: bool| OrderByExpr {
        expr,
        options: OrderByOptions { asc: Some(is_ascending), nulls_first: None },
        with_fill: None,
    };
    let keys = |relation: &Relation| {
        let name = |key: &String| {
            Expr::CompoundIdentifier(vec![
                Ident::with_quote('`', &relation.alias),
                Ident::with_quote('`', key),
            ])
        };
        relation.key.iter().map(name).collect::<Vec<_>>()
    };
    let keys = scope.relations.first().map(keys).unwrap_or_default();
    let weight = function_call("weight", Vec::new());
    std::iter::once(part(weight, false))
        .chain(keys.into_iter().map(|key| part(key, true)))
        .collect()
}

/// Whether the function is a query by keywords that was resolved.
fn is_query(function: &Function) -> bool {
    let Some([mode, ..]) = arguments(function, MATCH) else { return false };
    literal(mode).is_some_and(|mode| mode.starts_with(KEYWORDS_MODE))
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
