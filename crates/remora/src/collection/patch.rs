//! JSON Patch, RFC 6902: a list of operations on parts of a document, which apply all or not at
//! all.
//!
//! Parts are named by JSON Pointers (RFC 6901), such as `/a/0/b`. In names, `~1` means `/` and `~0`
//! means `~`.

use remora_engine::element_place;
use serde_json::{Map, Value as Json};

use crate::{
    Error, Result,
    json::{MAX_BYTES, MAX_DEPTH, depth, size, too_deep, too_long},
};

/// The most operations of a patch.
const MAX_OPERATIONS: usize = 10_000;

/// Applies a patch. After an error the document may be partly changed.
///
/// # Errors
/// [`Error::Request`] with the operation and its path; [`Error::Changed`] if a `test` fails.
pub(super) fn apply(document: &mut Json, patch: &Json) -> Result<()> {
    let Json::Array(operations) = patch else {
        return Err(Error::request("a JSON Patch is an array of operations"));
    };
    if operations.len() > MAX_OPERATIONS {
        let message = format!(
            "a JSON Patch has {} operations: the limit is {MAX_OPERATIONS}",
            operations.len()
        );
        return Err(Error::request(message));
    }
    // Limits what operations add, including copies of copies, to the size of a document.
    let mut left = MAX_BYTES;
    for (number, operation) in (1_usize..).zip(operations) {
        let run = run(document, operation, &mut left);
        run.map_err(|error| error.at(format!("operation {number} of the patch")))?;
    }
    Ok(())
}

fn run(document: &mut Json, operation: &Json, left: &mut usize) -> Result<()> {
    let operation =
        operation.as_object().ok_or_else(|| Error::request("an operation is an object"))?;
    let kind = text_of(operation, "op")?;
    let path = Pointer::parse(text_of(operation, "path")?)?;
    match kind {
        "add" => path.add(document, value_of(operation)?.clone(), left),
        "remove" => path.remove(document).map(drop),
        "replace" => {
            let value = value_of(operation)?.clone();
            check_size(&path, &value, left)?;
            *path.find(document)? = value;
            Ok(())
        }
        "move" => {
            let from = Pointer::parse(text_of(operation, "from")?)?;
            if path.names.len() > from.names.len() && path.names.starts_with(&from.names) {
                return Err(Error::request(format!(
                    "{from} cannot be moved into itself, to {path}"
                )));
            }
            let moved = from.remove(document)?;
            path.add(document, moved, left)
        }
        "copy" => {
            let from = Pointer::parse(text_of(operation, "from")?)?;
            let copied = from.find(document)?;
            // Checked before anything is copied.
            if size(copied) > *left {
                return Err(too_long());
            }
            let copied = copied.clone();
            path.add(document, copied, left)
        }
        "test" => match equal(path.find(document)?, value_of(operation)?) {
            true => Ok(()),
            false => {
                let message = format!("{path} is not what \"test\" says");
                Err(Error::Changed(message.into()))
            }
        },
        other => Err(Error::request(format!(
            "{other:?} is no operation: there are add, remove, replace, move, copy and test"
        ))),
    }
}

fn text_of<'o>(operation: &'o Map<String, Json>, member: &str) -> Result<&'o str> {
    operation
        .get(member)
        .and_then(Json::as_str)
        .ok_or_else(|| Error::request(format!("it has no {member:?}, which is a text")))
}

fn value_of(operation: &Map<String, Json>) -> Result<&Json> {
    operation.get("value").ok_or_else(|| Error::request("it has no \"value\""))
}

/// Deducts the size of what is added, and refuses it if it would be nested too deep.
fn check_size(path: &Pointer, value: &Json, left: &mut usize) -> Result<()> {
    *left = left.checked_sub(size(value)).ok_or_else(too_long)?;
    if path.names.len() + depth(value) > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
}

/// Whether two values are equal. Numbers are compared by value, so 1 equals 1.0.
fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => crate::filter::order(Some(a), Some(b)).is_eq(),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let has = |(name, a): (&String, &Json)| b.get(name).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(has)
        }
        _ => a == b,
    }
}

