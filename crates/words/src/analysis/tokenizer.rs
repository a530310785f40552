//! Splits a text into tokens: words, blended words and their parts, exceptions, n-grams and, in a query, operators.

use super::{
    characters::CharacterTable,
    exceptions::Exceptions,
    marks::{self, MarkKind, PARAGRAPH_CODE, ZONE_CODE},
};
use crate::settings::{BlendMode, MAX_WORD, Settings};

/// The rules of tokenization.
pub(super) struct TokenRules {
    pub characters: CharacterTable,
    pub exceptions: Exceptions,
    pub blend_mode: BlendMode,
    pub min_word_len: u32,
    pub gram_len: usize,
    /// Whether `* ? %` are characters of words in queries.
    pub has_wildcards: bool,
    /// Whether `=` is an operator in queries.
    pub has_exact_words: bool,
    pub marks: MarkRules,
}

/// Which marks documents have.
#[derive(Clone, Copy, Default)]
pub(super) struct MarkRules {
    /// Those of the ends of sentences.
    pub of_sentences: bool,
    /// Those of paragraphs and zones, which take the places of HTML tags.
    pub of_tags: bool,
}

impl MarkRules {
    fn new(settings: &Settings) -> Self {
        let (of_sentences, of_zones) = (settings.index_sp(), !settings.index_zones().is_empty());
        Self { of_sentences, of_tags: settings.html_strip() && (of_sentences || of_zones) }
    }

    fn are_there(self) -> bool {
        self.of_sentences || self.of_tags
    }
}

impl TokenRules {
    pub(super) fn new(
        settings: &Settings,
        characters: CharacterTable,
        exceptions: Exceptions,
    ) -> Self {
        Self {
            characters,
            exceptions,
            blend_mode: settings.blend_mode().clone(),
            min_word_len: settings.min_word_len(),
            gram_len: settings.ngram_len().max(1) as usize,
            has_wildcards: settings.has_wildcards(),
            has_exact_words: settings.index_exact_words(),
            marks: MarkRules::new(settings),
        }
    }

    /// Whether the character is an operator in a query, unless it is escaped.
    pub(super) fn is_special(&self, c: char) -> bool {
        match c {
            '(' | ')' | '|' | '-' | '!' | '@' | '~' | '"' | '/' | '^' | '$' | '<' => true,
            '=' => self.has_exact_words,
            _ => false,
        }
    }

    /// Whether the character is a wildcard in a query.
    pub(super) fn is_wildcard(&self, c: char) -> bool {
        self.has_wildcards && matches!(c, '*' | '?' | '%')
    }
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word without blended characters.
    Word,
    /// A word with its blended characters; its parts follow.
    Whole,
    /// A word of blended characters only.
    Pure,
    /// A part of the last [`Kind::Whole`].
    Part,
    /// An exception; one with blended characters takes no position.
    Exception { is_blended: bool },
    /// An operator of a query.
    Special(char),
    /// A mark of a document.
    Mark(MarkKind),
}

/// A token of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextToken {
    pub start: usize,
    pub end: usize,
    /// The place to continue at. The separator that ends a word is skipped with it.
    pub resume: usize,
    /// The number of too short words before it.
    pub skipped: u32,
    pub kind: Kind,
}

/// Iterates over the tokens of a text.
pub(super) struct Tokenizer<'a> {
    rules: &'a TokenRules,
    text: &'a str,
    at: usize,
    /// Too short words since the last token.
    skipped: u32,
    /// While the parts of a run are read: the end of the run, and where to continue after it.
    parts: Option<(usize, usize)>,
    is_query: bool,
    /// The marks that are looked for.
    marks: MarkRules,
    /// The start of the exception with blended characters that was just read: its run may continue here.
    continued: Option<usize>,
    pub is_quoted: bool,
}

/// The class of a character in its context.
enum Class {
    Letter(char),
    Blended(char),
    Gram,
    Ignored,
    Separator,
    Special(char),
}

/// A run of letters, blended and ignored characters.
struct Run {
    end: usize,
    resume: usize,
    length: u32,
    has_letters: bool,
    has_blended: bool,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn document(rules: &'a TokenRules, text: &'a str) -> Self {
        Self {
            rules,
            text,
            at: 0,
            skipped: 0,
            parts: None,
            is_query: false,
            marks: MarkRules::default(),
            continued: None,
            is_quoted: false,
        }
    }

