//! Writes an excerpt.

use super::{options::SnippetOptions, passages::Passage, pieces::Pieces};

/// Placeholder for the number of the match in a mark.
const PASSAGE_ID: &str = "%PASSAGE_ID%";

/// An excerpt being written.
pub(super) struct Output<'a> {
    options: &'a SnippetOptions,
    pieces: &'a Pieces,
    shown: &'a str,
    /// Whether adjacent matches are marked as one.
    is_merged: bool,
    passage_id: u32,
    pub text: String,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        options: &'a SnippetOptions,
        pieces: &'a Pieces,
        shown: &'a str,
        is_merged: bool,
    ) -> Self {
        let passage_id = options.start_passage_id;
        Self { options, pieces, shown, is_merged, passage_id, text: String::new() }
    }

    /// Writes the whole text.
    pub(super) fn whole(&mut self) {
        self.range(0, self.pieces.len());
    }

    /// Writes as many leading pieces as fit, at least one.
    pub(super) fn beginning(&mut self, limit: u64) {
        let fits = |end: &usize| self.pieces.characters(0, *end) <= limit;
        let end = (1..=self.pieces.len()).take_while(fits).last().unwrap_or(1);
        self.range(0, end.min(self.pieces.len()));
        if end < self.pieces.len() {
            self.text.push_str(&self.options.chunk_separator);
        }
    }

    /// Writes the passages; `passages` has the best first. Overlaps are written once.
    pub(super) fn passages(&mut self, passages: &[Passage]) {
        let mut numbered: Vec<(usize, &Passage)> = passages.iter().enumerate().collect();
        numbered.sort_by_key(|(_, passage)| passage.start);
        let mut shown_end = 0;
        // The passage's number, its start and end, and the number of its first match.
        let mut chunks: Vec<(usize, usize, usize, u32)> = Vec::new();
        let mut passage_id = self.passage_id;
        for (number, passage) in numbered {
            let start = passage.start.max(shown_end);
            if start < passage.end {
                shown_end = passage.end;
                chunks.push((number, start, passage.end, passage_id));
                passage_id = passage_id.wrapping_add(self.runs(start, passage.end));
            }
        }
        if self.options.weight_order {
            // The best passage comes first; of others with equal rank the later one.
            chunks.sort_by_key(|&(number, start, ..)| {
                let rank = passages.get(number).map(|it| (it.distinct, it.weight));
                ((number > 0, std::cmp::Reverse(rank)), std::cmp::Reverse(start))
            });
        }
        let mut end_of_last = None;
        for (_, start, end, id) in chunks {
            if start > 0 || end_of_last.is_some() {
                self.text.push_str(&self.options.chunk_separator);
            }
            self.passage_id = id;
            self.range(start, end);
            end_of_last = Some(end);
        }
        if end_of_last.is_some_and(|end| end < self.pieces.len()) {
            self.text.push_str(&self.options.chunk_separator);
        }
    }

    /// The number of marks in some pieces.
    fn runs(&self, start: usize, end: usize) -> u32 {
        let (mut at, mut count) = (start, 0);
        while at < end {
            let is_match = self.pieces.number(at).is_some();
            count += u32::from(is_match);
            at = if is_match { self.run_end(at, end) } else { at + 1 };
        }
        count
    }

    /// Writes some pieces with their matches marked.
    fn range(&mut self, start: usize, end: usize) {
        let (mut at, mut plain_from) = (start, start);
        while at < end {
            if self.pieces.number(at).is_none() {
                at += 1;
                continue;
            }
            let to = self.run_end(at, end);
            self.plain(plain_from, at);
            self.mark(&self.options.before_match);
            self.plain(at, to);
            self.mark(&self.options.after_match);
            self.passage_id = self.passage_id.wrapping_add(1);
            (at, plain_from) = (to, to);
        }
        self.plain(plain_from, end);
    }

    /// The end of the mark that begins at `start`.
    fn run_end(&self, start: usize, end: usize) -> usize {
        if !self.is_merged {
            return start + 1;
        }
        let words = (start..end).filter(|&at| self.pieces.is_word(at));
        let matches = words.take_while(|&at| self.pieces.number(at).is_some());
        matches.last().unwrap_or(start) + 1
    }

    fn plain(&mut self, start: usize, end: usize) {
        let text = self.shown.get(self.pieces.bytes(start, end)).unwrap_or("");
        self.text.push_str(text);
    }

    /// Writes a mark with the number of the match.
    fn mark(&mut self, mark: &str) {
        match mark.split_once(PASSAGE_ID) {
            None => self.text.push_str(mark),
            Some((before, behind)) => {
                self.text.push_str(before);
                self.text.push_str(&self.passage_id.to_string());
                self.text.push_str(behind);
            }
        }
    }
}
