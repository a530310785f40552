//! Sphinx's groups: columns that are not group keys come from the best row of a group, or from its best n rows.
//!
//! With one row per group, columns become the aggregate `#head(column, order)`. With several there is no aggregation:
//! window functions number the rows within groups, and rows beyond n are dropped.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArguments, GroupByExpr, OrderByExpr, OrderByOptions,
    Select, Value, ValueWithSpan, VisitorMut, WindowSpec, WindowType,
};
use remora_mysql::{ErrorCode, messages};

use super::{
    Env, Resolver,
    expr::{ClauseContext, SelectAlias},
    from::binary,
    grouping::{ExprPosition, Grouping, NonKeyColumns, has_aggregate},
    keywords,
    scope::{Clause, Scope, unknown_column},
    select::{SelectedItem, position},
    sets,
};
use crate::{
    Error, Result,
    meaning::GROUP_KEY,
    parse::{GroupRows, VisitMut, function_call},
};

/// The names of two aggregates in `meaning`.
const HEAD: &str = "#head";
const PLACE: &str = "#head_place";

/// How rows represent the groups of a SELECT.
pub(super) struct GroupBestRows {
    /// The number of rows per group.
    count: u64,
    /// The order within groups. It is total: no two rows are equal in it.
    order: Vec<OrderByExpr>,
    /// The keys of the tables, by which equal groups are ordered.
    keys: Vec<OrderByExpr>,
    /// The order of groups without ORDER BY: by weight, descending.
    weight: Option<OrderByExpr>,
    /// Whether WITHIN GROUP ORDER BY is absent, so that groups are ordered as rows are within them.
    is_plain: bool,
}

impl Resolver<'_> {
    /// Resolves `GROUP n BY` and WITHIN GROUP ORDER BY. Without an order, the heaviest row is the best; among equals,
    /// the one with the least key.
    pub(super) fn best_rows(
        &mut self,
        said: Option<GroupRows>,
        (items, groups): (&[SelectedItem], &[Expr]),
        aliases: &[SelectAlias],
        scope: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<Option<GroupBestRows>> {
        let Some(said) = said else { return Ok(None) };
        if self.notes.is_some() {
            return Err(Error::unsupported("GROUP n BY and WITHIN GROUP ORDER BY in a view"));
        }
        let mut keys = keywords::keys(scope);
        // Without GROUP BY, Sphinx returns the first row whatever its weight.
        let is_ranked = self.weight.is_some() && !groups.is_empty();
        let mut weight = is_ranked.then(keywords::by_weight);
        let mut order = said.order;
        let is_plain = order.is_empty();
        for each in order.iter_mut().chain(&mut keys).chain(&mut weight) {
            if let Some(position) = position(&each.expr) {
                let item = position.checked_sub(1).and_then(|at| items.get(at));
                let unknown = || unknown_column(&position.to_string(), Clause::Order);
                each.expr = item.ok_or_else(unknown)?.expr.clone();
            } else {
                let place = ClauseContext {
                    aliases,
                    aliases_first: matches!(each.expr, Expr::Identifier(_)),
                    ..ClauseContext::plain(Clause::Order)
                };
                self.expr(&mut each.expr, scope, env, place)?;
            }
            if has_aggregate(&each.expr) {
                let message = messages::INVALID_GROUP_FUNCTION;
                return Err(Error::new(ErrorCode::InvalidGroupFunction, message));
            }
        }
        if is_plain {
            order.extend(weight.clone());
        }
        order.extend(keys.iter().cloned());
        Ok(Some(GroupBestRows { count: said.count.unwrap_or(1), order, keys, weight, is_plain }))
    }
}

impl GroupBestRows {
    /// Rewrites the SELECT so that it returns the best rows of its groups.
    pub(super) fn group(
        &self,
        select: &mut Select,
        order: &mut Vec<OrderByExpr>,
        groups: &[Expr],
        items: &mut [SelectedItem],
        scope: &Scope<'_>,
    ) -> Result<()> {
        // If both orders are the same, one aggregate computes a sort key for the whole order.
        let by_place = order.is_empty() && self.is_plain && self.count == 1;
        let numbers: Vec<OrderByExpr> =
            groups.iter().filter(|group| sets::is_each(group)).cloned().map(ascending).collect();
        if !by_place {
            let weight = self.weight.iter().filter(|_| order.is_empty());
            let parts: Vec<OrderByExpr> = weight.chain(&self.keys).cloned().collect();
            // A row may be the best one of several groups if it is grouped by a set.
            order.extend(parts.into_iter().chain(numbers.iter().cloned()));
        }
        let (of_items, of_groups) = match self.count {
            1 => {
                let non_key_columns = NonKeyColumns::Head(self.parts());
                (non_key_columns.clone(), non_key_columns)
            }
            _ => {
                let all = WindowSpec {
                    window_name: None,
                    partition_by: groups.to_vec(),
                    order_by: Vec::new(),
                    window_frame: None,
                };
                let ordered = WindowSpec { order_by: self.order.clone(), ..all.clone() };
                (NonKeyColumns::Row(all.clone()), NonKeyColumns::First(all, ordered))
            }
        };
        let check = |non_key_columns| Grouping::new(groups, select, scope, non_key_columns);
        let (of_items, of_groups) = (check(of_items), check(of_groups));
        for (index, item) in items.iter_mut().enumerate() {
            of_items.apply(&mut item.expr, ExprPosition::Item(index + 1))?;
        }
        for (index, each) in order.iter_mut().enumerate() {
            of_groups.apply(&mut each.expr, ExprPosition::Order(index + 1))?;
        }
        let mut having = select.having.take();
        if let Some(having) = &mut having {
            of_groups.apply(having, ExprPosition::Having)?;
        }
        if self.count == 1 {
            select.having = having;
            if by_place {
                order.push(ascending(function_call(PLACE, self.parts())));
                order.extend(numbers);
            }
            return Ok(());
        }
        let number = self.number(groups);
        order.push(ascending(number.clone()));
        let most = number_of(self.count);
        let within = binary(number, BinaryOperator::LtEq, most);
        select.qualify = Some(match having {
            Some(having) => binary(within, BinaryOperator::And, Expr::Nested(Box::new(having))),
            None => within,
        });
        Ok(())
    }

