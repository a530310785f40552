//! The MySQL protocol's server: who may come in, and the loop that reads, answers and writes.
//!
//! A connection is accepted by `listener`, proves who it is in `login` and then runs in
//! `connection`: its messages come and go through a `channel`, statements run in a session of the
//! SQL side and answer through `reply`. `processes` knows all connections and ends them; `host` is
//! what the SQL side asks of the server, `agents` its connections to other servers. A client of another wire is a `guest`.

mod agents;
mod channel;
mod client;
mod commands;
mod connection;
mod guest;
mod host;
mod infile;
mod listener;
mod login;
mod prepared;
mod processes;
mod reply;
mod side;
mod statements;
mod tls;
mod watch;
mod wire;

pub(crate) use guest::{Guest, Seat};
pub(crate) use listener::accept;
pub(crate) use side::SqlSide;
pub(crate) use wire::{Socket, Wire};
