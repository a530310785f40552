//! Groups with their best rows: the expected results are those of Sphinx 2.2.11 with the same rows. It has no `GROUP 1
//! BY`; its GROUP BY means the same.

use remora_engine::{Change, ChangeBatch, ColumnType, Database, Row, TableChanges, Value};
use remora_mysql::ErrorCode;
use remora_sql::{Cell, Column, Outcome, Reply, Result, Session};

use super::{
    all, filled, sets,
    support::{self, Answers, Server, run},
};

/// The table of the results, with numbers to group by and texts that differ in case.
pub async fn numbered(session: &mut Session) {
    filled(session, "").await;
    all(
        session,
        &[
            "ALTER TABLE t ADD COLUMN g INT NOT NULL DEFAULT 0, ADD COLUMN h INT NOT NULL DEFAULT 0, \
             ADD COLUMN s VARCHAR(9) NOT NULL DEFAULT ''",
            "UPDATE t SET g = n % 3, h = n % 2, s = IF(n % 2, 'Odd', 'even')",
        ],
    )
    .await;
}

const BEST_ROWS: &[(&str, &str)] = &[
    (
        "SELECT id, g, WEIGHT() FROM t WHERE MATCH('alpha') GROUP 1 BY g",
        "12|1|2481 1|0|1486 3|2|1486",
    ),
    (
        "SELECT id, g, WEIGHT(), COUNT(*), GROUPBY() FROM t WHERE MATCH('alpha') GROUP 0 BY g",
        "12|1|2481|3|1 1|0|1486|2|0 3|2|1486|2|2",
    ),
    (
        "SELECT id, g, WEIGHT(), COUNT(*) FROM t WHERE MATCH('alpha') GROUP BY g WITHIN GROUP ORDER BY id DESC",
        "12|1|2481|3 9|2|1486|2 11|0|1486|2",
    ),
    (
        "SELECT id, g, n, WEIGHT(), COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP BY g WITHIN GROUP ORDER BY n DESC ORDER BY c DESC",
        "12|1|7|3500|3 21|2|11|1506|3 11|0|6|1493|2",
    ),
    (
        "SELECT id, g, n, WEIGHT(), COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g",
        "3|2|2|3502|3 9|2|5|3502|3 12|1|7|3500|3 2|1|1|2496|3 1|0|0|2500|2 11|0|6|1493|2",
    ),
    (
        "SELECT id, g, n, WEIGHT(), COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g WITHIN GROUP ORDER BY n DESC",
        "12|1|7|3500|3 8|1|4|1493|3 21|2|11|1506|3 9|2|5|3502|3 11|0|6|1493|2 1|0|0|2500|2",
    ),
    (
        "SELECT id, g, n, WEIGHT(), COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g WITHIN GROUP ORDER BY n DESC ORDER BY c DESC, id ASC",
        "12|1|7|3500|3 8|1|4|1493|3 21|2|11|1506|3 9|2|5|3502|3 11|0|6|1493|2 1|0|0|2500|2",
    ),
    (
        "SELECT id, g, n, WEIGHT() w, COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g ORDER BY g ASC",
        "1|0|0|2500|2 11|0|6|1493|2 12|1|7|3500|3 2|1|1|2496|3 3|2|2|3502|3 9|2|5|3502|3",
    ),
    (
        "SELECT id, g, n, COUNT(*) c FROM t GROUP 3 BY g LIMIT 2,4",
        "11|0|6|4 2|1|1|4 8|1|4|4 12|1|7|4",
    ),
    (
        "SELECT id, g, COUNT(DISTINCT h), COUNT(*) c FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g HAVING c > 2",
        "3|2|2|3 9|2|2|3 12|1|2|3 2|1|2|3",
    ),
    (
        "SELECT id, g, SUM(n) x, COUNT(*) FROM t WHERE MATCH('alpha | beta') GROUP 2 BY g ORDER BY x DESC, id DESC",
        "3|2|18|3 9|2|18|3 12|1|12|3 2|1|12|3 1|0|6|2 11|0|6|2",
    ),
    (
        "SELECT id, s, COUNT(*) FROM t WHERE MATCH('alpha | beta') GROUP BY s WITHIN GROUP ORDER BY n DESC",
        "21|Odd|4 11|even|4",
    ),
    (
        "SELECT id, s, GROUPBY() FROM t WHERE MATCH('alpha') GROUP 1 BY s ORDER BY GROUPBY() DESC",
        "12|Odd|Odd 1|even|even",
    ),
    (
        "SELECT id, g, h, n, COUNT(*) FROM t WHERE MATCH('alpha | beta') GROUP BY g, h WITHIN GROUP ORDER BY n DESC",
        "3|2|0|2|1 12|1|1|7|2 21|2|1|11|2 8|1|0|4|1 11|0|0|6|2",
    ),
    (
        "SELECT id, g, h, n, COUNT(*) FROM t WHERE MATCH('alpha | beta') GROUP 2 BY h WITHIN GROUP ORDER BY n DESC",
        "21|2|1|11|4 12|1|1|7|4 11|0|0|6|4 8|1|0|4|4",
    ),
    (
        "SELECT id, WEIGHT() w, n%2 m, GROUPBY() FROM t WHERE MATCH('alpha | beta') GROUP 2 BY m WITHIN GROUP ORDER BY WEIGHT() ASC, id DESC",
        "21|1506|1|1 2|2496|1|1 11|1493|0|0 8|1493|0|0",
    ),
    (
        "SELECT id, WEIGHT() w, n%2 m, GROUPBY() FROM t WHERE MATCH('alpha | beta') GROUP BY m WITHIN GROUP ORDER BY id DESC ORDER BY GROUPBY() DESC",
        "21|1506|1|1 11|1493|0|0",
    ),
    (
        "SELECT id, COUNT(*) FROM t WHERE MATCH('alpha') GROUP 1 BY h ORDER BY COUNT(*) ASC",
        "12|3 1|4",
    ),
    (
        "SELECT id, COUNT(*) FROM t WHERE MATCH('alpha') GROUP 1 BY g ORDER BY COUNT(*) ASC, id DESC",
        "3|2 1|2 12|3",
    ),
    (
        "SELECT id, g, n FROM t GROUP BY g WITHIN GROUP ORDER BY WEIGHT() DESC, n DESC ORDER BY n ASC",
        "14|0|9 20|1|10 21|2|11",
    ),
    (
        "SELECT id, g FROM t WHERE MATCH('alpha') GROUP 9999999999 BY g",
        "12|1 2|1 8|1 1|0 11|0 3|2 9|2",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn groups_show_their_best_rows() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    for (statement, expected) in BEST_ROWS {
        assert_eq!(sets(&mut session, statement).await, *expected, "{statement}");
        // The second run may use a cached plan.
        assert_eq!(sets(&mut session, statement).await, *expected, "again: {statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn best_rows_go_together_with_everything_else() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    all(
        &mut session,
        &[
            "CREATE TABLE o (t INT PRIMARY KEY, k VARCHAR(9))",
            "INSERT INTO o VALUES (1, 'x'), (2, 'y'), (9, NULL), (12, 'X')",
        ],
    )
    .await;
    for (statement, expected) in [
        // Rows with and without NULL; texts that are equal in their collation.
        (
            "SELECT g, k, COUNT(*) FROM t JOIN o ON o.t = t.id GROUP 1 BY g ORDER BY g",
            "0|x|1 1|y|2 2|NULL|1",
        ),
        (
            "SELECT k, t.id, COUNT(*) FROM t JOIN o ON o.t = t.id WHERE k IS NOT NULL GROUP BY k WITHIN GROUP ORDER BY t.id DESC",
            "y|2|1 X|12|2",
        ),
        // Within subqueries, each with its own groups.
        (
            "SELECT SUM(n), COUNT(*) FROM (SELECT n FROM t WHERE MATCH('alpha') GROUP 2 BY g) best",
            "21|6",
        ),
        (
            "SELECT id FROM o JOIN t ON t.id = o.t WHERE t IN (SELECT id FROM t WHERE MATCH('alpha') GROUP 1 BY g) ORDER BY id",
            "1 12",
        ),
        (
            "(SELECT id FROM t GROUP 1 BY g WITHIN GROUP ORDER BY n DESC) UNION ALL SELECT 0 ORDER BY id",
            "0 14 20 21",
        ),
        (
            "SELECT COUNT(*), GROUP_CONCAT(n ORDER BY n) FROM t GROUP 2 BY h ORDER BY h",
            "6|0,2,4,6,8,10 6|0,2,4,6,8,10 6|1,3,5,7,9,11 6|1,3,5,7,9,11",
        ),
        ("SELECT g FROM t WHERE id > 100 GROUP 2 BY g WITHIN GROUP ORDER BY n ASC", ""),
    ] {
        assert_eq!(sets(&mut session, statement).await, expected, "{statement}");
    }
    for (statement, part) in [
        ("SELECT id FROM t WHERE n > 1 WITHIN GROUP ORDER BY n", "error in your SQL syntax"),
        ("SELECT id FROM t GROUP -1 BY g", "error in your SQL syntax"),
        ("SELECT id FROM t GROUP BY g WITHIN GROUP ORDER BY", "error in your SQL syntax"),
        (
            "SELECT id FROM t GROUP BY g WITHIN GROUP ORDER BY MAX(n)",
            "Invalid use of group function",
        ),
        (
            "SELECT id, MAX(n) m FROM t GROUP BY g WITHIN GROUP ORDER BY m",
            "Invalid use of group function",
        ),
        ("SELECT id, GROUPBY() FROM t", "GROUPBY() is allowed only in GROUP BY queries"),
        ("SELECT g, n FROM t GROUP 1 BY g WITH ROLLUP", "WITH ROLLUP"),
        ("CREATE VIEW v AS SELECT g FROM t GROUP 2 BY g", "in a view"),
        ("SELECT n, g FROM t GROUP BY g", "only_full_group_by"),
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert!(error.message.contains(part), "{statement}: {}", error.message);
    }
}

/// The best rows of random groups are those that a query for each group returns.
#[tokio::test(flavor = "multi_thread")]
async fn best_rows_are_those_that_a_query_of_each_group_finds() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &[
            "CREATE TABLE r (id INT PRIMARY KEY, g INT, a INT, b VARCHAR(9), c DOUBLE) ENGINE=InnoDB",
            "INSERT INTO r SELECT n, n * 7 % 31, IF(n % 13 = 0, NULL, n * 31 % 17), CHAR(IF(n % 2, 65, 97) + n * 11 % 23 USING utf8mb4), n / 7 - 40 \
             FROM (WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT n FROM s) s",
        ],
    )
    .await;
    for order in ["a", "a DESC", "b, a DESC", "b DESC, c", "c DESC", "a IS NULL, b"] {
        for count in [1, 3] {
            let best = format!(
                "SELECT g, id, a, b FROM r GROUP {count} BY g WITHIN GROUP ORDER BY {order} ORDER BY g"
            );
            let mut expected = Vec::new();
            for group in 0..31 {
                let one = format!(
                    "SELECT g, id, a, b FROM r WHERE g = {group} ORDER BY {order}, id LIMIT {count}"
                );
                expected.push(sets(&mut session, &one).await);
            }
            let ours = sets(&mut session, &best).await;
            assert_eq!(ours, expected.join(" "), "{best}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_show_what_the_best_rows_of_groups_have() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    for (statement, expected) in [
        ("SELECT id FROM t WHERE MATCH('alpha') LIMIT 0 FACET g, n BY g", " ; 1|7|3 0|0|2 2|2|2"),
        ("SELECT id FROM t WHERE MATCH('alpha') LIMIT 0 FACET n BY g, h", " ; 7|2 0|2 2|1 4|1 5|1"),
        (
            "SELECT id FROM t WHERE MATCH('alpha') LIMIT 0 FACET n, s BY g ORDER BY n ASC",
            " ; 0|even|2 2|even|2 7|Odd|3",
        ),
        (
            "SELECT id FROM t WHERE MATCH('alpha') LIMIT 0 FACET WEIGHT() BY g",
            " ; 2481|3 1486|2 1486|2",
        ),
        ("SELECT id FROM t WHERE id < 9 ORDER BY n DESC LIMIT 2 FACET n BY g", "8 5 ; 0|2 1|2 2|1"),
        (
            "SELECT id FROM t WHERE MATCH('alpha') LIMIT 0 FACET g ORDER BY WEIGHT() DESC",
            " ; 1|3 0|2 2|2",
        ),
    ] {
        assert_eq!(sets(&mut session, statement).await, expected, "{statement}");
    }
    session.take_many_results(false);
    let error = run(&mut session, "SELECT id FROM t FACET g").await.unwrap_err();
    assert_eq!(error.code.number(), 1312, "{error}");
    assert_eq!(sets(&mut session, "SELECT id FROM t WHERE id = 1; SELECT 2").await, "1 ; 2");
}

/// Each part of the statement takes less than its time limit, both together take more.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_and_its_facets_have_their_time_together() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &["CREATE TABLE w (id INT PRIMARY KEY, s TEXT) words='s'", "INSERT INTO w VALUES (1, 'a')"],
    )
    .await;
    let slow = "SELECT id FROM w WHERE MATCH('a') AND SLEEP(2) = 0 LIMIT 5";
    assert_eq!(sets(&mut session, &format!("{slow} OPTION max_query_time=3500")).await, "1");
    // With `max_query_time` what was found until then is the answer, with a warning.
    let own = format!("{slow} OPTION max_query_time=3500 FACET id");
    assert_eq!(sets(&mut session, &own).await, "1 ; ");
    let warning = "Warning|1000|query time exceeded max_query_time";
    assert_eq!(sets(&mut session, "SHOW WARNINGS").await, warning);
    all(&mut session, &["SET max_execution_time = 3500"]).await;
    let error = run(&mut session, &format!("{slow} FACET id")).await.unwrap_err();
    assert_eq!(error.code.number(), 3024, "{error}");
    // Each statement of a multi-statement text has its own time limit.
    assert_eq!(sets(&mut session, &format!("{slow}; {slow}")).await, "1 ; 1");
}

