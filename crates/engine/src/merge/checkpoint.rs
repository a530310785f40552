//! Checkpoints: write segments from memory to files, so that the next start is quick.
//!
//! Only the time of recovery depends on checkpoints. If one fails half-way (for example on a full disk), the last
//! manifest, its files and the log after it remain valid.

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

/// The bytes that a change adds to the size at which the next checkpoint is due, besides its key and text. Without
/// it, deletions would add nothing, and the log of many deletions would grow without limit.
pub(crate) const CHANGE_BYTES: usize = 64;

/// Makes the newest snapshot's segments durable; records the reason if that fails.
pub(crate) fn checkpoint(shared: &DatabaseState) -> Result<()> {
    let written = write(shared);
    if !matches!(written, Err(Error::Closed)) {
        *shared.checkpoint_failure.lock() = written.as_ref().err().map(ToString::to_string);
    }
    written
}

/// Writes a checkpoint. The order of the steps must not change:
/// 1. Write the segment files: a manifest must not name missing files.
/// 2. Sync the rows: a manifest must not be ahead of them.
/// 3. Write the manifest.
/// 4. Trim the log up to the manifest's position, and delete the files that it no longer names.
///    Until the manifest is durable, both may be needed.
fn write(shared: &DatabaseState) -> Result<()> {
    let mut files = shared.files.lock();
    let files = files.as_mut().ok_or(Error::Closed)?;
    // Read before the snapshot is taken: bytes added in between count for the next checkpoint.
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

/// Makes the segments of a recovered directory durable before it is opened for others, in the same order of steps.
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

/// Replaces segments that were just written by ones opened from their files: most of a segment is read too rarely
/// to be kept in memory.
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
