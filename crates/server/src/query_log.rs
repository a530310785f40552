//! The log of queries: a line for each search, as searchd writes it.
//!
//! Sessions put lines into a queue, and a thread writes them into the file. If the queue is full, as on a slow disk, lines
//! are left out, and the next line says how many: no session waits.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write},
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use jiff::Zoned;
use parking_lot::Mutex;

use crate::{
    Error, Result,
    settings::{QueryLogFormat, QueryLogging},
};

/// The most lines in the queue, and the most bytes of a statement in a line: together 16 MiB.
const MOST_LINES: usize = 1024;
const MOST_BYTES: usize = 16 << 10;

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
    /// The lines left out since the last one.
    left_out: AtomicU64,
}

/// The thread that writes, and its queue.
struct LogWriter {
    orders: SyncSender<Order>,
    thread: JoinHandle<()>,
}

/// What the thread is told.
enum Order {
    /// Write a line.
    Line(String),
    /// Go on in this file.
    File(File),
}

impl QueryLog {
    /// Opens the file of these settings, anew if it is open: a file that was moved away is left, as SIGHUP wants it.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened for writing; then the log goes on as it was.
    pub(crate) fn apply(&self, settings: &QueryLogging) -> Result<()> {
        let Some(path) = &settings.file else {
            self.close();
            return Ok(());
        };
        let failed = |source| Error::io("cannot write the log of queries", path, source);
        let file = File::options().create(true).append(true).open(path).map_err(failed)?;
        let mut writer = self.writer.lock();
        if let Some(open) = &*writer {
            // The thread lives as long as the queue.
            let _ = open.orders.send(Order::File(file));
            return Ok(());
        }
        let (orders, received) = sync_channel(MOST_LINES);
        let thread = thread::Builder::new().name("query log".to_owned());
        let thread = thread.spawn(move || write(file, &received)).map_err(failed)?;
        *writer = Some(LogWriter { orders, thread });
        Ok(())
    }

    /// Adds a search, unless it took less time than the settings ask for.
    pub(crate) fn add(&self, settings: &QueryLogging, search: &AnsweredSearch<'_>) {
        if settings.file.is_none() || search.elapsed < settings.least_time() {
            return;
        }
        let now = Zoned::now().strftime("%a %b %e %H:%M:%S%.3f %Y").to_string();
        let mut text = String::new();
        let left_out = self.left_out.swap(0, Relaxed);
        let line = match settings.format {
            QueryLogFormat::SphinxQl => {
                if left_out > 0 {
                    let _ = writeln!(text, "/* {now} {left_out} queries are left out */");
                }
                search.in_sql(&now)
            }
            QueryLogFormat::Plain => {
                if left_out > 0 {
                    let _ = writeln!(text, "[{now}] {left_out} queries are left out");
                }
                search.in_brackets(&now)
            }
        };
        text.push_str(&line);
        let writer = self.writer.lock();
        let Some(open) = &*writer else { return };
        if let Err(TrySendError::Full(_)) = open.orders.try_send(Order::Line(text)) {
            self.left_out.fetch_add(left_out + 1, Relaxed);
        }
    }

    /// Writes what is in the queue and closes the file.
    pub(crate) fn close(&self) {
        let writer = self.writer.lock().take();
        if let Some(LogWriter { orders, thread }) = writer {
            drop(orders);
            if thread.join().is_err() {
                tracing::warn!("the log of queries ended early");
            }
        }
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
            line.push_str(" # MATCH('");
            push_in_line(&mut line, &self.query.replace('\\', "\\\\").replace('\'', "\\'"));
            line.push_str("')");
        }
        line.push('\n');
        line
    }

    /// searchd's `query_log_format = plain`, with microseconds. Filters are not counted.
    fn in_brackets(&self, now: &str) -> String {
        let (seconds, found, table) = (self.elapsed.as_secs_f64(), self.found, self.table);
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
    let text = &text[..text.floor_char_boundary(MOST_BYTES)];
    line.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
}

/// Writes until the queue ends. What cannot be written is lost, with one warning for each run of errors.
fn write(file: File, orders: &Receiver<Order>) {
    let mut file = BufWriter::new(file);
    let mut has_failed = false;
    while let Ok(first) = orders.recv() {
        let mut written = Ok(());
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Line(line) => written = written.and(file.write_all(line.as_bytes())),
                Order::File(new) => {
                    written = written.and(file.flush());
                    file = BufWriter::new(new);
                }
            }
            next = orders.try_recv().ok();
        }
        written = written.and(file.flush());
        if let Err(error) = &written
            && !has_failed
        {
            tracing::warn!("cannot write the log of queries: {error}");
        }
        has_failed = written.is_err();
    }
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

    #[test]
    fn a_full_queue_leaves_lines_out_and_says_how_many() {
        let log = QueryLog::default();
        let (orders, received) = sync_channel(1);
        let thread = thread::spawn(|| {});
        *log.writer.lock() = Some(LogWriter { orders, thread });
        let settings = settings(Path::new("unused"), QueryLogFormat::SphinxQl);
        (0..3).for_each(|_| log.add(&settings, &search(Duration::ZERO)));
        assert!(matches!(received.recv(), Ok(Order::Line(line)) if line.lines().count() == 1));
        log.add(&settings, &search(Duration::ZERO));
        let Ok(Order::Line(line)) = received.recv() else { panic!("no line") };
        assert!(line.contains(" 2 queries are left out */\n/* "), "{line}");
    }
}
