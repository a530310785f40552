//! A client that sends bytes.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use crate::support::TestServer;

/// No reply of a test takes this long.
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

    /// A client that stays after a reply.
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

/// A captured exchange: what the client sent and what `searchd` answered.
pub fn captured(name: &str) -> (Vec<u8>, Vec<u8>) {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/sphinx/captured");
    let read = |end: &str| fs::read(folder.join(format!("{name}.{end}"))).unwrap();
    (read("request"), read("reply"))
}

/// What the server answers to a captured request, to the end of the connection.
pub fn resent(server: &TestServer, request: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(server);
    client.0.write_all(request).unwrap();
    let mut reply = Vec::new();
    client.0.read_to_end(&mut reply).unwrap();
    reply
}
