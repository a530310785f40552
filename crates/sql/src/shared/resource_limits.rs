//! The memory and disk (spill files) of running statements: the use of each, the use of all
//! together, and the limits of both.

use std::{
    fmt::{self, Display},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use datafusion::{
    common::resources_datafusion_err,
    error::Result as PlanResult,
    execution::{
        disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode},
        memory_pool::{MemoryLimit, MemoryPool, MemoryReservation},
        runtime_env::RuntimeEnv,
    },
};

use crate::shared::Settings;

/// The memory and disk of all statements of a server, and their limits.
pub(crate) struct ResourceLimits {
    taken: Arc<AtomicU64>,
    most_bytes: u64,
    /// Where statements spill rows that do not fit in memory; `None` if there is no folder for them.
    disk: Option<Arc<DiskManager>>,
    /// The number of statements being planned or run.
    running: Arc<AtomicUsize>,
}

impl ResourceLimits {
    /// The limits of a server. Removes the spill files that an earlier process left.
    pub(crate) fn new(settings: &Settings) -> Self {
        let disk = settings.spill.as_deref().and_then(|folder| disk(folder, settings));
        let most_bytes = settings.max_total_memory_bytes;
        Self { taken: Arc::default(), most_bytes, disk, running: Arc::default() }
    }

    /// The memory of all statements, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// The spill files of all statements, in bytes.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk.as_ref().map_or(0, |disk| disk.used_disk_space())
    }

    /// The number of statements being planned or run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Counts a running statement until the returned guard is dropped.
    pub(crate) fn enter(&self) -> RunningStatement {
        self.running.fetch_add(1, Relaxed);
        RunningStatement { running: Arc::clone(&self.running) }
    }

    /// Reserves memory that a statement uses outside its pool, until the guard is dropped; `None`
    /// if it exceeds the limit.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<ReservedMemory> {
        let reserved = ReservedMemory { taken: Arc::clone(&self.taken), bytes };
        let before = self.taken.fetch_add(bytes, Relaxed);
        (before.saturating_add(bytes) <= self.most_bytes).then_some(reserved)
    }

    /// The runtime environment of a statement that may use `most_bytes` of memory.
    pub(crate) fn environment(&self, shared: &RuntimeEnv, most_bytes: u64) -> Arc<RuntimeEnv> {
        let memory_pool = Arc::new(StatementMemory {
            used: AtomicUsize::new(0),
            most: usize::try_from(most_bytes).unwrap_or(usize::MAX),
            taken: Arc::clone(&self.taken),
            most_taken: self.most_bytes,
        });
        let disk_manager = match &self.disk {
            Some(disk) => Arc::clone(disk),
            None => Arc::clone(&shared.disk_manager),
        };
        Arc::new(RuntimeEnv { memory_pool, disk_manager, ..shared.clone() })
    }
}

/// Counts a running statement until it is dropped.
pub(crate) struct RunningStatement {
    running: Arc<AtomicUsize>,
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Relaxed);
    }
}

/// A reservation of memory. Dropping it frees the memory.
pub(crate) struct ReservedMemory {
    taken: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Relaxed);
    }
}

fn disk(folder: &Path, settings: &Settings) -> Option<Arc<DiskManager>> {
    let made = std::fs::remove_dir_all(folder)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
        .and_then(|()| std::fs::create_dir_all(folder));
    if let Err(error) = made {
        let folder = folder.display();
        tracing::error!(%error, "no folder for rows that memory has no room for: {folder}");
        return None;
    }
    let builder = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![folder.to_owned()]))
        .with_max_temp_directory_size(settings.max_spill_bytes);
    let built = builder.build().inspect_err(|error| {
        tracing::error!(%error, "no folder for rows that memory has no room for");
    });
    built.ok().map(Arc::new)
}

/// The memory of one statement, as a memory pool of DataFusion.
#[derive(Debug)]
struct StatementMemory {
    used: AtomicUsize,
    most: usize,
    taken: Arc<AtomicU64>,
    most_taken: u64,
}

impl StatementMemory {
    fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        self.taken.fetch_add(bytes as u64, Relaxed);
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        self.taken.fetch_sub(bytes as u64, Relaxed);
    }
}

impl Display for StatementMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {} bytes", self.reserved(), self.most)
    }
}

impl Drop for StatementMemory {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.reserved() as u64, Relaxed);
    }
}

impl MemoryPool for StatementMemory {
    fn name(&self) -> &'static str {
        "statement"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.take(additional);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.give(shrink);
    }

    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> PlanResult<()> {
        self.take(additional);
        if self.reserved() <= self.most && self.taken.load(Relaxed) <= self.most_taken {
            return Ok(());
        }
        self.give(additional);
        Err(resources_datafusion_err!("no room for {additional} bytes beside {self}"))
    }

    fn reserved(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.most)
    }
}
