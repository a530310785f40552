//! Copies and follows tables of a MySQL or MariaDB in this process.

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

/// The interval at which [`Replica::wait_until_live`] reads the status.
const POLL: Duration = Duration::from_millis(10);

/// A running follower: it copies tables of a MySQL or MariaDB and applies the changes of its binlog, exactly as
/// `remora serve --mysql` does. Dropping it stops following. The next [`Database::follow`](crate::Database::follow) of
/// the same database continues at the position where this one stopped, also after a crash, because the position is
/// stored in the same commits as the rows.
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
/// `server-id`, `time-zone`, `on-lost-position`, `strict-schema`, and `name`. The position is stored under that name,
/// so several sources in one database need different names. A table has the name that it has at the source, such as
/// `shop.articles`. Do not write to it. The README lists what the source must have.
pub struct Replica {
    follower: Follower,
    // Keeps the database open. It is dropped after the follower.
    handle: Arc<Handle>,
}

/// The state and the position of a [`Replica`].
///
/// ```no_run
/// # let db = remora::Database::open("replica")?;
/// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
/// let status = replica.status();
/// println!("{}: {:?}, at {}", status.source, status.state, status.position);
/// match status.lag_seconds {
///     Some(seconds) => println!("{seconds:.1} s behind"),
///     None => println!("{}", status.last_error.as_deref().unwrap_or("the lag is unknown")),
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowStatus {
    /// `host:port` of the source.
    pub source: String,
    /// The state of the follower.
    pub state: FollowState,
    /// The transactions that can be read here, as a GTID set.
    pub position: String,
    /// How long ago the source committed what is being applied; 0 if nothing waits, `None` if it is
    /// unknown.
    pub lag_seconds: Option<f64>,
    /// The number of the source's transactions that cannot be read here yet, counted once a second.
    pub lag_transactions: Option<u64>,
    /// The last error. It stays when following continues afterwards.
    pub last_error: Option<String>,
    /// The followed tables, in the order of their names.
    pub tables: Vec<FollowedTable>,
}

/// The state of a [`Replica`].
///
/// ```no_run
/// use remora::FollowState;
///
/// # let db = remora::Database::open("replica")?;
/// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
/// match replica.status().state {
///     FollowState::Failed(reason) => {
///         println!("stopped: {reason}");
///         replica.resume()?;
///     }
///     state => println!("{state:?}"),
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowState {
    /// It is not connected to the source and tries to connect.
    Connecting,
    /// It follows, and at least one table is being copied.
    Copying,
    /// It follows the source, and no table is being copied.
    Running,
    /// [`Replica::stop`] stopped it.
    Stopped,
    /// It stopped because of this error. [`Replica::resume`] tries again.
    Failed(String),
}

/// One table of a [`Replica`].
///
/// ```no_run
/// use remora::TableState;
///
/// # let db = remora::Database::open("replica")?;
/// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
/// for table in replica.status().tables {
///     if table.state != TableState::Live {
///         println!("{}: {:?}", table.name, table.state);
///     }
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowedTable {
    /// The name of the table in this database.
    pub name: String,
    /// The state of the table.
    pub state: TableState,
}

/// The state of a followed table.
///
/// ```no_run
/// use remora::TableState;
///
/// # let db = remora::Database::open("replica")?;
/// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
/// for table in replica.status().tables {
///     match table.state {
///         TableState::Live => {}
///         TableState::Copying { rows, estimated } => {
///             println!("{}: {rows} of about {estimated} rows", table.name);
///         }
///         TableState::Stopped(reason) | TableState::Refused(reason) => {
///             println!("{} is not followed: {reason}", table.name);
///         }
///         other => println!("{}: {other:?}", table.name),
///     }
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TableState {
    /// The table is being copied. If it existed before, its earlier rows can be read meanwhile.
    Copying {
        /// The number of rows copied so far.
        rows: u64,
        /// The source's estimate of the number of rows.
        estimated: u64,
    },
    /// All rows are read; the stream has not reached the position of the copy yet.
    CatchingUp,
    /// The table has the rows that the source had at the position, and follows the source.
    Live,
    /// No changes come from the source, for this reason.
    Paused(String),
    /// The table is no longer followed, for this reason. Its last good state can be read.
    Stopped(String),
    /// The table cannot be followed, for this reason.
    Refused(String),
}

