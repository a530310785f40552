//! Paths that are declared when many documents are there: their indexes are made a bounded piece at a time, and find
//! what reading all documents finds, whatever is written, dropped or closed meanwhile.

use std::{collections::BTreeMap, fs, ops::Bound, sync::Arc, time::Duration};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Definition, Error, Filter, Options,
    PATH_TEXTS, PathDef, PathTest, PathValue, Schema, Selection, TableChanges, Value, walk_path,
};
use serde_json::{Value as Json, json};

use crate::common::*;

const NOTES: &str = "notes";
const WORDS: [&str; 6] = ["reef", "coral reef", "東京", "sea  bed", "É", "deep"];

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// One of each form: a path, two together, and the texts of two.
fn all_paths() -> Vec<PathDef> {
    vec![
        PathDef::new(1, names("a")),
        PathDef::together(1, vec![names("b"), names("parts.n")]).unwrap(),
        PathDef::of_texts(1, vec![names("title"), names("parts.text")]).unwrap(),
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
            NOTES,
            vec![column(1, "id", ColumnType::Int(64)), column(2, "doc", ColumnType::Json)],
            vec![0],
        )
    }
}

fn any_text(random: &mut Random) -> Json {
    let word = |random: &mut Random| WORDS[random.below(WORDS.len() as u64) as usize];
    let words: Vec<&str> = (0..random.below(5)).map(|_| word(random)).collect();
    json!(words.join(" "))
}

fn any_document(random: &mut Random) -> Json {
    let mut document = json!({"title": any_text(random)});
    match random.below(4) {
        0 => document["a"] = (0..random.below(4)).map(|_| json!(random.below(9))).collect(),
        1 => {}
        _ => document["a"] = json!(random.below(9)),
    }
    if random.below(3) > 0 {
        document["b"] = json!(random.below(4));
    }
    let part = |random: &mut Random| json!({"n": random.below(5), "text": any_text(random)});
    document["parts"] = (0..random.below(3)).map(|_| part(random)).collect();
    document
}

/// Whether a path leads to a value that a test holds for, or to an array with one.
fn leads(document: &Json, path: &[String], test: &dyn Fn(&Json) -> bool) -> bool {
    walk_path(path, document, &mut |found| {
        test(found) || found.as_array().is_some_and(|elements| elements.iter().any(test))
    })
}

struct Notes {
    database: Database,
    known: BTreeMap<i64, Json>,
}

impl Notes {
    fn put(&mut self, documents: BTreeMap<i64, Option<Json>>) {
        let mut changes = Vec::new();
        for (id, document) in documents {
            let key = vec![Value::Int(id)];
            match document {
                None => {
                    self.known.remove(&id);
                    changes.push(Change::Delete(key));
                }
                Some(document) => {
                    let text = Value::Json(document.to_string().into());
                    changes.push(Change::Put(vec![Value::Int(id), text]));
                    self.known.insert(id, document);
                }
            }
        }
        let tables = vec![TableChanges { table: Arc::from(NOTES), changes }];
        self.database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    }

    fn fill(&mut self, count: i64, random: &mut Random) {
        self.put((0..count).map(|id| (id, Some(any_document(random)))).collect());
    }

    /// Documents anywhere become others, or go.
    fn change_some(&mut self, count: i64, random: &mut Random) {
        let mut changed = BTreeMap::new();
        for _ in 0..1 + random.below(20) {
            let id = random.below(count as u64) as i64;
            changed.insert(id, (random.below(3) > 0).then(|| any_document(random)));
        }
        self.put(changed);
    }

    fn define(&self, paths: Vec<PathDef>) {
        let definition = Definition::Alter { schema: schema(paths), fills: Vec::new() };
        self.database.define(vec![definition], Vec::new()).unwrap();
    }

    fn found(&self, filter: Filter) -> u64 {
        let (table, filter) = (NOTES.to_owned(), Some(filter));
        let selection = Selection { table, filter, ..Selection::default() };
        self.database.count(&selection).unwrap().count
    }

    /// Of each segment, as a checkpoint leaves it in its file.
    fn segment_bytes(&self) -> Vec<u64> {
        self.database.checkpoint().unwrap();
        let files = fs::read_dir(self.database.path().join("segments")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).collect()
    }

