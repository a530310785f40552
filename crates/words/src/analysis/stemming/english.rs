//! Sphinx's stem_en: Porter's second stemmer for English, with these differences:
//! - every final s is removed, unless it follows s or u;
//! - of the words with a special first region only those beginning with "gener" have it;
//! - "ative" is removed in the first region, and the third step has no "tional" and "ational";
//! - "ogi" becomes "og" after any letter, "tionalli" becomes "tion", "ationalli" becomes "ate";
//! - a final l is also handled after a final e was removed.

/// Reduces the word to its stem. Characters other than lower-case ASCII letters count as consonants.
pub(super) fn stem(word: &mut String) {
    if word.len() <= 2 {
        return;
    }
    if let Some((_, stem)) = IRREGULAR.iter().find(|(irregular, _)| irregular == word) {
        (*stem).clone_into(word);
        return;
    }
    let mut stemmer = English::new(std::mem::take(word).into_bytes());
    stemmer.run();
    stemmer
        .word
        .iter_mut()
        .for_each(|byte| *byte = if *byte == CONSONANT_Y { b'y' } else { *byte });
    // Only ASCII letters are removed and appended.
    *word = String::from_utf8(stemmer.word)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
}

/// Stands for a consonantal y during stemming; no byte of UTF-8.
const CONSONANT_Y: u8 = 0xFF;

const IRREGULAR: [(&str, &str); 17] = [
    ("skis", "ski"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];
/// Words that are complete after the plural's s is removed.
const COMPLETE: [&[u8]; 3] = [b"inning", b"outing", b"canning"];
const SECOND: [(&str, &str); 22] = [
    ("ization", "ize"),
    ("ational", "ate"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("tional", "tion"),
    ("lessli", "less"),
    ("biliti", "ble"),
    ("iviti", "ive"),
    ("ousli", "ous"),
    ("fulli", "ful"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("izer", "ize"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("alli", "al"),
    ("ator", "ate"),
    ("bli", "ble"),
];
const THIRD: [(&str, &str); 7] = [
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ative", ""),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];
/// Of suffixes with the same end, the longest comes first.
const FOURTH: [&str; 18] = [
    "ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion", "al", "er", "ic",
];

struct English {
    word: Vec<u8>,
    /// The starts of both regions: after the first consonant that follows a vowel, and the same again from there.
    first: usize,
    second: usize,
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

impl English {
    fn new(mut word: Vec<u8>) -> Self {
        for at in 0..word.len() {
            if word[at] == b'y' && (at == 0 || is_vowel(word[at - 1])) {
                word[at] = CONSONANT_Y;
            }
        }
        let region = |from: usize| {
            let pairs = word.windows(2).enumerate().skip(from);
            let mut ends = pairs.filter(|(_, pair)| is_vowel(pair[0]) && !is_vowel(pair[1]));
            ends.next().map_or(word.len(), |(at, _)| at + 2)
        };
        let first = if word.starts_with(b"gener") { 5 } else { region(0) };
        let second = region(first);
        Self { first, second, word }
    }

    fn run(&mut self) {
        self.plural();
        if COMPLETE.contains(&self.word.as_slice()) {
            return;
        }
        self.past();
        if let [before @ .., b'y' | CONSONANT_Y] = self.word.as_slice()
            && before.len() > 1
            && !is_vowel(before[before.len() - 1])
        {
            self.replace(1, "i");
        }
        self.adverbs();
        if let Some((suffix, other)) = THIRD.iter().find(|(suffix, _)| self.ends(suffix))
            && self.begins(suffix) >= self.first
        {
            self.replace(suffix.len(), other);
        }
        if let Some(suffix) = FOURTH.iter().find(|suffix| self.ends(suffix)) {
            let at = self.begins(suffix);
            let is_cut = *suffix != "ion" || at > 0 && matches!(self.word[at - 1], b's' | b't');
            if at >= self.second && is_cut {
                self.word.truncate(at);
            }
        }
        self.last_letters();
    }

    fn ends(&self, suffix: &str) -> bool {
        self.word.ends_with(suffix.as_bytes())
    }

    /// The start of the suffix at the end of the word.
    fn begins(&self, suffix: &str) -> usize {
        self.word.len() - suffix.len()
    }

    fn replace(&mut self, length: usize, other: &str) {
        self.word.truncate(self.word.len() - length);
        self.word.extend_from_slice(other.as_bytes());
    }

    fn plural(&mut self) {
        match self.word.as_slice() {
            [.., b's', b's', b'e', b's'] => self.replace(2, ""),
            [before @ .., b'i', b'e', b's' | b'd'] => {
                let cut = if before.len() > 1 { 2 } else { 1 };
                // "ies" alone becomes "i"; "ied" alone stays.
                if self.word.len() > 3 || self.ends("ies") {
                    self.replace(if self.word.len() == 3 { 2 } else { cut }, "");
                }
            }
            [.., b's' | b'u', b's'] => {}
            [.., b's'] => self.replace(1, ""),
            _ => {}
        }
    }

    fn past(&mut self) {
        for suffix in ["eedly", "eed"] {
            if self.ends(suffix) {
                if self.begins(suffix) >= self.first {
                    self.replace(suffix.len(), "ee");
                }
                return;
            }
        }
        let suffixes = ["ingly", "edly", "ing", "ed"];
        let Some(suffix) = suffixes.into_iter().find(|suffix| self.ends(suffix)) else { return };
        let at = self.begins(suffix);
        if !self.word[..at].iter().any(|byte| is_vowel(*byte)) {
            return;
        }
        self.word.truncate(at);
        match self.word.as_slice() {
            [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => self.word.push(b'e'),
            [.., first, second] if first == second && b"bdfgmnprt".contains(first) => {
                self.word.pop();
            }
            word if self.first >= word.len() && ends_short(word) => self.word.push(b'e'),
            _ => {}
        }
    }

    fn adverbs(&mut self) {
        if self.ends("ationalli") && self.begins("ationalli") >= self.first {
            return self.replace("ationalli".len(), "ate");
        }
        if self.ends("tionalli") && self.begins("alli") >= self.first {
            return self.replace("alli".len(), "");
        }
        if let Some((suffix, other)) = SECOND.iter().find(|(suffix, _)| self.ends(suffix)) {
            if self.begins(suffix) >= self.first {
                self.replace(suffix.len(), other);
            }
        } else if self.ends("ogi") {
            if self.begins("ogi") >= self.first {
                self.replace(1, "");
            }
        } else if let [before @ .., b'l', b'i'] = self.word.as_slice()
            && before.last().is_some_and(|byte| b"cdeghkmnrt".contains(byte))
            && before.len() >= self.first
        {
            self.replace(2, "");
        }
    }

    fn last_letters(&mut self) {
        if let [before @ .., b'e'] = self.word.as_slice()
            && (before.len() >= self.second || before.len() >= self.first && !ends_short(before))
        {
            self.replace(1, "");
        }
        if let [before @ .., b'l'] = self.word.as_slice()
            && before.len() >= self.second
            && before.last() == Some(&b'l')
        {
            self.replace(1, "");
        }
    }
}

/// Whether the word ends in a short syllable: consonant, vowel, consonant; or a vowel and a consonant as the whole
/// word.
fn ends_short(word: &[u8]) -> bool {
    match word {
        [vowel, last] => is_vowel(*vowel) && !is_vowel(*last),
        [.., before, vowel, last] => {
            let is_open = is_vowel(*last) || matches!(*last, b'w' | b'x' | CONSONANT_Y);
            !is_vowel(*before) && is_vowel(*vowel) && !is_open
        }
        _ => false,
    }
}
