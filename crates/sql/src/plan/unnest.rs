//! Unnesting: one row for each number of a set, for GROUP BY of a multi-value attribute.
//!
//! ```text
//! Aggregate: groups of #each(t.tags)            Aggregate: groups of the column that is called so
//!   Filter: … AND #unfold(#each(t.tags))  ──→     Unfold: a row for each number of t.tags, and the number
//!     Scan: t                                       Filter: … AND #unfold(t.tags)
//!                                                     Scan: t
//! ```
//! The other columns are repeated for each number. A row with an empty set is dropped. Output batches are bounded,
//! however many numbers the sets have.

use std::{cmp::Ordering, collections::VecDeque, fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    arrow::{
        array::{Array, ArrayRef, Int64Array, RecordBatch, StringViewArray, UInt32Array},
        compute::{cast, take_arrays},
        datatypes::{FieldRef, SchemaRef},
    },
    catalog::Session,
    common::{
        Column, DFSchema, DFSchemaRef,
        config::ConfigOptions,
        exec_err, plan_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext, context::QueryPlanner},
    logical_expr::{
        Expr, ExprSchemable, Extension, LogicalPlan, UserDefinedLogicalNode,
        UserDefinedLogicalNodeCore, expr::ScalarFunction, expr_rewriter::NamePreserver,
        physical_planning_context::PhysicalPlanningContext, utils::merge_schema,
    },
    optimizer::AnalyzerRule,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        stream::RecordBatchStreamAdapter,
    },
    physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner},
};
use futures::{StreamExt, TryStreamExt};

use super::{
    json_table::{self, JsonRows},
    lateral_rows::{self, LateralRows},
    operator::{over_one_input, properties_over},
    row_by_row::{self, RowByRowProjection},
    watch,
};
use crate::{
    meaning::{EACH, UNFOLD},
    multi::numbers,
    nodes::{TreeNode, WholePlan},
};

/// Rows in an output batch.
const ROWS: usize = 8_192;

/// The rule that inserts the unnesting node.
#[derive(Debug)]
pub(super) struct UnnestRule;

impl AnalyzerRule for UnnestRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_asked = false;
        plan.apply_whole(|node| {
            if let LogicalPlan::Filter(filter) = node {
                is_asked |= filter.predicate.exists(|expr| Ok(is_call(expr, UNFOLD)))?;
            }
            Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_asked {
            return Ok(plan);
        }
        plan.transform_whole(unfolded).map(|done| done.data)
    }

    fn name(&self) -> &str {
        "unfolding"
    }
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == name)
}

/// Rewrites a node above an unnesting, or adds the unnesting above a filter that asks for it.
fn unfolded(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let below = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let mut asked: Vec<Expr> = Vec::new();
    let done = plan.transform_expressions(|expr| {
        let name = names.save(&expr);
        let new = expr.transform_down(|expr| Ok(meant(expr, &below, &mut asked)))?;
        let (new, is_new) = (name.restore(new.data), new.transformed);
        Ok(Transformed::new(new, is_new, TreeNodeRecursion::Continue))
    })?;
    if !done.transformed {
        return Ok(Transformed::no(done.data));
    }
    let mut plan = done.data.recompute_schema()?;
    for each in asked {
        let node = UnnestSet::of(plan, &each)?;
        plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
    }
    Ok(Transformed::yes(plan))
}

/// Replaces `#each` by the column with the number, and collects the sets to unnest.
fn meant(expr: Expr, below: &DFSchema, asked: &mut Vec<Expr>) -> Transformed<Expr> {
    let Expr::ScalarFunction(call) = &expr else { return Transformed::no(expr) };
    if call.name() == UNFOLD
        && let [each @ Expr::ScalarFunction(of)] = call.args.as_slice()
        && of.name() == EACH
    {
        if !asked.contains(each) {
            asked.push(each.clone());
        }
        let call = ScalarFunction { func: Arc::clone(&call.func), args: of.args.clone() };
        return Transformed::new(Expr::ScalarFunction(call), true, TreeNodeRecursion::Jump);
    }
    if call.name() == EACH {
        let name = expr.schema_name().to_string();
        if below.has_column_with_unqualified_name(&name) {
            return Transformed::yes(Expr::Column(Column::new_unqualified(name)));
        }
    }
    Transformed::no(expr)
}

/// The unnesting node: a row for each number of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnnestSet {
    input: LogicalPlan,
    set: Column,
    number: FieldRef,
    /// The input's columns, then the number.
    schema: DFSchemaRef,
}

impl UnnestSet {
    /// Unnests a set of the input's rows.
    fn of(input: LogicalPlan, each: &Expr) -> Result<Self> {
        let Expr::ScalarFunction(call) = each else { return plan_err!("a set has numbers") };
        let [Expr::Column(set)] = call.args.as_slice() else {
            return plan_err!("a set whose numbers are grouped by is a column");
        };
        let (_, field) = each.to_field(input.schema().as_ref())?;
        let number = field.as_ref().clone().with_name(each.schema_name().to_string());
        Self::new(input, set.clone(), Arc::new(number))
    }

    fn new(input: LogicalPlan, set: Column, number: FieldRef) -> Result<Self> {
        let columns = input.schema().iter();
        let mut fields: Vec<_> =
            columns.map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
        fields.push((None, Arc::clone(&number)));
        // The input's keys repeat here, so they are dropped.
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        Ok(Self { input, set, number, schema })
    }
}

