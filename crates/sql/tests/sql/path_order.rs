//! ORDER BY the value at a path of documents, with a LIMIT: the index of the path gives the rows that sorting all rows
//! gives, whatever the documents have there, and EXPLAIN tells when it is used.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 600;
/// The paths, and the names of their keys.
const PATHS: [(&str, &str); 5] =
    [("n", "numbers"), ("t", "texts"), ("s", "spaced"), ("m", "mixed"), ("a.b", "deep")];

/// A document. `n` has numbers, null, texts and truths, `t` texts, `s` texts with spaces and characters before them, `m`
/// anything, `a.b` numbers, now and then within arrays.
fn document(random: &mut Random) -> String {
    let number = |random: &mut Random| match random.below(3) {
        0 => format!("{}.5", random.below(20)),
        1 => format!("-{}", random.below(20)),
        _ => random.below(20).to_string(),
    };
    let mut members = Vec::new();
    let n = match random.below(12) {
        0 => "null".to_owned(),
        1 => random.choose(&["true", "false"]).to_owned(),
        2 => random.choose(&["\"x\"", "\"5\"", "\"\""]).to_owned(),
        _ => number(random),
    };
    members.push(("n", n));
    let text = random.choose(&["Ann", "ann", "Änn", "Anna", "10", "9", "", "true"]);
    members.push(("t", format!("\"{text}\"")));
    let spaced = random.choose(&["a", "a ", "a\\t", "a\\tb", "b", "ab"]);
    members.push(("s", format!("\"{spaced}\"")));
    let mixed = random.choose(&["[]", "[3, 1]", "{}", "{\"x\": 1}", "7", "\"7\"", "null"]);
    members.push(("m", mixed.to_owned()));
    let deep = number(random);
    members.push(match random.below(6) {
        0 => ("a", format!("[{{\"b\": {deep}}}, {{\"b\": 3}}]")),
        _ => ("a", format!("{{\"b\": {deep}}}")),
    });
    let kept = members.iter().filter(|_| random.below(10) > 0);
    let kept: Vec<String> = kept.map(|(name, value)| format!("\"{name}\": {value}")).collect();
    match random.below(40) {
        0 => "'7'".to_owned(),
        1 => format!("'[{{{}}}]'", kept.join(", ").replace('\\', "\\\\")),
        2 => "NULL".to_owned(),
        _ => format!("'{{{}}}'", kept.join(", ").replace('\\', "\\\\")),
    }
}

async fn both(session: &mut Session, statement: &str) {
    for table in ["plain", "keyed"] {
        run(session, &statement.replace('@', table)).await.unwrap();
    }
}

async fn filled(session: &mut Session, random: &mut Random) {
    run(session, "CREATE TABLE plain (id INT PRIMARY KEY, doc JSON, n INT)").await.unwrap();
    let keys = PATHS
        .map(|(path, name)| format!(", KEY {name} ((CAST(doc->'$.{path}' AS CHAR(20) ARRAY)))"));
    let keys = keys.concat();
    let made = format!("CREATE TABLE keyed (id INT PRIMARY KEY, doc JSON, n INT{keys})");
    run(session, &made).await.unwrap();
    // Several segments, and rows of them that were changed or deleted.
    for from in (0..ROWS).step_by(100) {
        let values: Vec<String> = (from..from + 100)
            .map(|id| format!("({id}, {}, {})", document(random), random.below(4)))
            .collect();
        both(session, &format!("INSERT INTO @ VALUES {}", values.join(", "))).await;
    }
    for _ in 0..30 {
        let (id, document) = (random.below(ROWS), document(random));
        both(session, &format!("UPDATE @ SET doc = {document} WHERE id = {id}")).await;
        both(session, &format!("DELETE FROM @ WHERE id = {}", random.below(ROWS))).await;
    }
}

