//! The commands of a connection.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use remora_engine::Value;
use remora_protocol::mysql::{
    Command, Results, RowFormat, SessionChange, WireError,
    handshake::{Capabilities, Login},
    put_end_of_rows, put_error, put_field_list, put_ok,
};
use remora_sql::{Identity, Outcome};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    channel::Channel,
    client::{Client, Flow, finish},
    logged::LoggedStatement,
    login::AuthenticatedLogin,
    processes::{ConnectionSlot, ListedConnection},
    reply::{DiscardReply, WireReply},
    service::SqlService,
    statements::Statements,
    watch::run_watched,
};
use crate::settings::{Settings, fits_pattern};

/// A logged-in connection: its session, its statements and its channel.
pub(super) struct ClientSession<S> {
    pub channel: Channel<S>,
    pub service: Arc<SqlService>,
    pub client: Client,
    pub(super) statements: Statements,
    pub(super) interrupter: Arc<AtomicBool>,
    /// A buffer for parameters.
    pub(super) values: Vec<Value>,
    pub(super) slot: ConnectionSlot,
    /// Whether a text may contain several statements.
    many: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ClientSession<S> {
    /// Begins after a successful login.
    pub(super) fn new(
        channel: Channel<S>,
        service: &Arc<SqlService>,
        slot: ConnectionSlot,
        admitted: &AuthenticatedLogin,
    ) -> Self {
        let capabilities = admitted.capabilities;
        let id = u64::from(slot.connection.id);
        let mut session = service.instance.session(id, admitted.identity.clone());
        session.set_encryption(channel.encryption());
        session.count_found_rows(capabilities.contains(Capabilities::CLIENT_FOUND_ROWS));
        // A client that sends several statements accepts several results.
        let many = Capabilities::CLIENT_MULTI_RESULTS | Capabilities::CLIENT_MULTI_STATEMENTS;
        session.take_many_results(capabilities.intersects(many));
        session.allow_release(true);
        Self {
            channel,
            interrupter: session.interrupter(),
            client: Client::new(session, capabilities, admitted.identity.rights.is_some()),
            statements: Statements::new(Arc::clone(&service.statements)),
            many: capabilities.contains(Capabilities::CLIENT_MULTI_STATEMENTS),
            slot,
            values: Vec::new(),
            service: Arc::clone(service),
        }
    }

    /// Registers the connection under its user; error 1203 if the user has too many.
    pub(super) fn identify(&self, identity: &Identity) -> Result<(), WireError> {
        let Identity { user, host, .. } = identity;
        self.slot.connection.identify(user, host, Arc::clone(&self.interrupter));
        let most = self.settings().sql.max_user_connections;
        if most > 0 && self.service.processes.of_user(user) > most {
            return Err(WireError::too_many_user_connections(user));
        }
        Ok(())
    }

    /// Sets up the session as the login requests: character set and database.
    pub(super) async fn apply_login(&mut self, login: &Login) -> Result<(), WireError> {
        let session = &mut self.client.session;
        if let Some((charset, collation)) = login.names() {
            let text = format!("SET NAMES {charset} COLLATE {collation}");
            // With an unknown character set the session keeps its default.
            let _ = session.query(text.as_bytes(), false, &mut DiscardReply).await;
            session.take_changes();
        }
        if !login.database.is_empty() {
            session.use_database(&login.database)?;
        }
        Ok(())
    }

    /// Resets the session for another user.
    pub(super) async fn change_user(
        &mut self,
        who: Identity,
        login: &Login,
    ) -> Result<(), WireError> {
        self.statements.clear();
        self.identify(&who)?;
        self.client.is_limited = who.rights.is_some();
        self.client.session.reset(Some(who));
        self.client.reset_tracking();
        self.many = self.client.capabilities.contains(Capabilities::CLIENT_MULTI_STATEMENTS);
        self.apply_login(login).await
    }

    /// The current settings.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.service.shared.settings.load_full()
    }

    /// How long to wait for the next command, or for the rest of one.
    pub(super) fn read_limit(&self, is_partial: bool) -> Duration {
        let settings = self.service.shared.settings.load();
        let sql = &settings.sql;
        match self.client.wait_timeout() {
            _ if is_partial => Duration::from_secs(sql.write_timeout_s),
            Some(limit) => limit,
            None => Duration::from_secs(sql.wait_timeout_s),
        }
    }

    /// Whether another connection killed this one.
    pub(super) fn is_killed(&self) -> bool {
        self.slot.connection.is_killed()
    }

    /// Whether the client ended it with its transaction.
    pub(super) fn is_released(&self) -> bool {
        self.client.session.is_released()
    }

    /// The connection as it is listed.
    pub(super) fn process(&self) -> Arc<ListedConnection> {
        Arc::clone(&self.slot.connection)
    }

