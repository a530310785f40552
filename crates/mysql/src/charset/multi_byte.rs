//! The multi-byte character sets of East Asia: cut into characters as MySQL cuts them, each of
//! which is looked up first among MySQL's own readings, then among the web's.

use encoding_rs::Encoding;

use super::{
    UNKNOWN,
    exceptions::{self, Exceptions},
};

/// A multi-byte character set.
pub(super) struct MultiByte {
    pub(super) name: &'static str,
    /// How many bytes the character has that begins here; at least one.
    length: fn(&[u8]) -> usize,
    exceptions: &'static Exceptions,
    /// Whether rows 0xf5 to 0xfe are for private use.
    private_rows: bool,
    encoding: &'static Encoding,
}

static ALL: [MultiByte; 9] = [
    set("big5", double, exceptions::BIG5, encoding_rs::BIG5),
    set("cp932", shifted, &[], encoding_rs::SHIFT_JIS),
    MultiByte {
        private_rows: true,
        ..set("eucjpms", unix, exceptions::EUCJPMS, encoding_rs::EUC_JP)
    },
    set("euckr", double, &[], encoding_rs::EUC_KR),
    set("gb18030", four, exceptions::GB18030, encoding_rs::GB18030),
    set("gb2312", double, exceptions::GB2312, encoding_rs::GBK),
    set("gbk", double, &[], encoding_rs::GBK),
    set("sjis", shifted, exceptions::SJIS, encoding_rs::SHIFT_JIS),
    MultiByte { private_rows: true, ..set("ujis", unix, exceptions::UJIS, encoding_rs::EUC_JP) },
];

/// The set of this name.
pub(super) fn named(name: &str) -> Option<&'static MultiByte> {
    ALL.iter().find(|set| set.name == name)
}

const fn set(
    name: &'static str,
    length: fn(&[u8]) -> usize,
    exceptions: &'static Exceptions,
    encoding: &'static Encoding,
) -> MultiByte {
    MultiByte { name, length, exceptions, private_rows: false, encoding }
}

impl MultiByte {
    pub(super) fn decode(&self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            let length = if first < 0x80 { 1 } else { (self.length)(rest) };
            let Some((character, behind)) = rest.split_at_checked(length) else {
                text.push(UNKNOWN);
                break;
            };
            rest = behind;
            match first < 0x80 {
                true => text.push(char::from(first)),
                false => self.push(character, &mut text),
            }
        }
        text
    }

    /// Appends a character; false where the set does not have it.
    pub(super) fn encode(&self, character: char, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        if let Some(code) = self.own_code(character) {
            let bytes = code.to_be_bytes();
            let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
            out.extend_from_slice(bytes.get(first..).unwrap_or_default());
        } else {
            let mut text = [0; 4];
            let (bytes, _, damaged) = self.encoding.encode(character.encode_utf8(&mut text));
            if damaged {
                return false;
            }
            out.extend_from_slice(&bytes);
        }
        // The web's encodings have more than MySQL's of the same name.
        let mut read = [0; 4];
        let same = out
            .get(start..)
            .is_some_and(|bytes| self.decode(bytes) == *character.encode_utf8(&mut read));
        if !same {
            out.truncate(start);
        }
        same
    }

    /// The bytes of a character that MySQL alone has there.
    fn own_code(&self, character: char) -> Option<u32> {
        let code = u16::try_from(u32::from(character)).ok().filter(|code| *code != 0xfffd)?;
        let own = self.exceptions.iter().find(|(_, own)| *own == code);
        own.map(|(bytes, _)| *bytes).or_else(|| self.private_code(code))
    }

    fn private_code(&self, code: u16) -> Option<u32> {
        let place = u32::from(code).checked_sub(0xe000).filter(|_| self.private_rows)?;
        let (plane, place) = if place < 940 { (0, place) } else { (0x8f_0000, place - 940) };
        let (row, cell) = (place / 94, place % 94);
        (row < 10).then_some(plane | (0xf5 + row) << 8 | (0xa1 + cell))
    }

    fn push(&self, bytes: &[u8], text: &mut String) {
        let code = bytes.iter().fold(0, |code, &byte| code << 8 | u32::from(byte));
        let own = self.exceptions.binary_search_by_key(&code, |&(bytes, _)| bytes).ok();
        let own = own.and_then(|index| self.exceptions.get(index)).map(|&(_, own)| u32::from(own));
        let own = own.or_else(|| self.private(code)).and_then(char::from_u32);
        if let Some(own) = own {
            text.push(own);
            return;
        }
        let (found, damaged) = self.encoding.decode_without_bom_handling(bytes);
        if damaged { text.push(UNKNOWN) } else { text.push_str(&found) }
    }

    /// Rows 0xf5 to 0xfe of both planes lie one after the other from U+E000.
    fn private(&self, code: u32) -> Option<u32> {
        let plane = match code >> 16 {
            0 => 0xe000,
            0x8f => 0xe3ac,
            _ => return None,
        };
        let row = (code >> 8 & 0xff).checked_sub(0xf5)?;
        let cell = (code & 0xff).checked_sub(0xa1)?;
        (self.private_rows && row < 10 && cell < 94).then_some(plane + row * 94 + cell)
    }
}

fn double(_: &[u8]) -> usize {
    2
}

/// Half-width katakana take one byte.
fn shifted(bytes: &[u8]) -> usize {
    if matches!(bytes, [0x80 | 0xa0..=0xdf | 0xfd..=0xff, ..]) { 1 } else { 2 }
}

fn unix(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&0x8f) { 3 } else { 2 }
}

fn four(bytes: &[u8]) -> usize {
    if matches!(bytes, [_, b'0'..=b'9', ..]) { 4 } else { 2 }
}
