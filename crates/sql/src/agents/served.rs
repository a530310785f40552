//! The serving side: a part of a table in this server that another server reads, over the snapshot that was pinned when
//! it was opened.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use remora_engine::{
    Error, FacetRequest, MAX_FACET_VALUES, Reader, RequestPart, Result, Row, Scan, ScanRequest,
    Selection, Value, encode_rows,
};

use super::wire::{MAX_PAGE_BYTES, OpenReply, PAGE_KEYS, digits, page_rows, row_bytes};

/// Most scans of a connection that go on.
const MAX_SCANS: usize = 64;
/// How often rows may be hidden: each server between this one and the first may do it once, and once for itself.
const MAX_HIDES: usize = 8;

/// Most weights that the scans of a part that go on have together.
const MAX_SCORED: u64 = 1 << 25;

/// A scan that goes on.
struct OpenScan {
    scan: Scan,
    /// Rows that were read and had no room in the last page.
    ahead: VecDeque<Row>,
    page_bytes: usize,
    /// How many weights it has.
    scored: u64,
}

/// An open part.
pub(crate) struct ServedPart {
    /// The moment.
    pub reader: Reader,
    /// The engine's name of the table, or of several as one.
    pub table: String,
    /// Parts of it that did not answer when it was opened: later they are errors.
    lost: Arc<Mutex<Vec<String>>>,
    scans: HashMap<u32, OpenScan>,
    hides: usize,
}

impl ServedPart {
    pub(crate) fn new(reader: Reader, table: String, lost: Arc<Mutex<Vec<String>>>) -> Self {
        Self { reader, table, lost, scans: HashMap::new(), hides: 0 }
    }

    /// What it is; with its definition if it was just opened. `run` tells this run of the server from others.
    pub(crate) fn opened(&self, is_new: bool, run: &str) -> Result<OpenReply> {
        let Self { reader, table, .. } = self;
        let schema = reader.schema(table)?;
        let version = format!("{run}/{table:?}/{}", reader.rows_version(table)?);
        let ends = reader.key_ends(table)?;
        let rows = reader.row_count(table)?;
        let lost = self.lost.lock().clone();
        Ok(OpenReply {
            schema: is_new.then(|| schema.as_ref().clone()),
            rows,
            version,
            ends: ends.map(|(first, last)| (digits(&first), digits(&last))),
            lost,
        })
    }

    /// Without the rows of these keys.
    pub(crate) fn hide(&mut self, keys: &[Vec<u8>]) -> Result<()> {
        self.hides += 1;
        if self.hides > MAX_HIDES {
            let message = format!("rows of a part were hidden {MAX_HIDES} times already");
            return Err(Error::request(RequestPart::Other, message));
        }
        self.reader = self.reader.without_keys(&self.table, keys)?;
        Ok(())
    }

    /// Some keys from one on.
    pub(crate) fn keys(&self, from: &[u8]) -> Result<Vec<u8>> {
        let keys = self.reader.keys_from(&self.table, from, PAGE_KEYS)?;
        let rows: Vec<Row> = keys.into_iter().map(|key| vec![Value::Bytes(key.into())]).collect();
        Ok(encode_rows(&rows))
    }

    /// The values of a column with their numbers of rows.
    pub(crate) fn facet(&self, selection: Selection, column: String) -> Result<Vec<u8>> {
        let request =
            FacetRequest { selection, column, limit: usize::MAX, ..FacetRequest::default() };
        let found = self.reader.facet_few(&request, MAX_FACET_VALUES)?;
        let row = |(value, count): (Value, u64)| vec![value, Value::Uint(count)];
        let rows = found.map(|found| found.values.into_iter().map(row).collect::<Vec<Row>>());
        let is_small = |rows: &Vec<Row>| {
            rows.iter().map(|row| row_bytes(row)).sum::<usize>() <= MAX_PAGE_BYTES
        };
        let rows = rows.filter(is_small);
        let mut answer = vec![u8::from(rows.is_some())];
        answer.extend(encode_rows(&rows.unwrap_or_default()));
        Ok(answer)
    }

