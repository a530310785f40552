//! A MySQL or MariaDB whose tables are copied and followed, in this process.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_source::{
    mysql::{
        Follower, FollowerStatus, MysqlSettings, State, TableState as SourceTableState,
        gtid::GtidSet,
    },
    schema_file::DeclaredWords,
};

use crate::{Error, Result, handle::Handle};

/// How often it is looked whether tables are live.
const POLL: Duration = Duration::from_millis(10);

/// Tables of a MySQL or MariaDB, copied and followed by its binlog while this is there: as `remora serve --mysql` does, with the
/// same exactness. Dropping it stops; the next [`Database::follow`](crate::Database::follow) of the same database goes
/// on where it stood, also after a crash, for the position is stored with the rows.
///
/// ```no_run
/// use std::time::Duration;
///
/// let db = remora::Database::open("replica")?;
/// let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
/// replica.wait_until_live(Duration::from_secs(600))?;
/// let titles = db.query("SELECT title FROM shop.articles WHERE MATCH(body) AGAINST('reef')", [])?;
/// println!("{} articles, at {}", titles.len(), replica.status().position);
/// # Ok::<(), remora::Error>(())
/// ```
///
/// The URL takes parameters: `?ssl-mode=verify_ca&ssl-ca=ca.pem`, `copy-threads`, `copy-rows-per-second`, `chunk-rows`,
/// `server-id`, `time-zone`, `on-lost-position`, `strict-schema`, and `name`, under which its position is stored: several
/// sources in one database need one each. A table is here what it is there, `shop.articles`; do not write to it. What the
/// source must have says the README.
pub struct Replica {
    follower: Follower,
    // Keeps the database open, and is dropped behind the follower.
    handle: Arc<Handle>,
}

/// What a [`Replica`] does and how far it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowStatus {
    /// `host:port` of the source.
    pub source: String,
    /// What is happening.
    pub state: FollowState,
    /// The transactions that can be read here, as a GTID set.
    pub position: String,
    /// How long ago the source committed what is applied now; 0 if nothing waits, `None` if that is not known.
    pub lag_seconds: Option<f64>,
    /// Transactions of the source that cannot be read here yet, counted once a second.
    pub lag_transactions: Option<u64>,
    /// The last error, which may be over.
    pub last_error: Option<String>,
    /// The tables, by name.
    pub tables: Vec<FollowedTable>,
}

/// What a [`Replica`] is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowState {
    /// It is not connected, and tries to be.
    Connecting,
    /// It follows, and at least one table is being copied.
    Copying,
    /// It follows.
    Running,
    /// It was told to stop.
    Stopped,
    /// It stopped by itself, for this reason; [`Replica::resume`] tries again.
    Failed(String),
}

/// One table of a [`Replica`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowedTable {
    /// Its name here.
    pub name: String,
    /// What is happening to it.
    pub state: TableState,
}

/// What is happening to a followed table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TableState {
    /// It is being copied; if it was there before it can be read as it was.
    Copying {
        /// Rows copied.
        rows: u64,
        /// Rows that the source believes there are.
        estimated: u64,
    },
    /// All is read and waits for its place in the stream.
    CatchingUp,
    /// It holds what the source held at the position, and follows it.
    Live,
    /// Nothing comes from the source, for this reason.
    Paused(String),
    /// It is no longer followed and shows its last good state, for this reason.
    Stopped(String),
    /// It cannot be followed, for this reason.
    Refused(String),
}

impl Replica {
    pub(crate) fn start(handle: &Arc<Handle>, url: &str, tables: Vec<String>) -> Result<Self> {
        let mut settings = MysqlSettings::from_url(url)?;
        settings.tables.extend(tables);
        let follower = Follower::start(handle.engine.clone(), settings)?;
        Ok(Self { follower, handle: Arc::clone(handle) })
    }

    /// What it does and how far it is.
    pub fn status(&self) -> FollowStatus {
        let FollowerStatus {
            source,
            state,
            applied,
            lag_seconds,
            lag_transactions,
            last_error,
            tables,
            ..
        } = self.follower.status();
        let tables = tables.into_iter();
        let tables =
            tables.map(|one| FollowedTable { name: one.table, state: of_table(one.state) });
        FollowStatus {
            source,
            state: of_follower(state),
            position: applied,
            lag_seconds,
            lag_transactions,
            last_error: last_error.map(|(_, message)| message),
            tables: tables.collect(),
        }
    }

