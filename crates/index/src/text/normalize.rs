//! How text is normalised before it is cut into atoms, the same for documents and queries.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::{
    ascii_runs::ascii_runs,
    character::{changes_by_folding, is_accent},
    stable::Stable,
};

/// Texts of fewer bytes, such as search texts, are normalised without looking up the characters
/// that never change. The first such look-up examines all characters, which a short text does not
/// repay.
const LONG_TEXT: usize = 128;

/// How text is normalised before it is cut into atoms, the same for documents and queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalization {
    /// Unicode NFKC.
    pub nfkc: bool,
    /// Conversion of width, after NFKC.
    pub width: Width,
    /// Full Unicode case folding.
    pub fold_case: bool,
    /// Drop accents: the combining diacritical marks of the canonical decomposition. Marks that
    /// are letters of their own (kana voicing, Indic vowel signs, Hebrew points) stay.
    pub fold_accents: bool,
}

/// Full-width and half-width forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// No conversion after NFKC.
    Keep,
    /// ICU's Fullwidth-Halfwidth transform.
    Narrow,
    /// ICU's Halfwidth-Fullwidth transform.
    Wide,
}

impl Default for Normalization {
    fn default() -> Self {
        Self { nfkc: true, width: Width::Keep, fold_case: true, fold_accents: false }
    }
}

impl Normalization {
    /// The normalised text, borrowed if it is ASCII and unchanged. Speed: about 1 GB/s, but 50 MB/s
    /// for characters that normalisation changes.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.width == Width::Wide {
            return self.apply_whole(text);
        }
        if text.is_ascii() {
            return self.apply_ascii(text);
        }
        // Without NFKC, a single accent makes it necessary to recompose the whole text.
        if self.fold_accents && !self.nfkc {
            return self.apply_whole(text);
        }
        let is_long = text.len() >= LONG_TEXT && self.width == Width::Keep;
        let stable = is_long.then(|| Stable::under(self.fold_case, self.fold_accents));
        let mut normalized = String::with_capacity(text.len());
        for (ascii, rest) in ascii_runs(text) {
            let start = normalized.len();
            normalized.push_str(ascii);
            if let (true, Some(pushed)) = (self.fold_case, normalized.get_mut(start..)) {
                pushed.make_ascii_lowercase();
            }
            match stable {
                _ if rest.is_empty() => {}
                Some(stable) => self.push_rest(rest, stable, &mut normalized),
                None => normalized.push_str(&self.apply_whole(rest)),
            }
        }
        Cow::Owned(normalized)
    }

    /// Appends the normalised form of a run that is not ASCII, except for its first character.
    /// Characters that never change are copied; in most scripts these are most characters.
    fn push_rest(&self, rest: &str, stable: Stable, normalized: &mut String) {
        let is_stable = |c: char| c.is_ascii() || stable.has(c);
        // Where the characters that were not appended yet begin, and where the last one read
        // begins.
        let (mut start, mut last) = (0, 0);
        let mut characters = rest.char_indices();
        while let Some((at, c)) = characters.next() {
            if is_stable(c) {
                last = at;
                continue;
            }
            // The character may join the one before it. No stable character joins one before it, so
            // the part up to the next stable one can be normalised alone.
            let next = characters.find(|&(_, c)| is_stable(c));
            let end = next.map_or(rest.len(), |(at, _)| at);
            self.push_stable(&rest[start..last], normalized);
            normalized.push_str(&self.apply_whole(&rest[last..end]));
            (start, last) = (end, end);
        }
        self.push_stable(&rest[start..], normalized);
    }

    /// Appends characters that never change, except for the case of ASCII letters.
    fn push_stable(&self, text: &str, normalized: &mut String) {
        let start = normalized.len();
        normalized.push_str(text);
        if let (true, Some(first)) = (self.fold_case, normalized.get_mut(start..=start)) {
            first.make_ascii_lowercase();
        }
    }

    fn apply_whole<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        if self.nfkc {
            text = step(text, |text| ComposingNormalizerBorrowed::new_nfkc().normalize(text));
        }
        text = match self.width {
            Width::Keep => text,
            Width::Narrow => step(text, |text| map_chars(text, &NARROW)),
            Width::Wide => step(text, |text| map_chars(text, &WIDE)),
        };
        if self.fold_case {
            text = step(text, fold_case);
        }
        if self.fold_accents {
            text = step(text, strip_accents);
        }
        text
    }

    fn apply_ascii<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.fold_case && text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        Cow::Borrowed(text)
    }
}

