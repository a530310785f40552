//! Narrows LIKE, REGEXP, INSTR and LOCATE of the results of `->>` by an index of the texts at
//! paths, or by the index of the values at the path. The rows that remain are a superset and are
//! tested afterwards, since `->>` also shows numbers, booleans, arrays and objects as texts. MATCH
//! over texts at paths is narrowed in the same way, by the letters of its words, each of which must
//! occur in one text.

use std::cmp::Reverse;

use datafusion::{arrow::datatypes::Field, logical_expr::Expr};
use remora_engine::{Filter, PATH_TEXTS, PathDef, PathTest, Piece, TextQuery, word_runs};
use remora_mysql::{ErrorCode, messages};

use super::{
    EngineTable,
    indexed_paths::{IndexedTable, names},
};
use crate::{
    Error, Result,
    meaning::{
        json::Path,
        types::{ExprType, coercibility},
    },
    search,
};

/// The most pieces of a pattern that are looked up: the longest ones.
const MOST_PIECES: usize = 8;
/// The most letters of a piece that are looked up, since the cost grows with their square. A prefix
/// of a piece finds a superset of the rows.
const MOST_LETTERS: usize = 64;
/// With more words and phrases than this, looking them up costs more than it saves.
const MOST_SOUGHT: usize = 256;
/// Groups nested deeper than this are not looked up, because the engine limits the nesting of
/// conditions.
const DEEPEST_GROUP: usize = 8;
/// JSON values that `->>` shows as words although they are not texts.
const WORDS: [&str; 3] = ["true", "false", "null"];

/// The condition that indexes can answer for LIKE and similar tests of a text at a path; `None` if
/// there is none.
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

/// Whether an explicit COLLATE decides the comparison. Otherwise the collation of documents does,
/// in which each letter equals only itself.
fn has_own_collation(sought: &Expr) -> bool {
    if let Expr::Alias(alias) = sought {
        return has_own_collation(&alias.expr);
    }
    let Expr::Literal(value, Some(metadata)) = sought else { return false };
    let field = Field::new("", value.data_type(), true).with_metadata(metadata.to_hashmap());
    ExprType::of_field(&field).coercibility == coercibility::EXPLICIT
}

/// Whether every value shown with this prefix is a JSON text.
fn only_texts_begin_with(letters: &str) -> bool {
    let Some(first) = letters.chars().next() else { return false };
    let is_of_others = matches!(first, '[' | '{' | '-' | '0'..='9');
    !is_of_others && WORDS.iter().all(|word| !word.starts_with(letters))
}

/// The condition that indexes can answer for MATCH over texts at paths; `None` if there is none.
pub(super) fn by_words(
    asked: &IndexedTable<'_>,
    (mode, query): (&Expr, &Expr),
    document: &Expr,
    paths: &[Expr],
) -> Option<Filter> {
    let (column, position) = asked.documents(document)?;
    let paths: Vec<Vec<String>> = paths.iter().map(names).collect::<Option<_>>()?;
    let indexes = fitting(asked.paths_of(position), &paths);
    if indexes.is_empty() {
        return None;
    }
    let query = search::asked(&search::text(query)?, &search::text(mode)?).ok()?;
    if search::pieces(&query) > MOST_SOUGHT {
        return None;
    }
    let one = |index: &&PathDef, word: &str| {
        let paths = index.paths().map(<[String]>::to_vec).collect();
        Filter::PathTexts(column.to_owned(), paths, word.to_owned())
    };
    let holds = |word: &str| match indexes.as_slice() {
        [index] => one(index, word),
        several => Filter::Or(several.iter().map(|index| one(index, word)).collect()),
    };
    necessary(&query, &holds, 0)
}

