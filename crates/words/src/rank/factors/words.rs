//! The words of a query, by position.

/// The word at a query position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryWord {
    /// The idf of the word, at its first position; the mean if a wildcard matches several keywords.
    pub idf: f32,
    /// Whether this is the first position of a word.
    pub is_first: bool,
    /// The first position of the word at this position.
    pub first: Option<u32>,
}

/// An idf up to this counts as missing.
const NO_IDF: f32 = 1e-6;

/// The words of a query, as the factors need them.
#[derive(Clone, Debug)]
pub(super) struct FactorWords {
    at: Vec<At>,
    /// The positions that count as words, ascending.
    pub counted: Vec<usize>,
    /// The greatest position of a word.
    pub last: u32,
    /// The number of words (if repetitions do not count as one word: of positions), for factors that need several.
    pub count: usize,
    /// The number of distinct words.
    pub distinct: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct At {
    idf: f32,
    is_word: bool,
    /// The position for which the word counts.
    counts_as: Option<usize>,
    /// The position of the next word.
    next: Option<u32>,
    /// Whether the query repeats the word.
    is_repeated: bool,
}

impl FactorWords {
    /// `folds`: whether repetitions of a word count as one word.
    pub fn new(words: &[QueryWord], last: u32, folds: bool) -> Self {
        let mut at: Vec<At> = words
            .iter()
            .enumerate()
            .map(|(position, word)| At {
                idf: word.idf,
                is_word: word.is_first,
                counts_as: word.is_first.then_some(position),
                ..At::default()
            })
            .collect();
        let firsts = (0..words.len()).filter(|&position| at[position].is_word);
        let firsts: Vec<usize> = firsts.collect();
        for pair in firsts.windows(2) {
            at[pair[0]].next = u32::try_from(pair[1]).ok();
        }
        let distinct = firsts.len() as u32;
        if folds {
            fold(&mut at, words);
        }
        let counted = (0..at.len()).filter(|&it| at[it].is_word && at[it].counts_as == Some(it));
        let counted: Vec<usize> = counted.collect();
        let count = if folds { counted.len() } else { last as usize };
        Self { at, counted, last, count, distinct }
    }

    /// The number of positions.
    pub fn positions(&self) -> usize {
        self.at.len()
    }

    pub fn idf(&self, position: usize) -> f32 {
        self.at.get(position).map_or(0.0, |at| at.idf)
    }

    pub fn is_word(&self, position: usize) -> bool {
        self.at.get(position).is_some_and(|at| at.is_word)
    }

    pub fn counts_as(&self, position: usize) -> Option<usize> {
        self.at.get(position).and_then(|at| at.counts_as)
    }

    pub fn next(&self, position: usize) -> Option<u32> {
        self.at.get(position).and_then(|at| at.next)
    }

    pub fn is_repeated(&self, position: usize) -> bool {
        self.at.get(position).is_some_and(|at| at.is_repeated)
    }
}

/// Lets repeated words count for their first position, with its idf.
fn fold(at: &mut [At], words: &[QueryWord]) {
    for (position, word) in words.iter().enumerate() {
        let first = word.first.map(|first| first as usize).filter(|&first| first < at.len());
        at[position].counts_as = first;
        let Some(first) = first else { continue };
        at[position].is_word = true;
        at[first].is_word = true;
        if first != position {
            at[position].is_repeated = true;
            at[first].is_repeated = true;
        }
        if at[position].idf.abs() <= NO_IDF {
            at[position].idf = at[first].idf;
        }
    }
}
