//! Merges that add missing paths to segments: their memory, changes of the table between two
//! portions, and their cancellation.

use std::{cell::Cell, path::Path, sync::Arc};

use super::super::{
    Deletions, Extent, Limit, may_continue, merge_inputs, merge_live,
    portion::{MergeLimits, PathRows, Portion, PortionOutcome, take},
};
use crate::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Definition, Durability, Filter, Options,
    PathDef, PathTest, PathValue, Schema, Selection, TableChanges, Value, indexing::path_specs,
    snapshot::SegmentView, storage::store::testing::FaultyStore,
};

const DOCUMENTS: i64 = 3_000;

fn paths() -> Vec<PathDef> {
    let names = |name: &str| vec![name.to_owned()];
    vec![
        PathDef::new(1, names("n")),
        PathDef::together(1, vec![names("n"), names("list")]).unwrap(),
        PathDef::of_texts(1, vec![names("text")]).unwrap(),
    ]
}

fn schema(paths: Vec<PathDef>) -> Schema {
    let column = |id, name: &str, kind| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed: false,
        declared: None,
    };
    Schema {
        paths,
        ..Schema::over(
            "notes",
            vec![column(1, "id", ColumnType::Int(64)), column(2, "doc", ColumnType::Json)],
            vec![0],
        )
    }
}

fn document(id: i64) -> String {
    let list: Vec<i64> = (0..id % 5).collect();
    let text = "many words ".repeat(id as usize % 9);
    format!("{{\"n\": {}, \"list\": {list:?}, \"text\": \"{text}\"}}", id % 10)
}

fn apply(database: &Database, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: "notes".into(), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

fn put(id: i64) -> Change {
    Change::Put(vec![Value::Int(id), Value::Json(document(id).into())])
}

fn delete(id: i64) -> Change {
    Change::Delete(vec![Value::Int(id)])
}

/// A table with documents in one segment, some of which are deleted.
fn start(directory: &Path, path_index_bytes: u64) -> Database {
    let durability = Durability::None;
    let options = Options { durability, path_index_bytes, ..Options::default() };
    let database =
        Database::start(directory, options, Arc::new(FaultyStore::default()), None).unwrap();
    database.create_table(schema(Vec::new())).unwrap();
    apply(&database, (0..DOCUMENTS).map(put).collect());
    database.optimize(Some("notes")).unwrap();
    apply(&database, (0..DOCUMENTS).filter(|id| id % 11 < 3).map(delete).collect());
    database
}

fn define(database: &Database, paths: Vec<PathDef>) {
    let definition = Definition::Alter { schema: schema(paths), fills: Vec::new() };
    database.define(vec![definition], Vec::new()).unwrap();
}

/// Takes portions as a merge does until nothing is left, and checks the memory that each of them
/// uses.
#[test]
fn the_memory_of_path_indexes_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), 1 << 28);
    let (view, schema) = (database.view("notes"), schema(paths()));
    let specs = path_specs(&schema);
    // The size of the largest document's values: those of three paths, and eight bytes for each
    // path.
    let largest = 700;
    // The least size of an index of texts, and of a piece, however few texts it has.
    let smallest_index = 3_000;
    for (held_bytes, limit_bytes, fewest) in
        [(20_000, u64::MAX, 8), (100_000, u64::MAX, 1), (1 << 28, 50_000, 5)]
    {
        let bounds =
            MergeLimits { limit: Limit { bytes: limit_bytes, documents: u64::MAX }, held_bytes };
        let (mut views, mut portions, mut documents) = (view.segments.clone(), 0, 0);
        while !views.is_empty() {
            let paths = PathRows {
                schema: &schema,
                rows: &*view.rows,
                left_out: &[],
                may_continue: &|| true,
            };
            let PortionOutcome::Portion(portion) = take(&views, &paths, &bounds).unwrap() else {
                panic!()
            };
            let Portion { taken, inputs, is_whole, .. } = portion;
            assert!(portion.most_collected_bytes < held_bytes as usize / 8 + largest);
            let piece = held_bytes / 8 + largest as u64 + smallest_index;
            assert!(portion.held_bytes < held_bytes + piece, "{}", portion.held_bytes);
            let output = merge_live(&schema, &inputs).unwrap().unwrap();
            assert!(specs.iter().all(|spec| output.has_path(spec)));
            assert!(output.byte_count() < limit_bytes.saturating_add(2 * smallest_index));
            documents += i64::from(output.doc_count());
            portions += 1;
            let rest =
                |now: &SegmentView| match taken.iter().find(|taken| taken.view.is_of(&now.segment))
                {
                    Some(taken) => taken.rest(now, &schema),
                    None => Some(now.clone()),
                };
            let left: Vec<_> = views.iter().filter_map(rest).collect();
            assert_eq!(left.is_empty(), is_whole);
            views = left;
        }
        println!("{portions} portions of {held_bytes} bytes");
        assert_eq!(documents, (0..DOCUMENTS).filter(|id| id % 11 >= 3).count() as i64);
        assert!(portions >= fewest, "{portions}");
    }
}

