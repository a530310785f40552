//! The metadata of columns besides names and types, compared with MySQL 9.7.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_sql::Column;

fn told(column: &Column) -> String {
    let Column { table, original_table, original_name, kind, length, .. } = column;
    let not_null = if column.not_null { " NOT NULL" } else { "" };
    let key = if column.primary_key { " KEY" } else { "" };
    format!("{original_table}.{table}.{original_name} {kind:?}({length}){not_null}{key}")
}

#[tokio::test]
async fn columns_are_told_as_mysql_does() {
    let server = Server::new();
    let mut session = server.session();
    run(
        &mut session,
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20) NOT NULL, d DECIMAL(8,2), \
         b BIGINT UNSIGNED, e ENUM('a','bb'))",
    )
    .await
    .unwrap();
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT COUNT(*), COUNT(n), COUNT(DISTINCT n), SUM(n), MIN(id) FROM t",
            &[
                ".. BigInt(21) NOT NULL",
                ".. BigInt(21) NOT NULL",
                ".. BigInt(21) NOT NULL",
                ".. Decimal(32, 0)(33)",
                ".. Int(11)",
            ],
        ),
        ("SELECT n, COUNT(*) FROM t GROUP BY n", &["t.t.n Int(11)", ".. BigInt(21) NOT NULL"]),
        ("SELECT IFNULL(COUNT(*), 1) FROM t", &[".. BigInt(21) NOT NULL"]),
        ("SELECT id FROM t UNION SELECT id FROM t", &["..id Int(11) NOT NULL"]),
        ("SELECT id a FROM t UNION ALL SELECT 7", &["..a BigInt(11) NOT NULL"]),
        ("SELECT 1 UNION SELECT 2.5", &["..1 Decimal(2, 1)(4) NOT NULL"]),
        ("SELECT NULL UNION SELECT 1", &["..NULL BigInt(2)"]),
        ("SELECT s FROM t UNION ALL SELECT 'x'", &["..s VarChar(80) NOT NULL"]),
        ("SELECT d FROM t UNION SELECT n FROM t", &["..d Decimal(12, 2)(14)"]),
        ("SELECT e FROM t UNION SELECT s FROM t", &["..e VarChar(80)"]),
        ("SELECT COUNT(*) FROM t UNION SELECT 1", &["..COUNT(*) BigInt(21) NOT NULL"]),
        ("SELECT * FROM (SELECT COUNT(*) c FROM t GROUP BY id) q", &[".q.c BigInt(21) NOT NULL"]),
        (
            "SELECT a, b FROM (SELECT id a, n + 1 b FROM t) q",
            &["t.q.a Int(11) NOT NULL KEY", ".q.b BigInt(12)"],
        ),
        ("SELECT z.id FROM t LEFT JOIN t z ON z.id = t.n", &["t.z.id Int(11) KEY"]),
    ];
    let mut wrong = Vec::new();
    for (statement, expected) in cases {
        let answers = run(&mut session, statement).await.unwrap();
        let found: Vec<String> = answers.sets[0].columns.iter().map(told).collect();
        if found != *expected {
            wrong.push(format!("{statement}\n  wanted {expected:?}\n  found  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn keys_told(column: &Column) -> String {
    let Column { name, length, keys, .. } = column;
    let flags = [
        (column.not_null, "NN"),
        (column.primary_key, "PRI"),
        (keys.unique, "UNI"),
        (keys.multiple, "MUL"),
        (keys.without_default, "NODEF"),
        (keys.part, "PART"),
    ];
    let flags = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| format!(" {flag}"));
    format!("{name} {length}{}", flags.collect::<String>())
}

/// What MySQL 9.7 tells of the columns of these tables: their lengths, and flags of keys and defaults.
#[tokio::test]
async fn columns_tell_their_keys() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, \
         b INT NOT NULL DEFAULT 5, c INT, u INT NOT NULL UNIQUE, u2 INT UNIQUE, m INT, \
         k1 INT, k2 INT NOT NULL, w INT, x INT, p VARCHAR(50), vec VECTOR(3), g GEOMETRY, \
         ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, e INT NOT NULL DEFAULT (1+1), KEY (m), \
         KEY (k1, k2), UNIQUE KEY (w, x), KEY (p(5)), KEY (u2, m))",
        "CREATE TABLE t2 (a INT, b INT, c INT, PRIMARY KEY (a, b), KEY (b))",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let of_t = [
        "id 11 NN PRI PART",
        "a 11 NN NODEF",
        "b 11 NN",
        "c 11",
        "u 11 NN UNI NODEF PART",
        "u2 11 UNI MUL PART",
        "m 11 MUL PART",
        "k1 11 MUL PART",
        "k2 11 NN NODEF PART",
        "w 11 MUL PART",
        "x 11 PART",
        "p 200 MUL PART",
        "vec 12",
        "g 4294967295",
        "ts 19 NN",
        "e 11 NN",
    ];
    let cases: [(&str, &[&str]); 5] = [
        ("SELECT * FROM t", &of_t),
        ("SELECT * FROM t WHERE id = 1", &of_t),
        ("SELECT * FROM t2", &["a 11 NN PRI NODEF PART", "b 11 NN PRI MUL NODEF PART", "c 11"]),
        ("SELECT m, m + 1 n FROM t ORDER BY m LIMIT 1", &["m 11 MUL PART", "n 12"]),
        ("SELECT t2.a FROM t LEFT JOIN t2 ON t.id = t2.a", &["a 11 PRI NODEF PART"]),
    ];
    for (statement, expected) in cases {
        let answers = run(&mut session, statement).await.unwrap();
        let found: Vec<String> = answers.sets[0].columns.iter().map(keys_told).collect();
        assert_eq!(found, expected, "{statement}");
    }
}

