//! The frequent words, and which of them are suffixes and prefixes of each word.
//!
//! The frequent words that are suffixes of one word are suffixes of each other, so the longest one determines
//! all. The same holds for prefixes.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::stream::Slot;

/// Most words in pairs: the most frequent ones.
const MOST_WORDS: usize = (1 << Slot::WORD_BITS) - 1;
/// A word with this many other frequent words as suffixes, or as prefixes, is in no pairs itself; the pairs of
/// those cover it.
const MOST_WITHIN: usize = 8;
/// Bits of the table of ends.
const TAIL_BITS: u32 = 16;

/// A frequent word.
#[derive(Clone, Copy)]
struct Word {
    term: u32,
    documents: u32,
    /// The next shorter frequent words that it ends and begins with; 0 for none.
    ends: u32,
    begins: u32,
    /// The number of words that end with it, and that begin with it.
    ending: u32,
    beginning: u32,
}

/// The frequent words, ascending by term, with numbers from 1 on.
pub(super) struct FrequentWords {
    words: Vec<Word>,
    /// The most documents of a frequent word that is left out.
    left_out: u32,
}

impl FrequentWords {
    /// `frequent` are the frequent words among `all`, by number and with document frequency; `all` are all
    /// words and separators in the vocabulary's order. Also returns the slot of each term that ends or begins
    /// with a frequent word.
    pub fn new<'a>(
        mut frequent: Vec<(u32, u32)>,
        all: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> (Self, Vec<(u32, Slot)>) {
        let mut left_out = 0;
        if frequent.len() > MOST_WORDS {
            frequent.sort_by_key(|&(term, documents)| (Reverse(documents), term));
            left_out = frequent.get(MOST_WORDS).map_or(0, |one| one.1);
            frequent.truncate(MOST_WORDS);
            frequent.sort_unstable();
        }
        let frequent = spelled(&frequent, all.clone());
        let kept = apart(&frequent);
        let mut same = kept.iter().peekable();
        let deep = frequent.iter().filter(|one| same.next_if(|kept| kept.0 == one.0).is_none());
        left_out = deep.map(|one| one.1).fold(left_out, u32::max);
        let mut known: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut tails = Tails::new();
        for (&(_, _, word), number) in kept.iter().zip(1..) {
            known.insert(word, number);
            tails.add(word);
        }
        let mut words = Vec::with_capacity(kept.len());
        let (mut slots, mut longest_ends) = (Vec::new(), Vec::new());
        let mut rest = kept.iter().peekable();
        let mut begins = Begins::default();
        for (term, word) in (0u32..).zip(all) {
            begins.keep(word);
            let longest = begins.longest();
            match rest.next_if(|one| one.0 == term) {
                Some(&(_, documents, _)) => {
                    let ends = tails.longest(&word[1..], &known);
                    let (ending, beginning) = (1, 1);
                    words.push(Word { term, documents, ends, begins: longest, ending, beginning });
                    let number = words.len() as u32;
                    slots.push((term, Slot::word(number, number, true)));
                    begins.push(word, number);
                }
                None => {
                    let ends = tails.longest(word, &known);
                    if ends != 0 || longest != 0 {
                        slots.push((term, Slot::word(ends, longest, false)));
                    }
                    longest_ends.push((ends, longest));
                }
            }
        }
        let mut frequent = Self { words, left_out };
        let lengths: Vec<usize> = kept.iter().map(|one| one.2.len()).collect();
        frequent.count_parts(&longest_ends, &lengths);
        (frequent, slots)
    }

    /// Counts, for each frequent word, the words that end and that begin with it. `longest` are the longest
    /// frequent suffix and prefix of the other words, `lengths` the lengths of the frequent words.
    fn count_parts(&mut self, longest: &[(u32, u32)], lengths: &[usize]) {
        let at = |number: u32| (number as usize).checked_sub(1);
        for &(ends, begins) in longest {
            at(ends).into_iter().for_each(|at| self.words[at].ending += 1);
            at(begins).into_iter().for_each(|at| self.words[at].beginning += 1);
        }
        // Longer words first, so that each count is complete before it is added to that of a shorter word.
        let mut order: Vec<usize> = (0..self.words.len()).collect();
        order.sort_by_key(|&at| Reverse(lengths[at]));
        for word in order {
            let Word { ends, begins, ending, beginning, .. } = self.words[word];
            at(ends).into_iter().for_each(|at| self.words[at].ending += ending);
            at(begins).into_iter().for_each(|at| self.words[at].beginning += beginning);
        }
    }

