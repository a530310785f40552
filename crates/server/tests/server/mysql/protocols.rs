//! Requests by all protocols of a server: SQL, the line protocol and HTTP, each sent by a client of its own.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::{
    mysql::client::{Answer, Client, Entry},
    support::{self, TestServer},
};

/// Accounts with different rights. All passwords are `geheim`.
pub const ACCOUNTS: &str = r#"
[[users]]
name = "boss"
password = "geheim"
[[users]]
name = "reader"
password = "geheim"
read = ["shop.orders"]
[[users]]
name = "writer"
password = "geheim"
write = ["shop.orders"]
[[users]]
name = "builder"
password = "geheim"
define = ["shop.orders"]
[[users]]
name = "keeper"
password = "geheim"
define = ["shop.*"]
[[users]]
name = "nobody"
password = "geheim"
read = []
"#;

/// The tables: `shop.orders`, on which most accounts have a right, and two others.
pub const TABLES: [&str; 3] = ["shop.orders", "shop.items", "hr.pay"];

/// A server with those accounts and tables; each has the row 1 with the text `reef`.
pub fn guarded(more: &str) -> TestServer {
    let server = TestServer::start_empty(&format!("{more}\n{ACCOUNTS}"));
    fill(&server);
    server
}

/// Creates the tables.
pub fn fill(server: &TestServer) {
    let mut owner = server.server().owner();
    for table in TABLES {
        let definition = r#"{"name":"t","primary_key":["id"],"columns":[{"name":"id","type":"int64"},
            {"name":"kind","type":"text"},{"name":"body","type":"text"}],
            "texts":[{"columns":["body"]}]}"#;
        let made = owner.ask(&format!("CREATE TABLE {table} {}", definition.replace('\n', " ")));
        assert!(made.starts_with("OK CREATED"), "{made}");
        let put = format!("PUT {table} {{\"id\":1,\"kind\":\"a\",\"body\":\"coral reef\"}}");
        assert!(owner.ask(&put).starts_with("OK PUT 1"));
    }
}

/// A connection of the line protocol, logged in.
pub fn line(server: &TestServer, user: &str) -> support::Client {
    let mut client = server.connect();
    assert_eq!(client.ask(&format!("AUTH {user} geheim")), "OK AUTHENTICATED\r\n");
    client
}

/// A connection of the MySQL protocol.
pub fn sql(server: &TestServer, user: &'static str) -> Client {
    let entry = Entry { user, password: "geheim", ..Entry::default() };
    Client::connect(server.sql_address(), &entry).unwrap()
}

/// The `Authorization` of a user whose password is `geheim`.
pub fn basic(user: &str) -> String {
    format!("authorization: Basic {}\r\n", base64(format!("{user}:geheim").as_bytes()))
}

pub fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = letters[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// The status, the head and the body of a response.
pub fn http(
    server: &TestServer,
    request: &str,
    headers: &str,
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.server().http_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let host = if headers.contains("host:") { "" } else { "host: localhost\r\n" };
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\n{host}{headers}connection: close\r\ncontent-length: {length}\r\n\
         content-type: application/json\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

/// The outcome of a request, equal for all protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(String),
    /// Access was denied.
    Denied(String),
    /// Any other error.
    Failed(String),
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }
}

pub fn of_line(reply: String) -> Outcome {
    match () {
        () if reply.starts_with("ERROR 7 ") => Outcome::Denied(reply),
        () if reply.starts_with("ERROR ") => Outcome::Failed(reply),
        () => Outcome::Done(reply),
    }
}

pub fn of_http((status, _, body): (u16, String, String)) -> Outcome {
    match status {
        200 => Outcome::Done(body),
        401 | 403 => Outcome::Denied(body),
        _ => Outcome::Failed(body),
    }
}

pub fn of_sql(answer: Answer) -> Outcome {
    match answer {
        Answer::Error(error) if [1044, 1142, 1227].contains(&error.number) => {
            Outcome::Denied(error.message)
        }
        Answer::Error(error) => Outcome::Failed(format!("{} {}", error.number, error.message)),
        done => Outcome::Done(format!("{done:?}")),
    }
}
