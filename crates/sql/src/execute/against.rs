//! AGAINST with an expression: if it is constant for all rows, it is evaluated before the query is planned, so that the
//! text index can answer.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    SearchModifier, Value, ValueWithSpan, VisitorMut,
};
use remora_engine::Value as EngineValue;
use remora_mysql::{ErrorCode, messages};

use super::run::collect;
use crate::{
    Error, Result,
    meaning::is_volatile,
    parse::{MATCH_OF, MATCH_OF_PATHS, Source, VisitMut, visit_own_expressions, write::query_from},
    state::SessionState,
};

/// Evaluates the arguments of AGAINST. Error 1210 if one is not constant for all rows.
pub(super) async fn settle(
    session: &SessionState,
    query: &mut ast::Query,
    source: &Source,
) -> Result<()> {
    let mut taken = AgainstArguments { sought: Vec::new() };
    if let ControlFlow::Break(error) = query.visit(&mut taken) {
        return Err(error);
    }
    let mut texts = Vec::with_capacity(taken.sought.len());
    for expr in taken.sought {
        texts.push(Box::pin(evaluated(session, expr, source)).await?);
    }
    if !texts.is_empty() {
        let _ = query.visit(&mut AgainstValues { texts });
    }
    Ok(())
}

async fn evaluated(session: &SessionState, expr: Expr, source: &Source) -> Result<String> {
    let query = query_from(vec![Expr::Nested(Box::new(expr))], Vec::new());
    Ok(match collect(session, query, source).await?.value(0, 0) {
        EngineValue::Null => String::new(),
        EngineValue::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        value => value.to_string(),
    })
}

/// Error 1210.
fn wrong_arguments() -> Error {
    Error::new(ErrorCode::WrongArguments, messages::incorrect_arguments("AGAINST"))
}

/// Replaces each argument of AGAINST by a numbered marker.
struct AgainstArguments {
    sought: Vec<Expr>,
}

impl VisitorMut for AgainstArguments {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if is_called(function, MATCH_OF_PATHS) {
            return self.take_of_paths(function);
        }
        if !is_called(function, MATCH_OF) {
            return ControlFlow::Continue(());
        }
        let mut args = arguments(function).into_iter();
        let (Some(mode), Some(sought)) = (args.next(), args.next()) else {
            return ControlFlow::Break(wrong_arguments());
        };
        match self.take(sought) {
            Ok(match_value) => {
                let (columns, opt_search_modifier) = (args.map(named).collect(), modifier(&mode));
                *expr = Expr::MatchAgainst { columns, match_value, opt_search_modifier };
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl AgainstArguments {
    /// The marker that stands for an expression.
    fn take(&mut self, sought: Expr) -> Result<ValueWithSpan> {
        if visit_own_expressions(&sought, varies).is_break() {
            return Err(wrong_arguments());
        }
        let mark = Value::Placeholder(self.sought.len().to_string());
        self.sought.push(sought);
        Ok(ValueWithSpan::from(mark))
    }

    /// Replaces the argument of AGAINST beside texts at paths, unless it is a literal.
    fn take_of_paths(&mut self, function: &mut Function) -> ControlFlow<Error> {
        match sought_of_paths(function) {
            None => ControlFlow::Break(wrong_arguments()),
            Some(Expr::Value(_)) => ControlFlow::Continue(()),
            Some(sought) => {
                let taken = std::mem::replace(sought, Expr::Value(Value::Null.into()));
                match self.take(taken) {
                    Ok(mark) => *sought = Expr::Value(mark),
                    Err(error) => return ControlFlow::Break(error),
                }
                ControlFlow::Continue(())
            }
        }
    }
}

fn is_called(function: &Function, called: &str) -> bool {
    let [part] = function.name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|name| name.value == called)
}

/// The argument of AGAINST beside texts at paths.
fn sought_of_paths(function: &mut Function) -> Option<&mut Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.get_mut(1)? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn arguments(function: &mut Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return Vec::new() };
    let args = std::mem::take(&mut list.args).into_iter();
    args.filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
    .collect()
}

fn named(column: Expr) -> ObjectName {
    ObjectName::from(match column {
        Expr::Identifier(name) => vec![name],
        Expr::CompoundIdentifier(names) => names,
        _ => Vec::new(),
    })
}

fn modifier(mode: &Expr) -> Option<SearchModifier> {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(mode), .. }) = mode else {
        return None;
    };
    let all = [
        SearchModifier::InNaturalLanguageMode,
        SearchModifier::InNaturalLanguageModeWithQueryExpansion,
        SearchModifier::InBooleanMode,
        SearchModifier::WithQueryExpansion,
    ];
    all.into_iter().find(|modifier| modifier.to_string() == *mode)
}

/// Breaks at anything that may differ from row to row: columns, and functions such as RAND().
fn varies(expr: &Expr) -> ControlFlow<()> {
    let varies = match expr {
        Expr::Identifier(name) => !name.value.starts_with('@') || name.quote_style.is_some(),
        Expr::CompoundIdentifier(names) => {
            !names.first().is_some_and(|name| name.value.starts_with('@'))
        }
        Expr::Function(function) => is_volatile(function),
        _ => false,
    };
    if varies { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Replaces the markers by the values.
struct AgainstValues {
    texts: Vec<String>,
}

impl VisitorMut for AgainstValues {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let match_value = match expr {
            Expr::MatchAgainst { match_value, .. } => Some(match_value),
            Expr::Function(function) if is_called(function, MATCH_OF_PATHS) => {
                match sought_of_paths(function) {
                    Some(Expr::Value(sought)) => Some(sought),
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(match_value) = match_value
            && let Value::Placeholder(number) = &match_value.value
            && let Some(text) = number.parse().ok().and_then(|at: usize| self.texts.get(at))
        {
            match_value.value = Value::SingleQuotedString(text.clone());
        }
        ControlFlow::Continue(())
    }
}
