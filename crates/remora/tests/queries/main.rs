//! Queries of collections: pages, fields, facets, conditions on elements, dates, and changes by a filter, compared with a
//! model that reads all documents. Needs no SQL.

mod changes;
mod model;
mod pages;
mod random;

/// The result of a test.
type Tested = Result<(), Box<dyn std::error::Error>>;
