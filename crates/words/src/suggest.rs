//! The words of a vocabulary that are similar to a word: CALL SUGGEST and CALL QSUGGEST.

use std::collections::BinaryHeap;

use crate::{Result, WordsError, analysis::Analyzer};

/// The longest word for which similar ones are searched, in characters.
const MAX_WORD: usize = crate::settings::MAX_WORD as usize;
/// The most words returned.
const MAX_LIMIT: u32 = 10_000;

/// The options of suggestions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestOptions {
    limit: u32,
    max_edits: u32,
    delta_len: u32,
    max_matches: u32,
    result_line: bool,
    result_stats: bool,
    non_char: bool,
}

impl Default for SuggestOptions {
    fn default() -> Self {
        Self {
            limit: 5,
            max_edits: 4,
            delta_len: 3,
            max_matches: 25,
            result_line: false,
            result_stats: true,
            non_char: false,
        }
    }
}

impl SuggestOptions {
    /// Sets an option by name; case does not matter.
    ///
    /// # Errors
    /// [`WordsError::Option`] if the name is unknown or the value is invalid.
    pub fn set(&mut self, name: &str, value: i64) -> Result<()> {
        let name = name.to_ascii_lowercase();
        let number = |most: u32| {
            u32::try_from(value).ok().filter(|value| *value <= most).ok_or_else(|| {
                WordsError::Option(format!("option {name} is {value}: take 0 to {most}"))
            })
        };
        match name.as_str() {
            "limit" => self.limit = number(MAX_LIMIT)?,
            "max_edits" => self.max_edits = number(MAX_WORD as u32)?,
            "delta_len" => self.delta_len = number(MAX_WORD as u32)?,
            "max_matches" => self.max_matches = number(MAX_LIMIT)?,
            // In Sphinx, this option ends the search early. This search reads every word, so the
            // value is only checked.
            "reject" => drop(number(MAX_LIMIT)?),
            "result_line" => self.result_line = number(1)? == 1,
            "result_stats" => self.result_stats = number(1)? == 1,
            "non_char" => self.non_char = number(1)? == 1,
            "sentence" if value == 0 => {}
            "sentence" => {
                let message = "option sentence is not supported: leave it out";
                return Err(WordsError::Option(message.to_owned()));
            }
            _ => return Err(WordsError::Option(format!("unknown option {name}"))),
        }
        Ok(())
    }

    /// Whether the words are returned in one row, side by side.
    #[must_use]
    pub fn result_line(&self) -> bool {
        self.result_line
    }

    /// Whether distances and document counts are returned.
    #[must_use]
    pub fn result_stats(&self) -> bool {
        self.result_stats
    }
}

/// A similar word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suggestion {
    /// The edit distance: characters to insert, delete or replace.
    pub distance: u32,
    /// The number of documents with the word; among equal distances the highest comes first.
    documents: std::cmp::Reverse<u64>,
    /// The word.
    pub word: String,
}

impl Suggestion {
    /// The number of documents with the word.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents.0
    }
}

/// Which word of a text to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordChoice {
    /// The first: CALL SUGGEST.
    First,
    /// The last: CALL QSUGGEST.
    Last,
}

/// The chosen word of the text, folded as the table's words are but not stemmed.
#[must_use]
pub fn word(text: &str, which: WordChoice, analyzer: &Analyzer) -> Option<String> {
    let mut found = None;
    analyzer.spans(text, &mut |span| {
        if found.is_none() || which == WordChoice::Last {
            found = Some(span.written.to_owned());
        }
    });
    found
}

/// The words of a vocabulary similar to this one, ordered by distance, then by documents (descending), then by
/// word.
///
/// `vocabulary` calls its argument with every word and its number of documents; words as written (`=word`) are
/// skipped. A word is similar if its length differs by at most `delta_len` characters and its distance is at
/// most `max_edits`, and less than its whole length. `max_matches` words are kept, and `limit` of them
/// returned. Cost: reads the whole vocabulary; a million words take about 60 milliseconds.
pub fn suggest(
    word: &str,
    options: &SuggestOptions,
    vocabulary: &mut dyn FnMut(Each<'_>),
) -> Vec<Suggestion> {
    let asked: Vec<char> = word.chars().take(MAX_WORD).collect();
    let mut nearest = Nearest::new(&asked, options);
    vocabulary(&mut |word, documents| nearest.offer(word, documents));
    let mut found = nearest.kept.into_sorted_vec();
    found.truncate(options.limit as usize);
    found
}

/// A callback for each word and its number of documents.
pub type Each<'e> = &'e mut dyn FnMut(&str, u64);

/// The nearest words so far.
struct Nearest<'o> {
    distances: Distances,
    options: &'o SuggestOptions,
    /// A heap with the worst on top.
    kept: BinaryHeap<Suggestion>,
    candidate: Vec<char>,
    most_edits: u32,
}