/// A parsed JSON Pointer.
#[derive(Clone, Debug, PartialEq)]
struct Pointer {
    names: Vec<String>,
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.names.is_empty() {
            return out.write_str("the whole document");
        }
        let written = |name: &String| name.replace('~', "~0").replace('/', "~1");
        self.names.iter().try_for_each(|name| write!(out, "/{}", written(name)))
    }
}

/// A position inside a value.
enum PatchTarget<'d> {
    Member(&'d mut Map<String, Json>),
    /// An array and an index, which may equal its length.
    Element(&'d mut Vec<Json>, usize),
}

impl Pointer {
    fn parse(text: &str) -> Result<Self> {
        let Some(names) = text.strip_prefix('/') else {
            return match text {
                "" => Ok(Self { names: Vec::new() }),
                _ => Err(Error::request(format!("{text:?} is no JSON Pointer: it begins with /"))),
            };
        };
        let names: Vec<String> = names.split('/').map(unescaped).collect::<Result<_>>()?;
        // No document has a deeper value.
        if names.len() > MAX_DEPTH { Err(too_deep()) } else { Ok(Self { names }) }
    }

    fn missing(&self) -> Error {
        Error::request(format!("there is nothing at {self}"))
    }

    /// The value at this path.
    fn find<'d>(&self, document: &'d mut Json) -> Result<&'d mut Json> {
        let mut names = self.names.iter();
        names.try_fold(document, |value, name| below(value, name)).ok_or_else(|| self.missing())
    }

    /// The parent of this path's value, and the position in it.
    fn around<'d>(&self, document: &'d mut Json) -> Result<(PatchTarget<'d>, &str)> {
        let (last, before) = self.names.split_last().ok_or_else(|| self.missing())?;
        let around = before.iter().try_fold(document, |value, name| below(value, name));
        match around.ok_or_else(|| self.missing())? {
            Json::Object(members) => Ok((PatchTarget::Member(members), last)),
            Json::Array(elements) => {
                let place = match last.as_str() {
                    "-" => Some(elements.len()),
                    number => element_place(number),
                };
                let place = place.filter(|place| *place <= elements.len());
                Ok((PatchTarget::Element(elements, place.ok_or_else(|| self.missing())?), last))
            }
            _ => Err(self.missing()),
        }
    }

    fn add(&self, document: &mut Json, value: Json, left: &mut usize) -> Result<()> {
        check_size(self, &value, left)?;
        if self.names.is_empty() {
            *document = value;
            return Ok(());
        }
        match self.around(document)? {
            (PatchTarget::Member(members), name) => _ = members.insert(name.to_owned(), value),
            (PatchTarget::Element(elements, place), _) => elements.insert(place, value),
        }
        Ok(())
    }

    fn remove(&self, document: &mut Json) -> Result<Json> {
        if self.names.is_empty() {
            return Ok(document.take());
        }
        match self.around(document)? {
            (PatchTarget::Member(members), name) => {
                members.remove(name).ok_or_else(|| self.missing())
            }
            (PatchTarget::Element(elements, place), _) if place < elements.len() => {
                Ok(elements.remove(place))
            }
            _ => Err(self.missing()),
        }
    }
}

fn below<'d>(value: &'d mut Json, name: &str) -> Option<&'d mut Json> {
    match value {
        Json::Object(members) => members.get_mut(name),
        Json::Array(elements) => elements.get_mut(element_place(name)?),
        _ => None,
    }
}

