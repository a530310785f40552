//! How often the rarer words of a query stand in the documents of a segment.
//!
//! A word adds the more to BM25 the more often it stands in a document, and the rarer it is the more that matters. So the
//! frequencies of words that are in few documents are read at once; frequent words count as if they stood everywhere as
//! often as can be, which is hardly more.

use std::cell::Cell;

use remora_index::words::WordsIndex;
use remora_words::matching::Contributor;

use super::{bounds::WeightBounds, until};
use crate::{Error, Result, interrupt::InterruptTicker};

/// Words in more documents are not read, nor those in more than so many times as many as may be among the best.
const MOST_DOCUMENTS: usize = 1 << 17;
const MOST_TIMES: usize = 8;

/// A frequency of this or more is not told.
const MANY: u8 = u8::MAX;

/// The frequencies of words.
pub(super) struct Impacts {
    /// Of the words by their places in [`WeightBounds::contributors`].
    words: Vec<Option<WordImpacts>>,
}

/// The frequencies of a word.
struct WordImpacts {
    word: Contributor,
    /// The documents with the word, ascending.
    docs: Vec<u32>,
    frequencies: Vec<u8>,
    /// The place of the document that was asked for last.
    at: Cell<usize>,
}

impl Impacts {
    /// Reads the words whose documents are stored as lists and that make weights higher. `numbers` are those of the
    /// keywords of `bounds.terms`; `None` for a term of several keywords, or of one that the segment does not have. So
    /// many documents are `candidates`.
    pub fn read(
        index: &WordsIndex,
        bounds: &WeightBounds<'_>,
        (numbers, candidates): (&[Option<u32>], u32),
        looks: &mut InterruptTicker,
    ) -> Result<Self> {
        let most = MOST_DOCUMENTS.min((candidates as usize).saturating_mul(MOST_TIMES));
        let mut words = Vec::with_capacity(bounds.shares.len());
        for (word, &(term, _)) in bounds.contributors.words.iter().zip(&bounds.shares) {
            let number = numbers.get(term).copied().flatten().filter(|_| word.idf > 0.0);
            words.push(match number {
                Some(number) => WordImpacts::read(index, *word, (number, most), looks)?,
                None => None,
            });
        }
        Ok(Self { words })
    }

    /// An upper bound of what a word, by its place, adds to the sum of a document that contains it; `None` if it is not
    /// known. It takes the least time for ascending documents.
    #[inline]
    pub fn share(&self, place: usize, doc: u32, bounds: &WeightBounds<'_>) -> Option<f32> {
        let word = self.words.get(place)?.as_ref()?;
        let frequency = word.frequency(doc)?;
        Some(bounds.counted(&word.word, frequency.into()))
    }
}

impl WordImpacts {
    fn read(
        index: &WordsIndex,
        word: Contributor,
        (number, most): (u32, usize),
        looks: &mut InterruptTicker,
    ) -> Result<Option<Self>> {
        let count = index.document_count(number)? as usize;
        if count > most || index.bits(number)?.is_some() {
            return Ok(None);
        }
        let (mut docs, mut frequencies) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut failed = None::<Error>;
        index.for_each_posting(number, |doc, frequency| {
            docs.push(doc);
            frequencies.push(u8::try_from(frequency).unwrap_or(MANY));
            until(looks.step(), &mut failed)
        })?;
        failed.map_or(Ok(()), Err)?;
        Ok(Some(Self { word, docs, frequencies, at: Cell::new(0) }))
    }

    /// The frequency in a document; `None` if it is not told.
    #[inline]
    fn frequency(&self, doc: u32) -> Option<u8> {
        let mut at = self.at.get();
        if at > 0 && self.docs.get(at - 1).is_some_and(|&before| before >= doc) {
            at = 0;
        }
        // From where the last one was, in steps that grow.
        let rest = self.docs.get(at..).unwrap_or_default();
        let mut step = 1;
        while rest.get(step).is_some_and(|&behind| behind < doc) {
            step *= 2;
        }
        let low = step / 2;
        let near = rest.get(low..rest.len().min(step + 1)).unwrap_or_default();
        at += low + near.partition_point(|&other| other < doc);
        self.at.set(at);
        let is_there = self.docs.get(at) == Some(&doc);
        self.frequencies.get(at).copied().filter(|&it| is_there && it != MANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_found_in_any_order() {
        let mut state = 23u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        for _ in 0..200 {
            let mut doc = below(3);
            let (mut docs, mut frequencies) = (Vec::new(), Vec::new());
            for _ in 0..below(200) {
                docs.push(doc);
                frequencies.push([1, 2, 7, MANY][below(4) as usize]);
                doc += 1 + below(5);
            }
            let word = Contributor { term: 0, idf: 1.0, position: 1 };
            let listed: Vec<(u32, u8)> = docs.iter().copied().zip(frequencies.clone()).collect();
            let impacts = WordImpacts { word, docs, frequencies, at: Cell::new(0) };
            let mut asked = 0;
            for _ in 0..300 {
                asked = if below(9) == 0 { below(1_000) } else { asked + below(12) };
                let expected = listed.iter().find(|it| it.0 == asked && it.1 != MANY);
                assert_eq!(impacts.frequency(asked), expected.map(|it| it.1), "{asked}");
            }
        }
    }
}
