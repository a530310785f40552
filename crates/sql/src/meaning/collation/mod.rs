//! Collations: which of two applies where texts meet, and sort keys, whose bytes compare as the
//! collation compares texts.

mod of_type;
mod table;

use std::{borrow::Cow, ops::Bound, sync::LazyLock};

use remora_mysql::{Charset, Collation, ErrorCode};

use super::{
    types::{ExprType, coercibility},
    value::SqlValue,
};
use crate::{Error, Result};
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
pub(crate) fn is_bytes(collation: Collation) -> bool {
    kind(collation) == Kind::Bytes
}

/// The sort key of a text.
pub(crate) fn key(text: &str, collation: Collation) -> Cow<'_, [u8]> {
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
pub(crate) fn push_key(text: &str, collation: Collation, out: &mut Vec<u8>) {
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
pub(crate) fn beginning_key(letters: &str, collation: Collation) -> Vec<u8> {
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
pub(crate) fn end_of(beginning: &[u8]) -> Bound<Vec<u8>> {
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

/// Whether two texts are equal in a collation.
pub(crate) fn equal(a: &str, b: &str, collation: Collation) -> bool {
    a == b || key(a, collation) == key(b, collation)
}

/// The sort key of a single character, as LIKE, REPLACE and LOCATE compare.
pub(crate) fn letter_key(letter: char, collation: Collation) -> Vec<u8> {
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
pub(crate) fn is_exact(collation: Collation) -> bool {
    matches!(kind(collation), Kind::Bytes | Kind::PaddedBytes)
}

/// The collation of a comparison of these types and its coercibility. If none is text, the
/// connection's.
pub(crate) fn aggregate_or<'a>(
    types: impl Iterator<Item = &'a ExprType>,
    connection: Collation,
) -> Result<(Collation, u8)> {
    let mut found: Option<(Collation, u8)> = None;
    let mut ignored = None;
    for kind in types {
        if kind.is_null() || !(kind.is_string() || kind.kind == crate::SqlType::Json) {
            continue;
        }
        let next = (kind.collation, kind.coercibility);
        // The collation of a text that is always NULL applies only if there is no other.
        if kind.coercibility == coercibility::IGNORABLE {
            ignored = Some(next);
            continue;
        }
        found = Some(match found {
            None => next,
            Some(before) => stronger(before, next)?,
        });
    }
    Ok(found.or(ignored).unwrap_or((connection, coercibility::NUMERIC)))
}

/// Like [`aggregate_or`], with the server's default if none is text.
pub(crate) fn aggregate<'a>(types: impl Iterator<Item = &'a ExprType>) -> Result<(Collation, u8)> {
    aggregate_or(types, Collation::UTF8MB4_0900_AI_CI)
}

fn stronger(a: (Collation, u8), b: (Collation, u8)) -> Result<(Collation, u8)> {
    if a.0 == b.0 {
        return Ok((a.0, a.1.min(b.1)));
    }
    if a.0 == Collation::BINARY || b.0 == Collation::BINARY {
        // The binary collation wins, unless the text's coercibility is stronger, as a column's
        // beside a literal's.
        let (binary, text) = if a.0 == Collation::BINARY { (a, b) } else { (b, a) };
        return Ok(if binary.1 <= text.1 { binary } else { text });
    }
    if a.1 != b.1 {
        return Ok(if a.1 < b.1 { a } else { b });
    }
    if a.1 == coercibility::EXPLICIT {
        return Err(illegal_mix(a, b));
    }
    // Texts are converted to the type that they meet.
    if a.0.is_of_type() != b.0.is_of_type() {
        return Ok(if a.0.is_of_type() { a } else { b });
    }
    if a.0.charset() == b.0.charset() {
        let is_bin = |collation: Collation| collation.name().ends_with("_bin");
        return match (is_bin(a.0), is_bin(b.0)) {
            (true, false) => Ok(a),
            (false, true) => Ok(b),
            _ => Err(illegal_mix(a, b)),
        };
    }
    match (takes(a.0.charset(), b.0.charset()), takes(b.0.charset(), a.0.charset())) {
        (true, false) => Ok(a),
        (false, true) => Ok(b),
        _ => Err(illegal_mix(a, b)),
    }
}

/// Whether texts in the narrow character set are converted to the wide one if their coercibility is
/// equal.
fn takes(wide: &str, narrow: &str) -> bool {
    let is_unicode = |charset: &str| charset.starts_with("utf") || charset == "ucs2";
    wide == "utf8mb4" || is_unicode(wide) && !is_unicode(narrow) || narrow == "ascii"
}

/// Bytes converted to text by the character set of a collation, since they meet a text that has
/// this collation; 3854 if they are invalid.
pub(crate) fn text_of_bytes(bytes: &[u8], collation: Collation) -> Result<String> {
    /// The most bytes shown in the error.
    const SHOWN: usize = 64;
    let charset = Charset::named(collation.charset()).unwrap_or_default();
    if let Some(text) = text_in(bytes, charset) {
        return Ok(text);
    }
    let shown = bytes.iter().take(SHOWN).map(|byte| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    });
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    let shown: String = shown.collect();
    let name = charset.name();
    let message = format!("Cannot convert string '{shown}{more}' from binary to {name}");
    Err(Error::new(ErrorCode::CannotConvertString, message))
}

/// The text of bytes in a character set; `None` if they are invalid.
fn text_in(bytes: &[u8], charset: Charset) -> Option<String> {
    let marks = |text: &[u8]| text.iter().filter(|byte| **byte == b'?').count();
    // Leading zero bytes of a character may be missing.
    let missing = bytes.len().next_multiple_of(charset.unit_bytes()) - bytes.len();
    let padded: Cow<'_, [u8]> = match missing {
        0 => Cow::Borrowed(bytes),
        missing => {
            let mut padded = vec![0; missing];
            padded.extend_from_slice(bytes);
            Cow::Owned(padded)
        }
    };
    let text = charset.decode_exact(&padded)?;
    // The decoder replaces invalid bytes by question marks.
    let is_whole = charset.unit_bytes() > 1 || marks(text.as_bytes()) == marks(bytes);
    is_whole.then(|| text.into_owned())
}