fn unescaped(name: &str) -> Result<String> {
    let mut pieces = name.split('~');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (letter, rest) = match (piece.strip_prefix('0'), piece.strip_prefix('1')) {
            (Some(rest), _) => ('~', rest),
            (_, Some(rest)) => ('/', rest),
            _ => {
                let message = format!("{name:?} has a ~ that is neither ~0 nor ~1");
                return Err(Error::request(message));
            }
        };
        out.push(letter);
        out.push_str(rest);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: &Json, patch: &Json) -> Result<Json> {
        let mut document = document.clone();
        apply(&mut document, patch).map(|()| document)
    }

    /// Appendix A of the RFC: document, patch, result.
    #[test]
    fn the_examples_of_the_rfc() {
        let examples = json!([
            [{"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}],
            [{"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}],
             {"foo": ["bar", "qux", "baz"]}],
            [{"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}],
            [{"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}],
            [{"baz": "qux", "foo": "bar"}, [{"op": "replace", "path": "/baz", "value": "boo"}],
             {"baz": "boo", "foo": "bar"}],
            [{"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
             [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
             {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}],
            [{"foo": ["all", "grass", "cows", "eat"]}, [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
             {"foo": ["all", "cows", "eat", "grass"]}],
            [{"baz": "qux", "foo": ["a", 2, "c"]},
             [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
             {"baz": "qux", "foo": ["a", 2, "c"]}],
            [{"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
             {"foo": "bar", "child": {"grandchild": {}}}],
            [{"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
             {"foo": "bar", "baz": "qux"}],
            [{"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}],
            [{"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
             {"foo": ["bar", ["abc", "def"]]}],
        ]);
        for example in examples.as_array().unwrap() {
            assert_eq!(patched(&example[0], &example[1]).unwrap(), example[2], "{example}");
        }
    }

    #[test]
    fn what_the_rfc_refuses() {
        let told = |document: Json, patch: Json| patched(&document, &patch).unwrap_err();
        // A.9, A.12 and A.15 of the RFC.
        let test = json!([{"op": "test", "path": "/baz", "value": "bar"}]);
        assert!(matches!(told(json!({"baz": "qux"}), test), Error::Changed(_)));
        let error =
            told(json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]));
        assert!(
            error.to_string().contains("operation 1") && error.to_string().contains("/baz/bat")
        );
        let text = json!([{"op": "test", "path": "/~01", "value": "10"}]);
        assert!(matches!(told(json!({"/": 9, "~1": 10}), text), Error::Changed(_)));
        for patch in [
            json!({"op": "remove", "path": "/a"}),
            json!([{"op": "remove", "path": "/x"}]),
            json!([{"op": "remove", "path": "/a/-"}]),
            json!([{"op": "remove", "path": "/a/2"}]),
            json!([{"op": "add", "path": "/a/01", "value": 1}]),
            json!([{"op": "add", "path": "/a/3", "value": 1}]),
            json!([{"op": "add", "path": "a", "value": 1}]),
            json!([{"op": "add", "path": "/~2", "value": 1}]),
            json!([{"op": "add", "path": "/a"}]),
            json!([{"op": "replace", "path": "/x", "value": 1}]),
            json!([{"op": "move", "from": "/a", "path": "/a/0"}]),
            json!([{"op": "copy", "path": "/b"}]),
            json!([{"op": "spam", "path": "/a"}]),
            json!([7]),
        ] {
            assert!(
                matches!(told(json!({"a": [1, 2]}), patch.clone()), Error::Request(_)),
                "{patch}"
            );
        }
    }

    #[test]
    fn whole_documents_and_numbers_by_value() {
        let replaced = json!([{"op": "replace", "path": "", "value": [1]}]);
        assert_eq!(patched(&json!({"a": 1}), &replaced).unwrap(), json!([1]));
        let wrapped = json!([{"op": "copy", "from": "", "path": "/a"}]);
        assert_eq!(patched(&json!({"b": 1}), &wrapped).unwrap(), json!({"b": 1, "a": {"b": 1}}));
        let same = json!([{"op": "test", "path": "", "value": {"a": [1.0]}}]);
        assert!(patched(&json!({"a": [1]}), &same).is_ok());
    }

    #[test]
    fn copies_of_copies_and_depth_have_a_limit() {
        let deeper = json!({"op": "copy", "from": "", "path": "/a"});
        let error = patched(&json!({"x": "y"}), &json!(vec![deeper; 110])).unwrap_err().to_string();
        assert!(error.contains("operation 99") && error.contains("deeper than 100"), "{error}");
        let doubling = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let error = patched(&json!({"a": []}), &json!(vec![doubling; 40])).unwrap_err().to_string();
        assert!(error.contains("16 MiB"), "{error}");
        let long = format!("/{}", vec!["a"; 101].join("/"));
        let deep = json!([{"op": "add", "path": long, "value": 1}]);
        assert!(patched(&json!({}), &deep).unwrap_err().to_string().contains("deeper than 100"));
        let many = json!(vec![json!({"op": "test", "path": "", "value": 1}); 10_001]);
        assert!(patched(&json!(1), &many).unwrap_err().to_string().contains("limit is 10000"));
    }
}
