//! What a column of a reply is: name, origin, type, as MySQL tells its clients.

use remora_mysql::Collation;

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The database of the table, empty for an expression.
    pub database: String,
    /// The table's alias, empty for an expression.
    pub table: String,
    /// The table's own name.
    pub original_table: String,
    /// The column's alias or the text of the expression.
    pub name: String,
    /// The column's own name, empty for an expression.
    pub original_name: String,
    /// The type.
    pub kind: SqlType,
    /// Whether numbers have no sign.
    pub unsigned: bool,
    /// Whether NULL cannot occur.
    pub not_null: bool,
    /// Whether it is a part of the primary key.
    pub primary_key: bool,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// MySQL's number of the collation; 63 is binary.
    pub collation: u16,
    /// The display length that MySQL tells, in bytes of the reply's character set.
    pub length: u32,
    /// Whether zeros fill its texts up to the length.
    pub zerofill: bool,
    /// Digits behind the point of a FLOAT or DOUBLE that has a fixed number of them.
    pub decimals: Option<u8>,
}

impl Column {
    /// A column of no table, whose type is not told yet.
    pub fn computed(name: impl Into<String>) -> Self {
        Self {
            database: String::new(),
            table: String::new(),
            original_table: String::new(),
            name: name.into(),
            original_name: String::new(),
            kind: SqlType::Null,
            unsigned: false,
            not_null: false,
            primary_key: false,
            auto_increment: false,
            collation: Collation::BINARY.0,
            length: 0,
            zerofill: false,
            decimals: None,
        }
    }
}

/// MySQL's types, as a client sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// The type of a bare NULL.
    Null,
    /// 8 bits.
    TinyInt,
    /// 16 bits.
    SmallInt,
    /// 24 bits.
    MediumInt,
    /// 32 bits.
    Int,
    /// 64 bits.
    BigInt,
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// Exact: digits in all, digits of the fraction.
    Decimal(u8, u8),
    /// So many bits.
    Bit(u8),
    /// A year.
    Year,
    /// A date.
    Date,
    /// A time with so many digits of fraction.
    Time(u8),
    /// A date and time with so many digits of fraction.
    DateTime(u8),
    /// A moment with so many digits of fraction.
    Timestamp(u8),
    /// CHAR and BINARY (which of them the collation says).
    Char,
    /// VARCHAR and VARBINARY.
    VarChar,
    /// TINYTEXT and TINYBLOB.
    TinyBlob,
    /// TEXT and BLOB.
    Blob,
    /// MEDIUMTEXT and MEDIUMBLOB.
    MediumBlob,
    /// LONGTEXT and LONGBLOB.
    LongBlob,
    /// ENUM.
    Enum,
    /// SET.
    Set,
    /// JSON.
    Json,
    /// A set of integers of 32 bits without sign, shown as `1,2`.
    Multi,
    /// A set of integers of 64 bits, shown as `-1,2`.
    Multi64,
    /// GEOMETRY.
    Geometry,
    /// VECTOR.
    Vector,
}
