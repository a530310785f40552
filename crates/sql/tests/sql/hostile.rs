//! Statements of malicious clients: too deep, too long, endless, or invalid. Each is answered or refused; none ends the
//! process, and none reveals another user's data.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Answers, Server, rows, run};
use remora_engine::Value;
use remora_sql::{Access, Identity, Right, Session};

/// Runs each statement and compares its rows, or the number of its error and the beginning of the message. An empty
/// text means no rows and no error.
async fn expect(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, expected) in cases {
        let got = rows(session, statement).await;
        let fits = match is_error(expected) {
            true => {
                got.split(' ').next() == expected.split(' ').next() && got.starts_with(expected)
            }
            false => got == *expected,
        };
        assert!(fits, "{statement}: {got:?} instead of {expected:?}");
    }
}

/// Whether a text begins with this error number.
fn is_error(text: &str) -> bool {
    let number = text.split(' ').next().unwrap_or_default();
    number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[tokio::test]
async fn a_statement_does_not_run_itself() {
    let server = Server::new();
    let mut session = server.session();
    expect(
        &mut session,
        &[
            ("PREPARE a FROM 'EXECUTE a'", "1295"),
            ("PREPARE a FROM 'PREPARE b FROM \"SELECT 1\"'", "1295"),
            ("PREPARE a FROM 'SET STATEMENT sql_mode = \"\" FOR EXECUTE a'", ""),
            ("EXECUTE a", "1064"),
            ("SET STATEMENT sql_mode = '' FOR SET STATEMENT sql_mode = '' FOR SELECT 1", "1064"),
            ("SET STATEMENT sql_mode = '' FOR SELECT 1", "1"),
        ],
    )
    .await;
    assert!(session.prepare(b"EXECUTE a").await.is_err());
}

/// A server with a table in another database, and a session of a user with all privileges.
async fn shop() -> (Server, Session) {
    let server = Server::new();
    let mut root = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.secret (id INT PRIMARY KEY, u INT UNIQUE)",
        "INSERT INTO shop.secret VALUES (1, 7)",
        "CREATE TABLE mine (id INT PRIMARY KEY, u INT UNIQUE)",
        "INSERT INTO mine VALUES (1, 8)",
    ] {
        run(&mut root, statement).await.unwrap();
    }
    (server, root)
}

#[tokio::test]
async fn rights_hold_whatever_a_table_is_called() {
    let (server, mut root) = shop().await;
    expect(
        &mut root,
        &[
            ("SELECT * FROM test.`shop.secret`", "1146"),
            ("SELECT * FROM `#unique`.`shop.secret.u`", "1146"),
            ("DELETE FROM `#unique`.`shop.secret.u`", "1146"),
            ("SELECT * FROM `#unique.mine.u`", "1146"),
            ("DROP TABLE `#unique`.`shop.secret.u`", "1051"),
            ("RENAME TABLE mine TO `#mine`", "1103"),
            // A dot in a table's name does not refer to another database.
            ("RENAME TABLE mine TO test.`shop.other`", ""),
            ("SELECT * FROM shop.other", "1146"),
            ("SELECT u FROM test.`shop.other`", "8"),
            (
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'",
                "secret",
            ),
            ("ALTER TABLE `shop.other` RENAME TO `a.b`", ""),
            ("SELECT * FROM a.b", "1049"),
            ("RENAME TABLE `a.b` TO mine", ""),
        ],
    )
    .await;
    nothing_of_another_database_is_reached(&server, &mut root).await;
}

