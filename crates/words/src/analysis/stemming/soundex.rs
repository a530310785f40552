//! Soundex: the first letter of a word and codes of its consonants.

/// Replaces a word of lower-case ASCII letters by its code; other words stay. A code equal to the previous one is
/// skipped, even with vowels in between. Short codes are padded with zeros to four characters, but not beyond the
/// word's length.
pub(super) fn encode(word: &mut String) {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    let length = word.len().min(4);
    let mut code = String::with_capacity(word.len());
    let mut last = '0';
    for (at, byte) in word.bytes().enumerate() {
        if at == 0 {
            code.push(char::from(byte));
            continue;
        }
        let digit = match byte {
            b'b' | b'f' | b'p' | b'v' => '1',
            b'c' | b'g' | b'j' | b'k' | b'q' | b's' | b'x' | b'z' => '2',
            b'd' | b't' => '3',
            b'l' => '4',
            b'm' | b'n' => '5',
            b'r' => '6',
            _ => continue,
        };
        if digit != last {
            code.push(digit);
            last = digit;
        }
    }
    while code.len() < length {
        code.push('0');
    }
    *word = code;
}
