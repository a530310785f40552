//! Lists of characters in the syntax of Sphinx's `charset_table`.

use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed,
    props::{GeneralCategory, GeneralCategoryGroup},
};

use crate::scripts::is_without_spaces;

/// Characters, each with the one it is folded to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Charset {
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    /// The characters `first` to `last`, folded to the same number of characters from `to` on.
    Range { first: u32, last: u32, to: u32 },
    /// Pairs of characters, both folded to the second.
    Pairs { first: u32, last: u32 },
    /// Letters, digits, marks and `_`; of scripts that separate words by spaces, of those that do not, or both.
    Unicode { spaced: bool, unspaced: bool },
}

/// The default of Sphinx 2.2.11.
const SPHINX22: [&str; 4] = ["0..9", "english", "_", "russian"];
const ENGLISH: [Item; 2] = [range('A', 'Z', 'a'), range('a', 'z', 'a')];
const RUSSIAN: [Item; 4] =
    [range('А', 'Я', 'а'), range('а', 'я', 'а'), range('Ё', 'Ё', 'ё'), range('ё', 'ё', 'ё')];

const fn range(first: char, last: char, to: char) -> Item {
    Item::Range { first: first as u32, last: last as u32, to: to as u32 }
}

impl Charset {
    /// The letters, digits and marks of Unicode, and `_`.
    pub(crate) fn unicode() -> Self {
        Self { items: vec![Item::Unicode { spaced: true, unspaced: true }] }
    }

    /// Parses a list.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn parse(list: &str) -> Result<Self, String> {
        let mut items = Vec::new();
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "english" => items.extend(ENGLISH),
                "russian" => items.extend(RUSSIAN),
                "non_cont" => items.push(Item::Unicode { spaced: true, unspaced: false }),
                "cont" => items.push(Item::Unicode { spaced: false, unspaced: true }),
                "sphinx22" => {
                    for part in SPHINX22 {
                        items.extend(Self::parse(part)?.items);
                    }
                }
                _ => items.push(item(part)?),
            }
        }
        Ok(Self { items })
    }

    /// Calls `each` with each character and what it is folded to; later calls override earlier ones.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(char, char)) {
        let mut fold = |from: u32, to: u32| {
            if let (Some(from), Some(to)) = (char::from_u32(from), char::from_u32(to)) {
                each(from, to);
            }
        };
        for item in &self.items {
            match *item {
                Item::Range { first, last, to } => {
                    (first..=last).for_each(|code| fold(code, to + (code - first)));
                }
                Item::Pairs { first, last } => {
                    (first..=last).for_each(|code| fold(code, first + ((code - first) | 1)));
                }
                Item::Unicode { spaced, unspaced } => {
                    for c in '\0'..=char::MAX {
                        if is_word(c) && (if is_without_spaces(c) { unspaced } else { spaced }) {
                            fold(c as u32, lower_case(c) as u32);
                        }
                    }
                }
            }
        }
    }
}

/// Parses a part of a list that is no alias.
fn item(part: &str) -> Result<Item, String> {
    let (from, to) = match part.split_once("->") {
        Some((from, to)) => (from, Some(to)),
        None => (part, None),
    };
    let (from, is_pairs) = match from.trim().strip_suffix("/2") {
        Some(from) if to.is_none() && !from.is_empty() => (from, true),
        _ => (from, false),
    };
    let (first, last) = span(from)?;
    if is_pairs {
        if (last - first) % 2 == 0 {
            return Err(format!("'{part}' does not hold pairs: give an even number of characters"));
        }
        return Ok(Item::Pairs { first, last });
    }
    let Some(to) = to else { return Ok(Item::Range { first, last, to: first }) };
    let (to, to_last) = span(to)?;
    if to_last - to != last - first {
        return Err(format!("the two sides of '{part}' have different lengths: make them equal"));
    }
    Ok(Item::Range { first, last, to })
}

/// Parses `a..z`, or one character.
fn span(text: &str) -> Result<(u32, u32), String> {
    let text = text.trim();
    let (first, last) = match text.split_once("..") {
        Some((first, last)) if !first.is_empty() => (code(first)?, code(last)?),
        _ => (code(text)?, code(text)?),
    };
    if first > last {
        return Err(format!("'{text}' ends before it begins: swap its ends"));
    }
    Ok((first, last))
}

/// Parses a character, written as itself or as `U+41`.
fn code(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let wrong = || format!("'{text}' is not a character: write one, or its code as in U+41");
    let mut chars = text.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Ok(c as u32);
    }
    let digits = text.strip_prefix("U+").or_else(|| text.strip_prefix("u+")).ok_or_else(wrong)?;
    let code = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
    if code > char::MAX as u32 || digits.starts_with('+') {
        return Err(wrong());
    }
    Ok(code)
}

const CATEGORIES: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();

/// Whether the character is a letter, digit, mark or `_`.
fn is_word(c: char) -> bool {
    let category = CATEGORIES.get(c);
    let groups =
        [GeneralCategoryGroup::Letter, GeneralCategoryGroup::Mark, GeneralCategoryGroup::Number];
    c == '_' || groups.iter().any(|group| group.contains(category))
}

/// The lower case of the character, if that is a single character.
fn lower_case(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(list: &str, c: char) -> Option<char> {
        let mut found = None;
        let charset = Charset::parse(list).unwrap();
        charset.for_each(&mut |from, to| found = if from == c { Some(to) } else { found });
        found
    }

    #[test]
    fn every_form_of_the_syntax_is_read() {
        let list = "A..Z->a..z, a..z, U+410..U+42F/2, 0->o, _, U+C0..U+D6->U+E0..U+F6, ., -";
        let expected = [
            ('Q', Some('q')),
            ('z', Some('z')),
            ('А', Some('Б')),
            ('Б', Some('Б')),
            ('Я', Some('Я')),
            ('0', Some('o')),
            ('1', None),
            ('_', Some('_')),
            ('À', Some('à')),
            ('.', Some('.')),
            ('-', Some('-')),
        ];
        for (c, to) in expected {
            assert_eq!(folded(list, c), to, "{c}");
        }
        assert_eq!(folded("sphinx22", 'Ё'), Some('ё'));
        assert_eq!(folded("cont", '日'), Some('日'));
        assert_eq!(folded("non_cont", '日'), None);
        assert_eq!(folded("non_cont", 'É'), Some('é'));
    }

    #[test]
    fn invalid_input_has_messages() {
        for list in ["ab", "U+", "U+110000", "z..a", "A..Z->a..c", "A..Z->a", "a..c/2", "U++41"] {
            assert!(Charset::parse(list).is_err(), "{list}");
        }
    }
}
