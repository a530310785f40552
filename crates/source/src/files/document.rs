//! Reads a JSON document strictly and in one pass. Errors name their place; valid parts are written in the form that
//! the row needs.
//!
//! Besides invalid JSON it refuses a duplicate name in an object, half of a surrogate pair, a number that no double can
//! represent (`1e999`), nesting beyond 100 levels and, for collections, an integer that would lose digits. Numbers keep
//! their digits.

mod extended;

use std::{borrow::Cow, collections::HashSet, fmt};

use remora_engine::loses_digits;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{
    pretty::string_length,
    shape::{Rows, Shape},
};

/// The deepest nesting of a document, as in collections. A scalar has depth 1.
const MAX_DEPTH: usize = 100;
/// The most bytes of a collection's document.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// Up to this number, an object's names are compared one by one; more are hashed.
const FEW_NAMES: usize = 16;
/// The most bytes of a document in a message.
const SHOWN_BYTES: usize = 60;

/// A parsed document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document<'t> {
    /// The text that the shape asks for.
    pub text: Cow<'t, str>,
    /// The values at the shape's key paths, as JSON.
    pub keys: Vec<Option<String>>,
}

/// Parses a document that begins on this line of its file. With `extended`, objects whose names begin with `$` are
/// values of MongoDB.
///
/// # Errors
/// The error and its place in the document.
pub(crate) fn read_document<'t>(
    text: &'t str,
    first_line: u64,
    shape: &Shape,
    extended: bool,
) -> Result<Document<'t>, String> {
    let mut walk = Walk::new(text, shape, extended);
    let mut json = serde_json::Deserializer::from_str(text);
    let keys = shape.key.iter().map(String::as_str).enumerate().collect();
    let seed = Node { walk: &mut walk, depth: 1, keys, flat: None };
    let read = seed.deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = read {
        return Err(walk.describe(&error, first_line));
    }
    let Walk { writes, out, keys, .. } = walk;
    let written = || String::from_utf8(out).map_err(|_| "the document is not UTF-8".to_owned());
    let text = if writes { Cow::Owned(written()?) } else { Cow::Borrowed(text) };
    if shape.rows == Rows::Documents && text.len() > MAX_DOCUMENT_BYTES {
        return Err(format!(
            "the document takes {} bytes: the limit of a collection's is {} MiB",
            text.len(),
            MAX_DOCUMENT_BYTES >> 20
        ));
    }
    let text = if shape.rows == Rows::Members { with_keys(text, shape, &keys) } else { text };
    let keys = keys.into_iter().map(|found| found.map(|found| found.value)).collect();
    Ok(Document { text, keys })
}

/// The value of a key path.
struct FoundKey {
    value: String,
    /// Whether it is in a nested object.
    is_nested: bool,
}

/// The object, with the values at nested key paths added as members.
fn with_keys<'t>(text: Cow<'t, str>, shape: &Shape, keys: &[Option<FoundKey>]) -> Cow<'t, str> {
    let mut text = text;
    for (path, found) in shape.key.iter().zip(keys) {
        let Some(found) = found.as_ref().filter(|found| found.is_nested) else { continue };
        let body = text.trim_ascii_end().strip_suffix('}').unwrap_or(&text);
        let comma = if body.trim_ascii_end().ends_with('{') { "" } else { "," };
        let name = serde_json::Value::from(path.as_str());
        text = Cow::Owned(format!("{body}{comma}{name}:{}}}", found.value));
    }
    text
}