/// An account that may do all in `test` asks for `shop.secret` in all ways.
async fn nothing_of_another_database_is_reached(server: &Server, root: &mut Session) {
    let right = Right { database: "test".into(), table: "*".into(), access: Access::Define };
    let who = Identity { user: "anna".into(), host: "%".into(), rights: Some(vec![right]) };
    let mut anna = server.instance.session(8, who);
    expect(
        &mut anna,
        &[
            ("SELECT * FROM mine", "1|8"),
            ("SELECT * FROM shop.secret", "1142"),
            ("SELECT * FROM test.`shop.secret`", "1146"),
            ("UPDATE test.`shop.secret` SET u = 1", "1146"),
            ("CREATE TABLE test.`shop.secret` (id INT PRIMARY KEY, u INT UNIQUE)", ""),
            ("INSERT INTO test.`shop.secret` VALUES (1, 9)", ""),
            ("SELECT u FROM test.`shop.secret`", "9"),
            ("SELECT u FROM shop.secret", "1142"),
            ("DROP TABLE test.`shop.secret`", ""),
            ("INSERT INTO mine SELECT * FROM shop.secret", "1142"),
            ("INSERT INTO mine VALUES (2, (SELECT u FROM shop.secret))", "1142"),
            ("UPDATE mine SET u = (SELECT MAX(u) FROM shop.secret)", "1142"),
            ("UPDATE mine, shop.secret SET mine.u = secret.u", "1142"),
            ("DELETE FROM mine WHERE u IN (SELECT u FROM shop.secret)", "1142"),
            ("DELETE mine FROM mine JOIN shop.secret USING (id)", "1142"),
            ("SELECT (SELECT COUNT(*) FROM shop.secret)", "1142"),
            ("WITH s AS (SELECT * FROM shop.secret) SELECT * FROM s", "1142"),
            ("CREATE TABLE copy LIKE shop.secret", "1142"),
            ("CREATE TABLE copy AS SELECT * FROM shop.secret", "1142"),
            ("SHOW CREATE TABLE shop.secret", "1142"),
            ("SHOW COLUMNS FROM shop.secret", "1142"),
            ("DESCRIBE shop.secret u", "1142"),
            ("EXPLAIN SELECT * FROM shop.secret WHERE id = 1", "1142"),
            ("CHECKSUM TABLE shop.secret", "1142"),
            ("LOCK TABLES shop.secret READ", "1044"),
            ("DROP DATABASE shop", "1044"),
            ("RENAME TABLE mine TO shop.mine", "1142"),
            ("RENAME TABLE shop.secret TO mine2", "1142"),
            ("TRUNCATE TABLE shop.secret", "1142"),
            ("SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'", ""),
            ("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'secret'", "0"),
            ("SELECT COUNT(*) FROM information_schema.statistics WHERE table_name = 'secret'", "0"),
            ("SET GLOBAL max_connections = 1", "1227"),
            ("SET PERSIST sql_mode = ''", "1227"),
        ],
    )
    .await;
    assert_eq!(rows(&mut anna, "SELECT u FROM mine").await, "8");
    assert_eq!(rows(root, "SELECT u FROM shop.secret WHERE u = 7").await, "7");
}

#[tokio::test]
async fn what_is_kept_in_a_definition_reads_nothing_else() {
    let server = Server::new();
    let mut session = server.session();
    expect(
        &mut session,
        &[
            ("CREATE TABLE s (id INT PRIMARY KEY)", ""),
            ("CREATE TABLE t (a INT, CHECK (a > (SELECT MAX(id) FROM s)))", "3815"),
            ("CREATE TABLE t (a INT DEFAULT ((SELECT MAX(id) FROM s)))", "3769"),
            ("CREATE TABLE t (a INT, b INT AS ((SELECT MAX(id) FROM s)))", "3102"),
            ("CREATE TABLE t (a INT DEFAULT (SLEEP(1)))", "3770"),
            ("CREATE TABLE t (a INT DEFAULT (RAND() * 0 + 4), b INT CHECK (b < 9))", ""),
            ("INSERT INTO t (b) VALUES (8)", ""),
            ("SELECT * FROM t", "4|8"),
            ("ALTER TABLE t ADD CHECK (a > @x)", "3816"),
        ],
    )
    .await;
}

#[tokio::test]
async fn tables_are_renamed_all_or_none() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE)",
        "CREATE TABLE b (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE)",
        "INSERT INTO a (u) VALUES (1), (2)",
        "INSERT INTO b (u) VALUES (3)",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    expect(
        &mut session,
        &[
            ("RENAME TABLE a TO c, missing TO d", "1146"),
            ("SELECT COUNT(*) FROM a", "2"),
            ("RENAME TABLE a TO b", "1050"),
            ("RENAME TABLE a TO a", "1050"),
            ("RENAME TABLE a TO c, a TO d", "1146"),
            ("RENAME TABLE a TO old, b TO a, old TO b", ""),
            ("SELECT u FROM a", "3"),
            ("INSERT INTO a (u) VALUES (3)", "1062"),
            ("INSERT INTO a (u) VALUES (4)", ""),
            ("INSERT INTO b (u) VALUES (4)", ""),
            ("SELECT u FROM b WHERE id > 2", "4"),
            ("SELECT * FROM old", "1146"),
        ],
    )
    .await;
}

