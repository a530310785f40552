//! MATCH … AGAINST: parses its text into a query of the text index.
//!
//! ```text
//! natural  := (word | '"' word* '"')*                one of the words and phrases
//! boolean  := item*                                all `+`, no `-`; without `+`, one of the others
//! item     := ("+" | "-" | "~" | "<" | ">")* (word "*"? | phrase | "(" boolean ")")
//! phrase   := '"' word* '"' ("@" distance)?
//! ```
//! Separators of the text index delimit words; `_` and `'` within a word join its parts. There are no stopwords and no
//! minimum length. A `"` without a second one is passed over. Characters of scripts without spaces are found at every position.

use remora_engine::{Piece, PieceMatch, TextQuery};
use remora_mysql::{ErrorCode, messages};

use super::keywords::keywords;
use crate::{Error, Result, catalog::SqlTable};

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 16;
/// The most words and phrases that are checked row by row, and the most that rewriting `+` groups
/// may add.
const MAX_PIECES: usize = 4_096;

/// A query that no row matches.
fn nothing() -> TextQuery {
    piece(&[], String::new(), PieceMatch::Words)
}

fn piece(texts: &[u32], text: String, matching: PieceMatch) -> TextQuery {
    TextQuery::Piece(Piece { texts: texts.to_vec(), text, matching, letters: None })
}

/// The query of MATCH over these columns; 1191 if no text index holds them.
pub(crate) fn matching(
    table: &SqlTable,
    columns: &[usize],
    text: &str,
    mode: &str,
) -> Result<TextQuery> {
    if let Some(query) = keywords(table, mode, text)? {
        return Ok(query);
    }
    let boolean = is_boolean(mode);
    let texts = indexes(table, columns)?;
    if boolean { in_boolean_mode(&texts, text) } else { Ok(natural(&texts, text)) }
}

/// Whether a mode is IN BOOLEAN MODE.
pub(super) fn is_boolean(mode: &str) -> bool {
    mode.to_uppercase().contains("BOOLEAN")
}

/// The query of MATCH over texts that are in no column; 1038 if it has too many words and phrases
/// to check row by row.
pub(crate) fn asked(text: &str, mode: &str) -> Result<TextQuery> {
    let query = parsed(text, is_boolean(mode))?;
    if pieces(&query) > MAX_PIECES { Err(too_many_pieces()) } else { Ok(query) }
}

/// The number of words and phrases of a query.
pub(crate) fn pieces(query: &TextQuery) -> usize {
    match query {
        TextQuery::And(parts) | TextQuery::Or(parts) => parts.iter().map(pieces).sum(),
        TextQuery::Not(part) => pieces(part),
        TextQuery::Piece(_) | TextQuery::Term(_) | TextQuery::Keywords(_) => 1,
    }
}