impl PartialOrd for UnnestSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for UnnestSet {
    fn name(&self) -> &str {
        "Unfold"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![Expr::Column(self.set.clone())]
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Unfold: {}", self.set)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (exprs.as_slice(), <[LogicalPlan; 1]>::try_from(inputs)) {
            ([Expr::Column(set)], Ok([input])) => {
                Self::new(input, set.clone(), Arc::clone(&self.number))
            }
            _ => plan_err!("numbers are those of a column of one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = self.input.schema().fields().len();
        let set = self.input.schema().index_of_column(&self.set).ok()?;
        let passed = output_columns.iter().copied().filter(|column| *column < columns);
        let mut needed: Vec<usize> = passed.chain([set]).collect();
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// Plans our extension nodes: unnesting, JSON_TABLE and LATERAL queries.
#[derive(Debug)]
pub(super) struct UnnestPlanner;

#[async_trait]
impl QueryPlanner for UnnestPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Self)]);
        planner.create_physical_plan(plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for UnnestPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let ([below, ..], [input, ..]) = (logical_inputs, physical_inputs) else {
            return Ok(None);
        };
        if let Some(rows) = node.as_any().downcast_ref::<JsonRows>() {
            let (schema, input) = (below.schema().as_ref(), Arc::clone(input));
            return json_table::planned(rows, schema, input, session).map(Some);
        }
        if let Some(turn) = node.as_any().downcast_ref::<RowByRowProjection>() {
            let (schema, input) = (below.schema().as_ref(), Arc::clone(input));
            return row_by_row::planned(turn, schema, input, session).map(Some);
        }
        if let Some(rows) = node.as_any().downcast_ref::<LateralRows>() {
            let (schema, input) = (below.schema().as_ref(), Arc::clone(input));
            return lateral_rows::planned(rows, schema, input, session).map(Some);
        }
        let Some(unnest) = node.as_any().downcast_ref::<UnnestSet>() else { return Ok(None) };
        let set = below.schema().index_of_column(&unnest.set)?;
        let schema = Arc::clone(unnest.schema.inner());
        Ok(Some(Arc::new(UnnestSetExec::new(Arc::clone(input), set, schema))))
    }
}

/// The unnesting operator.
#[derive(Clone, Debug)]
struct UnnestSetExec {
    input: Arc<dyn ExecutionPlan>,
    /// The position of the set's column.
    set: usize,
    properties: Arc<PlanProperties>,
}

impl UnnestSetExec {
    fn new(input: Arc<dyn ExecutionPlan>, set: usize, schema: SchemaRef) -> Self {
        let properties = properties_over(&input, schema);
        Self { input, set, properties }
    }
}

impl DisplayAs for UnnestSetExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("A row for each number of a set")
    }
}

impl ExecutionPlan for UnnestSetExec {
    fn name(&self) -> &'static str {
        "UnnestSetExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    over_one_input!(input);

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(Self::new(input, self.set, self.schema()))),
            None => exec_err!("numbers are those of an input's sets"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let options = Arc::clone(context.session_config().options());
        let (set, schema) = (self.set, self.schema());
        let input = self.input.execute(partition, context)?;
        let rows = input.and_then(move |batch| {
            let (schema, options) = (Arc::clone(&schema), Arc::clone(&options));
            futures::future::ready(Batches::new(batch, set, schema, options))
        });
        let rows = rows.map_ok(futures::stream::iter).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// The output batches of one input batch.
struct Batches {
    batch: RecordBatch,
    sets: StringViewArray,
    schema: SchemaRef,
    options: Arc<ConfigOptions>,
    /// The next row of the input batch.
    next: usize,
    /// Numbers of the previous row that were not returned yet.
    left: VecDeque<i64>,
}

impl Batches {
    fn new(
        batch: RecordBatch,
        set: usize,
        schema: SchemaRef,
        options: Arc<ConfigOptions>,
    ) -> Result<Self> {
        let sets = batch.columns().get(set);
        let sets = sets.and_then(|sets| sets.as_any().downcast_ref::<StringViewArray>()).cloned();
        let Some(sets) = sets else { return exec_err!("a set is held as a text") };
        Ok(Self { batch, sets, schema, options, next: 0, left: VecDeque::new() })
    }

    fn made(&self, rows: Vec<u32>, numbers: Vec<i64>) -> Result<RecordBatch> {
        watch::check(&self.options)?;
        let rows = UInt32Array::from(rows);
        let mut columns = take_arrays(self.batch.columns(), &rows, None)?;
        let numbers = Arc::new(Int64Array::from(numbers)) as ArrayRef;
        let number = self.schema.field(self.schema.fields().len().saturating_sub(1));
        columns.push(cast(&numbers, number.data_type())?);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut rows, mut given) = (Vec::new(), Vec::new());
        while given.len() < ROWS {
            if let Some(number) = self.left.pop_front() {
                // `next` is already past the row of these numbers.
                rows.push(u32::try_from(self.next.saturating_sub(1)).unwrap_or(u32::MAX));
                given.push(number);
            } else if self.next < self.sets.len() {
                if !self.sets.is_null(self.next) {
                    self.left.extend(numbers(self.sets.value(self.next)));
                }
                self.next += 1;
            } else {
                break;
            }
        }
        (!given.is_empty()).then(|| self.made(rows, given))
    }
}
