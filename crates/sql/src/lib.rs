//! SQL text becomes engine requests: frequent shapes directly, everything else through DataFusion over one snapshot,
//! with MySQL's meaning.
//!
//! A statement travels: `session` (dispatch) -> `parse` (classify and parse) -> `execute`, which answers a SELECT by
//! its own operators if it has a shape that needs no planning, else by `resolve` (names) and `plan` (DataFusion;
//! `meaning` gives it MySQL's functions, `search` answers text conditions from the index, `scan` reads tables); or
//! `write` (definitions and rows of local tables), or `show` (reports about the server) -> `output` and `reply`
//! (columns, rows, outcome).
//!
//! No module imports one that stands above it. From the bottom: `error`, `nodes` (walks through plans), `parse`,
//! `variables`; `shared` (what all sessions share), `catalog` (databases and tables), `transaction` (uncommitted
//! changes), `agents` (tables in other servers), `state` (one client); `meaning`, `search`, `scan`, `show`, `resolve`,
//! `plan`, `execute`, `write`; `session`.

#![warn(missing_docs)]

mod agents;
mod blocking;
mod catalog;
mod cell;
mod column;
mod declared_numbers;
mod error;
mod execute;
mod host;
mod identity;
mod instance;
mod meaning;
mod multi;
mod nodes;
mod output;
mod parse;
mod plan;
mod reply;
mod resolve;
mod scan;
mod search;
mod session;
mod shared;
mod show;
mod state;
mod transaction;
mod variables;
mod write;

pub use cell::Cell;
pub use column::{Column, ColumnKeys, SqlType};
pub use declared_numbers::DeclaredNumbers;
pub use error::{Error, Result};
pub use host::{
    Account, AgentConnection, AgentLimit, EmbeddedHost, Host, Process, ReplicaReport, TableWords,
    no_source_error,
};
pub use identity::{Access, Identity, Right};
pub use instance::{Instance, register_collations};
pub use reply::{Outcome, Reply, ResultCharset};
pub use session::{Prepared, Session, Status};
pub use shared::{MAX_DIRECT_ROWS, Settings, Usage};
pub use state::{Encryption, LastSearch};
pub use write::{is_declared_path, percolate_table};
