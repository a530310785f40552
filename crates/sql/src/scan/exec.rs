//! The scan operator: converts the engine's column batches to record batches.

use std::{fmt, sync::Arc};

use datafusion::{
    arrow::{
        array::{RecordBatch, RecordBatchOptions},
        compute::filter_record_batch,
        datatypes::SchemaRef,
    },
    common::{Statistics, config::ConfigOptions, stats::Precision, tree_node::TreeNodeRecursion},
    error::{DataFusionError, Result},
    execution::TaskContext,
    physical_expr::{EquivalenceProperties, PhysicalExpr, expressions::DynamicFilterPhysicalExpr},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
        PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream, apply_expression_roots,
        execution_plan::{Boundedness, EmissionType},
        filter_pushdown::{
            ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
        },
        statistics::StatisticsArgs,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{TryStreamExt, stream::BoxStream};
use jiff::tz::TimeZone;
use remora_engine::{
    AccessPath, AllowedIndexes, BestRows, ColumnBatch, Comparison, Filter, Literal,
    MAX_LISTED_VALUES, ScanRequest, Selection, TextQuery,
};

use super::{EngineTable, array, dynamic, filter::ComparableColumn, overlaid::Overlaid};
use crate::{
    blocking::{ScanRows, may_take_long, run_search, run_search_if_long},
    catalog::{Reader, SqlTable},
    scan::SCAN_OF,
    search,
    transaction::OwnChanges,
};

/// What a scan reads.
#[derive(Clone, Debug)]
pub(super) struct ScanShape {
    /// The condition on columns that the engine evaluates.
    pub filter: Option<Filter>,
    /// The condition on text that the engine evaluates.
    pub text: Option<TextQuery>,
    /// Positions in the table's schema.
    pub projection: Vec<usize>,
    /// The most rows.
    pub limit: Option<usize>,
}

/// How rows are divided into batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLayout {
    /// The most rows of a batch.
    pub rows: usize,
    /// Whether rows come in key order.
    pub in_key_order: bool,
}

/// EXPLAIN's words for a dynamic filter from a join: its keys are known only after the other side was read.
const OF_A_JOIN: &str = ", of which only those whose keys the other side of the join has";

/// The scan operator of a table.
#[derive(Clone)]
pub(crate) struct ScanExec {
    pub(super) reader: Reader,
    /// The engine's name of the table; empty for a temporary table.
    pub(super) table: String,
    /// The table's name in EXPLAIN.
    pub(super) called: String,
    pub(super) shape: ScanShape,
    /// The engine's positions of the projected columns. Scores follow them in each batch.
    pub(super) columns: Vec<usize>,
    pub(super) scores: Vec<TextQuery>,
    /// For each column of the projection, its index among columns and scores.
    pub(super) places: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) zone: TimeZone,
    pub(super) overlay: Option<Overlaid>,
    /// The changes of the session's transaction, if this table has some.
    pub(super) own: Option<Arc<OwnChanges>>,
    /// For each column of the projection, how the engine compares it, if it can.
    pub(super) subjects: Vec<Option<ComparableColumn>>,
    /// The table's name in the plan.
    pub(super) relation: Option<Arc<str>>,
    /// The table's declaration in SQL.
    pub(super) sql: Arc<SqlTable>,
    pub(super) indexes: AllowedIndexes,
    /// The rows that are needed, if only the first ones of an order are.
    pub(super) best: Option<BestRows>,
    /// Dynamic filters, whose values are known when the scan starts.
    pub(super) dynamic: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) batches: BatchLayout,
    /// The number of rows, for the planner.
    pub(super) rows: Precision<usize>,
    pub(super) properties: Arc<PlanProperties>,
}

