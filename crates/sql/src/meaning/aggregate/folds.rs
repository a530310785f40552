//! Our own aggregates, as folds over rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use remora_mysql::{Collation, ErrorCode, messages};
use rustc_hash::FxHashSet;

use super::super::{
    call::Call,
    collation,
    compare::{ComparisonDomain, compare_values},
    json::{self, Json},
    types::ExprType,
    value::SqlValue,
};
use super::COUNT_NUMBERS;
use crate::{Error, Result, multi::numbers};

/// One more than the most bytes of a GROUP_CONCAT. Longer results are cut with a warning where
/// `group_concat_max_len` is known.
pub(in crate::meaning) const MAX_CONCAT_BYTES: usize = 64 << 20;

/// An aggregate in progress.
pub(super) trait Fold: Send + Sync {
    /// Adds the arguments of a row.
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()>;

    /// Adds the state of another partition.
    fn merge(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        self.add(args, call)
    }

    /// The result over all rows so far.
    fn value(&self) -> SqlValue<'_>;

    /// The state to be merged into another fold.
    fn state(&self) -> SqlValue<'_> {
        self.value()
    }

    /// The approximate memory of the state, in bytes.
    fn bytes(&self) -> usize {
        0
    }
}

/// The result type for an argument of this type.
pub(super) fn result(name: &str, kind: &ExprType) -> ExprType {
    match name {
        "group_concat" => ExprType::text(super::super::types::UNBOUNDED, kind.collation),
        "json_arrayagg" | "json_objectagg" => ExprType::json(),
        "bit_and" | "bit_or" | "bit_xor" => ExprType::uint(21).not_null(),
        COUNT_NUMBERS => ExprType::int(21).not_null(),
        _ => kind.clone(),
    }
}

/// The type of a fold's state.
pub(super) fn state_type(name: &str, result: &FieldRef) -> FieldRef {
    match name {
        "group_concat" | COUNT_NUMBERS => Arc::new(ExprType::binary(u32::MAX).field(name)),
        _ => Arc::clone(result),
    }
}

/// The fold for an aggregate.
pub(super) fn new(name: &str, distinct: bool) -> Box<dyn Fold> {
    match name {
        "group_concat" => Box::new(Joined { distinct, ..Joined::default() }),
        COUNT_NUMBERS => Box::new(Counted::default()),
        "json_arrayagg" => Box::new(Elements::default()),
        "json_objectagg" => Box::new(Members::default()),
        "bit_and" => Box::new(Bits { bits: u64::MAX, of: |a, b| a & b }),
        "bit_or" => Box::new(Bits { bits: 0, of: |a, b| a | b }),
        "bit_xor" => Box::new(Bits { bits: 0, of: |a, b| a ^ b }),
        "min" => Box::new(Best { value: SqlValue::Null, wins: std::cmp::Ordering::is_lt }),
        "max" => Box::new(Best { value: SqlValue::Null, wins: std::cmp::Ordering::is_gt }),
        _ => Box::new(Best { value: SqlValue::Null, wins: |_| false }),
    }
}

/// The least, the greatest or the first value.
struct Best {
    value: SqlValue<'static>,
    wins: fn(std::cmp::Ordering) -> bool,
}

impl Fold for Best {
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        let (Some(value), Some(kind)) = (args.first(), call.type_of(0)) else { return Ok(()) };
        if value.is_null() {
            return Ok(());
        }
        // MySQL compares ENUM values as texts in MIN and MAX.
        let comparing = ComparisonDomain::of(kind, kind)?;
        let better = match compare_values(&comparing, value, &self.value, call)? {
            Some(order) => (self.wins)(order),
            None => self.value.is_null(),
        };
        if better {
            self.value = value.clone().into_owned();
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        self.value.clone()
    }

    fn bytes(&self) -> usize {
        self.value.octets().map_or(0, |bytes| bytes.len())
    }
}

/// COUNT(DISTINCT set): collects the numbers of all sets.
#[derive(Default)]
struct Counted {
    seen: FxHashSet<i64>,
}

