//! Hits of the words of a phrase or a proximity, in the order of places.

/// The places of a quoted expression's words in one document.
///
/// ```text
/// hit := place:32 leaf:32      place: as `Hit::at`; leaf: the number of the word, in the order in which words are read
/// ```
/// So hits sorted as numbers ascend by place, and at one place in the order of the words.
pub(crate) struct QuotedHits {
    hits: Vec<u64>,
    /// The position in the query of each word.
    positions: Vec<u32>,
}

impl QuotedHits {
    /// An empty list with room for so many words.
    pub fn with_capacity(words: usize) -> Self {
        Self { hits: Vec::with_capacity(4 * words), positions: Vec::with_capacity(words) }
    }

    /// Begins the next word, which has this position in the query.
    pub fn next_word(&mut self, query_position: u32) {
        self.positions.push(query_position);
    }

    /// Adds a place of the current word.
    #[inline]
    pub fn push(&mut self, at: u32) {
        let leaf = self.positions.len().saturating_sub(1) as u64;
        self.hits.push(u64::from(at) << 32 | leaf);
    }

    /// Sorts the hits of all words by place.
    pub fn sort(&mut self) {
        // Each word's hits ascend: a stable sort merges them.
        self.hits.sort();
    }

    /// The place and the number of the word of each hit.
    pub fn iter(&self) -> impl Iterator<Item = (u32, usize)> {
        self.hits.iter().map(|&hit| ((hit >> 32) as u32, (hit & u64::from(u32::MAX)) as usize))
    }

    /// The position in the query of each word.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }
}
