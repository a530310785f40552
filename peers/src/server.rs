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

/// The address every server listens on.
pub const HOST: &str = "127.0.0.1";
/// A user that every server has and that may do what following it needs, and no more.
pub const FOLLOWER_USER: &str = "follower";
/// The password of [`FOLLOWER_USER`].
pub const FOLLOWER_PASSWORD: &str = "fins-and-scales";

/// Longest wait for a server to start or to stop.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often a start is tried where another process was quicker to take the port.
const ATTEMPTS: usize = 5;

/// A server of one's own. Its process is ended when this is dropped, and its directory removed
/// unless it was given.
pub struct Server {
    kind: Kind,
    options: Vec<String>,
    /// Holds the socket, and the data unless the caller gave a place for them. Removed last.
    run: TempDir,
    /// Holds `data` and `error.log`.
    directory: PathBuf,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts a new server with an empty data directory, row-based binlog, full row images and
    /// GTIDs. Options are arguments of its program; they override what this sets.
    ///
    /// # Errors
    /// The server's programs are not there, the system refuses a directory or a process, or the
    /// server ends at once, does not answer in time or is of another version.
    pub fn start(kind: Kind, options: &[&str]) -> Result<Self> {
        let run = tempfile::Builder::new().prefix("remora-peer-").tempdir()?;
        let directory = run.path().to_owned();
        Self::start_with(kind, run, directory, options)
    }

    /// Starts a server over `directory/data`, which is made if it is not there and stays.
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

    /// Which server it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The port of [`HOST`] it listens on, the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run.path().join("socket")
    }

    /// Its data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The process, while it runs.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// A URL for [`FOLLOWER_USER`] and, unless empty, a database.
    #[must_use]
    pub fn follower_url(&self, database: &str) -> String {
        format!("mysql://{FOLLOWER_USER}:{FOLLOWER_PASSWORD}@{HOST}:{}/{database}", self.port)
    }

    /// A connection of root, who may do anything, over the socket.
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

    /// Asks the server to stop and waits until it has.
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

    /// Kills the process at once, as a crash would.
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

    /// Starts it again, after stopping it if it runs: same data directory, same port.
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

    /// Runs the program and waits until it answers.
    fn launch(&mut self) -> Result<()> {
        let log = self.error_log();
        let mut command = binaries::server(self.kind, &self.data(), &log)?;
        // Safe against a killed process, not against a power cut: a test needs no more.
        command
            .args(["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"])
            .args(["--innodb-buffer-pool-size=64M", "--max-allowed-packet=64M"])
            .args(["--skip-name-resolve", "--server-id=1", "--log-bin=binlog"])
            .args(["--binlog-format=ROW", "--log-slave-updates", "--skip-slave-start"])
            .arg(format!("--bind-address={HOST}"))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.run.path().join("pid").display()))
            // A server that starts clears the place of temporary files, whosever they are.
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
        // Nobody reads what a server leaves in its own directory, so it need not stop in order.
        let _ = if self.directory == self.run.path() { self.kill() } else { self.stop() };
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((HOST, 0))?.local_addr()?.port())
}

/// What a log names errors, or its end if it names none.
fn complaints(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<&str> = text.lines().filter(|line| line.contains("[ERROR]")).collect();
    if lines.is_empty() {
        lines = text.lines().collect();
    }
    lines.split_off(lines.len().saturating_sub(15)).join("\n")
}
