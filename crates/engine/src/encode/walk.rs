//! Follows a path through a document.

use serde_json::Value as Json;

/// A document through which a path can be followed.
pub trait JsonNode: Sized {
    /// The member of an object with this name.
    fn member(&self, name: &str) -> Option<&Self>;

    /// The elements of an array.
    fn elements(&self) -> Option<&[Self]>;
}

impl JsonNode for Json {
    fn member(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    fn elements(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }
}

/// The place of an array's element that a name of a path says: a decimal number as programs print it, without a sign
/// or leading zeros. Other names, such as `01`, are names of members only.
///
/// # Examples
///
/// ```
/// use remora_engine::element_place;
///
/// assert_eq!(element_place("10"), Some(10));
/// assert_eq!((element_place("010"), element_place("+1"), element_place("")), (None, None, None));
/// ```
pub fn element_place(name: &str) -> Option<usize> {
    let is_plain = name == "0" || !name.starts_with('0');
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && is_number { name.parse().ok() } else { None }
}

/// Visits the values at a path in a document until a visit returns true, and returns whether one
/// did. A value is visited at most once for each name of the path.
pub fn walk_path<'d, N: JsonNode>(
    names: &[String],
    document: &'d N,
    visit: &mut dyn FnMut(&'d N) -> bool,
) -> bool {
    let Some((name, below)) = names.split_first() else { return visit(document) };
    let Some(elements) = document.elements() else {
        return document.member(name).is_some_and(|member| walk_path(below, member, visit));
    };
    // A name that is an element's index leads only to that element. If it also led into the other
    // elements, a value could be reached in many ways.
    match element_place(name).and_then(|place| elements.get(place)) {
        Some(element) => walk_path(below, element, visit),
        None => {
            let mut others = elements.iter().filter(|element| element.elements().is_none());
            others.any(|element| walk_path(names, element, visit))
        }
    }
}
