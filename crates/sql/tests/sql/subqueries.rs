//! Correlated subqueries over tables that count as large: each is planned once, runs for many outer rows at once where
//! that costs less, and means what a join says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::atomic::Ordering, time::Duration};

use crate::support::{Server, random::Random, rows, run};
use remora_sql::Session;
use tokio::time::timeout;

/// What takes so long does not end.
const NEVER: Duration = Duration::from_secs(120);

const USERS: u64 = 2_500;
const ORDERS: u64 = 9_000;

/// A subquery in the SELECT list of `users u`, and what it means.
const MEANINGS: [(&str, &str); 9] = [
    (
        "SELECT u.id, (SELECT COUNT(*) FROM orders o WHERE o.user = u.id AND o.total > u.most LIMIT 1) \
         FROM users u",
        "SELECT u.id, COUNT(o.id) FROM users u LEFT JOIN orders o ON o.user = u.id AND o.total > u.most \
         GROUP BY u.id",
    ),
    (
        "SELECT u.id, (SELECT COALESCE(SUM(o.total), -1) + COUNT(*) FROM orders o \
         WHERE o.user = u.id AND o.day < u.most) FROM users u",
        "SELECT u.id, COALESCE(SUM(o.total), -1) + COUNT(o.id) FROM users u LEFT JOIN orders o \
         ON o.user = u.id AND o.day < u.most GROUP BY u.id",
    ),
    (
        "SELECT u.id, EXISTS (SELECT 1 FROM orders o WHERE o.user = u.id AND o.total > u.most) FROM users u",
        "SELECT u.id, COUNT(o.id) > 0 FROM users u LEFT JOIN orders o ON o.user = u.id AND o.total > u.most \
         GROUP BY u.id",
    ),
    (
        "SELECT u.id, (SELECT o.total FROM orders o WHERE o.id = u.id * 3 AND o.total > u.most) FROM users u",
        "SELECT u.id, o.total FROM users u LEFT JOIN orders o ON o.id = u.id * 3 AND o.total > u.most",
    ),
    (
        "SELECT u.id, (SELECT o.total FROM orders o WHERE o.user = u.id ORDER BY o.day DESC, o.id LIMIT 1) \
         FROM users u",
        "SELECT u.id, o.total FROM users u LEFT JOIN (SELECT user, total, ROW_NUMBER() OVER \
         (PARTITION BY user ORDER BY day DESC, id) AS n FROM orders) o ON o.user = u.id AND o.n = 1",
    ),
    (
        "SELECT u.id, (SELECT SUM(o.total) FROM orders o JOIN users v ON v.id = o.day + 1 \
         WHERE o.user = u.id AND v.most < u.most) FROM users u",
        "SELECT u.id, SUM(t.total) FROM users u LEFT JOIN (SELECT o.user, o.total, v.most FROM orders o \
         JOIN users v ON v.id = o.day + 1) t ON t.user = u.id AND t.most < u.most GROUP BY u.id",
    ),
    (
        "SELECT u.id, (SELECT MAX(t.n) FROM (SELECT day, COUNT(*) AS n FROM orders o \
         WHERE o.user = u.id AND o.total > u.most GROUP BY day) t) FROM users u",
        "SELECT u.id, MAX(t.n) FROM users u LEFT JOIN (SELECT v.id, day, COUNT(*) AS n FROM orders o \
         JOIN users v ON o.user = v.id AND o.total > v.most GROUP BY v.id, day) t ON t.id = u.id GROUP BY u.id",
    ),
    (
        "SELECT u.id, (SELECT COUNT(*) FROM orders o WHERE o.name = u.name AND o.total > u.most) FROM users u",
        "SELECT u.id, COUNT(o.id) FROM users u LEFT JOIN orders o ON o.name = u.name AND o.total > u.most \
         GROUP BY u.id",
    ),
    (
        "SELECT u.id, u.most > (SELECT AVG(o.total) FROM orders o WHERE o.user = u.id AND o.day < u.most \
         AND EXISTS (SELECT 1 FROM orders p WHERE p.user = o.user AND p.day > u.most)) FROM users u",
        "SELECT u.id, u.most > AVG(o.total) FROM users u LEFT JOIN (SELECT user, total, day FROM orders \
         WHERE user IN (SELECT p.user FROM orders p JOIN users w ON w.id = p.user AND p.day > w.most)) o \
         ON o.user = u.id AND o.day < u.most GROUP BY u.id, u.most",
    ),
];

