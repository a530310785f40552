//! Full-text search in documents by path: results compared with a scan of all documents.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use remora::{Collection, Database, Error, Filter, FindPlan, IndexKind, field, path};
use serde_json::{Value as Json, json};

use crate::Tested;

/// The paths that are indexed and searched together.
const TOGETHER: [&[&str]; 6] = [
    &["title"],
    &["parts.text"],
    &["tags"],
    &["title", "tags"],
    &["title", "parts.text", "tags"],
    &["tags.0", "title"],
];

fn wait_until_ready(all: &Collection) -> Tested {
    let end = Instant::now() + Duration::from_secs(60);
    while !all.indexes()?.iter().all(|index| index.is_ready) {
        assert!(Instant::now() < end, "{:?}", all.indexes()?);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn text() -> BoxedStrategy<Json> {
    let words = prop::sample::select(vec!["Reef", "reef fish", "東京都", "É", "a", "  ", "ﬁ", ""]);
    let texts = prop::collection::vec(words, 0..4).prop_map(|words| json!(words.join(" ")));
    prop_oneof![6 => texts, 1 => Just(Json::Null), 1 => Just(json!(5))].boxed()
}

fn document() -> BoxedStrategy<Json> {
    let tags = prop_oneof![
        prop::collection::vec(text(), 0..3).prop_map(Json::from),
        text(),
        prop::collection::vec(text(), 1..3).prop_map(|inner| json!([inner])),
    ];
    let parts = prop::collection::vec(text().prop_map(|text| json!({"text": text})), 0..3);
    (prop::option::of(text()), parts, prop::option::of(tags))
        .prop_map(|(title, parts, tags)| {
            let mut document = json!({"parts": parts, "n": 5});
            title.into_iter().for_each(|title| document["title"] = title);
            tags.into_iter().for_each(|tags| document["tags"] = tags);
            document
        })
        .boxed()
}

fn filter() -> BoxedStrategy<Filter> {
    let wanted =
        prop::sample::select(vec!["reef", "f f", "京", "é", "A", " ", "reef ", "fi", "", "zz"]);
    let matches = (prop::sample::select(TOGETHER.to_vec()), wanted)
        .prop_map(|(paths, text)| Filter::matches(paths.to_vec(), text));
    let filter = prop_oneof![
        6 => matches,
        1 => Just(field("n").equals(5)),
        1 => Just(field("title").equals("Reef")),
    ];
    let filter = filter.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| one & other),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| one | other),
            inner.prop_map(|one| !one),
        ]
    });
    filter.boxed()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<Json>),
    Replace(usize, Json),
    Delete(usize),
    Index(&'static [&'static str]),
    Drop(&'static [&'static str]),
    Values,
    Optimize,
}

fn step() -> impl Strategy<Value = Step> {
    let paths = || prop::sample::select(TOGETHER.to_vec());
    prop_oneof![
        4 => prop::collection::vec(document(), 1..20).prop_map(Step::Insert),
        3 => (any::<usize>(), document()).prop_map(|(at, document)| Step::Replace(at, document)),
        2 => any::<usize>().prop_map(Step::Delete),
        4 => paths().prop_map(Step::Index),
        1 => paths().prop_map(Step::Drop),
        1 => Just(Step::Values),
        1 => Just(Step::Optimize),
    ]
}

