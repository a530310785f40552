//! The MySQL protocol over real sockets, from the greeting to the end of the connection.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod client;

mod agents;
mod agents_faults;
mod computed;
mod display;
mod protocols;
mod following;
mod limits;
mod login;
mod prepared;
mod rights;
mod commands;
mod views;
mod zones;

use client::{Client, Entry};

use crate::support::TestServer;

/// A client of a server without users.
fn connect(server: &TestServer) -> Client {
    Client::connect(server.sql_address(), &Entry::default()).unwrap()
}
