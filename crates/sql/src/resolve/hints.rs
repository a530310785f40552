//! Index hints: the indexes that a statement allows for a table.
//!
//! ```text
//! behind a table := ("USE" | "FORCE" | "IGNORE") ("INDEX" | "KEY") ("FOR" purpose)? "(" name,* ")"
//! behind SELECT  := "/*+" (word "(" table name,* ")")* "*/"
//! word           := "NO_"? ("INDEX" | "JOIN_INDEX" | "ORDER_INDEX" | "GROUP_INDEX")
//! ```
//! A hint of the second kind without an index means all indexes. As in MySQL, an unknown hint, or one that names what
//! does not exist, has no effect. Hints for grouping have no effect either.

use datafusion::sql::sqlparser::ast::{
    TableIndexHintForClause, TableIndexHintType, TableIndexHints,
};
use remora_engine::{Allowed, AllowedIndexes, IndexSet, TableIndex};
use remora_mysql::ErrorCode;

use crate::{
    Error, Result,
    catalog::{Key, SqlTable},
    parse::Source,
};

/// The effect of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HintAction {
    Use,
    Force,
    Ignore,
}

/// An optimizer hint after SELECT.
#[derive(Clone, Debug)]
pub(super) struct Hint {
    table: String,
    does: HintAction,
    purpose: Option<TableIndexHintForClause>,
    names: Vec<String>,
}

/// A hint that applies to one table.
struct TableHint<'t> {
    does: HintAction,
    purpose: Option<TableIndexHintForClause>,
    keys: Vec<&'t Key>,
}

/// The hints after the SELECT at a position of the text.
pub(super) fn of_select(source: &Source, place: usize) -> Vec<Hint> {
    const SELECT: usize = "SELECT".len();
    let behind = source.text.get(place.saturating_add(SELECT)..).unwrap_or_default();
    let text = behind.trim_ascii_start().strip_prefix(b"/*+");
    let Some(text) = text else { return Vec::new() };
    let end = memchr::memmem::find(text, b"*/").unwrap_or(text.len());
    let text = String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned();
    let mut hints = Vec::new();
    let mut rest = text.as_str();
    while let Some((word, behind)) = rest.split_once('(') {
        let Some((inside, next)) = behind.split_once(')') else { break };
        hints.extend(hint(word.trim(), inside));
        rest = next;
    }
    hints
}

fn hint(word: &str, inside: &str) -> Option<Hint> {
    let word = word.to_ascii_uppercase();
    let (does, of) = match word.strip_prefix("NO_") {
        Some(of) => (HintAction::Ignore, of),
        None => (HintAction::Force, word.as_str()),
    };
    let purpose = match of {
        "INDEX" => None,
        "JOIN_INDEX" => Some(TableIndexHintForClause::Join),
        "ORDER_INDEX" => Some(TableIndexHintForClause::OrderBy),
        "GROUP_INDEX" => Some(TableIndexHintForClause::GroupBy),
        _ => return None,
    };
    let words = inside.split(|letter: char| letter == ',' || letter.is_whitespace());
    let mut names = words.filter(|name| !name.is_empty()).map(|name| name.trim_matches('`'));
    let table = names.next()?.to_owned();
    Some(Hint { table, does, purpose, names: names.map(str::to_owned).collect() })
}

/// The indexes that hints permit for a table with this name or alias. Error 1176 for an unknown key, 1221 for USE and
/// FORCE together.
pub(super) fn allowed(
    table: &SqlTable,
    called: &str,
    own: &[TableIndexHints],
    of_select: &[Hint],
) -> Result<AllowedIndexes> {
    let mut hints = Vec::new();
    for hint in own {
        let does = match hint.hint_type {
            TableIndexHintType::Use => HintAction::Use,
            TableIndexHintType::Force => HintAction::Force,
            TableIndexHintType::Ignore => HintAction::Ignore,
        };
        let keys = hint
            .index_names
            .iter()
            .map(|name| key(table, &name.value).ok_or_else(|| missing(&name.value, called)));
        hints.push(TableHint {
            does,
            purpose: hint.for_clause,
            keys: keys.collect::<Result<_>>()?,
        });
    }
    let says = |does| hints.iter().any(|hint: &TableHint<'_>| hint.does == does);
    if says(HintAction::Use) && says(HintAction::Force) {
        let message = "Incorrect usage of USE INDEX and FORCE INDEX";
        return Err(Error::new(ErrorCode::WrongUsage, message));
    }
    for hint in of_select.iter().filter(|hint| hint.table.eq_ignore_ascii_case(called)) {
        let named: Option<Vec<&Key>> = hint.names.iter().map(|name| key(table, name)).collect();
        let Some(mut keys) = named else { continue };
        if hint.names.is_empty() {
            keys = table.keys.iter().collect();
        }
        hints.push(TableHint { does: hint.does, purpose: hint.purpose, keys });
    }
    Ok(AllowedIndexes {
        find: for_purpose(table, &hints, TableIndexHintForClause::Join),
        order: for_purpose(table, &hints, TableIndexHintForClause::OrderBy),
    })
}

fn for_purpose(
    table: &SqlTable,
    hints: &[TableHint<'_>],
    purpose: TableIndexHintForClause,
) -> Allowed {
    let of_purpose = |hint: &&TableHint<'_>| hint.purpose.is_none_or(|named| named == purpose);
    let hints: Vec<&TableHint<'_>> = hints.iter().filter(of_purpose).collect();
    if hints.is_empty() {
        return Allowed::default();
    }
    let index = |key: &Key| table.index_of(key).map(|(index, _)| index);
    let (ignoring, using): (Vec<&TableHint<'_>>, Vec<_>) =
        hints.into_iter().partition(|hint| hint.does == HintAction::Ignore);
    let is_ignored = |key: &Key| {
        ignoring.iter().any(|hint| hint.keys.iter().any(|other| std::ptr::eq(*other, key)))
    };
    let kept = |key: &&Key| !is_ignored(key);
    let indexes = if using.is_empty() {
        let mut all = IndexSet::ALL;
        // An index that another key uses too stays permitted.
        let stay: IndexSet = table.keys.iter().filter(kept).filter_map(index).collect();
        let gone = table.keys.iter().filter(|key| is_ignored(key)).filter_map(index);
        gone.filter(|index: &TableIndex| !stay.contains(*index)).for_each(|it| all.remove(it));
        all
    } else {
        let named = using.iter().flat_map(|hint| hint.keys.iter().copied());
        named.filter(kept).filter_map(index).collect()
    };
    Allowed { indexes, forced: using.iter().any(|hint| hint.does == HintAction::Force) }
}

/// The key with this name, or the only one with this prefix.
fn key<'t>(table: &'t SqlTable, name: &str) -> Option<&'t Key> {
    let lower = name.to_lowercase();
    let called = |key: &&Key| key.name.to_lowercase() == lower;
    table.keys.iter().find(called).or_else(|| {
        let begins = |key: &&Key| key.name.to_lowercase().starts_with(&lower);
        let mut found = table.keys.iter().filter(begins);
        let only = found.next();
        only.filter(|_| found.next().is_none())
    })
}

/// Error 1176 if a hint names an index of a relation that has no indexes.
pub(super) fn check_none(own: &[TableIndexHints], called: &str) -> Result<()> {
    let mut names = own.iter().flat_map(|hint| &hint.index_names);
    names.next().map_or(Ok(()), |name| Err(missing(&name.value, called)))
}

fn missing(key: &str, table: &str) -> Error {
    let message = format!("Key '{key}' doesn't exist in table '{table}'");
    Error::new(ErrorCode::KeyMissing, message)
}
