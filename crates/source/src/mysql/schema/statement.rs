//! The parts of an ALTER TABLE that `information_schema` does not tell: which columns were renamed,
//! which were dropped or made anew under an old name, and what was done to partitions.

/// What an ALTER TABLE says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Alteration {
    /// Old and new names.
    pub(super) renamed: Vec<(String, String)>,
    /// Columns that it drops.
    pub(super) dropped: Vec<String>,
    /// A clause by which rows come or go without row events.
    pub(super) moves_rows: Option<&'static str>,
    /// Every name and keyword in it.
    words: Vec<String>,
}

/// A piece of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name without quotes, or a keyword.
    Word(String),
    /// A name between backticks.
    Quoted(String),
    /// Anything else.
    Other(char),
}

impl Token {
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            Self::Other(_) => None,
        }
    }
}

impl Alteration {
    /// What the statement says; `None` if it is no ALTER TABLE.
    pub(super) fn of(statement: &str) -> Option<Self> {
        let tokens = tokens(statement);
        let mut words = tokens.iter().take(5);
        if !words.next()?.is("ALTER") || !words.any(|word| word.is("TABLE")) {
            return None;
        }
        let words = tokens.iter().filter_map(Token::name).map(str::to_owned).collect();
        let mut alteration = Self { words, ..Self::default() };
        if tokens.iter().take_while(|word| !word.is("TABLE")).any(|word| word.is("IGNORE")) {
            alteration.moves_rows = Some("rows that did not fit were dropped");
        }
        for at in 0..tokens.len() {
            alteration.clause(tokens.get(at..).unwrap_or_default());
        }
        Some(alteration)
    }

    /// What several that follow each other say, each of columns that no other names.
    pub(super) fn together(alterations: Vec<Self>) -> Self {
        let mut all = Self::default();
        for alteration in alterations {
            all.renamed.extend(alteration.renamed);
            all.dropped.extend(alteration.dropped);
            all.moves_rows = all.moves_rows.or(alteration.moves_rows);
            all.words.extend(alteration.words);
        }
        all
    }

    /// Whether this name or keyword stands in it.
    pub(super) fn names(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.words.iter().any(|word| word.to_lowercase() == name)
    }

    /// What a clause says that begins with these tokens, if one does.
    fn clause(&mut self, tokens: &[Token]) {
        match tokens {
            [rename, column, from, to, into, ..]
                if rename.is("RENAME") && column.is("COLUMN") && to.is("TO") =>
            {
                self.rename(from, into);
            }
            [change, rest @ ..] if change.is("CHANGE") => {
                let rest = skip(rest, &["COLUMN", "IF", "EXISTS"]);
                if let [from, into, ..] = rest {
                    self.rename(from, into);
                }
            }
            [what, partition, ..] if partition.is("PARTITION") => {
                let moves = ["DROP", "TRUNCATE", "EXCHANGE", "IMPORT", "DISCARD", "CONVERT"];
                if moves.iter().any(|word| what.is(word)) {
                    self.moves_rows = Some("a partition was dropped, emptied or exchanged");
                }
            }
            [what, tablespace, ..]
                if tablespace.is("TABLESPACE") && (what.is("IMPORT") || what.is("DISCARD")) =>
            {
                self.moves_rows = Some("its tablespace was exchanged");
            }
            [convert, table, ..] if convert.is("CONVERT") && table.is("TABLE") => {
                self.moves_rows = Some("a table became a partition of it");
            }
            [drop, rest @ ..] if drop.is("DROP") => {
                let rest = skip(rest, &["COLUMN", "IF", "EXISTS"]);
                self.dropped.extend(rest.first().and_then(Token::name).map(str::to_owned));
            }
            _ => {}
        }
    }

    fn rename(&mut self, from: &Token, into: &Token) {
        if let (Some(from), Some(into)) = (from.name(), into.name())
            && !from.eq_ignore_ascii_case(into)
        {
            self.renamed.push((from.to_owned(), into.to_owned()));
        }
    }
}

