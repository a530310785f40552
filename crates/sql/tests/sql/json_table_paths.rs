//! Conditions on columns of JSON_TABLE, where indexes of paths leave out documents: the rows are those that all documents
//! give, and EXPLAIN tells which index was asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 400;
const KEYS: [(&str, &str); 4] =
    [("tags", "tags"), ("items.sku", "skus"), ("items.price", "prices"), ("a.list.n", "numbers")];

fn scalar(random: &mut Random) -> String {
    match random.below(14) {
        0 => "null".to_owned(),
        1 => random.choose(&["true", "false"]).to_owned(),
        2 => format!("{}.{}", random.below(6), random.choose(&["4", "5", "75"])),
        3..6 => random.below(6).to_string(),
        6 => format!("\"{}\"", random.below(6)),
        7 => random.choose(&["[]", "{}", "[1]", "{\"sku\": \"x\"}"]).to_owned(),
        _ => {
            let text = random.choose(&["x", "X", "x ", "xx  ", "ä", "A", "", "5a", "１", "true"]);
            format!("\"{text}\"")
        }
    }
}

fn array(random: &mut Random, mut of: impl FnMut(&mut Random) -> String) -> String {
    let values: Vec<String> = (0..random.below(4)).map(|_| of(random)).collect();
    format!("[{}]", values.join(", "))
}

fn document(random: &mut Random) -> String {
    if random.below(30) == 0 {
        return random.choose(&["NULL", "'5'", "'[\"x\"]'"]).to_owned();
    }
    let tags = match random.below(6) {
        0 => scalar(random),
        1 => array(random, |random| array(random, scalar)),
        _ => array(random, scalar),
    };
    let item = |random: &mut Random| {
        format!("{{\"sku\": {}, \"price\": {}}}", scalar(random), scalar(random))
    };
    let items = if random.below(4) == 0 { item(random) } else { array(random, item) };
    let list = array(random, |random| format!("{{\"n\": {}}}", scalar(random)));
    format!("'{{\"tags\": {tags}, \"items\": {items}, \"a\": {{\"list\": {list}}}}}'")
}

