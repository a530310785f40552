//! Grouped SELECTs: an expression outside the group keys must depend on them functionally; otherwise any value of the
//! group is used, if `sql_mode` permits that.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
};

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, Select, Value,
    VisitorMut, WindowSpec,
};
use remora_mysql::ErrorCode;

use super::{
    best_of_groups,
    expr::is_aggregate,
    keywords,
    scope::{Clause, Scope, unknown_column},
    select::SelectedItem,
    sets,
};
use crate::{
    Error, Result,
    parse::{Visit, VisitMut, function_call, visit_own_expressions},
};

/// Whether a SELECT makes one row of several: by GROUP BY, or by an aggregate.
pub(crate) fn is_grouped(select: &Select) -> bool {
    let is_by_none = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    !is_by_none || has_aggregate(&select.projection) || has_aggregate(&select.having)
}

/// Whether a part of a SELECT has an aggregate of this SELECT.
pub(super) fn has_aggregate(part: &impl Visit) -> bool {
    let each = |expr: &Expr| match is_aggregate(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    visit_own_expressions(part, each).is_break()
}

/// Whether an expression is a literal.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        _ => false,
    }
}

/// The text of an expression without the parentheses around it, which a replaced alias has.
pub(super) fn bare_text(expr: &Expr) -> String {
    match expr {
        Expr::Nested(inner) => bare_text(inner),
        expr => expr.to_string(),
    }
}

/// The position of an expression in a grouped SELECT.
#[derive(Clone, Copy)]
pub(super) enum ExprPosition {
    /// The select item with this number.
    Item(usize),
    Having,
    /// The part of ORDER BY with this number.
    Order(usize),
}

/// The treatment of columns that are not group keys.
#[derive(Clone)]
pub(super) enum NonKeyColumns {
    /// They must depend functionally on the group keys; otherwise error 1055.
    Determined,
    /// Any value of the group.
    Any,
    /// The value of the group's best row in this order, given as arguments of [`best_of_groups::head`].
    Head(Vec<Expr>),
    /// The row's own value. Aggregates become window functions over this window.
    Row(WindowSpec),
    /// The value of the group's first row in the second window. Aggregates become window functions over the first.
    First(WindowSpec, WindowSpec),
}

/// The group keys of a SELECT, and what depends on them.
pub(super) struct Grouping<'a> {
    /// The group keys as text.
    groups: HashSet<String>,
    /// Columns that depend on the group keys functionally.
    determined: HashSet<String>,
    scope: &'a Scope<'a>,
    non_key_columns: NonKeyColumns,
    has_groups: bool,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(
        groups: &[Expr],
        select: &Select,
        scope: &'a Scope<'a>,
        non_key_columns: NonKeyColumns,
    ) -> Self {
        let texts: HashSet<String> =
            groups.iter().flat_map(|expr| [expr.to_string(), bare_text(expr)]).collect();
        let mut determined = texts.clone();
        determine(&mut determined, &equalities(select), scope);
        Self { groups: texts, determined, scope, non_key_columns, has_groups: !groups.is_empty() }
    }

    /// Rewrites an expression for groups: columns that are not group keys become aggregates. Errors 1055, 1140, 1054.
    pub(super) fn apply(&self, expr: &mut Expr, place: ExprPosition) -> Result<()> {
        let mut walk = Walk { grouping: self, place, kept: Vec::new() };
        match expr.visit(&mut walk) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn refused(&self, name: &[Ident], place: ExprPosition) -> Error {
        let [unique, column] = name else { return Error::unsupported("this GROUP BY") };
        let relation = self.scope.planned_relation(&unique.value);
        let full = relation.map_or_else(
            || column.value.clone(),
            |relation| {
                let named = relation.columns.iter().find(|named| named.planned == column.value);
                let shown = named.map_or(column.value.as_str(), |named| named.shown.as_str());
                match &relation.database {
                    Some(database) => format!("{database}.{}.{shown}", relation.alias),
                    None => format!("{}.{shown}", relation.alias),
                }
            },
        );
        let (number, list) = match place {
            ExprPosition::Item(number) => (number, "SELECT list"),
            ExprPosition::Order(number) => (number, "ORDER BY clause"),
            ExprPosition::Having if self.has_groups => {
                return unknown_column(&column.value, Clause::Having);
            }
            ExprPosition::Having => (1, "HAVING clause"),
        };
        let mode = "this is incompatible with sql_mode=only_full_group_by";
        if self.has_groups {
            let message = format!(
                "Expression #{number} of {list} is not in GROUP BY clause and contains \
                 nonaggregated column '{full}' which is not functionally dependent on columns in \
                 GROUP BY clause; {mode}"
            );
            return Error::new(ErrorCode::NotInGroupBy, message);
        }
        let message = format!(
            "In aggregated query without GROUP BY, expression #{number} of {list} contains \
             nonaggregated column '{full}'; {mode}"
        );
        Error::new(ErrorCode::MixedGroup, message)
    }
}