impl Fold for Counted {
    fn add(&mut self, args: &[SqlValue<'_>], _call: &Call<'_>) -> Result<()> {
        if let Some(SqlValue::Json(set)) = args.first() {
            self.seen.extend(numbers(set));
        }
        Ok(())
    }

    fn merge(&mut self, args: &[SqlValue<'_>], _call: &Call<'_>) -> Result<()> {
        if let Some(SqlValue::Bytes(state)) = args.first() {
            let (numbers, _) = state.as_chunks::<8>();
            self.seen.extend(numbers.iter().map(|bytes| i64::from_be_bytes(*bytes)));
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        SqlValue::Int(i64::try_from(self.seen.len()).unwrap_or(i64::MAX))
    }

    fn state(&self) -> SqlValue<'_> {
        SqlValue::bytes(
            self.seen.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>(),
        )
    }

    fn bytes(&self) -> usize {
        self.seen.capacity() * (size_of::<i64>() + 1)
    }
}

struct Bits {
    bits: u64,
    of: fn(u64, u64) -> u64,
}

impl Fold for Bits {
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        if let Some(value) = args.first().filter(|value| !value.is_null()) {
            let number = value.integer(call);
            let bits = u64::try_from(number).unwrap_or(number as i64 as u64);
            self.bits = (self.of)(self.bits, bits);
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        SqlValue::Uint(self.bits)
    }
}

/// GROUP_CONCAT. The arguments are the text, the separator, and for each sort key the key and
/// whether it is descending.
#[derive(Default)]
struct Joined {
    distinct: bool,
    seen: FxHashSet<Vec<u8>>,
    /// Sort key and text of each row.
    parts: Vec<(Vec<u8>, Vec<u8>)>,
    is_bytes: bool,
    separator: Vec<u8>,
    /// The approximate memory of `parts`, in bytes.
    held: usize,
}

impl Joined {
    fn push(&mut self, key: Vec<u8>, text: Vec<u8>, same: Vec<u8>) {
        let seen = same.len();
        if self.distinct && !self.seen.insert(same) {
            return;
        }
        self.held += key.len() + text.len() + 48 + if self.distinct { seen } else { 0 };
        self.parts.push((key, text));
    }

    fn joined(&self) -> Option<Vec<u8>> {
        let mut parts: Vec<&(Vec<u8>, Vec<u8>)> = self.parts.iter().collect();
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        let mut text: Option<Vec<u8>> = None;
        for (_, part) in parts {
            match &mut text {
                None => text = Some(part.clone()),
                Some(text) if text.len() < MAX_CONCAT_BYTES => {
                    text.extend_from_slice(&self.separator);
                    text.extend_from_slice(part);
                }
                Some(_) => {}
            }
        }
        text.map(|mut text| {
            text.truncate(MAX_CONCAT_BYTES);
            text
        })
    }
}

/// Appends bytes that sort as the value does, or inversely if descending.
fn sort_bytes(value: &SqlValue<'_>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        SqlValue::Null => out.push(0),
        SqlValue::Int(number) => push_number(i128::from(*number), out),
        SqlValue::Uint(number) | SqlValue::Member(_, number) => {
            push_number(i128::from(*number), out)
        }
        SqlValue::Date(moment) | SqlValue::DateTime(moment, _) => {
            push_number(i128::from(moment.pack()), out)
        }
        SqlValue::Time(micros, _) => push_number(i128::from(*micros), out),
        SqlValue::Dec(number) => {
            let mut bytes = number.units.to_be_bytes();
            bytes[0] ^= 0x80;
            out.push(1);
            out.extend_from_slice(&bytes);
        }
        SqlValue::Float(_) | SqlValue::Double(_) => {
            let number = match value {
                SqlValue::Float(number) => f64::from(*number),
                SqlValue::Double(number) => *number,
                _ => 0.0,
            };
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.push(1);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        SqlValue::Text(_) | SqlValue::Bytes(_) | SqlValue::Json(_) => {
            out.push(1);
            for byte in value.octets().unwrap_or_default().iter() {
                // The terminator must sort before every byte.
                out.extend_from_slice(if *byte == 0 {
                    &[0, 255]
                } else {
                    std::slice::from_ref(byte)
                });
            }
            out.extend_from_slice(&[0, 0]);
        }
    }
    if descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn push_number(number: i128, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&((number as u128) ^ (1 << 127)).to_be_bytes());
}

impl Fold for Joined {
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        let Some(value) = args.first() else { return Ok(()) };
        let Some(bytes) = value.octets() else { return Ok(()) };
        self.is_bytes = matches!(value, SqlValue::Bytes(_));
        if let Some(separator) = args.get(1).filter(|separator| !separator.is_null()) {
            let collation = call.type_of(0).filter(|kind| kind.is_text());
            let collation = collation.map_or(Collation::BINARY, |kind| kind.collation);
            self.separator = collation::octets_in(separator, collation)?.into_owned();
        }
        let mut key = Vec::new();
        for pair in args.get(2..).unwrap_or(&[]).chunks(2) {
            if let [value, descending] = pair {
                sort_bytes(value, descending.count(call) == 1, &mut key);
            }
        }
        let same = match (value, call.type_of(0)) {
            (SqlValue::Text(text), Some(kind)) if self.distinct => {
                collation::key(text, kind.collation).into_owned()
            }
            _ => bytes.to_vec(),
        };
        self.push(key, bytes.into_owned(), same);
        Ok(())
    }

    fn merge(&mut self, args: &[SqlValue<'_>], _call: &Call<'_>) -> Result<()> {
        let Some(SqlValue::Bytes(state)) = args.first() else { return Ok(()) };
        let mut rest = state.as_ref();
        let flags = take(&mut rest);
        self.is_bytes |= flags.first() == Some(&1);
        let separator = take(&mut rest);
        if !separator.is_empty() {
            self.separator = separator;
        }
        while !rest.is_empty() {
            let (key, text) = (take(&mut rest), take(&mut rest));
            let same = text.clone();
            self.push(key, text, same);
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        match self.joined() {
            None => SqlValue::Null,
            Some(text) if self.is_bytes => SqlValue::bytes(text),
            Some(text) => SqlValue::text(String::from_utf8_lossy(whole_letters(&text))),
        }
    }

    fn state(&self) -> SqlValue<'_> {
        let mut out = Vec::new();
        put(&[u8::from(self.is_bytes)], &mut out);
        put(&self.separator, &mut out);
        for (key, text) in &self.parts {
            put(key, &mut out);
            put(text, &mut out);
        }
        SqlValue::bytes(out)
    }

    fn bytes(&self) -> usize {
        self.held
    }
}

/// Appends bytes with their length before them.
fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Reads bytes that [`put`] wrote.
fn take(rest: &mut &[u8]) -> Vec<u8> {
    let length = rest.get(..8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let length = length.map_or(0, |bytes| u64::from_be_bytes(bytes) as usize);
    let after = rest.get(8..).unwrap_or(&[]);
    let (taken, left) = after.split_at(length.min(after.len()));
    *rest = left;
    taken.to_vec()
}

/// Drops a partial character that a cut left at the end.
fn whole_letters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or(&[])
        }
        _ => bytes,
    }
}

