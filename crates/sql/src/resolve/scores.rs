//! MATCH … AGAINST as a number: a column of its table with the score of each row.
//!
//! As a condition, MATCH stays as it is and the text index answers it. Elsewhere it becomes
//! `match_score(table.column)`, with a column for this MATCH alone, because the index computes a score only while it
//! reads the row.

use std::{any::Any, ops::ControlFlow, sync::Arc};

use datafusion::{
    catalog::TableProvider,
    sql::sqlparser::ast::{
        BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
        JoinConstraint, JoinOperator, ObjectName, OrderByExpr, OrderByKind, OrderByOptions, Query,
        Select, SelectItem, SetExpr, UnaryOperator, Value, VisitorMut,
    },
};

use remora_engine::TextQuery;

use super::{grouping::is_grouped, scope::quoted};
use crate::{
    Error, Result,
    parse::{MATCH, MATCH_AT_PATHS, VisitMut, function_call},
    scan::EngineTable,
    search::{KEYWORDS_FACTORS, KEYWORDS_HELD, KEYWORDS_MODE},
};

/// The function name of a MATCH in a condition, while the others are replaced.
const CONDITION: &str = "match_as_condition";
/// The function name of a keyword query in a condition that is answered by a column.
const HELD: &str = "match_held";
/// The function that a score column stands in.
const SCORE: &str = "match_score";
/// The most scores of a table in one statement.
const MAX_SCORES: usize = 64;

/// The tables of a statement, by their names in plans.
pub(super) type ResolvedTables = Vec<(String, Arc<dyn TableProvider>)>;

