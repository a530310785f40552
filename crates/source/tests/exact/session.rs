//! A client's connection that sends statements as bytes, in whatever character set it likes.
//!
//! Every packet is `length u24 | number u8 | payload`. What statements answer is read and dropped.

use std::{
    fs,
    io::{Error, ErrorKind, Read, Result, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const CONNECT_WITH_DB: u32 = 8;
    pub(super) const LOCAL_FILES: u32 = 0x80;
    pub(super) const PROTOCOL_41: u32 = 0x200;
    pub(super) const TRANSACTIONS: u32 = 0x2000;
    pub(super) const SECURE_CONNECTION: u32 = 0x8000;
    pub(super) const MULTI_STATEMENTS: u32 = 0x1_0000;
    pub(super) const MULTI_RESULTS: u32 = 0x2_0000;
    pub(super) const PLUGIN_AUTH: u32 = 0x8_0000;
}

/// Another result of the same statement follows.
const MORE_RESULTS: u16 = 8;
/// The collation that a connection begins with: utf8mb4_general_ci.
const UTF8MB4: u8 = 45;

/// What the server answered to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// Its code and message.
    Refused(u16, String),
}

/// A connection of root over the server's socket.
pub struct Session {
    stream: UnixStream,
    number: u8,
}

impl Session {
    /// Connects with a default database.
    pub fn connect(socket: &Path, database: &str) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut session = Self { stream, number: 0 };
        session.read()?;
        session.write(&login(database))?;
        loop {
            let packet = session.read()?;
            match packet.first() {
                Some(0) => return Ok(session),
                // Another plugin: an empty password is empty in all of them.
                Some(0xfe) => session.write(&[])?,
                Some(1) => {}
                _ => return Err(Error::other(format!("login: {:?}", refusal(&packet)))),
            }
        }
    }

    /// Runs a statement and drops its results.
    pub fn run(&mut self, statement: &[u8]) -> Result<Answer> {
        self.number = 0;
        let mut command = vec![3];
        command.extend_from_slice(statement);
        self.write(&command)?;
        loop {
            let packet = self.read()?;
            let status = match packet.first() {
                Some(0) => status_of_ok(&packet),
                Some(0xff) => {
                    let (code, message) = refusal(&packet);
                    return Ok(Answer::Refused(code, message));
                }
                Some(0xfb) => {
                    self.send_file(&packet)?;
                    continue;
                }
                _ => {
                    if let Err((code, message)) = self.skip_rows()? {
                        return Ok(Answer::Refused(code, message));
                    }
                    match self.skip_rows()? {
                        Ok(status) => status,
                        Err((code, message)) => return Ok(Answer::Refused(code, message)),
                    }
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(Answer::Done);
            }
        }
    }

    /// Reads to the end of column definitions or rows: the status, or the error that ended them.
    fn skip_rows(&mut self) -> Result<std::result::Result<u16, (u16, String)>> {
        loop {
            let packet = self.read()?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => {
                    return Ok(Ok(u16::from_le_bytes([packet[3], packet[4]])));
                }
                Some(0xff) => return Ok(Err(refusal(&packet))),
                _ => {}
            }
        }
    }

    /// LOAD DATA LOCAL asks for a file.
    fn send_file(&mut self, packet: &[u8]) -> Result<()> {
        let name = String::from_utf8_lossy(&packet[1..]).into_owned();
        let content = fs::read(name).unwrap_or_default();
        if !content.is_empty() {
            self.write(&content)?;
        }
        self.write(&[])
    }

    fn write(&mut self, payload: &[u8]) -> Result<()> {
        assert!(payload.len() < 0xff_ffff, "statements of the tests are short");
        let length = payload.len().to_le_bytes();
        let mut packet = vec![length[0], length[1], length[2], self.number];
        packet.extend_from_slice(payload);
        self.number = self.number.wrapping_add(1);
        self.stream.write_all(&packet)
    }

    fn read(&mut self) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.number = header[3].wrapping_add(1);
            let start = payload.len();
            payload.resize(start + length, 0);
            self.stream.read_exact(&mut payload[start..])?;
            if length < 0xff_ffff {
                break;
            }
        }
        match payload.is_empty() {
            true => Err(Error::new(ErrorKind::InvalidData, "an empty packet")),
            false => Ok(payload),
        }
    }
}

fn login(database: &str) -> Vec<u8> {
    use capability::*;
    let capabilities = LONG_PASSWORD
        | CONNECT_WITH_DB
        | LOCAL_FILES
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | MULTI_RESULTS
        | PLUGIN_AUTH;
    let mut packet = capabilities.to_le_bytes().to_vec();
    packet.extend((1_u32 << 30).to_le_bytes());
    packet.push(UTF8MB4);
    packet.extend([0; 23]);
    packet.extend(b"root\0");
    packet.push(0);
    packet.extend(database.as_bytes());
    packet.push(0);
    packet.extend(b"mysql_native_password\0");
    packet
}

/// `0 | changed rows | last id | status u16 | …`
fn status_of_ok(packet: &[u8]) -> u16 {
    let mut at = 1;
    for _ in 0..2 {
        at += match packet.get(at) {
            Some(0xfc) => 3,
            Some(0xfd) => 4,
            Some(0xfe) => 9,
            _ => 1,
        };
    }
    match packet.get(at..at + 2) {
        Some(status) => u16::from_le_bytes([status[0], status[1]]),
        None => 0,
    }
}

/// `0xff | code u16 | # state | message`
fn refusal(packet: &[u8]) -> (u16, String) {
    let code = packet.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let message = packet.get(9..).unwrap_or_default();
    (code, String::from_utf8_lossy(message).into_owned())
}
