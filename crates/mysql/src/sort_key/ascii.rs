//! Texts of printable ASCII alone, as most are. Each of their letters has one weight, so they are compared letter by
//! letter, without making keys.

use std::sync::LazyLock;

use super::{Kind, equal_keys, kind, letter_key};
use crate::Collation;

/// The letters of printable ASCII in a collation: equal ones have the same number.
pub struct AsciiLetters([u8; 128]);

/// The letters of printable ASCII in a collation; `None` if more than the weight of each letter counts.
pub fn ascii_letters(collation: Collation) -> Option<&'static AsciiLetters> {
    static BYTES: LazyLock<Option<AsciiLetters>> =
        LazyLock::new(|| AsciiLetters::of(Collation::BINARY));
    static GENERAL: LazyLock<Option<AsciiLetters>> =
        LazyLock::new(|| AsciiLetters::of(Collation::UTF8MB4_GENERAL_CI));
    static UNICODE_4: LazyLock<Option<AsciiLetters>> =
        LazyLock::new(|| AsciiLetters::of(Collation::by_name("utf8mb4_unicode_ci")?));
    static UNICODE_9: LazyLock<Option<AsciiLetters>> =
        LazyLock::new(|| AsciiLetters::of(Collation::UTF8MB4_0900_AI_CI));
    match kind(collation) {
        Kind::Bytes | Kind::PaddedBytes => BYTES.as_ref(),
        Kind::General => GENERAL.as_ref(),
        Kind::Unicode4 => UNICODE_4.as_ref(),
        Kind::Unicode9(levels) if levels.is_letters() => UNICODE_9.as_ref(),
        Kind::Unicode9(_) | Kind::Value(_) => None,
    }
}

impl AsciiLetters {
    /// `None` if a letter has no weight or several.
    fn of(collation: Collation) -> Option<Self> {
        let keys: Vec<Vec<u8>> =
            (b' '..=b'~').map(|letter| letter_key(letter.into(), collation)).collect();
        let length = keys.first()?.len();
        if length == 0 || keys.iter().any(|key| key.len() != length) {
            return None;
        }
        let mut numbers = [0; 128];
        for (letter, key) in (b' '..=b'~').zip(&keys) {
            let first = keys.iter().position(|other| other == key)?;
            *numbers.get_mut(usize::from(letter))? = u8::try_from(first).ok()? + 1;
        }
        Some(Self(numbers))
    }

    /// The number of a letter; `None` if it is not printable ASCII.
    #[inline]
    pub fn number(&self, letter: u8) -> Option<u8> {
        self.0.get(usize::from(letter)).copied().filter(|number| *number > 0)
    }

    /// The numbers of a text's letters; `None` if one is not printable ASCII.
    pub fn numbers(&self, text: &str) -> Option<Vec<u8>> {
        text.bytes().map(|letter| self.number(letter)).collect()
    }
}

/// Whether two texts are equal in a collation.
pub fn equal(a: &str, b: &str, collation: Collation) -> bool {
    a == b || equal_letters(a, b, collation).unwrap_or_else(|| equal_keys(a, b, collation))
}

/// Whether two texts of printable ASCII are equal; `None` for others, and where spaces at the end may count or not.
fn equal_letters(a: &str, b: &str, collation: Collation) -> Option<bool> {
    let letters = ascii_letters(collation)?;
    if a.ends_with(' ') || b.ends_with(' ') {
        return None;
    }
    let mut is_equal = a.len() == b.len();
    for (a, b) in a.bytes().zip(b.bytes()) {
        is_equal &= letters.number(a)? == letters.number(b)?;
    }
    let longer = if a.len() > b.len() { a } else { b };
    let rest = longer.as_bytes().get(a.len().min(b.len())..)?;
    rest.iter().all(|letter| letters.number(*letter).is_some()).then_some(is_equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_ascii_are_as_equal_as_their_keys() {
        let collations = [
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_0900_ai_ci",
            "utf8mb4_bin",
            "utf8mb4_0900_as_cs",
            "utf8mb4_0900_bin",
            "latin1_swedish_ci",
            "binary",
            "utf8mb4_uca1400_ai_ci",
        ];
        let mut texts: Vec<String> =
            (0..=127_u8).map(|letter| char::from(letter).to_string()).collect();
        texts.extend(
            [
                "", "a", "A", "ab", "aB", "aB ", " ab", "a b", "a-b", "ab\0", "é", "e", "Eé", "ss",
                "ß", "a_", "a`",
            ]
            .map(str::to_owned),
        );
        for collation in collations.into_iter().filter_map(Collation::by_name) {
            for a in &texts {
                for b in &texts {
                    assert_eq!(
                        equal(a, b, collation),
                        equal_keys(a, b, collation),
                        "{a:?} {b:?} {collation:?}"
                    );
                    let numbers =
                        ascii_letters(collation).map(|all| (all.numbers(a), all.numbers(b)));
                    if let (Some((Some(of_a), Some(of_b))), 1, 1) = (numbers, a.len(), b.len()) {
                        let (a, b) = (char::from(a.as_bytes()[0]), char::from(b.as_bytes()[0]));
                        let same = letter_key(a, collation) == letter_key(b, collation);
                        assert_eq!(of_a == of_b, same, "{a:?} {b:?} {collation:?}");
                    }
                }
            }
        }
        assert!(ascii_letters(Collation::UTF8MB4_0900_AI_CI).is_some());
        assert!(ascii_letters(Collation::by_name("utf8mb4_unicode_ci").unwrap()).is_some());
    }
}
