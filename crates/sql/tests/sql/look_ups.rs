//! General joins of large tables look rows up by indexes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_sql::Session;

use crate::support::{Server, rows, run};

/// The rows that a line of EXPLAIN ANALYZE read.
fn rows_of(plan: &str, table: &str) -> u64 {
    let line = plan.lines().find(|line| line.contains(&format!(" on {table} "))).unwrap();
    let (_, rest) = line.rsplit_once("rows=").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Makes a table of so many rows, up to 200,000, with keys over two columns, and one of four rows.
async fn many_and_few(session: &mut Session, rows: u32) {
    let fill = format!(
        "INSERT INTO many SELECT id, id % 1000, CONCAT('T', id % 7000) FROM (SELECT a.n + 10 * b.n + 100 * c.n + \
         1000 * d.n + 10000 * e.n + 100000 * f.n AS id FROM digits a, digits b, digits c, digits d, \
         digits e, digits f WHERE f.n < 2) x WHERE id < {rows}"
    );
    for statement in [
        "CREATE TABLE digits (n INT PRIMARY KEY)",
        "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
        "CREATE TABLE many (id INT PRIMARY KEY, k INT, t VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, KEY (k), KEY (t))",
        &fill,
        "CREATE TABLE few (id INT PRIMARY KEY, k INT, t VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)",
        "INSERT INTO few VALUES (1, 7, 't5'), (2, NULL, NULL), (3, 9, 'T6'), (4, -1, 'none')",
    ] {
        run(session, statement).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_read_only_rows_with_keys_of_the_other_side() {
    let server = Server::optimizing();
    let mut session = server.session();
    let session = &mut session;
    many_and_few(session, 140_000).await;
    for (join, table, read) in [
        // Both sides of the first join are so large that it runs in several partitions.
        ("many b, many c, few f WHERE b.id = c.id AND b.k = f.k", "c", 280),
        ("few f JOIN many c ON c.t = f.t", "c", 40),
        ("few f LEFT JOIN many c ON c.t = f.t", "c", 40),
    ] {
        // UUID keeps these statements from cached plans.
        let statement = format!("SELECT COUNT(c.id), SUM(c.k), MIN(UUID() < '') FROM {join}");
        let plan = rows(session, &format!("EXPLAIN ANALYZE {statement}")).await;
        let plan = plan.replace("\\n", "\n");
        assert!(rows_of(&plan, table) <= read, "{plan}");
        let answer = rows(session, &statement).await;
        assert!(answer.contains(&read.to_string()), "{join}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_iteration_of_a_recursive_query_looks_its_keys_up() {
    let server = Server::optimizing();
    let mut session = server.session();
    let session = &mut session;
    for statement in [
        "SET cte_max_recursion_depth = 100000",
        "CREATE TABLE posts (id INT PRIMARY KEY, parent INT, KEY (parent))",
        "CREATE TABLE users (id INT PRIMARY KEY, parent INT)",
        "INSERT INTO posts WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) \
         SELECT n, IF(n % 10 = 1, NULL, n - 1) FROM n",
        "INSERT INTO users SELECT * FROM posts",
    ] {
        run(session, statement).await.unwrap();
    }
    // Up to the first post of a thread; down to the last one; and through a second table.
    for (recursive, answer) in [
        ("SELECT p.id, p.parent FROM posts p JOIN x ON p.id = x.parent", "5, 12341, 12345"),
        ("SELECT p.id, p.parent FROM x JOIN posts p ON p.parent = x.id", "6, 12345, 12350"),
        (
            "SELECT p.id, p.parent FROM users u JOIN posts p ON p.id = u.id JOIN x ON u.id = x.parent",
            "5, 12341, 12345",
        ),
    ] {
        let first = "SELECT id, parent FROM posts WHERE id = 12345";
        let all = format!(
            "WITH RECURSIVE x AS ({first} UNION ALL {recursive}) \
             SELECT CONCAT_WS(', ', COUNT(*), MIN(id), MAX(id)) FROM x"
        );
        assert!(rows(session, &all).await.contains(answer), "{all}");
        let plan = rows(session, &format!("EXPLAIN ANALYZE {all}")).await.replace("\\n", "\n");
        assert!(rows_of(&plan, "p") <= 1, "{plan}");
    }
}

/// The values of uncorrelated subqueries are looked up like literals, in the first run of a statement too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_subqueries_are_looked_up() {
    let server = Server::optimizing();
    let mut session = server.session();
    let session = &mut session;
    many_and_few(session, 50_000).await;
    for (condition, found) in [
        ("o.id = (SELECT MAX(i.id) FROM many i WHERE i.k = 7)", 1),
        ("(SELECT MAX(i.id) FROM many i WHERE i.k = 7) <= o.id", 993),
        ("o.t = (SELECT MAX(f.t) FROM few f)", 8),
        ("o.k = (SELECT f.k FROM few f WHERE f.id = 1)", 50),
        ("o.k = (SELECT f.k FROM few f WHERE f.id = (SELECT MIN(g.id) FROM few g))", 50),
        ("o.id > ALL (SELECT i.id FROM many i WHERE i.id < 49990)", 10),
        ("o.id < ANY (SELECT f.id FROM few f)", 4),
        ("o.id < ALL (SELECT f.id FROM few f WHERE f.id > 2)", 3),
    ] {
        // UUID keeps these statements from cached plans.
        let statement = format!("SELECT COUNT(*), MIN(UUID() < '') FROM many o WHERE {condition}");
        let plan = rows(session, &format!("EXPLAIN ANALYZE {statement}")).await;
        let plan = plan.replace("\\n", "\n");
        assert!(rows_of(&plan, "o") <= found, "{condition}: {plan}");
        let answer = rows(session, &statement).await;
        assert!(answer.contains(&found.to_string()), "{condition}: {answer}");
    }
}
