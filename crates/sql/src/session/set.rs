//! SET: system variables, user variables, character sets, and characteristics of transactions.
//!
//! ```text
//! set        := "SET" assignment ("," assignment)*
//! assignment := "NAMES" (name ["COLLATE" name] | "DEFAULT")
//!             | ("CHARACTER SET" | "CHARSET") (name | "DEFAULT")
//!             | [scope] "TRANSACTION" characteristic ("," characteristic)*
//!             | "@" name ("=" | ":=") expression
//!             | [scope | "@@" scope "."] name ("=" | ":=") (expression | "DEFAULT" | word)
//! scope      := "GLOBAL" | "SESSION" | "LOCAL" | "PERSIST" | "PERSIST_ONLY"
//! ```
//! All expressions are evaluated, and all errors found, before the first variable is set:
//! `SET @a = 1, @b = @a` sets `@b` to the old value of `@a`, and `SET @a = 1, version = ''` sets nothing.

use remora_engine::Value;
use remora_mysql::{Collation, ErrorCode, TokenKind, charset_default, messages, unquoted};

use crate::{
    Error, Outcome, Reply, Result,
    blocking::run_blocking_if_long,
    execute,
    parse::{Source, Statement, StatementKind, write::expressions},
    state::{SessionState, VariableTarget},
    variables::{VariableDefinition, VariableScope, Variables, definition, unknown},
};

/// Runs SET.
pub(super) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    let source = &statement.source;
    if is_role(source) {
        return Ok(Outcome::default());
    }
    let ends = ends(source);
    let mut settings = Vec::with_capacity(ends.len());
    let mut at = 1;
    for end in ends {
        if at >= end {
            return Err(source.syntax_error(at));
        }
        let setting = Assignment { statement, at, end }.read(session).await?;
        let is_last = matches!(setting, Setting::Transaction { .. });
        settings.push(setting);
        if is_last {
            break;
        }
        at = end + 1;
    }
    if settings.len() > 1 {
        let mut tried = session.variables.clone();
        settings.iter().try_for_each(|setting| setting.check(session, &mut tried))?;
    }
    for setting in settings {
        setting.apply(session).await?;
    }
    Ok(Outcome::default())
}

/// Whether it is `SET ROLE` without the name of a role. There are no roles, so it changes nothing.
fn is_role(source: &Source) -> bool {
    let is_any = ["NONE", "DEFAULT", "ALL"].iter().any(|word| source.is_word(2, word));
    source.is_word(1, "ROLE") && is_any && source.tokens.len() == 3
}

/// MariaDB's `SET STATEMENT assignments FOR statement`: variables for a single statement.
pub(super) async fn run_for<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    let found = (2..source.tokens.len()).find(|at| source.is_word(*at, "FOR"));
    let Some(end) = found else { return Err(source.syntax_error(source.tokens.len())) };
    if end + 1 >= source.tokens.len() {
        return Err(source.syntax_error(end + 1));
    }
    let inner = source.within(end + 1..source.tokens.len());
    // Refuses nested SET, which could be endless, and EXECUTE, which ends its reply itself.
    if matches!(inner.kind, StatementKind::Set | StatementKind::Prepared) {
        return Err(source.syntax_error(end + 1));
    }
    let before = session.variables.clone();
    let mut at = 2;
    for next in ends(source).into_iter().map(|comma| comma.min(end)) {
        if at < next {
            let setting = Assignment { statement, at, end: next }.read(session).await;
            let applied = match setting {
                Ok(setting) => setting.apply(session).await,
                Err(error) => Err(error),
            };
            if let Err(error) = applied {
                session.variables = before;
                return Err(error);
            }
        }
        at = next + 1;
    }
    let inner = Statement { source: inner.into(), ..statement.clone() };
    let kind = inner.kind();
    let ran = match session.begin_reading(kind).await {
        Ok(()) => Box::pin(session.dispatch(kind, &inner, reply)).await,
        Err(error) => Err(error),
    };
    session.variables = before;
    ran
}

