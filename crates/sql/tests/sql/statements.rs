//! Statements around rows: into variables, with locks, counted, too large, of tables that are not
//! ours to write, out of files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use crate::support::{Answers, Server, rows, run};
use remora_sql::{Host, Result, Session, TableWords, no_source_error};

async fn filled(server: &Server) -> Session {
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20))").await.unwrap();
    let insert = "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)";
    run(&mut session, insert).await.unwrap();
    session
}

async fn expect(session: &mut Session, cases: &[(&str, &str)]) {
    for (statement, expected) in cases {
        assert_eq!(rows(session, statement).await, *expected, "{statement}");
    }
}

#[tokio::test]
async fn a_row_becomes_variables() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let none = "Warning|1329|No data - zero rows fetched, selected, or processed";
    expect(
        &mut session,
        &[
            ("SELECT id, s INTO @a, @b FROM t WHERE id = 2", ""),
            ("SELECT ROW_COUNT()", "1"),
            ("SELECT @a, @b", "2|b"),
            ("SELECT s FROM t WHERE id = 3 INTO @b", ""),
            ("SELECT @a, @b", "2|c"),
            ("SELECT id INTO @a FROM t ORDER BY id", "1172 Result consisted of more than one row"),
            ("SELECT @a", "1"),
            ("SELECT id INTO @a FROM t WHERE id = 9", ""),
            ("SHOW WARNINGS", none),
            ("SELECT @a", "1"),
            (
                "SELECT id, s INTO @a FROM t WHERE id = 1",
                "1222 The used SELECT statements have a different number of columns",
            ),
            ("SELECT id INTO @a FROM t WHERE id = 4 FOR UPDATE", ""),
            ("SELECT @a", "4"),
        ],
    )
    .await;
}

#[tokio::test]
async fn found_rows_are_those_of_the_last_select() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let cases = [
        ("SELECT id FROM t ORDER BY id LIMIT 2", "2"),
        ("SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 2", "4"),
        ("SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE id > 1 ORDER BY id LIMIT 1, 1", "3"),
        ("SELECT id FROM t WHERE id = 1", "1"),
        ("SELECT id FROM t WHERE id IN (1, 2, 9)", "2"),
        ("SELECT COUNT(*) FROM t", "1"),
        ("(SELECT id FROM t LIMIT 1) UNION ALL (SELECT id FROM t LIMIT 2)", "3"),
        ("SELECT FOUND_ROWS()", "1"),
        ("SHOW TABLES", "1"),
    ];
    for (statement, expected) in cases {
        run(&mut session, statement).await.unwrap();
        assert_eq!(rows(&mut session, "SELECT FOUND_ROWS()").await, expected, "{statement}");
    }
    run(&mut session, "SELECT id FROM t").await.unwrap();
    run(&mut session, "SET @x = 1").await.unwrap();
    assert_eq!(rows(&mut session, "SELECT FOUND_ROWS()").await, "4");
}

#[tokio::test]
async fn rows_that_are_locked_are_not_written_by_others() {
    let server = Server::new();
    let mut first = filled(&server).await;
    let mut second = server.session();
    for lock in ["FOR UPDATE", "FOR SHARE", "LOCK IN SHARE MODE", "FOR UPDATE SKIP LOCKED"] {
        run(&mut first, "BEGIN").await.unwrap();
        let read = format!("SELECT id FROM t WHERE id = 1 {lock}");
        assert_eq!(rows(&mut first, &read).await, "1", "{lock}");
        run(&mut first, "UPDATE t SET s = 'x' WHERE id = 2").await.unwrap();
        run(&mut second, "UPDATE t SET s = CONCAT(id, IFNULL(s, '')) WHERE id = 1").await.unwrap();
        let commit = run(&mut first, "COMMIT").await.unwrap_err();
        assert_eq!(commit.code.number(), 1213, "{lock}");
        // Rows that were read without a lock may be written meanwhile.
        run(&mut first, "BEGIN").await.unwrap();
        run(&mut first, "SELECT id FROM t WHERE id = 1").await.unwrap();
        run(&mut first, "UPDATE t SET s = 'x' WHERE id = 2").await.unwrap();
        run(&mut second, "UPDATE t SET s = CONCAT(id, IFNULL(s, '')) WHERE id = 1").await.unwrap();
        run(&mut first, "COMMIT").await.unwrap();
        run(&mut first, "UPDATE t SET s = 'b' WHERE id = 2").await.unwrap();
    }
}

