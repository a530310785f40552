//! The types of columns, by the numbers that the protocol and the binlog's table maps give them.

macro_rules! field_types {
    ($($(#[$attribute:meta])* $name:ident = $code:literal,)*) => {
        /// The type of a column: `enum_field_types` in MySQL's `field_types.h`, and MariaDB's own
        /// types.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum FieldType {
            $($(#[$attribute])* $name,)*
            /// A number without a known type.
            Unknown(u8),
        }

        impl FieldType {
            /// The type with this number.
            #[must_use]
            pub const fn from_code(code: u8) -> Self {
                match code {
                    $($code => Self::$name,)*
                    other => Self::Unknown(other),
                }
            }

            /// Its number.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Unknown(code) => code,
                }
            }
        }
    };
}

field_types! {
    /// DECIMAL before MySQL 5.0.
    #[default]
    Decimal = 0,
    /// TINYINT.
    Tiny = 1,
    /// SMALLINT.
    Short = 2,
    /// INT.
    Long = 3,
    /// FLOAT.
    Float = 4,
    /// DOUBLE.
    Double = 5,
    /// NULL without a type.
    Null = 6,
    /// TIMESTAMP. In row events of the binlog it has no fraction.
    Timestamp = 7,
    /// BIGINT.
    LongLong = 8,
    /// MEDIUMINT.
    Int24 = 9,
    /// DATE.
    Date = 10,
    /// TIME. In row events of the binlog it has no fraction.
    Time = 11,
    /// DATETIME. In row events of the binlog it has no fraction.
    DateTime = 12,
    /// YEAR.
    Year = 13,
    /// DATE, as MySQL represents it internally.
    NewDate = 14,
    /// VARCHAR and VARBINARY in the binlog.
    VarChar = 15,
    /// BIT.
    Bit = 16,
    /// TIMESTAMP with a fraction, in the binlog.
    Timestamp2 = 17,
    /// DATETIME with a fraction, in the binlog.
    DateTime2 = 18,
    /// TIME with a fraction, in the binlog.
    Time2 = 19,
    /// The array behind a multi-valued index, in MySQL's binlog.
    TypedArray = 20,
    /// MariaDB: a compressed TEXT or BLOB.
    BlobCompressed = 140,
    /// MariaDB: a compressed VARCHAR or VARBINARY.
    VarCharCompressed = 141,
    /// VECTOR.
    Vector = 242,
    /// An invalid type.
    Invalid = 243,
    /// JSON.
    Json = 245,
    /// DECIMAL.
    NewDecimal = 246,
    /// ENUM.
    Enum = 247,
    /// SET.
    Set = 248,
    /// TINYTEXT and TINYBLOB.
    TinyBlob = 249,
    /// MEDIUMTEXT and MEDIUMBLOB.
    MediumBlob = 250,
    /// LONGTEXT and LONGBLOB.
    LongBlob = 251,
    /// TEXT and BLOB.
    Blob = 252,
    /// VARCHAR and VARBINARY.
    VarString = 253,
    /// CHAR and BINARY.
    String = 254,
    /// GEOMETRY and its kinds.
    Geometry = 255,
}
