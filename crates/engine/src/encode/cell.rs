//! Column cells: cells are ordered like the values.
//!
//! ```text
//! Int, Time, Timestamp   ordinal: the number with its sign bit flipped
//! Uint, Bool             ordinal: the number
//! Float, Double          ordinal: the bits, all flipped if negative, else the sign bit flipped
//! Date                   ordinal: year << 9 | month << 5 | day
//! DateTime               ordinal: date << 37 | microseconds of the day
//! Decimal(p <= 18, s)    ordinal: the number times 10^s, as Int
//! Decimal(p > 18, s)     bytes: sign (0 negative, 1 not), then ceil(p / 2) bytes of two digits
//!                        each, 0 to 99, all flipped if negative
//! Text, Bytes, Json      bytes: as they are
//! ```

use remora_index::column::{Cell, ColumnKind};

use crate::{ColumnType, Date, DateTime, Decimal, Value};

/// Decimals with at most this many digits fit into 64 bits.
const MAX_ORDINAL_PRECISION: u8 = 18;
const SIGN_BIT: u64 = 1 << 63;
const DAY_MICROS_BITS: u32 = 37;

/// How segments store a column of this type.
pub(crate) fn column_kind(kind: ColumnType) -> ColumnKind {
    match kind {
        ColumnType::Text | ColumnType::Bytes | ColumnType::Json => ColumnKind::Bytes,
        ColumnType::Decimal(precision, _) if precision > MAX_ORDINAL_PRECISION => ColumnKind::Bytes,
        _ => ColumnKind::Ordinal,
    }
}

/// Encodes a value as a column cell. Byte cells are appended to `scratch` and borrowed from it. The value must come
/// from [`super::fit`] for the column; a value of another type becomes `Null`.
pub(crate) fn encode_cell<'s>(
    kind: ColumnType,
    value: &Value,
    scratch: &'s mut Vec<u8>,
) -> Cell<'s> {
    if let Some(ordinal) = ordinal(kind, value) {
        return Cell::Ordinal(ordinal);
    }
    let start = scratch.len();
    if append_bytes(kind, value, scratch).is_none() {
        return Cell::Null;
    }
    Cell::Bytes(scratch.get(start..).unwrap_or_default())
}

/// Decodes a column cell; `Null` if the cell does not fit the type.
pub(crate) fn decode_cell(kind: ColumnType, cell: Cell<'_>) -> Value {
    let value = match cell {
        Cell::Null => None,
        Cell::Ordinal(ordinal) => value_of_ordinal(kind, ordinal),
        Cell::Bytes(bytes) => value_of_bytes(kind, bytes),
    };
    value.unwrap_or(Value::Null)
}

/// The order-preserving number of a value of an ordinal type.
pub(super) fn ordinal(kind: ColumnType, value: &Value) -> Option<u64> {
    Some(match (kind, value) {
        (ColumnType::Int(_), Value::Int(number)) => signed(*number),
        (ColumnType::Uint(_), Value::Uint(number)) => *number,
        (ColumnType::Float | ColumnType::Double, Value::Float(number)) => float(*number),
        (ColumnType::Bool, Value::Bool(truth)) => u64::from(*truth),
        (ColumnType::Date, Value::Date(date)) => pack_date(*date),
        (ColumnType::Time, Value::Time(micros)) => signed(*micros),
        (ColumnType::Timestamp, Value::Timestamp(micros)) => signed(*micros),
        (ColumnType::DateTime, Value::DateTime(moment)) => pack_date_time(*moment),
        (ColumnType::Decimal(precision, scale), Value::Decimal(number))
            if precision <= MAX_ORDINAL_PRECISION =>
        {
            signed(i64::try_from(number.to_scaled(scale)?).ok()?)
        }
        _ => return None,
    })
}

