//! MATCH('query'): Sphinx's results for hundreds of queries, compared with tables of several segments with changed and
//! deleted rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod attributes;
mod dialect;
mod distributed;
mod endings;
mod groups;
mod multi;
mod own_changes;
mod percolate;
mod shown;
mod sphinx;

use std::fmt::Write as _;

use remora_sql::Session;

use crate::support::{self, Server, rows, run};

/// Sphinx's results; the file's head describes its format.
const ANSWERS: &str = include_str!("../../../words/tests/answers/answers.txt");

async fn all(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = run(session, statement).await {
            panic!("{statement}: {error}");
        }
    }
}

/// A table with the documents of the results, inserted one by one, among others that are deleted again.
async fn filled(session: &mut Session, settings: &str) {
    let create = format!(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, title VARCHAR(200), body TEXT) words='title,body' {settings}"
    );
    all(session, &["DROP TABLE IF EXISTS t", &create]).await;
    all(
        session,
        &["INSERT INTO t VALUES (1000, 0, 'alpha beta gamma', 'alpha'), (1001, 1, 'zeta', 'beta')"],
    )
    .await;
    for (number, line) in documents().lines().enumerate() {
        let mut parts = line.split('\t');
        let id = parts.next().unwrap();
        let (title, body) = (parts.next().unwrap(), parts.next().unwrap_or(""));
        // Every third has other contents first.
        if number % 3 == 0 {
            let other = format!("INSERT INTO t VALUES ({id}, 7, 'alpha alpha gamma zeta', 'beta')");
            all(session, &[&other]).await;
        }
        let row = format!("REPLACE INTO t VALUES ({id}, {number}, '{title}', '{body}')");
        all(session, &[&row]).await;
    }
    all(session, &["DELETE FROM t WHERE id >= 1000"]).await;
}

fn documents() -> &'static str {
    let (_, behind) = ANSWERS.split_once("[documents]\n").unwrap();
    behind.split_once("\n[").unwrap().0
}

/// The queries and results for these settings.
fn answers(settings: &str) -> Vec<(&'static str, &'static str)> {
    let head = match settings {
        "" => "\n[settings]\n".to_owned(),
        settings => format!("\n[settings {settings}]\n"),
    };
    let (_, behind) = ANSWERS.split_once(&head).unwrap();
    let section = behind.split_once("\n[").map_or(behind, |(section, _)| section);
    let lines: Vec<&str> = section.lines().collect();
    lines.chunks_exact(2).map(|pair| (pair[0], pair[1].strip_prefix("=> ").unwrap())).collect()
}

fn literal(query: &str) -> String {
    format!("'{}'", query.replace('\\', "\\\\").replace('\'', "''"))
}

/// The expected rows, in the form that a SELECT of id and weight returns.
fn expected(answer: &str) -> String {
    if let Some(error) = answer.strip_prefix("error ") {
        return format!("error table t: {}", error.trim_end());
    }
    let (found, _) = answer.strip_prefix("rows ").unwrap().split_once("words").unwrap();
    let row = |row: &str| {
        let (id, weight) = row.split_once(':').unwrap();
        let weight = weight.parse::<u32>().unwrap() as i32;
        format!("{id}|{weight}")
    };
    found.split_whitespace().map(row).collect::<Vec<_>>().join("\n")
}

