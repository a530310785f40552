//! Converts Arrow columns to values and back.

use std::{borrow::Cow, sync::Arc};

use datafusion::{
    arrow::{
        array::{
            Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanBuilder, Decimal128Builder,
            Decimal256Builder, Float32Builder, Float64Builder, Int64Builder, NullArray,
            StringViewBuilder, UInt64Builder,
        },
        compute::cast,
        datatypes::{
            DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type,
            UInt64Type, i256,
        },
    },
    error::Result,
};

use super::{call::Call, decimal::Dec, temporal::Moment, types::ExprType, value::SqlValue};
use crate::SqlType;

/// A column that is read value by value.
pub(crate) struct ArrayColumn {
    array: ArrayRef,
    kind: ExprType,
    reading: Reading,
    /// Whether numbers with a display format (ZEROFILL, a fixed number of decimals) are read as
    /// formatted texts.
    as_text: bool,
    /// The bytes of a BIT that is read as a binary string.
    bytes_of_bits: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Reading {
    Null,
    Truth,
    Int,
    Uint,
    Year,
    Narrow,
    Wide,
    Float,
    Double,
    Text,
    Member,
    Json,
    Bytes,
    Date,
    DateTime,
    Time,
}

impl ArrayColumn {
    /// Wraps a column of this type. An array of another representation is cast first.
    pub(crate) fn new(array: &ArrayRef, kind: ExprType) -> Result<Self> {
        let wanted = match array.data_type() {
            DataType::Boolean => DataType::Boolean,
            DataType::Null => DataType::Null,
            _ => kind.arrow(),
        };
        let fits = match (array.data_type(), &wanted) {
            (DataType::Decimal128(..), DataType::Decimal128(..))
            | (DataType::Decimal256(..), DataType::Decimal256(..)) => true,
            (held, wanted) => held == wanted,
        };
        let array = if fits { Arc::clone(array) } else { cast(array, &wanted)? };
        let reading = reading(&wanted, &kind);
        Ok(Self { array, kind, reading, as_text: false, bytes_of_bits: None })
    }

    /// From now on, numbers with leading zeros or a fixed number of decimals are read as texts.
    pub(crate) fn read_as_text(&mut self) {
        self.as_text = self.kind.is_number() && self.kind.is_formatted();
    }

    /// From now on, BIT is read as a binary string.
    pub(crate) fn read_as_bytes(&mut self) {
        self.bytes_of_bits = Some(self.kind.bytes_of_bits());
    }

    /// The value in a row.
    pub(crate) fn get(&self, row: usize) -> SqlValue<'_> {
        let value = self.own(row);
        match value {
            SqlValue::Null => SqlValue::Null,
            SqlValue::Uint(bits) if self.bytes_of_bits.is_some() => {
                let all = bits.to_be_bytes();
                let left_out = all.len().saturating_sub(self.bytes_of_bits.unwrap_or(all.len()));
                SqlValue::bytes(all.get(left_out..).unwrap_or(&all))
            }
            value if self.as_text => SqlValue::Text(Cow::Owned(self.kind.formatted(&value))),
            value => value,
        }
    }

    fn own(&self, row: usize) -> SqlValue<'_> {
        if self.reading == Reading::Null || self.array.is_null(row) {
            return SqlValue::Null;
        }
        let array = &self.array;
        let int = || array.as_primitive::<Int64Type>().value(row);
        match self.reading {
            Reading::Null => SqlValue::Null,
            Reading::Truth => SqlValue::truth(array.as_boolean().value(row)),
            Reading::Int => SqlValue::Int(int()),
            Reading::Uint => SqlValue::Uint(array.as_primitive::<UInt64Type>().value(row)),
            Reading::Year => {
                let year = array.as_primitive::<UInt64Type>().value(row);
                SqlValue::Member(Cow::Owned(format!("{year:04}")), year)
            }
            Reading::Narrow => {
                let units = array.as_primitive::<Decimal128Type>().value(row);
                SqlValue::Dec(Dec { units: i256::from_i128(units), scale: self.kind.scale() })
            }
            Reading::Wide => {
                let units = array.as_primitive::<Decimal256Type>().value(row);
                SqlValue::Dec(Dec { units, scale: self.kind.scale() })
            }
            Reading::Float => SqlValue::Float(array.as_primitive::<Float32Type>().value(row)),
            Reading::Double => SqlValue::Double(array.as_primitive::<Float64Type>().value(row)),
            Reading::Text => SqlValue::Text(Cow::Borrowed(array.as_string_view().value(row))),
            Reading::Json => SqlValue::Json(Cow::Borrowed(array.as_string_view().value(row))),
            Reading::Member => {
                let text = array.as_string_view().value(row);
                SqlValue::Member(Cow::Borrowed(text), member_number(&self.kind, text))
            }
            Reading::Bytes => SqlValue::Bytes(Cow::Borrowed(array.as_binary_view().value(row))),
            Reading::Date => SqlValue::Date(Moment::unpack(int())),
            Reading::DateTime => SqlValue::DateTime(Moment::unpack(int()), self.kind.scale()),
            Reading::Time => SqlValue::Time(int(), self.kind.scale()),
        }
    }
}

