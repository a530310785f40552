//! Remora's server: settings, sessions and commands, and the command line that combines the engine, the protocols and
//! the sources of changes.
//!
//! A request arrives through `listen`, subject to `limits`, in one of five protocols: `line`, `http`, `mysql`, `sphinx`
//! or `tiedot`; `web` is shared by those over HTTP. `accounts` identifies the client; `requests` has what `line` and
//! `http` have in common; `shared` is the state of a running server. Imports go one way: [`cli`], [`Server`], the
//! protocols, what they share, [`settings`].

#![warn(missing_docs)]

mod accounts;
mod cache;
pub mod cli;
mod counters;
mod cpu;
mod dump;
mod error;
mod export;
mod http;
mod limits;
mod line;
mod listen;
mod logging;
mod mysql;
mod open;
mod process;
mod query_log;
mod random;
mod report;
mod requests;
mod server;
pub mod settings;
mod shared;
mod sources;
mod sphinx;
mod sql_rows;
mod tiedot;
mod web;
mod zone;

pub use cpu::missing_features;
pub use error::{Error, Result};
pub use line::LocalSession;
pub use logging::LogHandle;
pub use open::open_database;
pub use server::Server;
pub use sources::{FollowedSource, follow};
