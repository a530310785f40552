//! GTID sets as MySQL and MariaDB write them.
//!
//! ```text
//! MySQL:    set = entry *("," entry) ; entry = uuid 1*(":" (range | tag)) ; range = n ["-" m]
//!           a tag holds for the ranges after it, up to the next tag or entry
//! MariaDB:  set = gtid *("," gtid)   ; gtid = domain "-" server "-" sequence
//! ```
//! A MySQL set lists all its transactions. A MariaDB set lists the last transaction of each domain, which stands for
//! all before it in that domain.

mod mariadb;
mod mysql;

use std::fmt;

pub use mariadb::{MariaDbGtid, MariaDbSet};
pub use mysql::{MySqlGtid, MySqlSet, Tag, Uuid};

use crate::{Error, Result};

/// The kind of server, which decides the forms of binlogs and GTIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// MySQL, Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// One transaction of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gtid {
    /// `uuid[:tag]:number`.
    MySql(MySqlGtid),
    /// `domain-server-sequence`.
    MariaDb(MariaDbGtid),
}

/// A set of transactions. Its text form is canonical and is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GtidSet {
    /// A set of MySQL's GTIDs.
    MySql(MySqlSet),
    /// A set of MariaDB's GTIDs.
    MariaDb(MariaDbSet),
}

impl GtidSet {
    /// The empty set.
    pub fn empty(flavor: Flavor) -> Self {
        match flavor {
            Flavor::MySql => Self::MySql(MySqlSet::default()),
            Flavor::MariaDb => Self::MariaDb(MariaDbSet::default()),
        }
    }

    /// Parses a set of either kind. An empty text is ambiguous: see [`GtidSet::parse_as`].
    ///
    /// # Errors
    /// [`Error::Setting`] if the text is empty or not a GTID set.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(first) = text.split(',').map(str::trim).find(|entry| !entry.is_empty()) else {
            return Err(Error::Setting("an empty GTID set does not say of which server".into()));
        };
        let flavor = if first.contains(':') { Flavor::MySql } else { Flavor::MariaDb };
        Self::parse_as(flavor, text)
    }

    /// Parses a set of this kind; an empty text is the empty set.
    ///
    /// # Errors
    /// [`Error::Setting`] if the text is not a GTID set of this kind.
    pub fn parse_as(flavor: Flavor, text: &str) -> Result<Self> {
        let set = match flavor {
            Flavor::MySql => MySqlSet::parse(text).map(Self::MySql),
            Flavor::MariaDb => MariaDbSet::parse(text).map(Self::MariaDb),
        };
        set.map_err(|message| Error::Setting(format!("GTID set `{text}`: {message}")))
    }

    /// The kind of server.
    pub fn flavor(&self) -> Flavor {
        match self {
            Self::MySql(_) => Flavor::MySql,
            Self::MariaDb(_) => Flavor::MariaDb,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::MySql(set) => set.is_empty(),
            Self::MariaDb(set) => set.is_empty(),
        }
    }

    /// Whether this set contains all of `other`. Sets of different kinds cover each other only if `other` is empty.
    pub fn covers(&self, other: &GtidSet) -> bool {
        match (self, other) {
            (Self::MySql(a), Self::MySql(b)) => a.covers(b),
            (Self::MariaDb(a), Self::MariaDb(b)) => a.covers(b),
            _ => other.is_empty(),
        }
    }

    /// Whether the transaction is in this set.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql(gtid)) => set.contains(gtid),
            (Self::MariaDb(set), Gtid::MariaDb(gtid)) => set.contains(gtid),
            _ => false,
        }
    }

    /// Whether a server that had executed `before` cannot have executed only this set now. In a MariaDB domain the last
    /// transactions are comparable only if they are of the same server.
    pub fn is_behind(&self, before: &GtidSet) -> bool {
        match (self, before) {
            (Self::MariaDb(now), Self::MariaDb(before)) => now.is_behind(before),
            _ => !self.covers(before),
        }
    }

    /// Whether receiving this transaction after this set would be a repetition.
    pub fn is_repeated_by(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MariaDb(set), Gtid::MariaDb(gtid)) => set.is_repeated_by(gtid),
            _ => self.contains(gtid),
        }
    }

    /// Adds a transaction; one of the other kind has no effect.
    pub fn add(&mut self, gtid: &Gtid) {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql(gtid)) => set.add(gtid),
            (Self::MariaDb(set), Gtid::MariaDb(gtid)) => set.add(gtid),
            _ => {}
        }
    }

    /// Adds all transactions of `other`; a set of the other kind has no effect.
    pub fn unite(&mut self, other: &GtidSet) {
        match (self, other) {
            (Self::MySql(a), Self::MySql(b)) => a.unite(b),
            (Self::MariaDb(a), Self::MariaDb(b)) => a.unite(b),
            _ => {}
        }
    }

    /// The number of transactions that are not in `other`: the lag of `other`. For MariaDB, sequence numbers are
    /// subtracted domain by domain.
    pub fn count_beyond(&self, other: &GtidSet) -> u64 {
        match (self, other) {
            (Self::MySql(a), Self::MySql(b)) => a.count_beyond(b),
            (Self::MariaDb(a), Self::MariaDb(b)) => a.count_beyond(b),
            (Self::MySql(a), Self::MariaDb(_)) => a.count_beyond(&MySqlSet::default()),
            (Self::MariaDb(a), Self::MySql(_)) => a.count_beyond(&MariaDbSet::default()),
        }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(gtid) => gtid.fmt(f),
            Self::MariaDb(gtid) => gtid.fmt(f),
        }
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(set) => set.fmt(f),
            Self::MariaDb(set) => set.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
