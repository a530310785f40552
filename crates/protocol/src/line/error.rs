//! Errors: a code of the protocol and a message.

use std::fmt;

use remora_engine::{Ending, Error, Missing, RequestPart};

use super::FrameError;

/// The codes of `ERROR <code> <message>`.
#[expect(missing_docs, reason = "each name is what its code means")]
pub mod code {
    pub const INVALID_ARGUMENT: u16 = 2;
    pub const NOT_IMPLEMENTED: u16 = 4;
    pub const INTERNAL: u16 = 5;
    pub const PERMISSION_DENIED: u16 = 7;
    pub const NOT_FOUND: u16 = 8;
    pub const ALREADY_EXISTS: u16 = 9;
    pub const TIMEOUT: u16 = 10;
    pub const CONFIG: u16 = 1000;
    pub const CONFIG_VALUE: u16 = 1004;
    pub const SYNTAX: u16 = 3000;
    pub const TOKEN: u16 = 3001;
    pub const TOO_LONG: u16 = 3005;
    pub const FILTER: u16 = 3006;
    pub const SORT: u16 = 3007;
    pub const LIMIT: u16 = 3008;
    pub const OFFSET: u16 = 3009;
    pub const EXPRESSION: u16 = 3010;
    pub const FACET_COLUMN: u16 = 4000;
    pub const TABLE_NOT_FOUND: u16 = 4007;
    pub const SYNC_RUNNING: u16 = 4011;
    pub const STORAGE: u16 = 5000;
    pub const STORAGE_IO: u16 = 5001;
    pub const STORAGE_CORRUPT: u16 = 5002;
    pub const BAD_REQUEST: u16 = 6007;
    pub const MISSING_DEPENDENCY: u16 = 6026;
    pub const SHUTTING_DOWN: u16 = 6027;
    pub const LOADING: u16 = 6028;
    pub const NOT_READY: u16 = 6029;
    pub const BUSY: u16 = 6030;
}

/// An error in the form of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} {message}")]
pub struct LineError {
    /// One of [`code`].
    pub code: u16,
    /// One sentence.
    pub message: String,
}

impl LineError {
    /// An error with this code.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A request that violates the grammar.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(code::SYNTAX, message)
    }

    /// An unknown table.
    pub fn table_not_found(name: impl fmt::Display) -> Self {
        Self::new(code::TABLE_NOT_FOUND, format!("Table not found: {name}"))
    }

    /// An unqualified name although several databases are configured.
    pub fn bare_table_name(name: impl fmt::Display) -> Self {
        let rule = "Bare table names are not supported; use <database>.<table>";
        Self::new(code::TABLE_NOT_FOUND, format!("{rule}: {name}"))
    }

    /// A table whose first copy is not complete.
    pub fn synchronizing(name: impl fmt::Display) -> Self {
        let message = format!("Table '{name}' is synchronizing, please try again later");
        Self::new(code::NOT_READY, message)
    }

    /// No row has this key.
    pub fn document_not_found() -> Self {
        Self::new(code::NOT_FOUND, "Document not found")
    }

    /// An administrative command without AUTH.
    pub fn auth_required() -> Self {
        Self::new(code::PERMISSION_DENIED, "Administrative command requires AUTH")
    }

    /// A command before the login that this server requires.
    pub fn login_required(form: &str) -> Self {
        Self::new(code::PERMISSION_DENIED, format!("This server asks for a login first: {form}"))
    }

    /// A missing privilege: the action, the user and the object.
    pub fn denied(what: &str, who: impl fmt::Display, place: impl fmt::Display) -> Self {
        let message = format!("{what} denied to user {who} for {place}");
        Self::new(code::PERMISSION_DENIED, message)
    }

    /// A login from an address with too many failed ones.
    pub fn too_many_failures() -> Self {
        let message = "Too many failed logins from this address, try again in a few seconds";
        Self::new(code::BUSY, message)
    }

    /// A client that speaks HTTP.
    pub fn not_http() -> Self {
        let message = "This is the line protocol, not HTTP: nothing of this connection is read";
        Self::new(code::BAD_REQUEST, message)
    }

    /// AUTH with a wrong token, or although none is configured.
    pub fn auth_failed() -> Self {
        Self::new(code::PERMISSION_DENIED, "Authentication failed")
    }

    /// The client exceeded its request rate.
    pub fn rate_limited() -> Self {
        Self::new(code::BUSY, "Rate limit exceeded")
    }

    /// A limit of connections or requests is reached.
    pub fn server_busy(message: impl fmt::Display) -> Self {
        Self::new(code::BUSY, format!("SERVER_BUSY {message}"))
    }
}

impl From<FrameError> for LineError {
    fn from(error: FrameError) -> Self {
        Self::new(code::BAD_REQUEST, error.to_string())
    }
}

impl From<&Error> for LineError {
    fn from(error: &Error) -> Self {
        if let Error::NotFound { what: Missing::Row, .. } = error {
            return Self::document_not_found();
        }
        Self::new(code_of(error), error.to_string())
    }
}

impl From<Error> for LineError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

fn code_of(error: &Error) -> u16 {
    match error {
        Error::Request { part, .. } => code_of_part(*part),
        Error::NotFound { what: Missing::Table, .. } => code::TABLE_NOT_FOUND,
        Error::NotFound { what: Missing::Column, .. } => code::FACET_COLUMN,
        Error::NotFound {
            what: Missing::Row | Missing::Path | Missing::Watcher | Missing::Changes,
            ..
        } => code::NOT_FOUND,
        Error::Conflict(_)
        | Error::Exists { .. }
        | Error::NotUnique { .. }
        | Error::Taken { .. } => code::ALREADY_EXISTS,
        Error::Busy(_) | Error::Ended(Ending::Interrupted) => code::BUSY,
        Error::Ended(Ending::TimedOut) => code::TIMEOUT,
        Error::Corrupt(_) => code::STORAGE_CORRUPT,
        Error::Io(_) | Error::Full(_) | Error::RemoteServer(_) => code::STORAGE_IO,
        Error::Poisoned(_) => code::STORAGE,
        Error::Closed => code::SHUTTING_DOWN,
    }
}

fn code_of_part(part: RequestPart) -> u16 {
    match part {
        RequestPart::Expression => code::EXPRESSION,
        RequestPart::Filter => code::FILTER,
        RequestPart::Sort => code::SORT,
        RequestPart::Limit => code::LIMIT,
        RequestPart::Offset => code::OFFSET,
        RequestPart::Facet => code::FACET_COLUMN,
        RequestPart::Schema => code::CONFIG,
        RequestPart::Key | RequestPart::Row | RequestPart::Batch => code::INVALID_ARGUMENT,
        RequestPart::Fields | RequestPart::Other => code::SYNTAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_errors_get_the_codes_of_their_kind() {
        let code = |error: Error| LineError::from(error).code;
        assert_eq!(code(Error::missing(Missing::Table, "x")), 4007);
        assert_eq!(code(Error::request(RequestPart::Sort, "x")), 3007);
        assert_eq!(code(Error::Busy("x".into())), 6030);
        assert_eq!(code(Error::Ended(Ending::TimedOut)), 10);
        assert_eq!(code(Error::Poisoned("x".into())), 5000);
        assert_eq!(code(Error::Full("x".into())), 5001);
        assert_eq!(code(Error::Closed), 6027);
        let missing = LineError::from(Error::missing(Missing::Row, "no row 7"));
        assert_eq!(missing, LineError::document_not_found());
    }
}
