//! An index of the texts at paths changes how LIKE, REGEXP and INSTR of `->>` find documents and nothing else: a table with
//! it and one without answer alike, whatever the documents hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_engine::{Definition, PathDef, Schema};
use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 1_200;
const WORDS: [&str; 16] = [
    "Reef",
    "reef",
    "E\u{301}cole",
    "École",
    "ecole",
    "ﬁsh",
    "fish",
    "Straße",
    "STRASSE",
    "東京都",
    "null",
    "true",
    "5",
    "a\\nb",
    "100%",
    "\u{ffff}",
];

/// The JSON text of a value: mostly a text, sometimes anything that is shown as one.
fn json(random: &mut Random, depth: u64) -> String {
    match random.below(if depth == 0 { 20 } else { 24 }) {
        0..14 => {
            let words: Vec<&str> = (0..random.below(4)).map(|_| random.choose(&WORDS)).collect();
            format!("\"{}\"", words.join(random.choose(&[" ", "", ", ", "\\\""])))
        }
        14 | 15 => random.below(1_000).to_string(),
        16 => format!("-{}.5", random.below(9)),
        17 => random.choose(&["true", "false"]).to_owned(),
        18 => "null".to_owned(),
        19 => "1e300".to_owned(),
        20 => format!("{{\"b\": {}}}", json(random, depth - 1)),
        _ => {
            let values: Vec<String> =
                (0..random.below(4)).map(|_| json(random, depth - 1)).collect();
            format!("[{}]", values.join(", "))
        }
    }
}

fn document(random: &mut Random) -> String {
    let mut members = Vec::new();
    for name in ["title", "text", "a"] {
        if random.below(8) > 0 {
            let value = match (name, random.below(3)) {
                ("a", 1..) => format!("{{\"b\": {}}}", json(random, 1)),
                _ => json(random, 2),
            };
            members.push(format!("\"{name}\": {value}"));
        }
    }
    format!("'{{{}}}'", members.join(", ").replace('\\', "\\\\"))
}

/// A condition on the letters of what is at a path.
fn condition(random: &mut Random) -> String {
    let path = random.choose(&["$.title", "$.text", "$.a.b", "$.\"title\"", "$.a"]);
    let of = match random.below(4) {
        0 => format!("JSON_UNQUOTE(JSON_EXTRACT(doc, '{path}'))"),
        _ => format!("doc->>'{path}'"),
    };
    let part = |random: &mut Random| {
        let word: Vec<char> = random.choose(&WORDS).chars().collect();
        let from = random.below(word.len() as u64) as usize;
        let length = 1 + random.below(4) as usize;
        let part: String = word[from..].iter().take(length).collect();
        part.replace(['\\', '%'], "")
    };
    let (one, other) = (part(random), part(random));
    match random.below(16) {
        0..5 => format!("{of} LIKE '%{one}%'"),
        5 => format!("{of} LIKE '{one}%'"),
        6 => format!("{of} LIKE '%{one}'"),
        7 => format!("{of} LIKE '%{one}%{other}%'"),
        8 => format!("{of} LIKE '{one}_%{other}'"),
        9 => format!("{of} LIKE '%{one}%' COLLATE utf8mb4_general_ci"),
        10 => format!("INSTR({of}, '{one}') > 0"),
        11 => format!("LOCATE('{one}', {of}) >= 1"),
        12 => format!("{of} REGEXP '{one}.*'"),
        13 => format!("{of} LIKE '%0|%%' ESCAPE '|'"),
        14 => {
            format!("{of} LIKE '%{}%'", random.choose(&["u", "l", "0", "e", ", ", "[", "\"", ""]))
        }
        _ => format!("{of} NOT LIKE '%{one}%'"),
    }
}

fn conditions(random: &mut Random) -> String {
    let (one, other) = (condition(random), condition(random));
    match random.below(7) {
        0 => format!("{one} AND {other}"),
        1 => format!("({one} OR {other})"),
        2 => format!("NOT ({one} AND {other})"),
        3 => format!("{one} AND id % 3 = 1"),
        4 => format!("({one} OR n = {})", random.below(50)),
        _ => one,
    }
}

async fn compare(session: &mut Session, random: &mut Random, rounds: usize) {
    for _ in 0..rounds {
        let condition = conditions(random);
        let asked = |table| format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
        let expected = rows(session, &asked("plain")).await;
        // The second time its plan is kept, the third it runs.
        for _ in 0..3 {
            assert_eq!(rows(session, &asked("indexed")).await, expected, "{}", asked("indexed"));
        }
    }
}

async fn both(session: &mut Session, statement: &str) {
    for table in ["plain", "indexed"] {
        run(session, &statement.replace('@', table)).await.unwrap();
    }
}

