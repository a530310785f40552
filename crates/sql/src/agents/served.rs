//! A part of a table that this server has for another, at the moment that was pinned when it was opened.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{
    Error, Reader, RequestPart, Result, Row, Scan, ScanRequest, Value, encode_rows,
};

use super::wire::{Opened, PAGE_KEYS, digits, page_rows};

/// Most scans of a connection that go on.
const MAX_SCANS: usize = 64;
/// How often rows may be hidden: each server between this one and the first may do it once, and once for itself.
const MAX_HIDES: usize = 8;

/// An open part.
pub(crate) struct ServedPart {
    /// The moment.
    pub reader: Reader,
    /// The engine's name of the table, or of several as one.
    pub table: String,
    /// Parts of it that did not answer when it was opened: later they are errors.
    lost: Arc<Mutex<Vec<String>>>,
    scans: HashMap<u32, Scan>,
    hides: usize,
}

impl ServedPart {
    pub(crate) fn new(reader: Reader, table: String, lost: Arc<Mutex<Vec<String>>>) -> Self {
        Self { reader, table, lost, scans: HashMap::new(), hides: 0 }
    }

    /// What it is; with its definition if it was just opened. `run` tells this run of the server from others.
    pub(crate) fn opened(&self, is_new: bool, run: &str) -> Result<Opened> {
        let Self { reader, table, .. } = self;
        let schema = reader.schema(table)?;
        let version = format!("{run}/{table:?}/{}", reader.rows_version(table)?);
        let ends = reader.key_ends(table)?;
        let rows = reader.row_count(table)?;
        let lost = self.lost.lock().clone();
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
        self.hides += 1;
        if self.hides > MAX_HIDES {
            let message = format!("rows of a part were hidden {MAX_HIDES} times already");
            return Err(Error::request(RequestPart::Other, message));
        }
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
    pub(crate) fn scan(&mut self, cursor: u32, request: ScanRequest) -> Result<Vec<u8>> {
        let refused = |message: String| Err(Error::request(RequestPart::Other, message));
        if self.scans.len() >= MAX_SCANS {
            return refused(format!("a connection has {MAX_SCANS} scans of a part already"));
        }
        if self.scans.contains_key(&cursor) {
            return refused(format!("there is a scan {cursor} of this part already"));
        }
        let batch_rows =
            page_rows(request.batch_rows, request.columns.len() + request.scores.len());
        let request = ScanRequest { table: self.table.clone(), batch_rows, ..request };
        let scan = self.reader.scan(request)?;
        self.scans.insert(cursor, scan);
        self.page(cursor)
    }

    /// The next page of a scan, which is over behind its last one.
    pub(crate) fn page(&mut self, cursor: u32) -> Result<Vec<u8>> {
        let Some(mut scan) = self.scans.remove(&cursor) else {
            let message = format!("there is no scan {cursor} of this part, or it is over");
            return Err(Error::request(RequestPart::Other, message));
        };
        let batch = scan.next().transpose()?;
        // Of rows of other servers it is known at the next page whether more come.
        let has_more = batch.is_some() && scan.rows() > 0;
        let rows = batch.map_or_else(Vec::new, |batch| batch.to_rows());
        let mut page = vec![u8::from(has_more)];
        page.extend(encode_rows(&rows));
        if has_more {
            self.scans.insert(cursor, scan);
        }
        Ok(page)
    }

    /// No more pages of a scan are wanted; it may be over.
    pub(crate) fn end(&mut self, cursor: u32) {
        self.scans.remove(&cursor);
    }
}
