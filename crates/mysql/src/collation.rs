//! The character sets of collations, by the numbers that MySQL and MariaDB give them.

use crate::Charset;

/// MariaDB adds this to the number of a collation for the one that compares trailing spaces too.
const NO_PAD: u16 = 1024;
/// MariaDB's collations of the Unicode algorithm of version 14, 256 for each character set.
const UCA_1400: [&str; 5] = ["utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"];
const UCA_1400_BEGIN: u16 = 2048;

/// The character set of a collation; `None` of `binary` and of a number that nobody gave.
///
/// From `SHOW COLLATION` of MySQL 5.6 and 9.7, and of MariaDB 10.11 and 11.8.
#[must_use]
pub fn charset_of_collation(id: u16) -> Option<Charset> {
    Charset::named(name(id)?)
}

fn name(id: u16) -> Option<&'static str> {
    if let Some(of_uca) = id.checked_sub(UCA_1400_BEGIN) {
        return UCA_1400.get(usize::from(of_uca / 256)).copied();
    }
    let id = id.checked_sub(NO_PAD).unwrap_or(id);
    Some(match id {
        1 | 84 => "big5",
        2 | 9 | 21 | 27 | 77 => "latin2",
        3 | 69 => "dec8",
        4 | 80 => "cp850",
        5 | 8 | 15 | 31 | 47..=49 | 94 => "latin1",
        6 | 72 => "hp8",
        7 | 74 => "koi8r",
        10 | 82 => "swe7",
        11 | 65 => "ascii",
        12 | 91 => "ujis",
        13 | 88 => "sjis",
        14 | 23 | 50..=52 => "cp1251",
        16 | 71 => "hebrew",
        18 | 89 => "tis620",
        19 | 85 => "euckr",
        20 | 41 | 42 | 79 => "latin7",
        22 | 75 => "koi8u",
        24 | 86 => "gb2312",
        25 | 70 => "greek",
        26 | 34 | 44 | 66 | 99 => "cp1250",
        28 | 87 => "gbk",
        29 | 58 | 59 => "cp1257",
        30 | 78 => "latin5",
        32 | 64 => "armscii8",
        33 | 76 | 83 | 192..=215 | 223 | 576..=607 => "utf8mb3",
        35 | 90 | 128..=151 | 159 | 640..=671 => "ucs2",
        36 | 68 => "cp866",
        37 | 73 => "keybcs2",
        38 | 43 => "macce",
        39 | 53 => "macroman",
        40 | 81 => "cp852",
        45 | 46 | 224..=247 | 255..=350 | 608..=639 => "utf8mb4",
        54 | 55 | 101..=124 | 672..=703 => "utf16",
        56 | 62 => "utf16le",
        57 | 67 => "cp1256",
        60 | 61 | 160..=183 | 736..=767 => "utf32",
        92 | 93 => "geostd8",
        95 | 96 => "cp932",
        97 | 98 => "eucjpms",
        248..=250 => "gb18030",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collation_that_has_a_number_here_is_of_a_known_character_set() {
        let known = (0..4096).filter(|&id| name(id).is_some());
        for id in known {
            assert!(charset_of_collation(id).is_some(), "{id}: {:?}", name(id));
        }
        assert_eq!(charset_of_collation(63), None);
        assert_eq!(charset_of_collation(8).map(|one| one.name()), Some("latin1"));
        assert_eq!(charset_of_collation(1069).map(|one| one.name()), Some("utf8mb4"));
        assert_eq!(charset_of_collation(2304).map(|one| one.name()), Some("utf8mb4"));
    }
}