/// The SELECT list, FROM, a condition, and the number of rows.
const CONDITIONS: [(&str, &str, &str, usize); 20] = [
    ("table_schema, table_name", "tables", "table_name = 't'", 2),
    ("table_schema, table_name", "tables", "'t' = table_name AND table_schema = DATABASE()", 1),
    ("table_schema, table_name", "tables", "(table_name = 'T') AND SCHEMA() = table_schema", 0),
    ("table_schema, table_name", "tables", "table_name IN ('t', 'v', 'COLUMNS')", 4),
    ("table_schema, table_name", "tables", "table_name = 't' OR table_schema = 'shop'", 4),
    ("table_name, table_name", "tables", "NOT table_name = 't' AND table_schema = 'shop'", 2),
    ("table_name, table_name", "tables", "table_name NOT IN ('t') AND table_schema = 'shop'", 2),
    ("table_name, table_name", "tables", "table_name = 't' AND table_name = 'orders'", 0),
    ("table_name, table_name", "tables", "table_schema = 'shop' XOR table_name = 't'", 3),
    ("table_name, column_name", "columns", "table_name = 'v' AND table_schema = 'shop'", 2),
    ("table_name, index_name", "statistics", "table_schema = 'shop' AND table_name = 't'", 2),
    ("table_name, table_rows", "partitions", "table_name = 'orders'", 1),
    (
        "table_name, unique_constraint_name",
        "referential_constraints",
        "constraint_schema = 'shop' AND table_name = 'orders'",
        1,
    ),
    (
        "tc.table_name, cc.check_clause",
        "check_constraints cc, information_schema.table_constraints tc",
        "tc.constraint_name = cc.constraint_name AND tc.table_name = 't' \
             AND cc.constraint_schema = DATABASE()",
        1,
    ),
    (
        "c.column_name, t.table_type",
        "columns c JOIN information_schema.tables t USING (table_schema, table_name)",
        "c.table_name = 'orders' AND t.table_schema = 'shop'",
        2,
    ),
    (
        "t.table_name, k.column_name",
        "tables t LEFT JOIN information_schema.key_column_usage k \
             ON k.table_schema = t.table_schema AND k.table_name = t.table_name",
        "t.table_schema = 'shop' AND t.table_name IN ('t', 'v')",
        3,
    ),
    (
        "t.table_name, k.column_name",
        "tables t LEFT JOIN information_schema.key_column_usage k \
             ON k.table_schema = t.table_schema AND k.table_name = t.table_name",
        "k.table_name = 'orders'",
        2,
    ),
    (
        "table_name, table_schema",
        "tables t",
        "table_schema = 'shop' AND EXISTS (SELECT 1 FROM information_schema.statistics s \
             WHERE s.table_name = t.table_name AND s.table_schema = 'shop')",
        2,
    ),
    // The inner table has no such column, so it is the outer query's.
    (
        "t.table_name, t.table_schema",
        "tables t",
        "table_schema = 'shop' AND EXISTS (SELECT 1 FROM information_schema.check_constraints \
             WHERE table_name = 'orders')",
        1,
    ),
    (
        "o.table_name, (SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 't')",
        "tables o JOIN (SELECT * FROM information_schema.tables) t USING (table_name)",
        "t.table_name = 't' AND t.table_schema = 'test'",
        2,
    ),
];

