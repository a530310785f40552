//! The order of a search without ORDER BY: its best rows come first, as in MySQL.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, SearchModifier,
    SetExpr, VisitorMut,
};

use super::grouping::is_grouped;
use crate::parse::VisitMut;

/// Orders a query by the score of its MATCH, if WHERE has one in natural language and the query has no other order.
/// Of the queries in it only those with a LIMIT are ordered: of the others, no row is left out.
pub(crate) fn order_by_rank(query: &mut Query) {
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
    if query.order_by.is_some()
        || select.distinct.is_some()
        || select.having.is_some()
        || is_grouped(select)
    {
        return;
    }
    let Some(search) = select.selection.as_ref().and_then(search) else { return };
    let options = OrderByOptions { asc: Some(false), nulls_first: None };
    let by = OrderByExpr { expr: search.clone(), options, with_fill: None };
    query.order_by = Some(OrderBy { kind: OrderByKind::Expressions(vec![by]), interpolate: None });
}

/// The first MATCH in natural language that all rows satisfy.
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
            Expr::MatchAgainst { opt_search_modifier, .. } => match opt_search_modifier {
                Some(SearchModifier::InBooleanMode) => {}
                _ => return Some(condition),
            },
            _ => {}
        }
    }
    None
}
