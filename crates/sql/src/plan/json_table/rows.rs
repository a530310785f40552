//! Makes the rows: of one document after the other, some thousands or some megabytes at a time, however many it has.

use std::{collections::VecDeque, fmt, future, sync::Arc, task::Poll};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, BooleanArray, RecordBatch, StringViewBuilder, UInt32Array},
        compute::{filter_record_batch, take_arrays},
        datatypes::SchemaRef,
    },
    common::{
        cast::as_boolean_array, config::ConfigOptions, exec_err, tree_node::TreeNodeRecursion,
    },
    error::{DataFusionError, Result},
    execution::{
        SendableRecordBatchStream, TaskContext,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::super::watch;
use crate::{
    error::from_plan,
    meaning::{
        external,
        json_table::{Documents, JsonCell, JsonRow, JsonTable},
    },
};

/// Rows that are made at once, and bytes of their values.
const ROWS: usize = 8_192;
const BYTES: usize = 4 << 20;
/// What documents and their rows take that are read before other tasks have their turn.
const READ_BYTES: usize = 16 << 20;
/// Rows of a document that are counted together.
const COUNTED_BYTES: usize = 64 << 10;

/// What rows are made.
#[derive(Clone, Debug)]
pub(super) struct JsonRowsRequest {
    pub table: Arc<JsonTable>,
    /// What plans call the table.
    pub called: Arc<str>,
    pub document: Arc<dyn PhysicalExpr>,
    /// Whether rows whose documents have no rows are kept.
    pub keeps: bool,
    /// What the rows must meet, of those that are kept anyhow.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
}

/// Makes the rows.
#[derive(Clone, Debug)]
pub(crate) struct JsonRowsExec {
    input: Arc<dyn ExecutionPlan>,
    wanted: JsonRowsRequest,
    properties: Arc<PlanProperties>,
}

impl JsonRowsExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        wanted: JsonRowsRequest,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, wanted, properties: Arc::new(properties) }
    }

    /// What plans call the table.
    pub(crate) fn called(&self) -> &str {
        &self.wanted.called
    }
}

impl DisplayAs for JsonRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Rows of a document")
    }
}

