//! GTID_SUBSET and GTID_SUBTRACT, over sets in MySQL's notation.
//!
//! ```text
//! set      := [source] ("," [source])*
//! source   := uuid (":" (tag | interval))+          a tag applies to the intervals after it
//! interval := number ["-" number]                   tag := [a-z_][a-z0-9_]*
//! ```

use std::{collections::BTreeMap, fmt::Write};

use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("gtid_subset", 2, 2, subset_type, subset),
    Definition::new("gtid_subtract", 2, 2, subtract_type, subtract),
];

/// The greatest transaction number.
const MAX_NUMBER: u64 = i64::MAX as u64 - 1;
/// The most characters of a tag.
const MAX_TAG: usize = 32;

/// A range of numbers, both ends included.
type GtidInterval = (u64, u64);

/// Sorted intervals by server and tag. Transactions without a tag have the empty one.
#[derive(Default)]
struct Set(BTreeMap<([u8; 16], String), Vec<GtidInterval>>);

fn subset_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

fn subtract_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    // Each number taken away can split an interval, which adds a colon, a dash and two numbers.
    let taken = typing.get(1).length.saturating_mul(5);
    let length = typing.get(0).length.saturating_add(taken);
    Ok(ExprType::text(length, Collation::UTF8MB4_0900_AI_CI))
}

fn subset<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((some, all)) = sets(args)? else { return Ok(SqlValue::Null) };
    Ok(SqlValue::truth(some.without(&all).0.is_empty()))
}

fn subtract<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((from, taken)) = sets(args)? else { return Ok(SqlValue::Null) };
    Ok(SqlValue::text(from.without(&taken).text()))
}

/// Both arguments; `None` if one is NULL.
fn sets(args: &[SqlValue<'_>]) -> Result<Option<(Set, Set)>> {
    let [first, second] = args else { return Ok(None) };
    let (Some(first), Some(second)) = (first.string(), second.string()) else { return Ok(None) };
    Ok(Some((Set::read(&first)?, Set::read(&second)?)))
}

impl Set {
    /// Parses a set; 1772 if it is malformed.
    fn read(text: &str) -> Result<Self> {
        let mut set = Self::default();
        for source in text.split(',').map(str::trim).filter(|source| !source.is_empty()) {
            set.add(source).ok_or_else(|| {
                let message = messages::malformed_gtid_set(source);
                Error::new(ErrorCode::MalformedGtidSet, message)
            })?;
        }
        for intervals in set.0.values_mut() {
            merge(intervals);
        }
        set.0.retain(|_, intervals| !intervals.is_empty());
        Ok(set)
    }

    fn add(&mut self, source: &str) -> Option<()> {
        let (uuid, parts) = source.split_once(':')?;
        let uuid = uuid_of(uuid.trim())?;
        let mut tag = String::new();
        for part in parts.split(':').map(str::trim) {
            if part.starts_with(|first: char| first.is_ascii_digit()) {
                let (from, to) = interval_of(part)?;
                let intervals = self.0.entry((uuid, tag.clone())).or_default();
                // An interval that ends before it starts is empty.
                if from <= to {
                    intervals.push((from, to));
                }
            } else {
                tag = tag_of(part)?;
            }
        }
        Some(())
    }

    fn without(&self, taken: &Self) -> Self {
        let mut left = Self::default();
        for (source, intervals) in &self.0 {
            let rest = match taken.0.get(source) {
                Some(taken) => without(intervals, taken),
                None => intervals.clone(),
            };
            if !rest.is_empty() {
                left.0.insert(source.clone(), rest);
            }
        }
        left
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut before = None;
        for ((uuid, tag), intervals) in &self.0 {
            if before != Some(uuid) {
                text.push_str(if before.is_some() { ",\n" } else { "" });
                write_uuid(&mut text, uuid);
                before = Some(uuid);
            }
            if !tag.is_empty() {
                text.push(':');
                text.push_str(tag);
            }
            for (from, to) in intervals {
                let _ = match from == to {
                    true => write!(text, ":{from}"),
                    false => write!(text, ":{from}-{to}"),
                };
            }
        }
        text
    }
}

/// Sorts intervals and merges those that touch.
fn merge(intervals: &mut Vec<GtidInterval>) {
    intervals.sort_unstable();
    let mut merged: Vec<GtidInterval> = Vec::with_capacity(intervals.len());
    for &(from, to) in intervals.iter() {
        match merged.last_mut() {
            Some(last) if from <= last.1 + 1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    *intervals = merged;
}

/// Subtracts intervals. Both lists must be merged.
fn without(intervals: &[GtidInterval], taken: &[GtidInterval]) -> Vec<GtidInterval> {
    let mut left = Vec::new();
    let mut taken = taken.iter().peekable();
    for &(from, to) in intervals {
        let mut from = from;
        while taken.next_if(|taken| taken.1 < from).is_some() {}
        while let Some(&&(first, last)) = taken.peek()
            && first <= to
            && from <= to
        {
            if from < first {
                left.push((from, first - 1));
            }
            from = last + 1;
            if last >= to {
                break;
            }
            taken.next();
        }
        if from <= to {
            left.push((from, to));
        }
    }
    left
}

fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let parts: Vec<usize> = bare.split('-').map(str::len).collect();
    if !matches!(parts.as_slice(), [32] | [8, 4, 4, 4, 12]) {
        return None;
    }
    let digits = bare.chars().filter(|digit| *digit != '-').map(|digit| digit.to_digit(16));
    let digits: Vec<u32> = digits.collect::<Option<_>>()?;
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte * 16 + u8::try_from(*digit).unwrap_or(0));
    }
    Some(uuid)
}

fn write_uuid(text: &mut String, uuid: &[u8; 16]) {
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
}

fn tag_of(text: &str) -> Option<String> {
    let tag = text.to_ascii_lowercase();
    let is_right = tag.bytes().enumerate().all(|(place, byte)| match byte {
        b'a'..=b'z' | b'_' => true,
        b'0'..=b'9' => place > 0,
        _ => false,
    });
    (is_right && !tag.is_empty() && tag.len() <= MAX_TAG).then_some(tag)
}

fn interval_of(text: &str) -> Option<GtidInterval> {
    let number = |text: &str| {
        let number: u64 = text.trim().parse().ok()?;
        (number <= MAX_NUMBER).then_some(number)
    };
    match text.split_once('-') {
        Some((from, to)) => Some((number(from).filter(|from| *from > 0)?, number(to)?)),
        None => number(text).filter(|only| *only > 0).map(|only| (only, only)),
    }
}
