//! Snowball's stemmers, as the library of its version 2.2 answers.
//!
//! rust-stemmers is generated from an older version than the library that Sphinx 2.2.11 runs with, and newer crates from
//! a newer one. It alone gives the same stems, but for the three languages that are mended here.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::settings::SNOWBALL;

/// Stems by the stemmer of this number.
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

/// The letters that stand apart from the vowel before them are consonants followed by a vowel.
fn french(stemmer: &Stemmer, word: &str) -> String {
    let apart = word.replace('ë', "He").replace('ï', "Hi");
    stemmer.stem(&apart).replace("He", "ë").replace("Hi", "ï").replace('H', "")
}

/// Only doubled letters of the alphabet's consonants are made single.
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
