//! The read path, in the order a request travels.
//!
//! 1. **The request is planned first**, so that every error in it is found before any document is read. `expression`
//!    and `fuzzy` prepare the text; `filter`, `literal`, `implied` and `prefix` the conditions; `order` and `cursor`
//!    the page; `output` the fields.
//! 2. **`select` finds the matching documents of each segment**: `matching` by text (`letters` under a collation;
//!    `texts` reads what the index alone cannot decide), `filter` by columns (`columns` resolves their names). `narrow`
//!    finds `candidates` by keys (`key_ranges`) or indexes (`index_ranges`); `docs` holds what was selected.
//! 3. **`score` computes scores** if the order needs them, by `bm25` or by keywords (`ranked`). `occurrences` and
//!    `term_frequencies` count terms, `best` drops rows that cannot be on the page.
//! 4. **`page` takes the rows of the page**, along an index if one has its order (`index_order`, with the part that an
//!    OR leaves, `index_hull`; `key_order` for that of keys; `walk` tests a condition on the way, `text_page` texts,
//!    `merge` takes segments in step), and passes over the rows of a large OFFSET (`offset`, `live_walk`). `output`
//!    makes the reply, with `highlight`.
//!
//! COUNT stops after `select`, or earlier if an index can count (`index_count`). `facet` counts values; `runs` takes
//! the first values from an index. `search` puts SEARCH and COUNT together.
//!
//! `get` reads rows by key, `adjacent` many that lie close together. `scan` reads columns of all matching rows in
//! batches (`column_batch`), or of those that are first in an order (`scan_best`). `key_page` reads keys in order.
//! `path_order`, `path_scalars` and `path_facet` read the order and the counts of values at a path of documents (asked
//! through `at_paths`). `row_set` holds rows that a caller chose. `source` says where the values of a column are read.
//! `distinct` estimates cardinality. A `reader` is one moment in a caller's hands. `gathered` reads tables with parts
//! in several servers; `local_part` is such a part in this one.
//!
//! Nothing is built for rows that are not returned, and nothing is locked, because a view never changes.

mod adjacent;
mod at_paths;
mod best;
mod bm25;
mod candidates;
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
mod implied;
mod index_count;
mod index_hull;
mod index_order;
mod index_ranges;
mod key_order;
mod key_page;
mod key_ranges;
mod letters;
mod literal;
mod live_walk;
mod local_part;
mod matching;
mod merge;
mod narrow;
mod occurrences;
mod offset;
mod order;
mod output;
mod page;
mod path_facet;
mod path_order;
mod path_scalars;
mod prefix;
mod ranked;
mod reader;
mod row_set;
mod runs;
mod scan;
mod scan_best;
mod score;
mod search;
mod select;
mod source;
mod term_frequencies;
mod text_page;
mod texts;
mod walk;

#[cfg(test)]
mod tests;

pub use column_batch::{ColumnBatch, ColumnData, ColumnValues, Strings, Validity};
pub(crate) use get::visit_json;

pub use gathered::{
    Answer, GatheredTable, MAX_FACET_VALUES, Part, PartOpenFailure, PartRows, PartValues,
    PartsCache,
};
pub use local_part::LocalPart;
pub use ranked::{DocumentBatch, StoredQuery};
pub use reader::{Reader, RemoteTables, TableVersion};
pub use row_set::RowSetBuilder;
pub use scan::Scan;
pub use scan_best::MAX_BEST_ROWS;
