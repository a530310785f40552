//! Removes HTML tags from a text.

use super::entities;
use crate::{Result, WordsError, settings::Settings};

/// What is kept and what is removed besides tags.
#[derive(Default)]
pub(super) struct HtmlRules {
    /// Elements with the attributes whose values are kept.
    attributes: Vec<(String, Vec<String>)>,
    /// Elements that are removed with their content.
    removed: Vec<String>,
}

/// Elements that do not separate words.
const INLINE: [&str; 18] = [
    "a", "b", "i", "s", "u", "basefont", "big", "em", "font", "img", "label", "small", "span",
    "strike", "strong", "sub", "sup", "tt",
];

impl HtmlRules {
    /// # Errors
    /// [`WordsError::Setting`] for an invalid list of attributes.
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let list = |text: &str| -> Vec<String> {
            let names = text.split(',').map(|name| name.trim().to_ascii_lowercase());
            names.filter(|name| !name.is_empty()).collect()
        };
        let mut attributes = Vec::new();
        let parts = settings.html_index_attrs().split(';').map(str::trim);
        for part in parts.filter(|part| !part.is_empty()) {
            let (element, names) = part.split_once('=').ok_or_else(|| WordsError::Setting {
                setting: "html_index_attrs".to_owned(),
                message: format!("'{part}' names no attributes: write 'element=attribute,..'"),
            })?;
            attributes.push((element.trim().to_ascii_lowercase(), list(names)));
        }
        Ok(Self { attributes, removed: list(settings.html_remove_elements()) })
    }
}

/// Appends the text without tags to `out`.
pub(super) fn strip(text: &str, rules: &HtmlRules, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let read = if rest.starts_with('&') { entity(rest, out) } else { mark(rest, rules, out) };
        rest = read.unwrap_or_else(|| {
            // This `<` or `&` begins no tag or entity, so it is ordinary text.
            out.push_str(&rest[..1]);
            &rest[1..]
        });
    }
    out.push_str(rest);
}

/// Reads an entity; returns the rest of the text.
fn entity<'t>(text: &'t str, out: &mut String) -> Option<&'t str> {
    let end =
        text.char_indices().skip(1).take(12).find(|(_, c)| !c.is_ascii_alphanumeric() && *c != '#');
    let (end, _) = end.filter(|(_, c)| *c == ';')?;
    let name = &text[1..end];
    let c = match name.strip_prefix('#') {
        Some(code) => match code.strip_prefix(['x', 'X']) {
            Some(code) => char::from_u32(u32::from_str_radix(code, 16).ok()?)?,
            None => char::from_u32(code.parse().ok()?)?,
        },
        None => entities::find(name)?,
    };
    out.push(c);
    Some(&text[end + 1..])
}

/// The length in bytes of the tag at the start of the text; `None` if there is none.
pub(super) fn mark_length(text: &str) -> Option<usize> {
    mark(text, &HtmlRules::default(), &mut String::new()).map(|behind| text.len() - behind.len())
}

/// Reads a tag; returns the rest of the text, or `None` if the `<` begins no tag.
fn mark<'t>(text: &'t str, rules: &HtmlRules, out: &mut String) -> Option<&'t str> {
    let behind = |end: &str| text.find(end).map_or("", |at| &text[at + end.len()..]);
    let next = *text.as_bytes().get(1)?;
    match next {
        b'!' if text.starts_with("<!--") => return Some(behind("-->")),
        b'!' => return Some(behind(">")),
        b'?' => return Some(behind("?>")),
        _ => {}
    }
    let is_end = next == b'/';
    let body = &text[if is_end { 2 } else { 1 }..];
    if !body.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let length = body.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/'));
    let (name, inside) = body.split_at(length.unwrap_or(body.len()));
    let name = name.to_ascii_lowercase();
    if !INLINE.contains(&name.as_str()) {
        out.push(' ');
    }
    let kept = rules.attributes.iter().find(|(element, _)| *element == name);
    let kept = kept.filter(|_| !is_end).map_or(&[][..], |(_, names)| names);
    let rest = attributes(inside, kept, out);
    if !is_end && rules.removed.contains(&name) {
        return Some(behind_element(rest, &name));
    }
    Some(rest)
}

/// Reads the attributes of a tag and appends the kept values; returns the text after the tag.
fn attributes<'t>(text: &'t str, kept: &[String], out: &mut String) -> &'t str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return rest;
        }
        if let Some(behind) = rest.strip_prefix('>') {
            return behind;
        }
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/'));
        // A character that no attribute can begin with is skipped.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (name, behind) = rest.split_at(length.unwrap_or(rest.len()).max(first));
        rest = behind.trim_start();
        let Some(value) = rest.strip_prefix('=').map(str::trim_start) else { continue };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => {
                let end = value.find(|c: char| c.is_whitespace() || c == '>');
                value.split_at(end.unwrap_or(value.len()))
            }
        };
        if kept.contains(&name.to_ascii_lowercase()) {
            out.push(' ');
            out.push_str(value.trim_end_matches('/'));
            out.push(' ');
        }
        rest = behind;
    }
}

/// The text after the end tag of an element.
fn behind_element<'t>(text: &'t str, name: &str) -> &'t str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let is_name = rest.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name));
        if is_name && !rest[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return rest.split_once('>').map_or("", |(_, behind)| behind);
        }
    }
    ""
}
