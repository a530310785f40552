//! Extracts the indexed values of a row's documents: values at paths, combinations of them, or
//! texts.

use remora_index::paths::PathKeys;

use super::{
    document::Document,
    joint::push_combinations,
    path::{push_texts, push_values},
};
use crate::{PathDef, Value};

/// Collects the values at the given paths in a row's documents. Returns the place of a column with
/// text that is not valid JSON; its paths get no values.
pub(crate) fn path_values<'p>(
    paths: impl IntoIterator<Item = &'p PathDef>,
    row: &[Value],
    keys: &mut PathKeys,
) -> Option<usize> {
    keys.clear();
    let (mut parsed, mut failed): (Option<(usize, Document<'_>)>, _) = (None, None);
    for path in paths {
        if let Some(Value::Json(text)) = row.get(path.column) {
            parsed = parsed.take().filter(|(column, _)| *column == path.column);
            parsed = parsed.or_else(|| Some((path.column, Document::parse(text)?)));
            match &parsed {
                Some((_, document)) => push(path, document, keys),
                None => failed = Some(path.column),
            }
        }
        keys.end_path();
    }
    failed
}

fn push(path: &PathDef, document: &Document<'_>, keys: &mut PathKeys) {
    if path.texts {
        path.paths().for_each(|names| push_texts(names, document, keys));
    } else if path.is_plain() {
        push_values(&path.names, document, keys);
    } else {
        push_combinations(path, document, keys);
    }
}
