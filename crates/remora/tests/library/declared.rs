//! Collections of which SQL declared keys and conditions: the library writes them too, and nothing that was declared
//! is lost.

use std::collections::BTreeMap;

use remora::{Collection, Database, Error, Options, field, params};
use remora_engine::{ChangeBatch, Database as Engine};
use serde_json::{Value as Json, json};

use crate::Tested;

const KEY: &str = "CREATE INDEX n ON c ((CAST(doc->>'$.n' AS SIGNED)))";

/// The ids that the key over `$.n` finds, as SQL reads them by the key and without it.
fn by_key(db: &Database, n: i64) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
    let asked = "SELECT id FROM c WHERE CAST(doc->>'$.n' AS SIGNED) = ? ORDER BY id";
    let found: Vec<i64> = db.query(asked, params![n])?.deserialize()?;
    let scanned = "SELECT id FROM c WHERE CAST(doc->>'$.n' AS SIGNED) + 0 = ? ORDER BY id";
    assert_eq!(db.query(scanned, params![n])?.deserialize::<i64>()?, found, "{n}");
    Ok(found)
}

#[test]
fn a_key_over_a_path_is_kept_by_every_write() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path())?;
    let before = db.collection("c")?;
    let first = before.insert(&json!({"n": 1}))?;
    db.execute(KEY, [])?;
    let all = db.collection("c")?;
    assert_eq!(db.collections(), ["c"]);
    // Who had the collection before writes it too.
    let second = before.insert(&json!({"n": 2, "b": [1.0, "x"]}))?;
    assert_eq!(before.get_json(second)?.as_deref(), Some(r#"{"b":[1.0,"x"],"n":2}"#));
    let many = all.insert_many([json!({"n": 2}), json!({"m": 1})])?;
    all.insert_json(r#"{"n": "7"}"#)?;
    all.insert_as(5, &json!({"n": 1}))?;
    assert!(matches!(all.insert_as(5, &json!({})), Err(Error::Exists(_))));
    all.upsert(5, &json!({"n": 3}))?;
    all.upsert_many([(6, json!({"n": 3})), (7, json!({"n": 1})), (6, json!({"n": 4}))])?;
    assert_eq!(by_key(&db, 1)?, [7, first]);
    assert_eq!(by_key(&db, 2)?, [second, many[0]]);
    assert_eq!((by_key(&db, 3)?, by_key(&db, 4)?, by_key(&db, 7)?.len()), (vec![5], vec![6], 1));
    all.replace(5, &json!({"n": 8}))?;
    all.merge_patch(6, &json!({"n": null, "n2": 1}))?;
    all.patch(7, &json!([{"op": "replace", "path": "/n", "value": 8}]))?;
    let (document, version) = all.get_versioned(first)?.ok_or("it is there")?;
    assert_eq!(document, json!({"n": 1}));
    let version = all.replace_if(first, version, &json!({"n": 9}))?;
    all.replace_if(first, version, &json!({"n": 10}))?;
    assert!(matches!(all.replace_if(first, version, &json!({})), Err(Error::Changed(_))));
    assert!(matches!(all.replace(99, &json!({})), Err(Error::NotFound(_))));
    assert_eq!((by_key(&db, 1)?, by_key(&db, 4)?, by_key(&db, 9)?), (vec![], vec![], vec![]));
    assert_eq!((by_key(&db, 8)?, by_key(&db, 10)?), (vec![5, 7], vec![first]));
    assert!(all.delete(7)? && !all.delete(7)?);
    assert_eq!((by_key(&db, 8)?, all.delete_found("n = 8")?), (vec![5], 1));
    assert_eq!(by_key(&db, 8)?, [0; 0]);
    let plan = db.query("EXPLAIN SELECT id FROM c WHERE CAST(doc->>'$.n' AS SIGNED) = 8", [])?;
    assert!(format!("{plan:?}").contains("\"n\""), "the key is not used: {plan:?}");
    // Reads see documents without the hidden column.
    assert_eq!(all.get(first)?, Some(json!({"n": 10})));
    let page = all.page(None, 2)?;
    assert_eq!((page[0].id, &page[0].doc), (6, &json!({"n2": 1})));
    assert_eq!(all.find(field("n").at_least(2)).sort_by_desc("n").run()?.documents[0].id, first);
    let row = db.table("c")?.get(6)?.ok_or("it is there")?;
    assert_eq!(row.columns().len(), 2);
    drop((row, before, all));
    db.close()?;
    drop(db);
    let db = Database::open(directory.path())?;
    let all = db.collection("c")?;
    all.insert_as(1, &json!({"n": 10}))?;
    assert_eq!(by_key(&db, 10)?, [1, first]);
    Ok(())
}

#[test]
fn unique_keys_and_conditions_are_kept() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let ann = all.insert(&json!({"mail": "ann@x", "n": 1}))?;
    db.execute("CREATE UNIQUE INDEX mail ON c ((CAST(doc->>'$.mail' AS CHAR(50))))", [])?;
    db.execute("ALTER TABLE c ADD CHECK (doc->>'$.n' > 0)", [])?;
    let bo = all.insert(&json!({"mail": "bo@x", "n": 1}))?;
    for taken in [
        all.insert(&json!({"mail": "ann@x", "n": 1})).map(drop),
        all.replace(bo, &json!({"mail": "ann@x", "n": 1})),
        all.upsert(bo, &json!({"mail": "ann@x", "n": 1})),
        all.merge_patch(bo, &json!({"mail": "ann@x"})).map(drop),
        all.insert_many([json!({"mail": "cy@x"}), json!({"mail": "cy@x"})]).map(drop),
    ] {
        let error = taken.err().ok_or("it is taken")?;
        assert!(matches!(error, Error::Exists(_)) && error.mysql_code() == Some(1062), "{error}");
    }
    for refused in [
        all.insert(&json!({"n": -1})).map(drop),
        all.replace(ann, &json!({"n": -1})),
        all.insert_many([json!({"n": 5}), json!({"n": 0})]).map(drop),
    ] {
        let error = refused.err().ok_or("it violates the condition")?;
        assert_eq!(error.mysql_code(), Some(3819), "{error}");
    }
    assert_eq!((all.len()?, all.get(bo)?), (2, Some(json!({"mail": "bo@x", "n": 1}))));
    // What is given up is free again, for whoever comes first.
    all.delete(ann)?;
    all.merge_patch(bo, &json!({"mail": "ann@x"}))?;
    db.execute("INSERT INTO c VALUES (1, '{\"mail\": \"bo@x\", \"n\": 2}')", [])?;
    let again = all.insert(&json!({"mail": "bo@x", "n": 3}));
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    Ok(())
}

#[test]
fn a_collection_may_begin_as_a_table_of_sql() -> Tested {
    let db = Database::in_memory()?;
    let columns = "id BIGINT AUTO_INCREMENT PRIMARY KEY, doc JSON NOT NULL";
    db.execute(
        &format!("CREATE TABLE notes ({columns}, KEY ((CAST(doc->'$.tags' AS CHAR(20) ARRAY))))"),
        [],
    )?;
    let notes = db.collection("notes")?;
    notes.insert_as(41, &json!({"tags": ["sea", "reef"]}))?;
    let counted = db.execute("INSERT INTO notes (doc) VALUES ('{\"tags\": [\"sea\"]}')", [])?;
    assert_eq!(counted.last_insert_id, 42, "the counter passes ids that were given");
    assert_eq!(notes.find("tags = 'sea'").ids()?, [41, 42]);
    assert_eq!(notes.find("tags = 'sea'").explain()?.indexes, ["tags"]);
    assert!(notes.index("author")? && !notes.index("author")?);
    // Another index of SQL keeps that of the library, and each drops its own.
    db.execute("CREATE INDEX n ON notes ((CAST(doc->>'$.n' AS SIGNED)))", [])?;
    let error = notes.drop_index("tags").err().ok_or("a key has it")?;
    assert!(error.to_string().contains("DROP INDEX"), "{error}");
    assert!(notes.drop_index("author")?);
    // Only SQL drops and renames what belongs to its keys.
    for refused in [db.drop_table("notes"), db.rename_collection("notes", "other")] {
        assert!(refused.is_err_and(|error| error.to_string().contains("with SQL")));
    }
    // These hold more, or other things, than documents.
    for (name, columns) in [
        ("wide", "id BIGINT PRIMARY KEY, doc JSON NOT NULL, more INT"),
        ("empty", "id BIGINT PRIMARY KEY, doc JSON"),
        ("other", "doc JSON NOT NULL, id BIGINT PRIMARY KEY"),
    ] {
        db.execute(&format!("CREATE TABLE {name} ({columns})"), [])?;
        assert!(matches!(db.collection(name), Err(Error::Exists(_))), "{name}");
    }
    Ok(())
}

#[test]
fn ids_that_are_texts_have_no_keys_of_sql() -> Tested {
    let db = Database::in_memory()?;
    // SQL has no keys over texts of any length, which the ids of a collection of the library's are.
    db.keyed_collection("plain")?;
    let refused = db.execute("CREATE INDEX n ON plain ((CAST(doc->>'$.n' AS SIGNED)))", []);
    assert_eq!(refused.err().and_then(|error| error.mysql_code()), Some(1170));
    let plain = db.keyed_collection("plain")?;
    plain.insert_as("b", &json!({"year": 1999}))?;
    assert_eq!(plain.get("b")?, Some(json!({"year": 1999})));
    Ok(())
}

#[test]
fn what_follows_a_source_is_changed_there() -> Tested {
    let directory = tempfile::tempdir()?;
    let engine = Engine::open(directory.path(), remora_engine::Options::default())?;
    let db = Database::over(engine.clone());
    db.execute("CREATE TABLE copy (id BIGINT PRIMARY KEY, doc JSON NOT NULL)", [])?;
    db.execute("INSERT INTO copy VALUES (1, '{}')", [])?;
    let copy = db.collection("copy")?;
    // What following a server stores.
    let stored = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let positions = vec![stored("main/source", "{}"), stored("main/table/copy", "{}")];
    engine.apply(ChangeBatch { tables: Vec::new(), positions })?;
    assert_eq!(db.source_of("copy").as_deref(), Some("main"));
    let mut batch = db.batch();
    for refused in [
        copy.insert(&json!({})).map(drop),
        copy.replace(1, &json!({})),
        copy.delete(1).map(drop),
        copy.delete_found("a = 1").map(drop),
        copy.index("a").map(drop),
        batch.upsert_document(&copy, 1, &json!({})),
        db.transaction(|tx| tx.documents(&copy)?.upsert(1, &json!({"a": 1}))),
    ] {
        let error = refused.err().ok_or("it follows a source")?;
        assert!(error.to_string().contains("follows the source \"main\""), "{error}");
    }
    assert_eq!(copy.get(1)?, Some(json!({})));
    Ok(())
}

/// Random writes by the library and by SQL give the same rows as a map, by each key and without one.
#[test]
fn any_writes_leave_keys_that_find_every_document() -> Tested {
    let seed = std::env::var("REMORA_SEED").ok().and_then(|text| text.parse().ok());
    let mut state: u64 = seed.unwrap_or(20_261_128);
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    db.execute(KEY, [])?;
    db.execute("CREATE UNIQUE INDEX u ON c ((CAST(doc->>'$.u' AS SIGNED)))", [])?;
    let mut model: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    for step in 0..250 {
        let (id, n, u) = (random(12) as i64, random(4), random(14));
        let document = json!({"n": n, "u": u});
        let is_taken = model.iter().any(|(of, (_, taken))| *of != id && *taken == u);
        let done = match random(6) {
            0 => all.insert_as(id, &document).map(|()| true),
            1 => all.upsert(id, &document).map(|()| true),
            2 => all.merge_patch(id, &document).map(|_| true),
            3 => all.delete(id).map(|_| false),
            4 => {
                let text = format!("REPLACE INTO c VALUES ({id}, '{document}')");
                // REPLACE takes a unique value away from others.
                model.retain(|of, (_, taken)| *of == id || *taken != u);
                db.execute(&text, []).map(|_| true)
            }
            _ => change(&db, &all, id, &document),
        };
        match done {
            Ok(true) => _ = model.insert(id, (n, u)),
            Ok(false) => _ = model.remove(&id),
            Err(Error::Exists(_)) => assert!(is_taken || model.contains_key(&id), "step {step}"),
            Err(Error::NotFound(_)) => assert!(!model.contains_key(&id), "step {step}"),
            Err(error) => return Err(error.into()),
        }
        for n in 0..4 {
            let expected: Vec<i64> =
                model.iter().filter(|(_, (of, _))| *of == n).map(|(id, _)| *id).collect();
            assert_eq!(by_key(&db, n as i64)?, expected, "step {step}");
        }
        let found = all.all().run()?.documents;
        let found: Vec<(i64, &Json)> = found.iter().map(|it| (it.id, &it.doc["u"])).collect();
        assert_eq!(found.len(), model.len());
        assert!(found.iter().all(|(id, of)| of.as_u64() == model.get(id).map(|it| it.1)));
    }
    Ok(())
}

/// Replaces a document in a transaction, behind a statement that fails if it is taken.
fn change(db: &Database, all: &Collection, id: i64, document: &Json) -> Result<bool, Error> {
    db.transaction(|tx| {
        let mut documents = tx.documents(all)?;
        documents.replace(id, &json!({"n": 77}))?;
        documents.replace(id, document)?;
        Ok(true)
    })
}

#[test]
fn threads_count_in_a_document_with_keys() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open_with(directory.path(), Options::default())?;
    let all = db.collection("c")?;
    db.execute(KEY, [])?;
    let counter = all.insert(&json!({"n": 0}))?;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let added = all.update(counter, |document| {
                        document["n"] = json!(document["n"].as_u64().unwrap_or(0) + 1);
                        Ok(())
                    });
                    added.unwrap();
                }
            });
        }
    });
    assert_eq!(by_key(&db, 30)?, [counter]);
    Ok(())
}