    /// Begins a scan and gives its first page.
    pub(crate) fn scan(
        &mut self,
        cursor: u32,
        request: ScanRequest,
        page_bytes: usize,
    ) -> Result<Vec<u8>> {
        let refused = |message: String| Err(Error::request(RequestPart::Other, message));
        if self.scans.len() >= MAX_SCANS {
            return refused(format!("a connection has {MAX_SCANS} scans of a part already"));
        }
        if self.scans.contains_key(&cursor) {
            return refused(format!("there is a scan {cursor} of this part already"));
        }
        let columns: HashSet<usize> = request.columns.iter().copied().collect();
        if columns.len() < request.columns.len() {
            return refused("a column is asked for twice".to_owned());
        }
        let columns = request.columns.len() + request.scores.len();
        let page_bytes = page_bytes.min(MAX_PAGE_BYTES);
        let rows_of_bytes = page_bytes / row_bytes(&[Value::Null]) / columns.max(1);
        let batch_rows = page_rows(request.batch_rows.min(rows_of_bytes), columns);
        let (table, batch_bytes) = (self.table.clone(), Some(page_bytes));
        let request = ScanRequest { table, batch_rows, batch_bytes, ..request };
        let scored = self.scored(&request)?;
        let scan = self.reader.scan(request)?;
        let ahead = VecDeque::new();
        self.scans.insert(cursor, OpenScan { scan, ahead, page_bytes, scored });
        self.page(cursor)
    }

    /// How many weights a scan has; refused where there are too many with those of the others.
    fn scored(&self, request: &ScanRequest) -> Result<u64> {
        let scores = request.scores.len() as u64;
        if scores == 0 {
            return Ok(0);
        }
        let others: u64 = self.scans.values().map(|going| going.scored).sum();
        let left = MAX_SCORED.saturating_sub(others);
        let every = self.reader.row_count(&self.table)?.saturating_mul(scores);
        if every <= left {
            return Ok(every);
        }
        let selection = Selection {
            table: self.table.clone(),
            text: request.text.clone(),
            filter: request.filter.clone(),
            ..Selection::default()
        };
        let scored = self.reader.count(&selection)?.count.saturating_mul(scores);
        if scored > left {
            let message = format!(
                "the scans of a part have {MAX_SCORED} weights at most together, and this one would have {scored}"
            );
            return Err(Error::request(RequestPart::Other, message));
        }
        Ok(scored)
    }

    /// The next page of a scan, which is over behind its last one.
    pub(crate) fn page(&mut self, cursor: u32) -> Result<Vec<u8>> {
        let Some(mut going) = self.scans.remove(&cursor) else {
            let message = format!("there is no scan {cursor} of this part, or it is over");
            return Err(Error::request(RequestPart::Other, message));
        };
        if going.ahead.is_empty()
            && let Some(batch) = going.scan.next().transpose()?
        {
            going.ahead = batch.to_rows().into();
        }
        let (mut rows, mut bytes): (Vec<Row>, usize) = (Vec::new(), 0);
        while bytes < going.page_bytes.max(1)
            && let Some(row) = going.ahead.pop_front()
        {
            bytes += row_bytes(&row);
            rows.push(row);
        }
        // Of rows of other servers it is known at the next page whether more come.
        let has_more = !rows.is_empty() && (!going.ahead.is_empty() || going.scan.rows() > 0);
        let mut page = vec![u8::from(has_more)];
        page.extend(encode_rows(&rows));
        if has_more {
            self.scans.insert(cursor, going);
        }
        Ok(page)
    }

    /// No more pages of a scan are wanted; it may be over.
    pub(crate) fn end(&mut self, cursor: u32) {
        self.scans.remove(&cursor);
    }
}
