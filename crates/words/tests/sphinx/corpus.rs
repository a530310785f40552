//! Random collections of documents.

use std::fmt;

use super::{marked, random::Random};

/// Words of a tiny vocabulary; none is a prefix of another.
const LETTERS: [&str; 30] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "iota", "kappa", "lambda",
    "omicron", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "digamma", "koppa",
    "sampi", "stigma", "heta", "san", "sho", "aleph", "beth", "gimel", "daleth",
];
const SYLLABLES: [&str; 16] = [
    "ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "za",
];
const ENDINGS: [&str; 8] = ["s", "ed", "ing", "ly", "ness", "er", "ation", "able"];
const FIELDS: [&str; 5] = ["title", "body", "tags", "notes", "author"];
const SEPARATORS: [&str; 7] = [", ", ". ", "; ", " - ", "! ", " (", ") "];
/// Words of a natural vocabulary.
const NATURAL_WORDS: usize = 400;
/// About how many words a corpus has at most.
const MOST_WORDS: usize = 40_000;
/// The longest field, in words.
const LONGEST_FIELD: usize = 300;

/// Documents, and how they are indexed.
#[derive(Clone)]
pub struct Corpus {
    pub fields: Vec<String>,
    /// Lines such as `min_infix_len = 2`.
    pub settings: Vec<String>,
    /// Names and contents of files that settings name.
    pub files: Vec<(String, String)>,
    pub documents: Vec<Document>,
    /// The words of the documents, the most frequent first.
    pub vocabulary: Vec<String>,
}

/// A document: a text for each field, in words of ASCII.
#[derive(Clone)]
pub struct Document {
    pub id: u64,
    pub fields: Vec<String>,
}

impl Document {
    /// The values of its columns: an integer `attribute`, a real `share`, and a `large` integer.
    pub fn columns(&self) -> [String; 3] {
        let (attribute, share, large) = self.numbers();
        [attribute.to_string(), share.to_string(), large.to_string()]
    }

    /// The same values as floating point numbers.
    pub fn numbers(&self) -> (i64, f32, i64) {
        let share = (self.id % 11) as f32 * 0.75 - 3.0;
        ((self.id % 7) as i64, share, 5_000_000_000 + (self.id % 1000) as i64)
    }
}

/// Which words a corpus has.
#[derive(Clone, Copy, PartialEq)]
pub enum Vocabulary {
    /// Few words, so that queries have many matches.
    Tiny,
    /// Hundreds of words that contain one another.
    Natural,
    /// A few dozen words with English suffixes.
    Inflected,
}

impl Corpus {
    pub fn random(random: &mut Random, vocabulary: Vocabulary, settings: &[&str]) -> Self {
        let words = match vocabulary {
            Vocabulary::Tiny => {
                let count = random.between(5, LETTERS.len());
                LETTERS[..count].iter().map(|&word| word.to_owned()).collect()
            }
            Vocabulary::Natural => natural_words(random, NATURAL_WORDS),
            Vocabulary::Inflected => inflected_words(random),
        };
        let field_count = random.between(1, FIELDS.len());
        // As often tens of documents as thousands.
        let count = (10.0 * 500_f64.powf(random.share())) as usize;
        let has = |name: &str| settings.iter().any(|line| line.starts_with(name));
        let (has_marks, has_tags) = (has("index_sp") || has("index_zones"), has("html_strip"));
        let mut writer =
            Writer { random, vocabulary, words: &words, longest: 0, has_marks, has_tags };
        let shortest = MOST_WORDS / (count * field_count);
        writer.longest = shortest.clamp(4, LONGEST_FIELD);
        let mut id = 0;
        let mut document = || {
            id += 1 + writer.random.below(9) as u64;
            // Some ids need more than 32 bits.
            id += if writer.random.once_in(500) { 1 << 32 } else { 0 };
            Document { id, fields: (0..field_count).map(|_| writer.field()).collect() }
        };
        let documents = (0..count).map(|_| document()).collect();
        Self {
            fields: FIELDS[..field_count].iter().map(|&name| name.to_owned()).collect(),
            settings: settings.iter().map(|&line| line.to_owned()).collect(),
            files: Vec::new(),
            documents,
            vocabulary: words,
        }
    }

