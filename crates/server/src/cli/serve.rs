//! `remora serve`: a server until SIGTERM.

use std::{path::Path, process::ExitCode, time::Duration};

use remora_engine::Database;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use super::ServeOptions;
use crate::{
    Error, LogHandle, Result, Server,
    open::open_database,
    settings::{Dialect, Settings},
};

/// Serves until SIGTERM or SIGINT.
pub fn serve(options: &ServeOptions) -> Result<ExitCode> {
    let settings = read_settings(options)?;
    if options.test {
        println!("The settings are fine.");
        return Ok(ExitCode::SUCCESS);
    }
    let log = LogHandle::install(&settings.logging)?;
    let runtime = runtime(settings.limits.worker_threads)?;
    let database = open_database(&settings)?;
    let result = runtime.block_on(run(options, settings, database, log));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map(|()| ExitCode::SUCCESS)
}

/// The runtime that answers: one thread per processor unless told otherwise.
pub(super) fn runtime(worker_threads: usize) -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if worker_threads > 0 {
        builder.worker_threads(worker_threads);
    }
    builder
        .enable_all()
        .build()
        .map_err(|source| Error::Io { what: "cannot start threads".to_owned(), source })
}

fn read_settings(options: &ServeOptions) -> Result<Settings> {
    let mut settings = match &options.config {
        Some(path) => Settings::read(path)?,
        None => Settings::without_file()?,
    };
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
    settings.finish()
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
    let server = Server::start(settings, database.clone(), Some(log)).await?;
    announce(&server, &database, &data, socket.as_deref());
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
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
}

/// Says what of the settings is accepted and has no effect yet.
fn announce_settings(settings: &Settings) {
    if let Some(mysql) = &settings.mysql {
        tracing::warn!(
            "the settings name the MySQL server {}:{}; this version does not follow it, load \
             tables with 'remora import'",
            mysql.host,
            mysql.port
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