struct Walk<'a> {
    grouping: &'a Grouping<'a>,
    place: ExprPosition,
    /// The expressions that replace those met, while the visitor passes their children.
    kept: Vec<Expr>,
}

impl Walk<'_> {
    /// Replaces an expression and keeps the visitor from descending into it.
    fn keep(&mut self, expr: &mut Expr, made: impl FnOnce(Expr) -> Expr) -> ControlFlow<Error> {
        let mark = Expr::Value(Value::Placeholder(String::new()).into());
        self.kept.push(made(std::mem::replace(expr, mark)));
        ControlFlow::Continue(())
    }

    /// The expression that replaces a column.
    fn non_key_value(&self, value: Expr) -> Expr {
        match &self.grouping.non_key_columns {
            NonKeyColumns::Determined | NonKeyColumns::Any => {
                function_call("any_value", vec![value])
            }
            NonKeyColumns::Head(order) => best_of_groups::head(value, order),
            NonKeyColumns::Row(_) => value,
            NonKeyColumns::First(_, ordered) => {
                best_of_groups::over(function_call("first_value", vec![value]), ordered)
            }
        }
    }

    fn aggregate(&self, aggregate: Expr) -> Expr {
        match &self.grouping.non_key_columns {
            NonKeyColumns::Row(all) | NonKeyColumns::First(all, _) => {
                best_of_groups::over(aggregate, all)
            }
            _ => aggregate,
        }
    }
}

impl VisitorMut for Walk<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let grouping = self.grouping;
        if is_aggregate(expr) {
            let aggregate = self.aggregate(expr.clone());
            return self.keep(expr, |_| aggregate);
        }
        let is_head =
            matches!(grouping.non_key_columns, NonKeyColumns::Head(_) | NonKeyColumns::First(..));
        let is_group = grouping.groups.contains(&expr.to_string());
        if is_group
            && sets::is_each(expr)
            && let NonKeyColumns::First(..) = grouping.non_key_columns
        {
            // Above the windows only their results can be named.
            let number = self.non_key_value(expr.clone());
            return self.keep(expr, |_| number);
        }
        // Equal texts of a group may be spelled differently: the best row's spelling is shown.
        let is_plain = is_group && !(is_head && matches!(expr, Expr::CompoundIdentifier(_)));
        if is_plain || matches!(expr, Expr::Subquery(_) | Expr::Exists { .. }) {
            return self.keep(expr, |expr| expr);
        }
        if is_head && matches!(&*expr, Expr::Function(function) if keywords::is_query(function)) {
            // Its columns only identify the table; the weight as a whole is the row's value.
            let weight = self.non_key_value(expr.clone());
            return self.keep(expr, |_| weight);
        }
        let Expr::CompoundIdentifier(name) = &*expr else { return ControlFlow::Continue(()) };
        let own = name.first().is_some_and(|unique| {
            grouping.scope.relations.iter().any(|relation| relation.unique == unique.value)
        });
        if !own {
            return self.keep(expr, |expr| expr);
        }
        let is_strict = matches!(grouping.non_key_columns, NonKeyColumns::Determined);
        if is_strict && !grouping.determined.contains(&expr.to_string()) {
            return ControlFlow::Break(grouping.refused(name, self.place));
        }
        let value = self.non_key_value(expr.clone());
        self.keep(expr, |_| value)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let is_mark = matches!(
            expr,
            Expr::Value(value) if value.value == Value::Placeholder(String::new())
        );
        if is_mark && let Some(kept) = self.kept.pop() {
            *expr = kept;
        }
        ControlFlow::Continue(())
    }
}

