//! Unique paths of collections: no two documents have the same value, whatever writes them.

use std::sync::atomic::{AtomicBool, Ordering};

use remora::{Collection, Database, Error};
use serde_json::{Value as Json, json};

use crate::Tested;

#[track_caller]
fn is_refused<T: std::fmt::Debug>(outcome: remora::Result<T>) {
    assert!(matches!(outcome, Err(Error::Exists(_))), "{outcome:?}");
}

fn unique_paths(all: &Collection) -> remora::Result<Vec<String>> {
    let indexes = all.indexes()?.into_iter().filter(|index| index.is_unique && index.is_ready);
    Ok(indexes.map(|index| index.path.to_string()).collect())
}

#[test]
fn no_write_makes_two_documents_alike() -> Tested {
    let directory = tempfile::tempdir()?;
    let place = directory.path().join("db");
    let db = Database::open(&place)?;
    let users = db.collection("users")?;
    assert!(users.index_unique("email")? && !users.index_unique("email")?);
    assert!(!users.index("email")? && users.index_unique("tags")?);
    let ann = users.insert(&json!({"email": "ann", "tags": ["a", "a", 1]}))?;
    let bo = users.insert(&json!({"email": "bo", "tags": ["b", 2, true, [1]]}))?;
    // Nothing, null and what is no scalar may be there twice.
    for _ in 0..2 {
        users.insert(&json!({"tags": null}))?;
        users.insert(&json!({"email": {"of": "ann"}, "tags": [[1], [], {"a": 1}]}))?;
    }
    let count = users.len()?;
    is_refused(users.insert(&json!({"email": "ann"})));
    is_refused(users.insert(&json!({"email": ["x", "bo"]})));
    is_refused(users.insert(&json!({"tags": 1.0})));
    is_refused(users.insert_many([json!({"email": "c"}), json!({"email": "c"})]));
    is_refused(users.insert_many([json!({"email": "c"}), json!({"email": "bo"})]));
    is_refused(users.insert_as(7, &json!({"email": "ann"})));
    is_refused(users.upsert(bo, &json!({"email": "ann"})));
    is_refused(users.replace(bo, &json!({"email": "ann"})));
    is_refused(users.merge_patch(bo, &json!({"tags": ["c", "a"]})));
    is_refused(users.patch(bo, &json!([{"op": "add", "path": "/tags/-", "value": "a"}])));
    assert_eq!((users.len()?, users.find("email = 'ann'").ids()?), (count, vec![ann]));
    // What a document has it keeps, and what it gives up others take, within one step too.
    users.upsert(ann, &json!({"email": "ann", "tags": ["a", 3]}))?;
    users.merge_patch(ann, &json!({"email": "ann2"}))?;
    users.merge_patch(bo, &json!({"email": "ann"}))?;
    users.delete(bo)?;
    users.insert(&json!({"email": "ann", "tags": "b"}))?;
    drop((users, db));
    let report = remora_engine::Database::check(&place, &mut |_| {})?;
    assert_eq!(report.problems, []);
    let db = Database::open(&place)?;
    let users = db.collection("users")?;
    assert_eq!(unique_paths(&users)?, ["email", "tags"]);
    is_refused(users.insert(&json!({"email": "ann2"})));
    let inserted = db.execute("INSERT INTO users VALUES (1, '{\"email\": \"ann2\"}')", []);
    assert_eq!(inserted.err().and_then(|error| error.mysql_code()), Some(1062));
    assert!(users.drop_index("email")?);
    users.insert(&json!({"email": "ann2"}))?;
    Ok(())
}

#[test]
fn duplicates_that_are_there_are_named() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    all.insert_many((0..5_000).map(|n| json!({"n": n})))?;
    for id in [1, 2] {
        all.insert_as(id, &json!({"n": "twice"}))?;
    }
    let told = all.index_unique("n").unwrap_err();
    assert!(matches!(told, Error::Exists(_)), "{told:?}");
    let told = told.to_string();
    for part in ["\"n\"", "\"all\"", "twice", "(1)", "(2)"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(all.indexes()?, []);
    all.insert(&json!({"n": "twice"}))?;
    // One that was there stays.
    all.index("n")?;
    assert!(all.index_unique("n").is_err());
    assert_eq!(all.indexes()?.len(), 1);
    assert_eq!(unique_paths(&all)?, Vec::<String>::new());
    for id in all.find("n = 'twice'").ids()?.into_iter().skip(1) {
        all.delete(id)?;
    }
    assert!(all.index_unique("n")?);
    is_refused(all.insert(&json!({"n": "twice"})));
    Ok(())
}

#[test]
fn a_unique_index_is_made_while_documents_are_written() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    all.insert_many((0..20_000).map(|n| json!({"n": n, "old": true})))?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| -> Tested {
        let writers: Vec<_> = (1..=2_i64)
            .map(|writer| {
                let (all, stop) = (&all, &stop);
                scope.spawn(move || -> remora::Result<i64> {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let id = all.insert(&json!({"n": -(written * 2 + writer)}))?;
                        if written % 3 == 0 {
                            all.delete(id)?;
                        }
                        written += 1;
                    }
                    Ok(written)
                })
            })
            .collect();
        let made = all.index_unique("n");
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            assert!(writer.join().unwrap()? > 0);
        }
        assert!(made?);
        Ok(())
    })?;
    let documents = all.all().run()?.documents;
    for document in documents.iter().step_by(97) {
        is_refused(all.insert(&json!({"n": document.doc["n"]})));
    }
    let mut values: Vec<&Json> = documents.iter().map(|document| &document.doc["n"]).collect();
    let count = values.len();
    values.sort_by_key(|value| value.as_i64());
    values.dedup();
    assert_eq!(values.len(), count);
    Ok(())
}

