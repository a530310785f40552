//! A cursor over a statement's tokens.

use remora_mysql::{LexMode, Token, TokenKind, tokens, unquoted};

use super::table_name::TableName;

/// A name in lower case as servers fold it: character by character, each to one character.
pub(crate) fn folded(name: &str) -> String {
    let fold = |character: char| {
        let mut lower = character.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(only), None) => only,
            // Elsewhere, the lower case of İ has a second character.
            (Some(first), Some(_)) => first,
            (None, _) => character,
        }
    };
    name.chars().map(fold).collect()
}

/// The tokens of a statement and the current position.
#[derive(Clone)]
pub(crate) struct Scan<'q> {
    text: &'q str,
    mode: LexMode,
    tokens: Vec<Token>,
    at: usize,
}

impl<'q> Scan<'q> {
    /// The tokens of a text; `None` if a quote or a comment is not closed.
    pub fn of(text: &'q str, mode: LexMode) -> Option<Self> {
        let tokens = tokens(text.as_bytes(), mode).ok()?;
        Some(Self { text, mode, tokens, at: 0 })
    }

    /// Whether all tokens were read.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The number of tokens read.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Continues at this token.
    pub fn go_to(&mut self, place: usize) {
        self.at = place;
    }

    /// Skips one token.
    pub fn pass(&mut self) {
        self.at += 1;
    }

    /// The next token as an upper-case keyword, if it is an unquoted word.
    pub fn word(&self) -> Option<String> {
        self.word_at(0)
    }

    /// The word `ahead` tokens later, in upper case, if that token is one.
    pub fn word_at(&self, ahead: usize) -> Option<String> {
        let token = self.token(ahead).filter(|token| token.kind == TokenKind::Word)?;
        Some(self.text_of(token).to_ascii_uppercase())
    }

    /// Whether one of these keywords is next.
    pub fn is(&self, keywords: &[&str]) -> bool {
        self.is_at(0, keywords)
    }

    /// Whether one of these keywords is `ahead` tokens later.
    pub fn is_at(&self, ahead: usize, keywords: &[&str]) -> bool {
        let Some(token) = self.token(ahead) else { return false };
        keywords.iter().any(|keyword| token.is_word(self.text.as_bytes(), keyword))
    }

    /// Whether this operator is next.
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.token(0).is_some_and(|token| token.is(self.text.as_bytes(), symbol))
    }

    /// Whether this keyword occurs from here on.
    pub fn has_word(&self, keyword: &str) -> bool {
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        rest.iter().any(|token| token.is_word(self.text.as_bytes(), keyword))
    }

    /// Skips the keyword if it is next.
    pub fn skip(&mut self, keyword: &str) -> bool {
        let is_next = self.is(&[keyword]);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips these keywords if all of them follow in this order.
    pub fn skip_all(&mut self, keywords: &[&str]) -> bool {
        let are_next = keywords.iter().enumerate().all(|(ahead, word)| self.is_at(ahead, &[word]));
        self.at += if are_next { keywords.len() } else { 0 };
        are_next
    }

    /// Skips the operator if it is next.
    pub fn skip_symbol(&mut self, symbol: &str) -> bool {
        let is_next = self.is_symbol(symbol);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips parentheses with their contents if they are next.
    pub fn skip_parentheses(&mut self) -> bool {
        if !self.is_symbol("(") {
            return false;
        }
        let mut depth = 0_usize;
        while !self.is_at_end() {
            depth += usize::from(self.is_symbol("("));
            depth -= usize::from(self.is_symbol(")"));
            self.at += 1;
            if depth == 0 {
                return true;
            }
        }
        false
    }

    /// Skips parentheses with their contents if they are next; the number, if they contain one.
    pub fn skip_length(&mut self) -> Option<u64> {
        let is_next = self.is_symbol("(");
        let inside = self.token(1).filter(|_| is_next).map(|token| self.text_of(token).parse());
        self.skip_parentheses();
        inside?.ok()
    }

    /// Reads a name, quoted or not.
    pub fn name(&mut self) -> Option<String> {
        let name = self.name_at(self.at)?;
        self.at += 1;
        Some(name)
    }

    /// Reads `name` or `database.name`.
    pub fn table(&mut self, database: &str, folds_names: bool) -> Option<TableName> {
        let first = self.name()?;
        let (database, table) = match self.skip_symbol(".") {
            true => (first, self.name()?),
            false => (database.to_owned(), first),
        };
        let folded = |name: String| if folds_names { folded(&name) } else { name };
        Some(TableName { database: folded(database), table: folded(table) })
    }

    /// All names and keywords from here on.
    pub fn names(&self) -> Vec<String> {
        (self.at..self.tokens.len()).filter_map(|place| self.name_at(place)).collect()
    }

    fn name_at(&self, place: usize) -> Option<String> {
        let token = self.tokens.get(place)?;
        match token.kind {
            TokenKind::Word => Some(self.text_of(token).to_owned()),
            TokenKind::Quoted => {
                let bytes = unquoted(self.text_of(token).as_bytes(), self.mode);
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => None,
        }
    }

    /// Skips the host of an account: `@host` or `@ host`.
    pub fn skip_host(&mut self) {
        let Some(token) = self.token(0).filter(|token| token.kind == TokenKind::UserVariable)
        else {
            return;
        };
        self.at += if token.end - token.start == 1 { 2 } else { 1 };
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn text_of(&self, token: &Token) -> &'q str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }
}
