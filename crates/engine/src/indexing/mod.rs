//! From rows to segments: chooses the rows and values to index, and builds the segments.

mod bounded;
mod document;
mod missing;
mod required;
mod threads;

pub(crate) use bounded::BoundedIndexer;
pub(crate) use document::{
    RowIndexer, allowed_specs, index_for, index_specs, indexed_bytes, indexed_texts,
    lacks_an_index, path_specs, placed_specs, segment_spec, stored_indexes,
};
pub(crate) use missing::{MissingPaths, TooMuch};
pub use required::RequiredRows;
pub(crate) use threads::{Indexers, Indexing};
