//! Reads a table's rows directly when only few are needed.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, RecordBatch},
        compute::concat_batches,
        datatypes::SchemaRef,
    },
    common::ScalarValue,
    error::Result as PlanResult,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{Column, DynamicFilterPhysicalExpr, Literal as Constant},
    },
};
use jiff::tz::TimeZone;
use remora_engine::{
    AllowedIndexes, ColumnBatch, ColumnType, Filter, Hit, Literal, ScalarOrder, Scan, ScanRequest,
    SearchRequest, Selection, SortBy, SortKey, TextQuery, Value,
};

use super::{
    exec::{ScanExec, external, placed, record_batch},
    filter::ComparableColumn,
    overlaid::column,
    settled::{RunValueComparison, sought},
};
use crate::{
    MAX_DIRECT_ROWS, blocking::run_search, catalog::Reader, meaning::is_false_of_null,
    state::Context,
};

/// Limits of a scan by a cached plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanLimits {
    /// The most documents that conditions are tested on.
    pub documents: u64,
    /// The most bytes of columns that are read.
    pub bytes: usize,
}

impl ScanLimits {
    /// The limits in a connection's thread.
    pub(crate) const IN_CONNECTION_THREAD: Self = Self { documents: 8_192, bytes: 4 << 20 };
    /// The limits in the planning threads.
    pub(crate) const IN_PLANNING_THREADS: Self =
        Self { documents: MAX_DIRECT_ROWS as u64, bytes: 32 << 20 };
}

/// Rows in a batch.
const BATCH_ROWS: usize = 1_024;

/// A scan that any cached plan can run.
#[derive(Debug)]
pub(crate) struct CachedScan {
    table: String,
    columns: Vec<usize>,
    places: Vec<usize>,
    schema: SchemaRef,
    /// Columns that follow those of the table: scores of text conditions.
    scores: Vec<TextQuery>,
    filter: Option<Filter>,
    subjects: Vec<Option<ComparableColumn>>,
    relation: Option<Arc<str>>,
    /// Comparisons with values of a run or of an outer row.
    sought: Vec<RunValueComparison>,
    /// The most rows that satisfy all conditions.
    limit: Option<u64>,
    indexes: AllowedIndexes,
}

/// What a run asks of a scan, besides the conditions of the plan.
#[derive(Clone, Default)]
pub(crate) struct ScanCondition<'c> {
    /// The condition on columns.
    pub filter: Option<Filter>,
    /// The condition on texts.
    pub text: Option<&'c TextQuery>,
}

/// An order by the JSON values at a path of documents.
#[derive(Clone, Debug)]
pub(crate) struct ScalarSort {
    /// The column of the documents.
    pub column: String,
    /// The path's names from the outside in.
    pub names: Vec<String>,
    /// Whether the order is that of the values' texts.
    pub only_texts: bool,
    /// Whether the greatest values come first.
    pub descending: bool,
}

/// An iterator over the batches of a scan.
pub(crate) struct CachedRows<'s> {
    of: &'s CachedScan,
    scan: Scan,
    zone: TimeZone,
}

impl ScanExec {
    /// The scan for a cached plan; `None` if it has more than conditions on columns of the snapshot.
    pub(crate) fn few(&self) -> Option<CachedScan> {
        // The join that has this filter also checks the rows itself.
        let learnt = |filter: &Arc<dyn PhysicalExpr>| {
            filter.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()
        };
        let is_plain = self.overlay.is_none()
            && !self.reader.has_remote_parts(&self.table)
            && self.dynamic.iter().all(learnt)
            && self.shape.text.is_none();
        is_plain.then(|| CachedScan {
            table: self.table.clone(),
            subjects: self.subjects.clone(),
            relation: self.relation.clone(),
            sought: Vec::new(),
            limit: self.shape.limit.map(|limit| limit as u64),
            columns: self.columns.clone(),
            places: self.places.clone(),
            scores: self.scores.clone(),
            schema: self.schema.clone(),
            filter: self.shape.filter.clone(),
            indexes: self.indexes,
        })
    }
}

