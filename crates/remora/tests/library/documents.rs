//! Collections of documents.

use std::collections::BTreeSet;

use proptest::prelude::*;
use remora::{Collection, Database, Error, field, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::Tested;

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Feedback {
    author: Author,
    stars: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Author {
    name: String,
}

fn feedback(name: &str, stars: u8) -> Feedback {
    Feedback { author: Author { name: name.into() }, stars, text: None }
}

#[test]
fn a_document_of_another_type_is_refused_with_its_id() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("values")?;
    all.insert_as(7, &json!({"author": {"name": "Ann"}, "stars": "many"}))?;
    all.insert_as(8, &json!(1e30))?;
    let mut open = db.connection();
    let refused = [
        all.get_as::<Feedback>(7).map(drop),
        all.get_as::<i128>(8).map(drop),
        open.documents(&all)?.get_as::<Feedback>(7).map(drop),
    ];
    for (refused, id) in refused.into_iter().zip([7, 8, 7]) {
        let Err(Error::Request(message)) = refused else { panic!("{refused:?}") };
        assert!(message.to_string().starts_with(&format!("document {id}: ")), "{message}");
    }
    assert_eq!(all.get_as::<f64>(8)?, Some(1e30));
    Ok(())
}

#[test]
fn documents_come_change_and_go() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("feedback")?;
    assert!(all.is_empty()? && db.collection("feedback")?.name() == "feedback");
    let id = all.insert(&feedback("Ann", 4))?;
    assert_eq!(all.get_as::<Feedback>(id)?, Some(feedback("Ann", 4)));
    let more = all.insert_many([feedback("Bo", 1), feedback("Cy", 2)])?;
    let text = all.insert_json("{\"stars\": 18446744073709551615, \"x\": \"\\ud83d\\ude00\"}")?;
    assert!(id < more[0] && more[0] < more[1] && more[1] < text);
    assert_eq!(all.get(text)?, Some(json!({"stars": u64::MAX, "x": "😀"})));
    assert_eq!(all.insert_many(Vec::<Json>::new())?, [0; 0]);

    all.insert_as(7, &json!([1]))?;
    assert!(matches!(all.insert_as(7, &json!([2])), Err(Error::Exists(_))));
    all.upsert(7, &json!("two"))?;
    all.upsert(8, &json!(null))?;
    assert_eq!((all.get(7)?, all.get(8)?), (Some(json!("two")), Some(Json::Null)));
    all.replace(7, &json!({"a": 1}))?;
    assert_eq!(all.merge_patch(7, &json!({"a": null, "b": {"c": [1]}}))?, json!({"b": {"c": [1]}}));
    let patch = json!([{"op": "add", "path": "/b/c/-", "value": 2}, {"op": "test", "path": "/b/c/0", "value": 1}]);
    assert_eq!(all.patch(7, &patch)?, json!({"b": {"c": [1, 2]}}));
    let failing = json!([{"op": "remove", "path": "/b"}, {"op": "test", "path": "", "value": 1}]);
    assert!(matches!(all.patch(7, &failing), Err(Error::Changed(_))));
    assert_eq!(all.get(7)?, Some(json!({"b": {"c": [1, 2]}})), "all operations or none");
    for missing in [all.replace(99, &json!(1)), all.merge_patch(99, &json!(1)).map(drop)] {
        assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
    }
    assert!(all.delete(7)? && !all.delete(7)?);
    assert_eq!((all.get(7)?, all.len()?), (None, 5));
    // SQL sees the same documents.
    let names = "SELECT doc->>'$.author.name' FROM feedback WHERE doc->'$.stars' = 1";
    assert_eq!(db.query(names, [])?.one::<String>()?, "Bo");
    db.execute("INSERT INTO feedback VALUES (9, '{\"from\": \"SQL\"}')", [])?;
    assert_eq!(all.get(9)?, Some(json!({"from": "SQL"})));
    Ok(())
}

