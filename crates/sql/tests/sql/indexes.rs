//! Keys change how rows are found and in which order equal ones come, and nothing else: a table with keys and one
//! without return the same rows.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;

use crate::support::random::Random;
use crate::support::{Server, rows, run};
use remora_sql::Session;

const ROWS: u64 = 20_000;
const ROUNDS: usize = 250;

/// A value for a column, or one to compare the column with.
fn value(random: &mut Random, column: &str) -> String {
    match column {
        "user" => format!("{}", random.below(700)),
        // Most orders have the same state.
        "state" => (if random.below(9) > 0 { 3 } else { random.below(6) }).to_string(),
        "made" => {
            let (day, hour) = (1 + random.below(28), random.below(24));
            format!("'2026-0{}-{day:02} {hour:02}:00:00'", 1 + random.below(9))
        }
        "price" => format!("{}.{:02}", random.below(90), random.below(100)),
        // Several are equal in their collation.
        "mail" => format!("'{}m{}'", random.choose(&["Ki", "ki", "KÍ", "kj"]), random.below(300)),
        _ => format!("'n{}'", random.below(400)),
    }
}

const COLUMNS: [&str; 6] = ["user", "state", "made", "price", "name", "mail"];

/// A key's expression, with `of` before the columns' names, and a value to compare it with.
fn expression(random: &mut Random, of: &str) -> (String, String) {
    match random.below(5) {
        0 => (format!("LOWER({of}name)"), format!("'N{}'", random.below(400))),
        1 => (format!("month({of}made)"), (1 + random.below(10)).to_string()),
        2 => (format!("({of}user + 1)"), random.below(705).to_string()),
        3 => (format!("LEFT({of}mail, 2)"), format!("'{}'", random.choose(&["KI", "kj", "k"]))),
        _ => (format!("CAST({of}price AS SIGNED)"), random.below(92).to_string()),
    }
}

/// A LIKE pattern, mostly a prefix.
fn pattern(random: &mut Random) -> String {
    let number = random.below(30);
    let begins = random.choose(&["ki", "KÍm", "n", "N", "kj", "k_m", "%m", "kim\\\\"]);
    match random.below(6) {
        0 => format!("{begins}{number}"),
        1 => format!("{begins}{number}%1"),
        2 => format!("{begins}%"),
        _ => format!("{begins}{number}%"),
    }
}

/// A condition on an expression, or with LIKE.
fn other_condition(random: &mut Random, of: &str) -> String {
    if random.below(2) == 0 {
        let column = random.choose(&["mail", "name", "mail", "LOWER(@name)"]);
        let column = match column.split_once('@') {
            Some((call, name)) => format!("{call}{of}{name}"),
            None => format!("{of}{column}"),
        };
        let not = random.choose(&["", "", "", "NOT "]);
        return format!("{column} {not}LIKE '{}'", pattern(random));
    }
    let (expression, a) = expression(random, of);
    match random.below(7) {
        0..3 => format!("{expression} = {a}"),
        3 => format!("{a} {} {expression}", random.choose(&["<", ">=", "<=>", "<>"])),
        4 => format!("{expression} IN ({a}, NULL, {a})"),
        5 => format!("{expression} BETWEEN {a} AND {a}"),
        _ => format!("NOT ({expression} = {a} OR {expression} IS NULL)"),
    }
}

/// A condition on a column, with `of` before its name.
fn condition(random: &mut Random, of: &str) -> String {
    if random.below(3) == 0 {
        return other_condition(random, of);
    }
    let column = random.choose(&COLUMNS);
    let (a, b) = (value(random, column), value(random, column));
    match random.below(8) {
        0..4 => format!("{of}{column} = {a}"),
        4 => format!("{of}{column} IN ({a}, {b}, {})", value(random, column)),
        5 => format!("{of}{column} BETWEEN {a} AND {b}"),
        6 => format!("{of}{column} IS NULL"),
        _ => format!("{of}{column} {} {a}", random.choose(&["<", ">=", "<=>", "<>"])),
    }
}

fn conditions(random: &mut Random) -> String {
    let count = random.below(4);
    let all: Vec<String> = (0..count).map(|_| condition(random, "")).collect();
    if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
}

