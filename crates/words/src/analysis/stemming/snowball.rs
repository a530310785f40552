//! Snowball's stemmers, with the results of version 2.2 of its library.
//!
//! rust-stemmers is generated from an older version than the library that Sphinx 2.2.11 uses, and newer crates from a
//! newer version. Only rust-stemmers gives the same stems, except for three languages that are corrected here.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::settings::SNOWBALL;

/// Stems a word by the stemmer with this index.
pub(super) fn stem(number: usize, word: &mut String) {
    let Some((algorithm, language)) = algorithm(number) else { return };
    let stemmer = Stemmer::create(algorithm);
    let stem = match language {
        "danish" if ends_in_double_sign(word) => return,
        "french" if word.ends_with('ï') => return,
        "french" if word.contains(['ë', 'ï']) => Cow::Owned(french(&stemmer, word)),
        "russian" if word.contains('ё') => {
            Cow::Owned(stemmer.stem(&word.replace('ё', "е")).into_owned())
        }
        _ => stemmer.stem(word),
    };
    if *stem != **word {
        *word = stem.into_owned();
    }
}

/// Lets ë and ï count as a consonant followed by a vowel, because they are separate from the vowel before them.
fn french(stemmer: &Stemmer, word: &str) -> String {
    let apart = word.replace('ë', "He").replace('ï', "Hi");
    stemmer.stem(&apart).replace("He", "ë").replace("Hi", "ï").replace('H', "")
}

/// Whether the word ends in a doubled character other than a to z: such pairs are not reduced.
fn ends_in_double_sign(word: &str) -> bool {
    let mut last = word.chars().rev();
    let end = last.next();
    end.is_some_and(|c| !c.is_ascii_lowercase()) && end == last.next()
}

fn algorithm(number: usize) -> Option<(Algorithm, &'static str)> {
    let (_, language) = *SNOWBALL.get(number)?;
    let algorithm = match language {
        "danish" => Algorithm::Danish,
        "dutch" => Algorithm::Dutch,
        "english" => Algorithm::English,
        "french" => Algorithm::French,
        "german" => Algorithm::German,
        "hungarian" => Algorithm::Hungarian,
        "italian" => Algorithm::Italian,
        "norwegian" => Algorithm::Norwegian,
        "portuguese" => Algorithm::Portuguese,
        "romanian" => Algorithm::Romanian,
        "russian" => Algorithm::Russian,
        "spanish" => Algorithm::Spanish,
        "swedish" => Algorithm::Swedish,
        "turkish" => Algorithm::Turkish,
        _ => return None,
    };
    Some((algorithm, language))
}
