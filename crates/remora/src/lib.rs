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
pub use options::{Durability, Options};
pub use remora_engine::{Date, DateTime, Decimal, Value};
pub use row::{Column, Row, Type};
pub use snapshot::Snapshot;
#[cfg(feature = "sql")]
pub use sql::{Answer, Canceller, Connection, Outcome, Prepared, RowStream, Rows};
pub use table::{Facet, Found, FoundRow, Search, Table, TableBuilder};
pub use value::{IntoKey, IntoValue};
pub use watch::{Change, Event, Watch, WatchBuilder, Watcher};
