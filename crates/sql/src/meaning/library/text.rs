//! Text functions.

use std::borrow::Cow;

use remora_mysql::ErrorCode;

use super::{
    super::{
        aggregate::MAX_CONCAT_BYTES,
        call::{Call, TypeContext},
        collation, encoding,
        function::{Caching, Definition, MANY},
        types::{ExprType, UNBOUNDED},
        value::SqlValue,
    },
    control::text_type,
};
use crate::Result;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("concat", 1, MANY, joined_type, concat),
    Definition::new("concat_ws", 2, MANY, joined_ws_type, concat_ws),
    Definition::new("lower", 1, 1, same_text, |_, args| mapped(args, lower_letters)),
    Definition::new("upper", 1, 1, same_text, |_, args| mapped(args, uppercase)),
    Definition::new("reverse", 1, 1, same_text, reverse),
    Definition::new("substring", 2, 3, substring_type, substring),
    Definition::new("left", 2, 2, left_type, left),
    Definition::new("right", 2, 2, left_type, right),
    Definition::new("substring_index", 3, 3, same_text, substring_index),
    Definition::new("lpad", 3, 3, pad_type, |call, args| pad(call, args, true))
        .cached(Caching::ByLength(1)),
    Definition::new("rpad", 3, 3, pad_type, |call, args| pad(call, args, false))
        .cached(Caching::ByLength(1)),
    Definition::new("ltrim", 1, 1, same_text, |call, args| trimmed(call, args, true, false)),
    Definition::new("rtrim", 1, 1, same_text, |call, args| trimmed(call, args, false, true)),
    Definition::new("trim", 2, 3, trim_type, trim),
    Definition::new("replace", 3, 3, replace_type, replace),
    Definition::new("repeat", 2, 2, repeat_type, repeat).cached(Caching::ByLength(1)),
    Definition::new("space", 1, 1, space_type, space).cached(Caching::ByLength(0)),
    Definition::new("insert", 4, 4, insert_type, insert),
    Definition::new("elt", 2, MANY, elt_type, elt),
    Definition::new("quote", 1, 1, quote_type, quote),
    Definition::new("make_set", 2, MANY, make_set_type, make_set),
    Definition::new("export_set", 3, 5, export_set_type, export_set),
    Definition::new("soundex", 1, 1, soundex_type, soundex),
    Definition::new("to_base64", 1, 1, base64_type, to_base64),
    Definition::new("from_base64", 1, 1, from_base64_type, from_base64),
    Definition::new("hex", 1, 1, hex_type, hex),
    Definition::new("unhex", 1, 1, unhex_type, unhex),
    Definition::new("char", 1, MANY, char_type, char),
    Definition::new("concat_limit", 1, 1, same_kind, concat_limit),
];

fn all_present(args: &[SqlValue<'_>]) -> bool {
    !args.iter().any(SqlValue::is_null)
}

/// The result of a text function: bytes if the result type is binary; NULL if it is too long.
fn made<'a>(call: &Call<'_>, name: &str, bytes: Vec<u8>) -> SqlValue<'a> {
    if bytes.len() as u64 > call.longest_text() {
        return call.too_long(name);
    }
    if !call.result.is_text() {
        return SqlValue::bytes(bytes);
    }
    // Invalid text is refused where the value is used.
    String::from_utf8(bytes)
        .map_or_else(|error| SqlValue::bytes(error.into_bytes()), SqlValue::text)
}

/// The bytes of an argument as a part of the result.
fn part_of<'v>(call: &Call<'_>, value: &'v SqlValue<'_>) -> Result<Cow<'v, [u8]>> {
    collation::octets_in(value, call.result.collation)
}

fn mapped<'a>(args: &[SqlValue<'a>], map: fn(&str) -> String) -> Result<SqlValue<'a>> {
    Ok(match args.first() {
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(SqlValue::Bytes(bytes)) => SqlValue::Bytes(bytes.clone()),
        Some(value) => SqlValue::text(map(&value.string().unwrap_or_default())),
    })
}

