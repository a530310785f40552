//! Numbers in the display format of their columns: leading zeros, or a fixed number of fraction
//! digits.

use super::{
    types::{ExprType, MAX_SCALE, Width},
    value::SqlValue,
};

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

/// Whether a function converts number arguments to texts.
pub(super) fn takes_texts(function: &str) -> bool {
    TEXT_FUNCTIONS.binary_search(&function).is_ok()
}

impl ExprType {
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
    use crate::SqlType;

    #[test]
    fn the_functions_are_sorted() {
        assert!(TEXT_FUNCTIONS.is_sorted());
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
