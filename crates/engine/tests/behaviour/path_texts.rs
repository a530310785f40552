//! The texts that paths lead to, searched by their index: what it finds is what reading all documents finds, whenever
//! it was made, whatever is written and merged meanwhile, and after a restart.

use std::{collections::BTreeMap, sync::Arc};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Definition, Filter, PATH_TEXTS, PathDef,
    Schema, Selection, TableChanges, Value, texts_tell, walk_path,
};
use serde_json::{Value as Json, json};

use crate::common::*;

const NOTES: &str = "notes";
const PATHS: [&str; 4] = ["title", "parts.text", "tags", "tags.1"];
const WORDS: [&str; 8] = ["Reef", "reef life", "東京都", "É", "e", "ﬁsh", "sea  bed", ""];

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
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
    let words: Vec<&str> = (0..random.below(4)).map(|_| word(random)).collect();
    match random.below(8) {
        0 => json!(random.below(9)),
        1 => Json::Null,
        _ => json!(words.join(" ")),
    }
}

fn any_document(random: &mut Random) -> Json {
    let mut document = json!({});
    if random.below(4) > 0 {
        document["title"] = any_text(random);
    }
    let parts = (0..random.below(3)).map(|_| json!({"text": any_text(random)}));
    document["parts"] = parts.collect();
    if random.below(3) > 0 {
        let nested = json!([any_text(random)]);
        document["tags"] = json!([any_text(random), nested, any_text(random)]);
    }
    document
}

/// What a look at the document says.
fn holds(document: &Json, paths: &[Vec<String>], text: &str) -> bool {
    let wanted = PATH_TEXTS.apply(text);
    let has = |found: &Json| {
        found.as_str().is_some_and(|found| PATH_TEXTS.apply(found).contains(&*wanted))
    };
    !wanted.is_empty()
        && paths.iter().any(|path| {
            walk_path(path, document, &mut |found| {
                has(found) || found.as_array().is_some_and(|elements| elements.iter().any(has))
            })
        })
}

/// Whether what a path leads to, shown as a text, has this text letter by letter; as far as the index is to know.
fn may_hold(document: &Json, paths: &[Vec<String>], text: &str) -> bool {
    paths.iter().any(|path| {
        walk_path(path, document, &mut |found| {
            found.as_str().is_none_or(|found| found.contains(text))
        })
    })
}

struct Notes {
    database: Database,
    known: BTreeMap<i64, Json>,
    paths: Vec<PathDef>,
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
                let document = any_document(random);
                let text = Value::Json(document.to_string().into());
                changes.insert(id, Change::Put(vec![Value::Int(id), text]));
                self.known.insert(id, document);
            }
        }
        let changes = changes.into_values().collect();
        let tables = vec![TableChanges { table: Arc::from(NOTES), changes }];
        self.database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    }

    fn define(&mut self, paths: Vec<PathDef>) {
        let schema = schema(paths.clone());
        let definition = Definition::Alter { schema, fills: Vec::new() };
        self.database.define(vec![definition], Vec::new()).unwrap();
        self.paths = paths;
    }

    fn found(&self, filter: Filter) -> u64 {
        let (table, filter) = (NOTES.to_owned(), Some(filter));
        let selection = Selection { table, filter, ..Selection::default() };
        self.database.count(&selection).unwrap().count
    }

    fn compare(&self) {
        let wait = |path: &PathDef| self.database.wait_for_path(NOTES, path).unwrap();
        self.paths.iter().for_each(wait);
        let ready = self.database.reader().ready_paths(NOTES).unwrap();
        assert_eq!(ready, (0..self.paths.len()).collect::<Vec<_>>());
        let count = |test: &dyn Fn(&Json) -> bool| {
            self.known.values().filter(|document| test(document)).count() as u64
        };
        for path in &self.paths {
            let paths: Vec<Vec<String>> = path.paths().map(<[String]>::to_vec).collect();
            let spelled = |text: &str| {
                let filter = Filter::PathMayHold("doc".to_owned(), paths.clone(), text.to_owned());
                (self.found(filter), count(&|document| may_hold(document, &paths, text)))
            };
            for text in ["Reef", "reef life", "É", "e", "ﬁ", "fi", "都", "  ", " "] {
                let (found, expected) = spelled(text);
                assert!(found >= expected, "{paths:?} may hold {text:?}");
            }
            // No other document is left where none has letters that look like these.
            let (found, expected) = spelled("zq");
            assert_eq!(found, expected, "{paths:?}");
            for text in ["reef", "REEF LIFE", "京", "é", "e", "fish", "sea  b", "a", " ", "f ", ""]
            {
                let filter = Filter::PathTexts("doc".to_owned(), paths.clone(), text.to_owned());
                let expected = count(&|document| holds(document, &paths, text));
                let found = self.found(filter.clone());
                assert!(found >= expected, "{paths:?} {text:?}");
                if texts_tell(text) {
                    assert_eq!(found, expected, "{paths:?} {text:?}");
                    let other = Filter::PathTexts("doc".to_owned(), paths.clone(), "e".to_owned());
                    let both = |document: &Json| {
                        holds(document, &paths, text) && !holds(document, &paths, "e")
                    };
                    let but = Filter::And(vec![filter, Filter::Not(Box::new(other))]);
                    assert_eq!(self.found(but), count(&both), "{paths:?} {text:?}");
                }
            }
        }
    }
}

