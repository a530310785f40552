//! Figures of statements in `/metrics`.

use crate::{
    mysql::{client::Answer, connect, protocols::http},
    support::TestServer,
};

/// The samples of one metric that are not 0: labels and value.
fn samples(server: &TestServer, name: &str) -> Vec<String> {
    let (status, _, body) = http(server, "GET /metrics", "", "");
    assert_eq!(status, 200, "{body}");
    let lines = body.lines().filter_map(|line| line.strip_prefix(name));
    let counted = lines.filter(|line| line.starts_with('{') && !line.ends_with(" 0"));
    counted.map(|line| line.replace(['{', '}', '"'], "")).collect()
}

#[test]
fn answers_of_indexes_are_counted_by_their_kind() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    // The second number of a row is one of 100, so that an index finds it sooner than a scan.
    let rows: Vec<String> =
        (0..4_000).map(|id| format!("({id}, {}, 'N{id}', 'a word')", id % 100)).collect();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT, name VARCHAR(20), body TEXT, KEY (n), \
         FULLTEXT KEY (body))",
        &format!("INSERT INTO shop.t VALUES {}", rows.join(", ")),
    ] {
        let answer = client.query(statement);
        assert!(matches!(answer, Answer::Ok { .. }), "{statement}: {answer:?}");
    }
    let answers = || samples(&server, "remora_index_answers_total");
    // INSERT looks for the key of each row.
    assert_eq!(answers(), ["table=shop.t,index=PRIMARY,kind=lookup 4000"]);
    for statement in [
        "SELECT n FROM shop.t WHERE id = 7",
        "SELECT id FROM shop.t WHERE n = 7",
        "SELECT COUNT(*) FROM shop.t WHERE n = 8",
        "SELECT COUNT(*) FROM shop.t WHERE n BETWEEN 8 AND 9",
        "SELECT id FROM shop.t ORDER BY n LIMIT 3",
        "SELECT COUNT(*) FROM shop.t WHERE MATCH(body) AGAINST('+word' IN BOOLEAN MODE)",
    ] {
        let answer = client.query(statement);
        assert!(matches!(answer, Answer::Rows(_)), "{statement}: {answer:?}");
    }
    let counted = [
        "table=shop.t,index=PRIMARY,kind=lookup 4001",
        "table=shop.t,index=n,kind=equality 2",
        "table=shop.t,index=n,kind=range 1",
        "table=shop.t,index=n,kind=order 1",
        "table=shop.t,index=body,kind=text 1",
    ];
    assert_eq!(answers(), counted);
    // EXPLAIN answers nothing.
    client.query("EXPLAIN SELECT COUNT(*) FROM shop.t WHERE n = 8");
    assert_eq!(answers(), counted);
}
