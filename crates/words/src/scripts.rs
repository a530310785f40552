//! Which scripts put spaces between words.

use icu_properties::{CodePointMapData, CodePointMapDataBorrowed, props::Script};

const SCRIPTS: CodePointMapDataBorrowed<'static, Script> = CodePointMapData::<Script>::new();

/// Whether the character's script puts no spaces between words. Hangul does.
#[inline]
#[must_use]
pub fn is_without_spaces(c: char) -> bool {
    const SPACELESS: [Script; 16] = [
        Script::Han,
        Script::Hiragana,
        Script::Katakana,
        Script::Bopomofo,
        Script::Yi,
        Script::Thai,
        Script::Lao,
        Script::Khmer,
        Script::Myanmar,
        Script::Tibetan,
        Script::TaiLe,
        Script::NewTaiLue,
        Script::TaiTham,
        Script::TaiViet,
        Script::Javanese,
        Script::Balinese,
    ];
    // Prolonged sound marks and kana iteration marks have no script of their own.
    matches!(c, '\u{30fc}' | '\u{ff70}' | '\u{3031}'..='\u{3035}')
        || SPACELESS.contains(&SCRIPTS.get(c))
}
