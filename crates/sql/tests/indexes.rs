//! Declared keys change how rows are found and in which order equal ones come, and nothing else: a table with
//! keys and one without answer alike.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/random.rs"]
mod random;
mod support;

use std::fmt::Write;

use random::Random;
use remora_sql::Session;
use support::{Server, rows, run};

const ROWS: u64 = 20_000;
const ROUNDS: usize = 250;

/// A value of a row's column, or one to compare it with.
fn value(random: &mut Random, column: &str) -> String {
    match column {
        "user" => format!("{}", random.below(700)),
        // Most orders have one state.
        "state" => (if random.below(9) > 0 { 3 } else { random.below(6) }).to_string(),
        "made" => {
            let (day, hour) = (1 + random.below(28), random.below(24));
            format!("'2026-0{}-{day:02} {hour:02}:00:00'", 1 + random.below(9))
        }
        "price" => format!("{}.{:02}", random.below(90), random.below(100)),
        // Several are equal by their collation.
        "mail" => format!("'{}m{}'", random.choose(&["Ki", "ki", "KÍ", "kj"]), random.below(300)),
        _ => format!("'n{}'", random.below(400)),
    }
}

const COLUMNS: [&str; 6] = ["user", "state", "made", "price", "name", "mail"];

/// A condition on a column, whose name stands behind `of`.
fn condition(random: &mut Random, of: &str) -> String {
    let column = random.choose(&COLUMNS);
    let (a, b) = (value(random, column), value(random, column));
    match random.below(8) {
        0..4 => format!("{of}{column} = {a}"),
        4 => format!("{of}{column} IN ({a}, {b}, {})", value(random, column)),
        5 => format!("{of}{column} BETWEEN {a} AND {b}"),
        6 => format!("{of}{column} IS NULL"),
        _ => format!("{of}{column} {} {a}", random.choose(&["<", ">=", "<=>", "<>"])),
    }
}

fn conditions(random: &mut Random) -> String {
    let count = random.below(4);
    let all: Vec<String> = (0..count).map(|_| condition(random, "")).collect();
    if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
}

/// A SELECT of the table `@`, whose rows are told apart in their order.
fn select(random: &mut Random) -> String {
    let filter = conditions(random);
    let direction = random.choose(&["", " DESC"]);
    let id = random.below(ROWS);
    match random.below(11) {
        10 => {
            let by = random.choose(&["", "made", "user", "price", "state, made", "state", "name"]);
            let by = if by.is_empty() { String::new() } else { format!("{by}, ") };
            let by = by.replace(',', &format!("{direction},"));
            format!("SELECT id, user FROM @ ORDER BY {by}id{direction} LIMIT 7 OFFSET {id}")
        }
        7 => format!("SELECT id, price + 1 FROM @ WHERE id > {id} ORDER BY id{direction} LIMIT 30"),
        8 => format!(
            "SELECT id, UPPER(mail) FROM @ WHERE id < {id} ORDER BY user{direction}, id{direction} LIMIT 9, 40"
        ),
        9 => format!(
            "SELECT state + 1 AS s, COUNT(*), MAX(mail) FROM @ WHERE id > {id} GROUP BY s ORDER BY s"
        ),
        0 => format!("SELECT COUNT(*), SUM(price), MIN(made), MAX(user) FROM @{filter}"),
        1 => format!("SELECT state, COUNT(*) FROM @{filter} GROUP BY state ORDER BY state"),
        2 => {
            let by = random.choose(&["user", "state", "made", "name", "mail"]);
            format!("SELECT id FROM @{filter} ORDER BY {by}{direction}, id LIMIT 30")
        }
        3 => format!(
            "SELECT a.id, b.id FROM @ a JOIN @ b ON b.user = a.user AND b.state = a.state \
             WHERE {} AND a.id < 400 ORDER BY a.id, b.id LIMIT 50",
            condition(random, "b.")
        ),
        _ => {
            let by = random.choose(&["made", "user", "state, made", "price", "user, state"]);
            let by = by.replace(',', &format!("{direction},"));
            let (limit, offset) = (1 + random.below(40), random.choose(&[0, 0, 25]));
            let order = format!("ORDER BY {by}{direction}, id{direction}");
            format!("SELECT id, user, made FROM @{filter} {order} LIMIT {limit} OFFSET {offset}")
        }
    }
}

