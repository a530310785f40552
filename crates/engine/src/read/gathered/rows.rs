//! Rows of several parts, merged by their keys.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use parking_lot::Mutex;

use super::{
    super::{
        column_batch::{ColumnBatch, ColumnBuilder, byte_limit},
        source::{Sources, sources},
    },
    GatheredTable, lie,
    part::PartRows,
};
use crate::{
    ColumnType, Result, Row, ScanRequest, TextQuery, Value,
    encode::{encode_key, fit},
    interrupt::InterruptCheck,
};

/// The least size of a part's batch, in bytes of strings.
const LEAST_BYTES: usize = 64 << 10;

/// The rows of a table of several parts, in the order of their keys.
pub(crate) struct GatheredRows {
    table: Arc<GatheredTable>,
    parts: Vec<Stream>,
    /// The next row of each part.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// The requested columns, by their positions in the schema.
    columns: Vec<usize>,
    scores: Vec<ColumnType>,
    batch_rows: usize,
    batch_bytes: usize,
    /// The most rows still to be returned; exactly as many if `is_counted`.
    left: u64,
    /// Whether only the number of rows is needed, and no values are read.
    is_counted: bool,
    /// The key of the last returned row.
    last: Option<Vec<u8>>,
    unless: InterruptCheck,
}

/// The rows of a part.
struct Stream {
    place: usize,
    /// In a mutex only so that the type is `Sync`; one thread uses it at a time.
    rows: Mutex<PartRows>,
    ahead: std::vec::IntoIter<Row>,
    /// The part's next row.
    row: Row,
    last: Option<Vec<u8>>,
}

impl GatheredRows {
    pub(super) fn begin(
        table: &Arc<GatheredTable>,
        mut request: ScanRequest,
        unless: &InterruptCheck,
    ) -> Result<Self> {
        let schema = table.schema();
        // Validates the columns.
        let _: Sources = sources(schema, &request.columns)?;
        let columns = request.columns.clone();
        let has_factors =
            |it: &TextQuery| matches!(it, TextQuery::Keywords(asked) if asked.factors.is_some());
        let kind = |score: &TextQuery| match has_factors(score) {
            true => ColumnType::Text,
            false => ColumnType::Double,
        };
        let scores = request.scores.iter().map(kind).collect();
        request.columns.extend(&schema.primary_key);
        request.in_key_order = true;
        // The batches read ahead from all parts together have the bytes of one batch.
        let batch_bytes = byte_limit(request.batch_bytes);
        request.batch_bytes = Some((batch_bytes / table.parts.len().max(1)).max(LEAST_BYTES));
        let mut all = Self {
            table: Arc::clone(table),
            parts: Vec::new(),
            next: BinaryHeap::new(),
            columns,
            scores,
            batch_rows: request.batch_rows.max(1),
            batch_bytes,
            left: request.limit.unwrap_or(u64::MAX),
            is_counted: false,
            last: None,
            unless: unless.clone(),
        };
        for (place, part) in table.parts.iter().enumerate() {
            let rows = Mutex::new(part.scan(request.clone(), unless)?);
            let (ahead, row) = (Vec::new().into_iter(), Row::new());
            all.parts.push(Stream { place, rows, ahead, row, last: None });
        }
        for at in 0..all.parts.len() {
            all.advance(at)?;
        }
        Ok(all)
    }

    /// Rows without columns, of which only the number counts.
    pub(super) fn counted(
        table: &Arc<GatheredTable>,
        count: u64,
        batch_rows: usize,
        unless: &InterruptCheck,
    ) -> Self {
        Self {
            table: Arc::clone(table),
            parts: Vec::new(),
            next: BinaryHeap::new(),
            columns: Vec::new(),
            scores: Vec::new(),
            batch_rows: batch_rows.max(1),
            batch_bytes: byte_limit(None),
            left: count,
            is_counted: true,
            last: None,
            unless: unless.clone(),
        }
    }

    /// An upper bound of the number of rows.
    pub fn most(&self) -> u64 {
        self.left.min(self.table.rows())
    }

