//! Which statements have a shape, and which one.

use std::sync::Arc;

use remora_mysql::LexMode;

use super::{
    AnyShape,
    parameterize::ParameterizedText,
    shape::{MatchOption, Repeated, Shape, ShapeCondition, ShapeItem},
};

fn any_shape(text: &str, mode: LexMode) -> Option<AnyShape> {
    let mut parameterized = ParameterizedText::default();
    let is_read = parameterized.read(text.as_bytes(), mode, None);
    let of = || AnyShape::of(text.as_bytes(), mode, &parameterized.pieces, None, &Arc::default());
    is_read.then(of)?
}

fn shape(text: &str) -> Shape {
    match any_shape(text, LexMode::default()) {
        Some(AnyShape::One(shape)) => *shape,
        _ => panic!("no shape of one table: {text}"),
    }
}

fn condition(condition: &str) -> ShapeCondition {
    let shape = shape(&format!("SELECT id FROM t WHERE {condition}"));
    shape.select.condition.unwrap()
}

fn shown(text: &str) -> String {
    match any_shape(text, LexMode::default()) {
        Some(AnyShape::One(shape)) => format!("{shape:?}"),
        Some(AnyShape::Joined(shape)) => format!("{shape:?}"),
        None => panic!("no shape: {text}"),
    }
}

#[test]
fn what_is_repeated_is_parsed_once() {
    let many = vec!["a = 1 AND b IN (1, 2)"; 30_000].join(" OR ");
    let ShapeCondition::Again(one, repeated) = condition(&many) else { panic!("not again") };
    assert_eq!(repeated, Repeated { times: 30_000, groups: 2 });
    assert_eq!(*one, condition("a = 1 AND b IN (1, 2)"));
    let nested = condition("(a = 1 OR a = 2) OR (a = 3 OR a = 4) OR b = 5");
    let ShapeCondition::Or(parts) = &nested else { panic!("{nested:?}") };
    let [ShapeCondition::Again(inner, outer), _] = &parts[..] else { panic!("{nested:?}") };
    assert_eq!(*outer, Repeated { times: 2, groups: 2 });
    assert!(matches!(**inner, ShapeCondition::Again(_, Repeated { times: 2, groups: 1 })));
    // AND belongs to the last operand alone.
    let and = condition("a = 1 OR a = 2 OR a = 3 AND b = 4");
    let ShapeCondition::Or(parts) = &and else { panic!("{and:?}") };
    assert!(matches!(
        &parts[..],
        [ShapeCondition::Again(_, Repeated { times: 2, .. }), ShapeCondition::And(_)]
    ));
    let select = "SELECT id FROM t WHERE (a, b) IN ((1, 2), (3, 4))";
    let united = shape(&vec![select; 10_000].join(" UNION ALL "));
    assert!(united.all && united.branches == Repeated { times: 10_000, groups: 1 });
    assert!(!shape(&format!("({select}) UNION ({select})")).all);
}

#[test]
fn other_words_for_the_same_give_the_same_shape() {
    for (one, other) in [
        ("SELECT id FROM t WHERE a = 1 && b = 2", "SELECT id FROM t WHERE a = 1 AND b = 2"),
        ("SELECT id FROM t WHERE 1 < a", "SELECT id FROM t WHERE a > 'x'"),
        ("SELECT ALL id FROM t", "SELECT SQL_NO_CACHE id FROM t"),
        ("(SELECT `id` AS x FROM t AS u)", "SELECT id x FROM `t` u"),
        ("SELECT DISTINCT a FROM t", "SELECT a FROM t GROUP BY a"),
        ("SELECT id FROM t WHERE NOT a LIKE 'x'", "SELECT id FROM t WHERE a NOT LIKE 'y'"),
        ("SELECT id FROM t ORDER BY a ASC LIMIT 1", "SELECT id FROM t ORDER BY a LIMIT 2;"),
        (
            "SELECT id FROM t WHERE MATCH a, b AGAINST ('x')",
            "SELECT id FROM t WHERE MATCH (a, b) AGAINST ('y' IN NATURAL LANGUAGE MODE)",
        ),
        (
            "SELECT x FROM JSON_TABLE('[1]', '$[*]' COLUMNS (k INT PATH '$')) j JOIN t ON j.k = t.id",
            "SELECT x FROM JSON_TABLE('', '' COLUMNS (k INTEGER PATH '')) AS j INNER JOIN t ON t.id=j.k",
        ),
        (
            "SELECT x FROM t, u WHERE (t.a = 1 AND u.b = t.a - 1)",
            "SELECT x FROM t, u WHERE t.a = 2 && u.b = t.a - 3",
        ),
    ] {
        assert_eq!(shown(one), shown(other), "{one}");
    }
}

