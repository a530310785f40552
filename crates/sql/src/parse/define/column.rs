//! A column, as CREATE TABLE and ALTER TABLE define it.
//!
//! ```text
//! column      := name declaration
//! declaration := type attribute*
//! attribute   := ["NOT"] "NULL" | "DEFAULT" default | "ON" "UPDATE" now | "AUTO_INCREMENT"
//!              | "COMMENT" text | "COLLATE" name | ["PRIMARY" | "UNIQUE"] "KEY" | "INVISIBLE"
//!              | ["GENERATED" "ALWAYS"] "AS" "(" expression ")" ["VIRTUAL" | "STORED"]
//!              | ["CONSTRAINT" name?] "CHECK" "(" expression ")" ["NOT"? "ENFORCED"]
//! default     := literal | "NULL" | now | "(" expression ")"
//! now         := ("CURRENT_TIMESTAMP" | "NOW" | …) ["(" digits? ")"]
//! ```

use remora_mysql::TokenKind;

use super::{
    data_type::TypeName,
    expression::{parenthesised, respelled},
    key::{Check, References, read_check},
};
use crate::{Result, parse::Tokens};

/// A column's definition.
#[derive(Clone, Debug)]
pub(crate) struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub declared: Declaration<TypeName>,
    /// The parts of the declaration that belong to the table.
    pub extras: ColumnExtras,
}

/// A column's declaration, with its type as it is written or as the catalog knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declaration<Kind> {
    /// Its type.
    pub kind: Kind,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnExtras {
    /// It is the primary key.
    pub primary: bool,
    /// It is a unique key.
    pub unique: bool,
    /// CHECK conditions.
    pub checks: Vec<Check>,
    /// NULL is declared explicitly.
    pub nullable: bool,
    /// REFERENCES.
    pub references: Option<References>,
}

impl<Kind> Declaration<Kind> {
    /// A column with this type and no other attributes.
    pub(crate) fn plain(kind: Kind) -> Self {
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
}

impl ColumnDefinition {
    /// Reads a column's name and declaration.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let name = tokens.name()?;
        Self::declared(tokens, name)
    }

    /// Reads the declaration after a column's name.
    pub(super) fn declared(tokens: &mut Tokens<'_>, name: String) -> Result<Self> {
        let is_serial = tokens.is_word("SERIAL");
        let declared = Declaration::plain(TypeName::read(tokens)?);
        let mut column = Self { name, declared, extras: ColumnExtras::default() };
        if is_serial {
            column.set_serial();
        }
        while column.read_attribute(tokens)? {}
        Ok(column)
    }

    fn set_serial(&mut self) {
        self.declared.not_null = true;
        self.declared.auto_increment = true;
        self.extras.unique = true;
    }

    fn read_attribute(&mut self, tokens: &mut Tokens<'_>) -> Result<bool> {
        let declared = &mut self.declared;
        if tokens.accept_all("NOT NULL") {
            declared.not_null = true;
        } else if tokens.accept("NULL") {
            declared.not_null = false;
            self.extras.nullable = true;
        } else if tokens.accept_all("SERIAL DEFAULT VALUE") {
            self.set_serial();
        } else if tokens.accept("DEFAULT") {
            declared.default = read_default(tokens)?;
        } else if tokens.accept_all("ON UPDATE") {
            declared.on_update_now = accept_now(tokens)?;
            if !declared.on_update_now {
                return Err(tokens.syntax_error());
            }
        } else if tokens.accept("AUTO_INCREMENT") {
            declared.auto_increment = true;
            declared.not_null = true;
        } else if tokens.accept("COMMENT") {
            declared.comment = tokens.utf8()?;
        } else if tokens.accept("INVISIBLE") {
            declared.invisible = true;
        } else if tokens.accept_any(&["VISIBLE", "VIRTUAL"]) {
        } else if tokens.accept_all("GENERATED ALWAYS") || tokens.is_word("AS") {
            declared.generated = Some(read_generated(tokens)?);
        } else {
            return Ok(declared.kind.charset.read(tokens)?
                || self.extras.read(tokens)?
                || passes_storage_word(tokens)?);
        }
        Ok(true)
    }
}

impl ColumnExtras {
    /// Reads a key, a condition or a foreign key if one is next.
    fn read(&mut self, tokens: &mut Tokens<'_>) -> Result<bool> {
        if tokens.accept("PRIMARY") {
            tokens.accept("KEY");
            self.primary = true;
        } else if tokens.accept("UNIQUE") {
            tokens.accept("KEY");
            self.unique = true;
        } else if tokens.accept("KEY") {
            self.primary = true;
        } else if tokens.is_word("CONSTRAINT") || tokens.is_word("CHECK") {
            let mut ahead = *tokens;
            let named = ahead.accept("CONSTRAINT") && !ahead.is_word("CHECK");
            let name = if named { Some(ahead.name()?) } else { None };
            if !ahead.accept("CHECK") {
                return Ok(false);
            }
            *tokens = ahead;
            self.checks.push(read_check(tokens, name)?);
        } else if tokens.accept("REFERENCES") {
            self.references = Some(References::read(tokens)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Skips storage attributes, which have no effect here.
fn passes_storage_word(tokens: &mut Tokens<'_>) -> Result<bool> {
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

fn read_generated(tokens: &mut Tokens<'_>) -> Result<Generated> {
    tokens.expect("AS")?;
    let expression = parenthesised(tokens)?;
    let stored = tokens.accept_any(&["STORED", "PERSISTENT"]);
    if !stored {
        tokens.accept("VIRTUAL");
    }
    Ok(Generated { expression, stored })
}

/// Reads what stands behind DEFAULT.
pub(super) fn read_default(tokens: &mut Tokens<'_>) -> Result<DefaultSpec> {
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
        TokenKind::Word if !negative => read_default_word(tokens),
        _ => Err(tokens.syntax_error()),
    }
}

/// `_utf8mb4'x'`, `DATE'…'`, and MariaDB's functions without parentheses.
fn read_default_word(tokens: &mut Tokens<'_>) -> Result<DefaultSpec> {
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
