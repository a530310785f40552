//! Which characters normalisation never changes, whatever stands before them. A look-up costs one
//! load.

use std::sync::LazyLock;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::character::{changes_by_folding, is_accent, is_mark};

/// The flag of a character that case folding changes.
const FOLDS: u8 = 1;
/// The flag of a character whose decomposition has an accent.
const HAS_ACCENT: u8 = 2;
/// The flag of a character that composition changes, or that may join the character before it.
const COMPOSES: u8 = 4;

/// The flags of each character of the basic multilingual plane: which steps may change it.
static CHANGES: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let of = |code| char::from_u32(code).map_or(COMPOSES, changes);
    (0..0x1_0000).map(of).collect()
});

fn changes(c: char) -> u8 {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    let is_composed = ComposingNormalizerBorrowed::new_nfkc().normalize(text) == text;
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(changes_by_folding(c), FOLDS)
        | flag(decomposed.chars().any(is_accent), HAS_ACCENT)
        | flag(!is_composed || is_mark(c), COMPOSES)
}

/// The set of characters that never change. A character outside of it may join the one before it,
/// even one inside.
#[derive(Clone, Copy)]
pub(super) struct Stable {
    changes: &'static [u8],
    relevant: u8,
}

impl Stable {
    /// The set for a normalisation that keeps the width. The first call examines every character.
    pub fn under(fold_case: bool, fold_accents: bool) -> Self {
        let folds = if fold_case { FOLDS } else { 0 };
        let has_accent = if fold_accents { HAS_ACCENT } else { 0 };
        Self { changes: &CHANGES, relevant: COMPOSES | folds | has_accent }
    }

    /// Whether the character is in the set.
    #[inline]
    pub fn has(self, c: char) -> bool {
        self.changes.get(c as usize).is_some_and(|changes| changes & self.relevant == 0)
    }
}
