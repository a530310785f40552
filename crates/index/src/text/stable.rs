//! Which characters normalisation leaves as they are, whatever stands before them: one load for each.

use std::sync::LazyLock;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::{
    Normalization,
    characters_seen::is_mark,
    normalize::{changes_by_folding, is_accent},
};

/// Case folding changes the character.
const FOLDS: u8 = 1;
/// Its decomposition has an accent.
const HAS_ACCENT: u8 = 2;
/// Composition changes it, or it may join the character before it.
const COMPOSES: u8 = 4;

/// What may change each character of the basic multilingual plane.
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

/// The characters that stay as they are. One that is not of them may join the one before it, stable or not.
#[derive(Clone, Copy)]
pub(super) struct Stable {
    changes: &'static [u8],
    relevant: u8,
}

impl Stable {
    /// Those under a normalisation that keeps the width. The first call examines every character.
    pub fn under(normalization: &Normalization) -> Self {
        let folds = if normalization.fold_case { FOLDS } else { 0 };
        let has_accent = if normalization.fold_accents { HAS_ACCENT } else { 0 };
        Self { changes: &CHANGES, relevant: COMPOSES | folds | has_accent }
    }

    /// Whether the character is one of them.
    #[inline]
    pub fn has(self, c: char) -> bool {
        self.changes.get(c as usize).is_some_and(|changes| changes & self.relevant == 0)
    }
}
