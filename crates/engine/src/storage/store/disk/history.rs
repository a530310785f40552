//! Which versions of an LSM tree stay in memory.
//!
//! A version is a tree's memtables and list of files at one time. A flush or a compaction makes a new one. lsm-tree
//! keeps every version that was made since the oldest snapshot, so one open transaction, or one long read, would keep
//! all memtables of the writes behind it. A snapshot reads only the last version that is older than itself. So this
//! store forgets the versions between those, and a snapshot keeps at most the memtables that it reads:
//!
//! ```text
//! versions    1   4   9   12   17      snapshots at 5 and 7 read version 4; a snapshot at 18 reads 17
//! kept            4            17
//! ```
//!
//! The history of lsm-tree can only be shortened at its old end and extended at its new one. So all versions but the
//! latest are removed, and those to keep are added again behind it, then the latest one.

use fjall::{AbstractTree, SeqNo};

/// A history of at most so many versions is left as it is.
const SPARED_VERSIONS: usize = 2;

/// Forgets the versions of a tree that neither the snapshots nor new ones read. `snapshots`: the sequence numbers of
/// all snapshots that are open, ascending, each once; none may be opened meanwhile, and no read without one may run.
pub(super) fn forget_versions(tree: &fjall::Keyspace, snapshots: &[SeqNo]) {
    let mut history = tree.tree.get_version_history_lock();
    // A snapshot at 0 reads the first version, whatever its number.
    if history.len() <= SPARED_VERSIONS || snapshots.first() == Some(&0) {
        return;
    }
    // Removing a version deletes its file. Where there is none, that cannot fail.
    let (path, nowhere) = (tree.path(), tree.path().join("none"));
    let latest = history.latest_version();
    let mut kept = Vec::new();
    let mut left = None;
    for &at in snapshots.iter().chain([&SeqNo::MAX]) {
        let version = history.get_version_for_snapshot(at);
        // Its file is deleted at the next start if it cannot be now.
        if history.maintenance(path, at).is_err() {
            history.maintenance(&nowhere, at).ok();
        }
        match history.len() {
            // The latest one: later snapshots read it too.
            1 => break,
            // The version of the snapshot before.
            same if left == Some(same) => {}
            fewer => {
                left = Some(fewer);
                kept.push(version);
            }
        }
    }
    let Some(&first) = snapshots.first().filter(|_| !kept.is_empty()) else { return };
    // Now the latest version is alone only if the last snapshot reads it.
    if history.len() > 1 && history.maintenance(path, SeqNo::MAX).is_err() {
        history.maintenance(&nowhere, SeqNo::MAX).ok();
    }
    kept.into_iter().for_each(|version| history.append_version(version));
    history.append_version(latest);
    // Removes the latest version from the front, where it is before the first one kept. Its file must stay.
    history.maintenance(&nowhere, first).ok();
}