/// Applies one step to a text that may be owned by the step before.
fn step<'t>(text: Cow<'t, str>, change: impl Fn(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    match text {
        Cow::Owned(text) => match change(&text) {
            Cow::Owned(changed) => Cow::Owned(changed),
            Cow::Borrowed(_) => Cow::Owned(text),
        },
        // A borrowed result has the text's own lifetime only if it is the text itself.
        Cow::Borrowed(text) => match change(text) {
            Cow::Owned(changed) => Cow::Owned(changed),
            Cow::Borrowed(_) => Cow::Borrowed(text),
        },
    }
}

/// Full case folding. It maps code points one by one; runs that do not change are copied.
fn fold_case(text: &str) -> Cow<'_, str> {
    let Some((start, _)) = text.char_indices().find(|(_, c)| folds(*c)) else {
        return Cow::Borrowed(text);
    };
    let mut folded = String::with_capacity(text.len());
    folded.push_str(&text[..start]);
    for c in text[start..].chars() {
        if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else if folds(c) {
            folded.push_str(&CaseMapper::new().fold_string(c.encode_utf8(&mut [0; 4])));
        } else {
            folded.push(c);
        }
    }
    Cow::Owned(folded)
}

/// Whether case folding changes the code point.
#[inline]
fn folds(c: char) -> bool {
    let code = c as u32;
    match FOLDING.get(code as usize / 64) {
        Some(word) => word >> (code % 64) & 1 == 1,
        None => changes_by_folding(c),
    }
}

/// One bit for each code point of the basic multilingual plane.
static FOLDING: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let bit = |code| u64::from(char::from_u32(code).is_some_and(changes_by_folding));
    let word = |start: u32| (0..64).fold(0, |word, at| word | bit(start + at) << at);
    (0..0x1_0000).step_by(64).map(word).collect()
});

fn strip_accents(text: &str) -> Cow<'_, str> {
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    if !decomposed.chars().any(is_accent) {
        return Cow::Borrowed(text);
    }
    let bare: String = decomposed.chars().filter(|&c| !is_accent(c)).collect();
    Cow::Owned(ComposingNormalizerBorrowed::new_nfc().normalize(&bare).into_owned())
}

fn map_chars<'t>(text: &'t str, map: &HashMap<char, String>) -> Cow<'t, str> {
    if !text.chars().any(|c| map.contains_key(&c)) {
        return Cow::Borrowed(text);
    }
    let mut mapped = String::with_capacity(text.len());
    for c in text.chars() {
        match map.get(&c) {
            Some(other) => mapped.push_str(other),
            None => mapped.push(c),
        }
    }
    Cow::Owned(mapped)
}

/// Full-width ASCII and its half-width twin.
fn ascii_pairs() -> impl Iterator<Item = (char, char)> {
    let printable = ('!'..='~').zip('\u{ff01}'..='\u{ff5e}');
    printable.chain([(' ', '\u{3000}')])
}

/// The half-width forms of U+FF61..U+FFDC and U+FFE8..U+FFEE with what NFKC makes of them.
fn compatibility_pairs() -> impl Iterator<Item = (char, char)> {
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    ('\u{ff61}'..='\u{ffdc}').chain('\u{ffe8}'..='\u{ffee}').filter_map(move |half| {
        let full = nfkc.normalize(half.encode_utf8(&mut [0; 4])).chars().next()?;
        (full != half).then_some((half, full))
    })
}

