//! Views of a source have the same results here as at the source.

use std::{thread, time::Duration};

use mysql::{Conn, Row, Value, prelude::Queryable};
use remora_peers::{Kind, Server as Peer};

use crate::{
    mysql::{client::Answer, connect},
    support::TestServer,
};

const TABLES: [&str; 6] = [
    "GRANT SHOW VIEW ON *.* TO 'follower'@'%'",
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(20), n INT NOT NULL, day DATE, doc JSON)",
    "CREATE TABLE shop.u (id INT PRIMARY KEY, t INT, price DECIMAL(8,2))",
    "INSERT INTO shop.t VALUES (1, 'one', 10, '2020-01-31', '{\"a\": 1}'), (2, 'it''s', 20, NULL, NULL), \
     (3, 'Three\\\\', 20, '2021-02-03', '{\"a\": \"x\"}')",
    "INSERT INTO shop.u VALUES (1, 1, 1.50), (2, 1, 2.25), (3, 3, 10.00), (4, 9, 7.00)",
];

/// Views, each sorted by its first column.
const VIEWS: [(&str, &str); 16] = [
    ("plain", "SELECT * FROM t"),
    ("listed (a, b)", "SELECT id, name FROM t WHERE n > 10"),
    (
        "joined",
        "SELECT t.id AS k, u.id, t.name, u.price FROM t LEFT JOIN u ON u.t = t.id WHERE t.n <> 7",
    ),
    ("three", "SELECT u.id, t.name, w.n FROM u JOIN t ON u.t = t.id JOIN t w ON w.id = t.id + 0"),
    ("common", "SELECT * FROM t NATURAL JOIN (SELECT id, price FROM u) d"),
    ("named", "SELECT * FROM t JOIN (SELECT id, price FROM u) d USING (id)"),
    (
        "grouped",
        "SELECT n, COUNT(*), SUM(id) AS s, MAX(name) AS m FROM t GROUP BY n HAVING COUNT(*) > 0",
    ),
    ("united", "SELECT id, name FROM t UNION ALL SELECT id + 100, CONCAT('u', price) FROM u"),
    ("nested", "SELECT a AS x, b FROM listed WHERE b LIKE '%s%'"),
    ("above", "SELECT p.id, g.s FROM plain p JOIN grouped g ON g.n = p.n"),
    (
        "within",
        "SELECT id, (SELECT MAX(price) FROM u WHERE u.t = t.id) AS p FROM t WHERE EXISTS (SELECT 1 FROM u)",
    ),
    (
        "listed_in",
        "SELECT id FROM t WHERE id IN (SELECT t FROM u) AND n IN (10, 20) AND NOT id = 2",
    ),
    (
        "computed",
        "SELECT id, CASE WHEN n > 10 THEN 'big' ELSE 'it''s \\\\ small' END AS size, n DIV 3 AS d, n MOD 3 AS m, \
         IFNULL(name, '-') AS i, CAST(n AS CHAR(10)) AS c, day + INTERVAL 1 DAY AS nd, YEAR(day) AS y, \
         COALESCE(day, '2000-01-01') AS co, SUBSTRING(name, 1, 2) AS ss, UPPER(name) AS up, n BETWEEN 5 AND 10 AS bt, \
         name IS NULL AS isn, CONCAT(name, '-', id) AS cc, ROUND(n / 3, 2) AS r, LENGTH(name) AS l, \
         IF(n = 10, 1, 0) AS f, n <=> 10 AS ns, -n AS neg, n & 3 AS ba, DATE_FORMAT(day, '%Y-%m') AS df FROM t",
    ),
    ("ordered", "SELECT id, n FROM t ORDER BY n DESC, id LIMIT 2"),
    ("windowed", "SELECT id, ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) AS r FROM t"),
    ("distinct_n", "SELECT DISTINCT n FROM t"),
];

/// A source with a replica, and the function to wait for positions.
struct Followed {
    source: Peer,
    writer: Conn,
    server: TestServer,
    position: &'static str,
    wait: &'static str,
}