impl ScanExec {
    pub(super) fn new(table: &EngineTable, shape: ScanShape, batches: BatchLayout) -> Result<Self> {
        let schema = Arc::new(table.schema.project(&shape.projection)?);
        let (columns, scores, places) = parts(table, &shape.projection);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            reader: table.reader.clone(),
            table: table.engine_name.clone(),
            called: table.called(),
            rows: shape.rows(table),
            subjects: shape
                .projection
                .iter()
                .map(|index| ComparableColumn::of(table, *index))
                .collect(),
            relation: table.relation.clone(),
            sql: Arc::clone(&table.table),
            indexes: table.indexes,
            best: None,
            dynamic: Vec::new(),
            zone: table.zone.clone(),
            overlay: Overlaid::of(table),
            own: table.own.clone(),
            shape,
            columns,
            scores,
            places,
            schema,
            batches,
            properties: Arc::new(properties),
        })
    }

    /// The scan with conditions on its projection that may skip rows. The conditions are also evaluated above the scan.
    pub(crate) fn with_conditions(mut self, conditions: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        if self.shape.limit.is_none() {
            self.dynamic.extend(conditions);
        }
        self
    }

    /// The access path as far as it is known before a join's other side is read, and the outer columns that it uses;
    /// `None` for a temporary table. Values of the table's first row stand in for values of the outer row.
    pub(crate) fn access(&self) -> remora_engine::Result<Option<(AccessPath, Vec<String>)>> {
        if self.table.is_empty() {
            return Ok(None);
        }
        let mut conditions: Vec<Filter> = self.shape.filter.iter().cloned().collect();
        let mut compared = Vec::new();
        for (place, of) in dynamic::outer_comparisons(&self.dynamic) {
            if let Some(condition) = self.sampled(place)? {
                conditions.push(condition);
                compared.push(of);
            }
        }
        let selection = Selection {
            table: self.table.clone(),
            text: self.shape.text.clone(),
            filter: (!conditions.is_empty()).then_some(Filter::And(conditions)),
            fuzzy: None,
            indexes: self.indexes,
        };
        Ok(Some((self.reader.access(&selection)?, compared)))
    }

    /// A filter for the value that a column has in the first row.
    fn sampled(&self, place: usize) -> remora_engine::Result<Option<Filter>> {
        let (Some(Some(subject)), Some(column)) =
            (self.subjects.get(place), self.places.get(place).and_then(|at| self.columns.get(*at)))
        else {
            return Ok(None);
        };
        let request = ScanRequest {
            table: self.table.clone(),
            columns: vec![*column],
            batch_rows: 1,
            limit: Some(1),
            ..ScanRequest::default()
        };
        let first = self.reader.scan(request)?.next().transpose()?;
        let value = first.and_then(|first| Some(first.columns.first()?.value(0)));
        let value = value.filter(|value| !value.is_null());
        Ok(value.map(|value| Filter::Compare {
            column: subject.name.clone(),
            comparison: Comparison::Equal,
            literal: Literal::Value(value),
        }))
    }

    /// The conditions in words; `None` if all rows are read.
    pub(crate) fn asked(&self) -> Option<String> {
        let ScanShape { filter, text, .. } = &self.shape;
        (filter.is_some() || text.is_some())
            .then(|| search::selection(text.as_ref(), filter.as_ref()))
    }

    /// The condition on the text index in words.
    pub(crate) fn asked_of_text(&self) -> Option<String> {
        self.shape.text.as_ref().map(|text| search::selection(Some(text), None))
    }

    /// Whether a join filters the scan by the keys of its other side.
    pub(crate) fn is_joined(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// The most rows that are read.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.shape.limit
    }

    /// The number of the session's uncommitted rows.
    pub(crate) fn own_rows(&self) -> usize {
        self.overlay.as_ref().map_or(0, Overlaid::row_count)
    }

    /// The table's name in the plan.
    pub(crate) fn relation(&self) -> Option<&str> {
        self.relation.as_deref()
    }

    /// The table's name in EXPLAIN.
    pub(crate) fn called(&self) -> &str {
        &self.called
    }

    /// The table's declaration in SQL.
    pub(crate) fn sql(&self) -> &Arc<SqlTable> {
        &self.sql
    }

    /// Starts the scan. A join's other side has been read by now, so its keys are known.
    fn begin(&self, columns: Vec<usize>) -> Result<ScanRows> {
        let listed = self.shape.filter.as_ref().map_or(0, Filter::listed_values);
        let most = MAX_LISTED_VALUES.saturating_sub(listed);
        let mut conditions = dynamic::conditions(&self.dynamic, &self.subjects, most);
        conditions.extend(self.shape.filter.clone());
        let filter = match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(Filter::And(conditions)),
        };
        let request = ScanRequest {
            table: self.table.clone(),
            text: self.shape.text.clone(),
            filter,
            columns,
            scores: self.scores.clone(),
            batch_rows: self.batches.rows,
            batch_bytes: None,
            in_key_order: self.batches.in_key_order,
            limit: self.shape.limit.map(|limit| limit as u64),
            best: self.best.clone(),
            indexes: self.indexes,
        };
        let is_long = request.text.iter().chain(&request.scores).any(may_take_long);
        let rows = run_search_if_long(is_long, || self.reader.scan(request));
        Ok(ScanRows { rows: rows.map_err(external)?, is_long })
    }

    /// The rows of the snapshot.
    fn plain(&self) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let (schema, zone) = (Arc::clone(&self.schema), self.zone.clone());
        let scan = self.begin(self.columns.clone())?;
        let places = self.places.clone();
        Ok(Box::pin(futures::stream::iter(scan.map(move |batch| {
            let batch = placed(batch.map_err(external)?, &places);
            record_batch(batch, &schema, &zone)
        }))))
    }
}

impl ScanShape {
    /// The number of rows of the scan, for the planner.
    fn rows(&self, table: &EngineTable) -> Precision<usize> {
        let most = |rows: usize| self.limit.map_or(rows, |limit| limit.min(rows));
        if table.overlay.is_some() || table.is_kept {
            return Precision::Inexact(most(table.rows_now()));
        }
        if self.filter.is_none() && self.text.is_none() {
            return Precision::Exact(most(table.rows_now()));
        }
        if table.reader.has_remote_parts(&table.engine_name) {
            // Rows on other servers are not counted before the plan runs.
            return Precision::Inexact(most(table.rows_now()));
        }
        let selection = Selection {
            table: table.engine_name.clone(),
            text: self.text.clone(),
            filter: self.filter.clone(),
            fuzzy: None,
            indexes: table.indexes,
        };
        // Counting costs little compared with a join that starts with the wrong side.
        let counted = || table.reader.planned_count(&selection);
        match run_search(selection.text.as_ref(), counted) {
            Ok((counted, is_exact)) => {
                let counted = most(usize::try_from(counted).unwrap_or(usize::MAX));
                if is_exact { Precision::Exact(counted) } else { Precision::Inexact(counted) }
            }
            Err(_) => Precision::Inexact(most(table.rows_now())),
        }
    }
}