impl CachedScan {
    /// The rows that also satisfy a condition, in key order, at most `limit`; `None` if more documents than `most` permits
    /// would be tested, or if it has scores.
    pub(crate) fn batches(
        &self,
        reader: &Reader,
        condition: ScanCondition<'_>,
        limit: Option<u64>,
        zone: TimeZone,
        most: ScanLimits,
    ) -> PlanResult<Option<CachedRows<'_>>> {
        if !self.scores.is_empty() {
            return Ok(None);
        }
        let request = ScanRequest {
            table: self.table.clone(),
            text: condition.text.cloned(),
            filter: self.with(condition.filter),
            columns: self.columns.clone(),
            scores: Vec::new(),
            batch_rows: BATCH_ROWS,
            batch_bytes: None,
            in_key_order: true,
            limit: limit.into_iter().chain(self.limit).min(),
            best: None,
            indexes: self.indexes,
        };
        let scan = run_search(condition.text, || reader.scan_within(request, most.documents));
        let Some(scan) = scan.map_err(external)? else { return Ok(None) };
        Ok(Some(CachedRows { of: self, scan, zone }))
    }

    /// The first rows in an order that also satisfy a condition, in one batch. If the key or an index has the order, no
    /// other rows are read. `None` if there are more than a page may hold.
    pub(crate) fn first(
        &self,
        reader: &Reader,
        condition: ScanCondition<'_>,
        (sort, limit): (&[SortKey], usize),
        zone: &TimeZone,
    ) -> PlanResult<Option<RecordBatch>> {
        self.first_by(condition, (sort, limit), (reader, zone), |request| {
            match reader.first_page(request)? {
                Some(hits) => Ok(Some(hits)),
                // A scan of the column makes all collation keys faster.
                None if sort.iter().any(|key| matches!(key.by, SortBy::TextKey(..))) => Ok(None),
                None => reader.search(request).map(|found| Some(found.hits)),
            }
        })
    }

    /// Like [`Self::first`], but only if the key or an index has the order and is expected to be
    /// the fastest way.
    pub(crate) fn first_along(
        &self,
        reader: &Reader,
        condition: ScanCondition<'_>,
        page: (&[SortKey], usize),
        zone: &TimeZone,
    ) -> PlanResult<Option<RecordBatch>> {
        self.first_by(condition, page, (reader, zone), |request| reader.first_page(request))
    }

    /// Like [`Self::first_along`], but behind the `skipped` first of those rows, which the engine counts where it can.
    pub(crate) fn behind(
        &self,
        (reader, zone): (&Reader, &TimeZone),
        condition: ScanCondition<'_>,
        page: (&[SortKey], usize),
        skipped: usize,
    ) -> PlanResult<Option<RecordBatch>> {
        self.first_by(condition, page, (reader, zone), |request| {
            reader.first_page(&SearchRequest { offset: skipped, ..request.clone() })
        })
    }

    fn first_by(
        &self,
        condition: ScanCondition<'_>,
        (sort, limit): (&[SortKey], usize),
        (reader, zone): (&Reader, &TimeZone),
        find: impl FnOnce(&SearchRequest) -> remora_engine::Result<Option<Vec<Hit>>>,
    ) -> PlanResult<Option<RecordBatch>> {
        if self.limit.is_some() {
            // The limited rows are the first ones in key order, not in this order.
            return Ok(None);
        }
        if !self.scores.is_empty() && sort.iter().all(|key| key.by != SortBy::Score) {
            // Only the order by score computes scores.
            return Ok(None);
        }
        let schema = reader.schema(&self.table).map_err(external)?;
        let columns = self.columns.iter().filter_map(|position| schema.columns.get(*position));
        let columns: Vec<_> = columns.map(|column| (column.kind, column.name.clone())).collect();
        let fields = columns.iter().map(|(_, name)| name.clone()).collect();
        let text = condition.text;
        let request = SearchRequest { fields, ..self.page(condition, (sort, limit)) };
        let mut hits = match run_search(text, || find(&request)) {
            Ok(Some(hits)) => hits,
            // More rows than a page may hold.
            Ok(None) | Err(remora_engine::Error::Request { .. }) => return Ok(None),
            Err(error) => return Err(external(error)),
        };
        for hit in &mut hits {
            let score = Value::Float(hit.score.unwrap_or_default());
            hit.fields.extend(self.scores.iter().map(|_| score.clone()));
        }
        let rows: Vec<&[Value]> = hits.iter().map(|hit| hit.fields.as_slice()).collect();
        let scores = self.scores.iter().map(|_| ColumnType::Double);
        let kinds = columns.iter().map(|(kind, _)| *kind).chain(scores);
        self.batch_of(&rows, kinds, zone).map(Some)
    }

    /// Rows of the scan's columns and scores, which have these types, as a batch.
    fn batch_of(
        &self,
        rows: &[&[Value]],
        kinds: impl Iterator<Item = ColumnType>,
        zone: &TimeZone,
    ) -> PlanResult<RecordBatch> {
        let of_rows = |(at, kind): (usize, ColumnType)| {
            let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
            column(kind, values, rows.len())
        };
        let batch =
            ColumnBatch { rows: rows.len(), columns: kinds.enumerate().map(of_rows).collect() };
        record_batch(placed(batch, &self.places), &self.schema, zone)
    }

    /// The first rows in the order of the values at a path that also satisfy `filter`, in one batch, and the position of
    /// the path in the table's definition. Rows without a value are not among them. `None` if the path's index does not
    /// have the order, or if reading all rows is cheaper.
    pub(crate) fn first_by_scalar(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        (sort, limit): (&ScalarSort, usize),
        zone: &TimeZone,
    ) -> PlanResult<Option<(RecordBatch, usize)>> {
        if self.limit.is_some() || !self.scores.is_empty() {
            return Ok(None);
        }
        let schema = reader.schema(&self.table).map_err(external)?;
        let asked = ScalarOrder {
            table: self.table.clone(),
            column: sort.column.clone(),
            path: sort.names.clone(),
            filter: self.with(filter),
            descending: sort.descending,
            only_texts: sort.only_texts,
            columns: self.columns.clone(),
            limit,
        };
        let Some(found) = reader.first_by_scalar(&asked).map_err(external)? else {
            return Ok(None);
        };
        let rows: Vec<&[Value]> = found.rows.iter().map(Vec::as_slice).collect();
        let columns = self.columns.iter().filter_map(|position| schema.columns.get(*position));
        let batch = self.batch_of(&rows, columns.map(|column| column.kind), zone)?;
        Ok(Some((batch, found.path)))
    }

    /// The number of rows that also satisfy a condition; `None` if only some of them are wanted. Cost: that of a count by
    /// the engine, which uses the indexes and otherwise tests all rows.
    pub(crate) fn count(
        &self,
        reader: &Reader,
        condition: ScanCondition<'_>,
    ) -> PlanResult<Option<u64>> {
        if self.limit.is_some() {
            return Ok(None);
        }
        let reply = reader.count(&self.selection(condition)).map_err(external)?;
        Ok(Some(reply.count))
    }

    /// The rows that also satisfy a condition, as a request to the engine.
    pub(crate) fn selection(&self, condition: ScanCondition<'_>) -> Selection {
        Selection {
            table: self.table.clone(),
            text: condition.text.cloned(),
            filter: self.with(condition.filter),
            indexes: self.indexes,
            ..Selection::default()
        }
    }

    /// The first of those rows in an order, as a request to the engine.
    pub(crate) fn page(
        &self,
        condition: ScanCondition<'_>,
        (sort, limit): (&[SortKey], usize),
    ) -> SearchRequest {
        let selection = self.selection(condition);
        SearchRequest { selection, sort: sort.to_vec(), limit, ..SearchRequest::default() }
    }

    /// A filter for rows in which a column, or its collation key, equals one of these values. NULLs among the values
    /// match nothing. `None` if the engine cannot evaluate it.
    pub(crate) fn one_of(
        &self,
        expression: &Arc<dyn PhysicalExpr>,
        values: &ArrayRef,
    ) -> Option<Filter> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            let subject = self.subjects.get(column.index())?.as_ref()?;
            let present = (0..values.len()).filter(|row| values.is_valid(*row));
            let value = |row| subject.literal(&ScalarValue::try_from_array(values, row).ok()?);
            let literals: Option<Vec<Literal>> = present.map(value).collect();
            return Some(Filter::In(subject.name.clone(), literals?));
        }
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
        let subject = self.subjects.get(of.downcast_ref::<Column>()?.index())?.as_ref()?;
        let ScalarValue::Int64(Some(number)) = number.downcast_ref::<Constant>()?.value() else {
            return None;
        };
        let keys = values.as_binary_view_opt()?.iter().flatten().map(<[u8]>::to_vec);
        let order = u32::try_from(*number).ok()?;
        subject.has_keys.then(|| Filter::KeyIn(subject.name.clone(), order, keys.collect()))
    }

    /// Adds the comparisons of columns with a run's values in this condition to the conditions that the engine
    /// evaluates.
    pub(crate) fn seek(&mut self, condition: &Arc<dyn PhysicalExpr>) {
        self.sought.extend(sought(condition));
    }

    /// The filters for these comparisons with the current values: with those of the outer row if `of_row`, else with
    /// those of the run. Comparisons that the engine cannot express are left out.
    pub(crate) fn settled_filters(&self, context: &Arc<Context>, of_row: bool) -> Vec<Filter> {
        let filter = |sought: &RunValueComparison| {
            let subject = self.subjects.get(sought.column)?.as_ref()?;
            let value = sought.value(context)?;
            if value.is_null() && is_false_of_null(sought.operator) {
                return Some(Filter::In(subject.name.clone(), Vec::new()));
            }
            match (sought.order, value) {
                (None, value) => subject.compare(sought.operator, &value),
                (Some(order), ScalarValue::BinaryView(Some(key))) => {
                    let is_equal = subject.has_keys && sought.operator == Operator::Eq;
                    is_equal.then(|| Filter::KeyIn(subject.name.clone(), order, vec![key]))
                }
                _ => None,
            }
        };
        self.sought.iter().filter(|sought| sought.is_of_row == of_row).filter_map(filter).collect()
    }

    /// The table's name in the plan.
    pub(crate) fn relation(&self) -> Option<&str> {
        self.relation.as_deref()
    }

    /// The table's position of a column of the batches; `None` for a score.
    pub(crate) fn position(&self, place: usize) -> Option<usize> {
        self.columns.get(*self.places.get(place)?).copied()
    }

    /// The text conditions whose scores are columns of the batches.
    pub(crate) fn scores(&self) -> &[TextQuery] {
        &self.scores
    }

    /// Whether a column of the batches is a score.
    pub(crate) fn is_score(&self, place: usize) -> bool {
        self.places.get(place).is_some_and(|place| *place >= self.columns.len())
    }

    fn with(&self, filter: Option<Filter>) -> Option<Filter> {
        match (self.filter.clone(), filter) {
            (Some(one), Some(other)) => Some(Filter::And(vec![one, other])),
            (one, other) => one.or(other),
        }
    }

    /// Whether it has no conditions of its own.
    pub(crate) fn is_of_all(&self) -> bool {
        self.filter.is_none() && self.limit.is_none()
    }

    /// Whether the engine gets the same conditions as from another scan in its place, or compares more columns by their
    /// values with those of the run. What it does with texts depends on the text.
    pub(crate) fn seeks_like(&self, other: &Self) -> bool {
        let by_values = |scan: &Self| scan.sought.iter().filter(|it| it.order.is_none()).count();
        let is_same = self.filter == other.filter || by_values(self) > by_values(other);
        is_same && self.limit == other.limit
    }

    /// The number of rows in the table.
    pub(crate) fn row_count(&self, reader: &Reader) -> PlanResult<u64> {
        reader.row_count(&self.table).map_err(external)
    }

    /// The schema of the batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl CachedRows<'_> {
    /// The number of remaining rows.
    pub(crate) fn rows(&self) -> u64 {
        self.scan.rows()
    }
}

impl Iterator for CachedRows<'_> {
    type Item = PlanResult<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.scan.next()?;
        let made = batch.map_err(external).and_then(|batch| {
            record_batch(placed(batch, &self.of.places), &self.of.schema, &self.zone)
        });
        Some(made)
    }
}

/// Concatenates batches.
pub(crate) fn joined(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> PlanResult<RecordBatch> {
    match batches.len() {
        1 => Ok(batches.swap_remove(0)),
        _ => Ok(concat_batches(schema, &batches)?),
    }
}
