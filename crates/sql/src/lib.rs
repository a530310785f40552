//! SQL text becomes engine requests: hot shapes directly, everything else through DataFusion over
//! one snapshot, with MySQL's meaning.
//!
//! A statement travels: `session` (who asks, in which state) -> `parse` (what is it) -> `fast`
//! (shapes that need no planning) or `select` (DataFusion, with `meaning` making it MySQL's and
//! `search` answering text conditions from the index), `write` (definitions and rows of local
//! tables), `show` (what tools ask about the server) -> `reply` (columns, rows, outcome).

#![warn(missing_docs)]

mod aside;
mod catalog;
mod cell;
mod column;
mod declared_numbers;
mod error;
mod fast;
mod host;
mod identity;
mod instance;
mod meaning;
mod output;
mod parse;
mod reply;
mod search;
mod select;
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
pub use error::{Code, Error, Result};
pub use host::{Account, Alone, Host, Process, ReplicaReport, nobody_followed};
pub use identity::{Access, Identity, Right};
pub use instance::Instance;
pub use reply::{Outcome, Reply, ResultCharset};
pub use session::{Prepared, Session, Status};
pub use shared::{MAX_DIRECT_ROWS, Settings, Usage};
pub use state::Encryption;
