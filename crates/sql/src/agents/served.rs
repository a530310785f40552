//! The server side: a part of a table here that another server reads, over the snapshot that was
//! pinned when the part was opened.

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

/// The most scans that may be open on a connection.
const MAX_SCANS: usize = 64;
/// How often rows of a part may be hidden: once for each server between this one and the first, and
/// once for this server itself.
const MAX_HIDES: usize = 8;

/// The most weights that the open scans of a part may hold together.
const MAX_SCORED: u64 = 1 << 25;

/// An open scan.
struct OpenScan {
    scan: Scan,
    /// Rows that were read but did not fit into the last page.
    ahead: VecDeque<Row>,
    page_bytes: usize,
    /// The number of weights that the scan computes.
    scored: u64,
}

/// An open part.
pub(crate) struct ServedPart {
    /// The pinned snapshot.
    pub reader: Reader,
    /// The engine's name of the table, or of several tables read as one.
    pub table: String,
    /// Reports of servers that were missing when the part was opened. A server that fails later is
    /// an error.
    lost: Arc<Mutex<Vec<String>>>,
    scans: HashMap<u32, OpenScan>,
    hides: usize,
}

impl ServedPart {
    pub(crate) fn new(reader: Reader, table: String, lost: Arc<Mutex<Vec<String>>>) -> Self {
        Self { reader, table, lost, scans: HashMap::new(), hides: 0 }
    }

    /// The answer to Open and Hide. `is_new` adds the table's definition. `run` distinguishes this
    /// run of the server from others, since table numbers may repeat.
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

    /// Hides the rows with these keys.
    pub(crate) fn hide(&mut self, keys: &[Vec<u8>]) -> Result<()> {
        self.hides += 1;
        if self.hides > MAX_HIDES {
            let message = format!("rows of a part were hidden {MAX_HIDES} times already");
            return Err(Error::request(RequestPart::Other, message));
        }
        self.reader = self.reader.without_keys(&self.table, keys)?;
        Ok(())
    }

    /// A page of keys from `from` on, as encoded rows.
    pub(crate) fn keys(&self, from: &[u8]) -> Result<Vec<u8>> {
        let keys = self.reader.keys_from(&self.table, from, PAGE_KEYS)?;
        let rows: Vec<Row> = keys.into_iter().map(|key| vec![Value::Bytes(key.into())]).collect();
        Ok(encode_rows(&rows))
    }

    /// The values of a column with their row counts, as encoded rows; the first byte is 0 if they
    /// are too many to send.
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

    /// Opens a scan and returns its first page.
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

    /// The number of weights that a scan computes. Refused if all scans together would exceed
    /// [`MAX_SCORED`].
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

    /// The next page of a scan. The last page closes the scan.
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
        // If the rows come from other servers, only the next page shows whether more follow.
        let has_more = !rows.is_empty() && (!going.ahead.is_empty() || going.scan.rows() > 0);
        let mut page = vec![u8::from(has_more)];
        page.extend(encode_rows(&rows));
        if has_more {
            self.scans.insert(cursor, going);
        }
        Ok(page)
    }

    /// Closes a scan, which may be closed already.
    pub(crate) fn end(&mut self, cursor: u32) {
        self.scans.remove(&cursor);
    }
}