async fn insert(session: &mut Session, random: &mut Random, (from, to): (u64, u64)) {
    let mut insert = "INSERT INTO @ VALUES ".to_owned();
    for id in from..to {
        let comma = if id == from { "" } else { "," };
        write!(insert, "{comma}({id},{},{})", random.below(50), document(random)).unwrap();
    }
    both(session, &insert).await;
}

/// Indexes the table's paths as the library does it, and waits until they are.
fn index(server: &Server, paths: &[PathDef]) {
    let name = server.database.tables().into_iter().find(|name| name.contains("indexed")).unwrap();
    let schema = server.database.reader().schema(&name).unwrap();
    let schema = Schema { paths: paths.to_vec(), ..Schema::clone(&schema) };
    let definition = Definition::Alter { schema, fills: Vec::new() };
    server.database.define(vec![definition], Vec::new()).unwrap();
    paths.iter().for_each(|path| server.database.wait_for_path(&name, path).unwrap());
}

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_of_texts_changes_how_letters_are_found_and_nothing_else() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    run(session, "SET sql_mode = ''").await.unwrap();
    both(session, "CREATE TABLE @ (id INT PRIMARY KEY, n INT, doc JSON, KEY (n))").await;
    insert(session, &mut random, (0, 300)).await;
    let of = |paths: &[&str]| PathDef::of_texts(2, paths.iter().map(|path| names(path)).collect());
    let texts = [of(&["title"]).unwrap(), of(&["text", "a.b"]).unwrap()];
    index(&server, &texts);
    for from in (300..ROWS).step_by(300) {
        insert(session, &mut random, (from, from + 300)).await;
    }
    compare(session, &mut random, 120).await;
    both(session, "DELETE FROM @ WHERE id % 7 = 3").await;
    both(session, "UPDATE @ SET doc = JSON_SET(doc, '$.title', id) WHERE id % 9 = 1").await;
    run(session, "BEGIN").await.unwrap();
    both(session, "UPDATE @ SET doc = '{\"title\": \"Reef life\", \"text\": 5}' WHERE id % 11 = 4")
        .await;
    both(session, "INSERT INTO @ VALUES (-1, 1, '{\"title\": [\"Reef\"]}'), (-2, 2, NULL)").await;
    compare(session, &mut random, 40).await;
    run(session, "COMMIT").await.unwrap();
    run(session, "OPTIMIZE TABLE indexed").await.unwrap();
    compare(session, &mut random, 60).await;
    // Beside an index of the values, which has what texts begin with.
    let values = PathDef::new(2, names("title"));
    index(&server, &[&texts[..], &[values]].concat());
    compare(session, &mut random, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_left_by_the_letters_of_their_texts() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE indexed (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    let mut insert = "INSERT INTO indexed VALUES (1000, '{\"title\": 5}')".to_owned();
    for id in 0..500 {
        write!(insert, ", ({id}, '{{\"title\": \"word{id} Reef\", \"n\": {id}}}')").unwrap();
    }
    run(session, &insert).await.unwrap();
    index(&server, &[PathDef::of_texts(1, vec![names("title")]).unwrap()]);
    for condition in [
        "doc->>'$.title' LIKE '%word77 %'",
        "JSON_UNQUOTE(JSON_EXTRACT(doc, '$.title')) LIKE '%rd77%eef'",
        "INSTR(doc->>'$.title', 'word77 ') > 0",
        "doc->>'$.title' REGEXP 'word77 R'",
        "id > 3 AND doc->>'$.title' LIKE '%word77 %'",
    ] {
        let told =
            rows(session, &format!("EXPLAIN SELECT id FROM indexed WHERE {condition}")).await;
        assert!(told.contains("texts of doc->'$.title'"), "{condition}: {told}");
        let found = rows(session, &format!("SELECT id FROM indexed WHERE {condition}")).await;
        assert_eq!(found, "77", "{condition}");
    }
    // The number is read too, as any value that is no text.
    let asked = "EXPLAIN SELECT id FROM indexed WHERE doc->>'$.title' LIKE '%word77 %'";
    let told = run(session, asked).await.unwrap();
    let answer = told.sets.first().unwrap();
    let place = answer.names().iter().position(|name| *name == "rows").unwrap();
    assert_eq!(answer.rows[0][place], "2", "{}", answer.text());
    let found = rows(session, "SELECT id FROM indexed WHERE doc->>'$.title' LIKE '5%'").await;
    assert_eq!(found, "1000");
    let asked = "EXPLAIN SELECT id FROM indexed WHERE doc->>'$.other' LIKE '%word77 %'";
    let told = rows(session, asked).await;
    assert!(told.contains("ALL"), "{told}");
}
