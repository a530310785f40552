//! The privileges of the session's user, in terms of GRANT.

use remora_engine::Value;

use super::{
    grid::{text, yes},
    tables::CATALOG,
};
use crate::{Access, Account, Identity, Right, catalog::quoted_name, state::SessionState};

/// The privileges of an administrator on the server.
const ALL: [&str; 14] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "PROCESS",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
];
/// The privilege columns of `mysql.user` in order. Privileges without meaning here are always N.
static ACCOUNT_COLUMNS: [&str; 29] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "",
    "PROCESS",
    "",
    "",
    "",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
];
/// The privileges that rights consist of. A weaker right has a prefix of this list.
static RIGHTS: [&str; 8] =
    ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER"];

/// The privileges that a right consists of.
fn words(right: &Right) -> &'static [&'static str] {
    let count = match right.access {
        Access::Read => 1,
        Access::Write => 4,
        Access::Define => RIGHTS.len(),
    };
    RIGHTS.get(..count).unwrap_or_default()
}

/// SHOW GRANTS: one GRANT statement for each right.
pub(super) fn grants(identity: &Identity) -> Vec<String> {
    let account = format!("{}@{}", quoted_name(&identity.user), quoted_name(&identity.host));
    let Some(rights) = &identity.rights else {
        return vec![format!("GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION")];
    };
    let place = |name: &str| if name == "*" { name.to_owned() } else { quoted_name(name) };
    let mut grants = vec![format!("GRANT USAGE ON *.* TO {account}")];
    grants.extend(rights.iter().map(|right| {
        let (database, table) = (place(&right.database), place(&right.table));
        format!("GRANT {} ON {database}.{table} TO {account}", words(right).join(", "))
    }));
    grants
}

fn grantee(identity: &Identity) -> Value {
    text(format!("'{}'@'{}'", identity.user, identity.host))
}

fn rights(identity: &Identity) -> &[Right] {
    identity.rights.as_deref().unwrap_or_default()
}

/// The rows of USER_PRIVILEGES.
pub(super) fn of_all(identity: &Identity) -> Vec<Vec<Value>> {
    let every = rights(identity).iter().filter(|right| right.database == "*" && right.table == "*");
    let mut held: Vec<&str> = every.flat_map(words).copied().collect();
    if identity.rights.is_none() {
        held.extend(ALL);
    } else if held.is_empty() {
        held.push("USAGE");
    }
    let grantable = identity.rights.is_none();
    let row = |word| vec![grantee(identity), text(CATALOG), text(word), yes(grantable)];
    held.into_iter().map(row).collect()
}

/// The rows of SCHEMA_PRIVILEGES.
pub(super) fn of_databases(identity: &Identity) -> Vec<Vec<Value>> {
    let held = rights(identity).iter().filter(|right| right.database != "*" && right.table == "*");
    let row = |(right, word): (&Right, &&str)| {
        vec![grantee(identity), text(CATALOG), text(&right.database), text(word), yes(false)]
    };
    held.flat_map(|right| words(right).iter().map(move |word| (right, word))).map(row).collect()
}

/// The rows of TABLE_PRIVILEGES.
pub(super) fn of_tables(identity: &Identity) -> Vec<Vec<Value>> {
    let held = rights(identity).iter().filter(|right| right.table != "*");
    let row = |(right, word): (&Right, &&str)| {
        let (database, table) = (text(&right.database), text(&right.table));
        vec![grantee(identity), text(CATALOG), database, table, text(word), yes(false)]
    };
    held.flat_map(|right| words(right).iter().map(move |word| (right, word))).map(row).collect()
}

/// The rows of `mysql.user`: all accounts for an administrator, their own for other users. Password
/// hashes are never shown.
pub(super) fn accounts(session: &SessionState) -> Vec<Vec<Value>> {
    let own = &session.identity;
    let mut accounts = session.shared.host.accounts();
    accounts.retain(|account| own.rights.is_none() || account.identity.user == own.user);
    if accounts.is_empty() {
        accounts.push(Account { identity: own.clone(), plugin: "caching_sha2_password" });
    }
    accounts.iter().map(account_row).collect()
}

fn account_row(account: &Account) -> Vec<Value> {
    let identity = &account.identity;
    let every = rights(identity).iter().filter(|right| right.database == "*" && right.table == "*");
    let held: Vec<&str> = match identity.rights {
        None => ALL.to_vec(),
        Some(_) => every.flat_map(words).copied().collect(),
    };
    let flag = |yes: bool| text(if yes { "Y" } else { "N" });
    let mut row = vec![text(&identity.host), text(&identity.user)];
    row.extend(ACCOUNT_COLUMNS.iter().map(|word| flag(held.contains(word))));
    row.push(text(""));
    row.extend(std::iter::repeat_n(Value::Bytes(Vec::<u8>::new().into()), 3));
    row.extend(std::iter::repeat_n(Value::Uint(0), 4));
    row.extend([text(account.plugin), text(""), flag(false), Value::Null, Value::Null]);
    row.extend([flag(false), flag(false), flag(false)]);
    row.extend(std::iter::repeat_n(Value::Null, 4));
    row
}
