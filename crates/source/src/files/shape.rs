//! How JSON documents become rows.

/// How a JSON document becomes a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The columns of a row.
    pub rows: Rows,
    /// Dotted paths to the key values. A path into a nested object becomes a column of that name, unless objects are
    /// flattened anyway.
    pub key: Vec<String>,
}

/// The columns of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// A column for each member of the document. Nested objects are JSON.
    #[default]
    Members,
    /// A column for each scalar member, also of nested objects, by its dotted path. Arrays are JSON.
    FlatMembers,
    /// The columns of a collection: an id, which is NULL if it is still to be assigned, and the document.
    Documents,
    /// Objects with an id and a document: `{"id": …, "doc": …}`.
    IdsAndDocuments,
}
