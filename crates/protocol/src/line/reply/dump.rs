//! Replies to DUMP.

use std::time::Duration;

use super::{line, named, text};

/// The reply to DUMP SAVE.
pub fn write_dump_started(out: &mut Vec<u8>, path: &str) {
    named(out, "OK DUMP_STARTED ", path);
}

/// The reply to DUMP LOAD.
pub fn write_dump_loaded(out: &mut Vec<u8>, path: &str) {
    named(out, "OK LOADED ", path);
}

/// The reply to DUMP VERIFY.
pub fn write_dump_verified(out: &mut Vec<u8>, path: &str) {
    named(out, "OK DUMP_VERIFIED ", path);
}

/// The description in the header of a dump.
#[derive(Clone, Debug, Default)]
pub struct DumpInfo {
    /// The version of the format.
    pub version: u32,
    /// The position of the source; empty if there is none.
    pub gtid: String,
    /// The number of tables.
    pub tables: u64,
    /// The flags of the format.
    pub flags: u32,
    /// The size in bytes.
    pub file_size: u64,
    /// When it was made, in seconds since 1970.
    pub timestamp: u64,
    /// Whether it contains statistics.
    pub has_statistics: bool,
}

/// The reply to DUMP INFO.
pub fn write_dump_info(out: &mut Vec<u8>, path: &str, info: &DumpInfo) {
    named(out, "OK DUMP_INFO ", path);
    text(out, "\r\n");
    line(out, "version", info.version);
    line(out, "gtid", &info.gtid);
    line(out, "tables", info.tables);
    line(out, "flags", info.flags);
    line(out, "file_size", info.file_size);
    line(out, "timestamp", info.timestamp);
    line(out, "has_statistics", info.has_statistics);
    text(out, "END");
}

/// The state of saving or loading a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpPhase {
    /// No dump was saved or loaded yet.
    #[default]
    Idle,
    /// A dump is being written.
    Saving,
    /// A dump is being read.
    Loading,
    /// The last operation succeeded.
    Completed,
    /// The last operation failed.
    Failed,
}

/// The figures of DUMP STATUS.
#[derive(Clone, Debug, Default)]
pub struct DumpStatus {
    /// The state.
    pub phase: DumpPhase,
    /// Whether replication is paused for it.
    pub replication_paused: bool,
    /// The file being written or read.
    pub path: String,
    /// The number of tables that are done.
    pub tables_processed: u64,
    /// The number of all tables.
    pub tables_total: u64,
    /// The table being processed.
    pub current_table: String,
    /// The time since it began.
    pub elapsed: Duration,
    /// Why it failed.
    pub error: String,
    /// The last file that was completed.
    pub result_path: String,
}

/// The reply to DUMP STATUS.
pub fn write_dump_status(out: &mut Vec<u8>, status: &DumpStatus) {
    let phase = match status.phase {
        DumpPhase::Idle => "IDLE",
        DumpPhase::Saving => "SAVING",
        DumpPhase::Loading => "LOADING",
        DumpPhase::Completed => "COMPLETED",
        DumpPhase::Failed => "FAILED",
    };
    text(out, "OK DUMP_STATUS\r\n");
    line(out, "save_in_progress", status.phase == DumpPhase::Saving);
    line(out, "load_in_progress", status.phase == DumpPhase::Loading);
    line(out, "replication_paused_for_dump", status.replication_paused);
    line(out, "status", phase);
    line(out, "filepath", &status.path);
    line(out, "tables_processed", status.tables_processed);
    line(out, "tables_total", status.tables_total);
    line(out, "current_table", &status.current_table);
    line(out, "elapsed_seconds", format_args!("{:.2}", status.elapsed.as_secs_f64()));
    line(out, "error", &status.error);
    line(out, "result_filepath", &status.result_path);
    text(out, "END");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_ends_with_end() {
        let mut out = Vec::new();
        write_dump_status(&mut out, &DumpStatus::default());
        let status = String::from_utf8(out).unwrap();
        assert!(status.starts_with("OK DUMP_STATUS\r\nsave_in_progress: false\r\n"));
        assert!(status.contains("\r\nstatus: IDLE\r\n") && status.ends_with("\r\nEND"));
    }

    #[test]
    fn paths_are_one_line() {
        let mut out = Vec::new();
        write_dump_info(&mut out, "/a\nb", &DumpInfo { tables: 2, ..DumpInfo::default() });
        let info = String::from_utf8(out).unwrap();
        assert!(info.starts_with("OK DUMP_INFO /a b\r\nversion: 0\r\ngtid: \r\ntables: 2\r\n"));
    }
}