fn reading(held: &DataType, kind: &ExprType) -> Reading {
    match held {
        DataType::Null => Reading::Null,
        DataType::Boolean => Reading::Truth,
        DataType::UInt64 if kind.kind == SqlType::Year => Reading::Year,
        DataType::UInt64 => Reading::Uint,
        DataType::Decimal128(..) => Reading::Narrow,
        DataType::Decimal256(..) => Reading::Wide,
        DataType::Float32 => Reading::Float,
        DataType::Float64 => Reading::Double,
        DataType::BinaryView => Reading::Bytes,
        DataType::Utf8View => match kind.kind {
            SqlType::Json => Reading::Json,
            SqlType::Enum | SqlType::Set => Reading::Member,
            _ => Reading::Text,
        },
        _ => match kind.kind {
            SqlType::Date => Reading::Date,
            SqlType::DateTime(_) | SqlType::Timestamp(_) => Reading::DateTime,
            SqlType::Time(_) => Reading::Time,
            _ => Reading::Int,
        },
    }
}

/// The number of an ENUM label, from 1, or the bit mask of a SET.
pub(crate) fn member_number(kind: &ExprType, text: &str) -> u64 {
    let members = kind.members.as_deref().unwrap_or(&[]);
    let at = |word: &str| members.iter().position(|member| member == word);
    match kind.kind {
        // The empty text is the empty set, even if '' is a label.
        SqlType::Set if text.is_empty() => 0,
        SqlType::Set => text
            .split(',')
            .filter_map(at)
            .filter_map(|place| u32::try_from(place).ok())
            .fold(0, |sum, place| sum | 1u64.checked_shl(place).unwrap_or(0)),
        _ => at(text).map_or(0, |place| place as u64 + 1),
    }
}

/// A builder for a column of values.
pub(crate) enum Building {
    Null(usize),
    Truth(BooleanBuilder),
    Int(Int64Builder),
    Uint(UInt64Builder),
    Narrow(Decimal128Builder, u8),
    Wide(Decimal256Builder, u8),
    Float(Float32Builder),
    Double(Float64Builder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Packed(Int64Builder),
}

impl Building {
    /// A builder for an array of this Arrow type, with values of this SQL type.
    pub(crate) fn new(held: &DataType, kind: &ExprType) -> Self {
        match held {
            DataType::Null => Self::Null(0),
            DataType::Boolean => Self::Truth(BooleanBuilder::new()),
            DataType::UInt64 => Self::Uint(UInt64Builder::new()),
            DataType::Decimal128(_, scale) => {
                let builder = Decimal128Builder::new().with_data_type(held.clone());
                Self::Narrow(builder, *scale as u8)
            }
            DataType::Decimal256(_, scale) => {
                let builder = Decimal256Builder::new().with_data_type(held.clone());
                Self::Wide(builder, *scale as u8)
            }
            DataType::Float32 => Self::Float(Float32Builder::new()),
            DataType::Float64 => Self::Double(Float64Builder::new()),
            DataType::BinaryView => Self::Bytes(BinaryViewBuilder::new()),
            DataType::Utf8View => Self::Text(StringViewBuilder::new()),
            _ if kind.is_temporal() => Self::Packed(Int64Builder::new()),
            _ => Self::Int(Int64Builder::new()),
        }
    }

    /// Appends a value, converted to the column's type.
    pub(crate) fn push(&mut self, value: &SqlValue<'_>, call: &Call<'_>) {
        if value.is_null() {
            return self.push_null();
        }
        match self {
            Self::Null(rows) => *rows += 1,
            Self::Truth(builder) => builder.append_option(value.is_true(call)),
            // Integers fit in 64 bits, because the caller has checked them.
            Self::Int(builder) => builder.append_value(value.integer(call) as i64),
            Self::Uint(builder) => builder.append_value(value.integer(call) as u64),
            Self::Narrow(builder, scale) => {
                let exact = value.decimal(call).rescaled(*scale);
                builder.append_option(exact.and_then(|exact| exact.units.to_i128()));
            }
            Self::Wide(builder, scale) => {
                builder
                    .append_option(value.decimal(call).rescaled(*scale).map(|exact| exact.units));
            }
            Self::Float(builder) => builder.append_value(match value {
                SqlValue::Float(number) => *number,
                value => value.double(call) as f32,
            }),
            Self::Double(builder) => builder.append_value(value.double(call)),
            Self::Text(builder) => builder.append_option(value.string()),
            Self::Bytes(builder) => builder.append_option(value.octets()),
            Self::Packed(builder) => builder.append_option(packed(value, call)),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Null(rows) => *rows += 1,
            Self::Truth(builder) => builder.append_null(),
            Self::Int(builder) | Self::Packed(builder) => builder.append_null(),
            Self::Uint(builder) => builder.append_null(),
            Self::Narrow(builder, _) => builder.append_null(),
            Self::Wide(builder, _) => builder.append_null(),
            Self::Float(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bytes(builder) => builder.append_null(),
        }
    }

    /// The finished array.
    pub(crate) fn finish(self) -> ArrayRef {
        match self {
            Self::Null(rows) => Arc::new(NullArray::new(rows)),
            Self::Truth(mut builder) => Arc::new(builder.finish()),
            Self::Int(mut builder) | Self::Packed(mut builder) => Arc::new(builder.finish()),
            Self::Uint(mut builder) => Arc::new(builder.finish()),
            Self::Narrow(mut builder, _) => Arc::new(builder.finish()),
            Self::Wide(mut builder, _) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Double(mut builder) => Arc::new(builder.finish()),
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Bytes(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// A date or time in its column's representation.
fn packed(value: &SqlValue<'_>, call: &Call<'_>) -> Option<i64> {
    match call.result.kind {
        SqlType::Time(digits) => {
            let (micros, _) = value.time(call)?;
            Some(super::temporal::round_micros(micros, digits))
        }
        SqlType::Date => Some(value.moment(call)?.midnight().pack()),
        SqlType::DateTime(digits) | SqlType::Timestamp(digits) => {
            Some(value.moment(call)?.rounded(digits)?.pack())
        }
        _ => None,
    }
}
