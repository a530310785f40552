//! A reader sees one moment, by every way of reading alike, whatever the table went through.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use remora_engine::{
    ColumnDef, ColumnType, Comparison, Database, Definition, Ending, Error, Filter, KeyValues,
    Literal, Piece, PieceMatch, Reader, Row, ScanRequest, Schema, SearchRequest, Selection,
    TextQuery, Value,
};

use crate::common::*;

/// What a reader says the table holds, after all its ways of reading have agreed on it.
fn contents(reader: &Reader) -> BTreeMap<i64, Row> {
    let columns: Vec<usize> = (0..reader.schema(TABLE).unwrap().columns.len()).collect();
    let mut rows = BTreeMap::new();
    let request = ScanRequest {
        table: TABLE.to_owned(),
        columns: columns.clone(),
        batch_rows: 50,
        in_key_order: true,
        ..ScanRequest::default()
    };
    for batch in reader.scan(request.clone()).unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.rows {
            let row: Row = batch.columns.iter().map(|column| column.value(row)).collect();
            assert!(rows.insert(id_of(&row), row).is_none());
        }
    }
    assert_eq!(reader.row_count(TABLE).unwrap(), rows.len() as u64);
    let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
    assert_eq!(reader.count(&selection).unwrap().count, rows.len() as u64);
    check_indexed(reader, &request, &rows);
    check_keys(reader, &columns, &rows);
    rows
}

/// The indexed columns alone, which come from the segments.
fn check_indexed(reader: &Reader, request: &ScanRequest, rows: &BTreeMap<i64, Row>) {
    let schema = reader.schema(TABLE).unwrap();
    let columns = request.columns.iter().copied();
    let columns: Vec<usize> = columns.filter(|&at| schema.columns[at].indexed).collect();
    let request = ScanRequest { columns: columns.clone(), ..request.clone() };
    let batches = reader.scan(request).unwrap().map(|batch| batch.unwrap());
    let found = batches.flat_map(|batch| {
        let row = |row| batch.columns.iter().map(|column| column.value(row)).collect::<Row>();
        (0..batch.rows).map(row).collect::<Vec<_>>()
    });
    let project = |row: &Row| columns.iter().map(|&at| row[at].clone()).collect::<Row>();
    assert!(found.eq(rows.values().map(project)));
}

fn check_keys(reader: &Reader, columns: &[usize], rows: &BTreeMap<i64, Row>) {
    let keys: Vec<KeyValues> = (-5..600).map(|id| KeyValues::from_iter([Value::Int(id)])).collect();
    let mut found = BTreeMap::new();
    let mut visit = |place: usize, values: &mut Row| {
        found.insert(id_of(&keys[place]), values.to_vec());
        Ok(())
    };
    reader.get_many(TABLE, &keys, columns, &mut visit).unwrap();
    assert_eq!(&found, rows);
    for key in keys.iter().step_by(7) {
        assert_eq!(reader.get(TABLE, key).unwrap().as_ref(), rows.get(&id_of(key)));
    }
}

fn alter(database: &Database, schema: Schema, fills: Vec<(u32, Value)>) {
    database.define(vec![Definition::Alter { schema, fills }], Vec::new()).unwrap();
}

#[test]
fn snapshot_stays_during_inserts_and_deletes() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let mut random = Random::seeded();
    let mut model: BTreeMap<i64, Row> = BTreeMap::new();
    let mut pinned: Vec<(Reader, BTreeMap<i64, Row>)> = Vec::new();
    for round in 0..60 {
        let mut changes = Vec::new();
        for _ in 0..random.below(40) {
            let id = random.below(500) as i64;
            let text = random.text();
            if random.below(4) == 0 {
                model.remove(&id);
                changes.push(delete(id));
            } else {
                let score = random.below(9) as i64;
                model.insert(id, row(id, score, &text));
                changes.push(put(id, score, &text));
            }
        }
        apply(&database, changes).unwrap();
        if round % 20 == 19 {
            database.optimize(None).unwrap();
        }
        let reader = database.reader();
        assert_eq!(reader.position(), database.position());
        assert_eq!(contents(&reader), model);
        if round % 12 == 0 {
            pinned.push((reader, model.clone()));
        }
    }
    for (reader, model) in &pinned {
        assert_eq!(&contents(reader), model);
        assert_ne!(reader.version(TABLE).unwrap(), database.table_version(TABLE).unwrap());
    }
    let (reader, _) = pinned.remove(0);
    database.drop_table(TABLE).unwrap();
    assert_eq!(reader.tables(), [TABLE]);
    assert!(matches!(database.reader().schema(TABLE), Err(Error::NotFound { .. })));
    database.close().unwrap();
    assert!(matches!(reader.get(TABLE, &[Value::Int(1)]), Err(Error::Closed)));
}

