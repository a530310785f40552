//! Collations: which of two applies where texts meet. Sort keys are in [`remora_mysql::sort_key`].

use std::borrow::Cow;

pub(crate) use remora_mysql::sort_key::{
    AsciiLetters, ascii_letters, beginning_key, end_of, equal, is_bytes, is_exact, key, letter_key,
    push_key,
};
use remora_mysql::{Charset, Collation, ErrorCode};

use super::{
    types::{ExprType, coercibility},
    value::SqlValue,
};
use crate::{Error, Result};

/// The collation of a comparison of these types and its coercibility. If none is text, the
/// connection's.
pub(crate) fn aggregate_or<'a>(
    types: impl Iterator<Item = &'a ExprType>,
    connection: Collation,
) -> Result<(Collation, u8)> {
    united(types, connection, stronger)
}

/// The collation of a text that is made of texts of these types, and its coercibility. Two columns whose collations cannot
/// be mixed make a text without a collation: it compares by its code points, or by the collation of what it meets.
pub(crate) fn composed_or<'a>(
    types: impl Iterator<Item = &'a ExprType>,
    connection: Collation,
) -> Result<(Collation, u8)> {
    let mut mixed = None;
    let found = united(types, connection, |a, b| {
        if let Some(without) = mixed {
            // What COLLATE says applies to all.
            let is_explicit = b.1 == coercibility::EXPLICIT;
            mixed = (!is_explicit).then_some(without);
            return Ok(if is_explicit { b } else { without });
        }
        let met = stronger(a, b);
        let is_refused = a.1 == coercibility::EXPLICIT || a.0.charset() != b.0.charset();
        match met {
            Err(_) if !is_refused => {
                let bin = Collation::by_name(&format!("{}_bin", a.0.charset()));
                let found = (bin.unwrap_or(Collation::UTF8MB4_BIN), coercibility::NONE);
                mixed = Some(found);
                Ok(found)
            }
            met => met,
        }
    })?;
    Ok(mixed.unwrap_or(found))
}

/// The collation of these types, as pairs of them meet.
fn united<'a>(
    types: impl Iterator<Item = &'a ExprType>,
    connection: Collation,
    mut meet: impl FnMut((Collation, u8), (Collation, u8)) -> Result<(Collation, u8)>,
) -> Result<(Collation, u8)> {
    let mut found: Option<(Collation, u8)> = None;
    let mut ignored = None;
    for kind in types {
        if kind.is_null() || !(kind.is_string() || kind.kind == crate::SqlType::Json) {
            continue;
        }
        let next = (kind.collation, kind.coercibility);
        // The collation of a text that is always NULL applies only if there is no other.
        if kind.coercibility == coercibility::IGNORABLE {
            ignored = Some(next);
            continue;
        }
        found = Some(match found {
            None => next,
            Some(before) => meet(before, next)?,
        });
    }
    Ok(found.or(ignored).unwrap_or((connection, coercibility::NUMERIC)))
}

/// Like [`aggregate_or`], with the server's default if none is text.
pub(crate) fn aggregate<'a>(types: impl Iterator<Item = &'a ExprType>) -> Result<(Collation, u8)> {
    aggregate_or(types, Collation::UTF8MB4_0900_AI_CI)
}

fn stronger(a: (Collation, u8), b: (Collation, u8)) -> Result<(Collation, u8)> {
    if a.0 == b.0 {
        return Ok((a.0, a.1.min(b.1)));
    }
    if a.0 == Collation::BINARY || b.0 == Collation::BINARY {
        // The binary collation wins, unless the text's coercibility is stronger, as a column's
        // beside a literal's.
        let (binary, text) = if a.0 == Collation::BINARY { (a, b) } else { (b, a) };
        return Ok(if binary.1 <= text.1 { binary } else { text });
    }
    if a.1 != b.1 {
        return Ok(if a.1 < b.1 { a } else { b });
    }
    if a.1 == coercibility::EXPLICIT {
        return Err(illegal_mix(a, b));
    }
    // Texts are converted to the type that they meet.
    if a.0.is_of_type() != b.0.is_of_type() {
        return Ok(if a.0.is_of_type() { a } else { b });
    }
    if a.0.charset() == b.0.charset() {
        let is_bin = |collation: Collation| collation.name().ends_with("_bin");
        return match (is_bin(a.0), is_bin(b.0)) {
            (true, false) => Ok(a),
            (false, true) => Ok(b),
            _ => Err(illegal_mix(a, b)),
        };
    }
    match (takes(a.0.charset(), b.0.charset()), takes(b.0.charset(), a.0.charset())) {
        (true, false) => Ok(a),
        (false, true) => Ok(b),
        _ => Err(illegal_mix(a, b)),
    }
}