    /// Reads the next row of a part.
    fn advance(&mut self, at: usize) -> Result<()> {
        let Self { table, parts, next, columns, scores, unless, .. } = self;
        let Some(stream) = parts.get_mut(at) else { return Ok(()) };
        let name = table.parts.get(stream.place).map_or("", |part| part.name());
        let schema = &table.schema;
        let row = loop {
            if let Some(row) = stream.ahead.next() {
                break row;
            }
            unless.check()?;
            match stream.rows.get_mut().next() {
                Some(rows) => stream.ahead = rows?.into_iter(),
                None => return Ok(()),
            }
        };
        let parts = schema.primary_key.len();
        if row.len() != columns.len() + parts + scores.len() {
            return Err(lie(name, "a row has other columns than asked for"));
        }
        let key = row.get(columns.len()..columns.len() + parts).unwrap_or_default();
        let key = encode_key(schema, key).map_err(|_| lie(name, "a row has a malformed key"))?;
        let ends = table.parts.get(stream.place).and_then(|part| part.ends());
        if ends.is_none_or(|(first, last)| key < *first || key > *last) {
            return Err(lie(name, "a row has a key outside its key range"));
        }
        if stream.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(lie(name, "its rows are not in the order of their keys"));
        }
        stream.last = Some(key.clone());
        stream.row = row;
        next.push(Reverse((key, at)));
        Ok(())
    }

    fn read_batch(&mut self) -> Result<ColumnBatch> {
        let schema = Arc::clone(&self.table.schema);
        let defined: Vec<_> =
            self.columns.iter().filter_map(|&place| schema.columns.get(place)).collect();
        let kinds = defined.iter().map(|column| column.kind).chain(self.scores.iter().copied());
        let most = usize::try_from(self.left).map_or(self.batch_rows, |it| it.min(self.batch_rows));
        if self.is_counted {
            self.unless.check()?;
            self.left = self.left.saturating_sub(most as u64);
            return Ok(ColumnBatch { rows: most, columns: Vec::new() });
        }
        let mut columns: Vec<ColumnBuilder> =
            kinds.map(|kind| ColumnBuilder::new(kind, most.min(1 << 16))).collect();
        let mut rows = 0;
        while rows < most
            && columns.iter().map(ColumnBuilder::string_bytes).sum::<usize>() < self.batch_bytes
            && let Some(Reverse((key, at))) = self.next.pop()
        {
            let Some(stream) = self.parts.get_mut(at) else { continue };
            let part = self.table.parts.get(stream.place).map_or("", |part| part.name());
            if self.last.as_ref() == Some(&key) {
                return Err(lie(part, "it sent a key that was hidden or did not exist"));
            }
            let row = std::mem::take(&mut stream.row);
            let behind = defined.len() + schema.primary_key.len();
            for ((column, value), out) in defined.iter().zip(&row).zip(&mut columns) {
                let fitted = fit(column, value);
                out.push(&fitted.map_err(|_| lie(part, "a value does not fit its column"))?)?;
            }
            let scores = row.iter().skip(behind).zip(&self.scores);
            for ((value, kind), out) in scores.zip(columns.iter_mut().skip(defined.len())) {
                let is_right = match (kind, value) {
                    (ColumnType::Double, Value::Float(number)) => number.is_finite(),
                    (ColumnType::Text, Value::Text(_)) => true,
                    _ => false,
                };
                if !is_right {
                    return Err(lie(part, "a weight has a wrong type"));
                }
                out.push(value)?;
            }
            rows += 1;
            self.last = Some(key);
            self.advance(at)?;
        }
        self.left = self.left.saturating_sub(rows as u64);
        let columns = columns.into_iter().map(ColumnBuilder::finish).collect();
        Ok(ColumnBatch { rows, columns })
    }
}

impl Iterator for GatheredRows {
    type Item = Result<ColumnBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let batch = self.read_batch();
        if !batch.as_ref().is_ok_and(|batch| batch.rows > 0) {
            self.left = 0;
        }
        batch.map(|batch| (batch.rows > 0).then_some(batch)).transpose()
    }
}
