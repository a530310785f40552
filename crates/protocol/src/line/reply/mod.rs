//! Replies: functions that write bodies into a buffer.
//!
//! Each function appends a body; [`end_reply`] must follow. In between, if DEBUG is on, a debug
//! block may be appended to the body of SEARCH, COUNT or FACET.

mod admin;
mod cache;
mod debug;
mod dump;
mod info;
mod rows;
mod size;
mod source;
pub(crate) mod value;
mod variables;

use std::fmt::Display;

use super::LineError;

pub use admin::{
    OptimizeReport, write_auth_ok, write_config, write_debug, write_optimized, write_set,
};
pub use cache::{CacheStats, write_cache_cleared, write_cache_enabled, write_cache_stats};
pub use debug::{CacheUse, write_count_debug, write_facet_debug, write_search_debug};
pub use dump::{
    DumpInfo, DumpPhase, DumpStatus, write_dump_info, write_dump_loaded, write_dump_started,
    write_dump_status, write_dump_verified,
};
pub use info::{
    Identity, IndexInfo, InfoReport, MemoryHealth, MemoryInfo, ReplicationInfo, write_info,
};
pub use rows::{write_count, write_document, write_facet, write_row, write_search};
pub use size::human_bytes;
pub use source::{
    ReplicationState, ReplicationStatus, SourceLine, SyncPhase, SyncStatus, write_applied,
    write_position, write_replication_started, write_replication_status, write_replication_stopped,
    write_sync_started, write_sync_status, write_sync_stopped, write_waited,
};
pub use value::write_key;
pub(super) use value::write_quoted;
pub use variables::{VariableRow, write_variables};

/// Ends the reply's frame.
pub fn end_reply(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// `ERROR <code> <message>`. Control characters become spaces.
pub fn write_error(out: &mut Vec<u8>, error: &LineError) {
    out.extend_from_slice(b"ERROR ");
    number(out, u64::from(error.code));
    out.push(b' ');
    one_line(out, &error.message);
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text with its control characters replaced by spaces.
fn one_line(out: &mut Vec<u8>, text: &str) {
    let spaced = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut utf8 = [0; 4];
    for char in spaced {
        out.extend_from_slice(char.encode_utf8(&mut utf8).as_bytes());
    }
}

/// A prefix and a name, as one line.
fn named(out: &mut Vec<u8>, prefix: &str, name: &str) {
    text(out, prefix);
    one_line(out, name);
}

/// `key: value` and CRLF.
fn line(out: &mut Vec<u8>, key: &str, value: impl Display) {
    text(out, key);
    out.extend_from_slice(b": ");
    one_line(out, &value.to_string());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let mut out = Vec::new();
        write_error(&mut out, &LineError::syntax("Unknown command: a\r\nb\u{85}c"));
        assert_eq!(out, b"ERROR 3000 Unknown command: a  b c");
    }
}