/// Each letter becomes one small letter, whatever stands beside it, as in MySQL.
fn lower_letters(text: &str) -> String {
    text.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// Converts each character to upper case. Those that would become several characters stay.
fn uppercase(text: &str) -> String {
    let upper = |letter: char| {
        let mut upper = letter.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(single), None) => single,
            _ => letter,
        }
    };
    text.chars().map(upper).collect()
}

fn everything(typing: &TypeContext<'_>) -> Vec<usize> {
    (0..typing.types.len()).collect()
}

fn joined_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.types.iter().fold(0u32, |sum, kind| sum.saturating_add(kind.characters()));
    let kind = text_type(typing, &everything(typing), length)?;
    Ok(ExprType { not_null: typing.all_present(), ..kind })
}

fn joined_ws_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let between = u32::try_from(typing.types.len().saturating_sub(2)).unwrap_or(0);
    let length =
        typing.types.iter().skip(1).fold(0u32, |sum, kind| sum.saturating_add(kind.characters()));
    let length = length.saturating_add(between.saturating_mul(typing.get(0).characters()));
    text_type(typing, &everything(typing), length)
}

fn same_text(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = text_type(typing, &[0], typing.get(0).characters())?;
    Ok(ExprType { not_null: typing.get(0).not_null, ..kind })
}

fn concat<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let mut whole = Vec::new();
    for value in args {
        whole.extend_from_slice(&part_of(call, value)?);
    }
    Ok(made(call, "concat", whole))
}

fn concat_ws<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((separator, values)) = args.split_first() else { return Ok(SqlValue::Null) };
    if separator.is_null() {
        return Ok(SqlValue::Null);
    }
    let separator = part_of(call, separator)?;
    let present = values.iter().filter(|value| !value.is_null());
    let parts: Vec<_> = present.map(|value| part_of(call, value)).collect::<Result<_>>()?;
    Ok(made(call, "concat_ws", parts.join(separator.as_ref())))
}

fn reverse<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(match args.first() {
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(SqlValue::Bytes(bytes)) => {
            SqlValue::bytes(bytes.iter().rev().copied().collect::<Vec<u8>>())
        }
        Some(value) => {
            SqlValue::text(value.string().unwrap_or_default().chars().rev().collect::<String>())
        }
    })
}

/// The units of a text that positions count: characters, or bytes of a binary string.
enum Units<'v> {
    Letters(Vec<char>),
    Bytes(Cow<'v, [u8]>),
}

impl Units<'_> {
    fn of<'v>(value: &'v SqlValue<'_>) -> Option<Units<'v>> {
        Some(match value {
            SqlValue::Bytes(_) => Units::Bytes(value.octets()?),
            value => Units::Letters(value.string()?.chars().collect()),
        })
    }

    /// The units of a part of the result.
    fn within<'v>(call: &Call<'_>, value: &'v SqlValue<'_>) -> Result<Units<'v>> {
        Ok(match call.result.is_text() {
            true => {
                let text = collation::string_in(value, call.result.collation)?;
                Units::Letters(text.chars().collect())
            }
            false => Units::Bytes(value.octets().unwrap_or_default()),
        })
    }

    /// Appends the bytes of the units in a range.
    fn push_to(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        match self {
            Self::Letters(letters) => {
                let text: String = letters.get(from..to).unwrap_or(&[]).iter().collect();
                out.extend_from_slice(text.as_bytes());
            }
            Self::Bytes(bytes) => out.extend_from_slice(bytes.get(from..to).unwrap_or(&[])),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Letters(letters) => letters.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn part(&self, from: usize, to: usize) -> SqlValue<'static> {
        match self {
            Self::Letters(letters) => {
                SqlValue::text(letters.get(from..to).unwrap_or(&[]).iter().collect::<String>())
            }
            Self::Bytes(bytes) => SqlValue::bytes(bytes.get(from..to).unwrap_or(&[])),
        }
    }
}

fn substring_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let whole = typing.get(0).characters();
    let length = match typing.constant(2) {
        Some(length) => u32::try_from(length.max(0)).unwrap_or(UNBOUNDED).min(whole),
        None => whole,
    };
    text_type(typing, &[0], length)
}