/// Whether texts in the narrow character set are converted to the wide one if their coercibility is
/// equal.
fn takes(wide: &str, narrow: &str) -> bool {
    let is_unicode = |charset: &str| charset.starts_with("utf") || charset == "ucs2";
    wide == "utf8mb4" || is_unicode(wide) && !is_unicode(narrow) || narrow == "ascii"
}

/// Bytes converted to text by the character set of a collation, since they meet a text that has
/// this collation; 3854 if they are invalid.
pub(crate) fn text_of_bytes(bytes: &[u8], collation: Collation) -> Result<String> {
    /// The most bytes shown in the error.
    const SHOWN: usize = 64;
    let charset = Charset::named(collation.charset()).unwrap_or_default();
    if let Some(text) = text_in(bytes, charset) {
        return Ok(text);
    }
    let shown = bytes.iter().take(SHOWN).map(|byte| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    });
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    let shown: String = shown.collect();
    let name = charset.name();
    let message = format!("Cannot convert string '{shown}{more}' from binary to {name}");
    Err(Error::new(ErrorCode::CannotConvertString, message))
}

/// The text of bytes in a character set; `None` if they are invalid.
fn text_in(bytes: &[u8], charset: Charset) -> Option<String> {
    let marks = |text: &[u8]| text.iter().filter(|byte| **byte == b'?').count();
    // Leading zero bytes of a character may be missing.
    let missing = bytes.len().next_multiple_of(charset.unit_bytes()) - bytes.len();
    let padded: Cow<'_, [u8]> = match missing {
        0 => Cow::Borrowed(bytes),
        missing => {
            let mut padded = vec![0; missing];
            padded.extend_from_slice(bytes);
            Cow::Owned(padded)
        }
    };
    let text = charset.decode_exact(&padded)?;
    // The decoder replaces invalid bytes by question marks.
    let is_whole = charset.unit_bytes() > 1 || marks(text.as_bytes()) == marks(bytes);
    is_whole.then(|| text.into_owned())
}

/// A value's bytes as a part of a text with this collation: binary strings are decoded by its
/// character set. For the binary collation, the bytes of any text; 3854 for bytes that are invalid.
pub(crate) fn octets_in<'v>(
    value: &'v SqlValue<'_>,
    collation: Collation,
) -> Result<Cow<'v, [u8]>> {
    match value {
        SqlValue::Bytes(bytes) if collation != Collation::BINARY => {
            text_of_bytes(bytes, collation).map(|text| Cow::Owned(text.into_bytes()))
        }
        value => Ok(value.octets().unwrap_or_default()),
    }
}

/// Likewise, as a text.
pub(crate) fn string_in<'v>(value: &'v SqlValue<'_>, collation: Collation) -> Result<Cow<'v, str>> {
    match value {
        SqlValue::Bytes(bytes) => text_of_bytes(bytes, collation).map(Cow::Owned),
        value => Ok(value.string().unwrap_or_default()),
    }
}

/// 1267: the collations cannot be mixed.
fn illegal_mix(a: (Collation, u8), b: (Collation, u8)) -> Error {
    let shown = |(collation, strength): (Collation, u8)| {
        let word = match strength {
            coercibility::EXPLICIT => "EXPLICIT",
            coercibility::NONE => "NONE",
            coercibility::IMPLICIT => "IMPLICIT",
            coercibility::SYSTEM => "SYSCONST",
            coercibility::LITERAL => "COERCIBLE",
            coercibility::NUMERIC => "NUMERIC",
            _ => "IGNORABLE",
        };
        format!("({},{word})", collation.name())
    };
    let message =
        format!("Illegal mix of collations {} and {} for operation '='", shown(a), shown(b));
    Error::new(ErrorCode::CollationMix, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(name: &str) -> Collation {
        Collation::by_name(name).unwrap()
    }

    #[test]
    fn a_text_that_is_always_null_has_no_say() {
        let nothing =
            ExprType::text(2, Collation::BINARY).with_coercibility(coercibility::IGNORABLE);
        let bytes = ExprType::text(2, Collation::BINARY).with_coercibility(coercibility::LITERAL);
        let text = ExprType::text(2, by_name("utf8mb4_0900_ai_ci"));
        let met = |types: &[ExprType]| aggregate(types.iter()).unwrap();
        assert_eq!(met(&[text.clone(), nothing.clone()]).0, text.collation);
        assert_eq!(met(&[nothing.clone(), text.clone()]).0, text.collation);
        assert_eq!(met(&[text.clone(), bytes.clone()]).0, Collation::BINARY);
        // A column's collation wins beside a binary literal; a binary column wins beside a column
        // of texts.
        let column = text.with_coercibility(coercibility::IMPLICIT);
        assert_eq!(met(&[column.clone(), bytes.clone()]).0, column.collation);
        let bytes = bytes.with_coercibility(coercibility::IMPLICIT);
        assert_eq!(met(&[column, bytes]).0, Collation::BINARY);
        assert_eq!(met(&[nothing]), (Collation::BINARY, coercibility::IGNORABLE));
    }
}
