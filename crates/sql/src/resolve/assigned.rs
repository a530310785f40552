//! User variables that a statement assigns within its expressions: `@a := value`. A read gives the
//! value assigned last, so the order of evaluation matters. It is defined only for a SELECT list,
//! whose expressions are evaluated from left to right, row by row.
//!
//! ```text
//! SELECT a, @n := @n + b * 2 FROM t ORDER BY c LIMIT 3   ──→
//!     SELECT a, @n := @n + #turn#1 FROM (SELECT a, b * 2 AS #turn#1 FROM t ORDER BY c LIMIT 3)
//! ```
//! Parts without variables are selected in the inner SELECT. An ORDER BY of an assigned expression
//! stays outside, with LIMIT. `LAST_INSERT_ID(value)` is rewritten in the same way, so that it is
//! evaluated only for the rows returned. Of the expressions around and inside it, only columns are
//! moved inside: `IF(a, LAST_INSERT_ID(f(b)), 0)` must evaluate `f(b)` only where `a` holds.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, OrderByExpr, OrderByOptions, Query, Select, SelectItem, SetExpr, TableWithJoins, Value,
    VisitorMut,
};
use remora_engine::Value as EngineValue;

use super::{
    Resolver, grouping, limit, query_of,
    scope::{Scope, quoted},
    select::{SelectedItem, empty_select, item},
};
use crate::{
    Error, Result,
    meaning::{ASSIGN_VARIABLE, READ_VARIABLE},
    parse::{
        MATCH, Visit, VisitMut, function_call, visit_expressions,
        write::{derived_table, table_alias},
    },
};

/// The message for assignments whose order is undefined.
pub(super) const REFUSED: &str = "a variable that the statement assigns by :=, elsewhere than in the list of a SELECT \
                                  that stands alone or in FROM alone";

/// A test of an expression.
type ExprTest = fn(&Expr) -> bool;

/// Where variables may be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssignmentScope {
    /// In this SELECT.
    Any,
    /// In this SELECT if it reads no table.
    WithoutTable,
    Never,
}

impl AssignmentScope {
    /// The scope of a query in FROM. `is_alone` tells whether FROM has nothing else.
    pub(super) fn within(self, is_alone: bool) -> Self {
        match self {
            Self::Any if !is_alone => Self::WithoutTable,
            turn => turn,
        }
    }
}

/// A SELECT list to be evaluated over the rows of its former SELECT.
pub(super) struct AssignmentList {
    projection: Vec<SelectItem>,
    /// The alias of the derived table with the rows.
    rows: String,
    /// The order in which the rows are read, if there is no ORDER BY or only one by assigned
    /// expressions.
    read: Vec<OrderByExpr>,
    /// Whether ORDER BY sorts by assigned expressions.
    is_sorted: bool,
}

impl AssignmentList {
    /// Wraps the query: its body becomes a derived table under the list.
    pub(super) fn wrap(self, query: &mut Query, order: Vec<OrderByExpr>) {
        let none = SetExpr::Select(Box::new(empty_select()));
        let mut below = query_of(std::mem::replace(query.body.as_mut(), none));
        if self.is_sorted {
            limit::set_order(&mut below, self.read);
            limit::set_order(query, order);
        } else {
            limit::set_order(&mut below, if order.is_empty() { self.read } else { order });
            below.limit_clause = query.limit_clause.take();
        }
        let relation = derived_table(below, table_alias(&self.rows));
        let from = vec![TableWithJoins { relation, joins: Vec::new() }];
        let select = Select { projection: self.projection, from, ..empty_select() };
        *query.body = SetExpr::Select(Box::new(select));
    }
}

/// A call that reads a variable at run time. `before` is its value before the statement and
/// determines the type; a variable that is unset, or that the statement assigned before, reads as
/// text.
pub(super) fn read(name: &str, before: Option<&EngineValue>, is_assigned: bool) -> Expr {
    let name = plain_name(name);
    let number = |digits: &str| Value::Number(digits.to_owned(), false);
    let hint = match before {
        None if !is_assigned => Value::Null,
        Some(EngineValue::Int(_) | EngineValue::Bool(_) | EngineValue::Timestamp(_)) => number("1"),
        Some(EngineValue::Uint(_)) => number("18446744073709551615"),
        Some(EngineValue::Float(_)) => number("1e0"),
        Some(EngineValue::Decimal(known)) => number(known.as_str().trim_start_matches('-')),
        Some(EngineValue::Bytes(_)) => Value::HexStringLiteral("61".to_owned()),
        _ => Value::SingleQuotedString("text".to_owned()),
    };
    let name = Value::SingleQuotedString(name);
    function_call(READ_VARIABLE, vec![Expr::Value(name.into()), Expr::Value(hint.into())])
}

/// A variable's name without `@` and quotes, in lower case.
pub(crate) fn plain_name(name: &str) -> String {
    name.trim_start_matches('@').trim_matches(['`', '\'', '"']).to_lowercase()
}

