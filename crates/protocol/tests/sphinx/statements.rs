//! The SQL statements that search queries are translated to.

use remora_protocol::sphinx::{
    Anchor, AttributeKind, ExcerptRequest, Filter, FilterTest, Group, KeywordsRequest, MatchMode,
    Outer, Query, Ranker, Request, SortMode,
    statement::{Column, ColumnKind, TableShape, excerpts, keywords, search, updates},
};

use crate::exchange::exchange;

/// The captured exchanges' table; `sold` may be NULL.
pub fn books() -> TableShape {
    let column =
        |(name, kind): (&str, _)| Column { name: name.into(), kind, is_nullable: name == "sold" };
    TableShape {
        database: "shop".into(),
        name: "books".into(),
        key: "book`id".into(),
        columns: [
            ("title", ColumnKind::Text),
            ("body", ColumnKind::Text),
            ("year", ColumnKind::Number),
            ("price", ColumnKind::Float),
            ("sold", ColumnKind::BigInt),
            ("kind", ColumnKind::Text),
            ("published", ColumnKind::Time),
            ("lat", ColumnKind::Double),
            ("lon", ColumnKind::Double),
        ]
        .map(column)
        .into(),
        fields: vec!["title".into(), "body".into()],
    }
}

fn query(text: &str) -> Query<'_> {
    Query {
        limit: 20,
        max_matches: 1000,
        mode: MatchMode::Extended,
        text: text.into(),
        select: "year".into(),
        ..Query::default()
    }
}

fn rows(query: &Query<'_>) -> String {
    search(query, &books()).map_or_else(|error| error.to_string(), |statement| statement.rows)
}

/// The statement without the parts that all have in common.
fn short(query: &Query<'_>) -> String {
    rows(query)
        .replace("SELECT `book``id`, WEIGHT(), `year` FROM `shop`.`books`", "~")
        .replace(" LIMIT 0, 20", "")
        .replace(" OPTION ranker=proximity_bm25", "")
        .replace(" ORDER BY WEIGHT() DESC, `book``id` ASC", "")
}

