//! Types of columns by name.

use std::{fmt, str::FromStr};

use remora_engine::ColumnType;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A column's type, written as `int64`, `decimal(10,2)`, `text` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeName(pub ColumnType);

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ColumnType::Int(bits) => return write!(f, "int{bits}"),
            ColumnType::Uint(bits) => return write!(f, "uint{bits}"),
            ColumnType::Decimal(digits, scale) => return write!(f, "decimal({digits},{scale})"),
            ColumnType::Float => "float",
            ColumnType::Double => "double",
            ColumnType::Bool => "bool",
            ColumnType::Text => "text",
            ColumnType::Bytes => "bytes",
            ColumnType::Date => "date",
            ColumnType::Time => "time",
            ColumnType::DateTime => "datetime",
            ColumnType::Timestamp => "timestamp",
            ColumnType::Json => "json",
        })
    }
}

impl FromStr for TypeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim().to_ascii_lowercase();
        let kind = match name.as_str() {
            "float" => ColumnType::Float,
            "double" => ColumnType::Double,
            "bool" => ColumnType::Bool,
            "text" => ColumnType::Text,
            "bytes" => ColumnType::Bytes,
            "date" => ColumnType::Date,
            "time" => ColumnType::Time,
            "datetime" => ColumnType::DateTime,
            "timestamp" => ColumnType::Timestamp,
            "json" => ColumnType::Json,
            _ => sized(&name).ok_or_else(|| {
                format!(
                    "unknown type \"{text}\": use int8 to int64, uint8 to uint64, float, double, \
                     decimal(10,2), bool, text, bytes, date, time, datetime, timestamp or json"
                )
            })?,
        };
        Ok(Self(kind))
    }
}

fn sized(name: &str) -> Option<ColumnType> {
    if let Some(sizes) = name.strip_prefix("decimal") {
        let (digits, scale) = sizes.trim().strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        let (digits, scale) = (digits.trim().parse().ok()?, scale.trim().parse().ok()?);
        let valid = (1..=65).contains(&digits) && scale <= 30 && scale <= digits;
        return valid.then_some(ColumnType::Decimal(digits, scale));
    }
    let unsigned = name.strip_prefix("uint");
    let bits = unsigned.or_else(|| name.strip_prefix("int"))?;
    let bits = if bits.is_empty() { 64 } else { bits.parse().ok()? };
    let kind = if unsigned.is_some() { ColumnType::Uint(bits) } else { ColumnType::Int(bits) };
    matches!(bits, 8 | 16 | 24 | 32 | 64).then_some(kind)
}

impl Serialize for TypeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (kind, _) in crate::files::kinds_and_values() {
            assert_eq!(TypeName(kind).to_string().parse(), Ok(TypeName(kind)));
        }
        assert_eq!("UINT".parse(), Ok(TypeName(ColumnType::Uint(64))));
        for wrong in ["int7", "decimal", "decimal(66,0)", "decimal(2,3)", "decimal(a,b)", ""] {
            assert!(wrong.parse::<TypeName>().is_err(), "{wrong}");
        }
    }
}