    fn ready(&self) -> Vec<usize> {
        self.database.reader().ready_paths(NOTES).unwrap()
    }

    /// Waits for all paths, and compares what they find with a look at each document.
    fn compare(&self) {
        let wait = |path: &PathDef| self.database.wait_for_path(NOTES, path).unwrap();
        all_paths().iter().for_each(wait);
        assert_eq!(self.ready(), [0, 1, 2]);
        let count = |test: &dyn Fn(&Json) -> bool| {
            self.known.values().filter(|document| test(document)).count() as u64
        };
        for number in -1..10 {
            let one = |number: i64| PathTest::In(vec![PathValue::Int(number)]);
            let of_a = Filter::Path("doc".to_owned(), names("a"), one(number));
            let is = |found: &Json| found.as_i64() == Some(number);
            let expected = count(&|document| leads(document, &names("a"), &is));
            assert_eq!(self.found(of_a), expected, "a = {number}");
            let above = PathTest::Within(Bound::Excluded(PathValue::Int(1)), Bound::Unbounded);
            let paths = vec![names("b"), names("parts.n")];
            let together = Filter::PathsTogether("doc".to_owned(), paths, vec![one(number), above]);
            let is_above = |found: &Json| found.as_i64().is_some_and(|found| found > 1);
            let expected = count(&|document| {
                leads(document, &names("b"), &is) && leads(document, &names("parts.n"), &is_above)
            });
            assert_eq!(self.found(together), expected, "b = {number} and parts.n > 1");
        }
        for text in ["REEF", "coral reef", "京", "sea  b", "é", "nothing"] {
            let wanted = PATH_TEXTS.apply(text);
            let has = |found: &Json| {
                found.as_str().is_some_and(|found| PATH_TEXTS.apply(found).contains(&*wanted))
            };
            let paths = vec![names("title"), names("parts.text")];
            let expected = count(&|document| paths.iter().any(|path| leads(document, path, &has)));
            let filter = Filter::PathTexts("doc".to_owned(), paths.clone(), text.to_owned());
            assert_eq!(self.found(filter), expected, "{text}");
        }
    }
}

#[test]
fn paths_of_many_documents_are_made_in_pieces() {
    const DOCUMENTS: i64 = 3_000;
    let mut random = Random::seeded();
    for (path_index_bytes, max_segment_bytes) in [(16_000, 1 << 30), (1 << 28, 30_000)] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { path_index_bytes, max_segment_bytes, ..quick() };
        let open = || Database::open(directory.path(), options.clone()).unwrap();
        let database = open();
        database.create_table(schema(Vec::new())).unwrap();
        let mut notes = Notes { database, known: BTreeMap::new() };
        notes.fill(DOCUMENTS, &mut random);
        notes.change_some(DOCUMENTS, &mut random);
        notes.database.optimize(Some(NOTES)).unwrap();
        let before = notes.database.statistics(NOTES).unwrap();
        assert_eq!(before.segments, 1);
        notes.define(all_paths());
        for _ in 0..random.below(30) {
            notes.change_some(DOCUMENTS, &mut random);
        }
        notes.compare();
        let after = notes.database.statistics(NOTES).unwrap();
        println!("{} merges, {:?}", after.merges - before.merges, after.levels);
        assert!(after.merges >= before.merges + 5);
        for _ in 0..2 {
            // What a segment will have is estimated by its documents' share of the others: two in one are more.
            let largest = notes.segment_bytes().into_iter().max().unwrap();
            assert!(largest <= max_segment_bytes / 2 * 3, "{largest}");
            notes.database.optimize(Some(NOTES)).unwrap();
            notes.compare();
        }
        let segments = notes.database.statistics(NOTES).unwrap().segments;
        assert_eq!(segments == 1, max_segment_bytes == 1 << 30, "{segments}");
        drop(notes.database);
        notes.database = open();
        notes.compare();
        check_is_clean(notes.database);
    }
}

/// OPTIMIZE makes what is lacking too, and as few segments as may be.
#[test]
fn optimize_runs_until_everything_is_indexed() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { path_index_bytes: 24_000, ..quick() };
    let database = Database::open(directory.path(), options).unwrap();
    database.create_table(schema(Vec::new())).unwrap();
    let mut notes = Notes { database, known: BTreeMap::new() };
    notes.fill(2_000, &mut random);
    notes.change_some(2_000, &mut random);
    notes.define(all_paths());
    notes.database.optimize(Some(NOTES)).unwrap();
    notes.compare();
    check_is_clean(notes.database);
}

