//! Column definitions.
//!
//! ```text
//! column = "def" database table "original table" name "original name" : six strings
//!          0x0C  collation: u16  length: u32  type: u8  flags: u16  decimals: u8  0: u16
//! ```

use mysql_common::constants::ColumnFlags;
use remora_mysql::{Collation, FieldType};
use remora_sql::{Column, ResultCharset, SqlType};

use super::encode::put_bytes;

/// The collation number of bytes and numbers.
const BINARY: u16 = Collation::BINARY.0;
/// The most bytes of a character in utf8mb4, in which lengths are given.
const UTF8_BYTES: u32 = 4;
/// Means that a number has no fixed number of decimals.
const ANY_DECIMALS: u8 = 31;

/// Writes a column's definition for a client whose results are in this character set.
pub fn put_column(out: &mut Vec<u8>, column: &Column, charset: Option<ResultCharset>) {
    put_bytes(out, b"def");
    let names = [
        &column.database,
        &column.table,
        &column.original_table,
        &column.name,
        &column.original_name,
    ];
    for name in names {
        match charset {
            Some(ResultCharset { charset, .. }) if !name.is_ascii() => {
                let mut encoded = Vec::new();
                charset.encode(name, &mut encoded);
                put_bytes(out, &encoded);
            }
            _ => put_bytes(out, name.as_bytes()),
        }
    }
    let (collation, length) = wire_collation_and_length(column, charset);
    let [low, high] = collation.to_le_bytes();
    out.extend_from_slice(&[0x0C, low, high]);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(type_of(column.kind).code());
    out.extend_from_slice(&flags_of(column).bits().to_le_bytes());
    out.extend_from_slice(&[column.decimals.unwrap_or(decimals_of(column.kind)), 0, 0]);
}

/// The collation and the length in the definition. Texts have the client's collation.
fn wire_collation_and_length(column: &Column, charset: Option<ResultCharset>) -> (u16, u32) {
    match charset {
        // MySQL tells the character set of documents in expressions only.
        _ if column.kind == SqlType::Json && !column.original_name.is_empty() => (BINARY, u32::MAX),
        Some(charset) if column.collation != BINARY && column.length == u32::MAX => {
            (charset.collation, u32::MAX)
        }
        Some(charset) if column.collation != BINARY => {
            let characters = column.length / UTF8_BYTES;
            (charset.collation, characters.saturating_mul(u32::from(charset.max_bytes)))
        }
        _ => (column.collation, column.length),
    }
}

/// Writes the definition of a parameter.
pub fn put_parameter(out: &mut Vec<u8>) {
    put_bytes(out, b"def");
    out.extend_from_slice(&[0, 0, 0]);
    put_bytes(out, b"?");
    let [low, high] = BINARY.to_le_bytes();
    out.extend_from_slice(&[0, 0x0C, low, high, 0, 0, 0, 0]);
    out.push(FieldType::VarString.code());
    out.extend_from_slice(&ColumnFlags::BINARY_FLAG.bits().to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]);
}

/// The type in the definition. ENUM and SET are strings with a flag; BLOB types are distinguished
/// by length.
fn type_of(kind: SqlType) -> FieldType {
    match kind {
        SqlType::Null => FieldType::Null,
        SqlType::TinyInt => FieldType::Tiny,
        SqlType::SmallInt => FieldType::Short,
        SqlType::MediumInt => FieldType::Int24,
        SqlType::Int => FieldType::Long,
        SqlType::BigInt => FieldType::LongLong,
        SqlType::Float => FieldType::Float,
        SqlType::Double => FieldType::Double,
        SqlType::Decimal(..) => FieldType::NewDecimal,
        SqlType::Bit(_) => FieldType::Bit,
        SqlType::Year => FieldType::Year,
        SqlType::Date => FieldType::Date,
        SqlType::Time(_) => FieldType::Time,
        SqlType::DateTime(_) => FieldType::DateTime,
        SqlType::Timestamp(_) => FieldType::Timestamp,
        SqlType::Char | SqlType::Enum | SqlType::Set => FieldType::String,
        SqlType::VarChar => FieldType::VarString,
        SqlType::TinyBlob
        | SqlType::Blob
        | SqlType::MediumBlob
        | SqlType::LongBlob
        | SqlType::Multi
        | SqlType::Multi64 => FieldType::Blob,
        SqlType::Json => FieldType::Json,
        SqlType::Geometry => FieldType::Geometry,
        SqlType::Vector => FieldType::Vector,
    }
}

