//! SphinxAPI over real sockets, compared with captured requests of real clients and the replies of `searchd`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bounds;
mod connections;
mod logged;
#[path = "../../../../protocol/tests/sphinx/reader.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod reader;
mod same;
mod wire;

use mysql::prelude::Queryable;

use crate::support::TestServer;

/// The rows that `searchd` had when the exchanges were captured.
const BOOKS: [&str; 5] = [
    "CREATE TABLE books (id BIGINT UNSIGNED PRIMARY KEY, title TEXT, body TEXT, \
     year INT UNSIGNED NOT NULL, price FLOAT NOT NULL, sold BIGINT, kind VARCHAR(20), \
     published TIMESTAMP NOT NULL, fresh BOOL NOT NULL, tags MULTI, wide MULTI64, lat FLOAT NOT NULL, lon FLOAT NOT NULL) \
     words='title,body'",
    "INSERT INTO books VALUES (1, 'Coral reef fish', 'bright fish near the reef', 1999, 12.5, \
     5000000000, 'guide', FROM_UNIXTIME(946684800), 1, (3, 1, 2, 1), (5000000000, 7), 0.5, 0.25)",
    "INSERT INTO books VALUES (2, 'Deep sea fish', 'fish of the deep sea and its reef', 2004, \
     20.25, 7, 'atlas', FROM_UNIXTIME(1078099200), 0, 2, (), 0.75, 0.5)",
    "INSERT INTO books VALUES (3, 'Sailing', 'how to sail the sea', 2004, 9.0, -3, 'guide', \
     FROM_UNIXTIME(1083369600), 1, '', (8), -0.5, 1.0)",
    // NULL is 0 and an empty text to Sphinx.
    "INSERT INTO books VALUES (5000000007, 'Reef', 'reef reef reef', 2010, 1.75, NULL, NULL, \
     FROM_UNIXTIME(1262304000), 0, '4,9', '[1]', 0.1, 0.1)",
];

/// A server with those rows, and these lines of a `remora.toml`.
fn books(toml: &str) -> TestServer {
    let server = TestServer::start_empty(&format!("[listen]\nsphinx_api = '127.0.0.1:0'\n{toml}"));
    let mut sql = sql(&server, "", "");
    BOOKS.iter().for_each(|statement| sql.query_drop(statement).unwrap());
    server
}

fn sql(server: &TestServer, user: &str, password: &str) -> mysql::Conn {
    let address = server.sql_address();
    let options = mysql::OptsBuilder::new()
        .ip_or_hostname(Some(address.ip().to_string()))
        .tcp_port(address.port())
        .db_name(Some("remora"))
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false);
    mysql::Conn::new(options).unwrap()
}
