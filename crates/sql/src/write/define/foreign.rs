//! Effects of foreign keys, which are stored but not enforced, on changes of definitions.

use remora_engine::{Definition, Schema, Value};
use remora_mysql::ErrorCode;

use super::draft::Draft;
use crate::{
    Error, Result,
    catalog::{Line, PartOf, SqlTable, TableName, column_list, quoted_name},
    error::from_engine_write,
    state::SessionState,
};

/// Error 1828 or 1553 if a foreign key of the table loses a column or its last index.
pub(super) fn check_needed(session: &SessionState, table: &SqlTable, draft: &Draft) -> Result<()> {
    let is_checked = session.system_variable("foreign_key_checks")? != Value::Int(0);
    for line in draft.foreign.iter().take(draft.known_foreign) {
        let Line::Foreign { name: Some(name), columns, .. } = line else { continue };
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
    for line in &mut draft.foreign {
        let Line::Foreign { columns, text, .. } = line else { continue };
        let before = column_list(columns);
        for column in columns.iter_mut().filter(|column| column.eq_ignore_ascii_case(&old)) {
            new.clone_into(column);
        }
        if let Some(rest) = text.strip_prefix(&before) {
            *text = format!("{}{rest}", column_list(columns));
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
    /// The new text of a foreign key after its columns, for a table in `database`; `None` if it references another
    /// table.
    fn references(&self, text: &str, database: &str) -> Option<String> {
        let written = |name: &TableName| match name.database == database {
            true => quoted_name(&name.table),
            false => format!("{}.{}", quoted_name(&name.database), quoted_name(&name.table)),
        };
        let full =
            format!("{}.{}", quoted_name(&self.from.database), quoted_name(&self.from.table));
        let known = [written(self.from), full];
        let rest = text.strip_prefix(" REFERENCES ")?;
        let rest = known.iter().find_map(|name| rest.strip_prefix(name)?.strip_prefix(" ("))?;
        let (columns, behind) = names(rest)?;
        let column = |name: String| {
            let moved = self.columns.iter().find(|(old, _)| old.eq_ignore_ascii_case(&name));
            moved.map_or(name, |(_, new)| new.clone())
        };
        let columns: Vec<String> = columns.into_iter().map(column).collect();
        Some(format!(" REFERENCES {} {}{behind}", written(self.to), column_list(&columns)))
    }

    /// Adapts the foreign keys of the table itself.
    pub(super) fn follow_own(&self, draft: &mut Draft) {
        for line in &mut draft.foreign {
            let Line::Foreign { columns, text, .. } = line else { continue };
            let own = column_list(columns);
            let rest = text.strip_prefix(&own);
            if let Some(new) = rest.and_then(|rest| self.references(rest, &self.from.database)) {
                *text = format!("{own}{new}");
            }
        }
    }

    /// The changed lines of another table's definition: the prefix that identifies each, and its new text.
    fn followed(&self, table: &SqlTable, database: &str) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        for line in &table.foreign {
            let Line::Foreign { name: Some(name), columns, text, .. } = line else { continue };
            let own = column_list(columns);
            let Some(rest) = text.strip_prefix(&own) else { continue };
            let Some(new) = self.references(rest, database) else { continue };
            let begin = format!("CONSTRAINT {} FOREIGN KEY ", quoted_name(name));
            if new != *rest {
                let all = format!("{begin}{own}{new}");
                changed.push((begin, all));
            }
        }
        changed
    }
}

/// Parses quoted names separated by commas up to the closing parenthesis; returns them with the rest of the text.
fn names(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        let mut name = String::new();
        rest = rest.strip_prefix('`')?;
        loop {
            let (part, behind) = rest.split_once('`')?;
            name.push_str(part);
            match behind.strip_prefix('`') {
                Some(more) => {
                    name.push('`');
                    rest = more;
                }
                None => {
                    rest = behind;
                    break;
                }
            }
        }
        found.push(name);
        match rest.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return Some((found, rest.strip_prefix(')')?)),
        }
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
