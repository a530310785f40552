//! SHOW PROCESSLIST and its tables.

use remora_engine::Value;

use super::grid::{maybe, text};
use crate::state::SessionState;

/// The connections that the session may see.
pub(super) fn seen(session: &SessionState) -> Vec<crate::Process> {
    let identity = &session.identity;
    let mut processes = session.shared.host.processes();
    processes.retain(|process| identity.rights.is_none() || process.user == identity.user);
    processes.sort_by_key(|process| process.id);
    processes
}

/// The rows of PROCESSLIST, with at most so many characters of each statement.
pub(super) fn rows(session: &SessionState, characters: usize) -> Vec<Vec<Value>> {
    let row = |process: crate::Process| {
        let statement = process.statement.map(|text| text.chars().take(characters).collect());
        vec![
            Value::Uint(process.id),
            text(process.user),
            text(process.host),
            maybe(process.database),
            text(process.command),
            Value::Int(i64::try_from(process.seconds).unwrap_or(i64::MAX)),
            text(process.state),
            maybe(statement.map(|text: String| text)),
        ]
    };
    seen(session).into_iter().map(row).collect()
}