#[tokio::test]
async fn a_query_that_takes_too_much_memory_ends_alone() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE n (id INT PRIMARY KEY, p INT)").await.unwrap();
    let numbers: Vec<String> = (0..1_500).map(|id| format!("({id}, {})", id % 7)).collect();
    run(&mut session, &format!("INSERT INTO n VALUES {}", numbers.join(","))).await.unwrap();
    let error = "1038 The statement needs more memory than max_query_memory allows";
    // Half a gigabyte, with a limit of 64 MiB.
    let pairs = "SELECT a.id * 1500 + b.id AS k, REPEAT('x', 200) AS p FROM n a, n b";
    for statement in [
        format!("SELECT COUNT(*), MAX(q.p) FROM ({pairs}) q JOIN ({pairs}) r ON q.k = r.k"),
        "SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 200), a.id)) FROM n a, n b".to_owned(),
        "SELECT (SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 200), a.id)) FROM n a, n b \
         WHERE a.id + b.id >= o.id) FROM n o WHERE o.id < 2"
            .to_owned(),
    ] {
        run(&mut session, "SET group_concat_max_len = 1000000000").await.unwrap();
        assert_eq!(rows(&mut session, &statement).await, error, "{statement}");
        assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM n WHERE p = 1").await, "215");
    }
}

/// A server that follows one table.
struct Following;

impl Host for Following {
    fn source_of(&self, table: &str) -> Option<String> {
        table.ends_with("followed").then(|| "primary".to_owned())
    }
}

/// What was declared, and for which table.
type Declared = Vec<(String, Option<TableWords>)>;

/// A server that follows one table and is told of its words.
#[derive(Default)]
struct FollowingWords {
    declared: std::sync::Mutex<Declared>,
}

impl Host for FollowingWords {
    fn source_of(&self, table: &str) -> Option<String> {
        table.ends_with("followed").then(|| "primary".to_owned())
    }

    fn declare_words(&self, table: &str, words: Option<TableWords>) -> Result<()> {
        if words.as_ref().is_some_and(|words| words.columns.len() > 2) {
            return Err(no_source_error());
        }
        self.declared.lock().unwrap().push((table.to_owned(), words));
        Ok(())
    }
}

#[tokio::test]
async fn the_words_of_a_followed_table_are_its_hosts() {
    use remora_engine::ColumnType;
    let host = Arc::new(FollowingWords::default());
    let server = Server::with_host(Arc::clone(&host) as Arc<dyn Host>);
    let text = ColumnType::Text;
    let columns = [
        ("id", ColumnType::Int(32)),
        ("title", text),
        ("year", ColumnType::Int(32)),
        ("body", text),
    ];
    server.table("followed", &columns, 1, Vec::new());
    let mut session = server.session();
    let words = |columns: &[&str], settings: &[(&str, &str)]| TableWords {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        settings: settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
    };
    for (statement, expected) in [
        (
            "ALTER TABLE followed words='Body,title' morphology='stem_en', min_infix_len=2",
            Some(words(&["body", "title"], &[("morphology", "stem_en"), ("min_infix_len", "2")])),
        ),
        (
            "ALTER TABLE followed morphology = 'stem_en'",
            Some(words(&["title", "body"], &[("morphology", "stem_en")])),
        ),
        ("ALTER TABLE followed words=''", None),
    ] {
        run(&mut session, statement).await.unwrap();
        let (table, declared) = host.declared.lock().unwrap().pop().unwrap();
        assert!(table.ends_with("followed"), "{table}");
        assert_eq!(declared, expected, "{statement}");
    }
    for (statement, code) in [
        ("ALTER TABLE followed words='year'", 1072),
        ("ALTER TABLE followed words='title,text'", 1072),
        ("ALTER TABLE followed morphology='latin'", 1064),
        ("ALTER TABLE followed stopwords='/etc/passwd'", 1235),
        ("ALTER TABLE followed words='title', ADD COLUMN x INT", 1290),
        ("ALTER TABLE followed words='title' COMMENT='x'", 1290),
        ("ALTER TABLE followed words='title,body,title'", 1290),
        ("ALTER TABLE followed words='title',", 1064),
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert_eq!(error.code.number(), code, "{statement}: {}", error.message);
    }
    assert!(host.declared.lock().unwrap().is_empty(), "nothing that was refused was declared");
}

/// Options of local tables need no commas, and no words are declared by none.
#[tokio::test]
async fn words_are_taken_away_by_naming_none() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b TEXT) words='a'")
        .await
        .unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 'reefs', 'sea')").await.unwrap();
    let statement = "ALTER TABLE t words='b,a' morphology='stem_en' min_infix_len='2'";
    run(&mut session, statement).await.unwrap();
    assert_eq!(rows(&mut session, "SELECT id FROM t WHERE MATCH('@a reef')").await, "1");
    let made = rows(&mut session, "SHOW CREATE TABLE t").await;
    assert!(made.contains("words='b,a' morphology='stem_en' min_infix_len='2'"), "{made}");
    run(&mut session, "ALTER TABLE t words=''").await.unwrap();
    let made = rows(&mut session, "SHOW CREATE TABLE t").await;
    assert!(!made.contains("words") && !made.contains("morphology"), "{made}");
    assert!(run(&mut session, "SELECT id FROM t WHERE MATCH('reef')").await.is_err());
}