#[test]
fn what_is_no_document_is_refused_and_leaves_nothing() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    all.insert_json(&deep(100))?;
    let nested: Json = serde_json::from_str(&deep(110))?;
    for (refused, words) in [
        (all.insert_json(&deep(101)), "deeper than 100"),
        (all.insert_json(&deep(1_000_000)), "deeper than 100"),
        (all.insert(&nested), "deeper than 100"),
        (all.insert_json("\"\\ud800\""), "no JSON"),
        (all.insert_json("{\"a\": NaN}"), "no JSON"),
        (all.insert(&[f64::NAN]), "NaN is no number of JSON"),
        (all.insert(&"x".repeat(17 << 20)), "more than 16 MiB"),
        (all.insert_json(&format!("\"{}\"", "x".repeat(17 << 20))), "more than 16 MiB"),
        // Escapes make a text longer than what it says.
        (all.insert(&"\u{1}".repeat(4 << 20)), "more than 16 MiB"),
    ] {
        let error = refused.err().ok_or(words)?;
        assert!(matches!(error, Error::Request(_)) && error.to_string().contains(words), "{error}");
    }
    let id = all.insert(&json!({"a": {}}))?;
    let grown = all.update(id, |document| {
        *document = nested.clone();
        Ok(())
    });
    assert!(grown.is_err_and(|error| error.to_string().contains("deeper than 100")));
    assert_eq!((all.len()?, all.get(id)?), (2, Some(json!({"a": {}}))));
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)", [])?;
    db.create_table("u", |t| t.int("id").key())?;
    for name in ["t", "u"] {
        assert!(
            db.collection(name).is_err_and(|error| matches!(error, Error::Exists(_))),
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn what_is_wrong_in_a_text_is_named_with_its_place() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let texts = [
        (
            r#"{"a": {"b": 1, "b": 2}}"#,
            "\"b\" comes twice in an object: keep one, in a at line 1 column 18",
        ),
        (r#"["\ud83d"]"#, "hex escape at line 1 column"),
        (
            "{\"a\":\n18446744073709551616}",
            "beyond 64 bits would lose digits: give it as a text, at line 2 column 1",
        ),
        ("[1e999]", "out of range at line 1 column"),
        (r#"{"a": [1, 2"#, "EOF while parsing a list at line 1 column"),
        (
            deep.as_str(),
            "deeper than 100 levels, which is the limit, in [0][0][0][0][0][0][0][0]… at line 1 column",
        ),
    ];
    for (text, words) in texts {
        let error = all.insert_json(text).err().ok_or(words)?;
        assert!(matches!(error, Error::Request(_)) && error.to_string().contains(words), "{error}");
        let in_transaction = db.transaction(|tx| tx.documents(&all)?.insert_json(text));
        assert_eq!(in_transaction.map_err(|it| it.to_string()), Err(error.to_string()));
    }
    let many = all.insert_many([json!(1), json!([0, "x".repeat(17 << 20)])]);
    assert!(many.is_err_and(|error| error.to_string().starts_with("document 2 of the given: ")));
    assert_eq!(all.len()?, 0);
    // As programs print a double.
    let id = all.insert_json("[100000000000000000000]")?;
    assert_eq!(all.get(id)?, Some(json!([1e20])));
    Ok(())
}

#[test]
fn a_document_of_almost_16_mib_is_stored_grown_and_read() -> Tested {
    const LIMIT: usize = 16 << 20;
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path())?;
    let all = db.collection("c")?;
    // The text of a document with such a text in it takes eight bytes more.
    let text = |bytes: usize| "x".repeat(bytes - 8);
    let id = all.insert(&json!({"t": text(LIMIT - 1_000)}))?;
    all.merge_patch(id, &json!({"t": text(LIMIT)}))?;
    for grown in [
        all.merge_patch(id, &json!({"t": text(LIMIT + 1)})).map(drop),
        all.patch(id, &json!([{"op": "add", "path": "/u", "value": 1}])).map(drop),
        all.insert_json(&format!("{{\"t\":\"{}\"}}", text(LIMIT + 1))).map(drop),
    ] {
        assert!(grown.is_err_and(|error| error.to_string().contains("16 MiB")));
    }
    db.transaction(|tx| {
        tx.documents(&all)?.insert_as(1, &json!({"t": text(LIMIT)}))?;
        tx.execute("INSERT INTO c VALUES (2, JSON_OBJECT('t', ?))", params![text(LIMIT - 1_000)])?;
        tx.execute(
            "UPDATE c SET doc = JSON_SET(doc, '$.t', ?) WHERE id = 2",
            params![text(LIMIT - 1)],
        )
    })?;
    db.close()?;
    drop((all, db));
    let db = Database::open(directory.path())?;
    let all = db.collection("c")?;
    for (id, bytes) in [(id, LIMIT), (1, LIMIT), (2, LIMIT - 1)] {
        assert!(all.get(id)? == Some(json!({"t": text(bytes)})), "{id}");
        let asked = format!("SELECT LENGTH(doc->>'$.t') FROM c WHERE id = {id}");
        assert_eq!(db.query(&asked, [])?.one::<usize>()?, bytes - 8);
    }
    let by_sql = db.query("SELECT doc->>'$.t' FROM c WHERE id = 2", [])?.one::<String>()?;
    assert!(by_sql == text(LIMIT - 1));
    Ok(())
}

#[test]
fn numbers_are_compared_as_they_were_written() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let x = 0.945_270_695_553_922_3;
    let id = all.insert(&json!({"x": x, "n": 5}))?;
    assert_eq!(all.get(id)?, Some(json!({"x": x, "n": 5})));
    for filter in [
        field("x").equals(x),
        field("n").equals(json!(5)),
        field("n").is_in([json!(4), json!(5)]),
        field("n").between(1, f64::INFINITY),
        field("n").less_than(f64::INFINITY) & field("n").greater_than(f64::NEG_INFINITY),
        !field("n").differs_from(json!(5)),
    ] {
        assert_eq!(all.find(filter.clone()).count()?, 1, "{filter:?}");
    }
    assert_eq!(all.find(field("n").less_than(f64::NAN)).count()?, 0);
    Ok(())
}

#[test]
fn a_path_of_places_visits_each_value_once() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let nested = (0..45).fold(json!(1), |inner, _| json!([{"0": inner}]));
    all.insert(&nested)?;
    let path = ["0"; 75].join(".");
    assert_eq!(all.find(field(&path).equals(2)).count()?, 0);
    let path = ["0"; 90].join(".");
    assert_eq!(all.find(field(&path).equals(1)).count()?, 1);
    Ok(())
}

