//! Keys and conditions of a table: the lines after the columns in SHOW CREATE TABLE.
//!
//! ```text
//! line := ["CONSTRAINT" name?] "PRIMARY" "KEY" parts words
//!       | ["CONSTRAINT" name?] "UNIQUE" ["KEY" | "INDEX"] name? parts words
//!       | ("FULLTEXT" | "SPATIAL" | "VECTOR")? ("KEY" | "INDEX") name? parts words
//!       | ["CONSTRAINT" name?] "FOREIGN" "KEY" name? parts "REFERENCES" …
//!       | ["CONSTRAINT" name?] "CHECK" "(" expression ")" ["NOT"? "ENFORCED"]
//! parts := "(" (name ["(" number ")"] | "(" expression ")") ["ASC" | "DESC"] "," … ")"
//! ```

use remora_mysql::TokenKind;

use super::stored_text::parenthesised;
use crate::{Result, parse::Tokens};

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// The primary key.
    Primary,
    /// A unique key.
    Unique,
    /// An index that is not unique.
    Plain,
    /// A full-text index.
    Fulltext,
    /// Accepted, without effect.
    Spatial,
    /// Accepted, without effect.
    Vector,
}

/// A key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// Its kind.
    pub kind: KeyKind,
    /// Its name; `PRIMARY` for the primary key, empty until it is named.
    pub name: String,
    /// The parts in order.
    pub parts: Vec<KeyPart>,
    /// COMMENT.
    pub comment: String,
    /// INVISIBLE: the optimizer must not use it.
    pub invisible: bool,
    /// WITH PARSER.
    pub parser: Option<String>,
    /// USING, as written.
    pub using: Option<String>,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyPart {
    /// The column or expression.
    pub of: PartOf,
    /// Its prefix length, in characters or bytes.
    pub prefix: Option<u64>,
    /// DESC.
    pub descending: bool,
}

/// The source of a key part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartOf {
    /// A column's name.
    Column(String),
    /// The text of an expression.
    Expression(String),
}

/// A CHECK condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    /// Its name; empty until it is named.
    pub name: String,
    /// The expression, as text.
    pub expression: String,
    /// Whether rows are checked.
    pub enforced: bool,
}

/// A line after the columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// A key.
    Key(Key),
    /// A CHECK condition.
    Check(Check),
    /// A foreign key, which is not enforced: its text.
    Foreign {
        /// Its name, if it has one.
        name: Option<String>,
        /// The name of the index over its columns, if one is given.
        index: Option<String>,
        /// The referencing columns.
        columns: Vec<String>,
        /// The text after FOREIGN KEY and its name.
        text: String,
    },
}

/// Parses a line; `None` if a column follows.
pub(crate) fn parse_line(tokens: &mut Tokens<'_>) -> Result<Option<Line>> {
    let mut ahead = *tokens;
    let constraint = match ahead.accept("CONSTRAINT") {
        false => None,
        true => {
            let unnamed = ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"];
            let unnamed = unnamed.iter().any(|word| ahead.is_word(word));
            if unnamed { None } else { Some(ahead.name()?) }
        }
    };
    if !ahead.is_kind(TokenKind::Word) {
        return Ok(None);
    }
    let line = if ahead.accept_all("PRIMARY KEY") {
        let mut key = parse_key(&mut ahead, KeyKind::Primary)?;
        "PRIMARY".clone_into(&mut key.name);
        Line::Key(key)
    } else if ahead.accept("UNIQUE") {
        ahead.accept_any(&["KEY", "INDEX"]);
        let mut key = parse_key(&mut ahead, KeyKind::Unique)?;
        if key.name.is_empty() {
            key.name = constraint.unwrap_or_default();
        }
        Line::Key(key)
    } else if ahead.accept_all("FOREIGN KEY") {
        parse_foreign(&mut ahead, constraint)?
    } else if ahead.accept("CHECK") {
        let expression = parenthesised(&mut ahead)?;
        let enforced = parse_check_words(&mut ahead);
        Line::Check(Check { name: constraint.unwrap_or_default(), expression, enforced })
    } else {
        let kinds = [
            ("FULLTEXT", KeyKind::Fulltext),
            ("SPATIAL", KeyKind::Spatial),
            ("VECTOR", KeyKind::Vector),
        ];
        let named = kinds.into_iter().find(|(word, _)| ahead.accept(word));
        let said = ahead.accept_any(&["KEY", "INDEX"]);
        match (named, said) {
            (Some((_, kind)), _) => Line::Key(parse_key(&mut ahead, kind)?),
            (None, true) => Line::Key(parse_key(&mut ahead, KeyKind::Plain)?),
            (None, false) => return Ok(None),
        }
    };
    *tokens = ahead;
    Ok(Some(line))
}

