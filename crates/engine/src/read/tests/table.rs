//! Tables in memory: rows spread over segments, some of them replaced or deleted since.

use std::{collections::BTreeMap, sync::Arc};

use remora_index::Bitmap;

use crate::{
    ColumnDef, ColumnType, Error, Position, Result, Row, Schema, TextDef, Value,
    encode::encode_key,
    indexing::RowIndexer,
    interrupt::InterruptCheck,
    schema::Synonyms,
    snapshot::{SegmentView, TableView},
    storage::{
        rows::{RowReader, RowVisitor},
        store::{RowVersion, StoredBytes},
    },
};

pub const POSITION: Position = Position(7);
pub const BM25: (f64, f64) = (1.2, 0.75);

/// Positions of the columns.
pub const ID: usize = 0;
pub const NUMBER: usize = 1;
pub const PRICE: usize = 2;
pub const CATEGORY: usize = 3;
pub const TITLE: usize = 4;
pub const BODY: usize = 5;

/// A document of a segment: a row, and whether it is gone.
pub struct Stored {
    pub row: Row,
    pub deleted: bool,
}

/// A table with one text index over two columns, or with two of which one joins its columns.
pub fn schema(two_texts: bool) -> Schema {
    let column = |id: u32, name: &str, kind, indexed| ColumnDef {
        id: id * 3 + 1,
        name: name.to_owned(),
        kind,
        nullable: id > 0,
        indexed,
        declared: None,
    };
    let text = |id, columns: &[usize], delimiter: Option<&str>| TextDef {
        id,
        columns: columns.to_vec(),
        delimiter: delimiter.map(str::to_owned),
        normalization: Default::default(),
    };
    Schema {
        texts: match two_texts {
            false => vec![text(4, &[TITLE, BODY], None)],
            true => vec![text(4, &[TITLE], None), text(9, &[TITLE, BODY], Some(" "))],
        },
        ..Schema::over(
            "articles",
            vec![
                column(0, "id", ColumnType::Int(64), true),
                column(1, "number", ColumnType::Int(32), true),
                column(2, "price", ColumnType::Double, true),
                column(3, "category", ColumnType::Text, true),
                column(4, "title", ColumnType::Text, false),
                column(5, "body", ColumnType::Text, false),
            ],
            vec![ID],
        )
    }
}

struct Rows(BTreeMap<Vec<u8>, Row>);

impl RowReader for Rows {
    fn get(
        &self,
        key: &[u8],
        _version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        let Some(mut row) = self.0.get(key).cloned() else { return Ok(None) };
        for (_, value) in row.iter_mut().enumerate().filter(|(at, _)| !wanted(*at)) {
            *value = Value::Null;
        }
        Ok(Some(row))
    }

    fn stored(&self, _: &[u8]) -> Result<Option<StoredBytes>> {
        Err(Error::Io("no row is stored here".to_owned()))
    }

    fn scan_columns(
        &self,
        from: &[u8],
        _: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        for (key, row) in self.0.range(from.to_vec()..) {
            if !visit(key, row.clone())? {
                break;
            }
        }
        Ok(())
    }
}

/// The views' moment; no read of it is told to end.
pub fn moment() -> (Position, &'static InterruptCheck) {
    static NEVER: InterruptCheck = InterruptCheck::NEVER;
    (POSITION, &NEVER)
}

/// The encoded key of a row.
pub fn key_of(schema: &Schema, row: &Row) -> Vec<u8> {
    let parts: Vec<Value> = schema.primary_key.iter().map(|&at| row[at].clone()).collect();
    encode_key(schema, &parts).unwrap()
}

/// The view of a table whose segments hold these documents.
pub fn view(schema: Schema, segments: Vec<Vec<Stored>>) -> TableView {
    let mut rows = BTreeMap::new();
    let mut views = Vec::new();
    for stored in segments {
        let mut documents: BTreeMap<Vec<u8>, Stored> = BTreeMap::new();
        for one in stored {
            documents.insert(key_of(&schema, &one.row), one);
        }
        let mut indexer = RowIndexer::new(&schema);
        let mut deleted = Bitmap::new(documents.len() as u32);
        for (doc, (key, one)) in documents.into_iter().enumerate() {
            indexer.add(&key, &one.row).unwrap();
            if one.deleted {
                deleted.insert(doc as u32);
            } else {
                assert!(rows.insert(key, one.row).is_none(), "a live key is in two segments");
            }
        }
        if let Some(segment) = indexer.finish().unwrap() {
            views.push(SegmentView::new(Arc::new(segment), Some(deleted), &schema));
        }
    }
    let (schema, rows) = (Arc::new(schema), Arc::new(Rows(rows)));
    let synonyms = Arc::new(Synonyms::of(&schema));
    let format = Arc::new(crate::encode::RowFormat::new(Arc::clone(&schema)));
    let (defined, changed) = (Position(0), Position(0));
    let usage = Arc::new(crate::snapshot::UsageCounters::of(&schema, None));
    TableView {
        number: 1,
        paths: crate::indexing::path_specs(&schema).into(),
        schema,
        synonyms,
        format,
        defined,
        changed,
        segments: views,
        parts: Arc::default(),
        rows,
        staged: None,
        activity: Arc::default(),
        usage,
    }
}

/// A view of one segment of these rows.
pub fn single(schema: Schema, rows: Vec<Row>) -> TableView {
    let stored = rows.into_iter().map(|row| Stored { row, deleted: false }).collect();
    view(schema, vec![stored])
}

/// A row with an id and texts, the rest NULL.
pub fn row(id: i64, title: &str, body: &str) -> Row {
    let mut row = vec![Value::Null; 6];
    row[ID] = Value::Int(id);
    row[TITLE] = Value::Text(title.into());
    row[BODY] = Value::Text(body.into());
    row
}