fn skip<'t>(tokens: &'t [Token], words: &[&str]) -> &'t [Token] {
    let skipped = tokens.iter().take_while(|token| words.iter().any(|word| token.is(word))).count();
    tokens.get(skipped..).unwrap_or_default()
}

/// The statement's pieces without comments and string literals; what stands in a comment that is
/// for servers counts.
pub(super) fn tokens(statement: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '`' => {
                let (name, behind) = quoted(rest, '`');
                tokens.push(Token::Quoted(name));
                behind
            }
            '\'' | '"' => {
                tokens.push(Token::Other(first));
                quoted(rest, first).1
            }
            '#' => rest.split_once('\n').map_or("", |(_, behind)| behind),
            '-' if rest.starts_with("-- ") => {
                rest.split_once('\n').map_or("", |(_, behind)| behind)
            }
            '/' if rest.starts_with("/*!") || rest.starts_with("/*M!") => rest
                .trim_start_matches(['/', '*', 'M', '!'])
                .trim_start_matches(|c: char| c.is_ascii_digit()),
            '/' if rest.starts_with("/*") => rest.split_once("*/").map_or("", |(_, behind)| behind),
            _ if is_of_name(first) => {
                let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                tokens.push(Token::Word(word.to_owned()));
                behind
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(Token::Other(first));
                }
                rest.get(first.len_utf8()..).unwrap_or_default()
            }
        };
    }
    tokens
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$') || character >= '\u{80}'
}

/// What stands between quotes, and what behind them.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut inner = String::new();
    let mut characters = text.chars();
    characters.next();
    while let Some(character) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
            continue;
        }
        if character != quote {
            inner.push(character);
            continue;
        }
        match characters.as_str().strip_prefix(quote) {
            Some(behind) => {
                inner.push(quote);
                characters = behind.chars();
            }
            None => break,
        }
    }
    (inner, characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(statement: &str) -> Alteration {
        Alteration::of(statement).unwrap()
    }

    fn pairs(names: &[(&str, &str)]) -> Vec<(String, String)> {
        names.iter().map(|&(from, to)| (from.to_owned(), to.to_owned())).collect()
    }

    #[test]
    fn renamed_and_dropped_columns_are_found() {
        let found = altered("ALTER TABLE t RENAME COLUMN a TO `b``c`, CHANGE COLUMN d e INT");
        assert_eq!(found.renamed, pairs(&[("a", "b`c"), ("d", "e")]));
        let found =
            altered("/* x */ alter /*!50000 ignore */ table `s`.t change `ä` ö int, drop x");
        assert_eq!(found.renamed, pairs(&[("ä", "ö")]));
        assert_eq!(found.dropped, ["x"]);
        let found =
            altered("ALTER TABLE t MODIFY a INT COMMENT 'CHANGE a b', DROP COLUMN IF EXISTS c");
        assert_eq!((found.renamed, found.dropped), (vec![], vec!["c".to_owned()]));
        assert_eq!(altered("ALTER TABLE t CHANGE a a BIGINT").renamed, []);
        assert!(Alteration::of("CREATE TABLE t (a INT)").is_none());
        assert!(Alteration::of("").is_none());
    }

    #[test]
    fn rows_that_move_without_events_are_found() {
        assert!(altered("ALTER TABLE t DROP PARTITION p0").moves_rows.is_some());
        assert!(altered("ALTER TABLE t TRUNCATE PARTITION ALL").moves_rows.is_some());
        assert!(altered("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u").moves_rows.is_some());
        assert!(altered("ALTER TABLE t IMPORT TABLESPACE").moves_rows.is_some());
        assert!(altered("ALTER TABLE t ADD PARTITION (PARTITION p1)").moves_rows.is_none());
        assert!(altered("ALTER TABLE t ADD INDEX (a)").moves_rows.is_none());
    }
}
