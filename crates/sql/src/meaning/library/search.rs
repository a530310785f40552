//! Functions that search for a text in another, by their common collation or the one that MySQL
//! uses.

use std::borrow::Cow;

use datafusion::logical_expr::Expr;
use remora_mysql::Collation;

use super::{
    super::{
        call::{Call, TypeContext},
        collation,
        function::{Caching, Definition, MANY},
        types::ExprType,
        value::SqlValue,
    },
    calls::called,
    comparison::dialect,
    literals::number_of_digits,
};
use crate::{Result, multi};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("locate", 2, 3, place_type, locate),
    Definition::new("instr", 2, 2, place_type, instr),
    Definition::truth("like", 2, 3, like),
    Definition::new("match_score", 1, 1, score_type, match_score).cached(Caching::Never),
    Definition::new("field", 2, MANY, field_type, field).expanding(field_of_numbers),
    Definition::new("find_in_set", 2, 2, field_type, find_in_set),
    Definition::new("length", 1, 1, length_type, length),
    Definition::new("bit_length", 1, 1, length_type, |_, args| {
        measured(args, |value| value.octets().map_or(0, |bytes| bytes.len() * 8))
    }),
    Definition::new("char_length", 1, 1, length_type, |_, args| measured(args, characters)),
    Definition::new("ascii", 1, 1, code_type, ascii),
    Definition::new("ord", 1, 1, length_type, ord),
    Definition::new("collation", 1, 1, name_type, collation_of),
    Definition::new("charset", 1, 1, name_type, charset_of),
    Definition::new("coercibility", 1, 1, code_type, coercibility_of),
    Definition::new("weight_string", 1, 1, weight_type, weight_string),
];

fn place_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(11))
}

fn score_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double().not_null())
}

fn length_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.get(0).not_null, ..ExprType::int(11) })
}

fn code_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.get(0).not_null, ..ExprType::int(4) })
}

fn field_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.all_present(), ..ExprType::int(11) })
}

fn name_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(64, Collation::UTF8MB3_GENERAL_CI).not_null())
}

fn weight_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(typing.get(0).characters().saturating_mul(16)))
}

/// The score of a row; 0 for a row of NULLs from an outer join.
fn match_score<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let score = args.first().filter(|score| !score.is_null());
    Ok(score.cloned().unwrap_or(SqlValue::Double(0.0)))
}

fn measured<'a>(
    args: &[SqlValue<'a>],
    measure: impl Fn(&SqlValue<'_>) -> usize,
) -> Result<SqlValue<'a>> {
    let value = args.first().filter(|value| !value.is_null());
    Ok(SqlValue::or_null(value, |value| {
        SqlValue::Int(i64::try_from(measure(value)).unwrap_or(i64::MAX))
    }))
}

/// The bytes of a text, or the number of integers in a set.
fn length<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let is_set = call.type_of(0).is_some_and(|kind| kind.multi.is_some());
    measured(args, |value| match value {
        SqlValue::Json(held) if is_set => multi::count(held),
        value => value.octets().map_or(0, |bytes| bytes.len()),
    })
}

fn characters(value: &SqlValue<'_>) -> usize {
    match value {
        SqlValue::Bytes(bytes) => bytes.len(),
        value => value.string().map_or(0, |text| text.chars().count()),
    }
}

fn ascii<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let bytes = args.first().and_then(SqlValue::octets);
    Ok(SqlValue::or_null(bytes, |bytes| {
        SqlValue::Int(bytes.first().map_or(0, |byte| i64::from(*byte)))
    }))
}

fn ord<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if matches!(args.first(), Some(SqlValue::Bytes(_))) {
        return ascii(call, args);
    }
    let Some(text) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    let Some(first) = text.chars().next() else { return Ok(SqlValue::Int(0)) };
    let mut buffer = [0; 4];
    let bytes = first.encode_utf8(&mut buffer).as_bytes();
    Ok(SqlValue::Int(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))))
}

/// The common collation of the arguments.
fn collation_in(call: &Call<'_>) -> Result<Collation> {
    let (collation, _) = collation::aggregate(call.types.iter())?;
    Ok(collation)
}

/// The collation of one argument, whatever it is compared with.
fn collation_at(call: &Call<'_>, at: usize) -> Collation {
    let kind = call.type_of(at).filter(|kind| kind.is_string());
    kind.map_or(Collation::UTF8MB4_0900_AI_CI, |kind| kind.collation)
}

/// The position of a text in another from some position on, in characters from 1; 0 if it does not
/// occur.
fn place(
    part: &SqlValue<'_>,
    whole: &SqlValue<'_>,
    from: i64,
    collation: Collation,
) -> Result<i64> {
    if matches!(whole, SqlValue::Bytes(_)) {
        let (part, whole) = (part.octets().unwrap_or_default(), whole.octets().unwrap_or_default());
        return Ok(place_of(&part, &whole, from));
    }
    let part = collation::string_in(part, collation)?;
    let whole = whole.string().unwrap_or_default();
    if let Some(letters) = collation::ascii_letters(collation)
        && let (Some(part), Some(whole)) = (letters.numbers(&part), letters.numbers(&whole))
    {
        return Ok(place_of(&part, &whole, from));
    }
    let exact = collation::is_exact(collation);
    let letters = |text: &str| -> Vec<Vec<u8>> {
        text.chars()
            .map(|letter| match exact {
                true => (letter as u32).to_be_bytes().to_vec(),
                false => collation::letter_key(letter, collation),
            })
            .collect()
    };
    Ok(place_of(&letters(&part), &letters(&whole), from))
}

