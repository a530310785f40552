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
    AllowedIndexes, ColumnBatch, ColumnType, Filter, Hit, Literal, Scan, ScanRequest,
    SearchRequest, Selection, SortBy, SortKey, Value,
};

use super::{
    exec::{ScanExec, external, placed, record_batch},
    filter::Subject,
    overlaid::column,
    settled::{Sought, sought},
};
use crate::{MAX_DIRECT_ROWS, catalog::Reader, meaning::is_false_of_null, state::Context};

/// How much may be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Documents that conditions are asked of.
    pub documents: u64,
    /// Bytes of the columns that are read of them.
    pub bytes: usize,
}

impl Most {
    /// In a connection's thread.
    pub(crate) const HERE: Self = Self { documents: 8_192, bytes: 4 << 20 };
    /// Where plans run.
    pub(crate) const ASIDE: Self = Self { documents: MAX_DIRECT_ROWS as u64, bytes: 32 << 20 };
}

/// Rows of a batch.
const BATCH_ROWS: usize = 1_024;

/// What of a table is read, whoever asks.
#[derive(Debug)]
pub(crate) struct FewScan {
    table: String,
    columns: Vec<usize>,
    places: Vec<usize>,
    schema: SchemaRef,
    filter: Option<Filter>,
    subjects: Vec<Option<Subject>>,
    relation: Option<Arc<str>>,
    /// What is known of its rows once a run's constants are.
    sought: Vec<Sought>,
    /// Most rows that are wanted of those for which all conditions hold.
    limit: Option<u64>,
    indexes: AllowedIndexes,
}

/// Rows that are read batch by batch.
pub(crate) struct FewRows<'s> {
    of: &'s FewScan,
    scan: Scan,
    zone: TimeZone,
}

impl ScanExec {
    /// The same for few rows; `None` where it asks more than conditions on columns of the snapshot.
    pub(crate) fn few(&self) -> Option<FewScan> {
        // What a join learns of its keys leaves out rows that it would leave out itself.
        let learnt = |filter: &Arc<dyn PhysicalExpr>| {
            filter.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()
        };
        let is_plain = self.overlay.is_none()
            && !self.reader.is_elsewhere(&self.table)
            && self.scores.is_empty()
            && self.dynamic.iter().all(learnt)
            && self.shape.text.is_none();
        is_plain.then(|| FewScan {
            table: self.table.clone(),
            subjects: self.subjects.clone(),
            relation: self.relation.clone(),
            sought: Vec::new(),
            limit: self.shape.limit.map(|limit| limit as u64),
            columns: self.columns.clone(),
            places: self.places.clone(),
            schema: self.schema.clone(),
            filter: self.shape.filter.clone(),
            indexes: self.indexes,
        })
    }
}

