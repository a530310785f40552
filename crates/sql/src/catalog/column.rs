//! A column's declaration, as it stands after its name in SHOW CREATE TABLE.
//!
//! ```text
//! declaration := type attribute*
//! attribute   := ["NOT"] "NULL" | "DEFAULT" default | "ON" "UPDATE" now | "AUTO_INCREMENT"
//!              | "COMMENT" text | "COLLATE" name | ["PRIMARY" | "UNIQUE"] "KEY" | "INVISIBLE"
//!              | ["GENERATED" "ALWAYS"] "AS" "(" expression ")" ["VIRTUAL" | "STORED"]
//!              | ["CONSTRAINT" name?] "CHECK" "(" expression ")" ["NOT"? "ENFORCED"]
//! default     := literal | "NULL" | now | "(" expression ")"
//! now         := ("CURRENT_TIMESTAMP" | "NOW" | …) ["(" digits? ")"]
//! ```

use remora_mysql::{Collation, TokenKind};

use super::{
    key::{Check, parse_check_words, quoted_name},
    kind::{Charset, TypeSpec, check_length, parse_charset, parse_type, resolve_collation},
    stored_text::{parenthesised, respelled},
};
use crate::{Column, Result, SqlType, parse::Tokens};

/// A column's declaration, without its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnSpec {
    /// Its type.
    pub kind: TypeSpec,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Its DEFAULT.
    pub default: DefaultSpec,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Its expression, if it is a generated column.
    pub generated: Option<Generated>,
    /// Whether `*` omits it.
    pub invisible: bool,
    /// COMMENT.
    pub comment: String,
}

/// The DEFAULT of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum DefaultSpec {
    /// Not declared: NULL if that is permitted, else a value must be given.
    #[default]
    None,
    /// NULL, declared.
    Null,
    /// A constant, as text.
    Constant(Vec<u8>),
    /// A constant of type BIT or of bytes, as it is written: `b'101'`.
    Bits(String),
    /// CURRENT_TIMESTAMP.
    Now,
    /// An expression, as text.
    Expression(String),
}

/// The expression of a generated column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generated {
    /// The expression, as text.
    pub expression: String,
    /// STORED: computed when the row is written. Otherwise VIRTUAL, which MySQL computes when the row is read.
    pub stored: bool,
}

/// The parts of a column's declaration that belong to the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ColumnExtras {
    /// It is the primary key.
    pub primary: bool,
    /// It is a unique key.
    pub unique: bool,
    /// CHECK conditions.
    pub checks: Vec<Check>,
    /// NULL is declared explicitly.
    pub nullable: bool,
    /// The text after REFERENCES, as SHOW CREATE TABLE prints it.
    pub references: Option<String>,
}

impl ColumnSpec {
    /// A column with this type and no other attributes.
    pub(crate) fn plain(kind: TypeSpec) -> Self {
        Self {
            kind,
            not_null: false,
            default: DefaultSpec::None,
            on_update_now: false,
            auto_increment: false,
            generated: None,
            invisible: false,
            comment: String::new(),
        }
    }

