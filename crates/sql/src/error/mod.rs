//! Errors of statements, with MySQL's error numbers, so that clients handle them as they do MySQL's.

mod convert;

use std::fmt;

use remora_mysql::{ErrorCode, messages};

pub(crate) use convert::{from_engine, from_engine_write, from_plan};

/// The crate's result type.
pub type Result<T> = std::result::Result<T, Error>;

/// A statement that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {} ({}): {message}", .code.number(), .code.state())]
pub struct Error {
    /// MySQL's code.
    pub code: ErrorCode,
    /// MySQL's message if it has one, otherwise our own.
    pub message: String,
}

impl Error {
    /// An error with this message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// 1235: not supported.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(
            ErrorCode::NotSupported,
            format!("This version of Remora doesn't yet support '{what}'"),
        )
    }

    /// 1053: the server is shutting down.
    pub fn shutdown() -> Self {
        Self::new(ErrorCode::ServerShutdown, "Server shutdown in progress")
    }

    /// 1052: several tables have a column of this name. `place` is a clause.
    pub(crate) fn ambiguous_column(name: impl fmt::Display, place: impl fmt::Display) -> Self {
        Self::new(ErrorCode::AmbiguousColumn, messages::ambiguous_column(name, place))
    }

    /// 1054: there is no such column. `place` is a clause or a table.
    pub(crate) fn unknown_column(name: impl fmt::Display, place: impl fmt::Display) -> Self {
        Self::new(ErrorCode::UnknownColumn, messages::unknown_column(name, place))
    }

    /// 1094: there is no such connection.
    pub fn unknown_thread(id: u64) -> Self {
        Self::new(ErrorCode::UnknownThread, format!("Unknown thread id: {id}"))
    }

    /// 1095: the connection belongs to another user.
    pub fn not_owner(id: u64) -> Self {
        Self::new(ErrorCode::KillDenied, format!("You are not owner of thread {id}"))
    }

    /// 1210: the number of values does not match the prepared statement.
    pub fn wrong_parameters() -> Self {
        Self::new(ErrorCode::WrongArguments, messages::incorrect_arguments("mysqld_stmt_execute"))
    }

    /// 1243: there is no prepared statement of this name or number.
    pub fn unknown_statement(statement: impl fmt::Display, command: &str) -> Self {
        let message =
            format!("Unknown prepared statement handler ({statement}) given to {command}");
        Self::new(ErrorCode::UnknownStatement, message)
    }

    /// 1317: the statement was killed.
    pub fn interrupted() -> Self {
        Self::new(ErrorCode::Interrupted, "Query execution was interrupted")
    }

    /// 3024: the statement exceeded its time limit.
    pub fn query_timeout() -> Self {
        let message = "Query execution was interrupted, maximum statement execution time exceeded";
        Self::new(ErrorCode::QueryTimeout, message)
    }
}
