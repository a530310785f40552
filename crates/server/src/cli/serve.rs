//! `remora serve`: serves until SIGTERM.

use std::{path::Path, process::ExitCode, time::Duration};

use remora_engine::Database;
use remora_source::mysql::settings::MysqlSettings;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use super::{ServeOptions, copy_progress};
use crate::{
    Error, LogHandle, Result, Server,
    accounts::LoginPolicy,
    open::open_database,
    settings::{Dialect, Settings, SphinxSettings},
    sources,
};

/// More threads would not help; a MygramDB file may ask for 16,384.
const MAX_WORKER_THREADS: usize = 1024;
/// A stack for the deepest SQL statement that is accepted.
const STACK_BYTES: usize = 16 << 20;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// [`Error::Settings`] if a setting is wrong, [`Error::Io`] if the system refuses an address, a file, a thread or a
/// signal, [`Error::Engine`] if the data directory cannot be opened or the last checkpoint fails, [`Error::Source`] if
/// a source cannot be followed.
pub fn serve(options: &ServeOptions) -> Result<ExitCode> {
    let settings = read_settings(options)?;
    if options.test {
        println!("The settings are fine.");
        return Ok(ExitCode::SUCCESS);
    }
    let log = LogHandle::install(&settings.logging)?;
    let runtime = runtime(settings.limits.worker_threads)?;
    let mut own = settings.clone();
    own.tables.retain(|schema| !settings.is_followed(&schema.name));
    let database = open_database(&own)?;
    let result = runtime.block_on(run(options, settings, database, log));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map(|()| ExitCode::SUCCESS)
}

/// The runtime of sessions: one thread per processor unless configured.
pub(super) fn runtime(worker_threads: usize) -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if worker_threads > 0 {
        builder.worker_threads(worker_threads.min(MAX_WORKER_THREADS));
    }
    builder
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(|source| Error::Io { what: "cannot start threads".to_owned(), source })
}

fn read_settings(options: &ServeOptions) -> Result<Settings> {
    let mut settings = match &options.config {
        Some(path) => Settings::read(path)?,
        None => Settings::without_file()?,
    };
    let is_told = options.data.is_some() || settings.data != Settings::default().data;
    let no_data = settings.sphinx_conf.as_ref().and_then(|conf| conf.no_data.as_ref());
    if let Some(why) = no_data.filter(|_| !is_told) {
        return Err(Error::Settings(why.clone()));
    }
    let default_dumps = settings.dump.dir == settings.data.join("dumps");
    if let Some(data) = &options.data {
        settings.data.clone_from(data);
        if default_dumps {
            settings.dump.dir.clear();
        }
    }
    if let Some(line) = &options.line {
        settings.listen.line.clone_from(line);
    }
    if let Some(http) = &options.http {
        settings.listen.http.clone_from(http);
    }
    if let Some(sql) = &options.sql {
        settings.listen.sql.clone_from(sql);
    }
    if let Some(url) = &options.mysql {
        settings.sources = vec![source(url, options)?];
    }
    let settings = settings.finish()?;
    settings.refuse_words_of_unfollowed()?;
    Ok(settings)
}

/// The source given on the command line. The password may come from the environment.
fn source(url: &str, options: &ServeOptions) -> Result<MysqlSettings> {
    let mut source = MysqlSettings::from_url(url)?;
    if !options.tables.is_empty() {
        source.tables.clone_from(&options.tables);
    }
    if source.password.is_empty() {
        source.password = std::env::var("REMORA_MYSQL_PASSWORD").unwrap_or_default();
    }
    Ok(source)
}