    /// Whether groups have more than one row.
    pub(super) fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The order as function arguments: each expression, followed by whether it is descending.
    fn parts(&self) -> Vec<Expr> {
        if self.order.is_empty() {
            return vec![number_of(0), number_of(0)];
        }
        let part = |each: &OrderByExpr| {
            let descends = each.options.asc == Some(false);
            [each.expr.clone(), number_of(u64::from(descends))]
        };
        self.order.iter().flat_map(part).collect()
    }

    /// The number of a row in its group.
    fn number(&self, groups: &[Expr]) -> Expr {
        let window = WindowSpec {
            window_name: None,
            partition_by: groups.to_vec(),
            order_by: self.order.clone(),
            window_frame: None,
        };
        over(function_call("row_number", Vec::new()), &window)
    }
}

/// The best row's value of an expression.
pub(super) fn head(value: Expr, order: &[Expr]) -> Expr {
    function_call(HEAD, std::iter::once(value).chain(order.iter().cloned()).collect())
}

/// A call with an OVER clause.
pub(super) fn over(call: Expr, window: &WindowSpec) -> Expr {
    match call {
        Expr::Function(function) => {
            let over = Some(WindowType::WindowSpec(window.clone()));
            Expr::Function(Function { over, ..function })
        }
        other => other,
    }
}

fn ascending(expr: Expr) -> OrderByExpr {
    let options = OrderByOptions { asc: Some(true), nulls_first: None };
    OrderByExpr { expr, options, with_fill: None }
}

fn number_of(number: u64) -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Number(number.to_string(), false)))
}

/// The names of the columns that a SELECT groups by, in lower case, before they are resolved.
pub(super) fn group_names(select: &Select, items: &[SelectedItem]) -> Vec<String> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Vec::new() };
    let name = |group: &Expr| {
        let item = position(group).and_then(|at| items.get(at.checked_sub(1)?));
        let name = match (item, group) {
            (Some(item), _) => item.shown.name.clone(),
            (None, Expr::Identifier(name)) => name.value.clone(),
            (None, Expr::CompoundIdentifier(parts)) => {
                parts.last().map_or_else(String::new, |last| last.value.clone())
            }
            (None, other) => other.to_string(),
        };
        name.to_lowercase()
    };
    groups.iter().map(name).collect()
}

/// The value of GROUPBY(): the group key, or a number computed from several keys with these names. `None` without
/// groups.
pub(super) fn group_of(groups: &[Expr], names: &[String]) -> Option<Expr> {
    let (first, others) = groups.split_first()?;
    if others.is_empty() {
        return Some(first.clone());
    }
    // Sphinx combines them by name, each once.
    let mut parts: Vec<(&String, &Expr)> = names.iter().zip(groups).collect();
    parts.sort_by_key(|(name, _)| *name);
    let mut known: Vec<(&String, &Expr)> = Vec::new();
    for part in parts {
        if !known.contains(&part) {
            known.push(part);
        }
    }
    Some(function_call(GROUP_KEY, known.into_iter().map(|(_, group)| group.clone()).collect()))
}

/// Whether an expression is GROUPBY().
pub(super) fn is_group(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let has_none = matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
    has_none && function.name.to_string().eq_ignore_ascii_case("groupby")
}

/// Replaces GROUPBY().
pub(super) fn replace_group(node: &mut impl VisitMut, group: Option<&Expr>) -> Result<()> {
    match node.visit(&mut Group(group)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Group<'g>(Option<&'g Expr>);

impl VisitorMut for Group<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if !is_group(expr) {
            return ControlFlow::Continue(());
        }
        let Some(group) = self.0 else {
            let message = "GROUPBY() is allowed only in GROUP BY queries";
            return ControlFlow::Break(Error::new(ErrorCode::ParseError, message));
        };
        *expr = group.clone();
        ControlFlow::Continue(())
    }
}
