//! Remora's engine as a library: tables as views of one ordered, durable change log.

#![warn(missing_docs)]

mod activity;
mod change;
mod check;
mod column_batch;
mod database;
mod document;
pub mod dump;
mod encode;
mod error;
mod merge;
mod options;
mod published;
mod read;
mod readable;
mod reader;
mod recovery;
mod request;
mod schema;
mod shared;
mod snapshot;
mod statistics;
mod storage;
mod transaction;
mod value;
mod write;

pub use change::{Change, ChangeBatch, Definition, Position, SourcePositions, TableChanges};
pub use check::{CheckReport, CheckStep, CheckedTable, Problem, Repaired};
pub use column_batch::{ColumnBatch, ColumnData, ColumnValues, Strings, Validity};
pub use database::Database;
pub use error::{Error, Missing, RequestPart, Result};
pub use options::{Durability, Options};
pub use read::Scan;
pub use reader::{Reader, TableVersion};
pub use remora_index::text::{Normalization, Width, WordPattern};
pub use request::{
    ColumnLetters, CountReply, FacetReply, FacetRequest, Highlight, Hit, LetterClasses, Piece,
    PieceMatch, QueryReport, ScanRequest, SearchReply, SearchRequest, Selection, SortBy, SortKey,
    TextQuery,
};
pub use schema::{
    ColumnDef, ColumnType, Comparison, DeclaredTable, Filter, HIDDEN_KEY, HIDDEN_PREFIX, Literal,
    Schema, TextDef,
};
pub use statistics::{LevelStatistics, TableStatistics};
pub use transaction::Transaction;
pub use value::{Date, DateTime, Decimal, KeyValues, Row, Value, ZERO_TIMESTAMP_MICROS, compare};
pub use write::{LargeBatch, Pending, Pipeline, RequiredRows};
