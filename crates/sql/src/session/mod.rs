//! A session: dispatches each statement of a client to the module that runs it.

mod arguments;
mod call;
mod diagnostics;
mod facets;
mod kill;
mod local_file;
mod part;
mod percolate;
mod prepared;
mod rows;
mod set;

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
};

use datafusion::sql::sqlparser::ast::Query;
use futures::future::BoxFuture;
use remora_engine::{Error as EngineError, Value};
use remora_mysql::{Charset, ErrorCode, SqlMode, TokenKind, messages, unquoted};

use crate::{
    Column, Error, Identity, Outcome, Reply, Result, ResultCharset,
    blocking::{run_blocking, run_blocking_if_long},
    error::from_engine,
    execute,
    parse::{LONG_BYTES, Source, Statement, StatementKind, split},
    reply::ErasedReply,
    shared::InstanceState,
    show,
    state::{Clock, Encryption, LastSearch, SessionState, StatementSnapshot},
    variables::SessionTimeZone,
    write,
};

/// One client's session. Statements run one at a time, in the caller's task.
pub struct Session {
    state: SessionState,
}

/// A prepared statement.
pub struct Prepared {
    /// The number of its `?`.
    pub parameters: usize,
    /// The columns of its rows, as far as they are known before it runs; empty if there are none.
    pub columns: Vec<Column>,
    pub(crate) source: Arc<Source>,
    pub(crate) shape: execute::PreparedShape,
}

/// The status flags of every reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// Whether each statement is its own transaction.
    pub autocommit: bool,
    /// Whether backslashes are ordinary characters in texts.
    pub no_backslash_escapes: bool,
}

impl Session {
    /// `max_execution_time`: the time limit of a SELECT in milliseconds; 0 means none.
    pub fn time_limit_ms(&self) -> u64 {
        self.state.variables.max_execution_time_ms
    }

    /// Sets `max_execution_time` for this session.
    pub fn limit_time(&mut self, limit_ms: u64) {
        self.state.variables.max_execution_time_ms = limit_ms;
    }

    pub(crate) fn new(shared: Arc<InstanceState>, id: u64, identity: Identity) -> Self {
        Self { state: SessionState::new(shared, id, identity) }
    }

    /// Runs the statement of a text, or all its statements if `many`.
    ///
    /// # Errors
    /// The error of the first statement that fails, with MySQL's code; later ones do not run.
    /// [`ErrorCode::EmptyQuery`] if there is no statement, [`ErrorCode::ParseError`] if the text
    /// cannot be parsed. An error of `reply` ends the statement too.
    pub async fn query<R: Reply>(&mut self, text: &[u8], many: bool, reply: &mut R) -> Result<()> {
        let text = self.utf8(without_end(text));
        let result = self.run_text(&text, many, reply).await;
        self.end(result)
    }

    /// Prepares a statement with `?` for values.
    ///
    /// # Errors
    /// [`ErrorCode::EmptyQuery`] if there is no statement, [`ErrorCode::NotPrepared`] if its kind
    /// cannot be prepared. Statements that read, show or change rows are checked here:
    /// [`ErrorCode::ParseError`] for a syntax error, and errors about the tables and columns that
    /// they name. Other statements are checked when they run.
    pub async fn prepare(&mut self, text: &[u8]) -> Result<Prepared> {
        self.begin();
        let text = self.utf8(without_end(text));
        let result = self.prepare_text(&text).await;
        self.end(result)
    }

    /// Runs a prepared statement with a value for each `?`.
    ///
    /// # Errors
    /// [`ErrorCode::WrongArguments`] if the number of values differs from that of the `?`;
    /// otherwise the statement's error, with MySQL's code. An error of `reply` ends the statement
    /// too.
    pub async fn execute<R: Reply>(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
        reply: &mut R,
    ) -> Result<()> {
        let result = self.run_prepared(prepared, parameters, reply).await;
        self.end(result)
    }

    /// The character set of the client's texts (`character_set_client`).
    pub fn client_charset(&self) -> Charset {
        self.state.variables.character_set_client
    }

    /// The character set of results (`character_set_results`); `None` if texts are sent without
    /// conversion.
    pub fn result_charset(&self) -> Option<ResultCharset> {
        self.state.variables.character_set_results
    }

    /// Selects a database, for USE and COM_INIT_DB.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownDatabase`] if it does not exist, [`ErrorCode::DatabaseAccessDenied`] if
    /// the account may not see it.
    pub fn use_database(&mut self, name: &str) -> Result<()> {
        self.state.use_database(name)
    }