/// A portion that is full at the end of a segment takes no documents of the next segment.
#[test]
fn a_portion_that_ends_with_a_segment_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), 1 << 28);
    let claim = database.shared().published.claim_all("notes").unwrap().unwrap();
    apply(&database, (DOCUMENTS..DOCUMENTS + 5).map(put).collect());
    let (view, schema) = (database.view("notes"), schema(paths()));
    assert_eq!(view.segments.len(), 2);
    drop(claim);
    let live: Vec<u64> = view.segments.iter().map(|one| u64::from(one.live_count())).collect();
    let taken_with = |documents: u64| {
        let paths =
            PathRows { schema: &schema, rows: &*view.rows, left_out: &[], may_continue: &|| true };
        let limit = Limit { bytes: u64::MAX, documents };
        let bounds = MergeLimits { limit, held_bytes: 1 << 28 };
        let took = take(&view.segments, &paths, &bounds).unwrap();
        let PortionOutcome::Portion(portion) = took else { panic!() };
        let ends = portion.taken.iter().map(|taken| taken.docs.end).collect::<Vec<_>>();
        (ends, portion.is_whole)
    };
    let counts: Vec<u32> = view.segments.iter().map(|one| one.segment.doc_count()).collect();
    // The document that exceeds the limit is the last one of the first segment.
    assert_eq!(taken_with(live[0] - 1), (vec![counts[0]], false));
    // The document that exceeds the limit is the last one of all.
    assert_eq!(taken_with(live[0] + live[1] - 1), (counts.clone(), true));
    assert_eq!(taken_with(u64::MAX), (counts, true));
}

fn of_five() -> Selection {
    let test = PathTest::In(vec![PathValue::Int(5)]);
    let filter = Some(Filter::Path("doc".to_owned(), vec!["n".to_owned()], test));
    Selection { table: "notes".to_owned(), filter, ..Selection::default() }
}

/// The claim keeps the merge threads away while a portion is taken. Meanwhile documents are
/// changed, some in the portion and some not.
#[test]
fn changes_during_a_portion_are_carried_over() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), 20_000);
    let shared = database.shared();
    let claim = shared.published.claim_all("notes").unwrap().unwrap();
    define(&database, paths());
    let table = database.view("notes");
    // The portion has the first documents.
    apply(&database, vec![delete(4), delete(5), put(6), delete(DOCUMENTS - 1), put(1)]);
    assert_eq!(merge_inputs(shared, &table, &claim.views, Deletions::Stay).unwrap(), Extent::Part);
    let now = database.view("notes");
    let old = |view: &&SegmentView| view.is_of(&claim.views[0].segment);
    let left = now.segments.iter().find(old).unwrap();
    assert!(left.live_count() > 0 && left.is_deleted(8) && left.is_deleted(DOCUMENTS as u32 - 1));
    drop(claim);
    let expected: Vec<i64> = (0..DOCUMENTS)
        .filter(|id| ![4, 5, DOCUMENTS - 1].contains(id) && (id % 11 >= 3 || *id == 1))
        .collect();
    let check = || {
        let view = database.view("notes");
        let live: u64 = view.segments.iter().map(|view| u64::from(view.live_count())).sum();
        assert_eq!(live, expected.len() as u64);
        for id in 0..DOCUMENTS {
            let key = crate::encode::encode_key(&view.schema, &[Value::Int(id)]).unwrap();
            let found = view.segments.iter().filter(|segment| segment.has_live(&key)).count();
            assert_eq!(found, usize::from(expected.contains(&id)), "{id}");
        }
    };
    check();
    paths().iter().for_each(|path| database.wait_for_path("notes", path).unwrap());
    check();
    let fives = expected.iter().filter(|id| *id % 10 == 5).count();
    assert_eq!(database.count(&of_five()).unwrap().count, fives as u64);
}

