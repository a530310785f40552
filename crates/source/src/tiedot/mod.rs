//! Databases of tiedot, a document store in Go, read from their directories.
//!
//! ```text
//! number_of_partitions            a decimal number
//! data-config.json                sizes; tiedot 3.2 and older have none
//! COLLECTION/dat_N                records of partition N
//! COLLECTION/id_N                 hash table of ids to places in dat_N
//! COLLECTION/NAME!NAME/N          hash table of an index: the directory's name is the path
//!
//! record := validity (1 byte) room (varint in 10 bytes) text, padded with spaces to `room` bytes
//! table  := buckets of 10 + 21 * PerBucket bytes, 2^HashBits of them and then those that are chained to others
//! bucket := number of the next one (varint in 10 bytes, 0: none) entries
//! entry  := validity (1 byte) key (varint in 10 bytes) value (varint in 10 bytes)
//! ```
//! Varints are Go's, signed by zigzag. A file is extended by zeros far beyond its contents. There are no checksums and
//! no journal: damage from crashes is reported record by record ([`Problem`]). Index files are not read; indexes are
//! rebuilt.

mod directory;
mod hash_table;
mod read;
mod records;

use std::fmt;

pub use directory::{Collection, Directory};
pub use read::{Found, Reader};

/// A damaged record or entry, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The offset of its beginning, in bytes.
    pub offset: u64,
    /// The problem.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}: {}", self.file, self.offset, self.message)
    }
}

/// Parses a signed number like Go's `binary.Varint`; `None` if it is unterminated or too large.
fn varint(bytes: &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if place == 9 && byte > 1 {
            return None;
        }
        number |= part << (7 * place);
        if byte < 0x80 {
            let half = i64::try_from(number >> 1).ok()?;
            return Some(if number & 1 == 0 { half } else { !half });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_go() {
        let cases: [(&[u8], Option<i64>); 8] = [
            (&[0], Some(0)),
            (&[1], Some(-1)),
            (&[2, 9], Some(1)),
            (&[0xd8, 0x04], Some(300)),
            (&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(i64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(i64::MIN)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], None),
            (&[0x80], None),
        ];
        for (bytes, number) in cases {
            assert_eq!(varint(bytes), number, "{bytes:?}");
        }
    }
}
