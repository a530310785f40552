//! Remora's engine as a library: tables as views of one ordered, durable change log.
//!
//! A module imports only modules of the layers before it: `value`, `error`, `interrupt`, `memory`; `schema` (table
//! definitions), `access`, `change`, `request`, `options`; `encode` (rows as bytes), `indexing` (rows as segments);
//! `storage` (the data directory), `snapshot` (what readers hold), `shared` (what the threads of an open database
//! share, with the writer's queue); `unique`; `merge`, `recovery`, `check`; `read`, `write`, `transaction`, `watch`;
//! `database` (the facade), and `dump`, which uses it.

#![warn(missing_docs)]

mod access;
mod change;
mod check;
mod database;
pub mod dump;
mod encode;
mod error;
mod indexing;
mod interrupt;
mod keyword_statistics;
mod memory;
mod merge;
mod options;
mod read;
mod recovery;
mod request;
mod schema;
mod shared;
mod snapshot;
mod statistics;
mod storage;
mod transaction;
mod uncommitted;
mod unique;
mod value;
mod watch;
mod write;

pub use access::{
    AccessPath, Allowed, AllowedIndexes, FoundBy, IndexAnswers, IndexSet, IndexUsage, TableIndex,
};
pub use change::{Change, ChangeBatch, Definition, Position, SourcePositions, TableChanges};
pub use check::{CheckReport, CheckStep, CheckedTable, Repaired};
pub use database::Database;
pub use encode::{
    JsonNode, decode_rows, element_place, encode_rows, fitted_row, from_url_base64, key_bytes,
    loses_digits, to_url_base64, walk_path,
};
pub use error::{Ending, Error, Missing, RequestPart, Result};
pub use indexing::RequiredRows;
pub use interrupt::{Deadline, Interrupt, InterruptCheck};
pub use keyword_statistics::{KeywordStatistics, MAX_PATTERNS, WantedStatistics};
pub use memory::{memory_limit_bytes, memory_share};
pub use options::{Durability, Options};
pub use read::{
    Answer, ColumnBatch, ColumnData, ColumnValues, DocumentBatch, GatheredTable, LocalPart,
    MAX_BEST_ROWS, MAX_FACET_VALUES, Part, PartOpenFailure, PartRows, PartValues, PartsCache,
    Reader, RemoteTables, RowSetBuilder, Scan, StoredQuery, Strings, TableVersion, Validity,
};
pub use recovery::Problem;
pub use remora_index::text::{Normalization, Width, WordPattern, word_runs};
pub use remora_words::matching::Counts as KeywordCounts;
pub use request::{
    BestRows, ColumnLetters, CountReply, FacetReply, FacetRequest, FactorsForm, Highlight, Hit,
    KeywordQuery, KeywordReport, LetterClasses, PathFacetReply, PathFacetRequest, PathOrder,
    PathStart, Piece, PieceMatch, QueryReport, ScalarOrder, ScalarRows, ScanRequest, SearchReply,
    SearchRequest, Selection, SortBy, SortKey, TextQuery, ValueRow, ValuesReply, ValuesRequest,
};
pub use schema::{
    ColumnDef, ColumnType, Comparison, ComputeRow, Computing, DeclaredTable, DeclaredView, Filter,
    HIDDEN_KEY, HIDDEN_PREFIX, IndexColumn, IndexDef, Literal, MAX_LISTED_VALUES, MAX_PARTS,
    PATH_TEXTS, PathDef, PathPlace, PathTest, PathValue, RowSet, Schema, TextDef, WordsDef,
    is_computed_name, prefix_size, register_computing, register_text_key, texts_tell, united_name,
    united_names,
};
pub use shared::PrebuiltSegments;
pub use statistics::{IndexStatistics, LevelStatistics, TableStatistics};
pub use transaction::Transaction;
pub use uncommitted::IndexedChanges;
pub use value::{Date, DateTime, Decimal, KeyValues, Row, Value, ZERO_TIMESTAMP_MICROS, compare};
pub use watch::{Watch, WatchRequest, WatchStatus, Watched, WatchedChange};
pub use write::{LargeBatch, Pending, Pipeline};
