//! MATCH … AGAINST in cached plans. As a condition it is sent to the engine with each run's text. Its score is a column of
//! the scan, which only the first rows in the order of the score have: where they match the same text.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, OrderByKind, Query, SelectItem, SetExpr, ValueWithSpan, Visitor,
};
use remora_engine::SortBy;

use super::super::{
    condition::Tests,
    of_condition,
    parameterize::{Constants, LiteralKind, ParameterizedText},
    shape::{LiteralGroup, Match},
    table::ShapeTable,
};
use super::result_order::ResultOrder;
use crate::{parse::Visit, scan::CachedScan};

/// The group that a literal is in; `negative` if a minus sign stands before it.
pub(super) fn literal_group(
    value: &ValueWithSpan,
    negative: bool,
    parameterized: &ParameterizedText,
) -> Option<LiteralGroup> {
    let place = usize::try_from(value.span.start.column).ok()?.checked_sub(1)?;
    let (literal, group) = parameterized.literal_at(place)?;
    let told = literal.kind == LiteralKind::Parameter
        || negative == (literal.kind == LiteralKind::Negative);
    told.then_some(group)
}

/// The MATCH … AGAINST that an expression is; `None` if its text is no literal of the statement.
pub(super) fn matching(expr: &Expr, parameterized: &ParameterizedText) -> Option<Match> {
    let alone = |text: &ValueWithSpan| {
        let group = literal_group(text, false, parameterized)?;
        (parameterized.literals_of(group).len() == 1).then_some(group)
    };
    of_condition::matching(expr, alone)
}

/// Every MATCH that is left in a query; `None` if one is not a named item of its select list, or in its ORDER BY.
pub(super) fn scored(query: &Query, parameterized: &ParameterizedText) -> Option<Vec<Match>> {
    let mut all = Searches::default();
    let _ = query.visit(&mut all);
    if all.0.is_empty() {
        return Some(Vec::new());
    }
    let mut known = Searches::default();
    if let SetExpr::Select(select) = query.body.as_ref() {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                let _ = expr.visit(&mut known);
            }
        }
    }
    if let Some(OrderByKind::Expressions(order)) = query.order_by.as_ref().map(|by| &by.kind) {
        let _ = order.visit(&mut known);
    }
    // A name that is made of the expression has the text in it.
    let is_each = known.0.len() == all.0.len();
    is_each.then(|| known.0.iter().map(|it| matching(it, parameterized)).collect())?
}

/// Collects MATCHes.
#[derive(Default)]
struct Searches(Vec<Expr>);

impl Visitor for Searches {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::MatchAgainst { .. } = expr {
            self.0.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Whether a plan can give these scores: its only scan with scores has one, of the MATCH that its rows satisfy, and
/// its order begins with it.
pub(super) fn gives_scores<'t>(
    scans: &[CachedScan],
    scored: &[Match],
    order: Option<&ResultOrder>,
    of: impl Fn(usize) -> Option<(&'t Tests, &'t ShapeTable)>,
    constants: &Constants<'_>,
) -> bool {
    if scored.is_empty() {
        return scans.iter().all(|scan| scan.scores().is_empty());
    }
    let is_scored = |(_, scan): &(usize, &CachedScan)| !scan.scores().is_empty();
    let mut scoring = scans.iter().enumerate().filter(is_scored);
    let (Some((at, scan)), None) = (scoring.next(), scoring.next()) else { return false };
    let Some(order) = order else { return false };
    let Some((tests, table)) = of(at) else { return false };
    let Some((columns, text, boolean)) = tests.only_match() else { return false };
    let same = |it: &Match| {
        let named: Option<Vec<usize>> = it.columns.iter().map(|it| table.position(it)).collect();
        named.is_some_and(|named| named == columns)
            && it.boolean == boolean
            && constants.one(it.text) == constants.one(text)
    };
    order.scan == at
        && order.keys.first().is_some_and(|first| first.by == SortBy::Score)
        && scan.scores().len() == 1
        && scored.iter().all(same)
        && tests.fill(constants, table).is_some_and(|it| it.text.as_ref() == scan.scores().first())
}

/// The literals of these MATCHes.
pub(super) fn texts_of(scored: &[Match]) -> impl Iterator<Item = LiteralGroup> + '_ {
    scored.iter().map(|it| it.text)
}
