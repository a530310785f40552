//! Literals that are parameters of a cached plan's expressions give what the general path gives.

use super::super::tests::fixture;

#[test]
fn literals_of_expressions_are_parameters() {
    let mut fixture = fixture();
    for template in [
        "SELECT id FROM articles WHERE id < 60 AND kind + 1 > @",
        "SELECT id FROM articles WHERE id < 60 AND @ < kind + 1",
        "SELECT id FROM articles WHERE id < 60 AND kind * 2.5 BETWEEN @ AND 40",
        "SELECT kind, COUNT(*) FROM articles WHERE id < 90 GROUP BY kind HAVING COUNT(*) > @",
        "SELECT id, IF(kind = @, 'a', 'b') AS x FROM articles WHERE id < 30",
        "SELECT id, CASE WHEN kind > @ THEN 1 ELSE 0 END AS x FROM articles WHERE id < 30",
        "SELECT SUM(CASE WHEN kind + 0 > @ THEN 1 ELSE 0 END) AS n FROM articles WHERE id < 50",
        "SELECT id FROM articles WHERE id < 50 ORDER BY MOD(id, 10) = @ DESC, id LIMIT 7",
        "SELECT id FROM articles WHERE id < 50 AND (kind = 2 OR LENGTH(body) > @)",
        "SELECT id FROM articles WHERE (id, kind) = (@, 2)",
        "SELECT a.id, b.id FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20 AND a.kind + b.kind > @",
        "SELECT id FROM articles a WHERE id < 20 AND (SELECT COUNT(*) FROM articles b WHERE b.kind = a.kind AND b.id + 0 < @) > 1",
    ] {
        let texts: Vec<String> = (1..24).map(|it| template.replace('@', &it.to_string())).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        fixture.kept(&texts, template.contains("ORDER BY"));
    }
    let texts: Vec<String> = ["1", "007", "99", "123456789012345678", "3"]
        .map(|it| format!("SELECT id FROM articles WHERE id < 60 AND kind + 1 < {it}"))
        .into();
    fixture.kept(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
}

#[test]
fn texts_of_expressions_are_parameters() {
    let mut fixture = fixture();
    let words =
        ["", "a", "A", "cat", "CAT ", "it''s", "x\\\\y", "zz", "the", "5", "2024-01-01", "k"];
    for template in [
        "SELECT id FROM articles WHERE id < 60 AND LOWER(body) < '@'",
        "SELECT id FROM articles WHERE id < 60 AND CONCAT(body, 'x') >= '@'",
        "SELECT id, IF(UPPER(body) > '@', 1, 0) AS x FROM articles WHERE id < 30",
        "SELECT LEFT(body, 1) AS l, COUNT(*) FROM articles WHERE id < 90 GROUP BY l HAVING l <> '@'",
    ] {
        let texts: Vec<String> = words.iter().map(|it| template.replace('@', it)).collect();
        fixture.kept(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
    }
}

#[test]
fn literals_that_decide_a_plan_are_part_of_it() {
    let mut fixture = fixture();
    // The column is called as its text, types depend on values, a date is compared with a text.
    for template in [
        "SELECT kind > @ FROM articles WHERE id = 5",
        "SELECT ROUND(kind / 3, @) AS r FROM articles WHERE id = 5",
        "SELECT @ AS n, id FROM articles WHERE id = 5",
        "SELECT id FROM articles WHERE id < 60 AND DATE_ADD('2024-01-01', INTERVAL kind DAY) > '2024-01-0@'",
        "SELECT id FROM articles WHERE id < 60 AND kind + 1 > '@'",
        "SELECT id FROM articles WHERE id < 60 AND LENGTH(body) IN (@, 44, 70)",
        "SELECT LEFT(body, @) AS l FROM articles WHERE id = 5",
    ] {
        let texts: Vec<String> = (1..6).map(|it| template.replace('@', &it.to_string())).collect();
        for text in texts.iter().chain(&texts) {
            let general = fixture.general(text);
            if let Some(kept) = fixture.quick(text) {
                assert_eq!(kept, general, "{text}");
            }
        }
    }
    // Another kind of literal takes another plan.
    let text =
        |literal: &str| format!("SELECT id FROM articles WHERE id < 60 AND kind + 1 > {literal}");
    for literal in ["3", "3.5", "'4'", "-1", "3", "1e1", "99999999999999999999", "NULL", "4"] {
        let text = text(literal);
        let general = fixture.general(&text);
        if let Some(kept) = fixture.quick(&text) {
            assert_eq!(kept, general, "{text}");
        }
    }
}

#[test]
fn sizes_of_intervals_are_parameters() {
    let mut fixture = fixture();
    for template in [
        "SELECT id FROM articles WHERE id < 60 AND NOW() - INTERVAL @ DAY < NOW() - INTERVAL kind DAY",
        "SELECT COUNT(*) FROM articles WHERE id < 60 AND CURDATE() > CURDATE() - INTERVAL @ HOUR",
    ] {
        let texts: Vec<String> = (0..20).map(|it| template.replace('@', &it.to_string())).collect();
        fixture.kept(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
    }
}
