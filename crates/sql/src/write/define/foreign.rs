//! What foreign keys, which are stored but not enforced, require of other definitions of their table.

use remora_engine::{Definition, Schema, Value};
use remora_mysql::ErrorCode;

use super::draft::Draft;
use crate::{
    Error, Result,
    catalog::{Line, PartOf, SqlTable, TableName, column_list, quoted_name},
    error::from_engine_write,
    state::SessionState,
};

/// Fails where a foreign key of the table loses a column or its last index: 1828, 1553.
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

/// Renames a column, in the keys and the foreign keys of its table too.
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

/// A table whose name or whose columns' names become others, which foreign keys that reference it
/// follow.
pub(super) struct Moved<'n> {
    /// Its name before.
    pub(super) from: &'n TableName,
    /// Its name after.
    pub(super) to: &'n TableName,
    /// Columns, by their names before and after.
    pub(super) columns: &'n [(String, String)],
}

impl Moved<'_> {
    /// What a foreign key of a table in `database` says behind its columns; `None` where it
    /// references another table.
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

    /// The foreign keys of a draft of the table itself.
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

    /// The lines of another table's definition that change: what one begins with, and all of it.
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

/// Quoted names with commas between, up to the closing parenthesis, and what stands behind it.
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

/// What other tables' foreign keys say once these tables have their new names. `called` is what the
/// engine calls a table by then.
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
