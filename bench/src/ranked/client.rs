//! A MySQL protocol client that costs little CPU next to a server on the same machine. It works with Sphinx, which does
//! not know the statements that other clients send first.

use std::{
    io::{BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// The longest wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Protocol 4.1 with a length before the authentication response.
const CAPABILITIES: u32 = 0x8200;
const MAX_PACKET: u32 = 0x0100_0000;
const UTF8: u8 = 33;
const QUERY: u8 = 3;
const OK: u8 = 0;
const ERROR: u8 = 0xFF;
const END: u8 = 0xFE;

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    packet: Vec<u8>,
}

impl Client {
    /// Connects as `root` without a password.
    pub fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(MAX_WAIT))?;
        let stream = BufReader::with_capacity(1 << 16, stream);
        let mut client = Self { stream, packet: Vec::new() };
        client.read()?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend(MAX_PACKET.to_le_bytes());
        login.push(UTF8);
        login.extend([0; 23]);
        login.extend(b"root\0\0");
        client.send(1, &login)?;
        client.read()?;
        ensure!(client.packet.first() == Some(&OK), "the login is refused: {}", client.said());
        Ok(client)
    }

    /// Sends a statement, passes each row to `visit` and returns the number of rows.
    pub fn query_server(
        &mut self,
        statement: &str,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<usize> {
        let mut packet = Vec::with_capacity(statement.len() + 1);
        packet.push(QUERY);
        packet.extend(statement.as_bytes());
        self.send(0, &packet)?;
        self.read()?;
        match self.packet.first() {
            Some(&ERROR) => bail!("{}: {statement}", self.said()),
            Some(&OK) => return Ok(0),
            _ => {}
        }
        while !self.is_end() {
            self.read()?;
        }
        let mut rows = 0;
        loop {
            self.read()?;
            if self.packet.first() == Some(&ERROR) {
                bail!("{}: {statement}", self.said());
            }
            if self.is_end() {
                return Ok(rows);
            }
            visit(&self.packet)?;
            rows += 1;
        }
    }

    /// Sends a statement and returns the number of rows.
    pub fn count(&mut self, statement: &str) -> Result<usize> {
        self.query_server(statement, &mut |_| Ok(()))
    }

    /// Sends a statement and returns the rows as strings.
    pub fn rows(&mut self, statement: &str) -> Result<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        self.query_server(statement, &mut |packet| {
            rows.push(values(packet)?);
            Ok(())
        })?;
        Ok(rows)
    }

    fn is_end(&self) -> bool {
        self.packet.first() == Some(&END) && self.packet.len() < 9
    }

    /// The message of an error packet, after the error number and SQL state.
    fn said(&self) -> String {
        String::from_utf8_lossy(self.packet.get(9..).unwrap_or_default()).into_owned()
    }

    fn read(&mut self) -> Result<()> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).context("no answer of the server")?;
        let [one, two, three, _] = head;
        self.packet.resize(u32::from_le_bytes([one, two, three, 0]) as usize, 0);
        self.stream.read_exact(&mut self.packet).context("half an answer of the server")
    }

    fn send(&mut self, number: u8, packet: &[u8]) -> Result<()> {
        let length = u32::try_from(packet.len())?;
        ensure!(length < MAX_PACKET, "a statement of {length} bytes is too long");
        let [one, two, three, _] = length.to_le_bytes();
        let mut bytes = vec![one, two, three, number];
        bytes.extend(packet);
        Ok(self.stream.get_mut().write_all(&bytes)?)
    }
}

/// The values of a row as strings; NULL is an empty one.
pub fn values(mut packet: &[u8]) -> Result<Vec<String>> {
    let mut values = Vec::new();
    while let Some((&first, rest)) = packet.split_first() {
        let (length, rest) = match (first, rest) {
            (0xFB, rest) => (0, rest),
            (0xFC, [one, two, rest @ ..]) => (u32::from_le_bytes([*one, *two, 0, 0]), rest),
            (0xFD, [one, two, three, rest @ ..]) => {
                (u32::from_le_bytes([*one, *two, *three, 0]), rest)
            }
            (length, rest) => (length.into(), rest),
        };
        let (value, rest) = rest.split_at_checked(length as usize).context("half a row")?;
        values.push(String::from_utf8_lossy(value).into_owned());
        packet = rest;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_by_their_lengths() {
        let mut packet = b"\x017\xfb\xfc\x01\x01".to_vec();
        packet.extend([b'x'; 257]);
        packet.push(0);
        let long = "x".repeat(257);
        assert_eq!(values(&packet).unwrap(), ["7", "", long.as_str(), ""]);
        assert!(values(&packet[..100]).is_err());
    }
}