impl FewScan {
    /// The rows in key order for which `filter` holds too, at most `limit`, in batches; `None` if more would
    /// be looked at than may be.
    pub(crate) fn batches(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        limit: Option<u64>,
        zone: TimeZone,
        most: Most,
    ) -> PlanResult<Option<FewRows<'_>>> {
        let request = ScanRequest {
            table: self.table.clone(),
            text: None,
            filter: self.with(filter),
            columns: self.columns.clone(),
            scores: Vec::new(),
            batch_rows: BATCH_ROWS,
            batch_bytes: None,
            in_key_order: true,
            limit: limit.into_iter().chain(self.limit).min(),
            indexes: self.indexes,
        };
        let Some(scan) = reader.scan_few(request, most.documents).map_err(external)? else {
            return Ok(None);
        };
        Ok(Some(FewRows { of: self, scan, zone }))
    }

    /// The same as one batch.
    pub(crate) fn read(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        limit: Option<u64>,
        zone: &TimeZone,
        most: Most,
    ) -> PlanResult<Option<RecordBatch>> {
        let read = self.batches(reader, filter, limit, zone.clone(), most)?;
        let Some(read) = read else { return Ok(None) };
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in read {
            let batch = batch?;
            bytes += batch.get_array_memory_size();
            if bytes > most.bytes {
                return Ok(None);
            }
            batches.push(batch);
        }
        joined(&self.schema, batches).map(Some)
    }

    /// The first rows of an order for which `filter` holds too, as one batch: without a look at the others where
    /// keys or an index have the order. `None` if they are more than a page may hold.
    pub(crate) fn first(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        (sort, limit): (&[SortKey], usize),
        zone: &TimeZone,
    ) -> PlanResult<Option<RecordBatch>> {
        self.first_by(reader, filter, (sort, limit), zone, |request| {
            match reader.first_page(request)? {
                Some(hits) => Ok(Some(hits)),
                // A key for each text is made sooner a column at a time.
                None if sort.iter().any(|key| matches!(key.by, SortBy::TextKey(..))) => Ok(None),
                None => reader.search(request).map(|found| Some(found.hits)),
            }
        })
    }

    /// The same where keys or an index have the order, and that is the soonest way as far as is known beforehand.
    pub(crate) fn first_along(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        page: (&[SortKey], usize),
        zone: &TimeZone,
    ) -> PlanResult<Option<RecordBatch>> {
        self.first_by(reader, filter, page, zone, |request| reader.first_page(request))
    }

    fn first_by(
        &self,
        reader: &Reader,
        filter: Option<Filter>,
        (sort, limit): (&[SortKey], usize),
        zone: &TimeZone,
        find: impl FnOnce(&SearchRequest) -> remora_engine::Result<Option<Vec<Hit>>>,
    ) -> PlanResult<Option<RecordBatch>> {
        if self.limit.is_some() {
            // Which rows those are is decided by the order of keys.
            return Ok(None);
        }
        let schema = reader.schema(&self.table).map_err(external)?;
        let columns = self.columns.iter().filter_map(|position| schema.columns.get(*position));
        let columns: Vec<_> = columns.map(|column| (column.kind, column.name.clone())).collect();
        let fields = columns.iter().map(|(_, name)| name.clone()).collect();
        let request = SearchRequest { fields, ..self.page(filter, (sort, limit)) };
        let hits = match find(&request) {
            Ok(Some(hits)) => hits,
            // More than a page may be.
            Ok(None) | Err(remora_engine::Error::Request { .. }) => return Ok(None),
            Err(error) => return Err(external(error)),
        };
        let of_hits = |(at, (kind, _)): (usize, &(ColumnType, String))| {
            let values = hits.iter().map(|hit| hit.fields.get(at).unwrap_or(&Value::Null));
            column(*kind, values, hits.len())
        };
        let columns = columns.iter().enumerate().map(of_hits).collect();
        let batch = ColumnBatch { rows: hits.len(), columns };
        record_batch(placed(batch, &self.places), &self.schema, zone).map(Some)
    }

    /// The rows for which `filter` holds too.
    pub(crate) fn selection(&self, filter: Option<Filter>) -> Selection {
        Selection {
            table: self.table.clone(),
            filter: self.with(filter),
            indexes: self.indexes,
            ..Selection::default()
        }
    }

    /// The first of those in an order.
    pub(crate) fn page(
        &self,
        filter: Option<Filter>,
        (sort, limit): (&[SortKey], usize),
    ) -> SearchRequest {
        let selection = self.selection(filter);
        SearchRequest { selection, sort: sort.to_vec(), limit, ..SearchRequest::default() }
    }

    /// The condition that what an expression is of is equal to one of these values, of which those that are NULL
    /// are equal to nothing; `None` if the engine has no answer to it.
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

    /// Looks up rows by what a condition on its columns says of a run's constants.
    pub(crate) fn seek(&mut self, condition: &Arc<dyn PhysicalExpr>) {
        self.sought.extend(sought(condition));
    }

    /// What that is in this run: of its constants, or of the row around a query that runs for one row after the
    /// other. What the engine cannot say is left out.
    pub(crate) fn settled_filters(&self, context: &Arc<Context>, of_row: bool) -> Vec<Filter> {
        let filter = |sought: &Sought| {
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

    /// What the plan that it is of calls the table.
    pub(crate) fn relation(&self) -> Option<&str> {
        self.relation.as_deref()
    }

    /// The position in the table of a column of the batches.
    pub(crate) fn position(&self, place: usize) -> Option<usize> {
        self.columns.get(*self.places.get(place)?).copied()
    }

    fn with(&self, filter: Option<Filter>) -> Option<Filter> {
        match (self.filter.clone(), filter) {
            (Some(one), Some(other)) => Some(Filter::And(vec![one, other])),
            (one, other) => one.or(other),
        }
    }

    /// How many rows the table has.
    pub(crate) fn row_count(&self, reader: &Reader) -> PlanResult<u64> {
        reader.row_count(&self.table).map_err(external)
    }

    /// The columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl FewRows<'_> {
    /// How many rows are still to come.
    pub(crate) fn rows(&self) -> u64 {
        self.scan.rows()
    }
}

impl Iterator for FewRows<'_> {
    type Item = PlanResult<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.scan.next()?;
        let made = batch.map_err(external).and_then(|batch| {
            record_batch(placed(batch, &self.of.places), &self.of.schema, &self.zone)
        });
        Some(made)
    }
}

/// Batches as one.
pub(crate) fn joined(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> PlanResult<RecordBatch> {
    match batches.len() {
        1 => Ok(batches.swap_remove(0)),
        _ => Ok(concat_batches(schema, &batches)?),
    }
}
