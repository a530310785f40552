//! Late materialization of excerpts: they are made only for the rows that remain after ORDER BY and LIMIT. Their texts
//! are read late too, by the keys of those rows, so that a sort holds keys instead of texts.
//!
//! ```text
//! Limit, Sort with a limit                        Late: excerpts of the texts of these keys
//!   Project: id, excerpt of body          ──→       Limit, Sort with a limit
//!     Scan: id, body                                  Project: id, key
//!                                                       Scan: id, key
//! ```
//! Excerpts of groups (`GROUP BY`, `FACET … BY`) are made of the texts that the groups hold. A plan in which anything
//! else reads the texts or uses the excerpts is not changed. PACKEDFACTORS() is made late too: as a column of the scan
//! it would be computed for all matching rows.

use std::{collections::BTreeSet, fmt, sync::Arc};

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch, RecordBatchOptions},
        datatypes::{Schema, SchemaRef},
    },
    common::{
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::Volatility,
    physical_expr::{
        EquivalenceProperties, PhysicalExpr, ScalarFunctionExpr, expressions::Column,
        utils::collect_columns,
    },
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions,
        aggregates::AggregateExec,
        apply_expression_roots,
        coalesce_partitions::CoalescePartitionsExec,
        coop::CooperativeExec,
        filter::FilterExec,
        limit::{GlobalLimitExec, LocalLimitExec},
        projection::ProjectionExec,
        sorts::{sort::SortExec, sort_preserving_merge::SortPreservingMergeExec},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::watch;
use crate::{
    nodes::TreeNode,
    scan::{LateColumns, ScanExec},
};

type Plan = Arc<dyn ExecutionPlan>;
/// An expression of a projection and its name.
type Named = (Arc<dyn PhysicalExpr>, String);

/// The functions that are evaluated late.
const LATE: [&str; 2] = ["#highlight", "#snippet"];
/// Rows whose texts are in memory at once.
const ROWS: usize = 16;
/// The rows for factors alone. The keyword query is planned anew for each batch, so batches are
/// larger.
const FACTOR_ROWS: usize = 256;

/// The plan with late excerpts and factors.
pub(super) fn late(plan: Plan) -> Result<Plan> {
    let plan = projecting(plan)?;
    let done = plan.transform_down(|node| match Moving::of(&node)? {
        Some(made) => Ok(Transformed::new(made, true, TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(node)),
    });
    done.map(|done| done.data)
}

/// Adds a projection above each scan that computes factors and whose rows are sorted or limited. Late evaluation needs
/// a projection.
fn projecting(plan: Plan) -> Result<Plan> {
    let done = plan.transform_up(|node| {
        let below = match node.children().as_slice() {
            [below] if passes_rows(&node) && !told_by(below).is_empty() => Some(Arc::clone(below)),
            _ => None,
        };
        let Some(below) = below else { return Ok(Transformed::no(node)) };
        let schema = below.schema();
        let fields = schema.fields().iter().enumerate();
        let columns = fields.map(|(place, field)| {
            let column = Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>;
            (column, field.name().clone())
        });
        let below = ProjectionExec::try_new(columns.collect::<Vec<Named>>(), below)?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(node.replace_children(vec![Arc::new(below)], options)?))
    });
    done.map(|done| done.data)
}

/// The positions of a scan's factor columns, also through filters; empty for other plans.
fn told_by(plan: &Plan) -> BTreeSet<usize> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return (0..plan.schema().fields().len())
            .filter(|place| scan.tells_factors(*place))
            .collect();
    }
    let filter = plan.downcast_ref::<FilterExec>();
    let told = match plan.children().as_slice() {
        [below] if filter.is_some() || plan.is::<CooperativeExec>() => told_by(below),
        _ => return BTreeSet::new(),
    };
    match filter.and_then(|filter| filter.projection().as_ref()) {
        Some(chosen) => {
            let places = chosen.iter().enumerate().filter(|(_, from)| told.contains(from));
            places.map(|(place, _)| place).collect()
        }
        None => told,
    }
}

/// Nodes that pass rows unchanged, down to a projection that makes excerpts.
struct Moving<'p> {
    /// The nodes from the top down. One of them has a limit.
    above: Vec<&'p Plan>,
    projection: &'p ProjectionExec,
    /// The positions of the projection's late expressions.
    late: BTreeSet<usize>,
}

