//! Distributed tables, and several tables searched as one. The oracle is one table with the same rows; of rows with the
//! same key, it has the last table's.

use remora_sql::{Access, Identity, Right, Session};

use super::{
    all, sets,
    support::{Server, random::Random, rows, run},
};

const WORDS: [&str; 8] = ["alpha", "beta", "gamma", "delta", "alphabet", "often", "rare", "often"];
pub(super) const QUERIES: [&str; 10] = [
    "alpha",
    "alpha beta",
    "often | rare",
    "\"alpha beta\"",
    "\"often gamma\"~4",
    "\"alpha beta gamma delta\"/2",
    "often -beta",
    "alph* | ^rare",
    "@title often gamma NEAR/3 delta",
    "",
];
pub(super) const RANKERS: [&str; 9] = [
    "proximity_bm25",
    "bm25",
    "none",
    "wordcount",
    "proximity",
    "matchany",
    "fieldmask",
    "sph04",
    "expr('sum(lcs*user_weight)*1000+bm25+10000*bm25a(1.2,0.75)+doc_word_count')",
];

/// Statements over any rows.
const PLAIN: [&str; 12] = [
    "SELECT COUNT(*), SUM(n), MIN(id), MAX(s) FROM {}",
    "SELECT * FROM {} ORDER BY id LIMIT 500",
    "SELECT id, n FROM {} WHERE n > 5 ORDER BY n, id LIMIT 7",
    "SELECT g, COUNT(*), AVG(n) FROM {} GROUP BY g ORDER BY g",
    "SELECT * FROM {} WHERE id = 17",
    "SELECT id, title FROM {} WHERE id IN (3, 17, 40) ORDER BY id",
    "SELECT x.id, y.n FROM {} AS x JOIN whole AS y ON x.id = y.id WHERE y.g = 1 ORDER BY 1",
    "SELECT DISTINCT s FROM {} ORDER BY s",
    "SELECT COUNT(*) FROM {} WHERE title LIKE '%lph%'",
    "SELECT id FROM {} WHERE id NOT IN (SELECT id FROM {} WHERE g = 1) ORDER BY id LIMIT 9",
    "CALL KEYWORDS('alpha beta nothing', '{}', 1)",
    "CALL SUGGEST('alphq', '{}')",
];
/// Statements over the rows that match the query `?`.
const FOUND: [&str; 8] = [
    "SELECT id, WEIGHT() FROM {} WHERE MATCH('?') LIMIT 400",
    "SELECT id, WEIGHT() w, n FROM {} WHERE MATCH('?') AND n > 3 ORDER BY n DESC, id ASC LIMIT 3, 8",
    "SELECT g, COUNT(*), MAX(n) FROM {} WHERE MATCH('?') GROUP BY g ORDER BY g ASC",
    "SELECT id FROM {} WHERE MATCH('?') LIMIT 4 FACET g FACET s ORDER BY FACET() ASC",
    "SELECT id, g, COUNT(*) FROM {} WHERE MATCH('?') GROUP 2 BY g WITHIN GROUP ORDER BY n DESC, id ASC",
    "SELECT COUNT(*) FROM {} WHERE MATCH('?')",
    "SELECT id, WEIGHT(), SNIPPET(body, '?') FROM {} WHERE MATCH('?') LIMIT 3",
    "SELECT id FROM {} WHERE MATCH('?') OPTION field_weights=(title=7, body=2)",
];
pub(super) const TABLE: &str = "(id INT PRIMARY KEY, n INT, g INT NOT NULL, s VARCHAR(9), title VARCHAR(200), body TEXT, KEY (n)) \
                     words='title,body' min_infix_len='2'";

