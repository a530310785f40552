//! A table's rows where few are looked at.

use datafusion::{
    arrow::{array::RecordBatch, compute::concat_batches, datatypes::SchemaRef},
    error::Result as PlanResult,
};
use jiff::tz::TimeZone;
use remora_engine::{Filter, ScanRequest};

use super::exec::{ScanExec, external, placed, record_batch};
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
        let filter = match (self.filter.clone(), filter) {
            (Some(one), Some(other)) => Some(Filter::And(vec![one, other])),
            (one, other) => one.or(other),
        };
        let request = ScanRequest {
            table: self.table.clone(),
            text: None,
            filter,
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
