//! Joins and semi-joins return the same rows from cached plans as when they are planned each time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use crate::support::random::Random;
use crate::support::{Server, rows, run};
use remora_sql::Session;

const USERS: u64 = 2_000;
const ORDERS: u64 = 12_000;
const ROUNDS: u64 = 400;

/// Statements of a shop; `{u}`, `{o}`, `{s}`, `{c}` and `{d}` are a user, an order, a state, a country and a day.
const STATEMENTS: [&str; 28] = [
    "SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user WHERE o.state = {s} ORDER BY o.made DESC, o.id DESC LIMIT 10",
    "SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user WHERE u.country = {c} ORDER BY o.made, o.id LIMIT 5, 20",
    "SELECT o.id, u.name FROM orders o LEFT JOIN users u ON u.id = o.user ORDER BY o.made DESC, o.id DESC LIMIT 40",
    "SELECT o.id, u.id FROM orders o LEFT JOIN users u ON u.id = o.user AND u.country = {c} WHERE o.id < {o} ORDER BY o.id DESC LIMIT 30",
    "SELECT u.id, u.name, COUNT(o.id), SUM(o.total) FROM users u LEFT JOIN orders o ON o.user = u.id WHERE u.id IN ({u}, {u}, 0) GROUP BY u.id, u.name",
    "SELECT u.country, COUNT(*) AS n FROM orders o JOIN users u ON u.id = o.user WHERE o.made >= {d} AND o.state = {s} GROUP BY u.country HAVING n > 1",
    "SELECT COUNT(DISTINCT i.product), MAX(i.price) FROM orders o JOIN items i ON i.orders = o.id WHERE o.user = {u}",
    "SELECT o.id, i.product, i.price * i.pieces AS p FROM orders o JOIN items i ON i.orders = o.id JOIN users u ON u.id = o.user WHERE u.id = {u}",
    "SELECT u.name, i.product FROM items i JOIN orders o ON o.id = i.orders JOIN users u ON u.id = o.user WHERE i.product = {u} AND o.state <> {s}",
    "SELECT u.id FROM users u WHERE u.country = {c} AND EXISTS (SELECT 1 FROM orders o WHERE o.user = u.id AND o.state = 1)",
    "SELECT u.id FROM users u WHERE u.country = {c} AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user = u.id)",
    "SELECT u.id, u.name FROM users u WHERE u.id IN (SELECT o.user FROM orders o WHERE o.made >= {d})",
    "SELECT COUNT(*) FROM orders o WHERE o.user IN (SELECT u.id FROM users u WHERE u.country = 'de') AND o.state = {s}",
    "SELECT o.id FROM orders o WHERE o.id > {o} AND o.user NOT IN (SELECT u.id FROM users u WHERE u.name IS NOT NULL)",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON b.user = a.user AND b.id < a.id WHERE a.id BETWEEN {o} AND {o} + 9",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON b.user = a.user AND b.id < a.id WHERE a.user = {u}",
    "SELECT u.mail, m.said FROM users u JOIN mails m ON m.mail = u.mail WHERE m.id = {u}",
    "SELECT m.said, u.id FROM mails m LEFT JOIN users u ON u.mail = m.mail WHERE m.id BETWEEN {u} AND {u}",
    "SELECT u.id, t.n FROM users u JOIN (SELECT user, COUNT(*) AS n FROM orders GROUP BY user) t ON t.user = u.id WHERE u.country = {c} AND u.id < 50",
    "SELECT u.name, o.total FROM users u, orders o WHERE o.user = u.id AND u.name = 'name7' AND o.total > {u}",
    "SELECT u.id, u.name FROM users u WHERE u.id = {u} AND (u.country = 'de' OR EXISTS (SELECT 1 FROM orders o WHERE o.user = u.id))",
    "SELECT DISTINCT u.country FROM users u JOIN orders o ON o.user = u.id WHERE o.state = {s} AND o.id > {o}",
    "SELECT o.id FROM orders o JOIN users u ON u.id = o.user AND u.country = {c} WHERE o.made BETWEEN {d} AND {d} ORDER BY o.id LIMIT 7",
    "SELECT u.id, o.id FROM users u RIGHT JOIN orders o ON o.user = u.id AND u.country = {c} WHERE o.user = {u}",
    "SELECT o.id, o.total FROM orders o JOIN users u ON u.id = o.user WHERE u.mail = 'M{u}' ORDER BY o.total DESC, o.id LIMIT 3",
    "SELECT COUNT(*), SUM(o.total) FROM orders o JOIN users u USING (id) WHERE u.country = {c} AND o.total < {u}",
    "SELECT a.id FROM orders a WHERE a.user = {u} AND EXISTS (SELECT 1 FROM orders b WHERE b.made = a.made AND b.user <> a.user)",
    "SELECT a.id FROM orders a WHERE a.made = {d} AND NOT EXISTS (SELECT 1 FROM orders b WHERE b.user = a.user AND b.total > a.total)",
];

fn filled(random: &mut Random, statement: &str) -> String {
    let mut filled = statement.to_owned();
    for (mark, make) in [
        ("{u}", (|random| random.below(USERS).to_string()) as fn(&mut Random) -> String),
        ("{o}", |random| random.below(ORDERS).to_string()),
        ("{s}", |random| random.below(5).to_string()),
        ("{c}", |random| format!("'{}'", random.choose(&["de", "fr", "JP", "xx"]))),
        ("{d}", |random| format!("'2026-0{}-11'", 1 + random.below(9))),
    ] {
        while filled.contains(mark) {
            filled = filled.replacen(mark, &make(random), 1);
        }
    }
    filled
}

