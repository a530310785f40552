//! Joins begin with the side that has fewer rows, which depends on how many distinct values columns have.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_sql::Session;

/// `a` and `b` have two values in `k`, so that each row of `a` meets half of `b`.
async fn tables(session: &mut Session) {
    for (table, count) in [("a", 1_000), ("b", 100), ("c", 3_000)] {
        let create = format!("CREATE TABLE {table} (id INT PRIMARY KEY, k INT, n INT, KEY (k))");
        run(session, &create).await.unwrap();
        let values: Vec<String> =
            (0..count).map(|id| format!("({id}, {}, {})", id % 2, id % 7)).collect();
        let insert = format!("INSERT INTO {table} VALUES {}", values.join(","));
        run(session, &insert).await.unwrap();
    }
}

/// The tables in the order in which they are read.
async fn order(session: &mut Session, statement: &str) -> String {
    let plan = rows(session, &format!("EXPLAIN {statement}")).await;
    let tables = plan.lines().filter_map(|line| line.split('|').nth(2));
    tables.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_follow_the_distinct_values_of_their_columns() {
    let server = Server::with_most_direct_rows(0);
    let mut session = server.session();
    tables(&mut session).await;
    // 50,000 rows of `a` and `b` are more than 3,000 of `c`, which is hashed first.
    let many = "SELECT SUM(a.n + b.n + c.n) FROM a JOIN b ON b.k = a.k JOIN c ON c.id = a.id";
    assert_eq!(order(&mut session, many).await, "c b a");
    // One row of each.
    let few = "SELECT SUM(a.n + b.n + c.n) FROM a JOIN b ON b.id = a.id JOIN c ON c.id = a.id";
    assert_eq!(order(&mut session, few).await, "b a c");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_distinct_values_follow_the_rows() {
    let server = Server::with_most_direct_rows(0);
    let mut session = server.session();
    tables(&mut session).await;
    let statement = "SELECT SUM(a.n + b.n + c.n) FROM a JOIN b ON b.k = a.k JOIN c ON c.id = a.id";
    assert_eq!(order(&mut session, statement).await, "c b a");
    run(&mut session, "UPDATE b SET k = id").await.unwrap();
    run(&mut session, "UPDATE a SET k = id").await.unwrap();
    // Counts are kept until the number of rows differs.
    let values: Vec<String> = (1_000..1_400).map(|id| format!("({id}, {id}, 1)")).collect();
    run(&mut session, &format!("INSERT INTO a VALUES {}", values.join(","))).await.unwrap();
    let values: Vec<String> = (100..150).map(|id| format!("({id}, {id}, 1)")).collect();
    run(&mut session, &format!("INSERT INTO b VALUES {}", values.join(","))).await.unwrap();
    assert_eq!(order(&mut session, statement).await, "b a c");
}