fn substring<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, from, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let Some(units) = Units::of(value) else { return Ok(SqlValue::Null) };
    let length = i64::try_from(units.len()).unwrap_or(i64::MAX);
    let from = from.count(call);
    let start = match from {
        0 => return Ok(units.part(0, 0)),
        1.. => from - 1,
        _ => length.saturating_add(from),
    };
    if start < 0 || start >= length {
        return Ok(units.part(0, 0));
    }
    let wanted = rest.first().map_or(length, |wanted| wanted.count(call)).max(0);
    let end = start.saturating_add(wanted).min(length);
    Ok(units.part(start as usize, end as usize))
}

fn left_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let whole = typing.get(0).characters();
    let length = typing
        .constant(1)
        .map_or(whole, |length| u32::try_from(length.max(0)).unwrap_or(UNBOUNDED).min(whole));
    text_type(typing, &[0], length)
}

fn left<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, count] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let count = usize::try_from(count.count(call)).unwrap_or(0);
    let units = Units::of(value);
    Ok(SqlValue::or_null(units, |units| units.part(0, count.min(units.len()))))
}

fn right<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, count] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let count = usize::try_from(count.count(call)).unwrap_or(0);
    let units = Units::of(value);
    Ok(SqlValue::or_null(units, |units| units.part(units.len().saturating_sub(count), units.len())))
}

fn substring_index<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, separator, count] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let (text, separator) = (part_of(call, value)?, part_of(call, separator)?);
    let count = count.count(call);
    if separator.is_empty() || count == 0 {
        return Ok(made(call, "substring_index", Vec::new()));
    }
    let places: Vec<usize> = memchr::memmem::find_iter(&text, &*separator).collect();
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let part = if count > 0 {
        places.get(wanted - 1).map_or(&*text, |at| text.get(..*at).unwrap_or_default())
    } else {
        match places.len().checked_sub(wanted).and_then(|index| places.get(index)) {
            Some(at) => text.get(at + separator.len()..).unwrap_or_default(),
            None => &*text,
        }
    };
    Ok(made(call, "substring_index", part.to_vec()))
}

fn pad_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing
        .constant(1)
        .map_or(UNBOUNDED, |length| u32::try_from(length.max(0)).unwrap_or(UNBOUNDED));
    let kind = text_type(typing, &[0], length)?;
    Ok(ExprType { not_null: false, ..kind })
}

fn pad<'a>(call: &Call<'_>, args: &[SqlValue<'a>], at_left: bool) -> Result<SqlValue<'a>> {
    let [value, length, with] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let length = length.count(call);
    let Ok(length) = usize::try_from(length) else { return Ok(SqlValue::Null) };
    if length as u64 > call.longest_text() {
        return Ok(call.too_long(if at_left { "lpad" } else { "rpad" }));
    }
    let name = if at_left { "lpad" } else { "rpad" };
    let (units, with) = (Units::within(call, value)?, Units::within(call, with)?);
    let mut whole = Vec::new();
    if units.len() >= length {
        units.push_to(0, length, &mut whole);
        return Ok(made(call, name, whole));
    }
    if with.len() == 0 {
        return Ok(value.clone());
    }
    if !at_left {
        units.push_to(0, units.len(), &mut whole);
    }
    let missing = length - units.len();
    let mut padding = Vec::new();
    with.push_to(0, with.len(), &mut padding);
    whole.extend_from_slice(&padding.repeat(missing / with.len()));
    with.push_to(0, missing % with.len(), &mut whole);
    if at_left {
        units.push_to(0, units.len(), &mut whole);
    }
    Ok(made(call, name, whole))
}

fn trim_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    text_type(typing, &[1], typing.get(1).characters())
}

fn trim<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [side, value, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let side = side.string().unwrap_or_default();
    let what = rest.first().map(|what| part_of(call, what)).transpose()?;
    let (starts, ends) = (side != "TRAILING", side != "LEADING");
    without(call, value, what.as_deref().unwrap_or(b" "), starts, ends)
}

fn trimmed<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    starts: bool,
    ends: bool,
) -> Result<SqlValue<'a>> {
    match args.first() {
        None | Some(SqlValue::Null) => Ok(SqlValue::Null),
        Some(value) => without(call, value, b" ", starts, ends),
    }
}

