//! Documents reduced to some of their paths.

use remora_engine::element_place;
use serde_json::{Map, Value as Json};

use crate::{Paths, json::MAX_DEPTH};

/// The paths that are kept of documents.
#[derive(Clone, Debug)]
pub(super) struct KeptFields(Vec<Vec<String>>);

impl KeptFields {
    pub fn new(paths: Paths) -> Self {
        let mut paths = paths.into_names();
        // No document has a deeper value.
        paths.retain(|names| names.len() <= MAX_DEPTH);
        Self(paths)
    }

    /// The document with only the values at the paths, and the objects and arrays around them.
    /// Without any, it is an empty array if the document is an array, else an empty object.
    pub fn keep(&self, document: Json) -> Json {
        let nothing = match &document {
            Json::Array(_) => Json::Array(Vec::new()),
            _ => Json::Object(Map::new()),
        };
        let paths: Vec<&[String]> = self.0.iter().map(Vec::as_slice).collect();
        kept(document, paths).unwrap_or(nothing)
    }
}

/// What the paths lead to, with what is around it; `None` if they lead to nothing.
fn kept(value: Json, mut paths: Vec<&[String]>) -> Option<Json> {
    if paths.iter().any(|names| names.is_empty()) {
        return Some(value);
    }
    match value {
        Json::Object(members) => {
            paths.sort_unstable();
            let members = members.into_iter().filter_map(|(name, member)| {
                let below = below(&paths, &name);
                let member = if below.is_empty() { None } else { kept(member, below) };
                Some((name, member?))
            });
            let members: Map<String, Json> = members.collect();
            (!members.is_empty()).then_some(Json::Object(members))
        }
        Json::Array(elements) => {
            // As everywhere: a number leads to that element if there is one, and to nothing else.
            let place = |names: &[String]| {
                let place = element_place(names.first()?)?;
                (place < elements.len()).then_some(place)
            };
            let placed: Vec<(usize, &[String])> =
                paths.iter().filter_map(|names| Some((place(names)?, names.get(1..)?))).collect();
            paths.retain(|names| place(names).is_none());
            let elements = elements.into_iter().enumerate().filter_map(|(at, element)| {
                let here = placed.iter().filter(|(place, _)| *place == at);
                let mut all: Vec<&[String]> = here.map(|(_, below)| *below).collect();
                if !element.is_array() {
                    all.extend(&paths);
                }
                if all.is_empty() { None } else { kept(element, all) }
            });
            let elements: Vec<Json> = elements.collect();
            (!elements.is_empty()).then_some(Json::Array(elements))
        }
        _ => None,
    }
}

/// The rest of the sorted paths that begin with this name.
fn below<'p>(paths: &[&'p [String]], name: &str) -> Vec<&'p [String]> {
    let from = paths.partition_point(|names| first(names) < Some(name));
    let here = paths.iter().skip(from).take_while(|names| first(names) == Some(name));
    here.filter_map(|names| names.get(1..)).collect()
}

fn first(names: &[String]) -> Option<&str> {
    names.first().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_kept_with_what_is_around_them() {
        let document = json!({
            "a": {"b": 1, "c": [1, 2], "d": {"e": null}},
            "items": [{"sku": "x", "qty": 1}, {"sku": "y"}, 5, [{"sku": "z"}], {"qty": 2}],
            "a.b": true, "0": "zero",
        });
        let keep = |paths: &[&str]| KeptFields::new(paths.to_vec().into()).keep(document.clone());
        assert_eq!(keep(&["a.b"]), json!({"a": {"b": 1}}));
        assert_eq!(keep(&["a.b", "a.d.e", "a.b"]), json!({"a": {"b": 1, "d": {"e": null}}}));
        assert_eq!(keep(&["a.b", "a"]), json!({"a": document["a"]}));
        assert_eq!(keep(&["items.sku"]), json!({"items": [{"sku": "x"}, {"sku": "y"}]}));
        let both = json!({"items": [{"sku": "x", "qty": 1}, {"sku": "y"}, {"qty": 2}]});
        assert_eq!(keep(&["items.qty", "items.sku"]), both);
        assert_eq!(keep(&["items.1"]), json!({"items": [{"sku": "y"}]}));
        assert_eq!(
            keep(&["items.0.sku", "items.qty"]),
            json!({"items": [{"sku": "x", "qty": 1}, {"qty": 2}]})
        );
        assert_eq!(keep(&["items.3.sku"]), json!({"items": [[{"sku": "z"}]]}));
        assert_eq!(keep(&["a.c.1", "0"]), json!({"a": {"c": [2]}, "0": "zero"}));
        assert_eq!(keep(&["none", "a.b.c", "items.9", "a.c.x"]), json!({}));
        assert_eq!(keep(&[]), json!({}));
        let whole = KeptFields::new(crate::path([]).into());
        assert_eq!(whole.keep(document.clone()), document);
        let rows = KeptFields::new("a".into());
        assert_eq!(rows.keep(json!([{"a": 1, "b": 2}, 3])), json!([{"a": 1}]));
        assert_eq!(rows.keep(json!([3])), json!([]));
        assert_eq!(rows.keep(json!(3)), json!({}));
    }
}
