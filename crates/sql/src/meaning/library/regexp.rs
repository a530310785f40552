//! Regular expressions: MySQL's ICU syntax, as far as the `regex` crate supports it.

use std::{borrow::Cow, cell::RefCell};

use regex::{Regex, RegexBuilder};
use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    collation,
    function::Definition,
    types::{ExprType, UNBOUNDED},
    value::SqlValue,
};
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::truth("regexp_like", 2, 3, regexp_like),
    Definition::new("regexp_instr", 2, 6, place_type, regexp_instr),
    Definition::new("regexp_substr", 2, 5, part_type, regexp_substr),
    Definition::new("regexp_replace", 3, 6, text_type, regexp_replace),
];

/// The most bytes of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// The most bytes of a pattern's text: compiling tens of thousands of groups would take too long.
const MAX_PATTERN_TEXT_BYTES: usize = 32 << 10;

thread_local! {
    /// The last compiled pattern, since most statements use only one.
    static LAST: RefCell<Option<(String, String, Regex)>> = const { RefCell::new(None) };
}

fn place_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

fn part_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(typing.get(0).characters(), collation_of(typing)))
}

fn text_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(UNBOUNDED / 4, collation_of(typing)))
}

fn collation_of(typing: &TypeContext<'_>) -> remora_mysql::Collation {
    let kind = typing.get(0);
    if kind.is_text() { kind.collation } else { typing.collation }
}

/// The compiled pattern. Its collation decides case sensitivity unless the match type does.
fn pattern(call: &Call<'_>, text: &str, mode: &str) -> Result<Regex> {
    let types: Vec<&ExprType> = call.types.iter().take(2).collect();
    let (collation, _) = collation::aggregate(types.into_iter())?;
    let name = collation.name();
    let mut folds = !(name.ends_with("_bin") || name.ends_with("_cs") || name == "binary");
    let (mut lines, mut dots) = (false, false);
    for letter in mode.chars() {
        match letter {
            'c' => folds = false,
            'i' => folds = true,
            'm' => lines = true,
            'n' => dots = true,
            'u' => {}
            _ => {
                let message = messages::incorrect_arguments("regexp_like");
                return Err(Error::new(ErrorCode::WrongArguments, message));
            }
        }
    }
    if text.is_empty() {
        let message = "Illegal argument to a regular expression.";
        return Err(Error::new(ErrorCode::IllegalRegexp, message));
    }
    if text.len() > MAX_PATTERN_TEXT_BYTES {
        let message = "Regular expression pattern exceeds limits on size or complexity.";
        return Err(Error::new(ErrorCode::RegexpTooBig, message));
    }
    let key = format!("{folds}{lines}{dots}");
    LAST.with_borrow_mut(|last| {
        if let Some((old_text, old_key, regex)) = last
            && old_text == text
            && *old_key == key
        {
            return Ok(regex.clone());
        }
        let built = RegexBuilder::new(&translated(text))
            .case_insensitive(folds)
            .multi_line(lines)
            .dot_matches_new_line(dots)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| invalid(text, &error))?;
        *last = Some((text.to_owned(), key, built.clone()));
        Ok(built)
    })
}

/// What the POSIX classes hold: all letters, digits and marks of Unicode, as in ICU.
const CLASSES: [(&str, &str); 13] = [
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("alpha", r"\p{Alphabetic}"),
    ("blank", r"\p{Zs}\t"),
    ("cntrl", r"\p{Cc}"),
    ("digit", r"\p{Nd}"),
    ("graph", r"^\p{White_Space}\p{Cc}\p{Cn}"),
    ("lower", r"\p{Lowercase}"),
    ("print", r"^\p{Cc}\p{Cn}\p{Zl}\p{Zp}"),
    ("punct", r"\p{P}"),
    ("space", r"\p{White_Space}"),
    ("upper", r"\p{Uppercase}"),
    ("word", r"\w"),
    ("xdigit", r"\p{Nd}\p{Hex_Digit}"),
];

