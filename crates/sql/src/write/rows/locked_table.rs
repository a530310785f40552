//! The tables of a SELECT whose rows are locked, and the SELECT of the keys of these rows.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, NonBlock, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan,
};

use super::{
    named::{NamedTable, named_tables_without},
    target::{TargetTable, table_of},
};
use crate::{
    Error, Result,
    catalog::Verb,
    parse::{change_own_expressions, visit_own_expressions, write::select_from},
    resolve::is_grouped,
    state::SessionState,
};

/// A table of a SELECT whose rows are locked.
pub(super) struct LockedTable {
    /// Its name and alias in the statement.
    pub named: NamedTable,
    /// The table.
    pub target: TargetTable,
    /// Whether it is FOR UPDATE.
    pub is_exclusive: bool,
    /// NOWAIT or SKIP LOCKED.
    pub nonblock: Option<NonBlock>,
}

/// The query that selects these columns of its rows. It is all rows that satisfy WHERE, if more rows than those that LIMIT
/// takes decide the answer.
///
/// # Errors
/// 1235 if ORDER BY cannot be told without the selected items and, because of SKIP LOCKED or NOWAIT, the first rows matter.
pub(super) fn query_of_keys(
    session: &SessionState,
    mut query: Query,
    keys: Vec<Expr>,
) -> Result<Query> {
    let asks = query.locks.iter().any(|lock| lock.nonblock.is_some());
    query.locks.clear();
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(query) };
    if reads_all(select, query.order_by.as_ref()) {
        query.limit_clause = None;
    }
    if query.limit_clause.is_none() {
        query.order_by = None;
    }
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &mut query.order_by {
        let named = named_tables_without(session, &select.from, query.with.as_ref())?;
        let is_column = |name: &str| {
            let tables = named.iter().map(|named| table_of(session, &named.name, Verb::Select));
            tables.flatten().any(|table| table.column(name).is_some())
        };
        let items = select.projection.as_slice();
        let is_told = order.iter_mut().all(|by| order_by_item(&mut by.expr, items, &is_column));
        if !is_told && asks {
            return Err(Error::unsupported(
                "SKIP LOCKED and NOWAIT with ORDER BY a position at or behind *: name the column",
            ));
        }
        if !is_told {
            query.limit_clause = None;
            query.order_by = None;
        }
    }
    let (selection, from) = (select.selection.take(), std::mem::take(&mut select.from));
    **select = Select { selection, ..select_from(keys, from) };
    Ok(query)
}

/// Whether rows beyond LIMIT decide the answer: those of groups and windows, and those that are counted.
fn reads_all(select: &Select, order: Option<&OrderBy>) -> bool {
    let has_window = |expr: &Expr| match expr {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let modifiers = select.select_modifiers.as_ref();
    is_grouped(select)
        || select.having.is_some()
        || select.distinct.is_some()
        || !select.named_window.is_empty()
        || modifiers.is_some_and(|modifiers| modifiers.sql_calc_found_rows)
        || visit_own_expressions(&select.projection, has_window).is_break()
        || order.is_some_and(|order| visit_own_expressions(order, has_window).is_break())
}

/// Replaces the number of a selected item, and aliases, by their expressions: the items themselves are not selected.
/// Returns false if it is not known which item a number means, because `*` is at that place or before it.
fn order_by_item(by: &mut Expr, items: &[SelectItem], is_column: &dyn Fn(&str) -> bool) -> bool {
    if let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = by {
        let place = digits.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        let Some(place) = place.filter(|place| *place < usize::MAX) else { return true };
        let is_wildcard = |item: &SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        if items.iter().take(place + 1).any(is_wildcard) {
            return false;
        }
        if let Some(expr) = items.get(place).and_then(expression_of) {
            *by = Expr::Nested(Box::new(expr.clone()));
        }
        return true;
    }
    if let Expr::Identifier(name) = by {
        let item = items.iter().find(|item| is_called(item, &name.value));
        if let Some(expr) = item.and_then(expression_of) {
            *by = Expr::Nested(Box::new(expr.clone()));
        }
        return true;
    }
    // Within an expression, columns go before aliases.
    let _: ControlFlow<()> = change_own_expressions(by, |part| {
        let found = match part {
            Expr::Identifier(name) if !is_column(&name.value) => {
                items.iter().find(|item| has_alias(item, &name.value)).and_then(expression_of)
            }
            _ => None,
        };
        if let Some(expr) = found {
            *part = Expr::Nested(Box::new(expr.clone()));
        }
        ControlFlow::Continue(())
    });
    true
}

fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn has_alias(item: &SelectItem, name: &str) -> bool {
    matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value.eq_ignore_ascii_case(name))
}

/// Whether an item has this alias, or is a column of this name with its table.
fn is_called(item: &SelectItem, name: &str) -> bool {
    match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().is_some_and(|last| last.value.eq_ignore_ascii_case(name))
        }
        item => has_alias(item, name),
    }
}
