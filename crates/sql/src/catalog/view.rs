//! Views: how they are printed, and where they are stored.
//!
//! A view is stored as a position, under a source name that begins with `#view.`, in the same commits as table
//! definitions.

use remora_engine::DeclaredView;
use remora_mysql::{Collation, ErrorCode};

use super::{Reader, TableName};
use crate::{
    Error, Result,
    identity::STORED_POINT,
    parse::define::{ViewHead, quoted_name, stored_view},
};

/// A stored view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Its name.
    pub name: TableName,
    /// The text of its SELECT, in the default `sql_mode`.
    pub select: String,
    /// The rest of its definition.
    pub head: ViewHead,
    /// The stored declaration.
    pub declared: DeclaredView,
}

impl ViewHead {
    /// The whole statement as SHOW CREATE VIEW prints it when `database` is the current one.
    pub(crate) fn written(&self, name: &TableName, select: &str, database: Option<&str>) -> String {
        let (user, host) = self.definer.clone().unwrap_or_default();
        let mut called = quoted_name(&name.table);
        if database != Some(name.database.as_str()) {
            called = format!("{}.{called}", quoted_name(&name.database));
        }
        let columns: Vec<String> = self.columns.iter().map(|name| quoted_name(name)).collect();
        let columns = match columns.is_empty() {
            true => String::new(),
            false => format!(" ({})", columns.join(",")),
        };
        let check = self.check.map_or_else(String::new, |it| format!(" WITH {it} CHECK OPTION"));
        format!(
            "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {called}{columns} AS {select}{check}",
            self.algorithm.unwrap_or("UNDEFINED"),
            quoted_name(&user),
            quoted_name(&host),
            self.security.unwrap_or("DEFINER"),
        )
    }
}

impl View {
    /// The view of this name, if there is one; error 1356 if its stored declaration cannot be parsed.
    pub(crate) fn find(reader: &Reader, name: &TableName) -> Result<Option<Self>> {
        let kept = reader.sources().get(&position(name));
        kept.map(|kept| Self::read(name, kept)).transpose()
    }

    /// Whether a view of this name exists.
    pub(crate) fn is_there(reader: &Reader, name: &TableName) -> bool {
        Self::kept(reader, name).is_some()
    }

    /// The stored declaration of the view of this name.
    pub(crate) fn kept<'r>(reader: &'r Reader, name: &TableName) -> Option<&'r str> {
        reader.sources().get(&position(name))
    }

    /// The names of all views.
    pub(crate) fn names(reader: &Reader) -> impl Iterator<Item = TableName> {
        let positions = reader.sources().iter();
        positions.filter_map(|(position, _)| named(DeclaredView::name_of(position)?))
    }

    /// Whether there are any views.
    pub(crate) fn are_there(reader: &Reader) -> bool {
        reader.sources().iter().any(|(position, _)| DeclaredView::name_of(position).is_some())
    }

    fn read(name: &TableName, kept: &str) -> Result<Self> {
        let unread = || {
            let message = format!("What is kept of the view '{name}' is not understood");
            Error::new(ErrorCode::ViewInvalid, message)
        };
        let declared = DeclaredView::read(kept).ok_or_else(unread)?;
        if let Some(reason) = &declared.refused {
            let message = format!("The view '{name}' cannot be read here: {reason}");
            return Err(Error::new(ErrorCode::ViewInvalid, message));
        }
        let (head, select) = stored_view(&declared.statement).map_err(|_| unread())?;
        Ok(Self { name: name.clone(), select, head, declared })
    }

    /// A view that is created in a session with these variables.
    pub(crate) fn new(
        name: TableName,
        head: ViewHead,
        select: String,
        (client, connection): (String, Collation),
    ) -> Self {
        let declared = DeclaredView {
            statement: head.written(&name, &select, None),
            character_set_client: client,
            collation_connection: connection.name().to_owned(),
            source: None,
            refused: None,
        };
        Self { name, select, head, declared }
    }

    /// The same view under another name.
    pub(crate) fn renamed(self, name: TableName) -> Self {
        let statement = self.head.written(&name, &self.select, None);
        Self { name, declared: DeclaredView { statement, ..self.declared }, ..self }
    }

    /// The position and the value that store it.
    pub(crate) fn to_keep(&self) -> (String, String) {
        (position(&self.name), self.declared.written())
    }

    /// The position and the value that delete the view of this name.
    pub(crate) fn to_forget(name: &TableName) -> (String, String) {
        (position(name), String::new())
    }
}

fn position(name: &TableName) -> String {
    let database = name.database.replace('.', STORED_POINT);
    DeclaredView::position(&format!("{database}.{}", name.table))
}

fn named(stored: &str) -> Option<TableName> {
    let (database, table) = stored.split_once('.')?;
    Some(TableName::new(database.replace(STORED_POINT, "."), table))
}

/// Error 1347 for a table in place of a view.
pub(crate) fn not_a_view(name: &TableName) -> Error {
    Error::new(ErrorCode::WrongObject, format!("'{name}' is not VIEW"))
}

/// Error 1347 for a view in place of a table.
pub(crate) fn not_a_table(name: &TableName) -> Error {
    Error::new(ErrorCode::WrongObject, format!("'{name}' is not BASE TABLE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_as_they_were_read() {
        for statement in [
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `shop`.`v` AS select 1 AS `1`",
            "CREATE ALGORITHM=MERGE DEFINER=`a``b`@`h` SQL SECURITY INVOKER VIEW `shop`.`v` (`x`,`y`) AS \
             (with `c` as (select 1) select * from `c`) WITH LOCAL CHECK OPTION",
        ] {
            let (head, select) = stored_view(statement).unwrap();
            let name = TableName::new(head.name.database.clone().unwrap(), &*head.name.name);
            assert_eq!(head.written(&name, &select, None), statement);
        }
    }
}
