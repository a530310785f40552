//! Table definitions: typed columns, a primary key, text indexes, and the condition on rows.

mod computed;
mod declared_view;
mod filter;
mod parts;
mod path;
mod prefix;
mod row_set;
mod synonyms;
mod text_order;
mod validate;
mod words;

use remora_index::text::{Normalization, Width};
use serde::{Deserialize, Serialize};

pub(crate) use computed::computation;
pub use computed::{ComputeRow, Computing, is_computed_name, register_computing};
pub use declared_view::DeclaredView;
pub use filter::{Comparison, Filter, Literal, MAX_LISTED_VALUES};
pub(crate) use parts::is_united;
pub use parts::{MAX_PARTS, united_name, united_names};
pub(crate) use path::{FIRST_PATH_TEXTS, NO_TEXT};
pub use path::{PATH_TEXTS, PathDef, PathPlace, PathTest, PathValue, texts_tell};
pub use prefix::prefix_size;
pub(crate) use prefix::{PrefixColumn, is_prefix_column, without_absent};
pub use row_set::RowSet;
pub(crate) use synonyms::Synonyms;
pub use text_order::register_text_key;
pub(crate) use text_order::text_order;
use validate::{MAX_INDEXES, MAX_KEY_PARTS};
pub use words::WordsDef;

/// The name of the hidden key column of a table that declares no key. SQL fills it with a number; for a followed
/// table it tells equal rows apart.
pub const HIDDEN_KEY: &str = "#row";

/// Prefix of the names of other hidden columns: they hold the values of key expressions.
pub const HIDDEN_PREFIX: &str = "#key.";

/// A table's definition. Stored with the table; numbers in it are stable and never reused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The table's name: `table` or `database.table`.
    pub name: String,
    /// The columns in row order.
    pub columns: Vec<ColumnDef>,
    /// The places in `columns` of the primary key's parts, at least one.
    pub primary_key: Vec<usize>,
    /// The text indexes.
    pub texts: Vec<TextDef>,
    /// The secondary indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexDef>,
    /// Rows that do not satisfy this stay in the row store but are not visible in the table.
    pub required: Option<Filter>,
    /// Groups of words that a search treats as equal.
    pub synonyms: Vec<Vec<String>>,
    /// The settings of its keywords, for ranked search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordsDef>,
    /// The indexed paths into its documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathDef>,
    /// The rest of its SQL declaration, if it was declared in SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredTable>,
}

impl Schema {
    /// A table of these columns and nothing else. `primary_key`: the places of the key's parts.
    pub fn over(name: impl Into<String>, columns: Vec<ColumnDef>, primary_key: Vec<usize>) -> Self {
        Self {
            name: name.into(),
            columns,
            primary_key,
            texts: Vec::new(),
            indexes: Vec::new(),
            required: None,
            synonyms: Vec::new(),
            words: None,
            paths: Vec::new(),
            declared: None,
        }
    }

    /// The place of the hidden key column, if the table has one.
    pub fn hidden_key(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.name == HIDDEN_KEY)
    }

    /// Declares a secondary index on its leading columns, up to the first one of which segments hold neither the values
    /// nor a prefix. A prefix of a column that segments hold is ignored. Does nothing if no column is left, if the primary key begins with these columns in key order, if the index exists, or if
    /// there are too many.
    pub fn add_index(&mut self, columns: impl IntoIterator<Item = IndexColumn>) {
        let in_segments = |part: IndexColumn| match self.columns.get(part.column)?.indexed {
            true => Some(IndexColumn { prefix: None, ..part }),
            false => PrefixColumn::number(self, &part).map(|_| part),
        };
        let mut held: Vec<IndexColumn> = Vec::new();
        for part in columns.into_iter().map_while(in_segments).take(MAX_KEY_PARTS) {
            if held.iter().all(|other| other.column != part.column) {
                held.push(part);
            }
        }
        let as_in_key = |part: &IndexColumn| {
            let kind = self.columns.get(part.column)?.kind;
            (!part.descending && kind.is_ordinal_in_keys()).then_some(part.column)
        };
        let places: Option<Vec<usize>> = held.iter().map(as_in_key).collect();
        let is_of_key = places.is_some_and(|places| self.primary_key.starts_with(&places));
        let index = IndexDef { columns: held };
        if !is_of_key && !self.indexes.contains(&index) && self.indexes.len() < MAX_INDEXES {
            self.indexes.push(index);
        }
    }

    /// For a table whose rows are stored queries, the definition of the documents that are matched
    /// against them; `None` for any other table.
    pub fn documents(&self) -> Option<&Schema> {
        self.declared.as_ref()?.documents.as_deref()
    }

    /// Whether a column is never shown.
    pub fn is_hidden(&self, place: usize) -> bool {
        self.columns.get(place).is_some_and(|column| {
            column.name == HIDDEN_KEY || column.name.starts_with(HIDDEN_PREFIX)
        })
    }
}

