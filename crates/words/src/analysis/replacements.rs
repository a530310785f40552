//! The setting `regexp_filter`: regular expressions in RE2's dialect, whose matches are replaced before a text is split
//! into words.

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};

/// The most expressions of a table.
const MAX_EXPRESSIONS: usize = 64;
/// The longest expression in bytes, with its replacement.
const MAX_LENGTH: usize = 4096;
/// The largest compiled expression in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// A text may become so many times longer, and so many bytes more. What is behind that is not replaced.
const MAX_GROWTH: usize = 8;
const MAX_MORE: usize = 1 << 16;

/// The replacements of a table, in the order in which they are made.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    all: Vec<Replacement>,
}

#[derive(Debug)]
struct Replacement {
    from: Regex,
    to: Vec<Part>,
}

/// A part of what replaces a match.
#[derive(Debug)]
enum Part {
    Text(String),
    /// The text of a group; 0 is the whole match.
    Group(usize),
}

impl Replacements {
    /// Parses lines such as `(\d+)" => \1 inch`.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn new(lines: &[String]) -> Result<Self, String> {
        if lines.len() > MAX_EXPRESSIONS {
            return Err(format!("more than {MAX_EXPRESSIONS} expressions"));
        }
        let replacement = |line: &String| {
            Replacement::new(line).map_err(|message| format!("'{line}': {message}"))
        };
        Ok(Self { all: lines.iter().map(replacement).collect::<Result<_, String>>()? })
    }

    /// The text after all replacements. Linear in the length of the text.
    pub(super) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for replacement in &self.all {
            if let Some(replaced) = replacement.apply(&text) {
                text = Cow::Owned(replaced);
            }
        }
        text
    }
}

impl Replacement {
    fn new(line: &str) -> Result<Self, String> {
        if line.len() > MAX_LENGTH {
            return Err(format!("longer than {MAX_LENGTH} bytes"));
        }
        let (from, to) = line.split_once("=>").ok_or("mapping token (=>) not found")?;
        if to.contains("=>") {
            return Err("mapping token (=>) found more than once".to_owned());
        }
        let from = translated(from.trim())?;
        let from = RegexBuilder::new(&from).size_limit(MAX_COMPILED).build();
        let from = from.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the expression is too large".to_owned(),
            error => error.to_string().lines().last().unwrap_or_default().to_owned(),
        })?;
        let to = parts(to.trim(), from.captures_len())?;
        Ok(Self { from, to })
    }

    /// The replaced text; `None` if nothing matches.
    fn apply(&self, text: &str) -> Option<String> {
        let most = text.len().saturating_mul(MAX_GROWTH).saturating_add(MAX_MORE);
        let mut out = String::new();
        let mut end = 0;
        for found in self.from.captures_iter(text) {
            let Some(whole) = found.get(0) else { break };
            out.push_str(text.get(end..whole.start()).unwrap_or_default());
            self.write(&found, &mut out);
            end = whole.end();
            if out.len() > most {
                break;
            }
        }
        if end == 0 && out.is_empty() {
            return None;
        }
        out.push_str(text.get(end..).unwrap_or_default());
        Some(out)
    }

    fn write(&self, found: &Captures<'_>, out: &mut String) {
        for part in &self.to {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(number) => {
                    out.push_str(found.get(*number).map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

/// The parts of a replacement; `groups` is the number of groups, the whole match included.
fn parts(text: &str, groups: usize) -> Result<Vec<Part>, String> {
    let (mut parts, mut literal) = (Vec::new(), String::new());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            literal.push(c);
            continue;
        }
        match chars.next() {
            Some('\\') => literal.push('\\'),
            Some(digit) if digit.is_ascii_digit() => {
                let number = digit as usize - '0' as usize;
                if number >= groups {
                    return Err(format!("there is no group {number}"));
                }
                parts.push(Part::Text(std::mem::take(&mut literal)));
                parts.push(Part::Group(number));
            }
            _ => {
                return Err(
                    "a backslash in the replacement needs a digit or a backslash behind it"
                        .to_owned(),
                );
            }
        }
    }
    parts.push(Part::Text(literal));
    Ok(parts)
}

/// An expression of RE2 in the dialect of the crate `regex`.
///
/// # Errors
/// Names what only one of both has, or what means something else in both.
fn translated(expression: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        match c {
            '\\' => rest = escape(rest, false, &mut out)?,
            '[' => rest = class(rest, &mut out)?,
            '{' if !is_repetition(rest) => {
                out.push_str("\\{");
                rest = &rest[1..];
            }
            '(' => {
                check_group(rest)?;
                out.push('(');
                rest = &rest[1..];
            }
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Ok(out)
}

/// Translates the escape at the start of `rest`, within a class or outside; returns what is behind it.
fn escape<'e>(rest: &'e str, is_in_class: bool, out: &mut String) -> Result<&'e str, String> {
    let Some(c) = rest[1..].chars().next() else { return Err("it ends with a backslash".into()) };
    let behind = &rest[1 + c.len_utf8()..];
    let refused = |why: &str| Err(format!("\\{c} is not supported: {why}"));
    // RE2's classes have ASCII alone.
    let class = match c.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\f\\r ",
        _ => "",
    };
    match c {
        'd' | 'w' | 's' if is_in_class => out.push_str(class),
        'd' | 'w' | 's' => out.push_str(&format!("[{class}]")),
        'D' | 'W' | 'S' => out.push_str(&format!("[^{class}]")),
        'b' if !is_in_class => out.push_str("(?-u:\\b)"),
        'Q' if !is_in_class => {
            let (literal, behind) = behind.split_once("\\E").unwrap_or((behind, ""));
            out.push_str(&regex::escape(literal));
            return Ok(behind);
        }
        'B' => return refused("a place that is no boundary of a word"),
        'C' => return refused("a single byte"),
        'u' | 'U' => return refused("RE2 writes \\x{…}"),
        '0'..='9' => return refused("neither references to groups nor octal numbers"),
        'A' | 'z' | 'p' | 'P' | 'x' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
            out.push('\\');
            out.push(c);
        }
        c if c.is_ascii_punctuation() || c == ' ' => out.push_str(&regex::escape(&c.to_string())),
        _ => return refused("RE2 does not have it"),
    }
    Ok(behind)
}