async fn shop(session: &mut Session) {
    let mut random = Random::seeded();
    for table in [
        "users (id INT PRIMARY KEY, most INT, name VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, KEY (name))",
        "orders (id INT PRIMARY KEY, user INT, total INT, day INT, \
         name VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, KEY (user), KEY (name), KEY (day))",
    ] {
        run(session, &format!("CREATE TABLE {table}")).await.unwrap();
    }
    let users = (0..USERS).map(|id| {
        let most = if id % 11 == 0 { "NULL".to_owned() } else { random.below(200).to_string() };
        format!("({id}, {most}, 'Name{}')", id % 700)
    });
    let users: Vec<String> = users.collect();
    run(session, &format!("INSERT INTO users VALUES {}", users.join(","))).await.unwrap();
    let orders = (0..ORDERS).map(|id| {
        let user = match id % 13 {
            0 => "NULL".to_owned(),
            _ => random.below(USERS).to_string(),
        };
        let (total, day) = (random.below(200), random.below(200));
        format!("({id}, {user}, {total}, {day}, 'nAME{}')", random.below(900))
    });
    let orders: Vec<String> = orders.collect();
    run(session, &format!("INSERT INTO orders VALUES {}", orders.join(","))).await.unwrap();
}

async fn sorted(session: &mut Session, statement: &str) -> Vec<String> {
    let told = rows(session, statement).await;
    let mut told: Vec<String> = told.lines().map(str::to_owned).collect();
    told.sort_unstable();
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correlated_subqueries_over_large_tables_mean_what_joins_say() {
    for most_rows in [0, 1_000, 200_000] {
        let server = Server::with_most_direct_rows(most_rows);
        let mut session = server.session();
        shop(&mut session).await;
        for (subquery, meaning) in MEANINGS {
            let (found, expected) =
                (sorted(&mut session, subquery).await, sorted(&mut session, meaning).await);
            assert_eq!(expected.len() as u64, USERS, "{meaning}: {:?}", expected.first());
            let other = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert!(other.is_none() && found.len() == expected.len(), "{subquery}: {other:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_row_of_a_scalar_subquery_is_an_error_for_many_outer_rows_too() {
    for most_rows in [0, 1_000] {
        let server = Server::with_most_direct_rows(most_rows);
        let mut session = server.session();
        shop(&mut session).await;
        let statement = "SELECT SUM((SELECT o.id FROM orders o WHERE o.user = u.id)) FROM users u";
        let told = rows(&mut session, statement).await;
        assert!(told.starts_with("1242 "), "{told}");
    }
}

/// What was planned anew for each outer row took a millisecond and more for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correlated_subquery_over_a_large_table_stops_with_its_statement() {
    let server = Server::with_most_direct_rows(1_000);
    let mut session = server.session();
    shop(&mut session).await;
    let interrupter = session.interrupter();
    let running = tokio::spawn(async move {
        let endless = "SELECT COUNT(*) FROM orders a JOIN users b WHERE a.total + b.most > \
                       (SELECT AVG(c.total) FROM orders c WHERE c.day < a.day + b.most)";
        rows(&mut session, endless).await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    interrupter.store(true, Ordering::Relaxed);
    let told = timeout(NEVER, running).await.unwrap().unwrap();
    assert!(told.starts_with("1317 "), "{told}");
}

/// The time of a check that visits subqueries twice for each query around them doubles with each level: planning this
/// one would not end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_with_subqueries_over_such_views_are_planned() {
    let server = Server::with_most_direct_rows(0);
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 1, 2), (2, 2, 3), (3, 3, 4)").await.unwrap();
    run(&mut session, "CREATE VIEW v0 AS SELECT id, a, b FROM t").await.unwrap();
    for level in 1..=14 {
        let below = level - 1;
        let within = match level % 3 {
            0 => format!("EXISTS (SELECT 1 FROM v{below} x WHERE x.id = t.id)"),
            1 => format!("t.a IN (SELECT x.a FROM v{below} x)"),
            _ => format!(
                "t.id IN (SELECT x.id FROM v{below} x JOIN t y ON y.id = x.id GROUP BY x.id)"
            ),
        };
        let view = format!("CREATE VIEW v{level} AS SELECT id, a, b FROM t WHERE {within}");
        if let Err(error) = run(&mut session, &view).await {
            panic!("{level}: {error}");
        }
    }
    // Planning does not pause, so it has a thread that need not end.
    let (sender, planned) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let sums = rows(&mut session, "SELECT SUM(id), COUNT(*) FROM v14").await;
            let columns = rows(&mut session, "SHOW COLUMNS FROM v14").await.lines().count();
            let _ = sender.send((sums, columns));
        });
    });
    assert_eq!(planned.recv_timeout(NEVER).unwrap(), ("6|3".to_owned(), 3));
}
