//! Runs JSON_TABLE, one document after the other. Output batches have some thousands of rows or some megabytes.

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
    physical_expr::PhysicalExpr,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::super::{
    operator::{one_child, properties_over},
    watch,
};
use crate::{
    error::from_plan,
    meaning::{
        external,
        json_table::{Documents, JsonCell, JsonRow, JsonTable},
    },
};

/// The most rows of an output batch, and the most bytes of their values.
const ROWS: usize = 8_192;
const BYTES: usize = 4 << 20;
/// Bytes of documents and their rows that are read before other tasks get the thread.
const READ_BYTES: usize = 16 << 20;
/// Memory of a document is accounted in steps of this size.
const COUNTED_BYTES: usize = 64 << 10;

/// The rows to make.
#[derive(Clone, Debug)]
pub(super) struct JsonRowsRequest {
    pub table: Arc<JsonTable>,
    /// The table's name in plans.
    pub called: Arc<str>,
    pub document: Arc<dyn PhysicalExpr>,
    /// Whether it is a LEFT JOIN.
    pub keeps: bool,
    /// The join condition of a LEFT JOIN.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
}

/// The JSON_TABLE operator.
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
        let properties = properties_over(&input, schema);
        Self { input, wanted, properties }
    }

    /// The table's name in plans.
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

    one_child!(input);

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

/// The batch, unless it is empty; then other tasks get the thread first.
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

/// The state that all batches share.
struct Making {
    wanted: JsonRowsRequest,
    schema: SchemaRef,
    options: Arc<ConfigOptions>,
    /// The memory reserved for the current document and its rows.
    room: MemoryReservation,
}

impl Making {
    /// The rows of one document, and the bytes that it and they took.
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

/// An output row.
struct Given {
    /// The row of the input batch.
    row: u32,
    /// The document's row; `None` for the row of NULLs.
    made: Option<JsonRow>,
}

/// The output batches of one input batch.
struct Batches {
    batch: RecordBatch,
    documents: Documents,
    making: Arc<Making>,
    /// The next row of the input batch.
    next: usize,
    /// Rows of the previous document that were not returned yet.
    left: VecDeque<JsonRow>,
    /// The bytes of documents read for the current output batch.
    read: usize,
    /// Whether the previous row's NULL row has not been returned yet.
    is_open: bool,
    /// Whether a document row of the previous row met the condition.
    is_met: bool,
    /// The error of a document, until the rows before it are returned.
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

    /// The next output row; `None` at the end or when `READ_BYTES` are used up.
    fn row(&mut self) -> Result<Option<Given>> {
        loop {
            // `next` is already past the row of these document rows.
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

    /// The next output rows, before the condition is applied.
    fn rows(&mut self) -> Vec<Given> {
        self.read = 0;
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        // A value counts twice: when it is gathered and in its column.
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

    /// Which rows are kept: those that meet the condition, and the NULL rows of inputs for which none does.
    fn kept(&mut self, batch: &RecordBatch, rows: &[Given]) -> Result<BooleanArray> {
        let met = match &self.making.wanted.condition {
            Some(condition) => {
                // The condition does not apply to NULL rows.
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

    /// Whether all rows of all documents were returned.
    fn is_over(&self) -> bool {
        self.left.is_empty() && !self.is_open && self.next >= self.batch.num_rows()
    }

    /// The next output batch, which may be empty before the end.
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