/// The token position where each assignment ends: at commas outside of parentheses, and at the end.
fn ends(source: &Source) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut ends = Vec::new();
    for at in 0..source.tokens.len() {
        if source.is(at, "(") {
            depth += 1;
        } else if source.is(at, ")") {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && source.is(at, ",") {
            ends.push(at);
        }
    }
    ends.push(source.tokens.len());
    ends
}

/// A variable to set, with its value.
enum Setting {
    /// NAMES: all three character sets, and the connection's collation.
    Names(Collation),
    /// CHARACTER SET: the character sets of client and results.
    CharacterSet(Collation),
    /// The characteristics of transactions, by their variables. It is the last assignment of a
    /// statement.
    Transaction {
        target: Option<VariableTarget>,
        values: Vec<(&'static str, Value)>,
    },
    User {
        name: String,
        value: Value,
    },
    System {
        definition: &'static VariableDefinition,
        target: Option<VariableTarget>,
        /// Whether it is `@@name` without a scope, which means the next transaction.
        is_next: bool,
        value: Value,
    },
}

impl Setting {
    /// Reports the error that [`Setting::apply`] would. `tried` collects the variables that earlier
    /// assignments set.
    fn check(&self, session: &SessionState, tried: &mut Variables) -> Result<()> {
        let charset = |collation: &Collation| Value::Text(collation.charset().into());
        match self {
            Self::Names(collation) | Self::CharacterSet(collation) => {
                tried.set("character_set_client", &charset(collation)).map(drop)
            }
            Self::System { definition, target, is_next, value } => {
                may_set(session, definition, *target, value)?;
                tried.set(without_synonym(definition), value)?;
                match *is_next && is_of_transaction(definition) && session.transaction.is_open() {
                    true => Err(transaction_open()),
                    false => Ok(()),
                }
            }
            Self::Transaction { target: None, .. } if session.transaction.is_open() => {
                Err(transaction_open())
            }
            Self::Transaction { target: Some(VariableTarget::Global), values } => {
                let mut known = values.iter().filter_map(|(name, _)| definition(name));
                known.try_for_each(|definition| session.may_set_global(definition))
            }
            Self::Transaction { .. } | Self::User { .. } => Ok(()),
        }
    }

    async fn apply(self, session: &mut SessionState) -> Result<()> {
        match self {
            Self::Names(collation) => {
                set_charsets(session, collation)?;
                let collation = Value::Text(collation.name().into());
                session.set_variable("collation_connection", &collation)
            }
            Self::CharacterSet(collation) => {
                set_charsets(session, collation)?;
                let of_database = session.variables.get("collation_database")?;
                session.set_variable("collation_connection", &of_database)
            }
            Self::Transaction { target, values } => values
                .iter()
                .try_for_each(|(name, value)| transaction(session, target, name, value)),
            Self::User { name, value } => session.user_variables.set(&name, value),
            Self::System { definition, target, is_next, value } => {
                system_variable(session, definition, (target, is_next), &value).await
            }
        }
    }
}

fn set_charsets(session: &mut SessionState, collation: Collation) -> Result<()> {
    let charset = Value::Text(collation.charset().into());
    for name in ["character_set_client", "character_set_results"] {
        session.set_variable(name, &charset)?;
    }
    Ok(())
}

fn transaction(
    session: &mut SessionState,
    target: Option<VariableTarget>,
    name: &'static str,
    value: &Value,
) -> Result<()> {
    match target {
        Some(VariableTarget::Global) => session.set_global(name, value),
        Some(VariableTarget::Session) => session.set_variable(name, value),
        None if session.transaction.is_open() => Err(transaction_open()),
        None => {
            session.set_next_transaction(name, value);
            Ok(())
        }
    }
}

/// An error if a variable may not be set in this scope, such as 1229 for a global one. Nothing is
/// set.
fn may_set(
    session: &SessionState,
    definition: &VariableDefinition,
    target: Option<VariableTarget>,
    value: &Value,
) -> Result<()> {
    if target == Some(VariableTarget::Global) {
        return session.may_set_global(definition);
    }
    session.may_set_variable(definition, value)?;
    match definition.scope {
        VariableScope::Global => Err(global_only(definition.name)),
        _ => Ok(()),
    }
}

/// Whether `@@name` without a scope applies to the next transaction only.
fn is_of_transaction(definition: &VariableDefinition) -> bool {
    definition.name.starts_with("transaction_")
}

/// The variable's main name, if it has two.
fn without_synonym(definition: &VariableDefinition) -> &'static str {
    match definition.name {
        "tx_isolation" => "transaction_isolation",
        "tx_read_only" => "transaction_read_only",
        name => name,
    }
}

