//! What a column's declared type means: lengths, signs, collations, and what MySQL prints of them.

use std::{fmt::Write as _, sync::Arc};

use remora_engine::ColumnType;
use remora_mysql::{CharsetInfo, Collation, ErrorCode, charset_default, messages};

use crate::{
    Error, Result, SqlType,
    multi::Multi,
    parse::define::{CharsetClause, TypeName},
};

/// The most bytes of the TEXT and BLOB types, by size.
const BLOBS: [(SqlType, u64); 4] = [
    (SqlType::TinyBlob, 255),
    (SqlType::Blob, 65_535),
    (SqlType::MediumBlob, 16_777_215),
    (SqlType::LongBlob, 4_294_967_295),
];
/// The most characters of CHAR and BINARY.
const MAX_CHAR: u64 = 255;
/// The most bytes of VARCHAR and VARBINARY.
const MAX_VARCHAR: u64 = 65_535;
/// The most labels of a SET.
const MAX_MEMBERS: usize = 64;

/// A declared type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeSpec {
    /// The SQL type.
    pub sql: SqlType,
    /// UNSIGNED.
    pub unsigned: bool,
    /// ZEROFILL.
    pub zerofill: bool,
    /// The declared length: characters of CHAR and VARCHAR, bytes of BINARY, VARBINARY, TEXT and BLOB types, floats of
    /// a VECTOR, the display width of an integer. 0 if there is none.
    pub length: u64,
    /// FLOAT(M,D) and DOUBLE(M,D).
    pub digits: Option<(u8, u8)>,
    /// The collation of text; binary for all other types.
    pub collation: Collation,
    /// Whether the column declares its collation explicitly.
    pub collation_said: bool,
    /// The labels of an ENUM or SET.
    pub labels: Arc<[Arc<str>]>,
    /// The spelling of a type that clients know as another, such as POINT, MariaDB's UUID or Sphinx's MULTI.
    pub spelling: Option<&'static str>,
}

/// The spelling of YEAR(2).
const YEAR: &str = "year";

/// The spellings of sets of 32-bit and of 64-bit integers.
const MULTI: [&str; 2] = ["multi", "multi64"];

impl TypeSpec {
    /// A type without attributes.
    pub(crate) fn plain(sql: SqlType) -> Self {
        Self {
            sql,
            unsigned: false,
            zerofill: false,
            length: 0,
            digits: None,
            collation: Collation::BINARY,
            collation_said: false,
            labels: Arc::default(),
            spelling: None,
        }
    }

    /// The type that a declaration names, in a table with this collation; `column` is for errors.
    ///
    /// # Errors
    /// Those of lengths, character sets and collations.
    pub(super) fn of(written: &TypeName, column: &str, table: Collation) -> Result<Self> {
        let mut kind = match written.name.as_str() {
            "enum" | "set" => labelled(written, column)?,
            "serial" => Self { unsigned: true, ..Self::plain(SqlType::BigInt) },
            "bool" | "boolean" => Self { length: 1, ..Self::plain(SqlType::TinyInt) },
            _ => sized(written, column)?,
        };
        kind.unsigned = written.unsigned.unwrap_or(kind.unsigned);
        kind.zerofill |= written.zerofill;
        if kind.zerofill && kind.length == 0 {
            kind.length = default_width(&kind);
        }
        resolve_collation(&mut kind, &written.charset, table)?;
        Ok(kind)
    }

    /// The type of an engine's column without a declaration.
    pub(crate) fn of_engine(kind: ColumnType) -> Self {
        let integer = |bits: u8| match bits {
            8 => SqlType::TinyInt,
            16 => SqlType::SmallInt,
            24 => SqlType::MediumInt,
            32 => SqlType::Int,
            _ => SqlType::BigInt,
        };
        let long = Self { length: BLOBS[3].1, ..Self::plain(SqlType::LongBlob) };
        match kind {
            ColumnType::Int(bits) => Self::plain(integer(bits)),
            ColumnType::Uint(bits) => Self { unsigned: true, ..Self::plain(integer(bits)) },
            ColumnType::Float => Self::plain(SqlType::Float),
            ColumnType::Double => Self::plain(SqlType::Double),
            ColumnType::Decimal(digits, scale) => Self::plain(SqlType::Decimal(digits, scale)),
            ColumnType::Bool => Self { length: 1, ..Self::plain(SqlType::TinyInt) },
            ColumnType::Text => Self { collation: Collation::UTF8MB4_0900_AI_CI, ..long },
            ColumnType::Bytes => long,
            ColumnType::Date => Self::plain(SqlType::Date),
            ColumnType::Time => Self::plain(SqlType::Time(6)),
            ColumnType::DateTime => Self::plain(SqlType::DateTime(6)),
            ColumnType::Timestamp => Self::plain(SqlType::Timestamp(6)),
            ColumnType::Json => Self::plain(SqlType::Json),
        }
    }

