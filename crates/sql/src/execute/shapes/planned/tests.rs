//! What a kept plan answers is what the general way answers, with other literals too.

use super::super::tests::{Fixture, fixture};

impl Fixture {
    /// Runs statements of one shape, of which all but the first are answered by a kept plan.
    fn kept(&mut self, texts: &[&str], ordered: bool) {
        for (at, text) in texts.iter().enumerate() {
            let mut general = self.general(text);
            let Some(mut kept) = self.quick(text) else {
                assert_eq!(at, 0, "no plan was kept: {text}");
                continue;
            };
            assert!(at > 0, "it has a shape of its own: {text}");
            if !ordered {
                kept.rows.sort();
                general.rows.sort();
            }
            assert_eq!(kept, general, "{text}");
        }
    }
}

#[test]
fn plans_are_kept_for_statements_of_one_table() {
    let mut fixture = fixture();
    for texts in [
        [
            "SELECT SUM(kind) FROM articles WHERE id BETWEEN 1 AND 9",
            "SELECT SUM(kind) FROM articles WHERE id BETWEEN 20 AND 75",
        ],
        [
            "SELECT DISTINCT body, kind FROM articles WHERE id BETWEEN 1 AND 30 ORDER BY body, kind",
            "SELECT DISTINCT body, kind FROM articles WHERE id BETWEEN 60 AND 61 ORDER BY body, kind",
        ],
        [
            "SELECT body FROM articles WHERE id BETWEEN 1 AND 30 ORDER BY body, id LIMIT 4",
            "SELECT body FROM articles WHERE id BETWEEN 3 AND 70 ORDER BY body, id LIMIT 9",
        ],
        [
            "SELECT id + 1, UPPER(body) AS b FROM articles WHERE kind = 2 AND id > 5 ORDER BY id DESC LIMIT 2, 3",
            "SELECT id + 1, UPPER(body) AS b FROM articles WHERE kind = 1 AND id > 50 ORDER BY id DESC LIMIT 0, 7",
        ],
        [
            "SELECT kind, COUNT(*), AVG(id), MAX(body) FROM articles WHERE id < 70 GROUP BY kind HAVING COUNT(*) > 2 ORDER BY kind",
            "SELECT kind, COUNT(*), AVG(id), MAX(body) FROM articles WHERE id < 9 GROUP BY kind HAVING COUNT(*) > 2 ORDER BY kind",
        ],
        [
            "SELECT kind, GROUP_CONCAT(id) FROM articles WHERE id < 12 GROUP BY kind ORDER BY kind",
            "SELECT kind, GROUP_CONCAT(id) FROM articles WHERE id < 70 GROUP BY kind ORDER BY kind",
        ],
        [
            "SELECT COUNT(DISTINCT kind), MIN(note) FROM articles WHERE id IN (1, 2, 3)",
            "SELECT COUNT(DISTINCT kind), MIN(note) FROM articles WHERE id IN (7, 70, 500, 8, 9)",
        ],
        [
            "SELECT COUNT(note) FROM articles WHERE id BETWEEN 1 AND 5 OR id BETWEEN 9 AND 12 OR id BETWEEN 3 AND 4",
            "SELECT COUNT(note) FROM articles WHERE id BETWEEN 70 AND 75 OR id BETWEEN 1 AND 2 OR id BETWEEN 71 AND 99",
        ],
        [
            "SELECT a.id * 2 FROM articles AS a WHERE a.body LIKE 'quantum%' AND NOT (a.id = 3 OR a.kind IS NULL)",
            "SELECT a.id * 2 FROM articles AS a WHERE a.body LIKE 'quantum%' AND NOT (a.id = 8 OR a.kind IS NULL)",
        ],
        [
            "SELECT IF(q IS NULL, 0, q % 3), w FROM shop.stock WHERE 2 = w AND i <> 4 ORDER BY 1, i DESC",
            "SELECT IF(q IS NULL, 0, q % 3), w FROM shop.stock WHERE 3 = w AND i <> 5 ORDER BY 1, i DESC",
        ],
        [
            "SELECT d, SUM(price * n) AS s FROM shop.sold WHERE w = 1 GROUP BY d ORDER BY s DESC LIMIT 5",
            "SELECT d, SUM(price * n) AS s FROM shop.sold WHERE w = 3 GROUP BY d ORDER BY s DESC LIMIT 1",
        ],
        [
            "SELECT COUNT(*) + 1 FROM shop.sold WHERE item IS NULL AND o > 3",
            "SELECT COUNT(*) + 1 FROM shop.sold WHERE item IS NULL AND o > 999",
        ],
    ] {
        let ordered = texts[0].contains("ORDER BY");
        fixture.kept(&texts, ordered);
    }
}

#[test]
fn literals_that_are_a_part_of_a_plan_have_plans_of_their_own() {
    let mut fixture = fixture();
    let texts: Vec<String> = (0..4)
        .map(|add| format!("SELECT id + {add}, '{add}' FROM articles WHERE id > 77"))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.kept(&texts, false);
    // Each of them again, with its own.
    for text in &texts[1..] {
        assert_eq!(fixture.quick(text).unwrap(), fixture.general(text), "{text}");
    }
}

#[test]
fn a_plan_is_made_anew_when_its_table_or_session_changes() {
    let mut fixture = fixture();
    let text = "SELECT SUM(q), MAX(w) / 3 FROM shop.stock WHERE i < 9";
    fixture.kept(&[text, text], false);
    fixture.run("SET div_precision_increment = 7");
    fixture.kept(&["SELECT 1 + q FROM shop.stock WHERE i < 9", text], false);
    fixture.run("ALTER TABLE shop.stock MODIFY q DECIMAL(12, 3)");
    let again = fixture.quick(text).unwrap();
    assert_eq!(again, fixture.general(text));
    fixture.run("START TRANSACTION");
    fixture.run("INSERT INTO shop.stock VALUES (1, 0, 1000000)");
    // What this session alone sees is read the general way.
    assert!(fixture.quick(text).is_none());
    fixture.run("ROLLBACK");
    assert_eq!(fixture.quick(text).unwrap(), again);
    fixture.run("DROP TABLE shop.stock");
    assert!(fixture.quick(text).is_none());
}

#[test]
fn what_is_not_the_same_each_time_is_not_kept() {
    let mut fixture = fixture();
    for text in [
        "SELECT id, NOW(6) FROM articles WHERE id < 9 ORDER BY body, kind",
        "SELECT id + RAND() FROM articles WHERE id < 9 ORDER BY body, kind",
        "SELECT id + 1, CONNECTION_ID() FROM articles WHERE id < 9",
        "SELECT id + 1 FROM articles WHERE at > TIME'10:00:00'",
        "SELECT id + 1 FROM articles WHERE at > CAST('10:00:00' AS TIME)",
        "SELECT id, SPACE(id) FROM articles WHERE id < 9",
        "SELECT ! kind FROM articles WHERE id < 9",
        "SELECT id + 1, (SELECT MAX(id) FROM articles) FROM articles WHERE id < 9",
        "SELECT id + 1, RANK() OVER (ORDER BY id) FROM articles WHERE id < 9",
        "SELECT id + 'x1' FROM articles WHERE id < 9 AND 'x' + 1",
        "SELECT id + 1 FROM articles WHERE id < 9 LIMIT 0",
    ] {
        for _ in 0..3 {
            assert!(fixture.quick(text).is_none(), "{text}");
        }
    }
}
