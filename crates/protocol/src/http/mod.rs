//! HTTP: JSON for operators and for clients of MygramDB, without sockets.
//!
//! A body becomes the same engine request, with the same limits, as a line of [`crate::line`]. So
//! the two protocols always agree.
//!
//! ```text
//! POST /tables/{table}/search   body -> {"count", "limit", "offset", "results"[, "cursor"]}
//! POST /tables/{table}/count    body -> {"count"}
//! POST /tables/{table}/facet    body -> {"column", "count", "total_count", "facets"}
//! GET  /tables/{table}/{key}         -> {"primary_key", "filters" | "fields"}
//!
//! body    = { "q": text, "mode": "literal" | "boolean", "filters": { column: value
//!           | {"op": operator, "value": value} }, "sort": { "column", "order" },
//!           "limit", "offset", "fuzzy": 1 | 2,
//!           "highlight": { "open_tag", "close_tag", "snippet_length", "max_fragments" } }
//! own     = "filter": text of the line protocol's filters, "fields": [column], "cursor": true,
//!           "after": cursor, "sort": [ { .. } ], "filters": { column: [value] | null }
//! error   = { "error": sentence, "error_code": code of the line protocol }
//! ```
//!
//! `docs/http.md` is the reference with examples.

mod body;
mod conditions;
mod credentials;
mod error;
mod metrics;
mod report;
mod rows;
mod strict;
mod value;

pub use body::{parse_count, parse_facet, parse_optimize, parse_search};
pub use credentials::Credentials;
pub use error::{status, write_error};
pub use metrics::{
    Denials, Metrics, SourceMetrics, SourceTableMetrics, TableMetrics, write_metrics,
};
pub use report::{
    Availability, ConfigSummary, Readiness, config, health_detail, info, optimized, readiness,
    replication,
};
pub use rows::{Columns, write_count, write_document, write_facet, write_search};
