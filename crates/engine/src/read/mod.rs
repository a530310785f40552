//! The read path, in the order a request travels.
//!
//! A request is planned first, so that everything that can be wrong with it is found before any
//! document is looked at: `expression` and `fuzzy` ready the text, `filter` and `literal` the
//! conditions, `order` and `cursor` the page, `output` the fields. Then `select` asks each
//! segment which documents match (`matching`, `filter`; `narrow` where keys, `key_ranges`, or indexes,
//! `index_ranges`, tell sooner), `score` weighs them where the order
//! needs it by `bm25`, or by a query's keywords (`ranked`) (`occurrences` and `asked` say how often terms occur, `best` leaves out rows that
//! cannot be on the page), `page` takes the rows of the page, along an index where one has its order
//! (`index_order`), and `output` turns those few into a reply.
//! COUNT stops after `select`, or sooner where an index knows (`index_count`); `facet` counts values instead, `runs` takes the first of them from an index. All of SEARCH and COUNT is put together
//! in `search`.
//!
//! Rows whose keys are known take `get`, and `scan` reads columns of all that match instead of a
//! page, as batches (`column_batch`); `key_page` has keys alone, in order; all read what is asked from where it is (`source`). `distinct` says how many
//! values an index has. A `reader` is one moment in a caller's hands. Of a table whose rows lie in several servers `gathered` asks
//! those.
//!
//! Nothing is built for rows that are not returned, and nothing is locked: a view never changes.

mod asked;
mod beginning;
mod best;
mod bm25;
mod column_batch;
mod columns;
mod cursor;
mod distinct;
mod docs;
mod expression;
mod facet;
mod filter;
mod fuzzy;
mod gathered;
mod get;
mod highlight;
mod index_count;
mod index_order;
mod index_ranges;
mod key_order;
mod key_page;
mod key_ranges;
mod letters;
mod literal;
mod local_part;
mod matching;
mod merge;
mod narrow;
mod occurrences;
mod offset;
mod order;
mod output;
mod page;
mod path_order;
mod ranked;
mod reader;
mod runs;
mod scan;
mod score;
mod search;
mod select;
mod source;
mod texts;
mod walk;

#[cfg(test)]
mod tests;

pub use column_batch::{ColumnBatch, ColumnData, ColumnValues, Strings, Validity};
pub use gathered::{Answer, GatheredTable, Part, PartRows, SharedKeys, Unopened};
pub use local_part::LocalPart;
pub use reader::{Elsewhere, Reader, TableVersion};
pub use scan::Scan;
