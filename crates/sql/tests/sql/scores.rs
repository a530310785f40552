//! MATCH … AGAINST as a number: the index's score, in any expression.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use crate::support::{Server, rows, run};
use remora_sql::Session;

const SCORE: &str = "MATCH(body) AGAINST('quantum physics')";

async fn filled(server: &Server) -> Session {
    let mut session = server.session();
    let statements = [
        "CREATE TABLE a (id INT PRIMARY KEY, kind INT, title VARCHAR(50), body TEXT, \
         FULLTEXT KEY (title), FULLTEXT KEY (body))",
        "INSERT INTO a VALUES (1, 1, 'one', 'quantum physics is physics'), \
         (2, 1, 'two', 'the physics of a long text about other things'), \
         (3, 2, 'three', 'nothing here'), (4, 2, 'four', 'quantum'), (5, NULL, 'five', NULL), \
         (6, 3, 'quantum', 'physics')",
        "CREATE TABLE kinds (id INT PRIMARY KEY, label VARCHAR(20))",
        "INSERT INTO kinds VALUES (1, 'x'), (2, 'y'), (9, 'z')",
    ];
    for statement in statements {
        run(&mut session, statement).await.unwrap();
    }
    session
}

/// The first two columns of a statement's rows: a number and a score.
async fn scores(session: &mut Session, statement: &str) -> BTreeMap<String, String> {
    let answers = run(session, statement).await.unwrap();
    let pair = |row: &Vec<String>| (row[0].clone(), row[1].clone());
    answers.sets[0].rows.iter().map(pair).collect()
}

/// The scores of the matching rows, from a plain search.
async fn searched(session: &mut Session) -> BTreeMap<String, String> {
    let search = format!("SELECT id, {SCORE} AS s FROM a WHERE {SCORE} ORDER BY s DESC LIMIT 10");
    scores(session, &search).await
}

#[tokio::test]
async fn a_score_is_the_same_everywhere() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let found = searched(&mut session).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["1", "2", "4", "6"]);
    assert_ne!(found["1"], found["4"]);
    let mut all = found.clone();
    all.extend([("3", "0"), ("5", "0")].map(|(id, score)| (id.to_owned(), score.to_owned())));
    let of_all = [
        format!("SELECT id, {SCORE} FROM a"),
        format!("SELECT id, s FROM (SELECT id, {SCORE} AS s FROM a) q"),
        format!("SELECT a.id, {SCORE} FROM a LEFT JOIN kinds k ON k.id = a.kind"),
        format!("SELECT id, MAX({SCORE}) FROM a GROUP BY id"),
        format!("SELECT id, {SCORE} AS s FROM a GROUP BY id"),
        format!("SELECT id, (SELECT {SCORE} FROM a b WHERE b.id = a.id) FROM a"),
        format!("SELECT id, {SCORE} + {SCORE} * 0 FROM a ORDER BY {SCORE} DESC"),
    ];
    for statement in of_all {
        assert_eq!(scores(&mut session, &statement).await, all, "{statement}");
    }
    let of_found = [
        format!("SELECT id, {SCORE} FROM a WHERE {SCORE} > 0"),
        format!("SELECT id, {SCORE} FROM a WHERE {SCORE} AND id + 0 > 0"),
        format!("SELECT id, {SCORE} FROM a HAVING {SCORE}"),
        format!("WITH q AS (SELECT id, {SCORE} AS s FROM a) SELECT * FROM q WHERE s <> 0"),
    ];
    for statement in of_found {
        assert_eq!(scores(&mut session, &statement).await, found, "{statement}");
    }
}

/// The first column of a statement's rows, in order.
async fn ids(session: &mut Session, statement: &str) -> Vec<String> {
    let answers = run(session, statement).await.unwrap();
    answers.sets[0].rows.iter().map(|row| row[0].clone()).collect()
}

