//! Protocols without sockets: they convert bytes to requests of the engine, and its replies to
//! bytes.

pub mod http;
pub mod line;
pub mod mysql;
pub mod sphinx;