impl<'o> Nearest<'o> {
    fn new(asked: &[char], options: &'o SuggestOptions) -> Self {
        let all_but_one = (asked.len() as u32).saturating_sub(1);
        let most_edits = options.max_edits.min(all_but_one);
        let kept = BinaryHeap::new();
        let distances = Distances::new(asked);
        Self { distances, options, kept, candidate: Vec::new(), most_edits }
    }

    fn offer(&mut self, word: &str, documents: u64) {
        let room = self.options.max_matches as usize;
        if word.starts_with('=') || room == 0 || self.distances.length == 0 {
            return;
        }
        self.candidate.clear();
        self.candidate.extend(word.chars().take(MAX_WORD + 1));
        let longest = self.options.delta_len as usize;
        let has_other = |c: &char| !c.is_alphabetic();
        if self.candidate.len().abs_diff(self.distances.length as usize) > longest
            || !self.options.non_char && self.candidate.iter().any(has_other)
        {
            return;
        }
        let Some(distance) = self.distances.of(&self.candidate, self.most_edits) else { return };
        let documents = std::cmp::Reverse(documents);
        let found = Suggestion { distance, documents, word: word.to_owned() };
        if self.kept.len() < room {
            self.kept.push(found);
            return;
        }
        if let Some(mut worst) = self.kept.peek_mut().filter(|worst| found < **worst) {
            *worst = found;
        }
        // A word farther than the worst one kept cannot be a match any more.
        if let Some(worst) = self.kept.peek() {
            self.most_edits = self.most_edits.min(worst.distance);
        }
    }
}

/// Computes edit distances to one word, bit-parallel (Myers): one bit for each of its characters.
struct Distances {
    length: u32,
    /// The positions of each character as bits: an array for ASCII, and a sorted list for the others.
    ascii: [u64; 128],
    others: Vec<(char, u64)>,
}

impl Distances {
    fn new(asked: &[char]) -> Self {
        let mut ascii = [0; 128];
        let mut others: Vec<(char, u64)> = Vec::new();
        for (at, &c) in asked.iter().enumerate() {
            match (ascii.get_mut(c as usize), others.iter_mut().find(|(other, _)| *other == c)) {
                (Some(places), _) | (None, Some((_, places))) => *places |= 1 << at,
                (None, None) => others.push((c, 1 << at)),
            }
        }
        Self { length: asked.len() as u32, ascii, others }
    }

    fn places(&self, c: char) -> u64 {
        match self.ascii.get(c as usize) {
            Some(places) => *places,
            None => self.others.iter().find(|(other, _)| *other == c).map_or(0, |it| it.1),
        }
    }

    /// The distance of another word, if it is at most `most`. A column of the distance matrix is stored as
    /// differences between neighbouring cells: one bit set for +1 and one for -1.
    fn of(&self, other: &[char], most: u32) -> Option<u32> {
        let last = 1 << self.length.saturating_sub(1);
        let (mut more, mut less) = (u64::MAX, 0_u64);
        let mut distance = self.length;
        for (at, &c) in other.iter().enumerate() {
            let equal = self.places(c);
            let vertical = equal | less;
            let horizontal = ((equal & more).wrapping_add(more) ^ more) | equal;
            let (up, down) = (less | !(horizontal | more), more & horizontal);
            distance = distance + u32::from(up & last != 0) - u32::from(down & last != 0);
            // Each remaining character can reduce the distance by at most one.
            if distance > most + (other.len() - at - 1) as u32 {
                return None;
            }
            let (up, down) = (up << 1 | 1, down << 1);
            (more, less) = (down | !(vertical | up), up & vertical);
        }
        (distance <= most).then_some(distance)
    }
}
