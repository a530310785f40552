//! Multi-valued keys over JSON arrays change how rows are found and nothing else: a table with them and one without
//! return the same rows, whatever the documents contain.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 900;

/// A JSON value for a path: mostly one that queries look for, sometimes any value.
fn json(random: &mut Random, depth: u64) -> String {
    let number = random.below(12);
    match random.below(if depth == 0 { 16 } else { 20 }) {
        0..5 => number.to_string(),
        5 => format!("-{number}"),
        6 => format!("{number}.{}", random.choose(&["5", "25", "0", "99"])),
        7..11 => format!(
            "\"{}\"",
            random.choose(&["Ann", "ann", "Ann ", "5", "5abc", "", "true", "b\\n", "[1]"])
        ),
        11 => random.choose(&["true", "false"]).to_owned(),
        12 => "null".to_owned(),
        13 => random
            .choose(&["9007199254740993", "18446744073709551615", "1e300", "-9223372036854775808"])
            .to_owned(),
        14 => "[]".to_owned(),
        15 => format!("\"{number}\""),
        16..19 => {
            let values: Vec<String> =
                (0..random.below(4)).map(|_| json(random, depth - 1)).collect();
            format!("[{}]", values.join(", "))
        }
        _ => format!("{{\"b\": {}}}", json(random, depth - 1)),
    }
}

/// A list of objects with what queries look for, sometimes with other values among them, or none around one.
fn items(random: &mut Random) -> String {
    let mut each = || {
        let below = match random.below(3) {
            0 => format!("[{{\"x\": {}}}, {{\"x\": {}}}]", json(random, 1), json(random, 1)),
            1 => format!("{{\"x\": {}}}", json(random, 1)),
            _ => json(random, 2),
        };
        let sku = json(random, 2);
        let object = format!("{{\"sku\": {sku}, \"0\": {}, \"in\": {below}}}", json(random, 1));
        match random.below(8) {
            0 => format!("[{object}]"),
            1 => json(random, 1),
            _ => object,
        }
    };
    let found: Vec<String> = (0..3).map(|_| each()).collect();
    match random.below(8) {
        0 => found.into_iter().next().unwrap(),
        length => format!("[{}]", found[..length as usize % 4].join(", ")),
    }
}

fn document(random: &mut Random) -> String {
    let mut members = Vec::new();
    for name in ["year", "name", "tags", "a", "items"] {
        if random.below(8) > 0 {
            let value = match (name, random.below(3)) {
                ("tags", 1..) => {
                    let values: Vec<String> =
                        (0..random.below(5)).map(|_| json(random, 1)).collect();
                    format!("[{}]", values.join(", "))
                }
                ("items", _) => items(random),
                ("a", 1..) => format!("{{\"b\": {}}}", json(random, 2)),
                _ => json(random, 2),
            };
            members.push(format!("\"{name}\": {value}"));
        }
    }
    format!("'{{{}}}'", members.join(", ").replace('\\', "\\\\"))
}

fn condition(random: &mut Random) -> String {
    let path = random.choose(&[
        "$.year",
        "$.name",
        "$.tags",
        "$.a.b",
        "$.\"year\"",
        "$.none",
        "$.tags[0]",
        "$.tags[*]",
        "$.items[*].sku",
        "$.items[*].\"0\"",
        "$.items[*][*]",
        "$.items[*].in[*].x",
        "$[*]",
    ]);
    let number = random.below(14) as i64 - 2;
    let text = random
        .choose(&["'Ann'", "'ann'", "'5'", "''", "'b\\n'", "'true'", "'Ann '", "'x'", "'[1]'"]);
    let candidate = random.choose(&[
        "'5'",
        "'\"Ann\"'",
        "'[1, 2]'",
        "'[]'",
        "'[5, \"Ann\"]'",
        "'null'",
        "'true'",
        "'[[1]]'",
        "'{}'",
        "'2.5'",
    ]);
    let op = random.choose(&["=", "<", ">", "<=", ">=", "<>", "<=>"]);
    let truth = random.choose(&["TRUE", "FALSE", "(1 = 1)", "(id > 400)", "(NOT 1)"]);
    match random.below(19) {
        18 => format!("doc->'{path}' IN ({number}, {truth})"),
        17 => format!(
            "{}doc->'{path}'{}",
            random.choose(&["", "NOT "]),
            random.choose(&["", " IS TRUE"])
        ),
        16 => format!("doc->'{path}' {op} {truth}"),
        15 => format!("doc->'{path}' {op} {number}"),
        0 | 1 => format!("doc->'{path}' = {number}"),
        2 => format!("doc->'{path}' {op} {text}"),
        3 | 4 => format!("doc->>'{path}' {op} {number}"),
        5 => format!("doc->>'{path}' {op} {text}"),
        6 => format!("doc->>'{path}' IN ({text}, 'Ann')"),
        7 => format!("{number} MEMBER OF (doc->'{path}')"),
        8 => format!("{text} MEMBER OF (doc->'{path}')"),
        9 => format!("JSON_CONTAINS(doc->'{path}', {candidate})"),
        10 => format!("JSON_CONTAINS(doc, {candidate}, '{path}')"),
        11 => format!("JSON_OVERLAPS(doc->'{path}', {candidate})"),
        12 => format!("CAST(doc->'{path}' AS SIGNED) {op} {number}"),
        13 => format!("CAST(doc->>'{path}' AS SIGNED) {op} {number}"),
        _ => {
            format!("JSON_EXTRACT(doc, '{path}') IN ({number}, {text}, CAST({candidate} AS JSON))")
        }
    }
}