    /// Of a document, with the marks that the rules ask for.
    pub(super) fn marked(rules: &'a TokenRules, text: &'a str) -> Self {
        Self { marks: rules.marks, ..Self::document(rules, text) }
    }

    pub(super) fn query(rules: &'a TokenRules, text: &'a str) -> Self {
        Self { is_query: true, ..Self::document(rules, text) }
    }

    /// Continues at `offset`.
    pub(super) fn seek(&mut self, offset: usize) {
        (self.at, self.parts) = (offset, None);
    }

    /// The number of parts of a whole that are long enough.
    pub(super) fn count_parts(&self, whole: &TextToken) -> u32 {
        let mut parts = Self::query(self.rules, self.text);
        (parts.at, parts.parts) = (whole.start, Some((whole.end, whole.end)));
        let mut word = String::new();
        let is_part = |token: &TextToken| token.kind == Kind::Part;
        std::iter::from_fn(|| parts.next(&mut word).filter(is_part)).count() as u32
    }

    /// The number of too short words not counted by a token; resets it.
    pub(super) fn take_skipped(&mut self) -> u32 {
        std::mem::take(&mut self.skipped)
    }

    /// The next token; its folded text is written to `word`.
    #[inline]
    pub(super) fn next(&mut self, word: &mut String) -> Option<TextToken> {
        if let Some(start) = self.continued.take()
            && let Some(token) = self.continuation(start, word)
        {
            return Some(token);
        }
        loop {
            let limit = self.parts.map_or(self.text.len(), |(end, _)| end);
            if !self.is_query {
                self.pass_separators(limit);
            }
            if self.at >= limit {
                let (_, resume) = self.parts.take()?;
                self.at = resume;
                continue;
            }
            if !self.rules.exceptions.is_empty()
                && let Some(token) = self.exception(word)
            {
                return Some(token);
            }
            let start = self.at;
            if let Some(mark) = self.mark(word) {
                return Some(mark);
            }
            let (class, next) = self.classify(start, false);
            match class {
                Class::Separator if self.is_lone_star(start) => {
                    return Some(self.special(start, next, '*'));
                }
                Class::Separator | Class::Ignored => self.at = next,
                Class::Special(c) => return Some(self.special(start, next, c)),
                Class::Gram => return Some(self.gram(word)),
                Class::Letter(_) | Class::Blended(_) => {
                    if let Some(token) = self.run(word) {
                        return Some(token);
                    }
                }
            }
        }
    }

    /// Skips ASCII separators, by far the most frequent ones.
    #[inline]
    fn pass_separators(&mut self, limit: usize) {
        if !self.rules.exceptions.is_empty() || self.marks.are_there() {
            return;
        }
        let bytes = &self.text.as_bytes()[..limit];
        while let Some(&byte) = bytes.get(self.at)
            && self.rules.characters.ascii(byte).is_some_and(|entry| entry.is_separator())
        {
            self.at += 1;
        }
    }

    fn special(&mut self, start: usize, end: usize, c: char) -> TextToken {
        self.at = end;
        TextToken { start, end, resume: end, skipped: 0, kind: Kind::Special(c) }
    }

    /// The mark that begins here; that of a zone is written to `word`.
    fn mark(&mut self, word: &mut String) -> Option<TextToken> {
        let start = self.at;
        if !self.is_mark(start, "", 0) {
            return None;
        }
        word.clear();
        let rest = self.text.get(start..)?;
        let (kind, length) = if rest.starts_with(PARAGRAPH_CODE) {
            (MarkKind::Paragraph, 1)
        } else if let Some(name) = rest.strip_prefix(ZONE_CODE) {
            let name = name.split_once(ZONE_CODE).map_or("", |(name, _)| name);
            if !name.is_empty() {
                word.push_str(&rest[..1 + name.len()]);
            }
            (MarkKind::Zone, if name.is_empty() { 1 } else { name.len() + 2 })
        } else {
            (MarkKind::Sentence, 1)
        };
        let (end, skipped) = (start + length, self.take_skipped());
        self.at = end;
        Some(TextToken { start, end, resume: end, skipped, kind: Kind::Mark(kind) })
    }

