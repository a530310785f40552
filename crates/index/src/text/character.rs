//! What normalisation does to single characters.

use std::sync::LazyLock;

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// Whether case folding changes the code point.
pub(super) fn changes_by_folding(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    CaseMapper::new().fold_string(text) != text
}

/// Whether dropping accents drops the code point.
pub(super) fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Whether the character, or what it is made of, may join or change places with one before it.
pub(super) fn is_mark(c: char) -> bool {
    let mut buffer = [0; 4];
    let made_of = DecomposingNormalizerBorrowed::new_nfkd();
    let made_of = made_of.normalize(c.encode_utf8(&mut buffer));
    joins(c) || made_of.chars().next().is_some_and(joins)
}

fn joins(c: char) -> bool {
    static JOINING: LazyLock<Vec<char>> = LazyLock::new(joining);
    let class =
        icu_properties::CodePointMapData::<icu_properties::props::CanonicalCombiningClass>::new();
    class.get(c) != icu_properties::props::CanonicalCombiningClass::NotReordered
        || JOINING.binary_search(&c).is_ok()
}

/// The characters that follow the first one in the canonical decomposition of some character.
fn joining() -> Vec<char> {
    let decompose = DecomposingNormalizerBorrowed::new_nfd();
    let compose = ComposingNormalizerBorrowed::new_nfc();
    let mut joining = Vec::new();
    for c in (0x80..0x11_0000).filter_map(char::from_u32) {
        let mut buffer = [0; 4];
        let text: &str = c.encode_utf8(&mut buffer);
        let parts = decompose.normalize(text);
        if *parts != *text && *compose.normalize(&parts) == *text {
            joining.extend(parts.chars().skip(1));
        }
    }
    joining.sort_unstable();
    joining.dedup();
    joining
}