/// Replaces every MATCH that is used as a number. Error 1191 if no text index has its columns. Returns the keyword
/// queries, with the engine's names of their tables.
pub(super) fn replaced(
    query: &mut Query,
    tables: &mut ResolvedTables,
) -> Result<Vec<(String, TextQuery)>> {
    let mut scores = Scores { tables, searched: Vec::new() };
    match query.visit(&mut scores) {
        ControlFlow::Continue(()) => Ok(scores.searched),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Scores<'t> {
    tables: &'t mut ResolvedTables,
    searched: Vec<(String, TextQuery)>,
}

impl VisitorMut for Scores<'_> {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        each_condition(select, &mut |condition| renamed(condition, MATCH, CONDITION));
        // Only the index can answer a keyword query. If it cannot be pushed down to the table's scan, a column of the
        // scan gives its result.
        let is_plain = !has_outer_joins(select);
        if let Some(condition) = &mut select.selection {
            held(condition, is_plain);
        }
        each_join(select, &mut |condition| held(condition, false));
        if let Some(condition) = &mut select.having {
            held(condition, false);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        each_condition(select, &mut |condition| renamed(condition, CONDITION, MATCH));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.order_ties(query);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if is_called(function, MATCH_AT_PATHS) {
            return match self.check_paths(function) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            };
        }
        let (is_condition, is_held) = (is_called(function, CONDITION), is_called(function, HELD));
        if !is_condition && !is_held && !is_called(function, MATCH) {
            return ControlFlow::Continue(());
        }
        match self.score(function, is_condition) {
            Ok(Some(score)) if is_held => {
                let zero = Expr::Value(Value::Number("0".to_owned(), false).into());
                let (left, right) = (Box::new(score), Box::new(zero));
                *expr = Expr::BinaryOp { left, op: BinaryOperator::Gt, right };
            }
            Ok(Some(score)) => *expr = score,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Scores<'_> {
    /// Error 1191 for a MATCH over texts at paths that no text index of its table has. Documents of
    /// derived tables are always matched one by one.
    fn check_paths(&self, function: &Function) -> Result<()> {
        let args = arguments(function);
        let [_, _, document, paths @ ..] = args.as_slice() else { return Ok(()) };
        let Some(([relation, column], _)) = column_of(document) else { return Ok(()) };
        let table = self.tables.iter().find(|(unique, _)| *unique == relation.value);
        let Some((_, provider)) = table else { return Ok(()) };
        let provided: &dyn Any = provider.as_ref();
        let Some(table) = provided.downcast_ref::<EngineTable>() else { return Ok(()) };
        let paths: Vec<&str> = paths.iter().filter_map(|path| text(path)).collect();
        table.check_paths(&column.value, &paths)
    }

    /// Orders rows with equal scores by their key, as the engine does, so that the pages of a search do not overlap.
    fn order_ties(&self, query: &mut Query) {
        let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &mut query.order_by)
        else {
            return;
        };
        let OrderByKind::Expressions(order) = &mut order.kind else { return };
        if select.distinct.is_some() || is_grouped(select) {
            return;
        }
        let Some(last) = order.last().map(|last| selected(&last.expr, select)) else { return };
        let Expr::Function(last) = last else { return };
        let score = arguments(last).first().and_then(|score| column_of(score));
        let Some(([relation, _], false)) = score.filter(|_| is_called(last, SCORE)) else { return };
        let Some((_, provider)) = self.tables.iter().find(|(it, _)| *it == relation.value) else {
            return;
        };
        let provided: &dyn Any = provider.as_ref();
        let Some(table) = provided.downcast_ref::<EngineTable>() else { return };
        let by_key = table.key_names().into_iter().map(|name| OrderByExpr {
            expr: Expr::CompoundIdentifier(vec![relation.clone(), quoted(&name)]),
            options: OrderByOptions { asc: Some(true), nulls_first: None },
            with_fill: None,
        });
        let by_key: Vec<OrderByExpr> = by_key.collect();
        order.extend(by_key);
    }

    /// The score column of a MATCH; `None` if the MATCH is a condition, or its columns are not of a single table of the
    /// engine.
    fn score(&mut self, function: &Function, is_condition: bool) -> Result<Option<Expr>> {
        let args = arguments(function);
        let [mode, query, columns @ ..] = args.as_slice() else { return Ok(None) };
        let (Some(mode), Some(query)) = (text(mode), text(query)) else { return Ok(None) };
        let names: Option<Vec<(&[Ident], bool)>> =
            columns.iter().map(|column| column_of(column)).collect();
        let Some(names) = names else { return Ok(None) };
        let Some((relation, any)) = names.first().and_then(|(name, any)| match name {
            [relation, _] => Some((relation.value.clone(), *any)),
            _ => None,
        }) else {
            return Ok(None);
        };
        let own = |(name, _): &(&[Ident], bool)| match name {
            [table, column] if table.value == relation => Some(column.value.clone()),
            _ => None,
        };
        let columns: Option<Vec<String>> = names.iter().map(own).collect();
        let table = self.tables.iter_mut().find(|(unique, _)| *unique == relation);
        let (Some(columns), Some((_, provider))) = (columns, table) else { return Ok(None) };
        let provided: &dyn Any = provider.as_ref();
        let Some(table) = provided.downcast_ref::<EngineTable>() else { return Ok(None) };
        let Some((name, scoring)) = table.scoring(&columns, query, mode)? else {
            return Ok(None);
        };
        self.searched.extend(scoring.keywords());
        if is_condition {
            if let Some(changed) = table.with_own_rows()? {
                *provider = Arc::new(changed);
            }
            return Ok(None);
        }
        if scoring.score_count() > MAX_SCORES {
            return Err(Error::unsupported("so many MATCH of one table"));
        }
        *provider = Arc::new(scoring);
        let column = Expr::CompoundIdentifier(vec![quoted(&relation), quoted(&name)]);
        let column = if any { function_call("any_value", vec![column]) } else { column };
        match tells_factors(mode) {
            true => Ok(Some(column)),
            false => Ok(Some(function_call(SCORE, vec![column]))),
        }
    }
}