#[tokio::test]
async fn a_table_that_is_followed_is_read_alone() {
    use remora_engine::{ColumnType, Value};
    let server = Server::with_host(Arc::new(Following));
    let columns = [("id", ColumnType::Int(32)), ("n", ColumnType::Int(32))];
    server.table("followed", &columns, 1, vec![vec![Value::Int(1), Value::Int(2)]]);
    let mut session = server.session();
    run(&mut session, "CREATE TABLE own (id INT PRIMARY KEY, n INT)").await.unwrap();
    for statement in [
        "INSERT INTO followed VALUES (2, 3)",
        "REPLACE INTO followed VALUES (1, 3)",
        "INSERT INTO followed SELECT * FROM own",
        "UPDATE followed SET n = 1",
        "UPDATE followed f JOIN own o ON o.id = f.id SET f.n = 1",
        "DELETE FROM followed WHERE id = 1",
        "DELETE f FROM followed f JOIN own o ON o.id = f.id",
        "LOAD DATA INFILE 'x' INTO TABLE followed",
        "TRUNCATE TABLE followed",
        "ALTER TABLE followed ADD COLUMN x INT",
        "CREATE INDEX i ON followed (n)",
        "DROP TABLE followed",
        "RENAME TABLE followed TO other",
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert_eq!(error.code.number(), 1290, "{statement}: {}", error.message);
        assert!(error.message.contains("'primary'"), "{statement}: {}", error.message);
    }
    expect(
        &mut session,
        &[
            ("SELECT * FROM followed", "1|2"),
            ("SELECT * FROM followed WHERE id = 1 FOR UPDATE", "1|2"),
            ("INSERT INTO own SELECT * FROM followed", ""),
            ("UPDATE own o JOIN followed f ON o.id = f.id SET o.n = f.n + 1", ""),
            ("SELECT * FROM own", "1|3"),
        ],
    )
    .await;
}

/// Runs LOAD DATA with this file at the client.
async fn load(session: &mut Session, statement: &str, file: &str) -> Result<Answers> {
    session.give_file(file.as_bytes().to_vec());
    run(session, statement).await
}

#[tokio::test]
async fn files_are_read_as_their_options_say() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let cases = [
        ("", "5\te\n6\t\\N\n", "5|e\n6|NULL"),
        ("CHARACTER SET utf8mb4 FIELDS TERMINATED BY ','", "5,e\n6,\\Nx", "5|e\n6|Nx"),
        (
            "FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '|' \
             LINES STARTING BY '> ' TERMINATED BY '\\r\\n' IGNORE 1 LINES (s, id)",
            "> s;id\r\n> \"a;|\"b\";5\r\nno line\r\n> NULL;6\r\n",
            "5|a;\"b\n6|NULL",
        ),
        ("(id)", "5\tleft out\n6", "5|NULL\n6|NULL"),
        ("IGNORE 2 ROWS", "1\tx\n2\ty\n7\tz", "7|z"),
    ];
    for (options, file, expected) in cases {
        let statement = format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t {options}");
        load(&mut session, &statement, file).await.unwrap();
        let found = rows(&mut session, "SELECT * FROM t WHERE id > 4").await;
        assert_eq!(found, expected, "{statement}");
        run(&mut session, "DELETE FROM t WHERE id > 4").await.unwrap();
    }
    for (word, kept, info) in [
        ("REPLACE", "1|new", "Records: 2  Deleted: 1  Skipped: 0  Warnings: 0"),
        ("IGNORE", "1|new", "Records: 2  Deleted: 0  Skipped: 1  Warnings: 1"),
    ] {
        let statement = format!("LOAD DATA LOCAL INFILE 'f' {word} INTO TABLE t");
        let file = if word == "REPLACE" { "1\tnew\n8\th" } else { "1\tnewer\n9\ti" };
        let answers = load(&mut session, &statement, file).await.unwrap();
        assert_eq!(answers.sets[0].outcome.info, info, "{word}");
        assert_eq!(rows(&mut session, "SELECT * FROM t WHERE id = 1").await, kept, "{word}");
    }
    let uneven = "10\n11\tx\ty\tz\n";
    let answers = load(&mut session, "LOAD DATA LOCAL INFILE 'f' INTO TABLE t", uneven).await;
    let info = &answers.unwrap().sets[0].outcome.info;
    assert_eq!(info, "Records: 2  Deleted: 0  Skipped: 0  Warnings: 2");
    assert_eq!(
        rows(&mut session, "SHOW WARNINGS").await,
        "Warning|1261|Row 1 doesn't contain data for all columns\n\
         Warning|1262|Row 2 was truncated; it contained more data than there were input columns"
    );
    // A separator at the end of a line is no field, and a variable without a field is NULL.
    for (options, file) in
        [("FIELDS TERMINATED BY '|'", "20|x|\n21|y|"), ("(id, s, @rest)", "22\tx\n23\ty")]
    {
        let statement = format!("LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t {options}");
        let answers = load(&mut session, &statement, file).await.unwrap();
        let info = "Records: 2  Deleted: 0  Skipped: 0  Warnings: 0";
        assert_eq!(answers.sets[0].outcome.info, info, "{options}");
    }
    let strict = "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t";
    let error = load(&mut session, strict, uneven).await.unwrap_err();
    assert_eq!(error.code.number(), 1261);
    let fixed =
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '' LINES TERMINATED BY ''";
    let error = load(&mut session, fixed, "1\t2").await.unwrap_err();
    assert_eq!(error.code.number(), 1235);
}

