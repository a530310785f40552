//! Uses functional keys. An expression of a key that is compared with constants, or sorted by, is replaced by the
//! hidden column with its values, so that the key's index can be used. If that column holds rounded values, a weaker
//! condition on it is added to the original one.

use std::{any::Any, ops::ControlFlow, sync::Arc};

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, JoinOperator, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan, VisitorMut,
};

use super::{
    grouping,
    scope::quoted,
    scores::{ResolvedTables, each_condition},
};
use crate::{
    catalog::{ExpressionSettings, plain_text},
    parse::VisitMut,
    scan::EngineTable,
};

/// Replaces the expressions in a query of a session with these settings.
pub(super) fn replaced(
    query: &mut Query,
    tables: &mut ResolvedTables,
    session: ExpressionSettings,
) {
    let has_keys = |(_, provider): &(String, Arc<dyn datafusion::catalog::TableProvider>)| {
        let provider: &dyn Any = provider.as_ref();
        provider
            .downcast_ref::<EngineTable>()
            .is_some_and(|table| !table.expressions().is_empty() || !table.sql().rounded.is_empty())
    };
    if tables.iter().any(has_keys) {
        let _: ControlFlow<()> = query.visit(&mut Replacing { tables, session });
    }
}

struct Replacing<'t> {
    tables: &'t mut ResolvedTables,
    session: ExpressionSettings,
}

impl VisitorMut for Replacing<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_ref()
            && is_of_rows(select)
            && let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(parts) = &mut order.kind
        {
            let own = own_tables(select);
            parts.iter_mut().for_each(|part| self.replace(&mut part.expr, &own));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let (own, having) = (own_tables(select), select.having.take());
        each_condition(select, &mut |condition| self.in_condition(condition, &own));
        select.having = having;
        ControlFlow::Continue(())
    }
}

/// The tables in the FROM of a SELECT, as plans call them; none if there is an outer join. For a row of NULLs an
/// expression may give another value than its hidden column, which is NULL.
fn own_tables(select: &Select) -> Vec<String> {
    use JoinOperator::{CrossJoin, Inner, Join, StraightJoin};
    let mut joins = select.from.iter().flat_map(|from| &from.joins);
    let are_inner = joins.all(|join| {
        matches!(join.join_operator, Join(_) | Inner(_) | CrossJoin(_) | StraightJoin(_))
    });
    if !are_inner {
        return Vec::new();
    }
    let factors = select.from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    let name = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. } => Some(alias.name.value.clone()),
        TableFactor::Table { name, .. } => Some(name.0.last()?.as_ident()?.value.clone()),
        _ => None,
    };
    factors.filter_map(name).collect()
}

/// Whether each result row is a row of the tables.
fn is_of_rows(select: &Select) -> bool {
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let has_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            grouping::has_aggregate(expr)
        }
        _ => true,
    };
    !is_grouped && select.distinct.is_none() && !select.projection.iter().any(has_aggregate)
}

