//! EXPLAIN tells what runs: which key finds the rows, how many are looked at, in which order tables are read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::Write;

use remora_sql::Session;
use support::{Server, rows, run};

const ORDERS: u64 = 30_000;
const USERS: u64 = 2_000;

async fn shop(server: &Server) -> Session {
    let mut session = server.session();
    for table in [
        "CREATE TABLE users (id INT NOT NULL PRIMARY KEY, mail VARCHAR(40) NOT NULL, country CHAR(2), \
         UNIQUE KEY mail (mail), KEY country (country))",
        "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, user INT NOT NULL, state TINYINT, \
         made DATETIME NOT NULL, total DECIMAL(8,2), KEY user_made (user, made), KEY made (made), \
         KEY state (state))",
    ] {
        run(&mut session, table).await.unwrap();
    }
    let mut users = "INSERT INTO users VALUES ".to_owned();
    for id in 0..USERS {
        let comma = if id > 0 { "," } else { "" };
        let country = ["de", "fr", "jp", "br"][id as usize % 4];
        write!(users, "{comma}({id},'u{id}@x','{country}')").unwrap();
    }
    run(&mut session, &users).await.unwrap();
    for from in (0..ORDERS).step_by(10_000) {
        let mut orders = "INSERT INTO orders VALUES ".to_owned();
        for id in from..from + 10_000 {
            let comma = if id > from { "," } else { "" };
            let (user, state) = (id * 7 % USERS, if id % 100 == 0 { 1 } else { 2 });
            let day = 1 + id % 28;
            write!(orders, "{comma}({id},{user},{state},'2026-05-{day:02} 10:00:00',{})", id % 90)
                .unwrap();
        }
        run(&mut session, &orders).await.unwrap();
    }
    run(&mut session, "OPTIMIZE TABLE users, orders").await.unwrap();
    session
}

/// The columns of EXPLAIN without `partitions`, of each row.
async fn explained(session: &mut Session, statement: &str) -> Vec<Vec<String>> {
    let text = rows(session, &format!("EXPLAIN {statement}")).await;
    let lines = text.lines().map(|line| {
        let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
        assert_eq!(cells.len(), 12, "{statement}: {line}");
        cells.remove(3);
        cells
    });
    lines.collect()
}

/// What is to be told of a table: its name, then type, possible_keys, key, key_len, ref, rows and filtered.
type Told<'t> = [&'t str; 8];