#[tokio::test]
async fn fields_become_variables_and_expressions_columns() {
    let server = Server::new();
    let mut session = server.session();
    let file = "1,one,5\n2,two,\n3,\\N,x\n";
    for statement in [
        "CREATE TABLE ld (a INT, b VARCHAR(20), c INT DEFAULT 7, d VARCHAR(30))",
        "CREATE TABLE depts (id INT PRIMARY KEY, label VARCHAR(30))",
        "INSERT INTO depts VALUES (1, 'Sales'), (2, 'research'), (3, 'Board')",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let steps = [
        (
            "(a, @v, @c) SET b = UPPER(@v), c = @c * 10",
            "1|ONE|50|NULL\n2|TWO|0|NULL\n3|NULL|0|NULL",
        ),
        (
            "(@a, b) SET a = @A + 1, d = CONCAT(b, '!', a)",
            "2|one|7|one!2\n3|two|7|two!3\n4|NULL|7|NULL",
        ),
        (
            "(a, @dummy, @dummy) SET c = DEFAULT, b = (SELECT MAX(label) FROM depts WHERE id = a)",
            "1|Sales|7|NULL\n2|research|7|NULL\n3|Board|7|NULL",
        ),
        ("SET d = 'all'", "1|one|5|all\n2|two|0|all\n3|NULL|0|all"),
        ("(a, @b) SET a = a + 1, b = @b, d = a", "2|one|7|2\n3|two|7|3\n4|NULL|7|4"),
        (
            "(a, @b, c, @e) SET d = IFNULL(@e, 'none')",
            "1|NULL|5|none\n2|NULL|0|none\n3|NULL|0|none",
        ),
        ("(a, @b, c)", "1|NULL|5|NULL\n2|NULL|0|NULL\n3|NULL|0|NULL"),
        ("(a, b, a)", "5|one|7|NULL\n0|two|7|NULL\n0|NULL|7|NULL"),
    ];
    for (how, expected) in steps {
        let statement =
            format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE ld FIELDS TERMINATED BY ',' {how}");
        load(&mut session, &statement, file).await.unwrap();
        assert_eq!(rows(&mut session, "SELECT * FROM ld").await, expected, "{how}");
        run(&mut session, "DELETE FROM ld").await.unwrap();
    }
    assert_eq!(rows(&mut session, "SELECT @dummy, @a, @v, @e, @b").await, "x|3|NULL|NULL|NULL");
    let wrong =
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE ld FIELDS TERMINATED BY ',' (a) SET nope = 1";
    let error = load(&mut session, wrong, file).await.unwrap_err();
    assert_eq!(error.message, "Unknown column 'nope' in 'field list'");
    let many: String = (0..2_500).map(|number| format!("{number},x\n")).collect();
    let large = "LOAD DATA LOCAL INFILE 'f' INTO TABLE ld FIELDS TERMINATED BY ',' (@n, @x) \
                SET a = @n * 2, b = CONCAT(@x, @n)";
    load(&mut session, large, &many).await.unwrap();
    let sum = "SELECT COUNT(*), SUM(a), SUM(b = CONCAT('x', a DIV 2)) FROM ld WHERE a % 2 = 0";
    assert_eq!(rows(&mut session, sum).await, "2500|6247500|2500");
}

/// Runs a statement that is not text; returns its rows or its error, and the number of warnings.
async fn bytes(session: &mut Session, statement: &[u8]) -> (String, u64) {
    let mut answers = Answers::default();
    match session.query(statement, false, &mut answers).await {
        Ok(()) => {
            let answer = answers.sets.first().unwrap();
            (answer.text(), u64::from(answer.outcome.warnings))
        }
        Err(error) => (format!("{} {}", error.code.number(), error.message), 0),
    }
}

#[tokio::test]
async fn texts_that_are_no_utf8_are_bytes() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE b (id INT PRIMARY KEY, v VARBINARY(20), c BLOB, t VARCHAR(20))";
    run(&mut session, table).await.unwrap();
    let insert = b"INSERT INTO b VALUES (1, 'a\xff\xfe', '\x80\x81', 'x')";
    assert_eq!(bytes(&mut session, insert).await, (String::new(), 2));
    let said = "Warning|1300|Invalid utf8mb4 character string: 'FFFE'\n\
                Warning|1300|Invalid utf8mb4 character string: '8081'";
    bytes(&mut session, insert).await;
    assert_eq!(bytes(&mut session, b"SELECT HEX('a\xff\xfe')").await, ("61FFFE".into(), 1));
    assert_eq!(bytes(&mut session, b"SELECT HEX(_binary 'a\xff')").await, ("61FF".into(), 0));
    let found = b"SELECT id FROM b WHERE v = 'a\xff\xfe'";
    assert_eq!(bytes(&mut session, found).await, ("1".into(), 1));
    let update = b"UPDATE b SET v = concat('\xfd', 'a') WHERE c = '\x80\x81'";
    assert_eq!(bytes(&mut session, update).await, (String::new(), 2));
    assert_eq!(rows(&mut session, "SELECT HEX(v), HEX(c) FROM b").await, "FD61|8081");
    let wrong = b"INSERT INTO b (id, t) VALUES (2, 'x\xff')";
    let refused = "1366 Incorrect string value: '\\xFF' for column 't' at row 1";
    assert_eq!(bytes(&mut session, wrong).await.0, refused);
    bytes(&mut session, b"DELETE FROM b").await;
    bytes(&mut session, insert).await;
    assert_eq!(rows(&mut session, "SHOW WARNINGS").await, said);
    assert_eq!(bytes(&mut session, b"SELECT 1\0\0").await, ("1".into(), 0));
}