    /// The current database.
    pub fn database(&self) -> Option<&str> {
        self.state.database.as_deref()
    }

    /// The current status flags.
    pub fn status(&self) -> Status {
        let variables = &self.state.variables;
        Status {
            in_transaction: self.state.transaction.is_open(),
            autocommit: variables.autocommit,
            no_backslash_escapes: self.state.lex_mode().no_backslash_escapes,
        }
    }

    /// Prepares the session for rows of files, whatever the global variables are: the errors of MySQL's default
    /// `sql_mode`, except that dates with a year, month or day of zero are accepted, and UTC for times without an offset.
    pub fn prepare_for_files(&mut self) {
        let modes = [SqlMode::NO_ZERO_DATE, SqlMode::NO_ZERO_IN_DATE];
        let variables = &mut self.state.variables;
        variables.sql_mode = modes.into_iter().fold(SqlMode::DEFAULT, SqlMode::without);
        variables.time_zone = SessionTimeZone::default();
    }

    /// Sets whether affected rows count rows found instead of rows changed (CLIENT_FOUND_ROWS).
    pub fn count_found_rows(&mut self, found: bool) {
        self.state.counts_found_rows = found;
    }

    /// Sets whether a statement may return several result sets (CLIENT_MULTI_RESULTS). By default
    /// it may.
    pub fn take_many_results(&mut self, takes: bool) {
        self.state.takes_many_results = takes;
    }

    /// Sets whether the session has a connection that is closed when [`Session::is_released`] says
    /// so. Otherwise COMMIT RELEASE and ROLLBACK RELEASE are refused with error 1235, as they are
    /// in a new session.
    pub fn allow_release(&mut self, may: bool) {
        self.state.may_be_released = may;
    }

    /// Sets the connection's encryption, for SHOW STATUS.
    pub fn set_encryption(&mut self, encryption: Option<Encryption>) {
        self.state.encryption = encryption;
    }

    /// The columns of a table's ranked search, in the order of its fields. Empty if the table does
    /// not exist or has no ranked search. `table` is the engine's name of a table, or of several
    /// read as one.
    ///
    /// # Errors
    /// [`ErrorCode::ForeignQuery`] if a server that holds rows of it does not answer.
    pub fn fields(&mut self, table: &str) -> Result<Vec<String>> {
        let schema = self.state.reading().schema(table);
        // There is no statement whose end would close these connections.
        self.state.forget_agents();
        let schema = match schema {
            Ok(schema) => schema,
            Err(error @ EngineError::RemoteServer(_)) => return Err(from_engine(&error)),
            Err(_) => return Ok(Vec::new()),
        };
        let columns = schema.words.iter().flat_map(|words| &words.columns);
        let name = |place: &usize| schema.columns.get(*place).map(|column| column.name.clone());
        Ok(columns.filter_map(name).collect())
    }

    /// The number of searches so far: SELECTs with a condition on texts and, in Sphinx's dialect, all SELECTs.
    pub fn searches(&self) -> u64 {
        self.state.searches
    }

    /// The last search. Cost: its keywords are looked up again.
    pub fn last_search(&self) -> LastSearch {
        self.state.last_search()
    }

