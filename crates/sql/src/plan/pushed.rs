//! Carries dynamic filters from joins down to scans. DataFusion's own rule finds the column of an input by its name, so
//! below a join of two tables with a column of the same name it filters the wrong table. This rule follows each column
//! by its position.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{
        JoinSide, NullEquality,
        config::ConfigOptions,
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::JoinType,
    physical_expr::{PhysicalExpr, ScalarFunctionExpr, expressions::Column},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
        ReplaceChildrenOptions,
        aggregates::AggregateExec,
        coalesce_partitions::CoalescePartitionsExec,
        coop::CooperativeExec,
        filter::FilterExec,
        filter_pushdown::{
            ChildFilterPushdownResult, ChildPushdownResult, FilterPushdownPhase,
            PushedDownPredicate,
        },
        joins::{HashJoinExec, utils::ColumnIndex},
        projection::ProjectionExec,
        repartition::RepartitionExec,
        sorts::sort::SortExec,
        union::UnionExec,
    },
};

use super::{
    keys::without_same,
    measured::Measured,
    operator::over_one_input,
    recursion::RecursionExec,
    watch::{Watched, check},
};
use crate::nodes::TreeNode;

/// The rules of DataFusion that this one replaces. The first of them would move static filters, by name as well; the
/// logical rules have moved those already.
pub(super) const REPLACED: [&str; 2] = ["FilterPushdown", "FilterPushdown(Post)"];

/// The rule. It runs at the place of the last rule that it replaces.
#[derive(Debug)]
pub(super) struct DynamicFilters;

impl PhysicalOptimizerRule for DynamicFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        with_dynamic_filters(&plan, options)
    }

    fn name(&self) -> &'static str {
        "dynamic_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

type Filters = Vec<Arc<dyn PhysicalExpr>>;

/// The plan with filters of its joins at its scans.
pub(super) fn with_dynamic_filters(
    plan: &Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    pushed(plan, Vec::new(), options)
}

/// The plan, whose scans have these filters on its output and the filters of the nodes inside.
fn pushed(
    plan: &Arc<dyn ExecutionPlan>,
    filters: Filters,
    options: &ConfigOptions,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    check(options)?;
    let phase = FilterPushdownPhase::Post;
    let children = plan.children();
    // Each iteration makes filters of its own.
    if plan.is::<IterationExec>() {
        return Ok(Arc::clone(plan));
    }
    if children.is_empty() {
        return if filters.is_empty() {
            Ok(Arc::clone(plan))
        } else {
            taken(plan, filters, options)
        };
    }
    // The filters that the node itself makes, on the columns of its input. Dynamic filters drop NULL, which matches in
    // some joins. A scan asks for them once, when it begins: those of sorts and aggregates are known only when it ends.
    let own = match plan.downcast_ref::<HashJoinExec>().map(HashJoinExec::null_equality) {
        Some(NullEquality::NullEqualsNothing) => {
            plan.gather_filters_for_pushdown(phase, Vec::new(), options)?.self_filters()
        }
        _ => Vec::new(),
    };
    let (mut inputs, mut is_changed) = (Vec::with_capacity(children.len()), false);
    let mut results = Vec::with_capacity(children.len());
    for (side, child) in children.into_iter().enumerate() {
        let own = own.get(side).into_iter().flatten();
        let own = own.map(without_same).collect::<PlanResult<Filters>>()?;
        let mut below = moved(plan, side, &filters)?;
        below.extend(own.iter().cloned());
        let input = match plan.is::<RecursionExec>() && side > 0 {
            true => IterationExec::over(child),
            false => pushed(child, below, options)?,
        };
        is_changed |= !Arc::ptr_eq(&input, child);
        inputs.push(input);
        results.push(own.into_iter().map(PushedDownPredicate::unsupported).collect());
    }
    let plan = match is_changed {
        true => {
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Arc::clone(plan).replace_children(inputs, options)?
        }
        false => Arc::clone(plan),
    };
    let result = ChildPushdownResult { parent_filters: Vec::new(), self_filters: results };
    let updated = plan.handle_child_pushdown_result(phase, result, options)?.updated_node;
    Ok(updated.unwrap_or(plan))
}

/// A plan without inputs, with the filters that it takes.
fn taken(
    plan: &Arc<dyn ExecutionPlan>,
    filters: Filters,
    options: &ConfigOptions,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let offered = |filter| ChildFilterPushdownResult { filter, child_results: Vec::new() };
    let parent_filters = filters.into_iter().map(offered).collect();
    let offered = ChildPushdownResult { parent_filters, self_filters: Vec::new() };
    let phase = FilterPushdownPhase::Post;
    let updated = plan.handle_child_pushdown_result(phase, offered, options)?.updated_node;
    Ok(updated.unwrap_or_else(|| Arc::clone(plan)))
}

/// The filters on a node's output as filters on one of its inputs. Filters that may not be applied there are left out.
fn moved(plan: &Arc<dyn ExecutionPlan>, side: usize, filters: &Filters) -> PlanResult<Filters> {
    let mut moved = Vec::new();
    // A filter below a limit would change which rows the limit lets through.
    if plan.fetch().is_some() {
        return Ok(moved);
    }
    for filter in filters {
        let mut is_whole = true;
        let below = Arc::clone(filter).transform_down(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expr));
            };
            match below(plan.as_ref(), side, column.index())? {
                // What it is replaced by has columns of the input already.
                Some(below) => Ok(Transformed::new(below, true, TreeNodeRecursion::Jump)),
                None => {
                    is_whole = false;
                    Ok(Transformed::complete(expr))
                }
            }
        })?;
        if is_whole {
            moved.push(below.data);
        }
    }
    Ok(moved)
}

