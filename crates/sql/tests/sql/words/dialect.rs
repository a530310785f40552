//! Sphinx's dialect: unless noted, the expected results are those of Sphinx 2.2.11 with the same rows.

use remora_sql::Session;

use super::{
    all,
    groups::numbered,
    sets,
    support::{Server, run},
};

async fn sphinx(session: &mut Session) {
    numbered(session).await;
    all(session, &["SET sql_dialect = 'sphinx'"]).await;
}

async fn compare(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, expected) in cases {
        assert_eq!(sets(session, statement).await, *expected, "{statement}");
        assert_eq!(sets(session, statement).await, *expected, "again: {statement}");
    }
}

async fn refuse(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, part) in cases {
        match run(session, statement).await {
            Ok(_) => panic!("{statement} was answered"),
            Err(error) => assert!(error.message.contains(part), "{statement}: {}", error.message),
        }
    }
}

const ROWS: &[(&str, &str)] = &[
    (
        "SELECT id, g, WEIGHT() FROM t WHERE MATCH('alpha') GROUP BY g",
        "12|1|2481 1|0|1486 3|2|1486",
    ),
    (
        "SELECT g, COUNT(*) FROM t WHERE MATCH('alpha') GROUP BY g ORDER BY COUNT(*) DESC, g ASC",
        "1|3 0|2 2|2",
    ),
    ("SELECT id, g, COUNT(*) c FROM t WHERE MATCH('alpha') GROUP BY g HAVING c > 2", "12|1|3"),
    (
        "SELECT id, g, COUNT(DISTINCT h) d, SUM(n), MIN(n), MAX(n) FROM t WHERE MATCH('alpha') GROUP BY g",
        "12|1|2|12|1|7 1|0|1|6|0|6 3|2|2|7|2|5",
    ),
    ("SELECT id, n+1 m, COUNT(*) FROM t WHERE MATCH('alpha') GROUP BY m LIMIT 2", "12|8|1 2|2|1"),
    ("SELECT COUNT(*), id FROM t WHERE MATCH('alpha')", "7|1"),
    ("SELECT COUNT(*), id FROM t WHERE n > 3", "8|8"),
    ("SELECT COUNT(*), id, g FROM t WHERE MATCH('beta') ORDER BY n DESC", "6|1|0"),
    ("SELECT id FROM t WHERE MATCH('alpha') ORDER BY g ASC", "1 11 2 8 12 3 9"),
    ("SELECT id FROM t LIMIT 3", "1 2 3"),
    ("SELECT id FROM t ORDER BY h ASC LIMIT 7", "1 3 8 11 13 20 2"),
    ("SELECT id FROM t WHERE MATCH('alpha') OPTION max_matches=3", "12 2 1"),
    ("SELECT id FROM t WHERE MATCH('alpha') LIMIT 2,5 OPTION max_matches=3", "1"),
    ("SELECT id FROM t WHERE n < 5 OPTION reverse_scan=1", "1 2 3 5 8"),
    ("SELECT id FROM t WHERE s = 'odd' LIMIT 3", "2 5 9"),
    ("SELECT id FROM t WHERE WEIGHT() > 2000 AND MATCH('alpha')", "12 2"),
    (
        "SELECT id, WEIGHT() FROM t WHERE MATCH('alpha') ORDER BY WEIGHT() ASC, id DESC LIMIT 3",
        "11|1486 9|1486 8|1486",
    ),
    (
        "SELECT id, g FROM t WHERE MATCH('alpha') GROUP BY h LIMIT 2 FACET g",
        "12|1 1|0 ; 1|3 0|2 2|2",
    ),
    ("SELECT id, WEIGHT() w FROM t WHERE MATCH('alpha') AND w > 2000", "12|2481 2|2478"),
    ("SELECT id, n*2 AS m FROM t WHERE m BETWEEN 10 AND 14 AND g = 2", "9|10"),
    ("SELECT id, n*2 AS m, h AS g FROM t WHERE m BETWEEN 10 AND 14 AND g = 2", ""),
    // Division by 0 is NULL: in Sphinx `/` gives infinity, and `%` crashes.
    ("SELECT id, n/0, n%0, n DIV 0 FROM t WHERE n=2", "3|0.0000|0|0"),
    ("SELECT 1+1", "2"),
];