#[tokio::test]
async fn parts_of_a_union_come_one_after_the_other() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let cases = [
        ("SELECT 3 UNION SELECT 1 UNION SELECT 2", "3\n1\n2"),
        ("SELECT 3 UNION ALL SELECT 1 UNION ALL SELECT 2", "3\n1\n2"),
        ("SELECT 3 UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 LIMIT 2", "3\n1"),
        ("SELECT * FROM (SELECT 3 a UNION SELECT 1 UNION SELECT 2) d", "3\n1\n2"),
        ("SELECT 9 UNION SELECT id FROM t UNION SELECT 0 UNION SELECT 2", "9\n1\n2\n3\n4\n0"),
    ];
    for _ in 0..20 {
        expect(&mut session, &cases).await;
    }
}

#[tokio::test]
async fn variables_without_effect_say_so() {
    let server = Server::new();
    let mut session = server.session();
    let told = |name: &str, mend: &str| {
        format!("Warning|1235|Setting variable '{name}' has no effect{mend}")
    };
    let file = "; the server's settings file decides it: sql.";
    let cases = [
        ("SET GLOBAL local_infile = 1", told("local_infile", &format!("{file}local_infile"))),
        ("SET GLOBAL local_infile = 1", String::new()),
        ("SET sort_buffer_size = 1000000", told("sort_buffer_size", "")),
        ("SET SESSION wait_timeout = 100", String::new()),
        ("SET GLOBAL wait_timeout = 100", told("wait_timeout", &format!("{file}wait_timeout_s"))),
        ("SET sql_mode = '', sql_select_limit = 7", String::new()),
        ("SET sql_safe_updates = 0", String::new()),
        ("SET sql_notes = 0", String::new()),
        ("DROP TABLE IF EXISTS nothing", String::new()),
    ];
    for (statement, warnings) in cases {
        assert_eq!(rows(&mut session, statement).await, "", "{statement}");
        assert_eq!(rows(&mut session, "SHOW WARNINGS").await, warnings, "{statement}");
    }
}