/// Inserts a row whenever a result set has ended.
struct Writing<'s> {
    database: &'s Database,
    answers: Answers,
    next: i64,
}

impl Reply for Writing<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.answers.columns(columns)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.answers.row(cells)
    }

    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()> {
        self.next += 1;
        let changes = vec![Change::Put(Row::from(vec![Value::Int(self.next), Value::Int(1)]))];
        let tables = vec![TableChanges { table: "m".into(), changes }];
        self.database.apply(ChangeBatch { tables, ..ChangeBatch::default() }).unwrap();
        self.answers.done(outcome, more)
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_facets_than_the_limit_are_refused_by_number() {
    let server = Server::new();
    let mut session = server.session();
    numbered(&mut session).await;
    let with = |count: usize| format!("SELECT COUNT(*) FROM t{}", " FACET g LIMIT 1".repeat(count));
    let reply = run(&mut session, &with(32)).await.unwrap();
    assert_eq!(reply.sets.len(), 33);
    let error = run(&mut session, &with(33)).await.unwrap_err();
    let expected = "This SELECT has 33 FACETs, and at most 32 are answered: ask for the others by another SELECT";
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ParseError, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_facets_of_a_statement_read_one_moment() {
    let server = Server::new();
    let mut session = server.session();
    let kind = ColumnType::Int(32);
    let row = |id: i64| Row::from(vec![Value::Int(id), Value::Int(1)]);
    server.table("m", &[("id", kind), ("g", kind)], 1, (1..=3).map(row).collect());
    let facets = "SELECT COUNT(*) FROM m FACET g FACET g";
    for (next, begin, statements, counts) in [
        (
            100,
            "SET autocommit = 1",
            format!("{facets}; {facets}"),
            ["3", "1|3", "1|3", "6", "1|6", "1|6"],
        ),
        (
            200,
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            format!("BEGIN; {facets}; {facets}; COMMIT"),
            ["10", "1|10", "1|10", "13", "1|13", "1|13"],
        ),
    ] {
        run(&mut session, begin).await.unwrap();
        let mut reply = Writing { database: &server.database, answers: Answers::default(), next };
        session.query(statements.as_bytes(), true, &mut reply).await.unwrap();
        let sets = reply.answers.sets.iter().filter(|set| !set.columns.is_empty());
        assert_eq!(sets.map(support::Answer::text).collect::<Vec<_>>(), counts, "{statements}");
    }
}