impl<'p> Moving<'p> {
    /// The rewritten plan; `None` if it is not changed.
    fn of(top: &'p Plan) -> Result<Option<Plan>> {
        let Some(moving) = Self::find(top) else { return Ok(None) };
        let Some((below, late)) = moving.read_late()? else { return Ok(None) };
        moving.rebuilt(below, late)
    }

    fn find(top: &'p Plan) -> Option<Self> {
        let (mut above, mut node, mut is_limited) = (Vec::new(), top, false);
        loop {
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                let told = told_by(projection.input());
                let exprs = projection.expr().iter().enumerate();
                let late = exprs.filter(|(_, each)| is_late(&each.expr, &told));
                let late: BTreeSet<usize> = late.map(|(place, _)| place).collect();
                if !late.is_empty() {
                    return is_limited.then_some(Self { above, projection, late });
                }
                if !projection
                    .expr()
                    .iter()
                    .all(|each| each.expr.downcast_ref::<Column>().is_some())
                {
                    return None;
                }
            } else if !passes_rows(node) {
                return None;
            }
            is_limited |= node.fetch().is_some();
            above.push(node);
            let [below] = node.children()[..] else { return None };
            node = below;
        }
    }

    /// The input columns that the projection's late expressions read, or those that its other expressions read.
    fn columns(&self, of_late: bool) -> BTreeSet<usize> {
        let exprs = self.projection.expr().iter().enumerate();
        let exprs = exprs.filter(|(place, _)| self.late.contains(place) == of_late);
        exprs.flat_map(|(_, each)| places_of(&each.expr)).collect()
    }

    /// The projection's input, with keys instead of the columns read late; `None` if the late columns cannot be
    /// replaced. Groups keep the texts of their rows, which are in memory already.
    fn read_late(&self) -> Result<Option<(Plan, Option<LateRead>)>> {
        let held = self.columns(false);
        let places: Vec<usize> = self.columns(true).difference(&held).copied().collect();
        let below = self.projection.input();
        if places.is_empty() || has_groups(below) {
            return Ok(Some((Arc::clone(below), None)));
        }
        let Some((below, columns)) = keyed(below, &places)? else { return Ok(None) };
        Ok(Some((below, Some(LateRead { places, columns }))))
    }

    /// The projection with a placeholder instead of each late expression: the key, or the first column. The columns
    /// that both late and other expressions read are appended.
    fn projected(&self, below: Plan, key: usize, carried: &[usize]) -> Result<Plan> {
        let schema = below.schema();
        let column = |place: usize| {
            Arc::new(Column::new(schema.field(place).name(), place)) as Arc<dyn PhysicalExpr>
        };
        let exprs = self.projection.expr().iter().enumerate().map(|(place, each)| {
            let is_late = self.late.contains(&place);
            let expr = if is_late { column(key) } else { Arc::clone(&each.expr) };
            (expr, each.alias.clone())
        });
        let mut exprs: Vec<_> = exprs.collect();
        let carried = carried.iter().enumerate();
        exprs.extend(carried.map(|(number, &place)| (column(place), format!("#late{number}"))));
        Ok(Arc::new(ProjectionExec::try_new(exprs, below)?))
    }

    /// The nodes above the projection, rebuilt on `plan`. For each of their columns, the projection's column that it
    /// is. `None` if a sort uses a late expression.
    fn raised(&self, mut plan: Plan) -> Result<Option<(Plan, Vec<usize>)>> {
        let mut origins: Vec<usize> = (0..self.projection.expr().len()).collect();
        for &node in self.above.iter().rev() {
            let is_made =
                |place: &usize| origins.get(*place).is_some_and(|it| self.late.contains(it));
            if ordered_by(node).iter().any(|expr| places_of(expr).iter().any(is_made)) {
                return Ok(None);
            }
            plan = match node.downcast_ref::<ProjectionExec>() {
                Some(chosen) => {
                    let (chosen, from) = chosen_columns(chosen, &plan, origins.len());
                    origins = from.iter().filter_map(|&at| origins.get(at).copied()).collect();
                    Arc::new(ProjectionExec::try_new(chosen, plan)?)
                }
                None => {
                    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                    Arc::clone(node).replace_children(vec![plan], options)?
                }
            };
        }
        Ok(Some((plan, origins)))
    }

    fn rebuilt(&self, below: Plan, late: Option<LateRead>) -> Result<Option<Plan>> {
        let (Some(top), false) = (self.above.first(), below.schema().fields().is_empty()) else {
            return Ok(None);
        };
        let key = late.as_ref().and_then(|late| late.places.first()).copied().unwrap_or(0);
        let (of_late, held) = (self.columns(true), self.columns(false));
        let is_carried = |place: &usize| late.is_none() || held.contains(place);
        let carried: Vec<usize> = of_late.into_iter().filter(is_carried).collect();
        let projected = self.projected(below, key, &carried)?;
        let Some((plan, origins)) = self.raised(projected)? else { return Ok(None) };
        let is_made = |origin: &usize| self.late.contains(origin);
        let Some(key) = origins.iter().position(is_made) else { return Ok(None) };
        let behind = origins.len() + carried.len();
        let place = |column: usize| {
            let read = late.iter().flat_map(|late| &late.places).position(|it| *it == column);
            let carried = || carried.iter().position(|it| *it == column);
            read.map(|at| behind + at).or_else(|| carried().map(|at| origins.len() + at))
        };
        let mut outputs = Vec::with_capacity(origins.len());
        for (at, origin) in origins.iter().enumerate() {
            let made = self.projection.expr().get(*origin).filter(|_| is_made(origin));
            let expr = match made {
                Some(each) => moved(&each.expr, &place)?,
                None => Some(Arc::new(Column::new("", at)) as Arc<dyn PhysicalExpr>),
            };
            let Some(expr) = expr else { return Ok(None) };
            outputs.push(expr);
        }
        let read = late.map(|late| (key, late.columns));
        Ok(Some(Arc::new(LateExec::new(plan, read, outputs, top.schema()))))
    }
}

