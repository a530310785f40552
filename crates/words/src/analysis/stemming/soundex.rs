//! Soundex: a word by its first letter and the sounds of its consonants.

/// Changes a word of small ASCII letters to its code, which has as many characters as the word at most while it is
/// filled up to four. The code of a sound is not repeated, be there vowels in between.
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