/// Error 1191 for MATCH over texts at paths without matching text indexes, 1235 for a table with
/// rows on other servers.
pub(super) fn check(table: &EngineTable, column: &str, paths: &[&str]) -> Result<()> {
    let schema = &table.table.schema;
    if !schema.agents().is_empty() {
        let what = "MATCH … AGAINST of a table with rows in other servers, whose text indexes are not asked";
        return Err(Error::unsupported(what));
    }
    let position = table.schema.index_of(column).ok().and_then(|at| table.positions.get(at));
    let Some(&position) = position else { return Ok(()) };
    let names = paths.iter().map(|path| Path::parse(path).ok()?.names());
    let Some(paths) = names.collect::<Option<Vec<Vec<String>>>>() else { return Ok(()) };
    let of_column = schema.paths.iter().filter(|path| path.column == position);
    if fitting(of_column, &paths).is_empty() {
        let message = messages::NO_FULLTEXT_INDEX;
        return Err(Error::new(ErrorCode::NoFulltextIndex, message));
    }
    Ok(())
}

/// The text indexes that together hold exactly these paths; none if a path has no such index.
fn fitting<'t>(
    indexes: impl Iterator<Item = &'t PathDef>,
    paths: &[Vec<String>],
) -> Vec<&'t PathDef> {
    let is_asked = |path: &[String]| paths.iter().any(|one| one == path);
    let fitting: Vec<&PathDef> =
        indexes.filter(|index| index.texts && index.paths().all(is_asked)).collect();
    let has = |path: &Vec<String>| fitting.iter().any(|it| it.paths().any(|one| one == path));
    if paths.iter().all(has) { fitting } else { Vec::new() }
}

/// A necessary condition for a query's matches; `None` if none can be given. `holds` makes the
/// condition that a text contains some letters; `depth` is the number of enclosing groups.
fn necessary(query: &TextQuery, holds: &dyn Fn(&str) -> Filter, depth: usize) -> Option<Filter> {
    if depth > DEEPEST_GROUP {
        return None;
    }
    let inner = |part: &TextQuery| necessary(part, holds, depth + 1);
    match query {
        TextQuery::And(parts) => Filter::all_of(parts.iter().filter_map(inner).collect()),
        TextQuery::Or(parts) => parts.iter().map(inner).collect::<Option<_>>().map(Filter::Or),
        TextQuery::Piece(piece) => of_piece(piece, holds),
        TextQuery::Not(_) | TextQuery::Term(_) | TextQuery::Keywords(_) => None,
    }
}

/// The necessary condition of words that occur in one text.
fn of_piece(piece: &Piece, holds: &dyn Fn(&str) -> Filter) -> Option<Filter> {
    let text = PATH_TEXTS.apply(&piece.text);
    let runs = word_runs(&text).into_iter();
    let mut words: Vec<String> =
        runs.map(|run| run.iter().map(|(_, atom)| *atom).collect()).collect();
    if words.is_empty() {
        // A piece without words matches nothing.
        return Some(Filter::Or(Vec::new()));
    }
    words.sort_by_key(|word| Reverse(word.len()));
    words.truncate(MOST_PIECES);
    if words.first().is_some_and(|longest| longest.len() > 2) {
        words.retain(|word| word.len() > 2);
    }
    // Normalization must not change the words again, so characters without a stable form are left
    // out.
    words.retain(|word| PATH_TEXTS.apply(word) == word.as_str());
    Filter::all_of(words.iter().map(|word| holds(word)).collect())
}

#[cfg(test)]
mod tests {
    use remora_engine::PieceMatch;

    use super::*;

    #[test]
    fn deep_groups_are_not_asked_of_the_index() {
        let word = || {
            let (text, matching) = ("reef".to_owned(), PieceMatch::Words);
            TextQuery::Piece(Piece { texts: Vec::new(), text, matching, letters: None })
        };
        let holds = |word: &str| Filter::PathTexts("doc".to_owned(), Vec::new(), word.to_owned());
        let nested = |depth: usize| (0..depth).fold(word(), |query, _| TextQuery::Or(vec![query]));
        assert!(necessary(&nested(DEEPEST_GROUP), &holds, 0).is_some());
        assert!(necessary(&nested(DEEPEST_GROUP + 1), &holds, 0).is_none());
        // A group that is too deep does not hide its neighbours.
        let both = TextQuery::And(vec![word(), nested(DEEPEST_GROUP + 1)]);
        assert!(necessary(&both, &holds, 0).is_some());
    }
}
