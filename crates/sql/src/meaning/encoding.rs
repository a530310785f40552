//! Base64 and hexadecimal encodings.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes as base64 without line breaks.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize).copied();
            let present = place <= chunk.len();
            out.push(if present { char::from(letter.unwrap_or(b'=')) } else { '=' });
        }
    }
    out
}

/// Decodes base64, ignoring white space. `None` if it is invalid.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0u32, 0, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        if byte == b'=' {
            padding += 1;
            bits <<= 6;
        } else {
            let value = LETTERS.iter().position(|letter| *letter == byte)?;
            if padding > 0 {
                return None;
            }
            bits = bits << 6 | value as u32;
        }
        count += 1;
        if count % 4 == 0 {
            let [_, a, b, c] = bits.to_be_bytes();
            let whole = [a, b, c];
            out.extend_from_slice(whole.get(..3usize.checked_sub(padding)?)?);
            bits = 0;
        }
    }
    (count % 4 == 0 && padding < 3).then_some(out)
}

/// Encodes as upper-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |bits: u8| DIGITS.get(usize::from(bits)).copied().unwrap_or(b'0');
    let digits: Vec<u8> =
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    String::from_utf8(digits).unwrap_or_default()
}

/// Decodes hexadecimal; `None` if it is invalid.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|bits| bits as u8)).collect();
    let mut digits = digits?;
    if digits.len() % 2 == 1 {
        digits.insert(0, 0);
    }
    let pair = |pair: &[u8]| pair.iter().fold(0, |byte, bits| byte << 4 | bits);
    Some(digits.chunks(2).map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for text in ["", "a", "ab", "abc", "abcd", "\u{ff}\u{0}"] {
            let bytes = text.as_bytes();
            assert_eq!(from_base64(&base64(bytes)).as_deref(), Some(bytes));
            assert_eq!(from_hex(&hex(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(from_base64("YQ="), None);
        assert_eq!(from_hex("4g"), None);
    }
}
