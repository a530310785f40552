//! The kinds of rows events and the layouts of their bodies.

/// The operation on the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// After images.
    Insert,
    /// Pairs of before and after images.
    Update,
    /// Before images.
    Delete,
    /// Pairs of before and after images, where the after images of JSON columns may be differences.
    PartialUpdate,
}

/// The layout of a rows event's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsVersion {
    /// `table_id flags column_count bitmaps rows`: MySQL 5.1 to 5.5, MariaDB.
    V1,
    /// With additional information of variable length after the flags: MySQL since 5.6.
    V2,
}
