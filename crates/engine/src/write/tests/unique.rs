//! Unique paths, compared with a check of all documents.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Random,
    fixture::{batch, copy, rows, schema},
    start,
};
use crate::{
    Change, ColumnType, Database, Definition, Durability, Error, PathDef, Pending, Schema, Value,
    storage::store::testing::FaultyStore,
};

/// The document of each key, and its unique values.
type Model = BTreeMap<i64, (String, BTreeSet<u64>)>;
/// Keys with their new values; `None` deletes the row.
type Changes = Vec<(i64, Option<Vec<u64>>)>;

/// The table "t" with a number and a document, without paths.
fn table() -> Schema {
    let mut schema = schema();
    schema.columns[1].kind = ColumnType::Json;
    schema.columns[1].indexed = false;
    schema.texts.clear();
    schema
}

fn with_path(unique: bool) -> Schema {
    let path = PathDef { unique, ..PathDef::new(1, vec!["a".to_owned()]) };
    Schema { paths: vec![path], ..table() }
}

/// The same with two paths that are unique together.
fn with_two_paths() -> Schema {
    let paths = vec![vec!["a".to_owned()], vec!["c".to_owned()]];
    let path = PathDef { unique: true, ..PathDef::together(1, paths).unwrap() };
    Schema { paths: vec![path], ..table() }
}

fn alter(database: &Database, schema: Schema) -> crate::Result<crate::Position> {
    database.define(vec![Definition::Alter { schema, fills: Vec::new() }], Vec::new())
}

fn new_database() -> (tempfile::TempDir, Arc<FaultyStore>, Database) {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
    (directory, store, database)
}

fn put(id: i64, text: &str) -> Change {
    Change::Put(vec![Value::Int(id), Value::Json(text.into())])
}

fn value_text(value: u64) -> String {
    match value % 4 {
        0 => value.to_string(),
        1 => format!("{}.0", value - 1),
        2 => format!("\"t{value}\""),
        _ => "null".to_owned(),
    }
}

/// The value at `c`, which a document may lack.
fn second(values: &[u64]) -> Option<u64> {
    let sum: u64 = values.iter().sum();
    (sum % 3 < 2).then_some(sum % 3)
}

/// Values as the unique path compares them: some values are equal, and null does not count. With two paths, they are
/// compared together with the second value, and not at all without one.
fn compared(values: &[u64], are_two: bool) -> BTreeSet<u64> {
    let one = |value: &u64| match value % 4 {
        1 => Some(value - 1),
        3 => None,
        _ => Some(*value),
    };
    let values_of_first = values.iter().filter_map(one);
    match (are_two, second(values)) {
        (false, _) => values_of_first.collect(),
        (true, Some(second)) => values_of_first.map(|value| value * 2 + second).collect(),
        (true, None) => BTreeSet::new(),
    }
}

fn text_of(values: &[u64]) -> String {
    let texts: Vec<String> = values.iter().map(|value| value_text(*value)).collect();
    let second = second(values).map(|value| format!(",\"c\":{value}")).unwrap_or_default();
    match texts.as_slice() {
        [] => r#"{"b":1}"#.to_owned(),
        [one] => format!("{{\"a\":{one}{second}}}"),
        many => format!("{{\"a\":[{},[1],{{\"a\":1}}]{second}}}", many.join(",")),
    }
}

fn random_changes(random: &mut Random) -> Changes {
    let changes = (0..1 + random.below(4)).map(|_| {
        let id = random.below(25) as i64;
        let values = (0..random.below(4)).map(|_| random.below(160)).collect();
        (id, (random.below(4) > 0).then_some(values))
    });
    changes.collect()
}

/// The model after the changes; `None` if two documents would share a value.
fn after(model: &Model, changes: &Changes, are_two: bool) -> Option<Model> {
    let mut model = model.clone();
    for (id, values) in changes {
        match values {
            Some(values) => _ = model.insert(*id, (text_of(values), compared(values, are_two))),
            None => _ = model.remove(id),
        }
    }
    let mut seen = BTreeSet::new();
    let is_unique = model.values().all(|(_, values)| values.iter().all(|one| seen.insert(*one)));
    is_unique.then_some(model)
}

