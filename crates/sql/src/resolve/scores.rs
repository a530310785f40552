//! MATCH … AGAINST as a number: a column of its table that holds the score of each row.
//!
//! Where MATCH stands as a condition it stays what it is, and the text index answers it. Anywhere
//! else it becomes `match_score(table.column)`, of a column that the table has for this MATCH
//! alone: the index knows the score only together with the row that it is of.

use std::{any::Any, ops::ControlFlow, sync::Arc};

use datafusion::{
    catalog::TableProvider,
    sql::sqlparser::ast::{
        BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
        JoinConstraint, JoinOperator, ObjectName, Query, Select, UnaryOperator, Value, VisitMut,
        VisitorMut,
    },
};

use super::scope::quoted;
use crate::{
    Error, Result,
    parse::{MATCH, function_call},
    scan::EngineTable,
};

/// MATCH as a condition, while the others are replaced.
const CONDITION: &str = "match_as_condition";
/// Most scores of a table in one statement.
const MAX_SCORES: usize = 64;

/// The tables of a statement by the names that its plan has for them.
pub(super) type Tables = Vec<(String, Arc<dyn TableProvider>)>;

/// Replaces every MATCH that is a number. 1191 where no text index holds the columns of one.
pub(super) fn replaced(query: &mut Query, tables: &mut Tables) -> Result<()> {
    match query.visit(&mut Scores { tables }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Scores<'t> {
    tables: &'t mut Tables,
}

impl VisitorMut for Scores<'_> {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        each_condition(select, &mut |condition| renamed(condition, MATCH, CONDITION));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        each_condition(select, &mut |condition| renamed(condition, CONDITION, MATCH));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let is_condition = is_called(function, CONDITION);
        if !is_condition && !is_called(function, MATCH) {
            return ControlFlow::Continue(());
        }
        match self.score(function, is_condition) {
            Ok(Some(score)) => *expr = score,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Scores<'_> {
    /// The score of a MATCH; `None` if it is a condition, or not of the columns of one table of
    /// the engine.
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
        let boolean = mode.to_uppercase().contains("BOOLEAN");
        let Some((name, scoring)) = table.scoring(&columns, query, boolean)? else {
            return Ok(None);
        };
        if is_condition {
            return Ok(None);
        }
        if scoring.score_count() > MAX_SCORES {
            return Err(Error::unsupported("so many MATCH of one table"));
        }
        *provider = Arc::new(scoring);
        let column = Expr::CompoundIdentifier(vec![quoted(&relation), quoted(&name)]);
        let column = if any { function_call("any_value", vec![column]) } else { column };
        Ok(Some(function_call("match_score", vec![column])))
    }
}

/// Visits WHERE, HAVING and ON.
pub(super) fn each_condition(select: &mut Select, visit: &mut dyn FnMut(&mut Expr)) {
    let conditions = [&mut select.selection, &mut select.having];
    conditions.into_iter().flatten().for_each(&mut *visit);
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

/// Renames the calls of a condition whose truth alone counts.
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

fn is_called(function: &Function, name: &str) -> bool {
    match function.name.0.as_slice() {
        [part] => part.as_ident().is_some_and(|ident| ident.value == name),
        _ => false,
    }
}

fn arguments(function: &Function) -> Vec<&Expr> {
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

/// The column that an argument is, and whether it is any of its group.
fn column_of(expr: &Expr) -> Option<(&[Ident], bool)> {
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
