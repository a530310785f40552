//! What the session's user may do, in the words of GRANT.

use remora_engine::Value;

use super::{
    grid::{text, yes},
    tables::CATALOG,
};
use crate::{Identity, Right, write::declared::quoted_name};

/// What someone with all rights may do to the server.
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
/// What writing means.
const WRITES: [&str; 8] =
    ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER"];

/// The privileges of a right.
fn words(right: &Right) -> &'static [&'static str] {
    if right.write { &WRITES } else { &["SELECT"] }
}

/// SHOW GRANTS: a statement for each right.
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