/// Whether a MATCH in this mode returns factors, which are a text, instead of a score.
fn tells_factors(mode: &str) -> bool {
    mode.starts_with(KEYWORDS_MODE)
        && mode.lines().next_back().is_some_and(|option| option.starts_with(KEYWORDS_FACTORS))
}

/// The selected expression that a sort key names, or the key itself.
fn selected<'s>(key: &'s Expr, select: &'s Select) -> &'s Expr {
    let Expr::Identifier(name) = key else { return key };
    let named = select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => (alias.value == name.value).then_some(expr),
        _ => None,
    });
    named.unwrap_or(key)
}

/// Marks the keyword queries in a condition that a column answers. Those that can be pushed down, the conjuncts if
/// `is_plain`, stay.
fn held(condition: &mut Expr, is_plain: bool) {
    match condition {
        Expr::Nested(inner) => held(inner, is_plain),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            held(left, is_plain);
            held(right, is_plain);
        }
        Expr::Function(function) if is_called(function, CONDITION) => {
            if !is_plain && let Some(mode) = keywords_mode(function) {
                mode.push('\n');
                mode.push_str(KEYWORDS_HELD);
                function.name = ObjectName::from(vec![Ident::new(HELD)]);
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => held(inner, false),
        Expr::BinaryOp { left, op: BinaryOperator::Or | BinaryOperator::Xor, right } => {
            held(left, false);
            held(right, false);
        }
        _ => {}
    }
}

/// The mode of a keyword query's MATCH.
fn keywords_mode(function: &mut Function) -> Option<&mut String> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.first_mut()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(mode))) => match &mut mode.value {
            Value::SingleQuotedString(mode) if mode.starts_with(KEYWORDS_MODE) => Some(mode),
            _ => None,
        },
        _ => None,
    }
}

fn has_outer_joins(select: &Select) -> bool {
    let mut joins = select.from.iter().flat_map(|from| from.joins.iter());
    joins.any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
        )
    })
}

/// Visits WHERE, HAVING and ON.
pub(super) fn each_condition(select: &mut Select, visit: &mut dyn FnMut(&mut Expr)) {
    let conditions = [&mut select.selection, &mut select.having];
    conditions.into_iter().flatten().for_each(&mut *visit);
    each_join(select, visit);
}

/// Visits ON.
fn each_join(select: &mut Select, visit: &mut dyn FnMut(&mut Expr)) {
    for join in select.from.iter_mut().flat_map(|from| from.joins.iter_mut()) {
        if let JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition))
        | JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition))
        | JoinOperator::Right(JoinConstraint::On(condition))
        | JoinOperator::RightOuter(JoinConstraint::On(condition)) = &mut join.join_operator
        {
            visit(condition);
        }
    }
}

/// Renames calls that are used only as truth values.
fn renamed(condition: &mut Expr, from: &str, to: &str) {
    match condition {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
            renamed(inner, from, to);
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor,
            right,
        } => {
            renamed(left, from, to);
            renamed(right, from, to);
        }
        Expr::Function(function) if is_called(function, from) => {
            function.name = ObjectName::from(vec![Ident::new(to)]);
        }
        _ => {}
    }
}

pub(super) fn is_called(function: &Function, name: &str) -> bool {
    match function.name.0.as_slice() {
        [part] => part.as_ident().is_some_and(|ident| ident.value == name),
        _ => false,
    }
}

pub(super) fn arguments(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expression = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().filter_map(expression).collect()
}

fn text(expr: &Expr) -> Option<&str> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// The column of an argument, and whether it is wrapped in ANY_VALUE.
pub(super) fn column_of(expr: &Expr) -> Option<(&[Ident], bool)> {
    match expr {
        Expr::CompoundIdentifier(name) => Some((name, false)),
        Expr::Function(function) if is_called(function, "any_value") => {
            match arguments(function).as_slice() {
                [Expr::CompoundIdentifier(name)] => Some((name, true)),
                _ => None,
            }
        }
        _ => None,
    }
}