#[tokio::test]
async fn memory_has_limits() {
    let server = Server::new();
    let mut session = server.session();
    expect(
        &mut session,
        &[
            ("SET max_allowed_packet = 1099511627776", "1621"),
            ("SET GLOBAL max_allowed_packet = 1099511627776", ""),
            ("SELECT @@global.max_allowed_packet", "1073741824"),
            ("SET GLOBAL max_allowed_packet = 16777216", ""),
            ("SELECT REPEAT('x', 99999999999) IS NULL", "1"),
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
            ("INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7), (8)", ""),
            ("SELECT LENGTH(REPEAT('x', 9000000 + id)) FROM t", "1038"),
            ("SELECT LENGTH(REPEAT('x', 1000000 + id)) FROM t LIMIT 1", "1000001"),
            ("SELECT REPLACE(REPEAT('a', 9000000), 'a', REPEAT('b', 9000000)) IS NULL", "1"),
            ("SELECT EXPORT_SET(1, 'a', 'b', REPEAT(',', 9000000)) IS NULL", "1"),
            ("SELECT REGEXP_REPLACE(REPEAT('a', 900000), 'x*', REPEAT('b', 900)) IS NULL", "1"),
            ("SELECT REGEXP_REPLACE(REPEAT('a', 900000), '.*', REPEAT('$0', 9000)) IS NULL", "1"),
            ("SELECT LPAD('a', 9999999999, 'b') IS NULL", "1"),
            ("SELECT REGEXP_INSTR('a', 'a', -9223372036854775808)", "3686"),
            ("CREATE TABLE big (id INT PRIMARY KEY, t LONGTEXT)", ""),
            ("BEGIN", ""),
            ("INSERT INTO big SELECT id, REPEAT('x', 7000000) FROM t", ""),
            ("INSERT INTO big SELECT id + 100, REPEAT('x', 7000000) FROM t", "1038"),
            ("SELECT COUNT(*) FROM big", "8"),
            ("ROLLBACK", ""),
            ("SELECT COUNT(*) FROM big", "0"),
        ],
    )
    .await;
}

/// Beside a derived table, a column that is assigned twice is put into what is assigned to it then. Each time the
/// expression would become twice as long.
#[tokio::test]
async fn assignments_that_double_are_refused() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT, b BIGINT)").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 1, 0)").await.unwrap();
    let doubled = |times| {
        let list = vec!["a = a + a"; times].join(", ");
        format!(
            "UPDATE t, (SELECT 1 AS x) AS d SET {list}, b = a + (SELECT a FROM (SELECT 7 AS a) AS e)"
        )
    };
    expect(
        &mut session,
        &[
            (&doubled(3), ""),
            ("SELECT a, b FROM t", "8|15"),
            (&doubled(60), "1038"),
            ("SELECT a, b FROM t", "8|15"),
        ],
    )
    .await;
}

#[tokio::test]
async fn temporary_tables_have_room_of_a_session_and_of_all() {
    let server = Server::new();
    let (mut one, mut other) = (server.session(), server.session());
    let many = "INSERT INTO t (s) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n \
                WHERE i < 40) SELECT REPEAT('x', 1000000) FROM n";
    let make = "CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s LONGTEXT)";
    let full = "The table 't' is full";
    let steps = [
        (make, ""),
        (many, ""),
        (many, "1114"),
        ("SELECT COUNT(*) FROM t", "40"),
        ("UPDATE t SET s = CONCAT(s, s) WHERE id <= 20", ""),
        ("UPDATE t SET s = CONCAT(s, s, s) WHERE id > 20", "1114"),
        ("SELECT MAX(LENGTH(s)), COUNT(*) FROM t", "2000000|40"),
    ];
    expect(&mut one, &steps).await;
    assert_eq!(run(&mut one, many).await.unwrap_err().message, full);
    let of_all = [
        (make, ""),
        (many, "1114"),
        (
            "CREATE TEMPORARY TABLE u AS SELECT REPEAT('x', 8000000) AS s UNION ALL SELECT 1 \
          UNION ALL SELECT REPEAT('x', 7000000) UNION ALL SELECT REPEAT('x', 9000000) \
          UNION ALL SELECT REPEAT('x', 9000001) UNION ALL SELECT REPEAT('x', 9000002)",
            "1114",
        ),
        ("SELECT COUNT(*) FROM u", "1146"),
        ("SELECT COUNT(*) FROM t", "0"),
    ];
    expect(&mut other, &of_all).await;
    // Deletions make room: of rows, tables and sessions.
    expect(&mut one, &[("DELETE FROM t WHERE id <= 20", ""), (many, ""), (many, "1114")]).await;
    expect(&mut one, &[("TRUNCATE t", ""), (many, ""), ("DROP TABLE t", ""), (make, "")]).await;
    expect(&mut other, &[(many, "")]).await;
    expect(&mut one, &[(many, ""), ("SELECT COUNT(*) FROM t", "40")]).await;
    drop(other);
    let mut third = server.session();
    expect(&mut third, &[(make, ""), (many, "")]).await;
    one.reset(None);
    expect(&mut one, &[(make, ""), (many, "")]).await;
}

