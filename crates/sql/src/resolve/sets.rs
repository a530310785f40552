//! GROUP BY of a multi-value attribute: a row belongs to the group of each of its numbers.
//!
//! The group key becomes `#each(column)`, and WHERE gets `#unfold(#each(column))`, from which the planner makes one row
//! for each number ([`crate::plan`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, OrderByExpr, Query, Select, VisitorMut,
};
use remora_mysql::ErrorCode;

use super::{
    Resolver, expr::is_aggregate, from::binary, scores::ResolvedTables, select::SelectedItem,
};
use crate::{
    Error, Result,
    meaning::{COUNT_NUMBERS, EACH, UNFOLD, types::ExprType},
    parse::{VisitMut, function_call},
};

/// The kind of grouping of a SELECT.
#[derive(Clone, Copy)]
pub(super) struct Grouped {
    /// Whether best rows represent groups. Then a set in the select list is the row's set.
    pub by_best_rows: bool,
    pub has_rollup: bool,
}

impl Resolver<'_> {
    /// Rewrites groups by sets to groups by their numbers. Elsewhere such a set becomes the group's number, unless best
    /// rows represent groups.
    ///
    /// # Errors
    /// 1064 for a set among several group keys in Sphinx's groups, 1235 WITH ROLLUP.
    pub(super) fn unnest(
        &self,
        select: &mut Select,
        order: &mut [OrderByExpr],
        groups: &mut [Expr],
        items: &mut [SelectedItem],
        grouped: Grouped,
    ) -> Result<()> {
        let mut sets: Vec<Expr> = Vec::new();
        for item in items.iter_mut() {
            if let Some(set) = self.each_of(&item.expr)? {
                item.expr = each(set.clone());
                sets.push(set);
            }
        }
        let several = groups.len() > 1;
        let mut numbered: Vec<String> = Vec::new();
        for group in groups.iter_mut().filter(|group| is_set(group, &self.tables)) {
            let set = bare(group).clone();
            if grouped.has_rollup {
                return Err(Error::unsupported("WITH ROLLUP of a multi-value attribute"));
            }
            if several && grouped.by_best_rows {
                let message = "MVA values can't be used in multiple group-by";
                return Err(Error::new(ErrorCode::ParseError, message));
            }
            *group = each(set.clone());
            numbered.push(set.to_string());
            sets.push(set);
        }
        if !grouped.by_best_rows && !numbered.is_empty() {
            let mut naming = Naming { sets: &numbered, within: 0, kept: Vec::new() };
            // The visitor never breaks.
            for item in items {
                let _ = item.expr.visit(&mut naming);
            }
            let _ = select.having.as_mut().map(|having| having.visit(&mut naming));
            for each in order {
                let _ = each.expr.visit(&mut naming);
            }
        }
        let mut known: Vec<String> = Vec::new();
        for set in sets {
            if known.contains(&set.to_string()) {
                continue;
            }
            known.push(set.to_string());
            let condition = function_call(UNFOLD, vec![each(set)]);
            select.selection = Some(match select.selection.take() {
                Some(before) => {
                    let before = Expr::Nested(Box::new(before));
                    binary(before, BinaryOperator::And, condition)
                }
                None => condition,
            });
        }
        Ok(())
    }

    /// The set of an expression that stands for each of its numbers, in SphinxAPI's spelling.
    fn each_of(&self, expr: &Expr) -> Result<Option<Expr>> {
        let Expr::Function(function) = expr else { return Ok(None) };
        let name = function.name.0.first().and_then(|part| part.as_ident());
        if function.name.0.len() != 1 || name.is_none_or(|name| name.value != EACH) {
            return Ok(None);
        }
        let set = only_argument(function).filter(|set| is_set(set, &self.tables));
        let what = "the numbers of anything but a table's multi-value attribute";
        set.map(|set| Some(bare(set).clone())).ok_or_else(|| Error::unsupported(what))
    }
}

/// COUNT(DISTINCT set), which counts the numbers of all sets. `None` for other calls.
pub(super) fn distinct(function: &Function, tables: &ResolvedTables) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    if !is_distinct || !function.name.to_string().eq_ignore_ascii_case("count") {
        return None;
    }
    let set = only_argument(function).filter(|set| is_set(set, tables))?;
    let Expr::Function(named) = function_call(COUNT_NUMBERS, vec![set.clone()]) else {
        return None;
    };
    Some(Expr::Function(Function { name: named.name, args: named.args, ..function.clone() }))
}

/// Whether an expression stands for each number of a set.
pub(super) fn is_each(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if function.name.to_string() == EACH)
}

fn each(set: Expr) -> Expr {
    function_call(EACH, vec![set])
}

pub(super) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        expr => expr,
    }
}

fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
        _ => None,
    }
}

/// Whether an expression is a multi-value column.
fn is_set(expr: &Expr, tables: &ResolvedTables) -> bool {
    kind_of(expr, tables).is_some_and(|kind| kind.multi.is_some())
}

/// The type of a table's column.
pub(super) fn kind_of(expr: &Expr, tables: &ResolvedTables) -> Option<ExprType> {
    let Expr::CompoundIdentifier(name) = bare(expr) else { return None };
    let [unique, column] = name.as_slice() else { return None };
    let (_, table) = tables.iter().find(|(known, _)| *known == unique.value)?;
    let schema = table.schema();
    let (_, field) = schema.column_with_name(&column.value)?;
    Some(ExprType::of_field(field))
}

/// Replaces the grouped sets by their numbers, except in aggregates and subqueries.
struct Naming<'s> {
    sets: &'s [String],
    /// The nesting depth in aggregates and subqueries.
    within: usize,
    /// For each enclosing expression, whether it counts for `within`.
    kept: Vec<bool>,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // A set's number is left as it is.
        let is_kept = is_aggregate(expr) || is_each(expr);
        self.within += usize::from(is_kept);
        self.kept.push(is_kept);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_kept = self.kept.pop().unwrap_or(false);
        self.within -= usize::from(is_kept);
        if self.within == 0 && !is_kept && self.sets.contains(&expr.to_string()) {
            *expr = each(expr.clone());
        }
        ControlFlow::Continue(())
    }
}
