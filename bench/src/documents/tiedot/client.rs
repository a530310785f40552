//! A client of HTTP/1.1: one connection that stays open, one request at a time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// The most time of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer.
const MAX_BYTES: u64 = 64 << 20;

/// A connection.
pub(super) struct HttpClient {
    stream: BufReader<TcpStream>,
    host: String,
}

impl HttpClient {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .with_context(|| format!("no tiedot answers at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_owned() })
    }

    /// As [`Self::ask`]; another status is an error.
    pub(super) fn expect(
        &mut self,
        status: u16,
        path: &[&str],
        parameters: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<String> {
        let (found, text) = self.ask(path, parameters, body)?;
        ensure!(found == status, "status {found} for {path:?} {parameters:?}: {text}");
        Ok(text)
    }

    /// Sends a request with parameters in its query string, and a body of JSON, and returns status and text.
    pub(super) fn ask(
        &mut self,
        path: &[&str],
        parameters: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<(u16, String)> {
        let query: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let (path, query, host) = (path.join("/"), query.join("&"), &self.host);
        let verb = if body.is_some() { "POST" } else { "GET" };
        let mut request = format!("{verb} /{path}?{query} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(body) = body {
            // tiedot reads a body of a form as a form.
            let length = body.len();
            request += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        request += "\r\n";
        request += body.unwrap_or_default();
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<(u16, String)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no status: {first:?}"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse()?,
                Some(("transfer-encoding", value)) => is_chunked = value.trim() == "chunked",
                Some(_) => {}
                None if line.is_empty() => break,
                None => bail!("no header: {line:?}"),
            }
        }
        let mut body = Vec::new();
        if !is_chunked {
            self.take(length, &mut body)?;
            return Ok((status, String::from_utf8(body)?));
        }
        loop {
            let size = self.line()?;
            let size = u64::from_str_radix(size.split(';').next().unwrap_or_default(), 16)?;
            self.take(size, &mut body)?;
            self.line()?;
            if size == 0 {
                return Ok((status, String::from_utf8(body)?));
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }

    fn take(&mut self, bytes: u64, body: &mut Vec<u8>) -> Result<()> {
        ensure!(bytes <= MAX_BYTES, "an answer of {bytes} bytes");
        let read = self.stream.by_ref().take(bytes).read_to_end(body)?;
        ensure!(read as u64 == bytes, "the server closed the connection");
        Ok(())
    }
}

/// Percent-encodes all but letters and digits.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