#[tokio::test]
async fn without_an_order_the_best_rows_come_first() {
    let server = Server::new();
    let mut session = filled(&server).await;
    for copy in 1..6 {
        let more =
            format!("INSERT INTO a SELECT id + {copy}00, kind, title, body FROM a WHERE id < 7");
        run(&mut session, &more).await.unwrap();
    }
    let best = ids(&mut session, &format!("SELECT id FROM a WHERE {SCORE}")).await;
    assert_eq!(best.len(), 24);
    // Rows with equal scores are in the order of the key.
    assert_eq!(best[..4], ["1", "101", "201", "301"]);
    for _ in 0..3 {
        for statement in [
            "SELECT id, LEFT(body, 9) FROM a WHERE {}",
            "SELECT a.id, label FROM a JOIN kinds k ON k.id < 9 WHERE {} AND k.id = 1",
            "SELECT a.id, label FROM a LEFT JOIN kinds k ON k.id = a.id WHERE {}",
            "SELECT id, {} AS s, UPPER(title) FROM a WHERE {} ORDER BY s DESC",
            "SELECT id, UPPER(title) FROM a WHERE {} ORDER BY {} DESC",
            "WITH w AS (SELECT 1) SELECT id FROM a WHERE ({}) AND 1",
        ] {
            let statement = statement.replace("{}", SCORE);
            let found = ids(&mut session, &statement).await;
            assert_eq!(found, best, "{statement}");
            for (limit, offset) in [(1, 0), (3, 0), (5, 3), (24, 20)] {
                let page = format!("{statement} LIMIT {limit} OFFSET {offset}");
                let end = (offset + limit).min(best.len());
                assert_eq!(ids(&mut session, &page).await, best[offset..end], "{page}");
                let derived = format!("SELECT id FROM ({page}) q").replace("a.id, label", "a.id");
                let mut found = ids(&mut session, &derived).await;
                let mut expected = best[offset..end].to_vec();
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{derived}");
            }
        }
    }
}

#[tokio::test]
async fn rows_are_ordered_by_score_in_joins() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let found = searched(&mut session).await;
    let mut ordered: Vec<(&String, f64)> =
        found.iter().map(|(id, score)| (id, score.parse().unwrap())).collect();
    ordered.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ordered: Vec<&str> = ordered.iter().map(|(id, _)| id.as_str()).collect();
    let joined = format!(
        "SELECT a.id FROM a LEFT JOIN kinds k ON k.id = a.kind WHERE {SCORE} ORDER BY {SCORE} DESC"
    );
    assert_eq!(rows(&mut session, &joined).await, ordered.join("\n"));
    let made_up =
        format!("SELECT k.id, {SCORE} FROM kinds k LEFT JOIN a ON a.kind = k.id WHERE k.id = 9");
    assert_eq!(rows(&mut session, &made_up).await, "9|0");
    // Each of several scores is independent.
    let several = "SELECT id, MATCH(title) AGAINST('quantum') > 0, MATCH(body) AGAINST('quantum') > 0 \
                   FROM a WHERE id IN (4, 6) ORDER BY id";
    assert_eq!(rows(&mut session, several).await, "4|0|1\n6|1|0");
    let boolean = "SELECT id FROM a ORDER BY MATCH(body) AGAINST('+physics -quantum' IN BOOLEAN MODE) \
                   DESC, id LIMIT 2";
    assert_eq!(rows(&mut session, boolean).await, "6\n2");
}

#[tokio::test]
async fn rows_that_are_not_committed_are_scored_as_after_the_commit() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let committed = searched(&mut session).await;
    run(&mut session, "BEGIN").await.unwrap();
    run(&mut session, "INSERT INTO a VALUES (7, 1, 'x', 'Quantum Physics')").await.unwrap();
    run(&mut session, "DELETE FROM a WHERE id = 4").await.unwrap();
    let now = scores(&mut session, &format!("SELECT id, {SCORE} FROM a WHERE {SCORE}")).await;
    assert!(now.contains_key("7") && !now.contains_key("4"));
    assert_ne!(now["1"], committed["1"]);
    run(&mut session, "COMMIT").await.unwrap();
    assert_eq!(now, searched(&mut session).await);
}

#[tokio::test]
async fn a_match_without_an_index_is_an_error() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let error = "1191 Can't find FULLTEXT index matching the column list";
    for statement in [
        "SELECT MATCH(label) AGAINST('x') + 0 FROM kinds",
        "SELECT id FROM kinds WHERE MATCH(label) AGAINST('x') OR id + 0 = 1",
        "SELECT k.id FROM kinds k JOIN a ON a.kind = k.id WHERE MATCH(k.label) AGAINST('x')",
    ] {
        assert_eq!(rows(&mut session, statement).await, error, "{statement}");
    }
}

