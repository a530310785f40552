//! The log of queries: a line for each search, as searchd writes it.
//!
//! Sessions put lines into a queue, and a thread writes them into the file. If the queue is full, as on a slow disk,
//! lines are left out, and the next line, or the last one of the file, says how many: no session waits, nor who opens
//! the file anew.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use jiff::Zoned;
use parking_lot::Mutex;

use crate::{
    Error, Result,
    settings::{QueryLogFormat, QueryLogging},
};

/// The most lines in the queue.
const MOST_LINES: usize = 512;
/// The most bytes of a statement in a line. Of the query of a prepared one there are so many, too, and of the table
/// [`MOST_TABLE_BYTES`]: the queue has at most 17 MiB.
const MOST_BYTES: usize = 16 << 10;
/// The most bytes of a table's name, or of several.
const MOST_TABLE_BYTES: usize = 1 << 10;
/// How long the end of the server waits for the file.
const END_WAIT: Duration = Duration::from_secs(5);

/// A search that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredSearch<'a> {
    /// The number of its connection.
    pub connection: u64,
    /// From the statement's arrival to the end of its answer.
    pub elapsed: Duration,
    /// The number of rows found.
    pub found: u64,
    /// The rows that contain each keyword, summed up, if they are known.
    pub documents: Option<u64>,
    /// The table, or several with commas.
    pub table: &'a str,
    /// The text of the keyword query.
    pub query: &'a str,
    /// The statement.
    pub statement: &'a str,
    /// Whether the statement has a `?` in the place of the query.
    pub is_prepared: bool,
}

/// The log. It writes nothing until [`QueryLog::apply`] opens a file.
#[derive(Default)]
pub(crate) struct QueryLog {
    writer: Mutex<Option<LogWriter>>,
    shared: Arc<LogState>,
}

/// What sessions and the thread share.
#[derive(Default)]
struct LogState {
    /// The lines left out since the last one.
    left_out: AtomicU64,
    format: Mutex<QueryLogFormat>,
}

/// A file with its number among those that a thread got: of two, the later one is written.
struct NumberedFile {
    number: u64,
    file: File,
}

/// A thread's file that found no place in its queue.
type FileSlot = Arc<Mutex<Option<NumberedFile>>>;

/// The thread that writes, and its queue.
struct LogWriter {
    orders: SyncSender<Order>,
    /// The number of the newest file.
    files: u64,
    slot: FileSlot,
    thread: JoinHandle<()>,
}

/// What the thread is told.
enum Order {
    /// Write a line.
    Line(String),
    /// Go on in this file.
    File(NumberedFile),
}

impl QueryLog {
    /// Opens the file of these settings, anew if it is open: a file that was moved away is left, as SIGHUP wants it.
    /// Does not wait for lines: if the queue is full, some of those in it get into the new file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened for writing; then the log goes on as it was.
    pub(crate) fn apply(&self, settings: &QueryLogging) -> Result<()> {
        let Some(path) = &settings.file else {
            // Its thread writes what is in the queue, and ends.
            drop(self.writer.lock().take());
            return Ok(());
        };
        let failed = |source| Error::io("cannot write the log of queries", path, source);
        let mut file = File::options().create(true).append(true).open(path).map_err(failed)?;
        *self.shared.format.lock() = settings.format;
        let mut writer = self.writer.lock();
        if let Some(open) = &mut *writer {
            open.files += 1;
            let mut slot = open.slot.lock();
            match open.orders.try_send(Order::File(NumberedFile { number: open.files, file })) {
                Ok(()) => {
                    *slot = None;
                    return Ok(());
                }
                Err(TrySendError::Full(Order::File(file))) => {
                    *slot = Some(file);
                    return Ok(());
                }
                Err(TrySendError::Disconnected(Order::File(same))) => file = same.file,
                Err(_) => return Ok(()),
            }
        }
        let (orders, received) = sync_channel(MOST_LINES);
        let (slot, shared) = (FileSlot::default(), Arc::clone(&self.shared));
        let of_thread = Arc::clone(&slot);
        let thread = thread::Builder::new().name("query log".to_owned());
        let thread = thread.spawn(move || write(file, &received, &of_thread, &shared));
        let thread = thread.map_err(failed)?;
        *writer = Some(LogWriter { orders, files: 0, slot, thread });
        Ok(())
    }

