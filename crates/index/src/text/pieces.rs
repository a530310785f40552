//! Finds the substrings ("pieces") of words whose unions are most expensive, without weighing every
//! substring.
//!
//! A piece occurs in no more words than any substring of it, so it is no more expensive. Pieces are weighed
//! by ascending length, and only if both substrings that are one character shorter were expensive (as in the
//! Apriori algorithm). So the tables stay small however many words there are.

use rustc_hash::FxHashMap;

/// The longest piece, in bytes and in code points.
const MAX_PIECE_BYTES: usize = 7;
const MAX_PIECE_CHARS: usize = 4;

/// A piece with its length in the last byte, ordered as its bytes.
pub(super) type PieceKey = u64;

/// The key of a piece that is short enough to have one.
pub(super) fn piece_key(piece: &[u8]) -> Option<PieceKey> {
    if piece.len() > MAX_PIECE_BYTES {
        return None;
    }
    let padded = piece.iter().enumerate();
    let key = padded.fold(0, |key, (at, &byte)| key | u64::from(byte) << (56 - 8 * at));
    Some(key | piece.len() as u64)
}

/// The key of a word that is a piece: short enough in characters too.
pub(super) fn word_key(word: &str) -> Option<PieceKey> {
    let is_short = word.chars().nth(MAX_PIECE_CHARS).is_none();
    piece_key(word.as_bytes()).filter(|_| is_short)
}

/// Words, each with a number and the cost of uniting its documents.
#[derive(Default)]
pub(super) struct Words {
    text: String,
    entries: Vec<Entry>,
}

struct Entry {
    end: u32,
    number: u32,
    cost: u32,
}

impl Words {
    /// Appends a word. All words together have less than 4 GiB.
    pub fn push(&mut self, word: &str, number: u32, cost: u32) {
        self.text.push_str(word);
        self.entries.push(Entry { end: self.text.len() as u32, number, cost });
    }

    /// Calls `visit(number, word)` for each word.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &str)) {
        self.for_each_entry(|entry, word| visit(entry.number, word));
    }

    /// The pieces whose words cost at least `least` in total, with that cost. A word counts once for each
    /// occurrence of the piece in it.
    pub fn dear_pieces(&self, least: u64) -> FxHashMap<PieceKey, u64> {
        let mut dear = FxHashMap::default();
        let mut shorter = Filter::new([0].into_iter());
        for chars in 1..=MAX_PIECE_CHARS {
            let costs = self.weigh(chars, &shorter).dear(least);
            if costs.is_empty() {
                break;
            }
            shorter = Filter::new(costs.keys().copied());
            dear.extend(costs);
        }
        dear
    }

    /// The costs of those pieces of `chars` characters whose both substrings of one character less are in
    /// `dear`.
    fn weigh(&self, chars: usize, dear: &Filter) -> Costs {
        let mut costs = Costs::new();
        self.for_each_entry(|entry, word| {
            let cost = u64::from(entry.cost);
            for_each_piece_of(word, chars, &mut |piece, begin, end| {
                if dear.may_have(begin) && dear.may_have(end) {
                    costs.add(piece, cost);
                }
            });
        });
        costs
    }

    fn for_each_entry(&self, mut visit: impl FnMut(&Entry, &str)) {
        let mut start = 0;
        for entry in &self.entries {
            let end = entry.end as usize;
            self.text.get(start..end).into_iter().for_each(|word| visit(entry, word));
            start = end;
        }
    }
}

/// Costs of pieces. Those of one or two bytes, the most common ones, are in an array.
struct Costs {
    short: Vec<u64>,
    long: FxHashMap<PieceKey, u64>,
}

impl Costs {
    fn new() -> Self {
        Self { short: vec![0; 1 << 16], long: FxHashMap::default() }
    }

    #[inline]
    fn add(&mut self, piece: PieceKey, cost: u64) {
        match piece as u8 {
            0..3 => self.short[(piece >> 48) as usize] += cost,
            _ => *self.long.entry(piece).or_default() += cost,
        }
    }

    /// The pieces that cost at least `least`. A word contains no NUL, so a nonzero second byte marks a piece
    /// of two bytes.
    fn dear(self, least: u64) -> FxHashMap<PieceKey, u64> {
        let mut dear = self.long;
        dear.retain(|_, cost| *cost >= least);
        let short = self.short.into_iter().zip(0u64..).filter(|&(cost, _)| cost >= least.max(1));
        dear.extend(short.map(|(cost, bytes)| {
            let length = if bytes & 0xff == 0 { 1 } else { 2 };
            (bytes << 48 | length, cost)
        }));
        dear
    }
}

/// An approximate set of keys, with a few false positives.
struct Filter(Vec<u64>);

impl Filter {
    /// Bits that stay in the processor's fastest cache.
    const BITS: u32 = 18;