#[test]
fn columns_without_an_alias_are_named_by_their_text() {
    let named = |text: &str| {
        let items = shape(text).select.items.into_iter();
        let names = items.map(|item| match item {
            ShapeItem::One(_, name) => name,
            ShapeItem::Every(of) => format!("{of:?}"),
        });
        names.collect::<Vec<_>>()
    };
    let names = named("SELECT ALL t.A, count( * ), MIN(`a`) x, Max( /* b */ t.b ) , t.* FROM t");
    assert_eq!(names, ["A", "count( * )", "x", "Max( /* b */ t.b )", "Some(\"t\")"]);
}

#[test]
fn options_of_keyword_queries_keep_their_literals() {
    let text = "SELECT id FROM t WHERE a = 1 AND MATCH('x', t) LIMIT 2 OPTION max_matches=3, \
                Field_Weights=(a=4, b=5), ranker=proximity, ranker=expr('x')";
    let select = shape(text).select;
    let keywords = select.condition.as_ref().and_then(ShapeCondition::keywords).unwrap();
    assert_eq!((keywords.text, keywords.table.as_deref()), (1, Some("t")));
    let list = vec![("a".to_owned(), 4), ("b".to_owned(), 5)];
    let named = |name: &str, option| (name.to_owned(), option);
    assert_eq!(
        keywords.options,
        [
            named("max_matches", MatchOption::Literal(3)),
            named("field_weights", MatchOption::List(list)),
            named("ranker", MatchOption::Word("proximity".to_owned())),
            named("ranker", MatchOption::Call("expr".to_owned(), 6)),
        ]
    );
}