    /// Takes the system variables that changed since the last call, for session tracking.
    pub fn take_changes(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.state.changes)
    }

    /// Resets the session to its state after the login, and rolls back an open transaction:
    /// COM_RESET_CONNECTION, or COM_CHANGE_USER with another identity.
    pub fn reset(&mut self, identity: Option<Identity>) {
        let old = &self.state;
        let identity = identity.unwrap_or_else(|| old.identity.clone());
        let mut state = SessionState::new(Arc::clone(&old.shared), old.id, identity);
        state.interrupted = Arc::clone(&old.interrupted);
        state.counts_found_rows = old.counts_found_rows;
        state.takes_many_results = old.takes_many_results;
        state.may_be_released = old.may_be_released;
        state.encryption = old.encryption.clone();
        let dialect = old.first_dialect;
        self.state = state;
        self.begin_in_dialect(dialect);
    }

    /// Sets the dialect in which the session begins, and begins again after [`Session::reset`]: Sphinx's or MySQL's;
    /// `None` for what the global `sql_dialect` says.
    pub fn begin_in_dialect(&mut self, is_sphinx: Option<bool>) {
        self.state.first_dialect = is_sphinx;
        if let Some(is_sphinx) = is_sphinx {
            let name = if is_sphinx { "sphinx" } else { "mysql" };
            // Both are names of dialects.
            let _ = self.state.variables.set("sql_dialect", &Value::Text(name.into()));
        }
    }

    /// Whether COMMIT or ROLLBACK had RELEASE, so that the connection must be closed after the
    /// reply.
    pub fn is_released(&self) -> bool {
        self.state.is_released
    }

    /// A flag that, once set, soon ends the running statement with error 1317. Clear it before the
    /// next statement.
    pub fn interrupter(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.state.interrupted)
    }

    async fn run_text<R: Reply>(&mut self, text: &[u8], many: bool, reply: &mut R) -> Result<()> {
        self.begin();
        reply.charset(self.result_charset());
        if let Some(outcome) = execute::run_text(&mut self.state, text, reply).await? {
            return self.state.finish(StatementKind::Select, outcome, false, reply);
        }
        let mode = self.state.lex_mode();
        let is_long = text.len() > LONG_BYTES;
        let sources = run_blocking_if_long(is_long, || split(text, many, mode))?;
        if sources.is_empty() {
            if text.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';') {
                return Err(Error::new(ErrorCode::EmptyQuery, messages::EMPTY_QUERY));
            }
            // Clients that load dumps send comments alone; they count as a statement without
            // effect.
            self.state.warnings.clear();
            return self.state.finish(StatementKind::Other, Outcome::default(), false, reply);
        }
        let sources = sources.into_iter().map(|source| self.ended_with_session(source));
        let parts = facets::spread(&self.state, sources)?;
        let (count, mut facets, mut told) = (parts.len(), 0, None);
        for (index, part) in parts.into_iter().enumerate() {
            if facets == 0 {
                self.state.moment = (part.facets > 0).then(StatementSnapshot::new);
                facets = part.facets;
                if index > 0 {
                    self.begin();
                }
            } else {
                // SHOW META describes the SELECT, not its facets.
                told = told.or_else(|| Some(self.state.meta.clone()));
                facets -= 1;
            }
            part.source.refuse_parameters()?;
            let statement = Statement { source: part.source, parameters: &[] };
            let more = index + 1 < count;
            self.run_one(&statement, part.facet, more, ErasedReply(reply)).await?;
            if facets == 0
                && let Some(told) = told.take()
            {
                self.state.meta = told;
            }
            if self.is_released() {
                break;
            }
        }
        Ok(())
    }

    /// Boxed like [`Session::run_one`].
    fn prepare_text<'a>(&'a mut self, text: &'a [u8]) -> BoxFuture<'a, Result<Prepared>> {
        Box::pin(self.read_to_prepare(text))
    }

    async fn read_to_prepare(&mut self, text: &[u8]) -> Result<Prepared> {
        let mode = self.state.lex_mode();
        let is_long = text.len() > LONG_BYTES;
        let mut sources = run_blocking_if_long(is_long, || split(text, false, mode))?;
        let source = sources
            .pop()
            .ok_or_else(|| Error::new(ErrorCode::EmptyQuery, messages::EMPTY_QUERY))?;
        prepared::check_preparable(&source)?;
        if facets::faceted_select(&source)?.is_some() {
            return Err(Error::unsupported("FACET in a prepared statement"));
        }
        let source = self.ended_with_session(source);
        let statement = Statement { source: Arc::clone(&source), parameters: &[] };
        let shape = execute::prepare(&mut self.state, &statement)?;
        let columns = prepared::described(&mut self.state, &source).await?;
        Ok(Prepared { parameters: source.parameters, columns, source, shape })
    }

    async fn run_prepared<R: Reply>(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
        reply: &mut R,
    ) -> Result<()> {
        self.begin();
        if parameters.len() != prepared.parameters {
            return Err(Error::wrong_parameters());
        }
        let state = &mut self.state;
        if prepared.source.kind == StatementKind::Select {
            state.begin_reading(StatementKind::Select).await?;
        }
        reply.charset(state.variables.character_set_results);
        if let Some(outcome) =
            execute::run_prepared(state, &prepared.shape, &prepared.source, parameters, reply)
                .await?
        {
            return state.finish(StatementKind::Select, outcome, false, reply);
        }
        let source = Arc::clone(&prepared.source);
        let statement = Statement { source, parameters };
        self.run_one(&statement, None, false, ErasedReply(reply)).await
    }

    /// The statement with the session's interrupt flag.
    fn ended_with_session(&self, source: Source) -> Arc<Source> {
        Arc::new(Source { interrupted: Arc::clone(&self.state.interrupted), ..source })
    }

    /// A client's text as UTF-8.
    pub(crate) fn utf8<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let charset = self.client_charset();
        if charset.is_utf8() {
            return Cow::Borrowed(text);
        }
        match charset.decode(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }

    /// Called when a statement begins.
    fn begin(&mut self) {
        self.state.forget_agents();
        self.state.is_released = false;
        self.state.last_insert_id.begin();
        let fixed = self.state.variables.timestamp_micros;
        self.state.clock = fixed.map_or_else(Clock::now, |micros| Clock { micros });
    }

    /// Runs a statement that no shape answers, or a FACET of it. Boxed, so that statements with shapes do not carry
    /// its large state; and of one type, so that other crates do not compile it again.
    fn run_one<'a>(
        &'a mut self,
        statement: &'a Statement<'a>,
        facet: Option<Query>,
        more: bool,
        mut reply: ErasedReply<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match facet {
                None => self.state.run(statement, more, &mut reply).await,
                Some(facet) => self.state.run_facet(statement, facet, more, &mut reply).await,
            }
        })
    }

    /// Records an error for SHOW WARNINGS.
    fn end<T>(&mut self, result: Result<T>) -> Result<T> {
        let _unread = self.state.transaction.take_file();
        self.state.forget_agents();
        self.state.moment = None;
        if let Err(error) = &result {
            self.state.warnings.clear();
            self.state.warnings.push_error(error);
            self.state.row_count = -1;
        }
        result
    }
}

