//! Immutable segments that carry the index: keys, columns and text.
//!
//! A segment is one checksummed run of documents in key order. It answers which documents a
//! condition holds for; it knows bytes and documents, never SQL, sockets or MySQL.
//!
//! Every value in here is read from a buffer that was verified once ([`Sections`]); readers take
//! no locks and may be shared between threads freely.

#![warn(missing_docs)]

mod bitmap;
mod bytes;
mod docset;
mod error;
mod keys;
mod pages;
mod text_order;
mod varint;

pub mod column;
pub mod paths;
pub mod segment;
pub mod text;
pub mod words;

pub use bitmap::Bitmap;
pub use bytes::{SectionTag, SectionWriter, Sections, Slice};
pub use docset::DocSet;
pub use error::{IndexError, Result};
pub use keys::{BloomCounts, Keys, KeysWriter};
pub use text_order::{TextKey, TextOrder};
