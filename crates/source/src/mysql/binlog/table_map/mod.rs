//! Table maps: the layout of the following rows.
//!
//! ```text
//! map      = table_id (u48, in very old files u32) flags:u16
//!            length:u8 database 0 length:u8 table 0
//!            columns:packed type:u8{columns} length:packed metadata nullable:bits optional*
//! metadata = 0 to 2 bytes for each column, by its type
//! optional = kind:u8 length:packed value                 see `optional`
//! ```

mod optional;

use remora_mysql::FieldType;

use super::FormatDescription;
use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// The event code of table maps.
const EVENT: u8 = 19;

/// The layout of a table's rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableMap {
    /// The id in rows events.
    pub table_id: u64,
    /// The table's database.
    pub database: String,
    /// The table's name.
    pub table: String,
    /// The columns in the order of the row images; empty if the map is not understood.
    pub columns: Vec<MappedColumn>,
}

/// A column of a table map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MappedColumn {
    /// The type. ENUM and SET are distinguished from CHAR.
    pub kind: FieldType,
    /// The type's metadata: the most bytes of a CHAR, ENUM, SET or VARCHAR; the length bytes of a BLOB; fraction
    /// digits; precision and scale; bits and bytes.
    pub metadata: u16,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether a number is unsigned, if the source tells.
    pub unsigned: Option<bool>,
    /// The number of its collation, if the source tells; 63 is binary.
    pub collation: Option<u64>,
    /// Its name, if the source tells.
    pub name: Option<String>,
    /// The labels of an ENUM or SET in the column's character set, if the source tells.
    pub labels: Option<Vec<Vec<u8>>>,
}

impl TableMap {
    /// Parses the event's body. If the columns are not understood, only this table's rows become unreadable.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if the body ends before the columns.
    pub fn parse(body: &[u8], format: &FormatDescription) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let table_id = reader.uint(format.table_id_length(EVENT))?;
        reader.skip(2)?;
        let database = name(&mut reader)?;
        let table = name(&mut reader)?;
        let mut map = Self { table_id, database, table, columns: Vec::new() };
        if map.read_columns(&mut reader, format).is_err() {
            map.columns.clear();
        }
        Ok(map)
    }

    fn read_columns(
        &mut self,
        reader: &mut Reader<'_>,
        format: &FormatDescription,
    ) -> Result<(), UnexpectedEnd> {
        let count = reader.packed_length()?;
        let kinds = reader.bytes(count)?;
        let length = reader.packed_length()?;
        let mut metadata = Reader::new(reader.bytes(length)?);
        let nullable = reader.bytes(count.div_ceil(8))?;
        self.columns.reserve_exact(count);
        for (index, &code) in kinds.iter().enumerate() {
            let (kind, metadata) = typed(code, &mut metadata)?;
            let nullable = nullable.get(index / 8).is_some_and(|bits| bits >> (index % 8) & 1 == 1);
            let column = MappedColumn { kind, metadata, nullable, ..MappedColumn::default() };
            self.columns.push(column);
        }
        optional::read(reader, self, format.is_mariadb())
    }
}

fn name(reader: &mut Reader<'_>) -> Result<String, UnexpectedEnd> {
    let length = usize::from(reader.u8()?);
    let name = reader.bytes(length)?;
    reader.skip(1)?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The type, and its metadata as one number.
fn typed(code: u8, metadata: &mut Reader<'_>) -> Result<(FieldType, u16), UnexpectedEnd> {
    let kind = FieldType::from_code(code);
    Ok(match kind {
        FieldType::String | FieldType::Enum | FieldType::Set => {
            let [real, length] = metadata.array()?;
            // Two bits of the length of a CHAR with more than 255 bytes are in the type, inverted.
            match real & 0x30 {
                0x30 => (FieldType::from_code(real), u16::from(length)),
                bits => (
                    FieldType::from_code(real | 0x30),
                    u16::from(bits ^ 0x30) << 4 | u16::from(length),
                ),
            }
        }
        FieldType::VarChar
        | FieldType::VarString
        | FieldType::VarCharCompressed
        | FieldType::Bit => (kind, metadata.u16()?),
        FieldType::NewDecimal => (kind, u16::from_be_bytes(metadata.array()?)),
        FieldType::Float
        | FieldType::Double
        | FieldType::Timestamp2
        | FieldType::DateTime2
        | FieldType::Time2
        | FieldType::BlobCompressed
        | FieldType::Vector
        | FieldType::Json
        | FieldType::TinyBlob
        | FieldType::MediumBlob
        | FieldType::LongBlob
        | FieldType::Blob
        | FieldType::Geometry => (kind, u16::from(metadata.u8()?)),
        _ => (kind, 0),
    })
}