/// Translates the class in brackets at the start of `rest`; returns what is behind it.
fn class<'e>(rest: &'e str, out: &mut String) -> Result<&'e str, String> {
    out.push('[');
    let mut rest = &rest[1..];
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    if let Some(behind) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = behind;
    }
    while let Some(c) = rest.chars().next() {
        match c {
            ']' => {
                out.push(']');
                return Ok(&rest[1..]);
            }
            '\\' => {
                rest = escape(rest, true, out)?;
                continue;
            }
            '[' if rest.starts_with("[:") => {
                let end = rest.find(":]").ok_or("'[:' without ':]'")? + 2;
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            '-' if rest.starts_with("--") => return Err("'--' in brackets: write '\\-'".into()),
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    Err("missing ]".to_owned())
}

/// Whether `{` begins a repetition, as in `{2}`, `{2,}` and `{2,5}`; else it means itself.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

/// Refuses flags that RE2 does not have.
fn check_group(rest: &str) -> Result<(), String> {
    let Some(behind) = rest.strip_prefix("(?") else { return Ok(()) };
    let end = behind.find([':', ')', '<', '=', '!']).unwrap_or(behind.len());
    match behind[..end].chars().find(|c| !"imsUP-".contains(*c)) {
        Some(c) => Err(format!("(?{c} is not supported: take the flags i, m, s and U")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(lines: &[&str], text: &str) -> String {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        Replacements::new(&lines).unwrap().apply(text).into_owned()
    }

    #[test]
    fn matches_are_replaced_in_order() {
        for (lines, text, expected) in [
            (&["(\\d+)\" => \\1 inch"][..], "a 5\" and 12\"", "a 5 inch and 12 inch"),
            (&["(BLUE|RED) => COLOR"], "RED TUBE", "COLOR TUBE"),
            (&["a => b", "b => c"], "ab", "cc"),
            (&["x* => -"], "abxc", "-a-b-c-"),
            (&["(?i)é => e"], "É é", "e e"),
            (&["\\w+ => w"], "é ab", "é w"),
            (&["[\\d[&] => n"], "1[&a", "nnna"),
            (&["a{b => c"], "a{b", "c"),
            (&["a{2} => c"], "aaa", "ca"),
            (&["\\Qa.b\\E => x"], "a.b acb", "x acb"),
            (&["\\bis\\b => was"], "is this", "was this"),
            (&["c\\+\\+ => \\\\cpp"], "c++", "\\cpp"),
            (&["a => \\0\\0"], "ba", "baa"),
            (&["a =>"], "banana", "bnn"),
        ] {
            assert_eq!(replaced(lines, text), expected, "{lines:?}");
        }
    }

    #[test]
    fn wrong_expressions_are_refused_by_name() {
        for (line, message) in [
            ("abc", "mapping token (=>) not found"),
            ("a => b => c", "found more than once"),
            ("(a => b", "unclosed group"),
            ("[a => b", "missing ]"),
            ("(a)\\1 => b", "\\1 is not supported"),
            ("\\Ba => b", "\\B is not supported"),
            ("(?x)a => b", "(?x is not supported"),
            ("(?=a)b => c", "look-around"),
            ("a => \\1", "there is no group 1"),
            ("a => \\n", "a digit or a backslash"),
            ("(a{1000}){1000} => b", "too large"),
        ] {
            let error = Replacements::new(&[line.to_owned()]).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }

    #[test]
    fn texts_grow_within_a_bound() {
        let line = format!("a => {}", "a".repeat(4000));
        let all = replaced(&[line.as_str(); 3], &"a".repeat(10_000));
        assert!(all.len() < 600 * 100_000, "{}", all.len());
    }
}
