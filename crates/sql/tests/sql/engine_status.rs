//! SHOW ENGINE … STATUS: the tree of each table and its statistics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_sql::Session;

/// The line of a table's status that begins with this name.
async fn figure(session: &mut Session, name: &str) -> String {
    let answers = run(session, "SHOW ENGINE remora STATUS").await.unwrap();
    let row = answers.sets[0].rows.iter().find(|row| row[1] == "test.t").unwrap();
    let line = row[2].lines().find(|line| line.starts_with(name));
    line.map_or(String::new(), str::to_owned)
}

#[tokio::test]
async fn the_tree_and_its_work_are_told() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9))").await.unwrap();
    assert_eq!(figure(&mut session, "level").await, "");
    run(&mut session, "INSERT INTO t VALUES (1, 'a'), (5, 'b'), (9, 'c')").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (2, 'd'), (8, 'e')").await.unwrap();
    let level = figure(&mut session, "level 0").await;
    assert!(level.starts_with("level 0: 2 segments, 5 rows, 0 deleted, "), "{level}");
    assert_eq!(figure(&mut session, "segments").await, "segments: 2");
    assert_eq!(figure(&mut session, "merges").await, "merges: 0");
    let before = |line: String| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let checks = before(figure(&mut session, "bloom filter checks").await);
    let saves = before(figure(&mut session, "bloom filter saves").await);
    // 9 is beyond the second segment, 3 is in the range of both.
    assert_eq!(rows(&mut session, "SELECT s FROM t WHERE id = 9").await, "c");
    assert_eq!(rows(&mut session, "SELECT s FROM t WHERE id = 3").await, "");
    assert_eq!(before(figure(&mut session, "bloom filter checks").await), checks + 3);
    assert_eq!(before(figure(&mut session, "bloom filter saves").await), saves + 2);
    run(&mut session, "DELETE FROM t WHERE id = 5").await.unwrap();
    let level = figure(&mut session, "level 0").await;
    assert!(level.starts_with("level 0: 2 segments, 4 rows, 1 deleted, "), "{level}");
    run(&mut session, "OPTIMIZE TABLE t").await.unwrap();
    let level = figure(&mut session, "level 0").await;
    assert!(level.starts_with("level 0: 1 segments, 4 rows, 0 deleted, "), "{level}");
    assert_eq!(figure(&mut session, "merges").await, "merges: 1");
    assert_ne!(figure(&mut session, "merged bytes").await, "merged bytes: 0");
    run(&mut session, "ALTER TABLE t ADD COLUMN n INT").await.unwrap();
    assert_eq!(figure(&mut session, "merges").await, "merges: 1");
}

#[tokio::test]
async fn tools_find_one_text_where_innodb_has_it() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    let answers = run(&mut session, "SHOW ENGINE INNODB STATUS").await.unwrap();
    assert_eq!(answers.sets[0].names(), ["Type", "Name", "Status"]);
    let [row] = answers.sets[0].rows.as_slice() else { panic!("{answers:?}") };
    assert_eq!(row[..2], ["InnoDB", ""]);
    assert!(row[2].contains("SERVER") && row[2].contains("\ntest.t\n"), "{}", row[2]);
    assert_eq!(rows(&mut session, "SHOW ENGINE innodb MUTEX").await, "");
    let unknown = rows(&mut session, "SHOW ENGINE rocks STATUS").await;
    assert_eq!(unknown, "1286 Unknown storage engine 'rocks'");
}
