//! What clients are told of columns beside their names and types, as MySQL 9.7 tells it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Server, run};
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
