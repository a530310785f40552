//! A column's declaration in `information_schema`.
//!
//! ```text
//! column_type := data_type ["(" (number | label ("," label)*) ")"] word*
//! label       := "'" (character | "''" | "\" character)* "'"
//! ```

use remora_mysql::{Charset, Collation};

use super::{ColumnDefault, Generation, Labels, Range, SourceColumn, SourceType, TextType};
use crate::mysql::gtid::Flavor;

/// A row of `information_schema.COLUMNS`.
#[derive(Clone, Debug, Default)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) default: Option<String>,
    /// Whether the default is bytes that are not text, in hexadecimal digits.
    pub(super) default_is_bytes: bool,
    pub(super) nullable: bool,
    pub(super) data_type: String,
    pub(super) octets: Option<u64>,
    pub(super) characters: Option<u64>,
    pub(super) precision: Option<u64>,
    pub(super) scale: Option<u64>,
    pub(super) fraction: Option<u64>,
    pub(super) charset: Option<String>,
    pub(super) collation: Option<String>,
    pub(super) column_type: String,
    pub(super) extra: String,
}

impl Declaration {
    /// The column, or why it cannot be followed.
    pub(super) fn column(
        &self,
        ordinal: usize,
        flavor: Flavor,
        collation: Option<u64>,
    ) -> Result<SourceColumn, String> {
        let kind = self.kind().ok_or_else(|| self.unknown())?;
        let mut column = SourceColumn {
            name: self.name.clone(),
            ordinal,
            range: self.range(&kind),
            kind,
            nullable: self.nullable,
            generation: self.generation(),
            default: self.default_value(flavor),
            collation,
            renamed_from: None,
        };
        let binary = matches!(
            column.kind,
            SourceType::Binary(_) | SourceType::VarBinary(_) | SourceType::Blob(_)
        );
        if binary {
            column.collation = Some(Collation::BINARY.0.into());
        }
        Ok(column)
    }

    fn unknown(&self) -> String {
        match (&self.charset, self.kind_without_charset()) {
            (Some(charset), true) => {
                format!(
                    "column {:?} has the character set {charset}, which is not known",
                    self.name
                )
            }
            _ => format!("column {:?} is {}, which is not known", self.name, self.column_type),
        }
    }

    fn kind_without_charset(&self) -> bool {
        Declaration { charset: Some("utf8mb4".to_owned()), ..self.clone() }.kind().is_some()
    }

    fn kind(&self) -> Option<SourceType> {
        let small = |number: Option<u64>| u8::try_from(number?).ok();
        Some(match self.data_type.as_str() {
            "tinyint" => self.integer(8),
            "smallint" => self.integer(16),
            "mediumint" => self.integer(24),
            "int" | "integer" => self.integer(32),
            "bigint" => self.integer(64),
            "decimal" | "numeric" => {
                SourceType::Decimal { precision: small(self.precision)?, scale: small(self.scale)? }
            }
            "float" => SourceType::Float,
            "double" => SourceType::Double,
            "bit" => SourceType::Bit(small(self.precision)?),
            "year" if self.column_type.contains("(2)") => SourceType::ShortYear,
            "year" => SourceType::Year,
            "date" => SourceType::Date,
            "time" => SourceType::Time(small(self.fraction.or(Some(0)))?),
            "datetime" => SourceType::DateTime(small(self.fraction.or(Some(0)))?),
            "timestamp" => SourceType::Timestamp(small(self.fraction.or(Some(0)))?),
            "char" => SourceType::Char(self.text(self.characters)?),
            "varchar" => SourceType::VarChar(self.text(self.characters)?),
            "tinytext" | "text" | "mediumtext" | "longtext" => {
                SourceType::Text(self.text(self.octets)?)
            }
            "binary" => SourceType::Binary(self.bytes()?),
            "varbinary" => SourceType::VarBinary(self.bytes()?),
            "tinyblob" | "blob" | "mediumblob" | "longblob" => SourceType::Blob(self.bytes()?),
            "enum" => SourceType::Enum(self.labels()?),
            "set" => SourceType::Set(self.labels()?),
            "json" => SourceType::Json,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => SourceType::Geometry,
            "vector" => SourceType::Vector(self.number()?),
            "uuid" => SourceType::Uuid,
            "inet6" => SourceType::Inet6,
            "inet4" => SourceType::Inet4,
            _ => return None,
        })
    }

    fn integer(&self, bits: u8) -> SourceType {
        SourceType::Int { bits, unsigned: self.is_unsigned() }
    }

    fn is_unsigned(&self) -> bool {
        self.column_type.contains("unsigned") || self.column_type.contains("zerofill")
    }

    fn range(&self, kind: &SourceType) -> Range {
        let is_float = matches!(kind, SourceType::Float | SourceType::Double);
        if !is_float && !matches!(kind, SourceType::Decimal { .. }) {
            return Range::default();
        }
        let digits = self.column_type.split_once('(').filter(|_| is_float);
        let digits = digits.and_then(|(_, behind)| behind.split_once(')')?.0.split_once(','));
        let digits = digits.and_then(|(all, behind)| {
            Some((all.trim().parse().ok()?, behind.trim().parse().ok()?))
        });
        Range { unsigned: self.is_unsigned(), digits }
    }

    fn text(&self, length: Option<u64>) -> Option<TextType> {
        Some(TextType { charset: Charset::named(self.charset.as_deref()?)?, length: length? })
    }

