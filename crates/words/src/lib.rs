//! Word search like Sphinx: the keywords of a text, the meaning of a query, the weight of a document.
//!
//! The reference is Sphinx 2.2.11, to the integer. This crate knows texts, queries and the hits of one document;
//! never segments, tables or sockets.
//!
//! ```text
//! settings ──> analysis ──> keywords of a field            (a segment is built of them)
//!                 │
//! query text ──> query ──> tree ──> matching: hits of one document ──> rank: its weight
//!
//! analysis ──> snippets: excerpts of a text;  keywords: the words of a text told
//! vocabulary ──> suggest: the words that are like one
//! ```

#![warn(missing_docs)]

mod error;

pub mod analysis;
pub mod keywords;
pub mod matching;
pub mod query;
pub mod rank;
pub mod scripts;
pub mod settings;
pub mod snippets;
pub mod suggest;

pub use error::{Result, WordsError};