fn ids(all: &Collection, filter: &Filter) -> remora::Result<Vec<i64>> {
    let found = all.find(filter.clone()).run()?;
    assert_eq!(found.total, found.documents.len() as u64);
    assert_eq!(all.find(filter.clone()).count()?, found.total);
    let ids: Vec<i64> = found.documents.iter().map(|document| document.id).collect();
    assert_eq!(all.find(filter.clone()).ids()?, ids);
    Ok(ids)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn texts_are_found_as_by_reading_all(
        steps in prop::collection::vec(step(), 1..24),
        filters in prop::collection::vec(filter(), 1..12),
    ) {
        let db = Database::in_memory().unwrap();
        let (plain, indexed) = (db.collection("plain").unwrap(), db.collection("indexed").unwrap());
        let (mut known, mut next) = (Vec::new(), 1_i64);
        for step in steps {
            match step {
                Step::Insert(documents) => for document in documents {
                    plain.insert_as(next, &document).unwrap();
                    indexed.insert_as(next, &document).unwrap();
                    known.push(next);
                    next += 1;
                },
                Step::Replace(at, document) if !known.is_empty() => {
                    let id = known[at % known.len()];
                    plain.replace(id, &document).unwrap();
                    indexed.replace(id, &document).unwrap();
                }
                Step::Delete(at) if !known.is_empty() => {
                    let id = known.swap_remove(at % known.len());
                    plain.delete(id).unwrap();
                    indexed.delete(id).unwrap();
                }
                Step::Index(paths) => _ = indexed.index_text(paths.to_vec()).unwrap(),
                Step::Drop(paths) => _ = indexed.drop_index_text(paths.to_vec()).unwrap(),
                Step::Values => _ = indexed.index("title").unwrap(),
                Step::Optimize => _ = db.execute("OPTIMIZE TABLE indexed", []).unwrap(),
                _ => {}
            }
        }
        for is_ready in [false, true] {
            if is_ready {
                wait_until_ready(&indexed).unwrap();
            }
            for filter in &filters {
                let found = ids(&indexed, filter).unwrap();
                prop_assert_eq!(found, ids(&plain, filter).unwrap(), "{:?}", filter);
                prop_assert_eq!(plain.find(filter.clone()).explain().unwrap(), FindPlan::default());
            }
        }
    }
}

#[test]
fn indexes_of_texts_are_told_used_and_kept() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path().join("db"))?;
    let all = db.collection("books")?;
    for n in 0..2_000 {
        let title = format!("Book {n} of the Coral Reef");
        all.upsert(n, &json!({"title": title, "body": {"text": ["one", n % 7, "SEA"]}, "n": n}))?;
    }
    assert!(all.index_text(["title", "body.text"])? && all.index_text("title")?);
    assert!(!all.index_text(["body.text", "title"])?, "it is there");
    assert!(all.index("title")?, "values are another index");
    wait_until_ready(&all)?;
    let told: Vec<String> = all.indexes()?.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["texts of title, body.text", "texts of title", "title"]);
    let kinds: Vec<IndexKind> = all.indexes()?.iter().map(|index| index.kind).collect();
    assert_eq!(kinds, [IndexKind::Texts, IndexKind::Texts, IndexKind::Values]);
    let plan = |filter: &str| all.find(filter).explain();
    let of = |indexes: &[&str], is_exact| FindPlan {
        indexes: indexes.iter().map(|&index| index.to_owned()).collect(),
        is_exact,
        order: None,
    };
    let both = "texts of title, body.text";
    assert_eq!(plan("(body.text, title) MATCHES 'sea'")?, of(&[both], true));
    assert_eq!(plan("title MATCHES '7 of'")?, of(&["texts of title"], true));
    assert_eq!(plan("body.text MATCHES 'sea'")?, of(&[both], false));
    assert_eq!(plan("title MATCHES 'book '")?, of(&["texts of title"], false));
    assert_eq!(plan("title NOT MATCHES '7'")?, of(&["texts of title"], true));
    assert_eq!(plan("n MATCHES '7'")?, of(&[], false));
    assert_eq!(plan("(title, n) MATCHES '7'")?, of(&[], false));
    assert_eq!(all.find("title MATCHES 'book 17'").count()?, 111);
    assert_eq!(all.find("body.text MATCHES 'reef'").count()?, 0);
    assert_eq!(all.find("(title, body.text) MATCHES 'sea'").count()?, 2_000);
    assert_eq!(all.find("title MATCHES 'book 17' AND body.text = 3").count()?, 17);
    drop((all, db));

    let db = Database::open(directory.path().join("db"))?;
    let all = db.collection("books")?;
    assert!(all.indexes()?.iter().all(|index| index.is_ready), "{:?}", all.indexes()?);
    assert_eq!(all.find("title MATCHES 'book 17'").count()?, 111);
    assert!(all.drop_index_text("title")? && !all.drop_index_text("title")?);
    assert!(all.drop_index("title")?);
    assert_eq!(all.find("title MATCHES 'book 17'").explain()?, of(&[both], false));
    all.merge_patch(17, &json!({"title": "none"}))?;
    assert_eq!(all.find("title MATCHES 'book 17'").count()?, 110);
    assert!(all.index_text("title")?);
    wait_until_ready(&all)?;
    assert_eq!(all.find("title MATCHES 'book 17'").explain()?, of(&["texts of title"], true));
    assert_eq!(all.find("title MATCHES 'book 17'").count()?, 110);
    // One where the rows stand, and one that makes the table anew.
    for statement in [
        "ALTER TABLE books ADD CHECK (doc->>'$.n' >= 0)",
        "ALTER TABLE books ADD COLUMN f INT FIRST",
    ] {
        db.execute(statement, [])?;
        wait_until_ready(&all)?;
        let told: Vec<String> = all.indexes()?.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["texts of title, body.text", "texts of title"], "{statement}");
        let asked = "SELECT COUNT(*) FROM books WHERE doc->>'$.title' LIKE 'Book 17%'";
        assert_eq!(db.query(asked, [])?.one::<i64>()?, 110, "{statement}");
    }
    drop((all, db));
    let report = remora_engine::Database::check(&directory.path().join("db"), &mut |_| {})?;
    assert_eq!(report.problems, []);
    Ok(())
}

