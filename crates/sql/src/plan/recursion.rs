//! Runs recursive common table expressions in MySQL's order. Each query block that reads the expression's rows has a place
//! in them: it runs over the rows behind its place, which gives further rows, until it has read all; then the next block
//! does. So a LIMIT takes the rows that MySQL takes.
//!
//! DataFusion's own operator, which this one replaces, has one such block with one reference, and tells rows apart by their
//! bytes instead of by their collations.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    arrow::{
        array::{BooleanArray, RecordBatch},
        compute::{BatchCoalescer, filter_record_batch},
        datatypes::{Field, Schema, SchemaRef},
    },
    catalog::{Session, TableProvider},
    common::{
        DFSchema, Statistics,
        config::ConfigOptions,
        exec_err,
        stats::Precision,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::{DataFusionError, Result as PlanResult},
    execution::{
        SendableRecordBatchStream, TaskContext,
        context::ExecutionProps,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    logical_expr::{Expr, TableType, physical_planning_context::PhysicalPlanningContext},
    physical_expr::{EquivalenceProperties, PhysicalExpr, create_physical_expr},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan,
        InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
        aggregates::{
            group_values::{GroupValues, new_group_values},
            order::GroupOrdering,
        },
        common::project_plan_to_schema,
        coop::cooperative,
        execution_plan::{Boundedness, EmissionType, SchedulingType, reset_plan_states},
        memory::MemoryStream,
        projection::ProjectionExec,
        recursive_query::RecursiveQueryExec,
        statistics::StatisticsArgs,
        stream::RecordBatchStreamAdapter,
        union::UnionExec,
    },
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use remora_mysql::ErrorCode;

use super::watch::check;
use crate::{Error, meaning::distinct_keys, nodes::TreeNode, state::Context};

/// The number of rows that one round is expected to give to the next. A join then reads them first and looks up their
/// keys in the other table.
const ROWS_OF_A_ROUND: usize = 8;
/// A block gathers the rows of other blocks until they take so many bytes, however few they are.
const MOST_BYTES: usize = 4 << 20;

/// The rows that a block reads in this round.
type RoundRows = Mutex<Vec<RecordBatch>>;

/// The rule, which comes before all others.
#[derive(Debug)]
pub(super) struct Recursions;

impl PhysicalOptimizerRule for Recursions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let done = plan.transform_up(|node| {
            let Some(query) = node.downcast_ref::<RecursiveQueryExec>() else {
                return Ok(Transformed::no(node));
            };
            let recursion = RecursionExec::of(query, options)?;
            Ok(Transformed::yes(Arc::new(recursion) as Arc<dyn ExecutionPlan>))
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "recursions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of a recursive expression, as its own blocks name them.
#[derive(Debug)]
pub(super) struct WorkingTable {
    name: String,
    schema: SchemaRef,
}

impl WorkingTable {
    /// For the expression of this name.
    pub(super) fn new(name: &str, schema: SchemaRef) -> Self {
        Self { name: name.to_owned(), schema }
    }
}

#[async_trait]
impl TableProvider for WorkingTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.schema.project(projection)?),
            None => Arc::clone(&self.schema),
        };
        let properties = properties(schema).with_scheduling_type(SchedulingType::Cooperative);
        Ok(Arc::new(RoundExec {
            name: self.name.clone(),
            projection: projection.cloned(),
            rows: None,
            properties: Arc::new(properties),
        }))
    }
}

fn properties(schema: SchemaRef) -> PlanProperties {
    let one = Partitioning::UnknownPartitioning(1);
    let equal = EquivalenceProperties::new(schema);
    PlanProperties::new(equal, one, EmissionType::Incremental, Boundedness::Bounded)
}

/// Reads the rows of a round.
#[derive(Clone, Debug)]
pub(crate) struct RoundExec {
    name: String,
    projection: Option<Vec<usize>>,
    /// Set when the recursion runs.
    rows: Option<Arc<RoundRows>>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for RoundExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Rows of a round of {}", self.name)
    }
}

impl ExecutionPlan for RoundExec {
    fn name(&self) -> &str {
        "Round"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> PlanResult<Arc<Statistics>> {
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(unknown.with_num_rows(Precision::Inexact(ROWS_OF_A_ROUND))))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        let Some(rows) = &self.rows else {
            return exec_err!("the rows of {} are read outside of its recursion", self.name);
        };
        let mut batches = rows.lock().clone();
        if let Some(projection) = &self.projection {
            let projected = batches.iter().map(|batch| batch.project(projection));
            batches = projected.collect::<Result<_, _>>()?;
        }
        let stream = MemoryStream::try_new(batches, self.schema(), None)?;
        Ok(Box::pin(cooperative(stream)))
    }
}

