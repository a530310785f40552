//! The parameter values of a prepared statement.
//!
//! ```text
//! parameters = null bits: one per parameter  bound: u8
//!              [ type: u16 per parameter, where bound is 1 ]
//!              value of each parameter that is neither NULL nor sent before
//! ```
//! If the types are missing, those of the previous execution apply.

use std::{borrow::Cow, sync::Arc};

use remora_engine::{Date, DateTime, Decimal, Value};
use remora_mysql::{Charset, FieldType};

use super::encode::Fields;

const UNSIGNED: u8 = 0x80;
/// MySQL's limits of DECIMAL.
const DECIMAL_DIGITS: u8 = 65;
const DECIMAL_FRACTION_DIGITS: usize = 30;
const MICROS_PER_SECOND: u64 = 1_000_000;
/// The longest TIME, 838:59:59. Longer ones are clipped to it.
const MAX_TIME_MICROS: u64 = (838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND;

/// The type of a parameter, and whether it is unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterType {
    kind: FieldType,
    unsigned: bool,
}

/// The state of a statement's parameters between executions.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    types: Vec<ParameterType>,
    /// Values that were sent in pieces before the next execution.
    long: Vec<Option<Vec<u8>>>,
    long_bytes: usize,
}

impl Parameters {
    /// Appends a piece to a value. False if the statement has no such parameter.
    pub fn add_long(&mut self, count: usize, parameter: u16, data: &[u8]) -> bool {
        let at = usize::from(parameter);
        if at >= count {
            return false;
        }
        self.long.resize(count, None);
        if let Some(place) = self.long.get_mut(at) {
            place.get_or_insert_default().extend_from_slice(data);
            self.long_bytes += data.len();
        }
        true
    }

    /// The size of the values that were sent in pieces.
    pub fn long_bytes(&self) -> usize {
        self.long_bytes
    }

    /// Drops the values that were sent in pieces.
    pub fn clear_long(&mut self) {
        self.long.clear();
        self.long_bytes = 0;
    }

    /// Reads the values of `count` parameters into `values`; `None` if the packet is malformed.
    /// Values that were sent in pieces are used up. Texts are in `charset`.
    pub fn read(
        &mut self,
        packet: &[u8],
        count: usize,
        charset: Charset,
        values: &mut Vec<Value>,
    ) -> Option<()> {
        values.clear();
        let mut long = std::mem::take(&mut self.long);
        self.long_bytes = 0;
        if count == 0 {
            return Some(());
        }
        let mut fields = Fields::new(packet);
        let nulls = fields.take(count.div_ceil(8))?;
        if fields.u8()? != 0 {
            self.types.clear();
            for _ in 0..count {
                let [code, flags] = fields.array()?;
                let kind = FieldType::from_code(code);
                self.types.push(ParameterType { kind, unsigned: flags & UNSIGNED != 0 });
            }
        }
        if self.types.len() != count {
            return None;
        }
        for (at, kind) in self.types.iter().enumerate() {
            let is_null = nulls.get(at / 8)? >> (at % 8) & 1 == 1;
            values.push(match long.get_mut(at).and_then(Option::take) {
                Some(bytes) => bytes_value(kind.kind, &bytes, charset),
                None if is_null => Value::Null,
                None => kind.read(&mut fields, charset)?,
            });
        }
        Some(())
    }
}

impl ParameterType {
    fn read(self, fields: &mut Fields<'_>, charset: Charset) -> Option<Value> {
        Some(match self.kind {
            FieldType::Unknown(_) | FieldType::VarCharCompressed | FieldType::BlobCompressed => {
                return None;
            }
            FieldType::Null => Value::Null,
            FieldType::Tiny => {
                let [byte] = fields.array()?;
                self.integer(i64::from(byte.cast_signed()), u64::from(byte))
            }
            FieldType::Short | FieldType::Year => {
                let number = fields.u16()?;
                self.integer(i64::from(number.cast_signed()), u64::from(number))
            }
            FieldType::Long | FieldType::Int24 => {
                let number = fields.u32()?;
                self.integer(i64::from(number.cast_signed()), u64::from(number))
            }
            FieldType::LongLong => {
                let number = u64::from_le_bytes(fields.array()?);
                self.integer(number.cast_signed(), number)
            }
            FieldType::Float => real(f64::from(f32::from_le_bytes(fields.array()?))),
            FieldType::Double => real(f64::from_le_bytes(fields.array()?)),
            FieldType::Date | FieldType::DateTime | FieldType::Timestamp => {
                moment(self.kind, fields)?
            }
            FieldType::Time => time(fields)?,
            _ => bytes_value(self.kind, fields.bytes()?, charset),
        })
    }

    fn integer(self, signed: i64, unsigned: u64) -> Value {
        if self.unsigned { Value::Uint(unsigned) } else { Value::Int(signed) }
    }
}

/// A number. NaN and infinity become NULL.
fn real(number: f64) -> Value {
    if number.is_finite() { Value::Float(number) } else { Value::Null }
}