    /// Leaves a word of the vocabulary out of the index.
    pub fn with_stopwords(mut self, words: &[&str]) -> Self {
        let file = format!("stopwords-{}.txt", words.join("-"));
        self.settings.push(format!("stopwords = {file}"));
        self.files.push((file, words.join("\n") + "\n"));
        self
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let values = self.settings.iter().filter_map(|line| line.split_once(" = "));
        values.filter(|(named, _)| *named == name).map(|(_, value)| value).next_back()
    }

    pub fn has_wildcards(&self) -> bool {
        self.setting("min_infix_len").or_else(|| self.setting("min_prefix_len")).is_some()
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "fields: {}", self.fields.join(", "))?;
        self.settings.iter().try_for_each(|line| writeln!(to, "setting: {line}"))?;
        for (name, content) in &self.files {
            writeln!(to, "file {name}: {content:?}")?;
        }
        writeln!(to, "{} documents:", self.documents.len())?;
        for document in self.documents.iter().take(SHOWN_DOCUMENTS) {
            writeln!(to, "  {}\t{}", document.id, document.fields.join("\t"))?;
        }
        if self.documents.len() > SHOWN_DOCUMENTS { writeln!(to, "  ..") } else { Ok(()) }
    }
}

/// The most documents of a failing case in a report.
const SHOWN_DOCUMENTS: usize = 40;

/// Writes the texts of documents.
pub struct Writer<'a> {
    pub random: &'a mut Random,
    vocabulary: Vocabulary,
    words: &'a [String],
    longest: usize,
    /// Whether texts have ends of sentences and, if they have tags, paragraphs and zones.
    has_marks: bool,
    pub has_tags: bool,
}

impl Writer<'_> {
    fn field(&mut self) -> String {
        let count = match self.random.below(20) {
            0 | 1 => 0,
            2..=15 => self.random.between(1, self.longest.min(8)),
            16..=18 => self.random.between(1, self.longest.min(30)),
            _ => self.random.between(1, self.longest),
        };
        if self.has_marks {
            return marked::text(self, count);
        }
        let mut text = String::new();
        let mut last = String::new();
        for number in 0..count {
            if number > 0 {
                let plain = !self.random.once_in(15);
                text.push_str(if plain { " " } else { self.random.pick(&SEPARATORS) });
            }
            if number == 0 || !self.random.once_in(12) {
                last = self.word();
            }
            text.push_str(&last);
        }
        text
    }

    pub fn word(&mut self) -> String {
        let count = self.words.len() as f64;
        let share = self.random.share();
        let rank = match self.vocabulary {
            Vocabulary::Tiny => count * share * share,
            // The rank's logarithm is even, which is Zipf's law.
            _ => (count + 1.0).powf(share) - 1.0,
        };
        let word = &self.words[(rank as usize).min(self.words.len() - 1)];
        match self.random.below(25) {
            0 => word.to_uppercase(),
            1 => word[..1].to_uppercase() + &word[1..],
            _ => word.clone(),
        }
    }
}

/// Every other one contains one before it.
fn natural_words(random: &mut Random, count: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    while words.len() < count {
        let syllable = random.pick(&SYLLABLES).to_owned();
        let word = match random.below(4) {
            _ if words.len() < 10 => syllable + random.pick(&SYLLABLES),
            0 => syllable + random.pick(&SYLLABLES) + random.pick(&SYLLABLES),
            1 => syllable + &words[random.below(words.len())],
            2 => words[random.below(words.len())].clone() + &syllable,
            _ => words[random.below(words.len())].clone() + random.pick(&["n", "s", "r", "x"]),
        };
        if word.len() <= 16 && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn inflected_words(random: &mut Random) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for stem in natural_words(random, 30) {
        let count = random.between(1, 3);
        let ended: Vec<String> = (0..count).map(|_| random.pick(&ENDINGS).to_owned()).collect();
        let stem = stem.trim_end_matches(['a', 'e', 'i', 'o', 'u']).to_owned() + "t";
        words.extend(ended.into_iter().map(|ending| stem.clone() + &ending));
        words.push(stem);
    }
    words.sort();
    words.dedup();
    // Stems and their forms come in any order of frequency.
    for number in (1..words.len()).rev() {
        words.swap(number, random.below(number + 1));
    }
    words
}