    /// Whether it is text with a character set.
    pub(crate) fn is_text(&self) -> bool {
        (self.is_string() && self.collation != Collation::BINARY) || self.has_labels()
    }

    /// Whether it is one of the BINARY and BLOB types.
    pub(crate) fn is_bytes(&self) -> bool {
        self.is_string() && self.collation == Collation::BINARY
    }

    fn is_string(&self) -> bool {
        matches!(
            self.sql,
            SqlType::Char
                | SqlType::VarChar
                | SqlType::TinyBlob
                | SqlType::Blob
                | SqlType::MediumBlob
                | SqlType::LongBlob
        )
    }

    /// Whether it is ENUM or SET.
    pub(crate) fn has_labels(&self) -> bool {
        matches!(self.sql, SqlType::Enum | SqlType::Set)
    }

    /// Whether it is one of the TEXT and BLOB types.
    pub(crate) fn is_blob(&self) -> bool {
        BLOBS.iter().any(|(sql, _)| *sql == self.sql)
    }

    /// Whether it is an integer.
    pub(crate) fn is_integer(&self) -> bool {
        self.integer_bits().is_some()
    }

    /// The fraction digits of seconds.
    pub(crate) fn fraction_digits(&self) -> u8 {
        match self.sql {
            SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits) => {
                digits
            }
            _ => 0,
        }
    }

    /// The engine's type of its values.
    pub(crate) fn engine_type(&self) -> ColumnType {
        if let Some(bits) = self.integer_bits() {
            return if self.unsigned { ColumnType::Uint(bits) } else { ColumnType::Int(bits) };
        }
        match self.sql {
            SqlType::Float => ColumnType::Float,
            SqlType::Double => ColumnType::Double,
            SqlType::Decimal(digits, scale) => ColumnType::Decimal(digits, scale),
            SqlType::Bit(bits) => ColumnType::Uint(match bits {
                ..=8 => 8,
                9..=16 => 16,
                17..=24 => 24,
                25..=32 => 32,
                33.. => 64,
            }),
            SqlType::Year => ColumnType::Uint(16),
            SqlType::Date => ColumnType::Date,
            SqlType::Time(_) => ColumnType::Time,
            SqlType::DateTime(_) => ColumnType::DateTime,
            SqlType::Timestamp(_) => ColumnType::Timestamp,
            SqlType::Json => ColumnType::Json,
            SqlType::Enum | SqlType::Set => ColumnType::Text,
            SqlType::Geometry | SqlType::Vector => ColumnType::Bytes,
            _ if self.collation == Collation::BINARY => ColumnType::Bytes,
            _ => ColumnType::Text,
        }
    }

    /// The type as information_schema's COLUMN_TYPE and SHOW CREATE TABLE print it.
    pub(crate) fn spelled(&self) -> String {
        let mut out = self.name().to_owned();
        // Writing to a String never fails.
        let _ = match self.sql {
            SqlType::Decimal(digits, scale) => write!(out, "({digits},{scale})"),
            SqlType::Bit(bits) => write!(out, "({bits})"),
            SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits)
                if digits > 0 =>
            {
                write!(out, "({digits})")
            }
            SqlType::Char | SqlType::VarChar if self.spelling.is_none() => {
                write!(out, "({})", self.length)
            }
            SqlType::Vector => write!(out, "({})", self.length),
            SqlType::Enum | SqlType::Set => write!(out, "({})", self.spelled_labels()),
            SqlType::TinyInt if self.length == 1 && !self.unsigned => write!(out, "(1)"),
            _ if self.zerofill && self.is_integer() => write!(out, "({})", self.length),
            _ => match self.digits {
                Some((digits, scale)) => write!(out, "({digits},{scale})"),
                None => Ok(()),
            },
        };
        if self.spelling.is_some() {
            return out;
        }
        if self.unsigned && !matches!(self.sql, SqlType::Bit(_) | SqlType::Year) {
            out.push_str(" unsigned");
        }
        if self.zerofill {
            out.push_str(" zerofill");
        }
        out
    }

    /// The name alone: information_schema's DATA_TYPE.
    pub(crate) fn name(&self) -> &'static str {
        if let Some(name) = self.spelling {
            return name;
        }
        let text = self.collation != Collation::BINARY;
        match self.sql {
            SqlType::Null => "null",
            SqlType::TinyInt => "tinyint",
            SqlType::SmallInt => "smallint",
            SqlType::MediumInt => "mediumint",
            SqlType::Int => "int",
            SqlType::BigInt => "bigint",
            SqlType::Float => "float",
            SqlType::Double => "double",
            SqlType::Decimal(..) => "decimal",
            SqlType::Bit(_) => "bit",
            SqlType::Year => "year",
            SqlType::Date => "date",
            SqlType::Time(_) => "time",
            SqlType::DateTime(_) => "datetime",
            SqlType::Timestamp(_) => "timestamp",
            SqlType::Char if text => "char",
            SqlType::Char => "binary",
            SqlType::VarChar if text => "varchar",
            SqlType::VarChar => "varbinary",
            SqlType::TinyBlob if text => "tinytext",
            SqlType::TinyBlob => "tinyblob",
            SqlType::Blob if text => "text",
            SqlType::Blob => "blob",
            SqlType::MediumBlob if text => "mediumtext",
            SqlType::MediumBlob => "mediumblob",
            SqlType::LongBlob if text => "longtext",
            SqlType::LongBlob => "longblob",
            SqlType::Enum => "enum",
            SqlType::Set => "set",
            SqlType::Json => "json",
            SqlType::Multi => MULTI[0],
            SqlType::Multi64 => MULTI[1],
            SqlType::Geometry => "geometry",
            SqlType::Vector => "vector",
        }
    }

    /// Whether it is YEAR(2), which only followed tables have. Its server shows it, and computes with it, as two
    /// digits.
    pub(crate) fn is_short_year(&self) -> bool {
        self.spelling == Some(YEAR)
    }

    /// The kind of integer set, if it is one. Sets are stored as JSON documents.
    pub(crate) fn multi(&self) -> Option<Multi> {
        let spelling = self.spelling.filter(|_| self.sql == SqlType::Json)?;
        let place = MULTI.iter().position(|name| *name == spelling)?;
        Some(Multi::new(place == 1))
    }

    /// A set of integers of 32 bits, or of 64 if `is_wide`.
    pub(crate) fn of_multi(is_wide: bool) -> Self {
        let [narrow, wide] = MULTI;
        let spelling = Some(if is_wide { wide } else { narrow });
        Self { spelling, ..Self::plain(SqlType::Json) }
    }

    /// The bits of an integer type.
    pub(crate) fn integer_bits(&self) -> Option<u8> {
        Some(match self.sql {
            SqlType::TinyInt => 8,
            SqlType::SmallInt => 16,
            SqlType::MediumInt => 24,
            SqlType::Int => 32,
            SqlType::BigInt => 64,
            _ => return None,
        })
    }

    fn spelled_labels(&self) -> String {
        let labels = self.labels.iter();
        let labels: Vec<_> =
            labels.map(|label| format!("'{}'", label.replace('\'', "''"))).collect();
        labels.join(",")
    }
}

