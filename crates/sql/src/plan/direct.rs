//! Plans of a single table, made without an optimizer: a scan, conditions, groups, select list, order and limit, in the
//! order written. Running optimizer rules over so small a plan costs more than running the plan.
//!
//! ```text
//! Limit ── GlobalLimitExec        Projection ── ProjectionExec     SubqueryAlias ── its input
//! Sort ─── SortExec, with the     Filter ────── FilterExec of      TableScan ────── ScanExec of the
//!          limit above it                       what the scan                       columns that are
//! Distinct, Aggregate ── AggregateExec          leaves                              named above it
//! JSON_TABLE of one document ── JsonRowsExec
//! ```
//! A plan with anything else goes to DataFusion. These effects of the rules are kept: conditions are evaluated in turn
//! (`lazy`), the engine answers what it can, and only named columns are read.

use std::sync::Arc;

use datafusion::{
    common::{
        Column, DFSchema,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    datasource::source_as_provider,
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{
        Aggregate, Between, BinaryExpr, Distinct, EmptyRelation, Expr, Extension, FetchType,
        Filter, Limit, LogicalPlan, Operator, Projection, SkipType, Sort, SubqueryAlias,
        TableProviderFilterPushDown, TableScan,
        expr::InList,
        expr_rewriter::unnormalize_col,
        physical_planning_context::PhysicalPlanningContext,
        simplify::SimplifyContext,
        utils::{conjunction, split_conjunction},
    },
    optimizer::simplify_expressions::ExprSimplifier,
    physical_expr::{
        LexOrdering, PhysicalExpr, aggregate::LoweredAggregateBuilder, create_physical_expr,
        create_physical_sort_exprs,
    },
    physical_plan::{
        ExecutionPlan,
        aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy},
        empty::EmptyExec,
        filter::FilterExec,
        limit::GlobalLimitExec,
        placeholder_row::PlaceholderRowExec,
        projection::ProjectionExec,
        sorts::sort::SortExec,
    },
};

use super::{distinct_keys, json_table, lazy, watch};
use crate::{
    nodes::{TreeNode, WholePlan},
    scan::{EngineTable, outer},
    state::Context,
};

/// The physical plan; `None` if it needs an optimizer or reads too many rows.
pub(super) fn planned(
    plan: &LogicalPlan,
    state: &PlanState,
) -> PlanResult<Option<Arc<dyn ExecutionPlan>>> {
    let most_rows = most_rows(state.config_options());
    if rows_below(plan).is_none_or(|rows| rows > most_rows) {
        return Ok(None);
    }
    made(plan, state)
}

/// The physical plan for any number of rows; `None` if it needs an optimizer.
pub(super) fn made(
    plan: &LogicalPlan,
    state: &PlanState,
) -> PlanResult<Option<Arc<dyn ExecutionPlan>>> {
    let direct = Direct { state, context: PhysicalPlanningContext::default() };
    let every = RequiredColumns::every(plan.schema());
    Ok(direct.node(plan, every, None)?.map(|made| made.plan))
}

/// The most rows of a table whose statements are planned here. Larger tables are read by several threads.
pub(super) fn most_rows(options: &ConfigOptions) -> usize {
    let context = Context::of_options(options);
    context.map_or(0, |context| context.shared.settings.max_direct_rows)
}

/// A physical plan and its fields.
struct DirectPlan {
    plan: Arc<dyn ExecutionPlan>,
    schema: Arc<DFSchema>,
}

/// For each column of a node's schema, whether the nodes above need it.
struct RequiredColumns(Vec<bool>);

impl RequiredColumns {
    fn every(schema: &DFSchema) -> Self {
        Self(vec![true; schema.fields().len()])
    }

    fn of<'e>(schema: &DFSchema, exprs: impl IntoIterator<Item = &'e Expr>) -> Option<Self> {
        let mut needed = Self(vec![false; schema.fields().len()]);
        exprs.into_iter().all(|expr| needed.add(schema, expr)).then_some(needed)
    }

    /// Marks the columns of an expression as needed; false if one is not in the schema.
    fn add(&mut self, schema: &DFSchema, expr: &Expr) -> bool {
        expr.column_refs().into_iter().all(|column| self.add_column(schema, column))
    }

    fn add_column(&mut self, schema: &DFSchema, column: &Column) -> bool {
        let place = schema.index_of_column(column).ok();
        let place = place.and_then(|place| self.0.get_mut(place));
        place.map(|needed| *needed = true).is_some()
    }

    fn places(&self) -> Vec<usize> {
        let places = self.0.iter().enumerate();
        places.filter_map(|(place, needed)| needed.then_some(place)).collect()
    }
}

