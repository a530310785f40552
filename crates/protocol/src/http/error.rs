//! Errors: codes of the line protocol, with HTTP statuses and the body.

use super::value::write_text;
use crate::line::{LineError, code};

/// The HTTP status of this error.
pub fn status(error: &LineError) -> u16 {
    match error.code {
        code::INTERNAL => 500,
        code::PERMISSION_DENIED => 403,
        code::NOT_FOUND | code::TABLE_NOT_FOUND => 404,
        code::ALREADY_EXISTS => 409,
        code::TIMEOUT => 504,
        code::BUSY => 429,
        code::NOT_IMPLEMENTED
        | code::MISSING_DEPENDENCY
        | code::SHUTTING_DOWN
        | code::LOADING
        | code::NOT_READY => 503,
        5000..=5999 => 500,
        _ => 400,
    }
}

/// `{"error": …, "error_code": …}`
pub fn write_error(out: &mut Vec<u8>, error: &LineError) {
    out.extend_from_slice(b"{\"error\":");
    write_text(out, &error.message);
    out.extend_from_slice(b",\"error_code\":");
    out.extend_from_slice(itoa::Buffer::new().format(error.code).as_bytes());
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_status_and_body() {
        for (code, expected) in [
            (code::LIMIT, 400),
            (code::SYNTAX, 400),
            (code::TABLE_NOT_FOUND, 404),
            (code::NOT_FOUND, 404),
            (code::BUSY, 429),
            (code::NOT_READY, 503),
            (code::LOADING, 503),
            (code::STORAGE_IO, 500),
        ] {
            assert_eq!(status(&LineError::new(code, "")), expected, "{code}");
        }
        let mut out = Vec::new();
        write_error(&mut out, &LineError::syntax("a \"b\"\n"));
        assert_eq!(out, br#"{"error":"a \"b\"\n","error_code":3000}"#);
    }
}
