//! Decimals in the servers' binary form.
//!
//! ```text
//! decimal := integer fraction     nine digits to four bytes, big endian; the digits left over at
//!                                 the front of the integer and at the end of the fraction take
//!                                 0, 1, 1, 2, 2, 3, 3, 4, 4 bytes
//! ```
//! The first bit is inverted; of a negative number all bits are.

use remora_engine::Decimal;

use super::Malformed;
use crate::mysql::bytes::Reader;

/// The bytes for this many digits, up to nine.
const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
/// The longest text: sign, 65 digits, point, and a leading zero.
const MAX_TEXT: usize = 72;

/// Reads a decimal with this precision and scale.
pub(crate) fn decimal(
    reader: &mut Reader<'_>,
    precision: u8,
    scale: u8,
) -> Result<Decimal, Malformed> {
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    let integer = precision.checked_sub(scale).filter(|_| precision <= 65).ok_or(Malformed)?;
    let bytes = reader.bytes(length(integer) + length(scale))?;
    let negative = bytes.first().is_some_and(|first| first & 0x80 == 0);
    let mut words = DecimalWords { bytes, flip: if negative { 0xff } else { 0 }, first: 0x80 };
    let mut text = Digits { text: [0; MAX_TEXT], len: 0, skip_zeros: true };
    if negative {
        text.push(b'-');
    }
    text.push_word(words.next(BYTES.get(integer % 9).copied().unwrap_or(0)), integer % 9);
    (0..integer / 9).for_each(|_| text.push_word(words.next(4), 9));
    if text.skip_zeros {
        text.push(b'0');
    }
    text.skip_zeros = false;
    if scale > 0 {
        text.push(b'.');
    }
    (0..scale / 9).for_each(|_| text.push_word(words.next(4), 9));
    text.push_word(words.next(BYTES.get(scale % 9).copied().unwrap_or(0)), scale % 9);
    text.finish().ok_or(Malformed)
}

fn length(digits: usize) -> usize {
    digits / 9 * 4 + BYTES.get(digits % 9).copied().unwrap_or(0)
}

struct DecimalWords<'a> {
    bytes: &'a [u8],
    flip: u8,
    /// XORed with the first byte only.
    first: u8,
}

impl DecimalWords<'_> {
    fn next(&mut self, length: usize) -> u32 {
        let (word, rest) = self.bytes.split_at_checked(length).unwrap_or_default();
        self.bytes = rest;
        let mut number = 0;
        for &byte in word {
            number = number << 8 | u32::from(byte ^ self.flip ^ self.first);
            self.first = 0;
        }
        number
    }
}

struct Digits {
    text: [u8; MAX_TEXT],
    len: usize,
    skip_zeros: bool,
}

impl Digits {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn push_word(&mut self, word: u32, digits: usize) {
        for place in (0..digits as u32).rev() {
            let digit = (word / 10_u32.pow(place) % 10) as u8;
            if digit != 0 || !self.skip_zeros {
                self.skip_zeros = false;
                self.push(b'0' + digit);
            }
        }
    }

    /// The number. Minus zero, which no server writes, becomes zero.
    fn finish(&self) -> Option<Decimal> {
        let text = std::str::from_utf8(self.text.get(..self.len)?).ok()?;
        Decimal::from_canonical(text).or_else(|| Decimal::from_canonical(text.get(1..)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], precision: u8, scale: u8) -> String {
        decimal(&mut Reader::new(bytes), precision, scale).unwrap().to_string()
    }

    #[test]
    fn decimal_digits_are_packed_in_groups_of_nine() {
        assert_eq!(read(b"\x81\x0d\xfb\x38\xd2\x04\xd2", 14, 4), "1234567890.1234");
        assert_eq!(read(b"\x7e\xf2\x04\xc7\x2d\xfb\x2d", 14, 4), "-1234567890.1234");
        assert_eq!(read(b"\x80\x00\x05", 5, 2), "0.05");
        assert_eq!(read(b"\x80\x00\x00", 5, 2), "0.00");
        assert_eq!(read(b"\x80\x07", 4, 0), "7");
        assert_eq!(read(b"\xb2", 2, 2), "0.50");
        assert!(decimal(&mut Reader::new(b"\x80"), 5, 2).is_err());
        assert!(decimal(&mut Reader::new(&[0x80; 80]), 66, 2).is_err());
        assert!(decimal(&mut Reader::new(&[0x80; 80]), 2, 3).is_err());
    }

    #[test]
    fn any_bytes_are_a_number_or_refused() {
        for byte in 0..=255 {
            for (precision, scale) in [(65, 30), (10, 2), (18, 18), (9, 0), (1, 1)] {
                let _ = decimal(&mut Reader::new(&[byte; 40]), precision, scale);
            }
        }
    }
}