    /// The cost of finding the pair by positions, in documents whose positions are read: those of the rarer
    /// word, plus about one for each term that has the word as suffix or prefix.
    pub fn cost(&self, first: u32, second: u32) -> u32 {
        let (Some(a), Some(b)) = (self.get(first), self.get(second)) else { return 0 };
        a.documents.min(b.documents).saturating_add(a.ending).saturating_add(b.beginning)
    }

    /// The lowest document frequency, at least `least`, that at most `most` words exceed, none of them left
    /// out.
    pub fn all_above(&self, least: u32, most: usize) -> u32 {
        let mut documents: Vec<u32> = self.words.iter().map(|word| word.documents).collect();
        documents.sort_unstable_by_key(|&documents| Reverse(documents));
        documents.get(most).copied().unwrap_or(0).max(least).max(self.left_out)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The term of a word.
    pub fn term(&self, number: u32) -> u32 {
        self.get(number).map_or(0, |word| word.term)
    }

    /// How many documents hold a word.
    pub fn documents(&self, number: u32) -> u32 {
        self.get(number).map_or(0, |word| word.documents)
    }

    /// The word and those that it ends with, the longest first.
    pub fn ends(&self, number: u32) -> impl Iterator<Item = u32> {
        self.chain(number, |word| word.ends)
    }

    /// The word and those that it begins with, the longest first.
    pub fn begins(&self, number: u32) -> impl Iterator<Item = u32> {
        self.chain(number, |word| word.begins)
    }

    fn chain(&self, number: u32, next: impl Fn(&Word) -> u32) -> impl Iterator<Item = u32> {
        let some = move |number: u32| (number != 0).then_some(number);
        std::iter::successors(some(number), move |&number| some(next(self.get(number)?)))
    }

    fn get(&self, number: u32) -> Option<&Word> {
        self.words.get((number as usize).checked_sub(1)?)
    }
}

/// A term, its documents and its bytes.
type Spelled<'a> = (u32, u32, &'a [u8]);

fn spelled<'a>(frequent: &[(u32, u32)], all: impl Iterator<Item = &'a [u8]>) -> Vec<Spelled<'a>> {
    let mut rest = frequent.iter().peekable();
    let with_bytes = (0u32..).zip(all).filter_map(|(term, word)| {
        let &(_, documents) = rest.next_if(|one| one.0 == term)?;
        (!word.is_empty()).then_some((term, documents, word))
    });
    with_bytes.collect()
}

/// Leaves out words with too many frequent suffixes or prefixes.
fn apart<'a>(frequent: &[Spelled<'a>]) -> Vec<Spelled<'a>> {
    let mut begins = Begins::default();
    let mut kept = frequent.to_vec();
    kept.retain(|&(_, _, word)| {
        begins.keep(word);
        let few = begins.words.len() < MOST_WITHIN;
        if few {
            begins.push(word, 1);
        }
        few
    });
    // The number of suffixes of each, itself included, the shorter words first.
    let mut by_length: Vec<&[u8]> = kept.iter().map(|one| one.2).collect();
    by_length.sort_by_key(|word| word.len());
    let mut depths: FxHashMap<&[u8], u32> = FxHashMap::default();
    let mut tails = Tails::new();
    for word in by_length {
        let inner = tails.longest(&word[1..], &depths);
        if (inner as usize) < MOST_WITHIN {
            depths.insert(word, inner + 1);
            tails.add(word);
        }
    }
    kept.retain(|one| depths.contains_key(one.2));
    kept
}

/// The frequent words that are prefixes of the current word, while words are read in order.
#[derive(Default)]
struct Begins<'a> {
    words: Vec<(&'a [u8], u32)>,
}

impl<'a> Begins<'a> {
    /// Keeps those that are prefixes of the word.
    fn keep(&mut self, word: &[u8]) {
        while self.words.last().is_some_and(|(other, _)| !word.starts_with(other)) {
            self.words.pop();
        }
    }

    fn push(&mut self, word: &'a [u8], number: u32) {
        self.words.push((word, number));
    }

    fn longest(&self) -> u32 {
        self.words.last().map_or(0, |word| word.1)
    }
}

