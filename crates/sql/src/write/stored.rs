//! Checks expressions that a definition stores: CHECK conditions, generated columns, defaults. They are evaluated with
//! the rights of whoever writes a row, so they may read only the row.

use remora_mysql::{ErrorCode, LexMode, Token, TokenKind};

use crate::{Error, Result, parse::tokens, resolve::is_aggregate_name};

/// Functions that read or change the session.
const OF_SESSIONS: [&str; 16] = [
    "aes_decrypt",
    "aes_encrypt",
    "benchmark",
    "found_rows",
    "get_lock",
    "give_last_insert_id",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "match",
    "release_all_locks",
    "release_lock",
    "row_count",
    "sleep",
    "wait_for_executed_gtid_set",
];

/// Non-deterministic functions, which only defaults may use.
const VARYING: [&str; 27] = [
    "connection_id",
    "curdate",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "localtime",
    "localtimestamp",
    "now",
    "rand",
    "random_bytes",
    "schema",
    "session_user",
    "statement_digest",
    "sysdate",
    "system_user",
    "unix_timestamp",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "version",
];

/// The part of the definition that has the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner<'n> {
    /// The condition of this name.
    Check(&'n str),
    /// The generated column of this name.
    Generated(&'n str),
    /// The default of the column of this name.
    Default(&'n str),
    /// A part of the index of this name.
    Index(&'n str),
    /// The filters of a stored query.
    Filters,
}

/// The kinds of forbidden content.
#[derive(Debug)]
enum Foreign {
    Query,
    Variable,
    Function(String),
}

/// Refuses queries, variables, and functions that are more than values of their arguments.
pub(super) fn check_stored(expression: &str, owner: Owner<'_>) -> Result<()> {
    let text = expression.as_bytes();
    let tokens = tokens(text, LexMode::default())?;
    match foreign(text, &tokens, owner) {
        Some(foreign) => Err(owner.error(&foreign)),
        None => Ok(()),
    }
}

fn foreign(text: &[u8], tokens: &[Token], owner: Owner<'_>) -> Option<Foreign> {
    let is = |at: usize, mark: &str| tokens.get(at).is_some_and(|token| token.is(text, mark));
    tokens.iter().enumerate().find_map(|(at, token)| match token.kind {
        TokenKind::UserVariable | TokenKind::SystemVariable => Some(Foreign::Variable),
        TokenKind::Word if token.is_word(text, "SELECT") => Some(Foreign::Query),
        // `VALUES ROW(…)`, `TABLE t` and `WITH …` also begin subqueries, in parentheses of their own.
        TokenKind::Word
            if at > 0
                && is(at - 1, "(")
                && ["TABLE", "VALUES", "WITH"].iter().any(|word| token.is_word(text, word)) =>
        {
            Some(Foreign::Query)
        }
        TokenKind::Word if owner == Owner::Filters && token.is_word(text, "OVER") => {
            Some(Foreign::Function("over".to_owned()))
        }
        TokenKind::Word | TokenKind::Quoted => {
            let name = String::from_utf8_lossy(token.bytes(text)).to_lowercase();
            let name = name.trim_matches('`');
            let bare = name.starts_with("current_")
                || name.starts_with("utc_")
                || name.starts_with("localtime");
            let called = is(at + 1, "(") || bare && token.kind == TokenKind::Word;
            let varies = !matches!(owner, Owner::Default(_)) && VARYING.contains(&name);
            let aggregates = owner == Owner::Filters && is_aggregate_name(name);
            let refused = called && (varies || aggregates || OF_SESSIONS.contains(&name));
            refused.then(|| Foreign::Function(name.to_owned()))
        }
        _ => None,
    })
}

impl Owner<'_> {
    fn error(self, foreign: &Foreign) -> Error {
        let (code, message) = match (self, foreign) {
            (Owner::Filters, _) => (
                ErrorCode::ParseError,
                format!(
                    "The filters of a stored query are a condition of the document alone: they contain a query, a \
                     variable or a disallowed function{}.",
                    foreign.shown()
                ),
            ),
            (Owner::Check(name), Foreign::Variable) => (
                ErrorCode::CheckVariable,
                format!(
                    "An expression of a check constraint '{name}' cannot refer to a user or \
                     system variable."
                ),
            ),
            (
                Owner::Index(name) | Owner::Generated(name) | Owner::Default(name),
                Foreign::Variable,
            ) => (
                ErrorCode::DefaultVariable,
                format!(
                    "Default value expression of column '{name}' cannot refer user or system \
                     variables."
                ),
            ),
            (Owner::Check(name), _) => (
                if foreign.is_query() { ErrorCode::CheckQuery } else { ErrorCode::CheckFunction },
                format!(
                    "An expression of a check constraint '{name}' contains disallowed function{}.",
                    foreign.shown()
                ),
            ),
            (Owner::Generated(name), _) => (
                if foreign.is_query() {
                    ErrorCode::GeneratedQuery
                } else {
                    ErrorCode::GeneratedFunction
                },
                format!(
                    "Expression of generated column '{name}' contains a disallowed function{}.",
                    foreign.shown()
                ),
            ),
            (Owner::Index(name), _) => (
                ErrorCode::IndexFunction,
                format!("Expression of functional index '{name}' contains a disallowed function."),
            ),
            (Owner::Default(name), _) => (
                if foreign.is_query() {
                    ErrorCode::DefaultQuery
                } else {
                    ErrorCode::DefaultFunction
                },
                format!(
                    "Default value expression of column '{name}' contains a disallowed function{}.",
                    foreign.shown()
                ),
            ),
        };
        Error::new(code, message)
    }
}

impl Foreign {
    fn is_query(&self) -> bool {
        matches!(self, Self::Query)
    }

    fn shown(&self) -> String {
        match self {
            Self::Function(name) => format!(": {name}"),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mysql_refuses_is_refused_with_its_words() {
        let told = |expression: &str, owner| match check_stored(expression, owner) {
            Ok(()) => String::new(),
            Err(error) => format!("{} {}", error.code.number(), error.message),
        };
        let (check, default) = (Owner::Check("c"), Owner::Default("d"));
        for (expression, owner, expected) in [
            ("a > 1 and `user` = 'select'", check, ""),
            (
                "a in (select 1)",
                check,
                "3815 An expression of a check constraint 'c' contains disallowed function.",
            ),
            (
                "a > @x",
                check,
                "3816 An expression of a check constraint 'c' cannot refer to a user or system \
                 variable.",
            ),
            (
                "a > RAND()",
                check,
                "3814 An expression of a check constraint 'c' contains disallowed function: rand.",
            ),
            ("rand() + now()", default, ""),
            (
                "((select 1))",
                default,
                "3769 Default value expression of column 'd' contains a disallowed function.",
            ),
            (
                "@@port",
                default,
                "3772 Default value expression of column 'd' cannot refer user or system \
                 variables.",
            ),
            (
                "get_lock('x', 1)",
                default,
                "3770 Default value expression of column 'd' contains a disallowed function: \
                 get_lock.",
            ),
            (
                "(select 1)",
                Owner::Generated("g"),
                "3102 Expression of generated column 'g' contains a disallowed function.",
            ),
            (
                "current_timestamp",
                Owner::Generated("g"),
                "3763 Expression of generated column 'g' contains a disallowed function: \
                 current_timestamp.",
            ),
            (
                "a in (table t)",
                check,
                "3815 An expression of a check constraint 'c' contains disallowed function.",
            ),
        ] {
            assert_eq!(told(expression, owner), expected, "{expression}");
        }
    }
}