/// The columns of a SELECT on which all its others depend, by their names in plans; empty if there are none: its group
/// keys, or the primary key of a table.
pub(super) fn determining(
    select: &Select,
    groups: &[Expr],
    items: &[SelectedItem],
    scope: &Scope<'_>,
) -> Vec<String> {
    let planned: HashMap<String, &str> =
        items.iter().map(|item| (bare_text(&item.expr), item.planned.as_str())).collect();
    let named = |all: &[String]| -> Option<Vec<String>> {
        all.iter().map(|text| planned.get(text).map(|name| (*name).to_owned())).collect()
    };
    if !groups.is_empty() {
        let groups: Vec<String> = groups.iter().map(bare_text).collect();
        return named(&groups).unwrap_or_default();
    }
    let equal = equalities(select);
    for relation in scope.relations.iter().filter(|each| !each.determining().is_empty()) {
        let key = relation.determining().iter();
        let key: Vec<String> = key.map(|name| relation.reference(name).to_string()).collect();
        let Some(found) = named(&key) else { continue };
        let mut determined: HashSet<String> = key.into_iter().collect();
        determine(&mut determined, &equal, scope);
        if items.iter().all(|item| depends_on(&item.expr, &determined)) {
            return found;
        }
    }
    Vec::new()
}

/// Whether an expression names only these columns, and nothing that is computed otherwise.
fn depends_on(expr: &Expr, determined: &HashSet<String>) -> bool {
    visit_own_expressions(expr, |expr| match expr {
        Expr::CompoundIdentifier(_) if determined.contains(&expr.to_string()) => {
            ControlFlow::Continue(())
        }
        Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Exists { .. } => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_continue()
}

/// Adds columns that depend on known ones: those equal to a known column or a constant, and all columns of a relation
/// whose key is known.
fn determine(determined: &mut HashSet<String>, equal: &[(Expr, Expr)], scope: &Scope<'_>) {
    loop {
        let before = determined.len();
        for (left, right) in equal {
            for (known, other) in [(left, right), (right, left)] {
                if is_constant(known) || determined.contains(&known.to_string()) {
                    determined.insert(other.to_string());
                }
            }
        }
        for relation in &scope.relations {
            let has =
                |column: &String| determined.contains(&relation.reference(column).to_string());
            if !relation.determining().is_empty() && relation.determining().iter().all(has) {
                let all = relation.columns.iter();
                determined.extend(all.map(|named| relation.reference(&named.planned).to_string()));
            }
        }
        if determined.len() == before {
            return;
        }
    }
}

/// The equalities that hold in every row.
fn equalities(select: &Select) -> Vec<(Expr, Expr)> {
    let mut found = Vec::new();
    if let Some(selection) = &select.selection {
        conjuncts(selection, &mut found);
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on)) = &join.join_operator
        {
            conjuncts(on, &mut found);
        }
    }
    found
}

fn conjuncts(expr: &Expr, found: &mut Vec<(Expr, Expr)>) {
    match expr {
        Expr::Nested(inner) => conjuncts(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, found);
            conjuncts(right, found);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            found.push((left.as_ref().clone(), right.as_ref().clone()));
        }
        _ => {}
    }
}
