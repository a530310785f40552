//! The order of queries without ORDER BY whose rows have one in MySQL: the rows of a search come best first, and those of
//! a window function in the order of its window. Applications rely on both (`LIMIT` behind them).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, NamedWindowExpr, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SelectItem, SetExpr, Value, VisitorMut, WindowSpec, WindowType,
};

use super::grouping::is_grouped;
use crate::parse::{Visit, VisitMut, visit_own_expressions};

/// Gives a query the order that its search or its window has. Of the queries in it only those with a LIMIT are ordered:
/// of the others, no row is left out.
pub(crate) fn add_implied_order(query: &mut Query) {
    order(query);
    let _ = query.visit(&mut Limited);
}

struct Limited;

impl VisitorMut for Limited {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if query.limit_clause.is_some() {
            order(query);
        }
        ControlFlow::Continue(())
    }
}

fn order(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    if query.order_by.as_ref().is_some_and(|order| !is_by_nothing(order))
        || select.distinct.is_some()
    {
        return;
    }
    let by = match windows(select).as_slice() {
        [] => by_rank(select),
        [window] => of_window(window, select),
        _ => None,
    };
    let Some(by) = by.filter(|by| !by.is_empty()) else { return };
    query.order_by = Some(OrderBy { kind: OrderByKind::Expressions(by), interpolate: None });
}

/// Whether it is ORDER BY NULL.
fn is_by_nothing(order: &OrderBy) -> bool {
    let OrderByKind::Expressions(by) = &order.kind else { return false };
    matches!(by.as_slice(), [OrderByExpr { expr: Expr::Value(value), .. }] if value.value == Value::Null)
}

fn ordered(expr: Expr, ascending: bool) -> OrderByExpr {
    let options = OrderByOptions { asc: Some(ascending), nulls_first: None };
    OrderByExpr { expr, options, with_fill: None }
}

/// By the score of the search that all rows satisfy.
fn by_rank(select: &Select) -> Option<Vec<OrderByExpr>> {
    if select.having.is_some() || is_grouped(select) {
        return None;
    }
    let search = search(select.selection.as_ref()?)?;
    Some(vec![ordered(search.clone(), false)])
}

/// The first MATCH that all rows satisfy.
fn search(condition: &Expr) -> Option<&Expr> {
    // With a work list instead of recursion: a condition may have thousands of parts.
    let mut left = vec![condition];
    while let Some(condition) = left.pop() {
        match condition {
            Expr::Nested(inner) => left.push(inner),
            Expr::BinaryOp { left: one, op: BinaryOperator::And, right: other } => {
                left.push(other);
                left.push(one);
            }
            Expr::BinaryOp { left: one, op: BinaryOperator::Gt, right } => {
                if matches!(right.as_ref(), Expr::Value(_)) {
                    left.push(one);
                }
            }
            Expr::MatchAgainst { .. } => return Some(condition),
            _ => {}
        }
    }
    None
}

/// The different windows of a select list.
fn windows(select: &Select) -> Vec<&WindowSpec> {
    let mut windows: Vec<&WindowSpec> = Vec::new();
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        add_windows(expr, select, &mut windows);
    }
    windows
}

fn add_windows<'s>(expr: &'s Expr, select: &'s Select, windows: &mut Vec<&'s WindowSpec>) {
    // A window function deeper in an expression is left out: there the order is MySQL's by chance.
    let Expr::Function(function) = expr else { return };
    let window = match &function.over {
        Some(WindowType::WindowSpec(window)) => Some(window),
        Some(WindowType::NamedWindow(name)) => named(select, name),
        None => None,
    };
    if let Some(window) = window
        && !windows.contains(&window)
    {
        windows.push(window);
    }
}

fn named<'s>(select: &'s Select, name: &Ident) -> Option<&'s WindowSpec> {
    let is_it = |ident: &Ident| ident.value.eq_ignore_ascii_case(&name.value);
    let window = select.named_window.iter().find(|window| is_it(&window.0))?;
    match &window.1 {
        NamedWindowExpr::WindowSpec(window) => Some(window),
        NamedWindowExpr::NamedWindow(_) => None,
    }
}

/// By the columns of a window; `None` if ORDER BY would give one of its names another meaning.
fn of_window(window: &WindowSpec, select: &Select) -> Option<Vec<OrderByExpr>> {
    if window.window_name.is_some() {
        return None;
    }
    let parts = window.partition_by.iter().map(|expr| ordered(expr.clone(), true));
    let by: Vec<OrderByExpr> = parts.chain(window.order_by.iter().cloned()).collect();
    let is_same =
        |by: &OrderByExpr| !matches!(by.expr, Expr::Value(_)) && !names_alias(&by.expr, select);
    by.iter().all(is_same).then_some(by)
}

/// Whether an unqualified name is also that of a select item which is something else.
fn names_alias(expr: &impl Visit, select: &Select) -> bool {
    let is_alias = |name: &Ident| {
        select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                alias.value.eq_ignore_ascii_case(&name.value)
                    && !matches!(expr, Expr::Identifier(same) if same.value.eq_ignore_ascii_case(&name.value))
            }
            _ => false,
        })
    };
    let each = |expr: &Expr| match expr {
        Expr::Identifier(name) if is_alias(name) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_own_expressions(expr, each).is_break()
}