/// Parses a key. `tokens` are at its name.
pub(crate) fn parse_key(tokens: &mut Tokens<'_>, kind: KeyKind) -> Result<Key> {
    let mut key = Key {
        kind,
        name: String::new(),
        parts: Vec::new(),
        comment: String::new(),
        invisible: false,
        parser: None,
        using: None,
    };
    if !tokens.is("(") && !tokens.is_word("USING") {
        key.name = tokens.name()?;
    }
    parse_key_words(tokens, &mut key)?;
    key.parts = parse_parts(tokens)?;
    parse_key_words(tokens, &mut key)?;
    Ok(key)
}

pub(crate) fn parse_key_words(tokens: &mut Tokens<'_>, key: &mut Key) -> Result<()> {
    loop {
        if tokens.accept_any(&["USING", "TYPE"]) {
            key.using = Some(tokens.name()?.to_uppercase());
        } else if tokens.accept("COMMENT") {
            key.comment = tokens.utf8()?;
        } else if tokens.accept_all("WITH PARSER") {
            key.parser = Some(tokens.name()?);
        } else if tokens.accept("INVISIBLE") {
            key.invisible = true;
        } else if tokens.accept("VISIBLE") {
            key.invisible = false;
        } else if tokens.accept("KEY_BLOCK_SIZE") {
            tokens.take("=");
            tokens.number()?;
        } else if tokens.accept_any(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"]) {
            tokens.take("=");
            tokens.text()?;
        } else if tokens.accept("CLUSTERED") || tokens.accept("NONCLUSTERED") {
        } else {
            return Ok(());
        }
    }
}

fn parse_parts(tokens: &mut Tokens<'_>) -> Result<Vec<KeyPart>> {
    tokens.need("(")?;
    let mut parts = Vec::new();
    loop {
        let mut prefix = None;
        let of = match tokens.is("(") {
            true => PartOf::Expression(parenthesised(tokens)?),
            false => {
                let name = tokens.name()?;
                if tokens.take("(") {
                    prefix = Some(tokens.number()?);
                    tokens.need(")")?;
                }
                PartOf::Column(name)
            }
        };
        tokens.accept("ASC");
        let descending = tokens.accept("DESC");
        parts.push(KeyPart { of, prefix, descending });
        if !tokens.take(",") {
            break;
        }
    }
    tokens.need(")")?;
    Ok(parts)
}

fn parse_foreign(tokens: &mut Tokens<'_>, constraint: Option<String>) -> Result<Line> {
    let named = (!tokens.is("(")).then(|| tokens.name()).transpose()?;
    let parts = parse_parts(tokens)?;
    tokens.expect("REFERENCES")?;
    let columns = columns_of(&parts);
    let text = format!("{} REFERENCES {}", column_list(&columns), parse_references(tokens)?);
    Ok(Line::Foreign { name: constraint, index: named, columns, text })
}

/// Parses the text after REFERENCES into the form of SHOW CREATE TABLE.
pub(super) fn parse_references(tokens: &mut Tokens<'_>) -> Result<String> {
    let mut out = quoted_name(&tokens.name()?);
    if tokens.take(".") {
        out = format!("{out}.{}", quoted_name(&tokens.name()?));
    }
    if tokens.is("(") {
        out.push_str(&format!(" {}", column_list(&columns_of(&parse_parts(tokens)?))));
    }
    loop {
        let event = if tokens.accept("MATCH") {
            tokens.name()?;
            continue;
        } else if tokens.accept_all("ON DELETE") {
            "ON DELETE"
        } else if tokens.accept_all("ON UPDATE") {
            "ON UPDATE"
        } else {
            return Ok(out);
        };
        let actions = ["RESTRICT", "CASCADE", "SET NULL", "NO ACTION", "SET DEFAULT"];
        let action = actions.iter().find(|words| tokens.accept_all(words));
        match action.ok_or_else(|| tokens.syntax_error())? {
            // The default.
            &"NO ACTION" => {}
            action => out.push_str(&format!(" {event} {action}")),
        }
    }
}

