//! The binlog: reads the dump connection, and verifies and decompresses events.

mod compressed;
mod event_kind;
mod format;
mod gtid_event;
mod history;
mod payload;
mod query;
mod raw_event;
mod rows;
mod rows_kind;
mod savepoint;
mod source_event;
mod stream;
mod table_map;
mod xa;

pub use format::FormatDescription;
pub use query::Query;
pub(crate) use rows::no_text;
pub use rows::{RowChange, RowDecoder};
pub use rows_kind::{RowsKind, RowsVersion};
pub use source_event::{EventBody, SourceEvent};
pub use stream::{Interrupter, SourceStream};
pub use table_map::{MappedColumn, TableMap};
