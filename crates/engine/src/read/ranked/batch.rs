//! Documents that belong to no table, indexed in memory so that stored queries can be matched against them.

use std::{ops::ControlFlow, sync::Arc};

use remora_index::words::WordsIndex;

use super::{Ranked, stored::StoredQuery};
use crate::{
    ColumnDef, ColumnType, HIDDEN_KEY, InterruptCheck, Position, Result, Row, Schema, Value,
    encode::{RowFormat, encode_key},
    indexing::{RowIndexer, path_specs},
    schema::Synonyms,
    snapshot::{SegmentView, TableView, UsageCounters},
    storage::{
        rows::{RowReader, RowVisitor},
        store::{RowVersion, StoredBytes},
    },
};

/// Some documents and the index of their keywords, in memory.
pub struct DocumentBatch {
    view: TableView,
}

impl DocumentBatch {
    /// Indexes documents, which are rows of a definition that has words. It costs as much as writing these rows,
    /// without the disk.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if a document is too large for an index; [`crate::Error::Ended`] if it is to end.
    pub fn new(documents: &Schema, rows: &[Row], unless: &InterruptCheck) -> Result<Self> {
        let schema = Arc::new(numbered(documents));
        let mut indexer = RowIndexer::new(&schema);
        for (number, row) in (0_u64..).zip(rows) {
            unless.check()?;
            indexer.add(&encode_key(&schema, &[Value::Uint(number)])?, row)?;
        }
        let segment = indexer.finish()?;
        let segments = segment.map(|segment| SegmentView::new(Arc::new(segment), None, &schema));
        let view = TableView {
            number: 0,
            format: Arc::new(RowFormat::new(Arc::clone(&schema))),
            defined: Position(0),
            paths: path_specs(&schema).into(),
            synonyms: Arc::new(Synonyms::of(&schema)),
            changed: Position(0),
            segments: segments.into_iter().collect(),
            parts: Arc::default(),
            rows: Arc::new(NoRows),
            staged: None,
            activity: Arc::default(),
            usage: Arc::new(UsageCounters::of(&schema, None)),
            schema,
        };
        Ok(Self { view })
    }

    /// Calls `visit` with each keyword that the documents have.
    pub fn for_each_keyword(&self, visit: &mut dyn FnMut(&str)) {
        if let Some(words) = self.words() {
            words.for_each_with_prefix("", |keyword, _| {
                visit(keyword);
                ControlFlow::Continue(())
            });
        }
    }

    /// Whether one of the documents contains the keyword.
    pub fn has_keyword(&self, keyword: &str) -> bool {
        self.words().is_some_and(|words| words.find(keyword).is_some())
    }

    /// The numbers of the documents that a query finds, from 0, ascending. The query was parsed for the same definition.
    ///
    /// # Errors
    /// [`crate::Error::Ended`] if it is to end.
    pub fn find(&self, query: &StoredQuery, unless: &InterruptCheck) -> Result<Vec<u32>> {
        let Some(segment) = self.view.segments.first() else { return Ok(Vec::new()) };
        let (asked, parsed) = (&query.asked, &query.parsed);
        let schema = &self.view.schema;
        let ranked = Ranked::of_parsed(schema, Some(&self.view), asked, parsed, false, unless)?;
        let mut found = Vec::new();
        ranked.documents(segment)?.for_each(|document| found.push(document));
        Ok(found)
    }

    fn words(&self) -> Option<&WordsIndex> {
        let id = self.view.schema.words.as_ref()?.segment_id();
        self.view.segments.first()?.segment.words(id)
    }
}

/// The definition under which the documents are indexed: only the words, with the number of the document as its key.
fn numbered(documents: &Schema) -> Schema {
    let mut columns = documents.columns.clone();
    columns.iter_mut().for_each(|column| column.indexed = false);
    let id = columns.iter().map(|column| column.id).max().map_or(0, |highest| highest + 1);
    columns.push(ColumnDef {
        id,
        name: HIDDEN_KEY.to_owned(),
        kind: ColumnType::Uint(64),
        nullable: false,
        indexed: false,
        declared: None,
    });
    Schema {
        name: documents.name.clone(),
        primary_key: vec![columns.len() - 1],
        columns,
        texts: Vec::new(),
        indexes: Vec::new(),
        required: None,
        synonyms: Vec::new(),
        words: documents.words.clone(),
        paths: Vec::new(),
        declared: None,
    }
}

/// A source of rows that has none: the documents are not stored.
struct NoRows;

impl RowReader for NoRows {
    fn get(
        &self,
        _: &[u8],
        _: Option<RowVersion>,
        _: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        Ok(None)
    }

    fn stored(&self, _: &[u8]) -> Result<Option<StoredBytes>> {
        Ok(None)
    }

    fn scan_columns(
        &self,
        _: &[u8],
        _: &dyn Fn(usize) -> bool,
        _: &mut RowVisitor<'_>,
    ) -> Result<()> {
        Ok(())
    }
}