fn flags_of(column: &Column) -> ColumnFlags {
    let is_column = !column.original_name.is_empty();
    let mut flags = match column.kind {
        SqlType::TinyBlob
        | SqlType::Blob
        | SqlType::MediumBlob
        | SqlType::LongBlob
        | SqlType::Multi
        | SqlType::Multi64
        | SqlType::Geometry
        | SqlType::Vector => ColumnFlags::BLOB_FLAG,
        SqlType::Json if is_column => ColumnFlags::BLOB_FLAG | ColumnFlags::BINARY_FLAG,
        SqlType::Json => ColumnFlags::BINARY_FLAG,
        SqlType::Enum => ColumnFlags::ENUM_FLAG,
        SqlType::Set => ColumnFlags::SET_FLAG,
        SqlType::Year => ColumnFlags::UNSIGNED_FLAG | ColumnFlags::ZEROFILL_FLAG,
        SqlType::Bit(_) => ColumnFlags::UNSIGNED_FLAG,
        _ => ColumnFlags::empty(),
    };
    let is_number = matches!(
        column.kind,
        SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::MediumInt
            | SqlType::Int
            | SqlType::BigInt
            | SqlType::Float
            | SqlType::Double
            | SqlType::Decimal(..)
            | SqlType::Bit(_)
            | SqlType::Year
    );
    // MySQL sets the flag for binary columns and for all expressions that are not texts, but not
    // for numeric columns.
    let is_binary = column.collation == BINARY && !(is_column && is_number);
    if is_binary {
        flags.insert(ColumnFlags::BINARY_FLAG);
    }
    flags.set(ColumnFlags::NOT_NULL_FLAG, column.not_null);
    flags.set(ColumnFlags::PRI_KEY_FLAG, column.primary_key);
    flags.set(ColumnFlags::AUTO_INCREMENT_FLAG, column.auto_increment);
    flags.set(ColumnFlags::UNIQUE_KEY_FLAG, column.keys.unique);
    flags.set(ColumnFlags::MULTIPLE_KEY_FLAG, column.keys.multiple);
    flags.set(ColumnFlags::PART_KEY_FLAG, column.keys.part);
    flags.set(ColumnFlags::NO_DEFAULT_VALUE_FLAG, column.keys.without_default);
    if column.unsigned {
        flags.insert(ColumnFlags::UNSIGNED_FLAG);
    }
    if column.zerofill {
        flags.insert(ColumnFlags::ZEROFILL_FLAG);
    }
    flags
}