    /// Whether a mark is at `at`, behind what was read of a word, which has so many characters.
    #[inline]
    fn is_mark(&self, at: usize, word: &str, length: u32) -> bool {
        if !self.marks.are_there() || self.parts.is_some() {
            return false;
        }
        match self.text.as_bytes().get(at) {
            Some(b'.' | b'?' | b'!') => {
                self.marks.of_sentences
                    && marks::ends_sentence(self.text.as_bytes(), at, word, length)
            }
            Some(&byte) => {
                self.marks.of_tags && [PARAGRAPH_CODE, ZONE_CODE].contains(&char::from(byte))
            }
            None => false,
        }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        let text = self.text;
        match text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => text.get(at..)?.chars().next(),
        }
    }

    /// The class of the character at `at`, and the start of the next one.
    #[inline]
    fn classify(&self, at: usize, is_in_run: bool) -> (Class, usize) {
        let Some(c) = self.char_at(at) else { return (Class::Separator, self.text.len()) };
        let next = at + c.len_utf8();
        if self.is_query {
            if c == '\\' {
                return match self.char_at(next) {
                    Some(escaped) => (self.class(escaped), next + escaped.len_utf8()),
                    None => (Class::Separator, next),
                };
            }
            if self.rules.is_special(c) && !self.is_ordinary(c, next, is_in_run) {
                return (Class::Special(c), next);
            }
        }
        (self.class(c), next)
    }

    #[inline]
    fn class(&self, c: char) -> Class {
        if self.is_query && self.rules.is_wildcard(c) {
            return Class::Letter(c);
        }
        let entry = self.rules.characters.get(c);
        if entry.is_letter() {
            Class::Letter(entry.folded())
        } else if entry.is_separator() || entry.is_blended() && self.parts.is_some() {
            Class::Separator
        } else if entry.is_blended() {
            Class::Blended(entry.folded())
        } else if entry.is_gram() {
            Class::Gram
        } else {
            Class::Ignored
        }
    }

    /// Whether an operator character is part of a word here: within a word or quotes, if the settings make it a word
    /// character.
    fn is_ordinary(&self, c: char, next: usize, is_in_run: bool) -> bool {
        if c == '"' || self.rules.characters.get(c).is_separator() {
            return false;
        }
        if c == '$' {
            let next = self.char_at(next).map(|c| self.rules.characters.get(c));
            if !next.is_some_and(|next| next.is_letter() || next.is_blended()) {
                return false;
            }
        }
        is_in_run || self.is_quoted || self.parts.is_some()
    }

    /// Whether this is a `*` between spaces that is no word character.
    fn is_lone_star(&self, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        self.is_query
            && bytes[at] == b'*'
            && at > 0
            && bytes[at - 1] == b' '
            && bytes.get(at + 1) == Some(&b' ')
    }

    fn exception(&mut self, word: &mut String) -> Option<TextToken> {
        let c = self.char_at(self.at)?;
        if self.parts.is_some() || self.is_query && (c == '\\' || self.rules.is_special(c)) {
            return None;
        }
        let rules = self.rules;
        let start = self.at;
        let found = rules.exceptions.find(self.text, start, &rules.characters, self.is_query)?;
        word.clear();
        word.push_str(found.keyword);
        let (end, skipped) = (found.end, self.take_skipped());
        self.at = end;
        self.continued = (found.is_blended && !self.is_query).then_some(start);
        let kind = Kind::Exception { is_blended: found.is_blended };
        Some(TextToken { start, end, resume: end, skipped, kind })
    }

    /// If the run continues after an exception, the token of the whole run, with a position of its own.
    fn continuation(&mut self, start: usize, word: &mut String) -> Option<TextToken> {
        let (class, _) = self.classify(self.at, true);
        if !matches!(class, Class::Letter(_) | Class::Blended(_)) {
            return None;
        }
        let rest = std::mem::replace(&mut self.at, start);
        let Run { end, resume, .. } = self.scan(word);
        self.at = rest;
        if end <= rest {
            return None;
        }
        self.parts = Some((end, resume));
        Some(TextToken { start, end, resume, skipped: 0, kind: Kind::Word })
    }

    /// The next n-gram of a run of such characters.
    fn gram(&mut self, word: &mut String) -> TextToken {
        let rules = self.rules;
        // It may be escaped.
        let is_escaped = self.is_query && self.text.as_bytes()[self.at] == b'\\';
        let start = self.at + usize::from(is_escaped);
        word.clear();
        let (mut end, mut first_end, mut count) = (start, start, 0);
        let mut chars = self.text[start..].chars().map(|c| (c, rules.characters.get(c)));
        while let Some((c, entry)) = chars.next().filter(|(_, entry)| entry.is_gram()) {
            end += c.len_utf8();
            first_end = if count == 0 { end } else { first_end };
            count += 1;
            word.push(entry.folded());
            if count == rules.gram_len {
                break;
            }
        }
        let goes_on = chars.next().is_some_and(|(_, entry)| entry.is_gram());
        let resume = if count == rules.gram_len && goes_on { first_end } else { end };
        self.at = resume;
        TextToken { start, end, resume, skipped: self.take_skipped(), kind: Kind::Word }
    }

    /// The token of the run that begins here; `None` if it is left out.
    #[inline]
    fn run(&mut self, word: &mut String) -> Option<TextToken> {
        let start = self.at;
        let Run { end, resume, length, has_letters, has_blended } = self.scan(word);
        let is_short = length < self.rules.min_word_len && !self.is_starred(word);
        self.at = resume;
        let kind = match (self.parts, has_blended) {
            (Some(_), _) => Kind::Part,
            (None, false) => Kind::Word,
            (None, true) if has_letters => {
                self.parts = Some((end, resume));
                self.at = start;
                Kind::Whole
            }
            (None, true) => {
                if self.rules.blend_mode.skips_pure && !self.is_query {
                    return None;
                }
                Kind::Pure
            }
        };
        if self.is_query && word == "*" && (self.rules.has_wildcards || self.is_quoted) {
            return Some(self.special(start, resume, '*'));
        }
        if is_short {
            self.skipped += 1;
            return None;
        }
        let skipped = self.take_skipped();
        // Too short parts before a part take no position.
        let skipped = if kind == Kind::Part { 0 } else { skipped };
        Some(TextToken { start, end, resume, skipped, kind })
    }

    /// Words with a star at one end may be short.
    fn is_starred(&self, word: &str) -> bool {
        self.is_query && self.rules.has_wildcards && (word.starts_with('*') || word.ends_with('*'))
    }

    /// Reads the run that begins here; writes it to `word` up to the longest allowed word.
    #[inline]
    fn scan(&mut self, word: &mut String) -> Run {
        word.clear();
        let limit = self.parts.map_or(self.text.len(), |(end, _)| end);
        let (mut at, mut length) = (self.at, 0);
        let (mut has_letters, mut has_blended) = (false, false);
        let push = |word: &mut String, c: char, length: &mut u32| {
            if *length < MAX_WORD {
                word.push(c);
            }
            *length += 1;
        };
        let mut resume = None;
        while at < limit {
            if !self.is_query {
                let bytes = &self.text.as_bytes()[at..limit];
                let run = self.rules.characters.lowered_prefix(bytes);
                if run > 0 {
                    let kept = run.min(MAX_WORD.saturating_sub(length) as usize);
                    push_lowered(word, &self.text[at..at + kept]);
                    length += run as u32;
                    (has_letters, at) = (true, at + run);
                    continue;
                }
            }
            if self.is_mark(at, word, length) {
                break;
            }
            let (class, next) = self.classify(at, at > self.at);
            match class {
                Class::Letter(c) => {
                    push(word, c, &mut length);
                    has_letters = true;
                }
                Class::Blended(c) => {
                    push(word, c, &mut length);
                    has_blended = true;
                }
                Class::Ignored => {}
                Class::Separator | Class::Special('-') => {
                    resume = Some(next);
                    break;
                }
                Class::Gram | Class::Special(_) => break,
            }
            at = next;
        }
        let resume = resume.unwrap_or(at).min(limit);
        Run { end: at, resume, length, has_letters, has_blended }
    }
}

/// Appends the lower case of an ASCII text.
#[inline]
fn push_lowered(word: &mut String, text: &str) {
    let start = word.len();
    word.push_str(text);
    if let Some(pushed) = word.get_mut(start..) {
        pushed.make_ascii_lowercase();
    }
}