/// The state of a pass over a document.
struct Walk<'t> {
    text: &'t str,
    /// Behind the last number that was met.
    cursor: usize,
    extended: bool,
    flatten: bool,
    writes: bool,
    /// Whether the document, or a part of it, becomes one of a collection.
    collection: bool,
    out: Vec<u8>,
    keys: Vec<Option<FoundKey>>,
    /// Dotted names that were written, where objects are flattened.
    flat_names: HashSet<String>,
    problem: Option<String>,
    /// The path to what is wrong, from the inside out.
    steps: Vec<String>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str, shape: &Shape, extended: bool) -> Self {
        let flatten = shape.rows == Rows::FlatMembers;
        Self {
            text,
            cursor: 0,
            extended,
            flatten,
            writes: extended || shape.rows != Rows::Members,
            collection: matches!(shape.rows, Rows::Documents | Rows::IdsAndDocuments),
            out: Vec::new(),
            keys: shape.key.iter().map(|_| None).collect(),
            flat_names: HashSet::new(),
            problem: None,
            steps: Vec::new(),
        }
    }

    fn describe(&self, error: &serde_json::Error, first_line: u64) -> String {
        let message = match &self.problem {
            Some(problem) => problem.clone(),
            None if error.is_data() => {
                return format!("not a JSON object: {}", shorten(self.text));
            }
            None => {
                let message = error.to_string();
                format!("not JSON: {}", message.split(" at line ").next().unwrap_or_default())
            }
        };
        let line = first_line.saturating_add(error.line().saturating_sub(1) as u64);
        let place = match error.line() {
            0 => String::new(),
            1 => format!(" at byte {}", error.column()),
            _ => format!(" at byte {} of line {line}", error.column()),
        };
        let path = self.steps.iter().rev().fold(String::new(), |path, step| {
            let dot = if path.is_empty() || step.starts_with('[') { "" } else { "." };
            path + dot + step
        });
        let path = if path.is_empty() { path } else { format!(", in {}", shorten(&path)) };
        format!("{message}{place}{path}")
    }

    fn fail<T, E: serde::de::Error>(&mut self, problem: impl Into<String>) -> Result<T, E> {
        self.problem.get_or_insert_with(|| problem.into());
        Err(E::custom("refused"))
    }

    /// The digits of the next number, which numbers are met in the order of.
    fn number(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let mut at = self.cursor;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1 + string_length(bytes.get(at + 1..).unwrap_or_default());
                }
                b'-' | b'0'..=b'9' => break,
                _ => at += 1,
            }
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let is_part = |byte: &&u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let end = at + rest.iter().take_while(is_part).count();
        self.cursor = end;
        self.text.get(at..end).unwrap_or_default()
    }
}

/// One value, and what is to be done with it.
struct Node<'w, 't, 'k> {
    walk: &'w mut Walk<'t>,
    depth: usize,
    /// The key paths that go through it: each with its number and what of the path is left.
    keys: Vec<(usize, &'k str)>,
    /// The dotted name of a member that is still to be written; empty for the document itself.
    flat: Option<String>,
}

impl<'t, 'k> Node<'_, 't, 'k> {
    /// Writes the name of a flattened member.
    fn begin<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let Some(name) = self.flat.take() else { return Ok(()) };
        if !self.walk.flat_names.insert(name.clone()) {
            let problem = format!(
                "two members lead to the column {name:?}: rename one, or import without --flatten"
            );
            return self.walk.fail(problem);
        }
        if self.walk.out.last() != Some(&b'{') {
            self.walk.out.push(b',');
        }
        push_text(&name, &mut self.walk.out)?;
        self.walk.out.push(b':');
        Ok(())
    }

    /// Writes a scalar, as JSON.
    fn scalar<E: serde::de::Error>(mut self, json: &str) -> Result<(), E> {
        self.check_depth()?;
        if self.depth == 1 {
            return Err(E::invalid_type(serde::de::Unexpected::Other("a scalar"), &"an object"));
        }
        for (key, rest) in std::mem::take(&mut self.keys) {
            if rest.is_empty()
                && json != "null"
                && let Some(found) = self.walk.keys.get_mut(key)
            {
                *found = Some(FoundKey { value: json.to_owned(), is_nested: self.depth > 2 });
            }
        }
        self.begin()?;
        if self.walk.writes {
            self.walk.out.extend_from_slice(json.as_bytes());
        }
        Ok(())
    }

    fn text<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if !self.walk.writes && self.keys.is_empty() {
            return self.scalar("\"\"");
        }
        let mut json = Vec::with_capacity(text.len() + 2);
        push_text(text, &mut json)?;
        self.scalar(std::str::from_utf8(&json).map_err(E::custom)?)
    }

    fn number<E: serde::de::Error>(mut self) -> Result<(), E> {
        // Nothing is written here, so only the number of numbers matters.
        if !self.walk.writes && self.walk.keys.is_empty() {
            return self.scalar("0");
        }
        let digits = self.walk.number();
        self.check_digits(digits)?;
        self.scalar(digits)
    }

    /// Refuses an integer of which a collection would lose digits.
    fn check_digits<E: serde::de::Error>(&mut self, number: &str) -> Result<(), E> {
        match self.walk.collection && loses_digits(number) {
            true => {
                self.walk.fail("an integer beyond 64 bits would lose digits: give it as a text")
            }
            false => Ok(()),
        }
    }

    fn check_depth<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth > MAX_DEPTH {
            let problem = format!(
                "nests deeper than {MAX_DEPTH} levels: flatten the document, or leave the inner part out"
            );
            return self.walk.fail(problem);
        }
        Ok(())
    }

    /// Refuses an object or an array as a key.
    fn refuse_as_key<E: serde::de::Error>(&mut self, what: &str) -> Result<(), E> {
        match self.keys.iter().any(|(_, rest)| rest.is_empty()) {
            true => self.walk.fail(format!("the key is {what}: name a path to a text or a number")),
            false => Ok(()),
        }
    }

    /// The rest of each key path that goes through a member of this name.
    fn keys_below(&self, name: &str) -> Vec<(usize, &'k str)> {
        let below = |&(key, rest): &(usize, &'k str)| {
            let rest = rest.strip_prefix(name)?;
            match rest.strip_prefix('.') {
                Some(rest) => Some((key, rest)),
                None => rest.is_empty().then_some((key, rest)),
            }
        };
        self.keys.iter().filter_map(below).collect()
    }

    /// The members of an object after the first name.
    fn members<'de, A: MapAccess<'de>>(
        mut self,
        first: Option<Cow<'de, str>>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let is_flat = self.walk.flatten && (self.depth == 1 || self.flat.is_some());
        let is_open = !is_flat || self.depth == 1 || first.is_none();
        if is_open {
            self.begin()?;
            self.open(b'{');
        }
        let mut names = Names::default();
        let mut next = first;
        while let Some(name) = next {
            if !names.insert(name.clone()) {
                let problem =
                    format!("the name {:?} comes twice in an object: keep one", shorten(&name));
                return self.walk.fail(problem);
            }
            let flat = is_flat.then(|| match self.flat.as_deref() {
                None => name.clone().into_owned(),
                Some(outer) => format!("{outer}.{name}"),
            });
            if !is_flat && self.walk.writes {
                if !names.is_first() {
                    self.walk.out.push(b',');
                }
                push_text(&name, &mut self.walk.out)?;
                self.walk.out.push(b':');
            }
            let keys = self.keys_below(&name);
            let below = Node { walk: &mut *self.walk, depth: self.depth + 1, keys, flat };
            if let Err(error) = map.next_value_seed(below) {
                self.walk.steps.push(shorten(&name));
                return Err(error);
            }
            next = map.next_key_seed(NameSeed)?;
        }
        if is_open {
            self.open(b'}');
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8) {
        if self.walk.writes {
            self.walk.out.push(bracket);
        }
    }
}