/// The rows, sorted if the statement does not define their order.
async fn told(session: &mut Session, statement: &str) -> String {
    let told = rows(session, statement).await;
    if statement.contains("LIMIT") {
        return told;
    }
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

async fn compare(session: &mut Session, random: &mut Random, rounds: u64) {
    for round in 0..rounds {
        let template = random.choose(&STATEMENTS);
        let statement = filled(random, template);
        // A text that is unique is not served by a cached plan.
        let once =
            statement.replacen("SELECT", &format!("SELECT /* {round} {} */", random.next()), 1);
        let kept = told(session, &statement).await;
        assert_eq!(kept, told(session, &once).await, "{statement}");
    }
}

async fn change(session: &mut Session, random: &mut Random) {
    for statement in [
        "UPDATE orders SET state = {s} WHERE user = {u}",
        "UPDATE users SET country = {c}, mail = 'm{u}' WHERE id = {u}",
        "DELETE FROM orders WHERE id = {o}",
        "DELETE FROM users WHERE id = {u}",
        "REPLACE INTO orders VALUES ({o}, {u}, {s}, {u}, {d})",
    ] {
        for _ in 0..20 {
            run(session, &filled(random, statement)).await.unwrap();
        }
    }
}

async fn fill(session: &mut Session, random: &mut Random, table: &str, rows: u64, row: &str) {
    for from in (0..rows).step_by(2_000) {
        let mut insert = format!("INSERT INTO {table} VALUES ");
        for id in from..from + 2_000 {
            let comma = if id == from { "" } else { ", " };
            let values = filled(random, &row.replace("{id}", &id.to_string()));
            write!(insert, "{comma}({values})").unwrap();
        }
        run(session, &insert).await.unwrap();
    }
}

/// Subqueries for EXISTS over `orders a`, correlated by an equality and by other conditions.
const WITHIN: [&str; 6] = [
    "SELECT * FROM orders b WHERE b.user = a.user AND b.id <> a.id",
    "SELECT 1 FROM orders b WHERE b.user = a.user AND b.state <> a.state AND b.made > a.made",
    "SELECT 1 FROM items i WHERE i.orders = a.id AND i.price > a.total AND i.pieces < {s}",
    "SELECT 1 FROM users u WHERE u.id = a.user AND (u.country = {c} OR a.state IS NULL OR u.name < a.made)",
    "SELECT 1 FROM (SELECT user, made FROM orders WHERE state = {s}) b WHERE b.user = a.user AND b.made <=> a.made",
    "SELECT 1 FROM orders b JOIN items i ON i.orders = b.id WHERE b.user = a.user AND i.price NOT BETWEEN a.total AND {u}",
];

/// EXISTS in WHERE, which becomes a join, agrees with EXISTS in the SELECT list, which runs for each row.
async fn compare_exists(session: &mut Session, random: &mut Random) {
    for within in WITHIN {
        for negation in ["", "NOT "] {
            let exists = filled(random, &format!("{negation}EXISTS ({within})"));
            let rows = filled(random, "a.id % 97 = {s} AND (a.state <> {s} OR a.made > {d})");
            let joined = format!("SELECT a.id FROM orders a WHERE {rows} AND {exists}");
            let each = format!(
                "SELECT id FROM (SELECT a.id, {exists} AS e FROM orders a WHERE {rows}) t WHERE e"
            );
            assert_eq!(told(session, &joined).await, told(session, &each).await, "{joined}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_kept_plans_answer_as_those_planned_each_time() {
    let server = Server::new();
    let mut session = server.session();
    let mut random = Random::seeded();
    for table in [
        "users (id INT PRIMARY KEY, name VARCHAR(20), country CHAR(2), mail VARCHAR(20) \
         COLLATE utf8mb4_0900_ai_ci, KEY (country), KEY (mail))",
        "orders (id INT PRIMARY KEY, user INT, state TINYINT, total DECIMAL(9,2), made DATETIME, \
         KEY (user), KEY (state, made), KEY (made))",
        "items (id INT PRIMARY KEY, orders BIGINT UNSIGNED, product INT, price DECIMAL(9,2), \
         pieces SMALLINT, KEY (orders), KEY (product))",
        "mails (id INT PRIMARY KEY, mail VARCHAR(30) COLLATE utf8mb4_0900_ai_ci, said TEXT)",
    ] {
        run(&mut session, &format!("CREATE TABLE {table}")).await.unwrap();
    }
    let session = &mut session;
    fill(session, &mut random, "users", USERS, "{id}, 'name{s}{s}', {c}, 'm{u}'").await;
    let order = "{id}, NULLIF({u}, {u} + {s}), {s}, {u}.{s}5, {d}";
    fill(session, &mut random, "orders", ORDERS, order).await;
    fill(session, &mut random, "items", ORDERS, "{id}, {o}, {u}, {u}.5, {s}").await;
    fill(session, &mut random, "mails", USERS, "{id}, 'M{u}', 'said {id}'").await;
    compare(session, &mut random, ROUNDS).await;
    compare_exists(session, &mut random).await;
    change(session, &mut random).await;
    compare(session, &mut random, ROUNDS / 2).await;
    run(session, "BEGIN").await.unwrap();
    change(session, &mut random).await;
    compare(session, &mut random, ROUNDS / 4).await;
    run(session, "ROLLBACK").await.unwrap();
    run(session, "ALTER TABLE orders DROP KEY user").await.unwrap();
    run(session, "OPTIMIZE TABLE orders, users").await.unwrap();
    compare(session, &mut random, ROUNDS / 2).await;
}
