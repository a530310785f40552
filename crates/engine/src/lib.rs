//! Remora's engine as a library: tables as views of one ordered, durable change log.

#![warn(missing_docs)]

mod catalog;
mod change;
mod check;
mod database;
mod document;
pub mod dump;
mod encode;
mod error;
mod files;
mod lock;
mod manifest;
mod merge;
mod published;
mod read;
mod recovery;
mod request;
mod schema;
mod shared;
mod snapshot;
mod statistics;
mod store;
mod synonyms;
mod undo;
mod value;
mod write;

pub use change::{Change, ChangeBatch, Definition, Position, SourcePositions, TableChanges};
pub use check::{CheckReport, CheckStep, CheckedTable, Problem};
pub use database::{Database, Durability, Options, TableVersion};
pub use error::{Error, Missing, RequestPart, Result};
pub use remora_index::text::{Normalization, Width};
pub use request::{
    Comparison, CountReply, FacetReply, FacetRequest, Filter, Highlight, Hit, KeyValues, Literal,
    QueryReport, SearchReply, SearchRequest, Selection, SortBy, SortKey, TextQuery,
};
pub use schema::{ColumnDef, ColumnType, Schema, TextDef};
pub use statistics::TableStatistics;
pub use value::{Date, DateTime, Decimal, Row, Value, ZERO_TIMESTAMP_MICROS, compare};
pub use write::{LargeBatch, Pending, Pipeline};
