//! Collations that only MariaDB has and that columns of followed tables use by name: those of the Unicode algorithm 14.0
//! (`utf8mb4_uca1400_ai_ci` is the default of MariaDB 11.8), and the orders of its types INET4, INET6 and UUID.
//!
//! ```text
//! name   := character set "_uca1400_" [language "_"] ["nopad_"] ("ai" | "as") "_" ("ci" | "cs")
//! number := MariaDB's number + 2048
//! ```
//! Their numbers here are not MariaDB's, because indexes of older versions have texts under those in another order.

use std::{collections::HashMap, sync::LazyLock};

use crate::{Collation, CollationInfo};

/// The first of MariaDB's numbers, and how many each character set has.
const BEGIN: u16 = 2048;
const OF_CHARSET: u16 = 256;
/// What is added to MariaDB's numbers.
const SHIFT: u16 = 2048;
/// The character sets whose collations are known here, in the order of their numbers.
const CHARSETS: [&str; 2] = ["utf8mb3", "utf8mb4"];
/// The languages and their places among the numbers of a character set, eight numbers each.
const LANGUAGES: [(u16, &str); 23] = [
    (0, ""),
    (1, "icelandic_"),
    (2, "latvian_"),
    (3, "romanian_"),
    (4, "slovenian_"),
    (5, "polish_"),
    (6, "estonian_"),
    (7, "spanish_"),
    (8, "swedish_"),
    (9, "turkish_"),
    (10, "czech_"),
    (11, "danish_"),
    (12, "lithuanian_"),
    (13, "slovak_"),
    (14, "spanish2_"),
    (15, "roman_"),
    (16, "persian_"),
    (17, "esperanto_"),
    (18, "hungarian_"),
    (19, "sinhala_"),
    (20, "german2_"),
    (23, "vietnamese_"),
    (24, "croatian_"),
];
/// The bits of a number that stand for NO PAD, accents and case.
const NO_PAD: u16 = 4;
const ACCENTS: u16 = 2;
const CASE: u16 = 1;

/// The collations, by number.
static UCA_1400: LazyLock<Vec<CollationInfo>> = LazyLock::new(|| {
    let begins = (BEGIN + SHIFT..).step_by(usize::from(OF_CHARSET));
    let of_charset = |(begin, charset): (u16, &'static str)| {
        let of_language = move |(place, language)| {
            (0..8).map(move |bits| info(begin + place * 8 + bits, charset, language, bits))
        };
        LANGUAGES.into_iter().flat_map(of_language)
    };
    begins.zip(CHARSETS).flat_map(of_charset).collect()
});

fn info(id: u16, charset: &'static str, language: &str, bits: u16) -> CollationInfo {
    let pads = bits & NO_PAD == 0;
    let name = format!(
        "{charset}_uca1400_{language}{}{}_{}",
        if pads { "" } else { "nopad_" },
        if bits & ACCENTS == 0 { "ai" } else { "as" },
        if bits & CASE == 0 { "ci" } else { "cs" },
    );
    // Made once for the whole process.
    let name = String::leak(name);
    CollationInfo { id, name, charset, is_default: false, sort_length: 8, pads }
}

/// The orders of types, which are no collations that a statement can name.
static OF_TYPES: [CollationInfo; 3] = [
    of_type(Collation::INET4, "inet4"),
    of_type(Collation::INET6, "inet6"),
    of_type(Collation::UUID, "uuid"),
];

const fn of_type(collation: Collation, name: &'static str) -> CollationInfo {
    let (charset, is_default) = ("utf8mb4", false);
    CollationInfo { id: collation.0, name, charset, is_default, sort_length: 1, pads: false }
}

/// The properties of the collation with this number here.
pub(crate) fn known(id: u16) -> Option<&'static CollationInfo> {
    if id < BEGIN + SHIFT {
        return None;
    }
    let at = UCA_1400.binary_search_by_key(&id, |each| each.id);
    let of_type = || OF_TYPES.iter().find(|each| each.id == id);
    at.ok().and_then(|at| UCA_1400.get(at)).or_else(of_type)
}

/// The number of the collation of this name, which is in lower case.
pub(crate) fn by_name(name: &str) -> Option<u16> {
    static BY_NAME: LazyLock<HashMap<&str, u16>> =
        LazyLock::new(|| UCA_1400.iter().map(|each| (each.name, each.id)).collect());
    name.contains("_uca1400_").then(|| BY_NAME.get(name).copied())?
}

impl Collation {
    /// The order of MariaDB's INET4, INET6 and UUID: that of their values, in which texts that are no such value follow.
    pub const INET4: Self = Self(4608);
    /// See [`Self::INET4`].
    pub const INET6: Self = Self(4609);
    /// See [`Self::INET4`].
    pub const UUID: Self = Self(4610);

    /// The number here of a collation that has this number at a source.
    #[must_use]
    pub fn of_source(number: u64) -> u64 {
        let begin = u64::from(BEGIN);
        let end = begin + u64::from(OF_CHARSET) * CHARSETS.len() as u64;
        if (begin..end).contains(&number) { number + u64::from(SHIFT) } else { number }
    }

    /// The number that clients know for it or for one with the same character set.
    #[must_use]
    pub fn known_to_clients(self) -> Self {
        match known(self.0) {
            None => self,
            Some(info) if info.charset == "utf8mb3" => Self::UTF8MB3_GENERAL_CI,
            Some(_) => Self::UTF8MB4_0900_AI_CI,
        }
    }

    /// Whether it is the order of one of MariaDB's types.
    #[must_use]
    pub fn is_of_type(self) -> bool {
        [Self::INET4, Self::INET6, Self::UUID].contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those that MariaDB 11.8 has.
    #[test]
    fn names_and_numbers_are_mariadbs() {
        for (name, number, pads) in [
            ("utf8mb3_uca1400_ai_ci", 2048, true),
            ("utf8mb4_uca1400_ai_ci", 2304, true),
            ("utf8mb4_uca1400_ai_cs", 2305, true),
            ("utf8mb4_uca1400_as_ci", 2306, true),
            ("utf8mb4_uca1400_nopad_ai_ci", 2308, false),
            ("utf8mb4_uca1400_nopad_as_cs", 2311, false),
            ("utf8mb4_uca1400_swedish_ai_ci", 2368, true),
            ("utf8mb4_uca1400_croatian_ai_ci", 2496, true),
        ] {
            let collation = Collation::by_name(name).unwrap();
            assert_eq!(u64::from(collation.0), Collation::of_source(number), "{name}");
            assert_eq!((collation.name(), collation.info().pads), (name, pads));
            assert!(collation.known_to_clients().known().is_some_and(|info| info.id < 1024));
        }
        assert_eq!(Collation::of_source(255), 255);
        assert_eq!(Collation::by_name("utf8mb4_uca1400_klingon_ai_ci"), None);
        assert_eq!(Collation::by_name("inet6"), None);
        assert_eq!(Collation::INET6.name(), "inet6");
        assert!(UCA_1400.is_sorted_by_key(|each| each.id));
    }
}