    /// The declaration of a column for a query's results.
    pub(crate) fn of_result(column: &Column, table: Collation) -> Self {
        let collation = Collation(column.collation);
        let text = collation != Collation::BINARY;
        let characters = if text { u64::from(column.length) / 4 } else { u64::from(column.length) };
        let mut kind = TypeSpec { unsigned: column.unsigned, ..TypeSpec::plain(column.kind) };
        match column.kind {
            SqlType::Null => kind = TypeSpec { length: 0, ..TypeSpec::plain(SqlType::VarChar) },
            SqlType::Char | SqlType::VarChar => kind.length = characters,
            SqlType::TinyBlob => kind.length = 255,
            SqlType::Blob => kind.length = 65_535,
            SqlType::MediumBlob => kind.length = 16_777_215,
            SqlType::LongBlob => kind.length = 4_294_967_295,
            SqlType::Multi => kind = TypeSpec::of_multi(false),
            SqlType::Multi64 => kind = TypeSpec::of_multi(true),
            // The labels are not known here.
            SqlType::Enum | SqlType::Set => {
                kind = TypeSpec { length: characters, ..TypeSpec::plain(SqlType::VarChar) };
            }
            _ => {}
        }
        let textual = matches!(
            kind.sql,
            SqlType::Char
                | SqlType::VarChar
                | SqlType::TinyBlob
                | SqlType::Blob
                | SqlType::MediumBlob
                | SqlType::LongBlob
        );
        if textual && column.kind != SqlType::Null {
            kind.collation = collation;
            kind.collation_said = collation != table && text;
        }
        let mut spec = Self::plain(kind);
        spec.not_null = column.not_null || spec.kind.multi().is_some();
        let moment = matches!(
            spec.kind.sql,
            SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) | SqlType::Time(_)
        );
        let is_set = spec.kind.multi().is_some();
        if spec.not_null
            && !is_set
            && column.original_table.is_empty()
            && !moment
            && !spec.kind.is_blob()
        {
            let zero: &[u8] = if textual { b"" } else { b"0" };
            spec.default = DefaultSpec::Constant(zero.to_vec());
        }
        spec
    }

    /// Parses the declaration after a column's name. `table` is the table's collation.
    pub(crate) fn parse(
        tokens: &mut Tokens<'_>,
        name: &str,
        table: Collation,
    ) -> Result<(Self, ColumnExtras)> {
        let (column, extras) = Self::read(tokens, name, table)?;
        check_length(&column.kind, name)?;
        Ok((column, extras))
    }

    /// Parses a declaration that a server has accepted.
    pub(crate) fn read(
        tokens: &mut Tokens<'_>,
        name: &str,
        table: Collation,
    ) -> Result<(Self, ColumnExtras)> {
        let mut charset = Charset::default();
        let serial = tokens.is_word("SERIAL");
        let mut column = Self::plain(parse_type(tokens, name, &mut charset)?);
        let mut extras = ColumnExtras::default();
        if serial {
            column.set_serial(&mut extras);
        }
        while column.parse_attribute(tokens, &mut charset, &mut extras)? {}
        resolve_collation(&mut column.kind, &charset, table)?;
        // A set without numbers is empty, not NULL.
        column.not_null |= extras.primary || column.kind.multi().is_some();
        Ok((column, extras))
    }

    fn set_serial(&mut self, extras: &mut ColumnExtras) {
        self.not_null = true;
        self.auto_increment = true;
        extras.unique = true;
    }

    fn parse_attribute(
        &mut self,
        tokens: &mut Tokens<'_>,
        charset: &mut Charset,
        extras: &mut ColumnExtras,
    ) -> Result<bool> {
        if tokens.accept_all("NOT NULL") {
            self.not_null = true;
        } else if tokens.accept("NULL") {
            self.not_null = false;
            extras.nullable = true;
        } else if tokens.accept_all("SERIAL DEFAULT VALUE") {
            self.set_serial(extras);
        } else if tokens.accept("DEFAULT") {
            self.default = parse_default(tokens)?;
        } else if tokens.accept_all("ON UPDATE") {
            self.on_update_now = accept_now(tokens)?;
            if !self.on_update_now {
                return Err(tokens.syntax_error());
            }
        } else if tokens.accept("AUTO_INCREMENT") {
            self.auto_increment = true;
            self.not_null = true;
        } else if tokens.accept("COMMENT") {
            self.comment = tokens.utf8()?;
        } else if tokens.accept("INVISIBLE") {
            self.invisible = true;
        } else if tokens.accept_any(&["VISIBLE", "VIRTUAL"]) {
        } else if tokens.accept_all("GENERATED ALWAYS") || tokens.is_word("AS") {
            self.generated = Some(parse_generated(tokens)?);
        } else {
            return Ok(parse_charset(tokens, charset)?
                || parse_key_word(tokens, extras)?
                || parse_storage_word(tokens)?);
        }
        Ok(true)
    }

    /// The declaration as SHOW CREATE TABLE prints it, in a table with this collation.
    pub(crate) fn written(&self, table: Collation) -> String {
        let mut out = self.kind.spelled();
        self.write_collation(table, &mut out);
        if let Some(generated) = &self.generated {
            let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
            out.push_str(&format!(" GENERATED ALWAYS AS ({}) {kind}", generated.expression));
        }
        if self.not_null {
            out.push_str(" NOT NULL");
        } else if matches!(self.kind.sql, SqlType::Timestamp(_)) {
            out.push_str(" NULL");
        }
        self.write_default(&mut out);
        if self.on_update_now {
            out.push_str(" ON UPDATE ");
            out.push_str(&self.now());
        }
        if self.auto_increment {
            out.push_str(" AUTO_INCREMENT");
        }
        if self.invisible {
            out.push_str(" /*!80023 INVISIBLE */");
        }
        if !self.comment.is_empty() {
            out.push_str(" COMMENT ");
            out.push_str(&quoted_text(&self.comment));
        }
        out
    }

    fn write_collation(&self, table: Collation, out: &mut String) {
        let kind = &self.kind;
        if !kind.is_text() || kind.spelling.is_some() {
            return;
        }
        let info = kind.collation.info();
        if kind.collation_said || kind.collation != table {
            out.push_str(&format!(" CHARACTER SET {} COLLATE {}", info.charset, info.name));
        } else if !info.is_default {
            out.push_str(&format!(" COLLATE {}", info.name));
        }
    }

    fn write_default(&self, out: &mut String) {
        if self.generated.is_some() || self.auto_increment {
            return;
        }
        match &self.default {
            DefaultSpec::None if self.not_null || self.kind.is_blob() => {}
            DefaultSpec::None | DefaultSpec::Null => out.push_str(" DEFAULT NULL"),
            DefaultSpec::Constant(text) => {
                out.push_str(" DEFAULT ");
                out.push_str(&quoted_bytes(text));
            }
            DefaultSpec::Bits(spelled) => {
                out.push_str(" DEFAULT ");
                out.push_str(spelled);
            }
            DefaultSpec::Now => {
                out.push_str(" DEFAULT ");
                out.push_str(&self.now());
            }
            DefaultSpec::Expression(text) => out.push_str(&format!(" DEFAULT ({text})")),
        }
    }

    /// `CURRENT_TIMESTAMP` with the column's fraction digits.
    pub(crate) fn now(&self) -> String {
        match self.kind.fraction_digits() {
            0 => "CURRENT_TIMESTAMP".to_owned(),
            digits => format!("CURRENT_TIMESTAMP({digits})"),
        }
    }
}