#[test]
fn modes_and_rankers() {
    let of = |mode, ranker| short(&Query { mode, ranker, ..query("it's a \"b\" & c-d") });
    let plain = Ranker::Bm25;
    for (mode, expected) in [
        (MatchMode::All, r#"~ WHERE MATCH('it''s a \\"b\\" \\& c\\-d') OPTION ranker=proximity"#),
        (
            MatchMode::Any,
            r#"~ WHERE MATCH('"it''s a \\"b\\" \\& c\\-d"/1') OPTION ranker=matchany"#,
        ),
        (
            MatchMode::Phrase,
            r#"~ WHERE MATCH('"it''s a \\"b\\" \\& c\\-d"') OPTION ranker=proximity"#,
        ),
        (MatchMode::Boolean, r#"~ WHERE MATCH('it''s a "b" & c-d') OPTION ranker=none"#),
        (MatchMode::Extended, r#"~ WHERE MATCH('it''s a "b" & c-d') OPTION ranker=bm25"#),
        (MatchMode::FullScan, "~"),
    ] {
        assert_eq!(of(mode, plain.clone()), expected);
    }
    assert_eq!(short(&query("")), "~");
    let ranker = Ranker::Expression("sum(lcs)') --".into());
    let expected = "~ WHERE MATCH('x') OPTION ranker=expr('sum(lcs)'') --')";
    assert_eq!(short(&Query { ranker, ..query("x") }), expected);
}

#[test]
fn orders() {
    let of = |sort, clause: &str| short(&Query { sort, sort_clause: clause.into(), ..query("") });
    let key = "`book``id` ASC";
    for (sort, clause, expected) in [
        (SortMode::AttributeDescending, "Year", "~ ORDER BY `year` DESC, WEIGHT() DESC, KEY"),
        (SortMode::AttributeAscending, "price", "~ ORDER BY `price` ASC, WEIGHT() DESC, KEY"),
        (
            SortMode::TimeSegments,
            "year",
            "~ ORDER BY (CASE WHEN CAST(`year` AS SIGNED) >= UNIX_TIMESTAMP() - 3600 THEN 0 \
             WHEN CAST(`year` AS SIGNED) >= UNIX_TIMESTAMP() - 86400 THEN 1 \
             WHEN CAST(`year` AS SIGNED) >= UNIX_TIMESTAMP() - 604800 THEN 2 \
             WHEN CAST(`year` AS SIGNED) >= UNIX_TIMESTAMP() - 2592000 THEN 3 \
             WHEN CAST(`year` AS SIGNED) >= UNIX_TIMESTAMP() - 7776000 THEN 4 ELSE 5 END) ASC, \
             WEIGHT() DESC, KEY",
        ),
        (
            SortMode::Extended,
            "@relevance desc, published ASC, @id desc",
            "~ ORDER BY WEIGHT() DESC, FLOOR(UNIX_TIMESTAMP(`published`)) ASC, `book``id` DESC, KEY",
        ),
        (SortMode::Extended, "@random", "~ ORDER BY RAND(), KEY"),
        (SortMode::Extended, "weight() asc", "~ ORDER BY WEIGHT() ASC, KEY"),
        // The refusals in searchd's words.
        (SortMode::Extended, "year, price", "index books: no sort order defined"),
        (SortMode::Extended, "year", "index books: no sort order defined"),
        (SortMode::Extended, "year up", "index books: invalid sorting order 'up'"),
        (SortMode::Extended, "nope desc", "index books: sort-by attribute 'nope' not found"),
        (SortMode::AttributeAscending, "nope", "index books: sort-by attribute 'nope' not found"),
    ] {
        assert_eq!(of(sort, clause), expected.replace("KEY", key), "{clause}");
    }
    let by = Query {
        sort: SortMode::Expression,
        sort_clause: "@weight + year * 2".into(),
        ..query("x")
    };
    assert_eq!(
        rows(&by),
        "SELECT `book``id`, WEIGHT(), `year`, (WEIGHT() + (CAST(`year` AS SIGNED) * 2)) \
         FROM `shop`.`books` WHERE MATCH('x') \
         ORDER BY (WEIGHT() + (CAST(`year` AS SIGNED) * 2)) DESC, `book``id` ASC LIMIT 0, 20 \
         OPTION ranker=proximity_bm25"
    );
}

#[test]
fn filters() {
    let of = |attribute: &str, test, is_excluding| {
        let filter = Filter { attribute: attribute.to_owned().into(), test, is_excluding };
        short(&Query { filters: vec![filter], ..query("") })
    };
    let ranges = |least, most| FilterTest::FloatRange(least, most);
    let text = |text: &str| FilterTest::Text(text.to_owned().into());
    for (attribute, test, is_excluding, expected) in [
        ("year", FilterTest::Values(vec![1, -2]), false, "~ WHERE `year` IN (1, -2)"),
        ("YEAR", FilterTest::Values(vec![1]), true, "~ WHERE `year` NOT IN (1)"),
        ("@id", FilterTest::Values(vec![7]), false, "~ WHERE `book``id` IN (7)"),
        ("year", FilterTest::Values(vec![]), true, "~ WHERE `year` IS NULL AND FALSE"),
        ("year", FilterTest::Range(-5, 9), false, "~ WHERE `year` BETWEEN -5 AND 9"),
        // NULL is 0 to Sphinx.
        ("sold", FilterTest::Range(1, 9), false, "~ WHERE `sold` BETWEEN 1 AND 9"),
        (
            "sold",
            FilterTest::Range(1, 9),
            true,
            "~ WHERE (`sold` NOT BETWEEN 1 AND 9 OR `sold` IS NULL)",
        ),
        ("sold", FilterTest::Values(vec![0]), false, "~ WHERE (`sold` IN (0) OR `sold` IS NULL)"),
        // 0.1 of 32 bits in a column of as many, and in one of 64.
        (
            "price",
            ranges(0.1, f32::INFINITY),
            false,
            "~ WHERE `price` BETWEEN 1.0000000149011612e-1 AND 3.4028234663852886e38",
        ),
        ("lat", ranges(0.1, 2.0), true, "~ WHERE `lat` NOT BETWEEN 1e-1 AND 2e0"),
        ("kind", text("o'x\\"), false, r"~ WHERE `kind` IN ('o''x\\')"),
        (
            "published",
            FilterTest::Range(5, 6),
            false,
            "~ WHERE FLOOR(UNIX_TIMESTAMP(`published`)) BETWEEN 5 AND 6",
        ),
        ("sold", FilterTest::Null(true), true, "~ WHERE `sold` IS NOT NULL"),
        // The refusals in searchd's words.
        ("title", text("x"), false, "index books: no such filter attribute 'title'"),
        ("nope", text("x"), false, "index books: no such filter attribute 'nope'"),
        ("@count", text("x"), false, "index books: unsupported filter column '@count'"),
        (
            "year",
            ranges(1.0, 2.0),
            false,
            "index books: unsupported filter type 'floatrange' on int column",
        ),
        ("year", text("x"), false, "index books: unsupported filter type 'string' on int column"),
        ("price", ranges(f32::NAN, 1.0), false, "index books: a bound of 'price' is no number"),
    ] {
        assert_eq!(of(attribute, test, is_excluding), expected);
    }
    let ids = |min_id, max_id| short(&Query { min_id, max_id, ..query("") });
    assert_eq!(ids(2, 0), "~ WHERE `book``id` >= 2");
    assert_eq!(ids(0, 9), "~ WHERE `book``id` <= 9");
    assert_eq!(ids(2, u64::MAX), "~ WHERE `book``id` BETWEEN 2 AND 18446744073709551615");
}

#[test]
fn weight_filter_is_in_an_outer_query() {
    let filter = Filter {
        attribute: "@weight".into(),
        test: FilterTest::Range(10, 20),
        is_excluding: false,
    };
    let statement = search(&Query { filters: vec![filter], ..query("x") }, &books()).unwrap();
    let kept = "SELECT * FROM (SELECT `book``id` AS `@id`, WEIGHT() AS `@weight`, \
                WEIGHT() AS `c0`, `book``id` AS `c1`, `year` AS `c2` FROM `shop`.`books` \
                WHERE MATCH('x')) AS `base` WHERE `c0` BETWEEN 10 AND 20";
    assert_eq!(
        statement.rows,
        format!(
            "SELECT `@id`, `@weight`, `c2` FROM ({kept}) AS `kept` ORDER BY `c0` DESC, `c1` ASC \
             LIMIT 0, 20 OPTION ranker=proximity_bm25"
        )
    );
    let count = format!("SELECT COUNT(*) FROM ({kept}) AS `counted` OPTION ranker=proximity_bm25");
    assert_eq!(statement.count, count);
}

#[test]
fn groups() {
    let group = Group {
        function: 3,
        column: "published".into(),
        order: "@count desc, @group asc".into(),
        distinct: "sold".into(),
    };
    let select = "year, sum(price) as s".into();
    let statement = search(&Query { group, select, ..query("x") }, &books()).unwrap();
    assert_eq!(
        statement.rows,
        "SELECT `@id`, `@weight`, `c4`, `a0`, `@group`, `@count`, `@distinct` FROM (\
         SELECT * FROM (\
         SELECT *, MAX(`@rank`) OVER (PARTITION BY `@group`) AS `@distinct` FROM (\
         SELECT *, ROW_NUMBER() OVER (PARTITION BY `@group` ORDER BY `c0` DESC, `c1` ASC) \
         AS `@place`, COUNT(*) OVER (PARTITION BY `@group`) AS `@count`, \
         SUM(`c2`) OVER (PARTITION BY `@group`) AS `a0`, \
         DENSE_RANK() OVER (PARTITION BY `@group` ORDER BY `c3`) AS `@rank` FROM (\
         SELECT `book``id` AS `@id`, WEIGHT() AS `@weight`, WEIGHT() AS `c0`, \
         `book``id` AS `c1`, `price` AS `c2`, CAST(COALESCE(`sold`, 0) AS SIGNED) AS `c3`, \
         `year` AS `c4`, YEAR(FROM_UNIXTIME(FLOOR(UNIX_TIMESTAMP(`published`)))) AS `@group` \
         FROM `shop`.`books` WHERE MATCH('x')) AS `found`) AS `ranked`) AS `grouped` \
         WHERE `@place` = 1) AS `kept` ORDER BY `@count` DESC, `@group` ASC, `@id` ASC \
         LIMIT 0, 20 OPTION ranker=proximity_bm25"
    );
    let outputs: Vec<_> = statement.outputs.iter().map(|o| (&*o.name, o.kind)).collect();
    assert_eq!(
        outputs,
        [
            ("year", AttributeKind::Number),
            ("s", AttributeKind::Float),
            ("@groupby", AttributeKind::Number),
            ("@count", AttributeKind::Number),
            ("@distinct", AttributeKind::Number),
        ]
    );
    let refused = |function, column: &str| {
        let group = Group { function, column: column.to_owned().into(), ..Group::default() };
        rows(&Query { group, ..query("x") })
    };
    // The refusals in searchd's words.
    for (function, column, expected) in [
        (
            5,
            "year",
            "index books: SPH_GROUPBY_ATTRPAIR is not supported any more (just group on 'bigint' \
             attribute)",
        ),
        (9, "year", "index books: invalid group-by mode (mode=9)"),
        (4, "nope", "index books: group-by attribute 'nope' not found"),
        (4, "@id", "index books: group-by attribute '@id' not found"),
    ] {
        assert_eq!(refused(function, column), expected);
    }
}

/// The expressions of a select list in SQL, with the names and kinds of their columns; or the error.
fn selected(list: &str) -> Result<(String, Vec<(String, AttributeKind)>), String> {
    let query = Query { select: list.into(), ..query("") };
    let statement = search(&query, &books()).map_err(|error| error.to_string())?;
    let outputs = statement.outputs.into_iter().map(|output| (output.name, output.kind));
    let values = statement.rows;
    let values = values.strip_prefix("SELECT `book``id`, WEIGHT(), ").unwrap();
    let values = values.split(" FROM `shop`").next().unwrap().to_owned();
    Ok((values, outputs.collect()))
}

#[test]
fn select_lists() {
    let names = |list: &str| {
        let outputs = selected(list).unwrap().1;
        outputs.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let stars = ["year", "price", "sold", "kind", "published", "lat", "lon"];
    assert_eq!(names("*"), stars);
    assert_eq!(names(""), stars);
    assert_eq!(
        names("Year AS Foo, YEAR, year+1, @id as x, year y"),
        ["foo", "year", "year+1", "x", "y"]
    );
    let year = "CAST(`year` AS SIGNED)";
    for (list, kind, expected) in [
        ("sold", AttributeKind::BigInt, "`sold`"),
        ("id", AttributeKind::BigInt, "`book``id`"),
        ("title", AttributeKind::Text, "`title`"),
        ("published", AttributeKind::Timestamp, "FLOOR(UNIX_TIMESTAMP(`published`))"),
        ("weight() as w", AttributeKind::Number, "WEIGHT()"),
        ("year-2005", AttributeKind::Number, &format!("({year} - 2005)")),
        ("year/7", AttributeKind::Float, &format!("(({year} + 0e0) / 7)")),
        ("-sold", AttributeKind::BigInt, "(-CAST(COALESCE(`sold`, 0) AS SIGNED))"),
        (
            "year>2000 and not (price=1.5) or 1|year&6=6",
            AttributeKind::Number,
            &format!("((({year} > 2000) AND (NOT (`price` = 1.5))) OR (1 | ({year} & (6 = 6))))"),
        ),
        (
            "if(in(kind,'a','b\\'c'),year,2) as z",
            AttributeKind::Number,
            &format!("IF((`kind` IN ('a', 'b''c')), {year}, 2)"),
        ),
        ("min(year,2000)+1", AttributeKind::Number, &format!("(LEAST({year}, 2000) + 1)")),
        ("year div 7", AttributeKind::Number, &format!("({year} DIV 7)")),
    ] {
        let (values, outputs) = selected(list).unwrap();
        assert_eq!((&*values, outputs[0].1), (expected, kind), "{list}");
    }
}

#[test]
fn select_lists_with_errors() {
    for (list, expected) in [
        ("nope", "index books: parse error: unknown column: nope"),
        ("foo(year)", "index books: function foo() of 1 values is not answered"),
        ("year) FROM x --", "syntax error near ') FROM x --'"),
        ("extra", "index books: parse error: unknown column: extra"),
        ("year.a", "index books: parts of 'year' are not answered"),
        (
            "@geodist",
            "index books: parse error: geoanchor is not set, @geodist expression unavailable",
        ),
    ] {
        assert_eq!(selected(list), Err(expected.to_owned()));
    }
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(
        selected(&deep).unwrap_err(),
        "index books: an expression lies deeper than 64 levels"
    );
    // Each alias has twice the length of the one before.
    let mut growing = "year+year as a0".to_owned();
    (1..40).for_each(|n| growing.push_str(&format!(", a{0}+a{0} as a{n}", n - 1)));
    assert_eq!(selected(&growing).unwrap_err(), "index books: an expression is too long");
    let mut wide = "year+year as a0".to_owned();
    (1..9).for_each(|n| wide.push_str(&format!(", a{0}+a{0} as a{n}", n - 1)));
    wide.push_str(&format!(", in(a8{}) as b", ",a8".repeat(1_000)));
    assert_eq!(selected(&wide).unwrap_err(), "index books: an expression is too long");
}

/// Where MySQL has NULL, for example after a division by zero, Sphinx computes with 0.
#[test]
fn null_results_become_zero() {
    let select = |list: &str| {
        let statement = rows(&Query { select: list.to_owned().into(), ..query("") });
        let values = statement.strip_prefix("SELECT `book``id`, WEIGHT(), ").unwrap();
        values.split(" FROM `shop`").next().unwrap().to_owned()
    };
    let year = "CAST(`year` AS SIGNED)";
    for (list, expected) in [
        ("1/year+5", format!("(COALESCE(((1 + 0e0) / {year}), 0) + 5)")),
        ("1/0+5", "(COALESCE(((1 + 0e0) / 0), 0) + 5)".to_owned()),
        ("year%2+year/2.5", format!("(({year} % 2) + (({year} + 0e0) / 2.5))")),
        ("-(7 mod year)", format!("(-COALESCE((7 MOD {year}), 0))")),
        ("idiv(7,year)+1", format!("(COALESCE((7 DIV {year}), 0) + 1)")),
        ("if(ln(year)=0,1,2)", format!("IF((COALESCE(LN({year}), 0) = 0), 1, 2)")),
        ("sqrt(year)+log2(year)", {
            format!("(COALESCE(SQRT({year}), 0) + COALESCE(LOG2({year}), 0))")
        }),
        ("month(year)+1", format!("(COALESCE(MONTH(FROM_UNIXTIME({year})), 0) + 1)")),
        ("exp(year)+sin(year)", format!("(EXP({year}) + SIN({year}))")),
    ] {
        assert_eq!(select(list), expected, "{list}");
    }
    let inverse = "((1 + 0e0) / CAST(`year` AS SIGNED))";
    let asked = Query { select: "1/year as inverse".into(), ..query("") };
    let filter = |test, is_excluding| {
        let filters = vec![Filter { attribute: "inverse".into(), test, is_excluding }];
        let statement = rows(&Query { filters, ..asked.clone() });
        let (_, condition) = statement.split_once(" WHERE ").unwrap();
        condition.split(" ORDER BY ").next().unwrap().to_owned()
    };
    assert_eq!(
        filter(FilterTest::FloatRange(-1.0, 1.0), false),
        format!("({inverse} BETWEEN -1e0 AND 1e0 OR {inverse} IS NULL)")
    );
    assert_eq!(
        filter(FilterTest::FloatRange(0.5, 1.0), false),
        format!("{inverse} BETWEEN 5e-1 AND 1e0")
    );
    let sort = SortMode::AttributeAscending;
    let ordered = rows(&Query { sort, sort_clause: "inverse".into(), ..asked });
    let order = format!(" ORDER BY COALESCE({inverse}, 0) ASC, WEIGHT() DESC, ");
    assert!(ordered.contains(&order), "{ordered}");
}

#[test]
fn outer_orders_and_weights_are_placed_in_the_outer_query() {
    let anchor = Anchor {
        latitude_column: "lat".into(),
        longitude_column: "lon".into(),
        latitude: 0.5,
        longitude: 0.25,
    };
    let near = Query {
        anchor: Some(anchor),
        sort: SortMode::Extended,
        sort_clause: "@geodist asc".into(),
        ..query("")
    };
    let distance = "(6.384e6 * 2 * ASIN(LEAST(1, SQRT(POW(SIN((`lat` - 5e-1) / 2), 2) + \
                    COS(`lat`) * COS(5e-1) * POW(SIN((`lon` - 2.5e-1) / 2), 2)))))";
    assert_eq!(
        rows(&near),
        format!(
            "SELECT `book``id`, WEIGHT(), `year`, {distance} FROM `shop`.`books` \
             ORDER BY COALESCE({distance}, 0) ASC, `book``id` ASC LIMIT 0, 20"
        )
    );
    let outer = Outer { order: "price asc".into(), offset: 1, limit: 5 };
    assert_eq!(
        rows(&Query { outer: Some(outer), limit: 7, ..query("x") }),
        "SELECT `@id`, `@weight`, `c3` FROM (SELECT * FROM (\
         SELECT `book``id` AS `@id`, WEIGHT() AS `@weight`, WEIGHT() AS `c0`, \
         `book``id` AS `c1`, `price` AS `c2`, `year` AS `c3` FROM `shop`.`books` \
         WHERE MATCH('x')) AS `kept` ORDER BY `c0` DESC, `c1` ASC LIMIT 0, 7) AS `inner` \
         ORDER BY `c2` ASC, `@id` ASC LIMIT 1, 5 OPTION ranker=proximity_bm25"
    );
    let weighed = Query {
        weights: vec![3, 1, 9],
        index_weights: vec![("BOOKS".into(), 2), ("other".into(), 3), ("a=1,b".into(), 4)],
        is_idf_plain: true,
        is_idf_undivided: true,
        ..query("x")
    };
    assert_eq!(
        short(&weighed),
        "~ WHERE MATCH('x'), field_weights=(`title`=3, `body`=1), index_weights=(`BOOKS`=2, `other`=3), \
         idf='plain,tfidf_unnormalized'"
    );
    let named = vec![("BODY".into(), 5), ("nope".into(), 6)];
    let named = Query { field_weights: named, weights: vec![9], ..query("x") };
    assert_eq!(short(&named), "~ WHERE MATCH('x'), field_weights=(`body`=5)");
    let many = Query { offset: 5, limit: 500, max_matches: 100, ..query("") };
    assert!(rows(&many).ends_with(" LIMIT 5, 95"), "{}", rows(&many));
    let overridden = Query { overrides: vec!["year".into()], ..query("") };
    assert_eq!(
        rows(&overridden),
        "index books: an override of attribute 'year' is not answered: update its rows"
    );
    let global = Query { is_idf_global: true, ..query("x") };
    assert_eq!(
        rows(&global),
        "index books: global_idf is not answered: weights are those of the table"
    );
}

#[test]
fn perl_client_with_all_options_is_translated() {
    let everything = exchange("perl_11e_everything");
    let sent = everything.only();
    let Request::Search(request) = sent.parse().unwrap() else { panic!("no search") };
    assert_eq!(
        rows(&request.queries[0]),
        "index books: no such filter attribute 'fresh'",
        "this table has no such column"
    );
    let mut shape = books();
    let fresh = Column { name: "fresh".into(), kind: ColumnKind::Bool, is_nullable: false };
    shape.columns.push(fresh);
    let statement = search(&request.queries[0], &shape).unwrap();
    let options = " OPTION ranker=expr('sum(lcs*user_weight)*1000+bm25'), \
                   field_weights=(`title`=10), index_weights=(`books`=3)";
    assert!(statement.rows.ends_with(options), "{}", statement.rows);
    let names: Vec<&str> = statement.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(names[7..], ["fresh", "next", "far", "@geodist"]);
}

#[test]
fn excerpts_and_keywords() {
    let captured = exchange("perl_11e_excerpt");
    let sent = captured.only();
    let Request::Excerpt(request) = sent.parse().unwrap() else { panic!("no excerpt") };
    assert_eq!(
        excerpts(&request, &books()).unwrap(),
        "CALL SNIPPETS(('the deep sea and its fish', 'nothing'), 'shop.books', 'deep fish', \
         '[' AS before_match, ']' AS after_match, '~' AS chunk_separator, \
         'none' AS html_strip_mode, 60 AS limit, 2 AS around, 3 AS limit_passages, \
         9 AS limit_words, 7 AS start_passage_id, 1 AS weight_order, 1 AS query_mode, \
         1 AS force_all_words, 1 AS allow_empty)"
    );
    let of = |flags| {
        let request = ExcerptRequest { flags, ..request.clone() };
        excerpts(&request, &books()).map_err(|error| error.to_string())
    };
    assert!(of(1 | 4).unwrap().contains(", 1 AS limit_passages, "));
    assert_eq!(of(128).unwrap_err(), "load_files is not answered: send the texts");
    assert_eq!(of(1024).unwrap_err(), "load_files_scattered is not answered: send the texts");
    assert_eq!(of(2048).unwrap_err(), "unknown flags of excerpts (0x800)");
    let request = KeywordsRequest { text: "it's".into(), index: "b".into(), with_numbers: true };
    assert_eq!(keywords(&request, &books()), "CALL KEYWORDS('it''s', 'shop.books', 1)");
}

#[test]
fn updates_of_rows() {
    let of = |name: &str| {
        let captured = exchange(name);
        let sent = captured.only();
        let Request::Update(request) = sent.parse().unwrap() else { panic!("no update") };
        updates(&request, &books()).map_err(|error| error.to_string())
    };
    assert_eq!(
        of("perl_11e_update").unwrap(),
        ["UPDATE `shop`.`books` SET `year` = 2001, `sold` = 9 WHERE `book``id` = 1"]
    );
    // It passes over `tags`, which this table has not.
    assert_eq!(
        of("raw_update").unwrap(),
        [
            "UPDATE `shop`.`books` SET `year` = 2010 WHERE `book``id` = 2",
            "UPDATE `shop`.`books` SET `year` = 1990 WHERE `book``id` = 5000000007",
        ]
    );
    let captured = exchange("raw_update");
    let sent = captured.only();
    let Request::Update(request) = sent.parse().unwrap() else { panic!("no update") };
    assert_eq!(
        updates(&request, &with_sets()).unwrap(),
        [
            "UPDATE `shop`.`books` SET `tags` = '6,5,6', `year` = 2010 WHERE `book``id` = 2",
            "UPDATE `shop`.`books` SET `tags` = '', `year` = 1990 WHERE `book``id` = 5000000007",
        ]
    );
    let captured = exchange("perl_11e_update");
    let sent = captured.only();
    let Request::Update(mut request) = sent.parse().unwrap() else { panic!("no update") };
    request.attributes[0].name = "tags".into();
    let refused = updates(&request, &with_sets()).map_err(|error| error.to_string());
    assert_eq!(refused, Err("index books: attribute 'tags' MVA flag mismatch".to_owned()));
}

/// The table with the multi-value attributes that it had at `searchd`.
fn with_sets() -> TableShape {
    let mut shape = books();
    for (name, kind) in [("tags", ColumnKind::Set), ("wide", ColumnKind::WideSet)] {
        shape.columns.push(Column { name: name.into(), kind, is_nullable: false });
    }
    shape
}

#[test]
fn sets_are_filtered_by_their_numbers() {
    let of = |query: &Query<'_>| {
        search(query, &with_sets()).map_or_else(|error| error.to_string(), |it| it.rows)
    };
    let filtered = |test, is_excluding| {
        let filters = vec![Filter { attribute: "Tags".into(), test, is_excluding }];
        let rows = of(&Query { filters, ..query("") });
        let rows = rows.replace("SELECT `book``id`, WEIGHT(), `year` FROM `shop`.`books`", "~");
        rows.replace(" ORDER BY WEIGHT() DESC, `book``id` ASC LIMIT 0, 20", "")
    };
    for (test, is_excluding, expected) in [
        (FilterTest::Values(vec![2, 5]), false, "~ WHERE `tags` IN (2, 5)"),
        (FilterTest::Values(vec![2]), true, "~ WHERE `tags` NOT IN (2)"),
        (FilterTest::Range(2, 4), false, "~ WHERE `tags` BETWEEN 2 AND 4"),
        (FilterTest::Range(2, 4), true, "~ WHERE `tags` NOT BETWEEN 2 AND 4"),
        // The refusals in searchd's words.
        (
            FilterTest::FloatRange(2.0, 4.0),
            false,
            "index books: unsupported filter type 'floatrange' on MVA column",
        ),
        (
            FilterTest::Text("2".into()),
            false,
            "index books: unsupported filter type 'string' on MVA column",
        ),
    ] {
        assert_eq!(filtered(test, is_excluding), expected);
    }
    let selected = |select: &str| {
        let rows = of(&Query { select: select.to_owned().into(), ..query("") });
        let rows = rows.replace("SELECT `book``id`, WEIGHT(), ", "");
        rows.replace(" FROM `shop`.`books` ORDER BY WEIGHT() DESC, `book``id` ASC LIMIT 0, 20", "")
    };
    for (select, expected) in [
        ("tags, wide w", "`tags`, `wide`"),
        (
            "length(tags) n, least(wide) a, greatest(tags) z",
            "LENGTH(`tags`), LEAST(`wide`), GREATEST(`tags`)",
        ),
        ("in(tags,1,2) x", "(`tags` IN (1, 2))"),
        ("tags+1 x", "index books: parse error: `tags` is a set"),
        ("in(year,tags) x", "index books: parse error: `tags` is a set"),
        ("abs(tags) x", "index books: parse error: `tags` is a set"),
        ("sum(tags) x", "index books: can not aggregate the non-scalar attribute `tags`"),
    ] {
        assert_eq!(selected(select), expected, "{select}");
    }
    let ordered =
        Query { sort: SortMode::AttributeAscending, sort_clause: "tags".into(), ..query("") };
    assert_eq!(of(&ordered), "index books: order by MVA is undefined");
    let ordered = Query { sort: SortMode::Extended, sort_clause: "tags asc".into(), ..query("") };
    assert_eq!(of(&ordered), "index books: order by MVA is undefined");
    let statement =
        search(&Query { select: "tags, wide".into(), ..query("") }, &with_sets()).unwrap();
    let kinds: Vec<_> = statement.outputs.iter().map(|output| output.kind).collect();
    assert_eq!(kinds, [AttributeKind::Set, AttributeKind::WideSet]);
}

#[test]
fn rows_are_in_the_groups_of_all_their_numbers() {
    let of = |function, column: &str, distinct: &str| {
        let order = "@count desc".into();
        let (column, distinct) = (column.to_owned().into(), distinct.to_owned().into());
        let group = Group { function, column, order, distinct };
        let query = Query { group, select: "@groupby".into(), ..query("x") };
        search(&query, &with_sets()).map_err(|error| error.to_string())
    };
    for (column, kind) in [("tags", AttributeKind::Number), ("wide", AttributeKind::BigInt)] {
        let statement = of(4, column, "").unwrap();
        let expected = format!(
            "WEIGHT() AS `c0`, `book``id` AS `c1`, `#each`(`{column}`) AS `@group` FROM \
             `shop`.`books` WHERE MATCH('x')"
        );
        assert!(statement.rows.contains(&expected), "{}", statement.rows);
        let order = "ORDER BY `@count` DESC, `@id` ASC, `@group` ASC LIMIT 0, 20";
        assert!(statement.rows.contains(order), "{}", statement.rows);
        assert_eq!(statement.outputs[0].kind, kind);
    }
    assert_eq!(
        of(0, "tags", ""),
        Err("index books: groups by times of the multi-value attribute 'tags'".to_owned())
    );
    assert_eq!(
        of(4, "year", "tags"),
        Err("index books: counts different numbers of the multi-value attribute 'tags'".to_owned())
    );
}