fn place_of<T: PartialEq>(part: &[T], whole: &[T], from: i64) -> i64 {
    let Some(start) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else {
        return 0;
    };
    if start > whole.len() {
        return 0;
    }
    if part.is_empty() {
        return from;
    }
    let rest = whole.get(start..).unwrap_or(&[]);
    let found = rest.windows(part.len()).position(|window| window == part);
    found.map_or(0, |at| i64::try_from(at + start + 1).unwrap_or(0))
}

fn locate<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [part, whole, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let from = rest.first().map_or(1, |from| from.count(call));
    Ok(SqlValue::Int(place(part, whole, from, collation_at(call, 1))?))
}

fn instr<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [whole, part] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    Ok(SqlValue::Int(place(part, whole, 1, collation_at(call, 0))?))
}

/// An element of a LIKE pattern.
#[derive(Clone, Debug, PartialEq)]
enum Piece<L> {
    Letter(L),
    AnyLetter,
    Anything,
}

/// A pattern of printable ASCII, which is kept for the rows of a batch.
struct AsciiPattern {
    pattern: String,
    escape: Option<char>,
    /// Its elements, with the numbers of letters; `None` if it has other letters.
    pieces: Option<Vec<Piece<u8>>>,
}

impl AsciiPattern {
    fn new(pattern: &str, escape: Option<char>, letters: &collation::AsciiLetters) -> Self {
        let number = |letter| u8::try_from(letter).ok().and_then(|letter| letters.number(letter));
        let is_ascii = pattern.chars().all(|letter| number(letter).is_some());
        let pieces =
            is_ascii.then(|| pieces(pattern, escape, |letter| number(letter).unwrap_or_default()));
        Self { pattern: pattern.to_owned(), escape, pieces }
    }

    /// Whether a text matches; `None` if it or the pattern has other letters.
    fn matches(&self, text: &str, letters: &collation::AsciiLetters) -> Option<bool> {
        let pieces = self.pieces.as_deref()?;
        let is_ascii = text.bytes().all(|letter| letters.number(letter).is_some());
        let is_same = |wanted: &u8, letter: &u8| letters.number(*letter) == Some(*wanted);
        is_ascii.then(|| matches(text.as_bytes(), pieces, is_same))
    }
}

fn like<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, pattern, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let escape = match rest.first().and_then(SqlValue::string) {
        None => Some('\\'),
        Some(text) => text.chars().next(),
    };
    let collation = collation_in(call)?;
    let (text, pattern) = (letters_of(value, collation)?, letters_of(pattern, collation)?);
    if let Some(letters) = collation::ascii_letters(collation) {
        let is_right = |kept: &AsciiPattern| kept.pattern == *pattern && kept.escape == escape;
        let make = || Ok(AsciiPattern::new(&pattern, escape, letters));
        if let Some(matches) = call.keep(is_right, make, |kept| kept.matches(&text, letters))? {
            return Ok(SqlValue::truth(matches));
        }
    }
    let key = |letter: char| match collation::is_exact(collation) {
        true => (letter as u32).to_be_bytes().to_vec(),
        false => collation::letter_key(letter, collation),
    };
    let pieces = pieces(&pattern, escape, key);
    let text: Vec<Vec<u8>> = text.chars().map(key).collect();
    Ok(SqlValue::truth(matches(&text, &pieces, |wanted, letter| wanted == letter)))
}

/// The characters of a text in this collation. In the binary collation each byte is one.
fn letters_of<'v>(value: &'v SqlValue<'_>, collation: Collation) -> Result<Cow<'v, str>> {
    match collation {
        Collation::BINARY => {
            let bytes = value.octets().unwrap_or_default();
            Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
        }
        collation => collation::string_in(value, collation),
    }
}

/// Whether a string in a document matches a LIKE pattern, compared by code points.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let collation = Collation::UTF8MB4_BIN;
    let key = |letter: char| collation::letter_key(letter, collation);
    let text: Vec<Vec<u8>> = text.chars().map(key).collect();
    matches(&text, &pieces(pattern, Some('\\'), key), |wanted, letter| wanted == letter)
}

fn pieces<L: PartialEq>(
    pattern: &str,
    escape: Option<char>,
    key: impl Fn(char) -> L,
) -> Vec<Piece<L>> {
    let mut pieces = Vec::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        pieces.push(match letter {
            _ if Some(letter) == escape => match letters.next() {
                Some(escaped) => Piece::Letter(key(escaped)),
                None => Piece::Letter(key(letter)),
            },
            '%' if pieces.last() == Some(&Piece::Anything) => continue,
            '%' => Piece::Anything,
            '_' => Piece::AnyLetter,
            letter => Piece::Letter(key(letter)),
        });
    }
    pieces
}

