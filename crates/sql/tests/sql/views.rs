//! Views, beyond what the scripts compare with MySQL: they persist, belong to accounts, are never served by a plan of
//! an old definition, and are bounded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_sql::{Access, Identity, Right, Session};

async fn all(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = run(session, statement).await {
            panic!("{statement}: {error}");
        }
    }
}

const TABLES: [&str; 3] = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY (n))",
    "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 20, 'c')",
    "CREATE VIEW v AS SELECT id, n FROM t WHERE id > 1",
];

/// Runs a statement so often that its plan is cached and used.
async fn asked(session: &mut Session, statement: &str, expected: &str) {
    for time in 0..4 {
        assert_eq!(rows(session, statement).await, expected, "{statement}, time {time}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_there_after_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let shown = {
        let server = Server::at(directory.path());
        let mut session = server.session();
        all(&mut session, &TABLES).await;
        all(
            &mut session,
            &[
                "CREATE VIEW w (a, b) AS SELECT v.id, t.s FROM v JOIN t ON t.id = v.id",
                "CREATE VIEW gone AS SELECT 1",
                "DROP VIEW gone",
            ],
        )
        .await;
        let shown = rows(&mut session, "SHOW CREATE VIEW w").await;
        server.database.close().unwrap();
        shown
    };
    let server = Server::at(directory.path());
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SELECT * FROM w ORDER BY a").await, "2|b\n3|c");
    assert_eq!(rows(&mut session, "SHOW CREATE VIEW w").await, shown);
    assert_eq!(rows(&mut session, "SHOW TABLES").await, "t\nv\nw");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_may_stand_before_its_date() {
    let server = Server::new();
    let mut session = server.session();
    let made = [
        "CREATE TABLE t (d DATE PRIMARY KEY)",
        "INSERT INTO t VALUES ('2020-01-31')",
        "CREATE VIEW v AS SELECT INTERVAL 1 DAY + d AS e FROM t",
    ];
    all(&mut session, &made).await;
    assert_eq!(rows(&mut session, "SELECT * FROM v").await, "2020-02-01");
}

#[tokio::test(flavor = "multi_thread")]
async fn clauses_of_json_value_are_refused_in_views() {
    let server = Server::new();
    let mut session = server.session();
    let made = "CREATE VIEW v AS SELECT JSON_VALUE('[1]', '$[0]' RETURNING SIGNED) AS a";
    let error = run(&mut session, made).await.unwrap_err();
    assert!(error.to_string().contains("a view with clauses of JSON_VALUE"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_makes_the_same_view() {
    let server = Server::new();
    let mut session = server.session();
    all(&mut session, &TABLES).await;
    all(
        &mut session,
        &["CREATE VIEW w (`a``b`, c) AS SELECT *, 'it''s \\\\' FROM (SELECT n FROM v) d WHERE n IS NOT NULL"],
    )
    .await;
    let made = run(&mut session, "SHOW CREATE VIEW w").await.unwrap().sets.remove(0);
    let names = ["View", "Create View", "character_set_client", "collation_connection"];
    assert_eq!(made.names(), names);
    let made = &made.rows[0];
    assert_eq!(
        made[1],
        "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `w` (`a``b`,`c`) AS select \
         `d`.`n` AS `n`, 'it\\'s \\\\' AS `it's \\` from (select `test`.`v`.`n` AS `n` from `test`.`v`) `d` \
         where `d`.`n` is not null"
    );
    assert_eq!((made[2].as_str(), made[3].as_str()), ("utf8mb4", "utf8mb4_0900_ai_ci"));
    let before = rows(&mut session, "SELECT * FROM w").await;
    all(&mut session, &["DROP VIEW w", &made[1]]).await;
    assert_eq!(rows(&mut session, "SELECT * FROM w").await, before);
    let again = run(&mut session, "SHOW CREATE TABLE w").await.unwrap().sets.remove(0);
    assert_eq!(&again.rows[0], made);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plan_of_what_a_view_was_answers() {
    let server = Server::new();
    let mut session = server.session();
    let mut other = server.session();
    all(&mut session, &TABLES).await;
    let one = "SELECT n FROM v WHERE id = 2";
    let many = "SELECT v.id, t.s FROM v JOIN t ON t.id = v.id ORDER BY v.id";
    asked(&mut session, one, "20").await;
    asked(&mut session, many, "2|b\n3|c").await;
    // A new definition.
    all(&mut other, &["CREATE OR REPLACE VIEW v AS SELECT id, n + 1 AS n FROM t"]).await;
    asked(&mut session, one, "21").await;
    asked(&mut session, many, "1|a\n2|b\n3|c").await;
    // A nested view, and the table below.
    all(&mut other, &["CREATE VIEW o AS SELECT id, n FROM v WHERE id < 3"]).await;
    asked(&mut session, "SELECT n FROM o WHERE id = 2", "21").await;
    all(&mut other, &["ALTER VIEW v AS SELECT id, n * 2 AS n FROM t"]).await;
    asked(&mut session, "SELECT n FROM o WHERE id = 2", "40").await;
    all(&mut other, &["ALTER TABLE t MODIFY n BIGINT"]).await;
    asked(&mut session, "SELECT n FROM o WHERE id = 2", "40").await;
    all(&mut session, &["PREPARE p FROM 'SELECT n FROM v WHERE id = ?'", "SET @i = 2"]).await;
    asked(&mut session, "EXECUTE p USING @i", "40").await;
    all(&mut other, &["ALTER VIEW v AS SELECT id, n * 2 AS n FROM t WHERE id <> 2"]).await;
    asked(&mut session, "EXECUTE p USING @i", "").await;
    all(&mut other, &["ALTER VIEW v AS SELECT id, n * 2 AS n FROM t"]).await;
    asked(&mut session, "EXECUTE p USING @i", "40").await;
    // A temporary table hides it for one session.
    all(&mut other, &["CREATE TEMPORARY TABLE v (id INT, n INT)", "INSERT INTO v VALUES (2, 7)"])
        .await;
    asked(&mut other, one, "7").await;
    asked(&mut session, one, "40").await;
    // A table replaces the view, and a view replaces a table.
    all(
        &mut session,
        &[
            "DROP VIEW v",
            "CREATE TABLE v (id INT PRIMARY KEY, n INT)",
            "INSERT INTO v VALUES (2, 5)",
        ],
    )
    .await;
    asked(&mut session, one, "5").await;
    all(&mut session, &["DROP TABLE v", "CREATE VIEW v AS SELECT 2 AS id, 6 AS n"]).await;
    asked(&mut session, one, "6").await;
    all(&mut session, &["DROP VIEW v"]).await;
    asked(&mut session, one, "1146 Table 'test.v' doesn't exist").await;
    let invalid = "1356 View 'test.o' references invalid table(s) or column(s) or function(s) or definer/invoker \
                   of view lack rights to use them";
    asked(&mut session, "SELECT n FROM o WHERE id = 2", invalid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_reads_the_view_that_was() {
    let server = Server::new();
    let (mut session, mut other) = (server.session(), server.session());
    all(&mut session, &TABLES).await;
    all(&mut session, &["START TRANSACTION WITH CONSISTENT SNAPSHOT"]).await;
    all(&mut other, &["ALTER VIEW v AS SELECT 77 AS n"]).await;
    assert_eq!(rows(&mut session, "SELECT n FROM v WHERE id = 2").await, "20");
    all(&mut session, &["UPDATE t SET n = 99 WHERE id = 2"]).await;
    asked(&mut session, "SELECT n FROM v WHERE id = 2", "99").await;
    all(&mut session, &["COMMIT"]).await;
    assert_eq!(rows(&mut session, "SELECT n FROM v").await, "77");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_a_view_may_read_what_is_below() {
    let server = Server::new();
    let mut root = server.session();
    all(&mut root, &TABLES).await;
    let session = |tables: &[(&str, Access)]| {
        let right = |(table, access): &(&str, Access)| Right {
            database: "test".to_owned(),
            table: (*table).to_owned(),
            access: *access,
        };
        let rights = Some(tables.iter().map(right).collect());
        server.instance.session(8, Identity { user: "joe".into(), host: "h".into(), rights })
    };
    let invalid = "1356 View 'test.v' references invalid table(s) or column(s) or function(s) or definer/invoker \
                   of view lack rights to use them";
    let one = "SELECT n FROM v WHERE id = 2";
    asked(&mut root, one, "20").await;
    asked(&mut session(&[("v", Access::Read), ("t", Access::Read)]), one, "20").await;
    asked(&mut session(&[("v", Access::Read)]), one, invalid).await;
    let denied = "1142 SELECT command denied to user 'joe'@'h' for table 'v'";
    asked(&mut session(&[("t", Access::Read)]), one, denied).await;
    let mut reader = session(&[("v", Access::Read)]);
    assert_eq!(rows(&mut reader, "SHOW TABLES").await, "v");
    let mut other = session(&[("t", Access::Read)]);
    assert_eq!(rows(&mut other, "SHOW TABLES").await, "t");
    let seen = "SELECT TABLE_NAME FROM information_schema.VIEWS UNION \
                SELECT DISTINCT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'test'";
    assert_eq!(rows(&mut other, seen).await, "t");
    let denied = "1142 SHOW command denied to user 'joe'@'h' for table 'v'";
    assert_eq!(rows(&mut other, "SHOW CREATE VIEW v").await, denied);
    let mut writer = session(&[("*", Access::Write)]);
    for (statement, expected) in [
        (
            "CREATE VIEW x AS SELECT 1",
            "1142 CREATE VIEW command denied to user 'joe'@'h' for table 'x'",
        ),
        (
            "ALTER VIEW v AS SELECT 1",
            "1142 CREATE VIEW command denied to user 'joe'@'h' for table 'v'",
        ),
        ("DROP VIEW v", "1142 DROP command denied to user 'joe'@'h' for table 'v'"),
    ] {
        assert_eq!(rows(&mut writer, statement).await, expected, "{statement}");
    }
    let mut maker = session(&[("x", Access::Define), ("v", Access::Read)]);
    assert_eq!(rows(&mut maker, "CREATE VIEW x AS SELECT * FROM v").await, invalid);
    let denied = "1142 SELECT command denied to user 'joe'@'h' for table 't'";
    assert_eq!(rows(&mut maker, "CREATE VIEW x AS SELECT * FROM t").await, denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_within_views_are_bounded() {
    let server = Server::new();
    let mut session = server.session();
    all(
        &mut session,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "CREATE VIEW d0 AS SELECT id FROM t",
        ],
    )
    .await;
    let mut last = String::new();
    for level in 1..12 {
        let below = level - 1;
        let view = format!(
            "CREATE VIEW d{level} AS SELECT a.id FROM d{below} a JOIN d{below} b ON a.id = b.id"
        );
        last = rows(&mut session, &view).await;
        if !last.is_empty() {
            break;
        }
    }
    assert!(last.starts_with("1038 The views of the statement read more than"), "{last}");
    all(&mut session, &["CREATE VIEW c0 AS SELECT id FROM t"]).await;
    for level in 1..80 {
        last =
            rows(&mut session, &format!("CREATE VIEW c{level} AS SELECT id FROM c{}", level - 1))
                .await;
        if !last.is_empty() {
            break;
        }
    }
    assert_eq!(last, "1473 Too high level of nesting for select");
}

/// Conditions on a view use the indexes of the tables below, as with a derived table.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_reach_the_tables_below() {
    let server = Server::new();
    let mut session = server.session();
    all(&mut session, &TABLES).await;
    all(&mut session, &["CREATE VIEW w AS SELECT id AS k, n AS m FROM v"]).await;
    for (of_view, of_query) in [
        (
            "SELECT n FROM v WHERE id = 2",
            "SELECT n FROM (SELECT id, n FROM t WHERE id > 1) v WHERE id = 2",
        ),
        (
            "SELECT k FROM w WHERE m = 20",
            "SELECT k FROM (SELECT id AS k, n AS m FROM (SELECT id, n FROM t WHERE id > 1) v) w WHERE m = 20",
        ),
        (
            "SELECT COUNT(*) FROM w",
            "SELECT COUNT(*) FROM (SELECT id AS k FROM (SELECT id FROM t WHERE id > 1) v) w",
        ),
    ] {
        let view = rows(&mut session, &format!("EXPLAIN {of_view}")).await;
        let query = rows(&mut session, &format!("EXPLAIN {of_query}")).await;
        assert_eq!(view, query, "{of_view}");
    }
}