    /// Adds a search, unless it took less time than the settings ask for.
    pub(crate) fn add(&self, settings: &QueryLogging, search: &AnsweredSearch<'_>) {
        if settings.file.is_none() || search.elapsed < settings.least_time() {
            return;
        }
        let now = now();
        let mut writer = self.writer.lock();
        let Some(open) = &*writer else { return };
        let left_out = self.shared.left_out.swap(0, Relaxed);
        let mut text = told_left_out(settings.format, &now, left_out);
        text.push_str(&match settings.format {
            QueryLogFormat::SphinxQl => search.in_sql(&now),
            QueryLogFormat::Plain => search.in_brackets(&now),
        });
        match open.orders.try_send(Order::Line(text)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.shared.left_out.fetch_add(left_out + 1, Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => {
                tracing::warn!("the log of queries ended by a fault: SIGHUP opens it anew");
                *writer = None;
                self.shared.left_out.fetch_add(left_out + 1, Relaxed);
            }
        }
    }

    /// Writes what is in the queue and closes the file. Waits a few seconds at most.
    pub(crate) fn close(&self) {
        let writer = self.writer.lock().take();
        let Some(LogWriter { orders, thread, .. }) = writer else { return };
        drop(orders);
        let begun = Instant::now();
        while !thread.is_finished() {
            if begun.elapsed() >= END_WAIT {
                tracing::warn!("the log of queries is not whole: its file takes no more");
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        if thread.join().is_err() {
            tracing::warn!("the log of queries ended early");
        }
    }
}

fn now() -> String {
    Zoned::now().strftime("%a %b %e %H:%M:%S%.3f %Y").to_string()
}

/// The line that says how many are missing; empty if none are.
fn told_left_out(format: QueryLogFormat, now: &str, left_out: u64) -> String {
    match (left_out, format) {
        (0, _) => String::new(),
        (_, QueryLogFormat::SphinxQl) => format!("/* {now} {left_out} queries are left out */\n"),
        (_, QueryLogFormat::Plain) => format!("[{now}] {left_out} queries are left out\n"),
    }
}

impl AnsweredSearch<'_> {
    /// searchd's `query_log_format = sphinxql`, with microseconds and `docs`.
    fn in_sql(&self, now: &str) -> String {
        let (seconds, found) = (self.elapsed.as_secs_f64(), self.found);
        let mut line = format!(
            "/* {now} conn {} real {seconds:.6} wall {seconds:.6} found {found}",
            self.connection
        );
        if let Some(documents) = self.documents {
            let _ = write!(line, " docs {documents}");
        }
        line.push_str(" */ ");
        let statement = self.statement.trim_end().trim_end_matches(';');
        push_in_line(&mut line, statement);
        line.push(';');
        if self.is_prepared && !self.query.is_empty() {
            // Escaped, it is twice as long at most.
            let query = cut(self.query, MOST_BYTES / 2);
            line.push_str(" # MATCH('");
            push_in_line(&mut line, &query.replace('\\', "\\\\").replace('\'', "\\'"));
            line.push_str("')");
        }
        line.push('\n');
        line
    }

    /// searchd's `query_log_format = plain`, with microseconds. Filters are not counted.
    fn in_brackets(&self, now: &str) -> String {
        let (seconds, found) = (self.elapsed.as_secs_f64(), self.found);
        let table = cut(self.table, MOST_TABLE_BYTES);
        let mut line = format!(
            "[{now}] {seconds:.6} sec {seconds:.6} sec [ext2/0/rel {found} (0,20)] [{table}] "
        );
        push_in_line(&mut line, self.query);
        line.push('\n');
        line
    }
}

/// Appends a text without line breaks, up to [`MOST_BYTES`].
fn push_in_line(line: &mut String, text: &str) {
    line.extend(cut(text, MOST_BYTES).chars().map(|c| if c.is_control() { ' ' } else { c }));
}

/// The beginning of a text, of so many bytes at most.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Writes until the queue ends. What cannot be written is lost, with one warning for each run of errors.
fn write(file: File, orders: &Receiver<Order>, slot: &FileSlot, shared: &LogState) {
    let mut file = BufWriter::new(file);
    let (mut number, mut has_failed) = (0, false);
    loop {
        let first = orders.recv();
        let is_over = first.is_err();
        let mut written = Ok(());
        // A file in the slot came while the queue was full: as long as lines come, the slot is looked at before each run
        // of them and behind it, so that no file waits for a search.
        let of_slot = std::iter::once_with(|| slot.lock().take().map(Order::File)).flatten();
        let at_end = std::iter::once_with(|| slot.lock().take().map(Order::File)).flatten();
        let more = std::iter::from_fn(|| orders.try_recv().ok()).take(MOST_LINES);
        for order in of_slot.chain(first.ok()).chain(more).chain(at_end) {
            match order {
                Order::Line(line) => written = written.and(file.write_all(line.as_bytes())),
                Order::File(new) if new.number > number => {
                    number = new.number;
                    written = written.and(file.flush());
                    file = BufWriter::new(new.file);
                }
                Order::File(_) => {}
            }
        }
        warn_once(written.and(file.flush()), &mut has_failed);
        if is_over {
            break;
        }
    }
    let left_out = shared.left_out.swap(0, Relaxed);
    let last = told_left_out(*shared.format.lock(), &now(), left_out);
    warn_once(file.write_all(last.as_bytes()).and(file.flush()), &mut has_failed);
}

/// Warns of the first of several failures.
fn warn_once(written: std::io::Result<()>, has_failed: &mut bool) {
    if let Err(error) = &written
        && !*has_failed
    {
        tracing::warn!("cannot write the log of queries: {error}");
    }
    *has_failed = written.is_err();
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn search(elapsed: Duration) -> AnsweredSearch<'static> {
        AnsweredSearch {
            connection: 7,
            elapsed,
            found: 35,
            documents: Some(1_200),
            table: "books",
            query: "it's a reef",
            statement: "SELECT id\nFROM books WHERE MATCH(?) ; ",
            is_prepared: true,
        }
    }

    fn settings(path: &Path, format: QueryLogFormat) -> QueryLogging {
        QueryLogging { file: Some(path.to_owned()), format, min_msec: 0 }
    }

    #[test]
    fn lines_have_the_form_of_sphinx() {
        let search = search(Duration::from_micros(1_234));
        let now = "Sun Nov  1 09:03:05.120 2026";
        assert_eq!(
            search.in_sql(now),
            format!(
                "/* {now} conn 7 real 0.001234 wall 0.001234 found 35 docs 1200 */ SELECT id FROM books \
                 WHERE MATCH(?) ; # MATCH('it\\'s a reef')\n"
            )
        );
        assert_eq!(
            search.in_brackets(now),
            format!(
                "[{now}] 0.001234 sec 0.001234 sec [ext2/0/rel 35 (0,20)] [books] it's a reef\n"
            )
        );
    }

    #[test]
    fn a_file_that_was_moved_is_left_when_it_is_opened_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("q.log"), directory.path().join("q.log.1"));
        let settings = settings(&path, QueryLogFormat::Plain);
        let log = QueryLog::default();
        log.add(&settings, &search(Duration::ZERO));
        log.apply(&settings).unwrap();
        log.add(&settings, &search(Duration::ZERO));
        fs::rename(&path, &moved).unwrap();
        log.apply(&settings).unwrap();
        let slow = QueryLogging { min_msec: 5, ..settings.clone() };
        log.add(&slow, &search(Duration::from_millis(4)));
        log.add(&slow, &search(Duration::from_millis(5)));
        log.close();
        let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&moved), lines(&path)), (1, 1));
        assert!(log.apply(&self::settings(directory.path(), QueryLogFormat::Plain)).is_err());
    }

    /// A log whose thread takes nothing yet.
    fn stalled(log: &QueryLog, lines: usize) -> Receiver<Order> {
        let (orders, received) = sync_channel(lines);
        let (slot, thread) = (FileSlot::default(), thread::spawn(|| {}));
        *log.writer.lock() = Some(LogWriter { orders, files: 0, slot, thread });
        received
    }

    #[test]
    fn a_full_queue_leaves_lines_out_and_says_how_many() {
        let log = QueryLog::default();
        let received = stalled(&log, 1);
        let settings = settings(Path::new("unused"), QueryLogFormat::SphinxQl);
        (0..3).for_each(|_| log.add(&settings, &search(Duration::ZERO)));
        assert!(matches!(received.recv(), Ok(Order::Line(line)) if line.lines().count() == 1));
        log.add(&settings, &search(Duration::ZERO));
        let Ok(Order::Line(line)) = received.recv() else { panic!("no line") };
        assert!(line.contains(" 2 queries are left out */\n/* "), "{line}");
    }

    #[test]
    fn nobody_waits_for_a_stalled_disk_and_the_file_is_changed_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let plain = |name: &str| settings(&path(name), QueryLogFormat::Plain);
        let log = QueryLog::default();
        let received = stalled(&log, 1);
        log.add(&plain("a"), &search(Duration::ZERO));
        // The queue is full.
        log.apply(&plain("b")).unwrap();
        log.apply(&plain("c")).unwrap();
        log.add(&plain("c"), &search(Duration::ZERO));
        let writer = log.writer.lock().take().unwrap();
        drop(writer.orders);
        let old = File::create(path("a")).unwrap();
        write(old, &received, &writer.slot, &log.shared);
        let text = |name: &str| fs::read_to_string(path(name)).unwrap();
        assert_eq!((text("a").as_str(), text("b").as_str()), ("", ""));
        // The end tells what was left out.
        let lines = text("c");
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.ends_with("] 1 queries are left out\n"), "{lines}");
    }

    #[test]
    fn a_log_that_was_closed_behind_a_stalled_disk_is_opened_in_its_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let plain = |name: &str| settings(&path(name), QueryLogFormat::Plain);
        let log = QueryLog::default();
        let stalled = stalled(&log, 1);
        log.add(&plain("a"), &search(Duration::ZERO));
        log.apply(&plain("b")).unwrap();
        log.apply(&QueryLogging::default()).unwrap();
        log.apply(&plain("c")).unwrap();
        log.add(&plain("c"), &search(Duration::ZERO));
        log.apply(&plain("d")).unwrap();
        log.add(&plain("d"), &search(Duration::ZERO));
        log.close();
        drop(stalled);
        let lines = |name: &str| fs::read_to_string(path(name)).unwrap().lines().count();
        assert_eq!((lines("b"), lines("c"), lines("d")), (0, 1, 1));
    }

    #[test]
    fn a_log_whose_thread_died_is_opened_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("q.log");
        let settings = settings(&path, QueryLogFormat::SphinxQl);
        for tells in [false, true] {
            let log = QueryLog::default();
            drop(stalled(&log, 1));
            if tells {
                (0..2).for_each(|_| log.add(&settings, &search(Duration::ZERO)));
                assert!(log.writer.lock().is_none());
            }
            log.apply(&settings).unwrap();
            log.add(&settings, &search(Duration::ZERO));
            log.close();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("SELECT")).count(), 2, "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("1 queries are")).count(), 1, "{text}");
    }

    #[test]
    fn lines_have_a_bound() {
        let long = "'".repeat(10 * MOST_BYTES);
        let search = AnsweredSearch {
            table: &long,
            query: &long,
            statement: &long,
            ..search(Duration::ZERO)
        };
        let most = 2 * MOST_BYTES + MOST_TABLE_BYTES;
        assert!(search.in_sql("now").len() < most && search.in_brackets("now").len() < most);
        assert!(search.in_sql("now").ends_with("\\'\\'')\n"));
    }
}
