//! The reply to EXPORT, which is sent as it is made, because it may be larger than memory:
//!
//! ```text
//! reply = "OK EXPORT" CRLF { part } end
//! part  = bytes CRLF { byte } CRLF         ; so many bytes of the export
//! end   = "END" rows CRLF                  ; it is whole
//!       | "ERROR" code message CRLF        ; it is not, although bytes of it were sent
//! ```

use std::io::Write;

use super::{LineError, reply};

/// The first line.
pub const EXPORT_BEGIN: &str = "OK EXPORT";

/// A line between the parts of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportLine {
    /// This many bytes follow, and CRLF.
    Bytes(usize),
    /// The export is whole and has this many rows.
    End(u64),
    /// The export ends here and is not whole: the code and the message.
    Error(String),
}

impl ExportLine {
    /// Reads a line without its CRLF; `None` if it is none of these.
    pub fn parse(line: &str) -> Option<Self> {
        if let Some(rows) = line.strip_prefix("END ") {
            return rows.parse().ok().map(Self::End);
        }
        if let Some(error) = line.strip_prefix("ERROR ") {
            return Some(Self::Error(error.to_owned()));
        }
        line.parse().ok().map(Self::Bytes)
    }
}

/// Appends bytes of an export.
pub fn write_export_part(out: &mut Vec<u8>, bytes: &[u8]) {
    // Writing into memory never fails.
    let _ = write!(out, "{}\r\n", bytes.len());
    out.extend_from_slice(bytes);
    reply::end_reply(out);
}

/// Appends the end: the number of rows, or why there are not all of them.
pub fn write_export_end(out: &mut Vec<u8>, end: &Result<u64, LineError>) {
    match end {
        Ok(rows) => _ = write!(out, "END {rows}"),
        Err(error) => reply::write_error(out, error),
    }
    reply::end_reply(out);
}

/// Whether what was received, which begins with [`EXPORT_BEGIN`], has the end of the export.
pub(super) fn is_whole(received: &[u8]) -> bool {
    let mut rest = received;
    let mut is_first = true;
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return false };
        let line = std::str::from_utf8(rest.get(..end).unwrap_or_default()).unwrap_or_default();
        let skipped = match ExportLine::parse(line) {
            _ if std::mem::take(&mut is_first) => 0,
            Some(ExportLine::Bytes(bytes)) => bytes.saturating_add(2),
            // A line that is none of these is an end, too: nothing behind it can be understood.
            Some(ExportLine::End(_) | ExportLine::Error(_)) | None => return true,
        };
        rest = match rest.get(end.saturating_add(2).saturating_add(skipped)..) {
            Some(rest) => rest,
            None => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_ends_with_its_end_alone() {
        let mut reply = b"OK EXPORT\r\n".to_vec();
        write_export_part(&mut reply, b"{\"a\":\"END 1\"}\r\nEND 1\r\n\r\n");
        write_export_part(&mut reply, "\u{e9}".as_bytes());
        write_export_end(&mut reply, &Ok(2));
        assert!(is_whole(&reply));
        for cut in 0..reply.len() {
            assert!(!is_whole(&reply[..cut]), "{cut}");
        }
        let mut broken = b"OK EXPORT\r\n".to_vec();
        write_export_end(&mut broken, &Err(LineError::syntax("a\nb")));
        assert!(is_whole(&broken) && broken.ends_with(b"\r\nERROR 3000 a b\r\n"));
        assert_eq!(ExportLine::parse("ERROR 5 x"), Some(ExportLine::Error("5 x".to_owned())));
        assert_eq!(ExportLine::parse("-1"), None);
    }
}