#[test]
fn texts_are_indexed_while_documents_are_written() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    all.insert_many((0..10_000).map(|n| json!({"t": format!("word{}", n % 10)})))?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> remora::Result<u64> {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                let id = all.insert(&json!({"t": "word3"}))?;
                match written % 3 {
                    0 => _ = all.merge_patch(id, &json!({"t": "word4"}))?,
                    1 => _ = all.delete(id)?,
                    _ => {}
                }
                written += 1;
            }
            Ok(written)
        });
        for round in 0..6 {
            let _ = if round % 2 == 0 { all.index_text("t") } else { all.drop_index_text("t") };
            for _ in 0..5 {
                assert_eq!(all.find("t MATCHES 'WORD9'").count().unwrap(), 1_000);
            }
        }
        all.index_text("t").unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap().unwrap() > 0);
    });
    wait_until_ready(&all)?;
    let by_index = all.find("t MATCHES 'word3'").count()?;
    assert!(all.find("t MATCHES 'word3'").explain()?.is_exact);
    all.drop_index_text("t")?;
    assert_eq!(all.find("t MATCHES 'word3'").count()?, by_index);
    Ok(())
}

#[test]
fn what_cannot_be_searched_is_refused() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let none: [&str; 0] = [];
    for refused in [all.index_text(none), all.index_text(["a", "b", "a"])] {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    let many: Vec<String> = (0..33).map(|n| format!("p{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(all.index_text(many), Err(Error::Request(_))));
    // A path that is given twice is not the index of the path.
    assert!(all.index_text("a")?);
    for refused in [all.index_text(["a", "a"]), all.drop_index_text(["a", "a"])] {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    assert_eq!(all.indexes()?.len(), 1);
    assert!(all.drop_index_text("a")?);
    assert!(all.index_text([path(["a.b"]), path(["c"])])?);
    assert!(all.drop_index_text([path(["c"]), path(["a.b"])])?);
    let of_none = Filter::matches(Vec::<&str>::new(), "x");
    assert_eq!(all.find(of_none).count()?, 0);
    Ok(())
}