/// A text without the trailing zero bytes that some clients send.
fn without_end(text: &[u8]) -> &[u8] {
    let zeros = text.iter().rev().take_while(|byte| **byte == 0).count();
    text.get(..text.len() - zeros).unwrap_or_default()
}

impl SessionState {
    /// Runs a statement and ends the reply.
    pub(crate) async fn run<R: Reply>(
        &mut self,
        statement: &Statement<'_>,
        more: bool,
        reply: &mut R,
    ) -> Result<()> {
        let kind = statement.kind();
        reply.charset(self.variables.character_set_results);
        if !diagnostics::are_kept_by(statement) {
            self.warnings.clear();
        }
        self.report_lost_again();
        self.warn_of_bytes(statement);
        self.begin_reading(kind).await?;
        let outcome = self.dispatch(kind, statement, reply).await?;
        self.finish(kind, outcome, more, reply)
    }

    /// Runs a FACET of a statement and ends the reply.
    async fn run_facet<R: Reply>(
        &mut self,
        statement: &Statement<'_>,
        facet: Query,
        more: bool,
        reply: &mut R,
    ) -> Result<()> {
        self.warnings.clear();
        self.report_lost_again();
        self.begin_reading(StatementKind::Select).await?;
        let outcome = execute::run_query(self, facet, &statement.source, reply).await?;
        self.finish(StatementKind::Select, outcome, more, reply)
    }

    /// Warns of each text that is not valid in its character set, UTF-8.
    fn warn_of_bytes(&self, statement: &Statement<'_>) {
        /// The most bytes of a text shown in a warning.
        const SHOWN: usize = 3;
        let source = &statement.source;
        if std::str::from_utf8(&source.text).is_ok() {
            return;
        }
        for (at, token) in source.tokens.iter().enumerate() {
            let is_binary = at > 0 && source.is_word(at - 1, "_BINARY");
            if token.kind != TokenKind::Text || is_binary {
                continue;
            }
            let plain = unquoted(source.bytes(token), source.mode);
            let Err(error) = std::str::from_utf8(&plain) else { continue };
            let wrong = plain.get(error.valid_up_to()..).unwrap_or_default();
            let shown = wrong.iter().take(SHOWN).map(|byte| format!("{byte:02X}"));
            let shown: String = shown.collect();
            let message = messages::invalid_character_string("utf8mb4", shown);
            self.warn(ErrorCode::InvalidCharacters, message);
        }
    }

    async fn dispatch<R: Reply>(
        &mut self,
        kind: StatementKind,
        statement: &Statement<'_>,
        reply: &mut R,
    ) -> Result<Outcome> {
        match kind {
            StatementKind::Select => {
                let narrowed = write::protect(self, statement).await?;
                execute::run(self, statement, narrowed, reply).await
            }
            StatementKind::Do => execute::run_do(self, statement).await,
            StatementKind::Explain => write::explain(self, statement, reply).await,
            StatementKind::Rows | StatementKind::Definition | StatementKind::Transaction => {
                write::run(self, statement).await
            }
            StatementKind::Set if statement.source.is_word(1, "STATEMENT") => {
                set::run_for(self, statement, reply).await
            }
            StatementKind::Set => set::run(self, statement).await,
            StatementKind::Use => self.run_use(statement),
            StatementKind::Show if statement.source.is_word(1, "META") => {
                self.count_found().await?;
                show::show_meta(self, &statement.source, reply)
            }
            StatementKind::Show => match diagnostics::run(self, statement, reply).await? {
                Some(outcome) => Ok(outcome),
                None => self.show(statement, reply).await,
            },
            StatementKind::Administration if statement.source.is_word(0, "KILL") => {
                kill::run(self, statement).await
            }
            StatementKind::Administration => self.show(statement, reply).await,
            StatementKind::Prepared => Box::pin(prepared::run(self, statement, reply)).await,
            StatementKind::Other if statement.source.is_word(0, "CALL") => {
                call::run(self, statement, reply).await
            }
            StatementKind::Other => Err(self.other(statement)),
        }
    }

