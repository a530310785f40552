//! Immutable segments that carry the index: keys, columns and text.
//!
//! A segment is an immutable, checksummed run of documents in key order. It finds the documents that satisfy
//! a condition. It knows bytes and document numbers, but no SQL, no sockets and no MySQL.
//!
//! All values are read from buffers and files whose checksums were verified once ([`Sections`]). Readers take
//! no locks, except for short ones around the page cache of sections that stay in a file and around the ranks of deleted
//! documents in an index, and can be shared between threads.

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
pub use pages::set_page_cache_bytes;
pub use text_order::{TextKey, TextOrder};