async fn check(session: &mut Session, statement: &str, expected: &[Told<'_>]) {
    let found = explained(session, statement).await;
    let found: Vec<Vec<&str>> =
        found.iter().map(|row| row[2..10].iter().map(String::as_str).collect()).collect();
    let expected: Vec<Vec<&str>> = expected.iter().map(|row| row.to_vec()).collect();
    assert_eq!(found, expected, "{statement}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_names_the_key_and_counts_its_rows() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let null = "NULL";
    check(
        session,
        "SELECT * FROM users WHERE id = 7",
        &[["users", "const", "PRIMARY", "PRIMARY", "4", "const", "1", "100"]],
    )
    .await;
    check(
        session,
        "SELECT * FROM users u WHERE mail = 'u9@x'",
        &[["u", "const", "mail", "mail", "162", "const", "1", "100"]],
    )
    .await;
    check(
        session,
        "SELECT * FROM orders WHERE user = 5",
        &[["orders", "ref", "user_made", "user_made", "4", "const", "15", "100"]],
    )
    .await;
    check(
        session,
        "SELECT COUNT(*) FROM orders WHERE user IN (5, 6) AND made > '2026-05-09'",
        &[["orders", "range", "user_made,made", "user_made", "9", null, "21", "100"]],
    )
    .await;
    check(
        session,
        "SELECT id FROM orders WHERE user = 5 AND total > 50",
        &[["orders", "ref", "user_made", "user_made", "4", "const", "15", "40"]],
    )
    .await;
    check(
        session,
        "SELECT id FROM orders WHERE user = 5 ORDER BY made DESC LIMIT 3",
        &[["orders", "ref", "user_made", "user_made", "4", "const", "15", "100"]],
    )
    .await;
    check(
        session,
        "SELECT id FROM orders ORDER BY made DESC, id DESC LIMIT 20",
        &[["orders", "index", null, "made", "5", null, "20", "100"]],
    )
    .await;
    // One state has nearly all rows.
    check(
        session,
        "SELECT COUNT(*) FROM orders WHERE state = 2",
        &[["orders", "ALL", "state", null, null, null, "30000", "99"]],
    )
    .await;
    check(
        session,
        "SELECT COUNT(*) FROM orders WHERE state = 1",
        &[["orders", "ref", "state", "state", "2", "const", "300", "100"]],
    )
    .await;
    check(
        session,
        "SELECT COUNT(*) FROM orders WHERE user = 5 OR id < 100",
        &[[
            "orders",
            "index_merge",
            "PRIMARY,user_made",
            "user_made,PRIMARY",
            "4,4",
            null,
            "115",
            "100",
        ]],
    )
    .await;
    let counted = explained(session, "SELECT COUNT(*) FROM orders").await;
    assert_eq!(counted[0][10], "Select tables optimized away");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_joins_in_the_order_they_are_read_in() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let null = "NULL";
    check(
        session,
        "SELECT o.id, u.mail FROM orders o JOIN users u ON u.id = o.user WHERE o.state = 1",
        &[
            ["o", "ref", "state", "state", "2", "const", "300", "100"],
            ["u", "ALL", null, null, null, null, "2000", "100"],
        ],
    )
    .await;
    check(
        session,
        "SELECT o.id, u.mail FROM orders o JOIN users u ON u.id = o.user WHERE u.mail = 'u3@x'",
        &[
            ["u", "const", "mail", "mail", "162", "const", "1", "100"],
            ["o", "ref", "user_made", "user_made", "4", "test.u.id", "15", "100"],
        ],
    )
    .await;
    check(
        session,
        "SELECT o.id, u.mail FROM orders o JOIN users u ON u.id = o.user WHERE o.id IN (3, 4) AND o.total >= 0",
        &[
            ["o", "range", "PRIMARY", "PRIMARY", "4", null, "2", "100"],
            ["u", "eq_ref", "PRIMARY", "PRIMARY", "4", "test.o.user", "1", "100"],
        ],
    )
    .await;
    let told = explained(
        session,
        "SELECT u.id FROM users u WHERE u.country = 'xx' AND u.id IN (SELECT o.user FROM orders o)",
    )
    .await;
    let selects: Vec<_> =
        told.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[2].as_str())).collect();
    assert_eq!(selects, [("1", "PRIMARY", "u"), ("2", "SUBQUERY", "o")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_that_are_looked_at_are_those_of_the_key() {
    let server = Server::new();
    let mut session = shop(&server).await;
    // Deleted rows and new segments are counted as they are.
    run(&mut session, "DELETE FROM orders WHERE id < 2000 AND user = 5").await.unwrap();
    run(&mut session, "INSERT INTO orders VALUES (90000, 5, 1, '2026-06-01', 1)").await.unwrap();
    let counted = rows(&mut session, "SELECT COUNT(*) FROM orders WHERE user = 5").await;
    let told = explained(&mut session, "SELECT * FROM orders WHERE user = 5").await;
    let told = &told[0];
    assert_eq!((&told[5], &told[8]), (&"user_made".to_owned(), &counted.trim().to_owned()));
    // A session's own rows are told beside.
    run(&mut session, "BEGIN").await.unwrap();
    run(&mut session, "INSERT INTO orders VALUES (90001, 5, 1, '2026-06-01', 1)").await.unwrap();
    let told = explained(&mut session, "SELECT * FROM orders WHERE user = 5").await;
    assert!(told[0][10].contains("1 rows of the session"), "{told:?}");
}
