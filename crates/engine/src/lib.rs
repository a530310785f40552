//! Remora's engine as a library: tables as views of one ordered, durable change log.

#![warn(missing_docs)]

mod change;
mod database;
mod encode;
mod error;
mod request;
mod schema;
mod snapshot;
mod value;

pub use change::{Change, ChangeBatch, Position, TableChanges};
pub use database::{Database, Durability, Options, TableStatistics};
pub use error::{Error, Missing, RequestPart, Result};
pub use request::{
    Comparison, CountReply, FacetReply, FacetRequest, Filter, Highlight, Hit, KeyValues, Literal,
    QueryReport, SearchReply, SearchRequest, Selection, SortBy, SortKey, TextQuery,
};
pub use schema::{ColumnDef, ColumnType, Schema, TextDef};
pub use remora_index::text::{Normalization, Width};
pub use value::{Date, DateTime, Decimal, Row, Value};
