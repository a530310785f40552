//! What a source says about a table beyond its layout, as `binlog_row_metadata` is set there.
//!
//! ```text
//! 1 signedness           a bit for each number, highest first; 1 is unsigned
//! 2 default collation    collation:packed (place:packed collation:packed)*
//! 3 collations           collation:packed*
//! 4 names                (length:packed name)*
//! 5 SET, 6 ENUM labels   for each such column: count:packed (length:packed label){count}
//! ```
//! Other kinds say nothing that is needed and are passed over.

use super::{MappedColumn, TableMap};
use crate::mysql::{
    bytes::{Reader, Short},
    type_code,
};

pub(super) fn read(
    reader: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), Short> {
    while reader.remaining() > 0 {
        let what = reader.u8()?;
        let length = reader.packed_length()?;
        let mut value = Reader::new(reader.bytes(length)?);
        match what {
            1 => signedness(&mut value, map, is_mariadb)?,
            2 => default_collation(&mut value, map, is_mariadb)?,
            3 => collations(&mut value, map, is_mariadb)?,
            4 => names(&mut value, map)?,
            5 => labels(&mut value, map, type_code::SET)?,
            6 => labels(&mut value, map, type_code::ENUM)?,
            _ => {}
        }
    }
    Ok(())
}

/// MariaDB and the newest MySQL count YEAR among the numbers, which older ones may not: nothing is
/// said of columns of which that decides.
fn signedness(value: &mut Reader<'_>, map: &mut TableMap, is_mariadb: bool) -> Result<(), Short> {
    let bits = value.rest();
    let (mut numbers, mut years) = (0, 0);
    for column in map.columns.iter_mut().filter(|column| is_number(column)) {
        let bit = |index: usize| Some(bits.get(index / 8)? >> (7 - index % 8) & 1 == 1);
        let with_years = bit(numbers + years);
        let agreed = is_mariadb || with_years == bit(numbers);
        match column.kind {
            type_code::YEAR => years += 1,
            _ => {
                numbers += 1;
                column.unsigned = with_years.filter(|_| agreed);
            }
        }
    }
    if numbers > 8 * bits.len() { Err(Short) } else { Ok(()) }
}

fn is_number(column: &MappedColumn) -> bool {
    matches!(
        column.kind,
        type_code::TINY
            | type_code::SHORT
            | type_code::INT24
            | type_code::LONG
            | type_code::LONGLONG
            | type_code::FLOAT
            | type_code::DOUBLE
            | type_code::NEWDECIMAL
            | type_code::YEAR
    )
}

/// One collation for all but some columns.
fn default_collation(
    value: &mut Reader<'_>,
    map: &mut TableMap,
    is_mariadb: bool,
) -> Result<(), Short> {
    let most = value.packed()?;
    let mut columns: Vec<_> = collated(map, is_mariadb).collect();
    columns.iter_mut().for_each(|column| column.collation = Some(most));
    while value.remaining() > 0 {
        let place = value.packed_length()?;
        columns.get_mut(place).ok_or(Short)?.collation = Some(value.packed()?);
    }
    Ok(())
}

/// A collation for each column.
fn collations(value: &mut Reader<'_>, map: &mut TableMap, is_mariadb: bool) -> Result<(), Short> {
    for column in collated(map, is_mariadb) {
        column.collation = Some(value.packed()?);
    }
    Ok(())
}

/// The columns that have collations: text and bytes; at MariaDB whatever is held as such too.
fn collated(map: &mut TableMap, is_mariadb: bool) -> impl Iterator<Item = &mut MappedColumn> {
    map.columns.iter_mut().filter(move |column| match column.kind {
        type_code::STRING
        | type_code::VAR_STRING
        | type_code::VARCHAR
        | type_code::VECTOR
        | type_code::TINY_BLOB
        | type_code::BLOB
        | type_code::MEDIUM_BLOB
        | type_code::LONG_BLOB => true,
        type_code::GEOMETRY | type_code::VARCHAR_COMPRESSED | type_code::BLOB_COMPRESSED => {
            is_mariadb
        }
        _ => false,
    })
}

fn names(value: &mut Reader<'_>, map: &mut TableMap) -> Result<(), Short> {
    for column in &mut map.columns {
        let length = value.packed_length()?;
        column.name = Some(String::from_utf8_lossy(value.bytes(length)?).into_owned());
    }
    Ok(())
}

fn labels(value: &mut Reader<'_>, map: &mut TableMap, wanted: u8) -> Result<(), Short> {
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

    /// The signs that a byte gives columns of these types.
    fn signs(kinds: &[u8], bits: u8, is_mariadb: bool) -> Vec<Option<bool>> {
        let column = |&kind: &u8| MappedColumn { kind, ..MappedColumn::default() };
        let columns = kinds.iter().map(column).collect();
        let mut map =
            TableMap { table_id: 1, database: String::new(), table: String::new(), columns };
        read(&mut Reader::new(&[1, 1, bits]), &mut map, is_mariadb).unwrap();
        map.columns.iter().map(|column| column.unsigned).collect()
    }

    #[test]
    fn a_year_may_count_as_a_number() {
        let kinds = [type_code::LONG, type_code::YEAR, type_code::LONG, type_code::SHORT];
        assert_eq!(signs(&kinds, 0b0100_0000, true), [Some(false), None, Some(false), Some(false)]);
        // The SMALLINT is signed by either count, the INT before it by one of them.
        assert_eq!(signs(&kinds, 0b0100_0000, false), [Some(false), None, None, Some(false)]);
        assert_eq!(signs(&kinds[2..], 0b0100_0000, false), [Some(false), Some(true)]);
    }
}
