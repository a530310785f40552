//! Paths into documents.
//!
//! ```text
//! path  := "$" step*
//! step  := "." key | "." "*" | "[" place "]" | "[" "*" "]" | "[" place "to" place "]" | "**" step
//! key   := identifier | JSON string
//! place := digit+ | "last" ("-" digit+)?
//! ```

use remora_engine::element_place;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashSet;

use super::Json;
use crate::{Error, Result};

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// The steps after `$`.
    pub steps: Vec<PathStep>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathStep {
    /// The member with this key.
    Key(String),
    /// Every member.
    AnyKey,
    /// An element of an array.
    Index(ArrayCell),
    /// Every element.
    AnyIndex,
    /// A range of elements, both ends included.
    Range(ArrayCell, ArrayCell),
    /// The value itself and everything inside it.
    Anything,
}

/// An index of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ArrayCell {
    /// Counted from the first element, which is 0.
    First(usize),
    /// Counted from the last element, which is 0.
    Last(usize),
}

impl ArrayCell {
    /// The index in an array of this length, if it is within the array.
    pub(crate) fn index(self, length: usize) -> Option<usize> {
        match self {
            Self::First(index) => (index < length).then_some(index),
            Self::Last(back) => length.checked_sub(back + 1),
        }
    }
}

impl Path {
    /// Parses a path; 3143 if it is invalid.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut reader = PathReader { rest: text.trim(), text };
        if !reader.take("$") {
            return Err(reader.error());
        }
        let mut steps = Vec::new();
        while !reader.skip_spaces().is_empty() {
            steps.push(reader.step()?);
        }
        match steps.last() {
            Some(PathStep::Anything) => Err(reader.error()),
            _ => Ok(Self { steps }),
        }
    }

    /// The names of a path that consists of names only.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let name = |step: &PathStep| match step {
            PathStep::Key(name) => Some(name.clone()),
            _ => None,
        };
        self.steps.iter().map(name).collect()
    }

    /// The names of a path of names and `[*]`: an index over them, which looks into arrays on its way and at its end,
    /// has each scalar at the path and each within the arrays there. `None` if it may lack one: it looks into one array
    /// between two names and one behind the last, and a name that is a number leads it to that element of an array
    /// only.
    pub(crate) fn names_through_arrays(&self) -> Option<Vec<String>> {
        let (mut names, mut is_in_array) = (Vec::new(), false);
        for step in &self.steps {
            match step {
                PathStep::Key(name) if !is_in_array || element_place(name).is_none() => {
                    names.push(name.clone());
                    is_in_array = false;
                }
                PathStep::AnyIndex if !is_in_array => is_in_array = true,
                _ => return None,
            }
        }
        Some(names)
    }

    /// Whether the path can match several values.
    pub(crate) fn is_multiple(&self) -> bool {
        let single = |step: &PathStep| matches!(step, PathStep::Key(_) | PathStep::Index(_));
        !self.steps.iter().all(single)
    }

    /// Whether all steps are keys.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, PathStep::Key(_)))
    }

    /// The values at the path.
    pub(crate) fn find<'a>(&self, document: &'a Json) -> Vec<&'a Json> {
        let (mut values, mut led) = (vec![document], Vec::new());
        let mut in_several_ways = false;
        for step in &self.steps {
            let mut known: FxHashSet<*const Json> = FxHashSet::default();
            if *step == PathStep::Anything {
                in_several_ways = true;
                values.drain(..).for_each(|value| inside(value, &mut known, &mut led));
            } else {
                values.drain(..).for_each(|value| lead(value, step, &mut led));
                if in_several_ways {
                    led.retain(|value: &&'a Json| known.insert(std::ptr::from_ref(*value)));
                }
            }
            std::mem::swap(&mut values, &mut led);
        }
        values
    }
}

/// Adds a value and everything inside it, in document order. Values in `known` were added before
/// with all that is inside them.
fn inside<'a>(value: &'a Json, known: &mut FxHashSet<*const Json>, found: &mut Vec<&'a Json>) {
    if !known.insert(std::ptr::from_ref(value)) {
        return;
    }
    found.push(value);
    match value {
        Json::Array(values) => values.iter().for_each(|each| inside(each, known, found)),
        Json::Object(members) => members.iter().for_each(|(_, each)| inside(each, known, found)),
        _ => {}
    }
}