static NARROW: LazyLock<HashMap<char, String>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for (ascii, full) in ascii_pairs() {
        map.insert(full, ascii.to_string());
    }
    let compose = ComposingNormalizerBorrowed::new_nfc();
    for (half, full) in compatibility_pairs() {
        map.insert(full, half.to_string());
        for (mark, half_mark) in [('\u{3099}', '\u{ff9e}'), ('\u{309a}', '\u{ff9f}')] {
            let marked: String = [full, mark].iter().collect();
            let mut composed = compose.normalize(&marked).into_owned().chars().collect::<Vec<_>>();
            if let (Some(voiced), true) = (composed.pop(), composed.is_empty()) {
                map.insert(voiced, [half, half_mark].iter().collect());
            }
        }
    }
    map
});

static WIDE: LazyLock<HashMap<char, String>> = LazyLock::new(|| {
    let pairs = ascii_pairs().chain(compatibility_pairs());
    pairs.map(|(half, full)| (half, full.to_string())).collect()
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_normalised_like_the_whole_text(
            parts in proptest::collection::vec(
                prop_oneof![
                    "[ -~]{0,20}",
                    "[éÉñßİıſK\u{300}\u{301}\u{327}\u{323}\u{345}]{1,3}",
                    "[ﬁ①Ａｶﾞガ日가각\u{1100}\u{1161}\u{11a8}\u{3099}½…ΣςΐＳ]{1,3}",
                    "[日本カナAz]{0,9}",
                    "\\PC{0,4}",
                ],
                0..12,
            ),
            times in 1usize..20,
            nfkc: bool,
            narrow: bool,
            fold_case: bool,
            fold_accents: bool,
        ) {
            let text = parts.concat().repeat(times);
            let width = if narrow { Width::Narrow } else { Width::Keep };
            let normalization = Normalization { nfkc, width, fold_case, fold_accents };
            prop_assert_eq!(normalization.apply(&text), normalization.apply_whole(&text), "{}", text);
        }
    }

    fn normalized(text: &str, change: impl Fn(&mut Normalization)) -> String {
        let mut normalization = Normalization::default();
        change(&mut normalization);
        normalization.apply(text).into_owned()
    }

    #[test]
    fn the_default_folds_case_and_compatibility_forms() {
        assert_eq!(normalized("ＭｙＳＱＬ ﬁne Straße ｶﾞ Ａ①", |_| ()), "mysql fine strasse ガ a1");
        assert_eq!(normalized("e\u{301}T\u{c9}", |_| ()), "étÉ".to_lowercase());
        assert_eq!(normalized("ABC", |n| n.fold_case = false), "ABC");
        assert!(matches!(Normalization::default().apply("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn case_folds_as_the_whole_string_does() {
        let mut text = String::new();
        for c in (0..0x2_0000).filter_map(char::from_u32) {
            text.push(c);
            text.push_str("aZ");
        }
        assert!(fold_case(&text) == CaseMapper::new().fold_string(&text));
        assert!(matches!(fold_case("straße 東京"), Cow::Owned(_)));
        assert!(matches!(fold_case("strasse 東京"), Cow::Borrowed(_)));
    }

    #[test]
    fn widths_follow_the_transforms() {
        assert_eq!(normalized("ガラス　パン。", |n| n.width = Width::Narrow), "ｶﾞﾗｽ ﾊﾟﾝ｡");
        assert_eq!(normalized("a b", |n| n.width = Width::Wide), "ａ\u{3000}ｂ");
    }

    #[test]
    fn accents_are_removed_and_voicing_marks_kept() {
        let bare = |text| normalized(text, |n| n.fold_accents = true);
        assert_eq!(bare("Crème Brûlée Ångström がぱ हिन्दी"), "creme brulee angstrom がぱ हिन्दी");
    }
}