/// Sets the collation of a text type: the column's, else the table's.
fn resolve_collation(kind: &mut TypeSpec, said: &CharsetClause, table: Collation) -> Result<()> {
    let charset = said.charset.as_deref().map(named_charset).transpose()?;
    let collation = said.collation.as_deref().map(named_collation).transpose()?;
    let textual = kind.collation != Collation::BINARY || kind.has_labels();
    if !textual || kind.collation.is_of_type() {
        return Ok(());
    }
    if let (Some(charset), Some(collation)) = (charset, collation)
        && charset.charset() != collation.charset()
    {
        return Err(Error::new(
            ErrorCode::CollationCharsetMismatch,
            messages::collation_charset_mismatch(collation.name(), charset.charset()),
        ));
    }
    let mut resolved = collation.or(charset).unwrap_or(table);
    if said.binary && collation.is_none() {
        resolved = named_collation(&format!("{}_bin", resolved.charset())).unwrap_or(resolved);
    }
    kind.collation = resolved;
    kind.collation_said = charset.is_some() || resolved != table;
    if resolved == Collation::BINARY && matches!(kind.sql, SqlType::Char | SqlType::VarChar) {
        kind.spelling = None;
    }
    Ok(())
}

/// Error 1074 for a VARCHAR with more bytes than a row may have.
pub(super) fn check_length(kind: &TypeSpec, column: &str) -> Result<()> {
    if kind.sql != SqlType::VarChar || kind.spelling.is_some() {
        return Ok(());
    }
    let charset = CharsetInfo::named(kind.collation.charset());
    let bytes = charset.map_or(1, |charset| u64::from(charset.max_bytes)).max(1);
    limited(kind.length, MAX_VARCHAR / bytes, column).map(|_| ())
}

