//! JSON Merge Patch, RFC 7396: members that are null are removed, others are added or merged.

use serde_json::{Map, Value as Json};

/// Applies a patch. Cost: linear in the size of the patch.
pub(super) fn merge(target: &mut Json, patch: Json) {
    let Json::Object(changes) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Json::Object(Map::new());
    }
    let Json::Object(members) = target else { return };
    for (name, change) in changes {
        match change {
            Json::Null => _ = members.remove(&name),
            change => merge(members.entry(name).or_insert(Json::Null), change),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Appendix A of the RFC: original, patch, result.
    #[test]
    fn the_examples_of_the_rfc() {
        let examples = json!([
            [{"a": "b"}, {"a": "c"}, {"a": "c"}],
            [{"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}],
            [{"a": "b"}, {"a": null}, {}],
            [{"a": "b", "b": "c"}, {"a": null}, {"b": "c"}],
            [{"a": ["b"]}, {"a": "c"}, {"a": "c"}],
            [{"a": "c"}, {"a": ["b"]}, {"a": ["b"]}],
            [{"a": {"b": "c"}}, {"a": {"b": "d", "c": null}}, {"a": {"b": "d"}}],
            [{"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}],
            [["a", "b"], ["c", "d"], ["c", "d"]],
            [{"a": "b"}, ["c"], ["c"]],
            [{"a": "foo"}, null, null],
            [{"a": "foo"}, "bar", "bar"],
            [{"e": null}, {"a": 1}, {"e": null, "a": 1}],
            [[1, 2], {"a": "b", "c": null}, {"a": "b"}],
            [{}, {"a": {"bb": {"ccc": null}}}, {"a": {"bb": {}}}],
        ]);
        for example in examples.as_array().unwrap() {
            let mut target = example[0].clone();
            merge(&mut target, example[1].clone());
            assert_eq!(target, example[2], "{example}");
        }
    }
}
