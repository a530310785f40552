//! Base64 with the letters of URLs (RFC 4648, section 5), without padding: the text of cursors.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of bytes.
pub fn to_url_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        for sextet in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * sextet) & 63) as usize]));
        }
    }
    text
}

/// The bytes of a text; `None` if it is none.
pub fn from_url_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for (sextet, byte) in chunk.iter().enumerate() {
            bits |= sextet_of(*byte)? << (18 - 6 * sextet);
        }
        let [_, group @ ..] = u32::to_be_bytes(bits);
        bytes.extend_from_slice(group.get(..chunk.len().checked_sub(1)?)?);
    }
    (text.len() % 4 != 1).then_some(bytes)
}

fn sextet_of(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn base64_round_trips(bytes: Vec<u8>) {
            let text = to_url_base64(&bytes);
            prop_assert_eq!(from_url_base64(&text), Some(bytes));
        }

        #[test]
        fn any_text_is_decoded_or_refused(text: String) {
            let _ = from_url_base64(&text);
        }
    }
}
