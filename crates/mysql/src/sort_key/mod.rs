//! Sort keys of texts: their bytes compare as a collation compares the texts.
//!
//! ```
//! use remora_mysql::{Collation, sort_key::{equal, key}};
//!
//! let collation = Collation::UTF8MB4_0900_AI_CI;
//! assert!(equal("Straße", "STRASSE", collation));
//! assert!(key("a", collation) < key("B", collation));
//! ```

mod ascii;
mod of_type;
mod table;

use std::{borrow::Cow, ops::Bound, sync::LazyLock};

pub use self::ascii::{AsciiLetters, ascii_letters, equal};
use crate::Collation;
use of_type::Type;
use table::{GENERAL, Table, UCA_4, UCA_9};

/// How a collation compares texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// By bytes.
    Bytes,
    /// By code points, ignoring trailing spaces.
    PaddedBytes,
    /// By letters without case and accents, with MySQL's simple table.
    General,
    /// Unicode collation algorithm, version 4.
    Unicode4,
    /// Unicode collation algorithm, version 9.
    Unicode9(Levels),
    /// By the values of a type that is stored as text.
    Value(Type),
}

/// What counts beside letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Levels {
    accents: bool,
    case: bool,
    /// Whether trailing spaces are ignored.
    pads: bool,
}

impl Levels {
    const LETTERS: Self = Self { accents: false, case: false, pads: false };

    /// Whether letters alone count.
    fn is_letters(self) -> bool {
        !(self.accents || self.case)
    }
}

/// All collation numbers are below this.
const NUMBERS: u16 = 8_192;

fn kind(collation: Collation) -> Kind {
    // Looking up the name would cost more than making a short key.
    static KINDS: LazyLock<Vec<Kind>> =
        LazyLock::new(|| (0..NUMBERS).map(|number| kind_by_name(Collation(number))).collect());
    KINDS.get(usize::from(collation.0)).copied().unwrap_or_else(|| kind_by_name(collation))
}

fn kind_by_name(collation: Collation) -> Kind {
    let name = collation.name();
    match collation {
        Collation::BINARY | Collation::UTF8MB4_0900_BIN => return Kind::Bytes,
        Collation::UTF8MB4_0900_AI_CI => return Kind::Unicode9(Levels::LETTERS),
        Collation::UTF8MB4_BIN => return Kind::PaddedBytes,
        Collation::UTF8MB4_GENERAL_CI | Collation::UTF8MB3_GENERAL_CI => return Kind::General,
        Collation::INET4 => return Kind::Value(Type::Inet4),
        Collation::INET6 => return Kind::Value(Type::Inet6),
        Collation::UUID => return Kind::Value(Type::Uuid),
        _ => {}
    }
    if name.contains("0900") || name.contains("_uca1400_") {
        // Those of MariaDB have weights of a later version, which differ in newer letters.
        let name = name.trim_end_matches("_ks");
        let accents = name.ends_with("_as_ci") || name.ends_with("_as_cs");
        let (case, pads) = (name.ends_with("_cs"), collation.info().pads);
        Kind::Unicode9(Levels { accents, case, pads })
    } else if name.ends_with("_bin") || name.ends_with("_cs") {
        Kind::PaddedBytes
    } else if name.contains("_general_") || name.contains("_swedish_") || name.starts_with("ascii")
    {
        Kind::General
    } else {
        Kind::Unicode4
    }
}

/// Whether texts compare by their bytes.
#[inline]
pub fn is_bytes(collation: Collation) -> bool {
    kind(collation) == Kind::Bytes
}

/// The sort key of a text.
pub fn key(text: &str, collation: Collation) -> Cow<'_, [u8]> {
    match kind(collation) {
        Kind::Bytes => Cow::Borrowed(text.as_bytes()),
        Kind::PaddedBytes => Cow::Owned(padded_key(text)),
        Kind::Unicode9(counted) if !counted.is_letters() => Cow::Owned(levels(text, counted)),
        Kind::Value(kind) => Cow::Owned(kind.key(text)),
        Kind::General | Kind::Unicode4 | Kind::Unicode9(_) => {
            let mut key = Vec::with_capacity(text.len() * 2 + 2);
            push_key(text, collation, &mut key);
            Cow::Owned(key)
        }
    }
}

