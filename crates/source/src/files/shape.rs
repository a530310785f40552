//! Which parts of a JSON document belong to a row.

/// What becomes of a JSON document on the way to a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What a row is made of.
    pub rows: Rows,
    /// Dotted paths whose values are the key. Those that lead into nested objects are columns of that name beside
    /// the document's own, unless objects are flattened.
    pub key: Vec<String>,
}

/// What a row is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// A column for each member of the document; nested ones are JSON.
    #[default]
    Members,
    /// A column for each member, and for those of nested objects by their dotted paths; arrays are JSON.
    FlatMembers,
    /// A collection's columns: an id, which is NULL where it is still to be given, and the document.
    Documents,
    /// The same of objects that have both, `{"id": …, "doc": …}`.
    IdsAndDocuments,
}

impl Shape {
    /// Whether rows are those of a collection.
    pub fn is_of_collection(&self) -> bool {
        matches!(self.rows, Rows::Documents | Rows::IdsAndDocuments)
    }
}
