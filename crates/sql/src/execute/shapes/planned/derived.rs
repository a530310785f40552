//! Moves the conditions of a WHERE on a derived table or a view into its SELECT, where they are conditions on the columns
//! of tables. Otherwise their literals would be part of the plan, and each other literal would need a plan of its own.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinOperator, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Visitor, VisitorMut,
};
use remora_engine::ColumnType;

use super::{
    super::{leaves, parameterize::ParameterizedText, shape::ColumnName},
    from::{JoinedTables, PlanTables, is_inner, is_left},
    pushdown::{conjuncts, is_comparison},
};
use crate::{
    parse::{Visit, VisitMut},
    resolve::is_aggregate_name,
};

/// Moves the conditions of each SELECT, those of outer ones first.
pub(super) fn move_conditions(
    query: &mut Query,
    parameterized: &ParameterizedText,
    tables: &PlanTables,
) {
    let _ = query.visit(&mut Moving { parameterized, tables });
}

struct Moving<'a> {
    parameterized: &'a ParameterizedText,
    tables: &'a PlanTables,
}

impl VisitorMut for Moving<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_lonely = matches!(select.from.as_slice(), [from] if is_one_relation(from));
        let Some(condition) = select.selection.take() else { return ControlFlow::Continue(()) };
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        for from in &mut select.from {
            for factor in never_missing(from) {
                let Some(mut derived) = Derived::of(factor, self.tables) else { continue };
                parts.retain(|part| {
                    let is_simple = is_comparison(part, self.parameterized);
                    !(is_simple && derived.takes(part, is_lonely))
                });
            }
        }
        select.selection = parts.into_iter().reduce(and);
        ControlFlow::Continue(())
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

/// Whether a part of FROM is one relation.
fn is_one_relation(from: &TableWithJoins) -> bool {
    from.joins.is_empty() && !matches!(from.relation, TableFactor::NestedJoin { .. })
}

/// The relations of a part of FROM that no outer join fills with NULLs.
fn never_missing(from: &mut TableWithJoins) -> Vec<&mut TableFactor> {
    let is_known = |operator: &JoinOperator| is_inner(operator) || is_left(operator);
    if !from.joins.iter().all(|join| is_known(&join.join_operator)) {
        return Vec::new();
    }
    let joined = from.joins.iter_mut().filter(|join| is_inner(&join.join_operator));
    let all = std::iter::once(&mut from.relation).chain(joined.map(|join| &mut join.relation));
    all.flat_map(|factor| match factor {
        // MySQL and MariaDB write the joins of a view so.
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            never_missing(table_with_joins)
        }
        factor => vec![factor],
    })
    .collect()
}

/// A derived table that gives rows or groups of tables one by one, so that a condition on its columns may be tested
/// before.
struct Derived<'q> {
    called: String,
    /// Its columns by their names, and the columns of tables that they are, unless they are computed.
    columns: Vec<(String, Option<Expr>)>,
    selection: &'q mut Option<Expr>,
}

impl<'q> Derived<'q> {
    fn of(factor: &'q mut TableFactor, tables: &PlanTables) -> Option<Self> {
        let TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } =
            factor
        else {
            return None;
        };
        let Query { with: None, body, limit_clause: None, fetch: None, .. } = subquery.as_mut()
        else {
            return None;
        };
        let SetExpr::Select(select) = body.as_mut() else { return None };
        let is_grouped = match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => !keys.is_empty(),
            _ => return None,
        };
        let is_plain = select.distinct.is_none()
            && select.having.is_none()
            && select.qualify.is_none()
            && select.named_window.is_empty()
            && select.into.is_none();
        let mut needing = NeedingAllRows { is_grouped, within: Vec::new() };
        let mut items = select.projection.iter();
        if !is_plain || items.any(|item| Visit::visit(item, &mut needing).is_break()) {
            return None;
        }
        let given = alias.columns.iter().map(|column| column.name.value.clone());
        let columns = columns_of(select, given.collect(), tables)?;
        Some(Self { called: alias.name.value.clone(), columns, selection: &mut select.selection })
    }

    /// Adds the condition, if all of its columns are columns of tables here.
    fn takes(&mut self, condition: &Expr, is_lonely: bool) -> bool {
        let mut inner = condition.clone();
        let mut naming = Renaming { of: self, is_lonely };
        if VisitMut::visit(&mut inner, &mut naming).is_break() {
            return false;
        }
        let inner = Expr::Nested(Box::new(inner));
        *self.selection = Some(match self.selection.take() {
            Some(before @ Expr::BinaryOp { op: BinaryOperator::And, .. }) => and(before, inner),
            Some(before) => and(Expr::Nested(Box::new(before)), inner),
            None => inner,
        });
        true
    }

    fn column(&self, names: &[Ident], is_lonely: bool) -> Option<&Expr> {
        let name = match names {
            [name] if is_lonely => name,
            [table, name] if table.value == self.called => name,
            _ => return None,
        };
        let mut same = self.columns.iter().filter(|it| it.0.eq_ignore_ascii_case(&name.value));
        match (same.next(), same.next()) {
            (Some((_, inner)), None) => inner.as_ref(),
            _ => None,
        }
    }
}