/// The inverse of [`ordinal`].
pub(super) fn value_of_ordinal(kind: ColumnType, ordinal: u64) -> Option<Value> {
    Some(match kind {
        ColumnType::Int(_) => Value::Int(int_of_ordinal(ordinal)),
        ColumnType::Uint(_) => Value::Uint(ordinal),
        ColumnType::Float | ColumnType::Double => Value::Float(float_of_ordinal(ordinal)),
        ColumnType::Bool => Value::Bool(ordinal != 0),
        ColumnType::Date => Value::Date(unpack_date(ordinal)),
        ColumnType::Time => Value::Time(int_of_ordinal(ordinal)),
        ColumnType::Timestamp => Value::Timestamp(int_of_ordinal(ordinal)),
        ColumnType::DateTime => Value::DateTime(unpack_date_time(ordinal)),
        ColumnType::Decimal(_, scale) => {
            Value::Decimal(Decimal::from_scaled(i128::from(int_of_ordinal(ordinal)), scale))
        }
        ColumnType::Text | ColumnType::Bytes | ColumnType::Json => return None,
    })
}

/// The number of an Int, Time or Timestamp, or a narrow decimal times ten to its scale.
#[inline]
pub(crate) fn int_of_ordinal(ordinal: u64) -> i64 {
    (ordinal ^ SIGN_BIT) as i64
}

/// The number of a Float or Double from its ordinal.
#[inline]
pub(crate) fn float_of_ordinal(ordinal: u64) -> f64 {
    let flip = if ordinal & SIGN_BIT == 0 { u64::MAX } else { SIGN_BIT };
    f64::from_bits(ordinal ^ flip)
}

/// A decimal times ten to its scale; `None` if it does not fit into 128 bits. Decimals of up to 38
/// digits do.
#[inline]
pub(crate) fn decimal_of_cell(cell: Cell<'_>) -> Option<i128> {
    match cell {
        Cell::Null => None,
        Cell::Ordinal(ordinal) => Some(i128::from(int_of_ordinal(ordinal))),
        Cell::Bytes(bytes) => {
            let (&sign, pairs) = bytes.split_first()?;
            let flip = if sign == 0 { 0xff } else { 0 };
            let number = pairs.iter().try_fold(0i128, |number, pair| {
                let pair = Some(pair ^ flip).filter(|&pair| pair < 100)?;
                number.checked_mul(100)?.checked_add(i128::from(pair))
            })?;
            Some(if sign == 0 { -number } else { number })
        }
    }
}