/// Replaces the word boundaries of the older syntax by Henry Spencer, and the POSIX classes, which the `regex` crate
/// knows for ASCII only.
fn translated(text: &str) -> String {
    let text = text.replace("[[:<:]]", r"\b{start}").replace("[[:>:]]", r"\b{end}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['\\', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let taken = match posix_class(from) {
            Some((class, taken)) => {
                out.push_str(&class);
                taken
            }
            // What follows a backslash begins nothing.
            None if from.starts_with('\\') => {
                let taken = 1 + from.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(from.get(..taken).unwrap_or(from));
                taken
            }
            None => {
                out.push('[');
                1
            }
        };
        rest = from.get(taken..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// The class for `[:name:]` or `[:^name:]` at the start of a text, and how many bytes that is.
fn posix_class(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix("[:")?;
    let (name, _) = inner.split_once(":]")?;
    let (sign, bare) = name.strip_prefix('^').map_or((false, name), |bare| (true, bare));
    let (_, held) = CLASSES.iter().find(|(known, _)| known.eq_ignore_ascii_case(bare))?;
    let class = if sign { format!("[^[{held}]]") } else { format!("[{held}]") };
    Some((class, name.len() + 4))
}

fn invalid(text: &str, error: &regex::Error) -> Error {
    let shown = error.to_string();
    let (code, message) = if shown.contains("unclosed group") || shown.contains("unopened group") {
        (ErrorCode::InvalidRegexp, "Mismatched parenthesis in regular expression.".to_owned())
    } else if shown.contains("character class") {
        (
            ErrorCode::UnclosedBracket,
            "The regular expression contains an unclosed bracket expression.".to_owned(),
        )
    } else {
        (
            ErrorCode::RegexpSyntax,
            format!("Syntax error in regular expression on line 1, character {}.", text.len()),
        )
    };
    Error::new(code, message)
}

/// 3995 if one argument is binary and the other text.
fn check_charsets(call: &Call<'_>, name: &str) -> Result<()> {
    let [text, pattern, ..] = call.types else { return Ok(()) };
    if !text.is_string() || !pattern.is_string() || text.is_text() == pattern.is_text() {
        return Ok(());
    }
    let (text, pattern) = (text.collation.name(), pattern.collation.name());
    let message = format!(
        "Character set '{text}' cannot be used in conjunction with '{pattern}' in call to {name}."
    );
    Err(Error::new(ErrorCode::CharacterSetMismatch, message))
}

/// The subject or the pattern as text. Each byte of a binary string becomes one character.
fn letters<'v>(value: &'v SqlValue<'_>) -> Cow<'v, str> {
    match value {
        SqlValue::Bytes(bytes) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        value => value.string().unwrap_or_default(),
    }
}

/// The text of a value; 3854 for bytes that are not valid text.
fn text_of<'v>(value: &'v SqlValue<'_>) -> Result<Cow<'v, str>> {
    collation::string_in(value, Collation::UTF8MB4_BIN)
}

fn mode_of(args: &[SqlValue<'_>], index: usize) -> String {
    args.get(index).and_then(SqlValue::string).unwrap_or_default().into_owned()
}

fn regexp_like<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let [text, wanted, ..] = args else { return Ok(SqlValue::Null) };
    check_charsets(call, "regexp_like")?;
    let regex = pattern(call, &letters(wanted), &mode_of(args, 2))?;
    Ok(SqlValue::truth(regex.is_match(&letters(text))))
}

/// The byte offset of a character position; an error if it is beyond the text.
fn start(text: &str, from: i64) -> Result<usize> {
    let index = from.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    let count = text.chars().count();
    match index.filter(|index| *index <= count) {
        Some(index) => Ok(text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)),
        None => {
            let message = "Index out of bounds in regular expression search.";
            Err(Error::new(ErrorCode::RegexpIndex, message))
        }
    }
}

fn number(call: &Call<'_>, args: &[SqlValue<'_>], index: usize, default: i64) -> i64 {
    args.get(index).map_or(default, |value| value.count(call))
}