/// A value of a BLOB, decimal or text type. A text that is invalid in the character set stays
/// bytes.
fn bytes_value(kind: FieldType, bytes: &[u8], charset: Charset) -> Value {
    let is_blob = matches!(
        kind,
        FieldType::TinyBlob
            | FieldType::MediumBlob
            | FieldType::LongBlob
            | FieldType::Blob
            | FieldType::Geometry
            | FieldType::Vector
            | FieldType::Bit
    );
    let text = match charset.is_utf8() {
        true => std::str::from_utf8(bytes).map(Cow::Borrowed),
        false => Ok(charset.decode(bytes)),
    };
    match text {
        Ok(text) if !is_blob => {
            let is_decimal = matches!(kind, FieldType::NewDecimal | FieldType::Decimal);
            let decimal = is_decimal.then(|| decimal(&text)).flatten();
            decimal.map_or_else(|| Value::Text(Arc::from(&*text)), Value::Decimal)
        }
        _ => Value::Bytes(Arc::from(bytes)),
    }
}

fn decimal(text: &str) -> Option<Decimal> {
    let fraction = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let scale = u8::try_from(fraction.min(DECIMAL_FRACTION_DIGITS)).ok()?;
    Decimal::parse(text, DECIMAL_DIGITS, scale)
}

/// A date, with a time of day unless the type is DATE. An invalid date becomes the zero date.
fn moment(kind: FieldType, fields: &mut Fields<'_>) -> Option<Value> {
    let length = fields.u8()?;
    let mut fields = Fields::new(fields.take(usize::from(length))?);
    let zero = Date { year: 0, month: 0, day: 0 };
    let mut date = zero;
    let mut micros = Some(0);
    if length >= 4 {
        let year = fields.u16()?;
        date = Date { year, month: fields.u8()?, day: fields.u8()? };
    }
    if length >= 7 {
        micros = clock(&mut fields)?;
    }
    let moment = micros.map(|micros| DateTime { date, micros }).filter(DateTime::is_valid);
    let moment = moment.unwrap_or(DateTime { date: zero, micros: 0 });
    let is_date = kind == FieldType::Date;
    Some(if is_date { Value::Date(moment.date) } else { Value::DateTime(moment) })
}

fn time(fields: &mut Fields<'_>) -> Option<Value> {
    let length = fields.u8()?;
    let mut fields = Fields::new(fields.take(usize::from(length))?);
    if length < 8 {
        return Some(Value::Time(0));
    }
    let is_negative = fields.u8()? != 0;
    let days = u64::from(fields.u32()?);
    let Some(micros) = clock(&mut fields)? else { return Some(Value::Time(0)) };
    let micros = days.saturating_mul(24 * 3600 * MICROS_PER_SECOND).saturating_add(micros);
    let micros = i64::try_from(micros.min(MAX_TIME_MICROS)).ok()?;
    Some(Value::Time(if is_negative { -micros } else { micros }))
}

