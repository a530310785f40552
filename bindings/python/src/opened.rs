//! Databases that are open in this process, each once, however many connections there are.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, OnceLock, Weak},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pyo3::PyResult;
use remora::{Database, Error, Options};

use crate::{
    errors::{self, programming, raised},
    process::{self, OfProcess},
};

/// The longest that a database takes to close, and some more.
const MAX_CLOSING: Duration = Duration::from_secs(6);

/// An open database, closed with the last of its connections.
pub(crate) struct Opened {
    database: OfProcess<Database>,
    options: Options,
}

impl Opened {
    /// The database.
    ///
    /// # Errors
    /// `InterfaceError` in a forked child.
    pub fn database(&self) -> PyResult<&Database> {
        self.database.get()?.ok_or_else(errors::closed)
    }

    /// Closes it.
    ///
    /// # Errors
    /// Those of the library: no row is lost, the next opening takes longer.
    pub fn close(mut self) -> PyResult<()> {
        match self.database.take()? {
            Some(database) => database.close().map_err(raised),
            None => Ok(()),
        }
    }
}

/// The database of a connection and of all that was made of it, until the connection is closed.
pub(crate) struct Slot {
    opened: Mutex<Option<Arc<Opened>>>,
    process: u32,
}

impl Slot {
    pub fn new(opened: Arc<Opened>) -> Self {
        Self { opened: Mutex::new(Some(opened)), process: std::process::id() }
    }

    /// The database, which stays open as long as this is kept.
    ///
    /// # Errors
    /// `InterfaceError` if the connection was closed, or in a forked child.
    pub fn opened(&self) -> PyResult<Arc<Opened>> {
        // Before the lock, which a thread of the parent may have held when this process was forked.
        process::check(self.process)?;
        self.opened.lock().clone().ok_or_else(errors::closed)
    }

    /// Whether it was not taken out; false in a forked child.
    pub fn is_open(&self) -> bool {
        process::check(self.process).is_ok() && self.opened.lock().is_some()
    }

    /// Takes it out; nothing in a forked child, where nothing is to be closed.
    pub fn take(&self) -> Option<Arc<Opened>> {
        process::check(self.process).ok()?;
        self.opened.lock().take()
    }
}

static OPENED: LazyLock<Mutex<HashMap<PathBuf, Weak<Opened>>>> = LazyLock::new(Mutex::default);
/// The process whose threads serve statements: the one that opened a database first.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Opens a database, or takes the one that is open in this process; one in memory without a path.
///
/// # Errors
/// `OperationalError` if another process has it open, `ProgrammingError` if this one has with other options, and
/// others of the library.
pub(crate) fn open(path: Option<&Path>, options: Options) -> PyResult<Arc<Opened>> {
    process::check(*PROCESS.get_or_init(std::process::id))?;
    let Some(path) = path else {
        let database = OfProcess::new(Database::in_memory().map_err(raised)?);
        return Ok(Arc::new(Opened { database, options }));
    };
    let mut opened = OPENED.lock();
    let place = std::fs::canonicalize(path).ok();
    let known = place.and_then(|place| opened.get(&place));
    if let Some(found) = known.and_then(Weak::upgrade) {
        return match same(&found.options, &options) {
            true => Ok(found),
            false => Err(programming(format!(
                "{} is open in this process with other options",
                path.display()
            ))),
        };
    }
    let closes = known.is_some();
    let database = open_closed(path, &options, closes).map_err(raised)?;
    // A directory that was made just now has its place by now.
    let place = std::fs::canonicalize(path).unwrap_or_else(|_| database.path());
    let made = Arc::new(Opened { database: OfProcess::new(database), options });
    opened.retain(|_, database| database.strong_count() > 0);
    opened.insert(place, Arc::downgrade(&made));
    Ok(made)
}

/// Opens a directory, which another thread of this process may be closing.
fn open_closed(path: &Path, options: &Options, closes: bool) -> remora::Result<Database> {
    let begin = Instant::now();
    loop {
        match Database::open_with(path, options.clone()) {
            Err(Error::InUse(_)) if closes && begin.elapsed() < MAX_CLOSING => {
                thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

fn same(a: &Options, b: &Options) -> bool {
    a.durability == b.durability
        && a.max_query_memory_bytes == b.max_query_memory_bytes
        && a.row_cache_bytes == b.row_cache_bytes
}