async fn system_variable(
    session: &mut SessionState,
    definition: &'static VariableDefinition,
    (target, is_next): (Option<VariableTarget>, bool),
    value: &Value,
) -> Result<()> {
    may_set(session, definition, target, value)?;
    match target {
        Some(VariableTarget::Global) => session.set_global(definition.name, value),
        // `SET @@transaction_isolation = …` means SET TRANSACTION.
        _ if is_next && is_of_transaction(definition) => {
            let before = session.variables.get(definition.name)?;
            session.set_variable(definition.name, value)?;
            let value = session.variables.get(definition.name)?;
            session.set_variable(definition.name, &before)?;
            if session.transaction.is_open() {
                return Err(transaction_open());
            }
            session.set_next_transaction(definition.name, &value);
            Ok(())
        }
        _ => {
            let commits = definition.name == "autocommit" && !session.variables.autocommit;
            session.set_variable(definition.name, value)?;
            match commits && session.variables.autocommit {
                true => session.commit().await,
                false => Ok(()),
            }
        }
    }
}

/// An assignment: the tokens from `at` to before `end`.
struct Assignment<'a> {
    statement: &'a Statement<'a>,
    at: usize,
    end: usize,
}

impl Assignment<'_> {
    /// Parses it and evaluates its expression.
    async fn read(mut self, session: &mut SessionState) -> Result<Setting> {
        let source = &self.statement.source;
        if source.is_word(self.at, "NAMES") {
            return self.names();
        }
        let charset = source.is_word(self.at, "CHARACTER") && source.is_word(self.at + 1, "SET");
        if charset || source.is_word(self.at, "CHARSET") {
            self.at += if charset { 2 } else { 1 };
            return self.character_set();
        }
        let target = self.scope();
        if source.is_word(self.at, "TRANSACTION") {
            return self.transaction(target);
        }
        let token = source.tokens.get(self.at).ok_or_else(|| source.syntax_error(self.at))?;
        match token.kind {
            TokenKind::UserVariable => self.user_variable(session).await,
            TokenKind::Word | TokenKind::Quoted | TokenKind::SystemVariable => {
                self.system_variable(session, target).await
            }
            _ => Err(source.syntax_error(self.at)),
        }
    }

    fn names(&self) -> Result<Setting> {
        let source = &self.statement.source;
        let collation = match self.word(self.at + 1)? {
            word if word.eq_ignore_ascii_case("DEFAULT") => Collation::UTF8MB4_0900_AI_CI,
            word => charset(&word)?,
        };
        if !source.is_word(self.at + 2, "COLLATE") {
            return match self.at + 2 < self.end {
                true => Err(source.syntax_error(self.at + 2)),
                false => Ok(Setting::Names(collation)),
            };
        }
        let name = self.word(self.at + 3)?;
        let chosen = Collation::by_name(&name).ok_or_else(|| {
            Error::new(ErrorCode::UnknownCollation, messages::unknown_collation(name))
        })?;
        if chosen.charset() != collation.charset() {
            let (name, charset) = (chosen.name(), collation.charset());
            let message = messages::collation_charset_mismatch(name, charset);
            return Err(Error::new(ErrorCode::CollationCharsetMismatch, message));
        }
        Ok(Setting::Names(chosen))
    }

    fn character_set(&self) -> Result<Setting> {
        match self.word(self.at)? {
            word if word.eq_ignore_ascii_case("DEFAULT") => {
                Ok(Setting::CharacterSet(Collation::UTF8MB4_0900_AI_CI))
            }
            word => charset(&word).map(Setting::CharacterSet),
        }
    }

    /// Parses a scope, if one is given.
    fn scope(&mut self) -> Option<VariableTarget> {
        let source = &self.statement.source;
        let is = |word: &str| source.is_word(self.at, word);
        let target = match () {
            () if is("GLOBAL") || is("PERSIST") || is("PERSIST_ONLY") => VariableTarget::Global,
            () if is("SESSION") || is("LOCAL") => VariableTarget::Session,
            () => return None,
        };
        self.at += 1;
        Some(target)
    }

    fn transaction(&self, target: Option<VariableTarget>) -> Result<Setting> {
        let source = &self.statement.source;
        let (mut at, mut values) = (self.at + 1, Vec::new());
        loop {
            let (name, value, taken) = characteristic(source, at)?;
            values.push((name, value));
            at += taken;
            if at >= source.tokens.len() {
                return Ok(Setting::Transaction { target, values });
            }
            if !source.is(at, ",") {
                return Err(source.syntax_error(at));
            }
            at += 1;
        }
    }

    async fn user_variable(&mut self, session: &mut SessionState) -> Result<Setting> {
        let source = &self.statement.source;
        let token = source.tokens.get(self.at).ok_or_else(|| source.syntax_error(self.at))?;
        let name = String::from_utf8_lossy(source.bytes(token)).into_owned();
        let name = name.trim_start_matches('@').trim_matches(['`', '\'', '"']).to_owned();
        self.at += 1;
        self.equals()?;
        Ok(Setting::User { name, value: self.value(session).await? })
    }

    async fn system_variable(
        &mut self,
        session: &mut SessionState,
        mut target: Option<VariableTarget>,
    ) -> Result<Setting> {
        let source = &self.statement.source;
        let mut name = self.word(self.at)?;
        self.at += 1;
        let mut is_next = false;
        if let Some(rest) = name.strip_prefix("@@") {
            name = rest.to_owned();
            is_next = target.is_none();
        }
        if source.is(self.at, ".") {
            target = Some(VariableTarget::named(&name).ok_or_else(|| unknown(&name))?);
            is_next = false;
            name = self.word(self.at + 1)?;
            self.at += 2;
        }
        self.equals()?;
        let definition = definition(&name).ok_or_else(|| unknown(&name))?;
        let is_global = target == Some(VariableTarget::Global);
        let value = self.setting(session, definition, is_global).await?;
        Ok(Setting::System { definition, target, is_next, value })
    }

    fn equals(&mut self) -> Result<()> {
        let source = &self.statement.source;
        if !source.is(self.at, "=") && !source.is(self.at, ":=") {
            return Err(source.syntax_error(self.at));
        }
        self.at += 1;
        match self.at < self.end {
            true => Ok(()),
            false => Err(source.syntax_error(self.at)),
        }
    }

    /// The value for a system variable, where words stand for themselves. DEFAULT means the global
    /// value for a session, and the built-in default for the global value.
    async fn setting(
        &self,
        session: &mut SessionState,
        definition: &VariableDefinition,
        is_global: bool,
    ) -> Result<Value> {
        let source = &self.statement.source;
        if self.end == self.at + 1 {
            if source.is_word(self.at, "DEFAULT") {
                return Ok(match definition.scope {
                    VariableScope::Both if !is_global => {
                        session.shared.globals.read().get(definition)
                    }
                    _ => definition.default_value(),
                });
            }
            let is_word = source.tokens.get(self.at).is_some_and(|token| {
                token.kind == TokenKind::Word && !token.is_word(&source.text, "NULL")
            });
            if is_word {
                return Ok(Value::Text(self.word(self.at)?.into()));
            }
        }
        self.value(session).await
    }

    /// The value of the remaining expression.
    async fn value(&self, session: &mut SessionState) -> Result<Value> {
        let source = &self.statement.source;
        if self.end == self.at + 1
            && let Some(value) = literal(self.statement, self.at)
        {
            return Ok(value);
        }
        if self.at >= self.end {
            return Err(source.syntax_error(self.at));
        }
        let skipped = source.tokens.iter().take(self.at);
        let skipped = skipped.filter(|token| token.kind == TokenKind::Parameter).count();
        let parameters = self.statement.parameters.get(skipped..).unwrap_or_default();
        let parse = || expressions(source, &[(self.at..self.end, parameters)]);
        let parsed = run_blocking_if_long(source.is_long(), parse)?.pop();
        let expr = parsed.ok_or_else(|| source.syntax_error(self.at))?;
        execute::value(session, expr, source).await
    }

    fn word(&self, at: usize) -> Result<String> {
        let source = &self.statement.source;
        let fits = |kind: TokenKind| {
            matches!(
                kind,
                TokenKind::Word | TokenKind::Quoted | TokenKind::Text | TokenKind::SystemVariable
            )
        };
        match source.tokens.get(at) {
            Some(token) if fits(token.kind) && at < self.end => {
                Ok(source.plain(at).unwrap_or_default())
            }
            _ => Err(source.syntax_error(at)),
        }
    }
}

