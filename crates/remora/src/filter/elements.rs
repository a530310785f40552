//! HAS: a condition on one and the same element of an array.

use remora_engine::element_place;

use super::{Condition, Field, Test};
use crate::{Error, Result};

/// The deepest nesting of HAS.
const MAX_DEPTH: usize = 16;

/// Returns an error if HAS is nested too deep.
pub(crate) fn check_depth(condition: &Condition) -> Result<()> {
    let mut open = vec![(condition, 0)];
    while let Some((condition, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            let message = format!("the filter nests HAS deeper than {MAX_DEPTH} levels");
            return Err(Error::request(message));
        }
        match condition {
            Condition::Has(_, inner) => open.push((inner, depth + 1)),
            Condition::Not(inner) => open.push((inner, depth)),
            Condition::And(parts) | Condition::Or(parts) => {
                open.extend(parts.iter().map(|part| (part, depth)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A condition on whole documents that holds if an element at `field` satisfies `inner`, and whether it holds for no
/// other document. `None` if there is no such condition that indexes could answer. `depth` bounds the nesting.
pub(super) fn on_documents(
    field: &Field,
    inner: &Condition,
    depth: usize,
) -> Option<(Condition, bool)> {
    let depth = depth.checked_sub(1)?;
    let below = |path: &Field| below(field, path);
    let condition = match inner {
        Condition::And(parts) => {
            let found: Vec<(Condition, bool)> =
                parts.iter().filter_map(|part| on_documents(field, part, depth)).collect();
            // Two elements may satisfy two parts.
            let is_exact = parts.len() == 1 && found.iter().all(|(_, is_exact)| *is_exact);
            let found: Vec<Condition> = found.into_iter().map(|(condition, _)| condition).collect();
            return (!found.is_empty()).then_some((Condition::And(found), is_exact));
        }
        Condition::Or(parts) => {
            let found: Vec<(Condition, bool)> =
                parts.iter().map(|part| on_documents(field, part, depth)).collect::<Option<_>>()?;
            let is_exact = found.iter().all(|(_, is_exact)| *is_exact);
            let found = found.into_iter().map(|(condition, _)| condition).collect();
            return Some((Condition::Or(found), is_exact));
        }
        Condition::Has(path, inner) => return on_documents(&below(path)?, inner, depth),
        // Other elements than the one meant may have what it must not have.
        Condition::Not(_) | Condition::Compare(_, Test::NotEqual, _) => return None,
        Condition::Compare(path, test, value) => {
            Condition::Compare(below(path)?, *test, value.clone())
        }
        Condition::In(path, values) => Condition::In(below(path)?, values.clone()),
        Condition::Between(path, from, to) => {
            Condition::Between(below(path)?, from.clone(), to.clone())
        }
        Condition::Begins(path, text) => Condition::Begins(below(path)?, text.clone()),
        Condition::Exists(path) => Condition::Exists(below(path)?),
        Condition::IsFilled(path) => Condition::IsFilled(below(path)?),
        Condition::IsNull(path) => Condition::IsNull(below(path)?),
        Condition::Matches(paths, text) => {
            let paths = paths.iter().map(below).collect::<Option<_>>()?;
            Condition::Matches(paths, text.clone())
        }
    };
    Some((condition, true))
}

/// The path within documents of a path within the elements at `field`; `None` if there is none that says the same.
fn below(field: &Field, path: &Field) -> Option<Field> {
    // A path that ends here would find the array itself too, and a number would be the index of an element.
    let is_name = path.parts.first().is_some_and(|name| element_place(name).is_none());
    is_name.then(|| Field { parts: field.parts.iter().chain(&path.parts).cloned().collect() })
}
