//! Pages by cursors, facets and conditions on elements: which indexes answer, what comes and goes between pages, and
//! what is refused.

use std::time::{Duration, Instant};

use remora::{Collection, Database, DocumentId, Error, FoundDocuments, field};
use serde_json::{Value as Json, json};

use crate::Tested;

fn wait_until_ready<K: DocumentId>(all: &Collection<K>) -> Tested {
    let end = Instant::now() + Duration::from_secs(60);
    while !all.indexes()?.iter().all(|index| index.is_ready) {
        assert!(Instant::now() < end, "{:?}", all.indexes()?);
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

#[test]
fn an_index_gives_each_page() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    // Many equal values: a page ends among them.
    let ids = all.insert_many((0..3_000).map(|n| json!({"n": n % 3, "m": n % 500})))?;
    for index in [vec!["n"], vec!["n", "m"]] {
        all.index(index)?;
    }
    wait_until_ready(&all)?;
    for sort in [vec![("n", false)], vec![("n", true)], vec![("n", true), ("m", false)]] {
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut page = all.all().limit(700);
            for (path, descending) in &sort {
                page = if *descending { page.sort_by_desc(path) } else { page.sort_by(path) };
            }
            if let Some(cursor) = &cursor {
                page = page.after(cursor);
            }
            let page: FoundDocuments = page.run()?;
            assert_eq!(page.total, 3_000);
            seen.extend(page.documents);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        let key = |document: &Json| -> Vec<i64> {
            let value = |(path, descending): &(&str, bool)| {
                let value = document[path].as_i64().unwrap_or_default();
                if *descending { -value } else { value }
            };
            sort.iter().map(value).collect()
        };
        assert!(seen.is_sorted_by_key(|found| (key(&found.doc), found.id)), "{sort:?}");
        assert_eq!(seen.len(), ids.len());
    }
    Ok(())
}

#[test]
fn documents_come_and_go_between_pages() -> Tested {
    let db = Database::in_memory()?;
    let all = db.keyed_collection("all")?;
    all.upsert_many(["b", "d", "f", "h"].map(|id| (id, json!({"n": 1}))))?;
    for is_indexed in [false, true] {
        if is_indexed {
            all.index("n")?;
            wait_until_ready(&all)?;
        }
        for sorted in [false, true] {
            let page = |cursor: Option<&str>| {
                let find = all.find("n EXISTS").limit(2);
                let find = if sorted { find.sort_by("n") } else { find };
                cursor.into_iter().fold(find, remora::Find::after).run()
            };
            let first = page(None)?;
            let ids = |found: &FoundDocuments<String>| -> Vec<String> {
                found.documents.iter().map(|found| found.id.clone()).collect()
            };
            assert_eq!(ids(&first), ["b", "d"]);
            // The document of the cursor goes; others come on both sides of it.
            all.delete("d")?;
            all.upsert("a", &json!({"n": 1}))?;
            all.upsert("e", &json!({"n": 1}))?;
            let second = page(first.cursor.as_deref())?;
            assert_eq!((ids(&second), second.total), (vec!["e".into(), "f".into()], 5));
            let third = page(second.cursor.as_deref())?;
            assert_eq!(ids(&third), ["h"]);
            assert_eq!(page(third.cursor.as_deref())?.cursor, None);
            all.delete("a")?;
            all.delete("e")?;
            all.upsert("d", &json!({"n": 1}))?;
        }
    }
    assert_eq!(all.ids(Some("c"), 2)?, ["d", "f"]);
    let mut texts = Vec::new();
    let cursor = all.all().limit(1).run()?.cursor.ok_or("a page has one")?;
    all.all().after(&cursor).offset(1).limit(1).fields("n").each_json(|id, text| {
        texts.push((id, text.to_owned()));
        Ok::<(), Error>(())
    })?;
    assert_eq!(texts, [("f".to_owned(), "{\"n\":1}".to_owned())]);
    Ok(())
}

#[test]
fn cursors_of_others_are_refused() -> Tested {
    let db = Database::in_memory()?;
    let (all, other) = (db.collection("all")?, db.collection("other")?);
    for collection in [&all, &other] {
        collection.insert(&json!({"n": "x".repeat(100)}))?;
    }
    let cursor = all.all().sort_by("n").limit(1).run()?.cursor.ok_or("a page has one")?;
    assert_eq!(all.all().sort_by("n").after(&cursor).ids()?, [0; 0]);
    let mut changed = cursor.clone();
    changed.replace_range(20..21, if &cursor[20..21] == "A" { "B" } else { "A" });
    for refused in [
        all.all().after(&cursor).run(),
        all.all().sort_by_desc("n").after(&cursor).run(),
        all.all().sort_by("m").after(&cursor).run(),
        other.all().sort_by("n").after(&cursor).run(),
        all.all().sort_by("n").after(&changed).run(),
        all.all().sort_by("n").after(&cursor[1..]).run(),
        all.all().sort_by("n").after("").run(),
        all.all().sort_by("n").after("é").run(),
    ] {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    // A value that no cursor has room for.
    all.insert(&json!({"n": "y".repeat(2 << 20)}))?;
    assert_eq!(all.all().sort_by_desc("n").limit(1).run()?.cursor, None);
    Ok(())
}

#[test]
fn indexes_narrow_conditions_on_elements() -> Tested {
    let db = Database::in_memory()?;
    let orders = db.collection("orders")?;
    let both =
        orders.insert(&json!({"items": [{"sku": "x", "qty": 5}, {"sku": "y", "qty": 1}]}))?;
    orders.insert(&json!({"items": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 5}]}))?;
    let one = orders.insert(&json!({"items": {"sku": "x", "qty": 9}}))?;
    orders.insert_many((0..100).map(|n| json!({"items": [{"sku": n, "qty": n}]})))?;
    let same = "items HAS (sku = 'x' AND qty > 3)";
    assert_eq!(orders.find(same).ids()?, [both, one]);
    let plan = |filter: &str| orders.find(filter).explain().map(|it| (it.indexes, it.is_exact));
    orders.index("items.sku")?;
    wait_until_ready(&orders)?;
    assert_eq!(plan(same)?, (vec!["items.sku".to_owned()], false));
    assert_eq!(plan("items HAS (sku = 'x')")?, (vec!["items.sku".to_owned()], true));
    assert_eq!(plan("items HAS (sku = 'x' OR qty > 3)")?, (vec![], false));
    assert_eq!(plan("items HAS (NOT sku = 'x')")?, (vec![], false));
    assert_eq!(plan("NOT items HAS (sku = 'x')")?, (vec!["items.sku".to_owned()], true));
    orders.index(["items.sku", "items.qty"])?;
    wait_until_ready(&orders)?;
    assert_eq!(plan(same)?, (vec!["items.sku, items.qty".to_owned()], false));
    assert_eq!(orders.find(same).ids()?, [both, one]);
    let nested =
        |levels: usize| (0..levels).fold(field("a").equals(1), |inner, _| field("a").has(inner));
    assert_eq!(orders.find(nested(16)).count()?, 0);
    assert!(matches!(orders.find(nested(17)).count(), Err(Error::Request(_))));
    let table = db.create_table("t", |t| t.int("id").key())?;
    assert!(matches!(table.all().filter("id HAS (a = 1)").count(), Err(Error::Request(_))));
    Ok(())
}