const WITHOUT_SHAPE: [&str; 62] = [
    "SELECT a FROM t WHERE id = 1 FOR UPDATE",
    "SELECT a FROM t WHERE id = 1 FOR SHARE SKIP LOCKED",
    "SELECT a INTO @a FROM t WHERE id = 1",
    "SELECT a FROM t WHERE id = 1 INTO @a",
    "SELECT a FROM t GROUP BY a WITH ROLLUP",
    "SELECT a FROM t GROUP BY a, b + 1",
    "SELECT a FROM t GROUP BY a HAVING a = 1",
    "SELECT a FROM t PARTITION (p) WHERE id = 1",
    "SELECT a FROM t USE INDEX (a) WHERE id = 1",
    "SELECT a FROM t WHERE id = 1 WINDOW w AS (ORDER BY a)",
    "SELECT a AS 'x' FROM t WHERE id = 1",
    "SELECT a 'x' FROM t WHERE id = 1",
    "SELECT DISTINCT SQL_NO_CACHE a FROM t",
    "SELECT HIGH_PRIORITY a FROM t WHERE id = 1",
    "SELECT SQL_CALC_FOUND_ROWS a FROM t WHERE id = 1",
    "SELECT `COUNT`(*) FROM t",
    "SELECT COUNT(*) OVER () FROM t",
    "SELECT MIN(DISTINCT a) FROM t",
    "SELECT UTC_DATE FROM t WHERE id = 1",
    "SELECT a FROM t WHERE UTC_DATE = 1",
    "SELECT s.t.a FROM t WHERE id = 1",
    "SELECT a -> '$.b' FROM t WHERE id = 1",
    "SELECT MATCH(a) AGAINST ('x') FROM t",
    "SELECT MATCH(a) AGAINST ('x' WITH QUERY EXPANSION) AS s FROM t",
    "SELECT a FROM t WHERE MATCH('x', 'y')",
    "SELECT a FROM t WHERE match_keywords('x', '')",
    "SELECT a FROM t WHERE `#repeated`(a = 1, 1)",
    "SELECT a FROM t WHERE MATCH('x') OPTION max_query_time=1",
    "SELECT a FROM t WHERE id = 1 OPTION max_matches=1",
    "SELECT a FROM t WHERE MATCH('x') ORDER BY a OPTION max_matches=1",
    "SELECT a FROM t WHERE a = 1 || b = 2",
    "SELECT a FROM t WHERE a = 1 XOR b = 2",
    "SELECT a FROM t WHERE a = 'x' 'y'",
    "SELECT a FROM t WHERE a = 1 'y'",
    "SELECT a FROM t WHERE a = _latin1'x'",
    "SELECT a FROM t WHERE a = DATE '2020-01-01'",
    "SELECT a FROM t WHERE a = n'x'",
    "SELECT a FROM t WHERE a LIKE 'x' ESCAPE '!'",
    "SELECT a FROM t WHERE a <=> 1",
    "SELECT a FROM t WHERE a = 1 = 2",
    "SELECT a FROM t WHERE a = 1 OR a = 2 = 3",
    "SELECT a FROM t WHERE a = 1 OR a = 2 + 3",
    "SELECT a FROM t WHERE a IS TRUE",
    "SELECT a FROM t WHERE !a = 1",
    "SELECT a FROM t WHERE a COLLATE utf8mb4_bin = 'x'",
    "SELECT a FROM t WHERE (a) IN (1)",
    "SELECT a FROM t WHERE (a, b) IN ((1, 2, 3))",
    "SELECT a FROM t WHERE (a, b) = (1, 2)",
    "SELECT a FROM t WHERE a IN (1, b)",
    "SELECT a FROM t WHERE a IN ((1), 2)",
    "SELECT a FROM t ORDER BY a + 1 LIMIT 1",
    "SELECT a FROM t ORDER BY 'a' LIMIT 1",
    "SELECT a FROM t LIMIT 1 + 1",
    "SELECT a FROM t WHERE id = 1 UNION SELECT b FROM t WHERE id = 1",
    "SELECT a FROM t WHERE id = 1 UNION SELECT a FROM t WHERE id = 2 UNION ALL SELECT a FROM t \
     WHERE id = 3",
    "SELECT a FROM t WHERE id = 1 UNION SELECT a FROM t WHERE id = 2 ORDER BY a",
    "(SELECT a FROM t WHERE id = 1) LIMIT 1",
    "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
    "SELECT k FROM JSON_TABLE('', '' COLUMNS (k INT PATH '' NULL ON EMPTY)) j JOIN t ON j.k = t.id",
    "SELECT k FROM JSON_TABLE('', '' COLUMNS (k INT PATH '')) j LEFT JOIN t ON j.k = t.id",
    "SELECT x FROM t LEFT JOIN u ON t.a = u.a",
    "SELECT x FROM t JOIN u USING (a)",
];

#[test]
fn what_a_shape_does_not_know_has_none() {
    for text in WITHOUT_SHAPE {
        assert!(any_shape(text, LexMode::default()).is_none(), "{text}");
    }
    let nested = |depth: usize| {
        let text = format!("SELECT a FROM t WHERE {}a = 1{}", "(".repeat(depth), ")".repeat(depth));
        any_shape(&text, LexMode::default()).is_some()
    };
    assert!(nested(24) && !nested(25) && !nested(100_000));
    let united = LexMode { pipes_as_concat: true, ..LexMode::default() };
    assert!(any_shape("SELECT a FROM t WHERE a = 1 || 2", united).is_none());
    let quoted = LexMode { ansi_quotes: true, ..LexMode::default() };
    assert!(any_shape("SELECT \"a\" FROM \"t\" WHERE \"a\" = 'x'", quoted).is_some());
    assert!(any_shape("SELECT \"a\" FROM t", LexMode::default()).is_none());
}
