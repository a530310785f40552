//! Converts errors of the engine and of DataFusion to MySQL's.

use datafusion::error::DataFusionError;
use remora_engine::{Ending, Error as EngineError, RequestPart};
use remora_mysql::{ErrorCode, messages};

use crate::Error;

/// The error of a plan: ours if it wraps one of ours.
pub(crate) fn from_plan(error: DataFusionError) -> Error {
    let root = error.find_root();
    if let DataFusionError::External(inner) = root {
        if let Some(ours) = inner.downcast_ref::<Error>() {
            return ours.clone();
        }
        if let Some(engine) = inner.downcast_ref::<EngineError>() {
            return from_engine(engine);
        }
    }
    match root {
        DataFusionError::ResourcesExhausted(_) => {
            let message = "The statement needs more memory than max_query_memory allows";
            Error::new(ErrorCode::OutOfMemory, message)
        }
        // An outer column that could not be resolved.
        DataFusionError::NotImplemented(what) if what.contains("OuterReferenceColumn") => {
            Error::unsupported("a column of the query around, named in this place of a subquery")
        }
        DataFusionError::NotImplemented(what) => Error::unsupported(what),
        // The full text would ask the user to report a bug to DataFusion.
        DataFusionError::Internal(what) => from_text(what),
        other => from_text(&other.to_string()),
    }
}

/// Converts an engine error of a statement that reads.
pub(crate) fn from_engine(error: &EngineError) -> Error {
    let code = match error {
        EngineError::Ended(ending) => return ended(*ending),
        EngineError::Closed => ErrorCode::ServerShutdown,
        EngineError::Full(_) => ErrorCode::DiskFull,
        EngineError::RemoteServer(_) => ErrorCode::ForeignQuery,
        _ => ErrorCode::Unknown,
    };
    Error::new(code, error.to_string())
}

/// Converts an engine error of a statement that writes.
pub(crate) fn from_engine_write(error: EngineError) -> Error {
    match error {
        EngineError::Conflict(_) => Error::new(
            ErrorCode::Deadlock,
            "Deadlock found when trying to get lock; try restarting transaction",
        ),
        EngineError::NotUnique { table, path, value, .. } => {
            let table = table.rsplit('.').next().unwrap_or_default();
            let message = messages::duplicate_entry(value, table, path);
            Error::new(ErrorCode::DuplicateKey, message)
        }
        EngineError::Closed => Error::shutdown(),
        EngineError::Ended(ending) => ended(ending),
        EngineError::Full(message) => Error::new(ErrorCode::DiskFull, message),
        EngineError::RemoteServer(message) => Error::new(ErrorCode::ForeignQuery, message),
        EngineError::Request { part: RequestPart::Batch, message } => {
            let mend = "a server's limit is its setting limits.max_transaction_rows";
            Error::new(ErrorCode::TransactionTooLarge, format!("{message}; {mend}"))
        }
        other => Error::new(ErrorCode::Unknown, other.to_string()),
    }
}

/// 1317 or 3024, for a statement that was interrupted.
fn ended(ending: Ending) -> Error {
    match ending {
        Ending::Interrupted => Error::interrupted(),
        Ending::TimedOut => Error::query_timeout(),
    }
}

/// Converts an error that DataFusion only gives as text.
fn from_text(text: &str) -> Error {
    let has = |part: &str| text.contains(part);
    if has("more than one row") || has("returned more than one") {
        return Error::new(ErrorCode::SubqueryRows, messages::SUBQUERY_ROWS);
    }
    if has("during the spilling process") {
        let message = "The statement needs more room on the disk than sql.max_spill_mb allows";
        return Error::new(ErrorCode::OutOfMemory, message);
    }
    tracing::debug!(error = text, "a plan failed");
    Error::new(ErrorCode::Unknown, text)
}