#[test]
fn dates_are_found_by_indexes_of_their_texts() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    let texts = [
        "2024-05-01",
        "2024-05-01T12:30:00Z",
        "2024-05-01 14:30:00+02:00",
        "2024-05-03T00:00:00Z",
        "x",
    ];
    let ids = all.insert_many(texts.map(|text| json!({"by": "Ann", "at": text})))?;
    let filters = [
        ("at >= DATE '2024-05-01'", &ids[..4]),
        ("at = TIMESTAMP '2024-05-01T12:30:00Z'", &ids[1..3]),
        ("by = 'Ann' AND at BETWEEN DATE '2024-05-01' AND DATE '2024-05-02'", &ids[..3]),
        ("at IN (DATE '2024-05-01', DATE '2024-05-03')", &[ids[0], ids[3]][..]),
        ("at != DATE '2024-05-01'", &ids[1..]),
        ("NOT at < DATE '2024-05-02'", &ids[3..]),
    ];
    for indexes in [vec![], vec!["at"], vec!["by", "at"]] {
        if !indexes.is_empty() {
            all.index(indexes)?;
            wait_until_ready(&all)?;
        }
        for (filter, expected) in filters {
            assert_eq!(all.find(filter).ids()?, expected, "{filter}");
        }
    }
    let plan = all.find(filters[2].0).explain()?;
    assert_eq!((plan.indexes, plan.is_exact), (vec!["by, at".to_owned()], false));
    assert_eq!(all.find(filters[0].0).explain()?.indexes, ["at"]);
    Ok(())
}
