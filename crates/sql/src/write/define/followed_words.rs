//! `ALTER TABLE t words='title,body' morphology='stem_en'` on a followed table. Ranked search is the only part of its
//! definition that belongs to this server.

use std::sync::Arc;

use remora_engine::ColumnType;
use remora_mysql::{ErrorCode, messages};

use crate::{
    Error, Outcome, Result, TableWords,
    catalog::{SqlTable, TableName, TableOptions, Verb, WORDS},
    parse::define::{AlterAction, Alteration, TableOption},
    state::SessionState,
};

/// Runs the statement if the table is followed and only its ranked search is altered; otherwise `None`.
///
/// # Errors
/// 1142 if the table may not be altered, 1072 if a column does not exist or is not text, 1064 if settings contradict
/// each other, and the host's errors.
pub(super) async fn alter(
    session: &mut SessionState,
    name: &TableName,
    actions: &[AlterAction],
) -> Result<Option<Outcome>> {
    if session.transaction.temporary(name).is_some() {
        return Ok(None);
    }
    let engine_name = name.engine_name(&session.shared);
    if session.shared.host.source_of(&engine_name).is_none() {
        return Ok(None);
    }
    // Rights are checked before anything about the table is revealed.
    name.check(&session.identity, Verb::Alter)?;
    let Ok(schema) = session.reader().schema(&engine_name) else { return Ok(None) };
    let table = SqlTable::of(&schema);
    let Some(options) = altered(&table, actions)? else { return Ok(None) };
    let words = declared(&table, &options)?;
    let shared = Arc::clone(&session.shared);
    let done = tokio::task::spawn_blocking(move || shared.host.declare_words(&engine_name, words));
    done.await.map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))??;
    let info = messages::records_info(0, 0, session.warnings.count());
    Ok(Some(Outcome { info, ..Outcome::default() }))
}

/// The table's options with the new settings; `None` if the statement changes anything else.
fn altered(table: &SqlTable, actions: &[AlterAction]) -> Result<Option<TableOptions>> {
    let is_words = |option: &TableOption| matches!(option, TableOption::Words { .. });
    let mut options =
        TableOptions { words: table.options.words.clone(), ..TableOptions::default() };
    for AlterAction { what, .. } in actions {
        match what {
            Alteration::Options(set) if set.iter().all(is_words) => options.set_all(set)?,
            _ => return Ok(None),
        }
    }
    Ok(Some(options))
}

/// The ranked search that options declare, over the columns they name or over all text columns.
fn declared(table: &SqlTable, options: &TableOptions) -> Result<Option<TableWords>> {
    if options.words.is_empty() {
        return Ok(None);
    }
    options.word_settings()?;
    let columns = || table.schema.columns.iter().enumerate();
    let is_text =
        |place: usize, kind: ColumnType| kind == ColumnType::Text && !table.schema.is_hidden(place);
    let missing = |name: &str| {
        let message = format!(
            "words name '{name}', which is no column of text of the table: change words='…'"
        );
        Error::new(ErrorCode::KeyColumnMissing, message)
    };
    let named = options.words.iter().find(|(name, _)| name == WORDS);
    let columns: Vec<String> = match named {
        Some((_, names)) => {
            let column = |name: &str| {
                let name = name.trim();
                let mut columns = columns();
                let found = columns.find(|(place, column)| {
                    column.name.to_lowercase() == name.to_lowercase()
                        && is_text(*place, column.kind)
                });
                found.map(|(_, column)| column.name.clone()).ok_or_else(|| missing(name))
            };
            names.split(',').map(column).collect::<Result<_>>()?
        }
        None => {
            let texts = columns().filter(|(place, column)| is_text(*place, column.kind));
            texts.map(|(_, column)| column.name.clone()).collect()
        }
    };
    if columns.is_empty() {
        return Err(missing("text"));
    }
    let settings = options.words.iter().filter(|(name, _)| name != WORDS).cloned().collect();
    Ok(Some(TableWords { columns, settings }))
}
