//! EXPLAIN shows what runs: which key finds the rows, how many are read, and in which order tables are read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use crate::support::{Server, rows, run};
use remora_sql::Session;

const ORDERS: u64 = 30_000;
const USERS: u64 = 2_000;
const NULL: &str = "NULL";

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

/// EXPLAIN's rows, without the column `partitions`.
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

/// What EXPLAIN shows of a table: its name, then type, possible_keys, key, key_len, ref, rows and filtered.
type ExpectedRow<'t> = [&'t str; 8];

async fn check(session: &mut Session, statement: &str, expected: &[ExpectedRow<'_>]) {
    let found = explained(session, statement).await;
    let found: Vec<Vec<&str>> =
        found.iter().map(|row| row[2..10].iter().map(String::as_str).collect()).collect();
    let expected: Vec<Vec<&str>> = expected.iter().map(|row| row.to_vec()).collect();
    assert_eq!(found, expected, "{statement}");
}

/// Statements with one table, and what EXPLAIN shows of it.
#[rustfmt::skip]
const OF_ONE_TABLE: [(&str, ExpectedRow<'_>); 12] = [
    ("SELECT * FROM users WHERE id = 7",
        ["users", "const", "PRIMARY", "PRIMARY", "4", "const", "1", "100"]),
    ("SELECT * FROM users u WHERE mail = 'u9@x'",
        ["u", "const", "mail", "mail", "162", "const", "1", "100"]),
    ("SELECT * FROM orders WHERE user = 5",
        ["orders", "ref", "user_made", "user_made", "4", "const", "15", "100"]),
    ("SELECT COUNT(*) FROM orders WHERE user IN (5, 6) AND made > '2026-05-09'",
        ["orders", "range", "user_made,made", "user_made", "9", NULL, "21", "100"]),
    ("SELECT id FROM orders WHERE user = 5 AND total > 50",
        ["orders", "ref", "user_made", "user_made", "4", "const", "15", "40"]),
    // Not more rows than the page has.
    ("SELECT id FROM orders WHERE user = 5 ORDER BY made DESC LIMIT 3",
        ["orders", "ref", "user_made", "user_made", "4", "const", "3", "100"]),
    ("SELECT id FROM orders ORDER BY made DESC, id DESC LIMIT 20",
        ["orders", "index", NULL, "made", "5", NULL, "20", "100"]),
    // One state has almost all rows. The index counts them, but other statements read all rows.
    ("SELECT COUNT(*) FROM orders WHERE state = 2",
        ["orders", "ref", "state", "state", "2", "const", "29700", "100"]),
    ("SELECT user FROM orders WHERE state = 2",
        ["orders", "ALL", "state", NULL, NULL, NULL, "30000", "99"]),
    ("SELECT COUNT(*) FROM orders WHERE state = 1",
        ["orders", "ref", "state", "state", "2", "const", "300", "100"]),
    ("SELECT COUNT(*) FROM orders WHERE user = 5 OR id < 100",
        ["orders", "index_merge", "PRIMARY,user_made", "user_made,PRIMARY", "4,4", NULL, "115", "100"]),
    ("SELECT COUNT(*) FROM orders",
        [NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_names_the_key_and_counts_its_rows() {
    let server = Server::new();
    let mut session = shop(&server).await;
    for (statement, told) in OF_ONE_TABLE {
        check(&mut session, statement, &[told]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_joins_in_the_order_they_are_read_in() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    check(
        session,
        "SELECT o.id, u.mail FROM orders o JOIN users u ON u.id = o.user WHERE o.state = 1",
        &[
            ["o", "ref", "state", "state", "2", "const", "300", "100"],
            ["u", "eq_ref", "PRIMARY", "PRIMARY", "4", "test.o.user", "1", "100"],
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
            ["o", "range", "PRIMARY", "PRIMARY", "4", NULL, "2", "100"],
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

/// For a derived table with groups whose size no statistics bound, only the joined groups are computed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_joined_are_looked_up() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let of_users = "SELECT u.id, t.n, t.total FROM users u JOIN (SELECT user, COUNT(*) AS n, SUM(total) AS total \
                    FROM orders WHERE made >= '2026-05-02' GROUP BY user) t ON t.user = u.id WHERE";
    let told = explained(session, &format!("{of_users} u.id IN (3, 5, 8)")).await;
    let of_orders: Vec<&str> = told[1].iter().map(String::as_str).collect();
    assert_eq!(
        (of_orders[2], of_orders[5], of_orders[7]),
        ("orders", "user_made", "test.u.id"),
        "{told:?}"
    );
    for condition in [
        "u.id IN (3, 5, 8)",
        "u.country = 'fr' ORDER BY u.id LIMIT 7",
        "u.id > 1900 ORDER BY u.id DESC LIMIT 4",
    ] {
        let kept = rows(session, &format!("{of_users} {condition}")).await;
        // No key applies to a column inside an expression.
        let general = of_users.replace("u.id WHERE", "u.id + RAND() * 0 WHERE");
        assert_eq!(kept, rows(session, &format!("{general} {condition}")).await, "{condition}");
        assert!(!kept.is_empty(), "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_values_are_taken_from_an_index() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    for (statement, told) in [
        (
            "SELECT DISTINCT user FROM orders ORDER BY user DESC LIMIT 3",
            ["orders", "index", NULL, "user_made", "9", NULL, "3", "100"],
        ),
        (
            "SELECT DISTINCT mail FROM users WHERE mail LIKE 'u19%' ORDER BY mail LIMIT 2",
            ["users", "range", "mail", "mail", "162", NULL, "2", "100"],
        ),
        (
            "SELECT user, COUNT(*) FROM orders WHERE user > 1200 GROUP BY user ORDER BY user LIMIT 4",
            ["orders", "range", "user_made", "user_made", "4", NULL, "4", "100"],
        ),
    ] {
        check(session, statement, &[told]).await;
        let extra = explained(session, statement).await.remove(0).remove(10);
        assert!(extra.contains("Using index for group-by"), "{extra}");
    }
    let ends = "SELECT user, MAX(made), MIN(made), COUNT(*) FROM orders @ GROUP BY user ORDER BY user DESC LIMIT 6";
    let by_index = ends.replace('@', "");
    let extra = explained(session, &by_index).await.remove(0).remove(10);
    assert!(extra.contains("Using index for group-by"), "{extra}");
    let found = rows(session, &by_index).await;
    assert_eq!(found, rows(session, &ends.replace('@', "IGNORE INDEX (user_made)")).await);
    assert!(found.starts_with("1999|2026-05-"), "{found}");
    for (two, is_loose) in [
        ("SELECT DISTINCT user, made FROM orders @ ORDER BY user DESC, made DESC LIMIT 7", true),
        (
            "SELECT made, COUNT(*), user FROM orders @ GROUP BY made, user ORDER BY user, made LIMIT 50",
            true,
        ),
        (
            "SELECT user, made FROM orders @ GROUP BY user, made ORDER BY user, made DESC LIMIT 9",
            false,
        ),
        (
            "SELECT user, state FROM orders @ GROUP BY user, state ORDER BY user, state LIMIT 9",
            false,
        ),
        ("SELECT DISTINCT user, user FROM orders @ ORDER BY user LIMIT 9", false),
    ] {
        let by_index = two.replace('@', "");
        let extra = explained(session, &by_index).await.remove(0).remove(10);
        assert_eq!(extra.contains("Using index for group-by"), is_loose, "{two}: {extra}");
        let scanned = rows(session, &two.replace('@', "IGNORE INDEX (user_made)")).await;
        assert_eq!(rows(session, &by_index).await, scanned, "{two}");
    }
    let without = "SELECT user, COUNT(*) FROM orders WHERE user > 1200 AND total >= 0 GROUP BY user ORDER BY user LIMIT 4";
    let extra = explained(session, without).await.remove(0).remove(10);
    assert!(!extra.contains("Using index for group-by"), "{extra}");
    let found = rows(session, "SELECT DISTINCT user FROM orders ORDER BY user DESC LIMIT 3").await;
    assert_eq!(found, "1999\n1998\n1997");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_that_are_looked_at_are_those_of_the_key() {
    let server = Server::new();
    let mut session = shop(&server).await;
    // Deleted rows and new segments are taken into account.
    run(&mut session, "DELETE FROM orders WHERE id < 2000 AND user = 5").await.unwrap();
    run(&mut session, "INSERT INTO orders VALUES (90000, 5, 1, '2026-06-01', 1)").await.unwrap();
    let counted = rows(&mut session, "SELECT COUNT(*) FROM orders WHERE user = 5").await;
    let told = explained(&mut session, "SELECT * FROM orders WHERE user = 5").await;
    let told = &told[0];
    assert_eq!((&told[5], &told[8]), (&"user_made".to_owned(), &counted.trim().to_owned()));
    // The session's own uncommitted rows are shown in Extra.
    run(&mut session, "BEGIN").await.unwrap();
    run(&mut session, "INSERT INTO orders VALUES (90001, 5, 1, '2026-06-01', 1)").await.unwrap();
    let told = explained(&mut session, "SELECT * FROM orders WHERE user = 5").await;
    assert!(told[0][10].contains("1 rows of the session"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_beside_a_text_search_is_shown() {
    let server = Server::new();
    let mut session = server.session();
    let session = &mut session;
    let table = "CREATE TABLE notes (id INT PRIMARY KEY, user INT, body TEXT, KEY user (user), FULLTEXT KEY words (body))";
    run(session, table).await.unwrap();
    let body = |id| match (id % 600, id % 3) {
        (0, _) => "rare note",
        (_, 0) => "a note",
        _ => "nothing",
    };
    let notes = (0..6_000).map(|id| format!("({id},{},'{}')", id % 100, body(id)));
    let notes: Vec<String> = notes.collect();
    run(session, &format!("INSERT INTO notes VALUES {}", notes.join(","))).await.unwrap();
    run(session, "OPTIMIZE TABLE notes").await.unwrap();
    let matching = |word: &str| {
        format!("SELECT id FROM notes WHERE MATCH(body) AGAINST('+{word}' IN BOOLEAN MODE)")
    };
    // Of 2,000 notes, the key leaves 20.
    let both = format!("{} AND user = 5", matching("note"));
    let told = ["notes", "index_merge", "user,words", "words,user", "0,5", NULL, "20", "100"];
    check(session, &both, &[told]).await;
    let extra = explained(session, &both).await.remove(0).remove(10);
    assert!(extra.contains("Using intersect(words,user)"), "{extra}");
    // Few rows are tested without the key.
    let told = ["notes", "fulltext", "user,words", "words", "0", "const", "10", "0"];
    check(session, &format!("{} AND user = 5", matching("rare")), &[told]).await;
    let sorted = format!("{} ORDER BY user LIMIT 5", matching("note"));
    let told = explained(session, &sorted).await.remove(0);
    assert_eq!((&*told[3], &*told[5]), ("fulltext", "words"), "{told:?}");
    assert!(told[10].contains("read in the order of key user"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_are_obeyed() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    check(
        session,
        "SELECT COUNT(*) FROM orders FORCE INDEX (state) WHERE state = 2",
        &[["orders", "ref", "state", "state", "2", "const", "29700", "100"]],
    )
    .await;
    for hinted in [
        "orders IGNORE INDEX (user_made)",
        "orders IGNORE KEY FOR JOIN (user_made)",
        "orders USE INDEX (state, made)",
        "orders USE INDEX ()",
    ] {
        check(
            session,
            &format!("SELECT COUNT(*) FROM {hinted} WHERE user = 5"),
            &[["orders", "ALL", NULL, NULL, NULL, NULL, "30000", "0.05"]],
        )
        .await;
    }
    check(
        session,
        "SELECT /*+ NO_INDEX(o user_made) */ total FROM orders o WHERE user = 5",
        &[["o", "ALL", NULL, NULL, NULL, NULL, "30000", "0.05"]],
    )
    .await;
    check(
        session,
        "SELECT COUNT(*) FROM orders IGNORE INDEX FOR ORDER BY (user_made) WHERE user = 5",
        &[["orders", "ref", "user_made", "user_made", "4", "const", "15", "100"]],
    )
    .await;
    let sorted = "SELECT id FROM orders IGNORE INDEX FOR ORDER BY (made) ORDER BY made, id LIMIT 5";
    let told = explained(session, sorted).await;
    assert!(told[0][10].contains("Using filesort"), "{told:?}");
    for (statement, error) in [
        ("SELECT 1 FROM orders o FORCE INDEX (nope)", "1176 Key 'nope' doesn't exist in table 'o'"),
        (
            "SELECT 1 FROM orders USE INDEX (made) FORCE INDEX (state)",
            "1221 Incorrect usage of USE INDEX and FORCE INDEX",
        ),
    ] {
        assert_eq!(rows(session, statement).await, error);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_analyze_runs_the_statement() {
    let server = Server::new();
    let mut session = shop(&server).await;
    for (statement, parts) in [
        ("SELECT * FROM users WHERE id = 7", vec!["on users using PRIMARY", " rows=1 loops=1)"]),
        (
            "SELECT id, total * 2 FROM orders WHERE user = 5 AND total > 50",
            vec!["Index lookup on orders using user_made", "(rows=15)", " rows=6 loops=1)"],
        ),
        (
            "SELECT o.id, u.mail FROM orders o JOIN users u ON u.id = o.user WHERE u.mail = 'u3@x'",
            vec![
                "-> Single-row index lookup on u using mail",
                "on o using user_made",
                "rows=15 loops=1)",
            ],
        ),
        (
            "SELECT id FROM users WHERE id = 1 UNION SELECT id FROM orders WHERE user = 5",
            vec!["-> Append", "Index lookup on orders using user_made", "rows=15 loops=1)"],
        ),
    ] {
        let told = rows(&mut session, &format!("EXPLAIN ANALYZE {statement}")).await;
        for part in parts {
            assert!(told.contains(part), "{statement}: no {part} in\n{told}");
        }
        assert!(told.contains("actual time="), "{told}");
    }
    let refused = rows(&mut session, "EXPLAIN ANALYZE FORMAT=JSON SELECT 1").await;
    assert!(refused.starts_with("1235 "), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn show_index_has_cardinalities() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let cardinalities = "SELECT CONCAT_WS(' ', INDEX_NAME, SEQ_IN_INDEX, CARDINALITY) AS c \
                         FROM information_schema.STATISTICS WHERE TABLE_NAME = 'orders'";
    let told = rows(session, cardinalities).await;
    for line in ["PRIMARY 1 30000", "user_made 1 2000", "made 1 28", "state 1 2"] {
        assert!(told.lines().any(|told| told == line), "no {line} in\n{told}");
    }
    // Values in only one of two segments are found, and others are not counted twice.
    run(
        session,
        "INSERT INTO orders SELECT id + 50000, user, 3, made, total FROM orders WHERE id < 3000",
    )
    .await
    .unwrap();
    let told = rows(session, cardinalities).await;
    for line in ["PRIMARY 1 33000", "made 1 28", "state 1 3"] {
        assert!(told.lines().any(|told| told == line), "no {line} in\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_count_their_answers() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let usage = "SELECT CONCAT_WS(' ', INDEX_NAME, KIND, ANSWERS) AS u FROM remora.index_usage \
                 WHERE TABLE_NAME = 'orders' AND ANSWERS > 0 AND INDEX_NAME <> 'PRIMARY'";
    let lookups = "SELECT ANSWERS FROM remora.index_usage \
                   WHERE TABLE_NAME = 'orders' AND INDEX_NAME = 'PRIMARY' AND KIND = 'lookup'";
    let before: u64 = rows(session, lookups).await.parse().unwrap();
    assert_eq!(rows(session, usage).await, "", "nothing was asked");
    for statement in [
        "SELECT total FROM orders WHERE id = 7",
        "SELECT COUNT(*) FROM orders WHERE user = 5",
        "SELECT COUNT(*) FROM orders WHERE user = 6",
        "SELECT COUNT(*) FROM orders WHERE user = 6 AND made > '2026-05-20'",
        "SELECT id FROM orders ORDER BY made DESC, id DESC LIMIT 20",
    ] {
        rows(session, statement).await;
    }
    let told = rows(session, usage).await;
    assert_eq!(told, "user_made equality 2\nuser_made range 1\nmade order 1");
    assert_eq!(rows(session, lookups).await, (before + 1).to_string());
    // An index keeps its number when others are added or dropped.
    run(session, "ALTER TABLE orders DROP KEY state, ADD KEY total (total)").await.unwrap();
    let told = rows(session, usage).await;
    assert!(told.contains("user_made equality 2"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_keys_are_intersected_where_neither_is_used_alone() {
    let server = Server::new();
    let mut session = server.session();
    let session = &mut session;
    let table =
        "CREATE TABLE i (id INT PRIMARY KEY, a INT, b INT, c INT, KEY a (a), KEY b (b), KEY c (c))";
    run(session, table).await.unwrap();
    for from in (0..20_000).step_by(10_000) {
        let rows = (from..from + 10_000)
            .map(|id| format!("({id},{},{},{})", id % 20, id / 20 % 20, id % 1_000));
        let rows = rows.collect::<Vec<_>>().join(",");
        run(session, &format!("INSERT INTO i VALUES {rows}")).await.unwrap();
    }
    run(session, "OPTIMIZE TABLE i").await.unwrap();
    for (condition, key, extra, count) in [
        ("a = 3 AND b = 4", "a,b", "Using intersect(a,b); Using where", "50"),
        ("a = 3 AND b IN (4, 5)", "a,b", "Using intersect(a,b); Using where", "100"),
        ("a = 3 AND b >= 4", NULL, "Using where", "800"),
        ("a = 3 AND c = 503", "c", NULL, "20"),
    ] {
        let told = explained(session, &format!("SELECT id FROM i WHERE {condition}")).await;
        assert_eq!((told[0][5].as_str(), told[0][10].as_str()), (key, extra), "{condition}");
        for hint in ["", "USE INDEX (a)", "FORCE INDEX (a, b)", "USE INDEX ()"] {
            let statement = format!("SELECT COUNT(*) FROM i {hint} WHERE {condition}");
            assert_eq!(rows(session, &statement).await, count, "{statement}");
        }
    }
}

/// The plan of such a statement counts rows by the index, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planning_does_not_count_as_an_answer() {
    let server = Server::new();
    let mut session = server.session();
    let session = &mut session;
    let table = "CREATE TABLE f (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(300), t TEXT, KEY low ((LOWER(a))), \
                 KEY b (b), FULLTEXT KEY t (t))";
    run(session, table).await.unwrap();
    let numbers = "INSERT INTO f WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                   SELECT i, CONCAT('A', i), CONCAT('b', i), CONCAT('word', i) FROM n";
    run(session, numbers).await.unwrap();
    for statement in [
        "SELECT id FROM f WHERE LOWER(a) = 'a7'",
        "SELECT id FROM f WHERE b = 'b7'",
        "SELECT CONCAT(id, 'x') FROM f WHERE MATCH(t) AGAINST('word7') AND id + 1 = 8",
    ] {
        assert_eq!(rows(session, statement).await.lines().count(), 1, "{statement}");
    }
    let usage = "SELECT CONCAT_WS(' ', INDEX_NAME, KIND, ANSWERS) AS u FROM remora.index_usage \
                 WHERE TABLE_NAME = 'f' AND ANSWERS > 0 AND INDEX_NAME <> 'PRIMARY'";
    assert_eq!(rows(session, usage).await, "b equality 1\nlow equality 1\nt text 1");
}

/// The columns select_type, table, type, key and Extra of each row, as one text.
async fn written(session: &mut Session, statement: &str) -> String {
    let found = explained(session, statement).await;
    let shown = |row: &Vec<String>| [1, 2, 3, 5].map(|column| row[column].as_str()).join(" ");
    found.iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// The select_type and the tables are those of MySQL 9.7; the access paths are Remora's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_how_statements_that_write_find_their_rows() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    let counted = "SELECT COUNT(*), SUM(total) FROM orders";
    let before = rows(session, counted).await;
    for (statement, told) in [
        ("INSERT INTO users VALUES (9000, 'a', 'de')", "INSERT users ALL NULL"),
        ("REPLACE INTO users SET id = 1, mail = 'a'", "REPLACE users ALL NULL"),
        (
            "INSERT INTO users (id, mail) VALUES (9000, (SELECT mail FROM users u WHERE id = 1))",
            "INSERT users ALL NULL; SUBQUERY u const PRIMARY",
        ),
        (
            "INSERT INTO orders SELECT id + 90000, user, state, made, total FROM orders o WHERE user = 5",
            "INSERT orders ALL NULL; SIMPLE o ref user_made",
        ),
        ("UPDATE orders SET total = 1 WHERE id = 7", "UPDATE orders const PRIMARY"),
        ("UPDATE orders o SET total = 1 WHERE user = 5", "UPDATE o ref user_made"),
        ("UPDATE orders SET total = total + 1", "UPDATE orders ALL NULL"),
        ("DELETE FROM orders WHERE state = 1", "DELETE orders ref state"),
        (
            "UPDATE users u JOIN orders o ON u.id = o.user SET o.total = 0 WHERE o.state = 1",
            "UPDATE o ref state; SIMPLE u eq_ref PRIMARY",
        ),
        (
            "DELETE o FROM orders o JOIN users u ON u.id = o.user WHERE o.state = 1",
            "DELETE o ref state; SIMPLE u eq_ref PRIMARY",
        ),
    ] {
        assert_eq!(written(session, statement).await, told, "{statement}");
    }
    assert_eq!(rows(session, counted).await, before, "nothing was written");
    for (statement, told) in [
        (
            "FORMAT=TREE INSERT INTO users VALUES (9000, 'a', 'de')",
            "-> Insert into users\n    -> Rows fetched before execution",
        ),
        (
            "FORMAT=TREE DELETE FROM orders WHERE user = 5",
            "-> Delete from orders (buffered)\n    -> Index lookup on orders using user_made",
        ),
    ] {
        let tree = rows(session, &format!("EXPLAIN {statement}")).await;
        assert!(tree.starts_with(told), "{statement}: {tree}");
    }
    let json =
        rows(session, "EXPLAIN FORMAT=JSON UPDATE orders SET total = 1 WHERE user = 5").await;
    assert!(json.contains("\"update\": true"), "{json}");
    let analysis = rows(session, "EXPLAIN ANALYZE DELETE FROM orders").await;
    assert!(analysis.starts_with("1235 "), "{analysis}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_reports_what_is_wrong_with_statements_that_write() {
    let server = Server::new();
    let mut session = shop(&server).await;
    let session = &mut session;
    for (statement, error) in [
        ("EXPLAIN INSERT INTO nosuch VALUES (1)", "1146 Table 'test.nosuch' doesn't exist"),
        (
            "EXPLAIN INSERT INTO users VALUES (1)",
            "1136 Column count doesn't match value count at row 1",
        ),
        (
            "EXPLAIN INSERT INTO users SELECT 1, 2",
            "1136 Column count doesn't match value count at row 1",
        ),
        (
            "EXPLAIN REPLACE INTO users SELECT id FROM users",
            "1136 Column count doesn't match value count at row 1",
        ),
        (
            "EXPLAIN INSERT INTO users VALUES (9000, nosuch, 'de')",
            "1054 Unknown column 'nosuch' in 'field list'",
        ),
        (
            "EXPLAIN INSERT INTO users SET id = 9000, mail = nosuch",
            "1054 Unknown column 'nosuch' in 'field list'",
        ),
        (
            "EXPLAIN INSERT INTO users VALUES (9000, 'a', 'de') ON DUPLICATE KEY UPDATE mail = CONCAT(nosuch, 'x')",
            "1054 Unknown column 'nosuch' in 'field list'",
        ),
        ("EXPLAIN UPDATE users SET nosuch = 1", "1054 Unknown column 'nosuch' in 'field list'"),
        ("EXPLAIN UPDATE users SET mail = nosuch", "1054 Unknown column 'nosuch' in 'field list'"),
        (
            "EXPLAIN DELETE FROM users WHERE nosuch = 1",
            "1054 Unknown column 'nosuch' in 'where clause'",
        ),
    ] {
        assert_eq!(rows(session, statement).await, error, "{statement}");
    }
}
