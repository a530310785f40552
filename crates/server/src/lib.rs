//! Remora's server: settings, sessions and commands, and the command line that puts the engine,
//! the line protocol and the file readers together.

#![warn(missing_docs)]

mod cache;
pub mod cli;
mod command;
mod counters;
mod cpu;
mod error;
mod logging;
mod open;
mod process;
mod server;
pub mod session;
pub mod settings;

pub use command::LocalSession;
pub use cpu::missing_features;
pub use error::{Error, Result};
pub use logging::LogHandle;
pub use open::open_database;
pub use server::Server;