#[tokio::test]
async fn a_transaction_over_its_limit_changes_nothing() {
    let server = Server::with_most_changes(10);
    let mut session = server.session();
    let too_large = "1197 a batch of 11 changes: the limit is 10";
    expect(
        &mut session,
        &[
            ("CREATE TABLE n (id INT PRIMARY KEY)", ""),
            ("INSERT INTO n VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)", ""),
            ("UPDATE n SET id = id + 100 LIMIT 5", ""),
            ("INSERT INTO n SELECT id + 1000 FROM n UNION SELECT 0", too_large),
            ("BEGIN", ""),
            ("INSERT INTO n SELECT id + 1000 FROM n", ""),
            ("INSERT INTO n VALUES (0)", ""),
            ("COMMIT", too_large),
            ("SELECT COUNT(*), MAX(id) FROM n", "10|105"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lines_without_an_end_end() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (a VARCHAR(20), b VARCHAR(20))").await.unwrap();
    let load = |rest: &str| format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t {rest}");
    for (rest, expected) in [
        ("FIELDS TERMINATED BY ',' LINES TERMINATED BY ''", ""),
        ("FIELDS TERMINATED BY '' LINES TERMINATED BY ''", "1235"),
        ("IGNORE 18446744073709551615 LINES", ""),
    ] {
        session.give_file(b"a,b,c".to_vec());
        let got = rows(&mut session, &load(rest)).await;
        assert!(got.starts_with(expected), "{rest}: {got}");
    }
    assert_eq!(rows(&mut session, "SELECT a FROM t ORDER BY a").await, "a\nb\nc");
}

/// Waiting statements block no thread: there are more of them than threads, and others still run.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_keeps_nobody_waiting() {
    let server = Server::new();
    let sessions = 2 * std::thread::available_parallelism().map_or(2, usize::from) + 1;
    let mut interrupters = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..sessions {
        let mut session = server.session();
        interrupters.push(session.interrupter());
        let text = ["SELECT SLEEP(100000)", "SELECT GET_LOCK('held', -1)"][number % 2];
        waiting.push(tokio::spawn(async move { rows(&mut session, text).await }));
    }
    let mut other = server.session();
    assert_eq!(rows(&mut other, "SELECT SUM(x.a) FROM (SELECT 1 a UNION SELECT 2) x").await, "3");
    for interrupter in &interrupters {
        interrupter.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    for task in waiting {
        let answer = task.await.unwrap();
        assert!(answer == "1" || answer.starts_with("1317"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_by_name_are_one_sessions() {
    let server = Server::new();
    let (mut a, mut b) = (server.session(), server.session());
    expect(
        &mut a,
        &[
            (
                "SELECT GET_LOCK('x', 0), GET_LOCK('X', 5), IS_FREE_LOCK('x'), IS_USED_LOCK('x')",
                "1|1|0|7",
            ),
            ("SELECT GET_LOCK(NULL, 0)", "3057"),
            ("SELECT RELEASE_LOCK('')", "3057"),
            ("SELECT IS_FREE_LOCK(REPEAT('x', 65))", "4163"),
        ],
    )
    .await;
    expect(
        &mut b,
        &[
            ("SELECT GET_LOCK('x', 0), RELEASE_LOCK('x'), RELEASE_LOCK('y')", "0|0|NULL"),
            ("DO GET_LOCK('y', 1)", ""),
        ],
    )
    .await;
    // Neither the end of a transaction nor an error releases a lock.
    expect(&mut a, &[("BEGIN", ""), ("ROLLBACK", ""), ("SELECT nothing", "1054")]).await;
    expect(&mut b, &[("SELECT IS_FREE_LOCK('x')", "0")]).await;
    let waiting = tokio::spawn(async move {
        let got = rows(&mut b, "SELECT GET_LOCK('x', 100000)").await;
        (got, rows(&mut b, "SELECT RELEASE_ALL_LOCKS()").await)
    });
    expect(&mut a, &[("SELECT RELEASE_LOCK('x'), IS_FREE_LOCK('x')", "1|0")]).await;
    a.reset(None);
    assert_eq!(waiting.await.unwrap(), ("1".to_owned(), "2".to_owned()));
    expect(&mut a, &[("SELECT IS_USED_LOCK('x'), RELEASE_ALL_LOCKS()", "NULL|0")]).await;
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

/// The statements of the corpora: the lines after `> `.
fn corpus() -> Vec<&'static str> {
    let texts = [
        include_str!("../oracle/golden/aggregates.txt"),
        include_str!("../oracle/golden/dates.txt"),
        include_str!("../oracle/golden/functions.txt"),
        include_str!("../oracle/golden/joins.txt"),
        include_str!("../oracle/golden/json.txt"),
        include_str!("../oracle/golden/subqueries.txt"),
        include_str!("../oracle/golden/text.txt"),
        include_str!("../oracle/golden/windows.txt"),
        include_str!("../dml/define.txt"),
        include_str!("../dml/duplicate.txt"),
        include_str!("../dml/insert.txt"),
        include_str!("../dml/transactions.txt"),
        include_str!("../dml/update.txt"),
    ];
    texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("> ")).collect()
}

/// Splits a text into words, numbers, quoted texts and symbols.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut quote = None;
    for character in text.chars() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
        let joins = pieces
            .last()
            .and_then(|last| last.chars().last())
            .is_some_and(|last| quote.is_some() || is_word(last) && is_word(character));
        match joins {
            true => pieces.last_mut().unwrap().push(character),
            false => pieces.push(character.to_string()),
        }
        if matches!(character, '\'' | '"' | '`') && quote.is_none_or(|open| open == character) {
            quote = if quote.is_some() { None } else { Some(character) };
        }
    }
    pieces
}

const STRANGE: [&str; 34] = [
    "NULL",
    "-1",
    "18446744073709551615",
    "-9223372036854775808",
    "1e308",
    "''",
    "'\\0'",
    "0x",
    "x''",
    "'9999-12-31 23:59:59.999999'",
    "'0000-00-00'",
    "?",
    "@x",
    "@@sql_mode",
    "(SELECT 1)",
    "*",
    ";",
    "/*",
    "*/",
    "/*!50000",
    "--",
    "'",
    "`",
    "\"",
    "(",
    ")",
    ",",
    ".",
    "DISTINCT",
    "OVER ()",
    "UNION",
    "AS",
    "INTERVAL",
    "99999999999999999999999999999999999999999999999999999999999999999.5",
];

/// A statement of the corpus with some pieces removed, repeated or replaced by others.
fn mutated(random: &mut Random, corpus: &[&str]) -> Vec<u8> {
    let mut text = pieces(random.of::<&str>(corpus));
    for _ in 0..=random.below(4) {
        let at = random.below(text.len());
        let other = pieces(random.of::<&str>(corpus));
        match random.below(6) {
            0 if text.len() > 1 => _ = text.remove(at),
            1 => text.insert(at, (*random.of(&STRANGE)).to_owned()),
            2 => text[at] = (*random.of(&STRANGE)).to_owned(),
            3 => text[at].clone_from(random.of(&other)),
            4 => {
                let length = 1 + random.below(8);
                let from = random.below(other.len());
                let taken: Vec<String> = other.iter().skip(from).take(length).cloned().collect();
                text.splice(at..at, taken);
            }
            _ => {
                let end = (at + 1 + random.below(6)).min(text.len());
                let doubled = text[at..end].to_vec();
                text.splice(at..at, doubled);
            }
        }
    }
    let mut bytes = text.concat().into_bytes();
    if random.below(8) == 0 {
        let at = random.below(bytes.len());
        bytes.insert(at, random.below(256) as u8);
    }
    bytes
}

fn values(random: &mut Random, count: usize) -> Vec<Value> {
    let all = [
        Value::Null,
        Value::Int(i64::MIN),
        Value::Uint(u64::MAX),
        Value::Float(-1e308),
        Value::Text("äö'\\".into()),
        Value::Bytes([0xFF, 0, 0x80].into()),
        Value::Time(-3_020_399_000_000),
    ];
    (0..count).map(|_| random.of(&all).clone()).collect()
}

/// Runs a text directly and as a prepared statement. An error that a plan broke off means that it panicked.
async fn survives(session: &mut Session, random: &mut Random, text: &[u8]) {
    let mut answers = Answers::default();
    let asked = session.query(text, true, &mut answers).await;
    let prepared = match session.prepare(text).await {
        Ok(prepared) => {
            let values = values(random, prepared.parameters);
            session.execute(&prepared, &values, &mut answers).await
        }
        Err(error) => Err(error),
    };
    for error in [asked.err(), prepared.err()].into_iter().flatten() {
        let broke_off = error.message.contains("broke off") || error.message.contains("panic");
        assert!(!broke_off, "{error}: {}", String::from_utf8_lossy(text));
    }
}

/// The number of texts; `HOSTILE_RUNS` sets another one.
fn runs() -> usize {
    std::env::var("HOSTILE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300)
}

fn seed() -> u64 {
    let given = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(0x9e37_79b9_7f4a_7c15);
    eprintln!("REMORA_SEED={seed}");
    seed
}

#[tokio::test]
async fn mutated_statements_are_answered_or_refused() {
    let server = Server::new();
    let mut session = server.session();
    for statement in include_str!("../oracle/setup.sql").split(";\n") {
        let _ = run(&mut session, statement).await;
    }
    let corpus = corpus();
    let mut random = Random(seed());
    for _ in 0..runs() {
        let text = mutated(&mut random, &corpus);
        let _ = run(&mut session, "SET max_execution_time = 5000").await;
        survives(&mut session, &mut random, &text).await;
        if random.below(50) == 0 {
            session.reset(None);
        }
    }
    session.reset(None);
    assert_eq!(rows(&mut session, "SELECT 1").await, "1");
}

#[tokio::test]
async fn random_bytes_are_answered_or_refused() {
    let server = Server::new();
    let mut session = server.session();
    let mut random = Random(seed());
    let words =
        ["SELECT", "INSERT INTO", "SET", "SHOW", "CREATE TABLE", "PREPARE", "LOAD DATA", ""];
    for _ in 0..runs() {
        let mut text = random.of(&words).as_bytes().to_vec();
        let length = random.below(60);
        text.extend((0..length).map(|_| match random.below(4) {
            0 => b' ' + random.below(16) as u8,
            1 => *random.of(b"'`\"()@?;,.*/-#\\"),
            2 => b'a' + random.below(26) as u8,
            _ => random.below(256) as u8,
        }));
        survives(&mut session, &mut random, &text).await;
    }
}

/// Nests that are planned twice at each level must still end soon.
#[test]
fn nests_that_double_are_planned_or_refused() {
    // As large a stack as the server's connections have, because the frames of this build are large.
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let nests = move || runtime().block_on(nests());
    std::thread::Builder::new().stack_size(16 << 20).spawn(nests).unwrap().join().unwrap();
}

async fn nests() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (v INT PRIMARY KEY)").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (3)").await.unwrap();
    let nested = |levels: usize, level: &dyn Fn(usize, String) -> String| {
        format!("SELECT {} FROM t", (0..levels).fold("v".to_owned(), |inner, at| level(at, inner)))
    };
    let then = nested(20, &|at, inner| format!("CASE WHEN v < 9 THEN {inner} ELSE {at} END"));
    let chosen = nested(20, &|at, inner| format!("IF(v < 9, {inner}, {at})"));
    let otherwise = nested(20, &|at, inner| format!("CASE WHEN v = 9 THEN {at} ELSE {inner} END"));
    let operand = nested(20, &|at, inner| format!("CASE {inner} WHEN {at} THEN 1 ELSE 2 END"));
    let between = nested(20, &|at, inner| format!("({inner} BETWEEN {at} AND 9)"));
    let list = nested(20, &|at, inner| format!("({inner} IN ({at}, v, 3))"));
    expect(
        &mut session,
        &[
            (&then, "3"),
            (&chosen, "3"),
            (&otherwise, "3"),
            (&operand, "2"),
            (&between, "0"),
            (&list, "0"),
        ],
    )
    .await;
}
