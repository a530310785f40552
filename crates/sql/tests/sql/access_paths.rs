//! Every access path returns the same rows in the same order: statements over random tables, indexes and data run
//! without a hint, with some keys forced, and with all keys ignored, which leaves a scan. What a text index finds is
//! compared with a LIKE that no index answers.
//!
//! `REMORA_STATEMENTS` sets the total number of statements, each of which runs once for each of its access paths.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;

use crate::support::random::Random;
use crate::support::{Server, rows, run};
use remora_sql::Session;

const STATEMENTS: usize = 400;
const TABLES: usize = 2;
const ROWS: u64 = 4_000;

/// The columns that keys are over, with their types.
const COLUMNS: [(&str, &str); 21] = [
    ("a", "INT"),
    ("b", "TINYINT"),
    ("c", "BIGINT UNSIGNED"),
    ("d", "DATETIME"),
    ("e", "DECIMAL(8,2)"),
    ("f", "VARCHAR(20) COLLATE utf8mb4_0900_bin"),
    ("g", "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci"),
    ("h", "CHAR(6) COLLATE utf8mb4_general_ci"),
    ("i", "DATE"),
    ("k", "SMALLINT"),
    ("l", "ENUM('mid', 'low', 'top', 'high')"),
    ("m", "TIMESTAMP NULL"),
    ("n", "TIME"),
    ("o", "DOUBLE"),
    ("p", "BINARY(4)"),
    ("q", "SET('z', 'x', 'y')"),
    // Keys over these have prefixes, since segments do not hold them.
    ("s", "BLOB"),
    ("v", "VARCHAR(300) COLLATE utf8mb4_0900_ai_ci"),
    ("w", "TEXT COLLATE utf8mb4_general_ci"),
    ("z", "TEXT COLLATE utf8mb4_0900_bin"),
    ("u", "INT"),
];

/// The columns and the keys that every table has. The keys continue the numbers of the random ones.
const OTHERS: &str = "r TEXT, doc JSON, FULLTEXT KEY (r)";
const KEYS: [&str; 12] = [
    "KEY @ (b, i, k)",
    "UNIQUE KEY @ (u)",
    "KEY @ ((LOWER(f)), a)",
    "KEY @ ((CAST(doc->>'$.y' AS SIGNED)) DESC)",
    "KEY @ ((CAST(doc->'$.tags' AS UNSIGNED ARRAY)))",
    "KEY @ (w(20), a)",
    "KEY @ (b, v(30) DESC)",
    "KEY @ (z(12))",
    "KEY @ (z(30), k)",
    "KEY @ (s(40))",
    "KEY @ (a)",
    "KEY @ (k)",
];
/// The access paths of a statement beside a scan.
const PATHS: usize = 4;
/// Encloses the column and the word of a text condition until it is known what answers it.
const TEXT: char = '\u{a7}';

/// Columns in which equal values are written identically.
const PLAIN: [&str; 15] =
    ["a", "b", "c", "d", "e", "f", "i", "k", "m", "n", "o", "p", "s", "u", "z"];

/// Columns with a defined order; the labels of `l` and `q` do not ascend like their numbers.
const ORDERED: [&str; 17] =
    ["a", "b", "c", "d", "e", "f", "i", "k", "l", "m", "n", "o", "p", "q", "s", "u", "z"];

fn value(random: &mut Random, column: &str) -> String {
    match column {
        "a" => (random.below(300) as i64 - 150).to_string(),
        // Most rows have the same value.
        "b" => (if random.below(8) > 0 { 1 } else { random.below(5) }).to_string(),
        "c" => (random.below(40) * 3_000_000_000).to_string(),
        "d" => {
            let (day, hour) = (1 + random.below(28), random.below(24));
            format!("'2026-0{}-{day:02} {hour:02}:30:00'", 1 + random.below(9))
        }
        "e" => format!("{}.{:02}", random.below(60), random.below(4) * 25),
        "f" => format!("'n{}'", random.below(120)),
        "g" => format!("'{}{}'", random.choose(&["Ki", "ki", "KÍ", "kj"]), random.below(50)),
        "h" => format!("'{}'", random.choose(&["ab", "AB", "b", "b ", "c", "é", "E"])),
        "i" => format!("'2026-03-{:02}'", 1 + random.below(28)),
        "l" => format!("'{}'", random.choose(&["mid", "low", "top", "high"])),
        "m" => format!("'2026-02-{:02} {:02}:00:07'", 1 + random.below(28), random.below(24)),
        "n" => format!(
            "'{}{}:{:02}:00'",
            random.choose(&["", "-"]),
            random.below(30),
            random.below(60)
        ),
        "o" => random.choose(&["-1e300", "-2.5", "0e0", "0.1", "7", "1e-9", "3e12"]).to_owned(),
        "p" => format!("X'0{}FF000{}'", random.below(3), random.below(9)),
        "q" => format!("'{}'", random.choose(&["", "x", "z,x", "x,y", "z,x,y", "y"])),
        "s" | "v" | "w" | "z" => long(random),
        "u" => (random.below(ROWS) * 3 + random.below(3)).to_string(),
        _ => random.below(2_000).to_string(),
    }
}

