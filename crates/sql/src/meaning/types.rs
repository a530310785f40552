//! The type of an expression as MySQL derives it, and how it travels through DataFusion: in the metadata of Arrow
//! fields, under [`METADATA_KEY`].
//!
//! ```text
//! metadata := kind "," flags "," length "," collation "," coercibility ("," member)*
//! kind     := name | name "." number | name "." number "." number
//! flags    := "u"? "n"? (("w" | "z") number)? ("d" number)? (("m" | "M") ("a" | "l")?)?
//!                                       unsigned, not null; a column's declared width, filled with
//!                                       zeros or not; digits behind the point of a float; a set of
//!                                       integers of 32 or 64 bits, as ANY or ALL of them
//! member   := the words of an ENUM or SET, percent-coded
//! ```

use std::{collections::HashMap, fmt::Write, sync::Arc};

use datafusion::{
    arrow::datatypes::{DataType, Field},
    common::{ScalarValue, metadata::FieldMetadata},
};
use remora_mysql::Collation;

use crate::{Column, SqlType, multi::Multi};

/// The metadata key of a field's SQL type.
pub(crate) const METADATA_KEY: &str = "sql";

/// The bytes of a number in a VECTOR.
const VECTOR_BYTES: u32 = 4;
/// The most digits of Arrow's 128-bit decimal.
const NARROW_DIGITS: u8 = 38;
/// MySQL's most digits of a DECIMAL.
pub(crate) const MAX_DIGITS: u8 = 65;
/// MySQL's most fraction digits of a DECIMAL.
pub(crate) const MAX_SCALE: u8 = 30;
/// The length of unbounded texts.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// Coercibility: how strongly a collation applies. Smaller is stronger.
pub(crate) mod coercibility {
    /// Explicit COLLATE.
    pub(crate) const EXPLICIT: u8 = 0;
    /// A column's collation.
    pub(crate) const IMPLICIT: u8 = 2;
    /// The server's own texts: USER(), VERSION().
    pub(crate) const SYSTEM: u8 = 3;
    /// A literal's collation.
    pub(crate) const LITERAL: u8 = 4;
    /// A number or date.
    pub(crate) const NUMERIC: u8 = 5;
    /// NULL.
    pub(crate) const IGNORABLE: u8 = 6;
    /// A text made of texts of two collations.
    pub(crate) const NONE: u8 = 7;
}

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExprType {
    /// The type that clients see.
    pub kind: SqlType,
    /// Whether it is UNSIGNED.
    pub unsigned: bool,
    /// Whether it can never be NULL.
    pub not_null: bool,
    /// Characters of a text, bytes of a binary string, or display characters of a number with its
    /// sign.
    pub length: u32,
    /// The collation.
    pub collation: Collation,
    /// The collation's coercibility.
    pub coercibility: u8,
    /// The labels of an ENUM or SET.
    pub members: Option<Arc<[String]>>,
    /// The declared display width, for a column itself but not for expressions of it.
    pub width: Option<Width>,
    /// The fixed number of fraction digits of a FLOAT or DOUBLE, if declared.
    pub decimals: Option<u8>,
    /// The kind of integer set, if it is one.
    pub multi: Option<Multi>,
}

/// A declared display width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    /// The number of characters.
    pub places: u32,
    /// Whether ZEROFILL is declared.
    pub zerofill: bool,
}

impl ExprType {
    fn new(kind: SqlType, length: u32) -> Self {
        Self {
            kind,
            unsigned: false,
            not_null: false,
            length,
            collation: Collation::BINARY,
            coercibility: coercibility::NUMERIC,
            members: None,
            width: None,
            decimals: None,
            multi: None,
        }
    }

    /// BIGINT of so many characters, including the sign.
    pub(crate) fn int(length: u32) -> Self {
        Self::new(SqlType::BigInt, length)
    }

    /// BIGINT UNSIGNED.
    pub(crate) fn uint(length: u32) -> Self {
        Self { unsigned: true, ..Self::int(length) }
    }

    /// The type of conditions: 0, 1 or NULL.
    pub(crate) fn truth() -> Self {
        Self::int(1)
    }

