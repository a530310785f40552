//! Text of the source's character sets as UTF-8: the same text that the server sends when it is
//! asked for utf8mb4, `?` for bytes that stand for nothing included.

mod exceptions;
mod multi_byte;
mod single_byte;

use std::{borrow::Cow, fmt, sync::Arc};

use multi_byte::MultiByte;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use single_byte::HighHalf;

/// What bytes become that stand for no character, as at the server.
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
    /// Below 128, ten letters take the place of signs.
    Swedish(&'static HighHalf),
    MultiByte(&'static MultiByte),
    /// Big endian or little.
    Utf16 {
        big: bool,
    },
    Utf32,
}

impl Charset {
    /// utf8mb4.
    pub const UTF8MB4: Self = Self { name: "utf8mb4", form: Form::Utf8 };

    /// The character set of this name; `binary` is none.
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

    /// Whether every text that `other` can hold it can hold too.
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

    /// The text in UTF-8.
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

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charset({})", self.name)
    }
}

/// Bytes that are no UTF-8, which no server stores knowingly, become replacement characters.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
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

fn utf16(bytes: &[u8], big: bool) -> String {
    let units = bytes.chunks(2).map(|pair| match *pair {
        [first, second] if big => u16::from_be_bytes([first, second]),
        [first, second] => u16::from_le_bytes([first, second]),
        _ => UNKNOWN as u16,
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(UNKNOWN)).collect()
}

fn utf32(bytes: &[u8]) -> String {
    let character = |unit: &[u8]| {
        let code = unit.iter().fold(0, |code, &byte| code << 8 | u32::from(byte));
        char::from_u32(code).unwrap_or(UNKNOWN)
    };
    bytes.chunks(4).map(character).collect()
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
    fn unicode_holds_every_other_set() {
        let named = |name: &str| Charset::named(name).unwrap();
        assert!(named("utf8mb4").holds_all_of(&named("sjis")));
        assert!(named("utf8mb4").holds_all_of(&named("utf8")));
        assert!(!named("utf8mb3").holds_all_of(&named("utf8mb4")));
        assert!(!named("latin1").holds_all_of(&named("latin2")));
        assert!(named("utf8mb3").holds_all_of(&named("latin1")));
    }
}
