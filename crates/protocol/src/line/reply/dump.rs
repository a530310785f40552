//! Replies of DUMP.

use std::time::Duration;

use super::{line, named, text};

/// The answer to DUMP SAVE.
pub fn write_dump_started(out: &mut Vec<u8>, path: &str) {
    named(out, "OK DUMP_STARTED ", path);
}

/// The answer to DUMP LOAD.
pub fn write_dump_loaded(out: &mut Vec<u8>, path: &str) {
    named(out, "OK LOADED ", path);
}

/// The answer to DUMP VERIFY.
pub fn write_dump_verified(out: &mut Vec<u8>, path: &str) {
    named(out, "OK DUMP_VERIFIED ", path);
}

/// What a dump says of itself.
#[derive(Clone, Debug, Default)]
pub struct DumpInfo {
    /// Of the format.
    pub version: u32,
    /// The source's position; empty if there is none.
    pub gtid: String,
    /// How many tables.
    pub tables: u64,
    /// Flags of the format.
    pub flags: u32,
    /// Bytes.
    pub file_size: u64,
    /// Seconds since 1970 when it was made.
    pub timestamp: u64,
    /// Whether it holds statistics.
    pub has_statistics: bool,
}

/// The answer to DUMP INFO.
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

/// Where saving or loading a dump is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpPhase {
    /// Nothing was done yet.
    #[default]
    Idle,
    /// A dump is written.
    Saving,
    /// A dump is read.
    Loading,
    /// The last one is done.
    Completed,
    /// The last one failed.
    Failed,
}

/// The figures of DUMP STATUS.
#[derive(Clone, Debug, Default)]
pub struct DumpStatus {
    /// Where it is.
    pub phase: DumpPhase,
    /// Whether the source waits for it.
    pub replication_paused: bool,
    /// The file that is written or read.
    pub path: String,
    /// Tables done.
    pub tables_processed: u64,
    /// Tables in all.
    pub tables_total: u64,
    /// The table at hand.
    pub current_table: String,
    /// Since it began.
    pub elapsed: Duration,
    /// Why it failed.
    pub error: String,
    /// The file that was completed last.
    pub result_path: String,
}

/// The answer to DUMP STATUS.
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
