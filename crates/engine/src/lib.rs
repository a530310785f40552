//! Remora's engine as a library: tables as views of one ordered, durable change log.

#![warn(missing_docs)]

mod activity;
mod catalog;
mod change;
mod check;
mod column_batch;
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
mod readable;
mod reader;
mod recovery;
mod request;
mod schema;
mod shared;
mod snapshot;
mod staged;
mod statistics;
mod store;
mod synonyms;
mod transaction;
mod value;
mod write;

pub use change::{Change, ChangeBatch, Definition, Position, SourcePositions, TableChanges};
pub use check::{CheckReport, CheckStep, CheckedTable, Problem, Repaired};
pub use column_batch::{ColumnBatch, ColumnData, ColumnValues, Strings, Validity};
pub use database::{Database, Durability, Options, TableVersion};
pub use error::{Error, Missing, RequestPart, Result};
pub use read::Scan;
pub use reader::Reader;
pub use remora_index::text::{Normalization, Width, WordPattern};
pub use request::{
    ColumnLetters, Comparison, CountReply, FacetReply, FacetRequest, Filter, Highlight, Hit,
    KeyValues, LetterClasses, Literal, Piece, PieceMatch, QueryReport, ScanRequest, SearchReply,
    SearchRequest, Selection, SortBy, SortKey, TextQuery,
};
pub use schema::{
    ColumnDef, ColumnType, DeclaredTable, HIDDEN_KEY, HIDDEN_PREFIX, Schema, TextDef,
};
pub use statistics::{LevelStatistics, TableStatistics};
pub use transaction::Transaction;
pub use value::{Date, DateTime, Decimal, Row, Value, ZERO_TIMESTAMP_MICROS, compare};
pub use write::{LargeBatch, Pending, Pipeline, RequiredRows};
