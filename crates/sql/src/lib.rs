//! SQL text becomes engine requests: hot shapes directly, everything else through DataFusion over
//! one snapshot, with MySQL's meaning.
//!
//! A statement travels: `session` (who asks) -> `parse` (what is it) -> `execute`, which answers a
//! SELECT by operators of its own where it has a shape that needs no planning, else by way of
//! `resolve` (which tables and columns its names are) and `plan` (DataFusion, with `meaning` making
//! it MySQL's, `search` answering text conditions from the index, `scan` reading the tables); or
//! `write` (definitions and rows of local tables), or `show` (what tools ask about the server)
//! -> `output` and `reply` (columns, rows, outcome).
//!
//! No module imports one that stands above it. From the bottom: `error`, `parse`, `variables`;
//! `shared` (what all sessions have in common), `catalog` (which tables there are), `transaction`
//! (what is not committed yet), `state` (all else of one client); `meaning`, `search`, `scan`,
//! `show`, `resolve`, `plan`, `execute`, `write`; `session`.

#![warn(missing_docs)]

mod agents;
mod aside;
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
pub use column::{Column, SqlType};
pub use declared_numbers::DeclaredNumbers;
pub use error::{Error, Result};
pub use host::{
    Account, AgentConnection, AgentLimit, Alone, Host, Process, ReplicaReport, TableWords,
    nobody_followed,
};
pub use identity::{Access, Identity, Right};
pub use instance::{Instance, register_collations};
pub use reply::{Outcome, Reply, ResultCharset};
pub use session::{Prepared, Session, Status};
pub use shared::{MAX_DIRECT_ROWS, Settings, Usage};
pub use state::Encryption;