fn text(random: &mut Random, words: u64) -> String {
    let words = (0..random.below(words)).map(|_| random.choose(&WORDS));
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn row(random: &mut Random) -> String {
    let (id, n, g) = (random.below(120), random.below(12), random.below(3));
    let s = random.choose(&["'odd'", "'even'", "NULL"]);
    format!("({id}, {n}, {g}, {s}, '{}', '{}')", text(random, 5), text(random, 12))
}

/// Makes some random changes to a part.
async fn change(session: &mut Session, random: &mut Random, part: &str) {
    for _ in 0..1 + random.below(4) {
        let id = random.below(120);
        let statement = match random.below(6) {
            0 => format!("DELETE FROM {part} WHERE id BETWEEN {id} AND {}", id + random.below(9)),
            1 => format!("UPDATE {part} SET n = n + 1, title = '{}' WHERE g = 1", text(random, 4)),
            _ => {
                let rows: Vec<String> = (0..1 + random.below(30)).map(|_| row(random)).collect();
                format!("REPLACE INTO {part} VALUES {}", rows.join(", "))
            }
        };
        all(session, &[&statement]).await;
    }
}

/// The lines of SHOW META that depend on how the rows were found: times and segments.
const WAYS: [&str; 5] = ["time|", "index_time|", "filter_time|", "segments|", "texts_read|"];

/// A statement's result and SHOW META after it, without those lines.
pub(super) async fn told(session: &mut Session, statement: &str) -> String {
    let answer = sets(session, statement).await;
    let meta = rows(session, "SHOW META").await;
    let meta = meta.lines().filter(|line| !WAYS.iter().any(|way| line.starts_with(way)));
    format!("{answer}\n{}", meta.collect::<Vec<_>>().join("\n"))
}

/// A statement has the same result over each of the tables, at the second run too.
async fn compare(session: &mut Session, statement: &str, tables: &[&str]) {
    for _ in 0..2 {
        let mut answers = Vec::new();
        for table in tables {
            answers.push(told(session, &statement.replace("{}", table)).await);
        }
        let (whole, others) = answers.split_last().unwrap();
        for (other, table) in others.iter().zip(tables) {
            assert_eq!(other, whole, "{statement} of {table}");
        }
    }
}

pub(super) fn found(query: &str) -> Vec<String> {
    // An empty query has nothing to highlight.
    let asked =
        FOUND.iter().filter(|statement| !query.is_empty() || !statement.contains("SNIPPET"));
    asked.map(|statement| statement.replace('?', query)).collect()
}

async fn compare_all(session: &mut Session, random: &mut Random, parts: &[String]) {
    let list = parts.join(", ");
    all(session, &["SET sql_dialect = 'mysql'"]).await;
    for statement in PLAIN {
        compare(session, statement, &["d", "whole"]).await;
    }
    for _ in 0..4 {
        let query = random.choose(&QUERIES);
        all(session, &["SET sql_dialect = 'mysql'"]).await;
        let ranker = random.choose(&RANKERS);
        for statement in found(query) {
            compare(session, &statement, &["d", "whole"]).await;
        }
        for ranker in [ranker, RANKERS[8]] {
            let statement = format!(
                "SELECT id, WEIGHT() FROM {{}} WHERE MATCH('{query}') LIMIT 9 OPTION ranker={ranker}"
            );
            compare(session, &statement, &["d", "whole"]).await;
        }
        all(session, &["SET sql_dialect = 'sphinx'"]).await;
        for _ in 0..3 {
            let statement = random.choose(&FOUND).replace('?', query);
            if !query.is_empty() || !statement.contains("SNIPPET") {
                compare(session, &statement, &["d", &list, "whole"]).await;
            }
        }
    }
    compare(session, "SELECT id, n FROM {} WHERE g = 1", &["d", &list, "whole"]).await;
    all(session, &["SET sql_dialect = 'mysql'"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_tables_are_one_with_their_rows() {
    let mut random = Random::seeded();
    for count in [1, 2, 3, 8] {
        let server = Server::new();
        let mut session = server.session();
        let parts: Vec<String> = (0..count).map(|part| format!("p{part}")).collect();
        for table in parts.iter().map(String::as_str).chain(["whole"]) {
            all(&mut session, &[&format!("CREATE TABLE {table} {TABLE}")]).await;
        }
        let locals = parts.iter().map(|part| format!(" local='{part}'"));
        let create = format!("CREATE TABLE d type='distributed'{}", locals.collect::<String>());
        all(&mut session, &[&create]).await;
        for _ in 0..2 {
            for part in &parts {
                change(&mut session, &mut random, part).await;
            }
            all(&mut session, &["TRUNCATE TABLE whole"]).await;
            for part in &parts {
                all(&mut session, &[&format!("REPLACE INTO whole SELECT * FROM {part}")]).await;
            }
            compare_all(&mut session, &mut random, &parts).await;
        }
    }
}

/// Weights of rows are multiplied by their part's weight; of rows with the same key, the last part's counts.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_parts_are_weighed_by_their_weights() {
    let mut random = Random::seeded();
    let server = Server::new();
    let mut session = server.session();
    for table in ["p0", "p1", "p2"] {
        all(&mut session, &[&format!("CREATE TABLE {table} {TABLE}")]).await;
        change(&mut session, &mut random, table).await;
    }
    let create = "CREATE TABLE d type='distributed' local='p0' local='p1' local='p2'";
    all(&mut session, &[create, "SET sql_dialect = 'sphinx'"]).await;
    for _ in 0..12 {
        let query = random.choose(&QUERIES);
        if query.is_empty() {
            continue;
        }
        let ranker = random.choose(&RANKERS);
        let option = |more: &str| format!("OPTION ranker={ranker}, max_matches=100000{more}");
        let plain = format!(
            "SELECT id, WEIGHT() FROM d WHERE MATCH('{query}') LIMIT 100000 {}",
            option("")
        );
        let mut rows_of: Vec<(i64, i64)> = Vec::new();
        for line in rows(&mut session, &plain).await.lines() {
            let (id, weight) = line.split_once('|').unwrap();
            let mut factor = 1;
            for (part, weight) in [("p0", 10), ("p1", 1), ("p2", 3)] {
                let asked = format!("SELECT id FROM {part} WHERE id = {id}");
                if !rows(&mut session, &asked).await.is_empty() {
                    factor = weight;
                }
            }
            rows_of.push((-(weight.parse::<i64>().unwrap() * factor), id.parse().unwrap()));
        }
        rows_of.sort_unstable();
        for (tables, table_weight, weights) in [
            ("d", 1, "p0=10, p2=3"),
            ("p0, p1, p2", 1, "p0=10, p2=3"),
            ("d", 2, "d=2, p0=10, p1=1, P2=3, other=9"),
        ] {
            for limit in [4, 100_000] {
                let weighed = format!(
                    "SELECT id, WEIGHT() FROM {tables} WHERE MATCH('{query}') LIMIT {limit} {}",
                    option(&format!(", index_weights=({weights})"))
                );
                let line = |(weight, id): &(i64, i64)| format!("{id}|{}", -weight * table_weight);
                let expected: Vec<String> = rows_of.iter().take(limit).map(line).collect();
                assert_eq!(rows(&mut session, &weighed).await, expected.join("\n"), "{weighed}");
            }
        }
    }
}

/// The table's own weight applies once, even if a part in another database has the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_tables_name_is_weighed_once() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &[
            "CREATE DATABASE x",
            &format!("CREATE TABLE x.d {TABLE}"),
            "INSERT INTO x.d VALUES (1, 1, 1, 'x', 'alpha', '')",
            "CREATE TABLE d type='distributed' local='x.d'",
            "SET sql_dialect = 'sphinx'",
        ],
    )
    .await;
    let mut weights: Vec<i64> = Vec::new();
    for option in ["", "OPTION index_weights=(d=3)"] {
        let asked = format!("SELECT WEIGHT() FROM d WHERE MATCH('alpha') LIMIT 1 {option}");
        weights.push(rows(&mut session, &asked).await.parse().unwrap());
    }
    assert_eq!(weights[1], 3 * weights[0]);
}