/// Appends the sort key of a text.
pub fn push_key(text: &str, collation: Collation, out: &mut Vec<u8>) {
    match kind(collation) {
        Kind::General => push_weights(without_padding(text), &GENERAL, 0x20, out),
        Kind::Unicode4 => push_weights(without_padding(text), &UCA_4, UCA_4.space(), out),
        Kind::Unicode9(Levels { accents: false, case: false, pads }) => match pads {
            true => push_weights(without_padding(text), &UCA_9, UCA_9.space(), out),
            false => push_weights(text, &UCA_9, 0, out),
        },
        _ => out.extend_from_slice(&key(text, collation)),
    }
}

/// The common prefix of the sort keys of all texts that start with these letters, in any spelling.
pub fn beginning_key(letters: &str, collation: Collation) -> Vec<u8> {
    let table = match kind(collation) {
        Kind::Bytes => return letters.as_bytes().to_vec(),
        Kind::PaddedBytes => return without_padding(letters).as_bytes().to_vec(),
        Kind::General => &GENERAL,
        Kind::Unicode4 => &UCA_4,
        Kind::Unicode9(_) => &UCA_9,
        // The order of values has nothing to do with how their texts begin.
        Kind::Value(_) => return Vec::new(),
    };
    weights(without_padding(letters), table)
}

/// The upper bound of keys with a prefix.
pub fn end_of(beginning: &[u8]) -> Bound<Vec<u8>> {
    let mut end = beginning.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

fn without_padding(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// The key of a text as if it were padded with infinitely many spaces: characters below the space
/// sort before its end.
fn padded_key(text: &str) -> Vec<u8> {
    let mut key = without_padding(text).as_bytes().to_vec();
    key.push(b' ');
    key
}

/// The weights of a text, two bytes each.
fn weights(text: &str, table: &Table) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() * 2 + 2);
    push_weights(text, table, 0, &mut key);
    key
}

/// Appends weights. If trailing spaces are ignored, `pad` is the weight that ends the key.
fn push_weights(text: &str, table: &Table, pad: u16, key: &mut Vec<u8>) {
    table.push_all(text, key);
    if pad > 0 {
        key.extend_from_slice(&pad.to_be_bytes());
    }
}

/// All weights of letters, then those of accents, then those of case, as far as they count.
fn levels(text: &str, counted: Levels) -> Vec<u8> {
    let text = if counted.pads { without_padding(text) } else { text };
    let mut key = Vec::with_capacity(text.len() * 3 + 4);
    push_weights(text, &UCA_9, if counted.pads { UCA_9.space() } else { 0 }, &mut key);
    key.extend_from_slice(&[0, 0]);
    if counted.accents {
        push_accents(text, &mut key);
    }
    if counted.case {
        let canonical = icu_normalizer::DecomposingNormalizerBorrowed::new_nfd();
        let text = canonical.normalize(text);
        let letters = text.chars().filter(|letter| counted.accents || !UCA_9.is_ignored(*letter));
        key.push(0);
        key.extend(letters.map(|letter| if letter.is_uppercase() { 2 } else { 1 }));
        key.push(0);
        if counted.accents {
            key.extend_from_slice(text.as_bytes());
        }
    }
    key
}

/// Appends what tells letters with accents apart.
fn push_accents(text: &str, key: &mut Vec<u8>) {
    let compatible = icu_normalizer::DecomposingNormalizerBorrowed::new_nfkd();
    for letter in compatible.normalize(text).chars().flat_map(char::to_lowercase) {
        // Hiragana and Katakana are one letter in two forms, as lower and upper case are.
        if letter.is_ascii() || ('\u{3040}'..='\u{30ff}').contains(&letter) {
            key.push(1);
            continue;
        }
        let letter = if letter == 'ς' { 'σ' } else { letter };
        let mut bytes = [0; 4];
        key.push(if UCA_9.is_ignored(letter) { 2 } else { 3 });
        key.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
    }
}

/// Whether the keys of two texts are equal.
fn equal_keys(a: &str, b: &str, collation: Collation) -> bool {
    key(a, collation) == key(b, collation)
}

/// The sort key of a single character, as LIKE, REPLACE and LOCATE compare.
pub fn letter_key(letter: char, collation: Collation) -> Vec<u8> {
    let mut bytes = [0; 4];
    let text: &str = letter.encode_utf8(&mut bytes);
    match kind(collation) {
        Kind::Bytes | Kind::PaddedBytes => text.as_bytes().to_vec(),
        Kind::General => weights(text, &GENERAL),
        Kind::Unicode4 => weights(text, &UCA_4),
        Kind::Unicode9(counted) if !counted.is_letters() => {
            levels(text, Levels { pads: false, ..counted })
        }
        Kind::Unicode9(_) | Kind::Value(_) => weights(text, &UCA_9),
    }
}

