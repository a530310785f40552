//! Indexed paths: their results, compared with a scan of all documents.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use remora::{Collection, Database, Error, Filter, FindPlan, field, path};
use serde_json::{Value as Json, json};

use crate::Tested;

/// The paths with values in documents, and one without.
const PATHS: [&str; 7] = ["a", "a.b", "list", "list.0", "list.b", "a.list.b", "none"];

fn wait_until_ready(all: &Collection) -> Tested {
    let end = Instant::now() + Duration::from_secs(60);
    while !all.indexes()?.iter().all(|index| index.is_ready) {
        assert!(Instant::now() < end, "{:?}", all.indexes()?);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn scalar() -> BoxedStrategy<Json> {
    let near = 1_i64 << 53;
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-3..4_i64).prop_map(Json::from),
        (-3..4_i64).prop_map(|n| json!(n as f64 / 2.0)),
        (near - 2..near + 3).prop_map(Json::from),
        (-near - 3..-near + 2).prop_map(Json::from),
        (u64::MAX - 2..=u64::MAX).prop_map(Json::from),
        (i64::MIN..i64::MIN + 3).prop_map(Json::from),
        Just(json!(9_007_199_254_740_992.0)),
        Just(json!(1.8446744073709552e19)),
        Just(json!(-0.0)),
        Just(json!(1e300)),
        prop::sample::select(vec!["", "x", "xy", "é", "5", "2024-05-01"]).prop_map(Json::from),
    ]
    .boxed()
}

fn document() -> BoxedStrategy<Json> {
    let value = scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((name(), inner), 0..3)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::vec((name(), value), 0..4)
        .prop_map(|members| Json::Object(members.into_iter().collect()))
        .boxed()
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "list", "0"]).prop_map(str::to_owned)
}

fn test() -> BoxedStrategy<Filter> {
    let value = || {
        scalar().prop_map(|value| match value.as_str() {
            Some("2024-05-01") => {
                remora::Value::Date(remora::Date { year: 2024, month: 5, day: 1 })
            }
            _ => remora::IntoValue::into_value(value),
        })
    };
    let path = prop::sample::select(PATHS.to_vec());
    (path, 0..12_usize, value(), value(), prop::collection::vec(value(), 0..4))
        .prop_map(|(path, test, one, two, many)| match test {
            0 => field(path).equals(one),
            1 => field(path).differs_from(one),
            2 => field(path).less_than(one),
            3 => field(path).at_most(one),
            4 => field(path).greater_than(one),
            5 => field(path).at_least(one),
            6 => field(path).between(one, two),
            7 => field(path).is_in(many),
            8 => field(path).exists(),
            9 => field(path).is_null(),
            10 => field(path).equals(json!(["x", 1])),
            _ => field(path).begins_with("x"),
        })
        .boxed()
}

