//! Keyword search like Sphinx: the keywords of a text, the meaning of a query, the weight of a document.
//!
//! The reference is Sphinx 2.2.11: weights are the same integers. This crate knows texts, queries and the hits of one
//! document; it knows no segments, tables or sockets.
//!
//! ```text
//! settings ──> analysis ──> keywords of a field            (segments index these)
//!                 │
//! query text ──> query ──> tree ──> matching: hits of one document ──> rank: its weight
//!
//! analysis ──> snippets: excerpts of a text;  keywords: the words of a text, one by one
//! vocabulary ──> suggest: words similar to a given one
//! ```

#![warn(missing_docs)]

mod error;

pub mod analysis;
pub mod hits;
pub mod keywords;
pub mod matching;
pub mod query;
pub mod rank;
pub mod scripts;
pub mod settings;
pub mod snippets;
pub mod suggest;

pub use error::{Result, WordsError};