/// The conditions of a filter, by who evaluates them.
struct SplitFilter {
    /// Pushed down to the engine, with unqualified column names.
    asked: Vec<Expr>,
    kept: Vec<Expr>,
}

/// The number of rows in the table that a plan reads; 1 for a row of constants. `None` for plans that [`planned`]
/// cannot make.
pub(super) fn rows_below(plan: &LogicalPlan) -> Option<usize> {
    match plan {
        LogicalPlan::EmptyRelation(_) => Some(1),
        LogicalPlan::Extension(extension) => json_table::of_one_document(extension).map(|_| 1),
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let any: &dyn std::any::Any = provider.as_ref();
            any.downcast_ref::<EngineTable>().map(EngineTable::rows)
        }
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Distinct(Distinct::All(_))
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_) => rows_below(plan.inputs().first()?),
        _ => None,
    }
}

struct Direct<'s> {
    state: &'s PlanState,
    context: PhysicalPlanningContext,
}

impl Direct<'_> {
    /// Plans a node, of which at most `fetch` rows are needed.
    fn node(
        &self,
        node: &LogicalPlan,
        needed: RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        watch::check(self.state.config_options())?;
        if has_queries(node)? {
            return Ok(None);
        }
        match node {
            LogicalPlan::EmptyRelation(empty) => Ok(Some(one_row(empty))),
            LogicalPlan::TableScan(scan) => self.scan(scan, &needed, &[], fetch),
            LogicalPlan::SubqueryAlias(alias) => self.renamed(alias, needed, fetch),
            LogicalPlan::Filter(filter) => self.filtered(filter, needed, fetch),
            LogicalPlan::Projection(projection) => self.projected(projection, &needed, fetch),
            LogicalPlan::Aggregate(aggregate) => self.grouped(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Sort(sort) => self.sorted(sort, needed, fetch),
            LogicalPlan::Limit(limit) => self.limited(limit, needed, fetch),
            LogicalPlan::Extension(extension) => self.json_rows(extension),
            _ => Ok(None),
        }
    }

    /// Plans JSON_TABLE of one document.
    fn json_rows(&self, extension: &Extension) -> PlanResult<Option<DirectPlan>> {
        let Some(rows) = json_table::of_one_document(extension) else { return Ok(None) };
        let below = self.node(&rows.input, RequiredColumns::every(rows.input.schema()), None)?;
        let Some(DirectPlan { plan, schema }) = below else { return Ok(None) };
        let plan = json_table::planned(rows, &schema, plan, self.state)?;
        Ok(Some(DirectPlan { plan, schema: Arc::clone(&rows.schema) }))
    }

    fn scan(
        &self,
        scan: &TableScan,
        needed: &RequiredColumns,
        conditions: &[Expr],
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        let provider = source_as_provider(&scan.source)?;
        let any: &dyn std::any::Any = provider.as_ref();
        let Some(table) = any.downcast_ref::<EngineTable>() else { return Ok(None) };
        if scan.projection.is_some() || !scan.filters.is_empty() || scan.fetch.is_some() {
            return Ok(None);
        }
        let places = needed.places();
        let schema = narrowed(&scan.projected_schema, &places)?;
        let sought = conditions.iter().filter_map(outer::outer_comparisons);
        let sought = sought.map(|condition| self.physical(&condition, &schema));
        let sought = sought.collect::<PlanResult<Vec<_>>>()?;
        let plan = table.scan_of(places, conditions, fetch, self.state.config_options())?;
        let plan = plan.with_conditions(sought);
        Ok(Some(DirectPlan { plan: Arc::new(plan), schema: Arc::new(schema) }))
    }

    fn renamed(
        &self,
        alias: &SubqueryAlias,
        needed: RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        let Some(DirectPlan { plan, schema }) = self.node(&alias.input, needed, fetch)? else {
            return Ok(None);
        };
        Ok(Some(DirectPlan { plan, schema: under(alias, &schema)? }))
    }

    fn filtered(
        &self,
        filter: &Filter,
        mut needed: RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        if let Some(moved) = moved_below(filter)? {
            return self.node(&moved, needed, fetch);
        }
        if let LogicalPlan::Filter(below) = filter.input.as_ref() {
            // A view may have a filter of its own; both filters are pushed down together.
            let both = below.predicate.clone().and(filter.predicate.clone());
            let both = LogicalPlan::Filter(Filter::try_new(both, Arc::clone(&below.input))?);
            return self.node(&both, needed, fetch);
        }
        let schema = filter.input.schema();
        let SplitFilter { asked, kept } = self.divided(filter)?;
        if !kept.iter().all(|part| needed.add(schema, part)) {
            return Ok(None);
        }
        let fetch = fetch.filter(|_| kept.is_empty());
        let below = match asked.is_empty() {
            true => self.node(&filter.input, needed, fetch)?,
            false => self.answered(&filter.input, &needed, &asked, fetch)?,
        };
        let (Some(DirectPlan { plan, schema }), kept) = (below, conjunction(kept)) else {
            return Ok(None);
        };
        let Some(kept) = kept else { return Ok(Some(DirectPlan { plan, schema })) };
        let condition = self.physical(&lazy::turned(kept), &schema)?;
        let plan = Arc::new(FilterExec::try_new(condition, plan)?);
        Ok(Some(DirectPlan { plan, schema }))
    }

    /// Divides the conditions of a filter into those pushed down and those evaluated above the scan.
    fn divided(&self, filter: &Filter) -> PlanResult<SplitFilter> {
        let mut divided = SplitFilter { asked: Vec::new(), kept: Vec::new() };
        let Some(scan) = scanned(&filter.input) else {
            divided.kept = split_conjunction(&filter.predicate).into_iter().cloned().collect();
            return Ok(divided);
        };
        let provider = source_as_provider(&scan.source)?;
        for part in self.parts_of(filter)? {
            let bare = unnormalize_col(part.clone());
            match provider.supports_filters_pushdown(&[&bare])?.pop() {
                Some(TableProviderFilterPushDown::Exact) => divided.asked.push(bare),
                Some(TableProviderFilterPushDown::Inexact) => {
                    divided.asked.push(bare);
                    divided.kept.push(part);
                }
                _ => {
                    divided.asked.extend(outer::outer_comparisons(&bare));
                    divided.kept.push(part);
                }
            }
        }
        Ok(divided)
    }

    /// The conjuncts of a filter, with constant expressions evaluated.
    fn parts_of(&self, filter: &Filter) -> PlanResult<Vec<Expr>> {
        let parts = split_conjunction(&filter.predicate).into_iter();
        let parts = parts.map(|part| {
            if !calculates_constants(part) {
                return Ok(part.clone());
            }
            let context = SimplifyContext::builder()
                .with_schema(Arc::clone(filter.input.schema()))
                .with_config_options(Arc::clone(self.state.config_options()))
                .build();
            ExprSimplifier::new(context).simplify(part.clone())
        });
        parts.collect()
    }

    /// A table scan, aliased or not, with these conditions pushed down.
    fn answered(
        &self,
        node: &LogicalPlan,
        needed: &RequiredColumns,
        conditions: &[Expr],
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        match node {
            LogicalPlan::TableScan(scan) => self.scan(scan, needed, conditions, fetch),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(made) = self.answered(&alias.input, needed, conditions, fetch)? else {
                    return Ok(None);
                };
                let schema = under(alias, &made.schema)?;
                Ok(Some(DirectPlan { plan: made.plan, schema }))
            }
            _ => Ok(None),
        }
    }

    /// Only needed expressions are evaluated: others might fail or be slow.
    fn projected(
        &self,
        projection: &Projection,
        needed: &RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        let places = needed.places();
        let selected = places.iter().filter_map(|place| projection.expr.get(*place));
        let selected: Vec<&Expr> = selected.collect();
        let below = RequiredColumns::of(projection.input.schema(), selected.iter().copied());
        let Some(below) = below else { return Ok(None) };
        let Some(below) = self.node(&projection.input, below, fetch)? else { return Ok(None) };
        if places.is_empty() {
            return Ok(Some(below));
        }
        let schema = match places.len() == projection.expr.len() {
            true => Arc::clone(&projection.schema),
            false => Arc::new(narrowed(&projection.schema, &places)?),
        };
        let exprs = selected.into_iter().zip(schema.fields());
        let exprs = exprs
            .map(|(expr, field)| Ok((self.physical(expr, &below.schema)?, field.name().clone())));
        let exprs = exprs.collect::<PlanResult<Vec<_>>>()?;
        let plan = Arc::new(ProjectionExec::try_new(exprs, below.plan)?);
        Ok(Some(DirectPlan { plan, schema }))
    }

    fn grouped(&self, aggregate: &Aggregate) -> PlanResult<Option<DirectPlan>> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
        let needed = RequiredColumns::of(input.schema(), group_expr.iter().chain(aggr_expr));
        let Some(needed) = needed.filter(|_| !group_expr.iter().any(is_set)) else {
            return Ok(None);
        };
        let Some(below) = self.node(input, needed, None)? else { return Ok(None) };
        let groups = group_expr
            .iter()
            .zip(schema.fields())
            .map(|(expr, field)| Ok((self.physical(expr, &below.schema)?, field.name().clone())));
        let groups = PhysicalGroupBy::new_single(groups.collect::<PlanResult<Vec<_>>>()?);
        let physical_schema = below.plan.schema();
        let (mut functions, mut filters) = (Vec::new(), Vec::new());
        for expr in aggr_expr {
            let expr = distinct_keys::counted(expr.clone(), &below.schema)?;
            let lowered = LoweredAggregateBuilder::new(
                &expr,
                &below.schema,
                &physical_schema,
                self.state.execution_props(),
                &self.context,
            )
            .build()?;
            functions.push(lowered.aggregate);
            filters.push(lowered.filter);
        }
        let mode = AggregateMode::Single;
        let plan =
            AggregateExec::try_new(mode, groups, functions, filters, below.plan, physical_schema)?;
        Ok(Some(DirectPlan { plan: Arc::new(plan), schema: Arc::clone(schema) }))
    }

    fn distinct(&self, input: &LogicalPlan) -> PlanResult<Option<DirectPlan>> {
        let every = RequiredColumns::every(input.schema());
        let Some(DirectPlan { plan, schema }) = self.node(input, every, None)? else {
            return Ok(None);
        };
        let groups = schema.columns().into_iter().zip(schema.fields()).map(|(column, field)| {
            Ok((self.physical(&Expr::Column(column), &schema)?, field.name().clone()))
        });
        let groups = PhysicalGroupBy::new_single(groups.collect::<PlanResult<Vec<_>>>()?);
        let of = plan.schema();
        let mode = AggregateMode::Single;
        let plan = AggregateExec::try_new(mode, groups, Vec::new(), Vec::new(), plan, of)?;
        Ok(Some(DirectPlan { plan: Arc::new(plan), schema }))
    }

    fn sorted(
        &self,
        sort: &Sort,
        mut needed: RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        let schema = sort.input.schema();
        if !sort.expr.iter().all(|each| needed.add(schema, &each.expr)) {
            return Ok(None);
        }
        let Some(DirectPlan { plan, schema }) = self.node(&sort.input, needed, None)? else {
            return Ok(None);
        };
        let props = self.state.execution_props();
        let exprs = create_physical_sort_exprs(&sort.expr, &schema, props, &self.context)?;
        let Some(order) = LexOrdering::new(exprs) else { return Ok(None) };
        let fetch = sort.fetch.into_iter().chain(fetch).min();
        let plan = Arc::new(SortExec::new(order, plan).with_fetch(fetch));
        Ok(Some(DirectPlan { plan, schema }))
    }

    fn limited(
        &self,
        limit: &Limit,
        needed: RequiredColumns,
        fetch: Option<usize>,
    ) -> PlanResult<Option<DirectPlan>> {
        let (SkipType::Literal(skip), FetchType::Literal(own)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        let own = own.into_iter().chain(fetch).min();
        if own == Some(0) {
            // LIMIT 0: nothing below is evaluated.
            let schema = Arc::clone(limit.input.schema());
            let plan = Arc::new(EmptyExec::new(Arc::clone(schema.inner())));
            return Ok(Some(DirectPlan { plan, schema }));
        }
        let below = own.map(|own| own.saturating_add(skip));
        let Some(DirectPlan { plan, schema }) = self.node(&limit.input, needed, below)? else {
            return Ok(None);
        };
        Ok(Some(DirectPlan { plan: Arc::new(GlobalLimitExec::new(plan, skip, own)), schema }))
    }

    fn physical(&self, expr: &Expr, schema: &DFSchema) -> PlanResult<Arc<dyn PhysicalExpr>> {
        create_physical_expr(expr, schema, self.state.execution_props(), &self.context)
    }
}