fn engine_changes(changes: &Changes) -> Vec<Change> {
    let change = |(id, values): &(i64, Option<Vec<u64>>)| match values {
        Some(values) => put(*id, &text_of(values)),
        None => Change::Delete(vec![Value::Int(*id)]),
    };
    changes.iter().map(change).collect()
}

#[track_caller]
fn compare(database: &Database, model: &Model) {
    let expected: Vec<_> = model
        .iter()
        .map(|(id, (text, _))| vec![Value::Int(*id), Value::Json(text.as_str().into())])
        .collect();
    assert_eq!(rows(database), expected);
}

/// Checks the outcome of changes against the model and applies them to it; returns whether they were written.
#[track_caller]
fn apply_to_model(
    model: &mut Model,
    (changes, are_two): (&Changes, bool),
    outcome: Result<(), Error>,
) -> bool {
    match (after(model, changes, are_two), outcome) {
        (Some(changed), Ok(())) => {
            *model = changed;
            true
        }
        (None, Err(Error::NotUnique { .. })) => false,
        (expected, outcome) => {
            panic!("{changes:?} over {model:?}: {outcome:?}, not {}", expected.is_some())
        }
    }
}

fn write_in_parts(database: &Database, changes: &[Change]) -> Result<(), Error> {
    let mut large = database.begin_large()?;
    for change in changes {
        match large.add(batch(vec![change.clone()]).tables) {
            Ok(()) => {}
            Err(error) => panic!("one change alone is no duplicate: {error}"),
        }
    }
    large.commit(Vec::new()).map(drop)
}

#[test]
fn a_naive_model_refuses_the_same_batches() {
    compare_with_model(false);
}

#[test]
fn a_naive_model_refuses_the_same_batches_with_two_paths() {
    compare_with_model(true);
}

fn compare_with_model(are_two: bool) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(clock);
    println!("REMORA_SEED={seed}");
    let mut random = Random(seed);
    let (directory, mut store, mut database) = new_database();
    database.create_table(if are_two { with_two_paths() } else { with_path(true) }).unwrap();
    let (mut model, mut written, mut refused) = (Model::new(), 0, 0);
    for _ in 0..600 {
        let changes = random_changes(&mut random);
        let for_engine = engine_changes(&changes);
        let mut count = |is_written: bool| match is_written {
            true => written += 1,
            false => refused += 1,
        };
        match random.below(5) {
            0 => {
                let outcome = database.begin().commit(batch(for_engine)).map(drop);
                count(apply_to_model(&mut model, (&changes, are_two), outcome));
            }
            1 => count(apply_to_model(
                &mut model,
                (&changes, are_two),
                write_in_parts(&database, &for_engine),
            )),
            2 => {
                // Two batches wait together: the second sees the first one's values.
                let others = random_changes(&mut random);
                let pending = [for_engine, engine_changes(&others)]
                    .map(|changes| database.submit(batch(changes)));
                for (pending, changes) in pending.into_iter().zip([changes, others]) {
                    let outcome = pending.and_then(Pending::wait).map(drop);
                    count(apply_to_model(&mut model, (&changes, are_two), outcome));
                }
            }
            _ => {
                let outcome = database.apply(batch(for_engine)).map(drop);
                count(apply_to_model(&mut model, (&changes, are_two), outcome));
            }
        }
        compare(&database, &model);
        match random.below(40) {
            0 => database.optimize(None).unwrap(),
            1 => database.checkpoint().unwrap(),
            2 => {
                drop(database);
                store = Arc::new(store.after_power_loss());
                database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
                compare(&database, &model);
            }
            _ => {}
        }
    }
    assert!(written > 50 && refused > 50, "{written} written, {refused} refused");
}