/// The n-th match from an offset on, counted from 1.
fn nth<'t>(regex: &Regex, text: &'t str, from: usize, wanted: i64) -> Option<regex::Match<'t>> {
    let wanted = usize::try_from(wanted.max(1)).unwrap_or(usize::MAX);
    let mut at = from;
    for count in 1.. {
        let found = regex.find_at(text, at)?;
        if count == wanted {
            return Some(found);
        }
        at =
            if found.end() > found.start() { found.end() } else { next_letter(text, found.end())? };
    }
    None
}

fn next_letter(text: &str, at: usize) -> Option<usize> {
    text.get(at..)?.chars().next().map(|letter| at + letter.len_utf8())
}

fn regexp_instr<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let [text, wanted, ..] = args else { return Ok(SqlValue::Null) };
    check_charsets(call, "regexp_instr")?;
    let regex = pattern(call, &letters(wanted), &mode_of(args, 5))?;
    let text = letters(text);
    let from = start(&text, number(call, args, 2, 1))?;
    let found = nth(&regex, &text, from, number(call, args, 3, 1));
    let end = number(call, args, 4, 0) == 1;
    let place = found.map_or(0, |found| {
        let at = if end { found.end() } else { found.start() };
        text.get(..at).map_or(0, |before| before.chars().count() + 1)
    });
    Ok(SqlValue::Int(i64::try_from(place).unwrap_or(0)))
}

fn regexp_substr<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let [text, wanted, ..] = args else { return Ok(SqlValue::Null) };
    check_charsets(call, "regexp_substr")?;
    let regex = pattern(call, &text_of(wanted)?, &mode_of(args, 4))?;
    let text = text_of(text)?;
    let from = start(&text, number(call, args, 2, 1))?;
    let found = nth(&regex, &text, from, number(call, args, 3, 1));
    Ok(SqlValue::or_null(found, |found| SqlValue::text(found.as_str())))
}

fn regexp_replace<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let [text, wanted, new, ..] = args else { return Ok(SqlValue::Null) };
    check_charsets(call, "regexp_replace")?;
    let regex = pattern(call, &text_of(wanted)?, &mode_of(args, 5))?;
    let text = text_of(text)?;
    let from = start(&text, number(call, args, 3, 1))?;
    let only = number(call, args, 4, 0);
    let new = replacement(&text_of(new)?);
    let (before, rest) = text.split_at(from);
    let most = usize::try_from(call.longest_text()).unwrap_or(usize::MAX);
    // An upper bound of one replacement: each of its groups may be the whole text.
    let groups = new.bytes().filter(|byte| *byte == b'$').count();
    if groups.saturating_mul(rest.len()).saturating_add(new.len()) > most.saturating_mul(4) {
        return Ok(call.too_long("regexp_replace"));
    }
    if only == 0 {
        return Ok(match replaced(&regex, rest, &new, most) {
            Some(rest) => SqlValue::text(format!("{before}{rest}")),
            None => call.too_long("regexp_replace"),
        });
    }
    let Some(found) = nth(&regex, &text, from, only) else {
        return Ok(SqlValue::text(text.into_owned()));
    };
    let (head, tail) = text.split_at(found.start());
    Ok(SqlValue::text(format!("{head}{}", regex.replacen(tail, 1, new.as_str()))))
}

/// The text with every match replaced; `None` if it becomes too long.
fn replaced(regex: &Regex, text: &str, new: &str, most: usize) -> Option<String> {
    let mut out = String::new();
    let mut end = 0;
    for found in regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        found.expand(new, &mut out);
        end = whole.end();
        if out.len() > most {
            return None;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Some(out).filter(|out| out.len() <= most)
}

/// Translates a replacement: `$1` is a group, a backslash escapes the next character.
fn replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => {}
            },
            '$' if letters.peek().is_some_and(char::is_ascii_digit) => {
                let group = letters.next().unwrap_or('0');
                out.push_str(&format!("${{{group}}}"));
            }
            '$' => out.push_str("$$"),
            other => out.push(other),
        }
    }
    out
}
