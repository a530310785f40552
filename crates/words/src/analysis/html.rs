//! Removes HTML tags from a text.

use super::{
    entities,
    marks::{PARAGRAPH_CODE, ZONE_CODE},
};
use crate::{Result, WordsError, settings::Settings};

/// What is kept and what is removed besides tags.
#[derive(Default)]
pub(super) struct HtmlRules {
    /// Elements with the attributes whose values are kept.
    attributes: Vec<(String, Vec<String>)>,
    /// Elements that are removed with their content.
    removed: Vec<String>,
    /// Whether elements that divide paragraphs leave marks.
    marks_paragraphs: bool,
    /// The elements that leave marks as zones, by name or by the beginnings of their names.
    zones: Vec<ZoneRule>,
}

/// The elements that are a zone.
struct ZoneRule {
    name: String,
    is_prefix: bool,
}

/// Elements that do not separate words.
const INLINE: [&str; 18] = [
    "a", "b", "i", "s", "u", "basefont", "big", "em", "font", "img", "label", "small", "span",
    "strike", "strong", "sub", "sup", "tt",
];

/// The longest name of a zone in bytes; elements with longer ones are none. Names are indexed like keywords.
const MAX_ZONE: usize = 64;

/// Elements that divide paragraphs, in the order of the alphabet.
const BLOCKS: [&str; 26] = [
    "address",
    "blockquote",
    "caption",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "li",
    "menu",
    "ol",
    "p",
    "pre",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
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
        let zone = |(name, is_prefix): (&str, bool)| {
            let name = name.to_ascii_lowercase();
            ZoneRule { name, is_prefix }
        };
        Ok(Self {
            attributes,
            removed: list(settings.html_remove_elements()),
            marks_paragraphs: settings.index_sp(),
            zones: zone_names(settings.index_zones()).map(zone).collect(),
        })
    }

    /// Whether texts get marks. Then what [`strip`] writes goes through [`collapse`].
    pub(super) fn has_marks(&self) -> bool {
        self.marks_paragraphs || !self.zones.is_empty()
    }

    fn is_zone(&self, name: &str) -> bool {
        name.len() <= MAX_ZONE
            && self.zones.iter().any(|zone| match zone.is_prefix {
                true => name.starts_with(&zone.name),
                false => name == zone.name,
            })
    }

    /// Appends what a tag leaves.
    fn push_tag(&self, name: &str, is_end: bool, out: &mut String) {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        let element = &name[..name.find(|c| !is_of_name(c)).unwrap_or(name.len())];
        if self.is_zone(element) {
            let slash = if is_end { "/" } else { "" };
            out.push(ZONE_CODE);
            out.push_str(slash);
            out.push_str(element);
            out.push(ZONE_CODE);
        } else if self.marks_paragraphs && BLOCKS.binary_search(&element).is_ok() {
            out.push(PARAGRAPH_CODE);
        } else if !INLINE.contains(&name) {
            out.push(' ');
        }
    }

    /// Appends text. Characters that could be codes of marks become spaces.
    fn push_text(&self, text: &str, out: &mut String) {
        match self.has_marks() {
            true => out.extend(text.chars().map(|c| if c < ' ' { ' ' } else { c })),
            false => out.push_str(text),
        }
    }
}

/// The names in the setting `index_zones`, and whether each is the beginning of names.
fn zone_names(list: &str) -> impl Iterator<Item = (&str, bool)> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| match name.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (name, false),
    })
}

/// Writes the text with runs of spaces reduced to one, and of marks next to each other only those that count: zones before
/// paragraphs.
pub(super) fn collapse(text: &str, out: &mut String) {
    out.clear();
    let (mut is_behind_space, mut is_behind_paragraph, mut is_behind_zone) = (false, false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        rest = behind;
        match c {
            ' ' | '\t' | '\n' | '\r' => {
                if !is_behind_space {
                    out.push(' ');
                }
                is_behind_space = true;
            }
            PARAGRAPH_CODE => {
                if !is_behind_paragraph && !is_behind_zone {
                    out.push(c);
                    is_behind_paragraph = true;
                }
                is_behind_space = true;
            }
            ZONE_CODE => {
                if is_behind_paragraph {
                    out.pop();
                }
                let end = behind.find(ZONE_CODE).map_or(behind.len(), |at| at + 1);
                out.push(c);
                out.push_str(&behind[..end]);
                rest = &behind[end..];
                (is_behind_space, is_behind_zone, is_behind_paragraph) = (true, true, false);
            }
            _ => {
                out.push(c);
                (is_behind_space, is_behind_paragraph, is_behind_zone) = (false, false, false);
            }
        }
    }
}

/// Appends the text without tags to `out`, with codes in the places of tags that leave marks.
pub(super) fn strip(text: &str, rules: &HtmlRules, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        rules.push_text(&rest[..at], out);
        rest = &rest[at..];
        let read = if rest.starts_with('&') { entity(rest, out) } else { mark(rest, rules, out) };
        rest = read.unwrap_or_else(|| {
            // This `<` or `&` begins no tag or entity, so it is ordinary text.
            out.push_str(&rest[..1]);
            &rest[1..]
        });
    }
    rules.push_text(rest, out);
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
    // Control characters are no text.
    out.push(c.max(' '));
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
    let kept = rules.attributes.iter().find(|(element, _)| *element == name);
    let kept = kept.filter(|_| !is_end).map_or(&[][..], |(_, names)| names);
    let rest = attributes(inside, kept, rules, out);
    rules.push_tag(&name, is_end, out);
    if !is_end && rules.removed.contains(&name) {
        return Some(behind_element(rest, &name));
    }
    Some(rest)
}

/// Reads the attributes of a tag and appends the kept values; returns the text after the tag.
fn attributes<'t>(text: &'t str, kept: &[String], rules: &HtmlRules, out: &mut String) -> &'t str {
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
            rules.push_text(value.trim_end_matches('/'), out);
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
