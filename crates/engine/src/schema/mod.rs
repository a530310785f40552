//! What a table is: typed columns, a primary key, text indexes, and which rows belong.

mod computed;
mod declared_view;
mod filter;
mod parts;
mod path;
mod synonyms;
mod text_order;
mod validate;
mod words;

use remora_index::text::{Normalization, Width};
use serde::{Deserialize, Serialize};

pub(crate) use computed::computation;
pub use computed::{ComputeRow, Computing, is_computed_name, register_computing};
pub use declared_view::DeclaredView;
pub use filter::{Comparison, Filter, Literal};
pub(crate) use parts::is_united;
pub use parts::{MAX_PARTS, united_name, united_names};
pub(crate) use path::FIRST_PATH_TEXTS;
pub use path::{PATH_TEXTS, PathDef, PathTest, PathValue, texts_tell};
pub(crate) use synonyms::Synonyms;
pub use text_order::register_text_key;
pub(crate) use text_order::text_order;
use validate::{MAX_INDEXES, MAX_KEY_PARTS};
pub use words::WordsDef;

/// The name of a key column that is never shown: of a table that declares no key. What SQL makes
/// holds a number there; what follows a source, what tells equal rows apart.
pub const HIDDEN_KEY: &str = "#row";

/// What the names of other columns begin with that are never shown: SQL makes them, of what the expressions of keys
/// give.
pub const HIDDEN_PREFIX: &str = "#key.";

/// A table's definition. Stored with the table; numbers in it are stable and never reused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The table's name: `table` or `database.table`.
    pub name: String,
    /// The columns in row order.
    pub columns: Vec<ColumnDef>,
    /// Positions in `columns` of the primary key's parts: one or more.
    pub primary_key: Vec<usize>,
    /// The text indexes.
    pub texts: Vec<TextDef>,
    /// The secondary indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexDef>,
    /// Rows that do not satisfy this are kept in the row store but are not in the table's view.
    pub required: Option<Filter>,
    /// Groups of words that mean the same to a search.
    pub synonyms: Vec<Vec<String>>,
    /// The keywords of its texts, for ranked search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordsDef>,
    /// The paths into its documents that are indexed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathDef>,
    /// What SQL says of it beyond this, if it came from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredTable>,
}

impl Schema {
    /// The place of the key column that is not shown, if the table has one.
    pub fn hidden_key(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.name == HIDDEN_KEY)
    }

    /// Declares a secondary index by its leading columns, up to the first one that the segments do not
    /// hold. Nothing is declared where that is none, where the primary key begins with them in the order that keys
    /// have, or where they are declared already.
    pub fn add_index(&mut self, columns: impl IntoIterator<Item = IndexColumn>) {
        let is_held =
            |part: &IndexColumn| self.columns.get(part.column).is_some_and(|it| it.indexed);
        let mut held: Vec<IndexColumn> = Vec::new();
        for part in columns.into_iter().take_while(is_held).take(MAX_KEY_PARTS) {
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

    /// The documents that are put to its rows, which are queries; `None` of any other table.
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

/// A table in SQL's own words, but for its columns. The engine keeps them, and reads the parts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTable {
    /// The lines behind the columns, as `SHOW CREATE TABLE` has them, without the comma: keys,
    /// foreign keys, checks.
    pub keys: Vec<String>,
    /// What stands behind the closing parenthesis: `ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`.
    pub options: String,
    /// The tables whose rows are those of this one, by the engine's names: it has none of its own. Of a key that
    /// several have the last one's row is there. Such a table is read as any other, and never written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The tables of other servers whose rows it has behind those of `parts`, as SQL names them. Of a key that several
    /// have the last one's row is there. The engine reads nothing in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// How those are asked, by the names of settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_settings: Vec<(String, String)>,
    /// Of a table whose rows are queries: what the documents are that are put to them. It has no key. The engine reads
    /// nothing in it.
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
    /// Whether the segments hold it (filter, sort, facet); if not, it is in the row store only.
    pub indexed: bool,
    /// What SQL says behind its name, if it came from there: `varchar(30) NOT NULL DEFAULT 'x'`.
    /// The engine keeps it and reads nothing in it.
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
    /// Exact decimal: digits in all (1..=65), digits of the fraction (0..=38).
    Decimal(u8, u8),
    /// True or false.
    Bool,
    /// UTF-8 text of any length.
    Text,
    /// Bytes of any length.
    Bytes,
    /// A date.
    Date,
    /// A span of time.
    Time,
    /// A date and time of day.
    DateTime,
    /// A moment.
    Timestamp,
    /// JSON.
    Json,
}

impl ColumnType {
    /// Whether values of this type are the same eight bytes in a key and in a column, so that keys answer for them
    /// as an index does.
    pub(crate) fn is_ordinal_in_keys(self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Date | Self::DateTime | Self::Timestamp)
    }
}

/// A secondary index: each segment's documents in the order of columns. A segment that was made before
/// the index was declared gets it from a merge in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    /// By what rows are sorted: the first column, then the second, and so on.
    pub columns: Vec<IndexColumn>,
}

/// A column of a secondary index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Its position in `columns`; it is one that the segments hold.
    pub column: usize,
    /// Greatest first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
    /// The number of the order that its texts have ([`register_text_key`]); `None` for that of their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
}

/// One text index over one or several columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextDef {
    /// Stable number.
    pub id: u32,
    /// Positions in `columns`.
    pub columns: Vec<usize>,
    /// With a delimiter the columns are joined into one text; without, a match lies within one
    /// of them.
    pub delimiter: Option<String>,
    /// How text is normalised.
    #[serde(with = "StoredNormalization")]
    pub normalization: Normalization,
}

/// The stored form of [`Normalization`], whose crate stores nothing itself.
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