#[tokio::test]
async fn digests_are_those_that_applications_stored() {
    let server = Server::new();
    let mut session = server.session();
    let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d";
    let cases = [
        (
            "SELECT MD5('abc'), MD5(NULL), MD5('')".to_owned(),
            "900150983cd24fb0d6963f7d28e17f72|NULL|d41d8cd98f00b204e9800998ecf8427e".to_owned(),
        ),
        ("SELECT SHA('abc'), SHA1('abc')".to_owned(), format!("{sha1}|{sha1}")),
    ];
    for (statement, expected) in cases {
        assert_eq!(rows(&mut session, &statement).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_limits_a_statement_alone() {
    let server = Server::new();
    let mut session = server.session();
    let slow = "SELECT /*+ NO_MERGE() max_execution_time( 50 ) */ SLEEP(3)";
    assert!(rows(&mut session, slow).await.starts_with("3024 "));
    assert_eq!(rows(&mut session, "SELECT SLEEP(0.2)").await, "0");
}

/// A text statement has no values for `?`; treating them as NULL would give wrong results.
#[tokio::test]
async fn marks_without_values_are_errors() {
    let server = Server::new();
    let mut session = filled(&server).await;
    for statement in
        ["SELECT ?", "SELECT s FROM t WHERE id = ?", "DELETE FROM t WHERE id = ?", "SET @a = ?"]
    {
        for _ in 0..3 {
            let error = run(&mut session, statement).await.unwrap_err();
            assert!(error.message.contains("near '?'"), "{statement}: {error:?}");
        }
    }
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t").await, "4");
    assert_eq!(rows(&mut session, "SELECT '?', s FROM t WHERE id = 1 -- ?").await, "?|a");
}

/// What is near the error is the client's own text, also where a part of the statement is evaluated alone.
#[tokio::test]
async fn writes_name_the_place_of_a_syntax_error() {
    let server = Server::new();
    let mut session = filled(&server).await;
    for (statement, place) in [
        ("INSERT INTO t VALUES (5 +, 'x')", ", 'x')"),
        ("INSERT INTO t VALUES (5, UPPER('x' 'y' z))", "z))"),
        ("INSERT INTO t SET id = 5, s = UPPER('x'", ""),
        (
            "INSERT INTO t SELECT 5 5 FROM t ON DUPLICATE KEY UPDATE s = 'x'",
            "5 FROM t ON DUPLICATE",
        ),
        ("INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE s = s s", "s"),
        ("REPLACE INTO t SELECT 5, 'x' FROM t t t", "t"),
        ("UPDATE t SET s = (s WHERE id = 1", "WHERE id = 1"),
        ("UPDATE t SET s = s +, id = 2 WHERE id = 1", ", id = 2 WHERE id = 1"),
        ("UPDATE t SET s = 'x' WHERE id = 1 AND", ""),
        ("UPDATE t JOIN t AS u ON t.id = ) SET t.s = 'x'", ") SET t.s = 'x'"),
        ("DELETE FROM t WHERE id = (1 + 2", ""),
        ("DELETE t FROM t JOIN t AS u USING id", "id"),
        ("DELETE FROM t WHERE id IN (1, 2,)", ")"),
    ] {
        let near = format!("near '{place}");
        let error = run(&mut session, statement).await.unwrap_err();
        assert_eq!(error.code.number(), 1064, "{statement}: {error:?}");
        assert!(error.message.contains(&near), "{statement}: {error:?}");
        if !statement.contains(" VALUES ") && !statement.contains(" SET id") {
            let error = session.prepare(statement.as_bytes()).await.err().unwrap();
            assert!(error.message.contains(&near), "{statement}: {error:?}");
        }
    }
    assert_eq!(rows(&mut session, "SELECT GROUP_CONCAT(s) FROM t").await, "a,b,c");
}

/// Clauses after a table that the parser knows from other databases: none is ignored.
#[tokio::test]
async fn clauses_behind_a_table_are_refused() {
    let server = Server::new();
    let mut session = filled(&server).await;
    for statement in [
        "SELECT * FROM t PARTITION (p0)",
        "SELECT s FROM t PARTITION (p0) WHERE id = 1",
        "SELECT COUNT(*) FROM t AS a JOIN t PARTITION (p0, p1) AS b USING (id)",
        "SELECT (SELECT MAX(id) FROM t PARTITION (p0))",
        "SELECT * FROM t WITH (NOLOCK)",
        "SELECT * FROM t TABLESAMPLE BERNOULLI (10)",
        "SELECT * FROM t AS a (x, y)",
        "DELETE FROM t PARTITION (p0)",
        "DELETE FROM t PARTITION (p0) WHERE id = 1",
        "UPDATE t PARTITION (p0) SET s = 'x'",
        "UPDATE t PARTITION (p0) SET s = 'x' WHERE id = 1",
        "INSERT INTO t PARTITION (p0) (id) VALUES (77)",
        "REPLACE INTO t PARTITION (p0) (id) VALUES (77)",
        "TRUNCATE TABLE t PARTITION (p0)",
    ] {
        for _ in 0..2 {
            let error = run(&mut session, statement).await.unwrap_err();
            assert!(matches!(error.code.number(), 1064 | 1235), "{statement}: {error:?}");
        }
    }
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t WHERE s <> 'x'").await, "3");
}

#[tokio::test]
async fn a_definition_with_a_syntax_error_does_nothing() {
    let server = Server::new();
    let mut session = filled(&server).await;
    let near = |text: &str| {
        format!(
            "1064 You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version \
             for the right syntax to use near '{text}' at line 1"
        )
    };
    for (statement, place) in [
        ("CREATE TABLE IF NOT EXISTS t (a INT, b INTEGRE)", "INTEGRE)"),
        ("CREATE TABLE u (a INT) AS SELEC 1", "SELEC 1"),
        ("CREATE TABLE u (a VARCHAR, b INT)", "VARCHAR, b INT)"),
        ("ALTER TABLE t DROP COLUMN nope, ADD x INT, AD y INT", "AD y INT"),
        ("ALTER TABLE t ADD x INT FIRST LAST", "LAST"),
        ("ALTER TABLE t local=5", "local=5"),
        ("CREATE INDEX i ON nope (s) USING", ""),
        ("CREATE VIEW IF NOT EXISTS t AS SELECT 1 FROM", ""),
        ("DROP TABLE t, t u", "u"),
        ("ALTER TABLE t local='u'", "local='u'"),
    ] {
        run(&mut session, "BEGIN").await.unwrap();
        run(&mut session, "INSERT INTO t VALUES (9, 'z')").await.unwrap();
        assert_eq!(rows(&mut session, statement).await, near(place), "{statement}");
        run(&mut session, "ROLLBACK").await.unwrap();
        let left = rows(&mut session, "SELECT COUNT(*) FROM t").await;
        // Whether a table is distributed, and has such options, is known only when the statement runs.
        let committed = statement.ends_with("local='u'");
        assert_eq!(left, if committed { "5" } else { "4" }, "{statement}");
    }
}

#[tokio::test]
async fn a_global_default_is_what_a_variable_begins_with() {
    let server = Server::new();
    let mut session = server.session();
    let first = rows(&mut session, "SELECT @@global.sql_mode").await;
    assert!(first.contains("STRICT_TRANS_TABLES"), "{first}");
    run(&mut session, "SET GLOBAL sql_mode = ''").await.unwrap();
    run(&mut session, "SET SESSION sql_mode = DEFAULT").await.unwrap();
    assert_eq!(rows(&mut session, "SELECT @@sql_mode, @@global.sql_mode").await, "|");
    run(&mut session, "SET GLOBAL sql_mode = DEFAULT").await.unwrap();
    assert_eq!(rows(&mut session, "SELECT @@global.sql_mode").await, first);
    assert_eq!(rows(&mut session, "SELECT @@sql_mode").await, "");
    run(&mut session, "SET sql_mode = DEFAULT").await.unwrap();
    assert_eq!(rows(&mut session, "SELECT @@sql_mode").await, first);
}

/// What MySQL 9.7 says to these; rows that the statement does not name stay.
#[tokio::test]
async fn writes_change_what_they_name_and_nothing_else() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), n INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, m INT)",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)",
        "INSERT INTO u VALUES (1, 10), (2, 20)",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let near = |place: &str| {
        format!(
            "1064 You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version \
             for the right syntax to use near '{place}' at line 1"
        )
    };
    let near = [
        near("JOIN u ON u.id = t.id"),
        near(""),
        near("LIMIT 1"),
        near("ON DUPLICATE KEY UPDATE n = 1"),
        near(")"),
        near(") VALUES (1)"),
        near("(SELECT 1) d"),
    ];
    let [join, comma, limit, duplicate, value, column, derived] =
        near.each_ref().map(String::as_str);
    expect(
        &mut session,
        &[
            ("DELETE FROM t JOIN u ON u.id = t.id", join),
            ("DELETE FROM t, u", comma),
            ("DELETE FROM (SELECT 1) d", derived),
            ("DELETE t FROM t JOIN u ON u.id = t.id LIMIT 1", limit),
            ("UPDATE t JOIN u ON u.id = t.id SET n = 0 LIMIT 1", "1221 Incorrect usage of UPDATE and LIMIT"),
            (
                "UPDATE t JOIN u ON u.id = t.id SET n = 0 ORDER BY t.id",
                "1221 Incorrect usage of UPDATE and ORDER BY",
            ),
            ("REPLACE INTO t VALUES (1, 'x', 9) ON DUPLICATE KEY UPDATE n = 1", duplicate),
            ("INSERT INTO u VALUES (3, 1,)", value),
            ("INSERT INTO u (id,) VALUES (1)", column),
            ("DELETE main.t FROM t AS t2 JOIN u ON u.id = t2.id", "1109 Unknown table 't' in MULTI DELETE"),
            ("SELECT COUNT(*), SUM(n) FROM t", "3|6"),
            // Of a self-join only the listed one.
            ("DELETE t FROM t JOIN t AS x ON t.s = x.s AND t.id > x.id", ""),
            ("SELECT id FROM t ORDER BY id", "1\n3"),
            // A name in a subquery may be that of its table.
            ("INSERT INTO t VALUES (1, 'a', 5) AS new(m, s2, n2) ON DUPLICATE KEY UPDATE n = (SELECT MAX(m) FROM u)", ""),
            ("SELECT n FROM t WHERE id = 1", "20"),
            ("CREATE TABLE d (id INT, vector JSON)", ""),
        ],
    )
    .await;
}