/// A value's bytes as a part of a text with this collation: binary strings are decoded by its
/// character set. For the binary collation, the bytes of any text; 3854 for bytes that are invalid.
pub(crate) fn octets_in<'v>(
    value: &'v SqlValue<'_>,
    collation: Collation,
) -> Result<Cow<'v, [u8]>> {
    match value {
        SqlValue::Bytes(bytes) if collation != Collation::BINARY => {
            text_of_bytes(bytes, collation).map(|text| Cow::Owned(text.into_bytes()))
        }
        value => Ok(value.octets().unwrap_or_default()),
    }
}

/// Likewise, as a text.
pub(crate) fn string_in<'v>(value: &'v SqlValue<'_>, collation: Collation) -> Result<Cow<'v, str>> {
    match value {
        SqlValue::Bytes(bytes) => text_of_bytes(bytes, collation).map(Cow::Owned),
        value => Ok(value.string().unwrap_or_default()),
    }
}

/// 1267: the collations cannot be mixed.
fn illegal_mix(a: (Collation, u8), b: (Collation, u8)) -> Error {
    let shown = |(collation, strength): (Collation, u8)| {
        let word = match strength {
            coercibility::EXPLICIT => "EXPLICIT",
            coercibility::NONE => "NONE",
            coercibility::IMPLICIT => "IMPLICIT",
            coercibility::SYSTEM => "SYSCONST",
            coercibility::LITERAL => "COERCIBLE",
            coercibility::NUMERIC => "NUMERIC",
            _ => "IGNORABLE",
        };
        format!("({},{word})", collation.name())
    };
    let message =
        format!("Illegal mix of collations {} and {} for operation '='", shown(a), shown(b));
    Error::new(ErrorCode::CollationMix, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(name: &str) -> Collation {
        Collation::by_name(name).unwrap()
    }

    #[test]
    fn a_text_that_is_always_null_has_no_say() {
        let nothing =
            ExprType::text(2, Collation::BINARY).with_coercibility(coercibility::IGNORABLE);
        let bytes = ExprType::text(2, Collation::BINARY).with_coercibility(coercibility::LITERAL);
        let text = ExprType::text(2, by_name("utf8mb4_0900_ai_ci"));
        let met = |types: &[ExprType]| aggregate(types.iter()).unwrap();
        assert_eq!(met(&[text.clone(), nothing.clone()]).0, text.collation);
        assert_eq!(met(&[nothing.clone(), text.clone()]).0, text.collation);
        assert_eq!(met(&[text.clone(), bytes.clone()]).0, Collation::BINARY);
        // A column's collation wins beside a binary literal; a binary column wins beside a column
        // of texts.
        let column = text.with_coercibility(coercibility::IMPLICIT);
        assert_eq!(met(&[column.clone(), bytes.clone()]).0, column.collation);
        let bytes = bytes.with_coercibility(coercibility::IMPLICIT);
        assert_eq!(met(&[column, bytes]).0, Collation::BINARY);
        assert_eq!(met(&[nothing]), (Collation::BINARY, coercibility::IGNORABLE));
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
