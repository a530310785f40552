//! The memory that this process may use: that of the machine, or the limit of its control group if
//! that is lower.
//!
//! A control group counts cached file pages, which the system can reclaim, and the memory of
//! processes, which it cannot. A process that exceeds the limit of its group is killed. So the
//! default limits of a database follow the limit of the group ([`crate::Options::for_memory`]).

use std::{fs, path::Path};

/// Version 1 of control groups stands for "no limit" with numbers that no machine has; such numbers
/// are at least this.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The smallest share of the memory.
const LEAST_SHARE_BYTES: u64 = 1 << 20;

/// The default of a limit: the memory that this process may use, divided by `parts`, but at least 1
/// MiB and at most `most_bytes`. Cost: as for [`memory_limit_bytes`].
pub fn memory_share(parts: u64, most_bytes: u64) -> u64 {
    share_of(memory_limit_bytes().unwrap_or(u64::MAX), parts, most_bytes)
}

/// As [`memory_share`], of a given amount of memory.
pub(crate) fn share_of(memory_bytes: u64, parts: u64, most_bytes: u64) -> u64 {
    (memory_bytes / parts.max(1)).clamp(LEAST_SHARE_BYTES, most_bytes.max(LEAST_SHARE_BYTES))
}

/// The bytes of memory that this process may use; `None` if the system does not tell. Cost: reads a
/// few small files. Their values may change while the process runs.
///
/// Source: `cgroups(7)`. A group is also limited by all groups above it.
pub fn memory_limit_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit_bytes(&groups, Path::new("/sys/fs/cgroup"));
    machine.into_iter().chain(group).min()
}

/// Parses the machine's memory from the text of `/proc/meminfo`.
fn total_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest limit of the groups that `/proc/self/cgroup` names, and of those above them. In a
/// namespace of its own, a process may be given a path that is not mounted; then only the groups
/// above it count, up to the root.
fn group_limit_bytes(groups: &str, mounted: &Path) -> Option<u64> {
    let mut limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (root, file) = if controllers.is_empty() {
            (mounted.to_owned(), "memory.max")
        } else if controllers.split(',').any(|one| one == "memory") {
            (mounted.join("memory"), "memory.limit_in_bytes")
        } else {
            return None;
        };
        let group = root.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|one| one.starts_with(&root));
        above.filter_map(|one| limit_of(&one.join(file))).min()
    });
    let first = limits.next()?;
    Some(limits.fold(first, u64::min))
}

/// Reads the limit from a file of a group: a number, or `max`.
fn limit_of(file: &Path) -> Option<u64> {
    let bytes = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (bytes < UNLIMITED_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_above_counts() {
        let mounted = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = mounted.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| group_limit_bytes(groups, mounted.path());
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "104857600\n");
        assert_eq!(limit("0::/a/b\n"), Some(100 << 20));
        assert_eq!(limit("0::/other\n"), None);
        write("a/b/memory.max", "209715200\n");
        assert_eq!(limit("0::/a/b\n"), Some(100 << 20));
        // A path outside of the namespace is not mounted, but the root is.
        write("memory.max", "209715200\n");
        assert_eq!(limit("0::/not/mounted\n"), Some(200 << 20));
        // Version 1, with its number for "no limit".
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("12:cpu,cpuacct:/c\n4:memory:/c\n"), None);
        write("memory/c/memory.limit_in_bytes", "52428800\n");
        assert_eq!(limit("12:cpu,cpuacct:/c\n4:memory:/c\n0::/a/b\n"), Some(50 << 20));
    }

    #[test]
    fn this_machine_has_memory() {
        assert_eq!(total_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16 << 10));
        assert!(memory_limit_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