/// Whether each character equals only itself.
#[inline]
pub fn is_exact(collation: Collation) -> bool {
    matches!(kind(collation), Kind::Bytes | Kind::PaddedBytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(name: &str) -> Collation {
        Collation::by_name(name).unwrap()
    }

    #[test]
    fn letters_meet_as_their_collation_says() {
        let same = |a, b, name| equal(a, b, by_name(name));
        assert!(same("Straße", "STRASSE", "utf8mb4_0900_ai_ci"));
        assert!(same("é", "E", "utf8mb4_0900_ai_ci"));
        assert!(same("ひ", "ヒ", "utf8mb4_0900_ai_ci"));
        assert!(!same("a", "a ", "utf8mb4_0900_ai_ci"));
        assert!(same("a", "a ", "utf8mb4_general_ci"));
        assert!(same("é", "E", "utf8mb4_general_ci"));
        assert!(!same("ß", "ss", "utf8mb4_general_ci"));
        assert!(same("ß", "ss", "utf8mb4_unicode_ci"));
        assert!(!same("é", "e", "utf8mb4_0900_as_ci"));
        assert!(same("É", "é", "utf8mb4_0900_as_ci"));
        assert!(!same("É", "é", "utf8mb4_0900_as_cs"));
        assert!(same("a", "a  ", "utf8mb4_bin"));
        assert!(same("É", "e ", "utf8mb4_uca1400_ai_ci"));
        assert!(same("ß ", "ss", "utf8mb3_uca1400_swedish_ai_ci"));
        assert!(!same("é", "e", "utf8mb4_uca1400_as_ci"));
        assert!(same("É", "é  ", "utf8mb4_uca1400_as_ci"));
        assert!(same("é", "e ", "utf8mb4_uca1400_ai_cs"));
        assert!(same("ø", "o", "utf8mb4_uca1400_ai_cs"));
        assert!(!same("É", "e", "utf8mb4_uca1400_ai_cs"));
        assert!(same("É", "É ", "utf8mb4_uca1400_as_cs"));
        assert!(!same("É", "é", "utf8mb4_uca1400_as_cs"));
        assert!(!same("a", "a ", "utf8mb4_uca1400_nopad_ai_ci"));
        assert!(!same("a", "a ", "utf8mb4_uca1400_nopad_as_cs"));
        assert!(!same("a", "a ", "utf8mb4_0900_bin"));
    }

    #[test]
    fn keys_begin_with_that_of_a_beginning() {
        let names = [
            "binary",
            "utf8mb4_0900_bin",
            "utf8mb4_bin",
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_0900_ai_ci",
            "utf8mb4_0900_as_ci",
            "utf8mb4_0900_as_cs",
            "utf8mb4_uca1400_ai_ci",
            "utf8mb4_uca1400_ai_cs",
            "utf8mb4_uca1400_nopad_as_ci",
            "utf8mb3_uca1400_as_cs",
            "latin1_swedish_ci",
        ];
        for collation in names.map(by_name) {
            for begins in ["", "a", "É", "ab ", "ab  ", "ß", "ひ", "a b"] {
                let beginning = beginning_key(begins, collation);
                for behind in ["", " ", "   ", "z", "\t", "\u{301}", "一", "\u{ad}", " x"] {
                    let whole = key(&format!("{begins}{behind}"), collation).into_owned();
                    assert!(whole.starts_with(&beginning), "{collation:?} {begins:?} {behind:?}");
                }
            }
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_collation() {
        let order = ["", "a\tb", "a", "A b", "ab", "B", "é", "f"];
        let keys: Vec<_> =
            order.iter().map(|text| key(text, Collation::UTF8MB4_0900_AI_CI)).collect();
        assert!(keys.first() < keys.get(2) && keys.get(4) < keys.get(5));
        assert!(key("a\t", Collation::UTF8MB4_BIN) < key("a", Collation::UTF8MB4_BIN));
        // Trailing spaces are ignored, and what sorts below them comes first.
        for name in ["utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs"] {
            assert!(key("a\t", by_name(name)) < key("a", by_name(name)), "{name}");
        }
    }
}