/// A SELECT from the table `@`, with rows that show their order.
fn select(random: &mut Random) -> String {
    let filter = conditions(random);
    let direction = random.choose(&["", " DESC"]);
    let id = random.below(ROWS);
    match random.below(13) {
        11 => {
            let (by, _) = expression(random, "");
            format!("SELECT id, name FROM @{filter} ORDER BY {by}{direction}, id LIMIT 12")
        }
        12 => {
            let (by, other) = (random.choose(&["mail", "name"]), random.choose(&["", " DESC"]));
            let limit = 1 + random.below(40);
            format!(
                "SELECT id, user FROM @ WHERE {by} LIKE '{}' ORDER BY {by}{direction}, id{other} LIMIT {limit}",
                pattern(random)
            )
        }
        10 => {
            let by = random.choose(&["", "made", "user", "price", "state, made", "state", "name"]);
            let by = if by.is_empty() { String::new() } else { format!("{by}, ") };
            let by = by.replace(',', &format!("{direction},"));
            format!("SELECT id, user FROM @ ORDER BY {by}id{direction} LIMIT 7 OFFSET {id}")
        }
        7 => format!("SELECT id, price + 1 FROM @ WHERE id > {id} ORDER BY id{direction} LIMIT 30"),
        8 => format!(
            "SELECT id, UPPER(mail) FROM @ WHERE id < {id} ORDER BY user{direction}, id{direction} LIMIT 9, 40"
        ),
        9 => format!(
            "SELECT state + 1 AS s, COUNT(*), MAX(mail) FROM @ WHERE id > {id} GROUP BY s ORDER BY s"
        ),
        0 => format!("SELECT COUNT(*), SUM(price), MIN(made), MAX(user) FROM @{filter}"),
        1 => format!("SELECT state, COUNT(*) FROM @{filter} GROUP BY state ORDER BY state"),
        2 => {
            let by = random.choose(&["user", "state", "made", "name", "mail"]);
            format!("SELECT id FROM @{filter} ORDER BY {by}{direction}, id LIMIT 30")
        }
        3 => format!(
            "SELECT a.id, b.id FROM @ a JOIN @ b ON b.user = a.user AND b.state = a.state \
             WHERE {} AND a.id < 400 ORDER BY a.id, b.id LIMIT 50",
            condition(random, "b.")
        ),
        _ => {
            let by = random.choose(&["made", "user", "state, made", "price", "user, state"]);
            let by = by.replace(',', &format!("{direction},"));
            let (limit, offset) = (1 + random.below(40), random.choose(&[0, 0, 25]));
            let order = format!("ORDER BY {by}{direction}, id{direction}");
            format!("SELECT id, user, made FROM @{filter} {order} LIMIT {limit} OFFSET {offset}")
        }
    }
}