/// Replaces the columns of a condition by those of the tables. Stops at one that is none.
struct Renaming<'d, 'q> {
    of: &'d Derived<'q>,
    is_lonely: bool,
}

impl VisitorMut for Renaming<'_, '_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let inner = match expr {
            Expr::Identifier(name) => self.of.column(std::slice::from_ref(name), self.is_lonely),
            Expr::CompoundIdentifier(names) => self.of.column(names, self.is_lonely),
            _ => return ControlFlow::Continue(()),
        };
        match inner {
            Some(inner) => *expr = inner.clone(),
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

/// Stops at a function whose value depends on which rows there are: one over a window, or an aggregate of all rows. In a
/// subquery those are of its own rows, if their columns are.
struct NeedingAllRows {
    is_grouped: bool,
    /// The relations of each subquery around, from the outside in.
    within: Vec<Vec<String>>,
}

impl Visitor for NeedingAllRows {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut names = Vec::new();
        if let SetExpr::Select(select) = query.body.as_ref() {
            select.from.iter().for_each(|from| add_names(from, &mut names));
        }
        self.within.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let is_aggregate = || is_aggregate_name(&function.name.to_string().to_lowercase());
        let needs = match self.within.last() {
            None => function.over.is_some() || (!self.is_grouped && is_aggregate()),
            Some(names) => is_aggregate() && Visit::visit(function, &mut Foreign(names)).is_break(),
        };
        if needs { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The names of the relations in a part of FROM.
fn add_names(from: &TableWithJoins, names: &mut Vec<String>) {
    let joined = from.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&from.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => add_names(table_with_joins, names),
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => {
                names.push(alias.name.value.clone());
            }
            TableFactor::Table { name, .. } => {
                let name = name.0.last().and_then(|part| part.as_ident());
                names.extend(name.map(|name| name.value.clone()));
            }
            _ => {}
        }
    }
}

/// Stops at a column that is not certainly one of these relations.
struct Foreign<'n>(&'n [String]);

impl Visitor for Foreign<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_own = match expr {
            Expr::Identifier(_) => false,
            Expr::CompoundIdentifier(names) => {
                let table = names.len().checked_sub(2).and_then(|at| names.get(at));
                table.is_some_and(|table| self.0.contains(&table.value))
            }
            _ => true,
        };
        if is_own { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// The columns that a SELECT returns, by the names that it gives them. Groups are tested by their keys alone. `None` if
/// its columns are not known here.
fn columns_of(
    select: &Select,
    given: Vec<String>,
    tables: &PlanTables,
) -> Option<Vec<(String, Option<Expr>)>> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return None };
    let joined = tables.joined_by(select);
    let mut given = given.into_iter();
    let mut columns = Vec::new();
    for item in &select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, leaves::column(expr).map(|column| column.name)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
            _ => return None,
        };
        let Some(name) = given.next().or(name) else { continue };
        let of_group = |column: &ColumnName| {
            is_key(column, keys, &joined) && joined.kind(column).is_some_and(is_no_text)
        };
        let column = table_column(expr).filter(|column| {
            leaves::column(column).is_some_and(|name| keys.is_empty() || of_group(&name))
        });
        columns.push((name, column));
    }
    Some(columns)
}

/// The column that an expression is, without the name of its database.
fn table_column(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Identifier(_) => Some(expr.clone()),
        Expr::CompoundIdentifier(names) => {
            let from = names.len().saturating_sub(2);
            names.get(from..).map(|names| Expr::CompoundIdentifier(names.to_vec()))
        }
        _ => None,
    }
}

/// Whether a column is a key of the groups.
fn is_key(column: &ColumnName, keys: &[Expr], joined: &JoinedTables<'_>) -> bool {
    let is_same = |key: ColumnName| {
        let is_certain = joined.kind(&key).is_some();
        let tables = key.table.as_ref().zip(column.table.as_ref());
        is_certain
            && key.name.eq_ignore_ascii_case(&column.name)
            && tables.is_none_or(|(one, other)| one == other)
    };
    keys.iter().filter_map(table_column).filter_map(|key| leaves::column(&key)).any(is_same)
}

/// Whether equal values of a type are the same for every condition. Equal texts differ for LIKE.
fn is_no_text(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::Int(_)
            | ColumnType::Uint(_)
            | ColumnType::Decimal(..)
            | ColumnType::Date
            | ColumnType::Time
            | ColumnType::DateTime
            | ColumnType::Timestamp
    )
}
