//! Finds the rows that reference changed rows by a foreign key, at one position of a transaction.
//!
//! They are found in one snapshot of the engine that includes the staged part of the transaction, with its later
//! changes on top. They are read page by page, as often as needed, so their number does not matter.

use std::{collections::HashMap, sync::Arc};

use remora_engine::{Change, Comparison, Filter, Literal, Reader, Row, ScanRequest, Value};
use rustc_hash::FxHashSet;

use super::applier::Applier;
use crate::{
    Result,
    mysql::{copy::write_key, schema::SourceTable},
};

/// Rows of a page.
const PAGE: usize = 1_000;

/// The values that the sought rows have.
pub(super) struct ReferencedValues {
    /// The positions of the columns.
    pub places: Vec<usize>,
    /// The alternative lists of values.
    pub values: Vec<Vec<Value>>,
}

/// The rows found.
pub(super) struct ReferencingRows {
    reader: Reader,
    request: ScanRequest,
    source: Arc<SourceTable>,
    /// Keys that the transaction wrote and the snapshot does not have.
    newer: FxHashSet<Vec<u8>>,
    /// The rows with those keys.
    newer_rows: Vec<Row>,
}

impl Applier {
    /// The rows of a local table with certain values.
    pub fn referencing_rows(
        &mut self,
        name: &Arc<str>,
        source: &Arc<SourceTable>,
        referenced: &ReferencedValues,
    ) -> Result<ReferencingRows> {
        let reader = match &mut self.large {
            Some(large) => large.reader()?,
            None => {
                self.submit_whole()?;
                self.shared.database.reader()
            }
        };
        let request = ScanRequest {
            table: name.to_string(),
            filter: referenced.filter(source),
            columns: (0..source.columns.len()).collect(),
            batch_rows: PAGE,
            in_key_order: true,
            ..ScanRequest::default()
        };
        let mut wanted = FxHashSet::default();
        let mut written = Vec::new();
        let all: Vec<usize> = (0..referenced.places.len()).collect();
        for values in &referenced.values {
            write_key(&mut written, values, &all);
            wanted.insert(written.clone());
        }
        let newer = newer_rows(self.batch.changes_of(name), source);
        let newer_rows = newer.values().flatten().filter(|row| {
            write_key(&mut written, row, &referenced.places);
            wanted.contains(&written)
        });
        let newer_rows = newer_rows.map(|row| Row::clone(row)).collect();
        let newer = newer.into_keys().collect();
        Ok(ReferencingRows { reader, request, source: Arc::clone(source), newer, newer_rows })
    }
}

/// The current rows of changed keys.
fn newer_rows<'c>(
    changes: &'c [Change],
    source: &SourceTable,
) -> HashMap<Vec<u8>, Option<&'c Row>> {
    let mut newer = HashMap::new();
    let mut written = Vec::new();
    let key_places: Vec<_> = (0..source.key.len()).collect();
    for change in changes {
        let row = match change {
            Change::Put(row) | Change::Insert(row) => {
                write_key(&mut written, row, &source.key);
                Some(row)
            }
            Change::Delete(key) => {
                write_key(&mut written, key, &key_places);
                None
            }
        };
        newer.insert(written.clone(), row);
    }
    newer
}

impl ReferencedValues {
    fn filter(&self, source: &SourceTable) -> Option<Filter> {
        let name = |place: &usize| Some(source.columns.get(*place)?.name.clone());
        if let ([place], [_, _, ..]) = (&self.places[..], &self.values[..]) {
            let values = self.values.iter().flatten().cloned().map(Literal::Value);
            return Some(Filter::In(name(place)?, values.collect()));
        }
        let holds = |values: &Vec<Value>| {
            let equal = self.places.iter().zip(values).filter_map(|(place, value)| {
                let literal = Literal::Value(value.clone());
                Some(Filter::Compare {
                    column: name(place)?,
                    comparison: Comparison::Equal,
                    literal,
                })
            });
            Filter::And(equal.collect())
        };
        Some(Filter::Or(self.values.iter().map(holds).collect()))
    }
}

impl ReferencingRows {
    /// Calls `visit` with all rows, page by page. Each call gives the same rows, whatever was written meanwhile.
    pub fn for_each_page(&self, mut visit: impl FnMut(Vec<Row>) -> Result<()>) -> Result<()> {
        let mut written = Vec::new();
        for page in self.newer_rows.chunks(PAGE) {
            visit(page.to_vec())?;
        }
        for batch in self.reader.scan(self.request.clone())? {
            let batch = batch?;
            let rows = (0..batch.rows)
                .map(|at| -> Row { batch.columns.iter().map(|column| column.value(at)).collect() });
            let older = rows.filter(|row| {
                write_key(&mut written, row, &self.source.key);
                !self.newer.contains(&written)
            });
            let older: Vec<Row> = older.collect();
            if !older.is_empty() {
                visit(older)?;
            }
        }
        Ok(())
    }
}