    fn bytes(&self) -> Option<usize> {
        usize::try_from(self.octets?).ok()
    }

    /// The number in parentheses.
    fn number(&self) -> Option<usize> {
        let (_, behind) = self.column_type.split_once('(')?;
        behind.split_once(')')?.0.parse().ok()
    }

    fn labels(&self) -> Option<Labels> {
        let charset = match self.charset.as_deref() {
            None | Some("binary") => Charset::UTF8MB4,
            Some(name) => Charset::named(name)?,
        };
        let (_, behind) = self.column_type.split_once('(')?;
        Some(Labels { charset, labels: labels(behind)? })
    }

    fn generation(&self) -> Generation {
        let extra = self.extra.to_ascii_uppercase();
        // MariaDB says PERSISTENT instead of STORED up to 10.2.
        match () {
            () if extra.contains("VIRTUAL") => Generation::Virtual,
            () if extra.contains("STORED GENERATED") || extra.contains("PERSISTENT") => {
                Generation::Stored
            }
            () => Generation::None,
        }
    }

    fn default_value(&self, flavor: Flavor) -> ColumnDefault {
        let Some(text) = &self.default else {
            return if self.nullable { ColumnDefault::Null } else { ColumnDefault::None };
        };
        let expression = || ColumnDefault::Expression(text.clone());
        match flavor {
            // The source is asked for the value in existing rows.
            _ if self.default_is_bytes => expression(),
            Flavor::MySql if self.extra.contains("DEFAULT_GENERATED") => expression(),
            Flavor::MySql if text.starts_with("CURRENT_TIMESTAMP") => expression(),
            Flavor::MySql => ColumnDefault::Constant(text.clone()),
            Flavor::MariaDb if text == "NULL" => ColumnDefault::Null,
            Flavor::MariaDb => match text.strip_prefix('\'') {
                Some(quoted) => {
                    label(quoted).map_or_else(expression, |(text, behind)| match behind {
                        "" => ColumnDefault::Constant(text),
                        _ => expression(),
                    })
                }
                None if text.parse::<f64>().is_ok() => ColumnDefault::Constant(text.clone()),
                None => expression(),
            },
        }
    }
}

/// The labels up to the closing parenthesis.
fn labels(text: &str) -> Option<Vec<String>> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        let (label, behind) = label(rest.strip_prefix('\'')?)?;
        labels.push(label);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return behind.starts_with(')').then_some(labels),
        }
    }
}

/// A label up to its closing quote, and the rest.
fn label(text: &str) -> Option<(String, &str)> {
    let mut label = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '\'' => match characters.as_str().strip_prefix('\'') {
                Some(behind) => {
                    label.push('\'');
                    characters = behind.chars();
                }
                None => return Some((label, characters.as_str())),
            },
            '\\' => label.push(match characters.next()? {
                '0' => '\0',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'Z' => '\u{1a}',
                other => other,
            }),
            other => label.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(column_type: &str) -> Declaration {
        let data_type = column_type.split(['(', ' ']).next().unwrap().to_owned();
        Declaration {
            name: "c".to_owned(),
            data_type,
            column_type: column_type.to_owned(),
            charset: Some("latin1".to_owned()),
            ..Declaration::default()
        }
    }

    #[test]
    fn labels_are_unquoted() {
        let declaration = declared("enum('a','b''c','d\\\\e','f\"g','h,i','j\\nk','',')')");
        let Some(SourceType::Enum(labels)) = declaration.kind() else { panic!() };
        assert_eq!(labels.labels, ["a", "b'c", "d\\e", "f\"g", "h,i", "j\nk", "", ")"]);
        assert!(declared("enum('a").kind().is_none());
    }

    #[test]
    fn unknown_column_types_are_named() {
        let refusal =
            |declaration: Declaration| declaration.column(0, Flavor::MySql, None).unwrap_err();
        assert_eq!(refusal(declared("xml")), "column \"c\" is xml, which is not known");
        let charset = Declaration {
            charset: Some("klingon".to_owned()),
            characters: Some(4),
            ..declared("char(4)")
        };
        let expected = "column \"c\" has the character set klingon, which is not known";
        assert_eq!(refusal(charset), expected);
    }

    #[test]
    fn defaults_are_read_as_each_server_writes_them() {
        let default = |flavor, text: &str, extra: &str| {
            let declaration = Declaration {
                default: Some(text.to_owned()),
                extra: extra.to_owned(),
                ..declared("int(11)")
            };
            declaration.default_value(flavor)
        };
        let constant = |text: &str| ColumnDefault::Constant(text.to_owned());
        let expression = |text: &str| ColumnDefault::Expression(text.to_owned());
        assert_eq!(default(Flavor::MySql, "it's", ""), constant("it's"));
        assert_eq!(default(Flavor::MySql, "NULL", ""), constant("NULL"));
        assert_eq!(default(Flavor::MySql, "uuid()", "DEFAULT_GENERATED"), expression("uuid()"));
        assert_eq!(default(Flavor::MariaDb, "'it''s'", ""), constant("it's"));
        assert_eq!(default(Flavor::MariaDb, "NULL", ""), ColumnDefault::Null);
        assert_eq!(default(Flavor::MariaDb, "5", ""), constant("5"));
        assert_eq!(default(Flavor::MariaDb, "uuid()", ""), expression("uuid()"));
    }
}
