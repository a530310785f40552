//! Checkpoints: segments from memory to files, so that the next start is quick.
//!
//! Nothing depends on a checkpoint but the time that recovery takes. One that fails half-way, a
//! full disk for instance, leaves the last manifest, the files it names and the log behind it.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use remora_index::Bitmap;

use crate::{
    Error, Result,
    shared::DatabaseState,
    snapshot::{SegmentView, Snapshot},
    storage::{
        catalog::trim_log,
        manifest::{Manifest, SegmentRecord, TableRecord},
        segment_files::SegmentFiles,
        store::Store,
    },
};

/// What a change counts for the next checkpoint beside its key and its text: without it deletions
/// would count nothing, and the log of a load of them would grow without end.
pub(crate) const CHANGE_BYTES: usize = 64;

/// Makes the newest snapshot's segments durable, and keeps why that failed.
pub(crate) fn checkpoint(shared: &DatabaseState) -> Result<()> {
    let written = write(shared);
    if !matches!(written, Err(Error::Closed)) {
        *shared.checkpoint_failure.lock() = written.as_ref().err().map(ToString::to_string);
    }
    written
}

/// The order of the steps must not move:
/// 1. Segment files: a manifest must not name what is not there.
/// 2. Sync of the rows: a manifest must not be ahead of them.
/// 3. The manifest.
/// 4. The log up to the manifest's position goes, and the files that it no longer names: before
///    the manifest is durable, both may be needed.
fn write(shared: &DatabaseState) -> Result<()> {
    let mut files = shared.files.lock();
    let files = files.as_mut().ok_or(Error::Closed)?;
    // Read before the snapshot: what comes in between counts for the next checkpoint.
    let unsaved = shared.unsaved_bytes.load(Ordering::Relaxed);
    let snapshot = shared.published.load();
    let store = shared.store()?;
    let manifest = save_segments(files, &snapshot)?;
    if !files.is_written(&manifest) {
        store.sync().map_err(|error| shared.poison(&error))?;
        manifest.write(&shared.directory)?;
    }
    shared.unsaved_bytes.fetch_sub(unsaved, Ordering::Relaxed);
    let trim = trim_log(&*store.snapshot(), manifest.position)?;
    store.commit(trim, false).map_err(|error| shared.poison(&error))?;
    files.remove_all_but(manifest)?;
    leave_in_files(shared, files, &snapshot)
}

/// Makes the segments of a recovered directory durable that nobody has open, in the same order.
pub(crate) fn write_recovered(
    directory: &Path,
    store: &dyn Store,
    files: &mut SegmentFiles,
    snapshot: &Snapshot,
) -> Result<()> {
    let manifest = save_segments(files, snapshot)?;
    store.sync()?;
    manifest.write(directory)?;
    let trim = trim_log(&*store.snapshot(), manifest.position)?;
    store.commit(trim, true)?;
    files.remove_all_but(manifest)
}

/// Exchanges segments that were just written for what their files hold: most of a segment is read
/// too seldom to be kept in memory.
fn leave_in_files(
    shared: &DatabaseState,
    files: &mut SegmentFiles,
    snapshot: &Snapshot,
) -> Result<()> {
    let mut same = Vec::new();
    for view in snapshot.tables.values().flat_map(|table| &table.segments) {
        if let Some(reopened) = files.reopen(&view.segment)? {
            same.push((Arc::clone(&view.segment), reopened));
        }
    }
    if !same.is_empty() {
        shared.published.exchange(&same);
    }
    Ok(())
}

fn save_segments(files: &mut SegmentFiles, snapshot: &Snapshot) -> Result<Manifest> {
    let mut tables = Vec::with_capacity(snapshot.tables.len());
    for table in snapshot.tables.values() {
        let save = |view: &SegmentView| -> Result<(SegmentRecord, Bitmap)> {
            let deleted = view.deleted.as_deref().cloned();
            let deleted = deleted.unwrap_or_else(|| Bitmap::new(view.segment.doc_count()));
            Ok((files.save(&view.segment)?, deleted))
        };
        let segments = table.segments.iter().map(save).collect::<Result<_>>()?;
        tables.push(TableRecord { number: table.number, segments });
    }
    tables.sort_by_key(|table| table.number);
    Ok(Manifest { position: snapshot.position, tables })
}
