//! Indexes over several paths: their results and their order, compared with a scan of all documents.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use remora::{Collection, Database, Error, Filter, FindPlan, field};
use serde_json::{Value as Json, json};

use crate::Tested;

const PATHS: [&str; 4] = ["a", "b", "c.d", "list"];
/// The path lists of the indexes.
const TOGETHER: [&[&str]; 6] =
    [&["a", "b"], &["b", "a"], &["a", "c.d", "b"], &["list", "a"], &["c.d", "list", "b"], &["a"]];

fn wait_until_ready(all: &Collection) -> Tested {
    let end = Instant::now() + Duration::from_secs(60);
    while !all.indexes()?.iter().all(|index| index.is_ready) {
        assert!(Instant::now() < end, "{:?}", all.indexes()?);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn scalar() -> BoxedStrategy<Json> {
    prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::from),
        3 => (-1..3_i64).prop_map(Json::from),
        2 => (-1..3_i64).prop_map(|n| json!(n as f64 / 2.0)),
        1 => Just(json!(u64::MAX)),
        3 => prop::sample::select(vec!["", "x", "xy", "\u{0}", "5"]).prop_map(Json::from),
    ]
    .boxed()
}

/// Documents without arrays, so that an index can give the order, or with arrays.
fn document(has_arrays: bool) -> BoxedStrategy<Json> {
    let mut value = prop_oneof![6 => scalar(), 1 => Just(json!({"d": 1}))].boxed();
    let list = prop::collection::vec(scalar(), 0..4).prop_map(Json::from);
    if has_arrays {
        value = prop_oneof![3 => value, 1 => list].boxed();
    }
    let one = value.clone().prop_map(|value| json!({"d": value})).boxed();
    let many = prop::collection::vec(one.clone(), 0..3).prop_map(Json::from);
    let mut inner = prop_oneof![3 => one, 1 => scalar()].boxed();
    if has_arrays {
        inner = prop_oneof![2 => inner, 1 => many].boxed();
    }
    let of = |value: BoxedStrategy<Json>| prop::option::weighted(0.8, value);
    (of(value.clone()), of(value.clone()), of(inner), of(value))
        .prop_map(|(a, b, c, list)| {
            let mut document = json!({});
            for (name, value) in [("a", a), ("b", b), ("c", c), ("list", list)] {
                value.into_iter().for_each(|value| document[name] = value);
            }
            document
        })
        .boxed()
}

fn test() -> BoxedStrategy<Filter> {
    let path = prop::sample::select(PATHS.to_vec());
    (path, 0..14_usize, scalar(), scalar(), prop::collection::vec(scalar(), 0..3))
        .prop_map(|(path, test, one, two, many)| match test {
            0 => field(path).differs_from(one),
            1 => field(path).less_than(one),
            2 => field(path).at_most(one),
            3 => field(path).greater_than(one),
            4 => field(path).at_least(one),
            5 => field(path).between(one, two),
            6 => field(path).is_in(many),
            7 => field(path).exists(),
            8 => field(path).is_null(),
            9 => field(path).begins_with("x"),
            10 => field(path).equals(json!(["x", 1])),
            _ => field(path).equals(one),
        })
        .boxed()
}