    fn new(keys: impl Iterator<Item = PieceKey>) -> Self {
        let mut words = vec![0; 1 << (Self::BITS - 6)];
        keys.map(Self::place).for_each(|(word, bit)| words[word] |= bit);
        Self(words)
    }

    #[inline]
    fn may_have(&self, key: PieceKey) -> bool {
        let (word, bit) = Self::place(key);
        self.0[word] & bit != 0
    }

    #[inline]
    fn place(key: PieceKey) -> (usize, u64) {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::BITS);
        ((hash / 64) as usize, 1 << (hash % 64))
    }
}

/// Maps the keys of given pieces to their numbers.
pub(super) struct PieceSlots {
    slots: FxHashMap<PieceKey, usize>,
    filter: Filter,
}

impl PieceSlots {
    /// Numbers the pieces in their order.
    pub fn new(pieces: &[PieceKey]) -> Self {
        let slots = pieces.iter().copied().zip(0..).collect();
        Self { slots, filter: Filter::new(pieces.iter().copied()) }
    }

    /// The number of the piece, if it is one of them.
    #[inline]
    pub fn get(&self, piece: PieceKey) -> Option<usize> {
        self.filter.may_have(piece).then(|| self.slots.get(&piece).copied()).flatten()
    }
}

/// Visits every piece of a word, each as often as it begins in the word.
pub(super) fn for_each_piece(word: &str, mut visit: impl FnMut(PieceKey)) {
    for chars in 1..=MAX_PIECE_CHARS {
        for_each_piece_of(word, chars, &mut |piece, _, _| visit(piece));
    }
}

/// Visits the pieces of `chars` characters, each with its substrings without the last and without
/// the first character.
fn for_each_piece_of(
    word: &str,
    chars: usize,
    visit: &mut impl FnMut(PieceKey, PieceKey, PieceKey),
) {
    let bytes = word.as_bytes();
    if word.is_ascii() {
        return for_each_ascii_piece(bytes, chars, visit);
    }
    let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
    for window in starts.windows(chars + 1) {
        let key = |from: usize, to: usize| piece_key(&bytes[window[from]..window[to]]);
        if let (Some(piece), Some(begin), Some(end)) =
            (key(0, chars), key(0, chars - 1), key(1, chars))
        {
            visit(piece, begin, end);
        }
    }
}

fn for_each_ascii_piece(
    bytes: &[u8],
    chars: usize,
    visit: &mut impl FnMut(PieceKey, PieceKey, PieceKey),
) {
    // The last `n` bytes of a window, as their key.
    let key = |window: u64, n: usize| match n {
        0 => 0,
        n => window << (64 - 8 * n) | n as u64,
    };
    let mut window = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        window = window << 8 | u64::from(byte);
        if at + 1 >= chars {
            visit(key(window, chars), key(window >> 8, chars - 1), key(window, chars - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[(&str, u32)]) -> Words {
        let mut made = Words::default();
        words.iter().zip(0..).for_each(|(&(word, cost), at)| made.push(word, at, cost));
        made
    }

    fn all_costs(words: &[(&str, u32)]) -> FxHashMap<PieceKey, u64> {
        let mut costs = FxHashMap::default();
        for &(word, cost) in words {
            for_each_piece(word, |key| *costs.entry(key).or_default() += u64::from(cost));
        }
        costs
    }

    #[test]
    fn piece_keys_order_like_pieces() {
        let pieces = ["a", "ab", "abc", "b", "é", "日", "日本"];
        let keys = pieces.map(|piece| piece_key(piece.as_bytes()).unwrap());
        assert!(keys.is_sorted());
        assert_eq!(keys[1], u64::from_be_bytes(*b"ab\0\0\0\0\0\x02"));
        assert_eq!(piece_key("日本東".as_bytes()), None);
    }

    #[test]
    fn pieces_of_every_length_are_visited() {
        let mut seen = Vec::new();
        for_each_piece("aéb", |key| seen.push(key));
        let expected = ["a", "é", "b", "aé", "éb", "aéb"];
        assert_eq!(seen, expected.map(|piece| piece_key(piece.as_bytes()).unwrap()));
        seen.clear();
        for_each_piece("abcde", |key| seen.push(key));
        let expected = "a b c d e ab bc cd de abc bcd cde abcd bcde".split(' ');
        let expected = expected.map(|piece| piece_key(piece.as_bytes()).unwrap());
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn all_expensive_pieces_are_found() {
        let some = [
            ("the", 40),
            ("there", 7),
            ("other", 9),
            ("banana", 30),
            ("ané", 3),
            ("éan", 5),
            ("한국어", 20),
            ("대한민국", 25),
        ];
        let all = all_costs(&some);
        for least in [1, 5, 20, 45, 60, 1_000] {
            let mut expected = all.clone();
            expected.retain(|_, cost| *cost >= least);
            assert_eq!(words(&some).dear_pieces(least), expected, "{least}");
        }
    }
}
