//! Splits tokens into words, for filters in parentheses and for SET.

use remora_engine::Comparison;

use crate::line::token::Tokens;

/// A word of a filter in parentheses or of SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Open,
    Close,
    Comma,
    Operator(Comparison),
    Text { text: String, quoted: bool },
}

impl Word {
    /// Whether it is this keyword, in any case and without quotes.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Text { text, quoted: false } if text.eq_ignore_ascii_case(keyword))
    }

    /// The comparison for this word.
    pub(super) fn keyword_operator(&self) -> Option<Comparison> {
        match self {
            Self::Text { text, quoted: false } => operator_keyword(text),
            _ => None,
        }
    }

    /// The word for an error message.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Operator(_) => "an operator",
            Self::Text { text, .. } => text,
        }
    }
}

/// Splits unquoted tokens further, at parentheses, commas and operators.
pub(super) struct Words<'t, 'a> {
    tokens: &'t mut Tokens<'a>,
    /// The bytes of the next, unquoted token that were already consumed.
    offset: usize,
}

impl<'t, 'a> Words<'t, 'a> {
    /// The words of the remaining tokens.
    pub(super) fn new(tokens: &'t mut Tokens<'a>) -> Self {
        Self { tokens, offset: 0 }
    }

    /// The remaining tokens. Call it only if no token was consumed in part.
    pub(super) fn tokens(&mut self) -> &mut Tokens<'a> {
        self.tokens
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Option<Word> {
        let (word, end) = self.peek()?;
        self.pass(end);
        Some(word)
    }

    /// The next word and its end in its token; `None` for the end if the token is consumed.
    fn peek(&self) -> Option<(Word, Option<usize>)> {
        let token = self.tokens.peek()?;
        if token.quoted {
            return Some((Word::Text { text: token.text.to_string(), quoted: true }, None));
        }
        let (word, length) = first_word(token.text.get(self.offset..).unwrap_or_default());
        let end = self.offset + length;
        Some((word, Some(end).filter(|end| *end < token.text.len())))
    }

    fn pass(&mut self, end: Option<usize>) {
        self.offset = end.unwrap_or(0);
        self.tokens.skip(usize::from(end.is_none()));
    }

    /// Whether a token was consumed in part.
    pub(super) fn is_within_token(&self) -> bool {
        self.offset > 0
    }

    /// Skips the next word if it is this one.
    pub(super) fn eat(&mut self, wanted: &Word) -> bool {
        self.eat_if(|word| word == wanted)
    }

    /// Skips the next word if it is this keyword.
    pub(super) fn eat_keyword(&mut self, keyword: &str) -> bool {
        self.eat_if(|word| word.is(keyword))
    }

    fn eat_if(&mut self, is_wanted: impl Fn(&Word) -> bool) -> bool {
        match self.peek() {
            Some((word, end)) if is_wanted(&word) => {
                self.pass(end);
                true
            }
            _ => false,
        }
    }
}

/// The first word of a non-empty, unquoted text, and its length.
fn first_word(text: &str) -> (Word, usize) {
    match text.as_bytes().first() {
        Some(b'(') => return (Word::Open, 1),
        Some(b')') => return (Word::Close, 1),
        Some(b',') => return (Word::Comma, 1),
        _ => (),
    }
    if let Some((comparison, length)) = operator_at(text, 0) {
        return (Word::Operator(comparison), length);
    }
    let ends = |(at, char): &(usize, char)| {
        matches!(char, '(' | ')' | ',') || operator_at(text, *at).is_some()
    };
    let length = text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
    (Word::Text { text: text.get(..length).unwrap_or(text).to_owned(), quoted: false }, length)
}

/// The first operator of a text, with the text before and after it.
pub(super) fn split_operator(text: &str) -> Option<(&str, Comparison, &str)> {
    let (at, (comparison, length)) =
        text.char_indices().find_map(|(at, _)| Some((at, operator_at(text, at)?)))?;
    Some((text.get(..at)?, comparison, text.get(at + length..)?))
}

/// The operator at a byte offset, and its length.
pub(super) fn operator_at(text: &str, at: usize) -> Option<(Comparison, usize)> {
    const SYMBOLS: [(&str, Comparison); 10] = [
        (">=", Comparison::GreaterOrEqual),
        ("<=", Comparison::LessOrEqual),
        ("!=", Comparison::NotEqual),
        ("<>", Comparison::NotEqual),
        ("==", Comparison::Equal),
        ("=", Comparison::Equal),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
        ("≥", Comparison::GreaterOrEqual),
        ("≤", Comparison::LessOrEqual),
    ];
    let rest = text.get(at..)?;
    let found = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol))?;
    Some((found.1, found.0.len()))
}

/// The comparison for a keyword.
pub(super) fn operator_keyword(text: &str) -> Option<Comparison> {
    const KEYWORDS: [(&str, Comparison); 6] = [
        ("EQ", Comparison::Equal),
        ("NE", Comparison::NotEqual),
        ("GT", Comparison::Greater),
        ("GTE", Comparison::GreaterOrEqual),
        ("LT", Comparison::Less),
        ("LTE", Comparison::LessOrEqual),
    ];
    let found = KEYWORDS.iter().find(|(keyword, _)| text.eq_ignore_ascii_case(keyword))?;
    Some(found.1)
}