/// Between documents the merge asks whether it is still wanted. It is cancelled if the paths or the
/// table were dropped, or the database is closed; the claimed segments then stay unchanged.
#[test]
fn unneeded_merge_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), 1 << 28);
    let shared = database.shared();
    let claim = shared.published.claim_all("notes").unwrap().unwrap();
    define(&database, paths());
    let table = database.view("notes");
    assert!(may_continue(shared, &table));
    let asked = Cell::new(0);
    let ends_after = |times: i32| {
        asked.set(0);
        let may_continue = || {
            asked.set(asked.get() + 1);
            asked.get() <= times
        };
        let (schema, rows) = (&*table.schema, &*table.rows);
        let paths = PathRows { schema, rows, left_out: &[], may_continue: &may_continue };
        let bounds = MergeLimits { limit: Limit::of(&shared.options), held_bytes: 1 << 28 };
        matches!(take(&claim.views, &paths, &bounds).unwrap(), PortionOutcome::Stopped)
    };
    assert!(ends_after(0) && ends_after(1) && ends_after(2));
    assert_eq!(asked.get(), 3);
    assert!(!ends_after(3));
    let mut some = paths();
    some.push(PathDef::new(1, vec!["other".to_owned()]));
    define(&database, some.clone());
    assert!(may_continue(shared, &table), "the paths are there, and one more");
    some.remove(0);
    define(&database, some);
    assert_eq!(
        merge_inputs(shared, &table, &claim.views, Deletions::Stay).unwrap(),
        Extent::Stopped
    );
    let now = database.view("notes");
    assert!(now.segments.iter().zip(&claim.views).all(|(now, view)| now.is_of(&view.segment)));
    assert_eq!((now.segments.len(), now.activity.merge_failure()), (claim.views.len(), None));
    define(&database, paths());
    assert!(may_continue(shared, &table), "the same paths again are the same");
    database.drop_table("notes").unwrap();
    assert!(!may_continue(shared, &table));
    database.create_table(schema(paths())).unwrap();
    assert!(!may_continue(shared, &table), "it is another table");
    assert_eq!(
        merge_inputs(shared, &table, &claim.views, Deletions::Stay).unwrap(),
        Extent::Stopped
    );
    shared.published.stop(crate::Error::Closed);
    assert!(!may_continue(shared, &database.view("notes")));
}

/// A segment that is left without a path stays so recorded when some of its documents are replaced,
/// and when a checkpoint has replaced it by one opened from its file. It is not merged again for
/// the path.
#[test]
fn documents_without_a_path_are_known_after_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::None, path_index_bytes: 2_000, ..Options::default() };
    let store = Arc::new(FaultyStore::default());
    let database = Database::start(directory.path(), options, store, None).unwrap();
    let path = PathDef::new(1, vec!["n".to_owned()]);
    let texts = PathDef::of_texts(1, vec![vec!["text".to_owned()]]).unwrap();
    database.create_table(schema(vec![path.clone()])).unwrap();
    // The values differ and are long, so that the segment is large enough to be left in its file.
    let of_many_bytes = |id: i64| {
        let value = format!("{:016x}", id.wrapping_mul(0x1e37_79b9_7f4a_7c15));
        let text = "word ".repeat(if id == 0 { 1_000 } else { 1 });
        let document = format!("{{\"n\": \"{}\", \"text\": \"{text}\"}}", value.repeat(10));
        Change::Put(vec![Value::Int(id), Value::Json(document.into())])
    };
    apply(&database, (0..DOCUMENTS).map(of_many_bytes).collect());
    database.optimize(Some("notes")).unwrap();
    let shared = database.shared();
    let claim = shared.published.claim_all("notes").unwrap().unwrap();
    define(&database, vec![path, texts]);
    apply(&database, vec![of_many_bytes(7)]);
    let table = database.view("notes");
    let old = table.segments.iter().find(|view| view.is_of(&claim.views[0].segment)).unwrap();
    assert!(old.deleted_count == 1 && old.bytes() >= 256 << 10, "{}", old.bytes());
    let one = std::slice::from_ref(old);
    let merged = merge_inputs(shared, &table, one, Deletions::Stay).unwrap();
    assert_eq!(merged, Extent::Whole);
    let of_old = |view: &SegmentView| view.is_of(&old.segment);
    assert!(database.view("notes").segments.iter().any(of_old), "it would be the same again");
    let spec = &path_specs(&table.schema)[1];
    let told = table.activity.why_without(old, spec);
    assert!(told.is_some());
    drop(claim);
    database.checkpoint().unwrap();
    let now = database.view("notes");
    let is_same = |view: &&SegmentView| view.segment.doc_count() == old.segment.doc_count();
    let new = now.segments.iter().find(is_same).unwrap();
    assert_eq!(now.activity.why_without(new, spec), told);
    assert_eq!(now.activity.why_without(old, spec), told, "older snapshots have it still");
    apply(&database, vec![of_many_bytes(9)]);
    assert_eq!(database.merge_failures().len(), 1);
    let is_new = |view: &SegmentView| view.is_of(&new.segment) && view.deleted_count == 2;
    assert!(database.view("notes").segments.iter().any(is_new), "it is as it was");
    // A requested merge frees the space of the deleted documents.
    database.optimize(Some("notes")).unwrap();
    let freed = database.view("notes");
    assert_eq!((freed.segments.len(), freed.segments[0].deleted_count), (1, 0));
    assert_eq!(database.merge_failures().len(), 1);
}