async fn run(
    options: &ServeOptions,
    settings: Settings,
    database: Database,
    log: LogHandle,
) -> Result<()> {
    let stopping = |kind| {
        signal(kind).map_err(|source| Error::Io { what: "cannot take signals".to_owned(), source })
    };
    let mut terminate = stopping(SignalKind::terminate())?;
    let mut interrupt = stopping(SignalKind::interrupt())?;
    let mut hangup = stopping(SignalKind::hangup())?;
    announce_settings(&settings);
    let data = settings.data.clone();
    let socket = settings.listen.line_socket.clone();
    let (sources, sphinx_conf) = (settings.sources.clone(), settings.sphinx_conf.clone());
    let server = Server::start(settings, database.clone(), Some(log)).await?;
    match tokio::task::block_in_place(|| sources::follow(&database, &sources)) {
        Ok(followed) => server.follow(followed),
        Err(error) => {
            server.stop().await?;
            return Err(error);
        }
    }
    announce(&server, &database, &data, socket.as_deref());
    announce_indexes(&database, sphinx_conf.as_ref());
    let _progress = copy_progress::show(&server);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            () = server.stop_asked() => break,
            _ = hangup.recv() => reload(&server, options),
        }
    }
    tracing::info!("stopping");
    server.stop().await?;
    tracing::info!("stopped");
    Ok(())
}

fn announce(server: &Server, database: &Database, data: &Path, socket: Option<&Path>) {
    let tables = database.tables();
    let named = if tables.is_empty() { "no table yet".to_owned() } else { tables.join(", ") };
    println!("remora {} serves {} ({named})", env!("CARGO_PKG_VERSION"), data.display());
    if let Some(address) = server.line_address() {
        println!("line protocol: {address}");
        tracing::info!(%address, "listening for the line protocol");
    }
    if let Some(path) = socket {
        println!("line protocol: {}", path.display());
        tracing::info!(socket = %path.display(), "listening for the line protocol");
    }
    for (name, status) in server.shared().sources.statuses() {
        println!("following {name}: {}", status.source);
    }
    if let Some(address) = server.sql_address() {
        println!("MySQL protocol: {address}");
        tracing::info!(%address, "listening for the MySQL protocol");
    }
    if let Some(address) = server.sphinx_sql_address() {
        println!("MySQL protocol in Sphinx's dialect: {address}");
        tracing::info!(%address, "listening for the MySQL protocol in Sphinx's dialect");
    }
    if let Some(address) = server.sphinx_address() {
        println!("SphinxAPI: {address}");
        tracing::info!(%address, "listening for SphinxAPI");
    }
    if let Some(address) = server.tiedot_address() {
        println!("tiedot's HTTP API: http://{address}");
        tracing::info!(%address, "listening for the HTTP API of tiedot");
    }
    if let Some(address) = server.http_address() {
        println!("HTTP: http://{address}");
        tracing::info!(%address, "listening for HTTP");
    }
}

/// Reports what of a sphinx.conf differs here, and which of its indexes are not loaded.
fn announce_indexes(database: &Database, conf: Option<&SphinxSettings>) {
    let Some(conf) = conf else { return };
    for note in &conf.notes {
        tracing::warn!("{note}");
    }
    for index in conf.plain.iter().filter(|index| database.schema(index).is_err()) {
        tracing::warn!(
            "index '{index}' is not loaded yet: stop, and run remora import -c with the same file"
        );
    }
}

/// Reports settings that are accepted but have no effect.
fn announce_settings(settings: &Settings) {
    if !settings.unused.is_empty() {
        tracing::warn!("these settings have no effect here: {}", settings.unused.join(", "));
    }
    if settings.dialect == Dialect::Remora && LoginPolicy::of(settings) == LoginPolicy::Nothing {
        tracing::warn!(
            "neither [[users]] nor auth.admin_token are set up: whoever can connect from this machine \
             may read and write every table, in SQL, by the line protocol and over HTTP"
        );
    }
    if settings.dialect == Dialect::MygramDb
        && settings.allow_cidrs.as_ref().is_some_and(Vec::is_empty)
    {
        tracing::warn!("network.allow_cidrs is empty, which turns every TCP client away");
    }
}

fn reload(server: &Server, options: &ServeOptions) {
    match read_settings(options) {
        Ok(settings) => {
            let waiting = server.reload(settings);
            tracing::info!("settings read again");
            if !waiting.is_empty() {
                tracing::warn!("these settings changed and need a restart: {}", waiting.join(", "));
            }
        }
        Err(error) => tracing::error!("the settings stay as they were: {error}"),
    }
}