impl ScanExec {
    /// The snapshot's rows that the session has not changed, then the session's own rows.
    fn overlaid(&self, overlay: &Overlaid) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let (schema, zone) = (Arc::clone(&self.schema), self.zone.clone());
        let own = overlay.own_rows(&self.columns);
        let own = match own.rows {
            0 => None,
            _ => Some(record_batch(placed(own, &self.places), &schema, &zone)),
        };
        if self.table.is_empty() {
            return Ok(Box::pin(futures::stream::iter(own)));
        }
        let (mut columns, keys) = (self.columns.clone(), overlay.key().to_vec());
        columns.extend(keys);
        let scan = self.begin(columns)?;
        let (overlay, kept) = (overlay.clone(), self.columns.len());
        let (places, hidden) = (self.places.clone(), kept + overlay.key().len());
        let rows = scan.map(move |batch| {
            let mut batch = batch.map_err(external)?;
            let scores = batch.columns.split_off(hidden);
            let keys = batch.columns.split_off(kept);
            let shown = overlay.shown(&keys, batch.rows);
            batch.columns.extend(scores);
            let batch = placed(batch, &places);
            Ok(filter_record_batch(&record_batch(batch, &schema, &zone)?, &shown)?)
        });
        Ok(Box::pin(futures::stream::iter(rows.chain(own))))
    }
}

/// The engine's positions of a projection, its scores, and for each column of the projection its index among both.
fn parts(table: &EngineTable, projection: &[usize]) -> (Vec<usize>, Vec<TextQuery>, Vec<usize>) {
    let columns: Vec<usize> =
        projection.iter().filter_map(|index| table.positions.get(*index).copied()).collect();
    let (mut scores, mut places, mut before) = (Vec::new(), Vec::new(), 0);
    for index in projection {
        match index.checked_sub(table.positions.len()) {
            None => {
                places.push(before);
                before += 1;
            }
            Some(score) => {
                places.push(columns.len() + scores.len());
                scores.extend(table.scores.get(score).cloned());
            }
        }
    }
    (columns, scores, places)
}

/// The batch with its columns in the order of `places`, which are distinct.
pub(super) fn placed(mut batch: ColumnBatch, places: &[usize]) -> ColumnBatch {
    if !places.is_sorted() {
        let mut taken: Vec<_> = batch.columns.into_iter().map(Some).collect();
        let column = |place: &usize| taken.get_mut(*place).and_then(Option::take);
        batch.columns = places.iter().filter_map(column).collect();
    }
    batch
}

/// Converts a batch of the engine to a record batch.
pub(super) fn record_batch(
    batch: ColumnBatch,
    schema: &SchemaRef,
    zone: &TimeZone,
) -> Result<RecordBatch> {
    let fields = schema.fields().iter();
    let arrays = batch.columns.into_iter().zip(fields);
    let arrays: Result<Vec<_>> =
        arrays.map(|(column, field)| array(column, field.data_type(), zone)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays?, &options)?)
}

pub(super) fn external(error: remora_engine::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.dynamic, visit)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let this = self.clone();
        let begun = futures::stream::once(async move {
            match &this.overlay {
                None => this.plain(),
                Some(overlay) => this.overlaid(overlay),
            }
        });
        let stream = begun.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = pushed.parent_filters.into_iter().map(|pushed| pushed.filter);
        let (dynamic, others): (Vec<_>, Vec<_>) = filters
            .partition(|filter| filter.downcast_ref::<DynamicFilterPhysicalExpr>().is_some());
        let unused = vec![PushedDown::No; dynamic.len() + others.len()];
        let kept = FilterPushdownPropagation::with_parent_pushdown_result(unused);
        // A limited scan must not get further conditions: they would change which rows it returns.
        if dynamic.is_empty() || self.shape.limit.is_some() {
            return Ok(kept);
        }
        let mut this = self.clone();
        this.dynamic.extend(dynamic);
        let this: Arc<dyn ExecutionPlan> = Arc::new(this);
        Ok(kept.with_updated_node(this))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema).with_num_rows(self.rows)))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.shape;
        let words = search::selection(shape.text.as_ref(), shape.filter.as_ref());
        let joined = if self.dynamic.is_empty() { "" } else { OF_A_JOIN };
        write!(out, "{SCAN_OF}{}: {words}{joined}", self.called)?;
        match &self.best {
            Some(best) => write!(out, "; of each server its first {} rows", best.rows),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ScanExec").field("table", &self.table).finish()
    }
}