/// The call for `variable := value`, and the variable's name. `variable` is a call made by
/// [`read`].
pub(super) fn assignment(variable: &Expr, value: &Expr) -> Result<(Expr, String)> {
    let (name, text) =
        name_of(variable).ok_or_else(|| Error::unsupported(":= of anything but a variable"))?;
    Ok((function_call(ASSIGN_VARIABLE, vec![name.clone(), value.clone()]), text.to_owned()))
}

fn name_of(variable: &Expr) -> Option<(&Expr, &str)> {
    let Expr::Function(function) = variable else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(name)), _] = list.args.as_slice() else {
        return None;
    };
    let Expr::Value(value) = name else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    function.name.to_string().eq_ignore_ascii_case(READ_VARIABLE).then_some((name, text))
}

/// Whether an expression below the node reads or assigns variables at run time.
fn uses_variables(node: &impl Visit) -> bool {
    has_call(node, |function| {
        let name = function.name.to_string();
        name.eq_ignore_ascii_case(READ_VARIABLE) || name.eq_ignore_ascii_case(ASSIGN_VARIABLE)
    })
}

/// The variables that a query assigns with `:=`, before it is resolved, as [`plain_name`] writes them.
pub(super) fn assigned_in(query: &Query) -> Vec<String> {
    let mut names = Vec::new();
    let _: ControlFlow<()> = visit_expressions(query, |each| {
        if let Expr::BinaryOp { left, op: BinaryOperator::Assignment, .. } = each
            && let Expr::Identifier(name) = left.as_ref()
            && name.value.starts_with('@')
        {
            names.push(plain_name(&name.value));
        }
        ControlFlow::Continue(())
    });
    names
}

/// Whether a node contains `LAST_INSERT_ID(value)`.
pub(super) fn gives_id(node: &impl Visit) -> bool {
    has_call(node, |function| {
        let has_value =
            matches!(&function.args, FunctionArguments::List(list) if !list.args.is_empty());
        has_value && function.name.to_string().eq_ignore_ascii_case("last_insert_id")
    })
}

