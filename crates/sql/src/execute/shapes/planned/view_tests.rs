//! Conditions on views over views, and recursive expressions, in cached plans.

use super::super::tests::fixture;

#[test]
fn conditions_on_views_over_views_are_parameters() {
    let mut fixture = fixture();
    let joined = "SELECT * FROM (SELECT x.a, y.q FROM ((SELECT id AS a, kind AS k FROM articles WHERE note IS NOT NULL) x \
                  JOIN (SELECT s.i AS j, s.q AS q FROM shop.stock s WHERE s.w = 2) y ON y.j = x.a)) v WHERE v.a = @";
    let counted = "SELECT a, n FROM (SELECT x.a AS a, (SELECT COUNT(0) FROM shop.stock p WHERE p.i = x.a) AS n \
                   FROM (SELECT id AS a FROM articles) x) v WHERE a = @";
    for template in [joined, counted] {
        let texts: Vec<String> = (1..24).map(|id| template.replace('@', &id.to_string())).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        fixture.kept(&texts, false);
    }
}

#[test]
fn recursions_are_kept() {
    let mut fixture = fixture();
    let tree = "WITH RECURSIVE t AS (SELECT id, kind, 0 AS depth FROM articles WHERE id = @ UNION ALL \
                SELECT a.id, a.kind, t.depth + 1 FROM articles a JOIN t ON a.id = t.id * 2) \
                SELECT * FROM t ORDER BY id";
    let joined = "WITH RECURSIVE t (n) AS (SELECT s.i FROM shop.stock s WHERE s.w = 1 AND s.i = @ UNION ALL \
                  SELECT t.n + 3 FROM t WHERE t.n < 30) \
                  SELECT t.n, a.body FROM t LEFT JOIN articles a ON a.id = t.n ORDER BY t.n";
    let distinct = "WITH RECURSIVE t AS (SELECT body, id % 7 AS n FROM articles WHERE id = @ UNION \
                    SELECT UPPER(a.body), a.id % 7 FROM articles a JOIN t ON a.kind = t.n) \
                    SELECT COUNT(*), SUM(n) FROM t";
    let several = "WITH RECURSIVE t AS (SELECT id AS n FROM articles WHERE id = @ UNION ALL \
                   SELECT n * 2 FROM t WHERE n < 40 UNION ALL SELECT n * 3 FROM t WHERE n < 30) SELECT * FROM t";
    for (template, ordered) in [(tree, true), (joined, true), (distinct, true), (several, true)] {
        let texts: Vec<String> = (1..12).map(|id| template.replace('@', &id.to_string())).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        fixture.kept(&texts, ordered);
    }
}

#[test]
fn recursions_without_end_are_left_to_the_general_path() {
    let mut fixture = fixture();
    for id in 1..4 {
        let text = format!(
            "WITH RECURSIVE t AS (SELECT id AS n FROM articles WHERE id = {id} UNION ALL \
             SELECT n + 1 FROM t) SELECT COUNT(*) FROM t"
        );
        assert!(fixture.quick(&text).is_none(), "{text}");
    }
}
