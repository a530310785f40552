//! Excerpts of texts with highlighted matches: CALL SNIPPETS.
//!
//! ```text
//! query ──> terms (and, with query_mode, its shape)         once per query
//! text ──> pieces: words, spaces, signs ──> marks: which words match ──> the whole text, if it fits the limits
//!                                             └──> passages ──> choice ──> the passages that fit
//! ```
//!
//! The reference is Sphinx 2.2.11.

mod choice;
mod marks;
mod options;
mod output;
mod passages;
mod pieces;
mod shape;
mod terms;
mod wildcards;
mod work;

use std::{borrow::Cow, sync::Arc};

pub use self::options::{OptionValue, SnippetOptions};
use self::{
    choice::Room,
    marks::{FoundWords, Places},
    options::HtmlStripMode,
    output::Output,
    passages::{Hits, Limits},
    pieces::{Cutter, Pieces},
    shape::{Shape, SnippetWord},
    terms::Terms,
    work::Work,
};
use crate::{
    Result, WordsError,
    analysis::{Analyzer, masked},
    query::{self, QueryOptions},
};

/// The longest text that is read, in bytes; the rest is ignored.
const MAX_TEXT: usize = 16 << 20;
/// The most parts joined by `<<` and `NEAR` in a query: the occurrences of all are in memory together.
const MAX_JOINED: usize = 32;

/// Makes excerpts for one query.
#[derive(Debug)]
pub struct Snippets {
    analyzer: Arc<Analyzer>,
    options: SnippetOptions,
    terms: Terms,
    asked: HighlightTarget,
}

/// What is highlighted.
#[derive(Debug)]
enum HighlightTarget {
    /// Every word of the query.
    Words,
    /// The query as a phrase, with everything between its words.
    Phrase(Shape),
    /// The parts of the query that make a text match; `None` if nothing is left of the query.
    Query(Option<Shape>),
}

impl Snippets {
    /// Parses the query. `fields` are the names for `@field`; field limits do not keep words from being highlighted.
    ///
    /// # Errors
    /// [`crate::WordsError::Query`] if, with `query_mode`, the query is invalid, or if it has too many words with
    /// wildcards; [`crate::WordsError::Option`] for options that exclude each other.
    pub fn new(
        query: &str,
        fields: &[String],
        analyzer: &Arc<Analyzer>,
        options: SnippetOptions,
    ) -> Result<Self> {
        options.check()?;
        if options.query_mode && !options.exact_phrase {
            let parsed = query::parse_written(query, analyzer, fields, &QueryOptions::default())?;
            let mut terms = Terms::default();
            let shape = parsed.root.map(|root| Shape::new(&root, &mut terms, analyzer));
            return Self::of_shape(shape, terms, analyzer, options);
        }
        let (mut terms, order) = Terms::of_words(query, analyzer);
        terms.finish()?;
        let asked = if options.exact_phrase && !options.query_mode && order.len() > 1 {
            let leaf = |(term, position): (u32, u32)| {
                let (at_start, at_end, last_position) = (false, false, 0);
                SnippetWord { term: Some(term), position, at_start, at_end, last_position }
            };
            HighlightTarget::Phrase(Shape::Span(order.into_iter().map(leaf).collect()))
        } else {
            HighlightTarget::Words
        };
        Ok(Self { analyzer: Arc::clone(analyzer), options, terms, asked })
    }

    /// Parses the query of a search, to highlight what made a row match. In a text of the field `field` it highlights
    /// the words searched in that field; phrases and proximity only if they match there. `None` stands for a text
    /// that is no field: all words are searched in it. Other parts of the query need not match in the same text, and
    /// excluded parts are not highlighted.
    ///
    /// # Errors
    /// Those of [`Snippets::new`] with `query_mode`; [`WordsError::Option`] for `exact_phrase`.
    pub fn of_search(
        query: &str,
        fields: &[String],
        field: Option<u8>,
        analyzer: &Arc<Analyzer>,
        options: SnippetOptions,
    ) -> Result<Self> {
        options.check()?;
        if options.exact_phrase {
            let message =
                "option exact_phrase is not supported in a search: write the phrase in quotes";
            return Err(WordsError::Option(message.to_owned()));
        }
        let parsed = query::parse_written(query, analyzer, fields, &QueryOptions::default())?;
        let mut terms = Terms::of_field(field);
        let shape = parsed.root.map(|root| Shape::of_search(&root, &mut terms, analyzer));
        Self::of_shape(shape, terms, analyzer, options)
    }

    fn of_shape(
        shape: Option<Shape>,
        mut terms: Terms,
        analyzer: &Arc<Analyzer>,
        options: SnippetOptions,
    ) -> Result<Self> {
        if shape.as_ref().is_some_and(|shape| shape.joined() > MAX_JOINED) {
            let message = format!("query joins more than {MAX_JOINED} parts with << and NEAR");
            return Err(WordsError::Query(message));
        }
        terms.finish()?;
        let analyzer = Arc::clone(analyzer);
        Ok(Self { analyzer, options, terms, asked: HighlightTarget::Query(shape) })
    }

    /// The excerpt of a text; for the cost see [`Snippets::of_unless`].
    #[must_use]
    pub fn of(&self, text: &str) -> String {
        self.of_unless(text, &|| false).unwrap_or_default()
    }