/// 1038: too many words and phrases.
fn too_many_pieces() -> Error {
    let message = format!(
        "AGAINST asks for more than {MAX_PIECES} words and phrases: ask for fewer, or nest fewer groups"
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// Parses a query that names no particular text index.
pub(super) fn parsed(text: &str, boolean: bool) -> Result<TextQuery> {
    if boolean { in_boolean_mode(&[], text) } else { Ok(natural(&[], text)) }
}

/// The text indexes that together hold exactly these columns.
fn indexes(table: &SqlTable, columns: &[usize]) -> Result<Vec<u32>> {
    if !table.schema.agents().is_empty() {
        let what = "MATCH … AGAINST of a table with rows in other servers, whose text indexes are not asked: say MATCH('…')";
        return Err(Error::unsupported(what));
    }
    let within =
        |text: &&remora_engine::TextDef| text.columns.iter().all(|column| columns.contains(column));
    let fitting: Vec<_> = table.schema.texts.iter().filter(within).collect();
    let held = |column: &usize| fitting.iter().any(|text| text.columns.contains(column));
    if columns.is_empty() || !columns.iter().all(held) {
        let message = messages::NO_FULLTEXT_INDEX;
        return Err(Error::new(ErrorCode::NoFulltextIndex, message));
    }
    Ok(fitting.iter().map(|text| text.id).collect())
}

/// IN NATURAL LANGUAGE MODE: rows with at least one of the words and phrases.
fn natural(texts: &[u32], text: &str) -> TextQuery {
    let (mut words, mut rest): (Vec<&str>, _) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once('"')
        && let Some((phrase, after)) = behind.split_once('"')
    {
        words.extend(words_of(before));
        words.extend(words_of(phrase).next().map(|_| phrase));
        rest = after;
    }
    words.extend(words_of(rest));
    words.sort_unstable();
    words.dedup();
    let words = words.into_iter().map(|word| piece(texts, word.to_owned(), PieceMatch::Words));
    any_of(words.collect())
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !is_word(c)).map(|word| word.trim_matches(is_joiner));
    words.filter(|word| !word.is_empty())
}

fn any_of(mut parts: Vec<TextQuery>) -> TextQuery {
    match parts.len() {
        0 => nothing(),
        1 => parts.pop().unwrap_or_else(nothing),
        _ => TextQuery::Or(parts),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_joiner(c) || !c.is_ascii() && !c.is_whitespace()
}

fn is_joiner(c: char) -> bool {
    matches!(c, '_' | '\'')
}

/// IN BOOLEAN MODE: rows that satisfy the signs.
fn in_boolean_mode(texts: &[u32], text: &str) -> Result<TextQuery> {
    let mut parser = Parser { texts, rest: text.chars().collect(), at: 0, copied: 0 };
    let query = parser.group(0)?;
    if parser.at < parser.rest.len() {
        return Err(parser.error());
    }
    Ok(query)
}

struct Parser<'a> {
    texts: &'a [u32],
    rest: Vec<char>,
    at: usize,
    /// How many words and phrases were duplicated: each nested group may double them.
    copied: usize,
}

/// The sign before an item.
#[derive(Clone, Copy, Default, PartialEq)]
enum Sign {
    #[default]
    None,
    Must,
    MustNot,
    /// The item is optional and lowers the row's score.
    Lowers,
}

impl Parser<'_> {
    fn group(&mut self, depth: usize) -> Result<TextQuery> {
        if depth > MAX_DEPTH {
            return Err(self.error());
        }
        let (mut must, mut may, mut none) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let sign = self.sign();
            match self.peek() {
                None | Some(')') => break,
                _ => {}
            }
            let Some(item) = self.item(depth)? else { continue };
            match sign {
                Sign::Must => must.push(item),
                Sign::MustNot => none.push(item),
                Sign::None => may.push(item),
                Sign::Lowers => {}
            }
        }
        if must.is_empty() && may.is_empty() {
            return Ok(nothing());
        }
        let mut all = must;
        if all.is_empty() {
            all.push(any_of(may));
        } else if !may.is_empty() {
            // Optional items raise the score, so the query contains them a second time as
            // alternatives.
            if let Some(first) = all.first() {
                self.copied += pieces(first);
                if self.copied > MAX_PIECES {
                    return Err(too_many_pieces());
                }
                may.push(first.clone());
            }
            all.push(TextQuery::Or(may));
        }
        all.extend(none.into_iter().map(|item| TextQuery::Not(Box::new(item))));
        Ok(if all.len() == 1 { any_of(all) } else { TextQuery::And(all) })
    }

    /// Reads blanks and the signs before an item.
    fn sign(&mut self) -> Sign {
        let mut sign = Sign::None;
        while let Some(c) = self.peek() {
            match c {
                '+' => sign = Sign::Must,
                '-' => sign = Sign::MustNot,
                '~' => sign = Sign::Lowers,
                '<' | '>' => {}
                '"' if !self.closes() => {}
                c if c == '"' || c == '(' || c == ')' || is_word(c) => break,
                // A sign applies only to what follows it directly.
                _ => sign = Sign::None,
            }
            self.at += 1;
        }
        sign
    }

    fn item(&mut self, depth: usize) -> Result<Option<TextQuery>> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let group = self.group(depth + 1)?;
                if self.peek() != Some(')') {
                    return Err(self.error());
                }
                self.at += 1;
                Ok(Some(group))
            }
            Some('"') => self.phrase().map(Some),
            _ => Ok(self.word()),
        }
    }

    fn word(&mut self) -> Option<TextQuery> {
        let start = self.at;
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
        let word: String = self.rest.get(start..self.at)?.iter().collect();
        let prefix = self.peek() == Some('*');
        self.at += usize::from(prefix);
        let word = word.trim_matches(is_joiner);
        let matching = if prefix { PieceMatch::WordPrefix } else { PieceMatch::Words };
        (!word.is_empty()).then(|| piece(self.texts, word.to_owned(), matching))
    }

    fn phrase(&mut self) -> Result<TextQuery> {
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|c| c != '"') {
            self.at += 1;
        }
        let text: String = self.rest.get(start..self.at).unwrap_or_default().iter().collect();
        if self.peek().is_none() {
            return Err(self.error());
        }
        self.at += 1;
        let mut ahead = self.at;
        while self.rest.get(ahead) == Some(&' ') {
            ahead += 1;
        }
        let mut matching = PieceMatch::Words;
        if self.rest.get(ahead) == Some(&'@') {
            let digits = self.rest.get(ahead + 1..).unwrap_or_default();
            let count = digits.iter().take_while(|c| c.is_ascii_digit()).count();
            let digits: String = digits.iter().take(count).collect();
            self.at = ahead + 1 + count;
            matching = PieceMatch::Near(digits.parse().map_err(|_| self.error())?);
        }
        Ok(piece(self.texts, text, matching))
    }

    /// Whether the quotation mark here has a second one.
    fn closes(&self) -> bool {
        self.rest.get(self.at + 1..).unwrap_or_default().contains(&'"')
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    /// 1064 with MySQL's message for a malformed boolean search.
    fn error(&self) -> Error {
        let at = match self.rest.get(self.at) {
            Some(c) => format!("unexpected '{c}'"),
            None => "unexpected $end".to_owned(),
        };
        Error::new(ErrorCode::ParseError, format!("syntax error, {at}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &TextQuery) -> String {
        let several = |parts: &[TextQuery], mark: &str| {
            let parts: Vec<String> = parts.iter().map(shown).collect();
            format!("({})", parts.join(mark))
        };
        match query {
            TextQuery::Piece(piece) => match piece.matching {
                PieceMatch::Words if piece.text.is_empty() => "nothing".to_owned(),
                PieceMatch::Words => piece.text.clone(),
                PieceMatch::WordPrefix => format!("{}*", piece.text),
                PieceMatch::Near(distance) => format!("{}@{distance}", piece.text),
                PieceMatch::Substring => format!("%{}%", piece.text),
            },
            TextQuery::Term(term) => term.clone(),
            TextQuery::Keywords(query) => query.text.clone(),
            TextQuery::And(parts) => several(parts, " & "),
            TextQuery::Or(parts) => several(parts, " | "),
            TextQuery::Not(part) => format!("!{}", shown(part)),
        }
    }

    #[test]
    fn boolean_mode_has_its_operators() {
        let read = |text: &str| in_boolean_mode(&[], text).map(|query| shown(&query));
        let cases = [
            ("apple banana", "(apple | banana)"),
            ("+apple +juice", "(apple & juice)"),
            ("+apple macintosh", "(apple & (macintosh | apple))"),
            ("+apple -macintosh", "(apple & !macintosh)"),
            ("+apple ~macintosh", "apple"),
            ("+apple +(>turnover <strudel)", "(apple & (turnover | strudel))"),
            ("apple*", "apple*"),
            ("\"some words\"", "some words"),
            ("\"some words\" @8", "some words@8"),
            ("-apple", "nothing"),
            ("\"apple", "apple"),
            ("apple\" pie", "(apple | pie)"),
            ("+\"apple pie", "(apple & (pie | apple))"),
            ("\"a b\" +\"c", "(c & (a b | c))"),
            ("", "nothing"),
            ("+ apple", "apple"),
            ("don't e-mail", "(don't | !mail)"),
            ("東京 +カフェ", "(カフェ & (東京 | カフェ))"),
        ];
        for (text, expected) in cases {
            let expected = match text {
                "don't e-mail" => "((don't | e) & !mail)",
                _ => expected,
            };
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for text in ["(apple", "apple)", "\"a\" @"] {
            assert_eq!(read(text).unwrap_err().code, ErrorCode::ParseError, "{text}");
        }
    }

    #[test]
    fn groups_do_not_double_without_end() {
        let nested = |begin: &str, depth: usize| {
            format!("{}+z y{}", begin.repeat(depth), ") x".repeat(depth))
        };
        let wide = format!("{} +z", "+(+a b) c ".repeat(20));
        assert!(in_boolean_mode(&[], &wide).is_ok());
        assert!(pieces(&in_boolean_mode(&[], &nested("+(", 8)).unwrap()) > 256);
        let error = in_boolean_mode(&[], &nested("+(", 16)).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutOfMemory);
        let words: Vec<String> = (0..=MAX_PIECES).map(|number| format!("w{number}")).collect();
        let error = asked(&words.join(" "), "IN BOOLEAN MODE").unwrap_err();
        assert_eq!(error.code, ErrorCode::OutOfMemory);
        assert!(in_boolean_mode(&[], &words.join(" ")).is_ok());
    }

    #[test]
    fn natural_mode_asks_for_any_word() {
        let read = |text: &str| shown(&natural(&[], text));
        assert_eq!(read("the quick, quick fox"), "(fox | quick | the)");
        assert_eq!(read("don't 'quote'"), "(don't | quote)");
        assert_eq!(read("a \"quick fox\" b"), "(a | b | quick fox)");
        assert_eq!(read("\"quick fox\""), "quick fox");
        assert_eq!(read("quick\" fox, \"--\""), "( fox,  | quick)");
        assert_eq!(read("\"\" quick \"fox"), "(fox | quick)");
        assert_eq!(read("--"), "nothing");
    }
}