/// A text whose prefixes of several lengths are those of others. Some differ in characters that are equal to others, or
/// to several, in a collation.
fn long(random: &mut Random) -> String {
    let host = random.choose(&["", "Ab ", "https://example.com/", "HTTPS://EXAMPLE.COM/"]);
    let path = random.choose(&["", "stra\u{df}e/", "strasse/", "STRASSE/", "e\u{301}/", "\u{e9}/"]);
    let space = random.choose(&["", "", "  "]);
    let rest =
        random.choose(&["", "/a/very/long/path/that/no/prefix/of/forty/characters/contains"]);
    format!("'{host}{path}{}{rest}{space}'", random.below(12))
}

fn column(random: &mut Random) -> &'static str {
    COLUMNS[random.below(COLUMNS.len() as u64) as usize].0
}

/// A text of which each word is found by itself.
fn text(random: &mut Random) -> String {
    let words = (0..random.below(5)).map(|_| word(random));
    format!("'a {}'", words.collect::<Vec<_>>().join(" "))
}

/// A word that is no part of another. Some are frequent.
fn word(random: &mut Random) -> String {
    let bound = random.choose(&[4, 90]);
    format!("w{:02}x", random.below(bound))
}

fn document(random: &mut Random) -> String {
    match random.below(9) {
        0 => "{}".to_owned(),
        // A JSON null is the text 'null' for the key over y, which strict mode refuses as a number.
        1 => "{\"tags\": 7}".to_owned(),
        _ => format!(
            "{{\"y\": {}, \"tags\": [{}, {}]}}",
            random.below(60),
            random.below(40),
            random.below(40)
        ),
    }
}

fn comparison(random: &mut Random, of: &str) -> String {
    let column = column(random);
    let (one, other) = (value(random, column), value(random, column));
    let number = random.below(60);
    match random.below(16) {
        9 | 10 => format!("{TEXT}{of}r{TEXT}{}{TEXT}", word(random)),
        11 => format!("{of}u = {}", value(random, "u")),
        12 => format!("LOWER({of}f) = 'n{number}'"),
        13 => {
            let comparison = random.choose(&["=", ">", "<="]);
            format!("CAST({of}doc->>'$.y' AS SIGNED) {comparison} {number}")
        }
        15 => {
            let column = random.choose(&["v", "w", "z"]);
            let pattern =
                random.choose(&["https://example.com/s%", "ab %", "stra%1%", "%9", "HTTPS%/1"]);
            format!("{of}{column} LIKE '{pattern}'")
        }
        14 => format!("{number} MEMBER OF({of}doc->'$.tags')"),
        0..4 => format!("{of}{column} = {one}"),
        4 => format!("{of}{column} IN ({one}, {other})"),
        5 => format!("{of}{column} BETWEEN {one} AND {other}"),
        6 => format!("{of}{column} IS NULL"),
        7 => format!("{of}f LIKE 'n{}%'", random.below(12)),
        _ => format!("{of}{column} {} {one}", random.choose(&["<", ">=", "<>"])),
    }
}

