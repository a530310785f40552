//! What a table is to a request: its key, its attributes and its fields.

use remora_engine::united_names;

use super::{super::AttributeKind, Refused, Result, quote};

/// A table as a request sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableShape {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The column of whole numbers that is its key: what Sphinx calls the id.
    pub key: String,
    /// All columns but the key that have attributes' kinds, those of words too.
    pub columns: Vec<Column>,
    /// The columns that are searched by words, in the order of fields: no attributes.
    pub fields: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// Whether it may be NULL, which Sphinx has as 0 or an empty text.
    pub is_nullable: bool,
}

/// What a column's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers of 32 bits or fewer without a sign.
    Number,
    /// Other whole numbers.
    BigInt,
    /// 0 or 1.
    Bool,
    /// FLOAT.
    Float,
    /// DOUBLE and DECIMAL.
    Double,
    /// DATE, DATETIME and TIMESTAMP: seconds since 1970 to Sphinx.
    Time,
    /// Texts, and all that is shown as text.
    Text,
    /// JSON.
    Json,
    /// Sets of numbers of 32 bits without a sign.
    Set,
    /// Sets of numbers of 64 bits.
    WideSet,
}

impl ColumnKind {
    /// The kind of its attribute.
    pub fn attribute(self) -> AttributeKind {
        match self {
            Self::Number => AttributeKind::Number,
            Self::BigInt => AttributeKind::BigInt,
            Self::Bool => AttributeKind::Bool,
            Self::Float | Self::Double => AttributeKind::Float,
            Self::Time => AttributeKind::Timestamp,
            Self::Text | Self::Json => AttributeKind::Text,
            Self::Set => AttributeKind::Set,
            Self::WideSet => AttributeKind::WideSet,
        }
    }

    /// Whether its values are sets.
    pub(super) fn is_set(self) -> bool {
        matches!(self, Self::Set | Self::WideSet)
    }
}

impl Column {
    /// Its value as its attribute has it, which may be NULL.
    pub(super) fn value(&self) -> String {
        let name = quote::name(&self.name);
        match self.kind {
            // Whole seconds, of moments that have fractions too.
            ColumnKind::Time => format!("FLOOR(UNIX_TIMESTAMP({name}))"),
            _ => name,
        }
    }
}

impl TableShape {
    /// A column of this name, in letters of either case.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Whether a column is a field, which Sphinx has no attribute of.
    pub(super) fn is_field(&self, column: &Column) -> bool {
        self.fields.iter().any(|field| field.eq_ignore_ascii_case(&column.name))
    }

    /// The columns that are attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !self.is_field(column))
    }

    /// The table within a statement.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote::name(&self.database), quote::name(&self.name))
    }

    /// The table in a text, as CALL takes it.
    pub(super) fn named(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// The name as errors tell it, with commas where it is that of several tables.
    pub fn shown(&self) -> String {
        united_names(&self.name).collect::<Vec<_>>().join(",")
    }

    /// A refusal, told of this table as `searchd` tells it.
    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> Refused {
        Refused::new(format!("index {}: {why}", self.shown()))
    }
}

/// Which indexes a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexes<'a> {
    /// All that there are.
    All,
    /// These, which are searched as one.
    Named(Vec<&'a str>),
}

impl<'a> Indexes<'a> {
    /// Reads a list of names, which have anything between them but letters, digits and `_`.
    ///
    /// # Errors
    /// A sentence if there is no name.
    pub fn parse(list: &'a str) -> Result<Self> {
        if list == "*" {
            return Ok(Self::All);
        }
        let is_between = |character: char| !(character.is_alphanumeric() || character == '_');
        let names: Vec<&str> = list.split(is_between).filter(|name| !name.is_empty()).collect();
        match names.is_empty() {
            true => Err(Refused::new("no enabled local indexes to search")),
            false => Ok(Self::Named(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_indexes() {
        assert_eq!(Indexes::parse("*"), Ok(Indexes::All));
        assert_eq!(Indexes::parse(" books;"), Ok(Indexes::Named(vec!["books"])));
        assert_eq!(Indexes::parse("bücher_2"), Ok(Indexes::Named(vec!["bücher_2"])));
        let refused = |list| Indexes::parse(list).map_err(|error| error.to_string());
        assert_eq!(refused("--"), Err("no enabled local indexes to search".to_owned()));
        assert_eq!(Indexes::parse("a, b"), Ok(Indexes::Named(vec!["a", "b"])));
    }
}
