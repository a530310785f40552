//! A client of the line protocol with few system calls: one write and usually one read per request.

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use remora_engine::TextQuery;

/// The longest wait for a reply.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One connection.
pub struct LineClient {
    stream: TcpStream,
    reply: Vec<u8>,
}

impl LineClient {
    /// Connects.
    pub fn connect(address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Self> {
        let stream = TcpStream::connect(&address)
            .with_context(|| format!("cannot connect to {address:?}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, reply: Vec::with_capacity(1 << 16) })
    }

    /// Sends a request (with its CRLF) and returns the reply's line without it.
    pub fn request(&mut self, request: &[u8]) -> Result<&str> {
        self.stream.write_all(request)?;
        self.reply.clear();
        let mut buffer = [0; 1 << 14];
        while !self.reply.ends_with(b"\r\n") {
            let count = self.stream.read(&mut buffer)?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.reply.extend_from_slice(&buffer[..count]);
        }
        let reply = std::str::from_utf8(&self.reply)?.trim_end();
        if reply.starts_with("ERROR") {
            bail!("{} answered {reply}", String::from_utf8_lossy(request).trim_end());
        }
        Ok(reply)
    }
}

/// The numbers after the reply's first words, which must be `prefix`.
pub fn numbers(reply: &str, prefix: &str) -> Result<Vec<u64>> {
    let rest = reply.strip_prefix(prefix).with_context(|| {
        format!("expected {prefix}, not {}", reply.chars().take(100).collect::<String>())
    })?;
    rest.split_ascii_whitespace().map(|number| Ok(number.parse()?)).collect()
}

/// The bytes of SEARCH for the newest rows.
pub fn search_request(table: &str, query: &TextQuery) -> Vec<u8> {
    format!("SEARCH {table} {} LIMIT {}\r\n", expression(query), crate::oracle::NEWEST).into_bytes()
}

/// The bytes of SEARCH for the rows that score highest.
pub fn ranked_request(table: &str, query: &TextQuery) -> Vec<u8> {
    let limit = crate::oracle::NEWEST;
    format!("SEARCH {table} {} SORT _score DESC LIMIT {limit}\r\n", expression(query)).into_bytes()
}

/// The bytes of COUNT.
pub fn count_request(table: &str, query: &TextQuery) -> Vec<u8> {
    format!("COUNT {table} {}\r\n", expression(query)).into_bytes()
}

/// An expression of the protocol: terms are quoted, and operands are put in parentheses where needed.
fn expression(query: &TextQuery) -> String {
    match query {
        TextQuery::Term(term) => quoted(term),
        // The protocol has no other way to write a piece.
        TextQuery::Piece(piece) => quoted(&piece.text),
        TextQuery::Keywords(query) => quoted(&query.text),
        TextQuery::And(parts) => joined(parts, " AND "),
        TextQuery::Or(parts) => joined(parts, " OR "),
        TextQuery::Not(part) => format!("NOT {}", operand(part)),
    }
}

fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('\\', "\\\\").replace('"', "\\\""))
}

fn joined(parts: &[TextQuery], operator: &str) -> String {
    parts.iter().map(operand).collect::<Vec<_>>().join(operator)
}

fn operand(query: &TextQuery) -> String {
    match query {
        TextQuery::And(_) | TextQuery::Or(_) => format!("({})", expression(query)),
        _ => expression(query),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> TextQuery {
        TextQuery::Term(text.into())
    }

    #[test]
    fn writes_requests() {
        let not = TextQuery::Not(Box::new(TextQuery::Or(vec![term("b"), term("c d")])));
        let query = TextQuery::And(vec![term("a\"x"), not]);
        assert_eq!(
            count_request("t", &query),
            b"COUNT t \"a\\\"x\" AND NOT (\"b\" OR \"c d\")\r\n"
        );
        assert_eq!(
            search_request("t", &term("日本")),
            "SEARCH t \"日本\" LIMIT 100\r\n".as_bytes()
        );
    }

    #[test]
    fn reads_numbers() {
        assert_eq!(numbers("OK RESULTS 2 9 7", "OK RESULTS").unwrap(), [2, 9, 7]);
        assert!(numbers("OK COUNT 2", "OK RESULTS").is_err());
    }
}
