//! A table's rows where few are looked at.

use datafusion::{
    arrow::{array::RecordBatch, compute::concat_batches, datatypes::SchemaRef},
    error::Result as PlanResult,
};
use jiff::tz::TimeZone;
use remora_engine::{
    ColumnBatch, ColumnType, Filter, ScanRequest, SearchRequest, Selection, SortKey, Value,
};

use super::{
    exec::{ScanExec, external, placed, record_batch},
    overlaid::column,
};
use crate::{MAX_DIRECT_ROWS, catalog::Reader};

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
}

impl ScanExec {
    /// The same for few rows; `None` where it asks more than conditions on columns of the snapshot.
    pub(crate) fn few(&self) -> Option<FewScan> {
        let is_plain = self.overlay.is_none()
            && self.scores.is_empty()
            && self.dynamic.is_empty()
            && self.shape.text.is_none()
            && self.shape.limit.is_none();
        is_plain.then(|| FewScan {
            table: self.table.clone(),
            columns: self.columns.clone(),
            places: self.places.clone(),
            schema: self.schema.clone(),
            filter: self.shape.filter.clone(),
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
    ) -> PlanResult<Option<impl Iterator<Item = PlanResult<RecordBatch>>>> {
        let request = ScanRequest {
            table: self.table.clone(),
            text: None,
            filter: self.with(filter),
            columns: self.columns.clone(),
            scores: Vec::new(),
            batch_rows: BATCH_ROWS,
            in_key_order: true,
            limit,
        };
        let Some(scan) = reader.scan_few(request, most.documents).map_err(external)? else {
            return Ok(None);
        };
        let (places, schema) = (&self.places, &self.schema);
        Ok(Some(scan.map(move |batch| {
            record_batch(placed(batch.map_err(external)?, places), schema, &zone)
        })))
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
        let schema = reader.schema(&self.table).map_err(external)?;
        let columns = self.columns.iter().filter_map(|position| schema.columns.get(*position));
        let columns: Vec<_> = columns.map(|column| (column.kind, column.name.clone())).collect();
        let request = SearchRequest {
            selection: Selection {
                table: self.table.clone(),
                filter: self.with(filter),
                ..Selection::default()
            },
            sort: sort.to_vec(),
            limit,
            fields: columns.iter().map(|(_, name)| name.clone()).collect(),
            ..SearchRequest::default()
        };
        let hits = match reader.search(&request) {
            Ok(found) => found.hits,
            // More than a page may be.
            Err(remora_engine::Error::Request { .. }) => return Ok(None),
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

    /// The columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Batches as one.
pub(crate) fn joined(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> PlanResult<RecordBatch> {
    match batches.len() {
        1 => Ok(batches.swap_remove(0)),
        _ => Ok(concat_batches(schema, &batches)?),
    }
}