#[test]
fn versions_tell_who_was_faster() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let id = all.insert(&json!({"n": 0}))?;
    let (_, first) = all.get_versioned(id)?.ok_or("it is there")?;
    let second = all.replace_if(id, first, &json!({"n": 1}))?;
    let late = all.replace_if(id, first, &json!({"n": 9}));
    assert!(matches!(late, Err(Error::Changed(_))), "{late:?}");
    assert_eq!(all.get_versioned(id)?, Some((json!({"n": 1}), second)));
    all.delete(id)?;
    assert!(matches!(all.replace_if(id, second, &json!(1)), Err(Error::NotFound(_))));
    assert_eq!(all.get_versioned(id)?, None);
    Ok(())
}

#[test]
fn threads_count_in_one_document_and_get_ids_of_their_own() -> Tested {
    const THREADS: usize = 4;
    const TIMES: usize = 25;
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let counter = all.insert(&json!({"n": 0}))?;
    let run = || -> Result<Vec<i64>, Error> {
        let mut ids = Vec::new();
        for _ in 0..TIMES {
            all.update(counter, |document| {
                let n = document["n"].as_u64().unwrap_or(0);
                document["n"] = json!(n + 1);
                Ok(())
            })?;
            ids.push(all.insert(&json!({}))?);
        }
        Ok(ids)
    };
    let given = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Result<Vec<_>, _>>()
    });
    let mut ids = BTreeSet::new();
    for of_thread in given.map_err(|_| "a thread broke off")? {
        let of_thread = of_thread?;
        assert!(of_thread.is_sorted());
        ids.extend(of_thread);
    }
    assert_eq!(ids.len(), THREADS * TIMES);
    assert_eq!(all.get(counter)?, Some(json!({"n": THREADS * TIMES})));
    Ok(())
}