#[derive(Default)]
struct Elements {
    values: Option<Vec<Json>>,
}

impl Fold for Elements {
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        let value = args.first().map_or(Json::Null, |it| json::of_typed(it, call.type_of(0)));
        self.values.get_or_insert_default().push(value);
        Ok(())
    }

    fn merge(&mut self, args: &[SqlValue<'_>], _call: &Call<'_>) -> Result<()> {
        if let Some(Json::Array(values)) = args.first().map(json::of_value) {
            self.values.get_or_insert_default().extend(values);
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        SqlValue::or_null(self.values.clone(), |values| json::to_value(&Json::Array(values)))
    }

    fn bytes(&self) -> usize {
        self.values.as_ref().map_or(0, |values| values.len() * size_of::<Json>())
    }
}

#[derive(Default)]
struct Members {
    values: Option<Vec<(String, Json)>>,
}

impl Fold for Members {
    fn add(&mut self, args: &[SqlValue<'_>], call: &Call<'_>) -> Result<()> {
        let Some(key) = args.first().and_then(SqlValue::string) else {
            let message = messages::JSON_NULL_KEY;
            return Err(Error::new(ErrorCode::JsonNullKey, message));
        };
        let value = args.get(1).map_or(Json::Null, |it| json::of_typed(it, call.type_of(1)));
        self.values.get_or_insert_default().push((key.into_owned(), value));
        Ok(())
    }

    fn merge(&mut self, args: &[SqlValue<'_>], _call: &Call<'_>) -> Result<()> {
        if let Some(Json::Object(members)) = args.first().map(json::of_value) {
            self.values.get_or_insert_default().extend(members);
        }
        Ok(())
    }

    fn value(&self) -> SqlValue<'_> {
        SqlValue::or_null(self.values.clone(), |members| json::to_value(&Json::object(members)))
    }

    fn bytes(&self) -> usize {
        self.values.as_ref().map_or(0, |values| values.len() * size_of::<Json>())
    }
}