async fn both(session: &mut Session, statement: &str) {
    for table in ["plain", "keyed"] {
        let statement = statement.replace('@', table);
        run(session, &statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn compare(session: &mut Session, random: &mut Random, rounds: usize) {
    for round in 0..rounds {
        let statement = select(random);
        // A text that is unique is not served by a cached plan.
        let once =
            statement.replacen("SELECT", &format!("SELECT /* {round} {} */", random.next()), 1);
        let plain = rows(session, &once.replace('@', "plain")).await;
        let keyed = rows(session, &statement.replace('@', "keyed")).await;
        assert_eq!(keyed, plain, "{statement}");
    }
}

/// Changes some rows: by primary key, by an indexed column, and by inserting new ones.
async fn change(session: &mut Session, random: &mut Random) {
    for _ in 0..12 {
        let (id, user) = (random.below(ROWS), random.below(700));
        let column = random.choose(&COLUMNS);
        let value = value(random, column);
        both(
            session,
            &format!("UPDATE @ SET {column} = {value} WHERE user = {user} AND id > {id}"),
        )
        .await;
        both(session, &format!("DELETE FROM @ WHERE id = {}", random.below(ROWS))).await;
        both(session, &format!("REPLACE INTO @ (id, user, state) VALUES ({id}, {user}, 5)")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_keys_answers_as_one_without() {
    let server = Server::new();
    let mut session = server.session();
    let mut random = Random::seeded();
    let columns = "id INT PRIMARY KEY, user INT, state TINYINT, made DATETIME, price DECIMAL(8,2), \
                   name VARCHAR(20) COLLATE utf8mb4_0900_bin, \
                   mail VARCHAR(20) COLLATE utf8mb4_0900_ai_ci";
    run(&mut session, &format!("CREATE TABLE plain ({columns})")).await.unwrap();
    let keys = "KEY (user), KEY (state, made), KEY (made DESC), KEY (price), KEY (name, user), \
                KEY (user, state DESC), KEY (mail), KEY (state, mail(2) DESC, made), KEY (name), \
                KEY low ((LOWER(name))), KEY ((MONTH(made)), state), KEY ((user + 1) DESC), \
                KEY ((LEFT(mail, 2))), KEY ((CAST(price AS SIGNED)))";
    run(&mut session, &format!("CREATE TABLE keyed ({columns}, {keys})")).await.unwrap();
    for from in (0..ROWS).step_by(5_000) {
        let mut insert = "INSERT INTO @ VALUES ".to_owned();
        for id in from..from + 5_000 {
            let mut values = COLUMNS.map(|column| value(&mut random, column));
            if random.below(10) == 0 {
                values[random.below(5) as usize] = "NULL".to_owned();
            }
            let comma = if id == from { "" } else { "," };
            write!(insert, "{comma}({id},{})", values.join(",")).unwrap();
        }
        both(&mut session, &insert).await;
    }
    compare(&mut session, &mut random, ROUNDS).await;
    change(&mut session, &mut random).await;
    compare(&mut session, &mut random, ROUNDS / 2).await;
    run(&mut session, "BEGIN").await.unwrap();
    change(&mut session, &mut random).await;
    compare(&mut session, &mut random, ROUNDS / 4).await;
    run(&mut session, "ROLLBACK").await.unwrap();
    // Keys are added and dropped while there are rows.
    run(&mut session, "ALTER TABLE keyed DROP KEY user, ADD KEY later (user, made)").await.unwrap();
    run(&mut session, "OPTIMIZE TABLE keyed, plain").await.unwrap();
    compare(&mut session, &mut random, ROUNDS / 2).await;
    let shown = rows(&mut session, "SHOW CREATE TABLE keyed").await;
    assert!(shown.contains("KEY `later` (`user`,`made`)"), "{shown}");
}

/// Literals for a column of timestamps in Berlin around the end of daylight saving time, when clocks show an hour
/// twice, and its beginning, when they skip one; for a column of bytes; and for one of doubles.
fn other_value(random: &mut Random, column: &str) -> String {
    match column {
        "at" => {
            let day = random.choose(&["2025-03-30", "2025-10-26", "2026-03-29", "2026-07-01"]);
            let (hour, minute) = (random.below(5), random.choose(&["00", "30"]));
            let second = random.choose(&["00", "59.5"]);
            format!("'{day} {hour:02}:{minute}:{second}'")
        }
        "code" => {
            let bytes = random.below(300);
            let hex = random.choose(&["x'@'", "0x@", "UNHEX('@')", "'a'"]);
            hex.replace('@', &format!("{bytes:04x}"))
        }
        _ => random.choose(&["0", "1", "-1", "0.5", "7.25", "1e1", "12.125"]).to_owned(),
    }
}

/// Timestamps, bytes and doubles compare the same through their keys as where an expression hides the column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moments_bytes_and_doubles_are_found_by_keys() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    let columns = "id INT PRIMARY KEY, at TIMESTAMP(3) NULL, code VARBINARY(8), ratio DOUBLE";
    let keys = "KEY (at), KEY (code), KEY (ratio)";
    run(session, &format!("CREATE TABLE t ({columns}, {keys})")).await.unwrap();
    run(session, "SET time_zone = '+00:00'").await.unwrap();
    let mut insert = "INSERT INTO t VALUES (-1, NULL, NULL, NULL), (-2, 0, '', -0e0)".to_owned();
    for id in 0..600 {
        // Several hours around each change of the clocks, in steps of 15 minutes.
        let day = random.choose(&["2025-03-30", "2025-10-26", "2026-03-29", "2026-07-01"]);
        let at = format!("{day} 0{}:{}:00", random.below(4), random.choose(&["00", "15", "30"]));
        let ratio = (random.below(200) as f64 - 50.0) / 8.0;
        write!(insert, ", ({id}, '{at}', UNHEX('{:04x}'), {ratio})", random.below(300)).unwrap();
    }
    run(session, "SET sql_mode = ''").await.unwrap();
    run(session, &insert).await.unwrap();
    for zone in ["Europe/Berlin", "+00:00", "-03:30"] {
        run(session, &format!("SET time_zone = '{zone}'")).await.unwrap();
        for _ in 0..120 {
            let column = random.choose(&["at", "code", "ratio"]);
            let [a, b] = [0, 1].map(|_| other_value(&mut random, column));
            let condition = match random.below(4) {
                0 => format!("@ BETWEEN {a} AND {b}"),
                1 => format!("@ IN ({a}, {b})"),
                _ => format!("@ {} {a}", random.choose(&["=", "<", ">=", "<>", "<=>", ">"])),
            };
            let hidden = match column {
                "at" => "IFNULL(at, at)",
                "code" => "CONCAT(code, '')",
                _ => "(ratio + 0)",
            };
            let asked = |column| {
                let condition = condition.replace('@', column);
                format!("SELECT id + 0, at FROM t WHERE {condition} ORDER BY id")
            };
            let expected = rows(session, &asked(hidden)).await;
            // The second run caches the plan, the third uses it.
            for _ in 0..3 {
                assert_eq!(rows(session, &asked(column)).await, expected, "{}", asked(column));
            }
        }
    }
    for condition in ["at > '2026-01-01'", "code = x'0102'", "ratio < 1.5"] {
        let explain = format!("EXPLAIN FORMAT=TREE SELECT id + 0 FROM t WHERE {condition}");
        let told = rows(session, &explain).await;
        assert!(!told.contains("every row"), "{told}");
    }
}

/// A key over bytes is used for look-ups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_bytes_are_looked_up() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE t (id BINARY(4) PRIMARY KEY, n INT)").await.unwrap();
    run(session, "INSERT INTO t VALUES ('abcd', 1), (x'00ff00fe', 2), ('ab', 3)").await.unwrap();
    for (literal, expected) in [
        ("'abcd'", "1"),
        ("x'00FF00fe'", "2"),
        ("0x00ff00fe", "2"),
        ("'ab'", ""),
        ("'ab\\0\\0'", "3"),
        ("'ABCD'", ""),
        ("UNHEX('00ff00fe')", "2"),
    ] {
        let asked = format!("SELECT n FROM t WHERE id = {literal}");
        for _ in 0..3 {
            assert_eq!(rows(session, &asked).await, expected, "{asked}");
        }
    }
    let told = rows(session, "EXPLAIN SELECT n FROM t WHERE id = x'00ff00fe'").await;
    assert!(told.contains("PRIMARY"), "{told}");
}

/// EXPLAIN's rows for a statement.
async fn explained(session: &mut Session, statement: &str) -> String {
    rows(session, &format!("EXPLAIN {statement}")).await
}

#[tokio::test]
async fn an_expression_that_a_key_is_over_is_asked_of_the_key() {
    let server = Server::new();
    let mut session = server.session();
    let columns = "id INT PRIMARY KEY, a INT, name VARCHAR(20), d DATE, doc JSON";
    let keys = "KEY low ((LOWER(name))), KEY none ((COALESCE(a, 7))), KEY y ((YEAR(d))), \
                KEY j ((CAST(doc->>'$.year' AS SIGNED)))";
    run(&mut session, &format!("CREATE TABLE t ({columns}, {keys})")).await.unwrap();
    let values = "(1, NULL, 'Ab', '2020-01-01', '{\"year\": 5}'), (2, 7, 'aB', NULL, NULL), \
                  (3, 3, 'c', '2021-02-03', '{\"year\": \"6\"}')";
    run(&mut session, &format!("INSERT INTO t VALUES {values}")).await.unwrap();
    let cases = [
        ("LOWER(t.name) = 'ab'", "low", "1\n2"),
        ("lower( name ) IN ('x', 'C')", "low", "3"),
        ("COALESCE(a, 7) = 7", "none", "1\n2"),
        ("YEAR(d) BETWEEN 2021 AND 2022", "y", "3"),
        ("6 <= CAST(doc->>'$.year' AS SIGNED)", "j", "3"),
        ("LOWER(name) LIKE 'a%'", "low", "1\n2"),
        ("YEAR(d) IS NULL", "y", "2"),
    ];
    for (condition, key, expected) in cases {
        let statement = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        let plan = explained(&mut session, &statement).await;
        assert_eq!(plan.split('|').nth(5), Some(key), "{statement}: {plan}");
        for _ in 0..3 {
            assert_eq!(rows(&mut session, &statement).await, expected, "{statement}");
        }
    }
    // Rows that an outer join fills with NULL are not in the key's column.
    let outer = "SELECT t.id, u.id FROM t LEFT JOIN t u ON u.id = t.id + 2 WHERE \
                 COALESCE(u.a, 7) = 7 ORDER BY t.id";
    for _ in 0..3 {
        assert_eq!(rows(&mut session, outer).await, "2|NULL\n3|NULL");
    }
    // The hidden column cannot be named.
    let named = run(&mut session, "SELECT `#key0` FROM t WHERE LOWER(name) = 'ab'").await;
    assert!(named.unwrap_err().message.contains("Unknown column"), "the hidden column has a name");
    assert_eq!(
        rows(&mut session, "SELECT * FROM t WHERE LOWER(name) = 'c'").await.split('|').count(),
        5
    );
    run(&mut session, "DROP INDEX low ON t").await.unwrap();
    let statement = "SELECT id FROM t WHERE LOWER(name) = 'ab' ORDER BY id";
    assert_eq!(explained(&mut session, statement).await.split('|').nth(5), Some("NULL"));
    assert_eq!(rows(&mut session, statement).await, "1\n2");
}

/// A query may contain a generated column's expression instead of the column, and may spell it differently.
#[tokio::test]
async fn generated_columns_are_found_by_their_expressions() {
    let server = Server::new();
    let mut session = server.session();
    let columns = "id INT PRIMARY KEY, name VARCHAR(20), doc JSON, low VARCHAR(20) AS (LOWER(name)), \
                   year BIGINT AS (CAST(doc->>'$.year' AS SIGNED)) STORED, n INT AS (doc->>'$.n'), \
                   short VARCHAR(5) AS (UPPER(name)), small INT AS (CAST(doc->>'$.year' AS SIGNED) + 0)";
    let keys = "KEY low (low), KEY year (year), KEY n (n), KEY short (short), KEY small (small)";
    run(&mut session, &format!("CREATE TABLE t ({columns}, {keys})")).await.unwrap();
    let values = "(1, 'Ab', '{\"year\": 5, \"n\": 2.4}'), (2, 'aB', '{\"n\": \"2\"}'), \
                  (3, 'c', '{\"year\": \"6\", \"n\": 2.6}'), (4, NULL, NULL)";
    run(&mut session, &format!("INSERT INTO t (id, name, doc) VALUES {values}")).await.unwrap();
    let cases = [
        ("LCASE((t.name)) = 'ab'", Some("low"), "1\n2"),
        ("CAST(JSON_UNQUOTE(JSON_EXTRACT(doc, '$.year')) AS SIGNED) = 6", Some("year"), "3"),
        ("CAST(doc->>\"$.year\" AS SIGNED) IN (5, 6)", Some("year"), "1\n3"),
        // Columns whose types differ from the expression's.
        ("UPPER(name) = 'AB'", Some("NULL"), "1\n2"),
        ("CAST(doc->>'$.year' AS SIGNED) + 0 = 6", Some("NULL"), "3"),
        // A column with rounded values only narrows the search.
        ("doc->>'$.n' = 2", None, "2"),
        ("doc->>'$.n' < 3", None, "1\n2\n3"),
        ("2 < doc->>'$.n'", None, "1\n3"),
        ("NOT (doc->>'$.n' > 2)", None, "2"),
        ("doc->>'$.n' IN (2, 3)", None, "2"),
        ("doc->>'$.n' BETWEEN 2 AND 3", None, "1\n2\n3"),
        ("doc->>'$.n' >= -3000000000", None, "1\n2\n3"),
        ("(doc->>'$.n' = 2) IS NULL", None, "4"),
    ];
    for (condition, key, expected) in cases {
        let statement = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        for _ in 0..3 {
            assert_eq!(rows(&mut session, &statement).await, expected, "{statement}");
        }
        let plan = explained(&mut session, &statement).await;
        if let Some(key) = key {
            assert_eq!(plan.split('|').nth(5), Some(key), "{statement}: {plan}");
        }
    }
}

/// The time zone and SQL mode that applied when the row was written may differ from the reader's.
#[tokio::test]
async fn keys_over_moments_are_of_no_session() {
    let server = Server::new();
    let mut session = server.session();
    let keys = "KEY at ((CAST(at AS DATETIME))), KEY day ((DATE(made))), KEY y ((YEAR(made))), KEY r ((MOD(id, 10)))";
    run(
        &mut session,
        &format!("CREATE TABLE m (id INT PRIMARY KEY, at VARCHAR(40), made DATETIME, {keys})"),
    )
    .await
    .unwrap();
    let values = "(1, '2020-01-01 10:00:00+00:00', '2020-05-05'), \
                  (2, '2020-01-01 10:00:00+05:00', '2021-05-05'), (3, '2020-01-01 15:00:00', NULL)";
    run(&mut session, &format!("INSERT INTO m VALUES {values}")).await.unwrap();
    for (zone, noon, three) in [("+00:00", "1", "3"), ("+05:00", "2", "1\n3")] {
        run(&mut session, &format!("SET time_zone = '{zone}'")).await.unwrap();
        for (moment, expected) in [("10:00:00", noon), ("15:00:00", three)] {
            let statement = format!(
                "SELECT id FROM m WHERE CAST(at AS DATETIME) = '2020-01-01 {moment}' ORDER BY id"
            );
            for _ in 0..3 {
                assert_eq!(rows(&mut session, &statement).await, expected, "{zone} {moment}");
            }
            let plan = explained(&mut session, &statement).await;
            assert_eq!(plan.split('|').nth(5), Some("NULL"), "{plan}");
        }
    }
    for (condition, key, expected) in [
        ("DATE(made) = '2020-05-05'", "NULL", "1"),
        // The parts of a valid timestamp are the same in all zones and modes.
        ("YEAR(made) = 2021", "y", "2"),
        ("id % 10 = 3", "r", "3"),
        ("MOD(id, 10) = 3", "r", "3"),
    ] {
        let statement = format!("SELECT id FROM m WHERE {condition} ORDER BY id");
        assert_eq!(rows(&mut session, &statement).await, expected, "{statement}");
        let plan = explained(&mut session, &statement).await;
        assert_eq!(plan.split('|').nth(5), Some(key), "{statement}: {plan}");
    }
}

#[tokio::test]
async fn keys_over_long_columns_are_told_with_their_bytes() {
    let server = Server::new();
    let mut session = server.session();
    let columns = "id INT PRIMARY KEY, a INT, long_text TEXT, short BLOB, name VARCHAR(20)";
    let keys = "KEY (a), KEY x (a, name), KEY long_key (long_text(9)), KEY both (a, long_text(9))";
    run(&mut session, &format!("CREATE TABLE t ({columns}, {keys})")).await.unwrap();
    run(&mut session, "INSERT INTO t (id, a) VALUES (1, 2), (2, 3)").await.unwrap();
    let answers = run(&mut session, "SHOW ENGINE remora STATUS").await.unwrap();
    let row = answers.sets[0].rows.iter().find(|row| row[1] == "test.t").unwrap();
    for line in [
        "index (a): in 1 of 1 segments, 2 of 2 rows",
        "index (a, name): in 1 of 1 segments, 2 of 2 rows",
        "index (long_text to 32 bytes): in 1 of 1 segments, 2 of 2 rows",
        "index (a, long_text to 32 bytes): in 1 of 1 segments, 2 of 2 rows",
    ] {
        assert!(row[2].lines().any(|it| it == line), "{line}: {}", row[2]);
    }
    assert!(!row[2].contains("no index"), "{}", row[2]);
}