/// What SQL declared of a table besides its columns. The engine stores it, and interprets only the
/// parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTable {
    /// The lines after the columns in `SHOW CREATE TABLE`, without commas: keys, foreign keys, checks.
    pub keys: Vec<String>,
    /// The text after the closing parenthesis: `ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`.
    pub options: String,
    /// The parts of a distributed table, by the engine's names: it has their rows instead of its
    /// own. If several parts have a key, the row of the last one counts. Such a table can be read
    /// like any other but not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The tables of other servers whose rows come after those of `parts`, as SQL names them. If
    /// several have a key, the row of the last one counts. The engine does not interpret them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// How those servers are queried, by the names of settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_settings: Vec<(String, String)>,
    /// For a table whose rows are stored queries, the definition of the documents that are matched
    /// against them; it has no key. The engine does not interpret it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<Box<Schema>>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Stable number.
    pub id: u32,
    /// Name, unique in the table without regard to case.
    pub name: String,
    /// Type.
    pub kind: ColumnType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Whether segments hold it (filter, sort, facet); otherwise only the row store does.
    pub indexed: bool,
    /// The SQL text after its name, if it was declared in SQL: `varchar(30) NOT NULL DEFAULT 'x'`. The engine does
    /// not interpret it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
}

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// A signed integer of 8, 16, 24, 32 or 64 bits.
    Int(u8),
    /// An unsigned integer of 8, 16, 24, 32 or 64 bits.
    Uint(u8),
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// Exact decimal: total digits (1..=65), digits of the fraction (0..=38).
    Decimal(u8, u8),
    /// True or false.
    Bool,
    /// UTF-8 text of any length.
    Text,
    /// Bytes of any length.
    Bytes,
    /// A date.
    Date,
    /// A duration (SQL TIME).
    Time,
    /// A date and time of day.
    DateTime,
    /// An instant.
    Timestamp,
    /// JSON.
    Json,
}

impl ColumnType {
    /// Whether values have the same eight bytes in keys and in column cells, so that keys can serve as an index on
    /// them.
    pub(crate) fn is_ordinal_in_keys(self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Date | Self::DateTime | Self::Timestamp)
    }
}

/// A secondary index: each segment's documents sorted by columns. Segments built before the index was declared get it
/// by background merges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    /// The columns to sort by: by the first, then by the second, and so on.
    pub columns: Vec<IndexColumn>,
}

/// A column of a secondary index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Its place in `columns`; segments must hold the column, or the prefix.
    pub column: usize,
    /// Whether the greatest value comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
    /// The number of its text order ([`register_text_key`]); `None` for byte order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// For a text or byte column that segments do not hold: the number of bytes that they hold of each sort key, or of
    /// each value in byte order, as [`prefix_size`] gives it. `None` for the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<u16>,
}

/// A text index over one or several columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextDef {
    /// Stable number.
    pub id: u32,
    /// Places in `columns`.
    pub columns: Vec<usize>,
    /// With a delimiter the columns are joined into one text; without, a match is within one column.
    pub delimiter: Option<String>,
    /// How text is normalised.
    #[serde(with = "StoredNormalization")]
    pub normalization: Normalization,
}

/// The stored form of [`Normalization`], whose crate has no serialisation.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Normalization")]
struct StoredNormalization {
    nfkc: bool,
    #[serde(with = "StoredWidth")]
    width: Width,
    fold_case: bool,
    fold_accents: bool,
}

/// The stored form of [`Width`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Width", rename_all = "snake_case")]
enum StoredWidth {
    Keep,
    Narrow,
    Wide,
}
