//! The MySQL protocol over real sockets, from the greeting to the end of the connection.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod client;

mod agents;
mod agents_faults;
mod agents_operators;
mod commands;
mod computed;
mod display;
mod following;
mod limits;
mod login;
mod metrics;
mod prepared;
mod protocols;
mod rights;
mod views;
mod zones;

use client::{Client, Entry};

use crate::support::TestServer;

/// A client of a server without users.
pub fn connect(server: &TestServer) -> Client {
    Client::connect(server.sql_address(), &Entry::default()).unwrap()
}
