//! The setting `morphology`: stemmers and Soundex.

/// One way to reduce the forms of a word to one keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Morphology {
    /// Porter's stemmer for English, as Sphinx implements it.
    English,
    /// Sphinx's stemmer for Russian.
    Russian,
    /// Soundex: the first letter and a code of the following consonants.
    Soundex,
    /// A Snowball stemmer, by its index in [`SNOWBALL`].
    Snowball(usize),
}

/// Codes and names of the languages whose Snowball stemmers give the same results as Sphinx's library.
pub(crate) const SNOWBALL: [(&str, &str); 14] = [
    ("da", "danish"),
    ("nl", "dutch"),
    ("en", "english"),
    ("fr", "french"),
    ("de", "german"),
    ("hu", "hungarian"),
    ("it", "italian"),
    ("no", "norwegian"),
    ("pt", "portuguese"),
    ("ro", "romanian"),
    ("ru", "russian"),
    ("es", "spanish"),
    ("sv", "swedish"),
    ("tr", "turkish"),
];

/// Parses a comma-separated list; the first stemmer that changes a word wins.
///
/// # Errors
/// A message for the user.
pub(crate) fn parse(list: &str) -> Result<Vec<Morphology>, String> {
    let mut found = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            "none" => {}
            "stem_en" => found.push(Morphology::English),
            "stem_ru" => found.push(Morphology::Russian),
            "stem_enru" => found.extend([Morphology::English, Morphology::Russian]),
            "soundex" => found.push(Morphology::Soundex),
            _ => found.push(snowball(name)?),
        }
    }
    Ok(found)
}

/// The inverse of [`parse`].
pub(crate) fn to_list(morphology: &[Morphology]) -> String {
    let name = |one: &Morphology| match *one {
        Morphology::English => "stem_en".to_owned(),
        Morphology::Russian => "stem_ru".to_owned(),
        Morphology::Soundex => "soundex".to_owned(),
        Morphology::Snowball(number) => format!("libstemmer_{}", SNOWBALL[number].0),
    };
    let names: Vec<_> = morphology.iter().map(name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(",") }
}

fn snowball(name: &str) -> Result<Morphology, String> {
    if let Some(language) = name.strip_prefix("libstemmer_") {
        let number = SNOWBALL.iter().position(|&(code, long)| language == code || language == long);
        return number.map(Morphology::Snowball).ok_or_else(|| {
            let codes: Vec<_> = SNOWBALL.iter().map(|(code, _)| *code).collect();
            format!("there is no stemmer '{language}': take one of {}", codes.join(", "))
        });
    }
    let is_known = ["stem_cz", "stem_ar", "metaphone"].contains(&name);
    if is_known || name.starts_with("lemmatize_") {
        return Err(format!(
            "'{name}' is not supported: take a stemmer, or list the words as wordforms"
        ));
    }
    let others = "stem_en, stem_ru, stem_enru, soundex, libstemmer_XX or none";
    Err(format!("there is no morphology '{name}': take {others}"))
}
