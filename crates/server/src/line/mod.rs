//! The line protocol: connections are accepted (`listener`), read and written (`connection`), and
//! each request becomes a reply here, in the order of its checks; what a command does stands in a
//! file of its own.

mod admin;
mod connection;
mod dump;
mod listener;
mod local;
mod query;
mod replication;
mod rights;
mod variables;
mod write;

use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::Database;
use remora_protocol::line::{
    Command, LineError, ParseLimits, WriteCommand, code, parse, parse_write,
    reply::{end_reply, write_error},
};
use remora_source::mysql::TableState;
use remora_sql::{Access, Identity};

pub(crate) use listener::accept;
pub use local::LocalSession;
pub(crate) use query::{Query, shown_columns};
pub(crate) use write::parse_key;

use crate::{
    accounts::Demand,
    counters::{CommandKind, Denial},
    settings::{Dialect, Settings},
    shared::{Shared, half_loaded},
};

/// So much of a request that met a fault is logged.
const SHOWN_BYTES: usize = 200;

/// What an answer is: a body written into the buffer, or an error.
type Answer = Result<(), LineError>;

/// One client's state and its way to the shared state.
pub(crate) struct Session {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
    /// Who the client has proved to be.
    identity: Option<Identity>,
    /// How long the answer to a login is to be kept back.
    hold: Duration,
    debug: bool,
    /// Whether replies name the applied position.
    position: bool,
}

impl Session {
    /// A session of a client at `address`; local sockets have none.
    pub(crate) fn new(shared: Arc<Shared>, address: Option<IpAddr>) -> Self {
        Self {
            shared,
            address,
            identity: None,
            hold: Duration::ZERO,
            debug: false,
            position: false,
        }
    }

    /// The same of a client who has proved who they are.
    pub(crate) fn acting_for(self, identity: Option<Identity>) -> Self {
        Self { identity, ..self }
    }

    /// A session of the server's owner: nothing asks for a token.
    fn of_owner(shared: Arc<Shared>) -> Self {
        Self::new(shared, None).acting_for(Some(Identity::default()))
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The database.
    pub(crate) fn database(&self) -> &Database {
        &self.shared.database
    }

    /// Counts a command that was understood.
    pub(crate) fn count_command(&self, kind: CommandKind) {
        self.shared.counters.command(kind);
    }

    /// Appends the whole reply to one request. A request that breaks the server's own code is
    /// answered with an error too: it must not take other clients' sessions with it.
    pub(crate) fn answer(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let answer = catch_unwind(AssertUnwindSafe(|| self.try_answer(frame, out)));
        let error = match answer {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => {
                let shown = frame.get(..SHOWN_BYTES).unwrap_or(frame).escape_ascii();
                tracing::error!("a request met a fault of the server: {shown}");
                Some(LineError::new(
                    code::INTERNAL,
                    "Internal error: the request met a fault of the server",
                ))
            }
        };
        if let Some(error) = error {
            out.truncate(start);
            write_error(out, &error);
        }
        end_reply(out);
    }

    fn try_answer(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Answer {
        let settings = self.shared.settings.load_full();
        self.shared.counters.request();
        self.take_token(&settings)?;
        self.require_login(frame, &settings)?;
        if let Some(command) = self.parse_write(frame, &settings)? {
            self.require_loaded()?;
            return self.write(&command, out);
        }
        let command = parse(frame, &parse_limits(&settings)).inspect_err(|error| {
            self.shared.counters.command(CommandKind::Unknown);
            if error.code == code::TOKEN {
                self.shared.counters.normalization_failure();
            }
        })?;
        self.shared.counters.command(kind_of(&command));
        if command.is_administrative() {
            self.require_authentication(&settings)?;
        }
        if command.table().is_some() {
            self.require_loaded()?;
        }
        self.require_right(&command)?;
        self.run(command, &settings, out)
    }

    fn take_token(&self, settings: &Settings) -> Answer {
        let limits = &settings.rate_limiting;
        let admitted = match self.address {
            Some(address) if limits.enable => {
                self.shared.limiter.admit(address, limits, Instant::now())
            }
            _ => true,
        };
        if !admitted {
            self.shared.counters.deny(Denial::Rate, false);
            return Err(LineError::rate_limited());
        }
        Ok(())
    }

    fn require_authentication(&self, settings: &Settings) -> Answer {
        let demand = Demand::of(settings);
        if self.identity.is_some() || demand == Demand::Nothing {
            return Ok(());
        }
        Err(LineError::auth_required())
    }

    /// Refuses everything but AUTH before a login, where one is asked for.
    fn require_login(&self, frame: &[u8], settings: &Settings) -> Answer {
        let demand = Demand::of(settings);
        if self.identity.is_some() || !demand.is_for_all() {
            return Ok(());
        }
        let verb = frame.trim_ascii_start().split(u8::is_ascii_whitespace).next();
        if verb.is_some_and(|verb| verb.eq_ignore_ascii_case(b"AUTH")) {
            return Ok(());
        }
        Err(LineError::login_required(demand.form()))
    }

    /// How long the last answer is to be kept back: that of a login, where many failed.
    pub(crate) fn take_hold(&mut self) -> Duration {
        std::mem::take(&mut self.hold)
    }

    /// Refuses while a dump is being loaded or has been by halves.
    pub(crate) fn require_loaded(&self) -> Answer {
        if self.shared.dump.is_loading() {
            return Err(LineError::new(
                code::LOADING,
                "Server is loading a dump, please try again later",
            ));
        }
        if self.shared.dump.is_half_loaded() {
            return Err(half_loaded());
        }
        Ok(())
    }

    fn parse_write<'f>(
        &self,
        frame: &'f [u8],
        settings: &Settings,
    ) -> Result<Option<WriteCommand<'f>>, LineError> {
        if settings.dialect == Dialect::MygramDb {
            return Ok(None);
        }
        let Some(command) = parse_write(frame) else { return Ok(None) };
        self.shared.counters.command(CommandKind::Other);
        self.require_authentication(settings)?;
        command.map(Some)
    }

