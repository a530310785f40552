//! Tables and searches by the library.

use remora::{Database, Error, Value, field};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::Tested;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Everything {
    id: i64,
    unsigned: u64,
    ratio: f64,
    price: String,
    open: bool,
    title: String,
    habitat: Option<String>,
    data: Vec<u8>,
    day: String,
    span: String,
    at: String,
    moment: String,
    doc: serde_json::Value,
}

fn everything(db: &Database) -> Result<remora::Table, Error> {
    db.create_table("everything", |t| {
        let numbers =
            t.int("id").key().uint("unsigned").required().float("ratio").decimal("price", 12, 2);
        let texts = numbers.bool("open").text("title").short_text("habitat").bytes("data");
        let times = texts.date("day").time("span").datetime("at").timestamp("moment");
        times.json("doc").index(["habitat", "-unsigned"])
    })
}

fn one(id: i64) -> Everything {
    Everything {
        id,
        unsigned: u64::MAX - id.unsigned_abs(),
        ratio: -0.25,
        price: "-12.50".into(),
        open: true,
        title: "The reef at night".into(),
        habitat: Some("coasts".into()),
        data: vec![0, 200],
        day: "2024-02-29".into(),
        span: "-01:02:03.5".into(),
        at: "2024-02-29 12:00:00".into(),
        moment: "2024-02-29 12:00:00".into(),
        doc: json!({"a": [1, "x", null]}),
    }
}

#[test]
fn every_type_comes_back() -> Tested {
    let db = Database::in_memory()?;
    let table = everything(&db)?;
    table.insert(&one(1))?;
    let back: Everything = table.get_as(1)?.ok_or("it is there")?;
    let same = Everything { span: back.span.clone(), moment: back.moment.clone(), ..one(1) };
    assert_eq!(back, same);
    assert!(back.span.starts_with("-01:02:03.5") && back.moment.contains("12:00:00"), "{back:?}");
    let row = table.get(1)?.ok_or("it is there")?;
    assert!(matches!(row.value("PRICE")?, Value::Decimal(_)));
    // SQL sees the same row, and writes it.
    let told: (String, f64) = db.query("SELECT title, price FROM everything", [])?.one()?;
    assert_eq!(told, ("The reef at night".to_owned(), -12.5));
    db.execute("UPDATE everything SET habitat = NULL WHERE id = 1", [])?;
    assert_eq!(table.get_as::<Everything>(1)?.and_then(|it| it.habitat), None);
    // A table that is there is given again; another of its name is none.
    assert_eq!(everything(&db)?.count()?, 1);
    let other = db.create_table("everything", |t| t.int("id").key());
    assert!(other.is_err_and(|error| matches!(error, Error::Exists(_))));
    Ok(())
}

