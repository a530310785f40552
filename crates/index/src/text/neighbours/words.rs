//! Which pairs of words have lists, and their documents.

use rustc_hash::FxHashMap;

use super::{lists::Growing, stream::Stream};

/// Cells that count pairs roughly before they are counted.
const SKETCH_BITS: u32 = 22;
/// Bits that say no to most pairs without a list.
const FILTER_BITS: u32 = 21;
/// Two terms are remembered by so many bits of their hash, with so many pairs in all.
const TOLD_BITS: u32 = 15;
const MOST_TOLD: usize = 1 << 17;
/// No number of a word.
const NONE: u32 = u32::MAX;

/// The frequent words, and which terms end and begin with them.
pub(super) struct FrequentWords {
    /// The terms of the frequent words.
    terms: Vec<u32>,
    /// By term: its number among the frequent words.
    numbers: Vec<u32>,
    ends: Pieces,
    begins: Pieces,
}

/// For each term some frequent words, by their numbers.
#[derive(Default)]
struct Pieces {
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

impl Pieces {
    #[inline]
    fn of(&self, term: usize) -> &[u32] {
        match self.starts.get(term..term + 2) {
            Some(&[start, end]) => &self.numbers[start as usize..end as usize],
            _ => &[],
        }
    }

    fn push(&mut self, words: impl Iterator<Item = u32>) {
        self.starts.push(self.numbers.len() as u32);
        self.numbers.extend(words);
    }
}

impl FrequentWords {
    /// `frequent` are the numbers of frequent words among `all`, which are all words and
    /// separators in the vocabulary's order.
    pub fn new<'a>(frequent: Vec<u32>, all: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut known: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut numbers = Vec::new();
        let mut rest = frequent.iter().zip(0u32..).peekable();
        for (term, word) in (0u32..).zip(all.clone()) {
            let number = rest.next_if(|&(&other, _)| other == term).map(|(_, number)| number);
            numbers.push(number.unwrap_or(NONE));
            known.extend(number.map(|number| (word, number)));
        }
        let longest = known.keys().map(|word| word.len()).max().unwrap_or(0);
        let (mut ends, mut begins) = (Pieces::default(), Pieces::default());
        for word in all {
            let boundary = |at: &usize| word.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
            let from = word.len().saturating_sub(longest);
            let tails = (from..word.len()).filter(boundary).map(|at| &word[at..]);
            ends.push(tails.filter_map(|tail| known.get(tail).copied()));
            let to = word.len().min(longest);
            let heads = (1..=to).filter(boundary).map(|at| &word[..at]);
            begins.push(heads.filter_map(|head| known.get(head).copied()));
        }
        ends.push([].into_iter());
        begins.push([].into_iter());
        Self { terms: frequent, numbers, ends, begins }
    }

    /// Whether a term matters to pairs.
    pub fn has(&self, term: u32) -> bool {
        let term = term as usize;
        !self.ends.of(term).is_empty() || !self.begins.of(term).is_empty()
    }

    fn number(&self, term: usize) -> u32 {
        self.numbers.get(term).copied().unwrap_or(NONE)
    }
}

/// A pair with a list.
pub(super) struct Pair {
    /// The terms of its words.
    pub terms: (u32, u32),
    /// How many documents hold it as two whole words.
    pub exact: u32,
    /// The documents that hold it.
    pub docs: Growing,
}

