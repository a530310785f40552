//! Replaces rare words, such as names, numbers and places, by names that only one replica has.
//!
//! A share of the words that occur in at most three documents is replaced, the same word of the same replica always by
//! the same name. The name is drawn from a stream seeded by word and replica and avoids the real words; two words may
//! get the same name now and then. Digits are drawn again; letters come from a trigram model trained on the same rare
//! words. Length and capitals stay. In Japanese only katakana runs and numbers are replaced.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    corpus::Document,
    queries::is_unspaced,
    random::{SplitMix64, mix},
};

/// The share of the words in one, two and three documents that a replica renames, chosen so that the vocabulary grows
/// like the real one (`bench corpus-check`).
const SHARES: [f64; 3] = [0.95, 0.2, 0.1];
/// How often a name is drawn anew because it is a real word.
const TRIES: usize = 6;

/// The rare words of a pool and a model that makes similar ones.
pub struct Names {
    /// Document frequency of every word.
    counts: FxHashMap<String, u32>,
    /// Whether only katakana and numbers are renamed.
    keeps_letters: bool,
    model: Trigrams,
}

impl Names {
    /// Counts the words of the documents and learns from the rare ones.
    pub fn new(documents: &[&Document]) -> Self {
        let mut counts = FxHashMap::<String, u32>::default();
        for document in documents {
            let words = runs(&document.title).chain(runs(&document.text));
            let distinct: FxHashSet<String> =
                words.filter(|run| run.is_word).map(|run| run.text.to_lowercase()).collect();
            distinct.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let keeps_letters = documents.first().is_some_and(|document| document.language == "ja");
        let mut names = Self { counts, keeps_letters, model: Trigrams::default() };
        names.model = Trigrams::new(names.counts.keys().filter(|word| names.share(word) > 0.0));
        names
    }

    /// The text with the replica's names.
    pub fn rename(&self, text: &str, replica: u64) -> String {
        let mut result = String::with_capacity(text.len());
        for run in runs(text) {
            match run.is_word.then(|| self.name(run.text, replica)).flatten() {
                Some(name) => result.push_str(&name),
                None => result.push_str(run.text),
            }
        }
        result
    }

    fn name(&self, word: &str, replica: u64) -> Option<String> {
        let lower = word.to_lowercase();
        let mut random = SplitMix64::new(mix(hash(&lower) ^ mix(replica)));
        if random.unit() >= self.share(&lower) {
            return None;
        }
        let mut name = self.model.name(&lower, &mut random);
        for _ in 0..TRIES {
            if !self.counts.contains_key(&name) {
                break;
            }
            name = self.model.name(&lower, &mut random);
        }
        Some(with_capitals_of(word, &name))
    }

    /// The share of the replicas that rename this word.
    fn share(&self, word: &str) -> f64 {
        let is_kept = |c: char| self.keeps_letters && !is_katakana(c) && !c.is_numeric();
        let index = self.counts.get(word).map_or(u32::MAX, |count| count - 1);
        if word.chars().any(is_kept) { 0.0 } else { *SHARES.get(index as usize).unwrap_or(&0.0) }
    }
}

/// How often each character follows each pair of characters.
#[derive(Default)]
struct Trigrams {
    following: FxHashMap<[char; 2], Vec<char>>,
    letters: Vec<char>,
}

impl Trigrams {
    fn new<'w>(words: impl Iterator<Item = &'w String>) -> Self {
        let mut words: Vec<&String> = words.collect();
        words.sort_unstable();
        let mut following = FxHashMap::<[char; 2], Vec<char>>::default();
        let mut letters = Vec::new();
        for word in words {
            let mut before = [' '; 2];
            for c in word.chars().filter(|c| c.is_alphabetic()) {
                following.entry(before).or_default().push(c);
                letters.push(c);
                before = [before[1], c];
            }
        }
        Self { following, letters }
    }

    /// A name of the word's shape: letters for letters, digits for digits.
    fn name(&self, word: &str, random: &mut SplitMix64) -> String {
        let mut before = [' '; 2];
        let mut name = String::with_capacity(word.len());
        for c in word.chars() {
            if c.is_ascii_digit() {
                // A number begins with a zero only if the replaced one did.
                let least = usize::from(name.is_empty() && c != '0');
                name.push(char::from(b'0' + (least + random.below(10 - least)) as u8));
            } else if c.is_alphabetic() && !self.letters.is_empty() {
                let choice = self.following.get(&before).unwrap_or(&self.letters);
                let letter = choice[random.below(choice.len())];
                name.push(letter);
                before = [before[1], letter];
            } else {
                name.push(c);
            }
        }
        name
    }
}

/// A piece of a text: a word that may be renamed, or the text between such words.
struct Run<'t> {
    text: &'t str,
    is_word: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Word,
    Katakana,
    Other,
}

/// Splits a text into runs, in order and without gaps.
fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let kind = kind(rest.chars().next()?);
        let end = rest.find(|c| self::kind(c) != kind).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(end);
        rest = behind;
        Some(Run { text, is_word: kind != Kind::Other })
    })
}

fn kind(c: char) -> Kind {
    if is_katakana(c) {
        Kind::Katakana
    } else if c.is_alphanumeric() && !is_unspaced(c) {
        Kind::Word
    } else {
        Kind::Other
    }
}

fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30fe}')
}

fn with_capitals_of(word: &str, name: &str) -> String {
    let mut capitals = word.chars().map(char::is_uppercase);
    let mut result = String::with_capacity(name.len());
    for c in name.chars() {
        if capitals.next() == Some(true) {
            result.extend(c.to_uppercase());
        } else {
            result.push(c);
        }
    }
    result
}

fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str], language: &str) -> Names {
        let documents: Vec<Document> = texts
            .iter()
            .map(|text| Document {
                language: language.into(),
                text: (*text).into(),
                ..Default::default()
            })
            .collect();
        Names::new(&documents.iter().collect::<Vec<_>>())
    }

    #[test]
    fn keeps_frequent_words_shapes_and_capitals() {
        let names = names(&["the Zambrow 1234", "the b", "the c", "the d"], "en");
        let renamed: Vec<String> = (1..20).map(|r| names.rename("the Zambrow 1234", r)).collect();
        for text in &renamed {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(words[0], "the");
            assert_eq!(words[1].len(), 7);
            assert!(words[1].starts_with(char::is_uppercase), "{text}");
            assert!(words[2].len() == 4 && words[2].bytes().all(|b| b.is_ascii_digit()));
        }
        assert!(renamed.iter().filter(|text| !text.contains("1234")).count() > 10);
    }

    #[test]
    fn one_replica_has_one_name_for_a_word() {
        let names = names(&["Zambrow and Goski", "x"], "en");
        let name = |text: &str| names.rename(text, 3).to_lowercase();
        assert_eq!(name("Zambrow"), name("zambrow"));
    }

    #[test]
    fn japanese_keeps_all_but_katakana_and_numbers() {
        let names = names(&["京都のカタカナ語 abc 1987年"], "ja");
        let renamed: Vec<String> =
            (1..20).map(|r| names.rename("京都のカタカナ語 abc 1987年", r)).collect();
        assert!(renamed.iter().all(|t| t.starts_with("京都の") && t.contains("語 abc ")));
        assert!(renamed.iter().any(|text| !text.contains("1987")));
    }
}
