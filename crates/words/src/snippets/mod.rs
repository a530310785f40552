//! Excerpts of texts with what a query asks for between marks: CALL SNIPPETS.
//!
//! ```text
//! query ──> terms (and, with query_mode, its shape)         once for a query
//! text ──> text: words and gaps ──> matches: which are marked ──> whole, if it fits the limits
//!                                     └──> passages ──> choice ──> the passages that fit
//! ```
//!
//! Source: the behaviour of Sphinx 2.2.11.

mod choice;
mod matches;
mod options;
mod passages;
mod terms;
mod text;

use std::{borrow::Cow, num::NonZeroU32};

pub use self::options::{OptionValue, SnippetOptions};
use self::{
    matches::{Leaf, Places, Shape},
    options::HtmlStripMode,
    passages::Passage,
    terms::{Finder, Terms},
    text::{Limits, Part, Text, Word},
};
use crate::{
    Result,
    analysis::{Analyzer, masked},
    query,
};

/// The longest text that is looked at, in bytes; what is behind is as if it were not there.
const MAX_TEXT: usize = 16 << 20;
/// What stands for the number of a match, in marks.
const PASSAGE_ID: &str = "%PASSAGE_ID%";

/// Makes excerpts for one query.
#[derive(Debug)]
pub struct Snippets<'a> {
    analyzer: &'a Analyzer,
    options: SnippetOptions,
    terms: Terms,
    asked: Asked,
}

/// What is marked.
#[derive(Debug)]
enum Asked {
    /// Every word of the query.
    Words,
    /// The words of the query next to each other, with all between them.
    Phrase(Shape),
    /// What makes a text match; `None` for a query that nothing is left of.
    Query(Option<Shape>),
}

impl<'a> Snippets<'a> {
    /// Reads the query. `fields` are the names that `@field` may have; limits to fields do not keep words from being marked.
    ///
    /// # Errors
    /// [`crate::WordsError::Query`] if, with `query_mode`, it is not understood; [`crate::WordsError::Option`] for
    /// options that exclude each other.
    pub fn new(
        query: &str,
        fields: &[String],
        analyzer: &'a Analyzer,
        options: SnippetOptions,
    ) -> Result<Self> {
        options.check()?;
        if options.query_mode && !options.exact_phrase {
            let parsed = query::parse(query, analyzer, fields)?;
            let mut terms = Terms::default();
            let shape = parsed.root.map(|root| Shape::new(&root, &mut terms, analyzer));
            return Ok(Self { analyzer, options, terms, asked: Asked::Query(shape) });
        }
        let (terms, order) = Terms::of_words(query, analyzer);
        let asked = if options.exact_phrase && !options.query_mode && order.len() > 1 {
            let leaf = |(term, position): (u32, u32)| {
                let (at_start, at_end, last_position) = (false, false, 0);
                Leaf { term: Some(term), position, at_start, at_end, last_position }
            };
            Asked::Phrase(Shape::Span(order.into_iter().map(leaf).collect()))
        } else {
            Asked::Words
        };
        Ok(Self { analyzer, options, terms, asked })
    }