#[test]
fn path_becomes_unique_only_without_duplicates() {
    let (directory, store, database) = new_database();
    database.create_table(table()).unwrap();
    // Rows written before the path was declared.
    let changes = (0..2_000).map(|id| put(id, &format!("{{\"a\":\"v{}\"}}", id % 1_999)));
    database.apply(batch(changes.collect())).unwrap();
    database.checkpoint().unwrap();
    alter(&database, with_path(false)).unwrap();
    database.wait_for_path("t", &with_path(false).paths[0]).unwrap();
    let refused = [
        alter(&database, with_path(true)).map(drop),
        database.reader().check_unique("t", &with_path(true).paths[0]),
    ];
    for refused in refused {
        let Err(Error::NotUnique { path, value, keys, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((path.as_str(), value.as_str()), ("a", "\"v0\""));
        let mut ids = keys.map(|key| key[0].clone());
        ids.sort_by_key(ToString::to_string);
        assert_eq!(ids, [Value::Int(0), Value::Int(1_999)]);
    }
    assert!(!database.schema("t").unwrap().paths[0].unique);
    database.apply(batch(vec![Change::Delete(vec![Value::Int(0)])])).unwrap();
    alter(&database, with_path(true)).unwrap();
    let again = batch(vec![put(5_000, r#"{"a":["new","v7"]}"#)]);
    let is_refused = |database: &Database| {
        let refused = database.apply(again.clone());
        assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
    };
    is_refused(&database);
    // After a crash the segment files lack the path: it is indexed before anything is written.
    let left = tempfile::tempdir().unwrap();
    copy(directory.path(), left.path());
    let survived = Arc::new(store.after_power_loss());
    drop(database);
    let database = start(left.path(), survived, Durability::Always);
    is_refused(&database);
    assert_eq!(rows(&database).len(), 1_999);
}

#[test]
fn batches_prepared_before_a_path_was_unique_are_checked() {
    let (_directory, _store, database) = new_database();
    database.create_table(table()).unwrap();
    let begun: Vec<_> = (0..3).map(|_| database.begin()).collect();
    alter(&database, with_path(true)).unwrap();
    let mut begun = begun.into_iter();
    let commit = |begun: Option<crate::Transaction>, changes| begun.unwrap().commit(batch(changes));
    commit(begun.next(), vec![put(1, r#"{"a":7}"#)]).unwrap();
    let refused = commit(begun.next(), vec![put(2, r#"{"a":7.0}"#)]);
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
    // Its segment has no values of the path.
    let many = (10..2_000).map(|id| put(id, &format!("{{\"a\":{id}}}"))).collect();
    let refused = commit(begun.next(), many);
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let refused = database.apply(batch(vec![put(2, r#"{"a":7}"#)]));
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
    database.apply(batch(vec![put(1, r#"{"a":7}"#)])).unwrap();
    let large = (10..2_000).map(|id| put(id, &format!("{{\"a\":{id}}}"))).collect();
    database.apply(batch(large)).unwrap();
    let large = (2_010..4_000).map(|id| put(id, &format!("{{\"a\":{}}}", id - 20))).collect();
    let refused = database.apply(batch(large));
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
}

#[test]
fn one_of_many_threads_gets_a_unique_value() {
    let (_directory, _store, database) = new_database();
    database.create_table(with_path(true)).unwrap();
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_i64)
            .map(|thread| {
                let database = &database;
                scope.spawn(move || {
                    let insert = |value: i64| {
                        let row = put(thread * 1_000 + value, &format!("{{\"a\":{value}}}"));
                        match database.apply(batch(vec![row])) {
                            Ok(_) => 1,
                            Err(Error::NotUnique { .. }) => 0,
                            Err(error) => panic!("{error}"),
                        }
                    };
                    (0..200).map(insert).sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((written, rows(&database).len()), (200, 200));
}

#[test]
fn values_print_unchanged() {
    let values = [
        (r#"{"a":18446744073709551615}"#, "18446744073709551615"),
        (r#"{"a":-9007199254740993}"#, "-9007199254740993"),
        (r#"{"a":0}"#, "0"),
        (r#"{"a":-0.5}"#, "-0.5"),
        (r#"{"a":1e300}"#, "1e300"),
        (r#"{"a":true}"#, "true"),
        (r#"{"a":"é\""}"#, r#""é\"""#),
    ];
    let (_directory, _store, database) = new_database();
    database.create_table(with_path(true)).unwrap();
    for (document, shown) in values {
        let refused = database.apply(batch(vec![put(1, document), put(2, document)]));
        let Err(Error::NotUnique { value, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(value, shown);
    }
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
    let refused = database.apply(batch(vec![put(1, &long), put(2, &long)])).unwrap_err();
    assert!(refused.to_string().len() < 300, "{refused}");
    assert_eq!(rows(&database).len(), 0);
}