impl ExecutionPlan for JsonRowsExec {
    fn name(&self) -> &'static str {
        "JsonRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        apply: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in [&self.wanted.document].into_iter().chain(&self.wanted.condition) {
            if apply(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(Self::new(input, self.wanted.clone(), self.schema()))),
            None => exec_err!("documents are those of an input"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let options = Arc::clone(context.session_config().options());
        let room = MemoryConsumer::new("json_table").register(context.memory_pool());
        let making =
            Arc::new(Making { wanted: self.wanted.clone(), schema: self.schema(), options, room });
        let input = self.input.execute(partition, context)?;
        let rows =
            input.and_then(move |batch| future::ready(Batches::new(batch, Arc::clone(&making))));
        let rows = rows.map_ok(futures::stream::iter).try_flatten();
        let rows = rows.try_filter_map(some).boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// A batch that has rows; after one that has none other tasks have their turn.
async fn some(batch: RecordBatch) -> Result<Option<RecordBatch>> {
    if batch.num_rows() > 0 {
        return Ok(Some(batch));
    }
    let mut has_waited = false;
    future::poll_fn(|waker| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        waker.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    Ok(None)
}

/// What all batches are made by.
struct Making {
    wanted: JsonRowsRequest,
    schema: SchemaRef,
    options: Arc<ConfigOptions>,
    /// What the document that rows are made of and its rows take.
    room: MemoryReservation,
}

impl Making {
    /// The rows of the document of a row, and what it and they take.
    fn rows(&self, documents: &Documents, row: usize) -> Result<(Vec<JsonRow>, usize)> {
        watch::check(&self.options)?;
        self.room.free();
        let (mut counted, mut read) = (0_usize, 0_usize);
        let mut count = |bytes: usize| {
            read = read.saturating_add(bytes);
            counted = counted.saturating_add(bytes);
            if counted < COUNTED_BYTES {
                return Ok(());
            }
            watch::check(&self.options).map_err(from_plan)?;
            let taken = std::mem::take(&mut counted);
            self.room.try_grow(taken).map_err(from_plan)
        };
        let document = documents.get(row, &mut count).map_err(external)?;
        let Some(document) = document else { return Ok((Vec::new(), read)) };
        let rows = self.wanted.table.rows(&document, &mut count).map_err(external)?;
        Ok((rows, read))
    }
}

/// A row that is to be given.
struct Given {
    /// The row of the batch below.
    row: u32,
    /// What its document has; `None` for what stands there if nothing else does.
    made: Option<JsonRow>,
}

/// The rows of one batch's documents, a batch at a time.
struct Batches {
    batch: RecordBatch,
    documents: Documents,
    making: Arc<Making>,
    /// The next row of the batch.
    next: usize,
    /// Rows of the document before that are not given yet.
    left: VecDeque<JsonRow>,
    /// What the documents take that were read for the rows that are gathered.
    read: usize,
    /// Whether what stands there if nothing else does is still to be given of the row before.
    is_open: bool,
    /// Whether a row was given of the row before that meets the condition.
    is_met: bool,
    /// What a document failed with, until the rows before it are given.
    failure: Option<DataFusionError>,
    has_failed: bool,
}

impl Batches {
    fn new(batch: RecordBatch, making: Arc<Making>) -> Result<Self> {
        let document = &making.wanted.document;
        let field = document.return_field(&batch.schema())?;
        let array = document.evaluate(&batch)?.into_array(batch.num_rows())?;
        let documents = Documents::new(&array, &field)?;
        Ok(Self {
            batch,
            documents,
            making,
            next: 0,
            left: VecDeque::new(),
            read: 0,
            is_open: false,
            is_met: false,
            failure: None,
            has_failed: false,
        })
    }

    /// The next row to be given; `None` where there is none, or none yet.
    fn row(&mut self) -> Result<Option<Given>> {
        loop {
            // The row that they are of was passed.
            let row = u32::try_from(self.next.saturating_sub(1)).unwrap_or(u32::MAX);
            if let Some(made) = self.left.pop_front() {
                return Ok(Some(Given { row, made: Some(made) }));
            }
            if std::mem::take(&mut self.is_open) {
                return Ok(Some(Given { row, made: None }));
            }
            if self.next >= self.batch.num_rows() || self.read >= READ_BYTES {
                return Ok(None);
            }
            let (rows, read) = self.making.rows(&self.documents, self.next)?;
            self.left = rows.into();
            self.read = self.read.saturating_add(read);
            self.is_open = self.making.wanted.keeps;
            self.next += 1;
        }
    }

    /// The next rows, those of no condition too.
    fn rows(&mut self) -> Vec<Given> {
        self.read = 0;
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        // Values as they are gathered, and in the columns that they become.
        let width = self.making.wanted.table.columns().len() * 2 * size_of::<JsonCell>();
        while self.failure.is_none() && rows.len() < ROWS && bytes < BYTES {
            let row = match self.row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            };
            let texts = row.made.iter().flatten().flatten();
            bytes += width + texts.map(|text| text.len()).sum::<usize>();
            rows.push(row);
        }
        rows
    }

    fn batch_of(&self, rows: &[Given]) -> Result<RecordBatch> {
        let places = UInt32Array::from_iter_values(rows.iter().map(|given| given.row));
        let mut columns = take_arrays(self.batch.columns(), &places, None)?;
        for at in 0..self.making.wanted.table.columns().len() {
            let mut column = StringViewBuilder::with_capacity(rows.len());
            for given in rows {
                let text = given.made.as_ref().and_then(|made| made.get(at)?.as_deref());
                column.append_option(text);
            }
            columns.push(Arc::new(column.finish()) as ArrayRef);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.making.schema), columns)?)
    }

    /// Which rows meet the condition, and which stand for those that have none.
    fn kept(&mut self, batch: &RecordBatch, rows: &[Given]) -> Result<BooleanArray> {
        let met = match &self.making.wanted.condition {
            Some(condition) => {
                // It is not asked of what stands there if nothing else does.
                let made: Vec<bool> = rows.iter().map(|given| given.made.is_some()).collect();
                let made = BooleanArray::from(made);
                let met = condition.evaluate_selection(batch, &made)?;
                Some(met.into_array(batch.num_rows())?)
            }
            None => None,
        };
        let met = met.as_ref().map(|met| as_boolean_array(met)).transpose()?;
        let mut kept = Vec::with_capacity(rows.len());
        for (at, given) in rows.iter().enumerate() {
            kept.push(match given.made {
                Some(_) => {
                    let is_met = met.is_none_or(|met| met.is_valid(at) && met.value(at));
                    self.is_met |= is_met;
                    is_met
                }
                None => !std::mem::take(&mut self.is_met),
            });
        }
        Ok(BooleanArray::from(kept))
    }

    /// Whether all rows of all documents were given.
    fn is_over(&self) -> bool {
        self.left.is_empty() && !self.is_open && self.next >= self.batch.num_rows()
    }

    /// The next rows, which can be none before the end.
    fn made(&mut self) -> Result<Option<RecordBatch>> {
        watch::check(&self.making.options)?;
        let rows = self.rows();
        if rows.is_empty() {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.is_over() {
                self.making.room.free();
                return Ok(None);
            }
        }
        let batch = self.batch_of(&rows)?;
        if rows.is_empty() || !self.making.wanted.keeps {
            return Ok(Some(batch));
        }
        let kept = self.kept(&batch, &rows)?;
        Ok(Some(filter_record_batch(&batch, &kept)?))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let made = self.made().transpose();
        self.has_failed = matches!(made, Some(Err(_)));
        made
    }
}