/// The searched text may be any expression that is constant for all rows.
#[tokio::test]
async fn what_is_sought_may_be_worked_out() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE ft (id INT PRIMARY KEY, t TEXT, FULLTEXT KEY (t))",
        "INSERT INTO ft VALUES (1, 'alpha beta'), (2, 'beta gamma'), (3, 'delta 5')",
        "SET @w = 'alpha', @v = 'al', @n = 5",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let wrong = "1210 Incorrect arguments to AGAINST";
    for (sought, expected) in [
        ("@w", "1"),
        ("@w IN BOOLEAN MODE", "1"),
        ("CONCAT('al', 'pha')", "1"),
        ("CONCAT('+beta -', @w) IN BOOLEAN MODE", "2"),
        ("CONCAT('+beta -', @w) IN NATURAL LANGUAGE MODE", "1\n2"),
        ("@undefined", ""),
        ("NULL", ""),
        ("5", "3"),
        ("@n", "3"),
        ("(SELECT 'alpha')", "1"),
        ("(SELECT t FROM ft AS x WHERE id = 3)", "3"),
        ("(SELECT t FROM ft AS x WHERE MATCH(t) AGAINST(CONCAT(@v, 'pha')))", "1\n2"),
        ("LOWER('ALPHA')", "1"),
        ("CURRENT_DATE", ""),
        ("t", wrong),
        ("CONCAT(t, 'x')", wrong),
        ("RAND()", wrong),
        ("UUID()", wrong),
    ] {
        let asked = format!("SELECT id FROM ft WHERE MATCH(t) AGAINST({sought}) ORDER BY id");
        assert_eq!(rows(&mut session, &asked).await, expected, "{sought}");
        if !expected.starts_with('1') || expected == "1" {
            let scored = format!("SELECT id, MATCH(t) AGAINST({sought}) > 0 FROM ft WHERE id = 1");
            let score = if expected == wrong {
                wrong
            } else if expected == "1" {
                "1|1"
            } else {
                "1|0"
            };
            assert_eq!(rows(&mut session, &scored).await, score, "{sought}");
        }
    }
    let delete = "DELETE FROM ft WHERE MATCH(t) AGAINST(@w)";
    assert_eq!(run(&mut session, delete).await.unwrap().sets[0].outcome.affected_rows, 1);
    let text = b"SELECT id FROM ft WHERE MATCH(t) AGAINST(CONCAT(?, 'ta')) ORDER BY id";
    let prepared = session.prepare(text).await.unwrap();
    let mut answers = crate::support::Answers::default();
    let given = [remora_engine::Value::Text("del".into())];
    session.execute(&prepared, &given, &mut answers).await.unwrap();
    assert_eq!(answers.sets[0].text(), "3");
}

#[tokio::test]
async fn in_boolean_mode_the_best_rows_come_first_too() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let best = ["1", "6", "2"];
    for statement in [
        "SELECT id FROM a WHERE MATCH(body) AGAINST('+physics' IN BOOLEAN MODE)",
        "SELECT id, LEFT(body, 3) FROM a WHERE MATCH(body) AGAINST('+physics' IN BOOLEAN MODE)",
        "SELECT id, LEFT(body, 3) FROM a WHERE MATCH(body) AGAINST('physics') ORDER BY NULL",
        "SELECT id, LEFT(body, 3) FROM a WHERE MATCH(body) AGAINST('physics') > 0.001",
    ] {
        for _ in 0..3 {
            assert_eq!(ids(&mut session, statement).await, best, "{statement}");
            let page = format!("{statement} LIMIT 2");
            assert_eq!(ids(&mut session, &page).await, best[..2], "{page}");
        }
    }
}

#[tokio::test]
async fn quotation_marks_are_phrases_or_nothing() {
    let server = Server::new();
    let mut session = filled(&server).await;
    for (text, mode, expected) in [
        ("\"quantum physics\"", "", "1"),
        ("\"physics quantum\"", "", ""),
        ("\"physics quantum\" long", "", "2"),
        ("\"quantum", "", "1 4"),
        ("\"quantum", "IN BOOLEAN MODE", "1 4"),
        ("+\"physics long", "IN BOOLEAN MODE", "1 2 6"),
        ("+\"is physics\" -long", "IN BOOLEAN MODE", "1"),
    ] {
        let statement =
            format!("SELECT id FROM a WHERE MATCH(body) AGAINST('{text}' {mode}) ORDER BY id");
        assert_eq!(ids(&mut session, &statement).await.join(" "), expected, "{statement}");
    }
    let expanded = "SELECT id FROM a WHERE MATCH(body) AGAINST('long' WITH QUERY EXPANSION)";
    let error = run(&mut session, expanded).await.unwrap_err().to_string();
    assert!(error.contains("WITH QUERY EXPANSION"), "{error}");
}
