//! Arguments of window functions, and the limits of windows that build on others.

use crate::support::{Server, rows, run};

#[tokio::test]
async fn window_functions_take_their_arguments() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    for call in ["FIRST_VALUE()", "LAST_VALUE()", "RANK(1)", "NTH_VALUE(id)", "LAG()", "NTILE()"] {
        let error = run(&mut session, &format!("SELECT {call} OVER () FROM t")).await.unwrap_err();
        assert_eq!(error.code.number(), 1064, "{call}: {error}");
    }
}

#[tokio::test]
async fn windows_that_build_on_others_are_bounded() {
    let server = Server::new();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a INT)").await.unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 5), (2, 6)").await.unwrap();
    let chain = |count: usize, first: &str| {
        let others = (1..count).map(|at| format!(", w{at} AS (w{})", at - 1));
        let windows = format!("w0 AS ({first}){}", others.collect::<String>());
        format!(
            "SELECT SUM(a) OVER (w{} ORDER BY id) FROM t WINDOW {windows} ORDER BY id",
            count - 1
        )
    };
    assert_eq!(rows(&mut session, &chain(256, "PARTITION BY a")).await, "5\n6");
    let large = vec!["a + 1"; 2_000].join(", ");
    for statement in [chain(257, "PARTITION BY a"), chain(256, &format!("PARTITION BY {large}"))] {
        let error = run(&mut session, &statement).await.unwrap_err();
        assert_eq!(error.code.number(), 1038, "{error}");
    }
}
