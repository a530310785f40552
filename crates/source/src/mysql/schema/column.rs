//! A column as the source declares it.

use remora_mysql::Charset;
use serde::{Deserialize, Serialize};

use crate::mysql::quote::quoted;

/// One column of a table at the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// Its place in the source's row images, from 0.
    pub ordinal: usize,
    /// What it holds.
    pub kind: SourceType,
    /// What else its values are held to, where they are numbers with a fraction.
    #[serde(default)]
    pub range: Range,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether the source computes it.
    pub generation: Generation,
    /// What it holds where nothing is given.
    pub default: ColumnDefault,
    /// The number of its collation, if the source tells it; that of binary columns is 63.
    pub collation: Option<u64>,
    /// Its name before the change that this table came from, if that renamed it.
    pub renamed_from: Option<String>,
}

/// What a column holds, as the source declares it.
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
    /// YEAR of two digits, which is a number of two digits wherever its server shows it or
    /// calculates with it.
    ShortYear,
    /// DATE.
    Date,
    /// TIME with so many digits of a second's fraction.
    Time(u8),
    /// DATETIME with so many digits of a second's fraction.
    DateTime(u8),
    /// TIMESTAMP with so many digits of a second's fraction.
    Timestamp(u8),
    /// CHAR, whose trailing spaces do not count.
    Char(TextType),
    /// VARCHAR.
    VarChar(TextType),
    /// TINYTEXT to LONGTEXT, MariaDB's JSON too.
    Text(TextType),
    /// BINARY of so many bytes, padded with zeros.
    Binary(usize),
    /// VARBINARY of up to so many bytes.
    VarBinary(usize),
    /// TINYBLOB to LONGBLOB of up to so many bytes.
    Blob(usize),
    /// ENUM; its first label is number 1.
    Enum(Labels),
    /// SET; its first label is the lowest bit.
    Set(Labels),
    /// MySQL's JSON.
    Json,
    /// GEOMETRY and its kinds.
    Geometry,
    /// VECTOR of so many floats.
    Vector(usize),
    /// MariaDB's UUID.
    Uuid,
    /// MariaDB's INET6.
    Inet6,
    /// MariaDB's INET4.
    Inet4,
}

/// What is declared of a FLOAT, DOUBLE or DECIMAL beyond its type. Values that a new declaration does not
/// hold become others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Whether it is UNSIGNED.
    pub unsigned: bool,
    /// The digits that FLOAT(M,D) and DOUBLE(M,D) are rounded to: M in all, D behind the point.
    pub digits: Option<(u8, u8)>,
}

impl Range {
    /// Whether every value of another range is the same value in this one.
    pub fn holds_all_of(&self, other: &Self) -> bool {
        let unsigned = other.unsigned || !self.unsigned;
        unsigned && (self.digits.is_none() || self.digits == other.digits)
    }
}

/// A text column's character set and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextType {
    /// How its bytes are read.
    pub charset: Charset,
    /// At most so many characters; of a TEXT, bytes.
    pub length: u64,
}

/// The labels of an ENUM or SET.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The character set in which table maps name them.
    pub charset: Charset,
    /// In their order.
    pub labels: Vec<String>,
}

/// Whether the source computes a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// It does not.
    #[default]
    None,
    /// When it is read. Row images hold it nevertheless.
    Virtual,
    /// When the row is written.
    Stored,
}

/// What a column holds where nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnDefault {
    /// Nothing is declared.
    #[default]
    None,
    /// NULL.
    Null,
    /// This value, as `information_schema` writes it.
    Constant(String),
    /// What an expression gives, which only the source can tell.
    Expression(String),
}

impl SourceColumn {
    /// The column as a SELECT lists it. FLOAT is printed with six digits and a declared number of
    /// digits rounds what is stored, unless it takes part in a sum.
    pub(super) fn select_item(&self) -> String {
        let name = quoted(&self.name);
        match self.kind {
            SourceType::Float | SourceType::Double => format!("{name} + 0e0 AS {name}"),
            _ => name,
        }
    }

    /// Whether the source logs a collation for it: it is character or binary data to the server.
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