async fn compare(session: &mut Session, settings: &str) {
    let (mut wrong, all) = (String::new(), answers(settings));
    for (query, answer) in &all {
        // NOTNEAR is Manticore's, and a space before a limit of positions is passed over.
        if query.contains("NOTNEAR/") || query.contains("title [") {
            continue;
        }
        let statement = format!("SELECT id, WEIGHT() FROM t WHERE MATCH({})", literal(query));
        let ours = match run(session, &statement).await {
            Ok(reply) => {
                let rows = reply.sets[0].rows.iter().map(|row| row.join("|"));
                rows.collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("error {}", error.message),
        };
        // The fast path for the statement's shape and the general plan return the same.
        let general =
            format!("SELECT id, WEIGHT() + 0 AS w FROM t WHERE MATCH({})", literal(query));
        let general = match run(session, &general).await {
            Ok(reply) => {
                let rows = reply.sets[0].rows.iter().map(|row| row.join("|"));
                rows.collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("error {}", error.message),
        };
        let theirs = expected(answer);
        if ours != theirs || general != theirs {
            writeln!(
                wrong,
                "{query}\n   theirs {theirs:?}\n   ours   {ours:?}\n   plan   {general:?}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "of {}:\n{wrong}", all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_find_and_weigh_what_sphinx_does() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "").await;
    compare(&mut session, "").await;
    filled(&mut session, "min_infix_len=2").await;
    compare(&mut session, "min_infix_len=2").await;
    filled(&mut session, "morphology='stem_en' index_exact_words=1").await;
    compare(&mut session, "morphology=stem_en index_exact_words=1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keywords_go_together_with_everything_else() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "").await;
    all(
        &mut session,
        &[
            "CREATE TABLE o (t INT PRIMARY KEY, s VARCHAR(9))",
            "INSERT INTO o VALUES (1, 'x'), (2, 'y'), (9, 'z')",
        ],
    )
    .await;
    for (statement, expected) in [
        ("SELECT id FROM t WHERE MATCH('alpha') AND id < 9 ORDER BY id", "1\n2\n3\n8"),
        (
            "SELECT id FROM t WHERE MATCH('alpha') OR id = 14 ORDER BY id",
            "1\n2\n3\n8\n9\n11\n12\n14",
        ),
        ("SELECT id FROM t WHERE NOT MATCH('alpha') ORDER BY id", "5\n13\n14\n20\n21"),
        ("SELECT COUNT(*) FROM t WHERE MATCH('alpha beta')", "5"),
        (
            "SELECT id, WEIGHT() AS w FROM t WHERE MATCH('alpha') ORDER BY w, id LIMIT 2",
            "1|1486\n3|1486",
        ),
        (
            "SELECT o.s, WEIGHT() FROM t JOIN o ON o.t = t.id WHERE MATCH('alpha beta', t) ORDER BY s",
            "x|2500\ny|2496\nz|3502",
        ),
        ("SELECT WEIGHT() FROM t WHERE id = 1", "1"),
        (
            "SELECT n % 2 AS odd, COUNT(*), MAX(WEIGHT()) FROM t WHERE MATCH('alpha') GROUP BY odd ORDER BY odd",
            "0|4|1486\n1|3|2481",
        ),
        (
            "SELECT id, WEIGHT() FROM t WHERE MATCH('alpha beta') LIMIT 2 OPTION ranker=bm25",
            "3|2502\n9|2502",
        ),
        (
            "SELECT id, WEIGHT() FROM t WHERE MATCH('alpha') LIMIT 1 OPTION field_weights=(title=10, body=3), max_matches=5",
            "12|13481",
        ),
        ("SELECT id, WEIGHT() FROM t WHERE MATCH('alpha') LIMIT 1 OPTION ranker=none", "1|1"),
        (
            "SELECT s, WEIGHT() FROM o WHERE t IN (SELECT id FROM t WHERE MATCH('alpha')) ORDER BY s",
            "x|1\ny|1\nz|1",
        ),
        (
            "SELECT id, WEIGHT() AS w FROM t WHERE MATCH('alpha') HAVING w > 2000 ORDER BY id",
            "2|2478\n12|2481",
        ),
        (
            "SELECT id FROM t WHERE MATCH('alpha') OR id = 14 ORDER BY id LIMIT 1 OPTION index_weights=(t=0)",
            "1",
        ),
        ("SELECT id FROM t WHERE MATCH('') ORDER BY id LIMIT 2", "1\n2"),
    ] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_is_told() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "").await;
    rows(&mut session, "SELECT id FROM t WHERE MATCH('alpha -beta zzz')").await;
    let meta = rows(&mut session, "SHOW META").await;
    for line in ["keyword[0]|alpha", "docs[0]|7", "hits[0]|10", "keyword[2]|zzz", "docs[2]|0"] {
        assert!(meta.lines().any(|other| other == line), "{line} in\n{meta}");
    }
    let shown = rows(&mut session, "SHOW CREATE TABLE t").await;
    assert!(shown.contains("words='title,body'"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_declared_changed_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let found = "SELECT id FROM t WHERE MATCH('runs') ORDER BY id";
    {
        let server = Server::at(directory.path());
        let mut session = server.session();
        all(
            &mut session,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b VARCHAR(20)) morphology='none'",
                "INSERT INTO t VALUES (1, 'he runs', NULL), (2, 'they run', 'far'), (3, NULL, 'running')",
            ],
        )
        .await;
        assert_eq!(rows(&mut session, found).await, "1");
        all(&mut session, &["ALTER TABLE t morphology='stem_en'"]).await;
        assert_eq!(rows(&mut session, found).await, "1\n2\n3");
        all(&mut session, &["ALTER TABLE t DROP COLUMN a, ADD COLUMN c TEXT FIRST"]).await;
        assert_eq!(rows(&mut session, found).await, "3");
        all(&mut session, &["INSERT INTO t (id, c) VALUES (4, 'run')"]).await;
        server.database.close().unwrap();
    }
    let server = Server::at(directory.path());
    let mut session = server.session();
    assert_eq!(rows(&mut session, found).await, "3\n4");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_refused_by_name() {
    let server = Server::new();
    let mut session = server.session();
    all(&mut session, &["CREATE TABLE plain (id INT PRIMARY KEY, s TEXT)"]).await;
    filled(&mut session, "").await;
    for (statement, part) in [
        ("SELECT * FROM plain WHERE MATCH('a')", "has no words to search"),
        (
            "SELECT * FROM t WHERE MATCH('a') OPTION zzz=1",
            "unknown option 'zzz' (or bad argument type)",
        ),
        ("SELECT * FROM t WHERE MATCH('a') OPTION ranker=zzz", "unknown ranker 'zzz'"),
        ("SELECT * FROM t WHERE MATCH('a', x)", "Unknown table 'x'"),
        ("SELECT 1 OPTION ranker=none", "You have an error in your SQL syntax"),
        (
            "CREATE TABLE u (id INT PRIMARY KEY, s TEXT) charset_table='a..z, -' ignore_chars='-'",
            "take it out of one",
        ),
        ("CREATE TABLE u (id INT PRIMARY KEY, s TEXT) morphology='zzz'", "morphology"),
        ("CREATE TABLE u (id INT PRIMARY KEY, s TEXT) stopwords='/etc/passwd'", "stopwords_list"),
        ("CREATE TABLE u (id INT PRIMARY KEY, s TEXT) words='nosuch'", "nosuch"),
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_queries_end_in_an_error_or_an_answer() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "min_infix_len=2").await;
    let nested = |depth: usize| format!("{}alpha{}", "(".repeat(depth), ")".repeat(depth));
    let changing = "alpha | beta MAYBE ".repeat(2000) + "gamma";
    for query in [
        nested(256),
        nested(257),
        nested(100_000),
        changing,
        "-(".repeat(5000),
        "alpha ".repeat(4096),
        "alpha ".repeat(4097),
        "\"alpha beta".to_owned() + &" gamma".repeat(3000) + "\"/2",
        "alpha NEAR/3 ".repeat(1000) + "beta",
        "alpha << ".repeat(1000) + "beta",
        "*al*pha*b* ".repeat(300),
        "@(".repeat(3000),
        "\\".repeat(3001),
        format!("\"alpha {} beta\"", "* ".repeat(3_000_000)),
        "^$\"~/=*?%".repeat(500),
    ] {
        let statement =
            format!("SELECT COUNT(*), MAX(WEIGHT()) FROM t WHERE MATCH({})", literal(&query));
        let _ = run(&mut session, &statement).await;
    }
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t").await, "12");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_null_or_a_number_is_sought_as_such() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "").await;
    assert_eq!(rows(&mut session, "SELECT id FROM t WHERE MATCH(NULL)").await, "");
    assert_eq!(rows(&mut session, "SELECT id FROM t WHERE MATCH(2)").await, "14");
    all(
        &mut session,
        &["PREPARE s FROM 'SELECT id, WEIGHT() FROM t WHERE MATCH(?) LIMIT 1'", "SET @q = 'alpha'"],
    )
    .await;
    assert_eq!(rows(&mut session, "EXECUTE s USING @q").await, "12|2481");
}

/// The rows of all result sets, separated by `;`.
async fn sets(session: &mut Session, statement: &str) -> String {
    let reply = match run(session, statement).await {
        Ok(reply) => reply,
        Err(error) => panic!("{statement}: {error}"),
    };
    let set = |set: &support::Answer| {
        set.rows.iter().map(|row| row.join("|")).collect::<Vec<_>>().join(" ")
    };
    reply.sets.iter().map(set).collect::<Vec<_>>().join(" ; ")
}

/// A table whose `g` is `n % 3`; the expected results are those of Sphinx 2.2.11 with the same rows.
async fn grouped(session: &mut Session) {
    filled(session, "").await;
    all(session, &["ALTER TABLE t ADD COLUMN g INT NOT NULL DEFAULT 0", "UPDATE t SET g = n % 3"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_count_all_rows_that_are_found() {
    let server = Server::new();
    let mut session = server.session();
    grouped(&mut session).await;
    for (statement, expected) in [
        (
            "SELECT id, g FROM t WHERE MATCH('alpha') LIMIT 2 FACET g FACET n LIMIT 3 FACET g ORDER BY COUNT(*) DESC, g",
            "12|1 2|1 ; 1|3 0|2 2|2 ; 7|1 1|1 0|1 ; 1|3 0|2 2|2",
        ),
        (
            "SELECT id FROM t WHERE MATCH('alpha | beta') LIMIT 1 FACET g DISTINCT n ORDER BY FACET() DESC LIMIT 1,2",
            "3 ; 1|3|3 0|2|2",
        ),
        (
            "SELECT id FROM t WHERE id < 9 ORDER BY id LIMIT 1 FACET g, n % 2 AS odd ORDER BY g ASC, odd DESC",
            "1 ; 0|1|1 0|0|1 1|1|1 1|0|1 2|0|1",
        ),
        ("SELECT id FROM t WHERE g = 2 ORDER BY id LIMIT 1 FACET g ; SELECT 1", "3 ; 2|4 ; 1"),
    ] {
        assert_eq!(sets(&mut session, statement).await, expected, "{statement}");
        assert_eq!(sets(&mut session, statement).await, expected, "again: {statement}");
    }
    all(&mut session, &["CREATE TABLE facet (id INT PRIMARY KEY, facet INT)"]).await;
    for statement in [
        "SELECT facet FROM facet facet WHERE facet = 1",
        "SELECT facet.facet FROM facet ORDER BY facet",
        "SELECT facet AS facet FROM facet GROUP BY facet LIMIT 2",
    ] {
        assert_eq!(sets(&mut session, statement).await, "", "{statement}");
    }
    for statement in [
        "SELECT id FROM t FACET g,",
        "SELECT id FROM t UNION SELECT id FROM t FACET id",
        "SELECT id FROM t FACET g LIMIT x",
        "SELECT id FROM t FACET g ORDER g",
        "SELECT id FROM t FACET g DISTINCT",
        "SELECT id FROM t FACET g LIMIT 1,2,3",
        "PREPARE s FROM 'SELECT id FROM t FACET g'",
    ] {
        assert!(run(&mut session, statement).await.is_err(), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_weigh_by_columns_too() {
    let server = Server::new();
    let mut session = server.session();
    grouped(&mut session).await;
    for (expression, expected) in
        [("n*10+g+sum(lcs)", "12|73 11|61 9|53 8|42 3|23 2|13 1|1"), ("1000000*bm25/id", "")]
    {
        let statement = format!(
            "SELECT id, WEIGHT() FROM t WHERE MATCH('alpha') OPTION ranker=expr('{expression}')"
        );
        let ours = sets(&mut session, &statement).await;
        if !expected.is_empty() {
            assert_eq!(ours, expected, "{statement}");
        }
        let general = statement.replace("WEIGHT()", "WEIGHT() + 0 AS w");
        assert_eq!(sets(&mut session, &general).await, ours, "{statement}");
    }
    for (option, part) in [
        ("expr('nosuch+1')", "unknown column: nosuch"),
        ("expr('1+')", "syntax error"),
        ("expr('')", "missing ranker expression"),
        ("expr", "missing ranker expression"),
    ] {
        let statement = format!("SELECT id FROM t WHERE MATCH('alpha') OPTION ranker={option}");
        let error = run(&mut session, &statement).await.unwrap_err();
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_take_parameters_and_meta_counts() {
    let server = Server::new();
    let mut session = server.session();
    grouped(&mut session).await;
    all(
        &mut session,
        &[
            "PREPARE s FROM 'SELECT id, WEIGHT() FROM t WHERE MATCH(?) LIMIT ? OPTION field_weights=(title=?, body=3)'",
            "SET @q = 'alpha', @n = 1, @w = 10",
        ],
    )
    .await;
    assert_eq!(sets(&mut session, "EXECUTE s USING @q, @n, @w").await, "12|13481");
    let meta = sets(&mut session, "SHOW META").await;
    for part in ["total|1 total_found|7 ", "keyword[0]|alpha docs[0]|7 hits[0]|10"] {
        assert!(meta.contains(part), "{part} in {meta}");
    }
    sets(&mut session, "SELECT id FROM t WHERE MATCH('\"alpha beta\"/5') AND n < 100").await;
    let meta = sets(&mut session, "SHOW META").await;
    assert!(meta.starts_with("warning|quorum threshold too high (words=2"), "{meta}");
    let warnings = sets(&mut session, "SHOW WARNINGS").await;
    assert!(warnings.starts_with("Warning|1000|quorum threshold too high"), "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_of_queries_by_keywords_alone() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session, "").await;
    all(
        &mut session,
        &[
            "CREATE TABLE f (id INT PRIMARY KEY, s VARCHAR(99), FULLTEXT (s))",
            "INSERT INTO f VALUES (1, 'alpha alpha'), (2, 'beta'), (3, 'alpha beta')",
        ],
    )
    .await;
    for (statement, expected) in [
        ("SELECT id, WEIGHT() FROM f WHERE MATCH(s) AGAINST('alpha') LIMIT 9", "1|1 3|1"),
        (
            "SELECT id FROM f WHERE MATCH(s) AGAINST('alpha') ORDER BY WEIGHT() DESC, id LIMIT 9",
            "1 3",
        ),
        ("SELECT id, WEIGHT() FROM f WHERE id < 3 LIMIT 9", "1|1 2|1"),
    ] {
        assert_eq!(sets(&mut session, statement).await, expected, "{statement}");
    }
    all(&mut session, &["BEGIN", "INSERT INTO t (id, title) VALUES (77, 'alpha')"]).await;
    assert_eq!(sets(&mut session, "SELECT COUNT(*) FROM t WHERE MATCH('alpha')").await, "8");
    all(&mut session, &["ROLLBACK"]).await;
    assert_eq!(sets(&mut session, "SELECT COUNT(*) FROM t WHERE MATCH('alpha')").await, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_told_and_shown_by_the_words_of_a_table() {
    let server = Server::new();
    let mut session = server.session();
    grouped(&mut session).await;
    // The expected results of KEYWORDS and SNIPPETS are those of Sphinx 2.2.11 with the same rows.
    for (statement, expected) in [
        (
            "CALL KEYWORDS('Alpha the beta', 't', 1)",
            "1|alpha|alpha|7|10 2|the|the|0|0 3|beta|beta|6|9",
        ),
        ("CALL KEYWORDS('Alpha the beta', 't')", "1|alpha|alpha 2|the|the 3|beta|beta"),
        ("CALL SNIPPETS('alpha beta gamma', 't', 'beta')", "alpha <b>beta</b> gamma"),
        (
            "CALL SNIPPETS(('alpha', 'b'), 't', 'alpha', '[' AS before_match, ']' AS after_match)",
            "[alpha] b",
        ),
        ("CALL SUGGEST('alpa beta', 't', 2 AS limit)", "alpha|1|7 kappa|2|2"),
        ("CALL QSUGGEST('alpa bete', 't', 1 AS limit)", "beta|1|6"),
        (
            "CALL SUGGEST('alpa', 't', 1 AS result_line, 0 AS result_stats, 1 AS limit)",
            "suggests|alpha",
        ),
    ] {
        assert_eq!(sets(&mut session, statement).await, expected, "{statement}");
    }
    all(&mut session, &["CREATE TABLE plain (id INT PRIMARY KEY, s TEXT)"]).await;
    for (statement, part) in [
        ("CALL KEYWORDS('a', 'plain')", "has no words"),
        ("CALL KEYWORDS('a', 'nosuch')", "doesn't exist"),
        ("CALL KEYWORDS('a')", "error in your SQL syntax"),
        ("CALL SNIPPETS('a', 't', 'a', 1 AS load_files)", "load_files"),
        ("CALL SNIPPETS('a', 't', 'a', 1 AS zzz)", "zzz"),
        ("CALL SUGGEST('a', 't', 1 AS zzz)", "zzz"),
        ("CALL nosuch('a')", "CALL NOSUCH"),
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sentences_paragraphs_and_zones_hold_in_every_segment() {
    let server = Server::new();
    let mut session = server.session();
    let create = "CREATE TABLE h (id INT PRIMARY KEY, s TEXT) words='s' html_strip='1' index_sp='1' \
                  index_zones='h*, note'";
    all(&mut session, &[create]).await;
    for (id, text) in [
        (1, "<h1>Red reef</h1> blue fish. Old sea"),
        (2, "red <p>reef. Blue <h2>fish</h2>"),
        (3, "red reef. <h1>Blue</h1> <h1>fish</h1>"),
        (4, "sentence h1 paragraph"),
    ] {
        all(&mut session, &[&format!("INSERT INTO h VALUES ({id}, '{text}')")]).await;
    }
    let found = async |session: &mut Session, query: &str| {
        let statement = format!("SELECT id FROM h WHERE MATCH('{query}') ORDER BY id");
        let ids = rows(session, &statement).await;
        ids.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let expected = [
        ("red SENTENCE reef", "1 3"),
        ("red PARAGRAPH reef", "1 3"),
        ("blue SENTENCE fish", "1"),
        ("red PARAGRAPH blue", ""),
        ("reef PARAGRAPH blue", "2"),
        ("ZONE:h1 fish", "3"),
        ("ZONE:(h1,h2) fish", "2 3"),
        ("ZONE:h1 blue fish", "3"),
        ("ZONESPAN:h1 blue fish", ""),
        ("ZONESPAN:h1 red reef", "1"),
        ("(ZONE:h1 red) fish", "1"),
        ("ZONE:h9 fish", ""),
        ("sentence", "4"),
    ];
    for (query, ids) in expected {
        assert_eq!(found(&mut session, query).await, ids, "{query}");
    }
    all(&mut session, &["OPTIMIZE TABLE h"]).await;
    for (query, ids) in expected {
        assert_eq!(found(&mut session, query).await, ids, "{query}");
    }
    all(&mut session, &["ALTER TABLE h index_sp='0' index_zones=''"]).await;
    assert_eq!(found(&mut session, "red SENTENCE blue").await, "1 2 3");
    assert_eq!(found(&mut session, "ZONE:h1 fish").await, "");
    let many = format!("ZONE:({}h1) fish", "h1,".repeat(256));
    let error = run(&mut session, &format!("SELECT id FROM h WHERE MATCH('{many}')")).await;
    assert!(error.unwrap_err().message.contains("more than 256 zones"));
}
