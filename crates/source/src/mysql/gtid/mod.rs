//! GTID sets as MySQL and MariaDB write them.
//!
//! ```text
//! MySQL:    set = entry *("," entry) ; entry = uuid 1*(":" (range | tag)) ; range = n ["-" m]
//!           a tag holds for the ranges after it, up to the next tag or entry
//! MariaDB:  set = gtid *("," gtid)   ; gtid = domain "-" server "-" sequence
//! ```
//! A MySQL set names every transaction it holds. A MariaDB set names the last transaction of each
//! domain and so stands for all before it in that domain.

mod mariadb;
mod mysql;

use std::fmt;

pub use mariadb::{MariaDbGtid, MariaDbSet};
pub use mysql::{MySqlGtid, MySqlSet, Tag, Uuid};

use crate::{Error, Result};

/// Which of the two servers: they write binlogs and GTIDs differently.
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

/// A set of transactions; its text form is canonical and is what is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GtidSet {
    /// Of MySQL.
    MySql(MySqlSet),
    /// Of MariaDB.
    MariaDb(MariaDbSet),
}

impl GtidSet {
    /// The set without transactions.
    pub fn empty(flavor: Flavor) -> Self {
        match flavor {
            Flavor::MySql => Self::MySql(MySqlSet::default()),
            Flavor::MariaDb => Self::MariaDb(MariaDbSet::default()),
        }
    }

    /// Reads a set whose flavor shows in its form; an empty text does not say: see
    /// [`GtidSet::parse_as`].
    ///
    /// # Errors
    /// [`Error::Setting`] if the text is empty or no GTID set.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(first) = text.split(',').map(str::trim).find(|entry| !entry.is_empty()) else {
            return Err(Error::Setting("an empty GTID set does not say of which server".into()));
        };
        let flavor = if first.contains(':') { Flavor::MySql } else { Flavor::MariaDb };
        Self::parse_as(flavor, text)
    }

    /// Reads a set of that flavor; an empty text is the empty set.
    ///
    /// # Errors
    /// [`Error::Setting`] if the text is no GTID set of that flavor.
    pub fn parse_as(flavor: Flavor, text: &str) -> Result<Self> {
        let set = match flavor {
            Flavor::MySql => MySqlSet::parse(text).map(Self::MySql),
            Flavor::MariaDb => MariaDbSet::parse(text).map(Self::MariaDb),
        };
        set.map_err(|message| Error::Setting(format!("GTID set `{text}`: {message}")))
    }

    /// Whose set it is.
    pub fn flavor(&self) -> Flavor {
        match self {
            Self::MySql(_) => Flavor::MySql,
            Self::MariaDb(_) => Flavor::MariaDb,
        }
    }

    /// Whether it holds no transaction.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::MySql(set) => set.is_empty(),
            Self::MariaDb(set) => set.is_empty(),
        }
    }

    /// Whether every transaction of `other` is in this set. Sets of two flavors cover each other
    /// only where `other` is empty.
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

    /// Whether a server that had executed `before` cannot have executed only this set now. Of a
    /// MariaDB's domain the last transaction tells it only if both are of one server.
    pub fn is_behind(&self, before: &GtidSet) -> bool {
        match (self, before) {
            (Self::MariaDb(now), Self::MariaDb(before)) => now.is_behind(before),
            _ => !self.covers(before),
        }
    }

    /// Whether a transaction that comes after this set must not be this one: it is in the set.
    pub fn is_repeated_by(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MariaDb(set), Gtid::MariaDb(gtid)) => set.is_repeated_by(gtid),
            _ => self.contains(gtid),
        }
    }

    /// Adds a transaction; one of the other flavor changes nothing.
    pub fn add(&mut self, gtid: &Gtid) {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql(gtid)) => set.add(gtid),
            (Self::MariaDb(set), Gtid::MariaDb(gtid)) => set.add(gtid),
            _ => {}
        }
    }

    /// Adds every transaction of `other`; a set of the other flavor changes nothing.
    pub fn unite(&mut self, other: &GtidSet) {
        match (self, other) {
            (Self::MySql(a), Self::MySql(b)) => a.unite(b),
            (Self::MariaDb(a), Self::MariaDb(b)) => a.unite(b),
            _ => {}
        }
    }

    /// How many transactions of this set are not in `other`: the lag of `other` in transactions.
    /// For MariaDB the sequence numbers are subtracted, domain by domain.
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
