//! A column's type, as it is written.
//!
//! ```text
//! type := name ["(" number ["," number] ")"] ("UNSIGNED" | "SIGNED" | "ZEROFILL" | "BINARY"
//!         | ("CHARACTER" "SET" | "CHARSET") name | "COLLATE" name | "ASCII" | "UNICODE")*
//!       | ("ENUM" | "SET") "(" text ("," text)* ")" …
//! ```
//! sqlparser's types are fewer than those of MySQL, MariaDB and Sphinx.

use crate::{Result, parse::Tokens};

/// The names of types, those of several words and ENUM, SET, SERIAL and BOOL aside.
#[rustfmt::skip]
const NAMES: [&str; 60] = [
    "bigint", "binary", "bit", "blob", "char", "date", "datetime", "dec", "decimal", "double",
    "fixed", "float", "float4", "float8", "geomcollection", "geometry", "geometrycollection",
    "inet4", "inet6", "int", "int1", "int2", "int3", "int4", "int8", "integer", "json",
    "linestring", "longblob", "longtext", "mediumblob", "mediumint", "mediumtext", "middleint",
    "multi", "multi64", "multi_64", "multilinestring", "multipoint", "multipolygon", "mva",
    "mva64", "numeric", "point", "polygon", "real", "smallint", "string", "text", "time",
    "timestamp", "tinyblob", "tinyint", "tinytext", "uint", "uuid", "varbinary", "varchar",
    "vector", "year",
];

/// A type with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct TypeName {
    /// Its name in lower case; for a name of several words the short one, such as `varchar`.
    pub name: String,
    /// The numbers in parentheses.
    pub size: Option<(u64, Option<u64>)>,
    /// The texts in the parentheses of ENUM and SET.
    pub labels: Vec<String>,
    /// Whether UNSIGNED (or ZEROFILL) or SIGNED was said last.
    pub unsigned: Option<bool>,
    /// ZEROFILL.
    pub zerofill: bool,
    /// Its character set and collation.
    pub charset: CharsetClause,
}

/// The character set clauses of a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct CharsetClause {
    /// `CHARACTER SET`.
    pub charset: Option<String>,
    /// `COLLATE`.
    pub collation: Option<String>,
    /// BINARY after the type: the `_bin` collation.
    pub binary: bool,
}

impl TypeName {
    /// Reads a type.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let unknown = tokens.syntax_error();
        let mut kind = Self {
            name: tokens.name()?.to_ascii_lowercase(),
            size: None,
            labels: Vec::new(),
            unsigned: None,
            zerofill: false,
            charset: CharsetClause::default(),
        };
        match kind.name.as_str() {
            "enum" | "set" => kind.labels = labels(tokens)?,
            "serial" | "bool" | "boolean" => {}
            _ => {
                kind.shorten(tokens)?;
                kind.size = size(tokens)?;
                let lacks_length =
                    kind.size.is_none() && matches!(&*kind.name, "varbinary" | "varchar");
                if lacks_length || !NAMES.contains(&&*kind.name) {
                    return Err(unknown);
                }
            }
        }
        kind.read_words(tokens)?;
        Ok(kind)
    }

    fn read_words(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        loop {
            if tokens.accept("UNSIGNED") {
                self.unsigned = Some(true);
            } else if tokens.accept("ZEROFILL") {
                self.zerofill = true;
                self.unsigned = Some(true);
            } else if tokens.accept("SIGNED") {
                self.unsigned = Some(false);
            } else if tokens.accept("BINARY") {
                self.charset.binary = true;
            } else if tokens.accept("ASCII") {
                self.charset.charset = Some("latin1".to_owned());
            } else if tokens.accept("UNICODE") {
                self.charset.charset = Some("ucs2".to_owned());
            } else if !self.charset.read(tokens)? {
                return Ok(());
            }
        }
    }

    /// Replaces a name of several words by that of one word.
    fn shorten(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        if matches!(self.name.as_str(), "national" | "nchar" | "nvarchar") {
            self.charset.charset = Some("utf8mb3".to_owned());
        }
        let name = match self.name.as_str() {
            "national" => tokens.name()?.to_ascii_lowercase(),
            "nchar" => "char".to_owned(),
            "nvarchar" => "varchar".to_owned(),
            name => name.to_owned(),
        };
        let short = match name.as_str() {
            "char" | "character" if tokens.accept("VARYING") => "varchar",
            "character" => "char",
            "long" => {
                let bytes = tokens.accept_any(&["VARBINARY", "BYTE"]);
                if !tokens.accept("VARCHAR") && tokens.accept_any(&["CHAR", "CHARACTER"]) {
                    tokens.expect("VARYING")?;
                }
                if bytes { "mediumblob" } else { "mediumtext" }
            }
            "double" => {
                tokens.accept("PRECISION");
                "double"
            }
            other => other,
        };
        self.name = short.to_owned();
        Ok(())
    }
}

impl CharsetClause {
    /// Reads `CHARACTER SET x` or `COLLATE x` if it is next.
    pub(super) fn read(&mut self, tokens: &mut Tokens<'_>) -> Result<bool> {
        let clause = if tokens.accept("CHARSET") || tokens.accept_all("CHARACTER SET") {
            &mut self.charset
        } else if tokens.accept("COLLATE") {
            &mut self.collation
        } else {
            return Ok(false);
        };
        tokens.take("=");
        *clause = Some(text_or_name(tokens)?);
        Ok(true)
    }
}

/// Reads a name that may also be written as a text.
pub(super) fn text_or_name(tokens: &mut Tokens<'_>) -> Result<String> {
    if tokens.is_text() { tokens.utf8() } else { tokens.name() }
}

fn labels(tokens: &mut Tokens<'_>) -> Result<Vec<String>> {
    tokens.need("(")?;
    let labels = tokens.list(Tokens::utf8)?;
    tokens.need(")")?;
    Ok(labels)
}

/// `varchar(30,2)` does not occur; `float(7,2)` is `7` `,` `2`.
fn size(tokens: &mut Tokens<'_>) -> Result<Option<(u64, Option<u64>)>> {
    if !tokens.take("(") {
        return Ok(None);
    }
    let first = tokens.number()?;
    let second = tokens.take(",").then(|| tokens.number()).transpose()?;
    tokens.need(")")?;
    Ok(Some((first, second)))
}
