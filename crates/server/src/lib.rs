//! Remora's server: settings, sessions and commands, and the command line that puts the engine,
//! the wires and the sources of changes together.

#![warn(missing_docs)]

mod cache;
pub mod cli;
mod command;
mod counters;
mod cpu;
mod error;
mod http;
mod logging;
mod logins;
mod mysql;
mod open;
mod process;
mod server;
pub mod session;
pub mod settings;
mod sources;
mod zone;

pub use command::LocalSession;
pub use cpu::missing_features;
pub use error::{Error, Result};
pub use logging::LogHandle;
pub use open::open_database;
pub use server::Server;
pub use sources::{Followed, follow};
