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

use super::{QualifiedName, expression::parenthesised};
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
pub(crate) enum TableLine {
    /// A key.
    Key(Key),
    /// A CHECK condition.
    Check(Check),
    /// A foreign key.
    Foreign(ForeignKey),
}

/// A foreign key, which is not enforced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForeignKey {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The name of the index over its columns, if one is given.
    pub index: Option<String>,
    /// The referencing columns.
    pub columns: Vec<String>,
    /// What they reference.
    pub references: References,
}

/// What a foreign key references.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct References {
    /// The table.
    pub table: QualifiedName,
    /// Its columns.
    pub columns: Vec<String>,
    /// ON DELETE.
    pub on_delete: &'static str,
    /// ON UPDATE.
    pub on_update: &'static str,
}

/// What a foreign key does if it says nothing.
pub(crate) const NO_ACTION: &str = "NO ACTION";

impl Key {
    /// A key of this kind without parts.
    fn new(kind: KeyKind) -> Self {
        Self {
            kind,
            name: String::new(),
            parts: Vec::new(),
            comment: String::new(),
            invisible: false,
            parser: None,
            using: None,
        }
    }

    /// A key over columns without other attributes.
    pub(crate) fn over(kind: KeyKind, name: &str, columns: &[String]) -> Self {
        let part = |column: &String| KeyPart {
            of: PartOf::Column(column.clone()),
            prefix: None,
            descending: false,
        };
        let parts = columns.iter().map(part).collect();
        Self { name: name.to_owned(), parts, ..Self::new(kind) }
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
}

/// Reads a line; `None` if a column follows.
pub(super) fn read_line(tokens: &mut Tokens<'_>) -> Result<Option<TableLine>> {
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
        let mut key = read_key(&mut ahead, KeyKind::Primary)?;
        "PRIMARY".clone_into(&mut key.name);
        TableLine::Key(key)
    } else if ahead.accept("UNIQUE") {
        ahead.accept_any(&["KEY", "INDEX"]);
        let mut key = read_key(&mut ahead, KeyKind::Unique)?;
        if key.name.is_empty() {
            key.name = constraint.unwrap_or_default();
        }
        TableLine::Key(key)
    } else if ahead.accept_all("FOREIGN KEY") {
        read_foreign(&mut ahead, constraint)?
    } else if ahead.accept("CHECK") {
        TableLine::Check(read_check(&mut ahead, constraint)?)
    } else {
        let kind = accept_kind(&mut ahead);
        if !ahead.accept_any(&["KEY", "INDEX"]) && kind == KeyKind::Plain {
            return Ok(None);
        }
        TableLine::Key(read_key(&mut ahead, kind)?)
    };
    *tokens = ahead;
    Ok(Some(line))
}

/// Takes the word of a kind of key that is neither primary nor unique.
pub(super) fn accept_kind(tokens: &mut Tokens<'_>) -> KeyKind {
    let kinds = [
        ("FULLTEXT", KeyKind::Fulltext),
        ("SPATIAL", KeyKind::Spatial),
        ("VECTOR", KeyKind::Vector),
    ];
    let is_there = |(word, kind): &(&str, KeyKind)| {
        let mut ahead = *tokens;
        // VECTOR may be the name of a column.
        let is_key = |ahead: &Tokens<'_>| ahead.is_word("KEY") || ahead.is_word("INDEX");
        ahead.accept(word) && (*kind != KeyKind::Vector || is_key(&ahead))
    };
    let Some((word, kind)) = kinds.into_iter().find(is_there) else { return KeyKind::Plain };
    tokens.accept(word);
    kind
}

/// Reads a key from its name on.
pub(super) fn read_key(tokens: &mut Tokens<'_>, kind: KeyKind) -> Result<Key> {
    let mut key = Key::new(kind);
    if !tokens.is("(") && !tokens.is_word("USING") {
        key.name = tokens.name()?;
    }
    read_key_words(tokens, &mut key)?;
    key.parts = read_parts(tokens)?;
    read_key_words(tokens, &mut key)?;
    Ok(key)
}

fn read_key_words(tokens: &mut Tokens<'_>, key: &mut Key) -> Result<()> {
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

fn read_parts(tokens: &mut Tokens<'_>) -> Result<Vec<KeyPart>> {
    tokens.need("(")?;
    let parts = tokens.list(read_part)?;
    tokens.need(")")?;
    Ok(parts)
}

fn read_part(tokens: &mut Tokens<'_>) -> Result<KeyPart> {
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
    Ok(KeyPart { of, prefix, descending: tokens.accept("DESC") })
}

fn read_foreign(tokens: &mut Tokens<'_>, constraint: Option<String>) -> Result<TableLine> {
    let index = (!tokens.is("(")).then(|| tokens.name()).transpose()?;
    let columns = read_columns(tokens)?;
    tokens.expect("REFERENCES")?;
    let references = References::read(tokens)?;
    Ok(TableLine::Foreign(ForeignKey { name: constraint, index, columns, references }))
}

impl References {
    /// Reads what stands behind REFERENCES.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        const ACTIONS: [&str; 5] = ["RESTRICT", "CASCADE", "SET NULL", NO_ACTION, "SET DEFAULT"];
        let table = QualifiedName::read(tokens)?;
        let columns = if tokens.is("(") { read_columns(tokens)? } else { Vec::new() };
        let mut read = Self { table, columns, on_delete: NO_ACTION, on_update: NO_ACTION };
        loop {
            let action = if tokens.accept("MATCH") {
                tokens.name()?;
                continue;
            } else if tokens.accept_all("ON DELETE") {
                &mut read.on_delete
            } else if tokens.accept_all("ON UPDATE") {
                &mut read.on_update
            } else {
                return Ok(read);
            };
            let found = ACTIONS.into_iter().find(|words| tokens.accept_all(words));
            *action = found.ok_or_else(|| tokens.syntax_error())?;
        }
    }
}

/// Reads the columns of a foreign key, which may be written as those of a key.
fn read_columns(tokens: &mut Tokens<'_>) -> Result<Vec<String>> {
    let parts = read_parts(tokens)?;
    Ok(parts.iter().filter_map(|part| part.column().map(str::to_owned)).collect())
}

/// Reads a condition after CHECK.
pub(super) fn read_check(tokens: &mut Tokens<'_>, name: Option<String>) -> Result<Check> {
    let expression = parenthesised(tokens)?;
    let enforced = !tokens.accept_all("NOT ENFORCED");
    tokens.accept("ENFORCED");
    Ok(Check { name: name.unwrap_or_default(), expression, enforced })
}