    /// Counts the rows that the last search found, if they were not counted.
    async fn count_found(&mut self) -> Result<()> {
        self.ask_agents_again();
        let Some(meta) = &mut self.meta else { return Ok(()) };
        if let Some(selection) = meta.uncounted.take() {
            meta.statement = None;
            let asked = meta.asked;
            self.ask_agents(asked);
            let reader = self.reading();
            let counted = run_blocking(|| reader.count(&selection));
            let Some(meta) = &mut self.meta else { return Ok(()) };
            match counted {
                Ok(counted) => (meta.total_found, meta.is_counted) = (counted.count, true),
                Err(error @ (EngineError::Ended(_) | EngineError::RemoteServer(_))) => {
                    meta.uncounted = Some(selection);
                    return Err(from_engine(&error));
                }
                Err(_) => {}
            }
            return Ok(());
        }
        let Some((source, parameters)) = meta.statement.clone() else { return Ok(()) };
        let statement = Statement { source, parameters: &parameters };
        // Rows that have been deleted since do not count; even the table may be gone.
        let counted = Box::pin(execute::counted_rows(self, &statement)).await;
        self.check_interrupted()?;
        match (counted, &mut self.meta) {
            (Ok(Some(count)), Some(meta)) => {
                (meta.total_found, meta.is_counted, meta.statement) = (count, true, None);
                Ok(())
            }
            (Err(error), _)
                if matches!(error.code, ErrorCode::QueryTimeout | ErrorCode::ForeignQuery) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    async fn show<R: Reply>(
        &mut self,
        statement: &Statement<'_>,
        reply: &mut R,
    ) -> Result<Outcome> {
        if statement.kind() == StatementKind::Show {
            execute::describe_shown(self, &statement.source).await?;
        }
        match show::run(self, statement, reply).await? {
            show::ShowAnswer::Sent(outcome) => Ok(outcome),
            show::ShowAnswer::Select(query) => {
                execute::run_query(self, *query, &statement.source, reply).await
            }
        }
    }

    /// Updates FOUND_ROWS, ROW_COUNT and the like, and ends the reply.
    fn finish<R: Reply>(
        &mut self,
        kind: StatementKind,
        mut outcome: Outcome,
        more: bool,
        reply: &mut R,
    ) -> Result<()> {
        if kind == StatementKind::Prepared {
            // The executed statement has ended the reply.
            return Ok(());
        }
        // SELECT … INTO reports an affected row instead of returning rows.
        let has_rows =
            matches!(kind, StatementKind::Select | StatementKind::Show | StatementKind::Explain)
                && outcome.affected_rows == 0;
        self.row_count = match has_rows {
            true => -1,
            false => i64::try_from(outcome.affected_rows).unwrap_or(i64::MAX),
        };
        outcome.warnings = self.warnings.count();
        reply.done(&outcome, more)
    }

    /// MySQL's error for an unknown statement: a syntax error at the first word.
    fn other(&self, statement: &Statement<'_>) -> Error {
        const KNOWN: [&str; 11] = [
            "HANDLER",
            "XA",
            "INSTALL",
            "UNINSTALL",
            "CLONE",
            "RESTART",
            "BINLOG",
            "CACHE",
            "GET",
            "SIGNAL",
            "RESIGNAL",
        ];
        let known = |word: &&&str| statement.source.is_word(0, word);
        match KNOWN.iter().find(known) {
            Some(word) => Error::unsupported(word),
            None => statement.source.syntax_error(0),
        }
    }

    fn run_use(&mut self, statement: &Statement<'_>) -> Result<Outcome> {
        let source = &statement.source;
        let name = source.plain(1).ok_or_else(|| source.syntax_error(1))?;
        if source.tokens.len() > 2 {
            return Err(source.syntax_error(2));
        }
        self.use_database(&name)?;
        Ok(Outcome::default())
    }
}
