//! Which names a new table or view may have.

use remora_mysql::{ErrorCode, messages};

use crate::{
    Access, Error, Result,
    catalog::{SYSTEM_DATABASES, TableName, Verb, View, database_denied, database_exists},
    state::SessionState,
};

/// Whether a table of this name may be created by this user.
pub(super) fn check_name(session: &SessionState, name: &TableName) -> Result<()> {
    check_spelling(name)?;
    name.check(&session.identity, Verb::Create)?;
    check_place(session, name)
}

/// Whether a temporary table of this name may be created by this user.
pub(super) fn check_temporary_name(session: &SessionState, name: &TableName) -> Result<()> {
    check_spelling(name)?;
    if !session.identity.may(&name.database, &name.table, Access::Write) {
        return Err(database_denied(&session.identity, &name.database));
    }
    check_place(session, name)
}

/// 1103 unless a table can have the name.
pub(super) fn check_spelling(name: &TableName) -> Result<()> {
    let wrong = name.table.is_empty()
        || name.table.ends_with(' ')
        || name.table.chars().count() > 64
        || name.table.starts_with('#');
    match wrong {
        false => Ok(()),
        true => {
            let message = format!("Incorrect table name '{}'", name.table);
            Err(Error::new(ErrorCode::WrongTableName, message))
        }
    }
}

/// Whether tables can be created in the database.
pub(super) fn check_place(session: &SessionState, name: &TableName) -> Result<()> {
    let system = SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(&name.database));
    if system {
        return Err(database_denied(&session.identity, &name.database));
    }
    if !database_exists(&session.shared, &name.database) {
        let message = messages::unknown_database(&name.database);
        return Err(Error::new(ErrorCode::UnknownDatabase, message));
    }
    Ok(())
}

/// Whether a table or a view has the name; `temporary`: whether a temporary table has it.
pub(super) fn exists(session: &SessionState, name: &TableName, temporary: bool) -> bool {
    if temporary {
        return session.transaction.temporary(name).is_some();
    }
    let shared = &session.shared;
    shared.database.schema(&name.engine_name(shared)).is_ok()
        || View::is_there(&shared.database.reader(), name)
}
