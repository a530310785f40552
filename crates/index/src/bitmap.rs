//! A fixed-length set of document numbers, one bit each.

/// A set over `0..len`. Bits at and past `len` are always zero, so that counting needs no mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: u32,
}

impl Bitmap {
    /// The empty set over `0..len`.
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; words_for(len)], len }
    }

    /// The full set over `0..len`.
    pub fn full(len: u32) -> Self {
        let mut bitmap = Self { words: vec![!0; words_for(len)], len };
        bitmap.clear_tail();
        bitmap
    }

    /// The set whose words are given, lowest document in the lowest bit; missing words are zero.
    pub fn from_words(len: u32, words: impl IntoIterator<Item = u64>) -> Self {
        let mut words: Vec<u64> = words.into_iter().take(words_for(len)).collect();
        words.resize(words_for(len), 0);
        let mut bitmap = Self { words, len };
        bitmap.clear_tail();
        bitmap
    }

    fn clear_tail(&mut self) {
        if let (Some(last), tail @ 1..) = (self.words.last_mut(), self.len % 64) {
            *last &= (1 << tail) - 1;
        }
    }

    /// The size of the universe.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The words, lowest document in the lowest bit of the first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words, to be written; bits past `len` must stay zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Whether `doc` is in the set; false past the end.
    #[inline]
    pub fn contains(&self, doc: u32) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    /// Adds `doc`; true if it was not there. Documents past the end are ignored.
    #[inline]
    pub fn insert(&mut self, doc: u32) -> bool {
        if doc >= self.len {
            return false;
        }
        let word = &mut self.words[doc as usize / 64];
        let added = *word >> (doc % 64) & 1 == 0;
        *word |= 1 << (doc % 64);
        added
    }

    /// Takes `doc` out; true if it was there.
    #[inline]
    pub fn remove(&mut self, doc: u32) -> bool {
        let Some(word) = self.words.get_mut(doc as usize / 64) else { return false };
        let was = *word >> (doc % 64) & 1 == 1;
        *word &= !(1 << (doc % 64));
        was
    }

    /// How many documents are in the set.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// `self ∩= other`.
    pub fn intersect(&mut self, other: &Bitmap) {
        let theirs = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine &= theirs);
    }

    /// `self ∪= other`.
    pub fn union(&mut self, other: &Bitmap) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine |= theirs);
        self.clear_tail();
    }

    /// `self −= other`.
    pub fn subtract(&mut self, other: &Bitmap) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine &= !theirs);
    }

    /// `self ∆= other`: documents of one of them alone.
    pub fn toggle(&mut self, other: &Bitmap) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine ^= theirs);
        self.clear_tail();
    }

    /// The complement within `0..len`.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.clear_tail();
    }

    /// The documents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(index, &word)| Bits(word).map(move |bit| index as u32 * 64 + bit))
    }

    /// The documents, descending: the newest keys first.
    pub fn iter_descending(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .enumerate()
            .rev()
            .flat_map(|(index, &word)| BitsDescending(word).map(move |bit| index as u32 * 64 + bit))
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

fn words_for(len: u32) -> usize {
    len.div_ceil(64) as usize
}

struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;
    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

struct BitsDescending(u64);

impl Iterator for BitsDescending {
    type Item = u32;
    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = 63 - self.0.leading_zeros();
        self.0 ^= 1 << bit;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_tail_bits_stay_zero() {
        let mut bitmap = Bitmap::full(70);
        assert_eq!(bitmap.count(), 70);
        bitmap.invert();
        assert!(bitmap.is_empty());
        bitmap.invert();
        bitmap.union(&Bitmap::full(128));
        assert_eq!(bitmap.count(), 70);
        assert!(!bitmap.insert(70));
    }

    #[test]
    fn both_orders_visit_every_document() {
        let mut bitmap = Bitmap::new(200);
        for doc in [0, 63, 64, 127, 199] {
            bitmap.insert(doc);
        }
        assert_eq!(bitmap.iter().collect::<Vec<_>>(), [0, 63, 64, 127, 199]);
        assert_eq!(bitmap.iter_descending().collect::<Vec<_>>(), [199, 127, 64, 63, 0]);
        assert!(bitmap.remove(63) && !bitmap.contains(63));
    }
}