/// Matches with backtracking: on a mismatch the last `%` takes one more character.
fn matches<T, L>(text: &[T], pieces: &[Piece<L>], is_same: impl Fn(&L, &T) -> bool) -> bool {
    let (mut at, mut piece) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let fits = match (pieces.get(piece), text.get(at)) {
            (None, None) => return true,
            (Some(Piece::Anything), _) => {
                retry = Some((at, piece));
                piece += 1;
                continue;
            }
            (Some(Piece::AnyLetter), Some(_)) => true,
            (Some(Piece::Letter(wanted)), Some(letter)) => is_same(wanted, letter),
            _ => false,
        };
        if fits {
            at += 1;
            piece += 1;
            continue;
        }
        match &mut retry {
            Some((taken, anything)) if *taken < text.len() => {
                *taken += 1;
                at = *taken;
                piece = *anything + 1;
            }
            _ => return false,
        }
    }
}

/// FIELD compares all arguments as texts, all as exact numbers, or all as doubles.
/// Whether FIELD compares such a value as a text, as it does dates.
fn is_text_in_field(kind: &ExprType) -> bool {
    kind.is_string() || kind.is_temporal() || kind.is_null()
}

/// A hexadecimal or bit literal becomes a number beside a number.
fn field_of_numbers(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    if typing.types.iter().all(is_text_in_field) {
        return Ok(None);
    }
    let numbers: Vec<_> = args.iter().map(|arg| number_of_digits(arg).map(|(it, _)| it)).collect();
    if numbers.iter().all(Option::is_none) {
        return Ok(None);
    }
    let args = numbers.into_iter().zip(args).map(|(it, arg)| it.unwrap_or_else(|| arg.clone()));
    Ok(Some(called("field", args.collect(), dialect(typing))))
}

fn field<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((wanted, values)) = args.split_first() else { return Ok(SqlValue::Null) };
    if wanted.is_null() {
        return Ok(SqlValue::Int(0));
    }
    let strings = call.types.iter().all(is_text_in_field);
    let whole = call.types.iter().all(|kind| kind.is_integer() || kind.is_null());
    let collation = if strings { collation_at(call, 0) } else { Collation::BINARY };
    for (value, place) in values.iter().zip(1..) {
        let same = if value.is_null() {
            false
        } else if strings && collation == Collation::BINARY {
            wanted.octets() == value.octets()
        } else if strings {
            let a = collation::string_in(wanted, collation)?;
            collation::equal(&a, &collation::string_in(value, collation)?, collation)
        } else if whole {
            wanted.integer(call) == value.integer(call)
        } else {
            wanted.double(call) == value.double(call)
        };
        if same {
            return Ok(SqlValue::Int(place));
        }
    }
    Ok(SqlValue::Int(0))
}

fn find_in_set<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [wanted, set] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let members = call.type_of(1).and_then(|kind| kind.members.as_deref());
    if let (Some(members), SqlValue::Member(chosen, _)) = (members, set) {
        let wanted = wanted.string().unwrap_or_default();
        let place = members.iter().position(|member| *member == wanted.as_ref());
        let place = place.filter(|_| chosen.split(',').any(|word| word == wanted.as_ref()));
        return Ok(SqlValue::Int(place.map_or(0, |at| i64::try_from(at + 1).unwrap_or(0))));
    }
    let collation = collation_in(call)?;
    // Invalid bytes are in no set of texts, which is not an error here.
    let (Ok(wanted), Ok(set)) = (letters_of(wanted, collation), letters_of(set, collation)) else {
        return Ok(SqlValue::Int(0));
    };
    if set.is_empty() || wanted.contains(',') {
        return Ok(SqlValue::Int(0));
    }
    let found = set.split(',').position(|word| collation::equal(&wanted, word, collation));
    Ok(SqlValue::Int(found.map_or(0, |at| i64::try_from(at + 1).unwrap_or(0))))
}

fn collation_of<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let kind = call.type_of(0);
    let text = kind.filter(|kind| kind.is_string() || kind.kind == crate::SqlType::Json);
    Ok(SqlValue::text(text.map_or("binary", |kind| kind.collation.name())))
}

fn charset_of<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let kind = call.type_of(0);
    let text = kind.filter(|kind| kind.is_string() || kind.kind == crate::SqlType::Json);
    Ok(SqlValue::text(text.map_or("binary", |kind| kind.collation.charset())))
}

fn coercibility_of<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(call.type_of(0), |kind| SqlValue::Int(i64::from(kind.coercibility))))
}

fn weight_string<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (Some(value), Some(kind)) = (args.first(), call.type_of(0)) else {
        return Ok(SqlValue::Null);
    };
    if !kind.is_string() {
        return Ok(SqlValue::Null);
    }
    if let SqlValue::Bytes(bytes) = value {
        return Ok(SqlValue::Bytes(bytes.clone()));
    }
    Ok(SqlValue::or_null(value.string(), |text| {
        SqlValue::bytes(collation::key(&text, kind.collation).into_owned())
    }))
}
