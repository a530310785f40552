//! A connection to another server. Each message has a deadline and a size limit, whatever the other side does.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use remora_protocol::mysql::{
    PacketReader, PacketWriter,
    client::{Answer, ClientError, Greeting, LoginStep, login_step, put_login},
};
use remora_sql::AgentLimit;

/// How often it is checked whether the client is still there.
const STEP: Duration = Duration::from_millis(20);
/// Bytes that are read or written at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The most messages of a login.
const MAX_LOGIN_STEPS: usize = 8;
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
/// The first statement of every session, on which all other statements rely.
const SETTING: &str = "SET SESSION sql_mode = '', autocommit = 1";

/// A result with an error message.
pub(super) type Result<T> = std::result::Result<T, String>;

/// An open, logged-in connection.
pub(super) struct AgentStream {
    stream: TcpStream,
    reader: PacketReader,
    piece: Vec<u8>,
}

impl AgentStream {
    /// Connects and logs in.
    pub(super) fn connect(
        address: &str,
        user: &str,
        password: &str,
        limit: &AgentLimit<'_>,
    ) -> Result<Self> {
        let stream = connected(address, limit)?;
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(STEP)));
        set.and_then(|()| stream.set_write_timeout(Some(STEP)))
            .map_err(|error| error.to_string())?;
        let reader = PacketReader::new(limit.most_bytes);
        let mut this = Self { stream, reader, piece: vec![0; PIECE_BYTES] };
        this.log_in(user, password, limit)?;
        this.ask(SETTING, limit).map(|_| this)
    }

    fn log_in(&mut self, user: &str, password: &str, limit: &AgentLimit<'_>) -> Result<()> {
        let greeting = self.message(limit.most_bytes, limit, Greeting::parse)?;
        self.answer(limit, |out| put_login(out, &greeting, user, password))?;
        for _ in 0..MAX_LOGIN_STEPS {
            match self.message(limit.most_bytes, limit, |packet| login_step(packet, password))? {
                LoginStep::Done => return self.check_quiet(),
                LoginStep::Wait => {}
                LoginStep::Send(proof) => {
                    self.answer(limit, |out| out.extend_from_slice(&proof))?;
                }
            }
        }
        Err("its login does not end".to_owned())
    }

    /// Runs a statement and returns its single value, if it has one.
    pub(super) fn ask(
        &mut self,
        statement: &str,
        limit: &AgentLimit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        self.command(limit, |out| {
            out.push(COM_QUERY);
            out.extend_from_slice(statement.as_bytes());
        })
    }

    /// Whether the other side still answers.
    pub(super) fn ping(&mut self, limit: &AgentLimit<'_>) -> Result<()> {
        self.command(limit, |out| out.push(COM_PING)).map(drop)
    }

    /// Whether no unrequested bytes, and no end, have arrived.
    pub(super) fn is_quiet(&self) -> bool {
        if self.reader.is_partial() || self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let peeked = self.stream.peek(&mut [0]);
        let is_quiet = matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        is_quiet && self.stream.set_nonblocking(false).is_ok()
    }

    fn command(
        &mut self,
        limit: &AgentLimit<'_>,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<Vec<u8>>> {
        self.reader.expect(0);
        self.answer(limit, payload)?;
        let (mut answer, mut left) = (Answer::default(), limit.most_bytes);
        loop {
            let (is_last, bytes) =
                self.message(left, limit, |packet| Ok((answer.take(packet)?, packet.len())))?;
            left = left.saturating_sub(bytes);
            if is_last {
                self.check_quiet()?;
                return Ok(answer.into_value());
            }
        }
    }

    fn check_quiet(&self) -> Result<()> {
        match self.reader.is_partial() {
            true => Err("it sends more than it was asked for".to_owned()),
            false => Ok(()),
        }
    }

    /// Sends a message with the next sequence number.
    fn answer(&mut self, limit: &AgentLimit<'_>, payload: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut writer = PacketWriter::default();
        writer.set_sequence(self.reader.sequence());
        writer.message(payload);
        self.reader.expect(writer.sequence());
        let mut bytes = writer.bytes();
        while !bytes.is_empty() {
            check(limit)?;
            let piece = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
            match self.stream.write(piece) {
                Ok(0) => return Err("it accepts no more data".to_owned()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if is_to_be_tried_again(error.kind()) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Reads and parses the next message, which has a size limit.
    fn message<T>(
        &mut self,
        most_bytes: usize,
        limit: &AgentLimit<'_>,
        read: impl FnOnce(&[u8]) -> std::result::Result<T, ClientError>,
    ) -> Result<T> {
        self.reader.set_limit(most_bytes);
        loop {
            check(limit)?;
            match self.reader.next_message() {
                Ok(Some(message)) => {
                    return read(message.payload).map_err(|error| error.to_string());
                }
                Ok(None) => {}
                Err(error) => return Err(format!("it answers wrongly: {error}")),
            }
            match self.stream.read(&mut self.piece) {
                Ok(0) => return Err("it closed the connection".to_owned()),
                Ok(count) => {
                    let read = self.piece.get(..count).unwrap_or_default();
                    self.reader.room().extend_from_slice(read);
                }
                Err(error) if is_to_be_tried_again(error.kind()) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn is_to_be_tried_again(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Checks whether to continue waiting.
fn check(limit: &AgentLimit<'_>) -> Result<()> {
    if limit.is_left.load(Ordering::Relaxed) {
        return Err("nobody waits for its answer any more".to_owned());
    }
    match Instant::now() < limit.until {
        true => Ok(()),
        false => Err("it did not answer in time".to_owned()),
    }
}

fn connected(address: &str, limit: &AgentLimit<'_>) -> Result<TcpStream> {
    let wrong = || format!("'{address}' is no host:port");
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let known = (host, port).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut last = "it has no address".to_owned();
    for address in known.take(MAX_ADDRESSES) {
        check(limit)?;
        let left = limit.until.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}
