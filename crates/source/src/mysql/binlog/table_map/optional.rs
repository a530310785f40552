//! The optional metadata of table maps, which depends on `binlog_row_metadata` at the source.
//!
//! ```text
//! 1 signedness           a bit for each number, highest first; 1 is unsigned
//! 2 default collation    collation:packed (place:packed collation:packed)*
//! 3 collations           collation:packed*
//! 4 names                (length:packed name)*
//! 5 SET, 6 ENUM labels   for each such column: count:packed (length:packed label){count}
//! ```
//! Other kinds are not needed and are skipped.

use remora_mysql::FieldType;

use super::{MappedColumn, TableMap};
use crate::mysql::bytes::{Reader, UnexpectedEnd};

pub(super) fn read(
    reader: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), UnexpectedEnd> {
    while reader.remaining() > 0 {
        let what = reader.u8()?;
        let length = reader.packed_length()?;
        let mut value = Reader::new(reader.bytes(length)?);
        match what {
            1 => signedness(&mut value, map, is_mariadb)?,
            2 => default_collation(&mut value, map, is_mariadb)?,
            3 => collations(&mut value, map, is_mariadb)?,
            4 => names(&mut value, map)?,
            5 => labels(&mut value, map, FieldType::Set)?,
            6 => labels(&mut value, map, FieldType::Enum)?,
            _ => {}
        }
    }
    Ok(())
}

/// MariaDB and the newest MySQL have a bit for YEAR columns, older versions may not. Columns whose sign depends on that
/// are left unknown.
fn signedness(
    value: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), UnexpectedEnd> {
    let bits = value.rest();
    let (mut numbers, mut years) = (0, 0);
    for column in map.columns.iter_mut().filter(|column| is_number(column)) {
        let bit = |index: usize| Some(bits.get(index / 8)? >> (7 - index % 8) & 1 == 1);
        let with_years = bit(numbers + years);
        let agreed = is_mariadb || with_years == bit(numbers);
        match column.kind {
            FieldType::Year => years += 1,
            _ => {
                numbers += 1;
                column.unsigned = with_years.filter(|_| agreed);
            }
        }
    }
    if numbers > 8 * bits.len() { Err(UnexpectedEnd) } else { Ok(()) }
}

fn is_number(column: &MappedColumn) -> bool {
    matches!(
        column.kind,
        FieldType::Tiny
            | FieldType::Short
            | FieldType::Int24
            | FieldType::Long
            | FieldType::LongLong
            | FieldType::Float
            | FieldType::Double
            | FieldType::NewDecimal
            | FieldType::Year
    )
}

/// One collation for all columns, with exceptions.
fn default_collation(
    value: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), UnexpectedEnd> {
    let most = value.packed()?;
    let mut columns: Vec<_> = collated(map, is_mariadb).collect();
    columns.iter_mut().for_each(|column| column.collation = Some(most));
    while value.remaining() > 0 {
        let place = value.packed_length()?;
        columns.get_mut(place).ok_or(UnexpectedEnd)?.collation = Some(value.packed()?);
    }
    Ok(())
}

/// A collation for each column.
fn collations(
    value: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), UnexpectedEnd> {
    for column in collated(map, is_mariadb) {
        column.collation = Some(value.packed()?);
    }
    Ok(())
}

/// The columns with collations: text and bytes; for MariaDB also types that are stored as such.
fn collated(map: &mut TableMap, is_mariadb: bool) -> impl Iterator<Item = &mut MappedColumn> {
    map.columns.iter_mut().filter(move |column| match column.kind {
        FieldType::String
        | FieldType::VarString
        | FieldType::VarChar
        | FieldType::Vector
        | FieldType::TinyBlob
        | FieldType::Blob
        | FieldType::MediumBlob
        | FieldType::LongBlob => true,
        FieldType::Geometry | FieldType::VarCharCompressed | FieldType::BlobCompressed => {
            is_mariadb
        }
        _ => false,
    })
}

fn names(value: &mut Reader<'_>, map: &mut TableMap) -> Result<(), UnexpectedEnd> {
    for column in &mut map.columns {
        let length = value.packed_length()?;
        column.name = Some(String::from_utf8_lossy(value.bytes(length)?).into_owned());
    }
    Ok(())
}

fn labels(
    value: &mut Reader<'_>,
    map: &mut TableMap,
    wanted: FieldType,
) -> Result<(), UnexpectedEnd> {
    for column in map.columns.iter_mut().filter(|column| column.kind == wanted) {
        let count = value.packed_length()?;
        let mut labels = Vec::new();
        for _ in 0..count {
            let length = value.packed_length()?;
            labels.push(value.bytes(length)?.to_vec());
        }
        column.labels = Some(labels);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signs that a byte of bits gives to columns of these types.
    fn signs(kinds: &[FieldType], bits: u8, is_mariadb: bool) -> Vec<Option<bool>> {
        let column = |&kind: &FieldType| MappedColumn { kind, ..MappedColumn::default() };
        let columns = kinds.iter().map(column).collect();
        let mut map =
            TableMap { table_id: 1, database: String::new(), table: String::new(), columns };
        read(&mut Reader::new(&[1, 1, bits]), &mut map, is_mariadb).unwrap();
        map.columns.iter().map(|column| column.unsigned).collect()
    }

    #[test]
    fn a_year_may_count_as_a_number() {
        let kinds = [FieldType::Long, FieldType::Year, FieldType::Long, FieldType::Short];
        assert_eq!(signs(&kinds, 0b0100_0000, true), [Some(false), None, Some(false), Some(false)]);
        // The SMALLINT is signed in both cases, the INT before it in one of them.
        assert_eq!(signs(&kinds, 0b0100_0000, false), [Some(false), None, None, Some(false)]);
        assert_eq!(signs(&kinds[2..], 0b0100_0000, false), [Some(false), Some(true)]);
    }
}
