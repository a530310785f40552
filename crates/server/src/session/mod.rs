//! Sessions: who may connect, how a connection is read, answered and written.

mod budget;
mod cidr;
mod connection;
mod listener;
mod rate_limit;
mod socket_file;

pub use cidr::Cidr;

pub(crate) use budget::{BufferBudget, BufferShare};
pub(crate) use listener::{Door, accept, accept_each, turn_away};
pub(crate) use rate_limit::RateLimiter;
pub(crate) use socket_file::SocketFile;
