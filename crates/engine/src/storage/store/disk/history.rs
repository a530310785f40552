//! Which versions of an LSM tree stay in memory.
//!
//! A version consists of a tree's memtables and its list of files at one time. A flush or a
//! compaction makes a new one. lsm-tree keeps every version made since the oldest snapshot, so one
//! open transaction or one long read would keep in memory all memtables written after it. But a
//! snapshot reads only the last version that is older than itself. So this store forgets the
//! versions that no snapshot reads, and a snapshot keeps at most the memtables that it reads:
//!
//! ```text
//! versions    1   4   9   12   17      snapshots at 5 and 7 read version 4; a snapshot at 18 reads 17
//! kept            4            17
//! ```
//!
//! The history of lsm-tree can only be shortened at its old end and extended at its new end. So all
//! versions but the latest are removed, those to keep are added again after it, and then the latest
//! one.

use std::path::Path;

use fjall::{AbstractTree, SeqNo};

/// A directory that does not exist. To find that out no disk is read, so it cannot fail.
const NOWHERE: &str = "/proc/self/nowhere";

/// Forgets the versions of a tree that neither existing nor new snapshots read. `snapshots` are the
/// sequence numbers of all open snapshots that can read the tree, ascending and distinct. Meanwhile
/// no snapshot may be opened, and no read without a snapshot may run.
pub(super) fn forget_versions(tree: &fjall::Keyspace, snapshots: &[SeqNo]) {
    let mut history = tree.tree.get_version_history_lock();
    // A snapshot at 0 reads the first version, whatever its number.
    if history.len() <= 1 || snapshots.first() == Some(&0) {
        return;
    }
    // Removing a version deletes its file, unless it is looked for where there is none.
    let (path, nowhere) = (tree.path(), Path::new(NOWHERE));
    let latest = history.latest_version();
    let mut kept = Vec::new();
    let (mut left, mut has_failed) = (None, false);
    for &at in snapshots.iter().chain([&SeqNo::MAX]) {
        let version = history.get_version_for_snapshot(at);
        // A file that cannot be deleted now is deleted at the next start.
        has_failed |=
            history.maintenance(path, at).is_err() && history.maintenance(nowhere, at).is_err();
        match history.len() {
            // The latest one: later snapshots read it too.
            1 => break,
            // The version of the snapshot before, unless removing has failed.
            same if left == Some(same) && !has_failed => {}
            fewer => {
                left = Some(fewer);
                kept.push(version);
            }
        }
    }
    let Some(&first) = snapshots.first().filter(|_| !kept.is_empty()) else { return };
    // Now the latest version is alone only if the last snapshot reads it.
    if history.maintenance(path, SeqNo::MAX).is_err() {
        history.maintenance(nowhere, SeqNo::MAX).ok();
    }
    kept.into_iter().for_each(|version| history.append_version(version));
    history.append_version(latest);
    // Removes the latest version from the front, where it is before the first one kept. Its file
    // must stay.
    history.maintenance(nowhere, first).ok();
}