#[tokio::test(flavor = "multi_thread")]
async fn groups_rows_and_limits_are_sphinxs() {
    let server = Server::new();
    let mut session = server.session();
    sphinx(&mut session).await;
    compare(&mut session, ROWS).await;
    refuse(
        &mut session,
        &[
            (
                "SELECT id FROM t LIMIT 1500,20",
                "offset out of bounds (offset=1500, max_matches=1000)",
            ),
            (
                "SELECT id FROM t WHERE MATCH('alpha') LIMIT 3,1 OPTION max_matches=3",
                "offset out of bounds (offset=3, max_matches=3)",
            ),
            ("SELECT id FROM t OPTION max_matches=0", "max_matches can not be less than one"),
            ("SELECT g, @count FROM t GROUP BY g", "Using the old-fashion @variables"),
            ("SELECT id FROM t WHERE MATCH('a') AND MATCH('b')", "too many MATCH() clauses"),
            ("SELECT t.id FROM t, t AS u", "several tables as one"),
            ("SELECT COUNT(*) AS c FROM t WHERE c > 1", "Invalid use of group function"),
            ("SELECT id FROM t WHERE nosuch > 1", "nosuch"),
        ],
    )
    .await;
    all(&mut session, &["CREATE TABLE many (id INT PRIMARY KEY, s VARCHAR(9)) morphology='none'"])
        .await;
    let rows: Vec<String> = (1..=1100).map(|id| format!("({id}, NULL)")).collect();
    all(&mut session, &[&format!("INSERT INTO many VALUES {}", rows.join(","))]).await;
    for (statement, count) in [
        ("SELECT id FROM many", 20),
        ("SELECT id FROM many WHERE MATCH('')", 20),
        ("SELECT id FROM many LIMIT 1001", 1000),
        ("SELECT id FROM many LIMIT 990, 100", 10),
        ("SELECT id FROM many LIMIT 2000 OPTION max_matches=1050", 1050),
        ("SELECT id FROM many UNION ALL SELECT id FROM many", 20),
    ] {
        let reply = run(&mut session, statement).await.unwrap();
        assert_eq!(reply.sets[0].rows.len(), count, "{statement}");
    }
    // What is no client's SELECT has all rows, and a text that is not there is empty.
    all(
        &mut session,
        &[
            "CREATE TABLE copy (id INT PRIMARY KEY, n INT)",
            "INSERT INTO copy SELECT id, 1 FROM many",
            "UPDATE copy SET n = 2 WHERE id IN (SELECT id FROM many)",
        ],
    )
    .await;
    compare(
        &mut session,
        &[("SELECT COUNT(*) FROM copy WHERE n = 2", "1100"), ("SELECT s FROM many LIMIT 1", "")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dialect_is_a_sessions_and_leaves_mysqls_alone() {
    let server = Server::new();
    let mut session = server.session();
    sphinx(&mut session).await;
    all(
        &mut session,
        &[
            "SET sql_dialect = 'mysql'",
            "CREATE VIEW v AS SELECT g, COUNT(*) AS c FROM t GROUP BY g",
        ],
    )
    .await;
    refuse(
        &mut session,
        &[
            ("SELECT id, g FROM t GROUP BY g", "only_full_group_by"),
            ("SET sql_dialect = 'sphynx'", "can't be set to the value of 'sphynx'"),
        ],
    )
    .await;
    compare(&mut session, &[("SELECT n/0, @count FROM t WHERE n = 2", "NULL|NULL")]).await;
    let kinds = "CREATE TABLE kinds (at DATETIME, day DATE, yes BOOL, t TEXT) words='t'";
    all(&mut session, &["SET sql_dialect = 'Sphinx'", kinds]).await;
    let cases = [
        ("SELECT @@sql_dialect", "sphinx"),
        ("SELECT g, c FROM v", "0|4 1|4 2|4"),
        ("SHOW TABLES LIKE 't%'", "t|rt"),
        ("SHOW STATUS LIKE 'queries'", "queries|0"),
        ("SHOW GLOBAL STATUS LIKE 'q%'", "queries|0"),
        ("SHOW STATUS LIKE 'Open_tables'", ""),
        (
            "DESC t",
            "id|bigint title|field body|field n|uint title|string body|string g|uint h|uint s|string",
        ),
        ("DESC kinds", "t|field at|timestamp day|timestamp yes|uint t|string"),
        ("SHOW AGENT STATUS", ""),
        ("SHOW AGENT x STATUS LIKE 'y'", ""),
        ("SHOW THREADS", ""),
        ("SHOW THREADS OPTION columns=50", ""),
        ("SHOW VARIABLES LIKE 'sql_dial%'", "sql_dialect|sphinx"),
    ];
    compare(&mut session, &cases).await;
    refuse(
        &mut session,
        &[
            ("SHOW PLAN", "SHOW PLAN"),
            ("SHOW PROFILE", "SHOW PROFILE"),
            ("SHOW THREADS OPTION zzz=1", "unknown option 'zzz'"),
            ("SHOW META WHERE Value = 1", "SHOW META WHERE"),
        ],
    )
    .await;
    // Rows of system tables are all returned.
    let reply =
        run(&mut session, "SELECT VARIABLE_NAME FROM performance_schema.global_variables").await;
    assert!(reply.unwrap().sets[0].rows.len() > 20);
    session.reset(None);
    compare(&mut session, &[("SELECT @@sql_dialect", "mysql")]).await;
    all(&mut session, &["SET GLOBAL sql_dialect = 'sphinx'"]).await;
    compare(&mut server.session(), &[("SELECT @@sql_dialect", "sphinx")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_found_is_counted() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    // Each SELECT, with its totals in MySQL's dialect and in Sphinx's.
    for (statement, mysql, sphinx) in [
        ("SELECT id, n + 1 FROM t WHERE MATCH('alpha') LIMIT 2", "2 7", "7 7"),
        ("SELECT id, n + 1 FROM t WHERE MATCH('alpha') AND n > 3 LIMIT 1", "1 4", "4 4"),
        (
            "SELECT id FROM t WHERE MATCH('alpha') ORDER BY n % 3 LIMIT 3 OPTION max_matches=5",
            "3 7",
            "5 7",
        ),
        ("SELECT id, n FROM t WHERE MATCH('alpha') GROUP 1 BY g LIMIT 1", "1 3", "3 3"),
        ("SELECT id, n FROM t WHERE MATCH('alpha') GROUP 2 BY g LIMIT 1", "1 6", "6 6"),
        // A count that needs no plan has found what it counts, and returns one row.
        ("SELECT COUNT(*) FROM t WHERE MATCH('alpha')", "1 7", "1 1"),
        ("SELECT id, n + 1 FROM t WHERE MATCH('alpha') LIMIT 1 FACET g", "1 7", "7 7"),
    ] {
        for (dialect, totals) in [("mysql", mysql), ("sphinx", sphinx)] {
            all(&mut session, &[&format!("SET sql_dialect = '{dialect}'")]).await;
            run(&mut session, statement).await.unwrap();
            let meta = sets(&mut session, "SHOW META LIKE 'total%'").await;
            let (total, found) = totals.split_once(' ').unwrap();
            assert_eq!(
                meta,
                format!("total|{total} total_found|{found}"),
                "{dialect}: {statement}"
            );
        }
    }
    // Another SELECT is no search, so SHOW META goes on to report the search before.
    all(&mut session, &["SET sql_dialect = 'mysql'"]).await;
    run(&mut session, "SELECT id, n + 1 FROM t WHERE MATCH('alpha') LIMIT 2").await.unwrap();
    run(&mut session, "SELECT n % 2, COUNT(*) FROM t GROUP BY n % 2").await.unwrap();
    run(&mut session, "SHOW VARIABLES WHERE Variable_name LIKE 'sql%'").await.unwrap();
    let meta = sets(&mut session, "SHOW META LIKE 'total%'").await;
    assert_eq!(meta, "total|2 total_found|7");
    all(&mut session, &["SET sql_dialect = 'sphinx'"]).await;
    // Sphinx reports totals of a SELECT without MATCH too.
    for (statement, meta) in [
        ("SELECT id FROM t WHERE n > 3 LIMIT 2", "total|8 total_found|8"),
        ("SELECT id FROM t GROUP BY g LIMIT 1", "total|3 total_found|3"),
    ] {
        run(&mut session, statement).await.unwrap();
        assert_eq!(sets(&mut session, "SHOW META LIKE 'total%'").await, meta, "{statement}");
    }
    all(
        &mut session,
        &[
            "SET sql_dialect = 'mysql'",
            "PREPARE s FROM 'SELECT id, n + ? FROM t WHERE MATCH(?) AND n > ? ORDER BY n * ? LIMIT ?'",
            "SET @one = 1, @q = 'alpha', @three = 3",
        ],
    )
    .await;
    sets(&mut session, "EXECUTE s USING @one, @q, @three, @one, @one").await;
    compare(&mut session, &[("SHOW META LIKE 'TOTAL_FOUND'", "total_found|4")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_acted_on_or_refused_by_name() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    let found = "12 2 1 3 8 9 11";
    let cases: Vec<(String, &str)> = [
        "agent_query_timeout=1, retry_count=1, retry_delay=3",
        "boolean_simplify=1",
        "columns=1",
        "comment='x'",
        "comment=x",
        "cutoff=0",
        "global_idf=0",
        "local_df=1",
        "max_matches=1",
        "max_predicted_time=0",
        "max_query_time=10000",
        "rand_seed=5",
        "reverse_scan=1",
        "sort_method=kbuffer",
        "sort_method=pq",
        "threads=2",
        "boolean_mode=and",
        "not_terms_only_allowed=0",
    ]
    .iter()
    .map(|option| (format!("SELECT id FROM t WHERE MATCH('alpha') OPTION {option}"), found))
    .collect();
    for (statement, expected) in &cases {
        compare(&mut session, &[(statement.as_str(), expected)]).await;
    }
    for (option, part) in [
        ("zzz=1", "unknown option 'zzz' (or bad argument type)"),
        ("low_priority=1", "unknown option 'low_priority'"),
        ("local_df=x", "unknown option 'local_df' (or bad argument type)"),
        ("max_matches=0", "max_matches can not be less than one"),
        ("sort_method=zzz", "unknown sort_method=zzz (known values are pq, kbuffer)"),
        (
            "idf=zzz",
            "unknown flag zzz in idf=zzz (known values are plain, normalized, tfidf_normalized, tfidf_unnormalized)",
        ),
        ("global_idf=1", "OPTION global_idf=1"),
        ("expand_keywords=2", "expand_keywords: '2' is not allowed: take 0, 1, star or exact"),
        ("expansion_limit=x", "unknown option 'expansion_limit' (or bad argument type)"),
        ("morphology=stem_en", "OPTION morphology=stem_en"),
        ("boolean_mode=xor", "unknown boolean_mode=xor (known values are and, or)"),
        ("not_terms_only_allowed=2", "unknown option 'not_terms_only_allowed'"),
        ("fuzzy=1", "OPTION fuzzy=1"),
        ("max_predicted_time=9", "OPTION max_predicted_time=9"),
    ] {
        let with = format!("SELECT id FROM t WHERE MATCH('alpha') OPTION {option}");
        let without = format!("SELECT id FROM t OPTION {option}");
        refuse(&mut session, &[(with.as_str(), part)]).await;
        if !option.starts_with("idf") {
            refuse(&mut session, &[(without.as_str(), part)]).await;
        }
    }
}

/// Options that change how a query is read, and which rows are shown.
#[tokio::test(flavor = "multi_thread")]
async fn options_change_how_a_query_is_read() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, s TEXT) words='s' morphology='stem_en' \
             index_exact_words='1' min_infix_len='3'",
            "INSERT INTO t VALUES (1, 'fishing reefs'), (2, 'fish'), (3, 'jellyfish'), \
             (4, 'fished reef'), (5, 'shark')",
            "CREATE TABLE e (id INT PRIMARY KEY, s TEXT) words='s' min_infix_len='3' \
             expand_keywords='1'",
            "INSERT INTO e SELECT * FROM t",
        ],
    )
    .await;
    let found = |options: &str| format!("SELECT id FROM t WHERE MATCH{options}");
    for (query, expected) in [
        ("('fish') ORDER BY id", "1 2 4"),
        ("('fish') ORDER BY id OPTION expand_keywords=1", "1 2 3 4"),
        ("('fish') ORDER BY id OPTION expand_keywords=star", "1 2 3 4"),
        ("('fish') ORDER BY id OPTION expand_keywords=exact", "1 2 4"),
        ("('\"fish reef\"') ORDER BY id", "1 4"),
        ("('\"ish reef\"') ORDER BY id", ""),
        ("('\"ish reef\"') ORDER BY id OPTION expand_keywords=1", "1 4"),
        ("('*ish*') ORDER BY id", "1 2 3 4"),
        ("('*ish*') ORDER BY id OPTION expansion_limit=1", "2"),
        ("('fishing') ORDER BY id OPTION morphology=none", "1"),
        ("('fish reef shark') ORDER BY id", ""),
        ("('fish reef shark') ORDER BY id OPTION boolean_mode=or", "1 2 4 5"),
        ("('fish -reef shark') ORDER BY id OPTION boolean_mode=or", "2 5"),
        ("('-fish') ORDER BY id OPTION not_terms_only_allowed=1", "3 5"),
        ("('-fish -shark') AND WEIGHT() = 1 OPTION not_terms_only_allowed=1", "3"),
    ] {
        compare(&mut session, &[(found(query).as_str(), expected)]).await;
    }
    for (statement, expected) in [
        ("SELECT id FROM e WHERE MATCH('fish') ORDER BY id", "1 2 3 4"),
        ("SELECT id FROM e WHERE MATCH('fish') ORDER BY id OPTION expand_keywords=0", "2"),
        ("SELECT id FROM e WHERE MATCH('=fish') ORDER BY id", "1 2 3 4"),
        ("SELECT COUNT(*) FROM t WHERE MATCH('-fish') OPTION not_terms_only_allowed=1", "2"),
        (
            "SELECT id, WEIGHT() FROM t WHERE MATCH('-fish') OPTION not_terms_only_allowed=1",
            "3|1 5|1",
        ),
        (
            "SELECT HIGHLIGHT() FROM e WHERE MATCH('fish') ORDER BY id LIMIT 2, 1",
            "<b>jellyfish</b>",
        ),
    ] {
        compare(&mut session, &[(statement, expected)]).await;
    }
    refuse(
        &mut session,
        &[
            ("SELECT id FROM t WHERE MATCH('-fish')", "single NOT operator"),
            (
                "SELECT id FROM t WHERE MATCH('reef | -fish') OPTION not_terms_only_allowed=1",
                "unexpected '-'",
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_change_which_rows_are_shown() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    // The same seed gives the same numbers, as in RAND(seed).
    let seeded = "SELECT id FROM t ORDER BY RAND() LIMIT 5 OPTION rand_seed=7";
    let by_rand = sets(&mut session, "SELECT id FROM t ORDER BY RAND(7) LIMIT 5").await;
    compare(&mut session, &[(seeded, by_rand.as_str()), (seeded, by_rand.as_str())]).await;
    all(&mut session, &["SET sql_dialect = 'sphinx'"]).await;
    compare(
        &mut session,
        &[
            ("SELECT id FROM t WHERE MATCH('alpha') OPTION cutoff=2", "12 2"),
            ("SELECT id FROM t WHERE MATCH('alpha') ORDER BY id ASC OPTION cutoff=2", "1 2"),
            ("SELECT id FROM t WHERE MATCH('alpha') LIMIT 1, 5 OPTION cutoff=2", "2"),
            ("SELECT id FROM t WHERE MATCH('alpha') LIMIT 3, 5 OPTION cutoff=2", ""),
        ],
    )
    .await;
}

/// The best rows are the first of all rows, whatever forms of words a query looks for.
#[tokio::test(flavor = "multi_thread")]
async fn best_rows_of_changed_queries_are_the_first_of_all() {
    let server = Server::new();
    let mut session = server.session();
    let words = "ELT(1 + i * 7 % 6, 'fish', 'fishing', 'jellyfish', 'reef', 'reefs', 'shark')";
    let others = words.replace("* 7 % 6", "DIV 3 % 6");
    all(
        &mut session,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b TEXT) words='a,b' morphology='stem_en' \
             index_exact_words='1' min_infix_len='2'",
            &format!(
                "INSERT INTO t WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 600) \
                 SELECT i, CONCAT_WS(' ', {words}, {others}), CONCAT_WS(' ', {others}, 'fish', {words}) FROM r"
            ),
        ],
    )
    .await;
    for query in [
        "fish",
        "fish reef",
        "fish | reef",
        "\"ish ree\"",
        "fish -shark",
        "\"fish reef shark\"/2",
        "shark NOTNEAR/1 fish",
        "\"( shark | reef ) fish\"",
    ] {
        for options in [
            "expand_keywords=1",
            "expand_keywords=1, ranker=sph04",
            "expand_keywords=1, ranker=wordcount",
            "expand_keywords=exact, ranker=bm25",
            "expand_keywords=1, expansion_limit=2, ranker=matchany",
            "boolean_mode=or, expand_keywords=star",
        ] {
            let found = |tail: &str| {
                format!("SELECT id, WEIGHT() FROM t WHERE MATCH('{query}'){tail} OPTION {options}")
            };
            let whole = sets(&mut session, &found("")).await;
            let best = sets(&mut session, &found(" LIMIT 7")).await;
            let first: Vec<&str> = whole.split(' ').take(7).collect();
            // Words as written alone are not found within others.
            let may_be_empty = query.contains("ish ree") && options.contains("exact");
            assert!(may_be_empty || !best.is_empty(), "{query} {options}");
            assert_eq!(best, first.join(" "), "{query} {options}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn excerpts_are_made_in_a_select() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    let cases = [
        (
            "SELECT id, SNIPPET(s, 'odd') FROM t WHERE MATCH('alpha') LIMIT 2",
            "12|<b>Odd</b> 2|<b>Odd</b>",
        ),
        (
            "SELECT SNIPPET('alpha beta', 'beta') FROM t WHERE MATCH('alpha') LIMIT 1",
            "alpha <b>beta</b>",
        ),
        (
            "SELECT SNIPPET('alpha beta gamma', 'beta', 'before_match=[', 'after_match=]') FROM t WHERE MATCH('alpha') LIMIT 1",
            "alpha [beta] gamma",
        ),
        (
            "SELECT SNIPPET('alpha beta gamma', 'beta', 'before_match=[ , after_match=]') FROM t WHERE MATCH('alpha') LIMIT 1",
            "alpha [ , after_match=]beta</b> gamma",
        ),
        (
            "SELECT SNIPPET('alpha beta gamma delta epsilon', 'beta', 'limit=20', 'around=1') FROM t LIMIT 1",
            "alpha <b>beta</b> gamma  ... ",
        ),
        // Here, fields are strings.
        (
            "SELECT id, SNIPPET(title, 'beta') AS x FROM t WHERE MATCH('beta') AND id < 3",
            "1|alpha <b>beta</b> gamma 2|<b>beta</b> alpha",
        ),
        ("SELECT SNIPPET(NULL, 'a') FROM t LIMIT 1", "NULL"),
    ];
    compare(&mut session, &cases).await;
    all(&mut session, &["CREATE TABLE plain (id INT PRIMARY KEY, s TEXT)"]).await;
    refuse(
        &mut session,
        &[
            ("SELECT SNIPPET(s, 'odd', 'zzz=1') FROM t", "zzz"),
            ("SELECT SNIPPET(s, 'odd', 'zzz') FROM t", "Unknown SNIPPET option: zzz"),
            ("SELECT SNIPPET(s, 'odd', 'load_files=1') FROM t", "load_files"),
            ("SELECT SNIPPET(s) FROM t", "SNIPPET() is of a text"),
            ("SELECT SNIPPET(s, 'odd') FROM plain", "none has words"),
            (
                "SELECT SNIPPET(REPEAT('a', 2000000), 'odd') FROM t",
                "SNIPPET takes texts of 1048576 bytes",
            ),
            ("SELECT id FROM t JOIN plain ON WEIGHT() > 1", "WEIGHT() in ON"),
        ],
    )
    .await;
}
