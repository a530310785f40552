//! REPLICATION and SYNC, as a server without a source answers them.

use remora_protocol::line::{LineError, Replication, Sync, code, reply};

use super::Answer;

pub(super) fn replication(command: Replication, out: &mut Vec<u8>) -> Answer {
    match command {
        Replication::Status => {
            reply::write_replication_status(out, None);
            Ok(())
        }
        Replication::Stop => Err(not_ready("Replication is not running")),
        Replication::Start => Err(not_ready("Replication is not configured on this server")),
    }
}

pub(super) fn sync(command: &Sync, out: &mut Vec<u8>) -> Answer {
    match command {
        Sync::Status => {
            reply::write_sync_status(out, &[]);
            Ok(())
        }
        Sync::Stop(_) => Err(LineError::new(code::NOT_FOUND, "No active SYNC operations to stop")),
        Sync::Start(_) => Err(not_ready(
            "SYNC needs a MySQL source, which is not configured on this server; load files with \
             'remora import'",
        )),
    }
}

fn not_ready(message: &str) -> LineError {
    LineError::new(code::NOT_READY, message)
}
