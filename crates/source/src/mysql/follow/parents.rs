//! Parent tables of foreign keys that are not followed themselves.
//!
//! When rows of such a parent change, the binlog shows it, and the child stops. But if foreign key actions change the
//! parent's rows and are not logged, it would go unnoticed.

use crate::{
    Result,
    mysql::{
        connection::Connection,
        schema::{SourceTable, is_changed_by_foreign_keys},
        table_name::TableName,
    },
};

/// Why changes of a table's rows may go unnoticed, if they may.
pub(super) fn unfollowed_parent(
    source: &mut Connection,
    table: &SourceTable,
    is_followed: impl Fn(&TableName) -> bool,
) -> Result<Option<String>> {
    if source.server.logs_cascades {
        return Ok(None);
    }
    for key in table.reacting_keys() {
        let (database, name) = key.parent;
        let is_self = (&database, &name) == (&table.database, &table.name);
        let parent = TableName { database, table: name };
        if is_self || is_followed(&parent) {
            continue;
        }
        let TableName { database, table } = &parent;
        let found = is_changed_by_foreign_keys(&mut source.conn, database, table)?;
        let why = match found {
            Some(false) => continue,
            Some(true) => "whose own rows change so too",
            None => "which the user may not see",
        };
        return Ok(Some(format!(
            "by a foreign key its rows change with those of {database}.{table}, {why}; the binlog does \
             not tell: follow {database}.{table} too"
        )));
    }
    Ok(None)
}