/// Strips a text from the start and the end of a value, repeatedly.
fn without<'a>(
    call: &Call<'_>,
    value: &SqlValue<'a>,
    what: &[u8],
    starts: bool,
    ends: bool,
) -> Result<SqlValue<'a>> {
    let whole = part_of(call, value)?;
    if what.is_empty() {
        return Ok(value.clone());
    }
    let mut rest = whole.as_ref();
    while let Some(behind) = rest.strip_prefix(what).filter(|_| starts) {
        rest = behind;
    }
    while let Some(before) = rest.strip_suffix(what).filter(|_| ends) {
        rest = before;
    }
    Ok(made(call, "trim", rest.to_vec()))
}

fn replace_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let (whole, from, to) = (typing.get(0), typing.get(1), typing.get(2));
    let growth = to.characters().saturating_sub(from.characters().max(1));
    let length = match (growth, from.characters()) {
        (0, _) => whole.characters(),
        (growth, from) => {
            let most = whole.characters() / from.max(1);
            whole.characters().saturating_add(most.saturating_mul(growth))
        }
    };
    text_type(typing, &[0], length)
}

fn replace<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, from, to] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let (whole, from, to) = (part_of(call, value)?, part_of(call, from)?, part_of(call, to)?);
    if from.is_empty() {
        return Ok(value.clone());
    }
    let found = memchr::memmem::find_iter(&whole, &*from);
    let count = found.clone().count();
    let kept = whole.len().saturating_sub(count.saturating_mul(from.len()));
    let length = count.saturating_mul(to.len()).saturating_add(kept);
    if length as u64 > call.longest_text() {
        return Ok(call.too_long("replace"));
    }
    let (mut out, mut behind) = (Vec::with_capacity(length), 0);
    for at in found {
        out.extend_from_slice(whole.get(behind..at).unwrap_or_default());
        out.extend_from_slice(&to);
        behind = at + from.len();
    }
    out.extend_from_slice(whole.get(behind..).unwrap_or_default());
    Ok(made(call, "replace", out))
}

fn repeat_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.constant(1).map_or(UNBOUNDED, |count| {
        let count = u32::try_from(count).unwrap_or(UNBOUNDED);
        typing.get(0).characters().saturating_mul(count)
    });
    text_type(typing, &[0], length)
}

fn repeat<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, count] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let bytes = value.octets().unwrap_or_default();
    let count = u64::try_from(count.count(call)).unwrap_or(0);
    let length = (bytes.len() as u64).saturating_mul(count);
    if length > call.longest_text() {
        return Ok(call.too_long("repeat"));
    }
    Ok(made(call, "repeat", bytes.repeat(count as usize)))
}

fn space_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing
        .constant(0)
        .map_or(UNBOUNDED, |count| u32::try_from(count.max(0)).unwrap_or(UNBOUNDED));
    Ok(ExprType::text(length, typing.collation))
}

fn space<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match args {
        [count] if !count.is_null() => repeat(call, &[SqlValue::text(" "), count.clone()]),
        _ => Ok(SqlValue::Null),
    }
}

fn insert_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.get(0).characters().saturating_add(typing.get(3).characters());
    text_type(typing, &[0], length)
}

fn insert<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, place, length, new] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let (units, new) = (Units::within(call, value)?, part_of(call, new)?);
    let start = usize::try_from(place.count(call).saturating_sub(1)).unwrap_or(usize::MAX);
    if start >= units.len() {
        return Ok(value.clone());
    }
    let wanted = usize::try_from(length.count(call)).unwrap_or(usize::MAX);
    let end = start.saturating_add(wanted).min(units.len());
    let mut whole = Vec::new();
    units.push_to(0, start, &mut whole);
    whole.extend_from_slice(&new);
    units.push_to(end, units.len(), &mut whole);
    Ok(made(call, "insert", whole))
}

fn elt_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.types.iter().skip(1).map(ExprType::characters).max().unwrap_or(0);
    let of: Vec<usize> = (1..typing.types.len()).collect();
    text_type(typing, &of, length)
}

