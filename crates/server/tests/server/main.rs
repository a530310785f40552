//! Servers in this process, met over real sockets. One program, for each that holds DataFusion is long to link and
//! large on disk.

mod dump;
mod following;
mod framing;
mod golden;
mod http;
mod limits;
mod mysql;
#[path = "../../../protocol/tests/support/mod.rs"]
mod scripts;
mod sphinx;
mod support;
mod tiedot;