fn filter() -> BoxedStrategy<Filter> {
    let filter = test().prop_recursive(3, 8, 3, |inner| {
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
    Index(&'static str),
    Drop(&'static str),
    Optimize,
}

fn step() -> impl Strategy<Value = Step> {
    let path = || prop::sample::select(PATHS.to_vec());
    prop_oneof![
        4 => prop::collection::vec(document(), 1..20).prop_map(Step::Insert),
        3 => (any::<usize>(), document()).prop_map(|(at, document)| Step::Replace(at, document)),
        2 => any::<usize>().prop_map(Step::Delete),
        3 => path().prop_map(Step::Index),
        1 => path().prop_map(Step::Drop),
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
    fn indexes_find_what_reading_all_finds(
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
                Step::Index(path) => _ = indexed.index(path).unwrap(),
                Step::Drop(path) => _ = indexed.drop_index(path).unwrap(),
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
                let page = |all: &Collection, path: &str, descends: bool| {
                    let sorted = all.find(filter.clone()).offset(1).limit(4);
                    let sorted = if descends { sorted.sort_by_desc(path) } else { sorted.sort_by(path) };
                    sorted.run().unwrap()
                };
                for path in PATHS {
                    for descends in [false, true] {
                        let (one, other) = (page(&indexed, path, descends), page(&plain, path, descends));
                        prop_assert_eq!(one.total, other.total);
                        prop_assert_eq!(one.documents, other.documents, "{} {} {:?}", path, descends, filter);
                    }
                }
            }
        }
    }
}

#[test]
fn indexes_are_told_used_and_kept() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path().join("db"))?;
    let all = db.collection("books")?;
    for year in 0..3_000 {
        all.upsert(year, &json!({"year": year % 100, "tags": ["a", year % 7], "x.y": year}))?;
    }
    assert!(all.index("year")? && all.index("tags")? && all.index(path(["x.y"]))?);
    assert!(!all.index("year")?, "it is there");
    wait_until_ready(&all)?;
    let paths: Vec<String> = all.indexes()?.iter().map(|index| index.path.to_string()).collect();
    assert_eq!(paths, ["year", "tags", "x.y"]);
    let plan = |filter: &str| all.find(filter).explain();
    let of = |indexes: &[&str], is_exact| FindPlan {
        indexes: indexes.iter().map(|&path| path.to_owned()).collect(),
        is_exact,
        order: None,
    };
    assert_eq!(plan("year = 5 AND tags = 'a'")?, of(&["year", "tags"], true));
    assert_eq!(plan("year = 5 AND other = 'a'")?, of(&["year"], false));
    assert_eq!(plan("year = 5 OR other = 'a'")?, of(&[], false));
    assert_eq!(plan("NOT (year = 5 AND other = 'a')")?, of(&[], false));
    assert_eq!(plan("`x.y` != 5")?, of(&["x.y"], true));
    assert_eq!(all.find("year = 5 AND tags = 3").count()?, 4);
    let page = all.find("year = 5").offset(2).limit(3).run()?;
    let ids: Vec<i64> = page.documents.iter().map(|document| document.id).collect();
    assert_eq!((page.total, ids), (30, vec![205, 305, 405]));
    let ordered = |filter: &str| all.find(filter).sort_by_desc("year").limit(1);
    let ordered_plan = FindPlan { order: Some("year".to_owned()), ..of(&["tags"], true) };
    assert_eq!(ordered("tags = 3").explain()?, ordered_plan);
    assert_eq!(all.find("tags = 3").sort_by("year").explain()?, of(&["tags"], true));
    assert_eq!(all.find("tags = 3").sort_by("tags").limit(1).explain()?, of(&["tags"], true));
    assert_eq!(ordered("other = 3").explain()?, of(&[], false));
    let last = ordered("year >= 98 AND tags = 3").run()?;
    assert_eq!(last.documents[0].doc["year"], 99);
    drop((all, db));

    let db = Database::open(directory.path().join("db"))?;
    let all = db.collection("books")?;
    assert!(all.indexes()?.iter().all(|index| index.is_ready), "{:?}", all.indexes()?);
    assert_eq!(all.find("year = 5").count()?, 30);
    assert!(all.drop_index("year")? && !all.drop_index("year")?);
    assert_eq!(all.find("year = 5").explain()?, FindPlan::default());
    assert_eq!(all.find("year = 5").count()?, 30);
    all.merge_patch(5, &json!({"year": 6}))?;
    // What old segments have of it is not what new documents have.
    assert!(all.index("year")?);
    wait_until_ready(&all)?;
    assert_eq!(all.find("year = 5").count()?, 29);
    drop((all, db));
    let report = remora_engine::Database::check(&directory.path().join("db"), &mut |_| {})?;
    assert_eq!(report.problems, []);
    Ok(())
}

#[test]
fn what_sql_declares_leaves_indexes_where_they_are() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    all.insert_many((0..500).map(|n| json!({"n": n % 10, "m": n})))?;
    all.index("n")?;
    all.index("m")?;
    wait_until_ready(&all)?;
    // One where the rows stand, one that makes the table anew; `m` is a key's too, for a while.
    for statement in [
        "ALTER TABLE c ADD KEY m ((CAST(doc->'$.m' AS SIGNED ARRAY)))",
        "ALTER TABLE c ADD CHECK (doc->>'$.n' >= 0)",
        "ALTER TABLE c ADD COLUMN first INT FIRST",
    ] {
        db.execute(statement, [])?;
        wait_until_ready(&all)?;
        let paths: Vec<String> = all.indexes()?.iter().map(|it| it.path.to_string()).collect();
        assert!(paths.contains(&"n".to_owned()), "{statement}: {paths:?}");
        let asked = "EXPLAIN SELECT id FROM c WHERE 3 MEMBER OF (doc->'$.n')";
        let told = format!("{:?}", db.query(asked, [])?.iter().collect::<Vec<_>>());
        assert!(!told.contains("ALL"), "{statement}: {told}");
        let asked = "SELECT COUNT(*) FROM c WHERE 3 MEMBER OF (doc->'$.n')";
        assert_eq!(db.query(asked, [])?.one::<i64>()?, 50, "{statement}");
    }
    Ok(())
}