#[test]
fn text_path_searches_match_a_scan() {
    let mut random = Random::seeded();
    for _ in 0..8 {
        let directory = tempfile::tempdir().unwrap();
        let open = || Database::open(directory.path(), quick()).unwrap();
        let database = open();
        database.create_table(schema(Vec::new())).unwrap();
        let mut notes = Notes { database, known: BTreeMap::new(), paths: Vec::new() };
        for _ in 0..12 + random.below(20) {
            match random.below(10) {
                0..6 => notes.write(&mut random),
                6..8 => {
                    let mut paths = PATHS.to_vec();
                    paths.retain(|_| random.below(2) == 0);
                    let paths = paths.into_iter().map(names).collect();
                    let mut all = notes.paths.clone();
                    if let Some(new) = PathDef::of_texts(1, paths)
                        && !all.iter().any(|one| one.is_along(&new))
                    {
                        all.push(new);
                    }
                    notes.define(all);
                }
                8 => {
                    let mut all = notes.paths.clone();
                    all.retain(|_| random.below(2) == 0);
                    notes.define(all);
                }
                _ => notes.database.optimize(Some(NOTES)).unwrap(),
            }
            if random.below(3) == 0 {
                notes.compare();
            }
        }
        notes.compare();
        drop(notes.database);
        notes.database = open();
        notes.compare();
        check_is_clean(notes.database);
    }
}

#[test]
fn invalid_path_texts_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    database.create_table(schema(Vec::new())).unwrap();
    let of = |paths: &[&str]| PathDef::of_texts(1, paths.iter().map(|path| names(path)).collect());
    let refused = |paths: Vec<PathDef>| {
        let definition = Definition::Alter { schema: schema(paths), fills: Vec::new() };
        database.define(vec![definition], Vec::new()).unwrap_err().to_string()
    };
    let twice = of(&["title", "tags", "title"]).unwrap();
    assert!(refused(vec![twice]).contains("name one of them twice"));
    let (one, other) = (of(&["title", "tags"]).unwrap(), of(&["tags", "title"]).unwrap());
    assert!(refused(vec![one.clone(), other]).contains("is there twice"));
    assert!(refused(vec![PathDef { unique: true, ..one }]).contains("cannot be unique"));
    let many: Vec<String> = (0..33).map(|at| format!("p{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refused(vec![of(&many).unwrap()]).contains("the limit is 32"));
    let selection = Selection {
        table: NOTES.to_owned(),
        filter: Some(Filter::PathTexts("doc".to_owned(), vec![names("title")], "x".to_owned())),
        ..Selection::default()
    };
    let unknown = database.count(&selection).unwrap_err().to_string();
    assert!(unknown.contains("The texts of 'title' in column 'doc' are not indexed"), "{unknown}");
}