fn condition(random: &mut Random, path: &str) -> String {
    let number = random.below(12);
    match random.below(8) {
        0 => String::new(),
        1 => format!("WHERE n = {}", random.below(4)),
        2 => format!("WHERE doc->'$.{path}' > {number}"),
        3 => format!("WHERE doc->'$.{path}' IS NOT NULL AND n < 3"),
        4 => format!("WHERE doc->>'$.{path}' >= 'A' AND n <> 1"),
        5 => format!("WHERE n > 0 AND doc->>'$.{path}' < {number}"),
        6 => "WHERE doc->>'$.t' = 'Ann'".to_owned(),
        _ => format!("WHERE doc->'$.{path}' < {number} OR n = 2"),
    }
}

async fn explained(session: &mut Session, statement: &str) -> Vec<String> {
    run(session, &format!("EXPLAIN {statement}")).await.unwrap().sets[0].rows[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_of_a_path_has_the_order_of_a_sort() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    run(session, "SET sql_mode = ''").await.unwrap();
    filled(session, &mut random).await;
    let mut used = [0; PATHS.len()];
    for _ in 0..300 {
        let place = random.below(PATHS.len() as u64) as usize;
        let (path, key) = PATHS[place];
        let arrow = random.choose(&["->", "->>"]);
        let direction = random.choose(&["", " DESC", " DESC"]);
        let condition = condition(&mut random, path);
        let shown = random.choose(&["id", "id, doc->'$.n' AS v", "doc, id"]);
        let (limit, offset) = (1 + random.below(12), random.below(3) * random.below(8));
        let mut asked = String::new();
        write!(asked, "SELECT {shown} FROM @ {condition} ORDER BY doc{arrow}'$.{path}'{direction}")
            .unwrap();
        write!(asked, ", id LIMIT {limit} OFFSET {offset}").unwrap();
        let expected = rows(session, &asked.replace('@', "plain")).await;
        let asked = asked.replace('@', "keyed");
        for _ in 0..3 {
            assert_eq!(rows(session, &asked).await, expected, "{asked}");
        }
        let told = explained(session, &asked).await.join(" ");
        used[place] += u32::from(told.contains(key) && !told.contains("filesort"));
    }
    // What is mixed with arrays is sorted; texts with spaces only sometimes are in order.
    let [n, t, _, m, deep] = used;
    assert!(n > 5 && t > 10 && m == 0 && deep > 10, "{used:?}");
}

#[tokio::test]
async fn explain_tells_what_orders_by_a_path_read() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON, KEY years ((CAST(doc->'$.year' AS SIGNED ARRAY))))")
        .await
        .unwrap();
    let values = (0..500).map(|id| format!("({id}, '{{\"year\": {}}}')", 1_900 + id * 7 % 100));
    let values = values.collect::<Vec<_>>().join(", ");
    run(session, &format!("INSERT INTO t VALUES {values}")).await.unwrap();
    let last = "SELECT id FROM t ORDER BY doc->'$.year' DESC LIMIT 3";
    let told = explained(session, last).await;
    assert_eq!(told[4], "index", "{told:?}");
    assert_eq!((told[6].as_str(), told[9].as_str()), ("years", "3"), "{told:?}");
    assert!(!told[11].contains("filesort"), "{told:?}");
    for _ in 0..3 {
        // 7 * 57 = 399, 7 * 157, …
        assert_eq!(rows(session, last).await, "57\n157\n257");
    }
    // Rows without a year come first: the index does not have them.
    let told = explained(session, "SELECT id FROM t ORDER BY doc->'$.year' LIMIT 3").await;
    assert!(told[11].contains("filesort"), "{told:?}");
    let first = "SELECT id FROM t WHERE doc->'$.year' > 1950 ORDER BY doc->'$.year' LIMIT 3";
    let told = explained(session, first).await;
    assert!(!told[11].contains("filesort") && told[11].contains("Using where"), "{told:?}");
    run(session, "INSERT INTO t VALUES (1000, '{\"year\": [3000]}')").await.unwrap();
    let told = explained(session, last).await;
    assert!(told[11].contains("filesort"), "{told:?}");
    for _ in 0..3 {
        assert_eq!(rows(session, last).await, "1000\n57\n157");
    }
}