    /// The type of NULL.
    pub(crate) fn null() -> Self {
        Self { coercibility: coercibility::IGNORABLE, ..Self::new(SqlType::Null, 0) }
    }

    /// DOUBLE.
    pub(crate) fn double() -> Self {
        Self::new(SqlType::Double, 23)
    }

    /// DECIMAL, with precision and scale capped to MySQL's limits.
    pub(crate) fn decimal(digits: u32, scale: u32) -> Self {
        let scale = scale.min(u32::from(MAX_SCALE)) as u8;
        let digits = digits.clamp(1, u32::from(MAX_DIGITS)).max(u32::from(scale)) as u8;
        let length = u32::from(digits) + 1 + u32::from(scale > 0);
        Self::new(SqlType::Decimal(digits, scale), length)
    }

    /// A text of at most so many characters: VARCHAR, or a TEXT type if that is too short.
    pub(crate) fn text(characters: u32, collation: Collation) -> Self {
        let bytes = u64::from(characters) * u64::from(bytes_per_character(collation));
        let kind = match bytes {
            0..65_536 => SqlType::VarChar,
            65_536..16_777_216 => SqlType::MediumBlob,
            _ => SqlType::LongBlob,
        };
        let coercibility = coercibility::LITERAL;
        Self { collation, coercibility, ..Self::new(kind, characters) }
    }

    /// A binary string of at most so many bytes.
    pub(crate) fn binary(bytes: u32) -> Self {
        Self::text(bytes, Collation::BINARY)
    }

    /// DATE.
    pub(crate) fn date() -> Self {
        Self::new(SqlType::Date, 10)
    }

    /// DATETIME.
    pub(crate) fn date_time(digits: u8) -> Self {
        Self::new(SqlType::DateTime(digits), 19 + fraction_places(digits))
    }

    /// TIME.
    pub(crate) fn time(digits: u8) -> Self {
        Self::new(SqlType::Time(digits), 10 + fraction_places(digits))
    }

    /// JSON.
    pub(crate) fn json() -> Self {
        let collation = Collation(46);
        let coercibility = coercibility::IMPLICIT;
        Self { collation, coercibility, ..Self::new(SqlType::Json, UNBOUNDED / 4) }
    }

    /// The type of a table's column, with a column's coercibility.
    pub(crate) fn column(kind: SqlType, unsigned: bool, length: u32, collation: Collation) -> Self {
        if kind == SqlType::Json {
            return Self::json();
        }
        let of_kind = Self { collation, ..Self::new(kind, 0) };
        let (is_text, is_string) = (of_kind.is_text(), of_kind.is_string());
        let coercibility = if is_string { coercibility::IMPLICIT } else { coercibility::NUMERIC };
        let places = match kind {
            SqlType::TinyInt => 4 - u32::from(unsigned),
            SqlType::SmallInt => 6 - u32::from(unsigned),
            SqlType::MediumInt => 9 - u32::from(unsigned),
            SqlType::Int => 11 - u32::from(unsigned),
            SqlType::BigInt => 20,
            SqlType::Year => 4,
            SqlType::Float => 12,
            SqlType::Double => 22,
            SqlType::Decimal(digits, scale) => {
                u32::from(digits) + u32::from(!unsigned) + u32::from(scale > 0)
            }
            SqlType::Bit(bits) => u32::from(bits),
            SqlType::Date => 10,
            SqlType::DateTime(digits) | SqlType::Timestamp(digits) => 19 + fraction_places(digits),
            SqlType::Time(digits) => 10 + fraction_places(digits),
            _ => length,
        };
        let unsigned = unsigned || matches!(kind, SqlType::Year | SqlType::Bit(_));
        let new = Self { unsigned, collation, coercibility, ..Self::new(kind, places) };
        if is_text { new } else { Self { collation: Collation::BINARY, ..new } }
    }

    /// The type as NOT NULL.
    pub(crate) fn not_null(self) -> Self {
        Self { not_null: true, ..self }
    }