#[test]
fn rows_come_and_go_by_key() -> Tested {
    let db = Database::in_memory()?;
    let table =
        db.create_table("t", |t| t.short_text("kind").key().int("id").key().text("body"))?;
    let row = |kind: &str, id: i64, body: &str| json!({"kind": kind, "id": id, "body": body});
    assert_eq!(table.insert_many([row("a", 1, "x"), row("a", 2, "y"), row("b", 1, "z")])?, 3);
    assert_eq!(table.insert_many(Vec::<serde_json::Value>::new())?, 0);
    let again = table.insert(&row("a", 1, "other"));
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    let half = table.insert_many([row("c", 1, "new"), row("a", 1, "old")]);
    assert!(half.is_err() && table.get(("c", 1))?.is_none(), "all or none");
    table.upsert(&row("a", 1, "other"))?;
    table.upsert_many([row("a", 2, "1"), row("a", 2, "2")])?;
    let body = |kind: &str, id: i64| -> Result<Option<String>, Error> {
        table.get((kind, id))?.map(|row| row.get("body")).transpose()
    };
    assert_eq!(body("a", 1)?.as_deref(), Some("other"));
    assert_eq!(body("a", 2)?.as_deref(), Some("2"));
    assert!(table.delete(("b", 1))? && !table.delete(("b", 1))?);
    assert_eq!(table.count()?, 2);
    let mut seen = Vec::new();
    table.for_each(|row| {
        seen.push(row.get::<i64>("id")?);
        Ok(())
    })?;
    assert_eq!(seen, [1, 2]);
    let stopped = table.for_each(|row| row.get::<i64>("nothing").map(drop));
    assert!(matches!(stopped, Err(Error::NotFound(_))), "{stopped:?}");
    db.drop_table("t")?;
    assert!(matches!(table.count(), Err(Error::NotFound(_))));
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_by_name() -> Tested {
    let db = Database::in_memory()?;
    let table =
        db.create_table("t", |t| t.int("id").key().short_text("name").required().bytes("data"))?;
    let told = |row: serde_json::Value| {
        table.insert(&row).map_or_else(|error| error.to_string(), |()| "inserted".to_owned())
    };
    for (row, words) in [
        (json!({"id": 1, "name": "x", "colour": 1}), "field \"colour\" is no column"),
        (json!({"id": 1}), "\"name\" must not be NULL"),
        (json!({"id": "x", "name": "x"}), "does not fit column \"id\""),
        (json!({"id": 1, "name": ["x"]}), "an array does not fit column \"name\""),
        (json!({"id": 1, "name": "x", "data": [1, 256]}), "not of bytes"),
        (json!([1]), "no struct and no map"),
        (json!({"id": 1, "name": "x".repeat(3 << 20)}), "\"name\""),
    ] {
        let told = told(row);
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(
        table
            .insert(&[("id", f64::NAN)].into_iter().collect::<std::collections::HashMap<_, _>>())
            .is_err()
    );
    for (made, words) in [
        (db.create_table("u", |t| t.int("id")), "has no key"),
        (db.create_table("u", |t| t.key().int("id")), "key() must follow a column"),
        (db.create_table("u", |t| t.int("id").key().text("b").index(["b"])), "short_text"),
        (db.create_table("u", |t| t.int("id").key().index(["x"])), "is no column"),
        (db.create_table("u", |t| t.int("id").key().int("ID")), "there twice"),
        (db.table("u"), "there is no table \"u\""),
    ] {
        let error = made.err().ok_or(words)?.to_string();
        assert!(error.contains(words), "{error}");
    }
    // SQL keeps what it declares: its tables are read here, and written there.
    db.execute("CREATE TABLE s (id INT PRIMARY KEY, name VARCHAR(3) UNIQUE)", [])?;
    db.execute("INSERT INTO s VALUES (1, 'abc')", [])?;
    let table = db.table("s")?;
    assert_eq!(table.get_as::<(i32, String)>(1)?, Some((1, "abc".to_owned())));
    for refused in [table.insert(&json!({"id": 2})), table.delete(1).map(drop), db.drop_table("s")]
    {
        assert!(refused.is_err_and(|error| error.to_string().contains("defined by SQL")));
    }
    Ok(())
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Product {
    id: u32,
    name: String,
    brand: Option<String>,
    price: f64,
}

fn catalogue(db: &Database) -> Result<remora::Table, Error> {
    let table = db.create_table("products", |t| {
        t.uint("id").key().text("name").short_text("brand").decimal("price", 10, 2)
    })?;
    let brands = [Some("Kelp"), Some("Reef"), None];
    table.insert_many((0..300_u32).map(|id| Product {
        id,
        name: format!("{} lamp no. {id}", if id % 2 == 0 { "Coral" } else { "Sand" }),
        brand: brands[id as usize % 3].map(str::to_owned),
        price: f64::from(id) / 2.0,
    }))?;
    Ok(table)
}

#[test]
fn searches_count_order_and_facet() -> Tested {
    let db = Database::in_memory()?;
    let products = catalogue(&db)?;
    let found = products.search("coral").facet("brand").limit(3).run()?;
    assert_eq!((found.total, found.rows.len()), (150, 3));
    assert_eq!(found.deserialize::<Product>()?[0].id, 298, "the greatest key first");
    let values: Vec<(String, u64)> =
        found.facets[0].values.iter().map(|(value, rows)| (value.to_string(), *rows)).collect();
    assert_eq!(
        values.iter().map(|it| it.1).sum::<u64>(),
        if values.len() == 3 { 150 } else { 100 }
    );
    assert!(values.contains(&("Kelp".to_owned(), 50)) && found.facets[0].column == "brand");
    let second = products.search("coral").limit(3).after(&found.cursor.ok_or("a cursor")?).run()?;
    assert_eq!(second.deserialize::<Product>()?[0].id, 292);

    let filtered = products.search("lamp").filter("brand = 'Reef' AND price BETWEEN 10 AND 20.5");
    let filtered = filtered.filter(!field("id").is_in([22, 25])).order_by("price").run()?;
    let ids: Vec<u32> = filtered.deserialize::<Product>()?.iter().map(|it| it.id).collect();
    assert_eq!(ids, [28, 31, 34, 37, 40]);
    assert_eq!(products.all().filter("brand IS NULL").count()?, 100);
    assert_eq!(products.all().filter("brand != 'Reef'").count()?, 200, "NULL differs too");
    assert_eq!(products.all().filter("NOT brand EXISTS OR id < 3").count()?, 102);
    assert_eq!(products.search("coral").and("no. 2").and_not("no. 29").count()?, 51);
    assert_eq!(
        products.search("no. 7").or("no. 8").order_by_key().offset(1).limit(1).run()?.total,
        22
    );
    assert_eq!(products.search("carol").fuzzy(2).count()?, 150);

    let marked = products.search("CORAL lamp").filter("id = 4").highlight("<", ">").run()?;
    assert_eq!(marked.rows[0].snippet.as_deref(), Some("<Coral lamp> no. 4"));
    let scored = products.search("sand").by_score().columns(["id"]).limit(1).run()?;
    assert!(scored.rows[0].score.is_some() && scored.rows[0].row.columns().len() == 1);
    Ok(())
}

#[derive(Serialize)]
struct Priced {
    id: i64,
    price: String,
}

/// Doubles have no fraction there.
#[test]
fn decimals_are_compared_to_their_last_digit() -> Tested {
    let db = Database::in_memory()?;
    let table = db.create_table("priced", |t| t.int("id").key().decimal("price", 20, 2))?;
    for id in 1..=3 {
        table.insert(&Priced { id, price: format!("900719925474099{id}.25") })?;
    }
    for (filter, expected) in [
        ("price = 9007199254740992.25", 1),
        ("price = 9007199254740992.26", 0),
        ("price != 9007199254740992.25", 2),
        ("price > 9007199254740992.25", 1),
        ("price >= 9007199254740992.25", 2),
        ("price > 9007199254740992.2499", 2),
        ("price IN (9007199254740991.25, 9007199254740993.0)", 1),
        ("price BETWEEN 9007199254740991.26 AND 9007199254740993.24", 1),
    ] {
        assert_eq!(table.all().filter(filter).count()?, expected, "{filter}");
    }
    Ok(())
}

#[test]
fn searches_are_refused_by_what_is_wrong() -> Tested {
    let db = Database::in_memory()?;
    let products = catalogue(&db)?;
    for (search, words) in [
        (products.all().filter("brand ="), "where a number"),
        (products.all().filter("colour = 1"), "colour"),
        (products.all().filter("brand = 5"), "in quotes"),
        (products.all().filter("price = 'x'"), "price"),
        (products.all().filter("id = '5'"), "without quotes"),
        (products.all().filter(field("id").equals(f64::NAN)), "NaN"),
        (products.all().filter("brand.name = 'x'"), "is a path"),
        (products.all().order_by("colour"), "colour"),
        (products.all().facet("name"), "name"),
        (products.all().after("nonsense"), "cursor"),
        (products.all().columns(["colour"]), "colour"),
    ] {
        let error = search.run().err().ok_or(words)?.to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    Ok(())
}

/// A table with numbers, and documents of which some are NULL.
fn with_documents(db: &Database) -> Tested {
    db.execute(
        "CREATE TABLE p (id INT PRIMARY KEY, n INT, name VARCHAR(20), doc JSON, \
         KEY ((CAST(doc->'$.year' AS CHAR(20) ARRAY))), \
         KEY ((CAST(doc->'$.items.sku' AS CHAR(20) ARRAY))), KEY (n))",
        [],
    )?;
    let document = |id: i64| match (id % 5, 1990 + id % 30) {
        (0, _) => "NULL".to_owned(),
        (1, year) => format!(r#"'{{"year": {year}, "tags": ["sea", {id}]}}'"#),
        (2, year) => format!(r#"'{{"year": [{year}, 2050], "author": {{"name": "Ann"}}}}'"#),
        (3, _) => r#"'{"items": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 5}]}'"#.to_owned(),
        _ => r#"'{"year": "2000", "author": null}'"#.to_owned(),
    };
    let row = |id| format!("({id}, {}, 'n{}', {})", id % 7, id % 3, document(id));
    let values: Vec<String> = (0..1_000).map(row).collect();
    db.execute(&format!("INSERT INTO p VALUES {}", values.join(", ")), [])?;
    Ok(())
}

/// Documents without an index, of which those with an odd `n` are wanted, for tables of every kind of key.
#[test]
fn documents_without_an_index_are_tested_whatever_the_key() -> Tested {
    let db = Database::in_memory()?;
    for (name, key) in [
        ("texts", "t VARCHAR(300) COLLATE utf8mb4_bin, PRIMARY KEY (t)"),
        ("long_texts", "t TEXT COLLATE utf8mb4_0900_ai_ci, PRIMARY KEY (t(300))"),
        ("folded", "t VARCHAR(90) COLLATE utf8mb4_0900_ai_ci, PRIMARY KEY (t)"),
        ("bytes", "t VARBINARY(300), PRIMARY KEY (t)"),
        ("decimals", "t DECIMAL(20, 4), PRIMARY KEY (t)"),
        ("dates", "t DATETIME(6), PRIMARY KEY (t)"),
        ("pairs", "t VARCHAR(40), u INT, PRIMARY KEY (u, t)"),
        ("keyless", "t VARCHAR(40)"),
    ] {
        let made = db.execute(&format!("CREATE TABLE {name} (n INT, doc JSON, {key})"), []);
        if name == "long_texts" && made.is_err() {
            continue;
        }
        made?;
        let of_key = |n: i64| match name {
            "decimals" => format!("{n}.5"),
            "dates" => format!("'2024-05-01 00:00:00.{n:06}'"),
            _ => format!("'key {n}'"),
        };
        let values: Vec<String> = (0..600)
            .map(|n| {
                let pair = if name == "pairs" { format!(", {}", n % 3) } else { String::new() };
                format!("({n}, '{{\"x\": {{\"odd\": {}}}}}', {}{pair})", n % 2 == 1, of_key(n))
            })
            .collect();
        // Two commits, so that there are several segments; of the first one some rows are replaced.
        for half in values.chunks(300) {
            db.execute(&format!("INSERT INTO {name} VALUES {}", half.join(", ")), [])?;
        }
        db.execute(&format!("UPDATE {name} SET doc = '{{}}' WHERE n < 100"), [])?;
        db.execute(&format!("DELETE FROM {name} WHERE n >= 500"), [])?;
        let table = db.table(name)?;
        assert_eq!(table.all().filter("doc.x.odd = true").count()?, 200, "{name}");
        assert_eq!(table.all().filter("n < 200 AND doc.x.odd = true").count()?, 50, "{name}");
        assert_eq!(table.all().filter("n = 0 OR doc.x.odd = true").count()?, 201, "{name}");
        assert_eq!(table.all().filter("NOT doc.x.odd = true").count()?, 300, "{name}");
        let found = table.all().filter("doc.x.odd = true").order_by("n").limit(3).run()?;
        let numbers = found.rows.iter().map(|row| row.row.get::<i64>("n"));
        assert_eq!(numbers.collect::<Result<Vec<_>, _>>()?, [101, 103, 105], "{name}");
    }
    Ok(())
}

#[test]
fn filters_of_a_table_test_columns_and_paths_of_its_documents() -> Tested {
    let db = Database::in_memory()?;
    with_documents(&db)?;
    let table = db.table("p")?;
    let all: Vec<(i64, i64, Option<Json>)> =
        db.query("SELECT id, n, doc FROM p ORDER BY id", [])?.deserialize()?;
    // A collection says which documents satisfy a condition on documents.
    let docs = db.collection("docs")?;
    docs.upsert_many(all.iter().map(|(id, _, doc)| (*id, doc.clone().unwrap_or(Json::Null))))?;
    for path in [
        "@year >= 2000",
        "@year = 1995",
        "@tags = 'sea'",
        "@author.name = 'Ann'",
        "NOT @year < 2010",
        "@items HAS (sku = 'x' AND qty > 3)",
        "@items HAS (sku = 'y' AND qty > 3)",
        "@author IS NULL",
        "@year IN (1991, 2050) OR @author EXISTS",
        "@tags MATCHES 'EA'",
    ] {
        let satisfying = docs.find(&path.replace('@', "")).ids()?;
        let own = path.replace('@', "DOC.");
        for (filter, joined) in [
            (own.clone(), ' '),
            (format!("n = 3 AND ({own})"), '&'),
            (format!("n = 3 OR ({own})"), '|'),
        ] {
            let is_wanted = |id: &i64, n: i64| match joined {
                '&' => n == 3 && satisfying.contains(id),
                '|' => n == 3 || satisfying.contains(id),
                _ => satisfying.contains(id),
            };
            let wanted = all.iter().filter(|(id, n, _)| is_wanted(id, *n)).map(|(id, ..)| *id);
            let wanted: Vec<i64> = wanted.collect();
            let found = table.all().filter(&*filter).order_by_key().limit(2_000).run()?;
            let ids = found.rows.iter().map(|row| row.row.get("id"));
            let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
            assert_eq!((&ids, found.total), (&wanted, wanted.len() as u64), "{filter}");
            assert_eq!(table.all().filter(&*filter).count()?, found.total, "{filter}");
        }
    }
    let refused = table.all().filter("name.first = 'x'").count();
    assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    Ok(())
}