/// Hours, minutes and seconds, with a fraction if there are more bytes. The inner `None` means that
/// they are no time.
fn clock(fields: &mut Fields<'_>) -> Option<Option<u64>> {
    let [hours, minutes, seconds] = fields.array()?.map(u64::from);
    let fraction = if fields.rest().is_empty() { 0 } else { u64::from(fields.u32()?) };
    let is_time = minutes < 60 && seconds < 60 && fraction < MICROS_PER_SECOND;
    let micros = (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND + fraction;
    Some(is_time.then_some(micros))
}

#[cfg(test)]
mod tests {
    use mysql_common::{
        constants::ColumnType, packets::ComStmtExecuteRequestBuilder, proto::MySerialize,
        value::Value as Theirs,
    };
    use proptest::prelude::*;

    use super::{super::command::Command, *};

    fn read(values: &[Theirs]) -> Vec<Value> {
        let (request, as_long) = ComStmtExecuteRequestBuilder::new(5).build(values);
        assert!(!as_long);
        let mut bytes = Vec::new();
        request.serialize(&mut bytes);
        let Command::Execute { id: 5, cursor: false, parameters } = Command::parse(&bytes) else {
            panic!("not an execute: {bytes:?}");
        };
        let mut read = Vec::new();
        Parameters::default().read(parameters, values.len(), Charset::UTF8MB4, &mut read).unwrap();
        read
    }

    #[test]
    fn bound_parameters_are_parsed() {
        let values = read(&[
            Theirs::NULL,
            Theirs::Int(-5),
            Theirs::UInt(u64::MAX),
            Theirs::Float(1.5),
            Theirs::Double(-2.5),
            Theirs::Bytes("日本".as_bytes().to_vec()),
            Theirs::Bytes(vec![0xFF, 0xFE]),
            Theirs::Date(2024, 2, 29, 1, 2, 3, 4),
            Theirs::Time(true, 1, 2, 3, 4, 5),
            Theirs::Date(2024, 2, 29, 0, 0, 0, 0),
            Theirs::Date(2024, 13, 29, 0, 0, 0, 0),
        ]);
        let date = Date { year: 2024, month: 2, day: 29 };
        let zero = Date { year: 0, month: 0, day: 0 };
        let time = -((86_400 + 7200 + 180 + 4) * 1_000_000 + 5);
        assert_eq!(
            values,
            [
                Value::Null,
                Value::Int(-5),
                Value::Uint(u64::MAX),
                Value::Float(1.5),
                Value::Float(-2.5),
                Value::Text("日本".into()),
                Value::Bytes(Arc::from([0xFF, 0xFE])),
                Value::DateTime(DateTime { date, micros: 3_723_000_004 }),
                Value::Time(time),
                Value::DateTime(DateTime { date, micros: 0 }),
                Value::DateTime(DateTime { date: zero, micros: 0 }),
            ]
        );
    }

    #[test]
    fn invalid_times_are_zero_and_long_ones_truncated() {
        let bound = |kind: ColumnType, value: &[u8]| {
            let packet = [&[0, 1, kind as u8, 0, value.len() as u8][..], value].concat();
            let mut values = Vec::new();
            Parameters::default().read(&packet, 1, Charset::UTF8MB4, &mut values).unwrap();
            values.remove(0)
        };
        let time = |value: &[u8]| bound(ColumnType::MYSQL_TYPE_TIME, value);
        let longest = (838 * 3600 + 59 * 60 + 59) * 1_000_000;
        assert_eq!(time(&[0, 0, 0, 0, 0, 1, 2, 3]), Value::Time(3_723_000_000));
        assert_eq!(time(&[0, 0, 0, 0, 0, 1, 60, 3]), Value::Time(0));
        assert_eq!(time(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3]), Value::Time(-longest));
        let zero = DateTime { date: Date { year: 0, month: 0, day: 0 }, micros: 0 };
        let moment = bound(ColumnType::MYSQL_TYPE_DATETIME, &[0xE8, 7, 2, 29, 1, 2, 60]);
        assert_eq!(moment, Value::DateTime(zero));
    }

    #[test]
    fn parameter_types_are_kept_and_blobs_are_bytes() {
        let mut parameters = Parameters::default();
        let mut values = Vec::new();
        let blob = ColumnType::MYSQL_TYPE_BLOB as u8;
        assert!(
            parameters
                .read(&[0, 1, blob, 0, 2, b'a', b'b'], 1, Charset::UTF8MB4, &mut values)
                .is_some()
        );
        assert_eq!(values, [Value::Bytes(Arc::from(*b"ab"))]);
        assert!(parameters.read(&[0, 0, 1, b'c'], 1, Charset::UTF8MB4, &mut values).is_some());
        assert_eq!(values, [Value::Bytes(Arc::from(*b"c"))]);
        assert!(
            Parameters::default()
                .read(&[0, 0, 1, b'c'], 1, Charset::UTF8MB4, &mut values)
                .is_none()
        );
    }

    #[test]
    fn texts_are_received_in_the_clients_character_set() {
        let latin1 = Charset::named("latin1").unwrap();
        let read = |kind: ColumnType| {
            let packet = [0, 1, kind as u8, 0, 2, b'a', 0xE9];
            let mut values = Vec::new();
            Parameters::default().read(&packet, 1, latin1, &mut values).unwrap();
            values.remove(0)
        };
        assert_eq!(read(ColumnType::MYSQL_TYPE_STRING), Value::Text("aé".into()));
        assert_eq!(read(ColumnType::MYSQL_TYPE_BLOB), Value::Bytes(Arc::from(*b"a\xE9")));
    }

    #[test]
    fn decimals_keep_their_digits() {
        let decimal = ColumnType::MYSQL_TYPE_NEWDECIMAL as u8;
        let packet = [&[0, 1, decimal, 0, 5][..], b"-1.50"].concat();
        let mut values = Vec::new();
        Parameters::default().read(&packet, 1, Charset::UTF8MB4, &mut values).unwrap();
        assert_eq!(values, [Value::Decimal(Decimal::parse("-1.50", 65, 2).unwrap())]);
    }

    #[test]
    fn long_data_is_used_once() {
        let mut parameters = Parameters::default();
        assert!(parameters.add_long(2, 1, b"ab"));
        assert!(parameters.add_long(2, 1, b"cd"));
        assert!(!parameters.add_long(2, 2, b"ef"));
        assert_eq!(parameters.long_bytes(), 4);
        let string = ColumnType::MYSQL_TYPE_STRING as u8;
        let mut values = Vec::new();
        let packet = [0, 1, 1, 0, string, 0, 7];
        parameters.read(&packet, 2, Charset::UTF8MB4, &mut values).unwrap();
        assert_eq!(values, [Value::Int(7), Value::Text("abcd".into())]);
        assert_eq!(parameters.long_bytes(), 0);
        assert!(parameters.read(&packet, 2, Charset::UTF8MB4, &mut values).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_handled(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            count in 0_usize..20,
        ) {
            let mut values = Vec::new();
            if Parameters::default().read(&bytes, count, Charset::UTF8MB4, &mut values).is_some() {
                prop_assert_eq!(values.len(), count);
            }
        }
    }
}
