//! Counters since the server's start.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A kind of command, as counted by INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Search,
    Count,
    Get,
    Facet,
    Info,
    Save,
    Load,
    ReplicationStatus,
    ReplicationStop,
    ReplicationStart,
    Config,
    Other,
    Unknown,
}

/// The names of the kinds in INFO. FACET counts as other, as in MygramDB.
const KINDS: [(CommandKind, &str); 12] = [
    (CommandKind::Search, "cmd_search"),
    (CommandKind::Count, "cmd_count"),
    (CommandKind::Get, "cmd_get"),
    (CommandKind::Info, "cmd_info"),
    (CommandKind::Save, "cmd_save"),
    (CommandKind::Load, "cmd_load"),
    (CommandKind::ReplicationStatus, "cmd_replication_status"),
    (CommandKind::ReplicationStop, "cmd_replication_stop"),
    (CommandKind::ReplicationStart, "cmd_replication_start"),
    (CommandKind::Config, "cmd_config"),
    (CommandKind::Other, "cmd_other"),
    (CommandKind::Unknown, "cmd_unknown"),
];

/// The counters. Relaxed ordering suffices, because no other memory depends on them.
#[derive(Default)]
pub(crate) struct Counters {
    commands: [AtomicU64; 13],
    requests: AtomicU64,
    connections: AtomicU64,
    connected: AtomicUsize,
    normalization_failures: AtomicU64,
    /// By [`Denial`], separately for the line protocol and HTTP.
    denials: [[AtomicU64; 2]; 3],
}

/// Why a request or a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// `network.allow_cidrs`.
    Network,
    /// The client's rate limit.
    Rate,
    /// The limit of connections.
    Connections,
}

impl Counters {
    /// Counts a request, valid or not.
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// Counts a valid command of this kind.
    pub(crate) fn command(&self, kind: CommandKind) {
        if let Some(counter) = self.commands.get(kind as usize) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Counts a refused request or connection.
    pub(crate) fn deny(&self, why: Denial, http: bool) {
        let counters = self.denials.get(why as usize);
        if let Some(counter) = counters.and_then(|surfaces| surfaces.get(usize::from(http))) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Denials on the line protocol and on HTTP.
    pub(crate) fn denials(&self, why: Denial) -> [u64; 2] {
        let counters = self.denials.get(why as usize);
        counters.map_or([0; 2], |surfaces| surfaces.each_ref().map(|counter| counter.load(Relaxed)))
    }

    /// Counts a text that was not UTF-8.
    pub(crate) fn normalization_failure(&self) {
        self.normalization_failures.fetch_add(1, Relaxed);
    }

    /// Counts a connection of the line protocol; `None` if there are `most` already.
    pub(crate) fn connect(self: &std::sync::Arc<Self>, most: usize) -> Option<Connected> {
        self.connections.fetch_add(1, Relaxed);
        let place = self.connected.fetch_add(1, Relaxed);
        let connected = Connected { counters: std::sync::Arc::clone(self) };
        (place < most).then_some(connected)
    }

    /// The current connections of the line protocol. HTTP and SQL count their own.
    pub(crate) fn connected(&self) -> usize {
        self.connected.load(Relaxed)
    }

    /// The connections of the line protocol since the start.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Relaxed)
    }

    /// The requests since the start.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// The number of texts that were not UTF-8.
    pub(crate) fn normalization_failures(&self) -> u64 {
        self.normalization_failures.load(Relaxed)
    }

    /// The commands since the start.
    pub(crate) fn commands(&self) -> u64 {
        self.commands.iter().map(|counter| counter.load(Relaxed)).sum()
    }

    /// The commands by name, without those that never occurred.
    pub(crate) fn commands_by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |kind: CommandKind| {
            self.commands.get(kind as usize).map_or(0, |counter| counter.load(Relaxed))
        };
        let facets = count(CommandKind::Facet);
        let counted = move |(kind, name)| {
            let more = if kind == CommandKind::Other { facets } else { 0 };
            (name, count(kind) + more)
        };
        KINDS.into_iter().map(counted).filter(|(_, count)| *count > 0)
    }
}

/// A counted connection, which is uncounted when dropped.
pub(crate) struct Connected {
    counters: std::sync::Arc<Counters>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.counters.connected.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn connection_slots_are_limited_and_released() {
        let counters = Arc::new(Counters::default());
        let first = counters.connect(1);
        assert!(first.is_some() && counters.connect(1).is_none());
        assert_eq!(counters.connected(), 1);
        drop(first);
        assert!(counters.connect(1).is_some());
        assert_eq!(counters.connections(), 3);
    }

    #[test]
    fn facets_count_as_other() {
        let counters = Counters::default();
        counters.command(CommandKind::Facet);
        counters.command(CommandKind::Other);
        counters.command(CommandKind::Search);
        let by_name: Vec<_> = counters.commands_by_name().collect();
        assert_eq!(by_name, [("cmd_search", 1), ("cmd_other", 2)]);
        assert_eq!(counters.commands(), 3);
    }
}