#[test]
fn what_sql_drops_leaves_the_indexes_of_a_collection() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    all.insert_many((0..100).map(|n| json!({"n": n, "m": n})))?;
    all.index("m")?;
    all.index_unique("n")?;
    for statement in [
        "ALTER TABLE c ADD KEY m ((CAST(doc->'$.m' AS SIGNED ARRAY)))",
        "ALTER TABLE c ADD KEY n ((CAST(doc->'$.n' AS SIGNED ARRAY)))",
        "ALTER TABLE c DROP KEY m",
        "ALTER TABLE c DROP KEY n",
        "ALTER TABLE c ADD COLUMN first INT FIRST",
    ] {
        db.execute(statement, [])?;
        let mut paths: Vec<(String, bool)> = Vec::new();
        for index in all.indexes()? {
            paths.push((index.path.to_string(), index.is_unique));
        }
        paths.sort();
        assert_eq!(paths, [("m".to_owned(), false), ("n".to_owned(), true)], "{statement}");
    }
    let inserted = db.execute("INSERT INTO c (id, doc) VALUES (1, '{\"n\": 5}')", []);
    assert_eq!(inserted.err().and_then(|error| error.mysql_code()), Some(1062));
    Ok(())
}

#[test]
fn several_paths_are_unique_together() -> Tested {
    let directory = tempfile::tempdir()?;
    let place = directory.path().join("db");
    let db = Database::open(&place)?;
    let users = db.collection("users")?;
    users.insert_many([json!({"team": "red", "n": 1}), json!({"team": "red", "n": 2})])?;
    assert!(users.index_unique(["team", "n"])? && !users.index_unique(["team", "n"])?);
    let red = users.find("team = 'red' AND n = 1").ids()?;
    for _ in 0..2 {
        // What lacks a value at one of the paths is not compared.
        users.insert(&json!({"team": "red"}))?;
        users.insert(&json!({"n": 1, "team": null}))?;
        users.insert(&json!({"team": {"name": "red"}, "n": 1}))?;
        users.insert(&json!({"team": [["red"]], "n": [1, [2]]}))?;
    }
    users.insert(&json!({"team": "blue", "n": 1}))?;
    is_refused(users.insert(&json!({"team": "red", "n": 1.0})));
    is_refused(users.insert(&json!({"team": ["green", "red"], "n": [5, 2]})));
    is_refused(users.insert_many([json!({"team": "x", "n": 1}), json!({"team": "x", "n": 1})]));
    is_refused(users.merge_patch(red[0], &json!({"n": 2})));
    let told = users.insert(&json!({"team": "red", "n": 1})).unwrap_err().to_string();
    assert!(told.contains("team, n") && told.contains("\"red\", 1"), "{told}");
    // Too many combinations to be compared.
    let many: Vec<u32> = (0..2_000).collect();
    let told = users.insert(&json!({"team": many, "n": 1})).unwrap_err();
    assert!(matches!(told, Error::Request(_)), "{told:?}");
    users.merge_patch(red[0], &json!({"n": 3}))?;
    users.insert(&json!({"team": "red", "n": 1}))?;
    drop((users, db));
    let report = remora_engine::Database::check(&place, &mut |_| {})?;
    assert_eq!(report.problems, []);
    let db = Database::open(&place)?;
    let users = db.collection("users")?;
    assert!(users.indexes()?.iter().any(|it| it.is_unique && it.further.len() == 1));
    is_refused(users.insert(&json!({"team": "blue", "n": 1})));
    let inserted = db.execute("INSERT INTO users VALUES (1, '{\"team\": \"red\", \"n\": 1}')", []);
    assert_eq!(inserted.err().and_then(|error| error.mysql_code()), Some(1062));
    let refused = db.transaction(|tx| {
        tx.documents(&users)?.insert(&json!({"team": "new", "n": 1}))?;
        tx.documents(&users)?.insert(&json!({"team": "blue", "n": 1}))
    });
    is_refused(refused);
    assert_eq!(users.find("team = 'new'").count()?, 0);
    assert!(users.drop_index(["team", "n"])?);
    users.insert(&json!({"team": "blue", "n": 1}))?;
    Ok(())
}

#[test]
fn duplicates_of_several_paths_are_named_and_writers_race() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    for id in [1, 2] {
        all.insert_as(id, &json!({"a": 1, "b": "twice"}))?;
    }
    let told = all.index_unique(["a", "b"]).unwrap_err().to_string();
    assert!(told.contains("a, b") && told.contains("(1)") && told.contains("(2)"), "{told}");
    assert_eq!(all.indexes()?, []);
    all.delete(2)?;
    all.index_unique(["a", "b"])?;
    let written: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let all = &all;
                scope.spawn(move || {
                    let write = |n: u32| all.insert(&json!({"a": n / 20, "b": n % 20})).is_ok();
                    (0..400).filter(|n| write(*n)).count()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!((written, all.len()?), (400, 401));
    Ok(())
}
