//! The keywords of a text, one by one: CALL KEYWORDS.

use crate::analysis::Analyzer;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its position among the words, counting stop words, from 1. A blended word has the position of its first
    /// part.
    pub position: u32,
    /// The word as tokenized: folded. For a sequence that word forms map, all its words.
    pub tokenized: String,
    /// The keyword in the index, to which the counts of documents and hits belong.
    pub normalized: String,
}

/// The words of the text in order, without stop words and words that are too short.
///
/// Query operators are separators, with two exceptions: `=` before a word if words are also indexed as written,
/// and `*` at its ends if parts of words can be searched. A word with one of these is left unchanged. Linear in
/// the length of the text.
#[must_use]
pub fn keywords(text: &str, analyzer: &Analyzer) -> Vec<Keyword> {
    let settings = analyzer.settings();
    let (takes_stars, takes_exact) = (settings.has_wildcards(), settings.index_exact_words());
    let bytes = text.as_bytes();
    let is_at = |at: Option<usize>, byte: u8| at.and_then(|at| bytes.get(at)) == Some(&byte);
    let (mut all, mut position, mut last) = (Vec::new(), 0, None);
    let mut stops = 0;
    analyzer.spans(text, &mut |span| {
        // The first part of a blended word has the position of the whole.
        let is_first_part =
            last.is_some_and(|(end, is_whole): (usize, bool)| is_whole && span.start < end);
        position += (span.stops - stops) + u32::from(!is_first_part);
        stops = span.stops;
        last = Some((span.end, span.is_whole));
        let Some(keyword) = span.keyword else {
            position -= 1;
            return;
        };
        let is_before = |byte| is_at(span.start.checked_sub(1), byte);
        let stars = (takes_stars && is_before(b'*'), takes_stars && is_at(Some(span.end), b'*'));
        let (mut tokenized, mut normalized) = (span.written.to_owned(), keyword.to_owned());
        if stars != (false, false) {
            let star = |is_there| if is_there { "*" } else { "" };
            tokenized = format!("{}{}{}", star(stars.0), span.written, star(stars.1));
            normalized.clone_from(&tokenized);
        } else if takes_exact && is_before(b'=') {
            tokenized = format!("={}", span.written);
            normalized.clone_from(&tokenized);
        }
        all.push(Keyword { position, tokenized, normalized });
    });
    all
}
