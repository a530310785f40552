//! A column as conditions compare it.

use remora_mysql::Collation;

use super::constant::Comparable;

/// A column in a comparison.
#[derive(Debug)]
pub(super) struct ComparedColumn {
    pub name: String,
    pub comparable: Option<Comparable>,
    /// The collation by which its texts compare; `None` if they compare by bytes.
    pub collation: Option<Collation>,
}