    /// The type with another coercibility.
    pub(crate) fn with_coercibility(self, coercibility: u8) -> Self {
        Self { coercibility, ..self }
    }

    /// Whether values are displayed with a format: leading zeros or fixed decimals.
    pub(crate) fn is_formatted(&self) -> bool {
        self.decimals.is_some() || self.width.is_some_and(|width| width.zerofill)
    }

    /// The fixed fraction digits of a float computed from these types, if all of them have some.
    pub(crate) fn common_decimals<'t>(types: impl Iterator<Item = &'t Self>) -> Option<u8> {
        let mut most = 0;
        for kind in types.filter(|kind| !kind.is_null()) {
            most = most.max(match kind.kind {
                SqlType::Float | SqlType::Double => kind.decimals?,
                SqlType::Decimal(_, scale) => scale,
                _ if kind.is_integer() => 0,
                _ => return None,
            });
        }
        Some(most)
    }

    /// The type as signed or unsigned.
    pub(crate) fn with_unsigned(self, unsigned: bool) -> Self {
        Self { unsigned, ..self }
    }

    /// Whether it is text, including ENUM and SET, but not JSON or a binary string.
    pub(crate) fn is_text(&self) -> bool {
        self.is_string() && self.collation != Collation::BINARY
    }

    /// Whether it is text or a binary string.
    pub(crate) fn is_string(&self) -> bool {
        matches!(
            self.kind,
            SqlType::Char
                | SqlType::VarChar
                | SqlType::TinyBlob
                | SqlType::Blob
                | SqlType::MediumBlob
                | SqlType::LongBlob
                | SqlType::Enum
                | SqlType::Set
                | SqlType::Geometry
                | SqlType::Vector
        )
    }

    /// Whether it is an integer of any width, including YEAR and BIT.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(
            self.kind,
            SqlType::TinyInt
                | SqlType::SmallInt
                | SqlType::MediumInt
                | SqlType::Int
                | SqlType::BigInt
                | SqlType::Year
                | SqlType::Bit(_)
        )
    }

    /// Whether it is DECIMAL.
    pub(crate) fn is_decimal(&self) -> bool {
        matches!(self.kind, SqlType::Decimal(..))
    }

    /// Whether it is FLOAT or DOUBLE.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.kind, SqlType::Float | SqlType::Double)
    }

    /// Whether it is any number.
    pub(crate) fn is_number(&self) -> bool {
        self.is_integer() || self.is_decimal() || self.is_float()
    }

    /// Whether it has a date.
    pub(crate) fn has_date(&self) -> bool {
        matches!(self.kind, SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_))
    }

    /// Whether it is a date or a time.
    pub(crate) fn is_temporal(&self) -> bool {
        self.has_date() || matches!(self.kind, SqlType::Time(_))
    }

    /// Whether it is the type of the literal NULL.
    pub(crate) fn is_null(&self) -> bool {
        self.kind == SqlType::Null
    }

    /// The fraction digits of a decimal or of a time's seconds.
    pub(crate) fn scale(&self) -> u8 {
        match self.kind {
            SqlType::Decimal(_, scale) => scale,
            SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits) => {
                digits
            }
            _ => 0,
        }
    }

    /// The total digits of its value as a decimal.
    pub(crate) fn digits(&self) -> u32 {
        match self.kind {
            SqlType::Decimal(digits, _) => u32::from(digits),
            SqlType::Date => 8,
            SqlType::Time(digits) => 7 + u32::from(digits),
            SqlType::DateTime(digits) | SqlType::Timestamp(digits) => 14 + u32::from(digits),
            _ => {
                let sign = u32::from(!self.unsigned && self.length > 0);
                (self.length.saturating_sub(sign)).clamp(1, u32::from(MAX_DIGITS))
            }
        }
    }

    /// The integer digits of its value as a decimal.
    pub(crate) fn integer_digits(&self) -> u32 {
        self.digits().saturating_sub(u32::from(self.scale()))
    }

    /// The characters of its value as text.
    pub(crate) fn characters(&self) -> u32 {
        match self.kind {
            SqlType::Json => UNBOUNDED,
            _ => self.length,
        }
    }

    /// Its Arrow representation.
    pub(crate) fn arrow(&self) -> DataType {
        match self.kind {
            SqlType::Null => DataType::Null,
            SqlType::Float => DataType::Float32,
            SqlType::Double => DataType::Float64,
            SqlType::Decimal(digits, scale) if digits <= NARROW_DIGITS => {
                DataType::Decimal128(digits, scale as i8)
            }
            SqlType::Decimal(digits, scale) => DataType::Decimal256(digits, scale as i8),
            SqlType::Year | SqlType::Bit(_) => DataType::UInt64,
            SqlType::Date | SqlType::Time(_) | SqlType::DateTime(_) | SqlType::Timestamp(_) => {
                DataType::Int64
            }
            _ if self.is_integer() && self.unsigned => DataType::UInt64,
            _ if self.is_integer() => DataType::Int64,
            SqlType::Json => DataType::Utf8View,
            _ if self.collation == Collation::BINARY => DataType::BinaryView,
            _ => DataType::Utf8View,
        }
    }

    /// A field of this type.
    pub(crate) fn field(&self, name: &str) -> Field {
        self.field_of(name, self.arrow())
    }

    /// A field of this type with another Arrow representation (Boolean for conditions).
    pub(crate) fn field_of(&self, name: &str, held: DataType) -> Field {
        let metadata = HashMap::from([(METADATA_KEY.to_owned(), self.encode())]);
        Field::new(name, held, !self.not_null).with_metadata(metadata)
    }

    /// The metadata of a literal of this type.
    pub(crate) fn literal_metadata(&self) -> FieldMetadata {
        FieldMetadata::from(HashMap::from([(METADATA_KEY.to_owned(), self.encode())]))
    }

    /// The type of a field: from its metadata if that fits its representation, else from the
    /// representation.
    pub(crate) fn of_field(field: &Field) -> Self {
        let told = field.metadata().get(METADATA_KEY).and_then(|text| Self::decode(text));
        match told.filter(|told| told.is_held_in(field.data_type())) {
            Some(told) => told,
            None => Self { not_null: !field.is_nullable(), ..Self::of_arrow(field.data_type()) },
        }
    }

    fn is_held_in(&self, held: &DataType) -> bool {
        match held {
            DataType::Boolean => self.is_integer(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                self.arrow() == DataType::Utf8View
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                self.arrow() == DataType::BinaryView
            }
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                self.is_decimal() && *scale == self.scale() as i8
            }
            held => *held == self.arrow(),
        }
    }

    /// The default type of an Arrow type.
    pub(crate) fn of_arrow(held: &DataType) -> Self {
        match held {
            DataType::Null => Self::null(),
            DataType::Boolean => Self::truth(),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::int(21),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::uint(21)
            }
            DataType::Float32 => Self::new(SqlType::Float, 12),
            DataType::Float64 => Self::double(),
            DataType::Decimal32(digits, scale)
            | DataType::Decimal64(digits, scale)
            | DataType::Decimal128(digits, scale)
            | DataType::Decimal256(digits, scale) => {
                Self::decimal(u32::from(*digits), u32::try_from(*scale).unwrap_or(0))
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Self::binary(UNBOUNDED)
            }
            _ => Self::text(UNBOUNDED, Collation::UTF8MB4_0900_AI_CI),
        }
    }

    /// The type of a literal in a statement.
    pub(crate) fn of_literal(value: &ScalarValue, collation: Collation) -> Self {
        let places = |digits: usize| u32::try_from(digits).unwrap_or(UNBOUNDED);
        match value {
            ScalarValue::Int64(Some(number)) => {
                Self::int(places(number.unsigned_abs().to_string().len()) + 1).not_null()
            }
            ScalarValue::UInt64(Some(number)) => {
                Self::uint(places(number.to_string().len())).not_null()
            }
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)) => {
                Self::text(places(text.chars().count()), collation).not_null()
            }
            ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => {
                Self::binary(places(bytes.len())).not_null()
            }
            value => Self::of_arrow(&value.data_type()),
        }
    }

    /// Writes the type into a column description for clients.
    pub(crate) fn describe(&self, column: &mut Column) {
        column.kind = match self.multi {
            None => self.kind,
            Some(Multi { is_wide: false, .. }) => SqlType::Multi,
            Some(Multi { is_wide: true, .. }) => SqlType::Multi64,
        };
        column.unsigned = self.unsigned;
        column.not_null = self.not_null;
        let is_text = self.is_text() || self.kind == SqlType::Json;
        column.collation = if is_text { self.collation.0 } else { Collation::BINARY.0 };
        let per_character = if is_text { 4 } else { 1 };
        column.length = match self.width {
            Some(width) => width.places,
            None if self.kind == SqlType::Geometry => u32::MAX,
            None if self.kind == SqlType::Vector => self.length.saturating_mul(VECTOR_BYTES),
            None => self.length.saturating_mul(per_character),
        };
        column.zerofill = self.width.is_some_and(|width| width.zerofill);
        column.decimals = self.decimals.filter(|_| self.is_float());
    }

    /// A column description with this type, of no table.
    pub(crate) fn column_named(&self, name: &str) -> Column {
        let mut column = Column::computed(name);
        self.describe(&mut column);
        column
    }

    fn encode(&self) -> String {
        let mut out = spell(self.kind);
        let unsigned = if self.unsigned { "u" } else { "" };
        let not_null = if self.not_null { "n" } else { "" };
        let (length, collation) = (self.length, self.collation.0);
        // Writing to a String cannot fail.
        let _ = write!(out, ",{unsigned}{not_null}");
        if let Some(Width { places, zerofill }) = self.width {
            let _ = write!(out, "{}{places}", if zerofill { 'z' } else { 'w' });
        }
        if let Some(decimals) = self.decimals {
            let _ = write!(out, "d{decimals}");
        }
        out.push_str(self.multi.map_or("", Multi::spelled));
        let _ = write!(out, ",{length},{collation},{}", self.coercibility);
        for member in self.members.iter().flat_map(|members| members.iter()) {
            out.push(',');
            out.push_str(&member.replace('%', "%25").replace(',', "%2C"));
        }
        out
    }

    fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let kind = unspell(parts.next()?)?;
        let flags = parts.next()?;
        let length = parts.next()?.parse().ok()?;
        let collation = Collation(parts.next()?.parse().ok()?);
        let coercibility = parts.next()?.parse().ok()?;
        let members: Vec<String> =
            parts.map(|part| part.replace("%2C", ",").replace("%25", "%")).collect();
        let members = (!members.is_empty()).then(|| members.into());
        let (unsigned, not_null) = (flags.contains('u'), flags.contains('n'));
        let zerofill = flags.contains('z');
        let places = number_behind(flags, if zerofill { 'z' } else { 'w' });
        let width = places.map(|places| Width { places, zerofill });
        let decimals = number_behind(flags, 'd').and_then(|digits| u8::try_from(digits).ok());
        let told = Self { length, collation, coercibility, members, ..Self::new(kind, length) };
        let multi = Multi::of_letters(flags);
        Some(Self { unsigned, not_null, width, decimals, multi, ..told })
    }

    /// The type as text, for an argument of the function that restores lost types.
    pub(crate) fn spelled(&self) -> String {
        self.encode()
    }

    /// Parses the result of [`ExprType::spelled`].
    pub(crate) fn from_spelled(text: &str) -> Option<Self> {
        Self::decode(text)
    }
}

