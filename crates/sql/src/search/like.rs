//! LIKE, INSTR, LOCATE and POSITION as queries of the text index.
//!
//! All pieces of a pattern between its wildcards must occur. A single piece with only `%` around it
//! is equivalent to the LIKE. Letters are compared by the column's collation.

use std::{
    ops::Bound,
    sync::{Arc, LazyLock},
};

use parking_lot::RwLock;
use remora_engine::{
    ColumnLetters, ColumnType, Filter, LetterClasses, Piece, PieceMatch, TextQuery,
};
use remora_mysql::Collation;
use rustc_hash::FxHashMap;

use super::IndexAnswer;
use crate::{catalog::SqlTable, meaning::collation};

/// Collations treat characters from here on as equal only to themselves.
const LAST_LETTER: u32 = 0x2_0000;

/// The query of `column LIKE pattern ESCAPE escape`.
pub(crate) fn like(
    table: &SqlTable,
    column: usize,
    pattern: &str,
    escape: Option<char>,
) -> IndexAnswer {
    let pieces = pieces(pattern, escape);
    let inner = |piece: &&(String, bool)| !piece.0.is_empty();
    let only = match pieces.as_slice() {
        [(before, true), (_, true), (after, _)] => before.is_empty() && after.is_empty(),
        _ => false,
    };
    let found = pieces.iter().filter(inner).map(|(piece, _)| contains(table, column, piece, !only));
    let Some(mut queries) = found.collect::<Option<Vec<_>>>() else { return IndexAnswer::Scan };
    match (queries.pop(), queries.is_empty()) {
        (None, _) => IndexAnswer::Scan,
        (Some(query), true) if only => IndexAnswer::Exact(query),
        (Some(query), true) => IndexAnswer::Superset(query),
        (Some(query), false) => {
            queries.push(query);
            IndexAnswer::Superset(TextQuery::And(queries))
        }
    }
}

/// The text before the first wildcard of a pattern, and whether the rest of the pattern is just
/// `%`.
pub(crate) fn beginning(pattern: &str, escape: Option<char>) -> (String, bool) {
    let pieces = pieces(pattern, escape);
    let is_all = matches!(pieces.as_slice(), [(_, true), (rest, false)] if rest.is_empty());
    (pieces.into_iter().next().unwrap_or_default().0, is_all)
}

/// The pieces of literal text between the wildcards of a pattern.
pub(crate) fn held(pattern: &str, escape: Option<char>) -> Vec<String> {
    let pieces = pieces(pattern, escape).into_iter();
    pieces.map(|(piece, _)| piece).filter(|piece| !piece.is_empty()).collect()
}

/// The prefix that a pattern means, if it is a prefix followed by `%` and has no escapes.
pub(crate) fn plain_beginning(pattern: &str) -> Option<String> {
    let (letters, is_all) = beginning(pattern, None);
    (is_all && !pattern.contains('\\')).then_some(letters)
}

/// The condition that a column begins with these letters, with the key bounds for an index lookup.
pub(crate) fn begins(column: &str, collation: Collation, letters: &str) -> Filter {
    let column = column.to_owned();
    if collation::is_bytes(collation) {
        return Filter::Begins(column, None, letters.to_owned());
    }
    let order = u32::from(collation.0);
    let by_letter = match collation::is_exact(collation) {
        true => Filter::Begins(column.clone(), None, letters.to_owned()),
        false => Filter::Begins(column.clone(), Some(order), letters.to_owned()),
    };
    let low = collation::beginning_key(letters, collation);
    let high = collation::end_of(&low);
    Filter::And(vec![Filter::KeyWithin(column, order, Bound::Included(low), high), by_letter])
}

/// The query of `INSTR(column, text) > 0` and equivalent conditions.
pub(crate) fn holds(table: &SqlTable, column: usize, text: &str) -> IndexAnswer {
    match contains(table, column, text, false) {
        Some(query) if !text.is_empty() => IndexAnswer::Exact(query),
        _ => IndexAnswer::Scan,
    }
}

/// A query that finds all rows whose column contains the text, and maybe others.
pub(crate) fn may_hold(table: &SqlTable, column: usize, text: &str) -> IndexAnswer {
    match contains(table, column, text, true) {
        Some(query) if !text.is_empty() => IndexAnswer::Superset(query),
        _ => IndexAnswer::Scan,
    }
}

/// The pieces between wildcards, each with whether a `%` follows it. Adjacent `%` count as one.
fn pieces(pattern: &str, escape: Option<char>) -> Vec<(String, bool)> {
    let mut pieces = vec![(String::new(), false)];
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        let last = pieces.len() - 1;
        match c {
            c if Some(c) == escape && characters.peek().is_some() => {
                pieces[last].0.extend(characters.next());
            }
            '%' => {
                while characters.next_if_eq(&'%').is_some() {}
                pieces[last].1 = true;
                pieces.push((String::new(), false));
            }
            '_' => pieces.push((String::new(), false)),
            c => pieces[last].0.push(c),
        }
    }
    pieces
}