/// The default collation of a character set; error 1115 if it is unknown.
pub(crate) fn named_charset(name: &str) -> Result<Collation> {
    charset_default(name)
        .ok_or_else(|| Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name)))
}

/// A collation; error 1273 if it is unknown.
pub(crate) fn named_collation(name: &str) -> Result<Collation> {
    Collation::by_name(name)
        .ok_or_else(|| Error::new(ErrorCode::UnknownCollation, messages::unknown_collation(name)))
}

fn labelled(written: &TypeName, column: &str) -> Result<TypeSpec> {
    let is_set = written.name == "set";
    if is_set && written.labels.len() > MAX_MEMBERS {
        let message = format!("Too many strings for column {column} and SET");
        return Err(Error::new(ErrorCode::TooBigSet, message));
    }
    // Trailing spaces of labels are removed.
    let labels = written.labels.iter().map(|label| Arc::from(label.trim_end_matches(' ')));
    let sql = if is_set { SqlType::Set } else { SqlType::Enum };
    Ok(TypeSpec { labels: labels.collect(), ..TypeSpec::plain(sql) })
}

/// A type by its name, with the numbers in parentheses after it.
fn sized(written: &TypeName, column: &str) -> Result<TypeSpec> {
    let TypeName { name, size, .. } = written;
    let size = *size;
    let first = size.map(|(first, _)| first);
    let small = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
    let text = |sql, length| TypeSpec {
        length,
        collation: Collation::UTF8MB4_0900_AI_CI,
        ..TypeSpec::plain(sql)
    };
    let bytes = |sql, length| TypeSpec { length, ..TypeSpec::plain(sql) };
    let integer = |sql| TypeSpec { length: first.unwrap_or(0), ..TypeSpec::plain(sql) };
    Ok(match name.as_str() {
        "tinyint" | "int1" => integer(SqlType::TinyInt),
        "smallint" | "int2" => integer(SqlType::SmallInt),
        "mediumint" | "int3" | "middleint" => integer(SqlType::MediumInt),
        "int" | "integer" | "int4" => integer(SqlType::Int),
        "bigint" | "int8" => integer(SqlType::BigInt),
        "decimal" | "numeric" | "dec" | "fixed" => decimal(size, column)?,
        "float" | "float4" => float(size)?,
        "double" | "real" | "float8" => {
            let digits = size.and_then(|(digits, scale)| Some((small(digits), small(scale?))));
            TypeSpec { digits, ..TypeSpec::plain(SqlType::Double) }
        }
        "bit" => TypeSpec::plain(SqlType::Bit(small(first.unwrap_or(1)).min(64))),
        "year" if first == Some(2) => TypeSpec {
            length: 2,
            unsigned: true,
            zerofill: true,
            spelling: Some(YEAR),
            ..TypeSpec::plain(SqlType::TinyInt)
        },
        "year" => TypeSpec::plain(SqlType::Year),
        "date" => TypeSpec::plain(SqlType::Date),
        "time" => TypeSpec::plain(SqlType::Time(fraction(first, column)?)),
        "datetime" => TypeSpec::plain(SqlType::DateTime(fraction(first, column)?)),
        "timestamp" => TypeSpec::plain(SqlType::Timestamp(fraction(first, column)?)),
        "char" => text(SqlType::Char, limited(first.unwrap_or(1), MAX_CHAR, column)?),
        "varchar" => text(SqlType::VarChar, first.unwrap_or(0)),
        "binary" => bytes(SqlType::Char, limited(first.unwrap_or(1), MAX_CHAR, column)?),
        "varbinary" => bytes(SqlType::VarChar, first.unwrap_or(0)),
        "tinytext" => text(BLOBS[0].0, BLOBS[0].1),
        "text" => blob(first.map(|length| length.saturating_mul(4)), &text),
        "mediumtext" | "long" => text(BLOBS[2].0, BLOBS[2].1),
        "longtext" => text(BLOBS[3].0, BLOBS[3].1),
        "tinyblob" => bytes(BLOBS[0].0, BLOBS[0].1),
        "blob" => blob(first, &bytes),
        "mediumblob" => bytes(BLOBS[2].0, BLOBS[2].1),
        "longblob" => bytes(BLOBS[3].0, BLOBS[3].1),
        "json" => TypeSpec::plain(SqlType::Json),
        // Sphinx's attributes, which MySQL has under other names.
        "uint" => TypeSpec { unsigned: true, ..TypeSpec::plain(SqlType::Int) },
        "string" => text(BLOBS[3].0, BLOBS[3].1),
        "multi" | "mva" => TypeSpec::of_multi(false),
        "multi64" | "multi_64" | "mva64" => TypeSpec::of_multi(true),
        "vector" => TypeSpec { length: first.unwrap_or(2_048), ..TypeSpec::plain(SqlType::Vector) },
        "uuid" | "inet4" | "inet6" => foreign(name),
        _ => geometry(name),
    })
}

