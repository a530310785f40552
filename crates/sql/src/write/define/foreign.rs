//! Effects of foreign keys, which are stored but not enforced, on changes of definitions.

use remora_engine::{Definition, Schema, Value};
use remora_mysql::ErrorCode;

use super::draft::Draft;
use crate::{
    Error, Result,
    catalog::{ForeignKey, PartOf, SqlTable, TableLine, TableName, quoted_name},
    error::from_engine_write,
    parse::define::{QualifiedName, References},
    state::SessionState,
};

/// Error 1828 or 1553 if a foreign key of the table loses a column or its last index.
pub(super) fn check_needed(session: &SessionState, table: &SqlTable, draft: &Draft) -> Result<()> {
    let is_checked = session.system_variable("foreign_key_checks")? != Value::Int(0);
    for key in draft.foreign.iter().take(draft.known_foreign) {
        let ForeignKey { name: Some(name), columns, .. } = key else { continue };
        if let Some(column) = columns.iter().find(|column| draft.column(column).is_none()) {
            let message = format!(
                "Cannot drop column '{column}': needed in a foreign key constraint '{name}'"
            );
            return Err(Error::new(ErrorCode::ColumnNeededByForeignKey, message));
        }
        if !is_checked || draft.has_index_over(columns) {
            continue;
        }
        let dropped = Draft::of(table).index_over(columns).map(|key| key.name.clone());
        if let Some(index) = dropped {
            let message =
                format!("Cannot drop index '{index}': needed in a foreign key constraint");
            return Err(Error::new(ErrorCode::IndexNeededByForeignKey, message));
        }
    }
    Ok(())
}

/// Renames a column, also in the keys and foreign keys of its table.
pub(super) fn rename_column(draft: &mut Draft, place: usize, new: String) {
    let Some(column) = draft.columns.get_mut(place) else { return };
    let old = std::mem::replace(&mut column.name, new.clone());
    for part in draft.keys.iter_mut().flat_map(|key| &mut key.parts) {
        if part.column().is_some_and(|name| name.eq_ignore_ascii_case(&old)) {
            part.of = PartOf::Column(new.clone());
        }
    }
    for column in draft.foreign.iter_mut().flat_map(|key| &mut key.columns) {
        if column.eq_ignore_ascii_case(&old) {
            new.clone_into(column);
        }
    }
    if old != new {
        draft.renamed.push((old, new));
    }
}

/// A renamed table, or one with renamed columns, to which foreign keys that reference it are adapted.
pub(super) struct Moved<'n> {
    /// Its name before.
    pub(super) from: &'n TableName,
    /// Its name after.
    pub(super) to: &'n TableName,
    /// Renamed columns: old and new names.
    pub(super) columns: &'n [(String, String)],
}

impl Moved<'_> {
    /// Adapts a foreign key of a table in `database`, if it references this table.
    fn adapt(&self, key: &mut ForeignKey, database: &str) {
        let References { table, columns, .. } = &mut key.references;
        let referenced = table.database.as_deref().unwrap_or(database);
        if referenced != self.from.database || table.name != self.from.table {
            return;
        }
        for column in columns {
            let mut renamed = self.columns.iter();
            if let Some((_, new)) = renamed.find(|(old, _)| old.eq_ignore_ascii_case(column)) {
                new.clone_into(column);
            }
        }
        let other = (self.to.database != database).then(|| self.to.database.clone());
        *table = QualifiedName { database: other, name: self.to.table.clone() };
    }

    /// Adapts the foreign keys of the table itself.
    pub(super) fn follow_own(&self, draft: &mut Draft) {
        draft.foreign.iter_mut().for_each(|key| self.adapt(key, &self.from.database));
    }

    /// The changed lines of another table's definition: the prefix that identifies each, and its new text.
    fn followed(&self, table: &SqlTable, database: &str) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        for key in &table.foreign {
            let Some(name) = &key.name else { continue };
            let mut new = key.clone();
            self.adapt(&mut new, database);
            if new != *key {
                let begin = format!("CONSTRAINT {} FOREIGN KEY ", quoted_name(name));
                changed.push((begin, TableLine::Foreign(new).written()));
            }
        }
        changed
    }
}

/// The new definitions of other tables whose foreign keys reference renamed tables. `called` gives the engine's name of
/// a table after the renames.
pub(super) fn follow(
    session: &SessionState,
    moved: &[Moved<'_>],
    called: impl Fn(&str) -> String,
) -> Result<Vec<Definition>> {
    let mut definitions = Vec::new();
    for name in session.shared.database.tables() {
        let schema = session.shared.database.schema(&name).map_err(from_engine_write)?;
        let has_any = schema
            .declared
            .as_ref()
            .is_some_and(|declared| declared.keys.iter().any(|line| line.contains(" REFERENCES ")));
        if !has_any {
            continue;
        }
        let table = SqlTable::of(&schema);
        let database = TableName::of_engine(&name, &session.shared).database;
        let mut changed = Schema::clone(&schema);
        for each in moved {
            for (begin, all) in each.followed(&table, &database) {
                let keys = changed.declared.iter_mut().flat_map(|declared| &mut declared.keys);
                keys.filter(|line| line.starts_with(&begin)).for_each(|line| line.clone_from(&all));
            }
        }
        if changed.declared != schema.declared {
            changed.name = called(&name);
            definitions.push(Definition::Alter { schema: changed, fills: Vec::new() });
        }
    }
    Ok(definitions)
}