async fn filled(session: &mut Session, random: &mut Random) {
    run(session, "CREATE TABLE plain (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    let keys = KEYS
        .map(|(path, name)| format!(", KEY {name} ((CAST(doc->'$.{path}' AS CHAR(20) ARRAY)))"));
    let made = format!("CREATE TABLE keyed (id INT PRIMARY KEY, doc JSON{})", keys.concat());
    run(session, &made).await.unwrap();
    for from in (0..ROWS).step_by(100) {
        let values: Vec<String> =
            (from..from + 100).map(|id| format!("({id}, {})", document(random))).collect();
        for table in ["plain", "keyed"] {
            let insert = format!("INSERT INTO {table} VALUES {}", values.join(", "));
            run(session, &insert).await.unwrap();
        }
    }
}

/// A JSON_TABLE of `t.doc` with a column `v`, and the key that a condition on it may use.
fn table(random: &mut Random) -> (String, &'static str) {
    let kind = random.choose(&[
        "VARCHAR(50)",
        "VARCHAR(2)",
        "CHAR(5)",
        "TEXT",
        "INT",
        "BIGINT UNSIGNED",
        "DECIMAL(5,1)",
        "DOUBLE",
        "FLOAT",
        "TINYINT",
    ]);
    let otherwise = match random.below(8) {
        0 if kind.contains("CHAR") => " DEFAULT '\"x\"' ON EMPTY",
        1 if kind.contains("CHAR") => " DEFAULT '\"x\"' ON ERROR",
        2 => " DEFAULT '5' ON EMPTY DEFAULT '1' ON ERROR",
        3 => " NULL ON EMPTY NULL ON ERROR",
        _ => "",
    };
    let (rows, key) = random.choose(&[
        ("t.doc, '$.tags[*]' COLUMNS (v @ PATH '$'", "tags"),
        ("t.doc, '$.tags' COLUMNS (v @ PATH '$'", "tags"),
        ("t.doc, '$.tags[*]' COLUMNS (v @ PATH '$[*]'", "tags"),
        ("t.doc, '$.tags[0 to 1]' COLUMNS (n FOR ORDINALITY, v @ PATH '$'", "tags"),
        ("t.doc->'$.tags', '$[*]' COLUMNS (v @ PATH '$'", "tags"),
        ("t.doc, '$.items[*]' COLUMNS (n INT PATH '$.price', v @ PATH '$.sku'", "skus"),
        ("t.doc, '$.items[*]' COLUMNS (v @ PATH '$.price'", "prices"),
        ("t.doc, '$' COLUMNS (n JSON PATH '$.tags', NESTED PATH '$.items[*]' COLUMNS (v @ PATH '$.sku')", "skus"),
        ("t.doc, '$.a' COLUMNS (NESTED PATH '$.list[*]' COLUMNS (v @ PATH '$.n')", "numbers"),
        ("t.doc, '$.*' COLUMNS (v @ PATH '$.list[0].n'", "numbers"),
    ]);
    let column = format!("{kind} PATH");
    let made = rows.replace("@ PATH", &column);
    // The clauses stand behind the path of the column.
    let made = match otherwise {
        "" => made,
        clauses => {
            let at = made.rfind('\'').unwrap() + 1;
            format!("{}{clauses}{}", &made[..at], &made[at..])
        }
    };
    (format!("JSON_TABLE({made})) j"), key)
}

fn condition(random: &mut Random) -> String {
    let text = random.choose(&["x", "X", "xx", "Ä", "5", "5a", "1", "", "true"]);
    let number = random.choose(&["0", "1", "3", "4.5", "2.75", "-1"]);
    match random.below(10) {
        0..3 => format!("j.v = '{text}'"),
        3 => format!("j.v IN ('{text}', 'xx  ', NULL)"),
        4 => format!("'{text}' COLLATE utf8mb4_bin = j.v"),
        5 => format!("j.v = {number}"),
        6 => format!("j.v < {number}"),
        7 => format!("{number} < j.v AND j.v < 5"),
        8 => format!("j.v IN ({number}, 5)"),
        _ => format!("(j.v = '{text}' OR j.v IS NULL)"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_of_paths_leave_out_only_documents_without_the_value() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        let random = &mut Random::seeded();
        run(session, "SET sql_mode = ''").await.unwrap();
        filled(session, random).await;
        let mut used = 0;
        for _ in 0..250 {
            let ((rows_of, key), condition) = (table(random), condition(random));
            let join = random.choose(&[",", "JOIN", "LEFT JOIN"]);
            let on = if join == "LEFT JOIN" { " ON TRUE" } else { "" };
            let more = random.choose(&["", "", " AND t.id > 100"]);
            let asked = format!(
                "SELECT t.id, j.v FROM @ t {join} {rows_of}{on} WHERE {condition}{more} ORDER BY 1, 2"
            );
            let expected = rows(session, &asked.replace('@', "plain")).await;
            let asked = asked.replace('@', "keyed");
            assert_eq!(rows(session, &asked).await, expected, "{asked}");
            let told = run(session, &format!("EXPLAIN {asked}")).await.unwrap();
            used += u32::from(told.sets[0].rows.iter().any(|row| row[6] == key));
        }
        assert!(used > 10, "{used}");
    }
}

#[tokio::test]
async fn rows_that_raise_errors_are_made() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON, KEY tags ((CAST(doc->'$.tags' AS CHAR(20) ARRAY))))")
        .await
        .unwrap();
    run(
        session,
        "INSERT INTO t VALUES (1, '{\"tags\": [\"x\"]}'), (2, '{\"tags\": [\"too long\"]}')",
    )
    .await
    .unwrap();
    let asked = |clause: &str| {
        format!(
            "SELECT t.id FROM t, JSON_TABLE(t.doc, '$.tags[*]' COLUMNS (v VARCHAR(3) PATH '$' {clause})) j \
             WHERE j.v = 'X'"
        )
    };
    assert_eq!(rows(session, &asked("")).await, "1");
    let told = run(session, &format!("EXPLAIN {}", asked(""))).await.unwrap();
    assert!(told.sets[0].rows.iter().any(|row| row[6] == "tags"), "{:?}", told.sets[0].rows);
    assert!(run(session, &asked("ERROR ON ERROR")).await.is_err());
    assert_eq!(rows(session, &asked("DEFAULT '\"x\"' ON ERROR")).await, "1\n2");
    // What a transaction wrote is found too.
    run(session, "BEGIN").await.unwrap();
    run(session, "INSERT INTO t VALUES (3, '{\"tags\": [\"x\"]}')").await.unwrap();
    assert_eq!(rows(session, &format!("{} ORDER BY 1", asked(""))).await, "1\n3");
    run(session, "ROLLBACK").await.unwrap();
}