/// A prepared statement is read as it was when it was prepared, whatever the mode is when it runs.
#[tokio::test]
async fn a_prepared_key_keeps_its_meaning() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE t (k VARCHAR(20) PRIMARY KEY)",
        r"INSERT INTO t VALUES ('a\\b'), ('a\\\\b')",
        r#"PREPARE p FROM 'DELETE FROM t WHERE k = "a\\\\b"'"#,
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "EXECUTE p",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    assert_eq!(rows(&mut session, "SELECT HEX(k) FROM t").await, "615C5C62");
}

/// A definition keeps no partitions: what arranges them has no effect, and what changes rows by them is refused by name.
#[tokio::test]
async fn partitions_are_passed_over() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE p (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN \
                 (10), PARTITION pm VALUES LESS THAN MAXVALUE); INSERT INTO p VALUES (1, 1), (11, 1)";
    run(&mut session, table).await.unwrap();
    for action in [
        "REORGANIZE PARTITION pm INTO (PARTITION p2 VALUES LESS THAN (30), PARTITION pm VALUES LESS THAN MAXVALUE)",
        "ADD PARTITION (PARTITION p9 VALUES LESS THAN (99))",
        "ADD PARTITION PARTITIONS 2",
        "COALESCE PARTITION 2",
        "REBUILD PARTITION ALL",
        "OPTIMIZE PARTITION p0",
        "REMOVE PARTITIONING",
        "PARTITION BY HASH (id) PARTITIONS 4",
        "ADD w INT, ALGORITHM = COPY PARTITION BY KEY () PARTITIONS 4",
        "DROP w REMOVE PARTITIONING",
    ] {
        run(&mut session, &format!("ALTER TABLE p {action}")).await.unwrap();
    }
    for action in [
        "TRUNCATE PARTITION p0",
        "DROP PARTITION p0",
        "EXCHANGE PARTITION p0 WITH TABLE q",
        "DISCARD TABLESPACE",
        "IMPORT PARTITION p0 TABLESPACE",
    ] {
        let error = run(&mut session, &format!("ALTER TABLE p {action}")).await.unwrap_err();
        let words = action.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert_eq!(error.code.number(), 1235, "{action}");
        assert!(error.message.contains(&words), "{error:?}");
    }
    assert_eq!(rows(&mut session, "SELECT * FROM p ORDER BY id").await, "1|1\n11|1");
}