#[test]
fn an_index_is_made_while_documents_are_written() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    all.insert_many((0..20_000).map(|n| json!({"n": n % 10})))?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> remora::Result<u64> {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let id = all.insert(&json!({"n": 3}))?;
                        match written % 3 {
                            0 => _ = all.merge_patch(id, &json!({"n": 4}))?,
                            1 => _ = all.delete(id)?,
                            _ => {}
                        }
                        written += 1;
                    }
                    Ok(written)
                })
            })
            .collect();
        for round in 0..6 {
            let _ = if round % 2 == 0 { all.index("n") } else { all.drop_index("n") };
            for _ in 0..10 {
                let found = all.find("n = 9").count().unwrap();
                assert_eq!(found, 2_000);
            }
        }
        all.index("n").unwrap();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            assert!(writer.join().unwrap().unwrap() > 0);
        }
    });
    wait_until_ready(&all)?;
    let by_index = all.find("n = 3").count()?;
    assert!(all.find("n = 3").explain()?.is_exact);
    all.drop_index("n")?;
    assert_eq!(all.find("n = 3").count()?, by_index);
    Ok(())
}

#[test]
fn indexes_have_limits() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    for n in 0..64 {
        all.index(format!("p{n}").as_str())?;
    }
    let refused = [all.index("one more"), all.index("x".repeat(5_000).as_str())];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    all.insert(&json!({"p5": "x".repeat(100_000), "p6": [[1, 2], {"a": 1}]}))?;
    assert_eq!(all.find(field("p5").equals("x".repeat(100_000))).count()?, 1);
    assert_eq!(all.find("p6 EXISTS AND NOT p6 = 1").count()?, 1);
    Ok(())
}

/// Only a number as programs print it is the place of an element: other names are those of members alone.
#[test]
fn names_with_leading_zeros_or_signs_are_no_places() -> Tested {
    let db = Database::in_memory()?;
    let documents = db.collection("c")?;
    let elements = json!([{"01": 1, "+0": 2, "00": 3, "0": 4}, {"1": 5, "01": 6}]);
    documents.insert_as(1, &json!({"a": elements}))?;
    let check = || -> Tested {
        for (filter, expected) in [
            ("a.01 = 1", true),
            ("a.01 = 6", true),
            ("a.\"+0\" = 2", true),
            ("a.00 = 3", true),
            // The first element, which is no number, and the second.
            ("a.0 EXISTS", true),
            ("a.0 = 4", false),
            ("a.0.0 = 4", true),
            ("a.1.1 = 5", true),
            ("a.1 = 5", false),
        ] {
            let found = documents.find(filter).count()?;
            assert_eq!(found == 1, expected, "{filter}");
        }
        Ok(())
    };
    check()?;
    for names in ["01", "+0", "00", "0", "1"] {
        documents.index(path(["a", names]))?;
    }
    wait_until_ready(&documents)?;
    check()?;
    let shown = documents.all().fields("a.01").run()?.documents.remove(0);
    assert_eq!(shown.doc, json!({"a": [{"01": 1}, {"01": 6}]}));
    Ok(())
}
