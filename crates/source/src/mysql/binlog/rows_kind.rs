//! What a rows event is: what happened to its rows, and how its body is laid out.

/// What happened to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// After images.
    Insert,
    /// Before and after images in turn.
    Update,
    /// Before images.
    Delete,
    /// Before images and after images in which JSON columns may be differences.
    PartialUpdate,
}

/// The layout of a rows event's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsVersion {
    /// `table_id flags column_count bitmaps rows`: MySQL 5.1 to 5.5, MariaDB.
    V1,
    /// With extra information of its own length after the flags: MySQL since 5.6.
    V2,
}