impl Followed {
    fn start(kind: Kind) -> Self {
        let source = Peer::start(kind, &[]).unwrap();
        let mut writer = source.connect().unwrap();
        TABLES.iter().for_each(|statement| writer.query_drop(statement).unwrap());
        writer.query_drop("USE shop").unwrap();
        for (name, select) in VIEWS.iter().take(8) {
            writer.query_drop(format!("CREATE VIEW {name} AS {select}")).unwrap();
        }
        let server = TestServer::following(&source.follower_url("shop"));
        let (position, wait) = match kind.is_mariadb() {
            true => ("@@GLOBAL.gtid_binlog_pos", "MASTER_GTID_WAIT"),
            false => ("@@GLOBAL.gtid_executed", "WAIT_FOR_EXECUTED_GTID_SET"),
        };
        let mut reader = connect(&server);
        for table in ["shop.t", "shop.u"] {
            for _ in 0..3_000 {
                if !matches!(reader.query(&format!("SELECT id FROM {table}")), Answer::Error(_)) {
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        for (name, select) in VIEWS.iter().skip(8) {
            writer.query_drop(format!("CREATE VIEW {name} AS {select}")).unwrap();
        }
        Self { source, writer, server, position, wait }
    }

    /// The answers of both, after the source's position was applied here.
    fn both(&mut self, statement: &str) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
        let set: Option<String> =
            self.writer.query_first(format!("SELECT {}", self.position)).unwrap();
        let mut reader = connect(&self.server);
        let waited = reader.query(&format!("SELECT {}('{}', 60)", self.wait, set.unwrap()));
        assert_eq!(waited.value(), "0");
        let rows: Vec<Row> = self.writer.query(statement).unwrap();
        let theirs =
            rows.into_iter().map(|row| row.unwrap().into_iter().map(shown).collect()).collect();
        let ours = match reader.query(statement) {
            Answer::Rows(rows) => rows
                .into_iter()
                .map(|row| {
                    row.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".into())).collect()
                })
                .collect(),
            other => vec![vec![format!("{other:?}")]],
        };
        (ours, theirs)
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true),
    }
}

fn views_are_what_they_are_there(kind: Kind) {
    let mut followed = Followed::start(kind);
    let mut wrong = Vec::new();
    for (name, _) in VIEWS {
        let name = name.split(' ').next().unwrap();
        let statement = format!("SELECT * FROM shop.{name} ORDER BY 1, 2");
        let statement = if name.starts_with("distinct") || name.ends_with("_in") {
            statement.replace(", 2", "")
        } else {
            statement
        };
        let (ours, theirs) = followed.both(&statement);
        if ours != theirs {
            wrong.push(format!("{name}\n  here  {ours:?}\n  there {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What changes there changes here, with rows in its tables.
    followed.writer.query_drop("ALTER TABLE t ADD COLUMN extra INT DEFAULT 5").unwrap();
    followed.writer.query_drop("INSERT INTO t (id, name, n) VALUES (4, 'four', 40)").unwrap();
    let (ours, theirs) = followed.both("SELECT * FROM shop.plain ORDER BY 1");
    assert_eq!(ours, theirs);
    followed
        .writer
        .query_drop("CREATE OR REPLACE VIEW plain AS SELECT id, extra, n FROM t")
        .unwrap();
    let (ours, theirs) = followed.both("SELECT * FROM shop.above ORDER BY 1, 2");
    assert_eq!(ours, theirs);
    let (ours, theirs) = followed.both("SELECT extra FROM shop.plain WHERE id = 4");
    assert_eq!((ours, theirs.len()), (theirs.clone(), 1));
    let shown =
        "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop' ORDER BY 1";
    let (ours, theirs) = followed.both(shown);
    assert_eq!(ours, theirs);
    let (ours, theirs) = followed.both("SHOW FULL TABLES FROM shop WHERE Table_type = 'VIEW'");
    assert_eq!(ours, theirs);
    followed.writer.query_drop("DROP VIEW plain").unwrap();
    followed.both("SELECT 1");
    let mut reader = connect(&followed.server);
    assert_eq!(reader.query("SELECT * FROM shop.plain").error(), 1146);
    assert_eq!(reader.query("SELECT * FROM shop.above").error(), 1356);
    assert_eq!(reader.query("DROP VIEW shop.grouped").error(), 1290);
    assert_eq!(reader.query("CREATE OR REPLACE VIEW shop.grouped AS SELECT 1").error(), 1290);
    drop(followed.source);
}

#[test]
fn views_of_a_mysql_are_read() {
    views_are_what_they_are_there(Kind::MySql97);
}

#[test]
fn views_of_a_mariadb_are_read() {
    views_are_what_they_are_there(Kind::MariaDb1011);
}
