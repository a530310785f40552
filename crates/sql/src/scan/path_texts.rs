//! LIKE, REGEXP, INSTR and LOCATE of what `->>` gives, narrowed by the index of the texts at paths or by that of the
//! values at the path. All rows for which the condition holds are among those that are left, and are tested afterwards:
//! `->>` shows numbers, truths, arrays and objects as texts too.

use std::cmp::Reverse;

use datafusion::{arrow::datatypes::Field, logical_expr::Expr};
use remora_engine::{Filter, PathDef, PathTest};

use super::paths::IndexedTable;
use crate::{
    meaning::types::{ExprType, coercibility},
    search,
};

/// So many pieces of a pattern, the longest, are asked of the index.
const MOST_PIECES: usize = 8;
/// Letters of a piece that are looked up: the cost grows with their square. The beginning of a piece finds all that the
/// piece does.
const MOST_LETTERS: usize = 64;
/// What the values that are shown as texts and are none may be.
const WORDS: [&str; 3] = ["true", "false", "null"];

/// What indexes say of the letters of a text at a path; `None` if they say nothing.
pub(super) fn by_letters(asked: &IndexedTable<'_>, filter: &Expr) -> Option<Filter> {
    let letters = search::letters(filter)?;
    let ((column, position), names) = asked.unquoted(letters.of)?;
    if has_own_collation(letters.sought) {
        return None;
    }
    let mut paths = asked.paths_of(position);
    let has_values = paths.any(|path| path.is_plain() && path.names == names);
    if has_values && only_texts_begin_with(&letters.beginning) {
        let test = PathTest::Begins(letters.beginning);
        return Some(Filter::Path(column.to_owned(), names, test));
    }
    let holds_path = |index: &&PathDef| index.texts && index.paths().any(|path| path == names);
    let index =
        asked.paths_of(position).filter(holds_path).min_by_key(|index| index.paths().count())?;
    let paths: Vec<Vec<String>> = index.paths().map(<[String]>::to_vec).collect();
    let mut pieces: Vec<String> = letters.held;
    pieces.retain(|piece| !piece.is_empty());
    pieces.sort_by_key(|piece| Reverse(piece.len()));
    pieces.truncate(MOST_PIECES);
    // Almost every text has a piece of one or two bytes, which would cost more than it excludes.
    if pieces.first().is_some_and(|longest| longest.len() > 2) {
        pieces.retain(|piece| piece.len() > 2);
    }
    for piece in &mut pieces {
        if let Some((end, _)) = piece.char_indices().nth(MOST_LETTERS) {
            piece.truncate(end);
        }
    }
    let part = |piece| Filter::PathMayHold(column.to_owned(), paths.clone(), piece);
    Filter::all_of(pieces.into_iter().map(part).collect())
}

/// Whether `COLLATE` says how it is compared. Else that of documents is stronger, by which each letter is equal to
/// itself only.
fn has_own_collation(sought: &Expr) -> bool {
    if let Expr::Alias(alias) = sought {
        return has_own_collation(&alias.expr);
    }
    let Expr::Literal(value, Some(metadata)) = sought else { return false };
    let field = Field::new("", value.data_type(), true).with_metadata(metadata.to_hashmap());
    ExprType::of_field(&field).coercibility == coercibility::EXPLICIT
}

/// Whether nothing but a text is shown with these letters at its beginning.
fn only_texts_begin_with(letters: &str) -> bool {
    let Some(first) = letters.chars().next() else { return false };
    let is_of_others = matches!(first, '[' | '{' | '-' | '0'..='9');
    !is_of_others && WORDS.iter().all(|word| !word.starts_with(letters))
}
