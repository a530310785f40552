//! Numbers in the display format of their columns: leading zeros, or a fixed number of fraction
//! digits. BIT as the bytes that it is for functions of texts.

use super::{
    types::{ExprType, MAX_SCALE, Width},
    value::SqlValue,
};
use crate::SqlType;

/// Functions that convert number arguments to texts.
const TEXT_FUNCTIONS: [&str; 34] = [
    "ascii",
    "bit_length",
    "cast_binary",
    "cast_char",
    "char_length",
    "char_using",
    "concat",
    "concat_ws",
    "convert_using",
    "crc32",
    "field",
    "find_in_set",
    "insert",
    "instr",
    "left",
    "length",
    "like",
    "locate",
    "lower",
    "lpad",
    "ltrim",
    "ord",
    "quote",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "substring",
    "substring_index",
    "to_text",
    "trim",
    "upper",
];

/// Functions of texts that take numbers as any function does, but BIT as bytes.
const BYTE_FUNCTIONS: [&str; 17] = [
    "aes_decrypt",
    "aes_encrypt",
    "compress",
    "elt",
    "make_set",
    "md5",
    "regexp_instr",
    "regexp_like",
    "regexp_replace",
    "regexp_substr",
    "sha1",
    "sha2",
    "soundex",
    "strcmp",
    "to_base64",
    "uncompress",
    "unhex",
];

/// Functions that return one of their arguments.
const CHOOSING_FUNCTIONS: [&str; 6] =
    ["case", "case_of", "coalesce", "convert_to", "ifnull", "nullif"];

/// Whether a function converts number arguments to texts.
pub(super) fn takes_texts(function: &str) -> bool {
    TEXT_FUNCTIONS.binary_search(&function).is_ok()
}

/// Whether a function takes an argument of type BIT as bytes, not as a number.
fn takes_bytes(function: &str, place: usize) -> bool {
    match function {
        "char_using" | "field" => false,
        "cast_binary" | "cast_char" | "left" | "repeat" | "right" | "sha2" | "substring" => {
            place == 0
        }
        "insert" => matches!(place, 0 | 3),
        "locate" | "substring_index" => place < 2,
        "lpad" | "rpad" => place != 1,
        "elt" | "make_set" => place > 0,
        "regexp_instr" | "regexp_like" | "regexp_replace" | "regexp_substr" => place < 2,
        function => takes_texts(function) || BYTE_FUNCTIONS.binary_search(&function).is_ok(),
    }
}

/// Whether a function of this result type takes an argument of this type as bytes.
pub(super) fn takes_as_bytes(
    function: &str,
    place: usize,
    kind: &ExprType,
    result: &ExprType,
) -> bool {
    matches!(kind.kind, SqlType::Bit(_))
        && (takes_bytes(function, place)
            || (result.is_string() && CHOOSING_FUNCTIONS.contains(&function)))
}

/// The types of arguments as a function takes them.
pub(super) fn types_taken(function: &str, mut types: Vec<ExprType>) -> Vec<ExprType> {
    for (place, kind) in types.iter_mut().enumerate() {
        if takes_bytes(function, place) {
            *kind = std::mem::replace(kind, ExprType::null()).with_bits_as_bytes();
        }
    }
    types
}

impl ExprType {
    /// BIT as the binary string of its bytes; other types unchanged.
    pub(super) fn with_bits_as_bytes(self) -> Self {
        match self.kind {
            SqlType::Bit(_) => {
                let bytes = u32::try_from(self.bytes_of_bits()).unwrap_or(8);
                let (not_null, coercibility) = (self.not_null, self.coercibility);
                Self { not_null, coercibility, ..Self::binary(bytes) }
            }
            _ => self,
        }
    }

    /// How many bytes a BIT has; 8 for other types.
    pub(super) fn bytes_of_bits(&self) -> usize {
        match self.kind {
            SqlType::Bit(bits) => usize::from(bits).div_ceil(8).clamp(1, 8),
            _ => 8,
        }
    }

    /// The formatted text of a number of this type.
    pub(super) fn formatted(&self, value: &SqlValue<'_>) -> String {
        let digits = |decimals: u8| usize::from(decimals.min(MAX_SCALE));
        let text = match (self.decimals, value) {
            (Some(decimals), SqlValue::Float(number)) => format!("{number:.0$}", digits(decimals)),
            (Some(decimals), SqlValue::Double(number)) => format!("{number:.0$}", digits(decimals)),
            _ => value.string().unwrap_or_default().into_owned(),
        };
        match self.width {
            Some(Width { places, zerofill: true }) => {
                let places = usize::try_from(places).unwrap_or(0);
                format!("{text:0>places$}")
            }
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_sorted() {
        assert!(TEXT_FUNCTIONS.is_sorted() && BYTE_FUNCTIONS.is_sorted());
        assert!(takes_texts("concat") && takes_texts("upper") && !takes_texts("abs"));
    }

    #[test]
    fn numbers_are_written_as_they_are_declared() {
        let number = |kind, places, zerofill, decimals| ExprType {
            kind,
            width: Some(Width { places, zerofill }),
            decimals,
            ..ExprType::double()
        };
        let whole = number(SqlType::Int, 5, true, None);
        assert_eq!(whole.formatted(&SqlValue::Uint(42)), "00042");
        assert_eq!(whole.formatted(&SqlValue::Uint(1_234_567)), "1234567");
        assert_eq!(number(SqlType::Int, 5, false, None).formatted(&SqlValue::Int(-42)), "-42");
        let fixed = number(SqlType::Float, 7, true, Some(4));
        assert_eq!(fixed.formatted(&SqlValue::Float(1.5)), "01.5000");
        let fixed = number(SqlType::Double, 9, false, Some(2));
        assert_eq!(fixed.formatted(&SqlValue::Double(-1_234_567.891)), "-1234567.89");
        assert_eq!(fixed.formatted(&SqlValue::Double(1e300)).len(), 304);
    }
}
