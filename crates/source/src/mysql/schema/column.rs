//! A column as the source declares it.

use remora_mysql::Charset;
use serde::{Deserialize, Serialize};

use crate::mysql::quote::quoted;

/// One column of a table at the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// Its position in the source's row images, from 0.
    pub ordinal: usize,
    /// Its type.
    pub kind: SourceType,
    /// The declared range and digits of numbers.
    #[serde(default)]
    pub range: Range,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether it is a generated column.
    pub generation: Generation,
    /// Its default.
    pub default: ColumnDefault,
    /// The number of its collation, if the source tells; 63 for binary columns.
    pub collation: Option<u64>,
    /// Its previous name, if the last change renamed it.
    pub renamed_from: Option<String>,
}

/// The type of a column at the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SourceType {
    /// TINYINT to BIGINT: 8, 16, 24, 32 or 64 bits.
    Int {
        /// Width.
        bits: u8,
        /// Whether it is UNSIGNED.
        unsigned: bool,
    },
    /// DECIMAL.
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits behind the point, 0 to 30.
        scale: u8,
    },
    /// FLOAT, with or without digits.
    Float,
    /// DOUBLE, with or without digits.
    Double,
    /// BIT of 1 to 64 bits.
    Bit(u8),
    /// YEAR of four digits.
    Year,
    /// YEAR(2), which its server shows, and computes with, as two digits.
    ShortYear,
    /// DATE.
    Date,
    /// TIME with this many fraction digits.
    Time(u8),
    /// DATETIME with this many fraction digits.
    DateTime(u8),
    /// TIMESTAMP with this many fraction digits.
    Timestamp(u8),
    /// CHAR, which ignores trailing spaces.
    Char(TextType),
    /// VARCHAR.
    VarChar(TextType),
    /// TINYTEXT to LONGTEXT, also MariaDB's JSON.
    Text(TextType),
    /// BINARY with this many bytes, padded with zeros.
    Binary(usize),
    /// VARBINARY with at most this many bytes.
    VarBinary(usize),
    /// TINYBLOB to LONGBLOB with at most this many bytes.
    Blob(usize),
    /// ENUM; the first label has number 1.
    Enum(Labels),
    /// SET; the first label is the lowest bit.
    Set(Labels),
    /// MySQL's JSON.
    Json,
    /// GEOMETRY and its subtypes.
    Geometry,
    /// VECTOR with this many floats.
    Vector(usize),
    /// MariaDB's UUID.
    Uuid,
    /// MariaDB's INET6.
    Inet6,
    /// MariaDB's INET4.
    Inet4,
}

/// The declared range of a FLOAT, DOUBLE or DECIMAL beyond its type. A new declaration changes values outside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Whether it is UNSIGNED.
    pub unsigned: bool,
    /// The digits to which FLOAT(M,D) and DOUBLE(M,D) are rounded: M in total, D after the point.
    pub digits: Option<(u8, u8)>,
}

impl Range {
    /// Whether all values of another range are unchanged in this one.
    pub fn holds_all_of(&self, other: &Self) -> bool {
        let unsigned = other.unsigned || !self.unsigned;
        unsigned && (self.digits.is_none() || self.digits == other.digits)
    }
}

/// A text column's character set and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextType {
    /// The character set of its bytes.
    pub charset: Charset,
    /// The most characters; of a TEXT, the most bytes.
    pub length: u64,
}

/// The labels of an ENUM or SET.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The character set of the labels in table maps.
    pub charset: Charset,
    /// The labels in declared order.
    pub labels: Vec<String>,
}

/// Whether a column is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// Not generated.
    #[default]
    None,
    /// Computed when it is read. Row images may contain it nevertheless.
    Virtual,
    /// Computed when the row is written.
    Stored,
}

/// The default of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnDefault {
    /// Nothing is declared.
    #[default]
    None,
    /// NULL.
    Null,
    /// This value, as `information_schema` writes it.
    Constant(String),
    /// An expression, which only the source can evaluate.
    Expression(String),
}

impl SourceColumn {
    /// The column in a select list. Printed FLOATs are rounded to six digits, or to the declared digits, unless they
    /// are part of a sum.
    pub(super) fn select_item(&self) -> String {
        let name = quoted(&self.name);
        match self.kind {
            SourceType::Float | SourceType::Double => format!("{name} + 0e0 AS {name}"),
            _ => name,
        }
    }

    /// Whether the source logs a collation for it: its server treats it as character or binary data.
    pub(crate) fn has_collation(&self) -> bool {
        matches!(
            self.kind,
            SourceType::Char(_)
                | SourceType::VarChar(_)
                | SourceType::Text(_)
                | SourceType::Binary(_)
                | SourceType::VarBinary(_)
                | SourceType::Blob(_)
        )
    }
}
