//! Converts text between MySQL's character sets and UTF-8. The result is what MySQL sends to a
//! client that asks for utf8mb4, with `?` for bytes that are not assigned.

mod exceptions;
mod multi_byte;
mod single_byte;

use std::{borrow::Cow, fmt, sync::Arc};

use multi_byte::MultiByte;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use single_byte::HighHalf;

/// The replacement for unassigned bytes and unrepresentable characters, as in MySQL.
const UNKNOWN: char = '?';

/// A character set of MySQL or MariaDB.
#[derive(Clone, Copy)]
pub struct Charset {
    name: &'static str,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Utf8,
    Ascii,
    SingleByte(&'static HighHalf),
    /// A single-byte set in which letters replace ten ASCII punctuation marks.
    Swedish(&'static HighHalf),
    MultiByte(&'static MultiByte),
    /// UTF-16, big-endian or little-endian.
    Utf16 {
        big: bool,
    },
    Utf32,
}

impl Charset {
    /// utf8mb4.
    pub const UTF8MB4: Self = Self { name: "utf8mb4", form: Form::Utf8 };

    /// The character set of this name. `binary` is not one.
    pub fn named(name: &str) -> Option<Self> {
        let (name, form) = match name.to_ascii_lowercase().as_str() {
            "utf8mb4" => ("utf8mb4", Form::Utf8),
            "utf8mb3" | "utf8" => ("utf8mb3", Form::Utf8),
            "ascii" => ("ascii", Form::Ascii),
            "utf16" => ("utf16", Form::Utf16 { big: true }),
            "utf16le" => ("utf16le", Form::Utf16 { big: false }),
            "ucs2" => ("ucs2", Form::Utf16 { big: true }),
            "utf32" => ("utf32", Form::Utf32),
            other => match single_byte::high_half(other) {
                Some(("swe7", table)) => ("swe7", Form::Swedish(table)),
                Some((name, table)) => (name, Form::SingleByte(table)),
                None => {
                    let known = multi_byte::named(other)?;
                    (known.name, Form::MultiByte(known))
                }
            },
        };
        Some(Self { name, form })
    }

    /// Its name, `utf8mb3` for `utf8`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether this set has every character of `other`.
    pub fn holds_all_of(&self, other: &Charset) -> bool {
        let all = matches!(self.name, "utf8mb4" | "utf16" | "utf16le" | "utf32");
        let basic = matches!(self.name, "utf8mb3" | "ucs2");
        let beyond = matches!(other.form, Form::Utf32)
            || matches!(other.name, "utf8mb4" | "utf16" | "utf16le" | "gb18030" | "big5");
        self == other || all || basic && !beyond
    }

    /// The text as the engine holds it.
    pub fn text(&self, bytes: &[u8]) -> Arc<str> {
        match self.decode(bytes) {
            Cow::Borrowed(text) => Arc::from(text),
            Cow::Owned(text) => Arc::from(text),
        }
    }

    /// The length of the shortest character in bytes. All characters are multiples of it.
    pub fn unit_bytes(&self) -> usize {
        match self.form {
            Form::Utf16 { .. } => 2,
            Form::Utf32 => 4,
            _ => 1,
        }
    }

    /// Whether every character is one byte.
    pub fn is_single_byte(&self) -> bool {
        matches!(self.form, Form::Ascii | Form::SingleByte(_) | Form::Swedish(_))
    }

    /// Whether its bytes are UTF-8, so that no conversion is needed.
    pub fn is_utf8(&self) -> bool {
        matches!(self.form, Form::Utf8)
    }

    /// Appends the text in this character set, with `?` for characters that the set lacks.
    pub fn encode(&self, text: &str, out: &mut Vec<u8>) {
        match self.form {
            Form::Utf8 if *self == Self::UTF8MB4 => out.extend_from_slice(text.as_bytes()),
            Form::Utf16 { .. } | Form::Utf32 | Form::Swedish(_) => {
                text.chars().for_each(|character| self.put(character, out));
            }
            _ if text.is_ascii() => out.extend_from_slice(text.as_bytes()),
            _ => text.chars().for_each(|character| self.put(character, out)),
        }
    }

    fn put(&self, character: char, out: &mut Vec<u8>) {
        let code = u32::from(character);
        let known = match self.form {
            Form::Utf8 => {
                // utf8mb3 has no characters outside the basic multilingual plane.
                let shown = if code > 0xffff { UNKNOWN } else { character };
                return out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Form::Utf16 { big } => return put_utf16(character, big, self.name == "ucs2", out),
            Form::Utf32 => return out.extend_from_slice(&code.to_be_bytes()),
            Form::Swedish(table) => (0..128)
                .find(|&byte| swedish(table, byte) == character)
                .or_else(|| high_byte(table, code)),
            _ if code < 0x80 => Some(code as u8),
            Form::Ascii => None,
            Form::SingleByte(table) => high_byte(table, code),
            Form::MultiByte(charset) if charset.encode(character, out) => return,
            Form::MultiByte(_) => None,
        };
        out.push(known.unwrap_or(UNKNOWN as u8));
    }

    /// Converts to UTF-8. `None` if the bytes are not valid Unicode: unpaired surrogates, code
    /// points beyond its range, or invalid UTF-8. Bytes that a legacy set does not assign become
    /// `?`.
    pub fn decode_exact<'b>(&self, bytes: &'b [u8]) -> Option<Cow<'b, str>> {
        match self.form {
            Form::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Form::Utf16 { big } => {
                let text: Result<String, _> = char::decode_utf16(utf16_units(bytes, big)).collect();
                text.ok().map(Cow::Owned)
            }
            Form::Utf32 => {
                let text: Option<String> = utf32_codes(bytes).map(char::from_u32).collect();
                text.map(Cow::Owned)
            }
            _ => Some(self.decode(bytes)),
        }
    }

    /// Converts to UTF-8. Invalid bytes are replaced.
    pub fn decode<'b>(&self, bytes: &'b [u8]) -> Cow<'b, str> {
        match self.form {
            Form::Utf8 => return utf8(bytes),
            Form::Utf16 { .. } | Form::Utf32 | Form::Swedish(_) => {}
            Form::Ascii | Form::SingleByte(_) | Form::MultiByte(_) => {
                if bytes.is_ascii() {
                    return utf8(bytes);
                }
            }
        }
        Cow::Owned(match self.form {
            Form::Utf8 | Form::Ascii => {
                bytes.iter().map(|&byte| if byte < 128 { byte.into() } else { UNKNOWN }).collect()
            }
            Form::SingleByte(table) => bytes.iter().map(|&byte| high(table, byte)).collect(),
            Form::Swedish(table) => bytes.iter().map(|&byte| swedish(table, byte)).collect(),
            Form::MultiByte(charset) => charset.decode(bytes),
            Form::Utf16 { big } => utf16(bytes, big),
            Form::Utf32 => utf32(bytes),
        })
    }
}