async fn both(session: &mut Session, statement: &str) {
    for table in ["plain", "keyed"] {
        let statement = statement.replace('@', table);
        run(session, &statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn compare(session: &mut Session, random: &mut Random, rounds: usize) {
    for round in 0..rounds {
        let statement = select(random);
        // No plan is kept of a text that comes once.
        let once =
            statement.replacen("SELECT", &format!("SELECT /* {round} {} */", random.next()), 1);
        let plain = rows(session, &once.replace('@', "plain")).await;
        let keyed = rows(session, &statement.replace('@', "keyed")).await;
        assert_eq!(keyed, plain, "{statement}");
    }
}

/// Changes of some rows: by key, by a key's column, and new ones.
async fn change(session: &mut Session, random: &mut Random) {
    for _ in 0..12 {
        let (id, user) = (random.below(ROWS), random.below(700));
        let column = random.choose(&COLUMNS);
        let value = value(random, column);
        both(
            session,
            &format!("UPDATE @ SET {column} = {value} WHERE user = {user} AND id > {id}"),
        )
        .await;
        both(session, &format!("DELETE FROM @ WHERE id = {}", random.below(ROWS))).await;
        both(session, &format!("REPLACE INTO @ (id, user, state) VALUES ({id}, {user}, 5)")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_keys_answers_as_one_without() {
    let server = Server::new();
    let mut session = server.session();
    let mut random = Random::seeded();
    let columns = "id INT PRIMARY KEY, user INT, state TINYINT, made DATETIME, price DECIMAL(8,2), \
                   name VARCHAR(20) COLLATE utf8mb4_0900_bin, \
                   mail VARCHAR(20) COLLATE utf8mb4_0900_ai_ci";
    run(&mut session, &format!("CREATE TABLE plain ({columns})")).await.unwrap();
    let keys = "KEY (user), KEY (state, made), KEY (made DESC), KEY (price), KEY (name, user), \
                KEY (user, state DESC), KEY (mail), KEY (state, mail(2) DESC, made)";
    run(&mut session, &format!("CREATE TABLE keyed ({columns}, {keys})")).await.unwrap();
    for from in (0..ROWS).step_by(5_000) {
        let mut insert = "INSERT INTO @ VALUES ".to_owned();
        for id in from..from + 5_000 {
            let mut values = COLUMNS.map(|column| value(&mut random, column));
            if random.below(10) == 0 {
                values[random.below(5) as usize] = "NULL".to_owned();
            }
            let comma = if id == from { "" } else { "," };
            write!(insert, "{comma}({id},{})", values.join(",")).unwrap();
        }
        both(&mut session, &insert).await;
    }
    compare(&mut session, &mut random, ROUNDS).await;
    change(&mut session, &mut random).await;
    compare(&mut session, &mut random, ROUNDS / 2).await;
    run(&mut session, "BEGIN").await.unwrap();
    change(&mut session, &mut random).await;
    compare(&mut session, &mut random, ROUNDS / 4).await;
    run(&mut session, "ROLLBACK").await.unwrap();
    // Keys that come and go while there are rows.
    run(&mut session, "ALTER TABLE keyed DROP KEY user, ADD KEY later (user, made)").await.unwrap();
    run(&mut session, "OPTIMIZE TABLE keyed, plain").await.unwrap();
    compare(&mut session, &mut random, ROUNDS / 2).await;
    let shown = rows(&mut session, "SHOW CREATE TABLE keyed").await;
    assert!(shown.contains("KEY `later` (`user`,`made`)"), "{shown}");
}