/// The columns that are read late.
struct LateRead {
    /// Their positions in the projection's input.
    places: Vec<usize>,
    columns: LateColumns,
}

/// Whether an expression has a function to evaluate late, or reads a factor column in `told`, and has no volatile
/// parts.
fn is_late(expr: &Arc<dyn PhysicalExpr>, told: &BTreeSet<usize>) -> bool {
    let (mut has_late, mut has_others) = (!places_of(expr).is_disjoint(told), false);
    // The closure never fails.
    let _ = expr.apply(|each| {
        if let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() {
            let is_late = LATE.contains(&call.fun().name());
            has_late |= is_late;
            let volatility = call.fun().signature().volatility;
            has_others |= !is_late && volatility == Volatility::Volatile;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    has_late && !has_others
}

/// Whether an expression makes an excerpt of a text.
fn makes_excerpt(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut makes = false;
    // The closure never fails.
    let _ = expr.apply(|each| {
        if let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() {
            makes |= LATE.contains(&call.fun().name());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    makes
}

/// Whether rows are groups, which HAVING may have filtered.
fn has_groups(plan: &Plan) -> bool {
    let passes =
        plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>();
    match plan.children().as_slice() {
        _ if plan.is::<AggregateExec>() => true,
        [below] if passes => has_groups(below),
        _ => false,
    }
}

fn passes_rows(node: &Plan) -> bool {
    node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<SortExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.is::<CoalescePartitionsExec>()
}

/// The expressions that a node sorts by.
fn ordered_by(node: &Plan) -> Vec<Arc<dyn PhysicalExpr>> {
    let order = node.downcast_ref::<SortExec>().map(SortExec::expr);
    let merged = || node.downcast_ref::<SortPreservingMergeExec>().map(|it| it.expr());
    let order = order.or_else(merged);
    order.into_iter().flat_map(|order| order.iter().map(|each| Arc::clone(&each.expr))).collect()
}

fn places_of(expr: &Arc<dyn PhysicalExpr>) -> BTreeSet<usize> {
    collect_columns(expr).iter().map(Column::index).collect()
}

/// The columns that a projection selects from the plan's first `count` ones, followed by all later columns, and their
/// positions.
fn chosen_columns(chosen: &ProjectionExec, plan: &Plan, count: usize) -> (Vec<Named>, Vec<usize>) {
    let (mut exprs, mut places) = (Vec::new(), Vec::new());
    for each in chosen.expr() {
        exprs.push((Arc::clone(&each.expr), each.alias.clone()));
        places.extend(each.expr.downcast_ref::<Column>().map(Column::index));
    }
    for (place, field) in plan.schema().fields().iter().enumerate().skip(count) {
        let column = Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>;
        exprs.push((column, field.name().clone()));
    }
    (exprs, places)
}

/// An expression with its columns moved; `None` if a column has no new position.
fn moved(
    expr: &Arc<dyn PhysicalExpr>,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut is_missing = false;
    let made = Arc::clone(expr).transform_up(|each| {
        let Some(column) = each.downcast_ref::<Column>() else { return Ok(Transformed::no(each)) };
        let Some(place) = place(column.index()) else {
            is_missing = true;
            return Ok(Transformed::no(each));
        };
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
    })?;
    Ok((!is_missing).then_some(made.data))
}

/// The plan with keys at these positions, and the reader of the replaced columns; `None` if the plan is more than a
/// filtered scan, or its own expressions read these columns.
fn keyed(plan: &Plan, places: &[usize]) -> Result<Option<(Plan, LateColumns)>> {
    let filter = plan.downcast_ref::<FilterExec>();
    let below: Vec<usize> = match filter.and_then(|filter| filter.projection().as_ref()) {
        // The filter selects some of its input's columns.
        Some(chosen) => places.iter().filter_map(|place| chosen.get(*place).copied()).collect(),
        None => places.to_vec(),
    };
    let places = below.as_slice();
    let mut is_read = false;
    plan.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
        is_read |= places_of(expr).iter().any(|place| places.contains(place));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if is_read {
        return Ok(None);
    }
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let scan = scan.is_of_columns(places).then(|| scan.keyed(places)).flatten();
        return Ok(scan.map(|(scan, late)| (Arc::new(scan) as Plan, late)));
    }
    let [below] = plan.children()[..] else { return Ok(None) };
    if filter.is_none() && !plan.is::<CooperativeExec>() {
        return Ok(None);
    }
    let Some((below, late)) = keyed(below, places)? else { return Ok(None) };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Ok(Some((Arc::clone(plan).replace_children(vec![below], options)?, late)))
}

/// Evaluates expressions over its input's rows and over columns that it reads by key.
#[derive(Clone)]
struct LateExec {
    input: Plan,
    /// The position of the key column, and the columns read by it, which follow the input's columns.
    read: Option<(usize, LateColumns)>,
    outputs: Vec<Arc<dyn PhysicalExpr>>,
    /// The input's columns followed by the columns read late.
    within: SchemaRef,
    /// The most rows evaluated at once.
    rows: usize,
    properties: Arc<PlanProperties>,
}

impl LateExec {
    fn new(
        input: Plan,
        read: Option<(usize, LateColumns)>,
        outputs: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Self {
        let mut fields: Vec<_> = input.schema().fields().iter().cloned().collect();
        fields.extend(read.iter().flat_map(|(_, columns)| columns.fields().iter().cloned()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        let (within, properties) = (Arc::new(Schema::new(fields)), Arc::new(properties));
        let has_excerpts = outputs.iter().any(makes_excerpt);
        let is_of_factors = read.as_ref().is_some_and(|(_, columns)| columns.are_factors());
        let rows = if is_of_factors && !has_excerpts { FACTOR_ROWS } else { ROWS };
        Self { input, read, outputs, within, rows, properties }
    }

    /// Evaluates the expressions for a batch.
    fn made(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        if let Some((key, late)) = &self.read
            && let Some(keys) = batch.columns().get(*key)
        {
            columns.extend(late.read(keys)?);
        }
        let rows = batch.num_rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let within =
            RecordBatch::try_new_with_options(Arc::clone(&self.within), columns, &options)?;
        let made = self.outputs.iter().map(|expr| expr.evaluate(&within)?.into_array(rows));
        let made: Vec<ArrayRef> = made.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new_with_options(self.schema(), made, &options)?)
    }
}

impl fmt::Debug for LateExec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LateExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for LateExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Excerpts of the rows that are left")
    }
}

impl ExecutionPlan for LateExec {
    fn name(&self) -> &'static str {
        "LateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.outputs, visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Plan>,
        _: ReplaceChildrenOptions,
    ) -> Result<Plan> {
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(Self { input, ..Self::clone(&self) })),
            None => exec_err!("what is made late is of an input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (this, options) = (self.clone(), Arc::clone(context.session_config().options()));
        let input = self.input.execute(partition, context)?;
        let rows = input.map_ok(move |batch| {
            let (this, options) = (this.clone(), Arc::clone(&options));
            let parts = (0..batch.num_rows()).step_by(this.rows).map(move |from| {
                watch::check(&options)?;
                this.made(&batch.slice(from, this.rows.min(batch.num_rows() - from)))
            });
            futures::stream::iter(parts)
        });
        let rows = rows.try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
