//! Paths that are indexed together: what conditions on several of them find, and the order of several, is what reading
//! all documents gives, whenever the index was made, whatever is written and merged meanwhile, and after a restart.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Definition, Ending, Error, Filter,
    Interrupt, KeyValues, PathDef, PathOrder, PathPlace, PathStart, PathTest, PathValue,
    ScalarOrder, Schema, Selection, TableChanges, Value, walk_path,
};
use serde_json::{Value as Json, json};

use crate::common::*;

const NOTES: &str = "notes";
const TOGETHER: [&[&str]; 4] = [&["a", "b"], &["b", "a"], &["a", "c.d", "b"], &["c.d", "list"]];

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

fn paths(of: &[&str]) -> Vec<Vec<String>> {
    of.iter().map(|path| names(path)).collect()
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
            NOTES,
            vec![column(1, "id", ColumnType::Int(64)), column(2, "doc", ColumnType::Json)],
            vec![0],
        )
    }
}

fn any_scalar(random: &mut Random) -> PathValue {
    match random.below(7) {
        0 => PathValue::Null,
        1 => PathValue::Bool(random.below(2) == 0),
        2 => PathValue::Float(random.below(4) as f64 / 2.0),
        3 | 4 => PathValue::Int(random.below(4) as i64 - 1),
        _ => PathValue::Text(["", "x", "xy", "\0", "é"][random.below(5) as usize].to_owned()),
    }
}

fn json_of(value: &PathValue) -> Json {
    match value {
        PathValue::Null => Json::Null,
        PathValue::Bool(truth) => json!(truth),
        PathValue::Int(number) => json!(number),
        PathValue::Uint(number) => json!(number),
        PathValue::Float(number) => json!(number),
        PathValue::Text(text) => json!(text),
    }
}

/// With arrays only where `plain` is false.
fn any_document(random: &mut Random, plain: bool) -> Json {
    let mut document = json!({});
    let value = |random: &mut Random| match random.below(8) {
        0 if !plain => (0..random.below(4)).map(|_| json_of(&any_scalar(random))).collect(),
        1 => json!({"d": 1}),
        _ => json_of(&any_scalar(random)),
    };
    for name in ["a", "b", "list"] {
        if random.below(5) > 0 {
            document[name] = value(random);
        }
    }
    match random.below(3) {
        0 => {}
        1 if !plain => {
            let many = (0..random.below(3)).map(|_| json!({"d": value(random)}));
            document["c"] = many.collect();
        }
        _ => document["c"] = json!({"d": value(random)}),
    }
    if !plain && random.below(60) == 0 {
        // More combinations than an index takes.
        document["a"] = (0..40).collect();
        document["b"] = (0..40).collect();
    }
    document
}

fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 1,
        Json::Bool(_) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    }
}