fn conditions(random: &mut Random) -> String {
    let (one, other) = (condition(random), condition(random));
    match random.below(5) {
        0 => format!("{one} AND {other}"),
        1 => format!("({one} OR {other})"),
        2 => format!("NOT ({one} AND {other})"),
        _ => one,
    }
}

async fn compare(session: &mut Session, random: &mut Random, rounds: usize) {
    for _ in 0..rounds {
        let condition = conditions(random);
        let asked = |table| format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
        let expected = rows(session, &asked("plain")).await;
        // The second run caches the plan, the third uses it.
        for _ in 0..3 {
            assert_eq!(rows(session, &asked("keyed")).await, expected, "{}", asked("keyed"));
        }
    }
}

async fn both(session: &mut Session, statement: &str) {
    for table in ["plain", "keyed"] {
        run(session, &statement.replace('@', table)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_over_arrays_change_how_documents_are_found_and_nothing_else() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    run(session, "SET sql_mode = ''").await.unwrap();
    run(session, "CREATE TABLE plain (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    let keys = "KEY years ((CAST(doc->'$.year' AS SIGNED ARRAY))), KEY tags ((CAST(doc->'$.tags' AS CHAR(20) ARRAY))), \
                KEY skus ((CAST(doc->'$.items[*].sku' AS CHAR(20) ARRAY)))";
    run(session, &format!("CREATE TABLE keyed (id INT PRIMARY KEY, doc JSON, {keys})"))
        .await
        .unwrap();
    for from in (0..ROWS).step_by(300) {
        let mut insert = "INSERT INTO @ VALUES ".to_owned();
        for id in from..from + 300 {
            let comma = if id == from { "" } else { "," };
            write!(insert, "{comma}({id},{})", document(&mut random)).unwrap();
        }
        both(session, &insert).await;
    }
    compare(session, &mut random, 100).await;
    both(session, "DELETE FROM @ WHERE id % 7 = 3").await;
    both(session, "UPDATE @ SET doc = JSON_SET(doc, '$.year', id % 9) WHERE id % 5 = 1").await;
    run(session, "BEGIN").await.unwrap();
    both(session, "UPDATE @ SET doc = '{\"year\": 5, \"tags\": [\"Ann\", 5]}' WHERE id % 11 = 4")
        .await;
    both(session, "INSERT INTO @ VALUES (-1, '{\"tags\": [[5]], \"year\": \"5abc\"}'), (-2, NULL)")
        .await;
    compare(session, &mut random, 40).await;
    run(session, "COMMIT").await.unwrap();
    // Keys over other paths, for existing rows.
    let later = "ALTER TABLE keyed ADD KEY names ((CAST(JSON_EXTRACT(doc, '$.name') AS CHAR(20) ARRAY))), \
                 ADD KEY deep ((CAST(doc->'$.a.b' AS UNSIGNED ARRAY))), \
                 ADD KEY xs ((CAST(doc->'$.items[*].in[*].x' AS SIGNED ARRAY))), \
                 ADD KEY zeros ((CAST(doc->'$.items[*].\"0\"' AS SIGNED ARRAY))), \
                 ADD KEY twofold ((CAST(doc->'$.items[*][*]' AS SIGNED ARRAY))), \
                 ADD KEY top ((CAST(doc->'$[*]' AS SIGNED ARRAY)))";
    run(session, later).await.unwrap();
    // The existing keys still serve queries while the new ones are built.
    let asked = "EXPLAIN SELECT id FROM keyed WHERE 5 MEMBER OF (doc->'$.tags')";
    let told = rows(session, asked).await;
    assert!(told.contains("tags") && !told.contains("ALL"), "{told}");
    compare(session, &mut random, 40).await;
    run(session, "OPTIMIZE TABLE keyed").await.unwrap();
    compare(session, &mut random, 80).await;
    for (condition, key) in [
        ("5 MEMBER OF (doc->'$.tags')", "tags"),
        ("doc->>'$.year' > 8", "years"),
        ("'Ann' MEMBER OF (doc->'$.items[*].sku')", "skus"),
        ("JSON_CONTAINS(doc->'$.items[*].sku', '[\"Ann\", 5]')", "skus"),
        ("JSON_OVERLAPS('[4, \"Ann\"]', doc->'$.items[*].sku')", "skus"),
        ("5 MEMBER OF (doc->'$.items[*].in[*].x')", "xs"),
        ("5 MEMBER OF (doc->'$.tags[*]')", "tags"),
        ("5 MEMBER OF (doc->'$[*]')", "top"),
        ("JSON_CONTAINS(doc->'$.tags', '[\"Ann\", 5]')", "tags"),
        ("doc->>'$.name' = 'Ann'", "names"),
        ("doc->'$.year' > 8", "years"),
        ("doc->'$.name' < 'Ann'", "names"),
        ("doc->>'$.name' >= 'b'", "names"),
        ("CAST(doc->>'$.a.b' AS SIGNED) = 7", "deep"),
    ] {
        let told = rows(session, &format!("EXPLAIN SELECT id FROM keyed WHERE {condition}")).await;
        assert!(told.contains(key) && !told.contains("ALL"), "{condition}: {told}");
        let told = rows(session, &format!("EXPLAIN SELECT id FROM plain WHERE {condition}")).await;
        assert!(told.contains("ALL"), "{told}");
    }
    let shown = rows(session, "SHOW CREATE TABLE keyed").await;
    assert!(shown.contains("KEY `tags`"), "{shown}");
}

/// Rows written before a path was indexed are found before and after the index is created.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_used_when_all_rows_have_it() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    run(session, "INSERT INTO t VALUES (1, '{\"n\": 1}'), (2, '{\"n\": [1, 2]}')").await.unwrap();
    let asked = "SELECT id FROM t WHERE 1 MEMBER OF (doc->'$.n') ORDER BY id";
    let before = rows(session, asked).await;
    run(session, "CREATE INDEX n ON t ((CAST(doc->'$.n' AS SIGNED ARRAY)))").await.unwrap();
    for _ in 0..3 {
        assert_eq!(rows(session, asked).await, before);
    }
    run(session, "OPTIMIZE TABLE t").await.unwrap();
    for _ in 0..3 {
        assert_eq!(rows(session, asked).await, before);
    }
    run(session, "DROP INDEX n ON t").await.unwrap();
    assert_eq!(rows(session, asked).await, before);
}

/// Orders by two expressions in opposite directions come from a key that has them, walked either way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_of_two_directions_come_from_a_key_that_has_them() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    run(session, "CREATE TABLE plain (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    run(session, "CREATE TABLE keyed (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    let (a, b) = ("CAST(doc->>'$.a' AS SIGNED)", "CAST(doc->>'$.b' AS SIGNED)");
    run(session, &format!("CREATE INDEX both_ways ON keyed (({a}), ({b}) DESC)")).await.unwrap();
    let mut insert = "INSERT INTO @ VALUES ".to_owned();
    for id in 0..3_000 {
        let comma = if id == 0 { "" } else { "," };
        let document = match random.below(20) {
            0 => "{}".to_owned(),
            1 => format!("{{\"b\": {}}}", random.below(50)),
            _ => format!("{{\"a\": {}, \"b\": {}}}", random.below(40), random.below(50)),
        };
        write!(insert, "{comma}({id},'{document}')").unwrap();
    }
    both(session, &insert).await;
    run(session, "OPTIMIZE TABLE keyed").await.unwrap();
    let where_b = format!("WHERE {b} > 20");
    for (order, is_walked) in [
        (format!("{a}, {b} DESC"), true),
        (format!("{a} DESC, {b}"), true),
        (format!("{a}, {b}"), false),
        (format!("{a} DESC, {b} DESC"), false),
    ] {
        for condition in ["", &where_b, "WHERE id % 3 = 1"] {
            let asked =
                |table| format!("SELECT id FROM {table} {condition} ORDER BY {order}, id LIMIT 7");
            let expected = rows(session, &asked("plain")).await;
            for _ in 0..3 {
                assert_eq!(rows(session, &asked("keyed")).await, expected, "{}", asked("keyed"));
            }
        }
        let asked = format!("EXPLAIN SELECT id FROM keyed ORDER BY {order} LIMIT 7");
        let told = rows(session, &asked).await;
        assert_eq!(told.contains("both_ways"), is_walked, "{order}: {told}");
        assert_eq!(told.contains("filesort"), !is_walked, "{order}: {told}");
    }
}

/// What the engine can keep unique within arrays is not what MySQL keeps: such a key is refused, by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unique_key_over_the_members_of_an_array_is_refused() {
    let server = Server::new();
    let session = &mut server.session();
    let key = "UNIQUE KEY only ((CAST(doc->'$.tags' AS UNSIGNED ARRAY)))";
    run(session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    for statement in [
        format!("CREATE TABLE u (id INT PRIMARY KEY, doc JSON, {key})"),
        format!("CREATE TEMPORARY TABLE u (id INT PRIMARY KEY, doc JSON, {key})"),
        format!("ALTER TABLE t ADD {key}"),
        "CREATE UNIQUE INDEX only ON t ((CAST(doc->'$.tags' AS UNSIGNED ARRAY)))".to_owned(),
    ] {
        let refused = run(session, &statement).await.unwrap_err();
        assert_eq!(refused.code.number(), 1235, "{statement}");
        assert!(refused.message.contains("members of an array, as only is"), "{}", refused.message);
    }
    run(session, &format!("ALTER TABLE t ADD {}", key.replace("UNIQUE ", ""))).await.unwrap();
}
