//! Remora inside a program: tables, full-text search, JSON documents and MySQL's SQL over one
//! durable store, in this process.
//!
//! ```
//! let notes = remora::Database::in_memory()?.create_table("notes", |t| t.int("id").key().text("body"))?;
//! notes.insert(&serde_json::json!({"id": 1, "body": "Herons nest at the reef"}))?;
//! assert_eq!(notes.search("reef").count()?, 1);
//! # Ok::<(), remora::Error>(())
//! ```
//!
//! [`Database`] is the entry point. [`Table`] accesses rows by key and searches them,
//! [`Collection`] accesses documents by id and by content, and `execute` and `query` run SQL. All
//! of them access the same rows. Acknowledged writes survive a crash. Readers never wait for
//! writers.
//!
//! All rows are on disk, in the row store, an LSM tree with a cache. Indexes, and columns of short values, are in memory
//! too: what they answer reads no row.
//!
//! The feature `sql` (on by default) adds statements and Arrow. It depends on DataFusion, which
//! takes most of the build time. Without it there are tables, searches and collections. The feature
//! `follow` (off by default) copies and follows tables of a MySQL or MariaDB: `Database::follow`.
//!
//! Modules import only those before them: `error`, `options`, `value`, `json`, `row`, `filter`;
//! `directory`, `ids`, `keyed`, `overlaid`, `runtime` and `sessions` (which run statements); `handle`, which all others
//! share; `table`, `collection`, `sql`, `watch`, `documents`, `batch`, `snapshot`,
//! `follow`; `database`.

#![warn(missing_docs)]

mod batch;
mod collection;
mod database;
mod directory;
#[cfg(feature = "sql")]
mod documents;
mod error;
mod filter;
#[cfg(feature = "follow")]
mod follow;
mod handle;
mod ids;
mod json;
mod keyed;
mod options;
mod overlaid;
mod row;
#[cfg(feature = "sql")]
mod runtime;
#[cfg(feature = "sql")]
mod sessions;
mod snapshot;
#[cfg(feature = "sql")]
mod sql;
mod table;
mod value;
mod watch;

/// The Arrow in which [`Database::query_arrow`] returns rows.
#[cfg(feature = "sql")]
pub use arrow;
pub use batch::Batch;
pub use collection::{
    Collection, Document, DocumentId, Find, FindPlan, FoundDocuments, IndexKind, Moment, PathFacet,
    PathIndex, Version,
};
pub use database::Database;
#[cfg(feature = "sql")]
pub use documents::Documents;
pub use error::{Detail, Error, Result};
pub use filter::{Field, Filter, IntoFilter, Paths, field, path};
#[cfg(feature = "follow")]
pub use follow::{FollowState, FollowStatus, FollowedTable, Replica, TableState};
pub use json::parse_document;
pub use options::Options;
/// A calendar date: year, month and day as numbers.
///
/// ```
/// use remora::Date;
///
/// let date = Date { year: 2024, month: 5, day: 0 }; // Some day of May, as MySQL allows it.
/// assert!(date.is_valid() && date.to_string() == "2024-05-00");
/// ```
pub use remora_engine::Date;
/// A date with microseconds since midnight, without a time zone. Instants are microseconds since 1970 in UTC.
///
/// ```
/// use remora::{Date, DateTime};
///
/// let noon = DateTime { date: Date { year: 2024, month: 5, day: 31 }, micros: 12 * 3_600 * 1_000_000 };
/// assert_eq!(DateTime::parse("2024-05-31 12:00:00"), Some(noon).filter(DateTime::is_valid));
/// let instant = DateTime::parse_instant("2024-05-31T14:00:00+02:00");
/// assert_eq!(instant, noon.to_timestamp());
/// assert_eq!(instant.and_then(DateTime::from_timestamp), Some(noon));
/// assert_eq!(DateTime::parse_epoch("1.5"), Some(1_500_000));
/// ```
pub use remora_engine::DateTime;
/// An exact decimal number.
///
/// ```
/// use remora::Decimal;
///
/// let price = Decimal::parse("9.995", 10, 2).ok_or("no number of 10 digits")?;
/// assert_eq!((price.as_str(), price.to_scaled(2)), ("10.00", Some(1_000)));
/// assert_eq!(Decimal::from_scaled(1_000, 2), price);
/// assert_eq!((Decimal::from_canonical("10.00"), Decimal::from_canonical("010")), (Some(price), None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use remora_engine::Decimal;
/// When a write survives a loss of power: [`Options::durability`].
///
/// ```
/// use remora::{Durability, Options};
///
/// let fast = Options { durability: Durability::None, ..Options::default() };
/// assert_eq!(Options::default().durability, Durability::Always);
/// assert!(fast.durability != Durability::Interval(std::time::Duration::from_millis(100)));
/// ```
pub use remora_engine::Durability;
/// A value of a row, of a key, or for a `?` of a statement.
///
/// ```
/// use remora::{IntoValue, Value};
///
/// assert_eq!(7.into_value(), Value::Int(7));
/// assert!(None::<i64>.into_value().is_null());
/// assert_eq!(Value::Text("reef".into()).to_string(), "reef");
/// assert_eq!(Value::Timestamp(1_500_000).to_string(), "1970-01-01 00:00:01.500000");
/// ```
pub use remora_engine::Value;
pub use row::{Column, Row, Type};
pub use snapshot::Snapshot;
#[cfg(feature = "sql")]
pub use sql::{Answer, Canceller, Connection, Outcome, Prepared, RowStream, Rows};
pub use table::{Facet, Found, FoundRow, Search, Table, TableBuilder};
pub use value::{IntoKey, IntoValue};
pub use watch::{Change, Event, Watch, WatchBuilder, Watcher};