fn compare(one: &Json, other: &Json) -> Ordering {
    match (one, other) {
        (Json::Bool(one), Json::Bool(other)) => one.cmp(other),
        (Json::Number(one), Json::Number(other)) => {
            one.as_f64().unwrap().total_cmp(&other.as_f64().unwrap())
        }
        (Json::String(one), Json::String(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn tests(value: &Json, test: &PathTest) -> bool {
    let equals = |other: &PathValue| compare(value, &json_of(other)).is_eq();
    match test {
        PathTest::Exists => true,
        PathTest::In(values) => values.iter().any(equals),
        PathTest::Begins(text) => value.as_str().is_some_and(|value| value.starts_with(text)),
        PathTest::Within(low, high) => {
            let kind = |bound: &Bound<PathValue>| match bound {
                Bound::Unbounded => true,
                Bound::Included(it) | Bound::Excluded(it) => rank(&json_of(it)) == rank(value),
            };
            let above = match low {
                Bound::Unbounded => true,
                Bound::Included(low) => compare(value, &json_of(low)).is_ge(),
                Bound::Excluded(low) => compare(value, &json_of(low)).is_gt(),
            };
            let below = match high {
                Bound::Unbounded => true,
                Bound::Included(high) => compare(value, &json_of(high)).is_le(),
                Bound::Excluded(high) => compare(value, &json_of(high)).is_lt(),
            };
            kind(low) && kind(high) && above && below
        }
        PathTest::Nested => false,
        PathTest::Filled => !value.is_null() && !value.is_array(),
        PathTest::Container => value.is_array() || value.is_object(),
    }
}

fn holds(document: &Json, path: &[String], test: &PathTest) -> bool {
    walk_path(path, document, &mut |found| {
        let elements = found.as_array().into_iter().flatten();
        tests(found, test) || elements.filter(|it| !it.is_array()).any(|it| tests(it, test))
    })
}

fn any_test(random: &mut Random) -> PathTest {
    let value = any_scalar(random);
    match random.below(9) {
        0 => PathTest::Exists,
        8 => PathTest::Filled,
        7 => PathTest::Container,
        1 => PathTest::Begins("x".to_owned()),
        2 => PathTest::Within(Bound::Excluded(value), Bound::Unbounded),
        3 => PathTest::Within(Bound::Unbounded, Bound::Excluded(value)),
        4 => PathTest::Within(Bound::Included(value), Bound::Included(any_scalar(random))),
        _ => PathTest::In((0..random.below(3)).map(|_| any_scalar(random)).collect()),
    }
}

struct Notes {
    database: Database,
    known: BTreeMap<i64, Json>,
    together: Vec<Vec<Vec<String>>>,
    plain: bool,
}

impl Notes {
    fn write(&mut self, random: &mut Random) {
        let mut changes = BTreeMap::new();
        for _ in 0..1 + random.below(30) {
            let id = random.below(120) as i64;
            let key = vec![Value::Int(id)];
            if random.below(4) == 0 {
                self.known.remove(&id);
                changes.insert(id, Change::Delete(key));
            } else {
                let document = any_document(random, self.plain);
                let text = Value::Json(document.to_string().into());
                changes.insert(id, Change::Put(vec![Value::Int(id), text]));
                self.known.insert(id, document);
            }
        }
        let changes = changes.into_values().collect();
        let tables = vec![TableChanges { table: Arc::from(NOTES), changes }];
        self.database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    }

    fn define(&mut self, together: Vec<Vec<Vec<String>>>) {
        let paths = together.iter().filter_map(|paths| PathDef::together(1, paths.clone()));
        let schema = schema(paths.collect());
        let definition = Definition::Alter { schema, fills: Vec::new() };
        self.database.define(vec![definition], Vec::new()).unwrap();
        self.together = together;
    }

    fn compare(&self, random: &mut Random) {
        let reader = || self.database.reader();
        for (place, paths) in self.together.iter().enumerate() {
            let path = PathDef::together(1, paths.clone()).unwrap();
            self.database.wait_for_path(NOTES, &path).unwrap();
            let is_whole = reader().has_all_combinations(NOTES, place).unwrap();
            for _ in 0..12 {
                let count = 1 + random.below(paths.len() as u64) as usize;
                let mut asked: Vec<PathTest> = (0..count).map(|_| any_test(random)).collect();
                for test in asked.iter_mut().rev().skip(1) {
                    *test = PathTest::In(
                        (0..1 + random.below(2)).map(|_| any_scalar(random)).collect(),
                    );
                }
                let expected = self.known.values().filter(|document| {
                    paths.iter().zip(&asked).all(|(path, test)| holds(document, path, test))
                });
                let expected = expected.count() as u64;
                let filter = Filter::PathsTogether("doc".to_owned(), paths.clone(), asked.clone());
                let selection = Selection {
                    table: NOTES.to_owned(),
                    filter: Some(filter),
                    ..Selection::default()
                };
                let found = self.database.count(&selection).unwrap().count;
                match is_whole {
                    true => assert_eq!(found, expected, "{paths:?} {asked:?}"),
                    false => assert!(found >= expected, "{paths:?} {asked:?}"),
                }
            }
            for _ in 0..4 {
                let ways = |count: usize, random: &mut Random| -> Vec<bool> {
                    (0..count).map(|_| random.below(2) == 0).collect()
                };
                let (all, but_first) = (ways(paths.len(), random), ways(paths.len() - 1, random));
                self.compare_order(paths, Vec::new(), &all);
                self.compare_order(paths, vec![any_scalar(random)], &but_first);
            }
        }
    }

    fn compare_order(&self, paths: &[Vec<String>], equal: Vec<PathValue>, descending: &[bool]) {
        let page = |after: Option<PathStart>| {
            let order = PathOrder {
                table: NOTES.to_owned(),
                column: "doc".to_owned(),
                paths: paths.to_vec(),
                equal: equal.clone(),
                filter: None,
                descending: descending.to_vec(),
                after,
                limit: 7,
            };
            self.database.reader().first_by_path(&order).unwrap()
        };
        let Some(first_page) = page(None) else {
            assert!(!self.plain, "documents without arrays have one combination each");
            return;
        };
        let first = |document: &Json, path: &[String]| {
            let mut first = None;
            walk_path(path, document, &mut |found| {
                first = Some(found.clone());
                true
            });
            first
        };
        let leading = paths.iter().zip(&equal);
        let leading: Vec<_> =
            leading.map(|(path, value)| (path, PathTest::In(vec![value.clone()]))).collect();
        let mut expected: Vec<(&i64, &Json)> = self
            .known
            .iter()
            .filter(|(_, document)| leading.iter().all(|(path, test)| holds(document, path, test)))
            .collect();
        expected.sort_by(|(one_id, one), (other_id, other)| {
            let by = paths.iter().skip(equal.len()).zip(descending).map(|(path, descending)| {
                let order = match (first(one, path), first(other, path)) {
                    (Some(one), Some(other)) => compare(&one, &other),
                    (one, other) => one.is_some().cmp(&other.is_some()),
                };
                if *descending { order.reverse() } else { order }
            });
            by.fold(Ordering::Equal, Ordering::then).then(one_id.cmp(other_id))
        });
        let keys = |page: Vec<KeyValues>| page.into_iter().map(|key| key.to_vec());
        let mut found: Vec<Vec<Value>> = keys(first_page).collect();
        // The pages behind it, each behind the last row of the page before.
        while !found.is_empty() && found.len() < expected.len() && found.len().is_multiple_of(7) {
            let Some((id, document)) = expected.get(found.len() - 1) else { break };
            let sorted = paths.iter().skip(equal.len());
            let values = sorted.map(|path| place(first(document, path))).collect();
            let start = PathStart { values, key: KeyValues::from_iter([Value::Int(**id)]) };
            found.extend(keys(page(Some(start)).unwrap()));
        }
        let expected: Vec<Vec<Value>> =
            expected.iter().map(|(id, _)| vec![Value::Int(**id)]).collect();
        assert_eq!(found, expected, "{paths:?} {equal:?} {descending:?}");
    }
}

/// What an order sees of a value.
fn place(value: Option<Json>) -> PathPlace {
    let Some(value) = value else { return PathPlace::Missing };
    PathPlace::Scalar(match &value {
        Json::Null => PathValue::Null,
        Json::Bool(truth) => PathValue::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => PathValue::Int(number),
            (_, Some(number)) => PathValue::Uint(number),
            _ => PathValue::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => PathValue::Text(text.clone()),
        Json::Array(_) => return PathPlace::Array,
        Json::Object(_) => return PathPlace::Object,
    })
}

/// Ends a read at a look.
struct After(AtomicUsize);

impl Interrupt for After {
    fn ending(&self) -> Option<Ending> {
        (self.0.fetch_add(1, Relaxed) == 0).then_some(Ending::Interrupted)
    }
}

/// A walk along a path is ended within a segment, after some thousand values, and not only where a segment begins.
#[test]
fn walks_along_a_path_end_when_they_are_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    database.create_table(schema(vec![PathDef::new(1, names("a"))])).unwrap();
    // Every second document has no value there.
    let document = |id: i64| if id % 2 == 0 { json!({"a": id}) } else { json!({"b": id}) };
    let put =
        |id: i64| Change::Put(vec![Value::Int(id), Value::Json(document(id).to_string().into())]);
    let changes = (0..30_000).map(put).collect();
    let tables = vec![TableChanges { table: Arc::from(NOTES), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    let (scalars, paths) = (
        ScalarOrder {
            table: NOTES.to_owned(),
            column: "doc".to_owned(),
            path: names("a"),
            filter: None,
            descending: false,
            only_texts: false,
            columns: vec![0],
            limit: 14_000,
        },
        PathOrder {
            table: NOTES.to_owned(),
            column: "doc".to_owned(),
            paths: vec![names("a")],
            equal: Vec::new(),
            filter: None,
            descending: vec![false],
            after: None,
            limit: 29_000,
        },
    );
    let reader =
        |left: usize| database.reader().with_interrupt(Arc::new(After(AtomicUsize::new(left))));
    for looks in [0, 1, 2, 3, 4, 5, 6] {
        // The counter comes round after so many looks.
        let left = 0_usize.wrapping_sub(looks);
        let ended = reader(left).first_by_path(&paths);
        assert!(matches!(ended, Err(Error::Ended(Ending::Interrupted))), "{looks}: {ended:?}");
        let ended = reader(left).first_by_scalar(&scalars);
        assert!(matches!(ended, Err(Error::Ended(Ending::Interrupted))), "{looks}");
    }
    assert_eq!(reader(1).first_by_path(&paths).unwrap().unwrap().len(), 29_000);
    assert_eq!(reader(1).first_by_scalar(&scalars).unwrap().unwrap().rows.len(), 14_000);
}

#[test]
fn joint_path_searches_match_a_scan() {
    let mut random = Random::seeded();
    for round in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let open = || Database::open(directory.path(), quick()).unwrap();
        let database = open();
        database.create_table(schema(Vec::new())).unwrap();
        let (known, together, plain) = (BTreeMap::new(), Vec::new(), round % 2 == 0);
        let mut notes = Notes { database, known, together, plain };
        for _ in 0..12 + random.below(20) {
            match random.below(10) {
                0..6 => notes.write(&mut random),
                6..9 => {
                    let mut all: Vec<&[&str]> = TOGETHER.to_vec();
                    all.retain(|_| random.below(2) == 0);
                    notes.define(all.into_iter().map(paths).collect());
                }
                _ => notes.database.optimize(Some(NOTES)).unwrap(),
            }
            if random.below(3) == 0 {
                notes.compare(&mut random);
            }
        }
        notes.compare(&mut random);
        drop(notes.database);
        notes.database = open();
        notes.compare(&mut random);
        check_is_clean(notes.database);
    }
}

#[test]
fn unsupported_conditions_on_joint_paths_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    let together = PathDef::together(1, paths(&["a", "b"])).unwrap();
    database.create_table(schema(vec![together])).unwrap();
    let refused = |of: &[&str], tests: Vec<PathTest>| {
        let filter = Filter::PathsTogether("doc".to_owned(), paths(of), tests);
        let table = NOTES.to_owned();
        let selection = Selection { table, filter: Some(filter), ..Selection::default() };
        database.count(&selection).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let one = || PathTest::In(vec![PathValue::Int(1)]);
    assert_eq!(refused(&["a", "b"], vec![one()]), "");
    assert!(
        refused(&["b", "a"], vec![one()])
            .contains("'b, a' of column 'doc' are not indexed together")
    );
    for tests in [
        vec![],
        vec![PathTest::Exists, one()],
        vec![one(), one(), one()],
        vec![PathTest::In((0..400).map(PathValue::Int).collect()); 2],
    ] {
        assert!(refused(&["a", "b"], tests).contains("has too many values"));
    }
}
