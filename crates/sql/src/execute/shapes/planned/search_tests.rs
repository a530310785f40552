//! Searches beside joins and expressions: a cached plan searches each run's text.

use super::super::tests::fixture;

#[test]
fn searches_are_parameters() {
    let mut fixture = fixture();
    for texts in [
        [
            "SELECT id, UPPER(body) AS b FROM articles WHERE MATCH(body) AGAINST('quantum') LIMIT 5",
            "SELECT id, UPPER(body) AS b FROM articles WHERE MATCH(body) AGAINST('physics') LIMIT 9",
        ],
        [
            "SELECT id, LEFT(body, 3) AS b FROM articles WHERE MATCH(body) AGAINST('quantum') ORDER BY id DESC LIMIT 2, 3",
            "SELECT id, LEFT(body, 3) AS b FROM articles WHERE MATCH(body) AGAINST('solace') ORDER BY id DESC LIMIT 1, 9",
        ],
        [
            "SELECT id + 0 AS i, MATCH(body) AGAINST('quantum physics') AS s FROM articles \
             WHERE MATCH(body) AGAINST('quantum physics') AND id > 7 ORDER BY s DESC LIMIT 7",
            "SELECT id + 0 AS i, MATCH(body) AGAINST('history of') AS s FROM articles \
             WHERE MATCH(body) AGAINST('history of') AND id > 30 ORDER BY s DESC LIMIT 70",
        ],
        [
            "SELECT a.id, s.q FROM articles a JOIN shop.stock s ON s.w = a.kind AND s.i = 3 \
             WHERE MATCH(a.body) AGAINST('quantum') LIMIT 6",
            "SELECT a.id, s.q FROM articles a JOIN shop.stock s ON s.w = a.kind AND s.i = 4 \
             WHERE MATCH(a.body) AGAINST('physics') LIMIT 60",
        ],
        [
            "SELECT a.id, s.q FROM articles a JOIN shop.stock s ON s.w = a.kind \
             WHERE MATCH(body) AGAINST('quantum') AND s.i = 5 ORDER BY a.id, s.q LIMIT 6",
            "SELECT a.id, s.q FROM articles a JOIN shop.stock s ON s.w = a.kind \
             WHERE MATCH(body) AGAINST('solace') AND s.i = 4 ORDER BY a.id, s.q LIMIT 60",
        ],
        [
            "SELECT COUNT(*), MAX(id) FROM articles WHERE MATCH(body) AGAINST('+quantum -physics' IN BOOLEAN MODE) AND id > 5",
            "SELECT COUNT(*), MAX(id) FROM articles WHERE MATCH(body) AGAINST('+phys* -history' IN BOOLEAN MODE) AND id > 9",
        ],
        [
            "SELECT kind, COUNT(*) FROM articles WHERE MATCH(note) AGAINST('quantum') GROUP BY kind HAVING COUNT(*) > 1 ORDER BY kind",
            "SELECT kind, COUNT(*) FROM articles WHERE MATCH(note) AGAINST('wait') GROUP BY kind HAVING COUNT(*) > 1 ORDER BY kind",
        ],
    ] {
        fixture.kept(&texts, true);
    }
}

#[test]
fn scores_of_another_text_than_the_rows_match_are_planned() {
    let mut fixture = fixture();
    let statement = |score: &str, found: &str| {
        format!(
            "SELECT id + 0 AS i, MATCH(body) AGAINST('{score}') AS s FROM articles \
             WHERE MATCH(body) AGAINST('{found}') ORDER BY s DESC LIMIT 9"
        )
    };
    let (same, other) = (statement("physics", "physics"), statement("quantum", "physics"));
    fixture.kept(&[&statement("quantum", "quantum"), &same], true);
    assert!(fixture.quick(&other).is_none());
    let general = fixture.general(&other);
    assert!(general.rows.iter().any(|row| row[1] != general.rows[0][1]), "{general:?}");
}

#[test]
fn texts_that_name_columns_are_part_of_the_statement() {
    let mut fixture = fixture();
    for text in ["quantum", "physics"] {
        let statement = format!(
            "SELECT id + 0 AS i, MATCH(body) AGAINST('{text}') + 0 FROM articles \
             WHERE MATCH(body) AGAINST('{text}') LIMIT 4"
        );
        assert!(fixture.quick(&statement).is_none());
        let named = &fixture.general(&statement).columns[1].name;
        assert_eq!(*named, format!("MATCH(body) AGAINST('{text}') + 0"));
    }
}

#[test]
fn patterns_are_parameters() {
    let mut fixture = fixture();
    for template in [
        "SELECT id + 0 AS i FROM articles WHERE body LIKE '%@%' AND id < 90",
        "SELECT id, UPPER(body) AS b FROM articles WHERE body LIKE CONCAT('%', '@', '%') ORDER BY id DESC LIMIT 3",
        "SELECT a.id, s.q FROM articles a JOIN shop.stock s ON s.w = a.kind WHERE a.body LIKE '%@%' AND s.i = 4 ORDER BY a.id, s.q",
        "SELECT COUNT(*), MAX(id + 0) FROM articles WHERE body LIKE '%@%' AND (note LIKE '%wait%' OR note LIKE '%@%')",
    ] {
        let words = ["quantum", "physics", "history", "of the", "no such text"];
        let texts: Vec<String> = words.iter().map(|word| template.replace('@', word)).collect();
        fixture.kept(&texts.iter().map(String::as_str).collect::<Vec<_>>(), true);
        // What the text index does not answer exactly, and what it answers otherwise.
        for word in ["a%b", "q_a", "\\%", "", "quant%um", "it''s", "QUANTUM", "%"] {
            let text = template.replace('@', word);
            fixture.agrees(&text);
        }
    }
}
