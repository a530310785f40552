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
            fixture.agrees(text);
        }
    }
    // Another kind of literal takes another plan.
    let text =
        |literal: &str| format!("SELECT id FROM articles WHERE id < 60 AND kind + 1 > {literal}");
    for literal in ["3", "3.5", "'4'", "-1", "3", "1e1", "99999999999999999999", "NULL", "4"] {
        let text = text(literal);
        fixture.agrees(&text);
    }
}

#[test]
fn sizes_of_intervals_are_parameters() {
    let mut fixture = fixture();
    for template in [
        "SELECT id FROM articles WHERE id < 60 AND NOW() - INTERVAL @ DAY < NOW() - INTERVAL kind DAY",
        "SELECT COUNT(*) FROM articles WHERE id < 60 AND CURDATE() - INTERVAL kind HOUR > CURDATE() - INTERVAL @ HOUR",
    ] {
        let texts: Vec<String> = (0..20).map(|it| template.replace('@', &it.to_string())).collect();
        fixture.kept(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
    }
}

#[test]
fn expressions_that_were_equal_may_differ() {
    let mut fixture = fixture();
    for template in [
        "SELECT id, LOWER(body) < '@' AS f, LOWER(body) < '#' AS g FROM articles WHERE id < 60 ORDER BY g, id",
        "SELECT id, kind + 1 > @ AS f FROM articles WHERE id < 60 ORDER BY kind + 1 > 2, id",
        "SELECT kind, SUM(id + 0 < @) AS a, SUM(id + 0 < #) AS b FROM articles WHERE id < 60 GROUP BY kind ORDER BY b, kind",
        "SELECT COUNT(*) AS c FROM articles WHERE id < 90 GROUP BY id % 7 > @, id % 7 > # ORDER BY c",
        "SELECT DISTINCT id % 7 > @ AS f FROM articles WHERE id < 90 ORDER BY id % 7 > @",
    ] {
        for (one, other) in [("2", "2"), ("2", "2"), ("2", "5"), ("2", "5"), ("4", "1"), ("3", "3")]
        {
            let text = template.replace('@', one).replace('#', other);
            fixture.agrees(&text);
        }
    }
}

#[test]
fn texts_beside_dates_are_no_parameters() {
    let mut fixture = fixture();
    let date = |text: &str| {
        format!(
            "SELECT id, IF(CURDATE() + INTERVAL kind DAY > '{text}', 1, 0) AS f FROM articles WHERE id < 9"
        )
    };
    let dated = |text: &str| {
        format!(
            "SELECT id, IF(CURDATE() + INTERVAL 1 DAY > '{text}', 1, 0) AS f FROM articles WHERE id < 9"
        )
    };
    for statement in [&date as &dyn Fn(&str) -> String, &dated] {
        for text in ["2020-01-01", "2020-01-01", "2999-01-01", "2020-01-02", "2999-01-01"] {
            let text = statement(text);
            fixture.agrees(&text);
        }
        // The general path refuses it.
        assert!(fixture.quick(&statement("abc")).is_none());
    }
}

#[test]
fn conditions_without_columns_are_asked_of_the_only_group() {
    let mut fixture = fixture();
    for template in [
        "SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20 HAVING LENGTH('abc') > @",
        "SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20 HAVING 1 + 1 < @",
        "SELECT * FROM (SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20) d \
         WHERE LENGTH('abc') > @",
        "SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20 \
         HAVING (SELECT COUNT(*) FROM articles WHERE id < 3) > @",
        "SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1 WHERE a.id < 20 \
         HAVING NOW() > '20@9-01-01'",
    ] {
        for literal in ["2", "1", "5", "0", "2", "9", "1"] {
            let text = template.replace('@', literal);
            fixture.agrees(&text);
        }
    }
    let counted = "SELECT COUNT(*) AS c FROM articles a JOIN articles b ON b.id = a.id + 1";
    for none in [
        format!("{counted} HAVING RAND() > 2"),
        format!("SELECT * FROM ({counted}) d WHERE RAND() > 2"),
        format!("SELECT * FROM ({counted} HAVING COUNT(*) > 0) d WHERE RAND() > 2"),
    ] {
        assert_eq!(fixture.general(&none).rows.len(), 0, "{none}");
    }
}