#[test]
fn a_patch_of_what_a_filter_finds_keeps_what_sql_declared() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    all.insert_many((0..12_000).map(|n| json!({"n": n % 3, "mail": format!("{n}@x")})))?;
    db.execute(KEY, [])?;
    db.execute("CREATE UNIQUE INDEX mail ON c ((CAST(doc->>'$.mail' AS CHAR(50))))", [])?;
    db.execute("ALTER TABLE c ADD CHECK (doc->>'$.n' < 10)", [])?;
    assert_eq!(all.merge_patch_where("n = 1", &json!({"n": 7, "new": true}))?, 4_000);
    assert_eq!((by_key(&db, 1)?, by_key(&db, 7)?.len()), (Vec::new(), 4_000));
    assert_eq!(all.find("new = true AND n = 7").count()?, 4_000);
    // More than one step.
    assert_eq!(all.merge_patch_where("n EXISTS", &json!({"new": null}))?, 12_000);
    let refused = all.merge_patch_where("n = 7", &json!({"n": 10}));
    assert_eq!(refused.err().and_then(|it| it.mysql_code()), Some(3819));
    let refused = all.merge_patch_where("n = 7", &json!({"mail": "0@x"}));
    assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
    assert_eq!(by_key(&db, 7)?.len(), 4_000);
    assert_eq!((all.delete_where("n = 7")?, by_key(&db, 7)?), (4_000, Vec::new()));
    assert_eq!(all.delete_where("n EXISTS")?, 8_000);
    Ok(())
}

