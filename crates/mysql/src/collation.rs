//! Character sets and collations by name and number: the tables `CHARACTER_SETS` and `COLLATIONS` of
//! `information_schema` of MySQL 9.7, and the numbers that only MariaDB has.

mod uca1400;

use std::{collections::HashMap, sync::LazyLock};

use crate::Charset;

/// MariaDB's NO PAD collations have the number of the padding one plus this.
const NO_PAD: u16 = 1024;
/// The character sets that have MariaDB's collations of the Unicode algorithm 14.0, in the order of
/// their numbers: 256 each.
const UCA_1400: [&str; 5] = ["utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"];
const UCA_1400_BEGIN: u16 = 2048;

/// A collation by MySQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation(pub u16);

/// The properties of a collation.
#[derive(Clone, Copy, Debug)]
pub struct CollationInfo {
    /// MySQL's number.
    pub id: u16,
    /// Its name.
    pub name: &'static str,
    /// The character set.
    pub charset: &'static str,
    /// Whether it is the default of its character set.
    pub is_default: bool,
    /// The column Sortlen of SHOW COLLATION.
    pub sort_length: u8,
    /// Whether trailing spaces are ignored in comparisons (PAD SPACE).
    pub pads: bool,
}

/// The properties of a character set.
#[derive(Clone, Copy, Debug)]
pub struct CharsetInfo {
    /// Its name.
    pub name: &'static str,
    /// The name of its default collation.
    pub default_collation: &'static str,
    /// Its description in SHOW CHARACTER SET.
    pub description: &'static str,
    /// The length of its longest character, in bytes.
    pub max_bytes: u8,
}

impl Collation {
    /// Compares bytes.
    pub const BINARY: Self = Self(63);
    /// The default of utf8mb4.
    pub const UTF8MB4_0900_AI_CI: Self = Self(255);
    /// Compares code points; trailing spaces count.
    pub const UTF8MB4_0900_BIN: Self = Self(309);
    /// Compares code points; trailing spaces are ignored.
    pub const UTF8MB4_BIN: Self = Self(46);
    /// The default of utf8mb4 before MySQL 8.
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    /// The default of utf8mb3, the character set of identifiers.
    pub const UTF8MB3_GENERAL_CI: Self = Self(33);

    /// The collation of this name, in any case. `utf8_…` means `utf8mb3_…`.
    pub fn by_name(name: &str) -> Option<Self> {
        static BY_NAME: LazyLock<HashMap<&str, u16>> =
            LazyLock::new(|| COLLATIONS.iter().map(|each| (each.name, each.id)).collect());
        let lower = name.to_lowercase();
        let name =
            if lower.starts_with("utf8_") { lower.replacen("utf8_", "utf8mb3_", 1) } else { lower };
        let found = BY_NAME.get(name.as_str()).copied();
        found.or_else(|| uca1400::by_name(&name)).map(Self)
    }

    /// Its properties; `None` if neither MySQL has it nor `uca1400.rs` knows it.
    pub fn known(self) -> Option<&'static CollationInfo> {
        let at = COLLATIONS.binary_search_by_key(&self.0, |each| each.id);
        at.ok().and_then(|at| COLLATIONS.get(at)).or_else(|| uca1400::known(self.0))
    }

    /// Its properties; those of `binary` for an unknown number.
    pub fn info(self) -> &'static CollationInfo {
        self.known().unwrap_or(&UNKNOWN)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The name of its character set.
    pub fn charset(self) -> &'static str {
        self.info().charset
    }
}

impl CharsetInfo {
    /// The character set of this name, which is in lower case.
    pub fn named(name: &str) -> Option<&'static Self> {
        CHARSETS.iter().find(|charset| charset.name == name)
    }
}

const UNKNOWN: CollationInfo = c(63, "binary", "binary", true, 1, false);

/// The default collation of a character set, named in any case.
pub fn charset_default(name: &str) -> Option<Collation> {
    let lower = name.to_lowercase();
    let name = if lower == "utf8" { "utf8mb3" } else { lower.as_str() };
    Collation::by_name(CharsetInfo::named(name)?.default_collation)
}