fn elt<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((place, values)) = args.split_first() else { return Ok(SqlValue::Null) };
    if place.is_null() {
        return Ok(SqlValue::Null);
    }
    let place = usize::try_from(place.count(call)).ok().and_then(|place| place.checked_sub(1));
    Ok(place.and_then(|place| values.get(place)).cloned().unwrap_or(SqlValue::Null))
}

fn quote_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.get(0).characters().saturating_mul(2).saturating_add(2);
    let kind = text_type(typing, &[0], length)?;
    // The result for a binary argument is a text too.
    Ok(if kind.is_text() { kind } else { ExprType::text(length, typing.collation) })
}

fn quote<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = args.first().filter(|value| !value.is_null()) else {
        return Ok(SqlValue::text("NULL"));
    };
    let text = collation::string_in(value, call.result.collation)?;
    let mut whole = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => whole.extend(['\\', letter]),
            '\0' => whole.push_str("\\0"),
            '\u{1a}' => whole.push_str("\\Z"),
            other => whole.push(other),
        }
    }
    whole.push('\'');
    Ok(SqlValue::text(whole))
}

fn make_set_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let of: Vec<usize> = (1..typing.types.len()).collect();
    let length = typing
        .types
        .iter()
        .skip(1)
        .fold(0u32, |sum, kind| sum.saturating_add(kind.characters()).saturating_add(1));
    text_type(typing, &of, length.saturating_sub(1))
}

fn make_set<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((bits, words)) = args.split_first() else { return Ok(SqlValue::Null) };
    if bits.is_null() {
        return Ok(SqlValue::Null);
    }
    let bits = bits.integer(call);
    let chosen = words.iter().take(64).enumerate().filter(|(place, _)| bits >> place & 1 == 1);
    let chosen = chosen.map(|(_, word)| word).filter(|word| !word.is_null());
    let chosen: Vec<_> = chosen.map(|word| part_of(call, word)).collect::<Result<_>>()?;
    Ok(made(call, "make_set", chosen.join(b",".as_slice())))
}

fn export_set_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let word = typing.get(1).characters().max(typing.get(2).characters());
    let of: Vec<usize> = (1..typing.types.len().min(4)).collect();
    text_type(typing, &of, word.saturating_mul(64).saturating_add(63))
}

fn export_set<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [bits, on, off, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if !all_present(args) {
        return Ok(SqlValue::Null);
    }
    let bits = bits.integer(call);
    let separator = rest.first().map(|separator| part_of(call, separator)).transpose()?;
    let separator = separator.as_deref().unwrap_or(b",");
    let count = rest.get(1).map_or(64, |count| count.count(call));
    let count = if (0..=64).contains(&count) { count } else { 64 };
    let (on, off) = (part_of(call, on)?, part_of(call, off)?);
    let words: Vec<&[u8]> =
        (0..count).map(|place| if bits >> place & 1 == 1 { &*on } else { &*off }).collect();
    let length: usize = words.iter().map(|word| word.len() + separator.len()).sum();
    if length as u64 > call.longest_text() {
        return Ok(call.too_long("export_set"));
    }
    Ok(made(call, "export_set", words.join(separator)))
}

fn soundex_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    text_type(typing, &[0], typing.get(0).characters().max(4))
}

fn soundex<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = args.first().filter(|value| !value.is_null()) else {
        return Ok(SqlValue::Null);
    };
    let text = match value {
        // Bytes beyond ASCII do not count as letters.
        SqlValue::Bytes(bytes) => {
            bytes.iter().filter(|byte| byte.is_ascii()).map(|byte| char::from(*byte)).collect()
        }
        value => value.string().unwrap_or_default(),
    };
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => Some('1'),
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => Some('2'),
        'D' | 'T' => Some('3'),
        'L' => Some('4'),
        'M' | 'N' => Some('5'),
        'R' => Some('6'),
        'H' | 'W' => None,
        _ => Some('0'),
    };
    let mut letters = text.chars().filter(|letter| letter.is_alphabetic());
    let Some(first) = letters.next() else { return Ok(SqlValue::text("")) };
    let mut out: String = first.to_uppercase().take(1).collect();
    let mut last = code(first);
    for letter in letters {
        // Vowels, H and W do not separate equal codes.
        let Some(next) = code(letter).filter(|next| *next != '0') else { continue };
        if Some(next) != last {
            out.push(next);
        }
        last = Some(next);
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    Ok(SqlValue::text(out))
}

