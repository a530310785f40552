//! A MygramDB file as a tree in which every value has its line.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::settings::keys;

/// A value of the file.
#[derive(Debug)]
pub(super) struct Node {
    /// The line of its beginning, from 1.
    pub line: u64,
    pub tree: Tree,
}

/// The contents of a value.
#[derive(Debug)]
pub(super) enum Tree {
    /// Null, boolean, number or text.
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Entry {
    pub key: String,
    /// The line of the key.
    pub line: u64,
    pub value: Node,
}

/// Parses a file into a tree; the error names the line.
pub(super) fn read(text: &str) -> Result<Node, String> {
    serde_saphyr::from_str::<Spanned<Tree>>(text).map(Node::from).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(1, |location| location.line());
        format!("line {line}: {}", keys::explain(&error.to_string()))
    })
}

impl Node {
    /// The value of a key; `None` if this is not a map or lacks it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value at a dotted path.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.tree {
            Tree::Map(entries) => entries,
            Tree::Scalar(_) | Tree::List(_) => &[],
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.tree {
            Tree::List(items) => items,
            Tree::Scalar(_) | Tree::Map(_) => &[],
        }
    }

    /// The text; `None` for other types.
    pub fn text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Scalar(value) => value.as_str(),
            Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// The value without lines.
    pub fn to_value(&self) -> Value {
        match &self.tree {
            Tree::Scalar(value) => value.clone(),
            Tree::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Tree::Map(entries) => {
                let pairs = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}

impl From<Spanned<Tree>> for Node {
    fn from(spanned: Spanned<Tree>) -> Self {
        Self { line: spanned.referenced.line(), tree: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        // Numbers that JSON lacks (.inf, .nan) become a text.
        let number = Number::from_f64(number).map(Value::Number);
        Ok(Tree::Scalar(number.unwrap_or_else(|| Value::String("no finite number".to_owned()))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Spanned<Tree>>()? {
            items.push(item.into());
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<Tree>>()? {
            let line = key.referenced.line();
            entries.push(Entry { key: key.value, line, value: value.into() });
        }
        Ok(Tree::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let text = "a: 1\nb:\n  c: 'x'\n  d: [1,\n    2.5, true]\n";
        let node = read(text).unwrap();
        assert_eq!(node.at("a").unwrap().line, 1);
        assert_eq!(node.get("b").unwrap().entries()[1].line, 4);
        assert_eq!(node.at("b.c").unwrap().text(), Some("x"));
        assert_eq!(node.at("b.d").unwrap().items()[1].line, 5);
        assert!(node.at("b.x").is_none());
        let expected = serde_json::json!({"a": 1, "b": {"c": "x", "d": [1, 2.5, true]}});
        assert_eq!(node.to_value(), expected);
        assert!(read("a: [1\n").unwrap_err().starts_with("line "));
    }
}
