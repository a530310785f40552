//! Percolate tables: stored queries, and documents that are put to them. What the answers are is Manticore's manual's to
//! say, or an ordinary table's with the same documents, which each stored query searches.

use remora_engine::{ColumnDef, ColumnType, Schema, WordsDef};
use remora_sql::{Session, percolate_table};
use remora_words::settings::Settings;

use super::{
    all,
    support::{Server, random::Random, rows, run},
};

/// The example of Manticore's manual.
async fn products(session: &mut Session) {
    all(
        session,
        &[
            "CREATE TABLE products (title TEXT, color STRING, price UINT, meta JSON, sizes MULTI) type='pq'",
            "INSERT INTO products (query) VALUES ('@title bag')",
            "INSERT INTO products (query, filters) VALUES ('@title shoes', 'color=\\'red\\'')",
            "INSERT INTO products (query, filters, tags) VALUES ('@title shoes', 'color in (\\'blue\\', \\'green\\')', 'a,b')",
        ],
    )
    .await;
}

async fn compare(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, expected) in cases {
        let found = rows(session, statement).await.replace('\n', " ; ");
        assert_eq!(found, *expected, "{statement}");
    }
}

async fn refuse(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, part) in cases {
        match run(session, statement).await {
            Ok(_) => panic!("{statement} was done"),
            Err(error) => assert!(error.message.contains(part), "{statement}: {}", error.message),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_put_to_stored_queries() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    compare(
        &mut session,
        &[
            ("CALL PQ('products', 'Beautiful shoes', 0 AS docs_json)", ""),
            ("CALL PQ('products', 'What a nice bag', 0 AS docs_json)", "1"),
            ("CALL PQ('products', '{\"title\": \"What a nice bag\"}')", "1"),
            ("CALL PQ('test.products', '{\"title\": \"What a nice bag\"}', 1 as query)", "1|@title bag||"),
            ("CALL PQ('products', ('nice pair of shoes', 'beautiful bag'), 1 as query, 0 as docs_json)", "1|@title bag||"),
            (
                "CALL PQ('products', ('{\"title\": \"nice pair of shoes\", \"color\": \"red\"}', \
                 '{\"title\": \"beautiful bag\"}'), 1 AS query)",
                "1|@title bag|| ; 2|@title shoes||color='red'",
            ),
            (
                "CALL PQ('products', '[{\"title\": \"nice pair of shoes\", \"color\": \"blue\"}, \
                 {\"title\": \"beautiful bag\"}]', 1 docs, 1 query)",
                "1|2|@title bag|| ; 3|1|@title shoes|a,b|color in ('blue', 'green')",
            ),
            (
                "CALL PQ('products', '[{\"title\": \"bag\", \"n\": 7}, {\"n\": \"-8\", \"title\": \"two bags and a bag\"}]', \
                 1 docs, 'n' AS docs_id)",
                "1|7,-8",
            ),
            ("CALL PQ('products', ('bag', '', 'a bag'), 0 docs_json, 1 docs, 1 skip_empty, 10 shift)", "1|11,13"),
            ("CALL PQ('products', ('{\"title\": \"bag\"}', '{', '[1]', '{}'), 1 docs, 1 skip_bad_json, 1 skip_empty)", "1|1"),
            ("SHOW WARNINGS", "Warning|1000|document 2 is no JSON object: EOF while parsing an object at line 1 column 1 ; \
              Warning|1000|document 3 is no JSON object: it is a number ; Warning|1000|document 4 is empty"),
            ("CALL PQ('products', '{\"title\": \"bag\"}', 'sharded' AS mode, 1 AS verbose)", "1"),
        ],
    )
    .await;
    let meta = rows(&mut session, "SHOW META").await;
    for figure in [
        "Queries matched|1",
        "Document matched|1",
        "Total queries stored|3",
        "Term only queries|3",
        "Fast rejected queries|2",
    ] {
        assert!(meta.lines().any(|line| line == figure), "{figure} in {meta}");
    }
    refuse(
        &mut session,
        &[
            ("CALL PQ('products', '{')", "document 1 is no JSON object"),
            ("CALL PQ('products', ('{}'))", "document 1 is empty"),
            (
                "CALL PQ('products', '{\"title\": \"a\"}', 'n' AS docs_id)",
                "document 1 has no integer 'n'",
            ),
            ("CALL PQ('products', '{\"title\": [1]}')", "'title' is an array or an object"),
            ("CALL PQ('products', '{\"price\": \"dear\"}')", "Incorrect integer value"),
            ("CALL PQ('products', 'a', 1 AS zzz)", "unknown option 'zzz' (or bad argument type)"),
            ("CALL PQ('products', 'a', 'x' AS mode)", "unknown option 'mode'"),
            ("CALL PQ('nothing', 'a')", "doesn't exist"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_rows_that_are_checked() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    refuse(
        &mut session,
        &[
            (
                "INSERT INTO products (query) VALUES ('@nowhere bag')",
                "no field 'nowhere' found in schema",
            ),
            (
                "INSERT INTO products (query) VALUES ('-bag')",
                "table products: query is non-computable",
            ),
            ("REPLACE INTO products (id, query) VALUES (1, '(bag')", "table products: "),
            ("UPDATE products SET query = '(' WHERE id = 1", "table products: "),
            ("INSERT INTO products (filters) VALUES ('size > 1')", "Unknown column 'size'"),
            ("INSERT INTO products (filters) VALUES ('price >')", "syntax"),
            ("INSERT INTO products (filters) VALUES ('price > 1), (2')", "are one condition"),
            (
                "INSERT INTO products (filters) VALUES ('price > (SELECT 1)')",
                "a condition of the document alone",
            ),
            (
                "INSERT INTO products (filters) VALUES ('price > @x')",
                "a condition of the document alone",
            ),
            (
                "INSERT INTO products (filters) VALUES ('MATCH(\\'a\\')')",
                "disallowed function: match",
            ),
            ("INSERT INTO products (title) VALUES ('a')", "Unknown column 'title'"),
            (
                "INSERT INTO products (filters) VALUES ('ROW_NUMBER() OVER (ORDER BY price) = 1')",
                "disallowed function: over",
            ),
            (
                "INSERT INTO products (filters) VALUES ('COUNT(*) > 0')",
                "disallowed function: count",
            ),
            ("CALL PQ('test.nothing', 'a')", "doesn't exist"),
        ],
    )
    .await;
    all(&mut session, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    refuse(&mut session, &[("CALL PQ('t', 'a')", "is no percolate table")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_change_as_other_rows_do() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    let document = "CALL PQ('products', '{\"title\": \"shoes and a bag\", \"color\": \"RED\", \"price\": 7, \
                    \"sizes\": [40, 41], \"meta\": {\"brand\": \"x\"}}')";
    compare(
        &mut session,
        &[
            ("SELECT * FROM products ORDER BY id", "1|@title bag|| ; 2|@title shoes||color='red' ; \
              3|@title shoes|a,b|color in ('blue', 'green')"),
            (document, "1 ; 2"),
            ("REPLACE INTO products VALUES (3, 'shoes', 'c', 'price = 7')", ""),
            (document, "1 ; 2 ; 3"),
            ("UPDATE products SET filters = 'price < 7' WHERE id = 3", ""),
            (document, "1 ; 2"),
            ("DELETE FROM products WHERE id = 1 OR tags = 'c'", ""),
            (document, "2"),
            ("INSERT INTO products VALUES (4, '', '', 'sizes = 41'), (5, '', '', 'sizes != 41'), (6, '', '', \
              'meta->>\\'$.brand\\' = \\'x\\''), (7, '', '', '')", ""),
            (document, "2 ; 4 ; 6 ; 7"),
            ("BEGIN", ""),
            ("DELETE FROM products WHERE id <> 4", ""),
            (document, "4"),
            ("INSERT INTO products VALUES (9, 'shoes', '', ''), (10, 'hat', '', '')", ""),
            (document, "4 ; 9"),
            ("SAVEPOINT s", ""),
            ("REPLACE INTO products VALUES (9, 'hat', '', ''), (10, 'shoes', '', ''), (2, 'bag', '', '')", ""),
            (document, "2 ; 4 ; 10"),
            ("ROLLBACK TO s", ""),
            (document, "4 ; 9"),
        ],
    )
    .await;
    compare(&mut session, &[("ROLLBACK", ""), (document, "2 ; 4 ; 6 ; 7")]).await;
    compare(
        &mut session,
        &[("TRUNCATE TABLE products", ""), (document, ""), ("SELECT COUNT(*) FROM products", "0")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_percolate_table_has_no_other_columns_keys_or_indexes() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    refuse(
        &mut session,
        &[
            ("ALTER TABLE products ADD COLUMN x INT", "percolate table"),
            ("CREATE INDEX x ON products (tags(3))", "percolate table"),
            ("CREATE TABLE p2 (n INT) type='pq'", "a column of the type TEXT"),
            ("CREATE TABLE p2 (t TEXT, n INT PRIMARY KEY) type='pq'", "keys and conditions"),
            ("CREATE TABLE p2 type='pq'", "needs the columns"),
            ("CREATE TEMPORARY TABLE p2 LIKE products", "a temporary percolate table"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_whose_filters_fail_matches_nothing_and_others_do() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    all(
        &mut session,
        &["INSERT INTO products (id, query, filters) VALUES (8, 'bag', 'price - 50 < 0'), (9, 'bag', 'price > 1')"],
    )
    .await;
    // The price of a document that the rule's keywords do not find fails nothing.
    let unlike = "CALL PQ('products', '[{\"title\": \"bag\", \"price\": 60}, {\"title\": \"x\", \"price\": 40}]', 1 docs)";
    let fails = "CALL PQ('products', '{\"title\": \"bag\", \"price\": 40}')";
    compare(&mut session, &[(unlike, "1|1 ; 9|1"), ("SHOW WARNINGS", ""), (fails, "1 ; 9")]).await;
    let warnings = rows(&mut session, "SHOW WARNINGS").await;
    assert!(warnings.contains("the filters of rule 8 failed: BIGINT UNSIGNED"), "{warnings}");
    let meta = rows(&mut session, "SHOW META").await;
    assert!(meta.contains("Queries failed|1"), "{meta}");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_mean_the_same_in_any_sql_mode() {
    let server = Server::new();
    let mut session = server.session();
    products(&mut session).await;
    let red = "CALL PQ('products', '{\"title\": \"shoes\", \"color\": \"red\"}')";
    all(
        &mut session,
        &[
            "INSERT INTO products (id, query, filters) VALUES (8, 'shoes', 'color = \"red\"')",
            // Under NO_BACKSLASH_ESCAPES the literal would end early, and the rest would be read.
            r"INSERT INTO products (id, query, filters) VALUES (9, 'shoes', '\'\\\' OR SLEEP(1000)) IS TRUE) FROM secret.t -- \'')",
        ],
    )
    .await;
    for mode in ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT"] {
        all(&mut session, &[&format!("SET sql_mode = '{mode}'")]).await;
        compare(&mut session, &[(red, "2 ; 8")]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_percolate_table_is_shown_and_made_again() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &["CREATE TABLE p (title TEXT, body TEXT, color STRING, n UINT) type='percolate' morphology='stem_en' words='body'"],
    )
    .await;
    let shown = "CREATE TABLE `p` (\n  `title` text,\n  `body` text,\n  `color` longtext,\n  `n` int unsigned DEFAULT NULL\n) \
                 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci morphology='stem_en' words='body' type='pq'";
    assert_eq!(rows(&mut session, "SHOW CREATE TABLE p").await, format!("p|{shown}"));
    compare(
        &mut session,
        &[
            ("DESC p TABLE", "body|field ; title|string ; body|string ; color|string ; n|uint"),
            ("INSERT INTO p (query) VALUES ('runs'), ('@body reefs')", ""),
            ("CALL PQ('p', '{\"title\": \"a run\", \"body\": \"the reef\"}')", "2"),
            ("CREATE TABLE same LIKE p", ""),
            ("INSERT INTO same SELECT * FROM p", ""),
            ("CALL PQ('same', 'running', 0 docs_json)", "1"),
            ("RENAME TABLE same TO other", ""),
            ("CALL PQ('other', 'running', 0 docs_json)", "1"),
            ("SET sql_dialect = 'sphinx'", ""),
            ("SHOW TABLES", "other|percolate ; p|percolate"),
            ("DESC p", "id|bigint ; query|string ; tags|string ; filters|string"),
            ("CALL PQ('p', 'running', 0 docs_json)", "1"),
            ("DROP TABLE p", ""),
            (shown, ""),
            ("SHOW TABLES", "other|percolate ; p|percolate"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let document =
        "CALL PQ('products', '{\"title\": \"shoes\", \"color\": \"green\"}', 1 AS query)";
    let expected = "3|@title shoes|a,b|color in ('blue', 'green')";
    {
        let server = Server::at(directory.path());
        let mut session = server.session();
        products(&mut session).await;
        assert_eq!(rows(&mut session, document).await, expected);
        server.database.close().unwrap();
    }
    let server = Server::at(directory.path());
    let mut session = server.session();
    assert_eq!(rows(&mut session, document).await, expected);
    all(&mut session, &["DELETE FROM products WHERE id = 3"]).await;
    assert_eq!(rows(&mut session, document).await, "");
}

const WORDS: &[&str] =
    &["reef", "reefs", "sea", "fish", "fishing", "coral", "the", "wave", "sand", "salt"];

fn text(random: &mut Random, most: u64) -> String {
    let words: Vec<&str> = (0..=random.below(most)).map(|_| random.choose(WORDS)).collect();
    words.join(" ")
}

/// A query of any part of the language.
fn query(random: &mut Random, depth: u64) -> String {
    let word = random.choose(WORDS);
    if depth == 0 {
        return match random.below(8) {
            0 => format!("={word}"),
            1 => format!("^{word}"),
            2 => format!("{word}$"),
            3 => format!("{}*", &word[..3]),
            4 => format!("*{}*", &word[1..3]),
            _ => word.to_owned(),
        };
    }
    let phrase = text(random, 3);
    let (left, right) = (query(random, depth - 1), query(random, depth - 1));
    match random.below(12) {
        0 => format!("({left} | {right})"),
        1 => format!("({left} MAYBE {right})"),
        2 => format!("({left} -{})", random.choose(WORDS)),
        3 => format!("\"{phrase}\""),
        4 => format!("\"{phrase}\"~3"),
        5 => format!("\"{phrase} {word}\"/2"),
        6 => format!("({left} << {right})"),
        7 => format!("({left} NEAR/2 {right})"),
        8 => format!("(@title {left})"),
        9 => format!("(@body[2] {left} {right})"),
        _ => format!("({left} {right})"),
    }
}

fn filters(random: &mut Random) -> String {
    let number = random.below(6);
    match random.below(9) {
        0 => format!("price > {number}"),
        1 => format!("price BETWEEN {number} AND 4 OR color = 'blue'"),
        2 => "color IN ('red', 'Green')".to_owned(),
        3 => format!("sizes = {number}"),
        4 => format!("sizes NOT IN ({number}, 2)"),
        5 => format!("meta->>'$.n' = '{number}'"),
        6 => format!("NOT price < {number} AND color != 'red'"),
        _ => String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_documents_match_the_rules_that_find_them() {
    let mut random = Random::seeded();
    let server = Server::new();
    let mut session = server.session();
    let columns = "title TEXT, body TEXT, color STRING, price INT, meta JSON, sizes MULTI";
    let words = "words='title,body' min_infix_len='2' morphology='stem_en' index_exact_words='1' stopwords_list='the'";
    all(
        &mut session,
        &[
            &format!("CREATE TABLE pq ({columns}) type='pq' {words}"),
            &format!("CREATE TABLE t (id BIGINT PRIMARY KEY, {columns}) {words}"),
        ],
    )
    .await;
    for round in 0..6 {
        for _ in 0..25 {
            let (depth, quote) = (random.below(3), |text: String| text.replace('\'', "''"));
            let (query, filters) = (query(&mut random, depth), filters(&mut random));
            let statement = format!(
                "REPLACE INTO pq VALUES ({}, '{}', '', '{}')",
                1 + random.below(60),
                quote(query.clone()),
                quote(filters)
            );
            if run(&mut session, &statement).await.is_err() {
                // What no table understands no rule says.
                let search = format!("SELECT id FROM t WHERE MATCH('{}')", quote(query));
                assert!(run(&mut session, &search).await.is_err(), "{statement}");
            }
        }
        if round == 3 {
            all(&mut session, &["DELETE FROM pq WHERE id % 7 = 3"]).await;
        }
        all(&mut session, &["DELETE FROM t"]).await;
        let mut documents = Vec::new();
        for id in 1..=random.below(8) {
            let (title, body) = (text(&mut random, 4), text(&mut random, 7));
            let color = random.choose(&["red", "GREEN", "blue"]);
            let (price, size, other) = (random.below(6), random.below(6), random.below(6));
            documents.push(format!(
                "{{\"title\": \"{title}\", \"body\": \"{body}\", \"color\": \"{color}\", \"price\": {price}, \
                 \"sizes\": [{size}, {other}], \"meta\": {{\"n\": \"{other}\"}}}}"
            ));
            let row = format!(
                "INSERT INTO t VALUES ({id}, '{title}', '{body}', '{color}', {price}, '{{\"n\": \"{other}\"}}', \
                 ({size}, {other}))"
            );
            all(&mut session, &[&row]).await;
        }
        let call = format!("CALL PQ('pq', '[{}]', 1 AS docs)", documents.join(", "));
        let found = rows(&mut session, &call).await;
        let rules =
            run(&mut session, "SELECT id, query, filters FROM pq ORDER BY id").await.unwrap();
        let mut expected = Vec::new();
        for rule in &rules.sets[0].rows {
            let [id, query, filters] = &rule[..] else { panic!("{rule:?}") };
            let filters = if filters.is_empty() { "TRUE" } else { filters };
            let search = format!(
                "SELECT id FROM t WHERE MATCH('{}') AND ({filters}) ORDER BY id",
                query.replace('\'', "''")
            );
            let matching = rows(&mut session, &search).await.replace('\n', ",");
            if !matching.is_empty() {
                expected.push(format!("{id}|{matching}"));
            }
        }
        assert_eq!(found, expected.join("\n"), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn percolate_tables_that_a_file_defines_are_those_of_statements() {
    let server = Server::new();
    let mut session = server.session();
    let columns = [
        ("title", "text"),
        ("color", "longtext"),
        ("price", "int unsigned"),
        ("meta", "json"),
        ("sizes", "multi"),
    ];
    let definitions = columns.map(|(name, declared)| format!("{name} {declared}")).join(", ");
    let statement = format!(
        "CREATE TABLE made ({definitions}) type='percolate' words='title' morphology='stem_en'"
    );
    all(&mut session, &[&statement]).await;
    let mut settings = Settings::default();
    settings.set("morphology", "stem_en").unwrap();
    let column = |(id, (name, declared)): (u32, (&str, &str))| ColumnDef {
        id,
        name: name.to_owned(),
        kind: ColumnType::Text,
        nullable: true,
        indexed: false,
        declared: Some(declared.to_owned()),
    };
    let documents = Schema {
        columns: (0..).zip(columns).map(column).collect(),
        primary_key: Vec::new(),
        words: Some(WordsDef::new(0, vec![0], &settings, Vec::new()).unwrap()),
        declared: None,
        ..Schema::distributed("other", Vec::new())
    };
    let other = percolate_table(documents.clone()).unwrap();
    server.database.create_table(other.clone()).unwrap();
    let made = server.database.schema("made").unwrap();
    assert_eq!((&other.columns, &other.primary_key), (&made.columns, &made.primary_key));
    let (ours, theirs) = (other.documents().unwrap(), made.documents().unwrap());
    assert_eq!((&ours.columns, &ours.primary_key), (&theirs.columns, &theirs.primary_key));
    assert_eq!((&ours.words, &ours.paths), (&theirs.words, &theirs.paths));
    let mut shown = Vec::new();
    for table in ["made", "other"] {
        let created = rows(&mut session, &format!("SHOW CREATE TABLE {table}")).await;
        let documents = rows(&mut session, &format!("DESC {table} TABLE")).await;
        let insert = format!(
            "INSERT INTO {table} (query, filters) VALUES ('bags', 'price > 2 AND color = ''red''')"
        );
        all(&mut session, &[&insert]).await;
        let call = format!(
            "CALL PQ('{table}', '[{{\"title\": \"a bag\", \"price\": 3, \"color\": \"red\"}}, {{\"title\": \"bag\"}}]', 1 AS docs)"
        );
        let matched = rows(&mut session, &call).await;
        assert_eq!(matched, "1|1");
        shown.push((created.replace(table, "t"), documents));
    }
    assert_eq!(shown[0], shown[1]);
    let refused = |declared: &str| {
        let mut documents = documents.clone();
        documents.columns[1].declared = Some(declared.to_owned());
        percolate_table(documents).unwrap_err().message
    };
    assert!(refused("int AUTO_INCREMENT").contains("column 'color' of a percolate table"));
    assert!(!refused("nonsense").is_empty());
}
