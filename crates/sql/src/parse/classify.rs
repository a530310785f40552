//! Classifies a statement by its first words: which module runs it.

use remora_mysql::{Token, TokenKind};

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// SELECT, WITH … SELECT, VALUES, TABLE.
    Select,
    /// DO.
    Do,
    /// EXPLAIN of a statement.
    Explain,
    /// INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.
    Rows,
    /// CREATE, ALTER, DROP, RENAME, TRUNCATE.
    Definition,
    /// BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, RELEASE SAVEPOINT.
    Transaction,
    /// SET.
    Set,
    /// USE.
    Use,
    /// SHOW, DESCRIBE, HELP.
    Show,
    /// ANALYZE, CHECK, OPTIMIZE, REPAIR, CHECKSUM TABLE, KILL, FLUSH, LOCK, UNLOCK, and others
    /// about the server.
    Administration,
    /// PREPARE, EXECUTE, DEALLOCATE.
    Prepared,
    /// Anything else.
    Other,
}

/// Whose statement begins with these tokens.
pub(super) fn kind(text: &[u8], tokens: &[Token]) -> StatementKind {
    let mut tokens = tokens.iter().skip_while(|token| token.is(text, "("));
    let Some(first) = tokens.next() else { return StatementKind::Other };
    if first.kind != TokenKind::Word {
        return StatementKind::Other;
    }
    let word = String::from_utf8_lossy(first.bytes(text)).to_uppercase();
    match word.as_str() {
        "SELECT" | "VALUES" | "TABLE" => StatementKind::Select,
        "WITH" => after_with(text, tokens),
        "DO" => StatementKind::Do,
        "EXPLAIN" | "DESCRIBE" | "DESC" => explain(text, tokens.next()),
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "LOAD" => StatementKind::Rows,
        "DROP" if tokens.next().is_some_and(|token| token.is_word(text, "PREPARE")) => {
            StatementKind::Prepared
        }
        "CREATE" | "ALTER" | "DROP" | "RENAME" | "TRUNCATE" => StatementKind::Definition,
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
            StatementKind::Transaction
        }
        "SET" => StatementKind::Set,
        "USE" => StatementKind::Use,
        "SHOW" | "HELP" => StatementKind::Show,
        "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" | "KILL" | "FLUSH" | "LOCK"
        | "UNLOCK" | "RESET" | "PURGE" | "STOP" | "CHANGE" | "GRANT" | "REVOKE" | "SHUTDOWN" => {
            StatementKind::Administration
        }
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => StatementKind::Prepared,
        _ => StatementKind::Other,
    }
}

/// The verb behind the common table expressions.
fn after_with<'a>(text: &[u8], tokens: impl Iterator<Item = &'a Token>) -> StatementKind {
    let (mut depth, mut is_behind_for) = (0_usize, false);
    for token in tokens {
        let is_lock = std::mem::replace(&mut is_behind_for, token.is_word(text, "FOR"));
        if token.is(text, "(") {
            depth += 1;
        } else if token.is(text, ")") {
            depth = depth.saturating_sub(1);
        } else if depth == 0
            && !is_lock
            && (token.is_word(text, "UPDATE") || token.is_word(text, "DELETE"))
        {
            return StatementKind::Rows;
        }
    }
    StatementKind::Select
}

/// EXPLAIN of a statement, or of a table, which is SHOW COLUMNS.
fn explain(text: &[u8], next: Option<&Token>) -> StatementKind {
    const VERBS: [&str; 11] = [
        "SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "TABLE", "VALUES", "FORMAT",
        "ANALYZE", "FOR",
    ];
    let verb =
        |token: &Token| token.is(text, "(") || VERBS.iter().any(|verb| token.is_word(text, verb));
    if next.is_some_and(|token| verb(token) || token.is_word(text, "EXTENDED")) {
        StatementKind::Explain
    } else {
        StatementKind::Show
    }
}
