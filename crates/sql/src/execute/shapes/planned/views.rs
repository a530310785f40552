//! The views of a cached plan. It is made of their SELECTs and stays valid while they do not change.

use datafusion::sql::sqlparser::ast::Query;

use crate::{
    catalog::{Reader, TableName, Verb, View},
    resolve::expanded,
    state::SessionState,
};

/// A view that a plan depends on.
pub(super) struct NamedView {
    name: TableName,
    /// The engine's name for a table of this name, which would hide the view if it existed.
    engine_name: String,
    /// The stored definition.
    kept: Box<str>,
}

impl NamedView {
    /// Replaces the names of views by their SELECTs. `None` if the statement cannot have a cached plan.
    pub(super) fn all_of(
        query: &mut Query,
        session: &SessionState,
        reader: &Reader,
    ) -> Option<Vec<Self>> {
        if !View::are_there(reader) {
            return Some(Vec::new());
        }
        let shared = &session.shared;
        let views = expanded(query, |database, table| {
            let name = TableName::new(database.or(session.database.as_deref())?, table);
            let is_table = session.transaction.temporary(&name).is_some()
                || reader.schema(&name.engine_name(shared)).is_ok();
            if is_table { None } else { View::find(reader, &name).ok().flatten() }
        })?;
        let named = views.into_iter().map(|view| {
            let kept = View::kept(reader, &view.name)?.into();
            let engine_name = view.name.engine_name(shared);
            Some(Self { name: view.name, engine_name, kept })
        });
        named.collect()
    }

    /// Whether the view is unchanged.
    pub(super) fn is_current(&self, reader: &Reader) -> bool {
        View::kept(reader, &self.name) == Some(&*self.kept)
            && reader.schema(&self.engine_name).is_err()
    }

    /// Whether the session may read the view, and has no temporary table of this name.
    pub(super) fn is_read_by(&self, session: &SessionState) -> bool {
        session.transaction.temporary(&self.name).is_none()
            && self.name.check(&session.identity, Verb::Select).is_ok()
    }
}
