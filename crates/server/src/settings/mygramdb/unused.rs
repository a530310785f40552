//! Keys that MygramDB uses and Remora does not. They are accepted, and reported at the start if the file has them.

use super::node::Node;

/// Their paths. Keys that have no effect in MygramDB either, or that only configure its n-gram index or its replication
/// reader, are not listed.
const PATHS: [&str; 10] = [
    "api.tcp.keepalive",
    "api.tcp.reaper_interval_sec",
    "api.tcp.thread_pool_queue_size",
    "cache.compression_enabled",
    "cache.eviction_batch_size",
    "cache.invalidation_strategy",
    "dump.restore_memory_budget_mb",
    "dump.restore_max_section_mb",
    // The first copy always starts automatically.
    "replication.auto_initial_snapshot",
    "replication.start_from",
];

/// The unused keys that a file has.
pub(super) fn named(file: &Node) -> Vec<String> {
    let has = |path: &&&str| file.at(path).is_some();
    PATHS.iter().filter(has).map(|path| (*path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::node::read;
    use super::named;

    #[test]
    fn keys_are_named_where_they_are_set() {
        let file = "api: {tcp: {port: 1, keepalive: {enabled: true}}}\ncache: {enabled: true, \
                    eviction_batch_size: 3}\ntables: []\n";
        let named = |text: &str| named(&read(text).unwrap());
        assert_eq!(named(file), ["api.tcp.keepalive", "cache.eviction_batch_size"]);
        assert_eq!(named("api: {}"), [""; 0]);
    }
}
