//! The hidden columns of functional keys: no protocol shows them, and no protocol writes rows without them.

use crate::{
    mysql::{client::Answer, connect, protocols::http},
    support::TestServer,
};

/// The texts of all rows.
fn rows(answer: Answer) -> Vec<Vec<String>> {
    let Answer::Rows(rows) = answer else { panic!("no rows: {answer:?}") };
    let texts = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default);
    rows.into_iter().map(|row| texts(row).collect()).collect()
}

/// The hidden column of the key.
const HIDDEN: &str = "#key.0.low";

fn server() -> TestServer {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(20), n INT, KEY low ((LOWER(name))), KEY (n))",
        "INSERT INTO shop.t VALUES (1, 'AbC', 7), (2, 'DeF', 8)",
    ] {
        let answer = client.query(statement);
        assert!(matches!(answer, Answer::Ok { .. }), "{statement}: {answer:?}");
    }
    let found = client.query("SELECT id FROM shop.t WHERE LOWER(name) = 'abc'");
    assert_eq!(rows(found), [["1"]]);
    server
}

#[test]
fn no_protocol_shows_computed_columns() {
    let server = server();
    let mut line = server.connect();
    // What is shown if nothing is said, and if everything is asked for.
    for request in [
        "GET shop.t 1",
        "GET shop.t 1 FIELDS *",
        "SEARCH shop.t FILTER n = 7 FIELDS *",
        "SCHEMA shop.t",
    ] {
        let reply = line.ask(request);
        assert!(reply.starts_with("OK ") && reply.contains("name"), "{request}: {reply}");
        assert!(!reply.contains("#key") && !reply.contains("abc"), "{request}: {reply}");
    }
    for (request, body) in [
        ("GET /tables/shop.t/1", ""),
        ("GET /tables/shop.t/1?fields=*", ""),
        ("POST /tables/shop.t/search", r#"{"filters":{"n":7}}"#),
        ("GET /metrics", ""),
    ] {
        let (status, _, reply) = http(&server, request, "", body);
        assert_eq!(status, 200, "{request}: {reply}");
        assert!(!reply.contains("#key") && !reply.contains("abc"), "{request}: {reply}");
    }
    let mut client = connect(&server);
    let status = format!("{:?}", client.query("SHOW ENGINE remora STATUS"));
    assert!(status.contains("index ((low))") && !status.contains("#key"), "{status}");
}

#[test]
fn no_protocol_accepts_names_of_computed_columns() {
    let server = server();
    let mut line = server.connect();
    for request in [
        format!("GET shop.t 1 FIELDS {HIDDEN}"),
        format!("GET shop.t 1 FIELDS {}", HIDDEN.to_uppercase()),
        format!("SEARCH shop.t FILTER n = 7 FIELDS id,{HIDDEN}"),
    ] {
        let reply = line.ask(&request);
        let wanted = "Table 'shop.t' has no column '#";
        assert!(reply.starts_with("ERROR ") && reply.contains(wanted), "{request}: {reply}");
    }
    for (request, body) in [
        ("POST /tables/shop.t/search", format!(r#"{{"filters":{{"{HIDDEN}":"abc"}}}}"#)),
        ("POST /tables/shop.t/count", format!(r#"{{"filters":{{"n":7,"{HIDDEN}":"abc"}}}}"#)),
        ("POST /tables/shop.t/facet", format!(r#"{{"column":"{HIDDEN}"}}"#)),
        ("GET /tables/shop.t/1?fields=%23key.0.low", String::new()),
    ] {
        let (status, _, reply) = http(&server, request, "", &body);
        assert_eq!(status, 400, "{request}: {reply}");
        assert!(!reply.contains("abc") && !reply.contains("AbC"), "{request}: {reply}");
    }
}

#[test]
fn no_protocol_writes_rows_without_computed_columns() {
    let server = server();
    let mut line = server.connect();
    let reply = line.ask(&format!("PUT shop.t {{\"id\":3,\"name\":\"GhI\",\"{HIDDEN}\":\"x\"}}"));
    assert!(reply.contains("has no column '#key.0.low'"), "{reply}");
    let reply = line.ask(r#"PUT shop.t {"id":4,"name":"GhI","n":9}"#);
    assert!(reply.starts_with("OK PUT 1 "), "{reply}");
    // The engine itself takes no such row.
    let row = vec![
        remora_engine::Value::Int(3),
        remora_engine::Value::Text("GhI".into()),
        remora_engine::Value::Int(9),
        remora_engine::Value::Null,
    ];
    let changes = vec![remora_engine::Change::Put(row)];
    let tables = vec![remora_engine::TableChanges { table: "shop.t".into(), changes }];
    let batch = remora_engine::ChangeBatch { tables, positions: Vec::new() };
    let refused = server.database.apply(batch).unwrap_err().to_string();
    assert!(refused.contains("keys over expressions (low)"), "{refused}");
    let mut client = connect(&server);
    assert_eq!(rows(client.query("SELECT COUNT(*) FROM shop.t")), [["3"]]);
    let computed = rows(client.query("SELECT id FROM shop.t WHERE LOWER(name) = 'ghi'"));
    assert_eq!(computed, [["4"]]);
}
