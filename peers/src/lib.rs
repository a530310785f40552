//! Real MySQL and MariaDB servers, started on free ports of this machine for tests and measurements.
//!
//! Every server has its own data directory, copied from a template that is made once per kind, so a
//! start takes about a second. If a server's programs are missing, a start fails with an error that
//! contains the command to install them.

mod binaries;
mod kind;
mod replication;
mod server;
mod template;

pub use kind::{Kind, cache_directory, fetch};
pub use replication::replicate;
pub use server::{FOLLOWER_PASSWORD, FOLLOWER_USER, HOST, Server};
