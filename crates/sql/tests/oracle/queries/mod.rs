//! Random queries with joins, subqueries, groups, windows and extreme values.

mod compare;
mod expressions;
mod generate;
mod tree;

pub use compare::{Verdict, compare};
pub use generate::{Generator, Query};
pub use tree::{Kind as PartKind, Part};