async fn refuse(session: &mut Session, statement: &str, part: &str) {
    match run(session, statement).await {
        Ok(_) => panic!("{statement} was answered"),
        Err(error) => assert!(error.message.contains(part), "{statement}: {}", error.message),
    }
}

async fn made(session: &mut Session) {
    let tables = ["a", "b"].map(|table| format!("CREATE TABLE {table} {TABLE}"));
    all(
        session,
        &[
            &tables[0],
            &tables[1],
            "CREATE TABLE other (id INT PRIMARY KEY, body TEXT) morphology='none'",
            "CREATE TABLE keyless (body TEXT) morphology='none'",
            "CREATE VIEW v AS SELECT id FROM a",
            "CREATE TABLE d TYPE='distributed' LOCAL='a' local = 'test.b'",
            "INSERT INTO a VALUES (1, 1, 1, 'x', 'alpha', ''), (2, 2, 1, 'y', 'beta', '')",
            "INSERT INTO b VALUES (2, 7, 0, 'z', 'alpha', '')",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_distributed_table_is_made_shown_altered_and_dropped() {
    let server = Server::new();
    let mut session = server.session();
    made(&mut session).await;
    let shown = "d|CREATE TABLE `d` type='distributed' local='a' local='b'";
    assert_eq!(rows(&mut session, "SHOW CREATE TABLE d").await, shown);
    all(&mut session, &["CREATE TABLE IF NOT EXISTS d type='distributed' local='a'"]).await;
    assert_eq!(rows(&mut session, "SELECT id, n FROM d ORDER BY id").await, "1|1\n2|7");
    all(&mut session, &["ALTER TABLE d local='b' local='a'"]).await;
    assert_eq!(rows(&mut session, "SELECT id, n FROM d ORDER BY id").await, "1|1\n2|2");
    all(&mut session, &["SET sql_dialect = 'sphinx'"]).await;
    assert_eq!(rows(&mut session, "SHOW TABLES LIKE '_'").await, "a|rt\nb|rt\nd|distributed");
    let desc = rows(&mut session, "DESC d").await;
    assert_eq!(desc, rows(&mut session, "DESC a").await);
    // Of rows with the same key, the last table's counts; a distributed table in a list stands for its parts.
    for (list, expected) in [("a, b", "7"), ("b, a", "2"), ("d, b", "7"), ("b, d", "2")] {
        let statement = format!("SELECT n FROM {list} WHERE id = 2");
        assert_eq!(rows(&mut session, &statement).await, expected, "{list}");
    }
    refuse(&mut session, "SELECT id FROM a, other", "cannot be read as one").await;
    refuse(&mut session, "SELECT id FROM a, nowhere", "Table 'test.nowhere' doesn't exist").await;
    refuse(
        &mut session,
        "SELECT id FROM d, b WHERE MATCH('alpha') OPTION index_weights=(d=3)",
        "index_weights=(d=",
    )
    .await;
    all(&mut session, &["SET sql_dialect = 'mysql'"]).await;
    let explained = rows(&mut session, "EXPLAIN SELECT id FROM d WHERE id = 1").await;
    assert!(explained.contains("|d|b,a|"), "{explained}");
    all(&mut session, &["ALTER TABLE d RENAME TO e", "RENAME TABLE e TO d"]).await;
    all(&mut session, &["ALTER TABLE b ADD COLUMN more INT"]).await;
    refuse(&mut session, "SELECT id FROM d", "cannot be read as one").await;
    all(&mut session, &["SHOW TABLE STATUS", "SHOW CREATE TABLE d", "DROP TABLE b"]).await;
    refuse(&mut session, "SELECT id FROM d", "\"b\", which is not there").await;
    refuse(&mut session, "SELECT COUNT(*) FROM d", "\"b\", which is not there").await;
    all(&mut session, &["SELECT * FROM information_schema.COLUMNS", "DROP TABLE d"]).await;
    refuse(&mut session, "SELECT id FROM d", "doesn't exist").await;
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM a").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_distributed_table_is_not_is_refused() {
    let server = Server::new();
    let mut session = server.session();
    made(&mut session).await;
    for (statement, part) in [
        ("INSERT INTO d VALUES (9, 1, 1, 'x', '', '')", "distributed over a, b"),
        ("REPLACE INTO d VALUES (9, 1, 1, 'x', '', '')", "distributed over a, b"),
        ("UPDATE d SET n = 1", "distributed over a, b"),
        ("DELETE FROM d WHERE id = 1", "distributed over a, b"),
        ("TRUNCATE TABLE d", "distributed over a, b"),
        ("CREATE INDEX i ON d (g)", "distributed over a, b"),
        ("ALTER TABLE d ADD COLUMN x INT", "add is no option of a distributed table"),
        ("CREATE TABLE e type='distributed'", "has parts"),
        ("CREATE TABLE e type='distributed' local='a' local='a'", "is a part twice"),
        ("CREATE TABLE e type='distributed' local='e'", "doesn't exist"),
        ("ALTER TABLE d local='a' local='v'", "doesn't exist"),
        ("CREATE TABLE e type='distributed' local='d'", "is distributed itself"),
        ("ALTER TABLE d local='d'", "is distributed itself"),
        ("CREATE TABLE e type='distributed' local='keyless'", "declares no key"),
        ("CREATE TABLE e type='distributed' local='a' local='other'", "cannot be read as one"),
        ("CREATE TABLE e type='distributed' agent='h:9312'", "it names no table"),
        ("CREATE TABLE e type='distributed' agent='h:i'", "no host:port:table"),
        (
            "CREATE TABLE e type='distributed' agent_blackhole='h:1:i'",
            "agent_blackhole is no option",
        ),
        ("CREATE TABLE e type='distributed' agent='h:1:i' agent_query_timeout='x'", "is no number"),
        (
            "CREATE TABLE e type='distributed' agent='h:1:i' ha_strategy='x'",
            "ha_strategy 'x' is none",
        ),
        ("CREATE TABLE e type='distributed' dist_threads='2'", "dist_threads is no option"),
        ("CREATE TABLE e (id INT PRIMARY KEY) type='distributed'", "stands alone"),
        ("CREATE TABLE d type='distributed' local='a'", "already exists"),
    ] {
        refuse(&mut session, statement, part).await;
    }
    let locals: String = (0..65).map(|part| format!(" local='p{part}'")).collect();
    let many = format!("CREATE TABLE e type='distributed'{locals}");
    refuse(&mut session, &many, "up to 64 parts").await;
    // Parts may be missing, as while a dump is loaded.
    all(&mut session, &["CREATE TABLE e type='distributed' local='a' local='later'"]).await;
    let warned = rows(&mut session, "SHOW WARNINGS").await;
    assert!(warned.contains("'test.later' is not there"), "{warned}");
    refuse(&mut session, "SELECT id FROM e", "\"later\", which is not there").await;
    let status = rows(&mut session, "SHOW TABLE STATUS LIKE 'e'").await;
    assert!(status.starts_with("e|MRG_MyISAM|"), "{status}");
    let created = rows(&mut session, "SHOW CREATE TABLE e").await;
    assert_eq!(created, "e|CREATE TABLE `e` type='distributed' local='a' local='later'");
    let later = format!("CREATE TABLE later {TABLE}");
    all(&mut session, &[&later, "INSERT INTO later VALUES (7, 1, 1, 'x', 'alpha', '')"]).await;
    assert_eq!(rows(&mut session, "SELECT id FROM e ORDER BY id").await, "1\n2\n7");
    all(&mut session, &["DROP TABLE e", "DROP TABLE later"]).await;
    // A database in a program contacts no other servers; such tables can only be described.
    all(&mut session, &["CREATE TABLE e type='distributed' local='a' agent='h:1:i'"]).await;
    refuse(&mut session, "SELECT COUNT(*) FROM e", "agents").await;
    refuse(&mut session, "INSERT INTO e VALUES (9, 1, 1, 'x', '', '')", "distributed over").await;
    let shown = rows(&mut session, "SHOW CREATE TABLE e").await;
    assert!(shown.contains("local='a' agent='h:1:test.i'"), "{shown}");
    all(&mut session, &["SHOW TABLE STATUS", "SELECT * FROM information_schema.COLUMNS"]).await;
    all(&mut session, &["DROP TABLE e"]).await;
    // The parts contain a transaction's own changes.
    all(&mut session, &["BEGIN", "UPDATE a SET n = 50 WHERE id = 1"]).await;
    assert_eq!(rows(&mut session, "SELECT n FROM d WHERE id = 1").await, "50");
    all(&mut session, &["COMMIT"]).await;
    assert_eq!(rows(&mut session, "SELECT n FROM d WHERE id = 1").await, "50");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_it_needs_the_right_to_read_each_part() {
    let server = Server::new();
    made(&mut server.session()).await;
    let who = |tables: &[&str]| {
        let right = |table: &&str| Right {
            database: "test".into(),
            table: (*table).into(),
            access: Access::Read,
        };
        let rights = Some(tables.iter().map(right).collect());
        server.instance.session(8, Identity { user: "u".into(), host: "%".into(), rights })
    };
    let mut both = who(&["a", "b", "d"]);
    for statement in ["SELECT n FROM d WHERE id = 2", "SELECT MAX(n) FROM d"] {
        // A plan that another session may use is cached.
        assert_eq!(rows(&mut both, statement).await, "7");
        assert_eq!(rows(&mut both, statement).await, "7");
        for (tables, denied) in [(["a", "d"], "'b'"), (["b", "d"], "'a'"), (["a", "b"], "'d'")] {
            let mut session = who(&tables);
            refuse(&mut session, statement, &format!("for table {denied}")).await;
            refuse(&mut session, statement, &format!("for table {denied}")).await;
        }
    }
    let mut some = who(&["a", "d"]);
    for statement in ["DESCRIBE d", "SHOW CREATE TABLE d", "CALL KEYWORDS('alpha', 'd', 1)"] {
        refuse(&mut some, statement, "for table 'b'").await;
    }
    all(&mut some, &["SET sql_dialect = 'sphinx'"]).await;
    refuse(&mut some, "SELECT n FROM a, b", "for table 'b'").await;
    refuse(&mut some, "SELECT n FROM `a\0b`", "for table 'b'").await;
}