fn push_text<E: serde::de::Error>(text: &str, out: &mut Vec<u8>) -> Result<(), E> {
    serde_json::to_writer(out, text).map_err(E::custom)
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar("null")
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<(), E> {
        self.scalar(if truth { "true" } else { "false" })
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.number()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.number()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.number()
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.check_depth()?;
        if self.depth == 1 {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        self.refuse_as_key("an array")?;
        self.begin()?;
        self.open(b'[');
        let mut place = 0_usize;
        loop {
            let comma = place > 0 && self.walk.writes;
            let below = Element { walk: &mut *self.walk, depth: self.depth + 1, comma };
            match seq.next_element_seed(below) {
                Ok(Some(())) => place += 1,
                Ok(None) => break,
                Err(error) => {
                    self.walk.steps.push(format!("[{place}]"));
                    return Err(error);
                }
            }
        }
        self.open(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.check_depth()?;
        let first = map.next_key_seed(NameSeed)?;
        if self.walk.extended
            && self.depth > 1
            && let Some(name) = first.as_deref().filter(|name| extended::is_value(name))
        {
            let (value, numbers) = extended::read(name, &mut map, self.walk)?;
            for _ in 0..numbers {
                self.walk.number();
            }
            self.check_digits(&value)?;
            return self.scalar(&value);
        }
        self.refuse_as_key("an object")?;
        self.members(first, &mut map)
    }
}

/// One element of an array.
struct Element<'w, 't> {
    walk: &'w mut Walk<'t>,
    depth: usize,
    comma: bool,
}

impl<'de> DeserializeSeed<'de> for Element<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        if self.comma {
            self.walk.out.push(b',');
        }
        Node { walk: self.walk, depth: self.depth, keys: Vec::new(), flat: None }
            .deserialize(source)
    }
}

/// The name of a member.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// The names of an object, without duplicates.
#[derive(Default)]
struct Names<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Names<'de> {
    /// False for a duplicate.
    fn insert(&mut self, name: Cow<'de, str>) -> bool {
        if self.few.contains(&name) || self.many.contains(&name) {
            return false;
        }
        match self.few.len() < FEW_NAMES {
            true => self.few.push(name),
            false => {
                self.many.insert(name);
            }
        }
        true
    }

    fn is_first(&self) -> bool {
        self.few.len() == 1
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_BYTES) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
