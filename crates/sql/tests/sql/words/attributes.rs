//! JSON attributes, functions and statements of Sphinx's dialect. Unless noted, the results are those of Sphinx 2.2.11
//! with the same rows.

use remora_sql::Session;

use super::{
    all, sets,
    support::{Server, run},
};

async fn books(session: &mut Session) {
    all(
        session,
        &[
            "CREATE TABLE books (id BIGINT UNSIGNED PRIMARY KEY, title TEXT, year INT UNSIGNED NOT NULL, price FLOAT, \
             j JSON, ok TINYINT(1), ts INT UNSIGNED NOT NULL, lat FLOAT, lon FLOAT, made DATETIME) words='title'",
            r#"INSERT INTO books VALUES
             (1, 'whale', 1851, 12.5, '{"a":{"b":1,"s":"x"},"t":[1,2,3],"price":9.5}', 1, 1500000000, 0.5, 1.2, '2001-02-03'),
             (2, 'fang', 1906, 7.25, '{"a":{"b":2,"s":"y"},"t":[2],"price":3}', 0, 1500086400, 0.6, 1.1, NULL),
             (3, 'whale road', 2007, 9, '{"a":{"b":3},"t":[]}', 1, 1500172800, 0.7, 1.0, NULL),
             (4, 'days', 1990, 0, '{}', 0, 1502172800, 0.8, 0.9, NULL),
             (5, 'whale captain', 1897, 3.5, '{"a":{"b":10,"s":"x"},"odd name":"joe"}', 1, 1510172800, 0.9, 0.8, NULL),
             (6, 'wolf', 1904, 5.5, '{"a":{"b":-5}}', 1, 1520172800, 0.1, 0.2, NULL),
             (7, 'white whale', 1851, 2.5, NULL, 0, 1530172800, 0.2, 0.3, NULL),
             (8, 'dogs', 1906, 1.5, '{"a":1}', 1, 1540172800, -0.3, 0.4, NULL)"#,
            "SET time_zone = '+00:00', sql_dialect = 'sphinx'",
        ],
    )
    .await;
}

