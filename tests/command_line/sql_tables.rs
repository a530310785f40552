//! Import into tables that SQL defined, and into collections of which SQL declared keys.

use std::path::Path;

use remora::{Database, params};
use serde_json::{Value as Json, json};

use super::{printed, refused, run, write};

const BIRDS: &str = "CREATE TABLE birds (
    id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(8) NOT NULL, ring VARCHAR(20) UNIQUE, weight DECIMAL(6,2) DEFAULT 1.5,
    seen DATE, kind ENUM('song', 'prey') NOT NULL DEFAULT 'song', tags JSON, at TIMESTAMP NULL, tame TINYINT(1) DEFAULT 0,
    blob_of VARBINARY(10), grams INT AS (weight * 1000) STORED, CHECK (weight > 0), KEY ((UPPER(name))))";

struct Folder {
    directory: tempfile::TempDir,
}

impl Folder {
    /// A data directory with these tables.
    fn with(definitions: &[&str]) -> Self {
        let folder = Self { directory: tempfile::tempdir().unwrap() };
        let db = folder.open();
        for definition in definitions {
            db.execute(definition, []).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        write(&self.directory.path().join(name), text)
    }

    fn open(&self) -> Database {
        Database::open(Path::new(&self.path("data"))).unwrap()
    }

    fn rows(&self, query: &str) -> Vec<Json> {
        let rows = self.open().query(query, params![]).unwrap();
        rows.iter().map(|row| row.deserialize::<(Json,)>().unwrap().0).collect()
    }

    fn import<'a>(&'a self, data: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["import", "--data", data], arguments].concat()
    }
}

#[test]
fn rows_are_converted_as_insert_converts_them() {
    let folder = Folder::with(&[BIRDS]);
    let data = folder.path("data");
    let rows = [
        r#"{"id": 7, "name": "Heron", "ring": 12, "weight": "2.345", "seen": "2024-1-5", "kind": 2, "tags": ["a", {"b": 1.50}]}"#,
        r#"{"NAME": "Kite", "weight": null, "tame": true, "at": "2024-01-02T03:04:05Z", "blob_of": "00ff", "grams": 3}"#,
        r#"{"name": "Owl", "ring": "x1", "seen": 20240106, "unknown": 1}"#,
        r#"{"id": 7, "name": "Egret", "ring": "12"}"#,
    ];
    let file = folder.file("birds.jsonl", &rows.join("\n"));
    let said = printed(&folder.import(&data, &["--table", "birds", &file]));
    assert!(said.contains("4 rows into table 'birds'"), "{said}");
    let said = printed(&folder.import(&data, &["--table", "birds", &file]));
    assert!(said.contains("0 rows into table 'birds'"), "it was read before: {said}");
    let csv = "name,weight,seen,tags,kind,ring\nWren,10,,\"[1]\",prey,\\N\nLark,0.5,2024-02-29,\\N,song,\n";
    let file = folder.file("more.csv", csv);
    let said = printed(&folder.import(&data, &["--table", "birds", &file]));
    assert!(said.contains("2 rows into table 'birds'"), "{said}");
    let query = "SELECT JSON_ARRAY(id, name, ring, weight, seen, kind, tags, tame, HEX(blob_of), grams) FROM birds ORDER BY id";
    let expected = [
        // What is not given has its default, what replaces a row too.
        json!([7, "Egret", "12", 1.5, null, "song", null, 0, null, 1500]),
        json!([8, "Kite", null, null, null, "song", null, 1, "00FF", null]),
        json!([9, "Owl", "x1", 1.5, "2024-01-06", "song", null, 0, null, 1500]),
        json!([10, "Wren", null, 10.0, null, "prey", [1], 0, null, 10000]),
        json!([11, "Lark", "", 0.5, "2024-02-29", "song", null, 0, null, 500]),
    ];
    assert_eq!(folder.rows(query), expected);
    let by_key = "SELECT JSON_ARRAY(COUNT(*), MAX(at) = '2024-01-02 03:04:05') FROM birds WHERE UPPER(name) = 'KITE'";
    assert_eq!(folder.rows(by_key), [json!([1, true])]);
    // What is exported comes back. It has no NULLs, so Kite's weight has its default now.
    let exported = folder.path("out.jsonl");
    printed(&["export", "--data", &data, "--table", "birds", "-o", &exported]);
    folder.open().execute("TRUNCATE TABLE birds", params![]).unwrap();
    printed(&folder.import(&data, &["--table", "birds", &exported]));
    let again = folder.rows(query);
    let kite = json!([8, "Kite", null, 1.5, null, "song", null, 1, "00FF", 1500]);
    assert_eq!((again.len(), &again[0], &again[1]), (5, &expected[0], &kite));
}

