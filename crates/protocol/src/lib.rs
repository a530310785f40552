//! Remora's wires: bytes to requests of the engine and its replies to bytes, without sockets.

pub mod http;
pub mod line;
pub mod mysql;
pub mod sphinx;