/// If a condition names tables, only these are examined. The oracle is the same condition in a form that cannot be
/// analysed: it filters the rows of all tables.
#[tokio::test]
async fn a_condition_on_names_of_tables_means_what_it_does_over_the_rows_of_all() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "USE test",
        "CREATE TABLE t (id INT PRIMARY KEY, n INT CHECK (n > 0), KEY (n))",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, s VARCHAR(20) UNIQUE)",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES shop.t (id))",
        "CREATE VIEW shop.v AS SELECT id, t FROM shop.orders",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    for (selected, from, condition, count) in CONDITIONS {
        let mut answers = Vec::new();
        for condition in [condition.to_owned(), format!("({condition}) OR 0 = 1")] {
            let text = format!(
                "SELECT {selected} FROM information_schema.{from} WHERE {condition} ORDER BY 1, 2"
            );
            answers.push(run(&mut session, &text).await.unwrap().sets[0].rows.clone());
        }
        assert_eq!(answers[0], answers[1], "FROM {from} WHERE {condition}");
        assert_eq!(answers[0].len(), count, "FROM {from} WHERE {condition}: {:?}", answers[0]);
    }
}

/// What DBeaver, MySQL Workbench, DataGrip, phpMyAdmin, Connector/J and mysqld_exporter read of performance_schema, `mysql`
/// and `sys`. Tables of features that do not exist here are empty.
#[tokio::test]
async fn tables_that_tools_read_exist() {
    let server = Server::new();
    let mut session = server.session();
    for (query, found) in [
        (
            "SELECT t.PROCESSLIST_ID, IF(NAME = 'thread/sql/event_scheduler', 'event_scheduler', t.PROCESSLIST_USER) \
          PROCESSLIST_USER, t.PROCESSLIST_HOST, t.TYPE, t.INSTRUMENTED, t.PROCESSLIST_INFO, a.ATTR_VALUE FROM \
          performance_schema.threads t LEFT OUTER JOIN performance_schema.session_connect_attrs a ON \
          t.processlist_id = a.processlist_id AND (a.attr_name IS NULL OR a.attr_name = 'program_name') WHERE \
          t.TYPE <> 'BACKGROUND'",
            "",
        ),
        (
            "SELECT st.* FROM performance_schema.events_statements_current st JOIN performance_schema.threads thr ON \
          thr.thread_id = st.thread_id WHERE thr.processlist_id = CONNECTION_ID()",
            "",
        ),
        (
            "SELECT COUNT(*), SUM(SUM_TIMER_WAIT) FROM performance_schema.events_statements_summary_by_digest WHERE \
          LAST_SEEN > DATE_SUB(NOW(), INTERVAL 1 DAY)",
            "0|NULL",
        ),
        (
            "SELECT IFNULL(INDEX_NAME, 'NONE'), COUNT_FETCH FROM \
          performance_schema.table_io_waits_summary_by_index_usage",
            "",
        ),
        (
            "SELECT EVENT_NAME, SUM_NUMBER_OF_BYTES_READ FROM performance_schema.file_summary_by_event_name",
            "",
        ),
        (
            "SELECT CHANNEL_NAME, WORKER_ID FROM performance_schema.replication_applier_status_by_worker",
            "",
        ),
        ("SELECT MEMBER_ID FROM performance_schema.replication_group_members", ""),
        ("SELECT * FROM performance_schema.data_lock_waits", ""),
        ("SELECT * FROM performance_schema.metadata_locks", ""),
        ("SELECT * FROM performance_schema.setup_consumers", ""),
        ("SELECT VARIABLE_SOURCE FROM performance_schema.variables_info", ""),
        ("SELECT * FROM mysql.db", ""),
        ("SELECT * FROM mysql.role_edges", ""),
        ("SELECT Routine_type = 'PROCEDURE' FROM mysql.procs_priv WHERE Db = 'test'", ""),
        ("SELECT COUNT(*) FROM mysql.general_log", "0"),
        ("SELECT sys_version FROM sys.version", "2.1.3"),
        (
            "SELECT COUNT(*) > 100 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema'",
            "1",
        ),
        (
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('mysql', 'sys')",
            "0",
        ),
        ("SHOW TABLES FROM mysql", ""),
    ] {
        assert_eq!(rows(&mut session, query).await, found, "{query}");
    }
    let refused = run(&mut session, "INSERT INTO mysql.db (Host) VALUES ('x')").await;
    assert!(refused.is_err());
}