#[test]
fn zero_dates_come_back_in_every_form() {
    let folder = Folder::with(&[
        "CREATE TABLE zeros (id INT PRIMARY KEY, d DATE NOT NULL, dt DATETIME NOT NULL, ts TIMESTAMP NOT NULL, \
         f TIMESTAMP(3) NULL)",
        "INSERT IGNORE INTO zeros VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'), \
         (2, '2024-02-29', '2024-02-29 01:02:03', '2024-02-29 01:02:03', NULL)",
    ]);
    let data = folder.path("data");
    let query = "SELECT JSON_ARRAY(id, CAST(d AS CHAR), CAST(dt AS CHAR), CAST(ts AS CHAR), CAST(f AS CHAR)) FROM zeros";
    let rows = folder.rows(query);
    let zero = "0000-00-00 00:00:00";
    assert_eq!(rows[0], json!([1, "0000-00-00", zero, zero, "0000-00-00 00:00:00.000"]));
    for form in ["csv", "tsv", "jsonl", "json", "mongo"] {
        let file = folder.path(&format!("out.{form}"));
        printed(&["export", "--data", &data, "--table", "zeros", "--format", form, "-o", &file]);
        folder.open().execute("DELETE FROM zeros", params![]).unwrap();
        printed(&folder.import(&data, &["--table", "zeros", "--format", form, &file]));
        assert_eq!(folder.rows(query), rows, "{form}");
    }
    // Other dates that do not exist are refused as before.
    let file = folder.file("wrong.csv", "id,d,dt,ts\n3,2023-02-29,2024-01-01,2024-01-01\n");
    let error = refused(&folder.import(&data, &["--table", "zeros", &file]));
    assert!(error.contains("Incorrect date value: '2023-02-29'"), "{error}");
}

