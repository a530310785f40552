//! Every access path returns the same rows in the same order: statements over random tables, indexes and data run
//! without a hint, with each key forced that can serve them, and with all keys ignored, which leaves a scan. What a text
//! index finds is compared with a LIKE that no index answers.
//!
//! `REMORA_STATEMENTS` sets the number of statements, each of which is compared on all its access paths.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod statements;

use std::time::{Duration, Instant};

use crate::support::random::Random;
use crate::support::{Server, rows, run};
use remora_sql::Session;
use statements::{
    FEW, ROWS, Table, filled, shape, statements_of, table, update, with_texts, written,
};

const STATEMENTS: usize = 10_000;
const TABLES: usize = 4;
/// The states of a table in which statements are compared, without that of an open transaction.
const STATES: usize = 4;
/// The share of statements for a transaction that has changed the table: each is planned.
const CHANGING: usize = 8;
/// What was compared.
#[derive(Default)]
struct Compared {
    statements: usize,
    answers: usize,
    took: Duration,
}

/// Compares this many statements, maybe within a transaction that has changed the table.
async fn compare(
    session: &mut Session,
    random: &mut Random,
    table: &Table,
    statements: usize,
    is_changing: bool,
    compared: &mut Compared,
) {
    let begun = Instant::now();
    let mut left = statements;
    while left > 0 {
        let shape = shape(random);
        let paths = table.paths(&shape, random);
        // A transaction with changes plans each statement.
        let most = if is_changing { FEW } else { left };
        let of_shape = statements_of(&shape).min(most).min(left);
        // The only statement of a shape runs again by its cached plan.
        let runs = if of_shape == 1 { FEW } else { of_shape };
        for _ in 0..runs {
            compare_paths(session, table, &filled(&shape, random), &paths).await;
        }
        left -= of_shape;
        compared.answers += of_shape * paths.len();
    }
    compared.statements += statements;
    compared.took += begun.elapsed();
}

/// Compares what a statement answers on its access paths with what a scan answers.
async fn compare_paths(session: &mut Session, table: &Table, statement: &str, paths: &[String]) {
    let scanned = with_texts(&statement.replace('@', &table.scan()), 0);
    let expected = run(session, &scanned).await;
    let expected = expected.unwrap_or_else(|error| panic!("{scanned}: {error}"));
    let expected = expected.sets[0].text();
    for (number, hint) in paths.iter().enumerate() {
        let hinted = with_texts(&statement.replace('@', hint), 1 + number % 2);
        let found = rows(session, &hinted).await;
        if found != expected {
            let explained = rows(session, &format!("EXPLAIN {hinted}")).await;
            panic!("{hinted}\n{found}\n  instead of\n{expected}\n{explained}");
        }
    }
}

/// Updates, deletes and replaces some rows.
async fn change(session: &mut Session, random: &mut Random) {
    for _ in 0..6 {
        run(session, &update(random)).await.unwrap();
        let id = random.below(ROWS);
        let delete = format!("DELETE FROM t WHERE id BETWEEN {id} AND {}", id + 5);
        run(session, &delete).await.unwrap();
        let id = random.below(ROWS);
        run(session, &written(random, "REPLACE", id, id + 3)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_access_path_gives_the_same_rows() {
    let mut random = Random::seeded();
    let begun = Instant::now();
    let statements = std::env::var("REMORA_STATEMENTS").ok().and_then(|it| it.parse().ok());
    let statements: usize = statements.unwrap_or(STATEMENTS);
    let in_state = statements.div_ceil(TABLES * STATES);
    let mut compared = Compared::default();
    for _ in 0..TABLES {
        compare_states(&mut random, in_state, &mut compared).await;
    }
    let Compared { statements, answers, took } = compared;
    println!(
        "{statements} statements on {answers} access paths: {took:?} of {:?}",
        begun.elapsed()
    );
    assert!(answers > statements * 2, "{answers} access paths of {statements} statements");
}

/// Compares statements in each state of a table: as it was filled, after changes, in a transaction that has changed it,
/// merged, and changed and started again.
async fn compare_states(random: &mut Random, statements: usize, compared: &mut Compared) {
    let directory = tempfile::tempdir().unwrap();
    let table = table(random);
    {
        let server = Server::at(directory.path());
        let mut session = server.session();
        run(&mut session, &table.definition).await.unwrap();
        for from in (0..ROWS).step_by(100) {
            run(&mut session, &written(random, "INSERT", from, from + 100)).await.unwrap();
        }
        compare(&mut session, random, &table, statements, false, compared).await;
        change(&mut session, random).await;
        compare(&mut session, random, &table, statements, false, compared).await;
        run(&mut session, "BEGIN").await.unwrap();
        change(&mut session, random).await;
        compare(&mut session, random, &table, statements / CHANGING, true, compared).await;
        run(&mut session, "COMMIT").await.unwrap();
        run(&mut session, "OPTIMIZE TABLE t").await.unwrap();
        compare(&mut session, random, &table, statements, false, compared).await;
        change(&mut session, random).await;
        server.database.close().unwrap();
    }
    let server = Server::at(directory.path());
    let mut session = server.session();
    compare(&mut session, random, &table, statements, false, compared).await;
}

/// MySQL orders ENUM values by their numbers, with and without a key.
#[tokio::test(flavor = "multi_thread")]
async fn labels_are_in_the_order_of_their_numbers() {
    let server = Server::new();
    let mut session = server.session();
    for key in ["", ", KEY (l), KEY l_n (l, n)"] {
        let table = format!(
            "CREATE TABLE e (id INT PRIMARY KEY, l ENUM('mid', 'low', 'top', 'high'), n INT{key})"
        );
        run(&mut session, &table).await.unwrap();
        let inserted = "INSERT INTO e VALUES (1, 'high', 4), (2, 'low', 6), (3, 'mid', 1), (4, 'top', 2), \
                        (5, 'low', 5), (6, 'high', 3)";
        run(&mut session, inserted).await.unwrap();
        for (statement, expected) in [
            ("SELECT DISTINCT l FROM e ORDER BY l", "mid\nlow\ntop\nhigh"),
            ("SELECT DISTINCT l FROM e ORDER BY l DESC LIMIT 2", "high\ntop"),
            ("SELECT l, COUNT(*) FROM e GROUP BY l ORDER BY l", "mid|1\nlow|2\ntop|1\nhigh|2"),
            (
                "SELECT l, COUNT(*) FROM e GROUP BY l ORDER BY COUNT(*) DESC, l",
                "low|2\nhigh|2\nmid|1\ntop|1",
            ),
            (
                "SELECT l, MIN(n), MAX(n) FROM e GROUP BY l ORDER BY l DESC LIMIT 3",
                "high|3|4\ntop|2|2\nlow|5|6",
            ),
        ] {
            assert_eq!(rows(&mut session, statement).await, expected, "{statement} {key}");
        }
        run(&mut session, "DROP TABLE e").await.unwrap();
    }
}
