//! Dumps: what was written is read back, and damaged files are refused.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use proptest::prelude::*;

use super::*;
use crate::{
    ColumnType, Error, Value,
    encode::{
        encode_key, encode_row,
        strategies::{any_value, table},
    },
    storage::{
        rows::{RowReader, StoredRows},
        store::{Keyspace, Store, StoreBatch, testing::FaultyStore},
    },
};

type Source = (Arc<Schema>, Arc<dyn RowReader>);

/// A table with these rows, whose first column is the key.
fn source(name: &str, kinds: &[ColumnType], rows: &[Row]) -> Source {
    let mut schema = table(kinds);
    schema.name = name.to_owned();
    schema.primary_key = vec![0];
    schema.columns[0].nullable = false;
    let store = FaultyStore::default();
    let mut batch = StoreBatch::new();
    for row in rows {
        let key = encode_key(&schema, &row[..1]).unwrap();
        batch.put(Keyspace::Rows(1), key, encode_row(&schema, row).unwrap());
    }
    store.commit(batch, false).unwrap();
    let schema = Arc::new(schema);
    let rows = StoredRows::new(
        store.snapshot(),
        1,
        Arc::new(crate::encode::RowFormat::new(Arc::clone(&schema))),
    );
    (schema, Arc::new(rows))
}

fn small() -> Vec<Source> {
    let kinds = [ColumnType::Int(64), ColumnType::Text];
    let rows: Vec<Row> =
        (0..20).map(|id| vec![Value::Int(id), Value::Text(format!("row {id}").into())]).collect();
    vec![source("filled", &kinds, &rows), source("empty", &kinds, &[])]
}

fn meta() -> DumpMeta {
    let sources = BTreeMap::from([("mysql".to_owned(), "uuid:1-5".to_owned())]);
    DumpMeta { position: 42, sources, created_micros: 1_706_702_400_000_000 }
}

fn save_quietly(tables: &[Source], path: &Path) -> Result<DumpInfo> {
    write::save(tables, &meta(), path, &mut |_| (), &AtomicBool::new(false))
}

#[derive(Default)]
struct Collected(Vec<(Schema, Vec<Row>)>);

impl DumpVisitor for Collected {
    fn table(&mut self, schema: Schema) -> Result<()> {
        self.0.push((schema, Vec::new()));
        Ok(())
    }

    fn row(&mut self, row: Row, _bytes: usize) -> Result<()> {
        self.0.last_mut().unwrap().1.push(row);
        Ok(())
    }
}

fn rows_of(reader: &dyn RowReader) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut visit = |_: &[u8], row| {
        rows.push(row);
        Ok(true)
    };
    reader.scan(&[], &mut visit).unwrap();
    rows
}