/// A table of the lengths of words with the same last bytes: most suffixes of a word need no look-up.
struct Tails {
    lengths: Vec<u32>,
}

impl Tails {
    fn new() -> Self {
        Self { lengths: vec![0; 1 << TAIL_BITS] }
    }

    fn add(&mut self, word: &[u8]) {
        let bytes = word.len().min(3);
        self.lengths[Self::place(word, bytes)] |= 1 << (word.len() - 1).min(31);
    }

    /// The value in `known` of the longest known suffix of the word; 0 for none.
    fn longest(&self, word: &[u8], known: &FxHashMap<&[u8], u32>) -> u32 {
        let mut lengths = 0;
        for bytes in 1..=word.len().min(3) {
            lengths |= self.lengths[Self::place(word, bytes)];
        }
        while lengths != 0 {
            let length = 32 - lengths.leading_zeros();
            let end = word.len().checked_sub(length as usize).map(|at| &word[at..]);
            if let Some(&found) = end.and_then(|end| known.get(end)) {
                return found;
            }
            lengths &= !(1 << (length - 1));
        }
        0
    }

    fn place(word: &[u8], bytes: usize) -> usize {
        let last = &word[word.len() - bytes..];
        let number = last.iter().fold(bytes as u32, |all, &byte| all << 8 | u32::from(byte));
        (number.wrapping_mul(0x9e37_79b1) >> (32 - TAIL_BITS)) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words of a chain.
    fn named(
        all: &[String],
        words: &FrequentWords,
        chain: impl Iterator<Item = u32>,
    ) -> Vec<String> {
        chain.map(|number| all[words.term(number) as usize].clone()).collect()
    }

    proptest! {
        #[test]
        fn frequent_words_know_the_words_they_start_and_end(
            all in proptest::collection::btree_set("[ab]{1,4}|[aé]{1,5}|[ab]{1,12}", 1..150),
            every in 1usize..5,
        ) {
            let all: Vec<String> = all.into_iter().collect();
            let frequent = (0..all.len() as u32).step_by(every).map(|term| (term, term + 7));
            let bytes = all.iter().map(|word| word.as_bytes());
            let (words, slots) = FrequentWords::new(frequent.collect(), bytes.clone());
            let kept: Vec<u32> = words.words.iter().map(|word| word.term).collect();
            for number in 1..=kept.len() as u32 {
                prop_assert_eq!(words.documents(number), words.term(number) + 7);
                let word = &all[words.term(number) as usize];
                let count = |fits: &dyn Fn(&String) -> bool| {
                    all.iter().filter(|other| fits(other)).count() as u32
                };
                let parts = words.get(number).unwrap();
                prop_assert_eq!(parts.ending, count(&|other| other.ends_with(word)));
                prop_assert_eq!(parts.beginning, count(&|other| other.starts_with(word)));
                prop_assert!(words.ends(number).count() <= MOST_WITHIN);
                prop_assert!(words.begins(number).count() <= MOST_WITHIN);
            }
            let mut slots = slots.into_iter().peekable();
            for (word, term) in all.iter().zip(0..) {
                let slot = slots.next_if(|slot| slot.0 == term).map_or(Slot::default(), |slot| slot.1);
                let is_kept = kept.binary_search(&term).is_ok();
                // Seen between two words that it stands with in no pairs.
                let other = Slot::word(1, 1, true).behind_space();
                let ends = slot.words(other).map_or(0, |one| one.0);
                let begins = Slot::word(1, 1, true).words(slot.behind_space());
                prop_assert_eq!(begins.is_some_and(|one| one.2), is_kept);
                let begins = begins.map_or(0, |one| one.1);
                let expect = |fits: &dyn Fn(&str) -> bool| {
                    let fitting = kept.iter().map(|&term| all[term as usize].clone());
                    let mut fitting: Vec<String> = fitting.filter(|other| fits(other)).collect();
                    fitting.sort_by_key(|other| Reverse(other.len()));
                    fitting
                };
                let found = named(&all, &words, words.ends(ends));
                prop_assert_eq!(found, expect(&|other| word.ends_with(other)), "{}", word);
                let found = named(&all, &words, words.begins(begins));
                prop_assert_eq!(found, expect(&|other| word.starts_with(other)), "{}", word);
            }
        }
    }
}
