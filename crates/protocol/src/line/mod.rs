//! The line protocol: MygramDB's, with additions that a client only sees if it requests them.
//!
//! A request is one line of tokens that ends in CRLF ([`FrameReader`]); [`parse`] converts it to a
//! [`Command`]. A reply is a body and CRLF, sent in one piece: a function of [`reply`] appends the
//! body to a buffer, and [`reply::end_reply`] the CRLF.
//!
//! ```text
//! token   = bare | quoted                      ; apart by ASCII or Unicode white space
//! quoted  = '"' { char | escape } '"' | "'" { char | escape } "'"
//! escape  = "\n" | "\t" | "\r" | "\\" | "\"" | "\'" | "\x" hex hex | "\" other
//! search  = "SEARCH" table text { clause }
//! text    = literal { "AND" token | "AND" "NOT" token | "NOT" token } | expression
//! clause  = "AND" token | "AND" "NOT" token | "NOT" token
//!         | "FILTER" filter | "SORT" order | "LIMIT" [n ","] n | "OFFSET" n
//!         | "HIGHLIGHT" { "TAG" token token | "SNIPPET_LEN" n | "MAX_FRAGMENTS" n }
//!         | "FUZZY" [n] | "FIELDS" names | "AFTER" token | "CURSOR"
//! ```
//!
//! `docs/line-protocol.md` is the reference with examples.

mod client;
mod command;
mod error;
mod export;
mod frame;
pub(crate) mod parse;
pub mod reply;
pub(crate) mod token;
mod write_command;

pub use client::{quote, reply_is_complete};
pub use command::{Auth, Cache, Command, Config, Dump, Get, Replication, Search, Sync, Wait};
pub use error::{LineError, code};
pub use export::{EXPORT_BEGIN, ExportLine, write_export_end, write_export_part};
pub use frame::{FrameError, FrameLimits, FrameReader, is_http};
pub use parse::{ParseLimits, parse, split_key};
pub use write_command::{WriteCommand, parse_write};