#[test]
fn altered_tables_are_read_as_they_are_now() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let column = |id, name: &str, kind, indexed| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: true,
        indexed,
        declared: None,
    };
    apply(&database, (0..90).map(|id| put(id, id, "first")).collect()).unwrap();
    let before = database.reader();
    let mut schema = schema();
    schema.columns.push(column(4, "price", ColumnType::Decimal(8, 2), true));
    schema.columns.push(column(5, "state", ColumnType::Text, true));
    schema.columns.push(column(6, "note", ColumnType::Text, false));
    let fills = vec![(5, Value::Text("new".into())), (6, Value::Text("-".into()))];
    alter(&database, schema.clone(), fills);
    let rows = contents(&database.reader());
    let old = |id: i64| {
        let mut old = row(id, id, "first");
        old.extend([Value::Null, Value::Text("new".into()), Value::Text("-".into())]);
        old
    };
    assert_eq!(rows, (0..90).map(|id| (id, old(id))).collect());
    assert_eq!(contents(&before)[&3], row(3, 3, "first"));

    let filter = |comparison| Filter::Compare {
        column: "score".to_owned(),
        comparison,
        literal: Literal::Value(Value::Int(40)),
    };
    schema.required = Some(filter(Comparison::GreaterOrEqual));
    alter(&database, schema.clone(), Vec::new());
    let rows = contents(&database.reader());
    assert_eq!(rows, (40..90).map(|id| (id, old(id))).collect());

    // A column that leaves the segments is read from the rows, and one may be in the keys alone.
    schema.columns[0].indexed = false;
    schema.columns[1].indexed = false;
    schema.required = None;
    alter(&database, schema, Vec::new());
    assert_eq!(contents(&database.reader()).len(), 90);
    drop(before);
    drop(database);
    let database = open_altered(directory.path());
    assert_eq!(contents(&database.reader()).len(), 90);
    check_is_clean(database);
}

fn open_altered(path: &std::path::Path) -> Database {
    Database::open(path, quick()).unwrap()
}

#[test]
fn an_interrupt_ends_searches_counts_and_facets() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..50).map(|id| put(id, id, "two words, and others")).collect()).unwrap();
    let interrupt = Arc::new(AtomicBool::new(false));
    let reader = database.reader().with_interrupt(interrupt.clone());
    let piece = |text: &str| Piece {
        texts: Vec::new(),
        text: text.to_owned(),
        matching: PieceMatch::Words,
        letters: None,
    };
    // The second is decided by the texts themselves: something other than a space stands between its words.
    let texts = [TextQuery::Term("words".to_owned()), TextQuery::Piece(piece("words and"))];
    let selection = |text: Option<TextQuery>| Selection {
        table: TABLE.to_owned(),
        text,
        ..Selection::default()
    };
    let search = |text: Option<TextQuery>| {
        let fields = vec!["body".to_owned()];
        let request = SearchRequest {
            selection: selection(text),
            fields,
            limit: 50,
            ..SearchRequest::default()
        };
        reader.search(&request).map(|reply| reply.hits.len())
    };
    for text in &texts {
        reader.count(&selection(Some(text.clone()))).unwrap();
        assert!(search(Some(text.clone())).is_ok());
    }
    assert_eq!(search(None).unwrap(), 50);
    interrupt.store(true, Relaxed);
    for text in texts {
        let counted = reader.count(&selection(Some(text.clone()))).map(|reply| reply.count);
        assert!(matches!(counted, Err(Error::Ended(Ending::Interrupted))), "{text:?}: {counted:?}");
        let found = search(Some(text));
        assert!(matches!(found, Err(Error::Ended(Ending::Interrupted))), "{found:?}");
    }
    // No text is looked for: its rows are read.
    assert!(matches!(search(None), Err(Error::Ended(Ending::Interrupted))));
}