/// The index that was made for a named foreign key goes when a key is added that has its columns.
#[tokio::test]
async fn an_index_of_a_foreign_key_goes_for_an_own_one() {
    let server = Server::new();
    let mut session = server.session();
    let tables = "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT, x INT, CONSTRAINT \
                  of_p FOREIGN KEY (p) REFERENCES p (id))";
    run(&mut session, tables).await.unwrap();
    let keys = "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_NAME = 'c' ORDER BY 1";
    run(&mut session, "ALTER TABLE c ADD KEY (x)").await.unwrap();
    assert_eq!(rows(&mut session, keys).await, "of_p\nPRIMARY\nx");
    run(&mut session, "CREATE INDEX i ON c (p, x)").await.unwrap();
    assert_eq!(rows(&mut session, keys).await, "i\nPRIMARY\nx");
    assert_eq!(rows(&mut session, "SHOW COUNT(*) WARNINGS").await, "0");
    let refused = run(&mut session, "DROP INDEX i ON c").await.unwrap_err();
    assert_eq!(refused.code.number(), 1553);
}

/// Each iteration gives one row. A batch of one row with computed texts takes blocks of kilobytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_recursion_take_the_memory_of_their_values() {
    let server = Server::new();
    let mut session = server.session();
    let recursion =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)";
    for statement in [
        "SET cte_max_recursion_depth = 6000",
        "CREATE TABLE made (i INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), c VARCHAR(20))",
        &format!(
            "INSERT INTO made {recursion} SELECT i, CONCAT('a', i), CONCAT(i, 'b'), HEX(i) FROM n"
        ),
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let sums = "SELECT COUNT(*), SUM(i), MIN(a), MAX(b) FROM made WHERE c = HEX(i)";
    assert_eq!(rows(&mut session, sums).await, "6000|18003000|a1|9b");
    // A LIMIT ends the recursion before it is too deep.
    run(&mut session, "SET cte_max_recursion_depth = 100").await.unwrap();
    let first = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90) \
                 SELECT COUNT(*), MAX(CONCAT(i, 'x')) FROM n";
    assert_eq!(rows(&mut session, first).await, "90|9x");
}
