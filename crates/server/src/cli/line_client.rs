//! A client of the line protocol: one request, one reply.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use remora_protocol::line::{quote, reply_is_complete};

use crate::{Error, Result};

/// The environment variable with a user's password.
const PASSWORD: &str = "REMORA_PASSWORD";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_REPLY_BYTES: usize = 1 << 30;

/// A connection.
pub(super) struct LineClient {
    stream: Box<dyn Stream>,
    reply: Vec<u8>,
}

/// A byte stream to a server.
trait Stream: Read + Write {}

impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl LineClient {
    /// Connects to `HOST:PORT`.
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = connect(address).map_err(|source| Error::Io {
            what: format!(
                "cannot reach a server at {address} (start one with 'remora serve', or name \
                 another address)"
            ),
            source,
        })?;
        let setup = |stream: &TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(REPLY_TIMEOUT))
        };
        setup(&stream).map_err(lost)?;
        Ok(Self { stream: Box::new(stream), reply: Vec::new() })
    }

    /// Connects to a server's Unix socket.
    pub(super) fn connect_to_socket(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).map_err(|source| Error::Io {
            what: format!(
                "cannot reach a server at the socket {} (listen.line_socket, or \
                 api.unix_socket.path of a MygramDB file, says where it listens)",
                path.display()
            ),
            source,
        })?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(lost)?;
        Ok(Self { stream: Box::new(stream), reply: Vec::new() })
    }

    /// Logs in as a user, with the password from the environment.
    pub(super) fn log_in(&mut self, user: &str) -> Result<()> {
        let password = std::env::var(PASSWORD).map_err(|_| {
            Error::Usage(format!(
                "put the password of '{user}' into the environment, as {PASSWORD}"
            ))
        })?;
        self.command(&format!("AUTH {} {}", quote(user), quote(&password))).map(|_| ())
    }

    /// Sends a request and returns the reply without its last line break.
    pub(super) fn ask(&mut self, request: &str) -> Result<&str> {
        let mut frame = request.replace(['\r', '\n'], " ").into_bytes();
        frame.extend_from_slice(b"\r\n");
        self.stream.write_all(&frame).map_err(lost)?;
        self.read_reply()?;
        let text = std::str::from_utf8(&self.reply)
            .map_err(|_| Error::Remote("the server's reply is not UTF-8".to_owned()))?;
        Ok(text.strip_suffix("\r\n").unwrap_or(text))
    }

    /// As [`Self::ask`], but an `ERROR` reply is an error.
    pub(super) fn command(&mut self, request: &str) -> Result<&str> {
        let reply = self.ask(request)?;
        match reply.strip_prefix("ERROR ") {
            Some(message) => Err(Error::Remote(format!("the server answered: {message}"))),
            None => Ok(reply),
        }
    }

    fn read_reply(&mut self) -> Result<()> {
        self.reply.clear();
        let mut chunk = [0u8; 16 << 10];
        loop {
            let bytes = self.stream.read(&mut chunk).map_err(lost)?;
            if bytes == 0 {
                return Err(Error::Remote("the server closed the connection".to_owned()));
            }
            self.reply.extend_from_slice(chunk.get(..bytes).unwrap_or_default());
            if reply_is_complete(&self.reply) {
                return Ok(());
            }
            if self.reply.len() > MAX_REPLY_BYTES {
                return Err(Error::Remote("the reply is larger than 1 GiB".to_owned()));
            }
        }
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    for address in std::net::ToSocketAddrs::to_socket_addrs(address)? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn lost(source: std::io::Error) -> Error {
    Error::Io { what: "the connection to the server was lost".to_owned(), source }
}
