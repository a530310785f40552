//! LATERAL queries that cannot become joins, such as those with LIMIT: each row of the tables before runs the query with
//! its own values, by a plan that is made once.
//!
//! ```text
//! Join                                        LateralRows: the rows of the query for each row of u
//!   Scan: u                             ──→     Scan: u
//!   SELECT … WHERE p.user = u.id LIMIT 5
//! ```
//! The condition of a LEFT JOIN becomes one of the query.

mod exec;

use std::{
    cmp::Ordering,
    collections::HashSet,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::FieldRef,
    catalog::Session,
    common::{
        Column, DFSchema, DFSchemaRef, JoinType, TableReference,
        config::ConfigOptions,
        plan_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{
        Expr, Extension, Filter, Join, LogicalPlan, UserDefinedLogicalNodeCore,
        physical_planning_context::PhysicalPlanningContext,
    },
    optimizer::{
        AnalyzerRule, OptimizerContext, OptimizerRule,
        decorrelate_lateral_join::DecorrelateLateralJoin,
    },
    physical_expr::create_physical_expr,
    physical_plan::ExecutionPlan,
};
use exec::LateralRowsExec;

use super::{joinable::outer_columns, late_subqueries::is_query, subquery::RowsQuery};
use crate::{
    Error,
    meaning::external,
    nodes::{TreeNode, WholePlan},
};

/// The rule.
#[derive(Debug)]
pub(super) struct LateralRowsRule;

impl AnalyzerRule for LateralRowsRule {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_lateral(&plan)? {
            return Ok(plan);
        }
        let done = plan.transform_whole(|plan| match plan {
            LogicalPlan::Join(join) => match replaced(&join, options)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            },
            // What was below it may have been replaced.
            plan => plan.recompute_schema().map(Transformed::no),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "lateral_rows"
    }
}

/// Whether a LATERAL query is anywhere in a plan.
fn has_lateral(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_whole(|node| {
        found |= matches!(node, LogicalPlan::Subquery(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The query of a LATERAL derived table with its alias, without the mark that it is one; `None` for other plans.
pub(super) fn lateral(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Subquery(subquery) => Ok(Some(subquery.subquery.as_ref().clone())),
        LogicalPlan::SubqueryAlias(named) => {
            let Some(below) = lateral(&named.input)? else { return Ok(None) };
            plan.with_new_exprs(Vec::new(), vec![below]).map(Some)
        }
        _ => Ok(None),
    }
}

/// The node in place of a join with a LATERAL query; `None` for other joins and for queries that become joins.
fn replaced(join: &Join, options: &ConfigOptions) -> Result<Option<LogicalPlan>> {
    let keeps = join.join_type == JoinType::Left;
    if !keeps && join.join_type != JoinType::Inner || !join.on.is_empty() {
        return Ok(None);
    }
    let Some(mut query) = lateral(&join.right)? else { return Ok(None) };
    let left = join.left.schema();
    let outer = outer_columns(&query)?;
    if !outer.iter().any(|(_, column)| left.has_column(column)) || becomes_join(join)? {
        return Ok(None);
    }
    if let Some(condition) = join.filter.clone().filter(|_| keeps) {
        let condition = of_query(condition, left)?;
        query = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(query))?);
    }
    let made = LateralRows::new(join.left.as_ref().clone(), query, keeps, options)?;
    let made = LogicalPlan::Extension(Extension { node: Arc::new(made) });
    Ok(Some(match join.filter.clone().filter(|_| !keeps) {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(made))?),
        None => made,
    }))
}

/// Whether DataFusion makes a plain join of it.
pub(super) fn becomes_join(join: &Join) -> Result<bool> {
    // A window's rows depend on the conditions that a join would take out of the query. Of an aggregate over all rows
    // the join would lose the type of its columns, and the column that tells whether there was a row.
    let is_alone = |node: &LogicalPlan| {
        Ok(match node {
            LogicalPlan::Window(_) => true,
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
            _ => false,
        })
    };
    if join.right.exists(is_alone)? {
        return Ok(false);
    }
    let plan = LogicalPlan::Join(join.clone());
    let rule = DecorrelateLateralJoin::new();
    // What fails here fails later too.
    let Ok(made) = rule.rewrite(plan, &OptimizerContext::new()) else { return Ok(false) };
    let left = join.left.schema();
    let is_lateral =
        matches!(&made.data, LogicalPlan::Join(join) if lateral(&join.right)?.is_some());
    let outer = outer_columns(&made.data)?;
    Ok(!is_lateral && !outer.iter().any(|(_, column)| left.has_column(column)))
}

/// A condition on a join as one of the query on its right side.
fn of_query(condition: Expr, left: &DFSchema) -> Result<Expr> {
    if condition.exists(|expr| Ok(is_query(expr)))? {
        return Err(external(Error::unsupported("a query in ON of LEFT JOIN LATERAL")));
    }
    let moved = condition.transform_up(|expr| {
        let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
        Ok(match left.qualified_field_from_column(column) {
            Ok((_, field)) => {
                Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column.clone()))
            }
            Err(_) => Transformed::no(expr),
        })
    })?;
    Ok(moved.data)
}

