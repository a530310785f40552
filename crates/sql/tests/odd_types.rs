//! Types that few tables have: labels of bytes, and decimals that MariaDB alone declares.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use remora_engine::{ColumnType, Decimal, Value};
use support::{Server, rows, run};

#[tokio::test]
async fn labels_of_bytes_are_read() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('b','a','A') CHARACTER SET binary, \
         s SET('x','y') CHARACTER SET binary)",
        "INSERT INTO t VALUES (1, 'a', 'x,y'), (2, 'b', ''), (3, 'A', 'y')",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    for (statement, expected) in [
        ("SELECT id, e, s FROM t ORDER BY id", "1|a|x,y\n2|b|\n3|A|y"),
        ("SELECT e FROM t WHERE id = 1", "a"),
        ("SELECT id FROM t WHERE e = 'a'", "1"),
        ("SELECT id FROM t WHERE e IN ('A', 'b') ORDER BY id", "2\n3"),
        ("SELECT COUNT(DISTINCT e) FROM t", "3"),
        ("SELECT id FROM t ORDER BY e", "2\n1\n3"),
        ("SELECT CONCAT(e, '!') FROM t WHERE s = 'y'", "A!"),
    ] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
    let shown = rows(&mut session, "SHOW CREATE TABLE t").await;
    assert!(shown.contains("enum('b','a','A') CHARACTER SET binary"), "{shown}");
}

#[tokio::test]
async fn decimals_of_mariadb_are_read() {
    let server = Server::new();
    let number = |text: &str| Value::Decimal(Decimal::from_canonical(text).unwrap());
    let small = format!("-0.{}1", "0".repeat(37));
    let large = format!("123456789012345678901234567.{}", "12345678901234567890123456789012345678");
    server.table(
        "d",
        &[("id", ColumnType::Int(32)), ("v", ColumnType::Decimal(65, 38))],
        1,
        vec![
            vec![Value::Int(1), number(&format!("1.5{}", "0".repeat(37)))],
            vec![Value::Int(2), number(&small)],
            vec![Value::Int(3), number(&large)],
        ],
    );
    let mut session = server.session();
    let one = format!("1.5{}", "0".repeat(37));
    for (statement, expected) in [
        ("SELECT v FROM d ORDER BY v".to_owned(), format!("{small}\n{one}\n{large}")),
        ("SELECT v FROM d WHERE id = 2".to_owned(), small.clone()),
        ("SELECT id FROM d WHERE v = 1.5".to_owned(), "1".to_owned()),
        ("SELECT id FROM d WHERE v > 1 ORDER BY id".to_owned(), "1\n3".to_owned()),
        ("SELECT MIN(v), MAX(v) FROM d".to_owned(), format!("{small}|{large}")),
        ("SELECT SUM(v) FROM d WHERE id = 1".to_owned(), one.clone()),
        ("SELECT v + 1 FROM d WHERE id = 1".to_owned(), one.replacen('1', "2", 1)),
        ("SELECT ROUND(v, 2) FROM d WHERE id = 3".to_owned(), large[..30].to_owned()),
        ("SELECT COALESCE(v, 0) FROM d WHERE id = 2".to_owned(), small.clone()),
    ] {
        assert_eq!(rows(&mut session, &statement).await, expected, "{statement}");
    }
    let refused = rows(&mut session, "CREATE TABLE x (id INT PRIMARY KEY, v DECIMAL(40,31))").await;
    assert!(refused.starts_with("1425"), "{refused}");
}
