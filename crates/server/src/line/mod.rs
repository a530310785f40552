//! The line protocol: `listener` accepts connections, `connection` reads and writes them. Here each request is checked
//! and answered; the commands have files of their own.

mod admin;
mod connection;
mod dump;
mod export;
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

use remora_protocol::line::{
    Command, LineError, WriteCommand, code, parse, parse_write,
    reply::{end_reply, write_error},
};
use remora_sql::Identity;

use export::WaitingExport;
pub(crate) use listener::accept;
pub use local::LocalSession;

use crate::{
    accounts::LoginPolicy,
    counters::{CommandKind, Denial},
    requests::{Answer, Caller, parse_limits},
    settings::{Dialect, Settings},
    shared::ServerState,
};

/// The most bytes of a request in the log after an internal error.
const SHOWN_BYTES: usize = 200;

/// A client's state, with access to the shared state.
pub(crate) struct Session {
    caller: Caller,
    address: Option<IpAddr>,
    /// How long the answer to a login is delayed.
    delay: Duration,
    debug: bool,
    /// Whether replies contain the applied position.
    position: bool,
    /// The export that follows the last answer.
    export: Option<Box<WaitingExport>>,
}

impl Session {
    /// A session of a client at `address`; local sockets have none.
    fn new(shared: Arc<ServerState>, address: Option<IpAddr>) -> Self {
        Self::of(Caller::new(shared, None), address)
    }

    /// A session of the server's owner, without login.
    fn of_owner(shared: Arc<ServerState>) -> Self {
        Self::of(Caller::new(shared, Some(Identity::default())), None)
    }

    fn of(caller: Caller, address: Option<IpAddr>) -> Self {
        let delay = Duration::ZERO;
        Self { caller, address, delay, debug: false, position: false, export: None }
    }

    /// Appends the reply to one request. A panic in the server's code becomes an error reply, so that other sessions
    /// are not affected.
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
        let settings = self.caller.shared.settings.load_full();
        self.caller.shared.counters.request();
        self.take_token(&settings)?;
        self.require_login(frame, &settings)?;
        if let Some(command) = self.parse_write(frame, &settings)? {
            self.caller.require_loaded()?;
            return self.write(&command, out);
        }
        let command = parse(frame, &parse_limits(&settings)).inspect_err(|error| {
            self.caller.shared.counters.command(CommandKind::Unknown);
            if error.code == code::TOKEN {
                self.caller.shared.counters.normalization_failure();
            }
        })?;
        self.caller.shared.counters.command(kind_of(&command));
        if command.is_administrative() {
            self.require_authentication(&settings)?;
        }
        if command.table().is_some() {
            self.caller.require_loaded()?;
        }
        self.require_right(&command)?;
        self.run(command, &settings, out)
    }

    fn take_token(&self, settings: &Settings) -> Answer {
        let limits = &settings.rate_limiting;
        let admitted = match self.address {
            Some(address) if limits.enable => {
                self.caller.shared.limiter.admit(address, limits, Instant::now())
            }
            _ => true,
        };
        if !admitted {
            self.caller.shared.counters.deny(Denial::Rate, false);
            return Err(LineError::rate_limited());
        }
        Ok(())
    }

    fn require_authentication(&self, settings: &Settings) -> Answer {
        let login_policy = LoginPolicy::of(settings);
        if self.caller.identity.is_some() || login_policy == LoginPolicy::Nothing {
            return Ok(());
        }
        Err(LineError::auth_required())
    }

    /// Refuses everything except AUTH before a required login.
    fn require_login(&self, frame: &[u8], settings: &Settings) -> Answer {
        let login_policy = LoginPolicy::of(settings);
        if self.caller.identity.is_some() || !login_policy.is_required() {
            return Ok(());
        }
        let verb = frame.trim_ascii_start().split(u8::is_ascii_whitespace).next();
        if verb.is_some_and(|verb| verb.eq_ignore_ascii_case(b"AUTH")) {
            return Ok(());
        }
        Err(LineError::login_required(login_policy.auth_syntax()))
    }

    /// How long the last answer must be delayed: after a login with many failures.
    pub(crate) fn take_delay(&mut self) -> Duration {
        std::mem::take(&mut self.delay)
    }

    /// The export that the last answer began.
    fn take_export(&mut self) -> Option<Box<WaitingExport>> {
        self.export.take()
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
        self.caller.shared.counters.command(CommandKind::Other);
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
            Command::Optimize(table) => self.caller.optimize(table.as_deref(), out),
            Command::Cache(command) => self.cache(&command, out),
            Command::Config(command) => self.config(&command, settings, out),
            Command::Set(assignments) => variables::set(&self.caller.shared, &assignments, out),
            Command::ShowVariables(like) => variables::show(settings, like.as_deref(), out),
        }
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