#[test]
fn dropped_and_incomplete_path_indexes_are_harmless() {
    const DOCUMENTS: i64 = 2_000;
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { path_index_bytes: 16_000, checkpoint_bytes: 20_000, ..quick() };
    let open = || Database::open(directory.path(), options.clone()).unwrap();
    let database = open();
    database.create_table(schema(Vec::new())).unwrap();
    let mut notes = Notes { database, known: BTreeMap::new() };
    notes.fill(DOCUMENTS, &mut random);
    for round in 0..12 {
        notes.define(all_paths());
        notes.change_some(DOCUMENTS, &mut random);
        std::thread::sleep(Duration::from_millis(random.below(30)));
        match round % 3 {
            0 => {
                let mut left = all_paths();
                left.remove(random.below(3) as usize);
                notes.define(left);
                notes.change_some(DOCUMENTS, &mut random);
                notes.define(Vec::new());
            }
            1 => {
                drop(notes.database);
                notes.database = open();
            }
            _ => {}
        }
        if random.below(2) == 0 {
            notes.define(all_paths());
            notes.compare();
        }
        notes.define(Vec::new());
        if random.below(3) == 0 {
            notes.database.optimize(Some(NOTES)).unwrap();
        }
    }
    notes.define(all_paths());
    notes.compare();
    check_is_clean(notes.database);
}

/// A document with more than is indexed leaves its segment without that path alone, which is told by name; when it is
/// another the path is indexed.
#[test]
fn documents_with_too_many_values_at_a_path_are_reported_and_read() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { path_index_bytes: 12_000, ..quick() };
    let open = || Database::open(directory.path(), options.clone()).unwrap();
    let database = open();
    database.create_table(schema(Vec::new())).unwrap();
    let mut notes = Notes { database, known: BTreeMap::new() };
    notes.fill(600, &mut random);
    let large = json!({"a": 3, "title": "deep ".repeat(3_000), "b": 1, "parts": [{"n": 2}]});
    notes.put([(300, Some(large))].into());
    notes.database.optimize(Some(NOTES)).unwrap();
    notes.define(all_paths());
    let [a, together, texts] = <[PathDef; 3]>::try_from(all_paths()).unwrap();
    let is_told = |notes: &Notes| {
        let refused = notes.database.wait_for_path(NOTES, &texts).unwrap_err();
        assert!(matches!(refused, Error::Request { .. }), "{refused:?}");
        let failures = notes.database.merge_failures();
        let [(table, told)] = &failures[..] else { panic!("{failures:?}") };
        assert_eq!(table, NOTES);
        let shown = notes.database.statistics(NOTES).unwrap().path_failure.unwrap();
        for said in [refused.to_string(), told.clone(), shown] {
            let names = said.contains("too much at the path \"title, parts.text\"");
            assert!(names && said.contains("12000"), "{said}");
        }
        notes.database.wait_for_path(NOTES, &a).unwrap();
        notes.database.wait_for_path(NOTES, &together).unwrap();
        assert_eq!(notes.ready(), [0, 1]);
    };
    is_told(&notes);
    let of_a = PathTest::In(vec![PathValue::Int(3)]);
    let is_three = |found: &Json| found.as_i64() == Some(3);
    let threes = notes.known.values().filter(|it| leads(it, &names("a"), &is_three)).count();
    let filter = Filter::Path("doc".to_owned(), names("a"), of_a);
    assert_eq!(notes.found(filter), threes as u64);
    // Merges go on, and after a start it is found out and told again.
    for _ in 0..20 {
        let id = 600 + random.below(100) as i64;
        notes.put([(id, Some(any_document(&mut random)))].into());
    }
    notes.database.optimize(Some(NOTES)).unwrap();
    is_told(&notes);
    drop(notes.database);
    notes.database = open();
    is_told(&notes);
    notes.put([(300, Some(any_document(&mut random)))].into());
    notes.compare();
    assert_eq!(notes.database.merge_failures(), []);
    check_is_clean(notes.database);
}