fn condition(random: &mut Random, of: &str) -> String {
    match random.below(8) {
        // Both keys find too many to be used alone.
        6 => {
            let (from, below) = (random.below(270) as i64 - 150, random.below(300));
            format!("{of}a BETWEEN {from} AND {} AND {of}k < {below}", from + 30)
        }
        7 => format!("{of}k > {} AND {}", value(random, "k"), comparison(random, of)),
        0..3 => comparison(random, of),
        3 => format!("{} AND {}", comparison(random, of), comparison(random, of)),
        4 => format!("({} OR {})", comparison(random, of), comparison(random, of)),
        _ => format!("{of}id < {} AND {}", random.below(ROWS), comparison(random, of)),
    }
}

/// A statement, with `@` in place of the table and its hint.
fn statement(random: &mut Random) -> String {
    let filter = condition(random, "");
    let way = random.choose(&["", " DESC"]);
    let plain = random.choose(&PLAIN);
    let ordered = random.choose(&ORDERED);
    let (id, limit) = (random.below(ROWS), 1 + random.below(30));
    match random.below(14) {
        0 => format!("SELECT COUNT(*), SUM(a), MIN(d), MAX(c) FROM t @ WHERE {filter}"),
        1 => format!("SELECT id, {plain} FROM t @ WHERE {filter} ORDER BY id{way}"),
        2 => format!("SELECT DISTINCT {ordered} FROM t @ WHERE {filter} ORDER BY {ordered}{way}"),
        3 => format!(
            "SELECT {ordered}, COUNT(*), MIN(id) FROM t @ WHERE {filter} GROUP BY {ordered} ORDER BY {ordered}"
        ),
        4 => format!("SELECT MIN({plain}), MAX({plain}) FROM t @"),
        5 => format!("SELECT MIN({plain}), MAX(id) FROM t @ WHERE {filter}"),
        6 => {
            let by = random.choose(&PLAIN);
            format!(
                "SELECT x.id, y.id FROM t x @ JOIN t y @ ON y.{by} = x.{by} WHERE x.id BETWEEN {id} AND {} AND {} \
                 ORDER BY x.id, y.id LIMIT 60",
                id + 4,
                condition(random, "y.")
            )
        }
        7 => format!(
            "SELECT id FROM t @ WHERE {filter} AND a IN (SELECT a FROM t @ WHERE id < {}) ORDER BY id",
            random.below(40)
        ),
        8 => {
            let from = random.below(300) as i64 - 150;
            format!(
                "SELECT a, id FROM t @ WHERE (a, id) > ({from}, {id}) ORDER BY a, id LIMIT {limit}"
            )
        }
        9 => {
            let (one, other) = (value(random, plain), value(random, plain));
            let filter = random.choose(&["1 = 1", "b = 1", "# >= @1", "# BETWEEN @1 AND @2"]);
            let filter = filter.replace('#', plain).replace("@1", &one).replace("@2", &other);
            format!(
                "SELECT DISTINCT {plain} FROM t @ WHERE {filter} ORDER BY {plain}{way} LIMIT {limit}"
            )
        }
        10 => {
            let filter = random.choose(&["", " WHERE b = 1", " WHERE b IN (0, 1)"]);
            let by = random.choose(&PLAIN);
            let what = random.choose(&["COUNT(*)", "MIN(#), MAX(#)", "MAX(#), COUNT(*)"]);
            let what = what.replace('#', by);
            let limit = random.choose(&["", " LIMIT 9"]);
            format!(
                "SELECT {ordered}, {what} FROM t @{filter} GROUP BY {ordered} ORDER BY {ordered}{way}{limit}"
            )
        }
        11 => of_several(random, way),
        _ => {
            let second = random.choose(&["", "", "b, ", "d, "]);
            let by = format!("{plain}, {second}id").replace(',', &format!("{way},"));
            let (filter, offset) = match random.below(3) {
                0 => (String::new(), random.choose(&[0, 7, 1_500])),
                _ => (format!(" WHERE {filter}"), random.choose(&[0, 0, 20])),
            };
            format!(
                "SELECT id, {plain} FROM t @{filter} ORDER BY {by}{way} LIMIT {limit} OFFSET {offset}"
            )
        }
    }
}

