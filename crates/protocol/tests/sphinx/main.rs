//! SphinxAPI, compared with captured exchanges between real clients and a real server.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod exchange;
mod hostile;
mod reader;
mod replies;
mod requests;
mod statements;