/// Joins each row with the rows of a query that uses its values.
#[derive(Clone, Debug)]
pub(in crate::plan) struct LateralRows {
    input: LogicalPlan,
    query: Arc<RowsQuery>,
    /// The values that the query uses.
    outer: Vec<Expr>,
    /// Whether it is a LEFT JOIN: rows for which the query has none are kept, with NULLs.
    keeps: bool,
    /// The qualified fields of the query's rows.
    made: Vec<(Option<TableReference>, FieldRef)>,
    /// The input's columns, then the query's.
    schema: DFSchemaRef,
}

impl LateralRows {
    fn new(
        input: LogicalPlan,
        query: LogicalPlan,
        keeps: bool,
        options: &ConfigOptions,
    ) -> Result<Self> {
        let left = input.schema();
        let of = |(field, column): (FieldRef, Column)| match left.has_column(&column) {
            true => Expr::Column(column),
            false => Expr::OuterReferenceColumn(field, column),
        };
        let outer = outer_columns(&query)?.into_iter().map(of).collect();
        let made = query.schema().iter().map(|(table, field)| {
            let field = field.as_ref().clone();
            let nullable = keeps || field.is_nullable();
            (table.cloned(), Arc::new(field.with_nullable(nullable)))
        });
        let made = made.collect();
        let query = Arc::new(RowsQuery::new(query, options)?);
        Self::over(input, query, outer, keeps, made)
    }

    fn over(
        input: LogicalPlan,
        query: Arc<RowsQuery>,
        outer: Vec<Expr>,
        keeps: bool,
        made: Vec<(Option<TableReference>, FieldRef)>,
    ) -> Result<Self> {
        let columns = input.schema().iter();
        let mut fields: Vec<_> =
            columns.map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
        fields.extend(made.iter().cloned());
        // The input's keys repeat here, so they are dropped.
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        Ok(Self { input, query, outer, keeps, made, schema })
    }
}

impl PartialEq for LateralRows {
    fn eq(&self, other: &Self) -> bool {
        self.query == other.query
            && self.outer == other.outer
            && self.keeps == other.keeps
            && self.input == other.input
    }
}

impl Eq for LateralRows {}

impl PartialOrd for LateralRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for LateralRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.query.hash(state);
        self.outer.hash(state);
        self.keeps.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for LateralRows {
    fn name(&self) -> &str {
        "LateralRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.outer.clone()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.made.iter().map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LateralRows")
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.into_iter().next().filter(|_| exprs.len() == self.outer.len())
        else {
            return plan_err!("a LATERAL query has the rows before it");
        };
        Self::over(input, Arc::clone(&self.query), exprs, self.keeps, self.made.clone())
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let below = self.input.schema();
        let columns = below.fields().len();
        let mut needed: Vec<usize> =
            output_columns.iter().copied().filter(|column| *column < columns).collect();
        for expr in &self.outer {
            let named = expr.column_refs().into_iter();
            needed.extend(named.filter_map(|column| below.maybe_index_of_column(column)));
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// The physical operator.
pub(in crate::plan) fn planned(
    rows: &LateralRows,
    below: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = PhysicalPlanningContext::default();
    let properties = session.execution_props();
    let outer = rows.outer.iter();
    let outer = outer.map(|expr| create_physical_expr(expr, below, properties, &planning));
    let outer = outer.collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(rows.schema.inner());
    let query = Arc::clone(&rows.query);
    Ok(Arc::new(LateralRowsExec::new(input, query, outer, rows.keeps, schema)))
}
