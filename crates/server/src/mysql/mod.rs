//! The server side of the MySQL protocol: logins, and the loop that reads, answers and writes.
//!
//! `listener` accepts a connection, `login` authenticates it, `connection` runs it: messages go through a `channel`,
//! statements run in a session of the SQL crate and answer through `reply`. `processes` lists and kills connections;
//! `host` provides the server's services to the SQL crate, `agents` connections to other servers. A client of another
//! protocol is a `sql_client`.

mod agents;
mod channel;
mod client;
mod commands;
mod connection;
mod host;
mod infile;
mod listener;
mod logged;
mod login;
mod prepared;
mod processes;
mod reply;
mod service;
mod sql_client;
mod statements;
mod tls;
mod watch;
mod wire;

pub(crate) use listener::accept;
pub(crate) use service::SqlService;
pub(crate) use sql_client::{ReservedConnection, SqlClient};
pub(crate) use wire::{Socket, Wire};