/// The pairs that stand as whole words in `least` documents and more, ascending by terms.
pub(super) fn pairs(stream: &Stream, words: &FrequentWords, least: u32) -> Vec<Pair> {
    let mut counted: Vec<((u32, u32), u32)> = count(stream, words, least).into_iter().collect();
    counted.sort_unstable();
    let slots: FxHashMap<(u32, u32), u32> = counted.iter().map(|one| one.0).zip(0u32..).collect();
    let mut filter = vec![0u64; 1 << (FILTER_BITS - 6)];
    for &(a, b) in slots.keys() {
        let bit = hash(a, b, FILTER_BITS);
        filter[bit / 64] |= 1 << (bit % 64);
    }
    let mut docs: Vec<Growing> = counted.iter().map(|_| Growing::default()).collect();
    let mut told = Told::new();
    stream.for_each(|doc, slots_of_doc| {
        for_each_pair(slots_of_doc, |left, right| {
            let pairs = told.pairs(left, right, |told| {
                for &a in words.ends.of(left) {
                    for &b in words.begins.of(right) {
                        let bit = hash(a, b, FILTER_BITS);
                        if filter[bit / 64] >> (bit % 64) & 1 == 1 {
                            told.extend(slots.get(&(a, b)));
                        }
                    }
                }
            });
            pairs.iter().for_each(|&pair| docs[pair as usize].add(doc));
        });
    });
    let made = counted.into_iter().zip(docs).map(|(((a, b), exact), docs)| {
        let terms = (words.terms[a as usize], words.terms[b as usize]);
        Pair { terms, exact, docs }
    });
    made.collect()
}

/// Which pairs two terms hold that stand behind each other, of those that were asked about of late:
/// most are a few frequent ones.
struct Told {
    /// (left term + 1, right term, start, end)
    entries: Vec<(u32, u32, u32, u32)>,
    pairs: Vec<u32>,
}

impl Told {
    fn new() -> Self {
        Self { entries: vec![(0, 0, 0, 0); 1 << TOLD_BITS], pairs: Vec::new() }
    }

    #[inline]
    fn pairs(&mut self, left: usize, right: usize, find: impl FnOnce(&mut Vec<u32>)) -> &[u32] {
        let (left, right) = (left as u32, right as u32);
        let place = hash(left, right, TOLD_BITS);
        let (known_left, known_right, start, end) = self.entries[place];
        if (known_left, known_right) == (left + 1, right) {
            return &self.pairs[start as usize..end as usize];
        }
        if self.pairs.len() > MOST_TOLD {
            self.pairs.clear();
            self.entries.fill((0, 0, 0, 0));
        }
        let start = self.pairs.len();
        find(&mut self.pairs);
        self.entries[place] = (left + 1, right, start as u32, self.pairs.len() as u32);
        &self.pairs[start..]
    }
}

/// In how many documents two frequent words stand behind each other, if in `least` at least.
fn count(stream: &Stream, words: &FrequentWords, least: u32) -> FxHashMap<(u32, u32), u32> {
    let mut sketch = vec![0u8; 1 << SKETCH_BITS];
    let each = |visit: &mut dyn FnMut(u32, u32, u32)| {
        stream.for_each(|doc, slots| {
            for_each_pair(slots, |left, right| {
                let (a, b) = (words.number(left), words.number(right));
                if a != NONE && b != NONE {
                    visit(doc, a, b);
                }
            });
        });
    };
    each(&mut |_, a, b| {
        let cell = &mut sketch[hash(a, b, SKETCH_BITS)];
        *cell = cell.saturating_add(1);
    });
    let enough = least.min(u32::from(u8::MAX)) as u8;
    let mut counts: FxHashMap<(u32, u32), (u32, u32)> = FxHashMap::default();
    each(&mut |doc, a, b| {
        if sketch[hash(a, b, SKETCH_BITS)] >= enough {
            let (count, last) = counts.entry((a, b)).or_insert((0, u32::MAX));
            *count += u32::from(*last != doc);
            *last = doc;
        }
    });
    counts.retain(|_, (count, _)| *count >= least);
    counts.into_iter().map(|(pair, (count, _))| (pair, count)).collect()
}

/// Calls `visit` with the terms on both sides of each single space.
#[inline]
fn for_each_pair(slots: &[u32], mut visit: impl FnMut(usize, usize)) {
    for two in slots.windows(2) {
        if let &[left, right] = two
            && left > 1
            && right > 1
            && right & 1 == 1
        {
            visit((left >> 1) as usize - 1, (right >> 1) as usize - 1);
        }
    }
}

#[inline]
fn hash(a: u32, b: u32, bits: u32) -> usize {
    let both = u64::from(a) << 32 | u64::from(b);
    let mixed = both.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - bits)) as usize
}