fn base64_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let bytes = if kind.is_text() { kind.length.saturating_mul(4) } else { kind.characters() };
    let letters = bytes.div_ceil(3).saturating_mul(4);
    Ok(ExprType::text(letters.saturating_add(letters.saturating_sub(1) / 76), typing.collation))
}

fn to_base64<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    let letters = encoding::base64(&bytes);
    let lines: Vec<&[u8]> = letters.as_bytes().chunks(76).collect();
    Ok(made(call, "to_base64", lines.join(&b'\n')))
}

fn from_base64_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(typing.get(0).characters() / 4 * 3))
}

fn from_base64<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string);
    Ok(SqlValue::or_null(text.and_then(|text| encoding::from_base64(&text)), SqlValue::bytes))
}

fn hex_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let length = match kind.is_string() {
        true if kind.is_text() => kind.length.saturating_mul(8),
        true => kind.length.saturating_mul(2),
        false => 16,
    };
    Ok(ExprType::text(length, typing.collation))
}

fn hex<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(match args.first() {
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(
            value @ (SqlValue::Text(_)
            | SqlValue::Bytes(_)
            | SqlValue::Json(_)
            | SqlValue::Member(..)),
        ) => SqlValue::text(encoding::hex(&value.octets().unwrap_or_default())),
        Some(value @ (SqlValue::Date(_) | SqlValue::DateTime(..) | SqlValue::Time(..))) => {
            SqlValue::text(encoding::hex(value.string().unwrap_or_default().as_bytes()))
        }
        Some(number) => {
            let bits = number.integer(call);
            SqlValue::text(format!("{:X}", u64::try_from(bits).unwrap_or(bits as i64 as u64)))
        }
    })
}

fn unhex_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(typing.get(0).characters().saturating_mul(2)))
}

fn unhex<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(text) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    let bytes = encoding::from_hex(&text);
    if bytes.is_none() {
        call.warn(ErrorCode::WrongValueForFunction, || {
            let shown = match args.first() {
                Some(SqlValue::Bytes(bytes)) => {
                    format!("'0x{}'", encoding::hex(bytes).to_lowercase())
                }
                _ => format!("''{text}''"),
            };
            format!("Incorrect string value: {shown} for function unhex")
        });
    }
    Ok(SqlValue::or_null(bytes, SqlValue::bytes))
}

fn char_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let count = u32::try_from(typing.types.len()).unwrap_or(UNBOUNDED);
    Ok(ExprType::binary(count.saturating_mul(4)))
}

fn char<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let mut bytes = Vec::new();
    for value in args.iter().filter(|value| !value.is_null()) {
        let number = value.integer(call) as u32;
        let all = number.to_be_bytes();
        let zeros = (number.leading_zeros() / 8).min(3) as usize;
        bytes.extend_from_slice(all.get(zeros..).unwrap_or(&[]));
    }
    Ok(SqlValue::bytes(bytes))
}

fn same_kind(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(typing.get(0))
}

/// Cuts the result of GROUP_CONCAT to `group_concat_max_len`.
fn concat_limit<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let most = call.context.map_or(1_024, |context| context.group_concat_max_bytes);
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(MAX_CONCAT_BYTES - 1);
    let Some(value) = args.first() else { return Ok(SqlValue::Null) };
    let Some(bytes) = value.octets().filter(|bytes| bytes.len() > most) else {
        return Ok(value.clone());
    };
    call.warn(ErrorCode::CutByGroupConcat, || "Row 1 was cut by GROUP_CONCAT()".to_owned());
    let kept = bytes.get(..most).unwrap_or(&[]);
    Ok(match (value, std::str::from_utf8(kept)) {
        (SqlValue::Bytes(_), _) => SqlValue::bytes(kept),
        (_, Ok(text)) => SqlValue::text(text),
        (_, Err(error)) => {
            let whole = kept.get(..error.valid_up_to()).unwrap_or(&[]);
            SqlValue::text(String::from_utf8_lossy(whole).into_owned())
        }
    })
}
