//! Which words of a quorum are one.
//!
//! Sphinx compares the keywords of a quorum. Words with the same keyword, as a repeated word or several forms of one stem,
//! are one word that must occur as often; the first keeps its position and idf, the others are neither weighed nor
//! reported.
//!
//! ```text
//! "alphas alpha beta"/2 with stems: alpha, which must occur twice, and beta: two hits of them are enough
//! ```

use std::collections::{HashMap, HashSet};

use crate::query::{QuotedKind, Word};

/// A quorum of more words is treated as AND.
const QUORUM_WORDS: usize = 256;

/// The text that identifies a word of the query.
pub(super) fn text_of(word: &Word) -> String {
    if word.is_exact { format!("={}", word.text) } else { word.text.clone() }
}

/// How a quorum is evaluated.
pub(super) enum QuorumPlan {
    /// As an OR.
    Any,
    /// As an AND, perhaps with a warning.
    All(Option<String>),
    /// At least so many words. Words of the same keyword are one that must occur as often.
    AtLeast(u32),
}

impl QuorumPlan {
    /// How a quorum of so many words is evaluated; any other kind as an AND.
    pub fn of(count: usize, kind: QuotedKind) -> Self {
        let (least, warns) = match kind {
            QuotedKind::Quorum(least) => (least, true),
            QuotedKind::QuorumShare(share) => {
                let percent = (share * 100.0) as u32;
                // Rounded after each operation, as in Sphinx.
                let least = (1.0_f32 / 100.0 * percent as f32 * count as f32 + 0.5).floor();
                (least as u32, false)
            }
            QuotedKind::Phrase | QuotedKind::Proximity(_) => return Self::All(None),
        };
        if least == 1 && count > 1 {
            return Self::Any;
        }
        if least as usize >= count {
            return Self::All(warns.then(|| {
                format!(
                    "quorum threshold too high (words={count}, thresh={least}); replacing quorum \
                     operator with AND operator"
                )
            }));
        }
        if count > QUORUM_WORDS {
            let warning = format!("too many words ({count}) for quorum; replacing with an AND");
            return Self::All(Some(warning));
        }
        // A share of less than half a word.
        Self::AtLeast(least.max(1))
    }
}

/// The words of quorums that merge those of the same keyword.
#[derive(Default)]
pub(super) struct MergedWords {
    /// Whether there are such quorums.
    pub is_any: bool,
    /// The number of each identity: the keyword, or those that a word with wildcards stands for.
    numbers: HashMap<Vec<String>, usize>,
    /// The number of each word's identity, by its text.
    of_texts: HashMap<String, usize>,
    /// The identities in each quorum.
    quorums: HashSet<(usize, usize)>,
    /// The positions and texts of the first words of each identity in a quorum.
    kept: HashSet<(u32, String)>,
}

impl MergedWords {
    /// Whether the identity of a word is known.
    pub fn knows(&self, text: &str) -> bool {
        self.of_texts.contains_key(text)
    }

    /// Notes the identity of the word `text`.
    pub fn note(&mut self, text: &str, identity: Vec<String>) {
        let next = self.numbers.len();
        let number = *self.numbers.entry(identity).or_insert(next);
        self.of_texts.insert(text.to_owned(), number);
    }

    /// Whether a word is the first of its identity in its quorum, or in none. Words are asked for in their order.
    pub fn keeps(&mut self, word: &Word, quorum: Option<usize>) -> bool {
        let text = text_of(word);
        let (Some(quorum), Some(&identity)) = (quorum, self.of_texts.get(&text)) else {
            return true;
        };
        let is_first = self.quorums.insert((quorum, identity));
        if is_first {
            self.kept.insert((word.position, text));
        }
        is_first
    }

    /// The words of a quorum that stand for all of their identity, and how often they are written. Several words at one
    /// place are told from others by their texts.
    pub fn distinct<'w>(&self, words: &'w [Word]) -> Vec<(&'w Word, usize)> {
        let key = |word: &Word| {
            let all = || std::iter::once(word).chain(&word.others).map(text_of);
            match word.others.is_empty() {
                true => (self.of_texts.get(&text_of(word)).copied(), Vec::new()),
                false => (None, all().collect()),
            }
        };
        let keys: Vec<(Option<usize>, Vec<String>)> = words.iter().map(key).collect();
        let mut times: HashMap<_, usize> = HashMap::new();
        keys.iter().for_each(|key| *times.entry(key).or_default() += 1);
        let is_kept = |word: &Word| {
            !word.others.is_empty() || self.kept.contains(&(word.position, text_of(word)))
        };
        let kept = words.iter().zip(&keys).filter(|(word, _)| is_kept(word));
        kept.filter_map(|(word, key)| Some((word, times.remove(key)?))).collect()
    }
}