/// MariaDB's own types, stored as text of a fixed length.
fn foreign(name: &str) -> TypeSpec {
    let (spelling, length, collation) = match name {
        "uuid" => ("uuid", 36, Collation::UUID),
        "inet4" => ("inet4", 15, Collation::INET4),
        _ => ("inet6", 39, Collation::INET6),
    };
    TypeSpec { length, collation, spelling: Some(spelling), ..TypeSpec::plain(SqlType::Char) }
}

fn decimal(size: Option<(u64, Option<u64>)>, column: &str) -> Result<TypeSpec> {
    let (digits, scale) = size.map_or((10, 0), |(digits, scale)| (digits, scale.unwrap_or(0)));
    let digits = if digits == 0 { 10 } else { digits };
    if digits > 65 {
        let message =
            format!("Too-big precision {digits} specified for '{column}'. Maximum is 65.");
        return Err(Error::new(ErrorCode::TooBigPrecision, message));
    }
    if scale > 30 {
        let message =
            format!("Too big scale {scale} specified for column '{column}'. Maximum is 30.");
        return Err(Error::new(ErrorCode::TooBigScale, message));
    }
    if scale > digits {
        let message = format!(
            "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}')."
        );
        return Err(Error::new(ErrorCode::ScaleAbovePrecision, message));
    }
    Ok(TypeSpec::plain(SqlType::Decimal(digits as u8, scale as u8)))
}

fn float(size: Option<(u64, Option<u64>)>) -> Result<TypeSpec> {
    let small = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
    Ok(match size {
        Some((bits, None)) if bits > 24 => TypeSpec::plain(SqlType::Double),
        Some((digits, Some(scale))) => TypeSpec {
            digits: Some((small(digits), small(scale))),
            ..TypeSpec::plain(SqlType::Float)
        },
        _ => TypeSpec::plain(SqlType::Float),
    })
}

fn fraction(digits: Option<u64>, column: &str) -> Result<u8> {
    let digits = digits.unwrap_or(0);
    match u8::try_from(digits) {
        Ok(digits) if digits <= 6 => Ok(digits),
        _ => {
            let message =
                format!("Too-big precision {digits} specified for '{column}'. Maximum is 6.");
            Err(Error::new(ErrorCode::TooBigPrecision, message))
        }
    }
}

fn limited(length: u64, most: u64, column: &str) -> Result<u64> {
    if length <= most {
        return Ok(length);
    }
    let message = format!(
        "Column length too big for column '{column}' (max = {most}); use BLOB or TEXT instead"
    );
    Err(Error::new(ErrorCode::TooBigColumn, message))
}

/// The smallest TEXT or BLOB type that holds this many bytes.
fn blob(bytes: Option<u64>, make: &dyn Fn(SqlType, u64) -> TypeSpec) -> TypeSpec {
    let bytes = bytes.unwrap_or(BLOBS[1].1);
    let (sql, most) = BLOBS.into_iter().find(|(_, most)| bytes <= *most).unwrap_or(BLOBS[3]);
    make(sql, most)
}

fn geometry(name: &str) -> TypeSpec {
    const NAMES: [&str; 8] = [
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geomcollection",
    ];
    let name = if name == "geometrycollection" { "geomcollection" } else { name };
    let spelling = NAMES.into_iter().find(|known| *known == name);
    TypeSpec { spelling, ..TypeSpec::plain(SqlType::Geometry) }
}

/// The default display width of an integer type.
fn default_width(kind: &TypeSpec) -> u64 {
    let signed = u64::from(!kind.unsigned);
    match kind.sql {
        SqlType::TinyInt => 3 + signed,
        SqlType::SmallInt => 5 + signed,
        SqlType::MediumInt => 8 + signed,
        SqlType::Int => 10 + signed,
        SqlType::BigInt => 20,
        _ => 0,
    }
}