/// What the column `index` of the output is in an input, if rows of that input may be filtered by it: a column, or its
/// collation key, by which joins compare texts.
fn below(
    plan: &dyn ExecutionPlan,
    side: usize,
    index: usize,
) -> PlanResult<Option<Arc<dyn PhysicalExpr>>> {
    let place = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        below_join(join, side, index)
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        match filter.projection() {
            Some(projection) => projection.get(index).copied(),
            None => Some(index),
        }
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(selected) = projection.expr().get(index) else { return Ok(None) };
        let selected = without_same(&selected.expr)?;
        if is_key_of_column(&selected) {
            return Ok(Some(selected));
        }
        place_of(&selected)
    } else if let Some(grouped) = plan.downcast_ref::<AggregateExec>() {
        below_groups(grouped, index)
    } else {
        let is_same = plan.is::<UnionExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<CoalescePartitionsExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<SortExec>()
            || plan.is::<Measured>()
            || plan.is::<Watched>();
        is_same.then_some(index)
    };
    let schema = plan.children().get(side).map(|child| child.schema());
    let (Some(place), Some(schema)) = (place, schema) else { return Ok(None) };
    let field = schema.fields().get(place);
    Ok(field.map(|field| Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>))
}

/// Whether it is `collation_key(column, …)`.
fn is_key_of_column(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return false };
    call.name() == "collation_key"
        && call.args().first().is_some_and(|of| of.downcast_ref::<Column>().is_some())
}

fn place_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// A filter on a group key decides about whole groups.
fn below_groups(grouped: &AggregateExec, index: usize) -> Option<usize> {
    let keys = grouped.group_expr();
    if !keys.is_single() || keys.is_empty() || grouped.limit_options().is_some() {
        return None;
    }
    keys.expr().get(index).and_then(|(key, _)| place_of(key))
}

/// The column of one input of a join. A side whose rows are returned without a match is filtered too, by its own
/// columns only. The other side of a semi-join has equal keys.
fn below_join(join: &HashJoinExec, side: usize, index: usize) -> Option<usize> {
    let index = match &join.projection {
        Some(projection) => *projection.get(index)?,
        None => index,
    };
    let ColumnIndex { index, side: of } = column_of(join, index)?;
    let asked = if side == 0 { JoinSide::Left } else { JoinSide::Right };
    if of == asked {
        let is_kept = match join.join_type {
            JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => true,
            JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => asked == JoinSide::Left,
            JoinType::Right | JoinType::RightAnti | JoinType::RightMark => asked == JoinSide::Right,
            JoinType::Full => false,
        };
        return is_kept.then_some(index);
    }
    let mut pairs = join.on.iter();
    match join.join_type {
        JoinType::LeftSemi if of == JoinSide::Left => {
            pairs.find(|(left, _)| place_of(left) == Some(index)).and_then(|it| place_of(&it.1))
        }
        JoinType::RightSemi if of == JoinSide::Right => {
            pairs.find(|(_, right)| place_of(right) == Some(index)).and_then(|it| place_of(&it.0))
        }
        _ => None,
    }
}

/// Where a column of a join's full output comes from; `None` for the mark of a match.
fn column_of(join: &HashJoinExec, index: usize) -> Option<ColumnIndex> {
    let left = join.left.schema().fields().len();
    let right = join.right.schema().fields().len();
    let of = |side, index| Some(ColumnIndex { index, side });
    match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            match index.checked_sub(left) {
                None => of(JoinSide::Left, index),
                Some(index) => of(JoinSide::Right, index),
            }
        }
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark if index < left => {
            of(JoinSide::Left, index)
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if index < right => {
            of(JoinSide::Right, index)
        }
        _ => None,
    }
}

/// The recursive part of a query, which runs once for each iteration. DataFusion takes the dynamic filters off a join
/// before it runs it again, so without this operator each iteration would read the whole of the tables that it joins.
/// Here the joins of each iteration get filters of their own, and a scan looks up the keys of that iteration's rows.
#[derive(Debug)]
struct IterationExec {
    rows: Arc<dyn ExecutionPlan>,
    /// Whether there are such joins.
    is_joined: bool,
}

impl IterationExec {
    /// Over this recursive part, or the part itself if it is one.
    fn over(rows: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match rows.is::<Self>() {
            true => Arc::clone(rows),
            false => Arc::new(Self { rows: Arc::clone(rows), is_joined: has_join(rows) }),
        }
    }
}

impl DisplayAs for IterationExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Iteration")
    }
}

impl ExecutionPlan for IterationExec {
    fn name(&self) -> &str {
        "Iteration"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    over_one_input!(rows);

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(rows), true) => Ok(Arc::new(Self { rows, is_joined: self.is_joined })),
            _ => exec_err!("an iteration has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        if !self.is_joined {
            return self.rows.execute(partition, context);
        }
        let rows = with_dynamic_filters(&self.rows, context.session_config().options())?;
        rows.execute(partition, context)
    }
}

fn has_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<HashJoinExec>() || plan.children().into_iter().any(has_join)
}