fn parse_key_word(tokens: &mut Tokens<'_>, extras: &mut ColumnExtras) -> Result<bool> {
    if tokens.accept("PRIMARY") {
        tokens.accept("KEY");
        extras.primary = true;
    } else if tokens.accept("UNIQUE") {
        tokens.accept("KEY");
        extras.unique = true;
    } else if tokens.accept("KEY") {
        extras.primary = true;
    } else if tokens.is_word("CONSTRAINT") || tokens.is_word("CHECK") {
        let mut ahead = *tokens;
        let named = ahead.accept("CONSTRAINT") && !ahead.is_word("CHECK");
        let name = if named { Some(ahead.name()?) } else { None };
        if !ahead.accept("CHECK") {
            return Ok(false);
        }
        *tokens = ahead;
        let expression = parenthesised(tokens)?;
        let enforced = parse_check_words(tokens);
        let name = name.unwrap_or_default();
        extras.checks.push(Check { name, expression, enforced });
    } else if tokens.accept("REFERENCES") {
        extras.references = Some(super::key::parse_references(tokens)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Skips storage attributes, which have no effect here.
fn parse_storage_word(tokens: &mut Tokens<'_>) -> Result<bool> {
    if tokens.accept_any(&["COLUMN_FORMAT", "STORAGE"]) {
        tokens.name()?;
    } else if tokens.accept_any(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"]) {
        tokens.take("=");
        tokens.text()?;
    } else if tokens.accept("SRID") {
        tokens.number()?;
    } else {
        return Ok(tokens.accept_all("NOT SECONDARY"));
    }
    Ok(true)
}

fn parse_generated(tokens: &mut Tokens<'_>) -> Result<Generated> {
    tokens.expect("AS")?;
    let expression = parenthesised(tokens)?;
    let stored = tokens.accept_any(&["STORED", "PERSISTENT"]);
    if !stored {
        tokens.accept("VIRTUAL");
    }
    Ok(Generated { expression, stored })
}

/// Reads `DEFAULT …`.
pub(crate) fn parse_default_clause(tokens: &mut Tokens<'_>) -> Result<DefaultSpec> {
    tokens.expect("DEFAULT")?;
    parse_default(tokens)
}

fn parse_default(tokens: &mut Tokens<'_>) -> Result<DefaultSpec> {
    if tokens.accept("NULL") {
        return Ok(DefaultSpec::Null);
    }
    if tokens.accept("TRUE") {
        return Ok(DefaultSpec::Constant(b"1".to_vec()));
    }
    if tokens.accept("FALSE") {
        return Ok(DefaultSpec::Constant(b"0".to_vec()));
    }
    if tokens.is("(") {
        return Ok(DefaultSpec::Expression(parenthesised(tokens)?));
    }
    if accept_now(tokens)? {
        return Ok(DefaultSpec::Now);
    }
    let negative = tokens.take("-");
    if !negative {
        tokens.take("+");
    }
    let Some(next) = tokens.peek() else { return Err(tokens.syntax_error()) };
    match next.kind {
        TokenKind::Integer | TokenKind::Decimal | TokenKind::Float => {
            tokens.next();
            let sign: &[u8] = if negative { b"-" } else { b"" };
            Ok(DefaultSpec::Constant([sign, tokens.bytes(next)].concat()))
        }
        TokenKind::Text | TokenKind::National if !negative => {
            Ok(DefaultSpec::Constant(tokens.text()?))
        }
        TokenKind::Hex | TokenKind::Bits if !negative => {
            tokens.next();
            Ok(DefaultSpec::Bits(String::from_utf8_lossy(tokens.bytes(next)).into_owned()))
        }
        TokenKind::Word if !negative => parse_default_word(tokens),
        _ => Err(tokens.syntax_error()),
    }
}

/// `_utf8mb4'x'`, `DATE'…'`, and MariaDB's functions without parentheses.
fn parse_default_word(tokens: &mut Tokens<'_>) -> Result<DefaultSpec> {
    let start = tokens.place();
    let word = tokens.name()?;
    let literals = ["DATE", "TIME", "TIMESTAMP"];
    let introduces =
        word.starts_with('_') || literals.iter().any(|literal| word.eq_ignore_ascii_case(literal));
    if introduces && tokens.is_text() {
        return Ok(DefaultSpec::Constant(tokens.text()?));
    }
    if !tokens.is("(") {
        return Err(tokens.syntax_error());
    }
    tokens.parenthesised()?;
    Ok(DefaultSpec::Expression(respelled(tokens, start..tokens.place())?))
}

/// Consumes CURRENT_TIMESTAMP or a synonym.
fn accept_now(tokens: &mut Tokens<'_>) -> Result<bool> {
    const NAMES: [&str; 4] = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];
    if !tokens.accept_any(&NAMES) {
        return Ok(false);
    }
    if tokens.take("(") {
        if tokens.is_kind(TokenKind::Integer) {
            tokens.number()?;
        }
        tokens.need(")")?;
    }
    Ok(true)
}

/// A text as an SQL literal.
pub(crate) fn quoted_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

fn quoted_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => quoted_text(text),
        Err(_) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("0x{}", digits.concat())
        }
    }
}

/// A column's line in SHOW CREATE TABLE, without the comma.
pub(crate) fn column_line(name: &str, declared: &str) -> String {
    format!("  {} {declared}", quoted_name(name))
}