fn decimals_of(kind: SqlType) -> u8 {
    match kind {
        SqlType::Float | SqlType::Double | SqlType::Vector => ANY_DECIMALS,
        SqlType::Decimal(_, digits)
        | SqlType::Time(digits)
        | SqlType::DateTime(digits)
        | SqlType::Timestamp(digits) => digits,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::{constants::ColumnType, io::ParseBuf, packets};

    use remora_sql::ColumnKeys;

    use super::*;

    fn column(kind: SqlType) -> Column {
        Column {
            database: "wiki".to_owned(),
            table: "p".to_owned(),
            original_table: "pages".to_owned(),
            name: "t".to_owned(),
            original_name: "title".to_owned(),
            kind,
            unsigned: false,
            not_null: true,
            primary_key: false,
            auto_increment: false,
            collation: 255,
            length: 1020,
            zerofill: false,
            decimals: None,
            keys: ColumnKeys::default(),
        }
    }

    #[test]
    fn column_definition_bytes_are_exact() {
        let mut bytes = Vec::new();
        put_column(&mut bytes, &column(SqlType::VarChar), None);
        let golden = b"\x03def\x04wiki\x01p\x05pages\x01t\x05title\
            \x0c\xff\x00\xfc\x03\x00\x00\xfd\x01\x00\x00\x00\x00";
        assert_eq!(bytes, golden);
    }

    #[test]
    fn client_reads_column_definitions() {
        let read = |column: &Column| {
            let mut bytes = Vec::new();
            put_column(&mut bytes, column, None);
            ParseBuf(&bytes).parse::<packets::Column>(()).unwrap()
        };
        let text = read(&column(SqlType::LongBlob));
        assert_eq!(text.column_type(), ColumnType::MYSQL_TYPE_BLOB);
        assert_eq!(text.flags(), ColumnFlags::BLOB_FLAG | ColumnFlags::NOT_NULL_FLAG);
        assert_eq!((text.schema_str(), text.org_name_str()), ("wiki".into(), "title".into()));
        let number = Column { collation: BINARY, unsigned: true, ..column(SqlType::BigInt) };
        let number = read(&number);
        assert_eq!(number.column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
        assert!(number.flags().contains(ColumnFlags::UNSIGNED_FLAG));
        assert_eq!(read(&column(SqlType::DateTime(3))).decimals(), 3);
        assert_eq!(read(&column(SqlType::Double)).decimals(), 31);
        assert_eq!(read(&column(SqlType::Vector)).decimals(), 31);
    }

    #[test]
    fn client_reads_keys_and_defaults() {
        let read = |column: &Column| {
            let mut bytes = Vec::new();
            let charset = remora_mysql::Charset::named("utf8mb4").unwrap();
            let charset = ResultCharset { charset, collation: 255, max_bytes: 4 };
            put_column(&mut bytes, column, Some(charset));
            ParseBuf(&bytes).parse::<packets::Column>(()).unwrap()
        };
        let keys = ColumnKeys { unique: true, multiple: true, part: true, without_default: true };
        let told = read(&Column { keys, ..column(SqlType::VarChar) }).flags();
        let expected = ColumnFlags::NOT_NULL_FLAG
            | ColumnFlags::UNIQUE_KEY_FLAG
            | ColumnFlags::MULTIPLE_KEY_FLAG
            | ColumnFlags::PART_KEY_FLAG
            | ColumnFlags::NO_DEFAULT_VALUE_FLAG;
        assert_eq!(told, expected);
        // A document is told as bytes, one in an expression as text.
        let document = Column { collation: 46, length: u32::MAX - 3, ..column(SqlType::Json) };
        let told = read(&document);
        assert_eq!((told.character_set(), told.column_length()), (63, u32::MAX));
        let told = read(&Column { original_name: String::new(), ..document });
        assert_eq!((told.character_set(), told.column_length()), (255, u32::MAX - 3));
    }

    #[test]
    fn texts_are_sent_in_the_clients_character_set() {
        let charset = remora_mysql::Charset::named("latin1").unwrap();
        let latin1 = ResultCharset { charset, collation: 8, max_bytes: 1 };
        let mut bytes = Vec::new();
        let name = "prénom".to_owned();
        put_column(&mut bytes, &Column { name, ..column(SqlType::VarChar) }, Some(latin1));
        let golden = b"\x03def\x04wiki\x01p\x05pages\x06pr\xe9nom\x05title\
            \x0c\x08\x00\xff\x00\x00\x00\xfd\x01\x00\x00\x00\x00";
        assert_eq!(bytes, golden);
        bytes.clear();
        put_column(
            &mut bytes,
            &Column { collation: BINARY, ..column(SqlType::Blob) },
            Some(latin1),
        );
        assert_eq!(bytes[25..31], [0x0c, 63, 0, 0xfc, 3, 0]);
    }

    #[test]
    fn client_reads_a_parameter_definition() {
        let mut bytes = Vec::new();
        put_parameter(&mut bytes);
        let column = ParseBuf(&bytes).parse::<packets::Column>(()).unwrap();
        assert_eq!(column.name_str(), "?");
        assert_eq!(column.column_type(), ColumnType::MYSQL_TYPE_VAR_STRING);
    }
}