/// The values that one step leads to, except `**`.
fn lead<'a>(value: &'a Json, step: &PathStep, found: &mut Vec<&'a Json>) {
    match (step, value) {
        (PathStep::Key(key), value) => found.extend(value.get(key)),
        (PathStep::AnyKey, Json::Object(members)) => {
            found.extend(members.iter().map(|(_, member)| member));
        }
        (PathStep::AnyIndex, Json::Array(values)) => found.extend(values),
        (PathStep::Index(place), Json::Array(values)) => {
            found.extend(place.index(values.len()).and_then(|index| values.get(index)));
        }
        // A value that is not an array counts as an array of one element.
        (PathStep::Index(ArrayCell::First(0) | ArrayCell::Last(0)), value) => found.push(value),
        (PathStep::Range(from, to), Json::Array(values)) => found.extend(range(values, *from, *to)),
        (PathStep::Range(from, _), value) if from.index(1).is_some() => found.push(value),
        _ => {}
    }
}

fn range(values: &[Json], from: ArrayCell, to: ArrayCell) -> &[Json] {
    let first = match from {
        ArrayCell::First(index) => index,
        ArrayCell::Last(back) => values.len().saturating_sub(back + 1),
    };
    let end = match to {
        ArrayCell::First(index) => (index + 1).min(values.len()),
        ArrayCell::Last(back) => values.len().saturating_sub(back),
    };
    values.get(first..end).unwrap_or(&[])
}

struct PathReader<'a> {
    rest: &'a str,
    text: &'a str,
}

impl<'a> PathReader<'a> {
    fn take(&mut self, wanted: &str) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_spaces(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn error(&self) -> Error {
        let place = (self.text.chars().count() - self.rest.chars().count()).max(1);
        let message = format!(
            "Invalid JSON path expression. The error is around character position {place}."
        );
        Error::new(ErrorCode::InvalidJsonPath, message)
    }

    fn step(&mut self) -> Result<PathStep> {
        if self.take("**") {
            return Ok(PathStep::Anything);
        }
        if self.take(".") {
            self.skip_spaces();
            if self.take("*") {
                return Ok(PathStep::AnyKey);
            }
            return self.key().map(PathStep::Key);
        }
        if !self.take("[") {
            return Err(self.error());
        }
        self.skip_spaces();
        let step = if self.take("*") {
            PathStep::AnyIndex
        } else {
            let from = self.place()?;
            self.skip_spaces();
            if self.take("to ") {
                PathStep::Range(from, self.place()?)
            } else {
                PathStep::Index(from)
            }
        };
        self.skip_spaces();
        if self.take("]") { Ok(step) } else { Err(self.error()) }
    }

    fn key(&mut self) -> Result<String> {
        if self.rest.starts_with('"') {
            let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let key = stream.next().and_then(std::result::Result::ok);
            let taken = stream.byte_offset();
            let key = key.ok_or_else(|| self.error())?;
            self.rest = self.rest.get(taken..).unwrap_or("");
            return Ok(key);
        }
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let length = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(length);
        if key.is_empty() || key.starts_with(|letter: char| letter.is_ascii_digit()) {
            return Err(self.error());
        }
        self.rest = rest;
        Ok(key.to_owned())
    }

    fn place(&mut self) -> Result<ArrayCell> {
        self.skip_spaces();
        if self.take("last") {
            self.skip_spaces();
            if !self.take("-") {
                return Ok(ArrayCell::Last(0));
            }
            self.skip_spaces();
            return self.number().map(ArrayCell::Last);
        }
        self.number().map(ArrayCell::First)
    }

    fn number(&mut self) -> Result<usize> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        let number = digits.parse().map_err(|_| self.error())?;
        self.rest = rest;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_they_say() {
        let document = Json::parse(r#"{"a":[1,{"b":2},[3]],"c d":4}"#).unwrap();
        let found = |path: &str| -> Vec<String> {
            Path::parse(path).unwrap().find(&document).iter().map(|each| each.text()).collect()
        };
        assert_eq!(found("$.a[0]"), ["1"]);
        assert_eq!(found("$.a[last]"), ["[3]"]);
        assert_eq!(found("$.a[1 to last][0]"), [r#"{"b": 2}"#, "3"]);
        assert_eq!(found(r#"$."c d""#), ["4"]);
        assert_eq!(found("$**.b"), ["2"]);
        assert_eq!(found("$.*[0]"), ["1", "4"]);
        // Each value is found once, even if several ways lead to it.
        assert_eq!(found("$.a**[0]"), ["1", r#"{"b": 2}"#, "2", "3"]);
        assert_eq!(found("$.a**[0]**[0]"), ["1", r#"{"b": 2}"#, "2", "3"]);
        assert_eq!(found("$**[1 to 2][0]"), [r#"{"b": 2}"#, "3"]);
        assert!(Path::parse("a").is_err() && Path::parse("$.").is_err());
    }
}
