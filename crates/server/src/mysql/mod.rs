//! The server side of the MySQL protocol: logins, and the loop that reads, answers and writes.
//!
//! `listener` accepts a connection, `login` authenticates it, `connection` runs it: messages go through a `channel`,
//! statements run in a session of the SQL crate and answer through `reply`. `processes` lists and kills connections;
//! `host` provides the server's services to the SQL crate, `agents` connections to other servers. A client of another
//! protocol is a `guest`.

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