/// A recursive expression.
#[derive(Debug)]
pub(crate) struct RecursionExec {
    name: String,
    /// The rows that it begins with.
    first: Arc<dyn ExecutionPlan>,
    /// The blocks that read its rows.
    blocks: Vec<Arc<dyn ExecutionPlan>>,
    /// What tells rows apart if equal ones are left out.
    keys: Option<Arc<[Arc<dyn PhysicalExpr>]>>,
    properties: Arc<PlanProperties>,
}

impl RoundExec {
    /// The name of the expression whose rows it reads, and the columns that it keeps, if not all.
    pub(crate) fn parts(&self) -> (&str, Option<&[usize]>) {
        (&self.name, self.projection.as_deref())
    }
}

impl RecursionExec {
    /// Its name.
    pub(crate) fn named(&self) -> &str {
        &self.name
    }

    /// The rows that it begins with.
    pub(crate) fn first(&self) -> &Arc<dyn ExecutionPlan> {
        &self.first
    }

    /// The blocks that read its rows.
    pub(crate) fn blocks(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.blocks
    }

    /// What tells rows apart, if equal ones are left out.
    pub(crate) fn keys(&self) -> Option<&Arc<[Arc<dyn PhysicalExpr>]>> {
        self.keys.as_ref()
    }

    /// What DataFusion made of an expression.
    fn of(query: &RecursiveQueryExec, options: &ConfigOptions) -> PlanResult<Self> {
        let schema = query.schema();
        let keys = match query.is_distinct() {
            true => Some(keys_of(&schema, options)?),
            false => None,
        };
        Ok(Self {
            name: query.name().to_owned(),
            first: Arc::clone(query.static_term()),
            blocks: blocks_of(query.recursive_term(), &schema)?,
            keys,
            properties: Arc::new(properties(schema)),
        })
    }
}

fn keys_of(
    schema: &SchemaRef,
    options: &ConfigOptions,
) -> PlanResult<Arc<[Arc<dyn PhysicalExpr>]>> {
    let columns = DFSchema::try_from(Arc::clone(schema))?;
    let mut properties = ExecutionProps::new();
    properties.mark_start_execution(Arc::new(options.clone()));
    let planning = PhysicalPlanningContext::default();
    let keys = distinct_keys(&columns)?;
    let keys = keys.iter().map(|key| create_physical_expr(key, &columns, &properties, &planning));
    keys.collect()
}

/// The blocks of which the recursive part is the UNION ALL.
fn blocks_of(
    term: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
) -> PlanResult<Vec<Arc<dyn ExecutionPlan>>> {
    let parts = parts_of(term)?.into_iter().map(|part| project_plan_to_schema(part, schema));
    match parts.collect::<PlanResult<Vec<_>>>() {
        Ok(parts) => Ok(parts),
        // Then the blocks run beside each other. This changes the order of the rows only.
        Err(_) => Ok(vec![Arc::clone(term)]),
    }
}

fn parts_of(plan: &Arc<dyn ExecutionPlan>) -> PlanResult<Vec<Arc<dyn ExecutionPlan>>> {
    if plan.is::<UnionExec>() {
        let parts = plan.children().into_iter().map(parts_of);
        return Ok(parts.collect::<PlanResult<Vec<_>>>()?.into_iter().flatten().collect());
    }
    let Some(shown) = plan.downcast_ref::<ProjectionExec>() else {
        return Ok(vec![Arc::clone(plan)]);
    };
    let parts = parts_of(shown.input())?;
    if parts.len() == 1 {
        return Ok(vec![Arc::clone(plan)]);
    }
    let shown = |part| {
        let shown = ProjectionExec::try_new(shown.expr().iter().cloned(), part)?;
        Ok(Arc::new(shown) as Arc<dyn ExecutionPlan>)
    };
    parts.into_iter().map(shown).collect()
}

impl DisplayAs for RecursionExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Recursion of {}", self.name)
    }
}

