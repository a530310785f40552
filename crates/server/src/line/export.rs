//! EXPORT: a thread of its own reads one snapshot and makes the bytes, as fast as the client takes them.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use remora_protocol::line::{EXPORT_BEGIN, LineError, code};
use remora_source::files::Compression;
use remora_sql::Access;
use tokio::sync::mpsc;

use super::{Session, write::of_library};
use crate::{
    Error,
    export::{Export, ExportRequest},
    requests::{Answer, blocking},
};

/// The most exports at a time: each has a thread, and some parts in memory.
const MAX_EXPORTS: usize = 16;
/// The most bytes of a part.
const PART_BYTES: usize = 256 << 10;
/// Parts that wait for the client.
const WAITING_PARTS: usize = 2;

/// An export that was checked and waits for its connection.
pub(super) struct WaitingExport {
    export: Export,
    cancel: Arc<AtomicBool>,
    place: ExportPlace,
}

/// One of the exports of a server that may run at a time.
struct ExportPlace(Arc<AtomicUsize>);

/// What the thread of an export sends.
pub(super) enum ExportPart {
    Bytes(Vec<u8>),
    End(Result<u64, LineError>),
}

/// The parts of a running export. Dropping it ends the export.
pub(super) struct ExportParts {
    parts: mpsc::Receiver<ExportPart>,
    cancel: Arc<AtomicBool>,
}

struct PartSender(mpsc::Sender<ExportPart>);

impl Session {
    /// Checks an export. Its parts follow the answer.
    pub(super) fn export(&mut self, table: &str, options: &str, out: &mut Vec<u8>) -> Answer {
        let table = self.caller.resolve(table, Access::Read)?;
        let options = if options.is_empty() { "{}" } else { options };
        let request: ExportRequest = serde_json::from_str(options)
            .map_err(|error| LineError::syntax(format!("the options of EXPORT: {error}")))?;
        let place = ExportPlace::take(&self.caller.shared.exports)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let database = self.caller.database();
        let export = blocking(|| {
            Export::new(database, &table, request, Compression::None, Arc::clone(&cancel))
        });
        let export = export.map_err(refused)?;
        self.export = Some(Box::new(WaitingExport { export, cancel, place }));
        out.extend_from_slice(EXPORT_BEGIN.as_bytes());
        Ok(())
    }
}

impl ExportPlace {
    fn take(running: &Arc<AtomicUsize>) -> Result<Self, LineError> {
        let place = Self(Arc::clone(running));
        if running.fetch_add(1, Ordering::Relaxed) < MAX_EXPORTS {
            return Ok(place);
        }
        drop(place);
        let message =
            format!("{MAX_EXPORTS} exports are running, which is the most: try again later");
        Err(LineError::server_busy(message))
    }
}

impl Drop for ExportPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WaitingExport {
    /// Begins the export.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(self) -> Result<ExportParts, LineError> {
        let (sender, parts) = mpsc::channel(WAITING_PARTS);
        let Self { export, cancel, place } = self;
        // Not one of the runtime's threads, which the end of the server would wait for.
        let spawned = thread::Builder::new().name("export".to_owned()).spawn(move || {
            let mut out = PartSender(sender);
            let end = export.write(&mut out, &mut |_| {}).map_err(refused);
            // Who has read the end may begin another export.
            drop(place);
            // The client may have left.
            let _ = out.0.blocking_send(ExportPart::End(end));
        });
        spawned.map_err(|error| {
            LineError::server_busy(format_args!("an export gets no thread: {error}"))
        })?;
        Ok(ExportParts { parts, cancel })
    }
}

impl ExportParts {
    /// The next part; the last one is an end.
    pub(super) async fn next(&mut self) -> ExportPart {
        let part = self.parts.recv().await;
        // The thread panicked.
        let fault = || LineError::new(code::INTERNAL, "Internal error: the export met a fault");
        part.unwrap_or_else(|| ExportPart::End(Err(fault())))
    }
}

impl Drop for ExportParts {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Write for PartSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = bytes.get(..bytes.len().min(PART_BYTES)).unwrap_or_default();
        let sent = self.0.blocking_send(ExportPart::Bytes(part.to_vec()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refused(error: Error) -> LineError {
    match error {
        Error::Engine(error) | Error::Source(remora_source::Error::Engine(error)) => error.into(),
        Error::Library(error) => of_library(error),
        error => LineError::new(code::INVALID_ARGUMENT, error.to_string()),
    }
}
