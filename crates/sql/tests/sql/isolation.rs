//! Snapshot isolation with concurrent writers: a transaction reads one snapshot and its own writes, the first committer
//! wins, no update is lost, and unique keys hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_mysql::ErrorCode;
use remora_sql::{Error, Session};

const ACCOUNTS: u64 = 8;
const WRITERS: u64 = 4;
const TRANSFERS: u64 = 40;

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

async fn accounts(server: &Server) {
    let mut session = server.session();
    run(&mut session, "CREATE TABLE account (id INT PRIMARY KEY, money INT, version INT)")
        .await
        .unwrap();
    for id in 0..ACCOUNTS {
        run(&mut session, &format!("INSERT INTO account VALUES ({id}, 100, 0)")).await.unwrap();
    }
}

/// Moves money between two accounts, and reads them again before the commit.
async fn transfer(session: &mut Session, random: &mut Random) -> Result<(), Error> {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let amount = random.below(20);
    run(session, "BEGIN").await?;
    let before = rows(session, "SELECT SUM(money), SUM(version) FROM account").await;
    assert!(before.starts_with("800|"), "a transaction saw half of another: {before}");
    run(
        session,
        &format!(
            "UPDATE account SET money = money - {amount}, version = version + 1 WHERE id = {from}"
        ),
    )
    .await?;
    run(
        session,
        &format!(
            "UPDATE account SET money = money + {amount}, version = version + 1 WHERE id = {to}"
        ),
    )
    .await?;
    let versions: u64 = before.split('|').nth(1).unwrap().parse().unwrap();
    let after = rows(session, "SELECT SUM(money), SUM(version) FROM account").await;
    assert_eq!(after, format!("800|{}", versions + 2), "the snapshot moved");
    run(session, "COMMIT").await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transfers_lose_nothing_and_are_seen_whole() {
    let server = Server::new();
    accounts(&server).await;
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let mut session = server.session();
        tasks.push(tokio::spawn(async move {
            let mut random = Random(0x9e37_79b9 + writer);
            let mut refused = 0_u64;
            let mut done = 0;
            while done < TRANSFERS {
                match transfer(&mut session, &mut random).await {
                    Ok(()) => done += 1,
                    Err(error) if error.code == ErrorCode::Deadlock => refused += 1,
                    Err(error) => panic!("{error}"),
                }
                assert!(refused < 100_000, "nobody gets through");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut session = server.session();
    let sums = rows(&mut session, "SELECT SUM(money), SUM(version) FROM account").await;
    assert_eq!(sums, format!("800|{}", WRITERS * TRANSFERS * 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statements_of_their_own_are_tried_again() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE counter (id INT PRIMARY KEY, n INT)").await.unwrap();
    run(&mut session, "INSERT INTO counter VALUES (1, 0)").await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..WRITERS {
        let mut session = server.session();
        tasks.push(tokio::spawn(async move {
            for _ in 0..25 {
                let text = "UPDATE counter SET n = n + 1 WHERE id = 1";
                let answer = run(&mut session, text).await.unwrap();
                assert_eq!(answer.sets[0].outcome.affected_rows, 1);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(rows(&mut session, "SELECT n FROM counter").await, (WRITERS * 25).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unique_keys_and_counters_hold_among_sessions() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20) UNIQUE, w INT)";
    run(&mut session, table).await.unwrap();
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let mut session = server.session();
        tasks.push(tokio::spawn(async move {
            let mut won = 0_u64;
            for key in 0..30 {
                // Only one of two names that differ in case may exist.
                let name = if writer % 2 == 0 { "Key" } else { "KEY" };
                let text = format!("INSERT INTO u (k, w) VALUES ('{name}{key}', {writer})");
                match run(&mut session, &text).await {
                    Ok(_) => won += 1,
                    Err(error) => assert_eq!(error.code, ErrorCode::DuplicateKey, "{error}"),
                }
            }
            won
        }));
    }
    let mut won = 0;
    for task in tasks {
        won += task.await.unwrap();
    }
    assert_eq!(won, 30);
    let counted =
        rows(&mut session, "SELECT COUNT(*), COUNT(DISTINCT k), COUNT(DISTINCT id) FROM u");
    assert_eq!(counted.await, "30|30|30");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_committer_wins() {
    let server = Server::new();
    accounts(&server).await;
    let (mut one, mut two) = (server.session(), server.session());
    run(&mut one, "BEGIN; UPDATE account SET money = 1 WHERE id = 1").await.unwrap();
    run(&mut two, "BEGIN; UPDATE account SET money = 2 WHERE id = 1").await.unwrap();
    run(&mut two, "COMMIT").await.unwrap();
    let lost = run(&mut one, "COMMIT").await.unwrap_err();
    assert_eq!(lost.code, ErrorCode::Deadlock);
    assert_eq!(rows(&mut one, "SELECT money FROM account WHERE id = 1").await, "2");
    // Rows that were only read may change, unless they are locked.
    run(&mut one, "BEGIN; SELECT * FROM account WHERE id = 1").await.unwrap();
    run(&mut two, "UPDATE account SET money = 3 WHERE id = 1").await.unwrap();
    run(&mut one, "UPDATE account SET money = 9 WHERE id = 2; COMMIT").await.unwrap();
    run(&mut one, "BEGIN; SELECT * FROM account WHERE id = 1 FOR UPDATE").await.unwrap();
    run(&mut two, "UPDATE account SET money = 4 WHERE id = 1").await.unwrap();
    let lost = run(&mut one, "UPDATE account SET money = 8 WHERE id = 2; COMMIT").await;
    assert_eq!(lost.unwrap_err().code, ErrorCode::Deadlock);
    assert_eq!(rows(&mut one, "SELECT money FROM account WHERE id = 2").await, "9");
}

/// Sessions concurrently create and rename tables to the same name: one of them succeeds, and the others lose no rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_gets_a_name() {
    const ROUNDS: usize = 30;
    let server = Server::new();
    let mut session = server.session();
    for round in 0..ROUNDS {
        for taker in 0..2 {
            let made = format!("CREATE TABLE t{taker} (id INT PRIMARY KEY, u INT UNIQUE)");
            run(&mut session, &made).await.unwrap();
            run(&mut session, &format!("INSERT INTO t{taker} VALUES ({taker}, 5)")).await.unwrap();
        }
        let statements = [
            "RENAME TABLE t0 TO wanted".to_owned(),
            "ALTER TABLE t1 RENAME TO wanted".to_owned(),
            "CREATE TABLE wanted (id INT PRIMARY KEY, u INT UNIQUE)".to_owned(),
            "CREATE TABLE wanted (id INT PRIMARY KEY, u INT UNIQUE)".to_owned(),
            "CREATE TABLE wanted (id INT PRIMARY KEY, v INT) SELECT 7 AS id".to_owned(),
            "ALTER TABLE t0 ADD UNIQUE (id, u)".to_owned(),
        ];
        let tasks = statements.into_iter().map(|statement| {
            let mut session = server.session();
            tokio::spawn(async move { run(&mut session, &statement).await.map(|_| ()) })
        });
        let tasks: Vec<_> = tasks.collect();
        let (mut taken, mut altered) = (0, false);
        for (number, task) in tasks.into_iter().enumerate() {
            match (number, task.await.unwrap()) {
                (5, done) => altered = done.is_ok(),
                (_, Ok(())) => taken += 1,
                (_, Err(error)) => {
                    assert_eq!(error.code, ErrorCode::TableExists, "round {round}: {error}");
                    assert_eq!(error.message, "Table 'wanted' already exists");
                }
            }
        }
        assert_eq!(taken, 1, "round {round}");
        // The rows of a renamed table are there, and so is its unique index.
        let left = rows(
            &mut session,
            "SELECT COUNT(*) FROM information_schema.tables \
                         WHERE table_schema = 'test'",
        )
        .await;
        let found = rows(&mut session, "SELECT COUNT(*), SUM(id < 2) FROM wanted").await;
        let renamed = left == "2";
        assert_eq!(renamed, found == "1|1", "round {round}: {found}, {left} tables, {altered}");
        if renamed {
            let again = run(&mut session, "INSERT INTO wanted (id, u) VALUES (9, 5)").await;
            assert_eq!(again.unwrap_err().code, ErrorCode::DuplicateKey, "round {round}");
        }
        run(&mut session, "DROP TABLE IF EXISTS t0, t1, wanted").await.unwrap();
    }
}

/// Reading the list of tables does not fail because others create and drop tables meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_come_and_go_while_others_look() {
    const ROUNDS: usize = 60;
    const QUESTIONS: [&str; 6] = [
        "SELECT COUNT(*) FROM information_schema.tables WHERE data_length >= 0",
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test' AND \
         auto_increment > 0",
        "SELECT COUNT(*) FROM information_schema.statistics",
        "SELECT COUNT(*) FROM information_schema.partitions",
        "SHOW TABLE STATUS FROM passing",
        "SHOW TABLE STATUS",
    ];
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE DATABASE passing").await.unwrap();
    run(&mut session, "CREATE TABLE here (id INT PRIMARY KEY AUTO_INCREMENT)").await.unwrap();
    let makers = (0..2).map(|number| {
        let mut session = server.session();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let name = format!("passing.t{number}");
                let columns = if round % 2 == 0 {
                    "id INT PRIMARY KEY AUTO_INCREMENT, n INT UNIQUE"
                } else {
                    "n VARCHAR(9), other INT AUTO_INCREMENT, KEY (other)"
                };
                run(&mut session, &format!("CREATE TABLE {name} ({columns})")).await.unwrap();
                run(&mut session, &format!("INSERT INTO {name} (n) VALUES (1)")).await.unwrap();
                run(&mut session, &format!("DROP TABLE {name}")).await.unwrap();
            }
        })
    });
    let makers: Vec<_> = makers.collect();
    while !makers.iter().all(|maker| maker.is_finished()) {
        for question in QUESTIONS {
            run(&mut session, question).await.unwrap();
        }
    }
    for maker in makers {
        maker.await.unwrap();
    }
}

/// As in MySQL: READ COMMITTED sees what others committed before a statement begins, REPEATABLE READ does not.
#[tokio::test(flavor = "multi_thread")]
async fn read_committed_sees_what_others_committed() {
    let server = Server::new();
    let (mut one, mut other) = (server.session(), server.session());
    run(&mut one, "CREATE TABLE t (id INT PRIMARY KEY, v INT)").await.unwrap();
    let count = "SELECT COUNT(*), SUM(v) FROM t";
    let committed = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    let uncommitted = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    let repeatable = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    for (level, sees) in
        [(committed, true), ("DO 0", false), (uncommitted, true), (repeatable, false)]
    {
        run(&mut other, "DELETE FROM t").await.unwrap();
        run(&mut one, level).await.unwrap();
        run(&mut one, "START TRANSACTION").await.unwrap();
        assert_eq!(rows(&mut one, count).await, "0|NULL");
        run(&mut other, "INSERT INTO t VALUES (1, 1)").await.unwrap();
        assert_eq!(rows(&mut one, count).await, if sees { "1|1" } else { "0|NULL" }, "{level}");
        // The transaction's own changes stay, next to those that others committed.
        run(&mut one, "INSERT INTO t VALUES (2, 10)").await.unwrap();
        run(&mut other, "INSERT INTO t VALUES (3, 100)").await.unwrap();
        assert_eq!(rows(&mut one, count).await, if sees { "3|111" } else { "1|10" }, "{level}");
        run(&mut one, "UPDATE t SET v = 20 WHERE id = 2").await.unwrap();
        let row = rows(&mut one, "SELECT v FROM t WHERE id = 2").await;
        assert_eq!(row, "20");
        run(&mut one, "COMMIT").await.unwrap();
        assert_eq!(rows(&mut one, count).await, "3|121");
    }
    // Two transactions change one row: the second commit fails, as at every isolation level.
    run(&mut one, committed).await.unwrap();
    run(&mut one, "BEGIN").await.unwrap();
    run(&mut one, "UPDATE t SET v = 5 WHERE id = 1").await.unwrap();
    run(&mut other, "UPDATE t SET v = 6 WHERE id = 1").await.unwrap();
    assert_eq!(rows(&mut one, "SELECT v FROM t WHERE id = 1").await, "5");
    assert_eq!(run(&mut one, "COMMIT").await.unwrap_err().code, ErrorCode::Deadlock);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_transaction_is_what_it_was_said_to_be() {
    let server = Server::new();
    let (mut one, mut other) = (server.session(), server.session());
    run(&mut one, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    run(&mut other, "CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY)").await.unwrap();
    let next = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    let by_name = "SET @@transaction_isolation = 'READ-COMMITTED'";
    let session = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let cases: [(&[&str], bool); 8] = [
        (&["BEGIN"], false),
        (&[next, "BEGIN"], true),
        (&[by_name, "BEGIN"], true),
        (&[next, "BEGIN", "COMMIT", "BEGIN"], false),
        (&[next, "BEGIN", "COMMIT AND CHAIN"], true),
        (&[next, "BEGIN", "ROLLBACK AND CHAIN"], true),
        (&[next, "CREATE TABLE u (id INT)", "DROP TABLE u", "BEGIN"], false),
        (&["SET transaction_isolation = 'READ-COMMITTED'", "BEGIN", "COMMIT", "BEGIN"], true),
    ];
    for (statements, sees) in cases {
        run(&mut one, session).await.unwrap();
        for statement in statements {
            run(&mut one, statement).await.unwrap();
        }
        let count = "SELECT COUNT(*) FROM ids";
        let before: u64 = rows(&mut one, count).await.parse().unwrap();
        run(&mut other, "INSERT INTO ids VALUES (NULL)").await.unwrap();
        let after: u64 = rows(&mut one, count).await.parse().unwrap();
        assert_eq!(after - before, u64::from(sees), "{statements:?}");
        run(&mut one, "COMMIT").await.unwrap();
    }
    run(&mut one, "BEGIN").await.unwrap();
    assert!(rows(&mut one, by_name).await.starts_with("1568 "));
}

/// A session without a connection has none to end, and does not take the transaction for ended.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_connection_is_released() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    run(&mut session, "BEGIN").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (1)").await.unwrap();
    for end in ["COMMIT RELEASE", "ROLLBACK RELEASE"] {
        let refused = run(&mut session, end).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotSupported, "{end}");
    }
    assert!(session.status().in_transaction && !session.is_released());
    run(&mut session, "COMMIT NO RELEASE").await.unwrap();
    session.allow_release(true);
    run(&mut session, "COMMIT RELEASE").await.unwrap();
    assert!(session.is_released());
    assert_eq!(rows(&mut session, "SELECT id FROM t").await, "1");
    assert!(!session.is_released());
}

/// After a table's definition changed, its columns are not read by their old positions. A table younger than the
/// transaction is a conflict, after which clients retry.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_change_beside_read_committed() {
    let server = Server::new();
    let (mut one, mut other) = (server.session(), server.session());
    run(&mut one, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)").await.unwrap();
    run(&mut one, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await.unwrap();
    run(&mut one, "BEGIN").await.unwrap();
    run(&mut one, "INSERT INTO t VALUES (5, 1, 9)").await.unwrap();
    run(&mut other, "ALTER TABLE t DROP COLUMN a").await.unwrap();
    assert_eq!(rows(&mut one, "SELECT * FROM t").await, "5|1|9");
    assert_eq!(run(&mut one, "COMMIT").await.unwrap_err().code, ErrorCode::Deadlock);
    assert_eq!(rows(&mut one, "SELECT * FROM t").await, "");
    run(&mut one, "BEGIN").await.unwrap();
    run(&mut one, "INSERT INTO t VALUES (6, 9)").await.unwrap();
    run(&mut other, "CREATE TABLE young (id INT PRIMARY KEY)").await.unwrap();
    run(&mut one, "INSERT INTO young VALUES (1)").await.unwrap();
    assert_eq!(run(&mut one, "COMMIT").await.unwrap_err().code, ErrorCode::Deadlock);
}

/// The first reading statement of a transaction takes the snapshot, whatever kind of statement it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_begins_with_any_statement_that_reads() {
    let server = Server::new();
    accounts(&server).await;
    let (mut session, mut other) = (server.session(), server.session());
    run(&mut session, "SET autocommit = 0").await.unwrap();
    for (round, first) in [
        "SELECT money FROM account WHERE id = 1",
        "/* of a tool */ SELECT money FROM account WHERE id = 1",
        "-- of a person\nSELECT money FROM account WHERE id = 1",
        "(SELECT money FROM account WHERE id = 1)",
        "WITH t AS (SELECT money FROM account WHERE id = 1) SELECT money FROM t",
    ]
    .iter()
    .enumerate()
    {
        // Twice, so that its plan is cached.
        for again in 0..2 {
            let seen = rows(&mut session, first).await;
            let money = 1_000 * (round + 1) + again;
            run(&mut other, &format!("UPDATE account SET money = {money} WHERE id = 1"))
                .await
                .unwrap();
            let later = rows(&mut session, "SELECT money FROM account WHERE id = 1").await;
            assert_eq!(seen, later, "{first}");
            run(&mut session, "COMMIT").await.unwrap();
        }
    }
}

/// FOR UPDATE and FOR SHARE protect the rows that a secondary index finds, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn rows_found_by_a_secondary_index_are_locked() {
    let server = Server::new();
    let (mut one, mut two) = (server.session(), server.session());
    let table = "CREATE TABLE account (id INT PRIMARY KEY, owner INT, money INT, KEY (owner))";
    run(&mut one, table).await.unwrap();
    let accounts: Vec<String> = (0..6_000).map(|id| format!("({id},{},100)", id % 1_000)).collect();
    let inserted = format!("INSERT INTO account VALUES {}", accounts.join(","));
    run(&mut one, &inserted).await.unwrap();
    // A row that the index still has, and one in a segment of its own.
    run(
        &mut one,
        "DELETE FROM account WHERE id = 7; UPDATE account SET money = 50 WHERE id = 1007",
    )
    .await
    .unwrap();
    let explained = rows(&mut one, "EXPLAIN SELECT money FROM account WHERE owner = 7").await;
    assert!(explained.contains("|ref|owner|owner|"), "{explained}");
    for (by, locking) in [
        ("owner = 7", "FOR UPDATE"),
        ("owner = 7", "FOR SHARE"),
        ("owner = 7 AND money <= 100 ORDER BY money LIMIT 5", "FOR UPDATE"),
        ("owner BETWEEN 7 AND 9", "FOR UPDATE"),
    ] {
        for (id, is_locked) in [(1007, true), (5007, true), (10, false), (1010, false)] {
            let read = format!("BEGIN; SELECT id FROM account WHERE {by} {locking}");
            let found = run(&mut one, &read).await.unwrap();
            assert!(found.sets[1].rows.len() >= 5, "{by}: {found:?}");
            run(&mut two, &format!("UPDATE account SET money = money - 1 WHERE id = {id}"))
                .await
                .unwrap();
            let done =
                run(&mut one, "UPDATE account SET money = money + 1 WHERE id = 3; COMMIT").await;
            match is_locked {
                true => assert_eq!(done.unwrap_err().code, ErrorCode::Deadlock, "{by} {id}"),
                false => assert!(done.is_ok(), "{by} {id}: {done:?}"),
            }
        }
    }
}

/// The rows are those of FROM and WHERE, whatever is selected of them.
#[tokio::test(flavor = "multi_thread")]
async fn locked_are_the_rows_that_any_form_of_select_reads() {
    let server = Server::new();
    let (mut one, mut two) = (server.session(), server.session());
    run(&mut one, "CREATE TABLE account (id INT PRIMARY KEY, owner INT, money INT)").await.unwrap();
    run(&mut one, "INSERT INTO account VALUES (1,7,1),(2,7,2),(3,8,3),(4,9,4)").await.unwrap();
    for read in [
        "SELECT money FROM account WHERE id IN (1, 2) FOR UPDATE",
        "SELECT money + 1 AS more FROM account WHERE owner = 7 ORDER BY more FOR UPDATE",
        "SELECT owner FROM account ORDER BY id LIMIT 2 FOR UPDATE",
        "SELECT COUNT(*) FROM account WHERE owner = 7 FOR SHARE",
        "SELECT owner, SUM(money) FROM account WHERE owner < 8 GROUP BY owner LIMIT 1 FOR UPDATE",
        "SELECT owner FROM account WHERE owner < 8 GROUP BY owner HAVING owner > 0 FOR UPDATE",
        "SELECT DISTINCT owner FROM account WHERE owner = 7 LOCK IN SHARE MODE",
        "WITH few AS (SELECT 7 AS owner) SELECT few.owner FROM account JOIN few USING (owner) FOR UPDATE",
        "SELECT SUM(money) INTO @sum FROM account WHERE owner = 7 FOR UPDATE",
        "SELECT owner, money * 2 AS double_money FROM account ORDER BY double_money LIMIT 2 FOR UPDATE",
        "SELECT owner, -money FROM account WHERE id < 3 ORDER BY 2 LIMIT 2 FOR UPDATE",
        "SELECT SUM(money) FROM account WHERE owner = 7 LIMIT 1 FOR UPDATE",
        "SELECT DISTINCT owner FROM account WHERE owner = 7 LIMIT 1 FOR UPDATE",
        "SELECT a.id FROM account AS a JOIN account AS b ON b.id = 3 WHERE a.owner = 7 FOR UPDATE OF a",
        "SELECT a.money FROM account AS a WHERE EXISTS (SELECT 1 FROM account AS b WHERE b.id = a.id \
         AND b.owner = 7) FOR UPDATE",
    ] {
        for (id, is_locked) in [(1, true), (2, true), (3, false)] {
            let begun = run(&mut one, &format!("BEGIN; {read}")).await;
            assert!(begun.is_ok(), "{read}: {begun:?}");
            let changed = format!("UPDATE account SET money = money + 1 WHERE id = {id}");
            run(&mut two, &changed).await.unwrap();
            let done =
                run(&mut one, "UPDATE account SET money = money + 1 WHERE id = 4; COMMIT").await;
            let code = done.err().map(|error| error.code);
            assert_eq!(code, is_locked.then_some(ErrorCode::Deadlock), "{read}: {id}");
        }
    }
}