/// The number after a letter of the flags.
fn number_behind(flags: &str, letter: char) -> Option<u32> {
    let (_, behind) = flags.split_once(letter)?;
    let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    behind.get(..end)?.parse().ok()
}

/// The most bytes of a character, as MySQL counts them.
pub(crate) fn bytes_per_character(collation: Collation) -> u32 {
    match collation.charset() {
        "binary" | "latin1" | "ascii" => 1,
        "utf8mb3" => 3,
        _ => 4,
    }
}

fn fraction_places(digits: u8) -> u32 {
    if digits == 0 { 0 } else { u32::from(digits) + 1 }
}

/// Names of types without parameters.
const NAMES: &[(&str, SqlType)] = &[
    ("null", SqlType::Null),
    ("tinyint", SqlType::TinyInt),
    ("smallint", SqlType::SmallInt),
    ("mediumint", SqlType::MediumInt),
    ("int", SqlType::Int),
    ("bigint", SqlType::BigInt),
    ("float", SqlType::Float),
    ("double", SqlType::Double),
    ("year", SqlType::Year),
    ("date", SqlType::Date),
    ("char", SqlType::Char),
    ("varchar", SqlType::VarChar),
    ("tinyblob", SqlType::TinyBlob),
    ("blob", SqlType::Blob),
    ("mediumblob", SqlType::MediumBlob),
    ("longblob", SqlType::LongBlob),
    ("enum", SqlType::Enum),
    ("set", SqlType::Set),
    ("json", SqlType::Json),
    ("geometry", SqlType::Geometry),
    ("vector", SqlType::Vector),
];

