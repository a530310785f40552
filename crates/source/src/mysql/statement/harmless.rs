//! Statements that change neither rows nor definitions of tables, identified by their first words.
//!
//! A statement that is neither listed here nor understood makes tables uncertain. So a missing entry only makes following
//! slower, but a wrong entry makes it wrong.

use crate::mysql::scan::Scan;

/// The first words of harmless statements, without modifiers.
pub(super) const HARMLESS: &[&[&str]] = &[
    // Stored objects other than tables.
    &["CREATE", "TRIGGER"],
    &["DROP", "TRIGGER"],
    &["CREATE", "PROCEDURE"],
    &["ALTER", "PROCEDURE"],
    &["DROP", "PROCEDURE"],
    &["CREATE", "FUNCTION"],
    &["ALTER", "FUNCTION"],
    &["DROP", "FUNCTION"],
    &["CREATE", "PACKAGE"],
    &["DROP", "PACKAGE"],
    &["CREATE", "LIBRARY"],
    &["ALTER", "LIBRARY"],
    &["DROP", "LIBRARY"],
    &["CREATE", "EVENT"],
    &["ALTER", "EVENT"],
    &["DROP", "EVENT"],
    &["CREATE", "SEQUENCE"],
    &["ALTER", "SEQUENCE"],
    &["DROP", "SEQUENCE"],
    &["DROP", "TEMPORARY"],
    // Databases without tables, and defaults of new tables.
    &["CREATE", "DATABASE"],
    &["CREATE", "SCHEMA"],
    &["ALTER", "DATABASE"],
    &["ALTER", "SCHEMA"],
    &["CREATE", "TABLESPACE"],
    &["ALTER", "TABLESPACE"],
    &["DROP", "TABLESPACE"],
    &["CREATE", "UNDO", "TABLESPACE"],
    &["ALTER", "UNDO", "TABLESPACE"],
    &["DROP", "UNDO", "TABLESPACE"],
    &["CREATE", "LOGFILE", "GROUP"],
    &["ALTER", "LOGFILE", "GROUP"],
    &["DROP", "LOGFILE", "GROUP"],
    &["CREATE", "SPATIAL", "REFERENCE", "SYSTEM"],
    &["DROP", "SPATIAL", "REFERENCE", "SYSTEM"],
    // Accounts and servers.
    &["CREATE", "USER"],
    &["ALTER", "USER"],
    &["DROP", "USER"],
    &["RENAME", "USER"],
    &["CREATE", "ROLE"],
    &["DROP", "ROLE"],
    &["SET", "DEFAULT", "ROLE"],
    &["SET", "PASSWORD"],
    &["GRANT"],
    &["REVOKE"],
    &["CREATE", "SERVER"],
    &["ALTER", "SERVER"],
    &["DROP", "SERVER"],
    &["CREATE", "RESOURCE", "GROUP"],
    &["ALTER", "RESOURCE", "GROUP"],
    &["DROP", "RESOURCE", "GROUP"],
    &["INSTALL"],
    &["UNINSTALL"],
    // Maintenance.
    &["FLUSH"],
    &["ANALYZE", "TABLE"],
    &["ANALYZE", "TABLES"],
    &["ANALYZE", "LOCAL"],
    &["ANALYZE", "NO_WRITE_TO_BINLOG"],
    &["OPTIMIZE"],
    &["CACHE", "INDEX"],
    &["LOAD", "INDEX"],
];

/// The first words of statements on views, without modifiers.
pub(super) const OF_VIEWS: &[&[&str]] =
    &[&["CREATE", "VIEW"], &["ALTER", "VIEW"], &["DROP", "VIEW"]];

/// Whether a statement begins with one of these.
pub(super) fn is_harmless(scan: &Scan<'_>, list: &[&[&str]]) -> bool {
    // ALTER DATABASE … UPGRADE DATA DIRECTORY NAME renames a database.
    if scan.is(&["ALTER"]) && scan.has_word("UPGRADE") {
        return false;
    }
    let Some(verb) = scan.word() else { return false };
    let mut rest = scan.clone();
    rest.pass();
    pass_modifiers(&mut rest);
    list.iter().any(|entry| match entry.split_first() {
        Some((first, more)) => verb == *first && rest.clone().skip_all(more),
        None => false,
    })
}

/// `OR REPLACE`, `ALGORITHM = word`, `DEFINER = account`, `SQL SECURITY word`, `AGGREGATE`.
fn pass_modifiers(scan: &mut Scan<'_>) {
    loop {
        if scan.skip_all(&["OR", "REPLACE"]) || scan.skip("AGGREGATE") {
            continue;
        }
        if scan.skip("ALGORITHM") {
            scan.skip_symbol("=");
            scan.pass();
        } else if scan.skip("DEFINER") {
            scan.skip_symbol("=");
            scan.pass();
            scan.skip_host();
            scan.skip_parentheses();
        } else if scan.skip_all(&["SQL", "SECURITY"]) {
            scan.pass();
        } else {
            return;
        }
    }
}
