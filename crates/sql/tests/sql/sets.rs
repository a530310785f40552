//! Multi-value attributes: writing, reading and searching them, and random conditions compared with each row's numbers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fmt::Write};

use remora_sql::{Session, SqlType};

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 600;

async fn error(session: &mut Session, statement: &str) -> String {
    match run(session, statement).await {
        Ok(_) => panic!("{statement} was answered"),
        Err(error) => error.message,
    }
}

async fn all(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        run(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// The expected results of comparisons are those of Sphinx 2.2.11 with the same rows.
const BOOKS: [&str; 2] = [
    "CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, tags MULTI, big MULTI64)",
    "INSERT INTO t VALUES (1, 1, (7,3,3), (-5,9000000000,2)), (2, 1, (5), ()), (3, 2, (), (1)), \
     (4, 2, (1,5,9), (5,6))",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_have_each_number_once_in_order() {
    let server = Server::new();
    let session = &mut server.session();
    all(session, &BOOKS).await;
    let shown = "1|3,7|-5,2,9000000000\n2|5|\n3||1\n4|1,5,9|5,6";
    for dialect in ["mysql", "sphinx"] {
        run(session, &format!("SET sql_dialect = '{dialect}'")).await.unwrap();
        for _ in 0..3 {
            assert_eq!(rows(session, "SELECT id, tags, big FROM t ORDER BY id").await, shown);
        }
    }
    run(session, "SET sql_dialect = 'mysql'").await.unwrap();
    assert_eq!(rows(session, "SELECT tags FROM t WHERE id = 4").await, "1,5,9");
    let answers = run(session, "SELECT tags, big FROM t WHERE id = 4").await.unwrap();
    let kinds: Vec<SqlType> = answers.sets[0].columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [SqlType::Multi, SqlType::Multi64]);
    all(
        session,
        &[
            "UPDATE t SET tags = (2, 1, 2), big = (-1) WHERE id = 2",
            "UPDATE t SET tags = () WHERE id = 1",
            "UPDATE t SET big = '9, -9 ,0' WHERE id = 3",
            "REPLACE INTO t VALUES (4, 2, '[4294967295, 0]', (9223372036854775807, -9223372036854775808))",
            "INSERT INTO t (id) VALUES (5)",
            "INSERT INTO t VALUES (6, 0, 8, DEFAULT)",
            "INSERT INTO t VALUES (6, 0, (1, 2), ()) ON DUPLICATE KEY UPDATE tags = (6, 5)",
            "INSERT INTO t SELECT id + 10, g, tags, big FROM t WHERE id IN (3, 4)",
        ],
    )
    .await;
    assert_eq!(
        rows(session, "SELECT id, tags, big FROM t ORDER BY id").await,
        "1||-5,2,9000000000\n2|1,2|-1\n3||-9,0,9\n4|0,4294967295|-9223372036854775808,9223372036854775807\n\
         5||\n6|5,6|\n13||-9,0,9\n14|0,4294967295|-9223372036854775808,9223372036854775807"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_set_is_refused_with_its_column() {
    let server = Server::new();
    let session = &mut server.session();
    all(session, &BOOKS).await;
    for (values, message) in [
        ("9, 1, (1, 'x'), ()", "Incorrect multi value: '[1, x]' for column 'tags' at row 1"),
        ("9, 1, (1, 1.5), ()", "Incorrect multi value: '[1, 1.5]' for column 'tags' at row 1"),
        ("9, 1, 'a,1', ()", "Incorrect multi value: 'a,1' for column 'tags' at row 1"),
        ("9, 1, '1,,2', ()", "Incorrect multi value: '1,,2' for column 'tags' at row 1"),
        ("9, 1, -1, ()", "Out of range value for column 'tags' at row 1: '-1'"),
        ("9, 1, (4294967296, 1), ()", "Out of range value for column 'tags' at row 1"),
        ("9, 1, (), 9223372036854775808", "Out of range value for column 'big' at row 1"),
        ("9, 1, NULL, ()", "Column 'tags' cannot be null"),
        ("9, (1, 2), (), ()", "Operand should contain 1 column(s)"),
    ] {
        let told = error(session, &format!("INSERT INTO t VALUES ({values})")).await;
        assert!(told.contains(message), "{values}: {told}");
    }
    let told = error(session, "UPDATE t SET g = (1, 2) WHERE id = 99").await;
    assert_eq!(told, "Operand should contain 1 column(s)");
    let many: Vec<String> = (0..65_537).map(|number| number.to_string()).collect();
    let told =
        error(session, &format!("INSERT INTO t VALUES (9, 1, '{}', '')", many.join(","))).await;
    assert!(told.contains("a set has at most 65536 numbers"), "{told}");
    let most = many[1..].join(",");
    run(session, &format!("INSERT INTO t VALUES (9, 1, '{most}', '')")).await.unwrap();
    assert_eq!(rows(session, "SELECT LENGTH(tags) FROM t WHERE id = 9").await, "65536");
    // Where it is not an error, what fits is stored.
    all(session, &["SET sql_mode = ''", "INSERT INTO t VALUES (10, 1, 'x,7,-3', (4294967296, 1))"])
        .await;
    assert_eq!(rows(session, "SELECT tags, big FROM t WHERE id = 10").await, "0,7|1,4294967296");
}

/// Values that compare as numbers with numbers do so with sets, with all their digits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digits_texts_and_decimals_are_numbers_beside_sets() {
    let server = Server::new();
    let session = &mut server.session();
    all(session, &BOOKS).await;
    let one = "INSERT INTO t VALUES (5, 1, (20200101), (9007199254740993)), \
               (6, 1, (), (9007199254740992))";
    all(session, &[one]).await;
    for (condition, expected) in [
        ("tags = 0x05", "2 4"),
        ("tags IN (0x05, b'101')", "2 4"),
        ("big = '9000000000'", "1"),
        ("big = '9007199254740993'", "5"),
        ("big = 9007199254740993.0", "5"),
        ("big > 9007199254740992.5", "5"),
        ("tags = DATE '2020-01-01'", "5"),
        ("tags >= DATE '2020-01-01'", "5"),
    ] {
        let asked = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(rows(session, &asked).await.replace('\n', " "), expected, "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_comparison_holds_of_any_number() {
    let server = Server::new();
    let session = &mut server.session();
    all(session, &BOOKS).await;
    for dialect in ["mysql", "sphinx"] {
        run(session, &format!("SET sql_dialect = '{dialect}'")).await.unwrap();
        for (condition, expected) in [
            // As Sphinx 2.2.11 has them.
            ("tags = 5", "2 4"),
            ("tags != 5", "1 3"),
            ("tags < 5", "1 4"),
            ("tags > 5", "1 4"),
            ("tags >= 5", "1 2 4"),
            ("tags BETWEEN 2 AND 4", "1"),
            ("tags IN (3, 9)", "1 4"),
            ("tags NOT IN (3, 9)", "2 3"),
            ("big = -5", "1"),
            // Sphinx has no syntax for these.
            ("5 = tags", "2 4"),
            ("5 >= tags", "1 2 4"),
            ("tags NOT BETWEEN 2 AND 4", "2 3 4"),
            ("tags BETWEEN 4 AND 2", ""),
            ("ANY(tags) = 5", "2 4"),
            ("ANY(tags) != 5", "1 4"),
            ("ANY(tags) NOT IN (5, 1, 9)", "1"),
            ("ALL(tags) = 5", "2"),
            ("ALL(tags) != 5", "1"),
            ("ALL(tags) IN (5, 3, 7)", "1 2"),
            ("ALL(tags) NOT IN (5, 2)", "1"),
            ("ALL(tags) > 1", "1 2"),
            ("ALL(tags) BETWEEN 3 AND 7", "1 2"),
            ("ANY(tags) NOT BETWEEN 3 AND 7", "4"),
            ("tags > 8.5", "4"),
            ("tags = '5'", "2 4"),
            ("tags = g + 3", "4"),
            ("LENGTH(tags) = 1", "2"),
            ("LEAST(tags) = 1", "4"),
            ("GREATEST(big) = 9000000000", "1"),
            ("5 MEMBER OF (tags)", "2 4"),
            ("JSON_OVERLAPS(tags, '[3, 9]')", "1 4"),
        ] {
            let asked = format!("SELECT id FROM t WHERE {condition} ORDER BY id ASC");
            for _ in 0..3 {
                let found = rows(session, &asked).await.replace('\n', " ");
                assert_eq!(found, expected, "{dialect}: {asked}");
            }
        }
    }
    run(session, "SET sql_dialect = 'mysql'").await.unwrap();
    assert_eq!(
        rows(session, "SELECT id, LENGTH(tags), LEAST(tags), GREATEST(big) FROM t ORDER BY id")
            .await,
        "1|2|3|9000000000\n2|1|5|0\n3|0|0|1\n4|3|1|6"
    );
    let told = error(session, "SELECT id FROM t ORDER BY tags").await;
    assert!(told.contains("order by MVA is undefined"), "{told}");
    for sought in ["5 IN (SELECT tags FROM t)", "tags > ANY (SELECT g FROM t)"] {
        let told = error(session, &format!("SELECT id FROM t WHERE {sought}")).await;
        assert!(told.contains("use MEMBER OF"), "{told}");
    }
    assert_eq!(rows(session, "SELECT COUNT(DISTINCT tags) FROM t").await, "5");
    assert_eq!(rows(session, "SELECT COUNT(*) FROM t a JOIN t b ON a.tags = b.g + 3").await, "4");
    let told = error(session, "SELECT id FROM t WHERE ANY(g) = 1").await;
    assert!(told.contains("anything but a multi-value attribute"), "{told}");
    let told = error(session, "SELECT LEAST(g) FROM t").await;
    assert!(told.contains("Incorrect parameter count"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_name_the_type() {
    let server = Server::new();
    let session = &mut server.session();
    all(
        session,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a multi, b MVA, c multi_64, d mva64, title TEXT) words='title'",
            "INSERT INTO t VALUES (1, (1,2), (3), (4), (5), 'x')",
            "CREATE TABLE u AS SELECT id, a, c FROM t",
            "CREATE TABLE v (id INT PRIMARY KEY, doc JSON)",
            "INSERT INTO v VALUES (1, '[3, 1, 3]'), (2, '7')",
            "ALTER TABLE v MODIFY doc MULTI",
            "ALTER TABLE v ADD more MULTI64",
        ],
    )
    .await;
    let created = rows(session, "SHOW CREATE TABLE t").await;
    for line in
        ["`a` multi NOT NULL", "`b` multi NOT NULL", "`c` multi64 NOT NULL", "`d` multi64 NOT NULL"]
    {
        assert!(created.contains(line), "{created}");
    }
    assert!(rows(session, "SHOW CREATE TABLE u").await.contains("`c` multi64 NOT NULL"));
    assert_eq!(rows(session, "SELECT a, c FROM u WHERE a = 2").await, "1,2|4");
    let asked = "SELECT COLUMN_TYPE, DATA_TYPE, IS_NULLABLE FROM information_schema.COLUMNS \
                 WHERE TABLE_NAME = 't' AND COLUMN_NAME IN ('a', 'd') ORDER BY COLUMN_NAME";
    assert_eq!(rows(session, asked).await, "multi|multi|NO\nmulti64|multi64|NO");
    assert_eq!(rows(session, "SELECT id, doc, more FROM v ORDER BY id").await, "1|1,3|\n2|7|");
    assert_eq!(rows(session, "SELECT id FROM v WHERE doc = 3").await, "1");
    run(session, "SET sql_dialect = 'sphinx'").await.unwrap();
    let described = rows(session, "DESC t").await;
    for line in ["a|mva", "b|mva", "c|mva64", "d|mva64"] {
        assert!(described.lines().any(|each| each == line), "{described}");
    }
    run(session, "SET sql_dialect = 'mysql'").await.unwrap();
    let told = error(session, "ALTER TABLE v ADD KEY k (more)").await;
    assert!(told.contains("more"), "{told}");
}

/// A comparison, and a function that tells whether it holds for a set.
type Condition = (String, Box<dyn Fn(&BTreeSet<i64>) -> bool>);

fn condition(random: &mut Random) -> Condition {
    let mut number = || random.below(24) as i64 - 2;
    let (a, b, c) = (number(), number(), number());
    let (text, holds): (String, Box<dyn Fn(i64) -> bool>) = match random.below(8) {
        0 => (format!("= {a}"), Box::new(move |it: i64| it == a)),
        1 => (format!("< {a}"), Box::new(move |it: i64| it < a)),
        2 => (format!("<= {a}"), Box::new(move |it: i64| it <= a)),
        3 => (format!("> {a}"), Box::new(move |it: i64| it > a)),
        4 => {
            (format!(">= {a}.5"), Box::new(move |it: i64| if a < 0 { it > a - 1 } else { it > a }))
        }
        5 => (format!("BETWEEN {a} AND {b}"), Box::new(move |it: i64| (a..=b).contains(&it))),
        6 => (format!("IN ({a}, {b}, {c})"), Box::new(move |it: i64| [a, b, c].contains(&it))),
        _ => (format!("= '{a}'"), Box::new(move |it: i64| it == a)),
    };
    // With two words before it NOT is said of each number.
    let is_list = text.starts_with("BETWEEN") || text.starts_with("IN");
    match random.below(6) {
        0 => (
            format!("ANY(tags) {text}"),
            Box::new(move |set: &BTreeSet<i64>| set.iter().any(|it| holds(*it))),
        ),
        1 => (
            format!("ALL(tags) {text}"),
            Box::new(move |set: &BTreeSet<i64>| !set.is_empty() && set.iter().all(|it| holds(*it))),
        ),
        2 if is_list => (
            format!("ANY(tags) NOT {text}"),
            Box::new(move |set: &BTreeSet<i64>| set.iter().any(|it| !holds(*it))),
        ),
        3 if is_list => (
            format!("ALL(tags) NOT {text}"),
            Box::new(move |set: &BTreeSet<i64>| {
                !set.is_empty() && !set.iter().any(|it| holds(*it))
            }),
        ),
        4 if is_list => (
            format!("tags NOT {text}"),
            Box::new(move |set: &BTreeSet<i64>| !set.iter().any(|it| holds(*it))),
        ),
        5 => (
            format!("NOT tags {text}"),
            Box::new(move |set: &BTreeSet<i64>| !set.iter().any(|it| holds(*it))),
        ),
        _ => (
            format!("tags {text}"),
            Box::new(move |set: &BTreeSet<i64>| set.iter().any(|it| holds(*it))),
        ),
    }
}

fn conditions(random: &mut Random) -> Condition {
    let ((one, is_one), (other, is_other)) = (condition(random), condition(random));
    match random.below(4) {
        0 => (
            format!("{one} AND {other}"),
            Box::new(move |set: &BTreeSet<i64>| is_one(set) && is_other(set)),
        ),
        1 => (
            format!("({one} OR {other})"),
            Box::new(move |set: &BTreeSet<i64>| is_one(set) || is_other(set)),
        ),
        _ => (one, is_one),
    }
}

/// The test rows, by key.
type Sets = Vec<(u64, BTreeSet<i64>)>;

async fn compare(session: &mut Session, random: &mut Random, sets: &Sets, rounds: usize) {
    for _ in 0..rounds {
        let (condition, holds) = conditions(random);
        let expected: Vec<String> =
            sets.iter().filter(|(_, set)| holds(set)).map(|(id, _)| id.to_string()).collect();
        let asked = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        // The second run caches the plan, the third uses it.
        for _ in 0..3 {
            assert_eq!(rows(session, &asked).await, expected.join("\n"), "{asked}");
        }
    }
}

fn written(set: &BTreeSet<i64>, random: &mut Random) -> String {
    let mut numbers: Vec<String> = set.iter().rev().map(i64::to_string).collect();
    numbers.extend(set.iter().take(random.below(2) as usize).map(i64::to_string));
    match random.below(2) {
        0 => format!("({})", numbers.join(",")),
        _ => format!("'{}'", numbers.join(", ")),
    }
}

fn set(random: &mut Random) -> BTreeSet<i64> {
    (0..random.below(6)).map(|_| random.below(20) as i64).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_conditions_find_what_each_row_says() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        let mut random = Random::seeded();
        run(session, "CREATE TABLE t (id INT PRIMARY KEY, tags MULTI)").await.unwrap();
        let mut sets: Sets = (0..ROWS).map(|id| (id, set(&mut random))).collect();
        for part in sets.chunks(200) {
            let mut insert = "INSERT INTO t VALUES ".to_owned();
            for (place, (id, set)) in part.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                write!(insert, "{comma}({id},{})", written(set, &mut random)).unwrap();
            }
            run(session, &insert).await.unwrap();
        }
        compare(session, &mut random, &sets, 40).await;
        run(session, "DELETE FROM t WHERE id % 7 = 3").await.unwrap();
        sets.retain(|(id, _)| id % 7 != 3);
        for (id, numbers) in sets.iter_mut().filter(|(id, _)| id % 50 == 1) {
            *numbers = set(&mut random);
            let value = written(numbers, &mut random);
            run(session, &format!("UPDATE t SET tags = {value} WHERE id = {id}")).await.unwrap();
        }
        run(session, "BEGIN").await.unwrap();
        run(session, "UPDATE t SET tags = (19, 0) WHERE id < 40").await.unwrap();
        for (_, numbers) in sets.iter_mut().filter(|(id, _)| *id < 40) {
            *numbers = [0, 19].into();
        }
        compare(session, &mut random, &sets, 20).await;
        run(session, "COMMIT").await.unwrap();
        run(session, "OPTIMIZE TABLE t").await.unwrap();
        compare(session, &mut random, &sets, 40).await;
        for condition in ["tags = 5", "tags > 18", "ALL(tags) IN (1, 2)", "tags BETWEEN 3 AND 4"] {
            let asked = format!("EXPLAIN SELECT id FROM t WHERE {condition}");
            let told = rows(session, &asked).await;
            assert!(told.contains("tags") && !told.contains("ALL"), "{condition}: {told}");
        }
    }
}
