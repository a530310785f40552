//! The sentences of one language in a fixed order of neighbours, and rows put together from them.

use crate::{
    corpus::Document,
    random::{SplitMix64, mix},
};

use super::rename::Names;

/// How far from its anchor, in sentences, the other sentences of a row may start.
const WINDOW: usize = 256;
/// How many sentences the last one of a row is chosen from.
const LAST_CHOICE: usize = 12;
/// The largest distance between two documents, ordered by the length of their first sentences, at
/// which one may take the other's length.
const NEAR_IN_LENGTH: usize = 200;

/// The documents of one language.
pub struct Pool {
    /// Ordered by category, year and id: neighbours are about similar things.
    documents: Vec<Document>,
    /// The first sentence of each document.
    firsts: Vec<String>,
    /// All the other sentences in the order of the documents.
    rest: Vec<String>,
    /// Where in `rest` the sentences of each document start.
    starts: Vec<usize>,
    /// The length of each document's text in characters, ordered by the first sentence's length.
    lengths: Vec<usize>,
    /// Each document's rank in that order.
    ranks: Vec<usize>,
    /// The separator between two sentences.
    space: &'static str,
    /// The rare words.
    pub names: Names,
}

impl Pool {
    /// Cuts the documents into sentences and finds their rare words.
    pub fn new(mut documents: Vec<&Document>) -> Self {
        documents.sort_by(|a, b| (&a.category, a.year, a.id).cmp(&(&b.category, b.year, b.id)));
        let names = Names::new(&documents);
        let is_spaced = documents.first().is_none_or(|document| document.language != "ja");
        let (mut firsts, mut rest, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for document in &documents {
            let mut sentences = sentences(&document.text).into_iter().map(str::to_owned);
            firsts.push(sentences.next().unwrap_or_default());
            starts.push(rest.len());
            rest.extend(sentences);
        }
        let mut by_first: Vec<usize> = (0..documents.len()).collect();
        by_first.sort_by_key(|document| firsts[*document].chars().count());
        let mut ranks = vec![0; documents.len()];
        by_first.iter().enumerate().for_each(|(rank, document)| ranks[*document] = rank);
        let length = |document: &usize| documents[*document].text.chars().count();
        Self {
            lengths: by_first.iter().map(length).collect(),
            ranks,
            firsts,
            rest,
            starts,
            documents: documents.into_iter().cloned().collect(),
            space: if is_spaced { " " } else { "" },
            names,
        }
    }

    /// The `nth` row: an anchor document, its first sentence, and consecutive sentences near it, until the length of
    /// another document is reached. Each replica uses every document as the anchor once and starts at its own distance
    /// from it, so that it uses most sentences once.
    pub fn compose(&self, nth: u64, random: &mut SplitMix64) -> (&Document, String) {
        let replica = self.replica(nth);
        let anchor = permuted(nth % self.documents.len() as u64, self.documents.len(), replica);
        let target = self.target(anchor, random);
        let mut text = self.firsts[anchor].clone();
        let mut length = text.chars().count();
        let count = self.rest.len();
        let shift = SplitMix64::new(mix(replica)).below(2 * WINDOW + 1);
        let start = self.starts[anchor] + count.max(WINDOW) + shift - WINDOW;
        let mut from = start;
        while let Some(place) = self.next_sentence(from, target.saturating_sub(length)) {
            let sentence = &self.rest[place % count];
            text.push_str(self.space);
            text.push_str(sentence);
            length += self.space.len() + sentence.chars().count();
            from = place + 1;
        }
        (&self.documents[anchor], text)
    }

    /// The sentence after `from` that continues a row which lacks `lacking` characters: the next one if it fits, else
    /// the one of several whose length comes closest; `None` if the row is closer to its length without one.
    fn next_sentence(&self, from: usize, lacking: usize) -> Option<usize> {
        let length = |place: usize| {
            let sentence = self.rest.get(place % self.rest.len().max(1))?;
            Some(self.space.len() + sentence.chars().count())
        };
        if length(from)? <= lacking {
            return Some(from);
        }
        let best = (from..from + LAST_CHOICE)
            .min_by_key(|place| length(*place).map(|length| length.abs_diff(lacking)))?;
        (length(best)?.abs_diff(lacking) < lacking).then_some(best)
    }

    /// Which replica of the documents the `nth` row belongs to: 1, 2, 3 …
    pub fn replica(&self, nth: u64) -> u64 {
        nth / self.documents.len() as u64 + 1
    }

    /// The length of a document whose first sentence is about as long as the anchor's, since short documents have short
    /// first sentences.
    fn target(&self, anchor: usize, random: &mut SplitMix64) -> usize {
        let place = self.ranks[anchor] + random.below(2 * NEAR_IN_LENGTH + 1);
        let last = self.lengths.len() - 1;
        self.lengths[place.saturating_sub(NEAR_IN_LENGTH).min(last)]
    }
}

/// A permutation of the numbers below `count`, different in each replica.
fn permuted(number: u64, count: usize, replica: u64) -> usize {
    let count = count as u64;
    let mut factor = mix(replica) % count;
    while greatest_common_divisor(factor, count) != 1 {
        factor += 1;
    }
    let product = u128::from(number) * u128::from(factor) + u128::from(mix(!replica) % count);
    (product % u128::from(count)) as usize
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Splits a text after `。` (and the bracket or quote that closes it) and after a full stop before a space.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((offset, c)) = characters.next() {
        let next = characters.peek().map(|(_, c)| *c);
        let ends = match c {
            '.' | '!' | '?' => next == Some(' '),
            '。' | '！' | '？' => !matches!(next, Some('」' | '』' | '）')),
            _ => false,
        };
        if ends {
            sentences.push(text[start..offset + c.len_utf8()].trim());
            start = offset + c.len_utf8();
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_sentences() {
        assert_eq!(sentences("One. Two 1.5 m! Three"), ["One.", "Two 1.5 m!", "Three"]);
        assert_eq!(sentences("「一。」と二。三。"), ["「一。」と二。", "三。"]);
        assert!(sentences(" ").is_empty());
    }

    #[test]
    fn a_permutation_takes_every_number_once() {
        for (count, replica) in [(1, 1), (2, 7), (12, 3), (50_000, 2)] {
            let mut numbers: Vec<usize> =
                (0..count as u64).map(|number| permuted(number, count, replica)).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count} {replica}");
        }
    }

    #[test]
    fn meets_the_lengths_of_the_documents() {
        let documents: Vec<Document> = (1..=40)
            .map(|id| Document {
                id,
                language: "en".into(),
                text: vec!["Ten chars."; id as usize].join(" "),
                ..Default::default()
            })
            .collect();
        let pool = Pool::new(documents.iter().collect());
        let mut random = SplitMix64::new(5);
        let total: usize = (0..2000).map(|nth| pool.compose(nth, &mut random).1.len()).sum();
        let real: usize = documents.iter().map(|document| document.text.len()).sum();
        let (generated, real) = (total as f64 / 2000.0, real as f64 / 40.0);
        assert!((generated / real - 1.0).abs() < 0.05, "{generated} {real}");
    }
}
