//! Clauses after a table name other than its alias and index hints: all are refused. The parser accepts clauses of
//! other databases; ignoring one would read, change or delete other rows than intended. Also SKIP LOCKED and NOWAIT
//! where no rows are locked.

use datafusion::sql::sqlparser::ast::{Query, TableAlias, TableFactor};

use crate::{Error, Result};

/// Refuses unsupported clauses after a table or a derived table.
///
/// # Errors
/// 1235, naming the clause.
pub(super) fn check(factor: &TableFactor) -> Result<()> {
    let refused = match factor {
        TableFactor::Table {
            alias,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            ..
        } => [
            ("PARTITION (…) of a table", !partitions.is_empty()),
            ("WITH (…) behind a table", !with_hints.is_empty()),
            ("a version of a table", version.is_some()),
            ("WITH ORDINALITY", *with_ordinality),
            ("a path behind a table", json_path.is_some()),
            ("TABLESAMPLE", sample.is_some()),
            (
                "names of columns behind a table",
                alias.as_ref().is_some_and(|it| !it.columns.is_empty()),
            ),
            ("AT behind a table", is_at(alias)),
        ]
        .into_iter()
        .find_map(|(what, is_there)| is_there.then_some(what)),
        TableFactor::Derived { alias, sample, .. } => {
            [("TABLESAMPLE", sample.is_some()), ("AT behind a table", is_at(alias))]
                .into_iter()
                .find_map(|(what, is_there)| is_there.then_some(what))
        }
        TableFactor::JsonTable { alias: Some(alias), .. } if !alias.columns.is_empty() => {
            Some("names of columns behind JSON_TABLE")
        }
        TableFactor::NestedJoin { alias: Some(_), .. } => Some("a name of joined tables"),
        _ => None,
    };
    refused.map_or(Ok(()), |what| Err(Error::unsupported(what)))
}

/// Removes the locking clauses of a query, whose rows are locked before it is resolved.
///
/// # Errors
/// 1235 for SKIP LOCKED and NOWAIT of a query within a statement: nothing is locked for it.
pub(super) fn take_locks(query: &mut Query, is_within: bool) -> Result<()> {
    if is_within {
        refuse_without_wait(query)?;
    }
    query.locks.clear();
    Ok(())
}

/// Refuses SKIP LOCKED and NOWAIT.
///
/// # Errors
/// 1235.
pub(crate) fn refuse_without_wait(query: &Query) -> Result<()> {
    match query.locks.iter().find_map(|lock| lock.nonblock) {
        Some(clause) => Err(Error::unsupported(format_args!(
            "{clause} of anything but the outermost SELECT of a statement"
        ))),
        None => Ok(()),
    }
}

fn is_at(alias: &Option<TableAlias>) -> bool {
    alias.as_ref().is_some_and(|alias| alias.at.is_some())
}
