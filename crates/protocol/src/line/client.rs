//! The client's side: quotes texts as tokens, and finds the end of a reply.

use memchr::memmem;

use super::{export, reply};

/// Quotes a text as one token, so that it is not taken for a keyword.
pub fn quote(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    reply::write_quoted(&mut quoted, text);
    // Escaping only replaces ASCII bytes by ASCII bytes, so the result is UTF-8.
    String::from_utf8_lossy(&quoted).into_owned()
}

/// Whether the bytes received since a request are a complete reply, by the rule of MygramDB's
/// clients. A reply is sent in one piece, so one that looks complete at the end of a read is
/// complete.
pub fn reply_is_complete(received: &[u8]) -> bool {
    const ENDED: [&[u8]; 6] = [
        b"OK INFO",
        b"OK REPLICATION\r",
        b"OK CACHE_STATS",
        b"OK DUMP_INFO",
        b"OK DUMP_STATUS",
        b"OK SYNC_STATUS",
    ];
    const BLANK_LINE_ENDED: [&[u8]; 3] = [b"+OK", b"OK CONFIG", b"OK FACET"];
    if !received.ends_with(b"\r\n") {
        return false;
    }
    if received.starts_with(export::EXPORT_BEGIN.as_bytes()) {
        return export::is_whole(received);
    }
    let starts_with_any = |starts: &[&[u8]]| starts.iter().any(|start| received.starts_with(start));
    if starts_with_any(&ENDED) {
        let body = received.trim_ascii_end();
        return body.ends_with(b"\r\nEND");
    }
    let first_line_is_all = memmem::find(received, b"\r\n") == Some(received.len() - 2);
    let one_line = first_line_is_all && !starts_with_any(&BLANK_LINE_ENDED);
    one_line || received.ends_with(b"\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_terminator_is_found_by_clients() {
        let whole = [
            "OK RESULTS 1 7\r\n",
            "OK RESULTS 1\r\n7\tx\r\n\r\n",
            "OK RESULTS 1 7\r\n\r\n# DEBUG\r\nterms: 1\r\n\r\n",
            "ERROR 3000 Empty query\r\n",
            "OK REPLICATION_STOPPED\r\n",
            "OK REPLICATION\r\nstatus: running\r\nEND\r\n",
            "OK FACET 0 0\r\n\r\n",
            "OK SYNC_STATUS\r\nEND\r\n\r\n",
        ];
        for reply in whole {
            assert!(reply_is_complete(reply.as_bytes()), "{reply:?}");
        }
        let partial = ["", "OK", "OK FACET 0 0\r\n", "+OK\r\na\r\n", "OK INFO\r\n\r\n# Server\r\n"];
        for reply in partial {
            assert!(!reply_is_complete(reply.as_bytes()), "{reply:?}");
        }
    }

    #[test]
    fn quoted_text_is_one_token() {
        assert_eq!(quote("NOT \"a\\\n"), r#""NOT \"a\\\n""#);
        assert_eq!(quote(""), "\"\"");
    }
}
