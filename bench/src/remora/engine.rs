//! Remora as a library: loading, then SEARCH, COUNT and `_score` without a network.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Result;
use remora_engine::{
    Change, ChangeBatch, Database, Options, SearchRequest, Selection, SortBy, SortKey,
    TableChanges, TextQuery, Value,
};
use remora_source::files::{DatabaseSink, RowSink};

use super::{TABLE, row, schema};
use crate::{
    corpus::{Corpus, Document},
    measure::{MeasuredProcess, RunLimits, directory_bytes, once, repeat},
    oracle::{Answer, NEWEST},
    report::{Operations, Remora},
};

/// Rows per batch while loading, as in `remora import`.
const ROWS_PER_BATCH: usize = 16_384;

/// An open database.
pub struct Engine {
    database: Database,
}

impl Engine {
    /// Opens a data directory with the product's own settings.
    pub fn open(directory: &Path) -> Result<Self> {
        Ok(Self { database: Database::open(directory, Options::default())? })
    }

    /// Creates the table and loads the corpus; each batch is durable when it is acknowledged.
    pub fn build(&self, corpus: &Corpus, directory: &Path) -> Result<Remora> {
        self.database.create_table(schema())?;
        let (_, apply) = once(MeasuredProcess::Own, || self.load(corpus))?;
        let (_, checkpoint) = once(MeasuredProcess::Own, || Ok(self.database.checkpoint()?))?;
        let segments = self.database.statistics(TABLE)?.segments;
        let (_, optimize) =
            once(MeasuredProcess::Own, || Ok(self.database.optimize(Some(TABLE))?))?;
        let statistics = self.database.statistics(TABLE)?;
        Ok(Remora {
            apply,
            checkpoint,
            optimize,
            segments,
            index_bytes: statistics.index_bytes,
            store_bytes: statistics.store_bytes,
            disk_bytes: directory_bytes(directory)?,
            ..Default::default()
        })
    }

    /// Loads all documents as `remora import` does: batches are built while earlier ones are
    /// indexed.
    fn load(&self, corpus: &Corpus) -> Result<()> {
        let sink = DatabaseSink::new(&self.database);
        for part in corpus.documents.chunks(ROWS_PER_BATCH) {
            sink.apply(batch(part.iter().map(|document| (document, document.id))))?;
        }
        Ok(sink.finish()?)
    }

    /// Writes documents under these ids as one batch.
    pub fn apply<'d>(&self, documents: impl Iterator<Item = (&'d Document, u64)>) -> Result<()> {
        self.database.apply(batch(documents))?;
        Ok(())
    }

    /// The newest ids and the total number.
    pub fn search(&self, query: &TextQuery) -> Result<Answer> {
        self.run(&request(query, Vec::new()))
    }

    /// The total number.
    pub fn count(&self, query: &TextQuery) -> Result<u64> {
        Ok(self.database.count(&selection(query))?.count)
    }

    /// Measures the three operations.
    pub fn measure(&self, query: &TextQuery, effort: RunLimits) -> Result<Operations> {
        let newest = request(query, Vec::new());
        let best = vec![SortKey { by: SortBy::Score, descending: true }];
        let ranked = request(query, best);
        let selection = selection(query);
        let search = |request: &SearchRequest| {
            repeat(effort, MeasuredProcess::Own, || {
                std::hint::black_box(self.database.search(request)?);
                Ok(())
            })
        };
        Ok(Operations {
            search: search(&newest)?,
            count: repeat(effort, MeasuredProcess::Own, || {
                std::hint::black_box(self.database.count(&selection)?);
                Ok(())
            })?,
            ranked: search(&ranked)?,
        })
    }

    /// Waits until no merge runs, so that it does not disturb the next measurement.
    pub fn settle(&self) -> Result<()> {
        while self.database.statistics(TABLE)?.merging {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Closes the database: writes everything and unlocks the directory.
    pub fn close(self) -> Result<()> {
        Ok(self.database.close()?)
    }

    fn run(&self, request: &SearchRequest) -> Result<Answer> {
        let reply = self.database.search(request)?;
        let id = |hit: &remora_engine::Hit| match hit.key.first() {
            Some(Value::Uint(id)) => Some(*id),
            _ => None,
        };
        Ok(Answer { total: reply.total, newest: reply.hits.iter().filter_map(id).collect() })
    }
}

fn batch<'d>(documents: impl Iterator<Item = (&'d Document, u64)>) -> ChangeBatch {
    let changes = documents.map(|(document, id)| Change::Put(row(document, id))).collect();
    let tables = vec![TableChanges { table: Arc::from(TABLE), changes }];
    ChangeBatch { tables, positions: Vec::new() }
}

fn selection(query: &TextQuery) -> Selection {
    Selection { table: TABLE.to_owned(), text: Some(query.clone()), ..Default::default() }
}

fn request(query: &TextQuery, sort: Vec<SortKey>) -> SearchRequest {
    SearchRequest { selection: selection(query), sort, limit: NEWEST, ..Default::default() }
}
