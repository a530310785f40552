//! A part of a table that this server has for another, at the moment that was pinned when it was opened.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{
    ColumnBatch, Error, Reader, RequestPart, Result, Row, Scan, ScanRequest, Value, encode_rows,
};

use super::wire::{Opened, digits};

/// Most scans of a connection that go on.
const MAX_SCANS: usize = 64;
/// Most rows of a page.
const MAX_PAGE_ROWS: usize = 8_192;
/// Keys of a page.
const PAGE_KEYS: usize = 16_384;

/// An open part.
pub(crate) struct ServedPart {
    /// The moment.
    pub reader: Reader,
    /// The engine's name of the table, or of several as one.
    pub table: String,
    /// Parts of it that did not answer.
    lost: Arc<Mutex<Vec<String>>>,
    /// How many of those were told of.
    told: usize,
    scans: HashMap<u32, Pages>,
    next: u32,
}

/// A scan that goes on, with the page behind the one that was given.
struct Pages {
    scan: Scan,
    ahead: Option<ColumnBatch>,
}

impl ServedPart {
    pub(crate) fn new(reader: Reader, table: String, lost: Arc<Mutex<Vec<String>>>) -> Self {
        Self { reader, table, lost, told: 0, scans: HashMap::new(), next: 0 }
    }

    /// What it is; with its definition if it was just opened. `run` tells this run of the server from others.
    pub(crate) fn opened(&mut self, is_new: bool, run: &str) -> Result<Opened> {
        let Self { reader, table, .. } = self;
        let schema = reader.schema(table)?;
        let version = format!("{run}/{table:?}/{}", reader.rows_version(table)?);
        let ends = reader.key_ends(table)?;
        let rows = reader.row_count(table)?;
        let lost = self.lost.lock().clone();
        self.told = lost.len();
        Ok(Opened {
            schema: is_new.then(|| schema.as_ref().clone()),
            rows,
            version,
            ends: ends.map(|(first, last)| (digits(&first), digits(&last))),
            lost,
        })
    }

    /// Without the rows of these keys.
    pub(crate) fn hide(&mut self, keys: &[Vec<u8>]) -> Result<()> {
        self.reader = self.reader.hiding(&self.table, keys)?;
        Ok(())
    }

    /// Some keys from one on.
    pub(crate) fn keys(&self, from: &[u8]) -> Result<Vec<u8>> {
        let keys = self.reader.keys_from(&self.table, from, PAGE_KEYS)?;
        let rows: Vec<Row> = keys.into_iter().map(|key| vec![Value::Bytes(key.into())]).collect();
        Ok(encode_rows(&rows))
    }

    /// Begins a scan and gives its first page.
    pub(crate) fn scan(&mut self, request: ScanRequest) -> Result<Vec<u8>> {
        if self.scans.len() >= MAX_SCANS {
            let message = format!("a connection has {MAX_SCANS} scans of a part already");
            return Err(Error::request(RequestPart::Other, message));
        }
        let batch_rows = request.batch_rows.clamp(1, MAX_PAGE_ROWS);
        let request = ScanRequest { table: self.table.clone(), batch_rows, ..request };
        let mut scan = self.reader.scan(request)?;
        let ahead = scan.next().transpose()?;
        self.next = self.next.wrapping_add(1);
        let cursor = self.next;
        self.scans.insert(cursor, Pages { scan, ahead });
        self.page(cursor)
    }

    /// The next page of a scan, which is over behind its last one.
    pub(crate) fn page(&mut self, cursor: u32) -> Result<Vec<u8>> {
        let Some(mut pages) = self.scans.remove(&cursor) else {
            let message = format!("there is no scan {cursor} of this part, or it is over");
            return Err(Error::request(RequestPart::Other, message));
        };
        let rows = pages.ahead.take().map_or_else(Vec::new, |batch| batch.to_rows());
        pages.ahead = pages.scan.next().transpose()?;
        let mut page = cursor.to_le_bytes().to_vec();
        page.push(u8::from(pages.ahead.is_some()));
        page.extend(encode_rows(&rows));
        if pages.ahead.is_some() {
            self.scans.insert(cursor, pages);
        }
        Ok(page)
    }

    /// An error if a part was lost since this was last told, for the answer would lack it.
    pub(crate) fn check_parts(&self) -> Result<()> {
        match self.lost.lock().get(self.told) {
            Some(lost) => Err(Error::Elsewhere(format!("a part of it was lost: {lost}"))),
            None => Ok(()),
        }
    }
}