    /// Waits until every table is live: copied and following.
    ///
    /// # Errors
    /// [`Error::Busy`] if they are not within this time; [`Error::Source`] if it stopped by itself, was stopped, or a
    /// table is refused or stopped; [`Error::Closed`] if the database was closed.
    pub fn wait_until_live(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(patience);
        loop {
            self.handle.engine.source_position("")?;
            let status = self.status();
            let refused = |message: String| Err(Error::Source(message.into()));
            match &status.state {
                FollowState::Failed(reason) => return refused(reason.clone()),
                FollowState::Stopped => return refused("following was stopped".to_owned()),
                _ => {}
            }
            let waiting = status.tables.iter().find(|table| table.state != TableState::Live);
            match waiting.map(|table| (&table.name, &table.state)) {
                Some((table, TableState::Stopped(reason) | TableState::Refused(reason))) => {
                    return refused(format!("table {table} is not followed: {reason}"));
                }
                None if status.state == FollowState::Running && !status.tables.is_empty() => {
                    return Ok(());
                }
                _ => {}
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let what = waiting.map_or_else(
                    || format!("following {} is {:?}", status.source, status.state),
                    |table| format!("table {} is {:?}", table.name, table.state),
                );
                return Err(Error::Busy(format!("{what}, and the time is up").into()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until these transactions of the source can be read here: a GTID set, as the source's `@@gtid_executed` or
    /// `@@gtid_binlog_pos` tells it behind a commit.
    ///
    /// # Errors
    /// [`Error::Source`] if the text is no GTID set, [`Error::Busy`] if they cannot be read within this time,
    /// [`Error::Closed`] if the database was closed.
    pub fn wait_for(&self, transactions: &str, patience: Duration) -> Result<()> {
        let transactions = GtidSet::parse(transactions)?;
        Ok(self.follower.wait_for(&transactions, patience)?)
    }

    /// Stops following until [`Replica::resume`]; what was read and is whole is applied first, and nothing is written on
    /// return.
    ///
    /// # Errors
    /// [`Error::Busy`] if that takes more than a minute; it ends nevertheless.
    pub fn stop(&self) -> Result<()> {
        Ok(self.follower.stop()?)
    }

    /// Follows again, from where it stood.
    ///
    /// # Errors
    /// [`Error::Source`] if it has ended.
    pub fn resume(&self) -> Result<()> {
        Ok(self.follower.resume()?)
    }

    /// Declares the words of a table for ranked search: columns in the order of fields, and settings by Sphinx's names.
    /// Without columns it has none. The source is not told, and no row is copied; on return the rows are indexed. Words
    /// stay over restarts and with the table's name: `docs/ranked-search.md`.
    ///
    /// # Errors
    /// [`Error::Source`] if the table is not followed or not here yet, if a column is not there or no text, or if a
    /// setting is not understood.
    pub fn declare_words(
        &self,
        table: &str,
        columns: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<()> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let words = (!columns.is_empty()).then(|| DeclaredWords {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            settings: settings.iter().map(pair).collect(),
            files: Vec::new(),
        });
        Ok(self.follower.declare_words(table, words)?)
    }

    /// Copies a table anew beside what can be read of it, in the background.
    ///
    /// # Errors
    /// [`Error::Source`] if it is being copied, or too many orders wait.
    pub fn copy_anew(&self, table: &str) -> Result<()> {
        Ok(self.follower.sync(table)?)
    }
}

fn of_follower(state: State) -> FollowState {
    match state {
        State::Connecting => FollowState::Connecting,
        State::Copying => FollowState::Copying,
        State::Running => FollowState::Running,
        State::Stopped => FollowState::Stopped,
        State::Failed(reason) => FollowState::Failed(reason),
    }
}

fn of_table(state: SourceTableState) -> TableState {
    match state {
        SourceTableState::Copying { rows, estimated, .. } => {
            TableState::Copying { rows, estimated }
        }
        SourceTableState::CatchingUp => TableState::CatchingUp,
        SourceTableState::Live => TableState::Live,
        SourceTableState::Paused { why, .. } => TableState::Paused(why.to_owned()),
        SourceTableState::Stopped(reason) => TableState::Stopped(reason),
        SourceTableState::Refused(reason) => TableState::Refused(reason),
    }
}
