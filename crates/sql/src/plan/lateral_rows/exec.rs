//! Runs a LATERAL query for one row after the other. Output batches have some thousands of rows or some megabytes; the
//! first ones are small, since a LIMIT above may need no more.

use std::{fmt, sync::Arc};

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array},
        compute::{cast, concat, take_arrays},
        datatypes::{FieldRef, Schema, SchemaRef},
    },
    common::{ScalarValue, config::ConfigOptions, exec_err, tree_node::TreeNodeRecursion},
    error::Result,
    execution::{
        SendableRecordBatchStream, TaskContext,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    physical_expr::PhysicalExpr,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        apply_expression_roots, stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::super::{
    operator::{one_child, properties_over},
    subquery::RowsQuery,
    watch,
};

/// The most rows of an output batch, and of the first one.
const ROWS: usize = 8_192;
const FIRST_ROWS: usize = 64;
/// The most bytes of the query's rows in an output batch; those of one outer row may be more.
const BYTES: usize = 4 << 20;

/// The operator.
#[derive(Clone)]
pub(super) struct LateralRowsExec {
    input: Arc<dyn ExecutionPlan>,
    query: Arc<RowsQuery>,
    /// The values that the query uses.
    outer: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether rows for which the query has none are kept.
    keeps: bool,
    properties: Arc<PlanProperties>,
}

impl LateralRowsExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        query: Arc<RowsQuery>,
        outer: Vec<Arc<dyn PhysicalExpr>>,
        keeps: bool,
        schema: SchemaRef,
    ) -> Self {
        let properties = properties_over(&input, schema);
        Self { input, query, outer, keeps, properties }
    }
}

impl fmt::Debug for LateralRowsExec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LateralRowsExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for LateralRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Rows of a LATERAL query for each row")
    }
}

impl ExecutionPlan for LateralRowsExec {
    fn name(&self) -> &'static str {
        "LateralRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    one_child!(input);

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.outer, visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return exec_err!("a LATERAL query has the rows before it");
        };
        let (query, outer) = (Arc::clone(&self.query), self.outer.clone());
        Ok(Arc::new(Self::new(input, query, outer, self.keeps, self.schema())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let options = Arc::clone(context.session_config().options());
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let (of, schema) = (self.clone(), self.schema());
        let rows = input.and_then(move |batch| {
            let room = MemoryConsumer::new("lateral").register(context.memory_pool());
            futures::future::ready(Batches::new(of.clone(), batch, Arc::clone(&options), room))
        });
        let rows = rows.map_ok(futures::stream::iter).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The output batches of one input batch.
struct Batches {
    of: LateralRowsExec,
    batch: RecordBatch,
    arrays: Vec<ArrayRef>,
    fields: Vec<FieldRef>,
    options: Arc<ConfigOptions>,
    /// The memory reserved for the query's rows.
    room: MemoryReservation,
    /// The next row of the input batch.
    next: usize,
    most: usize,
}

impl Batches {
    fn new(
        of: LateralRowsExec,
        batch: RecordBatch,
        options: Arc<ConfigOptions>,
        room: MemoryReservation,
    ) -> Result<Self> {
        let arrays = of.outer.iter().map(|it| it.evaluate(&batch)?.into_array(batch.num_rows()));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let schema = batch.schema();
        let fields = of.outer.iter().map(|it| it.return_field(&schema));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        Ok(Self { of, batch, arrays, fields, options, room, next: 0, most: FIRST_ROWS })
    }

    /// The query's rows for the next rows, and for each of them its row of the input batch.
    fn read(&mut self) -> Result<(Vec<u32>, Vec<RecordBatch>)> {
        let (mut places, mut found, mut bytes) = (Vec::new(), Vec::new(), 0);
        while self.next < self.batch.num_rows() && places.len() < self.most && bytes < BYTES {
            watch::check(&self.options)?;
            let row = self.next;
            self.next += 1;
            let values = self.arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            let values = values.collect::<Result<Vec<_>>>()?;
            let rows = self.of.query.rows(&values, &self.fields, &self.options)?;
            let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
            let place = u32::try_from(row).unwrap_or(u32::MAX);
            if count == 0 && self.of.keeps {
                places.push(place);
                found.push(self.no_row()?);
            }
            places.extend(std::iter::repeat_n(place, count));
            for rows in rows {
                bytes += rows.get_array_memory_size();
                self.room.try_resize(bytes)?;
                found.push(rows);
            }
        }
        self.most = self.most.saturating_mul(2).min(ROWS);
        Ok((places, found))
    }

    /// A row of NULLs in place of the query's rows.
    fn no_row(&self) -> Result<RecordBatch> {
        let schema = self.of.query.schema();
        let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
        let columns = columns.collect();
        let fields = schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    fn made(&self, places: Vec<u32>, found: &[RecordBatch]) -> Result<RecordBatch> {
        let rows = places.len();
        let mut columns = take_arrays(self.batch.columns(), &UInt32Array::from(places), None)?;
        let schema = self.of.schema();
        for (at, field) in schema.fields().iter().skip(columns.len()).enumerate() {
            let parts = found.iter().map(|batch| {
                let Some(column) = batch.columns().get(at) else {
                    return exec_err!("a LATERAL query lacks a column");
                };
                Ok(cast(column, field.data_type())?)
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
            columns.push(concat(&parts)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.batch.num_rows() {
            match self.read() {
                Ok((places, _)) if places.is_empty() => {}
                Ok((places, found)) => {
                    let made = self.made(places, &found);
                    self.room.free();
                    return Some(made);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}