/// Appends the order-preserving bytes of a value of a byte type.
pub(super) fn append_bytes(kind: ColumnType, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match (kind, value) {
        (ColumnType::Text, Value::Text(text)) | (ColumnType::Json, Value::Json(text)) => {
            out.extend_from_slice(text.as_bytes());
        }
        (ColumnType::Bytes, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (ColumnType::Decimal(precision, scale), Value::Decimal(number)) => {
            append_wide_decimal(precision, scale, number, out);
        }
        _ => return None,
    }
    Some(())
}

/// The inverse of [`append_bytes`].
pub(super) fn value_of_bytes(kind: ColumnType, bytes: &[u8]) -> Option<Value> {
    match kind {
        ColumnType::Text => Some(Value::Text(std::str::from_utf8(bytes).ok()?.into())),
        ColumnType::Json => Some(Value::Json(std::str::from_utf8(bytes).ok()?.into())),
        ColumnType::Bytes => Some(Value::Bytes(bytes.into())),
        ColumnType::Decimal(precision, scale) => {
            wide_decimal(precision, scale, bytes).map(Value::Decimal)
        }
        _ => None,
    }
}

/// The number of bytes of a wide decimal.
pub(super) fn wide_decimal_bytes(precision: u8) -> usize {
    1 + usize::from(precision).div_ceil(2)
}

/// A date as one number, in the order of dates.
pub(super) fn pack_date(date: Date) -> u64 {
    u64::from(date.year) << 9 | u64::from(date.month) << 5 | u64::from(date.day)
}

/// The inverse of [`pack_date`].
#[inline]
pub(crate) fn unpack_date(packed: u64) -> Date {
    Date { year: (packed >> 9) as u16, month: (packed >> 5 & 15) as u8, day: (packed & 31) as u8 }
}

/// A date and time as one number, in their order.
pub(super) fn pack_date_time(moment: DateTime) -> u64 {
    pack_date(moment.date) << DAY_MICROS_BITS | moment.micros
}

/// The inverse of [`pack_date_time`].
#[inline]
pub(crate) fn unpack_date_time(packed: u64) -> DateTime {
    let date = unpack_date(packed >> DAY_MICROS_BITS);
    DateTime { date, micros: packed & ((1 << DAY_MICROS_BITS) - 1) }
}

fn signed(number: i64) -> u64 {
    number as u64 ^ SIGN_BIT
}

fn float(number: f64) -> u64 {
    // Adding zero turns -0.0 into 0.0.
    let bits = (number + 0.0).to_bits();
    bits ^ if bits & SIGN_BIT == 0 { SIGN_BIT } else { u64::MAX }
}

fn append_wide_decimal(precision: u8, scale: u8, number: &Decimal, out: &mut Vec<u8>) {
    let (negative, integer, fraction) = number.parts();
    let places = 2 * (wide_decimal_bytes(precision) - 1);
    let integer_places = places.saturating_sub(usize::from(scale));
    let padding = integer_places.saturating_sub(integer.len());
    let zeros = std::iter::repeat(b'0');
    let mut digits = zeros.clone().take(padding).chain(integer.bytes().take(integer_places));
    let fraction = fraction.bytes().chain(zeros).take(usize::from(scale));
    let mut digits = digits.by_ref().chain(fraction);
    let flip = if negative { 0xff } else { 0 };
    out.push(u8::from(!negative));
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        out.push(((high - b'0') * 10 + (low - b'0')) ^ flip);
    }
}

fn wide_decimal(precision: u8, scale: u8, bytes: &[u8]) -> Option<Decimal> {
    let (&sign, pairs) = bytes.split_first()?;
    if bytes.len() != wide_decimal_bytes(precision) {
        return None;
    }
    let flip = if sign == 0 { 0xff } else { 0 };
    let mut text = String::with_capacity(2 * pairs.len() + 2);
    for pair in pairs {
        let pair = Some(pair ^ flip).filter(|&pair| pair < 100)?;
        text.push(char::from(b'0' + pair / 10));
        text.push(char::from(b'0' + pair % 10));
    }
    text.insert(text.len().checked_sub(usize::from(scale))?, '.');
    if sign == 0 {
        text.insert(0, '-');
    }
    Decimal::parse(&text, precision, scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{compare, encode::strategies::typed_values};

    proptest! {
        #[test]
        fn cells_keep_value_order_and_round_trip(
            (kind, values) in typed_values(2),
        ) {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let a = encode_cell(kind, &values[0], &mut first);
            let b = encode_cell(kind, &values[1], &mut second);
            prop_assert_eq!(a.cmp(&b), compare(&values[0], &values[1]), "{:?}", values);
            prop_assert_eq!(&decode_cell(kind, a), &values[0]);
            prop_assert!(!matches!(a, Cell::Null) || values[0].is_null());
            let is_bytes = column_kind(kind) == ColumnKind::Bytes;
            prop_assert_eq!(matches!(a, Cell::Bytes(_)), is_bytes && !values[0].is_null());
        }

        #[test]
        fn any_bytes_decode_without_a_panic(kind_and in typed_values(0),
            bytes: Vec<u8>, number: u64) {
            let _ = decode_cell(kind_and.0, Cell::Bytes(&bytes));
            let _ = decode_cell(kind_and.0, Cell::Ordinal(number)).to_string();
        }
    }

    #[test]
    fn byte_cells_are_appended_to_the_scratch() {
        let mut scratch = b"before".to_vec();
        let cell = encode_cell(ColumnType::Text, &Value::Text("a".into()), &mut scratch);
        assert_eq!(cell, Cell::Bytes(b"a"));
        assert_eq!(scratch, b"beforea");
    }
}