impl Replica {
    pub(crate) fn start(handle: &Arc<Handle>, url: &str, tables: Vec<String>) -> Result<Self> {
        let mut settings = MysqlSettings::from_url(url)?;
        settings.tables.extend(tables);
        let follower = Follower::start(handle.engine.clone(), settings)?;
        Ok(Self { follower, handle: Arc::clone(handle) })
    }

    /// The current state, position and tables.
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

    /// Waits until every table is copied and follows the source ([`TableState::Live`]). Cost: reads the status every 10
    /// ms.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// replica.wait_until_live(std::time::Duration::from_secs(600))?;
    /// assert!(db.table("shop.articles").is_ok());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] if that takes longer than `patience`; [`Error::Source`] if following has failed or was stopped,
    /// or a table is refused or stopped; [`Error::Closed`] if the database was closed.
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

    /// Waits until these transactions of the source can be read here. `transactions` is a GTID set, such as the value
    /// of the source's `@@gtid_executed` or `@@gtid_binlog_pos` after a commit. Cost: returns at once if they can be
    /// read already.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// # let written = "0f2c1d5a-8f0e-11ee-b9d1-0242ac120002:1-77";
    /// // `written` is the source's @@gtid_executed after the program's own write.
    /// replica.wait_for(written, std::time::Duration::from_secs(1))?;
    /// println!("{} articles", db.table("shop.articles")?.count()?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Source`] if the text is no GTID set, [`Error::Busy`] if that takes longer than `patience`,
    /// [`Error::Closed`] if the database was closed.
    pub fn wait_for(&self, transactions: &str, patience: Duration) -> Result<()> {
        let transactions = GtidSet::parse(transactions)?;
        Ok(self.follower.wait_for(&transactions, patience)?)
    }

    /// Stops following until [`Replica::resume`]. Complete transactions that were received are
    /// applied first. After it has returned, the follower writes nothing. Cost: waits until the received transactions
    /// are applied, a minute at most.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// replica.stop()?;
    /// assert_eq!(replica.status().state, remora::FollowState::Stopped);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] if that takes more than a minute; following ends later nevertheless.
    pub fn stop(&self) -> Result<()> {
        Ok(self.follower.stop()?)
    }

    /// Starts to follow again, at the stored position. Cost: returns at once.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// replica.stop()?;
    /// replica.resume()?;
    /// replica.wait_until_live(std::time::Duration::from_secs(60))?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Source`] if the follower has ended.
    pub fn resume(&self) -> Result<()> {
        Ok(self.follower.resume()?)
    }

    /// Declares the columns of a table that ranked search indexes, in the order of fields, and the settings by Sphinx's
    /// names. An empty list of columns removes the declaration. Nothing is changed at the source and no row is copied;
    /// on return all rows are indexed. The declaration belongs to the table's name and survives restarts
    /// (`docs/ranked-search.md`). Cost: reads and indexes all rows of the table once.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// replica.declare_words("shop.articles", &["title", "body"], &[("morphology", "stem_en")])?;
    /// replica.declare_words("shop.articles", &[], &[])?; // Removes it.
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Source`] if the table is not followed or not copied yet, if a column does not exist or is not text, or
    /// if a setting is not understood.
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

    /// Copies a table again in the background. The current rows can be read until the copy replaces them. Cost: reads
    /// the table once at the source; both copies are on disk meanwhile.
    ///
    /// ```no_run
    /// # let db = remora::Database::open("replica")?;
    /// # let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles"])?;
    /// replica.copy_anew("shop.articles")?;
    /// replica.wait_until_live(std::time::Duration::from_secs(600))?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Source`] if the table is being copied already, or too many requests wait.
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