    /// The memory of the connection in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.channel.held_bytes() + self.statements.kept_bytes()
    }

    /// Begins a command.
    pub(super) fn begin(&mut self, reply_sequence: u8) {
        self.channel.writer.set_sequence(reply_sequence);
        self.service.processes.count_command();
        self.interrupter.store(false, Relaxed);
    }

    /// Ends a command.
    pub(super) fn end(&mut self) {
        self.slot.connection.end();
    }

    /// Writes an OK packet.
    pub(super) fn put_ok(&mut self) {
        let changes = self.take_changes();
        let (flags, capabilities) = (self.client.flags(), self.client.capabilities);
        let outcome = Outcome::default();
        self.channel.writer.message(|out| put_ok(out, &outcome, flags, capabilities, &changes));
    }

    /// Writes an error.
    pub(super) fn put_error(&mut self, error: &WireError) {
        let charset = self.client.session.result_charset().map(|charset| charset.charset);
        self.channel.writer.message(|out| put_error(out, error, charset));
    }

    /// Answers a command. An error ends the connection.
    pub(super) async fn answer(&mut self, command: Command<'_>) -> io::Result<Flow> {
        match command {
            Command::Query(text) => return self.query(text).await,
            Command::Execute { id, cursor, parameters } => {
                return self.execute(id, cursor, parameters).await;
            }
            Command::Prepare(text) => self.prepare(text).await,
            Command::Fetch { id, rows } => self.fetch(id, rows).await?,
            Command::ProcessInfo => return self.query(b"SHOW PROCESSLIST").await,
            Command::FieldList { table, pattern } => self.field_list(table, pattern).await,
            Command::Quit => return Ok(Flow::Disconnect),
            Command::Malformed => {
                return Ok(Flow::DisconnectWithError(WireError::malformed_packet()));
            }
            Command::Close(id) => self.statements.close(id),
            Command::SendLongData { id, parameter, data } => self.add_long(id, parameter, data),
            Command::Statistics => {
                let line = self.statistics();
                self.channel.writer.message(|out| out.extend_from_slice(line.as_bytes()));
            }
            Command::MultiStatements(many) => {
                self.many = many;
                let (flags, capabilities) = (self.client.flags(), self.client.capabilities);
                let end = Outcome::default();
                let writer = &mut self.channel.writer;
                writer.message(|out| put_end_of_rows(out, &end, flags, capabilities, &[]));
            }
            other => self.acknowledge(other),
        }
        Ok(Flow::Continue)
    }

    /// Runs a command that is answered by OK or an error.
    fn acknowledge(&mut self, command: Command<'_>) {
        let done = match command {
            Command::Ping => Ok(()),
            Command::InitDb(name) => {
                let name = String::from_utf8_lossy(name);
                self.client.session.use_database(&name).map_err(WireError::from)
            }
            Command::ResetConnection => self.reset_connection(),
            Command::Reset(id) => self.reset_statement(id),
            Command::ProcessKill(id) => self.kill(u64::from(id)),
            _ => Err(WireError::unknown_command()),
        };
        match done {
            Ok(()) => self.put_ok(),
            Err(error) => self.put_error(&error),
        }
    }

    async fn query(&mut self, text: &[u8]) -> io::Result<Flow> {
        let logged = LoggedStatement::begin(&self.service, &self.client.session);
        let flow = self.run_query(text).await;
        if let Some(logged) = logged {
            let connection = u64::from(self.slot.connection.id);
            logged.end(&self.service, &self.client.session, connection, (text, false));
        }
        flow
    }

    async fn run_query(&mut self, text: &[u8]) -> io::Result<Flow> {
        self.slot.connection.begin("Query", text);
        let limit_ms = self.service.shared.settings.load().sql.max_execution_time_ms;
        let client = &mut self.client;
        let results =
            Results::new(&mut self.channel, client.capabilities, RowFormat::Text, client.flags());
        let mut reply = WireReply { results, interrupter: &self.interrupter, broken: None };
        let run = client.session.query(text, self.many, &mut reply);
        let shared = &self.service.shared;
        let process = &self.slot.connection;
        let ended = run_watched(run, process, &self.interrupter, limit_ms, shared).await;
        let (flow, _) = finish(client, &self.slot.connection, reply, ended)?;
        Ok(flow)
    }

    /// The columns of a table, as `SELECT *` returns them.
    async fn field_list(&mut self, table: &[u8], pattern: &[u8]) {
        let table = String::from_utf8_lossy(table).replace('`', "``");
        let text = format!("SELECT * FROM `{table}`");
        match self.client.session.prepare(text.as_bytes()).await {
            Err(error) => self.put_error(&error.into()),
            Ok(prepared) => {
                let pattern = String::from_utf8_lossy(pattern).to_lowercase();
                let pattern = pattern.trim_end_matches('\0');
                let mut columns = prepared.columns;
                columns.retain(|column| {
                    pattern.is_empty()
                        || fits_pattern(pattern.as_bytes(), column.name.to_lowercase().as_bytes())
                });
                let (flags, capabilities) = (self.client.flags(), self.client.capabilities);
                let charset = self.client.session.result_charset();
                let writer = &mut self.channel.writer;
                put_field_list(writer, &columns, flags, capabilities, charset);
            }
        }
    }

    fn statistics(&self) -> String {
        let (shared, processes) = (&self.service.shared, &self.service.processes);
        let seconds = shared.started.elapsed().as_secs();
        let commands = processes.commands();
        format!(
            "Uptime: {seconds}  Threads: {}  Questions: {commands}  Slow queries: 0  Opens: 0  \
             Flush tables: 0  Open tables: {}  Queries per second avg: {:.3}",
            processes.connected(),
            shared.database.tables().len(),
            commands as f64 / seconds.max(1) as f64,
        )
    }

    /// Resets the session except for its user and database.
    fn reset_connection(&mut self) -> Result<(), WireError> {
        self.statements.clear();
        let session = &mut self.client.session;
        let database = session.database().map(str::to_owned);
        session.reset(None);
        let kept = database.map_or(Ok(()), |name| session.use_database(&name));
        self.client.reset_tracking();
        kept.map_err(WireError::from)
    }

    fn kill(&self, id: u64) -> Result<(), WireError> {
        let process = self.service.processes.find(id);
        let process = process.ok_or_else(|| WireError::unknown_thread(id))?;
        if self.client.is_limited && process.user() != self.slot.connection.user() {
            return Err(WireError::not_owner(id));
        }
        process.kill(false);
        match process.id == self.slot.connection.id {
            true => Err(WireError::interrupted()),
            false => Ok(()),
        }
    }

    fn take_changes(&mut self) -> Vec<SessionChange> {
        self.client.take_changes(&self.slot.connection)
    }
}