fn comes_back(tables: &[Source]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("all.dump");
    let saved = save_quietly(tables, &path).unwrap();
    assert_eq!(saved.file_bytes, std::fs::metadata(&path).unwrap().len());
    assert_eq!(info(&path).unwrap(), saved);
    assert_eq!(verify(&path).unwrap(), saved);
    let mut collected = Collected::default();
    assert_eq!(read(&path, &mut collected).unwrap(), saved);
    assert_eq!(collected.0.len(), tables.len());
    for ((schema, rows), (expected, reader)) in collected.0.iter().zip(tables) {
        assert_eq!(schema, &**expected);
        assert_eq!(rows, &rows_of(&**reader));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

fn random_table() -> impl Strategy<Value = (Vec<ColumnType>, Vec<Row>)> {
    let kinds = prop::collection::vec(crate::encode::strategies::any_kind(), 0..6);
    kinds.prop_flat_map(|mut kinds| {
        kinds.insert(0, ColumnType::Int(32));
        let row: Vec<_> = kinds.iter().map(|&kind| any_value(kind)).collect();
        (Just(kinds), prop::collection::vec(row, 0..30))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn random_tables_round_trip(tables in prop::collection::vec(random_table(), 0..4)) {
        let tables: Vec<_> = tables.iter().map(|(kinds, rows)| source("t", kinds, rows)).collect();
        comes_back(&tables);
    }
}

#[test]
fn many_blocks_come_back_with_their_progress() {
    let kinds = [ColumnType::Uint(64), ColumnType::Bytes];
    let body: Arc<[u8]> = (0..300_000u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let rows: Vec<Row> =
        (0..20).map(|id| vec![Value::Uint(id), Value::Bytes(Arc::clone(&body))]).collect();
    let tables = [source("large", &kinds, &rows)];
    comes_back(&tables);
    let directory = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let mut progress = |progress: &DumpProgress<'_>| seen.push(progress.rows);
    let never = AtomicBool::new(false);
    write::save(&tables, &meta(), &directory.path().join("d"), &mut progress, &never).unwrap();
    assert!(seen.len() > 3 && seen.is_sorted() && seen.last() == Some(&20), "{seen:?}");
}

#[test]
fn every_truncation_and_every_flipped_bit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    save_quietly(&small(), &path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&path, bytes).unwrap();
        let error = verify(&path).expect_err(what);
        assert!(matches!(error, Error::Corrupt(_)), "{what}: {error}");
        let _ = info(&path);
    };
    for length in 0..whole.len() {
        refused(&whole[..length], &format!("cut to {length}"));
    }
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused(&flipped, &format!("bit {bit} flipped"));
    }
    refused(&[&whole[..], b"x"].concat(), "a byte behind the end");
}

#[test]
fn hostile_sections_with_right_checksums_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    save_quietly(&small(), &path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut starts = Vec::new();
    let mut at = PREAMBLE_BYTES as usize;
    while whole.len() - at > TRAILER_BYTES as usize {
        starts.push(at);
        let length = u32::from_le_bytes(whole[at + 1..at + 5].try_into().unwrap());
        at += length as usize + SECTION_FRAME_BYTES as usize;
    }
    for start in starts {
        for (offset, value) in [(5, 0xff), (6, 0xff), (8, 0x7f), (9, 0xff), (12, 0x0f), (20, 1)] {
            let mut bytes = whole.clone();
            let length = u32::from_le_bytes(bytes[start + 1..start + 5].try_into().unwrap());
            let end = start + 5 + length as usize;
            if start + offset >= end || bytes[start + offset] == value {
                continue;
            }
            bytes[start + offset] = value;
            let crc = crc32fast::hash(&bytes[start..end]).to_le_bytes();
            bytes[end..end + 4].copy_from_slice(&crc);
            std::fs::write(&path, &bytes).unwrap();
            assert!(verify(&path).is_err(), "byte {offset} of the section at {start}");
        }
    }
}

#[test]
fn a_cancelled_or_failed_dump_leaves_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let before = save_quietly(&small(), &path).unwrap();
    let cancelled =
        write::save(&small(), &meta(), &path, &mut |_| (), &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(cancelled, Error::Busy(_)), "{cancelled}");
    assert_eq!(verify(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(matches!(save_quietly(&small(), &directory.path().join("no/d")), Err(Error::Io(_))));
    assert!(matches!(info(&directory.path().join("none")), Err(Error::NotFound { .. })));
}

#[test]
fn a_database_is_restored_as_it_was_at_the_dump() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let open = |name: &str| {
        crate::Database::open(&directory.path().join(name), crate::Options::default()).unwrap()
    };
    let (first, second) = (open("first"), open("second"));
    let (schema, reader) = small().remove(0);
    first.create_table((*schema).clone()).unwrap();
    let puts = rows_of(&*reader).into_iter().map(crate::Change::Put).collect();
    let tables = vec![crate::TableChanges { table: Arc::from("filled"), changes: puts }];
    let positions = vec![("mysql".to_owned(), "uuid:1-9".to_owned())];
    let position = first.apply(crate::ChangeBatch { tables, positions }).unwrap();
    let saved = first.dump(&[], &path, &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!((saved.meta.position, saved.rows), (position.0, 20));
    let positions = vec![("import:filled:a.csv".to_owned(), "end".to_owned())];
    second.apply(crate::ChangeBatch { tables: Vec::new(), positions }).unwrap();
    assert_eq!(second.restore(&path).unwrap(), saved);
    assert_eq!(second.source_position("import:filled:a.csv").unwrap(), None);
    let again = second.dump(&[], &path, &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(again.meta.sources, saved.meta.sources);
    let mut rows = Vec::new();
    let mut visit = |row| {
        rows.push(row);
        Ok(())
    };
    second.scan("filled", &mut visit).unwrap();
    assert_eq!(rows, rows_of(&*reader));
    assert_eq!(second.source_position("mysql").unwrap().as_deref(), Some("uuid:1-9"));
    assert!(matches!(second.restore(&path), Err(Error::Conflict(_))));
    let missing = ["none".to_owned()];
    assert!(first.dump(&missing, &path, &mut |_| (), &AtomicBool::new(false)).is_err());
}

#[test]
fn a_restore_applies_large_batches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let kinds = [ColumnType::Int(64), ColumnType::Text];
    let row = |id| vec![Value::Int(id), Value::Text(format!("row {id}").into())];
    let rows: Vec<Row> = (0..5_000).map(row).collect();
    let empty = DumpMeta::default();
    let tables = [source("t", &kinds, &rows)];
    write::save(&tables, &empty, &path, &mut |_| (), &AtomicBool::new(false)).unwrap();
    for (max_batch_changes, batches) in [(1_000_000, 1), (2_000, 3)] {
        let options = crate::Options { max_batch_changes, ..crate::Options::default() };
        let data = directory.path().join(format!("of {batches}"));
        let database = crate::Database::open(&data, options).unwrap();
        database.restore(&path).unwrap();
        assert_eq!((database.position().0, database.view("t").live_count()), (batches, 5_000));
    }
}
