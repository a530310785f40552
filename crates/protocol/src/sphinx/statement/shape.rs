//! The table of a request: its key, attributes and fields.

use remora_engine::united_names;

use super::{super::AttributeKind, Refused, Result, quote};

/// A table, as requests need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableShape {
    /// The name of the database.
    pub database: String,
    /// The name of the table.
    pub name: String,
    /// The integer column that is the key, Sphinx's document id.
    pub key: String,
    /// All columns but the key whose types attributes can have, text columns included.
    pub columns: Vec<Column>,
    /// The columns that are searched by words, in the order of fields. They are no attributes.
    pub fields: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Whether it may be NULL. Sphinx has 0 or an empty text instead.
    pub is_nullable: bool,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers of up to 32 bits without a sign.
    Number,
    /// Other integers.
    BigInt,
    /// 0 or 1.
    Bool,
    /// FLOAT.
    Float,
    /// DOUBLE and DECIMAL.
    Double,
    /// DATE, DATETIME and TIMESTAMP. In Sphinx these are seconds since 1970.
    Time,
    /// Texts, and all types whose values are shown as texts.
    Text,
    /// JSON.
    Json,
    /// Sets of integers of 32 bits without a sign.
    Set,
    /// Sets of integers of 64 bits.
    WideSet,
}

impl ColumnKind {
    /// The type of the attribute.
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

    /// Whether the values are sets.
    pub(super) fn is_set(self) -> bool {
        matches!(self, Self::Set | Self::WideSet)
    }
}

impl Column {
    /// The SQL of the value that the attribute has; it may be NULL.
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
    /// The column of this name, regardless of case.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Whether a column is a field, and therefore no attribute.
    pub(super) fn is_field(&self, column: &Column) -> bool {
        self.fields.iter().any(|field| field.eq_ignore_ascii_case(&column.name))
    }

    /// The columns that are attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !self.is_field(column))
    }

    /// The name of the table in a statement, quoted.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote::name(&self.database), quote::name(&self.name))
    }

    /// The name of the table in a text, as CALL takes it.
    pub(super) fn named(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// The name for error messages, with commas between several tables.
    pub fn shown(&self) -> String {
        united_names(&self.name).collect::<Vec<_>>().join(",")
    }

    /// An error about this table, in the form of `searchd`.
    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> Refused {
        Refused::new(format!("index {}: {why}", self.shown()))
    }
}

/// The indexes that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexes<'a> {
    /// All indexes.
    All,
    /// These indexes, which are searched as one.
    Named(Vec<&'a str>),
}

impl<'a> Indexes<'a> {
    /// Parses a list of names. Anything but letters, digits and `_` separates them.
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