impl Serialize for Charset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Charset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| D::Error::custom(format!("character set {name:?}")))
    }
}

impl PartialEq for Charset {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Charset {}

impl Default for Charset {
    fn default() -> Self {
        Self::UTF8MB4
    }
}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charset({})", self.name)
    }
}

/// Replaces invalid UTF-8 by replacement characters. No server stores such bytes knowingly.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The byte, 128 or above, of this character.
fn high_byte(table: &HighHalf, code: u32) -> Option<u8> {
    let code = u16::try_from(code).ok().filter(|code| *code >= 0x80)?;
    let index = table.iter().position(|known| *known == code)?;
    u8::try_from(index + 128).ok()
}

fn put_utf16(character: char, big: bool, basic: bool, out: &mut Vec<u8>) {
    let shown = if basic && u32::from(character) > 0xffff { UNKNOWN } else { character };
    for unit in shown.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(&if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
    }
}

fn high(table: &HighHalf, byte: u8) -> char {
    let Some(index) = byte.checked_sub(128) else { return char::from(byte) };
    let code = table.get(usize::from(index)).copied().unwrap_or_default();
    char::from_u32(u32::from(code)).unwrap_or(UNKNOWN)
}

fn swedish(table: &HighHalf, byte: u8) -> char {
    match byte {
        0x40 => 'É',
        0x5b => 'Ä',
        0x5c => 'Ö',
        0x5d => 'Å',
        0x5e => 'Ü',
        0x60 => 'é',
        0x7b => 'ä',
        0x7c => 'ö',
        0x7d => 'å',
        0x7e => 'ü',
        0x7f => UNKNOWN,
        _ => high(table, byte),
    }
}