impl ExecutionPlan for RecursionExec {
    fn name(&self) -> &str {
        "Recursion"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        std::iter::once(&self.first).chain(&self.blocks).collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let one = std::iter::repeat_n(Distribution::SinglePartition, self.blocks.len() + 1);
        InputDistributionRequirements::new(one.collect())
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.blocks.len() + 1]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.blocks.len() + 1]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        let Some(first) = children.next() else {
            return exec_err!("a recursion begins with rows");
        };
        Ok(Arc::new(Self {
            name: self.name.clone(),
            first,
            blocks: children.collect(),
            keys: self.keys.clone(),
            properties: Arc::clone(&self.properties),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        if partition != 0 {
            return exec_err!("a recursion has one partition");
        }
        let rows = Arc::new(RoundRows::default());
        let schema = self.schema();
        let is_alone = self.blocks.len() == 1;
        let of = |plan: &Arc<dyn ExecutionPlan>| {
            let plan = reading(plan, &self.name, &rows)?;
            Ok(Block::new(plan, (!is_alone).then_some(&schema), &context))
        };
        let blocks = self.blocks.iter().map(of).collect::<PlanResult<Vec<_>>>()?;
        let seen = match &self.keys {
            Some(keys) => Some(Seen::new(Arc::clone(keys), &schema, &context)?),
            None => None,
        };
        let options = context.session_config().options();
        let most = Context::of_options(options).map(|context| context.most_recursion_rounds);
        let recursion = RunningRecursion {
            running: Some(self.first.execute(0, Arc::clone(&context))?),
            rows,
            blocks,
            turn: 0,
            seen,
            most: most.unwrap_or(u64::MAX),
            context,
        };
        let batches = stream::try_unfold(recursion, |mut recursion| async move {
            Ok(recursion.next().await?.map(|batch| (batch, recursion)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The block, whose references read these rows.
fn reading(
    plan: &Arc<dyn ExecutionPlan>,
    name: &str,
    rows: &Arc<RoundRows>,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let done = Arc::clone(plan).transform_down(|node| {
        let Some(round) = node.downcast_ref::<RoundExec>().filter(|round| round.name == name)
        else {
            return Ok(Transformed::no(node));
        };
        let round = RoundExec { rows: Some(Arc::clone(rows)), ..round.clone() };
        Ok(Transformed::yes(Arc::new(round) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(done.data)
}

/// A running recursion.
struct RunningRecursion {
    context: Arc<TaskContext>,
    rows: Arc<RoundRows>,
    blocks: Vec<Block>,
    /// The block that runs, or is the first to run.
    turn: usize,
    /// The rows that it begins with, or those of a round.
    running: Option<SendableRecordBatchStream>,
    seen: Option<Seen>,
    /// The most rounds of a block.
    most: u64,
}

impl RunningRecursion {
    async fn next(&mut self) -> PlanResult<Option<RecordBatch>> {
        loop {
            let Some(running) = &mut self.running else {
                match self.begin()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            match running.next().await.transpose()? {
                Some(batch) => {
                    if let Some(batch) = self.taken(batch)? {
                        return Ok(Some(batch));
                    }
                }
                None => self.running = None,
            }
        }
    }

    /// Keeps rows for the blocks, and returns them; `None` if there are none.
    fn taken(&mut self, batch: RecordBatch) -> PlanResult<Option<RecordBatch>> {
        let batch = match &mut self.seen {
            Some(seen) => seen.new_rows(batch)?,
            None => batch,
        };
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        for (index, block) in self.blocks.iter_mut().enumerate() {
            block.add(&batch, index == self.turn)?;
        }
        Ok(Some(batch))
    }

    /// Begins the next round; `false` if all blocks have read all rows. Error 3636 after too many rounds.
    fn begin(&mut self) -> PlanResult<bool> {
        check(self.context.session_config().options())?;
        let count = self.blocks.len();
        for _ in 0..count {
            let Some(block) = self.blocks.get_mut(self.turn) else { return Ok(false) };
            let batches = block.unread()?;
            if batches.is_empty() {
                self.turn = (self.turn + 1) % count;
                continue;
            }
            block.rounds += 1;
            if block.rounds > self.most {
                return Err(too_deep(block.rounds));
            }
            *self.rows.lock() = batches;
            let plan = reset_plan_states(Arc::clone(&block.plan))?;
            self.running = Some(plan.execute(0, Arc::clone(&self.context))?);
            return Ok(true);
        }
        self.rows.lock().clear();
        Ok(false)
    }
}

fn too_deep(rounds: u64) -> DataFusionError {
    let message = format!(
        "Recursive query aborted after {rounds} iterations. Try increasing \
         @@cte_max_recursion_depth to a larger value."
    );
    DataFusionError::External(Box::new(Error::new(ErrorCode::RecursionDepth, message)))
}

/// A block, and the rows that it has not read.
struct Block {
    plan: Arc<dyn ExecutionPlan>,
    rounds: u64,
    /// The rows of its last round, or those that it begins with, as they came.
    own: Vec<RecordBatch>,
    own_bytes: usize,
    /// The rows of other blocks, gathered: each of their rounds may give one row.
    others: Option<BatchCoalescer>,
    /// The rows that it reads in this round.
    read_bytes: usize,
    reservation: MemoryReservation,
}

impl Block {
    /// `others` is the schema if there are other blocks.
    fn new(
        plan: Arc<dyn ExecutionPlan>,
        others: Option<&SchemaRef>,
        context: &TaskContext,
    ) -> Self {
        let rows = context.session_config().batch_size();
        let others = others.map(|schema| {
            let gathering = BatchCoalescer::new(Arc::clone(schema), rows);
            gathering.with_biggest_coalesce_batch_size(Some(rows / 2))
        });
        let reservation = MemoryConsumer::new("Recursion").register(context.memory_pool());
        let (own, own_bytes, read_bytes) = (Vec::new(), 0, 0);
        Self { plan, rounds: 0, own, own_bytes, others, read_bytes, reservation }
    }

    /// Adds rows, which may be its own.
    fn add(&mut self, batch: &RecordBatch, is_own: bool) -> PlanResult<()> {
        match &mut self.others {
            Some(others) if !is_own => {
                others.push_batch(batch.clone())?;
                if others.size() > MOST_BYTES {
                    others.finish_buffered_batch()?;
                }
            }
            _ => {
                self.own_bytes += batch.get_array_memory_size();
                self.own.push(batch.clone());
            }
        }
        let others = self.others.as_ref().map_or(0, BatchCoalescer::size);
        self.reservation.try_resize(self.read_bytes + self.own_bytes + others)
    }

    /// The rows that it has not read, as those of its next round.
    fn unread(&mut self) -> PlanResult<Vec<RecordBatch>> {
        let mut batches = std::mem::take(&mut self.own);
        self.read_bytes = std::mem::take(&mut self.own_bytes);
        if let Some(others) = &mut self.others {
            others.finish_buffered_batch()?;
            while let Some(batch) = others.next_completed_batch() {
                self.read_bytes += batch.get_array_memory_size();
                batches.push(batch);
            }
        }
        self.reservation.try_resize(self.read_bytes)?;
        Ok(batches)
    }
}

/// The distinct rows of a recursion.
struct Seen {
    keys: Arc<[Arc<dyn PhysicalExpr>]>,
    values: Box<dyn GroupValues>,
    /// The numbers of the values of a batch, as they were first seen.
    numbers: Vec<usize>,
    reservation: MemoryReservation,
}

impl Seen {
    fn new(
        keys: Arc<[Arc<dyn PhysicalExpr>]>,
        schema: &SchemaRef,
        context: &TaskContext,
    ) -> PlanResult<Self> {
        let fields = keys
            .iter()
            .enumerate()
            .map(|(index, key)| Ok(Field::new(index.to_string(), key.data_type(schema)?, true)));
        let fields = fields.collect::<PlanResult<Vec<_>>>()?;
        let values = new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?;
        let reservation = MemoryConsumer::new("DistinctRecursion").register(context.memory_pool());
        Ok(Self { keys, values, numbers: Vec::new(), reservation })
    }

    /// The rows that were not there before.
    fn new_rows(&mut self, batch: RecordBatch) -> PlanResult<RecordBatch> {
        let rows = batch.num_rows();
        let keys = self.keys.iter().map(|key| key.evaluate(&batch)?.into_array(rows));
        let keys = keys.collect::<PlanResult<Vec<_>>>()?;
        let mut next = self.values.len();
        let known = next;
        self.numbers.clear();
        self.values.intern(&keys, &mut self.numbers)?;
        self.reservation.try_resize(self.values.size())?;
        if self.values.len() - known == rows {
            return Ok(batch);
        }
        let is_new = self.numbers.iter().map(|number| {
            let is_new = *number >= next;
            next = next.max(number + 1);
            Some(is_new)
        });
        Ok(filter_record_batch(&batch, &is_new.collect::<BooleanArray>())?)
    }
}