/// Whether a node's own expressions contain subqueries.
pub(super) fn has_queries(node: &LogicalPlan) -> PlanResult<bool> {
    let mut found = false;
    node.apply_to_expressions(|expr| {
        expr.apply(|each| {
            found |= matches!(
                each,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::WindowFunction(_)
                    | Expr::Unnest(_)
            );
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Moves the conditions of a filter below projections and aliases, so that they can be pushed down to the table.
/// Volatile conditions stay. `None` if none can be moved.
fn moved_below(filter: &Filter) -> PlanResult<Option<LogicalPlan>> {
    match filter.input.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => {
            let (outside, inside) = (alias.schema.columns(), alias.input.schema().columns());
            let within = |column: &Column| {
                let place = outside.iter().position(|known| known == column)?;
                inside.get(place).cloned().map(Expr::Column)
            };
            let Some(predicate) = replaced(&filter.predicate, &within)? else { return Ok(None) };
            let below = moved_below(&Filter::try_new(predicate, Arc::clone(&alias.input))?)?;
            let below = below.map(|below| {
                SubqueryAlias::try_new(Arc::new(below), alias.alias.clone())
                    .map(LogicalPlan::SubqueryAlias)
            });
            below.transpose()
        }
        LogicalPlan::Projection(projection) => moved_below_projection(filter, projection),
        _ => Ok(None),
    }
}

fn moved_below_projection(
    filter: &Filter,
    projection: &Projection,
) -> PlanResult<Option<LogicalPlan>> {
    let outside = projection.schema.columns();
    let within = |column: &Column| {
        let place = outside.iter().position(|known| known == column)?;
        let expr = projection.expr.get(place)?.clone().unalias();
        (!expr.is_volatile()).then_some(expr)
    };
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    for part in split_conjunction(&filter.predicate) {
        match replaced(part, &within)?.filter(|_| !part.is_volatile()) {
            Some(part) => moved.push(part),
            None => kept.push(part.clone()),
        }
    }
    let Some(moved) = conjunction(moved) else { return Ok(None) };
    let below = LogicalPlan::Filter(Filter::try_new(moved, Arc::clone(&projection.input))?);
    let (expr, schema) = (projection.expr.clone(), Arc::clone(&projection.schema));
    let made = Projection::try_new_with_schema(expr, Arc::new(below), schema)?;
    let made = LogicalPlan::Projection(made);
    Ok(Some(match conjunction(kept) {
        Some(kept) => LogicalPlan::Filter(Filter::try_new(kept, Arc::new(made))?),
        None => made,
    }))
}

/// Replaces the columns of an expression; `None` if a column has no replacement.
fn replaced(expr: &Expr, by: &dyn Fn(&Column) -> Option<Expr>) -> PlanResult<Option<Expr>> {
    let mut missing = false;
    let made = expr.clone().transform_up(|each| {
        let Expr::Column(column) = &each else { return Ok(Transformed::no(each)) };
        match by(column) {
            Some(expr) => Ok(Transformed::yes(expr)),
            None => {
                missing = true;
                Ok(Transformed::no(each))
            }
        }
    })?;
    Ok((!missing).then_some(made.data))
}

/// Whether a condition contains constant expressions that must be evaluated first, because the engine accepts only
/// values.
fn calculates_constants(condition: &Expr) -> bool {
    let is_one = |expr: &Expr| {
        let is_leaf = matches!(expr, Expr::Literal(..) | Expr::Column(_));
        !is_leaf && !expr.any_column_refs() && !expr.is_volatile()
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            calculates_constants(left) || calculates_constants(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => is_one(left) || is_one(right),
        Expr::Between(Between { low, high, .. }) => is_one(low) || is_one(high),
        Expr::InList(InList { list, .. }) => list.iter().any(is_one),
        Expr::ScalarFunction(call) => call.args.iter().any(is_one),
        _ => false,
    }
}

fn one_row(empty: &EmptyRelation) -> DirectPlan {
    let fields = Arc::clone(empty.schema.inner());
    let plan: Arc<dyn ExecutionPlan> = match empty.produce_one_row {
        true => Arc::new(PlaceholderRowExec::new(fields)),
        false => Arc::new(EmptyExec::new(fields)),
    };
    DirectPlan { plan, schema: Arc::clone(&empty.schema) }
}

/// The table scan below a node's aliases.
fn scanned(node: &LogicalPlan) -> Option<&TableScan> {
    match node {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scanned(&alias.input),
        _ => None,
    }
}

/// The fields at these positions.
fn narrowed(schema: &DFSchema, places: &[usize]) -> PlanResult<DFSchema> {
    let fields = places.iter().map(|place| {
        let (relation, field) = schema.qualified_field(*place);
        (relation.cloned(), Arc::clone(field))
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}

/// The fields, requalified with an alias.
fn under(alias: &SubqueryAlias, schema: &DFSchema) -> PlanResult<Arc<DFSchema>> {
    let schema = DFSchema::try_from_qualified_schema(alias.alias.clone(), schema.as_arrow())?;
    Ok(Arc::new(schema))
}