/// The value of a literal that needs no evaluation.
fn literal(statement: &Statement<'_>, at: usize) -> Option<Value> {
    let source = &statement.source;
    let token = source.tokens.get(at)?;
    match token.kind {
        TokenKind::Integer => {
            let digits = std::str::from_utf8(source.bytes(token)).ok()?;
            let small = digits.parse().map(Value::Int).ok();
            small.or_else(|| digits.parse().map(Value::Uint).ok())
        }
        TokenKind::Text => {
            Some(match String::from_utf8(unquoted(source.bytes(token), source.mode)) {
                Ok(text) => Value::Text(text.into()),
                Err(error) => Value::Bytes(error.into_bytes().into()),
            })
        }
        TokenKind::Word if token.is_word(&source.text, "NULL") => Some(Value::Null),
        _ => None,
    }
}

/// Parses a characteristic of transactions: the variable, its value, and the number of tokens.
fn characteristic(source: &Source, at: usize) -> Result<(&'static str, Value, usize)> {
    let is = |ahead: usize, word: &str| source.is_word(at + ahead, word);
    if is(0, "READ") {
        return match (is(1, "ONLY"), is(1, "WRITE")) {
            (true, _) => Ok(("transaction_read_only", Value::Int(1), 2)),
            (_, true) => Ok(("transaction_read_only", Value::Int(0), 2)),
            _ => Err(source.syntax_error(at + 1)),
        };
    }
    if !is(0, "ISOLATION") || !is(1, "LEVEL") {
        return Err(source.syntax_error(at));
    }
    let (level, words) = match () {
        () if is(2, "SERIALIZABLE") => ("SERIALIZABLE", 1),
        () if is(2, "REPEATABLE") && is(3, "READ") => ("REPEATABLE-READ", 2),
        () if is(2, "READ") && is(3, "COMMITTED") => ("READ-COMMITTED", 2),
        () if is(2, "READ") && is(3, "UNCOMMITTED") => ("READ-UNCOMMITTED", 2),
        () => return Err(source.syntax_error(at + 2)),
    };
    Ok(("transaction_isolation", Value::Text(level.into()), 2 + words))
}

fn charset(name: &str) -> Result<Collation> {
    let unknown = || Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name));
    charset_default(name).ok_or_else(unknown)
}

/// 1229: the variable has no session value.
fn global_only(name: &str) -> Error {
    let message =
        format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL");
    Error::new(ErrorCode::GlobalVariable, message)
}

/// 1568: a transaction is open.
fn transaction_open() -> Error {
    let message = "Transaction characteristics can't be changed while a transaction is in progress";
    Error::new(ErrorCode::TransactionOpen, message)
}