    /// The excerpt of a text.
    ///
    /// Where nothing is marked it is the beginning of the text, or nothing with `allow_empty`. Memory is 16 bytes for
    /// each word of the text, of which 16 MiB are looked at; time is linear in it for common queries, and bounded for
    /// all.
    #[must_use]
    pub fn of(&self, text: &str) -> String {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let text: Cow<'_, str> = match self.options.html_strip_mode {
            HtmlStripMode::Index => self.analyzer.stripped(text, false),
            HtmlStripMode::Strip => self.analyzer.stripped(text, true),
            HtmlStripMode::None | HtmlStripMode::Retain => Cow::Borrowed(text),
        };
        let (text, marked) = self.read(&text);
        if !marked {
            return if self.options.allow_empty { String::new() } else { self.beginning(&text) };
        }
        if self.is_whole(&text) {
            let mut writer = Writer::new(self, &text);
            writer.part(Part { start: 0, end: text.text.len() });
            return writer.out;
        }
        let limits = Limits::new(self.options.limit, self.options.limit_words);
        let weights = &self.terms.weights;
        let passages = passages::extract(&text, weights, self.options.around, limits);
        let chosen = choice::choose(&text, passages, weights, &self.options, limits);
        self.show(&text, chosen)
    }

    /// The words of the text with what they match, and whether any does.
    fn read<'t>(&self, text: &'t str) -> (Text<'t>, bool) {
        let masked = (self.options.html_strip_mode == HtmlStripMode::Retain).then(|| masked(text));
        let mut finder = Finder::new(&self.terms, self.analyzer);
        let mut words: Vec<Word> = Vec::new();
        let is_plain = matches!(self.asked, Asked::Words);
        let mut room = matches::MAX_STEPS;
        let mut of_term = vec![Vec::new(); if is_plain { 0 } else { self.terms.weights.len() }];
        let mut has_any = false;
        self.analyzer.spans(masked.as_deref().unwrap_or(text), &mut |span| {
            let mut first = None;
            let number = words.len() as u32;
            finder.find(&span, &mut |term| {
                first = first.or(NonZeroU32::new(term + 1));
                if let Some(places) = of_term.get_mut(term as usize).filter(|_| room > 0) {
                    places.push(number);
                    room -= 1;
                }
            });
            if span.is_whole {
                // Its parts are the words of the text.
                return;
            }
            has_any |= first.is_some();
            if let Some(last) = words.last_mut()
                && last.end as usize > span.start
            {
                // Another form of the same words.
                last.term = last.term.or(first);
                return;
            }
            let (start, end, position) = (span.start as u32, span.end as u32, span.position);
            words.push(Word { start, end, position, term: first });
        });
        let mut text = Text { text, words };
        let shape = match &self.asked {
            Asked::Words => return (text, has_any),
            Asked::Phrase(shape) => Some(shape),
            Asked::Query(shape) => shape.as_ref(),
        };
        let positions = text.words.iter().map(|word| word.position).collect();
        of_term.iter_mut().for_each(Vec::dedup);
        let mut places = Places { of_term, positions, steps: 0 };
        let marked = shape.and_then(|shape| places.marked(shape)).unwrap_or_default();
        let mut next = marked.iter().copied().peekable();
        for (word, number) in text.words.iter_mut().zip(0_u32..) {
            word.term = match next.next_if_eq(&number) {
                Some(_) => word.term.or(NonZeroU32::new(1)),
                None => None,
            };
        }
        (text, !marked.is_empty())
    }

    /// Whether the text is shown as a whole.
    fn is_whole(&self, text: &Text<'_>) -> bool {
        let SnippetOptions { limit, limit_words, .. } = self.options;
        (limit == 0 || is_at_most(text.text, limit))
            && (limit_words == 0 || text.words.len() <= limit_words as usize)
    }

    /// The beginning of a text in which nothing is marked.
    fn beginning(&self, text: &Text<'_>) -> String {
        if self.is_whole(text) {
            return text.text.to_owned();
        }
        let limit = u64::from(self.options.limit);
        let (mut end, mut length) = (0, 0);
        let whole = Part { start: 0, end: text.text.len() };
        for word in &text.words {
            let (start, word_end) = (word.start as usize, word.end as usize);
            let gap = text.text.get(end..start).unwrap_or("");
            let room = (limit - length) as usize;
            if let Some((at, _)) = gap.char_indices().nth(room) {
                end += at;
                break;
            }
            length += text.size(Part { start: end, end: word_end }).characters;
            if length > limit && start > 0 {
                end = start;
                break;
            }
            end = word_end;
            if length >= limit {
                break;
            }
        }
        let mut out = text.slice(Part { end, ..whole }).to_owned();
        if out.len() < text.text.len() {
            out.push_str(&self.options.chunk_separator);
        }
        out
    }

    fn show(&self, text: &Text<'_>, mut passages: Vec<Passage>) -> String {
        let in_order = !self.options.weight_order;
        if in_order {
            passages.sort_by_key(|passage| passage.part.start);
        }
        let mut writer = Writer::new(self, text);
        let mut end = 0;
        for Passage { part, .. } in &passages {
            let start = if in_order { part.start.max(end) } else { part.start };
            if start >= part.end {
                continue;
            }
            if start > 0 {
                writer.out.push_str(&self.options.chunk_separator);
            }
            writer.part(Part { start, ..*part });
            end = part.end;
        }
        if end < text.text.len() {
            writer.out.push_str(&self.options.chunk_separator);
        }
        writer.out
    }
}

/// Whether the text has so many characters at most.
fn is_at_most(text: &str, limit: u32) -> bool {
    text.len() <= limit as usize || text.chars().nth(limit as usize).is_none()
}

/// Writes tokens with marks around those that match.
struct Writer<'w> {
    text: &'w Text<'w>,
    snippets: &'w Snippets<'w>,
    out: String,
    id: u32,
}

impl<'w> Writer<'w> {
    fn new(snippets: &'w Snippets<'w>, text: &'w Text<'w>) -> Self {
        Self { text, snippets, out: String::new(), id: snippets.options.start_passage_id }
    }

    fn part(&mut self, part: Part) {
        let text = self.text;
        let joins = !matches!(self.snippets.asked, Asked::Words);
        let mut end = part.start;
        let mut words = text.words_in(part).iter().peekable();
        while let Some(word) = words.next() {
            let (start, word_end) = (word.start as usize, word.end as usize);
            if word.term.is_none() {
                continue;
            }
            self.out.push_str(text.slice(Part { start: end, end: start }));
            self.mark(&self.snippets.options.before_match);
            end = word_end;
            while joins && let Some(next) = words.next_if(|next| next.term.is_some()) {
                end = next.end as usize;
            }
            self.out.push_str(text.slice(Part { start, end }));
            self.mark(&self.snippets.options.after_match);
            self.id = self.id.wrapping_add(1);
        }
        self.out.push_str(text.slice(Part { start: end, end: part.end }));
    }

    /// Writes a mark, with the number of the match in it.
    fn mark(&mut self, mark: &str) {
        match mark.split_once(PASSAGE_ID) {
            None => self.out.push_str(mark),
            Some((before, after)) => {
                self.out.push_str(before);
                self.out.push_str(&self.id.to_string());
                self.out.push_str(after);
            }
        }
    }
}