impl Replacing<'_> {
    fn in_condition(&mut self, condition: &mut Expr, own: &[String]) {
        use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or, Spaceship, Xor};
        if let Some(rounded) = self.rounded(condition, own) {
            let of_rows = std::mem::replace(condition, rounded.clone());
            let (left, right) = (Box::new(rounded), Box::new(of_rows));
            *condition = Expr::Nested(Box::new(Expr::BinaryOp { left, op: And, right }));
            return;
        }
        match condition {
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                self.in_condition(inner, own);
            }
            Expr::BinaryOp { left, op: And | Or | Xor, right } => {
                self.in_condition(right, own);
                self.in_condition(left, own);
            }
            Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship, right } => {
                match (is_constant(left), is_constant(right)) {
                    (false, true) => self.replace(left, own),
                    (true, false) => self.replace(right, own),
                    _ => {}
                }
            }
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => self.replace(inner, own),
            Expr::Between { expr, low, high, .. } if is_constant(low) && is_constant(high) => {
                self.replace(expr, own);
            }
            Expr::InList { expr, list, .. } if list.iter().all(is_constant) => {
                self.replace(expr, own)
            }
            Expr::Like { expr, pattern, .. } if is_constant(pattern) => self.replace(expr, own),
            _ => {}
        }
    }

    /// A necessary condition on the column of rounded values for this condition. It is NULL where the original is NULL,
    /// because the column is then NULL.
    fn rounded(&mut self, condition: &Expr, own: &[String]) -> Option<Expr> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
        match condition {
            Expr::BinaryOp { left, op, right } => {
                let (expr, number, is_turned) = match (whole(left), whole(right)) {
                    (None, Some(number)) => (left, number, false),
                    (Some(number), None) => (right, number, true),
                    _ => return None,
                };
                let op = match (op, is_turned) {
                    (Eq, _) => Eq,
                    (Lt | LtEq, false) | (Gt | GtEq, true) => LtEq,
                    (Gt | GtEq, false) | (Lt | LtEq, true) => GtEq,
                    _ => return None,
                };
                let column = Box::new(self.rounding(expr, &[number], own)?);
                let literal = if is_turned { left } else { right };
                Some(Expr::BinaryOp { left: column, op, right: literal.clone() })
            }
            Expr::Between { expr, negated: false, low, high } => {
                let column = self.rounding(expr, &[whole(low)?, whole(high)?], own)?;
                let (low, high) = (low.clone(), high.clone());
                Some(Expr::Between { expr: Box::new(column), negated: false, low, high })
            }
            Expr::InList { expr, list, negated: false } => {
                let numbers: Vec<i64> = list.iter().map(whole).collect::<Option<_>>()?;
                let column = self.rounding(expr, &numbers, own)?;
                Some(Expr::InList { expr: Box::new(column), list: list.clone(), negated: false })
            }
            _ => None,
        }
    }

    /// The column of an expression's rounded values, if these numbers are in its range.
    fn rounding(&mut self, expr: &Expr, numbers: &[i64], own: &[String]) -> Option<Expr> {
        let (relation, text) = plain_text(expr)?;
        let relation = relation?;
        let mut tables = self.tables.iter_mut().filter(|(name, _)| own.contains(name));
        let (_, provider) = tables.find(|(name, _)| *name == relation)?;
        let provided: &dyn Any = provider.as_ref();
        let table = provided.downcast_ref::<EngineTable>()?;
        let key = table.sql().rounded.iter().find(|key| key.text == text)?;
        let (least, most) = key.bounds;
        if !numbers.iter().all(|number| least < *number && *number < most) {
            return None;
        }
        let (name, showing) = table.showing(key.position)?;
        *provider = Arc::new(showing);
        Some(Expr::CompoundIdentifier(vec![quoted(&relation), quoted(&name)]))
    }

    fn replace(&mut self, expr: &mut Expr, own: &[String]) {
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
            return;
        }
        let Some((Some(relation), text)) = plain_text(expr) else { return };
        let mut tables = self.tables.iter_mut().filter(|(name, _)| own.contains(name));
        let Some((_, provider)) = tables.find(|(name, _)| *name == relation) else { return };
        let provided: &dyn Any = provider.as_ref();
        let Some(table) = provided.downcast_ref::<EngineTable>() else { return };
        let mut keys = table.expressions().iter().filter(|key| key.is_for(self.session));
        let Some(key) = keys.find(|key| key.text == text) else { return };
        let Some((name, showing)) = table.showing(key.position) else { return };
        *expr = Expr::CompoundIdentifier(vec![quoted(&relation), quoted(&name)]);
        *provider = Arc::new(showing);
    }
}

/// The value of an integer literal.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole(expr)?.checked_neg(),
        Expr::Nested(inner) => whole(inner),
        _ => None,
    }
}

/// Whether it is a literal.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            is_constant(inner)
        }
        _ => false,
    }
}
