//! Automatic dumps every `dump.interval_s` seconds, of which the newest `dump.retain` are kept.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::start_saving;
use crate::shared::{ServerState, Trigger};

/// How often the interval is checked, because the setting may change.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const PREFIX: &str = "auto_";
const ENDING: &str = ".dmp";

/// Saves dumps until the server stops; a dump in progress is then abandoned.
pub(crate) async fn save_dumps_at_intervals(shared: Arc<ServerState>) {
    let mut stopping = shared.stopping.subscribe();
    let mut last = Instant::now();
    loop {
        tokio::select! {
            _ = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = stopping.wait_for(|stopping| *stopping) => break,
        }
        let settings = shared.settings.load_full();
        let interval = Duration::from_secs(settings.dump.interval_s);
        if interval.is_zero() || last.elapsed() < interval {
            continue;
        }
        last = Instant::now();
        let path = settings.dump.dir.join(file_name(&jiff::Zoned::now()));
        if let Err(error) = start_saving(&shared, path, Trigger::Schedule) {
            tracing::warn!("an automatic dump was left out: {error}");
        }
    }
    tokio::task::block_in_place(|| shared.dump.cancel());
}

fn file_name(now: &jiff::Zoned) -> String {
    format!("{PREFIX}{}{ENDING}", now.strftime("%Y%m%d_%H%M%S"))
}

/// Deletes all automatic dumps except the newest `retain`.
pub(super) fn delete_old_dumps(dir: &Path, retain: usize) {
    let dumps = dumps_by_age(dir, PREFIX);
    for path in dumps.iter().take(dumps.len().saturating_sub(retain.max(1))) {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::warn!("cannot remove the old dump {}: {error}", path.display());
        }
    }
}

/// The dumps in a directory whose names begin with `prefix`, newest last.
pub(super) fn dumps_by_age(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix)
            && !name.ends_with(".tmp")
            && let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && let Ok(modified) = metadata.modified()
        {
            dumps.push((modified, entry.path()));
        }
    }
    dumps.sort();
    dumps.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (age, name) in ["auto_3.dmp", "auto_1.dmp", "auto_2.dmp", "mine.dmp"].iter().enumerate()
        {
            let path = dir.path().join(name);
            std::fs::write(&path, "x").unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        std::fs::create_dir(dir.path().join("auto_older")).unwrap();
        delete_old_dumps(dir.path(), 2);
        let names: Vec<_> = dumps_by_age(dir.path(), "")
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["auto_1.dmp", "auto_2.dmp", "mine.dmp"]);
    }
}