#[test]
fn a_row_that_is_refused_is_named_and_leaves_nothing_of_its_batch() {
    let folder = Folder::with(&[BIRDS]);
    let data = folder.path("data");
    let line = |row: &str| {
        // Comes behind enough rows that it is looked for.
        let rows: String =
            (1..=300).map(|id| format!("{{\"id\":{id},\"name\":\"b{id}\"}}\n")).collect();
        folder.file("rows.jsonl", &format!("{rows}{row}\n{{\"id\": 999, \"name\": \"last\"}}\n"))
    };
    for (row, words) in [
        (r#"{"id": 301, "name": "Heron and more"}"#, "Data too long for column 'name'"),
        (r#"{"id": "x", "name": "a"}"#, "Incorrect integer value: 'x' for column 'id'"),
        (r#"{"id": 301, "name": null}"#, "Column 'name' cannot be null"),
        (r#"{"id": 301}"#, "Field 'name' doesn't have a default value"),
        (r#"{"id": 301, "name": "a", "weight": -1}"#, "is violated"),
        (r#"{"id": 301, "name": "a", "kind": "fish"}"#, "Data truncated for column 'kind'"),
        (r#"{"id": 301, "name": "a", "seen": "2023-02-29"}"#, "for column 'seen'"),
        (r#"{"id": 301, "name": "a", "at": "2023-02-29T01:02:03"}"#, "for column 'at'"),
        (r#"{"id": 301, "name": "a", "blob_of": "zz"}"#, "column \"blob_of\""),
        (r#"{"id": 301, "name": "a""#, "not JSON"),
    ] {
        let file = line(row);
        let error = refused(&folder.import(&data, &["--table", "birds", &file]));
        assert!(error.contains("rows.jsonl:301:") && error.contains(words), "{error}");
        assert!(!error.contains("at row"), "{error}");
        assert_eq!(folder.rows("SELECT JSON_ARRAY(COUNT(*)) FROM birds"), [json!([0])]);
    }
    // A unique key of another row, and as many bad rows as may be passed over.
    let file = line(
        "{\"id\": 301, \"name\": \"a\", \"ring\": \"r\"}\n{\"id\": 302, \"name\": \"b\", \"ring\": \"r\"}\n{\"name\": 3, \"weight\": 0}",
    );
    let error = refused(&folder.import(&data, &["--table", "birds", &file, "--skip-bad", "1"]));
    assert!(error.contains("rows.jsonl:303:") && error.contains("is violated"), "{error}");
    let output = run(&folder.import(&data, &["--table", "birds", &file, "--on-error", "skip"]));
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The rows before the first one had been stored.
    assert!(said.contains("1 row into table 'birds', 2 skipped"), "{said}{told}");
    assert_eq!(folder.rows("SELECT JSON_ARRAY(COUNT(*)) FROM birds"), [json!([302])]);
    assert!(told.contains("rows.jsonl:302:") && told.contains("Duplicate entry 'r'"), "{told}");
    assert!(printed(&["check", &data]).contains("Everything is as it was written."));
}

#[test]
fn tables_without_a_key_and_collections_with_keys_take_files() {
    let folder = Folder::with(&["CREATE TABLE log (n INT, said TEXT, FULLTEXT KEY (said))"]);
    let data = folder.path("data");
    let rows: String =
        (0..5000).map(|n| format!("{{\"n\":{n},\"said\":\"words of {n}\"}}\n")).collect();
    let file = folder.file("log.jsonl", &rows);
    let said = printed(&folder.import(&data, &["--table", "log", &file]));
    assert!(said.contains("5,000 rows into table 'log'"), "{said}");
    let counted = "SELECT JSON_ARRAY(COUNT(*), SUM(n)) FROM log WHERE MATCH(said) AGAINST('words')";
    assert_eq!(folder.rows(counted), [json!([5000, 12_497_500])]);
    {
        let db = folder.open();
        db.collection("notes").unwrap();
        db.execute("CREATE UNIQUE INDEX u ON notes ((CAST(doc->>'$.u' AS SIGNED)))", params![])
            .unwrap();
    }
    let file = folder.file("notes.jsonl", "{\"u\": 1, \"x\": 1.50}\n{\"u\": 2}\n");
    let said = printed(&folder.import(&data, &["--collection", "notes", &file]));
    assert!(said.contains("2 documents into collection 'notes'"), "{said}");
    let twice = folder.file("twice.jsonl", "{\"u\": 3}\n{\"u\": 2}\n");
    let error = refused(&folder.import(&data, &["--collection", "notes", &twice]));
    assert!(error.contains("twice.jsonl:2:") && error.contains("Duplicate entry '2'"), "{error}");
    let exported = printed(&["export", "--data", &data, "--collection", "notes"]);
    assert_eq!(exported, "{\"u\":1,\"x\":1.50}\n{\"u\":2}\n");
    let found = "SELECT JSON_ARRAY(COUNT(*)) FROM notes WHERE CAST(doc->>'$.u' AS SIGNED) > 0";
    assert_eq!(folder.rows(found), [json!([2])]);
}

#[test]
fn exports_of_mongodb_and_nested_members_go_into_columns() {
    let definition = "CREATE TABLE trips (_id CHAR(24) PRIMARY KEY, at DATETIME(3), n BIGINT UNSIGNED, \
                      price DECIMAL(8,2), `from.city` VARCHAR(20), `from.at` JSON, `to` JSON, \
                      UNIQUE KEY (`from.city`))";
    let folder = Folder::with(&[definition]);
    let data = folder.path("data");
    let trips = [
        r#"{"_id": {"$oid": "65a0000000000000000000aa"}, "at": {"$date": "2024-01-02T03:04:05.678Z"},
           "n": {"$numberLong": "9223372036854775807"}, "price": {"$numberDecimal": "1.255"},
           "from": {"city": "Turku", "at": [1, {"x": 2}]}, "to": {"city": "Oulu"}}"#,
        r#"{"_id": {"$oid": "65a0000000000000000000ab"}, "n": 3, "from": {"city": "Turku"}}"#,
        r#"{"_id": {"$oid": "65a0000000000000000000ac"}, "from": {"city": "Vaasa"}}"#,
    ];
    let file = folder.file("trips.json", &format!("[{}]", trips.join(",\n")));
    let arguments = ["--table", "trips", "--format", "mongo", "--flatten", &file];
    let error = refused(&folder.import(&data, &arguments));
    assert!(
        error.contains("trips.json:4:") && error.contains("Duplicate entry 'Turku'"),
        "{error}"
    );
    let said = printed(&folder.import(&data, &[&arguments[..], &["--skip-bad", "1"]].concat()));
    assert!(said.contains("2 rows into table 'trips', 1 skipped"), "{said}");
    let query = "SELECT JSON_ARRAY(_id, at = '2024-01-02 03:04:05.678', n, price, `from.city`, `from.at`) \
                 FROM trips ORDER BY _id";
    let expected = [
        json!(["65a0000000000000000000aa", true, i64::MAX, 1.26, "Turku", [1, {"x": 2}]]),
        json!(["65a0000000000000000000ac", null, null, null, "Vaasa", null]),
    ];
    assert_eq!(folder.rows(query), expected);
}

#[test]
fn many_rows_that_are_refused_are_passed_over() {
    let folder = Folder::with(&["CREATE TABLE odd (n INT PRIMARY KEY, CHECK (n % 2 = 1))"]);
    let data = folder.path("data");
    let rows: String = (0..3000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let file = folder.file("odd.jsonl", &rows);
    let said = printed(&folder.import(&data, &["--table", "odd", &file, "--on-error", "skip"]));
    assert!(said.contains("1,500 rows into table 'odd', 1,500 skipped"), "{said}");
    let counted = "SELECT JSON_ARRAY(COUNT(*), MIN(n), MAX(n)) FROM odd";
    assert_eq!(folder.rows(counted), [json!([1500, 1, 2999])]);
}