/// DISTINCT or GROUP BY of several columns.
fn of_several(random: &mut Random, way: &str) -> String {
    let by = random.choose(&["b, i", "i, b", "b, i, k", "k, i"]);
    let ordered = format!("{by}{way}").replace(',', &format!("{way},"));
    let limit = random.choose(&["", " LIMIT 9"]);
    match random.below(3) {
        0 => format!("SELECT DISTINCT {by} FROM t @ ORDER BY {ordered}{limit}"),
        1 => {
            format!("SELECT {by}, MAX(k) FROM t @ GROUP BY {by} ORDER BY {ordered}{limit}")
        }
        _ => format!("SELECT COUNT(*), {by} FROM t @ GROUP BY i, {by} ORDER BY {ordered}{limit}"),
    }
}

/// Some random keys of one to three columns.
fn keys(random: &mut Random) -> Vec<String> {
    let count = 3 + random.below(3);
    let key = |number| {
        let mut columns: Vec<&str> = Vec::new();
        for _ in 0..=random.below(3) {
            let column = column(random);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let parts = columns.iter().map(|column| {
            let prefix = match *column {
                "g" => random.choose(&["", "(3)"]),
                "v" => random.choose(&["", "(10)", "(40)"]),
                "s" | "w" | "z" => random.choose(&["(4)", "(10)", "(20)", "(191)"]),
                _ => "",
            };
            format!("{column}{prefix}{}", random.choose(&["", " DESC"]))
        });
        format!("KEY k{number} ({})", parts.collect::<Vec<_>>().join(", "))
    };
    let mut all: Vec<String> = (0..count).map(key).collect();
    for key in KEYS {
        all.push(key.replace('@', &format!("k{}", all.len())));
    }
    all
}

/// A statement with its text conditions as MATCH or LIKE, or as LIKE of an expression, which no index answers.
fn with_texts(statement: &str, form: usize) -> String {
    let mut pieces = statement.split(TEXT);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    while let (Some(column), Some(word)) = (pieces.next(), pieces.next()) {
        whole += &match form {
            0 => format!("CONCAT({column}, '') LIKE '%{word}%'"),
            1 => format!("{column} LIKE '%{word}%'"),
            _ => format!("MATCH({column}) AGAINST('+{word}' IN BOOLEAN MODE)"),
        };
        whole += pieces.next().unwrap_or_default();
    }
    whole
}

async fn insert(session: &mut Session, random: &mut Random, from: u64, to: u64) {
    let mut statement = "REPLACE INTO t VALUES ".to_owned();
    for id in from..to {
        let mut values = COLUMNS.map(|(column, _)| value(random, column)).to_vec();
        values[COLUMNS.len() - 1] = (id * 3 + random.below(3)).to_string();
        values.extend([text(random), format!("'{}'", document(random))]);
        if random.below(6) == 0 {
            let at = random.below(values.len() as u64) as usize;
            values[at] = "NULL".to_owned();
        }
        let comma = if id == from { "" } else { "," };
        write!(statement, "{comma}({id},{})", values.join(",")).unwrap();
    }
    run(session, &statement).await.unwrap();
}

async fn change(session: &mut Session, random: &mut Random) {
    for _ in 0..6 {
        let id = random.below(ROWS);
        let (column, value) = match (random.below(8), column(random)) {
            (0, _) => ("r", text(random)),
            (1, _) => ("doc", format!("'{}'", document(random))),
            // It is unique.
            (_, "u") => ("u", format!("id * 3 + {}", random.below(3))),
            (_, column) => (column, value(random, column)),
        };
        let update =
            format!("UPDATE t SET {column} = {value} WHERE id BETWEEN {id} AND {}", id + 40);
        run(session, &update).await.unwrap();
        let id = random.below(ROWS);
        run(session, &format!("DELETE FROM t WHERE id BETWEEN {id} AND {}", id + 25))
            .await
            .unwrap();
        insert(session, random, id, id + 3).await;
    }
}

async fn compare(session: &mut Session, random: &mut Random, keys: usize, statements: usize) {
    let names: Vec<String> = (0..keys).map(|number| format!("k{number}")).collect();
    let all = format!("IGNORE INDEX (PRIMARY, {})", names.join(", "));
    for _ in 0..statements {
        let statement = statement(random);
        let scanned = with_texts(&statement.replace('@', &all), 0);
        let expected = run(session, &scanned).await;
        let expected = expected.unwrap_or_else(|error| panic!("{scanned}: {error}"));
        let expected = expected.sets[0].text();
        let mut hints = vec!["".to_owned()];
        for _ in 1..PATHS {
            hints.push(match random.below(7) {
                0 => "USE INDEX (PRIMARY)".to_owned(),
                1 => "FORCE INDEX (PRIMARY)".to_owned(),
                2 => format!(
                    "FORCE INDEX (k{}, k{})",
                    keys - 1 - random.below(2) as usize,
                    random.below(keys as u64)
                ),
                _ => format!("FORCE INDEX (k{})", random.below(keys as u64)),
            });
        }
        for (number, hint) in hints.into_iter().enumerate() {
            let hinted = with_texts(&statement.replace('@', &hint), 1 + number % 2);
            let found = rows(session, &hinted).await;
            if found != expected {
                let explained = rows(session, &format!("EXPLAIN {hinted}")).await;
                panic!("{hinted}\n{found}\n  instead of\n{expected}\n{explained}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_access_path_gives_the_same_rows() {
    let mut random = Random::seeded();
    let statements = std::env::var("REMORA_STATEMENTS").ok().and_then(|it| it.parse().ok());
    let statements = statements.unwrap_or(STATEMENTS) / (TABLES * 5);
    for _ in 0..TABLES {
        let directory = tempfile::tempdir().unwrap();
        let keys = keys(&mut random);
        {
            let server = Server::at(directory.path());
            let mut session = server.session();
            let columns = COLUMNS.map(|(name, declared)| format!("{name} {declared}")).join(", ");
            let table = format!(
                "CREATE TABLE t (id INT PRIMARY KEY, {columns}, {OTHERS}, {})",
                keys.join(", ")
            );
            run(&mut session, &table).await.unwrap();
            for from in (0..ROWS).step_by(1_000) {
                insert(&mut session, &mut random, from, from + 1_000).await;
            }
            compare(&mut session, &mut random, keys.len(), statements).await;
            change(&mut session, &mut random).await;
            compare(&mut session, &mut random, keys.len(), statements).await;
            run(&mut session, "BEGIN").await.unwrap();
            change(&mut session, &mut random).await;
            compare(&mut session, &mut random, keys.len(), statements).await;
            run(&mut session, "COMMIT").await.unwrap();
            run(&mut session, "OPTIMIZE TABLE t").await.unwrap();
            compare(&mut session, &mut random, keys.len(), statements).await;
            change(&mut session, &mut random).await;
            server.database.close().unwrap();
        }
        let server = Server::at(directory.path());
        let mut session = server.session();
        compare(&mut session, &mut random, keys.len(), statements).await;
    }
}

/// MySQL orders ENUM values by their numbers, with and without a key.
#[tokio::test(flavor = "multi_thread")]
async fn labels_are_in_the_order_of_their_numbers() {
    let server = Server::new();
    let mut session = server.session();
    for key in ["", ", KEY (l), KEY l_n (l, n)"] {
        let table = format!(
            "CREATE TABLE e (id INT PRIMARY KEY, l ENUM('mid', 'low', 'top', 'high'), n INT{key})"
        );
        run(&mut session, &table).await.unwrap();
        let inserted = "INSERT INTO e VALUES (1, 'high', 4), (2, 'low', 6), (3, 'mid', 1), (4, 'top', 2), \
                        (5, 'low', 5), (6, 'high', 3)";
        run(&mut session, inserted).await.unwrap();
        for (statement, expected) in [
            ("SELECT DISTINCT l FROM e ORDER BY l", "mid\nlow\ntop\nhigh"),
            ("SELECT DISTINCT l FROM e ORDER BY l DESC LIMIT 2", "high\ntop"),
            ("SELECT l, COUNT(*) FROM e GROUP BY l ORDER BY l", "mid|1\nlow|2\ntop|1\nhigh|2"),
            (
                "SELECT l, COUNT(*) FROM e GROUP BY l ORDER BY COUNT(*) DESC, l",
                "low|2\nhigh|2\nmid|1\ntop|1",
            ),
            (
                "SELECT l, MIN(n), MAX(n) FROM e GROUP BY l ORDER BY l DESC LIMIT 3",
                "high|3|4\ntop|2|2\nlow|5|6",
            ),
        ] {
            assert_eq!(rows(&mut session, statement).await, expected, "{statement} {key}");
        }
        run(&mut session, "DROP TABLE e").await.unwrap();
    }
}