/// The character set of a collation; `None` for `binary` and for unknown numbers. MariaDB's numbers
/// are from `SHOW COLLATION` of 10.11 and 11.8.
#[must_use]
pub fn charset_of_collation(id: u16) -> Option<Charset> {
    if let Some(of_uca) = id.checked_sub(UCA_1400_BEGIN) {
        return Charset::named(UCA_1400.get(usize::from(of_uca / 256))?);
    }
    let id = id.checked_sub(NO_PAD).unwrap_or(id);
    Charset::named(match id {
        255..=350 | 608..=639 => "utf8mb4",
        576..=607 => "utf8mb3",
        640..=671 => "ucs2",
        672..=703 => "utf16",
        736..=767 => "utf32",
        _ => Collation(id).known()?.charset,
    })
}

const fn c(
    id: u16,
    name: &'static str,
    charset: &'static str,
    is_default: bool,
    sort_length: u8,
    pads: bool,
) -> CollationInfo {
    CollationInfo { id, name, charset, is_default, sort_length, pads }
}

const fn s(
    name: &'static str,
    default_collation: &'static str,
    description: &'static str,
    max_bytes: u8,
) -> CharsetInfo {
    CharsetInfo { name, default_collation, description, max_bytes }
}

/// The character sets, by name.
pub static CHARSETS: &[CharsetInfo] = &[
    s("armscii8", "armscii8_general_ci", "ARMSCII-8 Armenian", 1),
    s("ascii", "ascii_general_ci", "US ASCII", 1),
    s("big5", "big5_chinese_ci", "Big5 Traditional Chinese", 2),
    s("binary", "binary", "Binary pseudo charset", 1),
    s("cp1250", "cp1250_general_ci", "Windows Central European", 1),
    s("cp1251", "cp1251_general_ci", "Windows Cyrillic", 1),
    s("cp1256", "cp1256_general_ci", "Windows Arabic", 1),
    s("cp1257", "cp1257_general_ci", "Windows Baltic", 1),
    s("cp850", "cp850_general_ci", "DOS West European", 1),
    s("cp852", "cp852_general_ci", "DOS Central European", 1),
    s("cp866", "cp866_general_ci", "DOS Russian", 1),
    s("cp932", "cp932_japanese_ci", "SJIS for Windows Japanese", 2),
    s("dec8", "dec8_swedish_ci", "DEC West European", 1),
    s("eucjpms", "eucjpms_japanese_ci", "UJIS for Windows Japanese", 3),
    s("euckr", "euckr_korean_ci", "EUC-KR Korean", 2),
    s("gb18030", "gb18030_chinese_ci", "China National Standard GB18030", 4),
    s("gb2312", "gb2312_chinese_ci", "GB2312 Simplified Chinese", 2),
    s("gbk", "gbk_chinese_ci", "GBK Simplified Chinese", 2),
    s("geostd8", "geostd8_general_ci", "GEOSTD8 Georgian", 1),
    s("greek", "greek_general_ci", "ISO 8859-7 Greek", 1),
    s("hebrew", "hebrew_general_ci", "ISO 8859-8 Hebrew", 1),
    s("hp8", "hp8_english_ci", "HP West European", 1),
    s("keybcs2", "keybcs2_general_ci", "DOS Kamenicky Czech-Slovak", 1),
    s("koi8r", "koi8r_general_ci", "KOI8-R Relcom Russian", 1),
    s("koi8u", "koi8u_general_ci", "KOI8-U Ukrainian", 1),
    s("latin1", "latin1_swedish_ci", "cp1252 West European", 1),
    s("latin2", "latin2_general_ci", "ISO 8859-2 Central European", 1),
    s("latin5", "latin5_turkish_ci", "ISO 8859-9 Turkish", 1),
    s("latin7", "latin7_general_ci", "ISO 8859-13 Baltic", 1),
    s("macce", "macce_general_ci", "Mac Central European", 1),
    s("macroman", "macroman_general_ci", "Mac West European", 1),
    s("sjis", "sjis_japanese_ci", "Shift-JIS Japanese", 2),
    s("swe7", "swe7_swedish_ci", "7bit Swedish", 1),
    s("tis620", "tis620_thai_ci", "TIS620 Thai", 1),
    s("ucs2", "ucs2_general_ci", "UCS-2 Unicode", 2),
    s("ujis", "ujis_japanese_ci", "EUC-JP Japanese", 3),
    s("utf16", "utf16_general_ci", "UTF-16 Unicode", 4),
    s("utf16le", "utf16le_general_ci", "UTF-16LE Unicode", 4),
    s("utf32", "utf32_general_ci", "UTF-32 Unicode", 4),
    s("utf8mb3", "utf8mb3_general_ci", "UTF-8 Unicode", 3),
    s("utf8mb4", "utf8mb4_0900_ai_ci", "UTF-8 Unicode", 4),
];

