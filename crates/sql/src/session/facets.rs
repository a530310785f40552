//! A SELECT with FACETs becomes several statements, each with a result set.

use remora_engine::ColumnType;

use crate::{
    Result,
    catalog::TableName,
    parse::{FacetKey, Faceted, Source, faceted, split},
    state::SessionState,
};

/// The statements in the order they run: a SELECT before its FACETs.
pub(super) fn spread(state: &mut SessionState, sources: Vec<Source>) -> Result<Vec<Source>> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let Some(faceted) = faceted_select(&source)? else {
            all.push(source);
            continue;
        };
        let key = key(state, &faceted);
        let texts = [faceted.select.clone()].into_iter().chain(faceted.selects(key.as_ref()));
        for text in texts {
            all.extend(split(text.as_bytes(), false, source.mode)?);
        }
    }
    Ok(all)
}

/// The FACETs of a statement that may have some.
pub(super) fn faceted_select(source: &Source) -> Result<Option<Faceted>> {
    match source.is_word(0, "SELECT") {
        true => faceted(source),
        false => Ok(None),
    }
}

/// The key of the only table.
fn key(state: &mut SessionState, faceted: &Faceted) -> Option<FacetKey> {
    let (database, table) = faceted.table.as_ref()?;
    let database = database.as_deref().or(state.database.as_deref())?;
    let name = TableName::new(database, table).engine_name(&state.shared);
    let schema = state.reader().schema(&name).ok()?;
    let first = schema.columns.get(*schema.primary_key.first()?)?;
    let is_number = matches!(first.kind, ColumnType::Int(_) | ColumnType::Uint(_));
    let is_integer = schema.primary_key.len() == 1 && is_number;
    Some(FacetKey { column: first.name.clone(), is_integer })
}