#[test]
fn ids_are_not_given_again_after_a_restart() -> Tested {
    let directory = tempfile::tempdir()?;
    let mut last = 0;
    for _ in 0..3 {
        let db = Database::open(directory.path())?;
        let all = db.collection("c")?;
        for id in all.insert_many(vec![json!(1); 3])? {
            assert!(id > last);
            last = id;
            all.delete(id)?;
        }
        // Milliseconds since 2020, of which at least six years have passed.
        assert!(last >> 22 > 6 * 365 * 86_400_000_i64);
    }
    Ok(())
}

#[test]
fn documents_are_found_sorted_and_paged() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let documents = (0..200).map(|n| match n % 4 {
        0 => json!({"n": n, "tags": ["even", "four"], "by": {"name": "Ann"}}),
        2 => json!({"n": n, "tags": ["even"]}),
        1 => json!({"n": n.to_string()}),
        _ => json!({"n": f64::from(n) + 0.5, "gone": null}),
    });
    let ids = all.insert_many(documents)?;
    let count = |filter: &str| all.find(filter).count();
    assert_eq!(count("n = 4")?, 1);
    assert_eq!((count("n = '5'")?, count("n = 5")?), (1, 0));
    assert_eq!(count("n >= 100")?, 75, "numbers alone");
    assert_eq!(count("tags = 'four' AND by.name = 'Ann'")?, 50);
    assert_eq!(count("NOT tags = 'even'")?, 100);
    assert_eq!((count("gone IS NULL")?, count("gone EXISTS")?, count("by EXISTS")?), (50, 50, 50));
    assert_eq!(count("n IN (0, '1', 3.5, 7) OR n BETWEEN 10 AND 12")?, 6);
    let page = all.find("n < 50").sort_by_desc("n").offset(1).limit(3).run()?;
    let of_page: Vec<&Json> = page.documents.iter().map(|it| &it.doc["n"]).collect();
    assert_eq!((page.total, of_page), (37, vec![&json!(47.5), &json!(46), &json!(44)]));
    let by_id = all.find("tags.1 = 'four'").limit(2).run()?;
    assert_eq!((by_id.total, by_id.documents[1].id), (50, ids[4]));
    let kinds = all.all().sort_by("by.name").sort_by_desc("n").limit(1).run()?;
    assert_eq!(kinds.documents[0].doc["n"], json!("97"), "texts are above numbers");
    assert!(all.find("n <").run().is_err_and(|error| matches!(error, Error::Request(_))));

    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = all.page(after, 33)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page.iter().map(|document| document.id));
    }
    assert_eq!(seen, ids);
    Ok(())
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-3..4_i64).prop_map(Json::from),
        (-3..4_i32).prop_map(|number| Json::from(f64::from(number) / 2.0)),
        "[ab]{0,2}".prop_map(Json::from),
    ]
}

/// The meaning of the filter as a plain function.
fn expected(documents: &[Json], test: &dyn Fn(&Json) -> bool) -> usize {
    documents.iter().filter(|document| test(&document["a"])).count()
}

fn found(all: &Collection, filter: remora::Filter) -> usize {
    all.find(filter).run().map_or(usize::MAX, |found| found.documents.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn finding_is_reading_all(values in prop::collection::vec(scalar(), 0..40), bound in -3..4_i64) {
        let db = Database::in_memory().unwrap();
        let all = db.collection("c").unwrap();
        let documents: Vec<Json> = values.iter().map(|value| json!({"a": value})).collect();
        all.insert_many(&documents).unwrap();
        let limit = bound as f64;
        let number = |value: &Json| value.as_f64();
        let equal = expected(&documents, &|value| number(value) == Some(limit));
        prop_assert_eq!(found(&all, field("a").equals(bound)), equal);
        prop_assert_eq!(found(&all, field("a").differs_from(bound)), documents.len() - equal);
        let above = expected(&documents, &|value| number(value).is_some_and(|it| it > limit));
        prop_assert_eq!(found(&all, field("a").greater_than(bound)), above);
        let text = expected(&documents, &|value| value.as_str().is_some_and(|it| it >= "ab"));
        prop_assert_eq!(found(&all, field("a").at_least("ab")), text);
        let null = expected(&documents, &Json::is_null);
        prop_assert_eq!(found(&all, field("a").is_null() & field("a").exists()), null);
    }
}
