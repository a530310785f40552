//! tiedot's query language: `parse` reads it, `evaluate` answers it.
//!
//! ```text
//! query := "all" | "ID" | [query, ...] | {"n": [query, ...]} | {"c": [query, ...]}
//!        | {"eq": value, "in": path, "limit": number?} | {"has": path, "limit": number?}
//!        | {"int-from": number, "int-to": number, "in": path, "limit": number?}
//! path  := [name, ...]
//! ```
//!
//! A list is a union, `n` an intersection, and `c` has the ids that are in an odd number of the sets.

mod evaluate;
mod parse;

pub(super) use evaluate::{Budget, Evaluation};
pub(super) use parse::Query;