const PARTS: &[(&str, &str)] = &[
    ("SELECT id FROM books WHERE j.a.b=1", "1"),
    ("SELECT id FROM books WHERE j.a.b>1", "2 3 5"),
    ("SELECT id FROM books WHERE j.a.b > 1.5 AND MATCH('whale') ORDER BY id ASC", "3 5"),
    ("SELECT id FROM books WHERE j.a.b IN (1,2)", "1 2"),
    ("SELECT id FROM books WHERE j.a.b BETWEEN 1 AND 5", "1 2 3"),
    ("SELECT id FROM books WHERE j.a.b!=1", "2 3 4 5 6 7 8"),
    ("SELECT id FROM books WHERE j.a.b NOT IN (1,2)", "3 4 5 6 7 8"),
    // Sphinx knows no NOT BETWEEN.
    ("SELECT id FROM books WHERE j.a.b NOT BETWEEN 0 AND 3", "4 5 6 7 8"),
    ("SELECT id FROM books WHERE j.a.s='x'", "1 5"),
    ("SELECT id FROM books WHERE j.a.s!='x'", "2 3 4 6 7 8"),
    ("SELECT id FROM books WHERE j.t[0]=1", "1"),
    ("SELECT id FROM books WHERE j.t[0]!=1", "2 3 4 5 6 7 8"),
    ("SELECT id FROM books WHERE j.nope=0", ""),
    ("SELECT id FROM books WHERE j.nope IS NOT NULL", ""),
    ("SELECT id FROM books WHERE j['odd name']='joe'", "5"),
    ("SELECT id, j.a.s, j.a FROM books LIMIT 1", "1|x|{\"b\": 1, \"s\": \"x\"}"),
    (
        "SELECT id, j['a']['b'] x, j['a'].b y, j.t[1] z FROM books LIMIT 4",
        "1|1|1|2 2|2|2|NULL 3|3|3|NULL 4|NULL|NULL|NULL",
    ),
    ("SELECT id, j.a.b+1 x FROM books", "1|2 2|3 3|4 4|1 5|11 6|-4 7|1 8|1"),
    ("SELECT id, j.a.b*2.5 x FROM books LIMIT 3", "1|2.5 2|5 3|7.5"),
    (
        "SELECT id, integer(j.a.b) x, double(j.price) y FROM books LIMIT 4",
        "1|1|9.5 2|2|3 3|3|0 4|0|0",
    ),
    // Sphinx sorts by the text of the numbers: 10 before 2.
    ("SELECT id, j.a.b x FROM books ORDER BY x ASC", "4|NULL 7|NULL 8|NULL 6|-5 1|1 2|2 3|3 5|10"),
    ("SELECT id FROM books ORDER BY j.a.s ASC, id DESC", "8 7 6 4 3 5 1 2"),
    ("SELECT id, IF(j.a.b>1,1,0) x FROM books", "1|0 2|1 3|1 4|0 5|1 6|0 7|0 8|0"),
    ("SELECT id, LENGTH(j.t) x FROM books LIMIT 4", "1|3 2|1 3|0 4|0"),
    ("SELECT id, IN(j.a.b, 1,2) x FROM books LIMIT 4", "1|1 2|1 3|0 4|0"),
    ("SELECT id, IN(j.a.s, 'x') x FROM books LIMIT 3", "1|1 2|0 3|0"),
    ("SELECT id, IN(j.t, 2, 9) x FROM books LIMIT 4", "1|1 2|1 3|0 4|0"),
    ("SELECT id, IN(j.t, 3) x FROM books WHERE x=1", "1|1"),
    ("SELECT id, GROUPBY(), COUNT(*) FROM books GROUP BY j.a.s", "1|x|2 2|y|1 3|NULL|5"),
    ("SELECT j.a.s k, COUNT(*) FROM books GROUP BY k ORDER BY COUNT(*) DESC", "NULL|5 x|2 y|1"),
    (
        "SELECT id FROM books LIMIT 1 FACET j.a.b ORDER BY COUNT(*) DESC FACET j.a.s",
        "1 ; NULL|3 1|1 2|1 3|1 10|1 -5|1 ; x|2 y|1 NULL|5",
    ),
    ("SELECT id, j FROM books WHERE id=7", "7|NULL"),
];

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_json_attributes() {
    let server = Server::new();
    let mut session = server.session();
    books(&mut session).await;
    for (statement, expected) in PARTS {
        assert_eq!(sets(&mut session, statement).await, *expected, "{statement}");
    }
    let reply = run(&mut session, "SELECT j.a.b, j.t[0], j.a.s AS s FROM books").await.unwrap();
    let names: Vec<&str> = reply.sets[0].columns.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["j.a.b", "j.t[0]", "s"]);
    // A client that parses documents would fail at texts without quotes.
    let is_document = |column: &remora_sql::Column| column.kind == remora_sql::SqlType::Json;
    assert!(!reply.sets[0].columns.iter().any(is_document));
    for (statement, part) in [
        ("SELECT title.x FROM books", "Unknown column 'title.x'"),
        ("SELECT title[0] FROM books", "Unknown column 'title'"),
        ("SELECT j[id] FROM books", "'[id] FROM books'"),
        ("SELECT [1] FROM books", "'[1] FROM books'"),
        ("SELECT j.t[ FROM books", "books'"),
        ("UPDATE books SET ok = j.t[0]", "[0]"),
    ] {
        let error = run(&mut session, statement).await.expect_err(statement);
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
    all(&mut session, &["SET sql_dialect = 'mysql'"]).await;
    for (statement, part) in [
        ("SELECT j.a.b FROM books", "Unknown column 'j.a.b'"),
        ("SELECT j.t[0] FROM books", "'[0] FROM books'"),
        ("SELECT id FROM books WHERE j['a'] = 1", "'['a'] = 1'"),
    ] {
        let error = run(&mut session, statement).await.expect_err(statement);
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
}

/// Documents of which members are null, and what Sphinx 2.2.11 answers of the same rows.
const NULLS: &[(&str, &str)] = &[
    (
        "SELECT id, j.a, j.b.c, j.l[0], j.n FROM nulls",
        "1|NULL|NULL|NULL|1 2|x|5|2|0 3|null|NULL|NULL|2.5 4|5|NULL|NULL|NULL 5|NULL|NULL|NULL|NULL 6|NULL|NULL|NULL|NULL",
    ),
    ("SELECT id, j.l, j FROM nulls LIMIT 1", {
        "1|[null, 1]|{\"a\": null, \"b\": {\"c\": null}, \"l\": [null, 1], \"n\": 1}"
    }),
    ("SELECT id FROM nulls WHERE j.a IS NULL", "1 5 6"),
    ("SELECT id FROM nulls WHERE j.a IS NOT NULL", "2 3 4"),
    ("SELECT id FROM nulls WHERE j.b.c IS NULL", "1 3 4 5 6"),
    ("SELECT id FROM nulls WHERE j['b']['c'] IS NOT NULL", "2"),
    ("SELECT id FROM nulls WHERE j.l[0] IS NULL", "1 3 4 5 6"),
    ("SELECT id FROM nulls WHERE j.a='null'", "3"),
    ("SELECT id FROM nulls WHERE j.a!='x'", "1 3 4 5 6"),
    ("SELECT id FROM nulls WHERE j.a NOT IN ('x','null')", "1 4 5 6"),
    ("SELECT id, j.n+1 x FROM nulls", "1|2 2|1 3|3.5 4|1 5|1 6|1"),
    ("SELECT id, j.n x FROM nulls ORDER BY x ASC", "4|NULL 5|NULL 6|NULL 2|0 1|1 3|2.5"),
    ("SELECT id FROM nulls ORDER BY j.n DESC", "3 1 2 4 5 6"),
    ("SELECT id, GROUPBY(), COUNT(*) FROM nulls GROUP BY j.n", "1|1|1 2|0|1 3|2.5|1 4|NULL|3"),
    ("SELECT id FROM nulls LIMIT 1 FACET j.a FACET j.b.c", {
        "1 ; NULL|3 x|1 null|1 5|1 ; NULL|5 5|1"
    }),
    ("SELECT id, IF(j.a IS NULL,1,0) x, j.b.c IS NULL y FROM nulls LIMIT 2", "1|1|1 2|0|0"),
    ("SELECT id, IN(j.l, 1) x, IN(j.a, 'x') y FROM nulls LIMIT 2", "1|1|0 2|0|1"),
    ("SELECT id, LENGTH(j.a) x, LENGTH(j.l) y, LENGTH(j.n) z FROM nulls WHERE id IN (1,4)", {
        "1|0|2|1 4|1|0|0"
    }),
    ("SELECT id, INTEGER(j.a) x, DOUBLE(j.n) y FROM nulls WHERE id IN (1,4)", "1|0|1 4|5|0"),
    // Sphinx finds a null by numbers: 1 here, and 5 and 6 by < and >.
    ("SELECT id FROM nulls WHERE j.a=0", ""),
    ("SELECT id FROM nulls WHERE j.a<9", "4"),
    ("SELECT id FROM nulls WHERE j.n BETWEEN -1 AND 1", "1 2"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_null_in_a_document_is_as_if_it_were_not_there() {
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        all(
            &mut session,
            &[
                "CREATE TABLE nulls (id BIGINT UNSIGNED PRIMARY KEY, title TEXT, j JSON) words='title'",
                r#"INSERT INTO nulls VALUES
                 (1, 't', '{"a":null,"b":{"c":null},"l":[null,1],"n":1}'),
                 (2, 't', '{"a":"x","b":{"c":5},"l":[2,3],"n":0}'), (3, 't', '{"a":"null","n":2.5}'),
                 (4, 't', '{"a":5,"b":1,"n":null}'), (5, 't', '{}'), (6, 't', NULL)"#,
                "SET sql_dialect = 'sphinx'",
            ],
        )
        .await;
        for (statement, expected) in NULLS {
            assert_eq!(sets(&mut session, statement).await, *expected, "{statement}");
        }
    }
}

/// The names of the columns of each result.
async fn names(session: &mut Session, statement: &str) -> Vec<String> {
    let reply = run(session, statement).await.unwrap();
    let of = |set: &super::support::Answer| {
        let names: Vec<&str> = set.columns.iter().map(|column| &*column.name).collect();
        names.join(" ")
    };
    reply.sets.iter().map(of).collect()
}

/// As Sphinx 2.2.11 names them.
#[tokio::test(flavor = "multi_thread")]
async fn columns_have_sphinxs_names() {
    let server = Server::new();
    let mut session = server.session();
    books(&mut session).await;
    for (statement, expected) in [
        (
            "SELECT Id, Year, WEIGHT() W, COUNT(*), SUM(Price), Max(year), GROUPBY(), COUNT(DISTINCT ok), YEAR+1, \
             J.a.S, GROUP_CONCAT(ok) FROM books WHERE MATCH('whale') GROUP BY year LIMIT 2",
            &[
                "id year w count(*) sum(price) max(year) groupby() count(distinct ok) year+1 j.a.S group_concat(ok)",
            ][..],
        ),
        ("SELECT COUNT( * ), 1 AS Total FROM books", &["count( * ) total"]),
        (
            "SELECT j['A'], SNIPPET(title,'Nm'), books.YEAR FROM books",
            &["j['A'] snippet(title,'Nm') year"],
        ),
        (
            "SELECT ID FROM books LIMIT 1 FACET j.a.s FACET Year FACET books.year FACET Year, j.a.b FACET j.t[0] \
             FACET j['odd name'] FACET j.price AS P FACET year DISTINCT ok",
            &[
                "id",
                "j.a.s count(*)",
                "year count(*)",
                "year count(*)",
                "year j.a.b count(*)",
                "j.t[0] count(*)",
                "j['odd name'] count(*)",
                "p count(*)",
                "year count(*) count(distinct ok)",
            ],
        ),
        ("SELECT A FROM (SELECT id AS A FROM books LIMIT 2) WHERE a > 1", &["a"]),
        ("SELECT TABLE_NAME, 1 AS One FROM information_schema.tables", &["TABLE_NAME One"]),
    ] {
        assert_eq!(names(&mut session, statement).await, expected, "{statement}");
    }
    all(&mut session, &["SET sql_dialect = 'mysql'"]).await;
    assert_eq!(
        names(&mut session, "SELECT Id, COUNT(*) AS C, WEIGHT() FROM books WHERE MATCH('whale') GROUP 1 BY year FACET books.Year").await,
        ["Id C WEIGHT()", "Year count(*)"]
    );
}

const CALLS: &[(&str, &str)] = &[
    (
        "SELECT MONTH(ts), DAY(ts), YEARMONTH(ts), YEARMONTHDAY(ts) FROM books LIMIT 2",
        "7|14|201707|20170714 7|15|201707|20170715",
    ),
    // Sphinx's parser takes the column's name before its function.
    ("SELECT YEAR(ts), HOUR(ts), MINUTE(ts), SECOND(ts) FROM books LIMIT 1", "2017|2|40|0"),
    (
        "SELECT YEAR(CAST('2020-05-06' AS DATE)), MONTH(CAST('2020-05-31' AS DATE) + INTERVAL 1 DAY), \
         YEAR(ts + 86400), YEAR(COALESCE(ts, 0)) FROM books LIMIT 1",
        "2020|6|2017|2017",
    ),
    // Dates are MySQL's.
    (
        "SELECT YEAR(made), YEARMONTHDAY(made), YEAR('2020-05-06') FROM books LIMIT 1",
        "2001|20010203|2020",
    ),
    ("SELECT id FROM books WHERE id=1 AND NOW()-ts > 86400 AND NOW() < 9000000000", "1"),
    ("SELECT MIN(year,price), MAX(year,3) FROM books LIMIT 2", "12.5|1851 7.25|1906"),
    ("SELECT MIN(year), MAX(year) FROM books", "1851|2007"),
    (
        "SELECT IDIV(year,100), IDIV(year,0), year DIV 100, BIGINT(year), SINT(year-2000), UINT(price) FROM books LIMIT 2",
        "18|0|18|1851|-149|12 19|0|19|1906|-94|7",
    ),
    ("SELECT DOUBLE(year), INTEGER(price), TO_STRING(year) FROM books LIMIT 1", "1851|12|1851"),
    ("SELECT LN(price), LOG2(price), LOG10(price), SQRT(price) FROM books WHERE id=4", "0|0|0|0"),
    (
        "SELECT id, REMAP(year, ok, (1851,1906), (10,20)) x FROM books",
        "1|10 2|20 3|1 4|0 5|1 6|1 7|10 8|20",
    ),
    ("SELECT EXIST('year', 3), EXIST('nope', 7) FROM books LIMIT 1", "1851|7"),
    // Sphinx wraps these at 2^32 and 2^64.
    ("SELECT year-2000, id-5 FROM books LIMIT 1", "-149|-4"),
    ("SELECT year*2-5000 FROM books LIMIT 1", "-1298"),
    (
        "SELECT id, INTEGER(GEODIST(lat,lon,0.5,1.2)/1000) d FROM books ORDER BY d ASC",
        "1|0 2|836 3|1651 4|2431 5|3179 7|5666 6|6526 8|7087",
    ),
    (
        "SELECT id, INTEGER(GEODIST(lat,lon,0.5,1.2,{in=deg,out=km})*10) d FROM books ORDER BY d ASC",
        "1|0 2|156 3|313 4|470 5|627 7|1055 6|1197 8|1255",
    ),
    (
        "SELECT INTEGER(GEODIST(lat,lon,0.5,1.2,{in=radians, out=miles, method=haversine})) d FROM books WHERE id IN (2,3,8)",
        "521 1026 4413",
    ),
    (
        "SELECT id, GEODIST(lat,lon,0.5,1.2) d FROM books WHERE d < 1700000 ORDER BY d DESC LIMIT 1",
        "3",
    ),
    (
        "SELECT * FROM (SELECT id, year FROM books ORDER BY year ASC LIMIT 5) ORDER BY id DESC LIMIT 3",
        "7|1851 6|1904 5|1897",
    ),
    (
        "SELECT id, WEIGHT() FROM books WHERE MATCH('whale') OPTION ranker=expr('year')",
        "3|2007 5|1897 1|1851 7|1851",
    ),
    (
        "SELECT id, WEIGHT() FROM books WHERE MATCH('whale') OPTION ranker=expr('ts-1+ok')",
        "7|1530172799 5|1510172800 3|1500172800 1|1500000000",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_dialect() {
    let server = Server::new();
    let mut session = server.session();
    books(&mut session).await;
    for (statement, expected) in CALLS {
        let found = sets(&mut session, statement).await;
        // The distance itself has many digits.
        let found = if statement.contains(" DESC LIMIT 1") && statement.contains("GEODIST") {
            found.split('|').next().unwrap().to_owned()
        } else {
            found
        };
        assert_eq!(found, *expected, "{statement}");
    }
    for (statement, part) in [
        ("SELECT GEODIST(lat,lon,0.5) FROM books", "Incorrect parameter count"),
        ("SELECT GEODIST(lat,lon,0.5,1.2,{in=miles}) FROM books", "GEODIST with in=miles"),
    ] {
        let error = run(&mut session, statement).await.expect_err(statement);
        assert!(
            error.message.to_lowercase().contains(&part.to_lowercase()),
            "{statement}: {}",
            error.message
        );
    }
    // In MySQL's dialect these mean what they mean there.
    all(&mut session, &["SET sql_dialect = 'mysql'"]).await;
    assert_eq!(sets(&mut session, "SELECT YEAR(ts) FROM books WHERE id = 1").await, "NULL");
    let error = run(&mut session, "SELECT MIN(year, price) FROM books").await.unwrap_err();
    assert!(error.message.contains("Incorrect parameter count"), "{}", error.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_about_one_index() {
    let server = Server::new();
    let mut session = server.session();
    books(&mut session).await;
    let status = sets(&mut session, "SHOW INDEX books STATUS LIKE 'in%'").await;
    assert_eq!(status, "index_type|rt indexed_documents|8");
    assert_eq!(
        sets(&mut session, "SHOW TABLE books STATUS LIKE 'index_type'").await,
        "index_type|rt"
    );
    all(
        &mut session,
        &[
            "ALTER TABLE books morphology='stem_en'",
            "OPTIMIZE INDEX books",
            "TRUNCATE RTINDEX books",
        ],
    )
    .await;
    assert_eq!(
        sets(&mut session, "SHOW INDEX books SETTINGS").await,
        "settings|morphology = stem_en\n"
    );
    assert_eq!(sets(&mut session, "SELECT COUNT(*) FROM books").await, "0");
    // Names that look like these statements.
    all(
        &mut session,
        &[
            "SET sql_dialect = 'mysql'",
            "CREATE TABLE status (id INT PRIMARY KEY)",
            "CREATE TABLE rtindex (id INT PRIMARY KEY)",
            "SHOW INDEX FROM status",
            "TRUNCATE rtindex",
        ],
    )
    .await;
}
