//! Converts the engine's columns to Arrow arrays. Vectors are moved; only values that MySQL represents differently are
//! rebuilt.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{
            ArrayRef, BinaryArray, BinaryViewArray, Decimal128Array, Decimal256Array, Float32Array,
            Float64Array, Int64Array, StringArray, StringViewArray, UInt64Array,
        },
        buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
        datatypes::{DataType, i256},
    },
    error::{DataFusionError, Result},
};
use jiff::tz::TimeZone;
use remora_engine::{ColumnData, ColumnValues, Date, DateTime, Decimal, Strings, Validity};

use crate::meaning::temporal::{Moment, local_of_utc};

/// A column as an array of its field's type. Moments become local times in `zone`.
pub(crate) fn array(column: ColumnValues, held: &DataType, zone: &TimeZone) -> Result<ArrayRef> {
    let nulls = column.valid.map(nulls);
    Ok(match column.data {
        ColumnData::Int(values) | ColumnData::Time(values) => integers(values, held, nulls)?,
        ColumnData::Uint(values) => unsigned(values, held, nulls)?,
        ColumnData::Bool(values) => {
            let values: Vec<i64> = values.into_iter().map(i64::from).collect();
            integers(values, held, nulls)?
        }
        ColumnData::Float(values) if *held == DataType::Float32 => {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            Arc::new(Float32Array::try_new(values.into(), nulls)?)
        }
        ColumnData::Float(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
        ColumnData::Decimal { unscaled, .. } => narrow_decimals(unscaled, held, nulls)?,
        ColumnData::WideDecimal(values) => wide_decimals(&values, held, nulls)?,
        ColumnData::Text(strings) | ColumnData::Json(strings) => text(strings, nulls)?,
        ColumnData::Bytes(strings) => bytes(strings, nulls)?,
        ColumnData::Date(values) => {
            let packed = values.into_iter().map(|date| moment(date, 0).pack()).collect();
            integers(packed, held, nulls)?
        }
        ColumnData::DateTime(values) => {
            let packed = values.into_iter().map(pack_date_time).collect();
            integers(packed, held, nulls)?
        }
        ColumnData::Timestamp(values) => integers(local(values, zone), held, nulls)?,
    })
}

fn nulls(valid: Validity) -> NullBuffer {
    let Validity { words, rows, .. } = valid;
    NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
}

fn integers(values: Vec<i64>, held: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if *held == DataType::UInt64 {
        let values: Vec<u64> = values.into_iter().map(|value| value.max(0) as u64).collect();
        return Ok(Arc::new(UInt64Array::try_new(values.into(), nulls)?));
    }
    Ok(Arc::new(Int64Array::try_new(ScalarBuffer::from(values), nulls)?))
}

fn unsigned(values: Vec<u64>, held: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if *held == DataType::Int64 {
        let values: Vec<i64> = values.into_iter().map(|value| value as i64).collect();
        return Ok(Arc::new(Int64Array::try_new(values.into(), nulls)?));
    }
    Ok(Arc::new(UInt64Array::try_new(ScalarBuffer::from(values), nulls)?))
}

fn narrow_decimals(
    values: Vec<i128>,
    held: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Decimal128(digits, scale) = held else { return Err(unfit(held)) };
    let array = Decimal128Array::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(array.with_precision_and_scale(*digits, *scale)?))
}

fn wide_decimals(
    values: &[Decimal],
    held: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Decimal256(digits, scale) = held else { return Err(unfit(held)) };
    let values: Vec<i256> = values.iter().map(|value| wide(value, *scale)).collect();
    let array = Decimal256Array::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(array.with_precision_and_scale(*digits, *scale)?))
}

/// A decimal as an integer, scaled by ten to the power of `scale`. The engine keeps all values of a column at its
/// scale.
fn wide(value: &Decimal, scale: i8) -> i256 {
    let text = value.as_str();
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let mut digits: String = text.chars().filter(|letter| *letter != '.').collect();
    let missing = usize::try_from(scale).unwrap_or(0).saturating_sub(fraction);
    digits.extend(std::iter::repeat_n('0', missing));
    i256::from_string(&digits).unwrap_or(i256::ZERO)
}

fn text(strings: Strings, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(strings.offsets));
    let array = StringArray::try_new(offsets, Buffer::from_vec(strings.bytes), nulls)?;
    Ok(Arc::new(StringViewArray::from(&array)))
}

fn bytes(strings: Strings, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(strings.offsets));
    let array = BinaryArray::try_new(offsets, Buffer::from_vec(strings.bytes), nulls)?;
    Ok(Arc::new(BinaryViewArray::from(&array)))
}

fn moment(date: Date, micros: u64) -> Moment {
    let Date { year, month, day } = date;
    Moment { year, month, day, micros: micros as i64 }
}

fn pack_date_time(value: DateTime) -> i64 {
    moment(value.date, value.micros).pack()
}

/// Moments as local times in a zone. Zones with a fixed offset need no lookup.
fn local(values: Vec<i64>, zone: &TimeZone) -> Vec<i64> {
    let fixed = zone.to_fixed_offset().ok().map(|offset| i64::from(offset.seconds()) * 1_000_000);
    let one = |micros: i64| {
        if micros == remora_engine::ZERO_TIMESTAMP_MICROS {
            return 0;
        }
        match fixed {
            Some(offset) => {
                let shown = DateTime::from_timestamp(micros.saturating_add(offset));
                shown.map_or(0, pack_date_time)
            }
            None => local_of_utc(micros, zone).map_or(0, Moment::pack),
        }
    };
    // Neighbouring rows often have the same moment.
    let mut last = None;
    let shown = values.into_iter().map(|micros| match last {
        Some((before, shown)) if before == micros => shown,
        _ => {
            let shown = one(micros);
            last = Some((micros, shown));
            shown
        }
    });
    shown.collect()
}

fn unfit(held: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("a column that is held as {held} has other values"))
}