/// CREATE TABLE … (DOCUMENT) is the definition of a collection, whoever asks for one.
#[test]
fn a_table_of_documents_is_a_collection() -> Tested {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE notes (DOCUMENT)", [])?;
    let keys = "KEY tags ((CAST(doc->'$.tags' AS CHAR(20) ARRAY))), UNIQUE KEY n ((CAST(doc->>'$.n' AS SIGNED)))";
    db.execute(&format!("CREATE TABLE IF NOT EXISTS keyed (document, {keys}) COMMENT 'x'"), [])?;
    let spelled = "CREATE TABLE spelled (id BIGINT NOT NULL PRIMARY KEY, doc JSON NOT NULL)";
    db.execute(spelled, [])?;
    let shown = |name: &str| -> Result<String, Box<dyn std::error::Error>> {
        let rows = db.query(&format!("SHOW CREATE TABLE {name}"), [])?;
        let (_, text) = rows.deserialize::<(String, String)>()?.pop().ok_or("no row")?;
        Ok(text.replace(name, "t"))
    };
    assert_eq!(shown("notes")?, shown("spelled")?);
    let notes = db.collection("notes")?;
    let id = notes.insert(&json!({"a": 1}))?;
    assert_eq!(notes.find("a = 1").ids()?, [id]);
    let keyed = db.collection("keyed")?;
    keyed.insert(&json!({"n": 1, "tags": ["a"]}))?;
    assert!(matches!(keyed.insert(&json!({"n": 1})), Err(Error::Exists(_))));
    assert_eq!(keyed.find("tags = 'a'").count()?, 1);
    let refused = db.execute("CREATE TABLE more (DOCUMENT, n INT)", []);
    assert!(refused.is_err_and(|it| it.to_string().contains("near 'n INT)'")));
    // A column of this name.
    db.execute("CREATE TABLE columns (document INT, n INT)", [])?;
    Ok(())
}
