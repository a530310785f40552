//! A SphinxAPI client that sends raw bytes.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use crate::support::TestServer;

/// The timeout of a reply in tests.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client(pub TcpStream);

/// A reply: status, version, body.
#[derive(Debug, PartialEq)]
pub struct Reply(pub u16, pub u16, pub Vec<u8>);

impl Reply {
    /// The message of an error or of a retry.
    pub fn message(&self) -> String {
        String::from_utf8(self.2[4..].to_vec()).unwrap()
    }
}

impl Client {
    pub fn connect(server: &TestServer) -> Self {
        let address = server.server().sphinx_address().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self(stream);
        assert_eq!(client.read(4), [0, 0, 0, 1]);
        client.0.write_all(&[0, 0, 0, 1]).unwrap();
        client
    }

    /// A client with a persistent connection.
    pub fn persistent(server: &TestServer) -> Self {
        let mut client = Self::connect(server);
        client.send(4, 0, &[0, 0, 0, 1]);
        client
    }

    pub fn send(&mut self, command: u16, version: u16, body: &[u8]) {
        let mut bytes = command.to_be_bytes().to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        self.0.write_all(&bytes).unwrap();
    }

    pub fn ask(&mut self, command: u16, version: u16, body: &[u8]) -> Reply {
        self.send(command, version, body);
        self.reply()
    }

    pub fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn reply(&mut self) -> Reply {
        let head = self.read(8);
        let length = u32::from_be_bytes(head[4..].try_into().unwrap());
        let number = |at: usize| u16::from_be_bytes(head[at..at + 2].try_into().unwrap());
        Reply(number(0), number(2), self.read(length as usize))
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

/// A captured exchange: the request of the client and the reply of `searchd`.
pub fn captured(name: &str) -> (Vec<u8>, Vec<u8>) {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/sphinx/captured");
    let read = |end: &str| fs::read(folder.join(format!("{name}.{end}"))).unwrap();
    (read("request"), read("reply"))
}

/// The server's reply to a captured request, up to the end of the connection.
pub fn resent(server: &TestServer, request: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(server);
    client.0.write_all(request).unwrap();
    let mut reply = Vec::new();
    client.0.read_to_end(&mut reply).unwrap();
    reply
}

/// The version of the requests that [`search`] makes.
pub const SEARCH_VERSION: u16 = 0x119;

/// The body of a search for all rows of `books`, so many times, with a select list and an order.
pub fn search(times: u32, select: &str, order: &str) -> Vec<u8> {
    asked(("books", "", ""), &vec![0; times as usize], select, order)
}

/// The values of books grouped by those of a column, in an order of groups.
pub fn grouped(column: &str, select: &str, order: &str) -> Vec<u8> {
    asked(("books", "", column), &[0], select, order)
}

/// The same once for each of these, which are the milliseconds that the search may take; 0 is any number.
pub fn timed(limits_ms: &[u32], select: &str, order: &str) -> Vec<u8> {
    asked(("books", "", ""), limits_ms, select, order)
}

/// The same of these indexes, for what a query finds.
pub fn search_in(indexes: &str, query: &str, times: u32, select: &str, order: &str) -> Vec<u8> {
    asked((indexes, query, ""), &vec![0; times as usize], select, order)
}

fn asked(
    (indexes, query, group): (&str, &str, &str),
    limits_ms: &[u32],
    select: &str,
    order: &str,
) -> Vec<u8> {
    const EXTENDED: u32 = 4;
    const BY_VALUE: u32 = 4;
    let row_order = if group.is_empty() { order } else { "@id asc" };
    let group_order = if group.is_empty() { "@group desc" } else { order };
    let mut body = Vec::new();
    let put = |body: &mut Vec<u8>, numbers: &[u32]| {
        numbers.iter().for_each(|number| body.extend(number.to_be_bytes()));
    };
    put(&mut body, &[0, limits_ms.len() as u32]);
    for &limit_ms in limits_ms {
        // Offset, limit, mode, ranker, order.
        put(&mut body, &[0, 100, EXTENDED, 0, EXTENDED]);
        put_text(&mut body, row_order);
        put_text(&mut body, query);
        put(&mut body, &[0]);
        put_text(&mut body, indexes);
        // Any key, no filters.
        put(&mut body, &[1, 0, 0, 0, 0, 0]);
        put(&mut body, &[BY_VALUE]);
        put_text(&mut body, group);
        put(&mut body, &[1000]);
        put_text(&mut body, group_order);
        // Cutoff, retries and their delay.
        put(&mut body, &[0, 0, 0]);
        put_text(&mut body, "");
        // No anchor and weights.
        put(&mut body, &[0, 0, limit_ms, 0]);
        put_text(&mut body, "");
        // No overrides.
        put(&mut body, &[0]);
        put_text(&mut body, select);
    }
    body
}

/// Appends a text after its length.
pub fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as u32).to_be_bytes());
    body.extend(text.as_bytes());
}
