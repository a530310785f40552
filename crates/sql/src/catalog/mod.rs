//! The catalog: databases, tables by name and account, and SQL declarations that go beyond the engine's definitions.

mod column;
mod column_keys;
mod databases;
mod expression_key;
mod functional_key;
mod index;
mod key;
mod kind;
mod names;
mod options;
mod origin;
mod read_table;
mod table;
mod text_key;
mod view;

pub(crate) use column::{ColumnSpec, column_line};
pub(crate) use databases::{
    SYSTEM_DATABASES, check_database, check_seen, database_collation, database_denied,
    database_exists, database_position, databases, may_see,
};
pub(crate) use expression_key::{DeterministicExpr, array_path, deterministic, plain_text};
pub(crate) use functional_key::{ExpressionKey, ExpressionSettings, RoundedKey};
pub(crate) use kind::TypeSpec;
pub(crate) use names::{TableName, Verb};
pub(crate) use options::TableOptions;
pub(crate) use origin::Origin;
pub(crate) use read_table::parse_column;
pub(crate) use table::{ROW_NUMBER, SqlTable, key_column, percolate_columns, row_number_column};
pub(crate) use view::{View, not_a_table, not_a_view};

pub(crate) use crate::parse::define::{
    Check, ColumnExtras, DefaultSpec, ForeignKey, Generated, Key, KeyKind, KeyPart, PartOf,
    TableLine, WORDS, quoted_name,
};

/// A snapshot that statements read.
pub(crate) type Reader = remora_engine::Reader;