fn has_call(node: &impl Visit, is_it: impl Fn(&Function) -> bool) -> bool {
    let found = visit_expressions(node, |each| match each {
        Expr::Function(function) if is_it(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

impl Resolver<'_> {
    /// Splits a SELECT that assigns variables: it keeps what the list needs, and the list is
    /// returned. `None` if it assigns none, or if it has no rows below.
    pub(super) fn turned(
        &mut self,
        select: &mut Select,
        order: &mut [OrderByExpr],
        (items, is_distinct): (&[SelectedItem], bool),
        scope: &Scope<'_>,
    ) -> Result<Option<AssignmentList>> {
        if !items.iter().any(|item| uses_variables(&item.expr)) {
            let may = self.turn == AssignmentScope::Any && scope.parent.is_none() && !is_distinct;
            return match may && gives_ids(select, order, items, scope) {
                true => self.split(select, items, scope, (gives_id, is_read_below)).map(Some),
                false => Ok(None),
            };
        }
        let is_of_row = scope.relations.is_empty() && !self.has_queries;
        if is_of_row
            && !order.iter().any(|each| uses_variables(&each.expr))
            && !assigns_outside_list(select)
        {
            return Ok(None);
        }
        check(select, is_distinct, items)?;
        let is_sorted = is_sorted_by_assigned(order, items)?;
        self.turned += usize::from(!scope.relations.is_empty());
        if self.turned > 1 {
            return Err(Error::unsupported(":= in several SELECTs that read tables"));
        }
        let stays: ExprTest = |expr| uses_variables(expr) || gives_id(expr);
        let turned = self.split(select, items, scope, (stays, |_| true))?;
        Ok(Some(AssignmentList { is_sorted, ..turned }))
    }

    /// Splits off the select list. Expressions for which `stays` holds remain in it; of their
    /// parts, those for which `moves` holds go to the SELECT below, and so do all other items.
    fn split(
        &mut self,
        select: &mut Select,
        items: &[SelectedItem],
        scope: &Scope<'_>,
        (stays, moves): (ExprTest, ExprTest),
    ) -> Result<AssignmentList> {
        let is_whole = items.iter().any(|it| grouping::has_aggregate(&it.expr));
        let read = if is_whole { Vec::new() } else { order_of_key(scope) };
        let (mut below, mut projection) = (Vec::new(), Vec::new());
        for each in items {
            let mut expr = each.expr.clone();
            if stays(&expr) {
                let mut parts = Parts { below: &mut below, stays, moves };
                if let ControlFlow::Break(error) = VisitMut::visit(&mut expr, &mut parts) {
                    return Err(error);
                }
            } else {
                below.push(item(expr, &each.planned));
                expr = Expr::Identifier(quoted(&each.planned));
            }
            projection.push(item(expr, &each.planned));
        }
        if below.is_empty() {
            let one = Value::Number("1".to_owned(), false);
            below.push(item(Expr::Value(one.into()), "#turn#0"));
        }
        select.projection = below;
        let rows = self.unique("#rows");
        Ok(AssignmentList { projection, rows, read, is_sorted: false })
    }
}

/// Whether a SELECT without assigned variables calls `LAST_INSERT_ID(value)` for the rows of its
/// tables in its order.
fn gives_ids(
    select: &Select,
    order: &[OrderByExpr],
    items: &[SelectedItem],
    scope: &Scope<'_>,
) -> bool {
    let in_list = |each: &SelectedItem| gives_id(&each.expr);
    let is_of_rows = |each: &SelectedItem| {
        !grouping::has_aggregate(&each.expr) && !has_window(&each.expr) && !has_query(&each.expr)
    };
    let sorts_by = |each: &OrderByExpr| match &each.expr {
        Expr::Identifier(name) => {
            items.iter().any(|item| item.planned == name.value && gives_id(&item.expr))
        }
        expr => gives_id(expr),
    };
    items.iter().any(in_list)
        && items.iter().all(is_of_rows)
        && !scope.relations.is_empty()
        && has_no_grouping(select)
        && select.having.is_none()
        && !order.iter().any(sorts_by)
}

/// Whether a part of a list with `LAST_INSERT_ID(value)` is evaluated below: columns, and calls
/// that only have a meaning beside their table.
fn is_read_below(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => true,
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            let name = name.trim_matches(['`', '"']);
            name.starts_with('#') || matches!(name, MATCH | "match_score")
        }
        _ => false,
    }
}

/// Whether variables are read or assigned outside the list.
fn assigns_outside_list(select: &Select) -> bool {
    uses_variables(&select.selection)
        || uses_variables(&select.having)
        || uses_variables(&select.group_by)
}

/// 1235 for combinations whose order of evaluation is undefined or differs between versions of
/// MySQL.
fn check(select: &Select, is_distinct: bool, items: &[SelectedItem]) -> Result<()> {
    let is_elsewhere = assigns_outside_list(select);
    let has_windows = || items.iter().any(|item| has_window(&item.expr));
    let refused = match () {
        () if is_distinct => ":= beside DISTINCT",
        () if is_elsewhere => REFUSED,
        () if !has_no_grouping(select) => ":= beside GROUP BY",
        () if has_windows() => ":= beside window functions",
        () => return Ok(()),
    };
    Err(Error::unsupported(refused))
}

fn has_query(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |each| match each {
        Expr::InSubquery { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn has_window(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |each| match each {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn has_no_grouping(select: &Select) -> bool {
    matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty())
}

/// Whether ORDER BY sorts by assigned expressions. Refused if it sorts by expressions that are not
/// selected, too.
fn is_sorted_by_assigned(order: &[OrderByExpr], items: &[SelectedItem]) -> Result<bool> {
    let named = |each: &OrderByExpr| match &each.expr {
        Expr::Identifier(name) => items.iter().find(|item| item.planned == name.value),
        _ => None,
    };
    if order.iter().any(|each| uses_variables(&each.expr)) {
        return Err(Error::unsupported(REFUSED));
    }
    let is_sorted =
        order.iter().any(|each| named(each).is_some_and(|item| uses_variables(&item.expr)));
    match is_sorted && order.iter().any(|each| named(each).is_none()) {
        true => Err(Error::unsupported("ORDER BY of what := gives and of what is not selected")),
        false => Ok(is_sorted),
    }
}

/// The order of the primary key, in which MySQL reads a table that is not sorted.
fn order_of_key(scope: &Scope<'_>) -> Vec<OrderByExpr> {
    let mut keyed = scope.relations.iter().filter(|relation| !relation.key.is_empty());
    let (Some(only), None) = (keyed.next(), keyed.next()) else { return Vec::new() };
    let options = OrderByOptions { asc: None, nulls_first: None };
    let column = |column: &String| {
        let expr = Expr::CompoundIdentifier(vec![quoted(&only.unique), quoted(column)]);
        OrderByExpr { expr, options, with_fill: None }
    };
    only.key.iter().map(column).collect()
}

/// Moves parts of an expression to the SELECT below.
struct Parts<'p> {
    below: &'p mut Vec<SelectItem>,
    /// Which expressions stay.
    stays: ExprTest,
    /// Which other expressions move as a whole. Of all others the parts are visited.
    moves: ExprTest,
}

impl VisitorMut for Parts<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if (self.stays)(expr) {
            let is_query =
                matches!(expr, Expr::InSubquery { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. });
            return match is_query {
                true => ControlFlow::Break(Error::unsupported(":= compared with a query")),
                false => ControlFlow::Continue(()),
            };
        }
        // The unit of an INTERVAL and unquoted keywords are not values.
        let is_known = grouping::is_constant(expr)
            || matches!(
                expr,
                Expr::Interval(_) | Expr::Identifier(Ident { quote_style: None, .. })
            );
        if !is_known && (self.moves)(expr) {
            let name = format!("#turn#{}", self.below.len() + 1);
            let taken = std::mem::replace(expr, Expr::Identifier(quoted(&name)));
            self.below.push(item(taken, &name));
        }
        ControlFlow::Continue(())
    }
}