/// The collations, by number.
pub static COLLATIONS: &[CollationInfo] = &[
    c(1, "big5_chinese_ci", "big5", true, 1, true),
    c(2, "latin2_czech_cs", "latin2", false, 4, true),
    c(3, "dec8_swedish_ci", "dec8", true, 1, true),
    c(4, "cp850_general_ci", "cp850", true, 1, true),
    c(5, "latin1_german1_ci", "latin1", false, 1, true),
    c(6, "hp8_english_ci", "hp8", true, 1, true),
    c(7, "koi8r_general_ci", "koi8r", true, 1, true),
    c(8, "latin1_swedish_ci", "latin1", true, 1, true),
    c(9, "latin2_general_ci", "latin2", true, 1, true),
    c(10, "swe7_swedish_ci", "swe7", true, 1, true),
    c(11, "ascii_general_ci", "ascii", true, 1, true),
    c(12, "ujis_japanese_ci", "ujis", true, 1, true),
    c(13, "sjis_japanese_ci", "sjis", true, 1, true),
    c(14, "cp1251_bulgarian_ci", "cp1251", false, 1, true),
    c(15, "latin1_danish_ci", "latin1", false, 1, true),
    c(16, "hebrew_general_ci", "hebrew", true, 1, true),
    c(18, "tis620_thai_ci", "tis620", true, 4, true),
    c(19, "euckr_korean_ci", "euckr", true, 1, true),
    c(20, "latin7_estonian_cs", "latin7", false, 1, true),
    c(21, "latin2_hungarian_ci", "latin2", false, 1, true),
    c(22, "koi8u_general_ci", "koi8u", true, 1, true),
    c(23, "cp1251_ukrainian_ci", "cp1251", false, 1, true),
    c(24, "gb2312_chinese_ci", "gb2312", true, 1, true),
    c(25, "greek_general_ci", "greek", true, 1, true),
    c(26, "cp1250_general_ci", "cp1250", true, 1, true),
    c(27, "latin2_croatian_ci", "latin2", false, 1, true),
    c(28, "gbk_chinese_ci", "gbk", true, 1, true),
    c(29, "cp1257_lithuanian_ci", "cp1257", false, 1, true),
    c(30, "latin5_turkish_ci", "latin5", true, 1, true),
    c(31, "latin1_german2_ci", "latin1", false, 2, true),
    c(32, "armscii8_general_ci", "armscii8", true, 1, true),
    c(33, "utf8mb3_general_ci", "utf8mb3", true, 1, true),
    c(34, "cp1250_czech_cs", "cp1250", false, 2, true),
    c(35, "ucs2_general_ci", "ucs2", true, 1, true),
    c(36, "cp866_general_ci", "cp866", true, 1, true),
    c(37, "keybcs2_general_ci", "keybcs2", true, 1, true),
    c(38, "macce_general_ci", "macce", true, 1, true),
    c(39, "macroman_general_ci", "macroman", true, 1, true),
    c(40, "cp852_general_ci", "cp852", true, 1, true),
    c(41, "latin7_general_ci", "latin7", true, 1, true),
    c(42, "latin7_general_cs", "latin7", false, 1, true),
    c(43, "macce_bin", "macce", false, 1, true),
    c(44, "cp1250_croatian_ci", "cp1250", false, 1, true),
    c(45, "utf8mb4_general_ci", "utf8mb4", false, 1, true),
    c(46, "utf8mb4_bin", "utf8mb4", false, 1, true),
    c(47, "latin1_bin", "latin1", false, 1, true),
    c(48, "latin1_general_ci", "latin1", false, 1, true),
    c(49, "latin1_general_cs", "latin1", false, 1, true),
    c(50, "cp1251_bin", "cp1251", false, 1, true),
    c(51, "cp1251_general_ci", "cp1251", true, 1, true),
    c(52, "cp1251_general_cs", "cp1251", false, 1, true),
    c(53, "macroman_bin", "macroman", false, 1, true),
    c(54, "utf16_general_ci", "utf16", true, 1, true),
    c(55, "utf16_bin", "utf16", false, 1, true),
    c(56, "utf16le_general_ci", "utf16le", true, 1, true),
    c(57, "cp1256_general_ci", "cp1256", true, 1, true),
    c(58, "cp1257_bin", "cp1257", false, 1, true),
    c(59, "cp1257_general_ci", "cp1257", true, 1, true),
    c(60, "utf32_general_ci", "utf32", true, 1, true),
    c(61, "utf32_bin", "utf32", false, 1, true),
    c(62, "utf16le_bin", "utf16le", false, 1, true),
    c(63, "binary", "binary", true, 1, false),
    c(64, "armscii8_bin", "armscii8", false, 1, true),
    c(65, "ascii_bin", "ascii", false, 1, true),
    c(66, "cp1250_bin", "cp1250", false, 1, true),
    c(67, "cp1256_bin", "cp1256", false, 1, true),
    c(68, "cp866_bin", "cp866", false, 1, true),
    c(69, "dec8_bin", "dec8", false, 1, true),
    c(70, "greek_bin", "greek", false, 1, true),
    c(71, "hebrew_bin", "hebrew", false, 1, true),
    c(72, "hp8_bin", "hp8", false, 1, true),
    c(73, "keybcs2_bin", "keybcs2", false, 1, true),
    c(74, "koi8r_bin", "koi8r", false, 1, true),
    c(75, "koi8u_bin", "koi8u", false, 1, true),
    c(76, "utf8mb3_tolower_ci", "utf8mb3", false, 1, true),
    c(77, "latin2_bin", "latin2", false, 1, true),
    c(78, "latin5_bin", "latin5", false, 1, true),
    c(79, "latin7_bin", "latin7", false, 1, true),
    c(80, "cp850_bin", "cp850", false, 1, true),
    c(81, "cp852_bin", "cp852", false, 1, true),
    c(82, "swe7_bin", "swe7", false, 1, true),
    c(83, "utf8mb3_bin", "utf8mb3", false, 1, true),
    c(84, "big5_bin", "big5", false, 1, true),
    c(85, "euckr_bin", "euckr", false, 1, true),
    c(86, "gb2312_bin", "gb2312", false, 1, true),
    c(87, "gbk_bin", "gbk", false, 1, true),
    c(88, "sjis_bin", "sjis", false, 1, true),
    c(89, "tis620_bin", "tis620", false, 1, true),
    c(90, "ucs2_bin", "ucs2", false, 1, true),
    c(91, "ujis_bin", "ujis", false, 1, true),
    c(92, "geostd8_general_ci", "geostd8", true, 1, true),
    c(93, "geostd8_bin", "geostd8", false, 1, true),
    c(94, "latin1_spanish_ci", "latin1", false, 1, true),
    c(95, "cp932_japanese_ci", "cp932", true, 1, true),
    c(96, "cp932_bin", "cp932", false, 1, true),
    c(97, "eucjpms_japanese_ci", "eucjpms", true, 1, true),
    c(98, "eucjpms_bin", "eucjpms", false, 1, true),
    c(99, "cp1250_polish_ci", "cp1250", false, 1, true),
    c(101, "utf16_unicode_ci", "utf16", false, 8, true),
    c(102, "utf16_icelandic_ci", "utf16", false, 8, true),
    c(103, "utf16_latvian_ci", "utf16", false, 8, true),
    c(104, "utf16_romanian_ci", "utf16", false, 8, true),
    c(105, "utf16_slovenian_ci", "utf16", false, 8, true),
    c(106, "utf16_polish_ci", "utf16", false, 8, true),
    c(107, "utf16_estonian_ci", "utf16", false, 8, true),
    c(108, "utf16_spanish_ci", "utf16", false, 8, true),
    c(109, "utf16_swedish_ci", "utf16", false, 8, true),
    c(110, "utf16_turkish_ci", "utf16", false, 8, true),
    c(111, "utf16_czech_ci", "utf16", false, 8, true),
    c(112, "utf16_danish_ci", "utf16", false, 8, true),
    c(113, "utf16_lithuanian_ci", "utf16", false, 8, true),
    c(114, "utf16_slovak_ci", "utf16", false, 8, true),
    c(115, "utf16_spanish2_ci", "utf16", false, 8, true),
    c(116, "utf16_roman_ci", "utf16", false, 8, true),
    c(117, "utf16_persian_ci", "utf16", false, 8, true),
    c(118, "utf16_esperanto_ci", "utf16", false, 8, true),
    c(119, "utf16_hungarian_ci", "utf16", false, 8, true),
    c(120, "utf16_sinhala_ci", "utf16", false, 8, true),
    c(121, "utf16_german2_ci", "utf16", false, 8, true),
    c(122, "utf16_croatian_ci", "utf16", false, 8, true),
    c(123, "utf16_unicode_520_ci", "utf16", false, 8, true),
    c(124, "utf16_vietnamese_ci", "utf16", false, 8, true),
    c(128, "ucs2_unicode_ci", "ucs2", false, 8, true),
    c(129, "ucs2_icelandic_ci", "ucs2", false, 8, true),
    c(130, "ucs2_latvian_ci", "ucs2", false, 8, true),
    c(131, "ucs2_romanian_ci", "ucs2", false, 8, true),
    c(132, "ucs2_slovenian_ci", "ucs2", false, 8, true),
    c(133, "ucs2_polish_ci", "ucs2", false, 8, true),
    c(134, "ucs2_estonian_ci", "ucs2", false, 8, true),
    c(135, "ucs2_spanish_ci", "ucs2", false, 8, true),
    c(136, "ucs2_swedish_ci", "ucs2", false, 8, true),
    c(137, "ucs2_turkish_ci", "ucs2", false, 8, true),
    c(138, "ucs2_czech_ci", "ucs2", false, 8, true),
    c(139, "ucs2_danish_ci", "ucs2", false, 8, true),
    c(140, "ucs2_lithuanian_ci", "ucs2", false, 8, true),
    c(141, "ucs2_slovak_ci", "ucs2", false, 8, true),
    c(142, "ucs2_spanish2_ci", "ucs2", false, 8, true),
    c(143, "ucs2_roman_ci", "ucs2", false, 8, true),
    c(144, "ucs2_persian_ci", "ucs2", false, 8, true),
    c(145, "ucs2_esperanto_ci", "ucs2", false, 8, true),
    c(146, "ucs2_hungarian_ci", "ucs2", false, 8, true),
    c(147, "ucs2_sinhala_ci", "ucs2", false, 8, true),
    c(148, "ucs2_german2_ci", "ucs2", false, 8, true),
    c(149, "ucs2_croatian_ci", "ucs2", false, 8, true),
    c(150, "ucs2_unicode_520_ci", "ucs2", false, 8, true),
    c(151, "ucs2_vietnamese_ci", "ucs2", false, 8, true),
    c(159, "ucs2_general_mysql500_ci", "ucs2", false, 1, true),
    c(160, "utf32_unicode_ci", "utf32", false, 8, true),
    c(161, "utf32_icelandic_ci", "utf32", false, 8, true),
    c(162, "utf32_latvian_ci", "utf32", false, 8, true),
    c(163, "utf32_romanian_ci", "utf32", false, 8, true),
    c(164, "utf32_slovenian_ci", "utf32", false, 8, true),
    c(165, "utf32_polish_ci", "utf32", false, 8, true),
    c(166, "utf32_estonian_ci", "utf32", false, 8, true),
    c(167, "utf32_spanish_ci", "utf32", false, 8, true),
    c(168, "utf32_swedish_ci", "utf32", false, 8, true),
    c(169, "utf32_turkish_ci", "utf32", false, 8, true),
    c(170, "utf32_czech_ci", "utf32", false, 8, true),
    c(171, "utf32_danish_ci", "utf32", false, 8, true),
    c(172, "utf32_lithuanian_ci", "utf32", false, 8, true),
    c(173, "utf32_slovak_ci", "utf32", false, 8, true),
    c(174, "utf32_spanish2_ci", "utf32", false, 8, true),
    c(175, "utf32_roman_ci", "utf32", false, 8, true),
    c(176, "utf32_persian_ci", "utf32", false, 8, true),
    c(177, "utf32_esperanto_ci", "utf32", false, 8, true),
    c(178, "utf32_hungarian_ci", "utf32", false, 8, true),
    c(179, "utf32_sinhala_ci", "utf32", false, 8, true),
    c(180, "utf32_german2_ci", "utf32", false, 8, true),
    c(181, "utf32_croatian_ci", "utf32", false, 8, true),
    c(182, "utf32_unicode_520_ci", "utf32", false, 8, true),
    c(183, "utf32_vietnamese_ci", "utf32", false, 8, true),
    c(192, "utf8mb3_unicode_ci", "utf8mb3", false, 8, true),
    c(193, "utf8mb3_icelandic_ci", "utf8mb3", false, 8, true),
    c(194, "utf8mb3_latvian_ci", "utf8mb3", false, 8, true),
    c(195, "utf8mb3_romanian_ci", "utf8mb3", false, 8, true),
    c(196, "utf8mb3_slovenian_ci", "utf8mb3", false, 8, true),
    c(197, "utf8mb3_polish_ci", "utf8mb3", false, 8, true),
    c(198, "utf8mb3_estonian_ci", "utf8mb3", false, 8, true),
    c(199, "utf8mb3_spanish_ci", "utf8mb3", false, 8, true),
    c(200, "utf8mb3_swedish_ci", "utf8mb3", false, 8, true),
    c(201, "utf8mb3_turkish_ci", "utf8mb3", false, 8, true),
    c(202, "utf8mb3_czech_ci", "utf8mb3", false, 8, true),
    c(203, "utf8mb3_danish_ci", "utf8mb3", false, 8, true),
    c(204, "utf8mb3_lithuanian_ci", "utf8mb3", false, 8, true),
    c(205, "utf8mb3_slovak_ci", "utf8mb3", false, 8, true),
    c(206, "utf8mb3_spanish2_ci", "utf8mb3", false, 8, true),
    c(207, "utf8mb3_roman_ci", "utf8mb3", false, 8, true),
    c(208, "utf8mb3_persian_ci", "utf8mb3", false, 8, true),
    c(209, "utf8mb3_esperanto_ci", "utf8mb3", false, 8, true),
    c(210, "utf8mb3_hungarian_ci", "utf8mb3", false, 8, true),
    c(211, "utf8mb3_sinhala_ci", "utf8mb3", false, 8, true),
    c(212, "utf8mb3_german2_ci", "utf8mb3", false, 8, true),
    c(213, "utf8mb3_croatian_ci", "utf8mb3", false, 8, true),
    c(214, "utf8mb3_unicode_520_ci", "utf8mb3", false, 8, true),
    c(215, "utf8mb3_vietnamese_ci", "utf8mb3", false, 8, true),
    c(223, "utf8mb3_general_mysql500_ci", "utf8mb3", false, 1, true),
    c(224, "utf8mb4_unicode_ci", "utf8mb4", false, 8, true),
    c(225, "utf8mb4_icelandic_ci", "utf8mb4", false, 8, true),
    c(226, "utf8mb4_latvian_ci", "utf8mb4", false, 8, true),
    c(227, "utf8mb4_romanian_ci", "utf8mb4", false, 8, true),
    c(228, "utf8mb4_slovenian_ci", "utf8mb4", false, 8, true),
    c(229, "utf8mb4_polish_ci", "utf8mb4", false, 8, true),
    c(230, "utf8mb4_estonian_ci", "utf8mb4", false, 8, true),
    c(231, "utf8mb4_spanish_ci", "utf8mb4", false, 8, true),
    c(232, "utf8mb4_swedish_ci", "utf8mb4", false, 8, true),
    c(233, "utf8mb4_turkish_ci", "utf8mb4", false, 8, true),
    c(234, "utf8mb4_czech_ci", "utf8mb4", false, 8, true),
    c(235, "utf8mb4_danish_ci", "utf8mb4", false, 8, true),
    c(236, "utf8mb4_lithuanian_ci", "utf8mb4", false, 8, true),
    c(237, "utf8mb4_slovak_ci", "utf8mb4", false, 8, true),
    c(238, "utf8mb4_spanish2_ci", "utf8mb4", false, 8, true),
    c(239, "utf8mb4_roman_ci", "utf8mb4", false, 8, true),
    c(240, "utf8mb4_persian_ci", "utf8mb4", false, 8, true),
    c(241, "utf8mb4_esperanto_ci", "utf8mb4", false, 8, true),
    c(242, "utf8mb4_hungarian_ci", "utf8mb4", false, 8, true),
    c(243, "utf8mb4_sinhala_ci", "utf8mb4", false, 8, true),
    c(244, "utf8mb4_german2_ci", "utf8mb4", false, 8, true),
    c(245, "utf8mb4_croatian_ci", "utf8mb4", false, 8, true),
    c(246, "utf8mb4_unicode_520_ci", "utf8mb4", false, 8, true),
    c(247, "utf8mb4_vietnamese_ci", "utf8mb4", false, 8, true),
    c(248, "gb18030_chinese_ci", "gb18030", true, 2, true),
    c(249, "gb18030_bin", "gb18030", false, 1, true),
    c(250, "gb18030_unicode_520_ci", "gb18030", false, 8, true),
    c(255, "utf8mb4_0900_ai_ci", "utf8mb4", true, 0, false),
    c(256, "utf8mb4_de_pb_0900_ai_ci", "utf8mb4", false, 0, false),
    c(257, "utf8mb4_is_0900_ai_ci", "utf8mb4", false, 0, false),
    c(258, "utf8mb4_lv_0900_ai_ci", "utf8mb4", false, 0, false),
    c(259, "utf8mb4_ro_0900_ai_ci", "utf8mb4", false, 0, false),
    c(260, "utf8mb4_sl_0900_ai_ci", "utf8mb4", false, 0, false),
    c(261, "utf8mb4_pl_0900_ai_ci", "utf8mb4", false, 0, false),
    c(262, "utf8mb4_et_0900_ai_ci", "utf8mb4", false, 0, false),
    c(263, "utf8mb4_es_0900_ai_ci", "utf8mb4", false, 0, false),
    c(264, "utf8mb4_sv_0900_ai_ci", "utf8mb4", false, 0, false),
    c(265, "utf8mb4_tr_0900_ai_ci", "utf8mb4", false, 0, false),
    c(266, "utf8mb4_cs_0900_ai_ci", "utf8mb4", false, 0, false),
    c(267, "utf8mb4_da_0900_ai_ci", "utf8mb4", false, 0, false),
    c(268, "utf8mb4_lt_0900_ai_ci", "utf8mb4", false, 0, false),
    c(269, "utf8mb4_sk_0900_ai_ci", "utf8mb4", false, 0, false),
    c(270, "utf8mb4_es_trad_0900_ai_ci", "utf8mb4", false, 0, false),
    c(271, "utf8mb4_la_0900_ai_ci", "utf8mb4", false, 0, false),
    c(273, "utf8mb4_eo_0900_ai_ci", "utf8mb4", false, 0, false),
    c(274, "utf8mb4_hu_0900_ai_ci", "utf8mb4", false, 0, false),
    c(275, "utf8mb4_hr_0900_ai_ci", "utf8mb4", false, 0, false),
    c(277, "utf8mb4_vi_0900_ai_ci", "utf8mb4", false, 0, false),
    c(278, "utf8mb4_0900_as_cs", "utf8mb4", false, 0, false),
    c(279, "utf8mb4_de_pb_0900_as_cs", "utf8mb4", false, 0, false),
    c(280, "utf8mb4_is_0900_as_cs", "utf8mb4", false, 0, false),
    c(281, "utf8mb4_lv_0900_as_cs", "utf8mb4", false, 0, false),
    c(282, "utf8mb4_ro_0900_as_cs", "utf8mb4", false, 0, false),
    c(283, "utf8mb4_sl_0900_as_cs", "utf8mb4", false, 0, false),
    c(284, "utf8mb4_pl_0900_as_cs", "utf8mb4", false, 0, false),
    c(285, "utf8mb4_et_0900_as_cs", "utf8mb4", false, 0, false),
    c(286, "utf8mb4_es_0900_as_cs", "utf8mb4", false, 0, false),
    c(287, "utf8mb4_sv_0900_as_cs", "utf8mb4", false, 0, false),
    c(288, "utf8mb4_tr_0900_as_cs", "utf8mb4", false, 0, false),
    c(289, "utf8mb4_cs_0900_as_cs", "utf8mb4", false, 0, false),
    c(290, "utf8mb4_da_0900_as_cs", "utf8mb4", false, 0, false),
    c(291, "utf8mb4_lt_0900_as_cs", "utf8mb4", false, 0, false),
    c(292, "utf8mb4_sk_0900_as_cs", "utf8mb4", false, 0, false),
    c(293, "utf8mb4_es_trad_0900_as_cs", "utf8mb4", false, 0, false),
    c(294, "utf8mb4_la_0900_as_cs", "utf8mb4", false, 0, false),
    c(296, "utf8mb4_eo_0900_as_cs", "utf8mb4", false, 0, false),
    c(297, "utf8mb4_hu_0900_as_cs", "utf8mb4", false, 0, false),
    c(298, "utf8mb4_hr_0900_as_cs", "utf8mb4", false, 0, false),
    c(300, "utf8mb4_vi_0900_as_cs", "utf8mb4", false, 0, false),
    c(303, "utf8mb4_ja_0900_as_cs", "utf8mb4", false, 0, false),
    c(304, "utf8mb4_ja_0900_as_cs_ks", "utf8mb4", false, 24, false),
    c(305, "utf8mb4_0900_as_ci", "utf8mb4", false, 0, false),
    c(306, "utf8mb4_ru_0900_ai_ci", "utf8mb4", false, 0, false),
    c(307, "utf8mb4_ru_0900_as_cs", "utf8mb4", false, 0, false),
    c(308, "utf8mb4_zh_0900_as_cs", "utf8mb4", false, 0, false),
    c(309, "utf8mb4_0900_bin", "utf8mb4", false, 1, false),
    c(310, "utf8mb4_nb_0900_ai_ci", "utf8mb4", false, 0, false),
    c(311, "utf8mb4_nb_0900_as_cs", "utf8mb4", false, 0, false),
    c(312, "utf8mb4_nn_0900_ai_ci", "utf8mb4", false, 0, false),
    c(313, "utf8mb4_nn_0900_as_cs", "utf8mb4", false, 0, false),
    c(314, "utf8mb4_sr_latn_0900_ai_ci", "utf8mb4", false, 0, false),
    c(315, "utf8mb4_sr_latn_0900_as_cs", "utf8mb4", false, 0, false),
    c(316, "utf8mb4_bs_0900_ai_ci", "utf8mb4", false, 0, false),
    c(317, "utf8mb4_bs_0900_as_cs", "utf8mb4", false, 0, false),
    c(318, "utf8mb4_bg_0900_ai_ci", "utf8mb4", false, 0, false),
    c(319, "utf8mb4_bg_0900_as_cs", "utf8mb4", false, 0, false),
    c(320, "utf8mb4_gl_0900_ai_ci", "utf8mb4", false, 0, false),
    c(321, "utf8mb4_gl_0900_as_cs", "utf8mb4", false, 0, false),
    c(322, "utf8mb4_mn_cyrl_0900_ai_ci", "utf8mb4", false, 0, false),
    c(323, "utf8mb4_mn_cyrl_0900_as_cs", "utf8mb4", false, 0, false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collation_is_of_a_known_character_set() {
        for one in COLLATIONS.iter().filter(|one| one.name != "binary") {
            let charset = charset_of_collation(one.id).map(|charset| charset.name());
            assert_eq!(charset, Some(one.charset), "{}", one.name);
            assert!(CharsetInfo::named(one.charset).is_some(), "{}", one.name);
        }
        let named = |id| charset_of_collation(id).map(|charset| charset.name());
        assert_eq!((named(0), named(63), named(9999)), (None, None, None));
        assert_eq!((named(8), named(576)), (Some("latin1"), Some("utf8mb3")));
        assert_eq!((named(1069), named(2304)), (Some("utf8mb4"), Some("utf8mb4")));
    }
}