fn columns_of(parts: &[KeyPart]) -> Vec<String> {
    parts.iter().filter_map(|part| part.column().map(str::to_owned)).collect()
}

/// A list of columns as SHOW CREATE TABLE prints it.
pub(crate) fn column_list(columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
    format!("({})", columns.join(", "))
}

fn written_parts(parts: &[KeyPart]) -> String {
    let parts: Vec<String> = parts.iter().map(KeyPart::written).collect();
    parts.join(",")
}

/// Reads `[NOT] ENFORCED`.
pub(super) fn parse_check_words(tokens: &mut Tokens<'_>) -> bool {
    if tokens.accept_all("NOT ENFORCED") {
        return false;
    }
    tokens.accept("ENFORCED");
    true
}

impl Line {
    /// The line as SHOW CREATE TABLE prints it.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Key(key) => key.written(),
            Self::Check(check) => {
                let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
                let name = quoted_name(&check.name);
                format!("CONSTRAINT {name} CHECK ({}){enforced}", check.expression)
            }
            Self::Foreign { name, text, .. } => match name {
                Some(name) => format!("CONSTRAINT {} FOREIGN KEY {text}", quoted_name(name)),
                None => format!("FOREIGN KEY {text}"),
            },
        }
    }
}

impl Key {
    fn written(&self) -> String {
        let kind = match self.kind {
            KeyKind::Primary => "PRIMARY KEY".to_owned(),
            KeyKind::Unique => format!("UNIQUE KEY {}", quoted_name(&self.name)),
            KeyKind::Plain => format!("KEY {}", quoted_name(&self.name)),
            KeyKind::Fulltext => format!("FULLTEXT KEY {}", quoted_name(&self.name)),
            KeyKind::Spatial => format!("SPATIAL KEY {}", quoted_name(&self.name)),
            KeyKind::Vector => format!("VECTOR KEY {}", quoted_name(&self.name)),
        };
        let mut out = format!("{kind} ({})", written_parts(&self.parts));
        if let Some(using) = &self.using {
            out.push_str(&format!(" USING {using}"));
        }
        if !self.comment.is_empty() {
            out.push_str(&format!(" COMMENT {}", super::column::quoted_text(&self.comment)));
        }
        if let Some(parser) = &self.parser {
            out.push_str(&format!(" /*!50100 WITH PARSER {} */ ", quoted_name(parser)));
        }
        if self.invisible {
            out.push_str(" /*!80000 INVISIBLE */");
        }
        out
    }

    /// The names of its columns; `None` if a part is an expression.
    pub(crate) fn columns(&self) -> Option<Vec<&str>> {
        self.parts.iter().map(KeyPart::column).collect()
    }
}

impl KeyPart {
    /// The column's name; `None` for an expression.
    pub(crate) fn column(&self) -> Option<&str> {
        match &self.of {
            PartOf::Column(name) => Some(name),
            PartOf::Expression(_) => None,
        }
    }

    /// The expression; `None` for a column.
    pub(crate) fn expression(&self) -> Option<&str> {
        match &self.of {
            PartOf::Column(_) => None,
            PartOf::Expression(expression) => Some(expression),
        }
    }

    fn written(&self) -> String {
        let mut out = match &self.of {
            PartOf::Column(name) => quoted_name(name),
            PartOf::Expression(expression) => format!("({expression})"),
        };
        if let Some(prefix) = self.prefix {
            out.push_str(&format!("({prefix})"));
        }
        if self.descending {
            out.push_str(" DESC");
        }
        out
    }
}

/// A name in backquotes.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