fn utf16_units(bytes: &[u8], big: bool) -> impl Iterator<Item = u16> {
    bytes.chunks(2).map(move |pair| match *pair {
        [first, second] if big => u16::from_be_bytes([first, second]),
        [first, second] => u16::from_le_bytes([first, second]),
        _ => UNKNOWN as u16,
    })
}

fn utf16(bytes: &[u8], big: bool) -> String {
    char::decode_utf16(utf16_units(bytes, big)).map(|unit| unit.unwrap_or(UNKNOWN)).collect()
}

fn utf32_codes(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks(4).map(|unit| unit.iter().fold(0, |code, &byte| code << 8 | u32::from(byte)))
}

fn utf32(bytes: &[u8]) -> String {
    utf32_codes(bytes).map(|code| char::from_u32(code).unwrap_or(UNKNOWN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(charset: &str, bytes: &[u8]) -> String {
        Charset::named(charset).unwrap().decode(bytes).into_owned()
    }

    #[test]
    fn each_charset_has_its_own_reading_of_the_same_bytes() {
        assert_eq!(decoded("latin1", b"\x80\x81\xe4"), "€\u{81}ä");
        assert_eq!(decoded("latin2", b"\xb1"), "ą");
        assert_eq!(decoded("cp1251", b"\xcf\xf0\xe8"), "При");
        assert_eq!(decoded("koi8r", b"\xf0\xd2\xc9"), "При");
        assert_eq!(decoded("swe7", b"@[a"), "ÉÄa");
        assert_eq!(decoded("sjis", b"\x93\xfa\x96\x7b\xb1\x81\x60"), "日本ｱ〜");
        assert_eq!(decoded("cp932", b"\x93\xfa\x96\x7b\xb1\x81\x60"), "日本ｱ～");
        assert_eq!(decoded("ujis", b"\xc6\xfc\xcb\xdc\x8e\xb1"), "日本ｱ");
        assert_eq!(decoded("eucjpms", b"\x8f\xf3\xf3\xf5\xa1"), "ⅰ\u{e000}");
        assert_eq!(decoded("gbk", b"\xc4\xe3a\xba\xc3"), "你a好");
        assert_eq!(decoded("gb18030", b"\xc4\xe3\x94\x39\xfc\x36"), "你😀");
        assert_eq!(decoded("big5", b"\xa7\x41\xc6\xe7"), "你ゃ");
        assert_eq!(decoded("euckr", b"\xc7\xd1"), "한");
        assert_eq!(decoded("utf16", b"\xd8\x3d\xde\x00\x00a"), "😀a");
        assert_eq!(decoded("utf16le", b"=\xd8\x00\xdea\x00"), "😀a");
        assert_eq!(decoded("utf32", b"\x00\x01\xf6\x00"), "😀");
        assert_eq!(decoded("ascii", b"a\xff"), "a?");
        assert!(Charset::named("binary").is_none());
        assert!(Charset::named("filename").is_none());
    }

    #[test]
    fn what_cuts_a_character_is_a_question_mark() {
        for charset in ["sjis", "ujis", "gbk", "gb18030", "big5", "euckr", "gb2312", "cp932"] {
            assert_eq!(decoded(charset, b"a\xe3"), "a?", "{charset}");
        }
        assert_eq!(decoded("utf16", b"\x00a\x00"), "a?");
        assert_eq!(decoded("utf8mb4", b"a\xff"), "a\u{fffd}");
    }

    #[test]
    fn what_is_no_unicode_is_told() {
        let exact = |charset: &str, bytes: &[u8]| {
            let text = Charset::named(charset).unwrap().decode_exact(bytes);
            text.map(Cow::into_owned)
        };
        assert_eq!(exact("utf8mb4", "aé😀".as_bytes()), Some("aé😀".to_owned()));
        assert_eq!(exact("utf8mb3", b"a\xed\xa0\x80"), None);
        assert_eq!(exact("utf8mb4", b"a\xff"), None);
        // Both halves of a pair in ucs2 are the character that they make.
        assert_eq!(exact("ucs2", b"\xd8\x3d\xde\x00"), Some("😀".to_owned()));
        assert_eq!(exact("ucs2", b"\xd8\x00\x00a"), None);
        assert_eq!(exact("utf16le", b"a\x00\x00\xdc"), None);
        assert_eq!(exact("utf32", b"\x00\x00\xd8\x00"), None);
        assert_eq!(exact("utf32", b"\x00\x01\xf6\x00"), Some("😀".to_owned()));
        assert_eq!(exact("latin1", b"\x80\xff"), Some("€ÿ".to_owned()));
        assert_eq!(exact("ascii", b"a\xff"), Some("a?".to_owned()));
    }

    #[test]
    fn what_is_decoded_is_encoded_again() {
        let sets = [
            "armscii8", "ascii", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852",
            "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
            "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5",
            "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16",
            "utf16le", "utf32", "utf8mb3", "utf8mb4",
        ];
        let basic = (0..=u16::MAX).filter_map(|code| char::from_u32(u32::from(code)));
        let all: Vec<char> = basic.chain(['😀', '𠀀']).collect();
        for name in sets {
            let charset = Charset::named(name).unwrap();
            let mut known = 0;
            for &character in &all {
                let mut bytes = Vec::new();
                charset.encode(character.encode_utf8(&mut [0; 4]), &mut bytes);
                let text = charset.decode(&bytes);
                let mut read = text.chars();
                let same = read.next() == Some(character);
                assert!(same || text == "?", "{name} {character:?} {bytes:x?} {text:?}");
                assert_eq!(read.next(), None, "{name} {character:?} {bytes:x?}");
                known += usize::from(same);
            }
            assert!(known >= 127, "{name} has {known} characters");
        }
    }

    #[test]
    fn texts_are_encoded_as_mysql_sends_them() {
        let encoded = |charset: &str, text: &str| {
            let mut bytes = Vec::new();
            Charset::named(charset).unwrap().encode(text, &mut bytes);
            bytes
        };
        assert_eq!(encoded("latin1", "aé€😀"), b"a\xe9\x80?");
        assert_eq!(encoded("utf8mb3", "aé😀"), "aé?".as_bytes());
        assert_eq!(encoded("gbk", "你a好"), b"\xc4\xe3a\xba\xc3");
        assert_eq!(encoded("sjis", "日本ｱ〜"), b"\x93\xfa\x96\x7b\xb1\x81\x60");
        assert_eq!(encoded("big5", "你ゃ"), b"\xa7\x41\xc6\xe7");
        assert_eq!(encoded("euckr", "한"), b"\xc7\xd1");
        assert_eq!(encoded("swe7", "ÉÄa"), b"@[a");
        assert_eq!(encoded("swe7", "@["), b"??");
        assert_eq!(encoded("utf16", "😀a"), b"\xd8\x3d\xde\x00\x00a");
        assert_eq!(encoded("ucs2", "😀a"), b"\x00?\x00a");
    }

    #[test]
    fn unicode_holds_every_other_set() {
        let named = |name: &str| Charset::named(name).unwrap();
        assert!(named("utf8mb4").holds_all_of(&named("sjis")));
        assert!(named("utf8mb4").holds_all_of(&named("utf8")));
        assert!(!named("utf8mb3").holds_all_of(&named("utf8mb4")));
        assert!(!named("latin1").holds_all_of(&named("latin2")));
        assert!(named("utf8mb3").holds_all_of(&named("latin1")));
    }
}