    fn run(&mut self, command: Command, settings: &Settings, out: &mut Vec<u8>) -> Answer {
        match command {
            Command::Search(search) => self.search(*search, settings, out),
            Command::Count(selection) => self.count(selection, settings, out),
            Command::Get(get) => self.get(&get, settings, out),
            Command::Facet(request) => self.facet(request, settings, out),
            Command::Info => self.info(out),
            Command::Auth(auth) => self.authenticate(&auth, settings, out),
            Command::Debug(on) => self.set_debug(on, out),
            Command::Dump(command) => self.dump(&command, settings, out),
            Command::Replication(command) => self.replication(command, out),
            Command::Sync(command) => self.sync(&command, out),
            Command::Wait(wait) => self.wait(&wait, out),
            Command::Position(on) => self.set_position(on, out),
            Command::Optimize(table) => self.optimize(table.as_deref(), out),
            Command::Cache(command) => self.cache(&command, out),
            Command::Config(command) => self.config(&command, settings, out),
            Command::Set(assignments) => variables::set(&self.shared, &assignments, out),
            Command::ShowVariables(like) => variables::show(settings, like.as_deref(), out),
        }
    }

    /// Why a table is not there: it comes, or nobody knows it.
    fn absent(&self, name: &str) -> LineError {
        match self.shared.sources.source_of(name) {
            Some((
                _,
                table,
                TableState::Copying { .. }
                | TableState::CatchingUp
                | TableState::Paused { copying: true, .. },
            )) => LineError::synchronizing(table),
            Some((_, table, TableState::Refused(why))) => {
                LineError::table_not_found(format_args!("{name} ('{table}' is refused: {why})"))
            }
            _ => LineError::table_not_found(name),
        }
    }

    /// The full name of a table that was given by its bare one, if that is unique, and if so much may
    /// be done with it.
    pub(crate) fn resolve(&self, name: &str, access: Access) -> Result<String, LineError> {
        let found = self.find_name(name, access)?;
        match self.may(&found, access) {
            true => Ok(found),
            false => Err(self.denied(access, name)),
        }
    }

    /// A table that may not be read is as one that is not there, and one that is not there as one that
    /// may not be read.
    fn find_name(&self, name: &str, access: Access) -> Result<String, LineError> {
        let mut tables = self.shared.database.tables();
        if tables.iter().any(|table| table == name) {
            return Ok(name.to_owned());
        }
        tables.retain(|table| self.may(table, Access::Read));
        let databases = tables.iter().filter_map(|table| Some(table.split_once('.')?.0));
        let mut databases: Vec<&str> = databases.collect();
        databases.dedup();
        let bare = |table: &&String| table.split_once('.').is_some_and(|(_, bare)| bare == name);
        match tables.iter().find(bare) {
            Some(_) if databases.len() > 1 => Err(LineError::bare_table_name(name)),
            Some(table) => Ok(table.clone()),
            None if self.may(name, access) => Err(self.absent(name)),
            None => Err(self.denied(access, name)),
        }
    }
}

/// The limits of requests, on every wire.
pub(crate) fn parse_limits(settings: &Settings) -> ParseLimits {
    let limits = match settings.dialect {
        Dialect::Remora => ParseLimits::default(),
        Dialect::MygramDb => ParseLimits::mygramdb(),
    };
    ParseLimits {
        default_limit: settings.limits.default_limit,
        max_limit: settings.limits.max_limit,
        max_query_bytes: settings.limits.max_query_length,
        ..limits
    }
}

fn kind_of(command: &Command) -> CommandKind {
    use remora_protocol::line::{Dump, Replication};
    match command {
        Command::Search(_) => CommandKind::Search,
        Command::Count(_) => CommandKind::Count,
        Command::Get(_) => CommandKind::Get,
        Command::Facet(_) => CommandKind::Facet,
        Command::Info => CommandKind::Info,
        Command::Dump(Dump::Save(_)) => CommandKind::Save,
        Command::Dump(Dump::Load(_)) => CommandKind::Load,
        Command::Replication(Replication::Status) => CommandKind::ReplicationStatus,
        Command::Replication(Replication::Stop) => CommandKind::ReplicationStop,
        Command::Replication(Replication::Start) => CommandKind::ReplicationStart,
        Command::Config(_) => CommandKind::Config,
        _ => CommandKind::Other,
    }
}

/// Runs what may read files or many rows. Other sessions of the same thread go on elsewhere.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
