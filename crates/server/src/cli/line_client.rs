//! A client of the line protocol: one request, one reply.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use remora_protocol::line::{EXPORT_BEGIN, ExportLine, quote, reply_is_complete};

use crate::{Error, Result};

/// The environment variable with a user's password.
const PASSWORD: &str = "REMORA_PASSWORD";

/// The environment variable with the admin token.
const TOKEN: &str = "REMORA_AUTH_ADMIN_TOKEN";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_REPLY_BYTES: usize = 1 << 30;
/// The most bytes of a line of an export's reply that is not part of the export.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// How much of an export is read at once.
const READ_BYTES: usize = 64 << 10;
const NOT_UTF8: &str = "the server's reply is not UTF-8";

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

    /// Logs in as a user, or else with the token, also of the environment, if there is one.
    pub(super) fn log_in_with(&mut self, user: Option<&str>, token: Option<&str>) -> Result<()> {
        if let Some(user) = user {
            return self.log_in(user);
        }
        match token.map(str::to_owned).or_else(|| std::env::var(TOKEN).ok()) {
            Some(token) => self.command(&format!("AUTH {}", quote(&token))).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends a request and returns the reply without its last line break.
    pub(super) fn ask(&mut self, request: &str) -> Result<&str> {
        let sent = self.send(request);
        // A server that does not read a request to its end may have said why.
        match self.read_reply() {
            Ok(()) => {}
            Err(unread) => return Err(sent.err().unwrap_or(unread)),
        }
        let text =
            std::str::from_utf8(&self.reply).map_err(|_| Error::Remote(NOT_UTF8.to_owned()))?;
        Ok(text.strip_suffix("\r\n").unwrap_or(text))
    }

    fn send(&mut self, request: &str) -> Result<()> {
        let mut frame = request.replace(['\r', '\n'], " ").into_bytes();
        frame.extend_from_slice(b"\r\n");
        self.stream.write_all(&frame).map_err(lost)
    }

    /// Sends EXPORT with these options, and returns the bytes of the export, which begin when the server has checked it.
    pub(super) fn export(mut self, name: &str, options: &str) -> Result<ExportedBytes> {
        self.send(&format!("EXPORT {} {options}", quote(name)))?;
        let mut bytes = ExportedBytes {
            stream: BufReader::with_capacity(READ_BYTES, self.stream),
            left: 0,
            rows: None,
        };
        let first = bytes.line().map_err(lost)?;
        match first.strip_prefix("ERROR ") {
            _ if first == EXPORT_BEGIN => Ok(bytes),
            Some(message) => Err(Error::Remote(format!("the server answered: {message}"))),
            None => Err(Error::Remote(format!("the server exports nothing: {first}"))),
        }
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

/// The bytes of an export, as the server makes them.
pub(super) struct ExportedBytes {
    stream: BufReader<Box<dyn Stream>>,
    /// Bytes of the current part that were not read.
    left: usize,
    /// The number of rows, at the end.
    rows: Option<u64>,
}

impl ExportedBytes {
    /// The number of rows; `None` before the end.
    pub(super) fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// A line without its CRLF.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        (&mut self.stream).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => String::from_utf8(line.to_vec()).map_err(|_| io::Error::other(NOT_UTF8)),
            None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Err(io::Error::other("its reply is none of an export")),
        }
    }
}

impl Read for ExportedBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.left == 0 {
            if self.rows.is_some() {
                return Ok(0);
            }
            match ExportLine::parse(&self.line()?) {
                // The server is still there.
                Some(ExportLine::Bytes(0)) if self.line()?.is_empty() => {}
                Some(ExportLine::Bytes(0)) => {
                    return Err(io::Error::other("its reply is none of an export"));
                }
                Some(ExportLine::Bytes(bytes)) => self.left = bytes,
                Some(ExportLine::End(rows)) => self.rows = Some(rows),
                Some(ExportLine::Error(message)) => {
                    return Err(io::Error::other(format!("the server answered: {message}")));
                }
                None => return Err(io::Error::other("its reply is none of an export")),
            }
        }
        let wanted = out.len().min(self.left);
        let bytes = self.stream.read(out.get_mut(..wanted).unwrap_or_default())?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= bytes;
        if self.left == 0 && !self.line()?.is_empty() {
            return Err(io::Error::other("its reply is none of an export"));
        }
        Ok(bytes)
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
