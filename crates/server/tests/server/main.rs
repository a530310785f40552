//! Servers in this process, tested over real sockets. All are in one test program, because a program with DataFusion
//! takes long to link and much disk space.

mod dump;
mod exports;
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
