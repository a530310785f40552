//! Refuses a body in which an object has a name twice: of two values one would be dropped in silence.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The most names of a path in a message.
const SHOWN_NAMES: usize = 8;
/// The most characters of a name in a message.
const SHOWN_CHARS: usize = 40;

/// The name that comes twice, and where. Invalid JSON is no concern here.
pub(super) fn duplicate(body: &[u8]) -> Option<String> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(body);
    let top = Node { above: None, found: &mut found };
    // It ends at the duplicate, with an error that says nothing.
    let _ = top.deserialize(&mut json);
    found
}

/// A value to look through.
struct Node<'n> {
    above: Option<&'n Above<'n>>,
    found: &'n mut Option<String>,
}

/// The way to a value: a member's name, or a place in an array.
struct Above<'n> {
    step: String,
    above: Option<&'n Self>,
}

impl Node<'_> {
    fn message(&self, name: &str) -> String {
        let mut steps = Vec::new();
        let mut next = self.above;
        while let Some(above) = next {
            steps.push(above.step.as_str());
            next = above.above;
        }
        steps.reverse();
        steps.truncate(SHOWN_NAMES);
        let message = format!("the name {:?} comes twice in an object: keep one", shown(name));
        match steps.is_empty() {
            true => message,
            false => format!("{message}, in {}", steps.join(".")),
        }
    }
}

/// The beginning of a name.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN_CHARS).collect()
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for place in 0_usize.. {
            let above = Above { step: place.to_string(), above: self.above };
            let node = Node { above: Some(&above), found: &mut *self.found };
            if list.next_element_seed(node)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if names.contains(&name) {
                *self.found = Some(self.message(&name));
                return Err(A::Error::custom("a duplicate"));
            }
            let above = Above { step: shown(&name), above: self.above };
            names.insert(name);
            map.next_value_seed(Node { above: Some(&above), found: &mut *self.found })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_is_named_with_its_place() {
        let one = |name: &str| format!("the name {name:?} comes twice in an object: keep one");
        for (body, expected) in [
            (r#"{"q":"a","q":"b"}"#, Some(one("q"))),
            (r#"{"q":"a","\u0071":"b"}"#, Some(one("q"))),
            (r#"{"filters":{"a":1,"b":2,"a":3}}"#, Some(one("a") + ", in filters")),
            (r#"{"sort":[{"column":"a"},{"column":"a","column":"b"}]}"#, {
                Some(one("column") + ", in sort.1")
            }),
            (r#"{"q":"a","filters":{"q":1},"sort":[{"q":1},{"q":1}]}"#, None),
            (r#"{"q":"a","q""#, Some(one("q"))),
            ("{", None),
            ("[1, null, true, 1.5, -2, \"a\"]", None),
        ] {
            assert_eq!(duplicate(body.as_bytes()), expected, "{body}");
        }
        let deep = "{\"a\":".repeat(200_000);
        assert_eq!(duplicate(deep.as_bytes()), None);
    }
}