    /// The excerpt of a text; `None` if `is_ended` returns true meanwhile. It is called every few milliseconds, also
    /// within one text.
    ///
    /// Without a match, the excerpt is the beginning of the text, or empty with `allow_empty`. Memory: some twenty
    /// bytes for each word and each gap of the text, of which 16 MiB are read. Cost: linear in the text for common
    /// queries; with `query_mode` also the product of both lengths, 64 words of the text counting as one.
    #[must_use]
    pub fn of_unless(&self, text: &str, is_ended: &dyn Fn() -> bool) -> Option<String> {
        let work = Work::new(is_ended);
        let excerpt = self.make(text, &work);
        (!work.is_over()).then_some(excerpt)
    }

    fn make(&self, text: &str, work: &Work<'_>) -> String {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let text: Cow<'_, str> = match self.options.html_strip_mode {
            HtmlStripMode::Index => self.analyzer.stripped(text, false),
            HtmlStripMode::Strip => self.analyzer.stripped(text, true),
            HtmlStripMode::None | HtmlStripMode::Retain => Cow::Borrowed(text),
        };
        let options = &self.options;
        let (pieces, longest) = match options.html_strip_mode {
            HtmlStripMode::Retain => self.read(&masked(&text), work),
            _ => self.read(&text, work),
        };
        let hits = Hits::new(&pieces, &self.terms.places);
        if work.is_over() || hits.hits.is_empty() && options.allow_empty {
            return String::new();
        }
        let is_merged = !matches!(self.asked, HighlightTarget::Words);
        let mut output = Output::new(options, &pieces, &text, is_merged);
        let size = pieces.characters(0, pieces.len());
        let limit = match options.limit {
            0 => 0,
            // The longest word must fit.
            limit => u64::from(limit.max(longest)),
        };
        if !options.in_sentences && options.limit_words == 0 && (limit == 0 || size <= limit) {
            output.whole();
        } else if hits.hits.is_empty() {
            output.beginning(limit);
        } else {
            let room = self.room(limit);
            let ends = if options.in_sentences { pieces.sentence_ends(&text) } else { Vec::new() };
            let chosen = choice::choose(
                &pieces,
                &hits,
                &self.terms.weights,
                self.limits(room, &ends),
                room,
                options.force_all_words,
                work,
            );
            output.passages(&chosen);
        }
        output.text
    }

    /// The limits of an excerpt of `limit` characters; 0 means any number.
    fn room(&self, limit: u64) -> Room {
        let some = |number: u32| (number > 0).then_some(u64::from(number));
        Room {
            characters: Some(limit).filter(|limit| *limit > 0),
            words: some(self.options.limit_words),
            passages: some(self.options.limit_passages).map(|most| most as usize),
        }
    }

    fn limits<'e>(&self, room: Room, ends: &'e [usize]) -> Limits<'e> {
        let around = self.options.around as usize;
        match self.options.force_all_words {
            true => Limits { characters: u64::MAX, words: Some(u64::MAX), around, ends },
            false => {
                let characters = room.characters.unwrap_or(u64::MAX);
                Limits { characters, words: room.words, around, ends }
            }
        }
    }

    /// The pieces of a text with its matches, and the length of the query's longest word in characters. With
    /// `query_mode` only words that the text has count, if it has any.
    fn read(&self, text: &str, work: &Work<'_>) -> (Pieces, u32) {
        let longest = self.terms.longest(|_| true).unwrap_or(0);
        let shape = match &self.asked {
            HighlightTarget::Words => return (self.read_words(text, work), longest),
            HighlightTarget::Phrase(shape) => Some(shape),
            HighlightTarget::Query(shape) => shape.as_ref(),
        };
        let mut cutter = Cutter::new(text, true);
        let mut places = Places::new(self.terms.weights.len());
        self.analyzer.spans_while(text, &mut |span| {
            let mut first = None;
            self.terms.find(&span, &mut |number| {
                first = first.or(Some(number));
                places.insert(number, span.position);
            });
            if !span.is_whole {
                cutter.word(&span, first);
            }
            work.goes_on(1)
        });
        let mut pieces = cutter.end();
        let found = FoundWords { places: &places, last: pieces.last_position(), work };
        let marked = shape.and_then(|shape| found.marked(shape));
        pieces.mark(|position| marked.as_ref().is_some_and(|it| it.contains(position)));
        let longest = match self.asked {
            HighlightTarget::Query(_) => {
                self.terms.longest(|number| places.has(number)).unwrap_or(longest)
            }
            _ => longest,
        };
        (pieces, longest)
    }

    /// The pieces of a text; every word of the query is a match.
    fn read_words(&self, text: &str, work: &Work<'_>) -> Pieces {
        let mut cutter = Cutter::new(text, false);
        // The last blended word that matched: its end and its number.
        let mut whole: Option<(usize, u32)> = None;
        self.analyzer.spans_while(text, &mut |span| {
            let mut number = None;
            self.terms.find(&span, &mut |found| number = number.or(Some(found)));
            if span.is_whole {
                whole = number.map(|number| (span.end, number)).or(whole);
                return work.goes_on(1);
            }
            let of_whole = whole.filter(|(end, _)| span.end <= *end).map(|(_, number)| number);
            cutter.word(&span, number.or(of_whole));
            work.goes_on(1)
        });
        cutter.end()
    }
}
