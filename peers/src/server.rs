//! A running server.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Child,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use mysql::{Conn, OptsBuilder, prelude::Queryable};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Kind, binaries, template};

/// The address on which every server listens.
pub const HOST: &str = "127.0.0.1";
/// A user on every server with the privileges that following it needs, and no others.
pub const FOLLOWER_USER: &str = "follower";
/// The password of [`FOLLOWER_USER`].
pub const FOLLOWER_PASSWORD: &str = "fins-and-scales";

/// The longest wait for a server to start or to stop.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often a start is tried if another process takes the port first.
const ATTEMPTS: usize = 5;

/// A running server. Dropping it ends the process, and removes the directory unless the caller
/// provided it.
pub struct Server {
    kind: Kind,
    options: Vec<String>,
    /// The directory of the socket, and of the data unless the caller provided a directory. Removed
    /// last.
    run: TempDir,
    /// The directory with `data` and `error.log`.
    directory: PathBuf,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts a new server with an empty data directory, a row-based binlog, full row images and
    /// GTIDs. `options` are arguments of its program and override these settings.
    ///
    /// # Errors
    /// The server's programs are missing, the system refuses a directory or a process, or the
    /// server ends at once, does not answer in time or has another version.
    pub fn start(kind: Kind, options: &[&str]) -> Result<Self> {
        let run = tempfile::Builder::new().prefix("remora-peer-").tempdir()?;
        let directory = run.path().to_owned();
        Self::start_with(kind, run, directory, options)
    }

    /// Starts a server over `directory/data`, which is created if it is missing and is not removed.
    ///
    /// # Errors
    /// The same as those of [`Server::start`].
    pub fn start_in(kind: Kind, directory: &Path, options: &[&str]) -> Result<Self> {
        let run = tempfile::Builder::new().prefix("remora-peer-").tempdir()?;
        Self::start_with(kind, run, directory.to_owned(), options)
    }

    fn start_with(kind: Kind, run: TempDir, directory: PathBuf, options: &[&str]) -> Result<Self> {
        kind.root()?;
        let data = directory.join("data");
        if !data.exists() {
            template::copy_to(kind, &data)?;
        }
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut server = Self { kind, options, run, directory, port: 0, process: None };
        for attempt in 1.. {
            server.port = free_port()?;
            match server.launch() {
                Ok(()) => break,
                Err(error) if attempt == ATTEMPTS || !server.port_was_taken() => return Err(error),
                Err(_) => {}
            }
        }
        server.check_version()?;
        Ok(server)
    }

    /// The kind of the server.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The port on [`HOST`], which stays the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run.path().join("socket")
    }

    /// The path of its data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The id of the process, while it runs.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// A URL with [`FOLLOWER_USER`] and, unless it is empty, a database.
    #[must_use]
    pub fn follower_url(&self, database: &str) -> String {
        format!("mysql://{FOLLOWER_USER}:{FOLLOWER_PASSWORD}@{HOST}:{}/{database}", self.port)
    }

    /// Opens a connection as root over the socket.
    ///
    /// # Errors
    /// The server does not run or refuses the connection.
    pub fn connect(&self) -> Result<Conn> {
        let options = OptsBuilder::new()
            .socket(Some(self.socket().to_string_lossy()))
            .user(Some("root"))
            .max_allowed_packet(Some(64 << 20));
        Ok(Conn::new(options)?)
    }

    /// Asks the server to stop and waits until it has stopped.
    ///
    /// # Errors
    /// The server did not stop in time and was killed, or the system does not say whether it has
    /// stopped.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        if kill_process(Pid::from_child(&process), Signal::TERM).is_ok() {
            let start = Instant::now();
            while start.elapsed() < PATIENCE {
                if process.try_wait()?.is_some() {
                    return Ok(());
                }
                sleep(Duration::from_millis(10));
            }
        }
        process.kill()?;
        process.wait()?;
        bail!("{} did not stop in {} s and was killed", self.kind.name(), PATIENCE.as_secs());
    }

    /// Kills the process at once, like a crash.
    ///
    /// # Errors
    /// The system does not let the process be killed.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Starts the server again on the same data directory and port, after stopping it if it runs.
    ///
    /// # Errors
    /// Those of [`Server::stop`] and [`Server::start`].
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        let start = Instant::now();
        loop {
            match self.launch() {
                Err(_) if self.port_was_taken() && start.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(100));
                }
                result => return result,
            }
        }
    }

    /// Starts the program and waits until the server answers.
    fn launch(&mut self) -> Result<()> {
        let log = self.error_log();
        let mut command = binaries::server(self.kind, &self.data(), &log)?;
        // Commits survive a killed process but not a power failure, which is enough for tests.
        command
            .args(["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"])
            .args(["--innodb-buffer-pool-size=64M", "--max-allowed-packet=64M"])
            .args(["--skip-name-resolve", "--server-id=1", "--log-bin=binlog"])
            .args(["--binlog-format=ROW", "--log-slave-updates", "--skip-slave-start"])
            .arg(format!("--bind-address={HOST}"))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.run.path().join("pid").display()))
            // A starting server clears the directory of temporary files, whoever owns them.
            .arg(format!("--tmpdir={}", self.run.path().display()));
        command.args(match self.kind {
            Kind::MariaDb1011 | Kind::MariaDb118 => {
                &["--gtid-strict-mode=1", "--innodb-log-file-size=16M"][..]
            }
            Kind::MySql97 => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
            Kind::MySql56 => &["--gtid-mode=ON", "--enforce-gtid-consistency"],
        });
        fs::write(&log, "")?;
        let mut process = command
            .args(&self.options)
            .spawn()
            .with_context(|| format!("cannot run {}", self.kind.name()))?;
        let start = Instant::now();
        while self.connect().is_err() {
            if let Some(status) = process.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.kind.name(), complaints(&log));
            }
            if start.elapsed() > PATIENCE {
                process.kill()?;
                process.wait()?;
                bail!("{} does not answer:\n{}", self.kind.name(), complaints(&log));
            }
            sleep(Duration::from_millis(10));
        }
        self.process = Some(process);
        Ok(())
    }

    fn error_log(&self) -> PathBuf {
        self.directory.join("error.log")
    }

    fn port_was_taken(&self) -> bool {
        fs::read_to_string(self.error_log())
            .is_ok_and(|log| log.contains("Bind on TCP/IP port") || log.contains("already in use"))
    }

    fn check_version(&self) -> Result<()> {
        let version: String = self.connect()?.query_first("SELECT version()")?.unwrap_or_default();
        if !version.starts_with(self.kind.version()) {
            bail!("{} is {version}, not {}x", self.kind.name(), self.kind.version());
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The data in a server's own directory is not needed any more, so it may be killed.
        let _ = if self.directory == self.run.path() { self.kill() } else { self.stop() };
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((HOST, 0))?.local_addr()?.port())
}

/// The errors in a log, or its end if it has none.
fn complaints(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<&str> = text.lines().filter(|line| line.contains("[ERROR]")).collect();
    if lines.is_empty() {
        lines = text.lines().collect();
    }
    lines.split_off(lines.len().saturating_sub(15)).join("\n")
}