/// The query for rows whose column contains the piece; `None` if no text index has the column. If the rows are tested
/// again, others may be found too.
fn contains(
    table: &SqlTable,
    column: usize,
    piece: &str,
    is_tested_again: bool,
) -> Option<TextQuery> {
    let spec = table.columns.get(column)?;
    let kind = table.schema.columns.get(column)?.kind;
    if kind != ColumnType::Text || !spec.kind.is_text() || spec.kind.has_labels() {
        return None;
    }
    let mut holding: Vec<_> =
        table.schema.texts.iter().filter(|text| text.columns.contains(&column)).collect();
    holding.sort_by_key(|text| text.columns.len());
    let classes = letters(spec.kind.collation);
    let letters = ColumnLetters { column, classes, is_tested_again };
    Some(TextQuery::Piece(Piece {
        texts: vec![holding.first()?.id],
        text: piece.to_owned(),
        matching: PieceMatch::Substring,
        letters: Some(letters),
    }))
}

/// The letter classes of a collation, computed once.
fn letters(collation: Collation) -> Arc<dyn LetterClasses> {
    static KNOWN: LazyLock<RwLock<FxHashMap<u16, Arc<CollatedLetters>>>> =
        LazyLock::new(RwLock::default);
    if let Some(known) = KNOWN.read().get(&collation.0) {
        return Arc::<CollatedLetters>::clone(known);
    }
    let made = Arc::new(CollatedLetters::new(collation));
    Arc::<CollatedLetters>::clone(KNOWN.write().entry(collation.0).or_insert(made))
}

/// The classes of letters that a collation treats as equal.
#[derive(Debug)]
struct CollatedLetters {
    /// The class of each letter that equals another one.
    groups: FxHashMap<char, u32>,
    members: Vec<Vec<char>>,
}

impl CollatedLetters {
    fn new(collation: Collation) -> Self {
        let mut by_key: FxHashMap<Vec<u8>, Vec<char>> = FxHashMap::default();
        for letter in (0..LAST_LETTER).filter_map(char::from_u32) {
            by_key.entry(collation::letter_key(letter, collation)).or_default().push(letter);
        }
        let members: Vec<Vec<char>> =
            by_key.into_values().filter(|members| members.len() > 1).collect();
        let groups = (0..).zip(&members);
        let groups = groups.flat_map(|(group, members)| members.iter().map(move |&c| (c, group)));
        Self { groups: groups.collect(), members }
    }
}

impl LetterClasses for CollatedLetters {
    fn are_equal(&self, a: char, b: char) -> bool {
        a == b || self.groups.get(&a).is_some_and(|group| self.groups.get(&b) == Some(group))
    }

    fn equals(&self, letter: char, out: &mut Vec<char>) {
        let group = self.groups.get(&letter).and_then(|&group| self.members.get(group as usize));
        match group {
            Some(members) => out.extend(members),
            None => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_cut_at_wildcards() {
        let cut = |pattern| {
            let pieces = pieces(pattern, Some('\\'));
            let show =
                |(piece, any): &(String, bool)| format!("{piece}{}", if *any { "%" } else { "" });
            pieces.iter().map(show).collect::<Vec<_>>().join("|")
        };
        assert_eq!(cut("%quantum%"), "%|quantum%|");
        assert_eq!(cut("%%a%%b_c"), "%|a%|b|c");
        assert_eq!(cut("100\\%%"), "100%%|");
        assert_eq!(cut(""), "");
    }

    #[test]
    fn a_beginning_stands_before_the_first_wildcard() {
        let cut = |pattern| beginning(pattern, Some('\\'));
        assert_eq!(cut("abc%"), ("abc".to_owned(), true));
        assert_eq!(cut("abc%%"), ("abc".to_owned(), true));
        assert_eq!(cut("a\\%c%"), ("a%c".to_owned(), true));
        assert_eq!(cut("abc"), ("abc".to_owned(), false));
        assert_eq!(cut("abc_"), ("abc".to_owned(), false));
        assert_eq!(cut("ab%c%"), ("ab".to_owned(), false));
        assert_eq!(cut("%"), (String::new(), true));
        assert_eq!(cut("_%"), (String::new(), false));
    }

    #[test]
    fn letters_are_equal_as_the_collation_has_it() {
        let plain = CollatedLetters::new(Collation::UTF8MB4_0900_AI_CI);
        assert!(plain.are_equal('e', 'É') && plain.are_equal('か', 'ガ'));
        assert!(!plain.are_equal('e', 'f'));
        let exact = CollatedLetters::new(Collation::UTF8MB4_BIN);
        assert!(!exact.are_equal('e', 'E') && exact.are_equal('e', 'e'));
    }
}
