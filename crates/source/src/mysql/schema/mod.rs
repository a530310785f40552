//! The source's tables and their definitions here. `information_schema` is read into [`SourceTable`]s, which give the
//! engine's schema, the SELECT list and, after a change at the source, whether stored rows stay valid.

mod column;
mod declaration;
mod engine;
mod foreign_key;
mod read;
mod selection;
mod table;
mod words;

pub use column::{ColumnDefault, Generation, Labels, Range, SourceColumn, SourceType, TextType};
pub(crate) use foreign_key::{ForeignKey, ReferentialAction};
pub use read::{RefusedTable, read_table, read_tables};
pub(crate) use read::{is_changed_by_foreign_keys, list_merged, list_tables};
pub use selection::{Pattern, Selection};
pub use table::SourceTable;
pub use words::Words;
