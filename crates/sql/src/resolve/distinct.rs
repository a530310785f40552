//! SELECT DISTINCT ordered by more than its select list.
//!
//! DISTINCT becomes GROUP BY all selected expressions. Then the rows can be ordered by anything computed from those,
//! and, without ONLY_FULL_GROUP_BY in `sql_mode`, by any value of each group.

use std::{collections::HashSet, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, OrderByExpr, Query, Select, Value, Visitor, VisitorMut,
};
use remora_mysql::ErrorCode;

use super::{grouping, scope::Scope, select::SelectedItem};
use crate::{
    Error, Result,
    parse::{Visit, VisitMut},
};

/// Writes selected expressions in ORDER BY as they are selected, without parentheses of their own (an alias has them): the
/// planner looks for equal expressions.
pub(super) fn write_as_selected(
    select: &Select,
    order: &mut [OrderByExpr],
    items: &[SelectedItem],
) {
    if select.distinct.is_none() || order.is_empty() {
        return;
    }
    let texts: Vec<String> = items.iter().map(|item| grouping::bare_text(&item.expr)).collect();
    for each in order {
        let text = grouping::bare_text(&each.expr);
        let place = texts.iter().position(|selected| *selected == text);
        if let Some(item) = place.and_then(|place| items.get(place)) {
            each.expr = item.expr.clone();
        }
    }
}

/// The group keys that replace DISTINCT, if ORDER BY has expressions that are not selected; DISTINCT is then removed.
/// `None` if DISTINCT can stay, or if an expression has aggregates, windows or subqueries. `is_strict` is
/// ONLY_FULL_GROUP_BY.
pub(super) fn as_groups(
    select: &mut Select,
    order: &[OrderByExpr],
    items: &[SelectedItem],
    is_strict: bool,
) -> Option<Vec<Expr>> {
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return None;
    }
    let texts = |item: &SelectedItem| [item.expr.to_string(), grouping::bare_text(&item.expr)];
    let selected: HashSet<String> = items.iter().flat_map(texts).collect();
    let is_beyond = |expr: &&Expr| {
        !grouping::is_constant(expr) && !selected.contains(&grouping::bare_text(expr))
    };
    let beyond: Vec<&Expr> = order.iter().map(|each| &each.expr).filter(is_beyond).collect();
    let mut all = items.iter().map(|item| &item.expr).chain(order.iter().map(|each| &each.expr));
    if beyond.is_empty() || !all.all(is_of_a_row) {
        return None;
    }
    if is_strict && beyond.iter().any(|expr| reads_beside(expr, &selected)) {
        return None;
    }
    select.distinct = None;
    Some(items.iter().map(|item| item.expr.clone()).collect())
}

/// Whether the groups are distinct rows already: there are group keys, and all of them are selected.
pub(super) fn is_of_groups(groups: &[Expr], items: &[SelectedItem]) -> bool {
    let selected: HashSet<String> =
        items.iter().map(|item| grouping::bare_text(&item.expr)).collect();
    !groups.is_empty() && groups.iter().all(|group| selected.contains(&grouping::bare_text(group)))
}

/// Error 3065 if ORDER BY of distinct rows has an expression that is not selected; 1235 for DISTINCT ON.
pub(super) fn check(select: &Select, order: &[OrderByExpr], scope: &Scope<'_>) -> Result<()> {
    match select.distinct {
        None => return Ok(()),
        Some(Distinct::On(_)) => return Err(Error::unsupported("DISTINCT ON")),
        Some(_) => {}
    }
    for (index, each) in order.iter().enumerate() {
        let Expr::CompoundIdentifier(name) = &each.expr else { continue };
        let [unique, column] = name.as_slice() else { continue };
        return Err(refused(index, unique, column, scope));
    }
    Ok(())
}

fn refused(index: usize, unique: &Ident, column: &Ident, scope: &Scope<'_>) -> Error {
    let relation = scope.planned_relation(&unique.value);
    let full = relation.map_or_else(String::new, |relation| {
        let database = relation.database.iter().map(|database| format!("{database}."));
        format!("{}{}.{}", database.collect::<String>(), relation.alias, column.value)
    });
    let message = format!(
        "Expression #{} of ORDER BY clause is not in SELECT list, references column '{full}' \
         which is not in SELECT list; this is incompatible with DISTINCT",
        index + 1
    );
    Error::new(ErrorCode::DistinctOrder, message)
}

/// Whether an expression depends on one row only: it has no aggregates, windows or subqueries.
fn is_of_a_row(expr: &Expr) -> bool {
    struct Search;
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    !grouping::has_aggregate(expr) && expr.visit(&mut Search).is_continue()
}

/// Whether an expression reads a column outside of the selected expressions.
fn reads_beside(expr: &Expr, selected: &HashSet<String>) -> bool {
    struct Search<'s>(&'s HashSet<String>);
    impl VisitorMut for Search<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if self.0.contains(&expr.to_string()) {
                // The visitor does not descend below this expression.
                *expr = Expr::Value(Value::Null.into());
            }
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    VisitMut::visit(&mut expr.clone(), &mut Search(selected)).is_break()
}
