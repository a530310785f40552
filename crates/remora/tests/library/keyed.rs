//! Collections with text ids given by the caller.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use remora::{Collection, Database, Error};
use serde_json::{Value as Json, json};

use crate::Tested;

/// Ids that only a binary order and a binary comparison keep apart.
fn id() -> impl Strategy<Value = String> {
    let chosen =
        ["a", "A", "á", "a ", " a", "a\0", "ß", "ss", "\u{e9}", "e\u{301}", "海", "🐦", "10", "9"];
    prop_oneof![
        3 => prop::sample::select(chosen.to_vec()).prop_map(str::to_owned),
        1 => ".{1,20}",
        1 => Just("x".repeat(512)),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Insert(String, i64),
    Upsert(String, i64),
    UpsertMany(Vec<(String, i64)>),
    Patch(String, i64),
    Delete(String),
    Optimize,
}

fn step() -> impl Strategy<Value = Step> {
    let value = 0..20_i64;
    prop_oneof![
        (id(), value.clone()).prop_map(|(id, n)| Step::Insert(id, n)),
        (id(), value.clone()).prop_map(|(id, n)| Step::Upsert(id, n)),
        prop::collection::vec((id(), value.clone()), 0..6).prop_map(Step::UpsertMany),
        (id(), value).prop_map(|(id, n)| Step::Patch(id, n)),
        id().prop_map(Step::Delete),
        Just(Step::Optimize),
    ]
}

/// Applies a step to the collection and to the model.
fn take(books: &Collection<String>, model: &mut BTreeMap<String, Json>, step: Step) {
    match step {
        Step::Insert(id, n) => {
            let inserted = books.insert_as(&id, &json!({"n": n}));
            match model.contains_key(&id) {
                true => assert!(matches!(inserted, Err(Error::Exists(_))), "{id:?}"),
                false => {
                    inserted.unwrap();
                    model.insert(id, json!({"n": n}));
                }
            }
        }
        Step::Upsert(id, n) => {
            books.upsert(&id, &json!({"n": n})).unwrap();
            model.insert(id, json!({"n": n}));
        }
        Step::UpsertMany(all) => {
            books.upsert_many(all.iter().map(|(id, n)| (id.as_str(), json!({"n": n})))).unwrap();
            model.extend(all.into_iter().map(|(id, n)| (id, json!({"n": n}))));
        }
        Step::Patch(id, n) => {
            let patched = books.merge_patch(&id, &json!({"m": n}));
            match model.get_mut(&id) {
                Some(document) => {
                    document["m"] = json!(n);
                    assert_eq!(patched.unwrap(), *document);
                }
                None => assert!(matches!(patched, Err(Error::NotFound(_))), "{id:?}"),
            }
        }
        Step::Delete(id) => assert_eq!(books.delete(&id).unwrap(), model.remove(&id).is_some()),
        Step::Optimize => {}
    }
}

fn pages(books: &Collection<String>, limit: usize) -> Vec<(String, Json)> {
    let (mut all, mut last): (Vec<(String, Json)>, Option<String>) = (Vec::new(), None);
    loop {
        let page = books.page(last.as_deref(), limit).unwrap();
        assert!(page.len() <= limit);
        let Some(end) = page.last() else { return all };
        last = Some(end.id.clone());
        all.extend(page.into_iter().map(|document| (document.id, document.doc)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn documents_are_what_a_map_of_texts_has(
        steps in prop::collection::vec(step(), 1..60),
        absent in id(),
        limit in 1..7_usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("db");
        let mut model = BTreeMap::new();
        let db = Database::open(&place).unwrap();
        let books = db.keyed_collection("books").unwrap();
        books.index("n").unwrap();
        for step in steps {
            if matches!(step, Step::Optimize) {
                db.execute("OPTIMIZE TABLE books", []).unwrap();
            }
            take(&books, &mut model, step);
        }
        drop((books, db));
        let db = Database::open(&place).unwrap();
        let books = db.keyed_collection("books").unwrap();
        let expected: Vec<(String, Json)> = model.clone().into_iter().collect();
        prop_assert_eq!(pages(&books, limit), expected.clone());
        prop_assert_eq!(books.len().unwrap(), model.len() as u64);
        prop_assert_eq!(books.get(&absent).unwrap(), model.get(&absent).cloned());
        // From an id that is none's, too.
        let behind: Vec<String> =
            books.page(Some(&absent), 1_000).unwrap().into_iter().map(|it| it.id).collect();
        let known: Vec<String> = model.range(absent.clone()..).map(|(id, _)| id.clone()).collect();
        prop_assert_eq!(behind, known.into_iter().filter(|id| *id != absent).collect::<Vec<_>>());
        let with = |n: i64| -> Vec<String> {
            let found = model.iter().filter(|(_, document)| document["n"] == json!(n));
            found.map(|(id, _)| id.clone()).collect()
        };
        for n in 0..20 {
            prop_assert_eq!(books.find(format!("n = {n}").as_str()).ids().unwrap(), with(n));
        }
        let all: Vec<String> = model.keys().cloned().collect();
        prop_assert_eq!(books.now().ids(0, 1_000).unwrap(), all.clone());
        prop_assert_eq!(books.now().known(&all).unwrap(), all);
    }
}

#[test]
fn ids_are_texts_and_nothing_else() -> Tested {
    let db = Database::in_memory()?;
    let books = db.create_keyed_collection("books")?;
    for wrong in ["", &"x".repeat(513)] {
        assert!(matches!(books.upsert(wrong, &json!({})), Err(Error::Request(_))));
        // There may be one that others wrote, which can be read and deleted.
        assert_eq!(books.get(wrong)?, None);
    }
    books.insert_as("isbn", &json!({"title": "Reef"}))?;
    books.index_unique("title")?;
    let told = books.insert_as("other", &json!({"title": "Reef"})).unwrap_err().to_string();
    assert!(told.contains("isbn") && told.contains("other"), "{told}");
    // Neither kind of collection opens the other.
    assert!(db.collection("books").is_err() && db.find_collection("books")?.is_none());
    db.collection("numbers")?;
    assert!(db.keyed_collection("numbers").is_err());
    assert_eq!(
        (db.collections(), db.keyed_collections()),
        (vec!["numbers".to_owned()], vec!["books".to_owned()])
    );
    db.rename_collection("books", "works")?;
    let works = db.keyed_collection("works")?;
    let mut batch = db.batch();
    batch.upsert_document(&works, "b", &json!({"n": 1}))?;
    batch.delete_document(&works, "isbn")?;
    batch.commit()?;
    assert_eq!(works.all().ids()?, ["b"]);
    let (document, version) = works.get_versioned("b")?.ok_or("it is there")?;
    assert_eq!(document, json!({"n": 1}));
    works.replace_if("b", version, &json!({"n": 2}))?;
    assert!(matches!(works.replace_if("b", version, &json!({})), Err(Error::Changed(_))));
    let shown = db.query("SELECT id, doc->'$.n' FROM works WHERE id = 'b'", [])?;
    assert_eq!(shown.iter().count(), 1);
    db.execute("INSERT INTO works VALUES ('c', '{\"n\": 3}')", [])?;
    assert_eq!(works.find("n = 3").ids()?, ["c"]);
    Ok(())
}