fn filter() -> BoxedStrategy<Filter> {
    let several = (test(), prop::collection::vec(test(), 0..4));
    let all_of =
        several.prop_map(|(first, tests)| tests.into_iter().fold(first, |all, test| all & test));
    let filter = all_of.prop_recursive(2, 6, 2, |inner| {
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
    Optimize,
}

fn steps() -> BoxedStrategy<Vec<Step>> {
    let step = |has_arrays: bool| {
        let paths = || prop::sample::select(TOGETHER.to_vec());
        let document = || document(has_arrays);
        prop_oneof![
            4 => prop::collection::vec(document(), 1..20).prop_map(Step::Insert),
            3 => (any::<usize>(), document()).prop_map(|(at, new)| Step::Replace(at, new)),
            2 => any::<usize>().prop_map(Step::Delete),
            5 => paths().prop_map(Step::Index),
            1 => paths().prop_map(Step::Drop),
            1 => Just(Step::Optimize),
        ]
    };
    any::<bool>().prop_flat_map(move |it| prop::collection::vec(step(it), 1..24)).boxed()
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
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn paths_together_find_and_sort_as_reading_all_does(
        steps in steps(),
        filters in prop::collection::vec(filter(), 1..12),
        sorts in prop::collection::vec(
            prop::collection::vec((prop::sample::select(PATHS.to_vec()), any::<bool>()), 1..4), 1..6),
        equal in prop::collection::vec(scalar(), 2),
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
                Step::Index(paths) => _ = indexed.index(paths.to_vec()).unwrap(),
                Step::Drop(paths) => _ = indexed.drop_index(paths.to_vec()).unwrap(),
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
            for sort in &sorts {
                let of_equal = field("a").equals(equal[0].clone());
                let both = of_equal.clone() & field("c.d").equals(equal[1].clone());
                for filter in [None, Some(of_equal), Some(both)] {
                    let page = |all: &Collection| {
                        let mut sorted = match &filter {
                            Some(filter) => all.find(filter.clone()),
                            None => all.find(field("a").exists() | !field("a").exists()),
                        };
                        for (path, descends) in sort {
                            sorted = if *descends { sorted.sort_by_desc(path) } else { sorted.sort_by(path) };
                        }
                        sorted.offset(1).limit(4).run().unwrap()
                    };
                    let (one, other) = (page(&indexed), page(&plain));
                    prop_assert_eq!(one.total, other.total);
                    prop_assert_eq!(one.documents, other.documents, "{:?} {:?}", sort, filter);
                }
            }
        }
    }
}

/// 3,000 books by 30 authors, with their indexes.
fn books(db: &Database) -> remora::Result<Collection> {
    let all = db.collection("books")?;
    for n in 0..3_000 {
        let author = json!({"name": format!("author {}", n % 30)});
        all.upsert(n, &json!({"author": author, "year": n % 100, "pages": n % 7}))?;
    }
    assert!(all.index(["author.name", "year"])? && !all.index(["author.name", "year"])?);
    assert!(all.index(["year", "author.name", "pages"])? && all.index("pages")?);
    Ok(all)
}

const JOINT: &str = "author.name, year";
const THREE: &str = "year, author.name, pages";
const OF_AUTHOR: &str = "author.name = 'author 7' AND year BETWEEN 30 AND 60";

fn told(all: &Collection) -> remora::Result<Vec<String>> {
    Ok(all.indexes()?.iter().map(ToString::to_string).collect())
}

fn plan_of(indexes: &[&str], is_exact: bool, order: Option<&str>) -> FindPlan {
    FindPlan {
        indexes: indexes.iter().map(|&index| index.to_owned()).collect(),
        is_exact,
        order: order.map(str::to_owned),
    }
}

#[test]
fn paths_together_are_told_and_used() -> Tested {
    let db = Database::in_memory()?;
    let all = books(&db)?;
    wait_until_ready(&all)?;
    assert_eq!(told(&all)?, [JOINT, THREE, "pages"]);
    for (filter, indexes, is_exact) in [
        (OF_AUTHOR, vec![JOINT], true),
        ("year > 30 AND author.name = 'author 7' AND year < 60", vec![JOINT], true),
        ("author.name BEGINS 'author 2'", vec![JOINT], true),
        ("year = 7 AND author.name = 'author 7' AND pages > 3", vec![THREE], true),
        (
            "author.name IN ('a', 'author 2') AND year = 7 AND pages = 3 AND x = 1",
            vec![THREE],
            false,
        ),
        ("year > 7 AND pages > 3", vec![THREE, "pages"], true),
        ("NOT (author.name = 'author 7' AND year = 7)", vec![JOINT], true),
    ] {
        assert_eq!(all.find(filter).explain()?, plan_of(&indexes, is_exact, None), "{filter}");
    }
    let expected = (0..3_000).filter(|n| n % 30 == 7 && (30..=60).contains(&(n % 100)));
    assert_eq!(all.find(OF_AUTHOR).count()?, expected.count() as u64);

    let sorted = || all.find(OF_AUTHOR).sort_by_desc("year").limit(3);
    assert_eq!(sorted().explain()?, plan_of(&[JOINT], true, Some(JOINT)));
    let years: Vec<Json> =
        sorted().run()?.documents.iter().map(|it| it.doc["year"].clone()).collect();
    assert_eq!(years, [57, 57, 57]);
    let whole = || all.find("year >= 0").sort_by("author.name").sort_by("year").limit(2);
    assert_eq!(whole().explain()?, plan_of(&[THREE], true, Some(JOINT)));
    let first = whole().run()?;
    let ids: Vec<i64> = first.documents.iter().map(|document| document.id).collect();
    assert_eq!((first.total, ids), (3_000, vec![0, 300]));
    let mixed = || all.find("year >= 0").sort_by("author.name").sort_by_desc("year").limit(2);
    assert_eq!(mixed().explain()?, plan_of(&[THREE], true, Some(JOINT)));
    assert_eq!(mixed().ids()?, [90, 390]);
    let reversed = all.find("year >= 0").sort_by_desc("author.name").sort_by("year").limit(2);
    assert_eq!(reversed.ids()?, [9, 309]);
    let other = all.find("year >= 0").sort_by("year").sort_by_desc("pages").limit(2);
    assert_eq!(other.explain()?.order, None);
    Ok(())
}

/// SQL finds documents by the first of several paths.
#[test]
fn sql_uses_the_first_of_paths_together() -> Tested {
    let db = Database::in_memory()?;
    let all = books(&db)?;
    wait_until_ready(&all)?;
    for (condition, found) in [
        ("doc->>'$.author.name' = 'author 7'", 100),
        ("doc->>'$.author.name' IN ('author 7', 'author 8', 'x')", 200),
        ("doc->'$.author.name' > 'author 28'", 800),
        ("doc->>'$.author.name' < 'author 1'", 100),
        ("doc->'$.year' BETWEEN 7 AND 9", 90),
        ("doc->>'$.year' > 97", 60),
        ("doc->'$.year' = 7 AND doc->>'$.author.name' = 'author 7'", 10),
    ] {
        let condition = format!("SELECT COUNT(*) FROM books WHERE {condition}");
        assert_eq!(db.query(&condition, [])?.one::<i64>()?, found, "{condition}");
        let plan = db.query(&format!("EXPLAIN {condition}"), [])?;
        let plan = format!("{:?}", plan.iter().collect::<Vec<_>>());
        assert!(plan.contains("doc->'$.") && !plan.contains("\"ALL\""), "{condition}: {plan}");
    }
    Ok(())
}

#[test]
fn more_than_an_index_is_asked_for_is_read() -> Tested {
    let db = Database::in_memory()?;
    let all = books(&db)?;
    wait_until_ready(&all)?;
    let authors: Vec<String> = (0..100).map(|n| format!("'author {n}'")).collect();
    let mut filter = format!("author.name IN ({})", authors.join(","));
    for least in 0..30 {
        let years: Vec<String> = (least..least + 100).map(|year| year.to_string()).collect();
        filter.push_str(&format!(" AND year IN ({})", years.join(",")));
    }
    assert_eq!(all.find(filter.as_str()).explain()?, plan_of(&[JOINT], false, None));
    let expected = (0..3_000).filter(|n| n % 100 >= 29).count();
    assert_eq!(all.find(filter.as_str()).count()?, expected as u64);
    Ok(())
}

#[test]
fn paths_together_are_kept_and_may_be_too_many() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path().join("db"))?;
    let all = books(&db)?;
    wait_until_ready(&all)?;
    let count = all.find(OF_AUTHOR).count()?;
    drop((all, db));

    let db = Database::open(directory.path().join("db"))?;
    let all = db.collection("books")?;
    assert!(all.indexes()?.iter().all(|index| index.is_ready), "{:?}", all.indexes()?);
    assert_eq!(all.find(OF_AUTHOR).count()?, count);
    // More combinations than an index takes: what is found is read from then on.
    let many: Vec<i64> = (0..60).collect();
    all.upsert(5_000, &json!({"author": {"name": many}, "year": many}))?;
    assert_eq!(all.find(OF_AUTHOR).explain()?, plan_of(&[JOINT], false, None));
    assert_eq!(all.find(OF_AUTHOR).count()?, count);
    assert_eq!(all.find("author.name = 7 AND year = 8").count()?, 1);
    assert_eq!(all.find("NOT (author.name = 7 AND year = 8)").count()?, 3_000);
    // The paths' own indexes tell exactly.
    assert!(all.index("author.name")? && all.index("year")?);
    wait_until_ready(&all)?;
    let own = plan_of(&["author.name", "year"], true, None);
    assert_eq!(all.find(OF_AUTHOR).explain()?, own);
    assert_eq!(all.find(OF_AUTHOR).count()?, count);
    assert!(all.drop_index("author.name")? && all.drop_index("year")?);
    assert!(all.delete(5_000)?);
    assert!(all.drop_index(["author.name", "year"])? && !all.drop_index(["author.name", "year"])?);
    assert_eq!(all.find(OF_AUTHOR).count()?, count);
    // One where the rows stand, and one that makes the table anew.
    for statement in [
        "ALTER TABLE books ADD CHECK (doc->>'$.year' >= 0)",
        "ALTER TABLE books ADD COLUMN f INT FIRST",
    ] {
        db.execute(statement, [])?;
        wait_until_ready(&all)?;
        assert_eq!(told(&all)?, [THREE, "pages"], "{statement}");
        let asked = "SELECT COUNT(*) FROM books WHERE 7 MEMBER OF (doc->'$.year')";
        assert_eq!(db.query(asked, [])?.one::<i64>()?, 30, "{statement}");
    }
    drop((all, db));
    let report = remora_engine::Database::check(&directory.path().join("db"), &mut |_| {})?;
    assert_eq!(report.problems, []);
    Ok(())
}

#[test]
fn what_cannot_be_indexed_together_is_refused() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("c")?;
    let none: [&str; 0] = [];
    let many: Vec<String> = (0..33).map(|n| format!("p{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for refused in [all.index(none), all.index(["a", "b", "a"]), all.index(many)] {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    Ok(())
}