fn spell(kind: SqlType) -> String {
    match kind {
        SqlType::Decimal(digits, scale) => format!("decimal.{digits}.{scale}"),
        SqlType::Bit(bits) => format!("bit.{bits}"),
        SqlType::Time(digits) => format!("time.{digits}"),
        SqlType::DateTime(digits) => format!("datetime.{digits}"),
        SqlType::Timestamp(digits) => format!("timestamp.{digits}"),
        kind => {
            let found = NAMES.iter().find(|(_, each)| *each == kind);
            found.map_or("null", |(name, _)| name).to_owned()
        }
    }
}

fn unspell(text: &str) -> Option<SqlType> {
    let mut parts = text.split('.');
    let name = parts.next()?;
    let mut number = || parts.next()?.parse::<u8>().ok();
    match name {
        "decimal" => Some(SqlType::Decimal(number()?, number()?)),
        "bit" => Some(SqlType::Bit(number()?)),
        "time" => Some(SqlType::Time(number()?)),
        "datetime" => Some(SqlType::DateTime(number()?)),
        "timestamp" => Some(SqlType::Timestamp(number()?)),
        name => NAMES.iter().find(|(each, _)| *each == name).map(|(_, kind)| *kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back_from_metadata() {
        let members: Arc<[String]> = ["a,b".to_owned(), "50%".to_owned()].into();
        let types = [
            ExprType::int(11),
            ExprType::uint(20).not_null(),
            ExprType::decimal(40, 30),
            ExprType::date_time(3),
            ExprType::time(6),
            ExprType::text(20, Collation::UTF8MB4_BIN),
            ExprType::json(),
            ExprType { multi: Some(Multi::new(true)), ..ExprType::json().not_null() },
            ExprType { members: Some(members), ..ExprType::text(3, Collation(255)) },
            ExprType::column(SqlType::Bit(9), true, 9, Collation::BINARY),
            ExprType {
                width: Some(Width { places: 9, zerofill: true }),
                decimals: Some(4),
                ..ExprType::column(SqlType::Float, true, 9, Collation::BINARY).not_null()
            },
            ExprType {
                width: Some(Width { places: 5, zerofill: false }),
                ..ExprType::column(SqlType::Int, false, 5, Collation::BINARY)
            },
        ];
        for each in types {
            assert_eq!(ExprType::from_spelled(&each.spelled()), Some(each.clone()));
            assert_eq!(ExprType::of_field(&each.field("x")), each);
        }
    }

    #[test]
    fn a_stale_type_is_not_believed() {
        let field = ExprType::date().field_of("x", DataType::Float64);
        assert_eq!(ExprType::of_field(&field), ExprType::double());
    }

    #[test]
    fn long_texts_are_texts() {
        let collation = Collation::UTF8MB4_0900_AI_CI;
        assert_eq!(ExprType::text(16_383, collation).kind, SqlType::VarChar);
        assert_eq!(ExprType::text(16_384, collation).kind, SqlType::MediumBlob);
        assert_eq!(ExprType::text(UNBOUNDED, collation).kind, SqlType::LongBlob);
    }
}
