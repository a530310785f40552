//! A client of SphinxQL, by the MySQL protocol, for results that SphinxAPI does not give as text.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// The most time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const QUERY: u8 = 3;
const ERROR: u8 = 0xFF;
const END: u8 = 0xFE;

/// A connection.
pub struct Sql {
    stream: TcpStream,
}

/// The rows of a statement, each value as text.
pub type Rows = Vec<Vec<String>>;

impl Sql {
    pub fn connect(port: u16) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        read(&mut stream)?;
        // Protocol 4.1, packets of 16 MB, UTF-8, nobody without a password.
        let mut login = 0x0200_u32.to_le_bytes().to_vec();
        login.extend(0x0100_0000_u32.to_le_bytes());
        login.push(33);
        login.extend([0; 23]);
        login.extend([0, 0]);
        write(&mut stream, 1, &login)?;
        read(&mut stream)?;
        Ok(Self { stream })
    }

    /// The rows of a statement, or its error's text.
    pub fn rows(&mut self, statement: &str) -> io::Result<Result<Rows, String>> {
        let mut packet = vec![QUERY];
        packet.extend(statement.as_bytes());
        write(&mut self.stream, 0, &packet)?;
        let head = read(&mut self.stream)?;
        if head.first() == Some(&ERROR) {
            return Ok(
                Err(String::from_utf8_lossy(head.get(9..).unwrap_or_default()).into_owned()),
            );
        }
        while !is_end(&read(&mut self.stream)?) {}
        let mut rows = Vec::new();
        loop {
            let packet = read(&mut self.stream)?;
            if packet.first() == Some(&ERROR) || is_end(&packet) {
                return Ok(Ok(rows));
            }
            rows.push(values(&packet)?);
        }
    }
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&END) && packet.len() < 9
}

fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    let mut packet = vec![0; length as usize];
    stream.read_exact(&mut packet)?;
    Ok(packet)
}

fn write(stream: &mut TcpStream, number: u8, packet: &[u8]) -> io::Result<()> {
    let mut bytes = (packet.len() as u32).to_le_bytes()[..3].to_vec();
    bytes.push(number);
    bytes.extend(packet);
    stream.write_all(&bytes)
}

/// The values of a row: lengths of one, two or three bytes, and as many bytes of text.
fn values(mut packet: &[u8]) -> io::Result<Vec<String>> {
    let mut values = Vec::new();
    while let Some((&first, rest)) = packet.split_first() {
        let (length, rest) = match (first, rest) {
            (0xFC, [one, two, rest @ ..]) => (u32::from_le_bytes([*one, *two, 0, 0]), rest),
            (0xFD, [one, two, three, rest @ ..]) => {
                (u32::from_le_bytes([*one, *two, *three, 0]), rest)
            }
            (length, rest) => (length.into(), rest),
        };
        let split = rest.split_at_checked(length as usize);
        let (value, rest) = split.ok_or(io::ErrorKind::UnexpectedEof)?;
        values.push(String::from_utf8_lossy(value).into_owned());
        packet = rest;
    }
    Ok(values)
}
