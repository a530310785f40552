//! The description of a result column: name, origin and type, as MySQL sends it to clients.

use remora_mysql::Collation;

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The table's database; empty for an expression.
    pub database: String,
    /// The table's alias; empty for an expression.
    pub table: String,
    /// The table's own name.
    pub original_table: String,
    /// The column's alias or the text of the expression.
    pub name: String,
    /// The column's own name; empty for an expression.
    pub original_name: String,
    /// The type.
    pub kind: SqlType,
    /// Whether it is UNSIGNED.
    pub unsigned: bool,
    /// Whether it can never be NULL.
    pub not_null: bool,
    /// Whether it is a part of the primary key.
    pub primary_key: bool,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// The number of the collation; 63 is binary.
    pub collation: u16,
    /// The display length, in bytes of the result's character set.
    pub length: u32,
    /// Whether it is ZEROFILL.
    pub zerofill: bool,
    /// The fixed number of fraction digits of a FLOAT or DOUBLE, if declared.
    pub decimals: Option<u8>,
    /// Its keys.
    pub keys: ColumnKeys,
}

/// What a table declares of a column's keys and default; nothing for an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnKeys {
    /// Whether it alone is a unique key.
    pub unique: bool,
    /// Whether it is the first column of a key that is not unique or has several columns.
    pub multiple: bool,
    /// Whether it is a part of any key.
    pub part: bool,
    /// Whether it is NOT NULL and has no default.
    pub without_default: bool,
}

impl Column {
    /// A column of no table, with its type still to be set.
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
            keys: ColumnKeys::default(),
        }
    }
}

/// MySQL's types, as clients see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// The type of the literal NULL.
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
    /// An exact decimal: precision and scale.
    Decimal(u8, u8),
    /// A bit field of so many bits.
    Bit(u8),
    /// A year.
    Year,
    /// A date.
    Date,
    /// A time with so many fraction digits.
    Time(u8),
    /// A date and time with so many fraction digits.
    DateTime(u8),
    /// A timestamp with so many fraction digits.
    Timestamp(u8),
    /// CHAR or BINARY, depending on the collation.
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
    /// A set of unsigned 32-bit integers, displayed as `1,2`.
    Multi,
    /// A set of signed 64-bit integers, displayed as `-1,2`.
    Multi64,
    /// GEOMETRY.
    Geometry,
    /// VECTOR.
    Vector,
}
